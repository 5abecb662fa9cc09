//! What a start finds in the tables: the words of each block, how far it is programmed, and what a kill or a
//! failure of the machine interrupted. What neither explains stays, and is an error when it is read.

use crate::error::ImageError;
use crate::flash::copies::Copies;
use crate::flash::{Block, Flash};
use crate::layout::Layout;
use crate::record::{BlockWord, Entry, Kind};
use crate::store::Store;
use nandscape_core::{BlockId, OutOfBand, Ppn};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It closed the image: nothing is in the middle.
    Closed,
    /// It was killed: everything that it wrote is there, and the record that it was at may be cut short.
    Killed,
    /// The machine or a sync failed, a new mount, or unknown: what no sync covered is there or not.
    Failed,
}

/// How often a page is read that the file refuses to read, before it counts as unreadable.
const READS: u32 = 3;
/// The settled word of a block and the last one, by number.
const SETTLED: u32 = 0;
const LAST: u32 = 1;

/// Both words of a block, from whichever copy can be read; `None` where neither can.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    settled: Option<BlockWord>,
    /// What was true last.
    pub last: Option<BlockWord>,
    /// A copy that could not be read was written again.
    pub is_mended: bool,
}

impl Words {
    /// Reads the words of a block and makes their copies equal.
    pub fn read<S: Store>(store: &mut S, layout: &Layout, block: BlockId) -> Self {
        let mut is_mended = false;
        let mut word = |which: u32| {
            let first = (layout.block(block) + u64::from(which) * 8) as usize;
            let second = first + layout.to_second_block as usize;
            let decode = |at: usize, store: &S| BlockWord::decode(&store.tables()[at..at + 8], block, which);
            let (one, two) = (decode(first, store), decode(second, store));
            if one == two {
                return one;
            }
            is_mended |= one.is_none() || two.is_none();
            // Of two that differ the later one was on its way to both places.
            let (from, to) = if one.map(BlockWord::age) > two.map(BlockWord::age) {
                (first, second)
            } else {
                (second, first)
            };
            store.tables_mut().copy_within(from..from + 8, to);
            decode(from, store)
        };
        let (settled, last) = (word(SETTLED), word(LAST));
        Self { settled, last, is_mended }
    }

    /// The block as it was left; the write pointer where it needs no look at the records. Where the word that
    /// tells is lost, the other one does: an erase that is not settled may as well not have happened.
    pub fn block(&self, end: End, pages_per_block: u32) -> Option<Block> {
        match (end, self.settled, self.last) {
            (End::Closed | End::Killed, settled, Some(last)) => Some(Block {
                erases: last.erases,
                write_pointer: if last.is_full { pages_per_block } else { 0 },
                is_bad: last.is_bad,
                is_open: last.is_open,
                is_unsettled: settled
                    .is_none_or(|settled| (settled.erases, settled.is_bad) != (last.erases, last.is_bad)),
            }),
            (_, Some(settled), _) => Some(Block {
                erases: settled.erases,
                is_bad: settled.is_bad,
                // Only the records tell how far it is programmed.
                is_open: true,
                ..Block::default()
            }),
            _ => None,
        }
    }
}

/// No word tells how often a block was erased, so its records cannot be told from those before an erase.
pub(crate) fn lost_words<S: Store>(store: &S, layout: &Layout, block: BlockId, path: &Path) -> ImageError {
    let offset = layout.block(block);
    let bytes = &store.tables()[offset as usize..][..8];
    let found = format!("{:#018x}", u64::from_le_bytes(bytes.try_into().expect("eight bytes")));
    let what = format!("block table entry of block {}", block.0);
    let or_second = if layout.has_copies() { ", here or in the second copy" } else { "" };
    ImageError::corrupt(path, offset, what, found, format!("a word with its checksum{or_second}"))
}

impl<S: Store, O: OutOfBand> Flash<S, O> {
    const fn is_free_order(&self) -> bool {
        self.header.capabilities.out_of_order_program
    }

    /// After a close or a kill: finds the write pointers of open blocks, and what the kill interrupted.
    pub(crate) fn find_write_pointers(&mut self, end: End) {
        let pages = self.layout.geometry.pages_per_block;
        let mut broken = Vec::new();
        for block in (0..self.blocks.len() as u32).map(BlockId) {
            let state = self.blocks[block.index()];
            if !state.is_open || state.write_pointer == pages {
                continue;
            }
            let next = self.last_programmed(block, state.erases);
            self.blocks[block.index()].write_pointer = next;
            if end == End::Closed {
                continue;
            }
            let looked_at =
                if self.is_free_order() { 0..pages } else { next.saturating_sub(1)..pages.min(next + 1) };
            for index in looked_at {
                let page = self.layout.geometry.page(block, index);
                match self.copies(page, state.erases) {
                    Copies::First(_) => self.mend_record(page, false),
                    Copies::HalfBroken { is_first: true } => self.tear(page, (block, index)),
                    Copies::Same(Entry::Broken) if !self.layout.has_copies() => {
                        broken.push((page, (block, index)));
                    }
                    _ => {}
                }
            }
        }
        // One program was under way at most. Of several broken records none can be told to be it.
        if let [(page, place)] = broken[..] {
            self.tear(page, place);
        }
    }

