//! The files of a log-structured merge tree: a model of RocksDB with leveled compaction, in the manner of
//! `db_bench` (`fillrandom`, then `overwrite`).
//!
//! Random keys of a key space are written, as many as the key space has for each turn. Each write goes to the
//! log and to memory; memory is flushed as a table of level 0 when it is full; merges move tables down the
//! levels, the fullest level first. No key is kept: how many distinct ones a merge leaves follows from
//! densities (`tree`). So a load of terabytes takes a few kilobytes of memory.
//!
//! The file operations go through the file system model of `nandscape-host`: block devices get the requests
//! of a file system, stores of objects those of its page cache. Files get blocks for all that they will hold
//! when they are created, and the lifetime hints that RocksDB gives them: the log short, levels 0 and 1
//! medium, level 2 long, those behind extreme.
//!
//! Ours: after each half piece of writes, every flush and merge under way reads and writes one piece (1 MiB).
//! Writes wait while level 0 has three times as many tables as begin a merge. When all is written, the merges
//! that are due go on to their end. The log is written out every half piece and never synced, as by default.

mod tree;
mod work;

use super::common::{SEED, extent, rng};
use super::{Context, Generator};
use crate::error::{Result, io};
use nandscape_core::rng::{Rng, Xoshiro256PlusPlus};
use nandscape_core::{Info, IoRecord, Origin, ParamError, Params, SimTime, TraceReader, WorkloadInfo, keys};
use nandscape_host::fs::{Below, FileNames, FileOpKind, FileSystem, FsError, FsOptions};
use tree::{Shape, Table, Tree};
use work::{Files, Job, Purpose};

/// Bytes of a block of a table, which a read of one key takes.
const BLOCK: u64 = 4096;
/// Bytes of a table: as RocksDB, and at least.
const USUAL_TABLE: u64 = 64 << 20;
const LEAST_TABLE: u64 = 1 << 16;
/// Lifetime hint of the log.
const SHORT: u64 = 2;

keys! { PARAMS:
    SPAN: String = text() or "50%",
        "bytes of all keys with their values, each once: a share of the logical capacity, or bytes";
    ENTRY_BYTES: u64 = size(16, 1 << 20) or "1000", "bytes of a key with its value";
    TURNS: f64 = float(0.001, 1e4) or "2",
        "writes, in turns of as many as there are keys: the first fills the tree, the others overwrite";
    READ: f64 = share() or "0", "share of reads of single keys, each of one block, beside the writes";
    TABLE: Option<u64> = size(1 << 16, 1 << 40),
        "bytes of a table from level 1 on; 64 MiB if absent, or a 256th of the span if that is less";
    MEMORY: Option<u64> = size(1 << 16, 1 << 40),
        "bytes in memory that are flushed as a table of level 0; those of a table if absent";
    BASE: Option<u64> = size(1 << 16, 1 << 49), "most bytes of level 1; four tables if absent";
    RATIO: u64 = int(2, 1000) or "10", "a level has so many times the bytes of the one before";
    TRIGGER: u64 = int(1, 1000) or "4", "tables of level 0 that begin a merge";
    PICK: String = choice(&["overlap", "turn"]) or "overlap",
        "table of a level that is merged next. overlap: the one with the least of the level behind in its range, for \
         its size (kMinOverlappingRatio, the default of RocksDB); turn: in the order of keys, round and round";
    JOBS: u64 = int(1, 64) or "4",
        "flushes and merges under way at a time, as max_background_jobs of RocksDB: a quarter are for flushes";
    PIECE: u64 = size(1 << 13, 1 << 30) or "1MiB",
        "bytes that each flush and merge reads or writes at a time, while half as many are written to the log";
    MERGE_READS: bool = flag() or "true", "false: what merges read is in the page cache, so reads are of single keys";
    LOG: bool = flag() or "true", "write a log";
    RATE: u64 = size(1 << 10, 1 << 50) or "100MB", "bytes written each second: the clock of the page cache";
    SEED;
}

