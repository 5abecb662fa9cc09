//! NAND state in memory: which pages are programmed, with what OOB, how often blocks were erased, and the
//! rules.
#![expect(clippy::inline_always, reason = "measured: the path of every page, a third fewer instructions")]

use crate::checksum::MOST_OOB;
use crate::payload::{Decay, Payload, refusal};
use crate::{Breakable, Medium, MediumState};
use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    BlockId, BlockState, Capabilities, Divider, FlashError, FlashResult, Geometry, MediumHealth, MediumTally,
    Oob, OpCounts, OutOfBand, Ppn, State, Stripe, state,
};
use nandscape_memory::prefetch;

/// Which blocks are bad from the factory.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum BadBlocks {
    /// None.
    #[default]
    None,
    /// These.
    List(Vec<BlockId>),
    /// This share of all blocks, rounded down, drawn without replacement from this seed.
    Share {
        /// From 0 to 1.
        share: f64,
        /// Seed of the draw.
        seed: u64,
    },
}

impl BadBlocks {
    /// The bad blocks of a device of `blocks` blocks, in ascending order. A listed block outside the device
    /// is refused.
    pub fn of(&self, blocks: u32) -> FlashResult<Vec<BlockId>> {
        let mut bad = vec![false; blocks as usize];
        match self {
            Self::None => {}
            Self::List(list) => {
                for block in list {
                    *bad.get_mut(block.index()).ok_or(FlashError::OutOfRange {
                        address: u64::from(block.0),
                        limit: u64::from(blocks),
                    })? = true;
                }
            }
            Self::Share { share, seed } => {
                let mut rng = seeded(*seed);
                let mut left = (share.clamp(0.0, 1.0) * f64::from(blocks)) as u64;
                while left > 0 {
                    let draw = below(&mut rng, u64::from(blocks)) as usize;
                    if !std::mem::replace(&mut bad[draw], true) {
                        left -= 1;
                    }
                }
            }
        }
        Ok((0..blocks).filter(|block| bad[*block as usize]).map(BlockId).collect())
    }
}

/// What a [`Nand`] is made with.
#[derive(Clone, Debug, Default)]
pub struct NandOptions {
    /// Erases a block survives; `None` for endless.
    pub endurance: Option<u32>,
    /// Factory bad blocks.
    pub bad_blocks: BadBlocks,
    /// What the medium allows beyond the basic contract.
    pub capabilities: Capabilities,
    /// Count programs per page (4 B a page).
    pub count_programs: bool,
    /// Erases behind each block of each die; empty: all blocks are new.
    pub ages: Vec<u32>,
}

/// NAND state in memory. Timing-only by default: what [`OutOfBand`] says for each page (4 B for the OOB of a
/// page map) and for each block, where a write pointer and an erase count are, too. With
/// [`Capabilities::stores_data`] bytes are allocated when they are programmed, and checksums of data and OOB
/// are verified by every read.
#[derive(Clone, Debug)]
pub struct Nand<O: OutOfBand = Oob> {
    geometry: Geometry,
    capabilities: Capabilities,
    endurance: u32,
    pages_per_block: Divider,
    /// Kept of the OOB of each programmed page. Below the write pointer of its block [`OutOfBand::ERASED`]
    /// where nothing was programmed, which happens out of order only; above it, stale.
    oobs: Vec<O::Page>,
    blocks: Vec<Block<O::Block>>,
    totals: OpCounts,
    /// Whether a program has more to note than the logical page: counts or payload.
    keeps_more: bool,
    program_counts: Option<Vec<u32>>,
    payload: Option<Box<Payload<O>>>,
    health: MediumHealth,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block<B> {
    /// Kept of the OOB of the first program since the last erase.
    first: B,
    /// One past the highest programmed page.
    write_pointer: u32,
    erase_count: u32,
    bad: bool,
}

// Programs per page are counted from the last reset on, and a state is saved right after one.
state!(impl [O: OutOfBand] Nand<O> {
    saved: totals, health;
    tables: oobs, blocks;
    parts: payload;
    fixed: geometry, capabilities, endurance, pages_per_block, keeps_more, program_counts;
});

state!(impl [B: State] Block<B> { saved: first, write_pointer, erase_count, bad; });

impl Nand {
    /// A new medium, wholly erased, for layers that map logical pages.
    ///
    /// A listed bad block outside the device is refused with its number.
    pub fn new(geometry: Geometry, options: &NandOptions) -> FlashResult<Self> {
        Self::with_oob(geometry, options)
    }
}

impl<O: OutOfBand> Nand<O> {
    /// As [`Nand::new`], for layers with an OOB of their own. Panics if it is stored in more than
    /// [`MOST_OOB`](crate::checksum::MOST_OOB) bytes, or needs a mark for erased pages and has none.
    pub fn with_oob(geometry: Geometry, options: &NandOptions) -> FlashResult<Self> {
        assert!(O::BYTES <= MOST_OOB, "an OOB of {} bytes, expected at most {MOST_OOB}", O::BYTES);
        assert!(
            O::is_erased(&O::ERASED) || !options.capabilities.out_of_order_program,
            "pages can be programmed in any order only with an OOB that marks erased ones"
        );
        let blocks = geometry.blocks() as usize;
        let pages = geometry.pages() as usize;
        let mut states: Vec<Block<O::Block>> = vec![Block::default(); blocks];
        for (die, age) in states.chunks_mut(geometry.blocks_per_unit() as usize).zip(&options.ages) {
            for state in die {
                state.erase_count = *age;
            }
        }
        for block in options.bad_blocks.of(geometry.blocks())? {
            states[block.index()].bad = true;
        }
        let bad_blocks = states.iter().filter(|state| state.bad).count() as u64;
        Ok(Self {
            geometry,
            capabilities: options.capabilities,
            endurance: options.endurance.unwrap_or(u32::MAX),
            pages_per_block: Divider::new(geometry.pages_per_block),
            oobs: vec![O::ERASED; pages],
            blocks: states,
            totals: OpCounts::default(),
            keeps_more: options.count_programs || options.capabilities.stores_data,
            program_counts: options.count_programs.then(|| vec![0; pages]),
            payload: options.capabilities.stores_data.then(|| Box::new(Payload::new(&geometry))),
            health: MediumHealth { bad_blocks, ..MediumHealth::default() },
        })
    }

