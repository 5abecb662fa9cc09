//! What programs asked of files: `ts_us,op,pid,file,offset,len`, with paths in a second table, placed on
//! blocks by the file system model of `nandscape-host`.
//!
//! One header line, then one operation a line: microseconds (decimals allowed), one of `create open write
//! read fsync fdatasync syncrange trunc alloc punch rename delete hint mmapw`, process, number of the file's
//! life, byte offset (the new size for `trunc`), bytes (the hint, 0 to 5, for `hint`). A time that went back
//! is raised to the one before and counted. The table of names has the header `file,path`; `a -> b` is a
//! rename. For `X.ops.csv` it is looked for in `X.files.csv`, with or without `.zst`, `.gz` or `.xz`.
//!
//! The requests that come out are those of a device under a file system: what their file, writer and kind of
//! block is goes with them ([`nandscape_core::Origin`]). Where the device is a store of objects, they are
//! what a page cache makes of the calls, each file an object (`level=object`). With `level=file` they are
//! those of the programs, each file a volume of its own.

use super::{Confidence, Format, Input};
use crate::decode::decompress;
use crate::error::Result;
use crate::error::shown;
use crate::fields::{decimal, split, whole, whole32};
use crate::gate::{Clock, Gate};
use crate::lines::{LONGEST_LINE, LineError, Lines};
use crate::options::BoxReader;
use nandscape_core::{
    Info, IoRecord, Origin, Params, SimTime, TraceOp, TraceReader, WorkloadInfo, keys, units,
};
use nandscape_host::fs::{Below, FileNames, FileOp, FileOpKind, FileSystem, Fit, FsError, FsOptions};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

const HEADER: &[u8] = b"ts_us,op,pid,file,offset,len";
const NAMES_HEADER: &[u8] = b"file,path";
/// Name of the format of file operations.
pub const FILE_OPERATIONS: &str = "ops";
/// What such a recording is called where its files are objects.
const OBJECT_LEVEL: &str = "ops:level=object";
/// What such a recording is called where its files are not placed on blocks.
pub const FILE_LEVEL: &str = "ops:level=file";

keys! { PARAMS:
    LEVEL: String = choice(&["auto", "device", "object", "file"]) or "auto",
        "device: requests below the file system model; object: requests of a store of objects, below the page cache; \
         file: what programs asked for, each file a volume (only FILES of the other keys matters then); auto: object \
         where the stack takes objects, else device";
    FILES: Option<String> = text(),
        "table of paths (file,path); absent: X.files.csv beside X.ops.csv; none: no paths";
    SIZE: Option<u64> = size(1 << 20, 1 << 49), "bytes of the volume; absent: as many as are needed";
    FIT: Option<String> = choice(&["first", "next", "groups"]),
        "where extents go: the first or the next free run that is long enough, or the first one in the group of the \
         directory, of four groups; absent: groups where the stack is xfs, else first";
    CACHE: String = choice(&["back", "through"]) or "back",
        "back: writes wait in the page cache; through: each goes to the device at once";
    EXPIRE: u64 = time() or "30s", "dirty data older than this is written back";
    INTERVAL: u64 = time() or "5s", "between two looks for such data, and between commits of the journal";
    DIRTY: u64 = size(4096, 1 << 49) or "256MiB",
        "dirty bytes beyond which the oldest files are written back";
    JOURNAL: String = text() or "16MiB", "bytes of the journal of metadata; none: no metadata is written";
    DISCARD: Option<bool> = flag(), "discard freed blocks; absent: unless the stack is xfs";
    READS: String = choice(&["none", "all"]) or "none",
        "all: reads go to the device; none: the page cache holds everything";
    REQUEST: u64 = size(4096, 1 << 30) or "1MiB", "largest request";
    END: String = choice(&["keep", "delete"]) or "keep", "what happens to the files after the last operation";
}

pub const ENTRY: Format = Format {
    info: Info {
        name: FILE_OPERATIONS,
        summary: "file operations (ts_us,op,pid,file,offset,len) placed on blocks by a small file system model",
        source: "nandscape",
        params: PARAMS,
    },
    extensions: &["csv"],
    many_volumes: true,
    detect: |head| Confidence::Certain.if_passed(head.lines.first() == Some(&HEADER)),
    read,
    write: None,
};

