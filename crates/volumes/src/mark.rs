//! The stamp file beside a disk, as a file.

use nandscape_cache::manage::Mark;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// What is added to the path of a disk for its stamp file.
pub const MARK_SUFFIX: &str = ".nandscape-cache";

/// The stamp file of a disk.
pub fn mark_of(disk: &Path) -> PathBuf {
    let mut path = disk.as_os_str().to_owned();
    path.push(MARK_SUFFIX);
    path.into()
}

/// Takes the stamp file of a disk away, if it is that of this volume.
pub(super) fn remove_mark(disk: &Path, volume: &[u8; 16]) -> io::Result<()> {
    let path = mark_of(disk);
    let is_its = |text: String| Mark::parse(&text).is_some_and(|mark| mark.volume == *volume);
    if fs::read_to_string(&path).is_ok_and(is_its) {
        fs::remove_file(&path)?;
        sync_directory(&path)?;
    }
    Ok(())
}

/// Puts a file in place of another, durably and as a whole.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_directory(path)
}

pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