    /// The block of a page and the page's number in it.
    #[inline(always)]
    fn locate(&self, page: Ppn) -> FlashResult<(BlockId, u32)> {
        let (block, index) = self.pages_per_block.split(page.0);
        let block = BlockId(block);
        match self.blocks.get(block.index()) {
            Some(state) if !state.bad => Ok((block, index)),
            Some(_) => Err(FlashError::BadBlock { block }),
            None => Err(FlashError::OutOfRange {
                address: u64::from(page.0),
                limit: u64::from(self.geometry.pages()),
            }),
        }
    }

    /// Programs a page that is not the next of its block, where the medium allows that.
    #[cold]
    fn program_out_of_order(&mut self, page: Ppn, block: BlockId, index: u32) -> FlashResult<()> {
        let state = &mut self.blocks[block.index()];
        let expected = state.write_pointer;
        if index < expected && !O::is_erased(&self.oobs[page.index()]) {
            return Err(FlashError::NotErased { page });
        }
        if !self.capabilities.out_of_order_program {
            return Err(FlashError::OutOfOrder { page, expected });
        }
        if index > expected {
            // The pages that are passed over are erased, whatever they held before the last erase.
            let first = page.index() - index as usize;
            self.oobs[first + expected as usize..page.index()].fill(O::ERASED);
            state.write_pointer = index;
        }
        Ok(())
    }

    /// Beside the logical address: the count of programs and the payload, where they are kept.
    #[inline(never)]
    fn keep(&mut self, page: Ppn, oob: O, data: Option<&[u8]>) {
        if let Some(counts) = &mut self.program_counts {
            counts[page.index()] += 1;
        }
        if let Some(payload) = &mut self.payload {
            payload.program(page, oob, data);
        }
    }

    /// The OOB, and bytes from `start` on, of a page that is programmed.
    fn read_kept(&mut self, page: Ppn, start: u32, data: Option<&mut [u8]>) -> FlashResult<O> {
        let payload = self.payload.as_ref().expect("asked only where payload is kept");
        payload.read(page, start, data).map_err(|decay| {
            match decay {
                Decay::Torn => self.health.torn_pages += 1,
                Decay::Checksum | Decay::Oob => self.health.checksum_errors += 1,
            }
            refusal(page, decay)
        })
    }

    /// Whether the page may be read; counts the read.
    #[inline(always)]
    fn begin_read(&mut self, page: Ppn) -> FlashResult<O> {
        let (block, index) = self.locate(page)?;
        let state = &self.blocks[block.index()];
        let kept = self.oobs[page.index()];
        if index >= state.write_pointer || O::is_erased(&kept) {
            return Err(FlashError::Erased { page });
        }
        self.totals.reads += 1;
        Ok(O::joined(kept, state.first))
    }
}

impl<O: OutOfBand> BlockState for Nand<O> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        let (block, index) = self.pages_per_block.split(page.0);
        index < self.blocks[block as usize].write_pointer && !O::is_erased(&self.oobs[page.index()])
    }

    fn write_pointer(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].write_pointer
    }

    fn erase_count(&self, block: BlockId) -> u32 {
        self.blocks[block.index()].erase_count
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.blocks[block.index()].bad
    }
}