pub const ENTRY: Generator = Generator {
    info: Info {
        name: "lsm",
        summary: "files of a log-structured merge tree that random keys are written to, as RocksDB under db_bench",
        source: "RocksDB, leveled compaction; the pace is ours",
        params: PARAMS,
    },
    build: |params, context| Ok(Box::new(Lsm::new(params, context)?)),
};

struct Lsm {
    tree: Tree,
    files: Files,
    jobs: Vec<Job>,
    most_merges: usize,
    rng: Xoshiro256PlusPlus,
    /// Bytes to write, written, and those of them in memory.
    to_write: u64,
    written: u64,
    in_memory: u64,
    memory: u64,
    /// File and bytes of the log of what is in memory.
    log: Option<(u32, u64)>,
    has_log: bool,
    /// Bytes written between two steps of what is under way.
    step: u64,
    /// Reads for each byte written, and those that are due.
    reads_per_byte: f64,
    reads_due: f64,
    rate: u64,
    is_finished: bool,
    failed: bool,
    info: WorkloadInfo,
}

/// Merges under way, of so many jobs: a quarter of them, and one at least, are flushes.
fn most_merges(jobs: u64) -> usize {
    (jobs - (jobs / 4).max(1)).max(1) as usize
}

impl Lsm {
    fn new(params: &Params, context: Context) -> Result<Self, ParamError> {
        let entry_bytes = params.get(ENTRY_BYTES);
        let (_, span) = extent(params, context, params.get(TABLE).unwrap_or(LEAST_TABLE << 8))?;
        let table_bytes = params.get(TABLE).unwrap_or((span >> 8).min(USUAL_TABLE));
        let shape = Shape {
            keys: (span / entry_bytes) as f64,
            entry_bytes,
            table_bytes,
            base_bytes: params.get(BASE).unwrap_or(4 * table_bytes),
            ratio: params.get(RATIO),
            trigger: params.get(TRIGGER) as usize,
            in_turn: params.get(PICK) == "turn",
        };
        let volume = context.target.volume_bytes;
        let below = context.target.files;
        let has_size = volume > 0 && below != Below::Objects;
        let options = FsOptions {
            size: has_size.then_some(volume),
            align: context.target.page_bytes,
            reads: true,
            ..FsOptions::over(below)
        };
        let files = FileSystem::new(options, FileNames::default())
            .and_then(|fs| Files::new(fs, params.get(PIECE), params.get(MERGE_READS)));
        let read = params.get(READ);
        if read >= 1.0 {
            return Err(params.error(READ, "a share below 1: without writes there is nothing to read"));
        }
        Ok(Self {
            tree: Tree::new(shape),
            files: files.map_err(|error| params.error(SPAN, error.to_string()))?,
            step: params.get(PIECE) / 2,
            jobs: Vec::new(),
            most_merges: most_merges(params.get(JOBS)),
            rng: rng(params, context),
            to_write: (shape.keys * params.get(TURNS)) as u64 * entry_bytes,
            written: 0,
            in_memory: 0,
            memory: params.get(MEMORY).unwrap_or(table_bytes).max(entry_bytes),
            log: None,
            has_log: params.get(LOG),
            reads_per_byte: read / (1.0 - read) / entry_bytes as f64,
            reads_due: 0.0,
            rate: params.get(RATE),
            is_finished: false,
            failed: false,
            info: WorkloadInfo { format: "lsm".to_owned(), ..WorkloadInfo::default() },
        })
    }

