//! The medium: rules as in [`nandscape_media::Nand`], state and bytes in a [`Store`].

pub(crate) mod copies;
mod read;
mod sync;
mod write;

use crate::header::Header;
use crate::layout::{Layout, OOB_HEAD, OOB_MOST};
use crate::record::{BlockWord, Entry, Kind, MOST_ERASES};
use crate::state::State;
use crate::store::Store;
use nandscape_core::{
    BlockId, BlockState, Capabilities, Divider, FlashError, FlashResult, Geometry, MediumHealth, MediumTally,
    Oob, OpCounts, OutOfBand, Ppn,
};
use nandscape_media::{Breakable, Medium, MediumState};
use std::collections::VecDeque;
use std::marker::PhantomData;

/// Space of erased blocks that is kept for the blocks that are programmed next, in bytes.
const SPARE_BYTES: u64 = 64 << 20;

/// What a write that the file system has no room for gives.
const FULL: &str = "the file system that holds the image is full";
/// What a failed write or sync gives, for ever: what became of the data is not known.
const FAILED: &str = "the image could not be written";
/// What a lost page of the tables gives, for ever.
const LOST: &str =
    "the image lost a part of its tables: its file was truncated, or its file system is full or failed";
/// What the first program or erase gives after reads that the file refused and does not refuse any more. A
/// layer that was about to give up what it could not read reads it again.
const CAME_BACK: &str = "the image could not be read for a while";
/// What an erase gives while a page is unproven.
const UNPROVEN: &str = "the image cannot be read in places that were written last";

/// Flash in a store, whose pages have an OOB of type `O`.
#[derive(Debug)]
pub struct Flash<S: Store, O: OutOfBand = Oob> {
    pub(crate) store: S,
    pub(crate) layout: Layout,
    pub(crate) header: Header,
    pub(crate) state: State,
    pub(crate) blocks: Vec<Block>,
    pages_per_block: Divider,
    endurance: u32,
    /// Blocks whose erase is not settled.
    pub(crate) unsettled: Vec<BlockId>,
    /// Erased blocks whose space is still taken, and their erases then, first erased first.
    vacant: VecDeque<(BlockId, u32)>,
    /// How many of these keep their space, for the blocks that are programmed next.
    pub(crate) spare_blocks: usize,
    /// Something changed since the last sync.
    pub(crate) is_dirty: bool,
    failed: Option<&'static str>,
    /// Pages that the file refused to read since the last program or erase.
    refused: Vec<Ppn>,
    /// Pages that no sync is known to have covered and that the file refused to read at the start. Nothing is
    /// erased until their bytes were seen and rewritten: if they are lost, older versions are needed.
    /// Meanwhile the state on the medium names no session, so that the next start looks again.
    pub(crate) unproven: Vec<Ppn>,
    /// The boot that the state names once nothing is unproven.
    session: [u8; 16],
    totals: OpCounts,
    pub(crate) health: MediumHealth,
    /// The last process closed the image.
    pub(crate) was_clean: bool,
    pub(crate) mended: Mended,
    pub(crate) program_counts: Option<Vec<u32>>,
    sums: Vec<u32>,
    buffer: Vec<u8>,
    oob: PhantomData<fn() -> O>,
}

/// What the start found damaged and took from the other copy.
#[derive(Debug, Default)]
pub(crate) struct Mended {
    pub is_state: bool,
    pub blocks: Vec<BlockId>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub erases: u32,
    /// One past the highest programmed page.
    pub write_pointer: u32,
    pub is_bad: bool,
    /// Its records are cleared and some page is programmed.
    pub is_open: bool,
    /// The erase may not have happened after a failure of the machine.
    pub is_unsettled: bool,
}

impl Block {
    fn word(self, pages_per_block: u32) -> BlockWord {
        BlockWord {
            erases: self.erases,
            is_full: self.write_pointer == pages_per_block,
            is_open: self.is_open,
            is_bad: self.is_bad,
        }
    }
}

