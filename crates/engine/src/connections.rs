//! The open connections of a server: how many there may be, and how they end.

use std::collections::BTreeMap;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// A socket that can be shut from another thread.
pub trait Shut {
    /// Ends what blocks on it. That the other side has gone is no error.
    fn shut(&self, how: Shutdown);
}

impl Shut for UnixStream {
    fn shut(&self, how: Shutdown) {
        let _ = self.shutdown(how);
    }
}

/// The connections of a server that are open.
#[derive(Debug)]
pub struct Connections<S> {
    most: usize,
    open: Mutex<Open<S>>,
    ended: Condvar,
}

#[derive(Debug)]
struct Open<S> {
    next: u64,
    sockets: BTreeMap<u64, Arc<S>>,
}

impl<S: Shut> Connections<S> {
    /// None yet, and never more than `most`.
    pub fn new(most: usize) -> Arc<Self> {
        let open = Mutex::new(Open { next: 0, sockets: BTreeMap::new() });
        Arc::new(Self { most, open, ended: Condvar::new() })
    }

    /// Notes a connection until what this returns is dropped, even by a panic; `None` if there are too many.
    pub fn enter(self: &Arc<Self>, socket: &Arc<S>) -> Option<Entered<S>> {
        let mut open = self.lock();
        if open.sockets.len() >= self.most {
            return None;
        }
        let id = open.next;
        open.next += 1;
        open.sockets.insert(id, Arc::clone(socket));
        Some(Entered { connections: Arc::clone(self), id })
    }

    /// Shuts all sockets and waits until their connections have ended, at most so long.
    pub fn end(&self, how: Shutdown, most: Duration) {
        let mut open = self.lock();
        open.sockets.values().for_each(|socket| socket.shut(how));
        let deadline = Instant::now() + most;
        while !open.sockets.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            open = self.ended.wait_timeout(open, left).expect("see `lock`").0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open<S>> {
        self.open.lock().expect("nothing panics while it holds the list of connections")
    }
}

/// A connection that is open.
#[derive(Debug)]
pub struct Entered<S: Shut> {
    connections: Arc<Connections<S>>,
    id: u64,
}

impl<S: Shut> Drop for Entered<S> {
    fn drop(&mut self) {
        if let Some(socket) = self.connections.lock().sockets.remove(&self.id) {
            // The client sees the end now, whoever else holds the socket; what was sent before is still read.
            socket.shut(Shutdown::Both);
        }
        self.connections.ended.notify_all();
    }
}
