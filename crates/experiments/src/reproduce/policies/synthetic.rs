//! A load that needs no recording: a mail spool, a database with log and sorted tables, and a table that is
//! rewritten in place, on one file system.
//!
//! Every step a mail is deleted and another one written and synced, as `varmail` does; the log grows by two
//! pages and is synced; two pages of the table change. A log file is full at 2 MiB, and the fourth last one
//! goes. Every 32 steps a sorted table of 1 MiB is written and another goes, drawn by chance, as compaction
//! takes old and young ones. Log, mails and sorted tables carry the hints short, medium and long.

use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{IoRecord, Origin, SimTime, TraceError, TraceReader, WorkloadInfo};
use nandscape_host::fs::{FileNames, FileOp, FileOpKind, FileSystem, FsError, FsOptions};
use std::collections::VecDeque;

const STEPS: u64 = 4000;
const STEP_NS: u64 = 10_000_000;
const MAILS: u32 = 1500;
const TABLES: usize = 24;
const LOGS: usize = 4;
const PAGE: u64 = 4096;
const LOG_PAGES: u64 = 512;
const BASE_PAGES: u64 = 2048;

/// The operations, step by step.
struct Script {
    rng: Xoshiro256PlusPlus,
    names: FileNames,
    ops: Vec<FileOp>,
    next_file: u32,
    at: u64,
    mails: Vec<u32>,
    logs: VecDeque<u32>,
    log_pages: u64,
    tables: Vec<u32>,
}

impl Script {
    fn push(&mut self, kind: FileOpKind, file: u32, offset: u64, len: u64) {
        self.ops.push(FileOp { at: SimTime(self.at), kind, writer: 1, file, offset, len });
    }

    fn create(&mut self, path: impl Fn(u32) -> String, hint: u64) -> u32 {
        let file = self.next_file;
        self.next_file += 1;
        self.names.insert(file, &path(file));
        self.push(FileOpKind::Create, file, 0, 0);
        if hint > 0 {
            self.push(FileOpKind::Hint, file, 0, hint);
        }
        file
    }

    fn mail(&mut self) -> u32 {
        let file = self.create(|file| format!("mail/{file:06}.eml"), 3);
        let pages = 1 + below(&mut self.rng, 4);
        self.push(FileOpKind::Write, file, 0, pages * PAGE);
        self.push(FileOpKind::Fsync, file, 0, 0);
        file
    }

    fn table(&mut self) -> u32 {
        let file = self.create(|file| format!("db/{file:06}.sst"), 4);
        self.push(FileOpKind::Write, file, 0, 256 * PAGE);
        self.push(FileOpKind::Fsync, file, 0, 0);
        file
    }

    fn step(&mut self, step: u64, base: u32) {
        self.at += STEP_NS;
        let old = below(&mut self.rng, self.mails.len() as u64) as usize;
        self.push(FileOpKind::Delete, self.mails[old], 0, 0);
        self.mails[old] = self.mail();
        if self.log_pages == LOG_PAGES || self.logs.is_empty() {
            let log = self.create(|file| format!("db/{file:06}.log"), 2);
            self.logs.push_back(log);
            self.log_pages = 0;
            if self.logs.len() > LOGS
                && let Some(oldest) = self.logs.pop_front()
            {
                self.push(FileOpKind::Delete, oldest, 0, 0);
            }
        }
        if let Some(&log) = self.logs.back() {
            self.push(FileOpKind::Write, log, self.log_pages * PAGE, 2 * PAGE);
            self.push(FileOpKind::Fdatasync, log, 0, 0);
            self.log_pages += 2;
        }
        for _ in 0..2 {
            let page = below(&mut self.rng, BASE_PAGES);
            self.push(FileOpKind::Write, base, page * PAGE, PAGE);
        }
        if step.is_multiple_of(32) {
            let table = self.table();
            self.tables.push(table);
            if self.tables.len() > TABLES {
                let gone = self.tables.swap_remove(below(&mut self.rng, TABLES as u64) as usize);
                self.push(FileOpKind::Delete, gone, 0, 0);
            }
        }
    }
}

pub(super) struct Synthetic {
    ops: std::vec::IntoIter<FileOp>,
    fs: FileSystem,
    is_done: bool,
}

impl Synthetic {
    /// Writes the script and mounts the volume, without discard.
    pub(super) fn new(seed: u64) -> Result<Self, FsError> {
        let mut script = Script {
            rng: seeded(seed),
            names: FileNames::default(),
            ops: Vec::new(),
            next_file: 1,
            at: 0,
            mails: Vec::new(),
            logs: VecDeque::new(),
            log_pages: 0,
            tables: Vec::new(),
        };
        let base = script.create(|_| "db/base.db".to_owned(), 0);
        script.push(FileOpKind::Write, base, 0, BASE_PAGES * PAGE);
        for _ in 0..MAILS {
            let mail = script.mail();
            script.mails.push(mail);
        }
        for step in 0..STEPS {
            script.step(step, base);
        }
        let options = FsOptions {
            discard: false,
            journal: Some(4 << 20),
            dirty_limit: 4 << 20,
            ..FsOptions::default()
        };
        Ok(Self { ops: script.ops.into_iter(), fs: FileSystem::new(options, script.names)?, is_done: false })
    }

    fn feed(&mut self) -> Result<(), FsError> {
        if let Some(op) = self.ops.next() {
            return self.fs.apply(&op);
        }
        self.is_done = true;
        self.fs.finish()
    }
}

impl Iterator for Synthetic {
    type Item = Result<IoRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.fs.next_request() {
                return Some(Ok(record));
            }
            if self.is_done {
                return None;
            }
            if let Err(error) = self.feed() {
                self.is_done = true;
                let source_name = "files".to_owned();
                return Some(Err(TraceError::Io { source_name, message: error.to_string() }));
            }
        }
    }
}

impl TraceReader for Synthetic {
    fn info(&self) -> WorkloadInfo {
        WorkloadInfo::default()
    }

    fn origin(&self) -> Origin<'_> {
        self.fs.origin()
    }
}
