//! Opening a journal: the first one on an erased device, or what the flash holds after a shutdown or a loss
//! of power.

use super::error::{JournalError, JournalOptions, Result, Sabotage};
use super::format::{Kind, PageHead, decode, from_oob};
use super::layout::{Layout, choose, order};
use super::newest::Newest;
use super::pool::Meta;
use super::scan::read_oob;
use super::shape::Header;
use super::{Journal, RESERVED, SEQ_STEP};
use nandscape_core::recovery::RecoveryReport;
use nandscape_core::{BlockId, FlashDevice, FlashResult, Geometry, Ppn, SimTime, Token};

/// Programs between two checkpoints at most, unless asked for.
const LONGEST_INTERVAL: u64 = 400_000;

impl JournalOptions {
    /// Blocks that a journal keeps for itself on a device of a shape; a little more where pages of a block
    /// may be programmed out of order (`has_bits`).
    pub fn blocks(&self, geometry: &Geometry, has_bits: bool) -> u32 {
        Layout::new(geometry, has_bits, self.record_pages).pool_blocks
    }
}

impl<D: FlashDevice> Journal<D> {
    /// Opens the journal of a device. A wholly erased device gets one; any other must have one, and is
    /// recovered.
    ///
    /// Whatever the start programs is issued at time 0, under [`nandscape_core::Cause::Meta`], as are its
    /// reads.
    pub fn open(device: D, options: JournalOptions) -> Result<Self> {
        if !device.capabilities().stores_data {
            let what = "a journal needs a device that stores bytes; this one counts only";
            return Err(JournalError::Unsuited(what.to_owned()));
        }
        let mut opening = Opening::new(device, options);
        match opening.find_pool()? {
            None => opening.format(),
            Some(pool) => opening.recover(pool),
        }
    }
}

/// What there is before there is a journal.
pub(super) struct Opening<D> {
    pub device: D,
    options: JournalOptions,
    pub geometry: Geometry,
    pub layout: Layout,
    page: Vec<u8>,
    pub report: RecoveryReport,
}

impl<D: FlashDevice> Opening<D> {
    fn new(device: D, options: JournalOptions) -> Self {
        let geometry = *device.geometry();
        let has_bits = device.capabilities().out_of_order_program;
        let layout = Layout::new(&geometry, has_bits, options.record_pages);
        let page = vec![0; geometry.page_bytes as usize];
        Self { device, options, geometry, layout, page, report: RecoveryReport::default() }
    }

    pub const fn sabotage(&self) -> Sabotage {
        self.options.sabotage
    }

    fn interval(&self) -> u64 {
        let default = (u64::from(self.geometry.pages()) / 4).clamp(8, LONGEST_INTERVAL);
        self.options.interval.unwrap_or(default).max(1)
    }

    /// A page of the journal, if it can be read.
    pub fn read_meta(&mut self, page: Ppn) -> FlashResult<Option<(PageHead, &[u8])>> {
        self.report.metadata_pages += 1;
        let oob = read_oob(&mut self.device, page, Some(&mut self.page))?;
        Ok(oob.and_then(|_| decode(&self.page)))
    }

    /// The journal's own blocks, from the first header that is found; `None` on a device without data.
    fn find_pool(&mut self) -> Result<Option<Vec<BlockId>>> {
        let mut first_with_data = None;
        let planned = choose(&self.device, self.layout.pool_blocks);
        for block in order(&self.geometry) {
            if self.device.is_bad(block) || self.device.write_pointer(block) == 0 {
                continue;
            }
            if let Some(pool) = self.pool_in(block)? {
                return Ok(Some(pool));
            }
            if !planned.contains(&block) {
                first_with_data.get_or_insert(block);
            }
        }
        // A cut during the first checkpoint leaves pages in the journal's blocks and nowhere else.
        first_with_data.map_or(Ok(None), |block| Err(JournalError::NoCheckpoint { block: block.0 }))
    }

