//! Where clients come in.

use super::tls::TlsConfig;
use super::transport::{Socket, Stream};
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::fmt::{Display, Write};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Bytes of the name of a socket file that the system has room for.
const MAX_PATH_BYTES: usize = 107;

/// Replies that wait in the system: more than a batch, so that one runs while the client takes the last.
const SEND_BUFFER_BYTES: usize = 1 << 20;

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ListenError {
    #[error(
        "{address}: expected a loopback address, as there is no TLS: other machines could read and write the device"
    )]
    Exposed { address: SocketAddr },
    /// The name is taken or too long, or the system refused: with the address and why.
    #[error("{0}")]
    Refused(String),
}

impl ListenError {
    fn refused(address: &impl Display, why: impl Display) -> Self {
        Self::Refused(format!("{address}: {why}"))
    }
}

#[derive(Debug)]
pub(super) enum Listener {
    Unix {
        listener: UnixListener,
        path: PathBuf,
        /// Device and inode of the file, so that it is removed only while it is ours.
        identity: Option<(u64, u64)>,
        tls: Option<TlsConfig>,
    },
    Tcp {
        listener: TcpListener,
        address: SocketAddr,
        tls: Option<TlsConfig>,
    },
}

impl Listener {
    /// Listens on a socket file. One that nobody listens on any more is replaced.
    pub fn unix(path: &Path, tls: Option<TlsConfig>) -> Result<Self, ListenError> {
        let bytes = path.as_os_str().len();
        if bytes > MAX_PATH_BYTES {
            let why = format!("{bytes} bytes are too many for the name of a socket: expected at most");
            return Err(ListenError::refused(&path.display(), format!("{why} {MAX_PATH_BYTES}")));
        }
        clear_the_way(path)?;
        let listen = || {
            let listener = UnixListener::bind(path)?;
            listener.set_nonblocking(true)?;
            // Absolute, so that the file is found again wherever the process goes.
            let path = std::path::absolute(path)?;
            let identity = identity(&path);
            Ok(Self::Unix { listener, path, identity, tls })
        };
        listen().map_err(|error: io::Error| ListenError::refused(&path.display(), error))
    }

    pub fn tcp(address: SocketAddr, tls: Option<TlsConfig>) -> Result<Self, ListenError> {
        let listen = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(Self::Tcp { address: listener.local_addr()?, listener, tls })
        };
        listen().map_err(|error: io::Error| ListenError::refused(&address, error))
    }

    /// The next client, if there is one.
    pub fn accept(&self) -> io::Result<Socket> {
        let stream = match self {
            Self::Unix { listener, .. } => {
                let (socket, _) = listener.accept()?;
                socket.set_nonblocking(false)?;
                // The system gives what it allows; with less the replies wait for the client more often.
                let _ = set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES);
                Stream::Unix(socket)
            }
            Self::Tcp { listener, .. } => {
                let (socket, _) = listener.accept()?;
                socket.set_nonblocking(false)?;
                socket.set_nodelay(true)?;
                Stream::Tcp(socket)
            }
        };
        Ok(Socket::new(stream))
    }

    /// TLS that clients must begin.
    pub const fn tls(&self) -> Option<&TlsConfig> {
        match self {
            Self::Unix { tls, .. } | Self::Tcp { tls, .. } => tls.as_ref(),
        }
    }

    /// The address of an export here, as clients take it.
    pub fn uri(&self, export: &str) -> String {
        let secure = if self.tls().is_some() { "s" } else { "" };
        let export = escape(export.as_bytes());
        match self {
            Self::Unix { path, .. } => {
                let path = escape(path.as_os_str().as_encoded_bytes());
                format!("nbd{secure}+unix:///{export}?socket={path}")
            }
            Self::Tcp { address, .. } => format!("nbd{secure}://{address}/{export}"),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix { listener, .. } => listener.as_fd(),
            Self::Tcp { listener, .. } => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix { path, identity: ours @ Some(_), .. } = self
            && identity(path) == *ours
        {
            // An error leaves a socket file behind that the next server replaces.
            _ = std::fs::remove_file(path);
        }
    }
}

/// Removes a socket file that nobody listens on; any other file stays and is an error.
fn clear_the_way(path: &Path) -> Result<(), ListenError> {
    let refused = |error: io::Error| Err(ListenError::refused(&path.display(), error));
    let taken = |why| Err(ListenError::refused(&path.display(), why));
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => refused(error),
        Ok(found) if !found.file_type().is_socket() => {
            taken("expected a free name or a socket left behind, but this is something else")
        }
        Ok(_) => match UnixStream::connect(path) {
            Ok(_) => taken("another server is listening there"),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path).or_else(refused)
            }
            Err(error) => refused(error),
        },
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// Percent-escapes what does not stand for itself in a URI.
fn escape(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(byte) {
            text.push(char::from(*byte));
        } else {
            _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_left_behind_is_replaced_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a socket");
        std::fs::write(&path, "precious").unwrap();
        let refusal = |path: &Path| Listener::unix(path, None).unwrap_err().to_string();
        assert!(refusal(&path).ends_with("but this is something else"));
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
        std::fs::remove_file(&path).unwrap();

        // What a server that was killed leaves.
        drop(UnixListener::bind(&path).unwrap());
        let first = Listener::unix(&path, None).unwrap();
        assert!(first.uri("ns 1").starts_with("nbd+unix:///ns%201?socket=/"));
        assert!(first.uri("ns1").ends_with("/a%20socket"));
        assert!(refusal(&path).ends_with("another server is listening there"));
        drop(first);
        assert!(!path.exists(), "a socket file outlived its listener");
    }

    #[test]
    fn a_listener_leaves_the_file_of_another_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let first = Listener::unix(&path, None).unwrap();
        std::fs::remove_file(&path).unwrap();
        let second = Listener::unix(&path, None).unwrap();
        drop(first);
        assert!(path.exists(), "the second listener's file is gone");
        drop(second);
    }

    #[test]
    fn a_name_too_long_for_a_socket_is_refused_with_its_length() {
        let error = Listener::unix(Path::new(&"x".repeat(108)), None).unwrap_err();
        assert!(error.to_string().contains("108 bytes"), "{error}");
    }
}
