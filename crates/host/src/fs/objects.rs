//! Requests of a store of objects, in which each file is one.
//!
//! The store finds places and keeps sizes and names; what is left of the model is the page cache. A rename is
//! not passed on.

use super::op::Below;
use super::{BLOCK, FileSystem, Placed};
use nandscape_core::{BlockKind, IoRecord, SimTime, TraceOp};

impl FileSystem {
    /// Whether files are objects of a store, and have no blocks of a volume.
    pub fn has_objects(&self) -> bool {
        self.options.below == Below::Objects
    }

    /// An operation on the object of a file.
    pub(super) fn ask(&mut self, op: TraceOp, file: u32, offset: u64, len: u64) {
        let known = self.files.get(&file);
        let (renames, writer) = known.map_or((0, 0), |file| (file.renames, file.writer));
        let hint =
            if op.is_write() || op == TraceOp::ObjectCreate { self.hints.inode(file) as u16 } else { 0 };
        let record = IoRecord { at: SimTime(self.now), offset, len, volume: file, hint, op };
        self.out.push_back(Placed { record, kind: BlockKind::FileData, file, renames, writer });
    }

    /// The same if it is a store of objects that is asked.
    pub(super) fn ask_store(&mut self, op: TraceOp, file: u32, offset: u64, len: u64) {
        if self.has_objects() {
            self.ask(op, file, offset, len);
        }
    }

    /// Writes blocks of a file, as far as the file goes, in requests that are not too large.
    pub(super) fn write_object(&mut self, file: u32, from: u64, stop: u64) {
        let end = (stop * BLOCK).min(self.files.get(&file).map_or(0, |file| file.size));
        let largest = self.options.largest_request.max(BLOCK);
        let mut at = from * BLOCK;
        while at < end {
            let len = largest.min(end - at);
            self.ask(TraceOp::ObjectWrite, file, at, len);
            at += len;
        }
    }
}