    /// The reserved blocks that a header in this block names; `None` if it begins with another readable page.
    fn pool_in(&mut self, block: BlockId) -> Result<Option<Vec<BlockId>>> {
        let mut bytes = Vec::new();
        let mut expected: Option<PageHead> = None;
        for index in 0..self.device.write_pointer(block) {
            let page = self.geometry.page(block, index);
            if !self.device.is_programmed(page) {
                continue;
            }
            let Some(oob) = read_oob(&mut self.device, page, None)? else { continue };
            if from_oob(&oob).is_none_or(|(_, _, kind)| kind != Kind::Header) {
                return Ok(None);
            }
            let Some((head, payload)) = self.read_meta(page)? else { continue };
            let is_next = match &expected {
                None => head.part == 0,
                Some(last) if (head.part, head.generation) == (last.part, last.generation) => continue,
                Some(last) => head.part == last.part + 1 && head.generation == last.generation,
            };
            if !is_next {
                return Ok(None);
            }
            bytes.extend_from_slice(payload);
            expected = Some(head);
            if let Some(header) = Header::from_bytes(&bytes) {
                self.check(&header)?;
                return Ok(Some(header.pool));
            }
        }
        Ok(None)
    }

    /// Whether a header is of this device.
    pub fn check(&self, header: &Header) -> Result<()> {
        let geometry = &self.geometry;
        for (what, found, expected) in [
            ("blocks", header.blocks, geometry.blocks()),
            ("pages of a block", header.pages_per_block, geometry.pages_per_block),
            ("bytes of a page", header.page_bytes, geometry.page_bytes),
            ("programs in any order", u32::from(header.has_bits), u32::from(self.layout.has_bits)),
        ] {
            if found != expected {
                return Err(JournalError::foreign(what, found, expected));
            }
        }
        match header.pool.iter().find(|block| block.0 >= geometry.blocks()) {
            None => Ok(()),
            Some(block) => Err(JournalError::foreign("a reserved block", block.0, geometry.blocks() - 1)),
        }
    }

    fn journal(self, pool: Vec<BlockId>) -> Journal<D> {
        let mut flags = vec![0; self.geometry.blocks() as usize];
        for block in &pool {
            flags[block.index()] |= RESERVED;
        }
        let dead = pool.iter().map(|block| self.device.is_bad(*block)).collect();
        let interval = self.interval();
        Journal {
            newest: Newest::new(&self.geometry),
            seq: SEQ_STEP,
            doubtful: Vec::new(),
            allows_loss: false,
            born: Token::NONE,
            programmed: Token::NONE,
            erased: Token::NONE,
            programs: 0,
            due: interval,
            is_touched: false,
            stopped: None,
            flags,
            meta: Meta::new(self.layout, pool, dead, interval, self.geometry.page_bytes),
            options: self.options,
            report: self.report,
            device: self.device,
        }
    }

    /// The first journal of a device, with an empty checkpoint.
    fn format(self) -> Result<Journal<D>> {
        let good =
            (0..self.geometry.blocks()).filter(|block| !self.device.is_bad(BlockId(*block))).count() as u32;
        let needed = self.layout.pool_blocks;
        let pool = choose(&self.device, needed);
        if good <= needed {
            return Err(JournalError::TooSmall { needed, good });
        }
        let mut journal = self.journal(pool);
        journal.checkpoint_now(SimTime::ZERO)?;
        journal.born = journal.meta.records_done;
        journal.report = RecoveryReport { was_clean: true, ..RecoveryReport::default() };
        Ok(journal)
    }

    fn recover(mut self, pool: Vec<BlockId>) -> Result<Journal<D>> {
        let Some(loaded) = self.load(&pool)? else {
            // The first checkpoint was never completed.
            let planned = |block: &BlockId| pool.contains(block);
            let other = (0..self.geometry.blocks()).map(BlockId).find(|block| {
                !planned(block) && !self.device.is_bad(*block) && self.device.write_pointer(*block) > 0
            });
            return match other {
                Some(block) => Err(JournalError::NoCheckpoint { block: block.0 }),
                None => self.format(),
            };
        };
        let mut journal = self.journal(pool);
        journal.take_over(loaded)?;
        Ok(journal)
    }
}
