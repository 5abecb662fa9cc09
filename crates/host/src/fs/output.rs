//! What comes out of the model: transactions of the journal, metadata going home, requests.

use super::journal::Key;
use super::{BLOCK, FileSystem, FsError, Placed, Transactions};
use nandscape_core::{BlockKind, IoRecord, SimTime, TraceOp};

impl FileSystem {
    pub(super) fn commit(&mut self) -> Result<(), FsError> {
        for number in self.changed.drain(..) {
            if let Some(file) = self.files.get_mut(&number) {
                (file.has_new_blocks, file.has_changed) = (false, false);
            }
        }
        let Some(journal) = &mut self.journal else { return Ok(()) };
        if journal.is_committed() {
            return Ok(());
        }
        if self.options.transactions == Transactions::Atomic {
            let changed = journal.take_changed();
            return self.write_home(&changed);
        }
        let home = if journal.needs_checkpoint() { journal.empty_ring() } else { Vec::new() };
        let written = journal.commit(self.now);
        self.write_home(&home)?;
        for (start, len) in written {
            self.emit(TraceOp::Write, BlockKind::Journal, 0, 0, start, len);
        }
        Ok(())
    }

    /// Writes metadata blocks, and data that went through the journal, where they live.
    pub(super) fn write_home(&mut self, keys: &[Key]) -> Result<(), FsError> {
        let mut blocks = Vec::with_capacity(keys.len());
        for key in keys {
            let Some(journal) = &mut self.journal else { return Ok(()) };
            let owner = journal.owner(key);
            let home = if key.0 == BlockKind::FileData {
                key.1
            } else if let Some(&home) = journal.homes.get(key) {
                home
            } else {
                let full = FsError::Full { needed: 1, free: self.space.free };
                let (home, _) = self.space.allocate(None, 1).ok_or(full)?;
                journal.homes.insert(*key, home);
                home
            };
            blocks.push((home, key.0, owner));
        }
        blocks.sort_unstable();
        for (home, kind, file) in blocks {
            let writer = self.files.get(&file).map_or(0, |file| file.writer);
            self.emit(TraceOp::Write, kind, file, writer, home, 1);
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) {
        let record =
            IoRecord { at: SimTime(self.now), offset: 0, len: 0, volume: 0, hint: 0, op: TraceOp::Flush };
        self.out.push_back(Placed { record, kind: BlockKind::FileData, file: 0, renames: 0, writer: 0 });
    }

    /// Puts blocks into the queue, joined to the request before if they continue it.
    pub(super) fn emit(
        &mut self,
        op: TraceOp,
        kind: BlockKind,
        file: u32,
        writer: u32,
        start: u64,
        len: u64,
    ) {
        let renames = self.files.get(&file).map_or(0, |file| file.renames);
        let is_data = kind == BlockKind::FileData && op == TraceOp::Write;
        let hint = if is_data { self.hints.inode(file) as u16 } else { 0 };
        let largest =
            if op == TraceOp::Trim { u64::MAX } else { self.options.largest_request.max(BLOCK) / BLOCK };
        let (mut start, mut len) = (start, len);
        if let Some(last) = self.out.back_mut()
            && (last.record.op, last.kind, last.file, last.writer) == (op, kind, file, writer)
            && last.record.at.as_ns() == self.now
            && last.record.offset + last.record.len == start * BLOCK
        {
            let more = len.min(largest.saturating_sub(last.record.len / BLOCK));
            last.record.len += more * BLOCK;
            (start, len) = (start + more, len - more);
        }
        while len > 0 {
            let part = len.min(largest);
            let (offset, bytes) = (start * BLOCK, part * BLOCK);
            let record = IoRecord { at: SimTime(self.now), offset, len: bytes, volume: 0, hint, op };
            self.out.push_back(Placed { record, kind, file, renames, writer });
            (start, len) = (start + part, len - part);
        }
    }
}
