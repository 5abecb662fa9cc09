//! What formats of file operations share: keys, and the reader that puts the operations on the file system
//! model.
//!
//! A format only makes operations of its lines ([`Calls`]). What comes out of the reader are requests of a
//! device under the model, operations on objects (`level=object`), or what programs asked for (`level=file`).

use super::Input;
use crate::error::Result;
use crate::gate::{Clock, Gate};
use crate::lines::{LONGEST_LINE, LineError, Lines};
use crate::options::BoxReader;
use nandscape_core::{IoRecord, Origin, Params, SimTime, TraceOp, TraceReader, WorkloadInfo, keys, units};
use nandscape_host::fs::{
    Below, FileNames, FileOp, FileOpKind, FileSystem, Fit, FsError, FsOptions, Transactions,
};
use std::collections::{BTreeMap, VecDeque};

/// What follows the name of a format where its files are objects.
const OBJECT_LEVEL: &str = ":level=object";
/// What follows the name of a format where its files are not placed on blocks.
pub(crate) const FILE_LEVEL: &str = ":level=file";

keys! {
    pub(super) LEVEL: String = choice(&["auto", "device", "object", "file"]) or "auto",
        "device: requests below the file system model; object: requests of a store of objects, below the page cache; \
         file: what programs asked for, each file a volume (keys of the model do not matter then); auto: object \
         where the stack takes objects, else device";
    pub(super) SIZE: Option<u64> = size(1 << 20, 1 << 49), "bytes of the volume; absent: as many as are needed, with groups those of the device";
    pub(super) FIT: Option<String> = choice(&["first", "next", "groups"]),
        "where extents go: the first or the next free run that is long enough, or the first one in the group of the \
         directory, of four groups; absent: groups where the stack is xfs, else first";
    pub(super) CACHE: String = choice(&["back", "through"]) or "back",
        "back: writes wait in the page cache; through: each goes to the device at once";
    pub(super) EXPIRE: u64 = time() or "30s", "dirty data older than this is written back";
    pub(super) INTERVAL: u64 = time() or "5s", "between two looks for such data, and between commits of the journal";
    pub(super) DIRTY: u64 = size(4096, 1 << 49) or "256MiB",
        "dirty bytes beyond which the oldest files are written back";
    pub(super) JOURNAL: String = text() or "16MiB", "bytes of the journal of metadata; none: no metadata is written";
    pub(super) DATA: Option<String> = choice(&["ordered", "journal", "atomic"]),
        "ordered: data, then metadata in the journal; journal: both in the journal, and at home later; atomic: no journal, \
         each transaction is one atomic write of the device; absent: as the stack says (data-journal, atomic), else ordered";
    pub(super) DISCARD: Option<bool> = flag(), "discard freed blocks; absent: unless the stack is xfs";
    pub(super) READS: String = choice(&["none", "all"]) or "none",
        "all: reads go to the device; none: the page cache holds everything";
    pub(super) REQUEST: u64 = size(4096, 1 << 30) or "1MiB", "largest request";
    pub(super) END: String = choice(&["keep", "delete"]) or "keep", "what happens to the files after the last operation";
}

fn options(params: &Params, below: Below) -> Result<FsOptions, String> {
    let journal = match params.get(JOURNAL) {
        "none" => None,
        text => Some(
            units::parse_size(text)
                .ok()
                .filter(|bytes| (1 << 15..=1 << 40).contains(bytes))
                .ok_or_else(|| params.error(JOURNAL, "none, or a size from 32KiB to 1TiB").to_string())?,
        ),
    };
    let interval_ns = params.get(INTERVAL);
    if interval_ns == 0 {
        return Err(params.error(INTERVAL, "a time above 0").to_string());
    }
    let usual = FsOptions::over(below);
    Ok(FsOptions {
        below,
        size: params.get(SIZE),
        fit: match params.get(FIT) {
            Some("first") => Fit::First,
            Some("next") => Fit::Next,
            Some(_) => Fit::Groups,
            None => usual.fit,
        },
        write_back: params.get(CACHE) == "back",
        expire_ns: params.get(EXPIRE),
        interval_ns,
        dirty_limit: params.get(DIRTY),
        align: usual.align,
        discard: params.get(DISCARD).unwrap_or(usual.discard),
        reads: params.get(READS) == "all",
        journal,
        transactions: match params.get(DATA) {
            Some("ordered") => Transactions::Ordered,
            Some("journal") => Transactions::DataJournal,
            Some(_) => Transactions::Atomic,
            None => usual.transactions,
        },
        largest_request: params.get(REQUEST),
        delete_at_end: params.get(END) == "delete",
    })
}

