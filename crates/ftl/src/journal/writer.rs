//! The journal's own pages: records of what happened, and checkpoints written step by step.

use super::format::{Header, Kind, PageHead, Record, Table, encode};
use super::layout::Layout;
use super::{Journal, RETIRED, SEQ_STEP, Sabotage};
use nandscape_core::{BlockId, Cause, FlashDevice, FlashError, Issue, SimTime, Token};

const NO_BLOCK: FlashError =
    FlashError::ReadOnly { reason: "too many of the journal's own blocks have failed" };

/// Where the pages of one generation are.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    pub generation: u64,
    /// Indices into the pool, in the order in which they were begun.
    pub blocks: Vec<usize>,
    /// Number of the next page.
    pub index: u32,
}

/// A checkpoint under way.
#[derive(Debug)]
struct Draft {
    region: Region,
    header: Vec<u8>,
    table: Table,
    stage: Stage,
    /// Records since it began that are already in the region before.
    repeats: Vec<Record>,
    /// Programs between two of its pages.
    stride: u64,
}

/// The next page of a checkpoint.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// A part of the header.
    Header(u32),
    /// A part of the table.
    Table(u32),
    /// The first slice from here that is not empty.
    Map(u32),
}

/// Which region a page goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Current,
    Draft,
}

/// The journal's own blocks and what is to be written to them.
#[derive(Debug)]
pub(super) struct Meta {
    layout: Layout,
    pool: Vec<BlockId>,
    /// Blocks of the pool that failed.
    dead: Vec<bool>,
    /// Where the search for a free block of the pool begins.
    rotor: usize,
    /// The last complete checkpoint and the records since.
    current: Region,
    draft: Option<Draft>,
    next_generation: u64,
    /// Not yet written.
    records: Vec<Record>,
    /// The journal's last page so far; every next one is programmed after it.
    chain: Token,
    /// Completes when every record written so far is durable.
    pub records_done: Token,
    interval: u64,
    /// Programs of the layer when the last checkpoint began.
    begun_at: u64,
    page: Vec<u8>,
    payload: Vec<u8>,
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

    /// Goes on in the region of a checkpoint that was found; `used` is the highest generation that the flash has pages of.
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

