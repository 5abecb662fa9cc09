//! A small file system model: file operations in, block requests out.
//!
//! With it a recording of what programs asked of files drives a block device, with everything that the files
//! tell about the data: name, hint, writer, kind of block. It holds no bytes. In blocks of 4 KiB:
//!
//! * **Page cache.** A write makes blocks dirty. They are written when the file is synced, when they have
//!   been dirty for [`FsOptions::expire_ns`] (looked at every [`FsOptions::interval_ns`]), or, oldest files
//!   first and down to half, when more than [`FsOptions::dirty_limit`] are dirty. What is deleted or
//!   truncated before that is never written. Without the cache every write goes through at once.
//! * **Extents, delayed allocation.** Space is found when data is written out: behind the file's previous
//!   block if that is free, else by first or next fit, else the longest free run. Overwrites stay in place.
//!   Truncation, punching and deletion free blocks and, if wanted, discard them at once.
//! * **Metadata** (optional): an ordered journal in the manner of ext4. `fsync` commits what changed,
//!   `fdatasync` only if the file's size or blocks changed; what is left is committed every interval. Or a
//!   journal of data and metadata, or none, on a device with atomic writes ([`Transactions`]).
//!
//! Over a store of objects ([`Below::Objects`]) only the page cache is left, and each file is an object.
//!
//! Not modelled: reads that miss the page cache because it is too small, extent-tree blocks, checksums,
//! barriers other than one flush for each sync.

mod extents;
mod journal;
mod names;
mod objects;
mod op;
mod output;
mod space;

pub use names::FileNames;
pub use op::{Below, FileOp, FileOpKind, FsError, FsOptions, Transactions};
pub use space::Fit;

use crate::hints::{F_SET_RW_HINT, Hints, OpenFile};
use extents::Extents;
use journal::{Change, Journal};
use nandscape_core::ranges::Ranges;
use nandscape_core::{BlockKind, IoRecord, Origin, TraceOp};
use op::{blocks_of, check_end};
use space::Space;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes of a file system block.
pub const BLOCK: u64 = 4096;
/// Blocks of a volume without a given size: 2^49 bytes, what traces may address.
const BLOCKS_MAX: u64 = (1 << 49) / BLOCK;

#[derive(Clone, Debug, Default)]
struct File {
    extents: Extents,
    dirty: Ranges<()>,
    /// Arrival of the oldest dirty write.
    since: Option<u64>,
    size: u64,
    renames: u32,
    inode: u64,
    directory: u64,
    /// Process that wrote last.
    writer: u32,
    /// Existed before: what is read there has blocks.
    is_old: bool,
    /// Size or blocks changed since the last commit.
    has_new_blocks: bool,
    /// Anything of the inode changed since the last commit.
    has_changed: bool,
}

/// A request with what is known about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Placed {
    record: IoRecord,
    kind: BlockKind,
    file: u32,
    renames: u32,
    writer: u32,
}

/// The model. Operations go in by [`FileSystem::apply`], requests come out by [`FileSystem::next_request`].
#[derive(Clone, Debug)]
pub struct FileSystem {
    options: FsOptions,
    space: Space,
    files: BTreeMap<u32, File>,
    gone: BTreeSet<u32>,
    hints: Hints,
    names: FileNames,
    dirty_blocks: u64,
    /// Files with dirty data, by the age of the oldest.
    oldest: BTreeSet<(u64, u32)>,
    /// Files whose inode changed since the last commit.
    changed: Vec<u32>,
    journal: Option<Journal>,
    next_look: u64,
    now: u64,
    out: VecDeque<Placed>,
    current: Option<Placed>,
    without_effect: u64,
}

impl FileSystem {
    /// An empty volume.
    pub fn new(options: FsOptions, names: FileNames) -> Result<Self, FsError> {
        let blocks = options.size.map_or(BLOCKS_MAX, |bytes| (bytes / BLOCK).min(BLOCKS_MAX));
        let mut space = Space::new(blocks, options.fit, options.align / BLOCK);
        let journal = |bytes: u64| {
            let mut ring = Vec::new();
            let is_atomic = options.transactions == Transactions::Atomic;
            let mut left = if is_atomic { 0 } else { (bytes / BLOCK).max(8) };
            while left > 0 {
                let full = FsError::Full { needed: left, free: space.free };
                let (start, len) = space.allocate(None, left).ok_or(full)?;
                ring.push((start, len));
                left -= len;
            }
            Ok::<_, FsError>(Journal::new(ring))
        };
        let journal = options.journal.map(journal).transpose()?;
        Ok(Self {
            options,
            space,
            files: BTreeMap::new(),
            gone: BTreeSet::new(),
            hints: Hints::new(),
            names,
            dirty_blocks: 0,
            oldest: BTreeSet::new(),
            changed: Vec::new(),
            journal,
            next_look: options.interval_ns,
            now: 0,
            out: VecDeque::new(),
            current: None,
            without_effect: 0,
        })
    }