/// What becomes of file operations.
enum Model {
    /// Requests of a device or a store of objects under a file system.
    System(Box<FileSystem>),
    /// What programs asked for.
    Files(Files),
}

impl Model {
    fn apply(&mut self, op: &FileOp) -> Result<(), FsError> {
        match self {
            Self::System(fs) => fs.apply(op),
            Self::Files(files) => files.apply(op),
        }
    }

    fn finish(&mut self) -> Result<(), FsError> {
        match self {
            Self::System(fs) => fs.finish(),
            Self::Files(_) => Ok(()),
        }
    }

    fn next_request(&mut self) -> Option<IoRecord> {
        match self {
            Self::System(fs) => fs.next_request(),
            Self::Files(files) => files.next.take(),
        }
    }

    fn without_effect(&self) -> u64 {
        match self {
            Self::System(fs) => fs.without_effect(),
            Self::Files(files) => files.without_effect,
        }
    }

    fn name(&mut self, file: u32, path: &str) {
        match self {
            Self::System(fs) => fs.name(file, path),
            Self::Files(_) => {}
        }
    }

    fn origin(&self) -> Origin<'_> {
        match self {
            Self::System(fs) => fs.origin(),
            Self::Files(files) => Origin { file: files.last, ..Origin::default() },
        }
    }
}

/// Files without blocks: a volume each, whose addresses are those of the file. What is cut off or deleted is
/// discarded.
#[derive(Default)]
struct Files {
    /// Size and hint of each.
    known: BTreeMap<u32, (u64, u16)>,
    next: Option<IoRecord>,
    last: u32,
    /// Stores to mappings, which are not known.
    without_effect: u64,
}

impl Files {
    fn apply(&mut self, op: &FileOp) -> Result<(), FsError> {
        if matches!(op.kind, FileOpKind::Create | FileOpKind::Open) {
            return match self.known.insert(op.file, (0, 0)) {
                None => Ok(()),
                Some(_) => Err(FsError::FileAgain(op.file)),
            };
        }
        let (size, hint) = self.known.get_mut(&op.file).ok_or(FsError::UnknownFile(op.file))?;
        let too_far = || FsError::TooFar { offset: op.offset, len: op.len };
        let end = op.offset.checked_add(op.len).ok_or_else(too_far)?;
        let (trace_op, from, to) = match op.kind {
            FileOpKind::Read => (TraceOp::Read, op.offset, end),
            FileOpKind::Write => {
                *size = end.max(*size);
                (TraceOp::Write, op.offset, end)
            }
            FileOpKind::Punch => (TraceOp::Trim, op.offset, end),
            FileOpKind::Truncate => (TraceOp::Trim, op.offset, std::mem::replace(size, op.offset)),
            FileOpKind::Delete => (TraceOp::Trim, 0, *size),
            FileOpKind::Fsync | FileOpKind::Fdatasync => (TraceOp::Flush, 0, 1),
            FileOpKind::Hint => {
                *hint = op.len.min(5) as u16;
                return Ok(());
            }
            FileOpKind::MapWrite => {
                self.without_effect += 1;
                return Ok(());
            }
            _ => return Ok(()),
        };
        if from < to {
            self.last = op.file;
            let (volume, hint) = (op.file, *hint);
            self.next =
                Some(IoRecord { at: op.at, op: trace_op, offset: from, len: to - from, volume, hint });
        }
        if op.kind == FileOpKind::Delete {
            self.known.remove(&op.file);
        }
        Ok(())
    }
}

/// An operation, and the path that its file has from then on if that is new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) op: FileOp,
    pub(super) path: Option<String>,
}

impl From<FileOp> for Step {
    fn from(op: FileOp) -> Self {
        Self { op, path: None }
    }
}

/// File operations out of lines of text.
pub(super) trait Calls: Send {
    /// Reads one line; `number` counts from 1. Its operations are added to `out`; files must be created or
    /// opened before anything else. The message of an error says what was found and what was expected.
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Step>) -> Result<(), String>;

    /// Operations after the last line.
    fn finish(&mut self, _out: &mut VecDeque<Step>) {}

    /// Whether a last line that lacks its end was cut off, and is left out.
    fn needs_line_ends(&self) -> bool {
        false
    }

    /// Calls that make no operation although they may have changed files.
    fn skipped(&self) -> u64 {
        0
    }

    /// What to try if there was no operation.
    fn hint(&self) -> Option<String> {
        None
    }
}

/// Whether requests for reads come out, or are of use to nobody.
pub(super) fn passes_reads(params: &Params) -> bool {
    params.get(READS) == "all" || params.get(LEVEL) == "file"
}

