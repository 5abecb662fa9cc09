//! What bytes travel on.

use nandscape_engine::connections::Shut;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[derive(Debug)]
pub struct Socket {
    stream: Stream,
    /// [`Socket::evict`] has ended it.
    pub is_evicted: AtomicBool,
}

#[derive(Debug)]
pub enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

macro_rules! either {
    ($self:expr, $stream:ident => $call:expr) => {
        match &$self.stream {
            Stream::Unix($stream) => $call,
            Stream::Tcp($stream) => $call,
        }
    };
}

impl Socket {
    pub const fn new(stream: Stream) -> Self {
        Self { stream, is_evicted: AtomicBool::new(false) }
    }

    /// Ends the connection since its client keeps others waiting.
    pub fn evict(&self) {
        self.is_evicted.store(true, Ordering::Release);
        self.shut(Shutdown::Both);
    }
}

impl Shut for Socket {
    fn shut(&self, how: Shutdown) {
        _ = either!(self, stream => stream.shutdown(how));
    }
}

/// A way for bytes from and to one client. Reading and writing may happen on two threads.
pub trait Transport: Send + Sync {
    /// Some bytes, or 0 at the end.
    fn recv(&self, bytes: &mut [u8]) -> io::Result<usize>;

    fn send(&self, bytes: &[u8]) -> io::Result<()>;

    /// How long a read or write may block; `None` for ever.
    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()>;

    /// Says goodbye where the transport has a way to.
    fn close(&self) {}
}

impl Transport for Arc<Socket> {
    fn recv(&self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match either!(self, stream => { let mut stream = stream; stream.read(bytes) }) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        either!(self, stream => { let mut stream = stream; stream.write_all(bytes) })
    }

    fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        either!(self, stream => {
            stream.set_read_timeout(timeout)?;
            stream.set_write_timeout(timeout)
        })
    }
}