impl<S: Store, O: OutOfBand> Flash<S, O> {
    /// A medium over a store that holds `header`, with the state of each block.
    pub(crate) fn new(store: S, header: Header, state: State, blocks: Vec<Block>) -> Self {
        let geometry = header.geometry;
        let layout = header.layout();
        let bad_blocks = blocks.iter().filter(|block| block.is_bad).count() as u64;
        let unsettled = (0..geometry.blocks()).map(BlockId);
        Self {
            unsettled: unsettled.filter(|block| blocks[block.index()].is_unsettled).collect(),
            blocks,
            pages_per_block: Divider::new(geometry.pages_per_block),
            endurance: header.endurance.unwrap_or(u32::MAX).min(MOST_ERASES),
            vacant: VecDeque::new(),
            spare_blocks: (SPARE_BYTES / geometry.block_bytes()).max(8) as usize,
            is_dirty: true,
            failed: None,
            refused: Vec::new(),
            unproven: Vec::new(),
            session: state.boot,
            totals: OpCounts::default(),
            health: MediumHealth { bad_blocks, ..MediumHealth::default() },
            was_clean: true,
            mended: Mended::default(),
            program_counts: None,
            sums: vec![0; layout.units.count as usize],
            buffer: vec![0; geometry.page_bytes as usize],
            oob: PhantomData,
            store,
            layout,
            header,
            state,
        }
    }

    /// The block of a page, which is good, and the page's number in it.
    #[inline]
    fn locate(&self, page: Ppn) -> FlashResult<(BlockId, u32)> {
        let (block, index) = self.pages_per_block.split(page.0);
        let block = BlockId(block);
        match self.blocks.get(block.index()) {
            Some(state) if !state.is_bad => Ok((block, index)),
            Some(_) => Err(FlashError::BadBlock { block }),
            None => {
                let limit = u64::from(self.layout.geometry.pages());
                Err(FlashError::OutOfRange { address: u64::from(page.0), limit })
            }
        }
    }

    /// The places of an entry and its second copy.
    fn places(first: u64, to_second: u64) -> impl Iterator<Item = usize> {
        let second = (to_second != 0).then_some(first + to_second);
        std::iter::once(first).chain(second).map(|at| at as usize)
    }
}

impl<S: Store, O: OutOfBand> BlockState for Flash<S, O> {
    fn geometry(&self) -> &Geometry {
        &self.layout.geometry
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        let (block, index) = self.pages_per_block.split(page.0);
        let state = self.blocks[block as usize];
        index < state.write_pointer
            && (!self.header.capabilities.out_of_order_program
                || self.entry(page, state.erases) != Entry::Empty)
    }

    fn write_pointer(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].write_pointer
    }

    fn erase_count(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].erases
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.blocks[block.index()].is_bad
    }
}

nandscape_core::no_state!(impl [S: Store, O: OutOfBand] Flash<S, O>: "an image");

impl<S: Store, O: OutOfBand> MediumState for Flash<S, O> {
    fn capabilities(&self) -> Capabilities {
        self.header.capabilities
    }

    fn sync(&mut self) -> FlashResult<()> {
        self.sync_all()
    }

    fn tally(&self) -> MediumTally<'_> {
        let program_counts = self.program_counts.as_deref();
        MediumTally { totals: self.totals, health: self.health, program_counts }
    }

    fn reset_tally(&mut self) {
        self.totals = OpCounts::default();
        if let Some(counts) = &mut self.program_counts {
            counts.fill(0);
        }
    }
}

impl<S: Store, O: OutOfBand> Medium<O> for Flash<S, O> {
    fn read(&mut self, page: Ppn, data: Option<&mut [u8]>) -> FlashResult<O> {
        self.read_any(page, 0, data)
    }

    fn read_part(&mut self, page: Ppn, start: u32, data: &mut [u8]) -> FlashResult<O> {
        self.read_any(page, start, Some(data))
    }

    fn program(&mut self, page: Ppn, oob: O, data: Option<&[u8]>) -> FlashResult<()> {
        let is_erased = O::is_erased(&oob.split().0);
        assert!(!is_erased, "page {page:?} programmed with the mark of an erased page");
        let place = self.begin_program(page)?;
        let kind = match data {
            Some(data) if !is_zero(data) => {
                let page_bytes = self.layout.geometry.page_bytes as usize;
                assert_eq!(data.len(), page_bytes, "a page is programmed whole");
                self.write_bytes(page, data)?;
                Kind::Data
            }
            _ => Kind::Blank,
        };
        let mut bytes = [0; OOB_MOST];
        oob.encode(&mut bytes[..O::BYTES]);
        self.put_record(page, place, &bytes[..O::BYTES], kind);
        self.check_tables()?;
        self.totals.programs += 1;
        if let Some(counts) = &mut self.program_counts {
            counts[page.index()] += 1;
        }
        Ok(())
    }

