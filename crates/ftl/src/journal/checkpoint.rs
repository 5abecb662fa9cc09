//! Checkpoints, written page by page among the programs of the layer, or without pause.

use super::draft::{Draft, Region};
use super::error::Sabotage;
use super::format::Kind;
use super::held;
use super::pool::Place;
use super::shape::{Header, Table};
use super::{Journal, RETIRED, SEQ_STEP};
use nandscape_core::{Barrier, BlockId, FlashDevice, FlashResult, SimTime, Token};

impl<D: FlashDevice> Journal<D> {
    /// After a program: the next page of the checkpoint under way, or the beginning of one.
    #[cold]
    #[inline(never)]
    pub(super) fn tick(&mut self, at: SimTime) {
        assert!(self.programs >= self.due, "{} programs, where {} were due", self.programs, self.due);
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
        let (begun, programs) = (self.meta.begun_at, self.programs);
        assert!(begun <= programs, "a checkpoint began after {begun} programs, of {programs}");
        let next = match &self.meta.draft {
            Some(draft) => self.programs + draft.stride,
            None => self.meta.begun_at + self.meta.interval,
        };
        self.due = next.max(self.programs + 1);
    }

    fn begin_in_steps(&mut self, at: SimTime) -> FlashResult<()> {
        let before = self.meta.current.generation;
        self.write_records(at)?;
        if self.meta.current.generation == before {
            self.begin();
        }
        Ok(())
    }

    /// Begins a checkpoint. Its map holds everything so far, so unwritten records can be dropped.
    fn begin(&mut self) {
        // Drops from now on are told from those before.
        self.seq += SEQ_STEP;
        let geometry = *self.device.geometry();
        let layout = self.meta.layout;
        let mut table = Table::new(&geometry, layout.has_bits);
        for block in (0..geometry.blocks()).map(BlockId) {
            let forgets = self.options.sabotage == Sabotage::ForgetFailed;
            let is_retired = self.flags[block.index()] & RETIRED != 0
                || (self.is_reserved(block) && self.meta.has_failed(block) && !forgets);
            let device = &self.device;
            let doubtful = self.doubtful.iter().filter(|page| geometry.block_of(**page) == block);
            let first_doubtful = doubtful.map(|page| geometry.page_in_block(*page)).min();
            // Where order is free the bits say it page by page. What was programmed before a doubtful page is
            // as certain as ever, and must not be taken for new: records of drops before the
            // checkpoint are gone.
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
        let current = self.meta.current.generation;
        assert!(current < generation, "checkpoint {generation} is begun after {current}");
        self.meta.next_generation += 1;
        let slices = self.newest.end.div_ceil(layout.slice) as usize;
        let parts = header.len() + table.as_bytes().len();
        let held = geometry.pages().div_ceil(held::pages_of(layout.payload)) as usize;
        let pages = (parts.div_ceil(layout.payload) + held + slices + 3) as u64;
        self.meta.begun_at = self.programs;
        self.meta.draft = Some(Draft {
            region: Region { generation, ..Region::default() },
            header,
            table,
            next: (Kind::Header, 0),
            slices: 0,
            start_seq: self.seq,
            repeats: Vec::new(),
            stride: (self.meta.interval / 8 / pages).max(1),
        });
    }

    /// Writes a whole checkpoint without pause, or the rest of the one under way.
    pub(super) fn checkpoint_now(&mut self, at: SimTime) -> FlashResult<()> {
        let layout = self.meta.layout;
        let most = (layout.record_pages as usize / 4).max(1) * layout.records();
        let repeats = self.meta.draft.as_ref().map(|draft| draft.repeats.len() + self.meta.records.len());
        let mut replaced = Vec::new();
        if repeats.is_none_or(|repeats| repeats > most) {
            replaced = std::mem::take(&mut self.meta.records);
            self.begin();
        }
        loop {
            match self.step(at) {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) => {
                    // Only a complete checkpoint takes the place of records; no flush may pass over them.
                    replaced.append(&mut self.meta.records);
                    self.meta.records = replaced;
                    return Err(error);
                }
            }
        }
        assert!(self.meta.draft.is_none(), "a checkpoint is complete, and under way: {:?}", self.meta.draft);
        self.set_due();
        Ok(())
    }

