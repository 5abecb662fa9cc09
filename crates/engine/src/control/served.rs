//! Connections to a control socket: a thread for each, answers before the end.

use super::protocol::{Answer, Ask};
use super::{CONNECTIONS, Controlled, IDLE, LINE_BYTES};
use crate::connections::Connections;
use rustix::net::{Shutdown, shutdown};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a client may take to accept an answer.
const SEND: Duration = Duration::from_secs(10);
/// How long nobody is accepted after somebody could not be: others must close their descriptors first.
const PAUSE: Duration = Duration::from_millis(100);

/// A socket and those connected to it.
pub(super) struct Served {
    listener: UnixListener,
    controlled: Controlled,
    is_ended: AtomicBool,
    connections: Arc<Connections<UnixStream>>,
}

impl Served {
    pub fn new(listener: UnixListener, controlled: Controlled) -> Self {
        let connections = Connections::new(CONNECTIONS);
        Self { listener, controlled, is_ended: AtomicBool::new(false), connections }
    }

    /// Takes clients until [`Served::refuse_more`].
    pub fn accept(self: &Arc<Self>) {
        for stream in self.listener.incoming() {
            match stream {
                Ok(stream) => self.start(stream),
                Err(_) if self.is_ended.load(Ordering::Acquire) => return,
                // Out of file descriptors, most likely.
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    fn start(self: &Arc<Self>, stream: UnixStream) {
        let stream = Arc::new(stream);
        let Some(entered) = self.connections.enter(&stream) else {
            let message = format!("at most {CONNECTIONS} at a time");
            let _ = send(&stream, &Answer::error("too-many-connections", &message));
            return;
        };
        let (served, theirs) = (Arc::clone(self), Arc::clone(&stream));
        let work = move || {
            // A client that went away is no concern of the server.
            let _ = converse(&theirs, &served.controlled);
            drop(entered);
        };
        if let Err(error) = std::thread::Builder::new().name("control-client".into()).spawn(work) {
            let _ = send(
                &stream,
                &Answer::error("no-thread", &format!("no thread for this connection: {error}")),
            );
        }
    }

    /// Nobody can connect any more. Those that have are still accepted.
    pub fn refuse_more(&self) {
        self.is_ended.store(true, Ordering::Release);
        // What waits in the queue of the socket is given out before the error that ends `accept`.
        let _ = shutdown(&self.listener, Shutdown::Read);
    }

    /// Answers what has been asked, and ends all connections; waits for that at most so long.
    pub fn finish(&self, most: Duration) {
        // What has been sent is still read.
        self.connections.end(std::net::Shutdown::Read, most);
    }
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("listener", &self.listener).finish_non_exhaustive()
    }
}

fn converse(stream: &UnixStream, controlled: &Controlled) -> std::io::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_write_timeout(Some(SEND))?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        if line.last() != Some(&b'\n') && line.len() as u64 == LINE_BYTES {
            let message = format!("expected a line of at most {LINE_BYTES} bytes");
            return send(stream, &Answer::error("line-too-long", &message));
        }
        let (answer, is_last) = match serde_json::from_slice::<Ask>(&line) {
            Ok(ask) => (controlled.answer(&ask), matches!(ask, Ask::Shutdown {})),
            Err(error) => (Answer::error("bad-request", &error.to_string()), false),
        };
        let sent = send(stream, &answer);
        if is_last {
            // Not before the answer is on its way: the process may be gone the next moment.
            controlled.stop.request("asked to end over the control socket");
        }
        sent?;
    }
}

fn send(mut stream: &UnixStream, answer: &Answer) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    stream.write_all(&line)
}
