//! Where control sockets are, so that a server is found without being told where.

use std::fs::DirBuilder;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// No place for a socket, or no server at one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PlaceError {
    #[error("control socket {}: {error}", path.display())]
    Io { path: PathBuf, error: Error },
    #[error("control socket {}: expected no file, or the socket of a server that is gone, but there is {found}", path.display())]
    Taken { path: PathBuf, found: &'static str },
    #[error("{}: expected a directory of user {user} that nobody else can write to; {found}: its sockets are not used", path.display())]
    Foreign { path: PathBuf, user: u32, found: String },
    #[error("no server is running: expected a control socket in {}, or the path of one", dir.display())]
    None { dir: PathBuf },
    #[error("expected the control socket of the server to end (--socket PATH): {}", shown(paths))]
    Unnamed { paths: Vec<PathBuf> },
    #[error("{} servers are running: expected the control socket of one of them: {}", paths.len(), shown(paths))]
    Several { paths: Vec<PathBuf> },
}

fn shown(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The directory of the sockets of this user's servers: `nandscape` in `XDG_RUNTIME_DIR`, or `nandscape-UID`
/// in the directory for temporary files.
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

/// Whether a directory of sockets may be used: it is no link, belongs to `user`, and nobody else can put
/// anything into it. In a directory for temporary files anybody may have made it first.
fn check(dir: &Path, user: u32) -> Result<(), PlaceError> {
    let meta =
        std::fs::symlink_metadata(dir).map_err(|error| PlaceError::Io { path: dir.to_owned(), error })?;
    let found = if meta.is_symlink() {
        "it is a symbolic link".to_owned()
    } else if !meta.is_dir() {
        "it is no directory".to_owned()
    } else if meta.uid() != user {
        format!("it belongs to user {}", meta.uid())
    } else if meta.mode() & 0o022 != 0 {
        format!("its mode is {:o}", meta.mode() & 0o7777)
    } else {
        return Ok(());
    };
    Err(PlaceError::Foreign { path: dir.to_owned(), user, found })
}

/// Where the socket of this process goes if nobody says otherwise. Makes the directory, for this user alone.
pub fn default_path() -> Result<PathBuf, PlaceError> {
    let dir = directory()?;
    make(&dir, user()?)?;
    Ok(dir.join(format!("{}.sock", std::process::id())))
}

/// Makes a directory of sockets, or checks the one that is there.
fn make(dir: &Path, user: u32) -> Result<(), PlaceError> {
    match DirBuilder::new().recursive(true).mode(0o700).create(dir) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(PlaceError::Io { path: dir.to_owned(), error })
        }
        // What is there now is what counts, whoever made it.
        _ => check(dir, user),
    }
}

/// Sockets of the servers that run. Those of servers that are gone are removed.
pub fn running() -> Result<Vec<PathBuf>, PlaceError> {
    running_in(&directory()?, user()?)
}

fn running_in(dir: &Path, user: u32) -> Result<Vec<PathBuf>, PlaceError> {
    match check(dir, user) {
        Err(PlaceError::Io { error, .. }) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        checked => checked?,
    }
    let entries = std::fs::read_dir(dir).map_err(|error| PlaceError::Io { path: dir.to_owned(), error })?;
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

/// Refuses to choose a server to end, even if only one runs; the error names those that do.
pub fn unnamed() -> PlaceError {
    match running() {
        Ok(paths) if !paths.is_empty() => PlaceError::Unnamed { paths },
        Ok(_) => directory().map_or_else(|error| error, |dir| PlaceError::None { dir }),
        Err(error) => error,
    }
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

/// Leaves a link to a socket that is elsewhere where [`find`] looks. Finding it is a convenience, so a
/// failure is none of the server's.
pub(super) fn link(path: &Path) -> Option<PathBuf> {
    let link = default_path().ok()?;
    if link == path {
        return None;
    }
    let target = std::path::absolute(path).ok()?;
    put_link(&link, &target).ok()?;
    Some(link)
}

/// The only link beside it that leads there: a server that was killed has left its own.
fn put_link(link: &Path, target: &Path) -> std::io::Result<()> {
    for other in std::fs::read_dir(link.parent().unwrap_or(link))?.flatten().map(|entry| entry.path()) {
        if other == link || std::fs::read_link(&other).is_ok_and(|there| there == target) {
            // Whoever looks for servers may have removed it.
            let _ = std::fs::remove_file(&other);
        }
    }
    std::os::unix::fs::symlink(target, link)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    /// What is said of a directory that is not used, by whoever makes it and by whoever looks for servers.
    fn refused(dir: &Path, user: u32) -> String {
        let [made, looked] = [make(dir, user).unwrap_err(), running_in(dir, user).unwrap_err()];
        assert_eq!(made.to_string(), looked.to_string());
        assert!(matches!(made, PlaceError::Foreign { .. }), "{made}");
        made.to_string()
    }

    #[test]
    fn a_directory_that_others_could_have_prepared_is_never_used() {
        let temporary = tempfile::tempdir().unwrap();
        let (dir, own) = (temporary.path().join("nandscape"), user().unwrap());
        assert_eq!(running_in(&dir, own).unwrap(), [] as [PathBuf; 0], "nobody has served yet");
        make(&dir, own).unwrap();
        assert_eq!(std::fs::metadata(&dir).unwrap().mode() & 0o7777, 0o700);
        let socket = dir.join("1.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        assert_eq!(running_in(&dir, own).unwrap(), [&*socket]);

        // Somebody else's, who listens there.
        assert!(refused(&dir, own + 1).contains(&format!("belongs to user {own}")));
        for mode in [0o720, 0o702, 0o777] {
            std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).unwrap();
            assert!(refused(&dir, own).contains(&format!("mode is {mode:o}")));
        }
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o750)).unwrap();
        make(&dir, own).unwrap();
        let link = temporary.path().join("link");
        symlink(&dir, &link).unwrap();
        assert!(refused(&link, own).contains("symbolic link"));
        std::fs::write(temporary.path().join("file"), "").unwrap();
        assert!(refused(&temporary.path().join("file"), own).contains("no directory"));
        assert!(socket.exists(), "a socket in a directory that is not used was removed");
        drop(listener);
    }

    #[test]
    fn a_server_that_was_killed_is_not_found_by_the_socket_of_the_next() {
        let temporary = tempfile::tempdir().unwrap();
        let (dir, own) = (temporary.path().join("nandscape"), user().unwrap());
        make(&dir, own).unwrap();
        let sockets = ["a", "b"].map(|name| temporary.path().join(name));
        let _listeners = sockets.each_ref().map(|socket| UnixListener::bind(socket).unwrap());
        let links = ["1.sock", "2.sock", "3.sock"].map(|name| dir.join(name));
        put_link(&links[0], &sockets[0]).unwrap();
        put_link(&links[1], &sockets[1]).unwrap();
        put_link(&links[2], &sockets[0]).unwrap();
        assert_eq!(running_in(&dir, own).unwrap(), links[1..]);
        put_link(&links[2], &sockets[0]).unwrap();
        assert_eq!(running_in(&dir, own).unwrap(), links[1..], "the same again");
    }
}