fn read(input: Input, params: &Params) -> Result<BoxReader, String> {
    let names = names(&input.name, params.get(FILES))?;
    let (format, fs) = if params.get(LEVEL) == "file" {
        (FILE_LEVEL, Model::Files(Files::default()))
    } else {
        let below = match (params.get(LEVEL), input.settings.files) {
            ("object", _) | ("auto", Below::Objects) => Below::Objects,
            (_, Below::Objects) => Below::Ext4,
            (_, below) => below,
        };
        let mut options = options(params, below)?;
        let mut format = FILE_OPERATIONS;
        if below == Below::Objects {
            (options.journal, format) = (None, OBJECT_LEVEL);
        }
        let fs = FileSystem::new(options, names).map_err(|error| error.to_string())?;
        (format, Model::System(Box::new(fs)))
    };
    Ok(Box::new(Ops {
        lines: Lines::new(input.bytes),
        gate: Gate::new(&input.name, format, Clock::Strict, &input.settings),
        fs,
        last_ns: 0,
        at_end: false,
    }))
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
        largest_request: params.get(REQUEST),
        delete_at_end: params.get(END) == "delete",
    })
}

/// The table of paths: the one that is named, or the one beside the operations if there is one.
fn names(source: &str, named: Option<&str>) -> Result<FileNames, String> {
    let path = match named {
        Some("none") => return Ok(FileNames::default()),
        Some(path) => PathBuf::from(path),
        None => match beside(source) {
            Some(path) => path,
            None => return Ok(FileNames::default()),
        },
    };
    let shown_path = path.display();
    let failed = |error: std::io::Error| format!("files table {shown_path}: {error}");
    let bytes = decompress(Box::new(File::open(&path).map_err(failed)?)).map_err(failed)?;
    let mut lines = Lines::new(bytes);
    let mut names = FileNames::default();
    loop {
        let number = lines.number() + 1;
        let wrong = |message: String| format!("files table {shown_path}: line {number}: {message}");
        match lines.next_line() {
            Ok(Some(line)) if number == 1 => {
                if line != NAMES_HEADER {
                    return Err(wrong(format!("header {}: expected file,path", shown(line))));
                }
            }
            Ok(Some(line)) => {
                let at = memchr::memchr(b',', line)
                    .ok_or_else(|| wrong(format!("{}: expected file,path", shown(line))))?;
                let file = whole32(&line[..at], "file").map_err(wrong)?;
                let path = &line[at + 1..];
                names.insert(file, &String::from_utf8_lossy(path));
            }
            Ok(None) => return Ok(names),
            Err(LineError::Io(message)) => return Err(wrong(message)),
            Err(LineError::TooLong) => return Err(wrong(format!("longer than {LONGEST_LINE} B"))),
        }
    }
}

/// `X.files.csv` for `X.ops.csv`, whichever compression there is.
fn beside(source: &str) -> Option<PathBuf> {
    let at = source.rfind(".ops.csv")?;
    let plain = format!("{}.files.csv", &source[..at]);
    ["", ".zst", ".gz", ".xz"]
        .iter()
        .map(|suffix| PathBuf::from(format!("{plain}{suffix}")))
        .find(|path| Path::exists(path))
}

