//! A socket over which a running server is asked and told things: a line of JSON each way.
//!
//! `{"do":"stat"}` is answered by `{"ok":true,"result":...}`, what cannot be done by `{"ok":false,"error":NAME,"message":...}`. What a client
//! may use is bounded: [`CONNECTIONS`], [`LINE_BYTES`], [`IDLE`]. Only the owner of the server may connect, since the socket's
//! file is in a directory of their own or readable by nobody else.

mod client;
mod place;
mod protocol;

pub use client::{Client, ClientError};
pub use place::{PlaceError, default_path, find, running};
pub use protocol::{Answer, Ask};

use crate::stat::Stat;
use crate::{Engine, Stop};
use nandscape_core::{CacheControl, SimTime};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Connections at a time.
pub const CONNECTIONS: usize = 16;
/// Longest request.
pub const LINE_BYTES: u64 = 16 << 10;
/// A connection on which nothing is asked for so long is closed.
pub const IDLE: Duration = Duration::from_secs(300);
/// Dirty blocks that are cleaned before requests have their turn.
const CLEAN_BLOCKS: u32 = 256;
/// How long a client may take to accept an answer.
const SEND: Duration = Duration::from_secs(10);

/// Takes a snapshot of the device to a new file, or says why it cannot.
pub type Snapshot = Box<dyn Fn(&Path) -> Result<(), String> + Send + Sync>;

/// Gives the stat document as it is told to clients.
pub type StatSource = Arc<dyn Fn() -> Stat + Send + Sync>;

/// What a control socket acts on.
pub struct Controlled {
    /// The engine.
    pub engine: Arc<Engine>,
    /// How the server is ended.
    pub stop: Arc<Stop>,
    /// The stat document.
    pub stat: StatSource,
    /// How snapshots are taken, where the bytes are kept in a file.
    pub snapshot: Option<Snapshot>,
}

/// A control socket. Ends, and removes its file, when dropped.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    link: Option<PathBuf>,
    is_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Listens at `path`. A file that a server left there which is gone is replaced; anything else that is there is an error. If `path` is
    /// not where [`find`] looks, a link is left there.
    pub fn start(path: &Path, controlled: Controlled) -> Result<Self, PlaceError> {
        place::clear(path)?;
        let failed = |error| PlaceError::Io { path: path.to_owned(), error };
        let listener = UnixListener::bind(path).map_err(failed)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let link = place::link(path);
        let is_ended = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_ended);
        let accept = move || accept(&listener, &Arc::new(controlled), &ended);
        let thread = std::thread::Builder::new().name("control".into()).spawn(accept).map_err(failed)?;
        Ok(Self { path: path.to_owned(), link, is_ended, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::Release);
        // Wakes the thread that accepts; if nobody can connect, it is left to the end of the process.
        if UnixStream::connect(&self.path).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
        for path in self.link.iter().chain([&self.path]) {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn accept(listener: &UnixListener, controlled: &Arc<Controlled>, is_ended: &AtomicBool) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        if is_ended.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else {
            // Out of file descriptors, most likely: others must close theirs first.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        let guard = Open::new(&open);
        if open.load(Ordering::Relaxed) > CONNECTIONS {
            let refused = Answer::error("too-many-connections", &format!("at most {CONNECTIONS} at a time"));
            let _ = send(&stream, &refused);
            continue;
        }
        let controlled = Arc::clone(controlled);
        let work = move || {
            let _guard = guard;
            // A client that went away is no concern of the server.
            let _ = converse(&stream, &controlled);
        };
        let _ = std::thread::Builder::new().name("control-client".into()).spawn(work);
    }
}

/// Counts a connection while it is there.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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
        let answer = match serde_json::from_slice::<Ask>(&line) {
            Ok(ask) => controlled.answer(ask),
            Err(error) => Answer::error("bad-request", &error.to_string()),
        };
        send(stream, &answer)?;
    }
}

fn send(mut stream: &UnixStream, answer: &Answer) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    stream.write_all(&line)
}

impl Controlled {
    fn answer(&self, ask: Ask) -> Answer {
        match ask {
            Ask::Stat {} => Answer::result(&(self.stat)()),
            Ask::Reset {} => {
                self.engine.reset();
                Answer::done()
            }
            Ask::Checkpoint {} => match self.engine.with(|subsystem, at| subsystem.shutdown(at)) {
                Ok(_) => Answer::done(),
                Err(error) => Answer::error(crate::meter::name_of(&error), &error.to_string()),
            },
            Ask::RecordStart { path } => match self.engine.start_recording(&path) {
                Ok(()) => Answer::done(),
                Err(error) => Answer::error("cannot-record", &error.to_string()),
            },
            Ask::RecordStop {} => match self.engine.stop_recording() {
                Ok(recording) => Answer::result(&recording),
                Err(error) => Answer::error("cannot-record", &error.to_string()),
            },
            Ask::Snapshot { path } => self.take_snapshot(&path),
            Ask::CacheClean {} => self.clean_cache(),
            Ask::CacheSet { settings } => self.with_cache(|cache, _| cache.set(&settings).map(|()| None)),
            Ask::Shutdown {} => {
                self.stop.request("asked to end over the control socket");
                Answer::done()
            }
        }
    }

    /// Does something with the cache that is served, and answers with what comes of it.
    fn with_cache(
        &self,
        act: impl FnOnce(&mut dyn CacheControl, SimTime) -> Result<Option<u64>, String>,
    ) -> Answer {
        let outcome = self.engine.with(|subsystem, at| Some(act(subsystem.cache_control()?, at)));
        match outcome {
            None => Answer::error("not-supported", "no cache is served: expected a server with --cache"),
            Some(Err(message)) => Answer::error("cache", &message),
            Some(Ok(None)) => Answer::done(),
            Some(Ok(Some(count))) => Answer::result(&count),
        }
    }

    /// Some blocks at a time, so that requests have their turn. What becomes dirty meanwhile is cleaned too, up to as many blocks as there were twice over.
    fn clean_cache(&self) -> Answer {
        let dirty = self.engine.look(|subsystem| subsystem.cache().map_or(0, |cache| cache.dirty));
        let mut sum = 0;
        loop {
            let mut last = 0;
            let answer = self.with_cache(|cache, at| {
                last = u64::from(cache.clean(CLEAN_BLOCKS, at)?);
                sum += last;
                Ok(Some(sum))
            });
            if !answer.ok || last == 0 || sum >= dirty.saturating_mul(2) {
                return answer;
            }
        }
    }

    fn take_snapshot(&self, path: &Path) -> Answer {
        let Some(snapshot) = &self.snapshot else {
            return Answer::error(
                "not-supported",
                "snapshots are copies of an image file: expected a server with --image",
            );
        };
        match snapshot(path) {
            Ok(()) => Answer::result(&json!({ "path": path })),
            Err(message) => Answer::error("cannot-snapshot", &message),
        }
    }
}
