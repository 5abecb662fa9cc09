//! Recorded loads, read once into memory and replayed any number of times with what is known of every
//! request.

use crate::Result;
use nandscape_core::{BlockKind, IoRecord, Origin, SimTime, TraceError, TraceOp, TraceReader, WorkloadInfo};
use nandscape_trace::{OpenOptions, Target, Workload};
use std::collections::BTreeMap;
use std::path::Path;

const PAGE: u64 = 4096;

#[derive(Clone, Copy, Debug)]
pub(super) struct Recording {
    pub(super) name: &'static str,
    pub(super) file: &'static str,
    /// Whether files and their names are known.
    pub(super) has_names: bool,
}

pub(super) const RECORDINGS: [Recording; 4] = [
    Recording { name: "rocksdb", file: "captured/rocksdb.ops.csv.zst", has_names: true },
    Recording { name: "pgbench", file: "captured/pgbench.ops.csv.zst", has_names: true },
    Recording { name: "sqlite", file: "captured/sqlite.ops.csv.zst", has_names: true },
    Recording { name: "cloudphysics", file: "public/cloudphysics.vscsi1.zst", has_names: false },
];

/// Recordings beside those, on which only `death-time` is compared with the oracle.
pub(super) const OTHERS: [Recording; 6] = [
    Recording { name: "financial", file: "public/spc-financial1-10k.ssdsim.zst", has_names: false },
    Recording { name: "git", file: "captured/git.ops.csv.zst", has_names: true },
    Recording { name: "lammps", file: "captured/lammps.ops.csv.zst", has_names: true },
    Recording { name: "iozone", file: "public/iozone.disksim.zst", has_names: false },
    Recording { name: "ycsb", file: "public/ycsb-rocksdb-writes.mqsim.zst", has_names: false },
    Recording { name: "dtrs", file: "public/msps-dtrs.ssdsim.zst", has_names: false },
];

/// How the volume of a recording is mounted, and the format for that. A volume mounted without online discard
/// keeps all that was ever written; with it, less than is written is live.
type Mount = (&'static str, Option<&'static str>);

impl Recording {
    pub(super) const fn mounts(&self) -> &'static [Mount] {
        if self.has_names {
            &[("", Some("ops:discard=false")), (", discard", Some("ops"))]
        } else {
            &[("", None)]
        }
    }
}

/// A request and its origin, the path by number.
#[derive(Clone, Copy, Debug)]
struct Kept {
    record: IoRecord,
    kind: BlockKind,
    file: u32,
    writer: u32,
    path: u32,
}

/// A load in memory, its written pages moved together in the order of their addresses. Reads are left out:
/// they change nothing here.
#[derive(Debug)]
pub(super) struct Load {
    kept: Vec<Kept>,
    paths: Vec<String>,
    /// Pages of 4 KiB that were written.
    pub(super) footprint_pages: u64,
    pub(super) written_pages: u64,
    /// Between the starts of two passes.
    period_ns: u64,
}

impl Load {
    /// Reads a recording. `format` as for the command line.
    pub(super) fn read(path: &Path, format: Option<&str>) -> Result<Self> {
        let options = OpenOptions { format: format.map(str::to_owned), ..OpenOptions::default() };
        let workload = Workload::new(&path.display().to_string(), &options, Target::NONE)?;
        Self::of(&mut *workload.open()?)
    }

    pub(super) fn of(reader: &mut dyn TraceReader) -> Result<Self> {
        let mut load = Self {
            kept: Vec::new(),
            paths: vec![String::new()],
            footprint_pages: 0,
            written_pages: 0,
            period_ns: 1,
        };
        let mut numbers = BTreeMap::from([(String::new(), 0)]);
        let mut pages = Vec::new();
        while let Some(record) = reader.next() {
            let record = record?;
            if !matches!(record.op, TraceOp::Write | TraceOp::Trim | TraceOp::WriteZeroes) {
                continue;
            }
            let origin = reader.origin();
            let path = load.path_number(origin.path.unwrap_or(""), &mut numbers);
            if record.op == TraceOp::Write {
                let (from, end) = (record.offset / PAGE, (record.offset + record.len).div_ceil(PAGE));
                pages.extend(from..end);
                load.written_pages += end - from;
            }
            load.period_ns = load.period_ns.max(record.at.as_ns() + 1);
            load.kept.push(Kept {
                record,
                kind: origin.kind,
                file: origin.file,
                writer: origin.writer,
                path,
            });
        }
        pages.sort_unstable();
        pages.dedup();
        load.footprint_pages = pages.len() as u64;
        load.move_together(&pages);
        Ok(load)
    }

    fn path_number(&mut self, text: &str, numbers: &mut BTreeMap<String, u32>) -> u32 {
        let last = self.kept.last().map_or(0, |kept| kept.path);
        if self.paths[last as usize] == text {
            return last;
        }
        *numbers.entry(text.to_owned()).or_insert_with(|| {
            self.paths.push(text.to_owned());
            self.paths.len() as u32 - 1
        })
    }

    /// Addresses become ranks among the written pages; a trim covers those inside it.
    fn move_together(&mut self, pages: &[u64]) {
        let rank = |page: u64| pages.partition_point(|other| *other < page) as u64;
        for kept in &mut self.kept {
            let record = &mut kept.record;
            let end = record.offset + record.len;
            let (from, to) = match record.op {
                TraceOp::Write => (rank(record.offset / PAGE), rank(end.div_ceil(PAGE))),
                _ => (rank(record.offset.div_ceil(PAGE)), rank(end / PAGE)),
            };
            (record.offset, record.len) = (from * PAGE, to.saturating_sub(from) * PAGE);
        }
        self.kept.retain(|kept| kept.record.len > 0);
    }

    /// The load so many times, one pass behind the other.
    pub(super) fn passes(&self, passes: u64) -> Passes<'_> {
        Passes { load: self, count: passes, pass: 0, next: 0, current: None }
    }

    pub(super) fn requests(&self) -> u64 {
        self.kept.len() as u64
    }
}

#[derive(Debug)]
pub(super) struct Passes<'a> {
    load: &'a Load,
    count: u64,
    pass: u64,
    next: usize,
    current: Option<Kept>,
}

impl Iterator for Passes<'_> {
    type Item = Result<IoRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.load.kept.len() {
            (self.next, self.pass) = (0, self.pass + 1);
        }
        if self.pass >= self.count || self.load.kept.is_empty() {
            return None;
        }
        let kept = self.load.kept[self.next];
        self.next += 1;
        self.current = Some(kept);
        let at = SimTime(kept.record.at.as_ns() + self.pass * self.load.period_ns);
        Some(Ok(IoRecord { at, ..kept.record }))
    }
}

impl TraceReader for Passes<'_> {
    fn info(&self) -> WorkloadInfo {
        WorkloadInfo::default()
    }

    fn origin(&self) -> Origin<'_> {
        let Some(kept) = &self.current else { return Origin::default() };
        let path = Some(self.load.paths[kept.path as usize].as_str()).filter(|path| !path.is_empty());
        Origin { kind: kept.kind, file: kept.file, path, writer: kept.writer, volume: 0 }
    }
}
