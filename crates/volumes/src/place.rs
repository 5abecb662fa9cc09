//! Files and block devices as management sees them, and the stamp file beside a disk.

use super::joined::Joined;
use super::mark::{mark_of, replace, sync_directory};
use super::mirror::Mirror;
use super::{MirrorMember, Result};
use nandscape_cache::manage::{Beside, Disk, Mark};
use nandscape_cache::metadata::Area;
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op, Store, StoreError, StoreResult};
use nandscape_disk::decorate::Shared;
use nandscape_files::{Condition, FileOptions, FileStore};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file or block device whose bytes are used at once, and that a cache may use as a store at the same time.
///
/// A disk that is a file has a stamp file beside it. Beside a block device nothing can be kept, nor does the
/// system say when it was written to.
#[derive(Clone, Debug)]
pub struct Place {
    pub(super) store: Shared<Joined>,
    path: PathBuf,
    mark: Option<PathBuf>,
}

impl Place {
    /// Opens it, for this process alone.
    pub fn open(path: &Path, options: FileOptions) -> Result<Self> {
        Ok(Self::new(FileStore::open(path, options)?, path))
    }

    /// Several files with the same bytes, which are known by one of their paths.
    pub(super) fn over(mirror: Mirror, path: &Path) -> Self {
        Self { store: Shared::new(Joined::new(mirror)), path: path.to_owned(), mark: None }
    }

    /// The same for a disk, with its stamp file.
    pub fn open_disk(path: &Path, options: FileOptions) -> Result<Self> {
        let place = Self::open(path, options)?;
        let mark = (!place.store.get().first().is_block_device()).then(|| mark_of(path));
        Ok(Self { mark, ..place })
    }

    pub(super) fn new(store: FileStore, path: &Path) -> Self {
        Self::over(Mirror::single(store), path)
    }

    /// The same without its stamp file.
    pub(super) fn unmarked(self) -> Self {
        Self { mark: None, ..self }
    }

    /// As a side of a cache.
    pub fn store(&self) -> Box<dyn Store + Send> {
        Box::new(self.store.clone())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What has become of it, if that is not what it was: how its commands fail from now on. Without a name a
    /// cache takes no more writes, and can be read once more; a disk is as good as gone, since what goes
    /// there is.
    pub(super) fn look_over(&self, is_cache: bool) -> Option<StoreError> {
        let mut store = self.store.get();
        for file in store.files() {
            let path = file.path().display();
            match file.condition() {
                Ok(Condition::Whole) | Err(_) => {}
                Ok(Condition::Shorter(bytes)) => {
                    let detail = format!("{path}: the file was cut to {bytes} bytes while it was in use");
                    file.fail(StoreError::Gone { detail });
                }
                Ok(Condition::Deleted) => {
                    let detail = format!("{path}: the file was deleted while it was in use");
                    let error =
                        if is_cache { StoreError::ReadOnly { detail } } else { StoreError::Gone { detail } };
                    file.fail(error);
                }
            }
        }
        store.first().go_on();
        store.failed()
    }

    /// All members, of a cache that is mirrored.
    pub(super) fn mirror(&self) -> Vec<MirrorMember> {
        self.store.get().first().report()
    }

    fn run(&mut self, op: Op, offset: u64, len: u64, payload: Payload<'_>) -> StoreResult<()> {
        let command = BlockCommand::new(op, Extent::new(offset, len), Hint::default());
        self.store.apply(command, payload).map(drop)
    }
}

impl Area for Place {
    fn capacity_bytes(&self) -> u64 {
        self.store.capacity_bytes()
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> StoreResult<()> {
        self.run(Op::Read, offset, bytes.len() as u64, Payload::Read(bytes))
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> StoreResult<()> {
        self.run(Op::Write, offset, bytes.len() as u64, Payload::Write(bytes))
    }

    fn flush(&mut self) -> StoreResult<()> {
        self.run(Op::Flush, 0, 0, Payload::None)
    }
}

fn modified_ns(path: &Path) -> io::Result<u64> {
    let modified = fs::metadata(path)?.modified()?;
    // A time before 1970 is as good as none.
    Ok(modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64))
}

fn failed(path: &Path, what: &str) -> impl FnOnce(io::Error) -> StoreError {
    let text = format!("{}: {what}", path.display());
    move |error| StoreError::Io { offset: 0, len: 0, detail: format!("{text}: {error}") }
}

impl Disk for Place {
    fn changed_ns(&mut self) -> StoreResult<Option<u64>> {
        if self.mark.is_none() {
            return Ok(None);
        }
        modified_ns(&self.path).map(Some).map_err(failed(&self.path, "ask for the time of its last change"))
    }

    fn beside(&mut self) -> StoreResult<Beside> {
        let Some(path) = &self.mark else { return Ok(Beside::NoPlace) };
        match fs::read(path) {
            Ok(bytes) => {
                let text = String::from_utf8(bytes).unwrap_or_default();
                Ok(Mark::parse(&text).map_or(Beside::Damaged, Beside::Mark))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Beside::Nothing),
            Err(error) => Err(failed(path, "read")(error)),
        }
    }

    fn put_mark(&mut self, mark: Option<&Mark>) -> StoreResult<()> {
        let Some(path) = &self.mark else { return Ok(()) };
        match mark {
            Some(mark) => replace(path, &mark.to_text()).map_err(failed(path, "write")),
            None => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, "remove")(error)),
                _ => sync_directory(path).map_err(failed(path, "remove")),
            },
        }
    }

    fn sign_of_life(&mut self) -> StoreResult<()> {
        let Some(path) = &self.mark else { return Ok(()) };
        let touch = || File::options().write(true).open(path)?.set_modified(SystemTime::now());
        touch().map_err(failed(path, "set its time"))
    }

    fn alive_ns(&mut self) -> StoreResult<Option<u64>> {
        let Some(path) = &self.mark else { return Ok(None) };
        match modified_ns(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            outcome => outcome.map(Some).map_err(failed(path, "ask for its time")),
        }
    }
}