    /// Writes some, reads some, and moves on what is under way.
    fn step(&mut self) -> Result<(), FsError> {
        if self.written < self.to_write {
            if !self.must_wait() {
                self.write()?;
            }
        } else if self.jobs.is_empty() {
            // All is written, and nothing is due.
            if self.in_memory > 0 {
                self.flush();
            } else {
                self.is_finished = true;
                return self.files.fs.finish();
            }
        }
        let mut number = 0;
        while number < self.jobs.len() {
            if self.jobs[number].step(&mut self.files)? {
                let job = self.jobs.remove(number);
                match job.purpose {
                    Purpose::Flush { table, .. } => self.tree.flushed(table),
                    Purpose::Merge(merge) => self.tree.finish(&merge),
                }
            } else {
                number += 1;
            }
        }
        self.begin();
        Ok(())
    }

    /// Whether writes wait: too many tables in level 0, or two flushes under way.
    fn must_wait(&self) -> bool {
        let flushes = self.jobs.iter().filter(|job| matches!(job.purpose, Purpose::Flush { .. })).count();
        flushes > 1 || self.tree.levels()[0].len() >= 3 * self.tree.shape.trigger
    }

    fn write(&mut self) -> Result<(), FsError> {
        let bytes = self.step.min(self.memory - self.in_memory).min(self.to_write - self.written);
        if self.has_log {
            let (file, offset) = if let Some(log) = self.log {
                log
            } else {
                let file = self.files.number();
                self.files.create(file, self.memory, SHORT)?;
                (file, 0)
            };
            self.files.append(file, offset, bytes)?;
            self.log = Some((file, offset + bytes));
        }
        (self.written, self.in_memory) = (self.written + bytes, self.in_memory + bytes);
        self.files.now = SimTime((u128::from(self.written) * 1_000_000_000 / u128::from(self.rate)) as u64);
        self.reads_due += bytes as f64 * self.reads_per_byte;
        if self.in_memory == self.memory {
            self.flush();
        }
        self.get()
    }

    /// What is in memory becomes a table of level 0.
    fn flush(&mut self) {
        let shape = &self.tree.shape;
        let writes = std::mem::take(&mut self.in_memory) as f64 / shape.entry_bytes as f64;
        // Distinct keys among so many random ones.
        let keys = -shape.keys * (-writes / shape.keys).exp_m1();
        let table = Table::new(self.files.number(), (0.0, 1.0), keys);
        let log = self.log.take().map(|(file, _)| file);
        let shape = *shape;
        self.jobs.push(Job::new(Purpose::Flush { table, log }, |keys| shape.bytes(keys)));
    }

    /// Begins merges that are due.
    fn begin(&mut self) {
        let shape = self.tree.shape;
        while self.jobs.iter().filter(|job| matches!(job.purpose, Purpose::Merge(_))).count()
            < self.most_merges
            && let Some(merge) = self.tree.pick(&mut || self.files.number())
        {
            if merge.is_move {
                self.tree.finish(&merge);
            } else {
                self.jobs.push(Job::new(Purpose::Merge(merge), |keys| shape.bytes(keys)));
            }
        }
    }

    /// Reads of single keys that are due.
    fn get(&mut self) -> Result<(), FsError> {
        while self.reads_due >= 1.0 {
            self.reads_due -= 1.0;
            let rng = &mut self.rng;
            let mut draw = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let key = draw();
            if let Some((file, byte)) = self.tree.find(key, &mut draw) {
                self.files.ask(FileOpKind::Read, file, (byte / BLOCK * BLOCK, BLOCK))?;
            }
        }
        Ok(())
    }
}

impl Iterator for Lsm {
    type Item = Result<IoRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.files.fs.next_request() {
                self.info.records += 1;
                return Some(Ok(record));
            }
            if self.is_finished || self.failed {
                return None;
            }
            if let Err(error) = self.step() {
                self.failed = true;
                return Some(Err(io("workload lsm", format!("{error}, or a smaller span"))));
            }
        }
    }
}

impl TraceReader for Lsm {
    fn info(&self) -> WorkloadInfo {
        self.info.clone()
    }

    fn origin(&self) -> Origin<'_> {
        self.files.fs.origin()
    }
}