    /// One past the highest page of a block that is not empty.
    fn last_programmed(&self, block: BlockId, generation: u32) -> u32 {
        (0..self.layout.geometry.pages_per_block)
            .rev()
            .find(|index| self.entry(self.layout.geometry.page(block, *index), generation) != Entry::Empty)
            .map_or(0, |index| index + 1)
    }

    fn tear(&mut self, page: Ppn, place: (BlockId, u32)) {
        self.put_torn(page, place);
    }

    /// The word of what was true last is lost: it follows from the records.
    pub(crate) fn rebuild_word(&mut self, block: BlockId) {
        let state = &mut self.blocks[block.index()];
        state.is_open = state.write_pointer > 0;
        self.put_word(block);
    }

    /// After a failure of the machine: looks at every record, and at the bytes of pages that no sync is known
    /// to have covered. What did not arrive becomes torn, so that its OOB is not believed. What a sync
    /// covered and is not there is damage, and stays.
    ///
    /// `rewrites`: the bytes of pages that no sync covered and that are there are written again.
    pub(crate) fn scan(&mut self, epoch: Option<u32>, rewrites: bool) {
        let epoch = self.proven_epoch(epoch);
        self.state.epoch = epoch;
        for block in (0..self.blocks.len() as u32).map(BlockId) {
            self.scan_block(block, epoch, rewrites);
        }
    }

    /// An epoch in a record tells that the syncs before it were complete, even if the state did not arrive.
    fn proven_epoch(&self, known: Option<u32>) -> u32 {
        let mut proven = known;
        for (block, state) in (0..).map(BlockId).zip(&self.blocks) {
            for index in 0..self.layout.geometry.pages_per_block {
                let page = self.layout.geometry.page(block, index);
                if let Entry::Record(record) = self.entry(page, state.erases)
                    && proven.is_none_or(|proven| is_before(proven, record.epoch))
                {
                    proven = Some(record.epoch);
                }
            }
        }
        proven.unwrap_or(0)
    }

    fn scan_block(&mut self, block: BlockId, epoch: u32, rewrites: bool) {
        let geometry = self.layout.geometry;
        let erases = self.blocks[block.index()].erases;
        let is_touched =
            |index: &u32| self.copies(geometry.page(block, *index), erases) != Copies::Same(Entry::Empty);
        let write_pointer = (0..geometry.pages_per_block).rev().find(is_touched).map_or(0, |index| index + 1);
        let state = &mut self.blocks[block.index()];
        state.write_pointer = write_pointer;
        state.is_open = write_pointer > 0;
        // Where pages are programmed in order, those before a page that a sync covered were covered too.
        let mut is_covered = false;
        for index in (0..write_pointer).rev() {
            let (page, place) = (geometry.page(block, index), (block, index));
            let record = match self.copies(page, erases) {
                Copies::Same(Entry::Record(record)) => record,
                Copies::First(record) => {
                    self.mend_record(page, false);
                    record
                }
                Copies::Second(record) => {
                    self.mend_record(page, true);
                    record
                }
                Copies::Same(Entry::Empty) if self.is_free_order() => continue,
                // A failure of the machine leaves at most one copy in the middle.
                Copies::Same(Entry::Broken) if self.layout.has_copies() => continue,
                _ if is_covered && !self.is_free_order() => continue,
                _ => {
                    self.tear(page, place);
                    continue;
                }
            };
            if is_before(record.epoch, epoch) {
                is_covered = true;
            } else if record.kind == Kind::Data && !self.has_bytes(page, rewrites) {
                self.tear(page, place);
            }
        }
        self.put_word(block);
    }

    /// Whether the bytes of a page arrived. What the file refuses to read may be there: without it the page
    /// is an error, and never older data; but what is older is not erased before it is known.
    fn has_bytes(&mut self, page: Ppn, rewrites: bool) -> bool {
        let mut bytes = vec![0; self.layout.geometry.page_bytes as usize];
        let at = self.layout.record(page) as usize;
        for _ in 0..READS {
            if self.read_bytes(page, at, 0, &mut bytes) {
                if rewrites {
                    self.rewrite(page, &bytes);
                }
                return true;
            }
            if !self.was_refused() {
                return false;
            }
        }
        self.unproven.push(page);
        true
    }
}

/// Whether an epoch is earlier than another one, modulo 2^32.
const fn is_before(epoch: u32, other: u32) -> bool {
    epoch.wrapping_sub(other) > u32::MAX / 2
}
