//! A snapshot that is being written. Until everything in it is durable it has another name (`NAME.partial`),
//! and its header says that it is no image, whatever name it is given; what a killed process leaves is
//! replaced by the next snapshot of the same name.

use crate::error::{ImageError, Result};
use crate::header::{Header, UNFINISHED};
use crate::layout::Layout;
use crate::locked::{self, open_regular};
use crate::start::head;
use crate::state::{State, boot_id};
use nandscape_files::os;
use nandscape_files::os::LockedFile;
use rustix::fs::{AtFlags, CWD, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A file under its temporary name, locked. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Unfinished {
    pub file: LockedFile,
    /// The name that it will have.
    pub path: PathBuf,
    partial: PathBuf,
    is_finished: bool,
}

impl Unfinished {
    /// Makes an empty file beside `path`, which must not exist. Replaces what an earlier attempt left.
    pub fn create(path: &Path) -> Result<Self> {
        if std::fs::symlink_metadata(path).is_ok() {
            return Err(ImageError::io(path, "create")(Errno::EXIST.into()));
        }
        let mut name = OsString::from(path);
        name.push(".partial");
        let partial = PathBuf::from(name);
        remove_leftover(&partial)?;
        let file = locked::create(&partial)?;
        let this = Self { file, path: path.to_owned(), partial, is_finished: false };
        let marked = this.file.write_all_at(&UNFINISHED, 0);
        marked.map_err(ImageError::io(&this.partial, "write"))?;
        Ok(this)
    }

    /// Writes header and configuration, with a mark that makes the file no image yet.
    pub fn put_head(&self, header: &Header) -> io::Result<()> {
        let mut head = head(header);
        head[..UNFINISHED.len()].copy_from_slice(&UNFINISHED);
        self.file.write_all_at(&head, 0)
    }

    /// Makes all durable, then the file a closed image, then gives it its name. An error leaves no file.
    pub fn finish(&mut self, layout: &Layout) -> Result<()> {
        self.seal(layout).map_err(ImageError::io(&self.path, "copy"))?;
        rename_new(&self.partial, &self.path).map_err(ImageError::io(&self.path, "rename"))?;
        self.is_finished = true;
        os::sync_directory_of(&self.path).map_err(ImageError::io(&self.path, "sync the directory"))
    }

    fn seal(&self, layout: &Layout) -> io::Result<()> {
        let state = State { is_clean: true, epoch: 1, opens: 0, boot: boot_id() };
        for at in layout.states() {
            self.file.write_all_at(&state.encode(), at)?;
        }
        self.file.sync_all()?;
        self.file.write_all_at(&crate::header::MAGIC, 0)?;
        self.file.sync_all()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

/// Removes what a killed process left under the temporary name. Any other file stays, in the way.
fn remove_leftover(partial: &Path) -> Result<()> {
    if std::fs::symlink_metadata(partial).is_err() {
        return Ok(());
    }
    let file = open_regular(partial, true)?;
    let mut mark = [0; UNFINISHED.len()];
    let is_leftover = file.read_exact_at(&mut mark, 0).is_ok() && mark == UNFINISHED;
    // A process that was killed before it wrote the mark leaves nothing at all.
    let is_empty = file.metadata().is_ok_and(|metadata| metadata.len() == 0);
    if !is_leftover && !is_empty {
        return Err(ImageError::io(partial, "create")(Errno::EXIST.into()));
    }
    let _locked = locked::take(file, false, partial)?;
    std::fs::remove_file(partial).map_err(ImageError::io(partial, "remove"))
}

/// Renames a file, never over another one.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // File systems that cannot do that can link, which replaces nothing either.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty())?;
            std::fs::remove_file(from)
        }
        outcome => Ok(outcome?),
    }
}
