//! The journal's own blocks: which are free, where its next page goes, and what waits to be written.

use super::draft::{Draft, Region};
use super::format::{Kind, PageHead, encode};
use super::layout::Layout;
use super::records::Record;
use super::{Journal, SEQ_STEP};
use nandscape_core::{BlockId, Cause, FlashDevice, FlashError, FlashResult, Issue, SimTime, Token};

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

    /// Goes on in the region of the checkpoint that was found; `used` is the highest generation on flash.
    pub fn resume(&mut self, current: Region, used: u64) {
        self.rotor = current.blocks.last().map_or(0, |block| block + 1);
        self.current = current;
        self.next_generation = used + 1;
    }

    /// Whether a block is one of the pool that failed.
    pub fn has_failed(&self, block: BlockId) -> bool {
        self.pool.iter().zip(&self.dead).any(|(own, dead)| *own == block && *dead)
    }

    /// A block of the pool failed before the start: nothing more is written to it. What it holds is read on.
    pub fn remember_failed(&mut self, block: BlockId) {
        assert_eq!(self.pool.len(), self.dead.len(), "the journal's own blocks when {block:?} had failed");
        if let Some(place) = self.pool.iter().position(|own| *own == block) {
            self.dead[place] = true;
        }
    }

    /// Notes that pages `first..end` were dropped. Shares a sequence number with a drop just before it.
    pub fn note_drop(&mut self, first: u32, end: u32, next_seq: &mut u64) {
        assert!(first < end, "pages {first} to {end} are dropped as {next_seq}");
        let mut own_seq = *next_seq;
        if let Some(Record::Drop { first: last_first, count, seq }) = self.records.last_mut()
            && *seq + SEQ_STEP == *next_seq
        {
            let last_end = *last_first + *count;
            if first <= last_end && *last_first <= end {
                let (low, high) = (first.min(*last_first), end.max(last_end));
                (*last_first, *count) = (low, high - low);
                return;
            }
            own_seq = *seq;
        }
        self.records.push(Record::Drop { first, count: end - first, seq: own_seq });
        *next_seq = own_seq + SEQ_STEP;
    }

    /// Blocks of a region, as long as so many are good.
    fn region_blocks(&self) -> usize {
        let alive = self.dead.iter().filter(|dead| !**dead).count();
        (self.layout.region_blocks as usize).min(alive / 2)
    }

    pub fn region(&mut self, place: Place) -> &mut Region {
        match (&mut self.draft, place) {
            (Some(draft), Place::Draft) => &mut draft.region,
            _ => &mut self.current,
        }
    }
}

impl<D: FlashDevice> Journal<D> {
    /// Pages that the current region can still take.
    pub(super) fn room(&self) -> u64 {
        let meta = &self.meta;
        let pages_per_block = self.device.geometry().pages_per_block;
        let last = meta.current.blocks.last().filter(|block| !meta.dead[**block]);
        let rest = last.map_or(0, |block| pages_per_block - self.device.write_pointer(meta.pool[*block]));
        let more = meta.region_blocks().saturating_sub(meta.current.blocks.len());
        more as u64 * u64::from(pages_per_block) + u64::from(rest)
    }

    /// A block of the pool that holds nothing needed, erased.
    fn take_block(&mut self, at: SimTime) -> FlashResult<usize> {
        let Self { meta, device, .. } = self;
        for offset in 0..meta.pool.len() {
            let index = (meta.rotor + offset) % meta.pool.len();
            let is_used = meta.current.blocks.contains(&index)
                || meta.draft.as_ref().is_some_and(|draft| draft.region.blocks.contains(&index));
            if is_used || meta.dead[index] {
                continue;
            }
            let block = meta.pool[index];
            if device.is_bad(block) {
                meta.dead[index] = true;
                continue;
            }
            if device.write_pointer(block) > 0 {
                match device.erase(block, Issue::new(at, Cause::Meta).after(meta.chain)) {
                    Ok(erased) => meta.chain = device.join(meta.chain, erased),
                    Err(FlashError::EraseFailed { .. } | FlashError::WornOut { .. }) => {
                        meta.dead[index] = true;
                        continue;
                    }
                    Err(error) => return Err(error),
                }
            }
            let written = device.write_pointer(block);
            assert_eq!(written, 0, "pages of the journal's {block:?}, which was erased");
            meta.rotor = index + 1;
            return Ok(index);
        }
        Err(NO_BLOCK)
    }

    /// As [`Self::put`], twice, so that no single page holds anything that no other tells.
    pub(super) fn put_twice(
        &mut self,
        place: Place,
        what: (Kind, u32),
        after: Token,
        at: SimTime,
    ) -> FlashResult<()> {
        self.put(place, what, after, at)?;
        self.put(place, what, Token::NONE, at)
    }

    /// Programs the payload that waits as the next page of a region, after its last page and `after`.
    pub(super) fn put(
        &mut self,
        place: Place,
        (kind, part): (Kind, u32),
        after: Token,
        at: SimTime,
    ) -> FlashResult<()> {
        let geometry = *self.device.geometry();
        let (len, room) = (self.meta.payload.len(), self.meta.layout.payload);
        assert!(len <= room, "{len} bytes of {kind:?} {part} go to a page of {room}");
        self.meta.chain = self.device.join(self.meta.chain, after);
        loop {
            let region = self.meta.region(place);
            let (generation, index, last) = (region.generation, region.index, region.blocks.last().copied());
            let last = last.filter(|block| !self.meta.dead[*block]);
            let next = last.map(|block| (block, self.device.write_pointer(self.meta.pool[block])));
            let (block, next) = if let Some(place) = next.filter(|(_, next)| *next < geometry.pages_per_block)
            {
                place
            } else {
                let block = self.take_block(at)?;
                self.meta.region(place).blocks.push(block);
                (block, 0)
            };
            let meta = &mut self.meta;
            let head = PageHead { kind, generation, index, part, seq: self.seq };
            encode(&head, &meta.payload, &mut meta.page);
            let page = geometry.page(meta.pool[block], next);
            let issue = Issue::new(at, Cause::Meta).after(meta.chain);
            match self.device.program(page, head.oob(), geometry.page_bytes, Some(&meta.page), issue) {
                Ok(done) => {
                    meta.chain = done;
                    meta.region(place).index += 1;
                    return Ok(());
                }
                Err(FlashError::ProgramFailed { .. } | FlashError::BadBlock { .. }) => {
                    meta.dead[block] = true;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
