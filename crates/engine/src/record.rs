//! Every command in a file that can be replayed.
//!
//! The stack's owner collects records and hands them over in chunks; a thread writes them. The queue between
//! them is bounded, and nothing is dropped: when the file cannot be written as fast as commands come,
//! requests wait, and how long is counted.

use crate::Engine;
use crate::request::Request;
use nandscape_core::zone::ZoneCommand;
use nandscape_core::{BlockCommand, Command, IoRecord, SimTime, Subsystem, TraceOp};
use nandscape_trace::recording::{Columns, RecordingWriter};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Records handed over at a time.
const CHUNK: usize = 1024;
/// Chunks that may wait to be written.
const QUEUE: usize = 64;
/// What was recorded is in the file after so long.
const FLUSH_EVERY: Duration = Duration::from_secs(1);

/// A recording that cannot be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RecordError {
    #[error("cannot record: {0}")]
    Create(std::io::Error),
    #[error("cannot record to {}: a recording to {running} is running already", wanted.display())]
    Running { wanted: PathBuf, running: String },
    #[error("no recording is running")]
    NotRunning,
}

/// A recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct RecordingStat {
    pub path: String,
    /// Whether it still runs.
    pub is_running: bool,
    /// Of one that ended early, those in the file.
    pub commands: u64,
    /// Refused commands, which are not recorded.
    pub left_out: u64,
    pub file_bytes: u64,
    /// How long requests waited for the file to be written.
    pub stalled_ns: u64,
    /// Why it ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The part of a recording that sees the commands.
pub(crate) struct Tap {
    chunk: Vec<IoRecord>,
    /// `None` once the recording has ended.
    sender: Option<SyncSender<Vec<IoRecord>>>,
    writer: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    path: String,
    commands: u64,
    left_out: u64,
    stalled: Duration,
    last: Duration,
}

/// What the writing thread tells.
#[derive(Default)]
struct Shared {
    file_bytes: AtomicU64,
    /// In the file.
    commands: AtomicU64,
    failed: OnceLock<String>,
}

impl Shared {
    fn tell(&self, writer: &RecordingWriter) {
        self.file_bytes.store(writer.file_bytes(), Ordering::Relaxed);
        self.commands.store(writer.commands(), Ordering::Relaxed);
    }
}

impl Tap {
    /// Makes the file and starts to write. Columns that say nothing of this stack are left out.
    pub fn start(path: &Path, subsystem: &dyn Subsystem) -> Result<Self, RecordError> {
        let stores_objects = subsystem.namespaces().iter().any(|info| info.objects);
        let columns = Columns {
            volume: stores_objects || subsystem.namespaces().len() > 1,
            hint: stores_objects
                || subsystem.inspect().placement().is_some()
                || (0..subsystem.inspect().sets()).any(|set| subsystem.inspect().logs(set) > 1),
        };
        let mut writer = RecordingWriter::create(path, columns).map_err(RecordError::Create)?;
        let (sender, receiver) = sync_channel(QUEUE);
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let write = move || {
            let outcome = write(&mut writer, &receiver, &theirs);
            theirs.tell(&writer);
            if let Err(error) = outcome {
                theirs.failed.get_or_init(|| error.to_string());
            }
        };
        let writer =
            std::thread::Builder::new().name("recording".into()).spawn(write).map_err(RecordError::Create)?;
        Ok(Self {
            chunk: Vec::with_capacity(CHUNK),
            sender: Some(sender),
            writer: Some(writer),
            shared,
            path: path.display().to_string(),
            commands: 0,
            left_out: 0,
            stalled: Duration::ZERO,
            last: Duration::ZERO,
        })
    }