    /// Logical pages from `first` to before `end` were dropped. Takes a sequence number, unless nothing took one since the last drop.
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
    fn room<D: FlashDevice>(&self, device: &D) -> u64 {
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

    /// Programs the next page of a region with the payload that waits, after everything before it and after `after`.
    fn put<D: FlashDevice>(
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

    fn region(&mut self, place: Place) -> &mut Region {
        match (&mut self.draft, place) {
            (Some(draft), Place::Draft) => &mut draft.region,
            _ => &mut self.current,
        }
    }
}

impl<D: FlashDevice> Journal<D> {
    /// Writes down the records that wait, if there are any.
    pub(super) fn write_records(&mut self, at: SimTime) -> Result<(), FlashError> {
        while self.meta.has_records() {
            if self.meta.room(&self.device) == 0 {
                return self.checkpoint_now(at);
            }
            self.write_record_page(Place::Current, at)?;
        }
        Ok(())
    }

    /// Writes the first page of the records that wait.
    fn write_record_page(&mut self, place: Place, at: SimTime) -> Result<(), FlashError> {
        let meta = &mut self.meta;
        let count = meta.records.len().min(meta.layout.records());
        meta.payload.clear();
        let mut after = Token::NONE;
        for record in &meta.records[..count] {
            record.write(&mut meta.payload);
            if matches!(record, Record::Retire { .. }) {
                // A retired block is not read any more, so what was copied from it must be safe.
                let durable = self.device.order(at)?;
                after = self.device.join(durable, self.programmed);
            }
        }
        meta.put(&mut self.device, place, (Kind::Records, 0), self.seq, after, at)?;
        let repeats = meta.draft.as_mut().filter(|_| place == Place::Current);
        let written = meta.records.drain(..count);
        if let Some(draft) = repeats {
            draft.repeats.extend(written);
        } else {
            drop(written);
        }
        meta.records_done = meta.chain;
        if place == Place::Current
            && meta.draft.is_none()
            && meta.room(&self.device) < u64::from(meta.layout.record_pages / 2)
        {
            // Soon full: the next checkpoint begins with the next program, in steps.
            self.due = self.programs;
        }
        Ok(())
    }

    /// After a program: the next page of the checkpoint under way, or the beginning of one.
    #[cold]
    #[inline(never)]
    pub(super) fn tick(&mut self, at: SimTime) {
        if self.stopped.is_some() {
            self.due = u64::MAX;
            return;
        }
        let result =
            if self.meta.draft.is_some() { self.step(at).map(|_| ()) } else { self.begin_in_steps(at) };
        match result {
            // The program that brought us here has succeeded; the next one will be refused.
            Err(error) => self.stop(error),
            Ok(()) => self.set_due(),
        }
    }

    fn set_due(&mut self) {
        let next = match &self.meta.draft {
            Some(draft) => self.programs + draft.stride,
            None => self.meta.begun_at + self.meta.interval,
        };
        self.due = next.max(self.programs + 1);
    }

    fn begin_in_steps(&mut self, at: SimTime) -> Result<(), FlashError> {
        let before = self.meta.current.generation;
        self.write_records(at)?;
        if self.meta.current.generation == before {
            self.begin();
        }
        Ok(())
    }

    /// Begins a checkpoint. Everything so far will be in its map, so records that are not written yet need not be.
    fn begin(&mut self) {
        // Drops from now on are told from those before.
        self.seq += SEQ_STEP;
        let geometry = *self.device.geometry();
        let layout = self.meta.layout;
        let mut table = Table::new(&geometry, layout.has_bits);
        for block in (0..geometry.blocks()).map(BlockId) {
            let is_retired = self.flags[block.index()] & RETIRED != 0
                || (self.is_reserved(block) && self.meta.has_failed(block));
            let device = &self.device;
            let doubtful = self.doubtful.iter().filter(|page| geometry.block_of(**page) == block);
            let first_doubtful = doubtful.map(|page| geometry.page_in_block(*page)).min();
            // Where order is free the bits say it page by page. What was programmed before a doubtful page is as certain as ever, and must not be
            // taken for new: records of drops before the checkpoint are gone.
            let known = match first_doubtful.filter(|_| !layout.has_bits) {
                Some(first) => first.min(device.write_pointer(block)),
                None => device.write_pointer(block),
            };
            table.push(device.erase_count(block), known, is_retired, |index| {
                let page = geometry.page(block, index);
                device.is_programmed(page) && !self.doubtful.contains(&page)
            });
        }
        let header = Header::new(&geometry, layout.has_bits, self.seq, &self.meta.pool);
        let header = header.to_bytes();
        let generation = self.meta.next_generation;
        self.meta.next_generation += 1;
        let slices = self.newest.end().div_ceil(layout.slice) as usize;
        let parts = header.len() + table.as_bytes().len();
        let pages = (parts.div_ceil(layout.payload) + slices + 3) as u64;
        self.meta.begun_at = self.programs;
        self.meta.draft = Some(Draft {
            region: Region { generation, ..Region::default() },
            header,
            table,
            stage: Stage::Header(0),
            repeats: Vec::new(),
            stride: (self.meta.interval / 8 / pages).max(1),
        });
    }

    /// Writes a whole checkpoint without pause, or the rest of the one under way.
    pub(super) fn checkpoint_now(&mut self, at: SimTime) -> Result<(), FlashError> {
        let layout = self.meta.layout;
        let most = layout.record_pages as usize / 2 * layout.records();
        let repeats = self.meta.draft.as_ref().map(|draft| draft.repeats.len() + self.meta.records.len());
        if repeats.is_none_or(|repeats| repeats > most) {
            self.meta.records.clear();
            self.begin();
        }
        while !self.step(at)? {}
        self.set_due();
        Ok(())
    }

    /// Writes the next page of the checkpoint under way; at the end all that completes it. Gives whether it is complete.
    fn step(&mut self, at: SimTime) -> Result<bool, FlashError> {
        let meta = &mut self.meta;
        let Some(draft) = &mut meta.draft else { return Ok(true) };
        let payload = meta.layout.payload;
        let chunk = |bytes: &[u8], part: u32, out: &mut Vec<u8>| {
            let first = part as usize * payload;
            let end = bytes.len().min(first + payload);
            out.clear();
            out.extend_from_slice(&bytes[first..end]);
            end < bytes.len()
        };
        let what = match draft.stage {
            Stage::Header(part) => {
                let has_more = chunk(&draft.header, part, &mut meta.payload);
                draft.stage = if has_more { Stage::Header(part + 1) } else { Stage::Table(0) };
                (Kind::Header, part)
            }
            Stage::Table(part) => {
                let has_more = chunk(draft.table.as_bytes(), part, &mut meta.payload);
                draft.stage = if has_more { Stage::Table(part + 1) } else { Stage::Map(0) };
                (Kind::Table, part)
            }
            Stage::Map(from) => {
                let size = meta.layout.slice;
                let slices = self.newest.end().div_ceil(size);
                let used =
                    |slice: &u32| self.newest.slice(slice * size, size).iter().any(|entry| *entry != 0);
                let Some(slice) = (from..slices).find(used) else {
                    self.complete(at)?;
                    return Ok(true);
                };
                draft.stage = Stage::Map(slice + 1);
                meta.payload.clear();
                let entries = self.newest.slice(slice * size, size);
                meta.payload.extend(entries.iter().flat_map(|entry| entry.to_le_bytes()));
                (Kind::Map, slice)
            }
        };
        meta.put(&mut self.device, Place::Draft, what, self.seq, Token::NONE, at)?;
        Ok(false)
    }

    /// The records since the checkpoint began, and its last page.
    fn complete(&mut self, at: SimTime) -> Result<(), FlashError> {
        let meta = &mut self.meta;
        let Some(draft) = &mut meta.draft else { return Ok(()) };
        let mut records = std::mem::take(&mut draft.repeats);
        if self.options.sabotage == Sabotage::ForgetRepeats {
            records.clear();
        }
        records.append(&mut meta.records);
        meta.records = records;
        while self.meta.has_records() {
            self.write_record_page(Place::Draft, at)?;
        }
        let mut after = Token::NONE;
        if self.options.sabotage != Sabotage::EndWithoutWait {
            let durable = self.device.barrier(at)?;
            let programmed = self.device.join(durable, self.programmed);
            after = self.device.join(programmed, self.erased);
        }
        let meta = &mut self.meta;
        meta.payload.clear();
        meta.put(&mut self.device, Place::Draft, (Kind::End, 0), self.seq, after, at)?;
        // Where even the journal's own pages are buffered, a chain of answers is no chain of programs.
        let durable = self.device.barrier(at)?;
        meta.chain = self.device.join(meta.chain, durable);
        meta.records_done = meta.chain;
        if let Some(draft) = meta.draft.take() {
            meta.current = draft.region;
        }
        Ok(())
    }
}
