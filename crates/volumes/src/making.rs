//! How the files of a cache are made.

use super::{CacheFileError, Result, mark_of};
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op, Store as _};
use nandscape_files::{FileOptions, FileStore};
use std::path::{Path, PathBuf};

/// How a cache is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Making<'a> {
    /// A cache that is there is replaced.
    pub replace: bool,
    /// A file that is made has space only for what is written to it.
    pub is_sparse: bool,
    /// File or device for the blocks; the cache itself then has only its metadata.
    pub data: Option<&'a Path>,
    /// Further files or devices with the same bytes, see `mirror`.
    pub mirror: &'a [PathBuf],
}

/// Files as they are opened for a new cache, and those that were made for it.
pub(super) struct Files<'a> {
    pub with: Making<'a>,
    new: Vec<PathBuf>,
}

impl<'a> Files<'a> {
    pub(super) const fn new(with: Making<'a>) -> Self {
        Self { with, new: Vec::new() }
    }

    /// Takes away what was made, if it was in vain.
    pub(super) fn keep_if<T>(self, made: Result<T>) -> Result<T> {
        if made.is_err() {
            for path in self.new {
                let _ = std::fs::remove_file(path);
            }
        }
        made
    }

    /// A file that is not there is made with so many bytes.
    pub(super) fn open(&mut self, path: &Path, bytes: Option<u64>) -> Result<FileStore> {
        if !self.with.replace && mark_of(path).exists() {
            return Err(CacheFileError::IsDisk { path: path.to_owned() });
        }
        match bytes {
            Some(bytes) if !path.try_exists().unwrap_or(true) => {
                let options = FileOptions { keeps_space: !self.with.is_sparse, ..FileOptions::default() };
                let file = FileStore::create(path, bytes, options)?;
                self.new.push(path.to_owned());
                Ok(file)
            }
            _ => Ok(FileStore::open(path, FileOptions::default())?),
        }
    }
}

/// A file that is to be overwritten has nothing in its first bytes.
pub(super) fn check_blank(file: &mut FileStore, bytes: u64, what: &str) -> Result<()> {
    let mut found = vec![0; bytes as usize];
    let read = BlockCommand::new(Op::Read, Extent::new(0, bytes), Hint::default());
    let done = file.apply(read, Payload::Read(&mut found));
    done.map_err(|error| CacheFileError::refused(file.path(), error))?;
    if let Some(offset) = found.iter().position(|byte| *byte != 0) {
        let detail = format!(
            "not empty, at byte {offset}: expected a file or device of zeroes for {what}, or --force"
        );
        return Err(CacheFileError::refused(file.path(), detail));
    }
    Ok(())
}