    /// Writes the next page of the checkpoint under way, or completes it; whether it is complete.
    fn step(&mut self, at: SimTime) -> FlashResult<bool> {
        let meta = &mut self.meta;
        let Some(draft) = &mut meta.draft else { return Ok(true) };
        let payload = meta.layout.payload;
        let (kind, mut part) = draft.next;
        let first = part as usize * payload;
        meta.payload.clear();
        let (has_more, following) = match kind {
            Kind::Header | Kind::Table => {
                let is_header = kind == Kind::Header;
                let bytes = if is_header { &draft.header } else { draft.table.as_bytes() };
                let end = bytes.len().min(first + payload);
                meta.payload.extend_from_slice(&bytes[first..end]);
                (end < bytes.len(), if is_header { Kind::Table } else { Kind::Held })
            }
            Kind::Held => {
                held::write(&self.newest, part, draft.start_seq, payload, &mut meta.payload);
                let pages = self.device.geometry().pages();
                ((part + 1) * held::pages_of(payload) < pages, Kind::Map)
            }
            _ => {
                let size = meta.layout.slice;
                let slices = self.newest.end.div_ceil(size);
                let used =
                    |slice: &u32| self.newest.slice(slice * size, size).iter().any(|entry| *entry != 0);
                let Some(slice) = (part..slices).find(used) else {
                    self.complete(at)?;
                    return Ok(true);
                };
                part = slice;
                draft.slices += 1;
                let entries = self.newest.slice(slice * size, size);
                meta.payload.extend(entries.iter().flat_map(|entry| entry.to_le_bytes()));
                (true, Kind::Map)
            }
        };
        assert_ne!(kind, Kind::Records, "the kind of part {part}, which a checkpoint begins with");
        draft.next = if has_more { (kind, part + 1) } else { (following, 0) };
        let what = (kind, part);
        if matches!(kind, Kind::Header | Kind::Held) {
            self.put_twice(Place::Draft, what, Token::NONE, at)?;
        } else {
            self.put(Place::Draft, what, Token::NONE, at)?;
        }
        Ok(false)
    }

    /// Completes the checkpoint under way. If it cannot, records that only it would have held wait again.
    fn complete(&mut self, at: SimTime) -> FlashResult<()> {
        let waiting = self.meta.records.clone();
        self.write_end(at).inspect_err(|_| self.meta.records = waiting)
    }

    /// Writes the records since the checkpoint began, and its last page.
    fn write_end(&mut self, at: SimTime) -> FlashResult<()> {
        let meta = &mut self.meta;
        let Some(draft) = &mut meta.draft else { return Ok(()) };
        let (current, next) = (meta.current.generation, draft.region.generation);
        assert!(current < next, "checkpoint {next} takes the place of {current}");
        let mut records = std::mem::take(&mut draft.repeats);
        if self.options.sabotage == Sabotage::ForgetRepeats {
            records.clear();
        }
        records.append(&mut meta.records);
        meta.records = records;
        while !self.meta.records.is_empty() {
            self.write_record_page(Place::Draft, at)?;
        }
        let mut after = Token::NONE;
        if self.options.sabotage != Sabotage::EndWithoutWait {
            let durable = self.device.barrier(Barrier::Durable, at)?;
            let programmed = self.device.join(durable, self.programmed);
            after = self.device.join(programmed, self.erased);
        }
        let meta = &mut self.meta;
        meta.payload.clear();
        let Some(draft) = &meta.draft else { return Ok(()) };
        for count in [draft.slices, draft.region.parts] {
            meta.payload.extend_from_slice(&count.to_le_bytes());
        }
        self.put_twice(Place::Draft, (Kind::End, 0), after, at)?;
        // Where even the journal's own pages are buffered, a chain of answers is no chain of programs.
        let durable = self.device.barrier(Barrier::Durable, at)?;
        let meta = &mut self.meta;
        meta.chain = self.device.join(meta.chain, durable);
        meta.records_done = meta.chain;
        if let Some(draft) = meta.draft.take() {
            meta.current = draft.region;
        }
        Ok(())
    }
}