    /// Operations that the model cannot follow: writable mappings, and anything on a deleted file.
    pub fn without_effect(&self) -> u64 {
        self.without_effect
    }

    /// Notes the path that a file has from the next operation on it: its creation, first sight or renaming.
    pub fn name(&mut self, file: u32, path: &str) {
        self.names.push(file, path);
    }

    /// The next request that is ready.
    #[inline]
    pub fn next_request(&mut self) -> Option<IoRecord> {
        self.current = self.out.pop_front();
        self.current.map(|placed| placed.record)
    }

    /// Who issued the request given last.
    pub fn origin(&self) -> Origin<'_> {
        self.current.map_or_else(Origin::default, |placed| Origin {
            kind: placed.kind,
            file: placed.file,
            path: if placed.file == 0 { None } else { self.names.get(placed.file, placed.renames) },
            writer: placed.writer,
            volume: 0,
        })
    }

    /// Takes an operation; times must not go back.
    pub fn apply(&mut self, op: &FileOp) -> Result<(), FsError> {
        self.look_until(op.at.as_ns())?;
        self.now = op.at.as_ns();
        if let FileOpKind::Create | FileOpKind::Open = op.kind {
            return self.appear(op);
        }
        if self.gone.contains(&op.file) || op.kind == FileOpKind::MapWrite {
            self.without_effect += 1;
            return Ok(());
        }
        if !self.files.contains_key(&op.file) {
            return Err(FsError::UnknownFile(op.file));
        }
        match op.kind {
            FileOpKind::Write => self.write(op)?,
            FileOpKind::Read => self.read(op)?,
            FileOpKind::Fsync => self.sync(op.file, true)?,
            FileOpKind::Fdatasync => self.sync(op.file, false)?,
            FileOpKind::SyncRange => {
                let (from, end) = if op.len == 0 { (op.offset / BLOCK, u64::MAX) } else { blocks_of(op)? };
                self.write_out(op.file, from, end)?;
            }
            FileOpKind::Truncate => self.truncate(op)?,
            FileOpKind::Allocate => self.allocate(op)?,
            FileOpKind::Punch => self.punch(op)?,
            FileOpKind::Rename => self.rename(op.file),
            FileOpKind::Delete => self.delete(op.file),
            FileOpKind::Hint => {
                let open = OpenFile { file: op.file, handle: u64::from(op.file) };
                self.hints.fcntl(open, F_SET_RW_HINT, op.len)?;
            }
            FileOpKind::Create | FileOpKind::Open | FileOpKind::MapWrite => unreachable!("done above"),
        }
        Ok(())
    }

    /// Nothing more will be asked: everything dirty goes to the device, as at an unmount.
    pub fn finish(&mut self) -> Result<(), FsError> {
        while let Some(&(_, file)) = self.oldest.first() {
            self.write_out(file, 0, u64::MAX)?;
        }
        if self.options.delete_at_end {
            for file in self.files.keys().copied().collect::<Vec<_>>() {
                self.delete(file);
            }
        }
        if self.has_objects() {
            self.ask(TraceOp::ObjectFlush, 0, 0, IoRecord::EVERY_OBJECT);
            return Ok(());
        }
        self.commit()?;
        let due = self.journal.as_mut().map(Journal::empty_ring).unwrap_or_default();
        self.write_home(&due)?;
        self.flush();
        Ok(())
    }

    /// Background work that is due before `until`.
    fn look_until(&mut self, until: u64) -> Result<(), FsError> {
        let interval = self.options.interval_ns.max(1);
        while self.next_look <= until {
            if self.oldest.is_empty() && self.journal.as_ref().is_none_or(Journal::is_clean) {
                // Nothing can become due in between.
                self.next_look = (until / interval + 1) * interval;
                break;
            }
            self.now = self.now.max(self.next_look);
            self.next_look = self.next_look.saturating_add(interval);
            let due = self.now.checked_sub(self.options.expire_ns);
            // A transaction takes the data that were written during it.
            let due_data = if self.journals_data() { Some(self.now) } else { due };
            while let Some(&(since, file)) = self.oldest.first()
                && due_data.is_some_and(|due| since <= due)
            {
                self.write_out(file, 0, u64::MAX)?;
            }
            self.commit()?;
            if let (Some(due), Some(journal)) = (due, &mut self.journal) {
                let home = journal.checkpoint(due);
                self.write_home(&home)?;
            }
        }
        Ok(())
    }

    fn journals_data(&self) -> bool {
        self.journal.is_some() && self.options.transactions == Transactions::DataJournal
    }

    fn change(&mut self, change: Change) {
        if let Some(journal) = &mut self.journal {
            journal.change(change);
        }
    }

    /// A file's inode changes, and with `new_blocks` where its data is.
    fn touch(&mut self, number: u32, new_blocks: bool) {
        let file = self.files.get_mut(&number).expect("checked by apply");
        file.has_new_blocks |= new_blocks;
        if !file.has_changed {
            file.has_changed = true;
            self.changed.push(number);
        }
        let inode = file.inode;
        self.change(Change::Inode { inode });
    }

    fn file(&mut self, file: u32) -> &mut File {
        self.files.get_mut(&file).expect("checked by apply")
    }

    fn appear(&mut self, op: &FileOp) -> Result<(), FsError> {
        if self.files.contains_key(&op.file) || self.gone.contains(&op.file) {
            return Err(FsError::FileAgain(op.file));
        }
        let mut file = File { is_old: op.kind == FileOpKind::Open, writer: op.writer, ..File::default() };
        if let Some(journal) = &mut self.journal {
            file.inode = journal.take_inode();
            file.directory = journal.directory_of(self.names.get(op.file, 0));
            if !file.is_old {
                journal.change(Change::Name { inode: file.inode, directory: file.directory });
            }
        }
        self.files.insert(op.file, file);
        self.ask_store(TraceOp::ObjectCreate, op.file, 0, 0);
        if op.kind == FileOpKind::Create {
            self.touch(op.file, true);
        }
        Ok(())
    }

    fn write(&mut self, op: &FileOp) -> Result<(), FsError> {
        let (from, end) = blocks_of(op)?;
        let now = self.now;
        if from == end {
            return Ok(());
        }
        let grows = op.offset + op.len > self.file(op.file).size;
        self.touch(op.file, grows);
        let file = self.file(op.file);
        file.writer = op.writer;
        file.size = file.size.max(op.offset + op.len);
        let new = file.dirty.fill(from, end, ());
        if file.since.is_none() {
            file.since = Some(now);
            self.oldest.insert((now, op.file));
        }
        self.dirty_blocks += new;
        if !self.options.write_back {
            return self.write_out(op.file, from, end);
        }
        if self.dirty_blocks > self.options.dirty_limit / BLOCK {
            while self.dirty_blocks > self.options.dirty_limit / BLOCK / 2
                && let Some(&(_, file)) = self.oldest.first()
            {
                self.write_out(file, 0, u64::MAX)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, op: &FileOp) -> Result<(), FsError> {
        if !self.options.reads {
            return Ok(());
        }
        let (mut block, end) = blocks_of(op)?;
        if self.has_objects() {
            if op.len > 0 {
                self.ask(TraceOp::ObjectRead, op.file, op.offset, op.len);
            }
            return Ok(());
        }
        if self.file(op.file).is_old {
            self.map(op.file, block, end)?;
        }
        while block < end {
            let piece = self.file(op.file).extents.piece(block, end);
            if let Some(disk) = piece.disk {
                self.emit(TraceOp::Read, BlockKind::FileData, op.file, op.writer, disk, piece.len);
            }
            block += piece.len;
        }
        Ok(())
    }

    /// Gives blocks to the holes of a range.
    fn map(&mut self, number: u32, from: u64, end: u64) -> Result<(), FsError> {
        let mut block = from;
        while block < end {
            let file = self.files.get_mut(&number).expect("checked by apply");
            let piece = file.extents.piece(block, end);
            if piece.disk.is_some() {
                block += piece.len;
                continue;
            }
            let full = FsError::Full { needed: piece.len, free: self.space.free };
            self.space.prefer(file.directory);
            let (start, len) = self.space.allocate(file.extents.goal(block), piece.len).ok_or(full)?;
            file.extents.insert(block, start, len);
            self.change(Change::Blocks { start, len });
            self.touch(number, true);
            block += len;
        }
        Ok(())
    }

    /// Writes the dirty blocks of a range.
    fn write_out(&mut self, number: u32, from: u64, end: u64) -> Result<(), FsError> {
        while let Some((mut block, stop)) = self.file(number).dirty.take(from, end) {
            self.dirty_blocks -= stop - block;
            if self.has_objects() {
                self.write_object(number, block, stop);
                continue;
            }
            self.map(number, block, stop)?;
            while block < stop {
                let file = self.file(number);
                let (piece, writer) = (file.extents.piece(block, stop), file.writer);
                let disk = piece.disk.expect("mapped above");
                if self.journals_data() {
                    self.change(Change::Data { file: number, start: disk, len: piece.len });
                } else {
                    self.emit(TraceOp::Write, BlockKind::FileData, number, writer, disk, piece.len);
                }
                block += piece.len;
            }
        }
        self.settle(number);
        Ok(())
    }

    /// Forgets the age of a file's dirty data once there is none.
    fn settle(&mut self, number: u32) {
        let file = self.file(number);
        if file.dirty.is_empty()
            && let Some(since) = file.since.take()
        {
            self.oldest.remove(&(since, number));
        }
    }

    fn sync(&mut self, number: u32, with_metadata: bool) -> Result<(), FsError> {
        self.write_out(number, 0, u64::MAX)?;
        if self.has_objects() {
            self.ask(TraceOp::ObjectFlush, number, 0, 0);
            return Ok(());
        }
        let journals_data = self.journals_data();
        let file = self.file(number);
        if journals_data || if with_metadata { file.has_changed } else { file.has_new_blocks } {
            self.commit()?;
        }
        self.flush();
        Ok(())
    }

    /// Drops dirty data and blocks of a range.
    fn drop_range(&mut self, number: u32, from: u64, end: u64) {
        while let Some((start, stop)) = self.file(number).dirty.take(from, end) {
            self.dirty_blocks -= stop - start;
        }
        self.settle(number);
        let mut freed = Vec::new();
        self.file(number).extents.remove(from, end, |disk, len| freed.push((disk, len)));
        for (disk, len) in freed {
            self.space.release(disk, len);
            if self.journals_data()
                && let Some(journal) = &mut self.journal
            {
                journal.revoke(disk, len);
            }
            self.change(Change::Blocks { start: disk, len });
            if self.options.discard {
                self.emit(TraceOp::Trim, BlockKind::FileData, number, 0, disk, len);
            }
        }
    }

    fn truncate(&mut self, op: &FileOp) -> Result<(), FsError> {
        check_end(op.offset, 0)?;
        self.drop_range(op.file, op.offset.div_ceil(BLOCK), u64::MAX);
        self.file(op.file).size = op.offset;
        self.ask_store(TraceOp::ObjectTruncate, op.file, op.offset, 0);
        self.touch(op.file, true);
        Ok(())
    }

    fn allocate(&mut self, op: &FileOp) -> Result<(), FsError> {
        let (from, end) = blocks_of(op)?;
        if !self.has_objects() {
            self.map(op.file, from, end)?;
        }
        let file = self.file(op.file);
        let size = file.size.max(op.offset + op.len);
        if size > std::mem::replace(&mut file.size, size) {
            self.ask_store(TraceOp::ObjectTruncate, op.file, size, 0);
        }
        self.touch(op.file, true);
        Ok(())
    }

    fn punch(&mut self, op: &FileOp) -> Result<(), FsError> {
        check_end(op.offset, op.len)?;
        let (from, end) = (op.offset.div_ceil(BLOCK), (op.offset + op.len) / BLOCK);
        if op.len > 0 {
            self.ask_store(TraceOp::ObjectPunch, op.file, op.offset, op.len);
        }
        if from < end {
            self.drop_range(op.file, from, end);
            self.touch(op.file, true);
        }
        Ok(())
    }

    fn rename(&mut self, number: u32) {
        self.touch(number, true);
        let file = self.files.get_mut(&number).expect("checked by apply");
        file.renames += 1;
        let (inode, from) = (file.inode, file.directory);
        if let Some(journal) = &mut self.journal {
            let directory = journal.directory_of(self.names.get(number, file.renames));
            file.directory = directory;
            journal.change(Change::Rename { inode, directory: from });
            journal.change(Change::Rename { inode, directory });
        }
    }

    fn delete(&mut self, number: u32) {
        self.drop_range(number, 0, u64::MAX);
        self.ask_store(TraceOp::ObjectDelete, number, 0, 0);
        let file = self.files.remove(&number).expect("checked by apply");
        self.gone.insert(number);
        self.hints.forget_file(number);
        if let Some(journal) = &mut self.journal {
            journal.change(Change::Name { inode: file.inode, directory: file.directory });
            journal.release_inode(file.inode);
        }
    }
}

#[cfg(test)]
mod tests;
