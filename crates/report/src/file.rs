//! Files appear whole or not at all: written beside their place under another name, then renamed.

use crate::ReportError;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Puts `bytes` at `path`. See [`write_atomically_with`].
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), ReportError> {
    write_atomically_with(path, |file| {
        file.write_all(bytes).map_err(|source| ReportError::Io {
            path: path.to_owned(),
            action: "write",
            source,
        })
    })
}

/// Lets `fill` write a new file and puts it at `path`, replacing what was there. If anything fails, what was
/// there stays and nothing else is left behind. A symbolic link is followed; what is not a regular file (a
/// terminal, a pipe, `/dev/null`) is written directly, since renaming would replace it by a file.
pub fn write_atomically_with(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    let error = |action| move |source| ReportError::Io { path: path.to_owned(), action, source };
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Ok(meta) = fs::metadata(&target) {
        if meta.is_dir() {
            let source = std::io::Error::from(std::io::ErrorKind::IsADirectory);
            return Err(error("write")(source));
        }
        if !meta.is_file() {
            let mut file = OpenOptions::new().write(true).open(&target).map_err(error("open"))?;
            return fill(&mut file);
        }
    }
    let (mut file, temporary) = create_beside(&target).map_err(error("create a file beside it"))?;
    let result = fill(&mut file)
        .and_then(|()| file.sync_all().map_err(error("write")))
        .and_then(|()| fs::rename(&temporary, &target).map_err(error("rename into place")));
    if result.is_err() {
        // The first error is the one to report; a file that cannot be removed either is only litter.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// A new file in the directory of `target`, since a rename cannot cross file systems.
fn create_beside(target: &Path) -> std::io::Result<(File, PathBuf)> {
    let name = target.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
    for attempt in 0..100 {
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{attempt}.tmp", std::process::id()));
        let temporary = target.with_file_name(hidden);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((file, temporary)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_litter() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.html");
        write_atomically(&path, b"old").unwrap();
        let failed = write_atomically_with(&path, |file| {
            file.write_all(b"half of the n").unwrap();
            Err(ReportError::Encode { output: "test", message: "stopped".into() })
        });
        assert_eq!(failed.unwrap_err().to_string(), "test: stopped");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["out.html"]);
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["out.html"]);
    }

    #[test]
    fn errors_name_the_file_that_was_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("no/such/dir/out.json");
        let message = write_atomically(&missing, b"x").unwrap_err().to_string();
        assert!(message.contains("no/such/dir/out.json: cannot create"), "{message}");
        let message = write_atomically(dir.path(), b"x").unwrap_err().to_string();
        assert!(message.contains("cannot write"), "{message}");
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_stays_one_and_a_device_stays_a_device() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real.csv");
        let link = dir.path().join("link.csv");
        fs::write(&real, b"old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_atomically(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        write_atomically(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
