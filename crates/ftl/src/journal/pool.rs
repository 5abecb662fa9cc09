//! The journal's own blocks: which are free, where its next page goes, and what waits to be written.

use super::SEQ_STEP;
use super::draft::{Draft, Region};
use super::format::{Kind, PageHead, encode};
use super::layout::Layout;
use super::records::Record;
use nandscape_core::{BlockId, Cause, FlashDevice, FlashError, Issue, SimTime, Token};

const NO_BLOCK: FlashError =
    FlashError::ReadOnly { reason: "too many of the journal's own blocks have failed" };

/// Which region a page goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Current,
    Draft,
}

/// The journal's own blocks and what is to be written to them.
#[derive(Debug)]
pub(super) struct Meta {
    pub layout: Layout,
    pub pool: Vec<BlockId>,
    /// Blocks of the pool that failed.
    pub dead: Vec<bool>,
    /// Where the search for a free block of the pool begins.
    pub rotor: usize,
    /// The last complete checkpoint and the records since.
    pub current: Region,
    pub draft: Option<Draft>,
    pub next_generation: u64,
    /// Not yet written.
    pub records: Vec<Record>,
    /// The journal's last page so far; every next one is programmed after it.
    pub chain: Token,
    /// Completes when every record written so far is durable.
    pub records_done: Token,
    pub interval: u64,
    /// Programs of the layer when the last checkpoint began.
    pub begun_at: u64,
    pub page: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Meta {
    pub fn new(layout: Layout, pool: Vec<BlockId>, dead: Vec<bool>, interval: u64, page_bytes: u32) -> Self {
        Self {
            layout,
            dead,
            pool,
            rotor: 0,
            current: Region::default(),
            draft: None,
            next_generation: 1,
            records: Vec::new(),
            chain: Token::NONE,
            records_done: Token::NONE,
            interval,
            begun_at: 0,
            page: vec![0; page_bytes as usize],
            payload: Vec::with_capacity(layout.payload),
        }
    }

    /// Goes on in the region of a checkpoint that was found; `used` is the highest generation that the flash
    /// has pages of.
    pub fn resume(&mut self, current: Region, used: u64) {
        self.rotor = current.blocks.last().map_or(0, |block| block + 1);
        self.current = current;
        self.next_generation = used + 1;
    }

    pub const fn pool_len(&self) -> usize {
        self.pool.len()
    }

    /// Whether a block is one of the pool that failed.
    pub fn has_failed(&self, block: BlockId) -> bool {
        self.pool.iter().zip(&self.dead).any(|(own, dead)| *own == block && *dead)
    }

    /// A block of the pool failed before the start: nothing more is written to it. What it holds is read on.
    pub fn remember_failed(&mut self, block: BlockId) {
        if let Some(place) = self.pool.iter().position(|own| *own == block) {
            self.dead[place] = true;
        }
    }

    pub const fn interval(&self) -> u64 {
        self.interval
    }

    pub const fn has_records(&self) -> bool {
        !self.records.is_empty()
    }

    /// Whether the records not yet written fill a page.
    pub const fn fills_page(&self) -> bool {
        self.records.len() >= self.layout.records()
    }

    pub fn note(&mut self, record: Record) {
        self.records.push(record);
    }

    /// Logical pages from `first` to before `end` were dropped. Takes a sequence number, unless nothing took
    /// one since the last drop.
    pub fn note_drop(&mut self, first: u32, end: u32, next_seq: &mut u64) {
        if let Some(Record::Drop { first: last_first, count, seq }) = self.records.last_mut()
            && *seq + SEQ_STEP == *next_seq
        {
            let last_end = *last_first + *count;
            if first <= last_end && *last_first <= end {
                let (low, high) = (first.min(*last_first), end.max(last_end));
                (*last_first, *count) = (low, high - low);
                return;
            }
            let seq = *seq;
            self.records.push(Record::Drop { first, count: end - first, seq });
            return;
        }
        self.records.push(Record::Drop { first, count: end - first, seq: *next_seq });
        *next_seq += SEQ_STEP;
    }

    /// Gives up the checkpoint under way.
    pub fn abandon_draft(&mut self) {
        self.draft = None;
    }

    pub fn forget_time(&mut self) {
        self.chain = Token::NONE;
        self.records_done = Token::NONE;
    }

    /// Blocks of a region, as long as so many are good.
    fn region_blocks(&self) -> usize {
        let alive = self.dead.iter().filter(|dead| !**dead).count();
        (self.layout.region_blocks as usize).min(alive / 2)
    }

    /// Pages that the current region can still take.
    pub fn room<D: FlashDevice>(&self, device: &D) -> u64 {
        let pages_per_block = device.geometry().pages_per_block;
        let last = self.current.blocks.last().filter(|block| !self.dead[**block]);
        let rest = last.map_or(0, |block| pages_per_block - device.write_pointer(self.pool[*block]));
        let more = self.region_blocks().saturating_sub(self.current.blocks.len());
        more as u64 * u64::from(pages_per_block) + u64::from(rest)
    }

    /// A block of the pool that holds nothing needed, erased.
    fn take_block<D: FlashDevice>(&mut self, device: &mut D, at: SimTime) -> Result<usize, FlashError> {
        for offset in 0..self.pool.len() {
            let index = (self.rotor + offset) % self.pool.len();
            let is_used = self.current.blocks.contains(&index)
                || self.draft.as_ref().is_some_and(|draft| draft.region.blocks.contains(&index));
            if is_used || self.dead[index] {
                continue;
            }
            let block = self.pool[index];
            if device.is_bad(block) {
                self.dead[index] = true;
                continue;
            }
            if device.write_pointer(block) > 0 {
                match device.erase(block, Issue::new(at, Cause::Meta).after(self.chain)) {
                    Ok(erased) => self.chain = device.join(self.chain, erased),
                    Err(FlashError::EraseFailed { .. } | FlashError::WornOut { .. }) => {
                        self.dead[index] = true;
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            self.rotor = index + 1;
            return Ok(index);
        }
        Err(NO_BLOCK)
    }

    /// Programs the payload that waits twice, so that no single page holds anything that no other tells. As
    /// [`Self::put`].
    pub fn put_twice<D: FlashDevice>(
        &mut self,
        device: &mut D,
        place: Place,
        what: (Kind, u32),
        seq: u64,
        after: Token,
        at: SimTime,
    ) -> Result<(), FlashError> {
        self.put(device, place, what, seq, after, at)?;
        self.put(device, place, what, seq, Token::NONE, at)
    }

    /// Programs the next page of a region with the payload that waits, after everything before it and after
    /// `after`.
    pub fn put<D: FlashDevice>(
        &mut self,
        device: &mut D,
        place: Place,
        (kind, part): (Kind, u32),
        seq: u64,
        after: Token,
        at: SimTime,
    ) -> Result<(), FlashError> {
        let geometry = *device.geometry();
        self.chain = device.join(self.chain, after);
        loop {
            let region = self.region(place);
            let (generation, index) = (region.generation, region.index);
            let last = region.blocks.last().copied().filter(|block| !self.dead[*block]);
            let last = last
                .map(|block| (block, device.write_pointer(self.pool[block])))
                .filter(|(_, next)| *next < geometry.pages_per_block);
            let (block, next) = if let Some(place) = last {
                place
            } else {
                let block = self.take_block(device, at)?;
                self.region(place).blocks.push(block);
                (block, 0)
            };
            let head = PageHead { kind, generation, index, part, seq };
            encode(&head, &self.payload, &mut self.page);
            let page = geometry.page(self.pool[block], next);
            let issue = Issue::new(at, Cause::Meta).after(self.chain);
            match device.program(page, head.oob(), geometry.page_bytes, Some(&self.page), issue) {
                Ok(done) => {
                    self.chain = done;
                    self.region(place).index += 1;
                    return Ok(());
                }
                Err(FlashError::ProgramFailed { .. } | FlashError::BadBlock { .. }) => {
                    self.dead[block] = true;
                }
                Err(error) => return Err(error),
            }
        }
    }

    pub fn region(&mut self, place: Place) -> &mut Region {
        match (&mut self.draft, place) {
            (Some(draft), Place::Draft) => &mut draft.region,
            _ => &mut self.current,
        }
    }
}