    /// A command was executed that arrived so long after the start of the engine. Of batches that wait for
    /// the stack any may be next: a command that was overtaken has the time of what overtook it, so that
    /// times never go back.
    #[inline]
    pub fn saw(&mut self, request: &Request<'_>, arrival: Duration) {
        if request.outcome.is_err() {
            // A replay ends with the first command that fails.
            self.left_out += 1;
            return;
        }
        self.last = self.last.max(arrival);
        let at = SimTime(self.last.as_nanos() as u64);
        // A recording has no other commands.
        let Some(record) = IoRecord::of(&request.command, at, request.namespace) else { return };
        self.push(record);
        if matches!(
            request.command,
            Command::Block(BlockCommand { is_durable: true, .. })
                | Command::Zone(ZoneCommand::Append { is_durable: true, .. })
        ) {
            self.push(IoRecord { op: TraceOp::Flush, offset: 0, len: 0, hint: 0, ..record });
        }
    }

    #[inline]
    fn push(&mut self, record: IoRecord) {
        self.commands += 1;
        self.chunk.push(record);
        if self.chunk.len() >= CHUNK {
            self.hand_over();
        }
    }

    /// Hands over what was collected.
    #[cold]
    pub fn hand_over(&mut self) {
        let Some(sender) = self.sender.as_ref().filter(|_| !self.chunk.is_empty()) else { return };
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK));
        let outcome = sender.try_send(chunk).or_else(|error| match error {
            TrySendError::Full(chunk) => {
                let begin = Instant::now();
                let outcome = sender.send(chunk).map_err(|_| ());
                self.stalled += begin.elapsed();
                outcome
            }
            TrySendError::Disconnected(_) => Err(()),
        });
        if outcome.is_err() {
            // The thread has ended with an error, which `stat` tells.
            self.sender = None;
        }
    }

    pub fn stat(&self) -> RecordingStat {
        let failed = self.shared.failed.get();
        RecordingStat {
            path: self.path.clone(),
            is_running: self.sender.is_some() && failed.is_none(),
            commands: failed.map_or(self.commands, |_| self.shared.commands.load(Ordering::Relaxed)),
            left_out: self.left_out,
            file_bytes: self.shared.file_bytes.load(Ordering::Relaxed),
            stalled_ns: self.stalled.as_nanos() as u64,
            error: failed.cloned(),
        }
    }

    /// Ends it. The thread that writes the last commands is to be waited for without the stack.
    pub fn end(&mut self) -> Option<JoinHandle<()>> {
        self.hand_over();
        self.sender = None;
        self.writer.take()
    }
}

fn write(
    writer: &mut RecordingWriter,
    receiver: &Receiver<Vec<IoRecord>>,
    shared: &Shared,
) -> std::io::Result<()> {
    let mut flushed = Instant::now();
    loop {
        match receiver.recv_timeout(FLUSH_EVERY.saturating_sub(flushed.elapsed())) {
            Ok(chunk) => writer.write(&chunk)?,
            Err(RecvTimeoutError::Timeout) => {
                writer.flush()?;
                flushed = Instant::now();
            }
            Err(RecvTimeoutError::Disconnected) => {
                return writer.finish();
            }
        }
        shared.tell(writer);
    }
}

impl Engine {
    /// Records every command from now on in the native CSV, the time being that of its arrival since the
    /// start of the engine. Refused commands are left out and counted; forced unit access is a write and
    /// a flush. The file must not exist; its name ends in `.csv` or `.csv.zst`.
    pub fn start_recording(&self, path: &Path) -> Result<(), RecordError> {
        let mut stack = self.lock();
        if let Some(running) = stack.tap.as_ref().map(Tap::stat).filter(|stat| stat.is_running) {
            return Err(RecordError::Running { wanted: path.to_owned(), running: running.path });
        }
        let tap = Tap::start(path, &*stack.model.subsystem)?;
        stack.tap = Some(tap);
        Ok(())
    }

    /// Ends the recording, and says what is in it once that is on disk.
    pub fn stop_recording(&self) -> Result<RecordingStat, RecordError> {
        let writer = self.lock().tap.as_mut().and_then(Tap::end).ok_or(RecordError::NotRunning)?;
        writer.join().expect("the thread that writes recordings does not panic");
        Ok(self.lock().tap.as_ref().map(Tap::stat).unwrap_or_default())
    }
}
