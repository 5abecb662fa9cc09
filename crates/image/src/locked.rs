//! Files that one process has to itself.

use crate::error::{ImageError, Result};
use nandscape_files::os::{self, LockedFile};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Mode of a new image: for its owner alone.
const MODE: u32 = 0o600;

/// Makes a file for this process alone; one that is there is refused.
pub(crate) fn create(path: &Path) -> Result<LockedFile> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(MODE).open(path);
    let file = file.map_err(ImageError::io(path, "create"))?;
    take(file, false, path).inspect_err(|_| drop(std::fs::remove_file(path)))
}

/// Takes a file for this process alone, or together with others that only read.
pub(crate) fn take(file: File, is_shared: bool, path: &Path) -> Result<LockedFile> {
    LockedFile::take(file, is_shared)
        .map_err(ImageError::io(path, "lock"))?
        .ok_or_else(|| ImageError::unsuited(path, "the image is in use by another process"))
}

/// Opens a regular file. Anything else is refused, and none of it is waited for.
pub(crate) fn open_regular(path: &Path, is_writable: bool) -> Result<File> {
    let refuse = |kind| match os::kind_of(kind) {
        Some(kind) => Err(ImageError::unsuited(path, format!("{kind}: expected an image file"))),
        None => Ok(()),
    };
    // Before the open too, since to open a device can have effects of its own.
    refuse(std::fs::metadata(path).map_err(ImageError::io(path, "open"))?.file_type())?;
    let file = OpenOptions::new().read(true).write(is_writable).custom_flags(os::NO_WAIT).open(path);
    let file = file.map_err(ImageError::io(path, "open"))?;
    refuse(file.metadata().map_err(ImageError::io(path, "stat"))?.file_type())?;
    Ok(file)
}