struct Ops {
    lines: Lines,
    gate: Gate,
    fs: Model,
    last_ns: u64,
    at_end: bool,
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

fn kind(field: &[u8]) -> Result<FileOpKind, String> {
    Ok(match field {
        b"create" => FileOpKind::Create,
        b"open" => FileOpKind::Open,
        b"write" => FileOpKind::Write,
        b"read" => FileOpKind::Read,
        b"fsync" => FileOpKind::Fsync,
        b"fdatasync" => FileOpKind::Fdatasync,
        b"syncrange" => FileOpKind::SyncRange,
        b"trunc" => FileOpKind::Truncate,
        b"alloc" => FileOpKind::Allocate,
        b"punch" => FileOpKind::Punch,
        b"rename" => FileOpKind::Rename,
        b"delete" => FileOpKind::Delete,
        b"hint" => FileOpKind::Hint,
        b"mmapw" => FileOpKind::MapWrite,
        _ => {
            return Err(format!(
                "op is {}: expected create, open, write, read, fsync, fdatasync, syncrange, trunc, alloc, punch, rename, delete, \
                 hint or mmapw",
                shown(field)
            ));
        }
    })
}

fn parse(line: &[u8]) -> Result<FileOp, String> {
    let columns = || format!("{}: expected six columns ts_us,op,pid,file,offset,len", shown(line));
    let [time, op, writer, file, offset, len] = split::<6>(line, b',').ok_or_else(columns)?;
    if memchr::memchr_iter(b',', line).count() != 5 {
        return Err(columns());
    }
    Ok(FileOp {
        at: SimTime(decimal(time, 1000, "ts_us")?),
        kind: kind(op)?,
        writer: whole32(writer, "pid")?,
        file: whole32(file, "file").and_then(|file| {
            if file == 0 { Err("file is 0: expected a number from 1".to_owned()) } else { Ok(file) }
        })?,
        offset: whole(offset, "offset")?,
        len: whole(len, "len")?,
    })
}

impl Ops {
    fn step(&mut self) -> Result<()> {
        let number = self.lines.number() + 1;
        let outcome = match self.lines.next_line() {
            Ok(Some(line)) if number == 1 => {
                if line == HEADER {
                    Ok(())
                } else {
                    Err(format!("header {}: expected ts_us,op,pid,file,offset,len", shown(line)))
                }
            }
            Ok(Some(line)) => parse(line).and_then(|mut op| {
                let ns = op.at.as_ns();
                if ns > crate::gate::TIME_MAX_NS {
                    return Err(format!("time {ns} ns: expected less than 100 years"));
                }
                // Calls of several threads are recorded when they end, a little out of order.
                self.gate.info.time_reversals += u64::from(ns < self.last_ns);
                self.last_ns = self.last_ns.max(ns);
                op.at = SimTime(self.last_ns);
                self.fs.apply(&op).map_err(|error| error.to_string())
            }),
            Ok(None) => {
                self.at_end = true;
                self.fs.finish().map_err(|error| format!("at the end: {error}"))
            }
            Err(LineError::Io(message)) => {
                return Err(self.gate.fail(format!("after line {}", number - 1), message));
            }
            Err(LineError::TooLong) => {
                Err(format!("longer than {LONGEST_LINE} B: expected short lines of text"))
            }
        };
        outcome.map_err(|message| self.gate.fail(format!("line {number}"), message))
    }
}

impl Iterator for Ops {
    type Item = Result<IoRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.gate.finished {
            return None;
        }
        loop {
            if let Some(record) = self.fs.next_request() {
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
                self.gate.info.skipped = self.fs.without_effect();
                return self.gate.finish(None).map(Err);
            }
            if let Err(error) = self.step() {
                return Some(Err(error));
            }
            if self.at_end && self.lines.number() <= 1 {
                return Some(Err(self
                    .gate
                    .fail("line 1".to_owned(), "no records: expected file operations")));
            }
        }
    }
}

impl TraceReader for Ops {
    fn info(&self) -> WorkloadInfo {
        WorkloadInfo { skipped: self.fs.without_effect(), ..self.gate.info.clone() }
    }

