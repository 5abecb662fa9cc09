//! What bytes travel on.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connected socket.
#[derive(Debug)]
pub enum Socket {
    /// On this machine.
    Unix(UnixStream),
    /// On a network.
    Tcp(TcpStream),
}

macro_rules! either {
    ($self:expr, $socket:ident => $call:expr) => {
        match $self {
            Socket::Unix($socket) => $call,
            Socket::Tcp($socket) => $call,
        }
    };
}

impl Socket {
    /// The same socket once more.
    pub fn again(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Unix(socket) => Self::Unix(socket.try_clone()?),
            Self::Tcp(socket) => Self::Tcp(socket.try_clone()?),
        })
    }

    /// Ends what blocks on it.
    pub fn shut(&self, how: Shutdown) {
        // An error means that the other side has gone already.
        _ = either!(self, socket => socket.shutdown(how));
    }
}

/// A way for bytes from and to one client. Reading and writing may happen on two threads.
pub trait Transport: Send + Sync {
    /// Some bytes, or 0 at the end.
    fn recv(&self, bytes: &mut [u8]) -> io::Result<usize>;

    /// All bytes.
    fn send(&self, bytes: &[u8]) -> io::Result<()>;

    /// How long a read or write may block; `None` for ever.
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// Says goodbye where the transport has a way to.
    fn close(&self) {}
}

impl Transport for Socket {
    fn recv(&self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match either!(self, socket => { let mut socket = socket; socket.read(bytes) }) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        either!(self, socket => { let mut socket = socket; socket.write_all(bytes) })
    }

    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        either!(self, socket => {
            socket.set_read_timeout(timeout)?;
            socket.set_write_timeout(timeout)
        })
    }
}