impl<O: OutOfBand> MediumState for Nand<O> {
    fn capabilities(&self) -> Capabilities {
        Capabilities { lasting_programs: true, ..self.capabilities }
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

impl<O: OutOfBand> Medium<O> for Nand<O> {
    #[inline(always)]
    fn read(&mut self, page: Ppn, data: Option<&mut [u8]>) -> FlashResult<O> {
        let oob = self.begin_read(page)?;
        if self.keeps_more && self.payload.is_some() {
            return self.read_kept(page, 0, data);
        }
        Ok(oob)
    }

    fn read_part(&mut self, page: Ppn, start: u32, data: &mut [u8]) -> FlashResult<O> {
        let oob = self.begin_read(page)?;
        if self.payload.is_some() { self.read_kept(page, start, Some(data)) } else { Ok(oob) }
    }

    fn prepare_read(&self, page: Ppn) {
        if let Some(payload) = &self.payload {
            if let Some(kept) = self.oobs.get(page.index()) {
                prefetch(kept);
            }
            payload.prefetch(page);
        }
    }

    #[inline(always)]
    fn program(&mut self, page: Ppn, oob: O, data: Option<&[u8]>) -> FlashResult<()> {
        let (block, index) = self.locate(page)?;
        let (kept, first) = oob.split();
        assert!(!O::is_erased(&kept), "page {page:?} programmed with the mark of an erased page");
        let mut state = &mut self.blocks[block.index()];
        let is_first = state.write_pointer == 0;
        if index != state.write_pointer {
            self.program_out_of_order(page, block, index)?;
            state = &mut self.blocks[block.index()];
        }
        if is_first {
            state.first = first;
        }
        state.write_pointer = state.write_pointer.max(index + 1);
        self.oobs[page.index()] = kept;
        self.totals.programs += 1;
        if self.keeps_more {
            self.keep(page, oob, data);
        }
        Ok(())
    }

    /// Up to the first block where the pages are not the next ones.
    #[inline(always)]
    fn program_head(&mut self, stripe: Stripe<'_>, oobs: &[O]) -> u32 {
        if self.keeps_more {
            return 0;
        }
        let Stripe { blocks, first, each } = stripe;
        let end = first + each;
        let per_block = self.geometry.pages_per_block;
        let mut pages = 0;
        for (block, oobs) in blocks.iter().zip(oobs.chunks_exact(each as usize)) {
            let Some(state) = self.blocks.get_mut(block.index()) else { break };
            if state.bad || state.write_pointer != first || end > per_block {
                break;
            }
            if first == 0 {
                state.first = oobs[0].split().1;
            }
            state.write_pointer = end;
            let at = (block.0 * per_block + first) as usize;
            for (kept, oob) in self.oobs[at..at + oobs.len()].iter_mut().zip(oobs) {
                *kept = oob.split().0;
                assert!(
                    !O::is_erased(kept),
                    "a page of {block:?} programmed with the mark of an erased page"
                );
            }
            pages += each;
        }
        self.totals.programs += u64::from(pages);
        pages
    }

    fn erase(&mut self, block: BlockId) -> FlashResult<()> {
        let limit = self.blocks.len() as u64;
        let Some(state) = self.blocks.get_mut(block.index()) else {
            return Err(FlashError::OutOfRange { address: u64::from(block.0), limit });
        };
        if state.bad {
            return Err(FlashError::BadBlock { block });
        }
        if state.erase_count >= self.endurance {
            return Err(FlashError::WornOut { block, endurance: self.endurance });
        }
        state.erase_count += 1;
        state.write_pointer = 0;
        self.totals.erases += 1;
        if let Some(payload) = &mut self.payload {
            payload.erase(block.0);
        }
        Ok(())
    }

    fn mark_bad(&mut self, block: BlockId) {
        if !std::mem::replace(&mut self.blocks[block.index()].bad, true) {
            self.health.bad_blocks += 1;
        }
    }
}

impl<O: OutOfBand> Breakable<O> for Nand<O> {
    fn tear_program(&mut self, page: Ppn) -> FlashResult<()> {
        self.program(page, O::TORN, None)?;
        if let Some(payload) = &mut self.payload {
            payload.tear(page);
        }
        Ok(())
    }

    fn tear_erase(&mut self, block: BlockId) {
        let first = self.geometry.page(block, 0);
        let pages = self.geometry.pages_per_block;
        self.blocks[block.index()].write_pointer = pages;
        self.oobs[first.index()..first.index() + pages as usize].fill(O::TORN.split().0);
        if let Some(payload) = &mut self.payload {
            payload.erase(block.0);
            (first.0..first.0 + pages).for_each(|page| payload.tear(Ppn(page)));
        }
    }

    fn rot(&mut self, page: Ppn, bit: u64) -> bool {
        self.is_programmed(page) && self.payload.as_mut().is_some_and(|payload| payload.rot(page, bit))
    }
}

#[cfg(test)]
mod tests;
