//! The server: sockets, a thread for each connection, and a way to stop.
//!
//! A connection's thread receives what has arrived into one buffer, runs as many requests as stand there
//! whole as one batch on the engine, and sends their replies with one call. It has one batch under way, so a
//! client that sends faster than the device runs is held back by its own socket.

mod connection;
mod input;
mod listener;
mod pacer;
mod tls;
mod transport;

pub use connection::ConnectionError;
pub use listener::ListenError;
pub use tls::{TlsConfig, TlsError};

use crate::export::{Export, Exports};
use crate::limits::{LEAST_MEMORY_BYTES, STOP_TIMEOUT};
use listener::Listener;
use nandscape_engine::Engine;
use nandscape_engine::budget::{Budget, DEFAULT_MEMORY_BYTES, PATIENCE};
use nandscape_engine::connections::Connections;
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, PipeReader, PipeWriter, Write};
use std::net::{Shutdown, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use transport::Socket;

/// What a server tells of its connections.
#[derive(Debug)]
#[non_exhaustive]
pub enum Events<'a> {
    /// A client has chosen an export.
    Chosen {
        /// Its name.
        export: &'a str,
    },
    /// A connection ended before its client said goodbye.
    Failed(&'a ConnectionError),
    /// A client was turned away: there are too many.
    TurnedAway,
    /// A client could not be accepted.
    NotAccepted(&'a io::Error),
}

/// Choices about a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerOptions {
    /// Connections at the same time; one more is closed at once.
    pub connections: usize,
    /// Bytes for long requests, of all connections together; at least [`LEAST_MEMORY_BYTES`].
    pub memory_bytes: u64,
    /// How long a client may hold up others that wait for its memory before it must send or take
    /// [`LEAST_RATE`](nandscape_engine::budget::LEAST_RATE) bytes a second.
    pub patience: Duration,
    /// Exports that come while it runs refuse writes.
    pub adds_read_only: bool,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            connections: 128,
            memory_bytes: DEFAULT_MEMORY_BYTES,
            patience: PATIENCE,
            adds_read_only: false,
        }
    }
}

/// An NBD server over an engine.
pub struct Server {
    shared: Arc<Shared>,
    listeners: Vec<Listener>,
    wake: PipeReader,
    stopper: Stopper,
}

/// What all threads of a server look at.
struct Shared {
    engine: Arc<Engine>,
    budget: Arc<Budget>,
    exports: Arc<Exports>,
    events: Box<dyn Fn(Events<'_>) + Send + Sync>,
    is_stopping: AtomicBool,
    connections: Arc<Connections<Socket>>,
}

/// Stops a server from another thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    wake: Arc<PipeWriter>,
}

impl Stopper {
    /// The server takes no more clients, answers what runs, and returns from [`Server::run`].
    pub fn stop(&self) {
        // The pipe is read by nobody before the server ends: one byte is enough.
        _ = (&*self.wake).write(&[0]);
    }
}

impl Server {
    /// A server of these exports; the first is also the one without a name. `events` hears of what happens.
    pub fn new(
        engine: Arc<Engine>,
        exports: Vec<Export>,
        options: ServerOptions,
        events: impl Fn(Events<'_>) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        assert!(options.memory_bytes >= LEAST_MEMORY_BYTES, "the longest request has no room: {options:?}");
        let (wake, writer) = io::pipe()?;
        let shared = Shared {
            engine,
            budget: Budget::with_patience(options.memory_bytes, options.patience),
            exports: Arc::new(Exports::new(exports, options.adds_read_only)),
            events: Box::new(events),
            is_stopping: AtomicBool::new(false),
            connections: Connections::new(options.connections),
        };
        let stopper = Stopper { wake: Arc::new(writer) };
        Ok(Self { shared: Arc::new(shared), listeners: Vec::new(), wake, stopper })
    }

    /// Listens on a socket file. A file left behind by a server that has gone is replaced; any other file is
    /// an error. It is removed when the server is dropped. With TLS, clients must begin it.
    pub fn listen_unix(&mut self, path: &Path, tls: Option<TlsConfig>) -> Result<(), ListenError> {
        self.listeners.push(Listener::unix(path, tls)?);
        Ok(())
    }

    /// Listens on an address of a network. With TLS, clients must begin it. Without, an address that other
    /// machines can reach is refused unless `is_exposed` says that it may be.
    pub fn listen_tcp(
        &mut self,
        address: SocketAddr,
        tls: Option<TlsConfig>,
        is_exposed: bool,
    ) -> Result<(), ListenError> {
        if !address.ip().to_canonical().is_loopback() && tls.is_none() && !is_exposed {
            return Err(ListenError::Exposed { address });
        }
        self.listeners.push(Listener::tcp(address, tls)?);
        Ok(())
    }

    /// The address of every export, as clients take it; that of the server if there is none.
    pub fn uris(&self) -> Vec<String> {
        let exports = self.shared.exports.all();
        let names = exports.iter().map(|export| export.name.as_str());
        let names = names.chain(exports.is_empty().then_some(""));
        names.flat_map(|name| self.listeners.iter().map(|listener| listener.uri(name))).collect()
    }

    /// What clients can choose, for whoever changes that.
    pub fn exports(&self) -> Arc<Exports> {
        Arc::clone(&self.shared.exports)
    }

    /// Stops this server from another thread.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Serves until told to stop; returns when every connection has ended.
    pub fn run(&self) -> io::Result<()> {
        let outcome = self.accept_all();
        self.shared.is_stopping.store(true, Ordering::Release);
        // Requests that wait for memory are refused as those that come now.
        self.shared.budget.close();
        self.shared.connections.end(Shutdown::Read, STOP_TIMEOUT);
        self.shared.connections.end(Shutdown::Both, STOP_TIMEOUT);
        outcome
    }

    fn accept_all(&self) -> io::Result<()> {
        loop {
            let readable = PollFlags::IN;
            let mut fds = vec![PollFd::new(&self.wake, readable)];
            fds.extend(self.listeners.iter().map(|listener| PollFd::new(listener, readable)));
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            if ready[0] {
                return Ok(());
            }
            for (listener, _) in self.listeners.iter().zip(&ready[1..]).filter(|(_, ready)| **ready) {
                self.accept(listener);
            }
        }
    }

    fn accept(&self, listener: &Listener) {
        match listener.accept() {
            Ok(socket) => self.start(Arc::new(socket), listener.tls().cloned()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                (self.shared.events)(Events::NotAccepted(&error));
                // Out of descriptors, mostly: the client stays queued, so without a pause this would repeat.
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    fn start(&self, socket: Arc<Socket>, tls: Option<TlsConfig>) {
        let Some(entered) = self.shared.connections.enter(&socket) else {
            (self.shared.events)(Events::TurnedAway);
            return;
        };
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("nbd".to_owned()).spawn(move || {
            let _entered = entered;
            if let Err(error) = connection::serve(&shared, &socket, tls.as_ref()) {
                (shared.events)(Events::Failed(&error));
            }
        });
        if let Err(error) = thread {
            (self.shared.events)(Events::NotAccepted(&error));
        }
    }
}
