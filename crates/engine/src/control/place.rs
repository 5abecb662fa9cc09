//! Where control sockets are, so that a server is found without being told where.

use std::fs::DirBuilder;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// No place for a socket, or no server at one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The operating system refuses.
    #[error("control socket {}: {error}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        error: Error,
    },
    /// Something else is there.
    #[error("control socket {}: expected no file, or the socket of a server that is gone, but there is {found}", path.display())]
    Taken {
        /// Where.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// The directory of sockets belongs to somebody else.
    #[error("{}: expected a directory that belongs to user {user} alone; it belongs to {owner}, mode {mode:o}", path.display())]
    Foreign {
        /// Directory.
        path: PathBuf,
        /// Who asks.
        user: u32,
        /// Whose it is.
        owner: u32,
        /// Its mode.
        mode: u32,
    },
    /// Nothing to ask.
    #[error("no server is running: expected a control socket in {}, or the path of one", dir.display())]
    None {
        /// Where was looked.
        dir: PathBuf,
    },
    /// More than one to ask.
    #[error("{} servers are running: expected the control socket of one of them: {}", paths.len(), shown(paths))]
    Several {
        /// Their sockets.
        paths: Vec<PathBuf>,
    },
}

fn shown(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The directory of the sockets of this user's servers: `nandscape` in `XDG_RUNTIME_DIR`, or `nandscape-UID` in the directory for temporary
/// files.
fn directory() -> Result<PathBuf, PlaceError> {
    if let Some(dir) = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| Path::new(dir).is_absolute()) {
        return Ok(PathBuf::from(dir).join("nandscape"));
    }
    Ok(std::env::temp_dir().join(format!("nandscape-{}", user()?)))
}

fn user() -> Result<u32, PlaceError> {
    let path = PathBuf::from("/proc/self");
    std::fs::metadata(&path).map(|own| own.uid()).map_err(|error| PlaceError::Io { path, error })
}

/// Where the socket of this process goes if nobody says otherwise. Makes the directory, for this user alone.
pub fn default_path() -> Result<PathBuf, PlaceError> {
    let dir = directory()?;
    let failed = |error| PlaceError::Io { path: dir.clone(), error };
    DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(failed)?;
    let (meta, user) = (std::fs::metadata(&dir).map_err(failed)?, user()?);
    if meta.uid() != user || meta.mode() & 0o022 != 0 {
        return Err(PlaceError::Foreign { path: dir, user, owner: meta.uid(), mode: meta.mode() & 0o7777 });
    }
    Ok(dir.join(format!("{}.sock", std::process::id())))
}

/// Sockets of the servers that run. Those of servers that are gone are removed.
pub fn running() -> Result<Vec<PathBuf>, PlaceError> {
    let dir = directory()?;
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(PlaceError::Io { path: dir, error }),
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .filter(|path| match UnixStream::connect(path) {
            Ok(_) => true,
            Err(error) => {
                if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) {
                    let _ = std::fs::remove_file(path);
                }
                false
            }
        })
        .collect();
    found.sort();
    Ok(found)
}

/// The socket of the only server that runs.
pub fn find() -> Result<PathBuf, PlaceError> {
    let mut paths = running()?;
    match paths.len() {
        0 => Err(PlaceError::None { dir: directory()? }),
        1 => Ok(paths.remove(0)),
        _ => Err(PlaceError::Several { paths }),
    }
}

/// Makes room for a socket: removes what a server that is gone has left.
pub(super) fn clear(path: &Path) -> Result<(), PlaceError> {
    let kind = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(PlaceError::Io { path: path.to_owned(), error }),
        Ok(meta) => meta.file_type(),
    };
    let taken = |found| Err(PlaceError::Taken { path: path.to_owned(), found });
    if !kind.is_socket() && !kind.is_symlink() {
        return taken("another file");
    }
    match UnixStream::connect(path) {
        Ok(_) => taken("the socket of a server that runs"),
        // A link may lead to a socket that is gone, too.
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => {
            std::fs::remove_file(path).map_err(|error| PlaceError::Io { path: path.to_owned(), error })
        }
        Err(error) => Err(PlaceError::Io { path: path.to_owned(), error }),
    }
}

/// Leaves a link to a socket that is elsewhere where [`find`] looks. Finding it is a convenience, so a failure is none of the server's.
pub(super) fn link(path: &Path) -> Option<PathBuf> {
    let link = default_path().ok()?;
    if link == path {
        return None;
    }
    let target = std::path::absolute(path).ok()?;
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(target, &link).ok()?;
    Some(link)
}
