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

use super::file_model::{self, Calls, Step};
use super::{Confidence, Format, Input};
use crate::decode::decompress;
use crate::error::shown;
use crate::fields::{decimal, split, whole, whole32};
use crate::gate::Clock;
use crate::lines::{LONGEST_LINE, LineError, Lines};
use crate::options::BoxReader;
use file_model::{
    CACHE, DATA, DIRTY, DISCARD, END, EXPIRE, FIT, INTERVAL, JOURNAL, LEVEL, READS, REQUEST, SIZE,
};
use nandscape_core::{Info, Params, SimTime, keys};
use nandscape_host::fs::{FileNames, FileOp, FileOpKind};
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};

const HEADER: &[u8] = b"ts_us,op,pid,file,offset,len";
const NAMES_HEADER: &[u8] = b"file,path";
const NAME: &str = "ops";

keys! { PARAMS:
    LEVEL;
    FILES: Option<String> = text(),
        "table of paths (file,path); absent: X.files.csv beside X.ops.csv; none: no paths";
    SIZE; FIT; CACHE; EXPIRE; INTERVAL; DIRTY; JOURNAL; DATA; DISCARD; READS; REQUEST; END;
}

pub const ENTRY: Format = Format {
    info: Info {
        name: NAME,
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
    file_model::reader(input, params, NAME, Clock::Strict, names, Box::new(Ops))
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

struct Ops;

impl Calls for Ops {
    fn line(&mut self, line: &[u8], number: u64, out: &mut VecDeque<Step>) -> Result<(), String> {
        if number > 1 {
            out.push_back(parse(line)?.into());
        } else if line != HEADER {
            return Err(format!("header {}: expected ts_us,op,pid,file,offset,len", shown(line)));
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

#[cfg(test)]
mod tests {
    use crate::{OpenOptions, Target, Workload};
    use nandscape_core::{BlockKind, IoRecord, TraceOp};

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
