//! A socket over which a running server is asked and told things: a line of JSON each way.
//!
//! `{"do":"stat"}` is answered by `{"ok":true,"result":...}`, what cannot be done by
//! `{"ok":false,"error":NAME,"message":...}`. What a client may use is bounded: [`CONNECTIONS`],
//! [`LINE_BYTES`], [`IDLE`]. Only the owner of the server may connect, since the socket's file is in a
//! directory of their own or readable by nobody else.

mod client;
mod place;
mod protocol;
mod served;

pub use client::{Client, ClientError};
pub use place::{PlaceError, default_path, find, running, unnamed};
pub use protocol::{Answer, Ask};

use crate::stat::Stat;
use crate::{Engine, Stop, zones};
use nandscape_core::{CacheControl, NamespaceInfo, SimTime};
use serde_json::json;
use served::Served;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
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
/// How long the server waits at its end for answers that are being made or sent.
const FINISH: Duration = Duration::from_secs(10);

/// Takes a snapshot of the device to a new file, or says why it cannot.
pub type Snapshot = Box<dyn Fn(&Path) -> Result<(), String> + Send + Sync>;

/// Gives the stat document as it is told to clients.
pub type StatSource = Arc<dyn Fn() -> Stat + Send + Sync>;

/// What clients of a server can choose, where that changes while it runs.
pub trait Exports: Send + Sync {
    /// A namespace can be chosen from now on.
    fn add(&self, namespace: u32, info: &NamespaceInfo);

    /// It cannot be chosen any more; how many clients use it, if some do, and then it can be.
    fn remove(&self, namespace: u32) -> Result<(), usize>;
}

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
    /// What clients can choose, once that is known.
    pub exports: Arc<OnceLock<Arc<dyn Exports>>>,
}

/// A control socket. Ends, and removes its file, when dropped: what has been asked for is answered before.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    link: Option<PathBuf>,
    served: Arc<Served>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Listens at `path`. A file that a server left there which is gone is replaced; anything else that is
    /// there is an error. If `path` is not where [`find`] looks, a link is left there.
    pub fn start(path: &Path, controlled: Controlled) -> Result<Self, PlaceError> {
        place::clear(path)?;
        let failed = |error| PlaceError::Io { path: path.to_owned(), error };
        let listener = UnixListener::bind(path).map_err(failed)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let link = place::link(path);
        let served = Arc::new(Served::new(listener, controlled));
        let accepting = Arc::clone(&served);
        let accept = move || accepting.accept();
        let thread = std::thread::Builder::new().name("control".into()).spawn(accept).map_err(failed)?;
        Ok(Self { path: path.to_owned(), link, served, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.served.refuse_more();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by itself.
            let _ = thread.join();
        }
        self.served.finish(FINISH);
        for path in self.link.iter().chain([&self.path]) {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Controlled {
    fn answer(&self, ask: &Ask) -> Answer {
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
            Ask::RecordStart { path } => match self.engine.start_recording(path) {
                Ok(()) => Answer::done(),
                Err(error) => Answer::error("cannot-record", &error.to_string()),
            },
            Ask::RecordStop {} => match self.engine.stop_recording() {
                Ok(recording) => Answer::result(&recording),
                Err(error) => Answer::error("cannot-record", &error.to_string()),
            },
            Ask::Snapshot { path } => self.take_snapshot(path),
            Ask::CacheClean {} => self.clean_cache(),
            Ask::CacheSet { settings } => self.with_cache(|cache, _| cache.set(settings).map(|()| None)),
            Ask::CacheAttach { disk, name } => self.with_exports(|exports| self.attach(exports, disk, name)),
            Ask::CacheDetach { name } => self.with_exports(|exports| self.detach(exports, name)),
            Ask::CacheFail { member } => self.with_cache(|cache, _| cache.fail(member).map(|()| None)),
            Ask::CacheReplace { member, new, force } => self.replace_member(member, new, *force),
            Ask::Zone { ask } => {
                let done = self.engine.with(|subsystem, at| {
                    zones::act(subsystem, *ask, at)
                        .map_err(|error| (crate::meter::name_of(&error), zones::why(subsystem, *ask, &error)))
                });
                match done {
                    Ok(lines) => Answer::result(&lines),
                    Err((name, why)) => Answer::error(name, &why),
                }
            }
            // Whoever sends the answer ends the server then.
            Ask::Shutdown {} => Answer::done(),
        }
    }

    /// Does something with the cache that is served, and answers with what comes of it.
    fn with_cache(
        &self,
        act: impl FnOnce(&mut dyn CacheControl, SimTime) -> Result<Option<u64>, String>,
    ) -> Answer {
        let outcome = self.engine.with(|subsystem, at| Some(act(subsystem.control().cache?, at)));
        match outcome {
            None => Answer::error("not-supported", "no cache is served: expected a server with --cache"),
            Some(Err(message)) => Answer::error("cache", &message),
            Some(Ok(None)) => Answer::done(),
            Some(Ok(Some(count))) => Answer::result(&count),
        }
    }

    /// Some blocks at a time, so that requests have their turn. What becomes dirty meanwhile is cleaned too,
    /// up to as many blocks as there were twice over.
    fn clean_cache(&self) -> Answer {
        let dirty = self.engine.look(|subsystem| subsystem.inspect().cache().map_or(0, |cache| cache.dirty));
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
            if self.stop.is_requested() {
                return Answer::error(
                    "stopping",
                    "the server is stopping, which cleans no more than it must",
                );
            }
        }
    }

    /// Does something with what clients can choose.
    fn with_exports(&self, act: impl FnOnce(&dyn Exports) -> Answer) -> Answer {
        let why = "disks come and go at servers of NBD alone: expected 'serve nbd'";
        self.exports.get().map_or_else(|| Answer::error("not-supported", why), |exports| act(&**exports))
    }

    fn attach(&self, exports: &dyn Exports, disk: &Path, name: &str) -> Answer {
        let mut attached = None;
        let answer = self.with_cache(|cache, _| {
            attached = Some(cache.attach(disk, name)?);
            Ok(None)
        });
        if let Some(namespace) = attached {
            let info = self.engine.look(|subsystem| subsystem.namespaces()[namespace as usize].clone());
            exports.add(namespace, &info);
        }
        answer
    }

    fn detach(&self, exports: &dyn Exports, name: &str) -> Answer {
        let found = self.engine.look(|subsystem| {
            let mut all = (0..).zip(subsystem.namespaces());
            all.find(|(_, info)| info.name == name && info.capacity_bytes > 0)
                .map(|(at, info)| (at, info.clone()))
        });
        if let Some((namespace, _)) = found
            && let Err(clients) = exports.remove(namespace)
        {
            let detail = format!("volume {name}: in use by {clients} clients: expected none");
            return Answer::error("cache", &detail);
        }
        let answer = self.with_cache(|cache, at| cache.detach(name, at).map(|()| None));
        if let Some((namespace, info)) = found.filter(|_| !answer.ok) {
            exports.add(namespace, &info);
        }
        answer
    }

    /// A part at a time, so that requests have their turn.
    fn replace_member(&self, member: &Path, new: &Path, force: bool) -> Answer {
        let mut answer = self.with_cache(|cache, _| cache.replace(member, new, force).map(|()| None));
        let mut left = u64::MAX;
        while answer.ok && left > 0 {
            if self.stop.is_requested() {
                return Answer::error("stopping", "the server is stopping: expected 'cache replace' again");
            }
            answer = self.with_cache(|cache, _| {
                left = cache.copy_more()?;
                Ok(None)
            });
        }
        answer
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