/// The reader of a format that makes file operations of lines. `clock` is [`Clock::Strict`], or
/// [`Clock::None`] if the lines have no times.
pub(super) fn reader(
    input: Input,
    params: &Params,
    name: &str,
    clock: Clock,
    paths: FileNames,
    calls: Box<dyn Calls>,
) -> Result<BoxReader, String> {
    let mut format = name.to_owned();
    let model = if params.get(LEVEL) == "file" {
        format.push_str(FILE_LEVEL);
        Model::Files(Files::default())
    } else {
        let below = match (params.get(LEVEL), input.settings.files) {
            ("object", _) | ("auto", Below::Objects) => Below::Objects,
            (_, Below::Objects) => Below::Ext4,
            (_, below) => below,
        };
        let mut options = options(params, below)?;
        let volume = Some(input.settings.volume_bytes).filter(|bytes| *bytes > 0);
        if options.fit == Fit::Groups {
            // Places of groups are shares of the volume.
            options.size = options.size.or(volume);
        }
        if below == Below::Objects {
            options.journal = None;
            format.push_str(OBJECT_LEVEL);
        }
        Model::System(Box::new(FileSystem::new(options, paths).map_err(|error| error.to_string())?))
    };
    Ok(Box::new(FileOps {
        lines: if calls.needs_line_ends() { Lines::whole(input.bytes) } else { Lines::new(input.bytes) },
        gate: Gate::new(&input.name, &format, clock, &input.settings),
        calls,
        steps: VecDeque::new(),
        model,
        last_ns: 0,
        has_begun: false,
        at_end: false,
    }))
}

struct FileOps {
    lines: Lines,
    gate: Gate,
    calls: Box<dyn Calls>,
    steps: VecDeque<Step>,
    model: Model,
    last_ns: u64,
    /// There was an operation.
    has_begun: bool,
    at_end: bool,
}

impl FileOps {
    /// Reads a line, or ends.
    fn read(&mut self) -> Result<()> {
        let number = self.lines.number() + 1;
        let outcome = match self.lines.next_line() {
            Ok(Some(line)) => self.calls.line(line, number, &mut self.steps),
            Ok(None) => {
                self.at_end = true;
                self.calls.finish(&mut self.steps);
                Ok(())
            }
            Err(LineError::Io(message)) => {
                return Err(self.gate.fail(format!("after line {}", number - 1), message));
            }
            Err(LineError::TooLong) => {
                Err(format!("longer than {LONGEST_LINE} B: expected short lines of text"))
            }
        };
        let outcome = outcome.and_then(|()| self.apply());
        outcome.map_err(|message| {
            let place = if self.at_end { "at the end".to_owned() } else { format!("line {number}") };
            self.gate.fail(place, message)
        })
    }

    fn apply(&mut self) -> Result<(), String> {
        while let Some(Step { mut op, path }) = self.steps.pop_front() {
            let ns = op.at.as_ns();
            if ns > crate::gate::TIME_MAX_NS {
                return Err(format!("time {ns} ns: expected less than 100 years"));
            }
            // Calls of several threads are recorded when they end, a little out of order.
            self.gate.info.time_reversals += u64::from(ns < self.last_ns);
            self.last_ns = self.last_ns.max(ns);
            op.at = SimTime(self.last_ns);
            self.has_begun = true;
            if let Some(path) = path {
                self.model.name(op.file, &path);
            }
            self.model.apply(&op).map_err(|error| error.to_string())?;
        }
        if self.at_end && self.has_begun {
            self.model.finish().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn skipped(&self) -> u64 {
        self.model.without_effect() + self.calls.skipped() + u64::from(self.lines.has_cut())
    }
}

impl Iterator for FileOps {
    type Item = Result<IoRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.gate.finished {
            return None;
        }
        loop {
            if let Some(record) = self.model.next_request() {
                match self.gate.admit(record, |_| None) {
                    Ok(Some(record)) => return Some(Ok(record)),
                    Ok(None) => continue,
                    Err(message) => {
                        let place = format!("line {}", self.lines.number());
                        return Some(Err(self.gate.fail(place, message)));
                    }
                }
            }
            if self.at_end {
                self.gate.info.skipped = self.skipped();
                return self.gate.finish(None).map(Err);
            }
            if let Err(error) = self.read() {
                return Some(Err(error));
            }
            if self.at_end && !self.has_begun {
                let hint = self.calls.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
                let place = format!("after line {}", self.lines.number());
                let message = format!("no records: expected operations that change files{hint}");
                return Some(Err(self.gate.fail(place, message)));
            }
        }
    }
}

impl TraceReader for FileOps {
    fn info(&self) -> WorkloadInfo {
        WorkloadInfo { skipped: self.skipped(), ..self.gate.info.clone() }
    }

    fn origin(&self) -> Origin<'_> {
        self.model.origin()
    }
}