    fn origin(&self) -> Origin<'_> {
        self.fs.origin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OpenOptions, Target, Workload};
    use nandscape_core::{BlockKind, TraceOp};

    const SAMPLE: &str = "ts_us,op,pid,file,offset,len\n10,create,5,1,0,0\n20,hint,5,1,0,3\n30,write,5,1,0,9000\n40,fsync,5,1,0,0\n";

    fn all(format: &str, text: &str) -> Result<Vec<IoRecord>, nandscape_core::TraceError> {
        let options = OpenOptions { format: Some(format.to_owned()), ..OpenOptions::default() };
        Workload::from_bytes("t.ops.csv", text.as_bytes(), &options, Target::NONE)?.open()?.collect()
    }

    #[test]
    fn a_file_becomes_requests_with_its_hint_and_its_metadata() {
        let records = all("ops:journal=none", SAMPLE).unwrap();
        let short: Vec<_> = records.iter().map(|r| (r.at.as_ns(), r.op, r.offset, r.len, r.hint)).collect();
        assert_eq!(
            short,
            [
                (40_000, TraceOp::Write, 0, 12_288, 3),
                (40_000, TraceOp::Flush, 0, 0, 0),
                (40_000, TraceOp::Flush, 0, 0, 0)
            ]
        );
        let with_metadata = all("ops", SAMPLE).unwrap();
        assert!(with_metadata.len() > records.len() + 5, "{with_metadata:?}");
    }

    #[test]
    fn detection_is_by_header_and_names_come_from_the_table_beside() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let ops = file("a.ops.csv", SAMPLE);
        let origin_of_first = || {
            let mut reader =
                Workload::new(&ops, &OpenOptions::default(), Target::NONE).unwrap().open().unwrap();
            assert_eq!(reader.info().format, "ops");
            reader.next().unwrap().unwrap();
            let origin = reader.origin();
            (origin.kind, origin.file, origin.path.map(str::to_owned), origin.writer)
        };
        assert_eq!(origin_of_first(), (BlockKind::FileData, 1, None, 5));
        file("a.files.csv", "file,path\n1,db/with, comma.sst\n");
        assert_eq!(origin_of_first().2.as_deref(), Some("db/with, comma.sst"));
        file("a.files.csv", "file,path\nx,y\n");
        let error = Workload::new(&ops, &OpenOptions::default(), Target::NONE).unwrap().open().err().unwrap();
        assert!(error.to_string().contains("a.files.csv: line 2: file is 'x'"), "{error}");
    }

    #[test]
    fn at_the_level_of_files_requests_are_those_of_programs_and_each_file_a_volume() {
        let text = "ts_us,op,pid,file,offset,len\n10,create,5,1,0,0\n20,hint,5,1,0,3\n30,write,5,1,0,9000\n\
                    35,create,5,2,0,0\n36,write,5,2,0,10\n37,mmapw,5,2,0,10\n40,fsync,5,1,0,0\n\
                    50,trunc,5,1,4000,0\n55,read,5,1,0,4000\n60,rename,5,1,0,0\n70,delete,5,1,0,0\n80,delete,5,2,0,0\n";
        let options = OpenOptions { format: Some("ops:level=file".to_owned()), ..OpenOptions::default() };
        let open = || {
            let workload =
                Workload::from_bytes("t.ops.csv", text.as_bytes(), &options, Target::NONE).unwrap();
            workload.open().unwrap()
        };
        let mut reader = open();
        let mut seen = Vec::new();
        while let Some(record) = reader.next() {
            let record = record.unwrap();
            seen.push((
                reader.origin().volume,
                record.op,
                record.offset % (1 << 20),
                record.len,
                record.hint,
            ));
        }
        assert_eq!(
            seen,
            [
                (1, TraceOp::Write, 0, 9000, 3),
                (2, TraceOp::Write, 0, 10, 0),
                (1, TraceOp::Flush, 0, 0, 3),
                (1, TraceOp::Trim, 4000, 5000, 3),
                (1, TraceOp::Read, 0, 4000, 3),
                (1, TraceOp::Trim, 0, 4000, 3),
                (2, TraceOp::Trim, 0, 10, 0),
            ]
        );
        assert_eq!(reader.info().skipped, 1, "stores to a mapping are not known");
        let objects = all("ops:level=object", text).unwrap();
        let short: Vec<_> = objects.iter().map(|r| (r.op, r.volume, r.offset, r.len, r.hint)).collect();
        assert_eq!(
            short,
            [
                (TraceOp::ObjectCreate, 1, 0, 0, 0),
                (TraceOp::ObjectCreate, 2, 0, 0, 0),
                (TraceOp::ObjectWrite, 1, 0, 9000, 3),
                (TraceOp::ObjectFlush, 1, 0, 0, 0),
                (TraceOp::ObjectTruncate, 1, 4000, 0, 0),
                (TraceOp::ObjectDelete, 1, 0, 0, 0),
                (TraceOp::ObjectDelete, 2, 0, 0, 0),
                (TraceOp::ObjectFlush, 0, 0, 1, 0),
            ]
        );
        let error = all("ops:level=file", &format!("{SAMPLE}50,write,5,9,0,1\n")).unwrap_err().to_string();
        assert!(error.contains("line 6: file 9 was neither created nor opened"), "{error}");
        let error = all("ops:level=blocks", SAMPLE).unwrap_err().to_string();
        assert!(error.contains("level"), "{error}");
    }

    #[test]
    fn a_time_that_goes_back_is_raised_and_counted() {
        let text = format!("{SAMPLE}5,write,5,1,0,1\n60,fsync,5,1,0,0\n");
        let options = OpenOptions::default();
        let workload = Workload::from_bytes("t.ops.csv", text.as_bytes(), &options, Target::NONE).unwrap();
        let mut reader = workload.open().unwrap();
        assert!(reader.by_ref().map(|r| r.unwrap().at).is_sorted());
        assert_eq!(reader.info().time_reversals, 1);
    }

    #[test]
    fn wrong_lines_are_named() {
        for (line, expected) in [
            ("50,write,5,2,0,1", "line 6: file 2 was neither created nor opened"),
            ("50,create,5,1,0,0", "line 6: file 1 exists"),
            ("50,link,5,1,0,0", "line 6: op is 'link': expected create"),
            ("50,hint,5,1,0,9", "line 6: write hint 9"),
            ("50,write,5,1,0", "line 6: '50,write,5,1,0': expected six columns"),
            ("50,write,5,1,0,1,2", "expected six columns"),
            ("50,write,5,1,18446744073709551615,1", "expected an end below 2^48"),
            ("50,write,5,0,0,1", "file is 0"),
        ] {
            let error = all("ops", &format!("{SAMPLE}{line}\n")).unwrap_err().to_string();
            assert!(error.starts_with("t.ops.csv: line 6: ") && error.contains(expected), "{error}");
        }
        let error = all("ops:files=/nowhere/x.csv", SAMPLE).unwrap_err().to_string();
        assert!(error.contains("files table /nowhere/x.csv"), "{error}");
        let error = all("ops:size=1MiB", SAMPLE).unwrap_err().to_string();
        assert!(error.contains("volume is full"), "{error}");
    }
}