    fn erase(&mut self, block: BlockId) -> FlashResult<()> {
        self.check_writable()?;
        let limit = self.blocks.len() as u64;
        let outside = FlashError::OutOfRange { address: u64::from(block.0), limit };
        let state = self.blocks.get(block.index()).ok_or(outside)?;
        if state.is_bad {
            return Err(FlashError::BadBlock { block });
        }
        if state.erases >= self.endurance {
            return Err(FlashError::WornOut { block, endurance: self.endurance });
        }
        if !self.unproven.is_empty() {
            self.prove()?;
        }
        let state = &mut self.blocks[block.index()];
        let was_open = state.is_open;
        let was_unsettled = std::mem::replace(&mut state.is_unsettled, true);
        *state = Block { erases: state.erases + 1, write_pointer: 0, is_open: false, ..*state };
        let erases = state.erases;
        self.put_word(block);
        if !was_unsettled {
            self.unsettled.push(block);
        }
        if was_open {
            self.vacant.push_back((block, erases));
        }
        self.check_tables()?;
        self.totals.erases += 1;
        Ok(())
    }

    fn mark_bad(&mut self, block: BlockId) {
        let state = &mut self.blocks[block.index()];
        if std::mem::replace(&mut state.is_bad, true) {
            return;
        }
        self.health.bad_blocks += 1;
        self.put_word(block);
        // The next sync makes it bad in any case, and settles the erase: copies are synced before it.
        if !std::mem::replace(&mut self.blocks[block.index()].is_unsettled, true) {
            self.unsettled.push(block);
        }
    }
}

impl<S: Store, O: OutOfBand> Breakable<O> for Flash<S, O> {
    fn tear_program(&mut self, page: Ppn) -> FlashResult<()> {
        let place = self.begin_program(page)?;
        self.put_torn(page, place);
        self.totals.programs += 1;
        Ok(())
    }

    fn tear_erase(&mut self, block: BlockId) {
        self.blocks[block.index()].is_open = true;
        for index in 0..self.layout.geometry.pages_per_block {
            let page = self.layout.geometry.page(block, index);
            self.put_torn(page, (block, index));
        }
        self.put_word(block);
    }

    fn rot(&mut self, page: Ppn, bit: u64) -> bool {
        let (byte, mask) = (bit / 8, 1 << (bit % 8));
        let page_bytes = u64::from(self.layout.geometry.page_bytes);
        let (block, index) = self.pages_per_block.split(page.0);
        let state = self.blocks[block as usize];
        let Entry::Record(record) = self.entry(page, state.erases) else { return false };
        if index >= state.write_pointer || byte < page_bytes && record.kind != Kind::Data {
            return false;
        }
        if byte < page_bytes {
            let offset = self.layout.page(page) + byte;
            let mut bytes = [0];
            if self.store.read_at(offset, &mut bytes).is_err() {
                return false;
            }
            bytes[0] ^= mask;
            return self.store.write_at(offset, &bytes).is_ok();
        }
        // The OOB in the record: six bytes, two of other things, eight, and the rest at the end.
        let head = OOB_HEAD as u64;
        let at = match byte - page_bytes {
            byte @ 0..6 => byte,
            byte if byte < head => byte + 2,
            byte if byte < u64::from(self.header.oob_bytes) => self.layout.oob_rest as u64 + byte - head,
            _ => return false,
        };
        let first = self.layout.record(page) + at;
        self.store.tables_mut()[first as usize] ^= mask;
        if self.layout.has_copies() {
            self.store.tables_mut()[(first + self.layout.to_second_record) as usize] ^= mask;
        }
        true
    }
}

/// Whether all bytes are 0; most pages say no in their first bytes.
pub(crate) fn is_zero(data: &[u8]) -> bool {
    let (head, rest) = data.split_at(data.len().min(64));
    head.iter().all(|byte| *byte == 0) && rest.chunks(64).all(|chunk| chunk.iter().all(|byte| *byte == 0))
}

impl<S: Store, O: OutOfBand> Drop for Flash<S, O> {
    fn drop(&mut self) {
        // An error is told by the next start: the image is not marked as closed.
        let _ = self.close();
    }
}
