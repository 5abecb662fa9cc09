//! Writing the metadata log.

use super::body::{Body, Done, Fault};
use super::metadata::{self, FIRST, LAST, Record, SNAPSHOT};
use super::sabotage::Sabotage;
use super::table::ZoneTable;
use super::tag::{ZoneOob, ZoneTag};
use nandscape_core::zone::ZoneState;
use nandscape_core::{BlockId, Cause, FlashDevice, FlashError, Issue, Lpn, Ppn, SimTime, Token};

impl<O: ZoneOob, D: FlashDevice<O>> Body<D, O> {
    /// Logs records of zones; completes when they are on flash. [`Log::done`] is what must come before what
    /// they allow. A device whose controller loses nothing programs them by the page.
    pub fn log(&mut self, records: &[Record], table: &ZoneTable, at: SimTime) -> Done {
        if self.rules.is_volatile {
            return self.log_now(records, table, at);
        }
        let mut pending = std::mem::take(&mut self.log.pending);
        pending.extend_from_slice(records);
        let len: usize = pending.iter().map(Record::len).sum();
        let mut done = Token::NONE;
        if len >= self.page_bytes as usize / 2 {
            done = self.log_now(&pending, table, at)?;
            pending.clear();
        }
        self.log.pending = pending;
        Ok(done)
    }

    fn log_now(&mut self, records: &[Record], table: &ZoneTable, at: SimTime) -> Done {
        let logged = self.try_to_log(records, table, at);
        if logged.is_err() {
            // Held pages count as logged since their records were made.
            for zone in self.holding() {
                self.held_mut(zone).iter_mut().for_each(|(_, page)| page.is_dirty = true);
            }
        }
        logged
    }

    fn try_to_log(&mut self, records: &[Record], table: &ZoneTable, at: SimTime) -> Done {
        if self.log.is_snapshot_due(self.device.geometry().pages_per_block) {
            // With what the records say, since the table says it by now.
            self.snapshot(table, at)?;
        }
        let retired = &self.retired[self.retired_logged..];
        let retired = retired.iter().map(|block| Record::Retired { block: block.0 });
        let records: Vec<Record> = retired.chain(records.iter().cloned()).collect();
        self.retired_logged = self.retired.len();
        let mut done = Token::NONE;
        for page in metadata::pages_of(&records, self.page_bytes) {
            done = self.log_page(0, page, at)?;
        }
        self.logged(done, at)
    }

    /// What comes next comes after a page of the log and all before it.
    fn logged(&mut self, done: Token, at: SimTime) -> Done {
        if !self.rules.is_volatile || self.sabotage == Sabotage::RecordWithoutBarrier {
            return Ok(done);
        }
        self.log.done = self.ordered(done, at)?;
        Ok(self.log.done)
    }

    fn log_page(&mut self, flags: u32, records: &[Record], at: SimTime) -> Done {
        let pages_per_block = self.device.geometry().pages_per_block;
        let data = self.stores_data.then(|| metadata::encode_page(flags, records, self.page_bytes));
        loop {
            let block = match self.log.blocks.last() {
                Some(block) if self.log.used < pages_per_block => *block,
                _ => self.log_block(at)?,
            };
            let page = Ppn(block.0 * pages_per_block + self.log.used);
            let tag = ZoneTag { page: Lpn::META, copied: 0, seq: self.log.seq };
            let issue = Issue { held: self.page_bytes, ..Issue::new(at, Cause::Meta).after(self.log.done) };
            match self.device.program(page, O::of(tag), 0, data.as_deref(), issue) {
                Ok(done) => {
                    self.log.used += 1;
                    self.log.seq += 1;
                    self.log.pages += 1;
                    if self.rules.is_volatile {
                        self.log.done = done;
                    }
                    return Ok(done);
                }
                Err(FlashError::ProgramFailed { .. }) => {
                    self.log.failed.push(block);
                    self.log.used = pages_per_block;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A fresh block for the log, on another die than the one before.
    fn log_block(&mut self, at: SimTime) -> Done<BlockId> {
        let geometry = *self.device.geometry();
        let next = self.log.blocks.last().map_or(0, |block| geometry.unit_of(*block).0 + 1);
        let unit = self.pool.most_spare(next % geometry.units()).ok_or(Fault::NoBlock)?;
        let block = self.take_block(unit, Cause::Meta, at)?;
        self.log.blocks.push(block);
        self.log.used = 0;
        Ok(block)
    }

    /// Begins a new run of the log with everything that is known, and frees the blocks of the run before.
    pub fn snapshot(&mut self, table: &ZoneTable, at: SimTime) -> Done {
        let blocks = std::mem::take(&mut self.log.blocks);
        self.log.old.extend(blocks);
        (self.log.pages, self.log.used) = (0, 0);
        let records = self.all_records(table);
        let mut pages = metadata::pages_of(&records, self.page_bytes);
        if pages.is_empty() {
            pages.push(&[]);
        }
        // Held pages that were programmed meanwhile are in the run before alone.
        if self.sabotage != Sabotage::SnapshotWithoutWait {
            self.log_after_programs(at)?;
        }
        let mut done = Token::NONE;
        for (number, page) in pages.iter().enumerate() {
            let first = if number == 0 { FIRST } else { 0 };
            let last = if number + 1 == pages.len() { LAST } else { 0 };
            done = self.log_page(SNAPSHOT | first | last, page, at)?;
        }
        done = self.logged(done, at)?;
        self.log.snapshot_pages = self.log.pages;
        for block in std::mem::take(&mut self.log.old) {
            if self.log.failed.contains(&block) {
                self.give_up(block);
            } else {
                let unit = self.device.geometry().unit_of(block).0;
                self.pool.give(unit, block, true);
            }
        }
        let blocks = &self.log.blocks;
        self.log.failed.retain(|block| blocks.contains(block));
        Ok(done)
    }

    /// What is logged next comes after all pages of zones that were programmed so far.
    fn log_after_programs(&mut self, at: SimTime) -> Done<()> {
        if self.rules.is_volatile {
            let programs = self.ordered(self.programs, at)?;
            self.log.done = self.device.join(self.log.done, programs);
        }
        Ok(())
    }

    fn all_records(&mut self, table: &ZoneTable) -> Vec<Record> {
        let retired = self.retired.iter().map(|block| Record::Retired { block: block.0 });
        let mut records: Vec<Record> = retired.collect();
        self.retired_logged = self.retired.len();
        for zone in 0..self.zones() {
            let seq = self.log.reset_seqs.get(zone as usize).copied().unwrap_or(0);
            if seq > 0 {
                records.push(Record::Reset { zone, seq });
            }
            if self.slots(zone) < self.striping.blocks_per_die {
                records.push(Record::Shrunk { zone, slots: self.slots(zone) });
            }
            if let Some(bytes) = table.extension(zone) {
                records.push(Record::Extension { zone, bytes: bytes.into() });
            }
            match table.state(zone) {
                ZoneState::Full => {
                    let written = table.written(zone).max(self.host_blocks(zone));
                    records.push(Record::Finished { zone, written });
                }
                ZoneState::ReadOnly | ZoneState::Offline => {
                    let is_offline = table.state(zone) == ZoneState::Offline;
                    records.push(Record::Finished { zone, written: table.written(zone) });
                    records.push(Record::Failed { zone, is_offline });
                }
                _ => {}
            }
        }
        for zone in self.holding() {
            self.held_records(zone, false, &mut records);
        }
        records
    }

    /// The records of what a zone holds, or of what of it is not logged yet; it counts as logged then.
    fn held_records(&mut self, zone: u32, dirty_only: bool, out: &mut Vec<Record>) {
        let (programmed, block, page_bytes) = (self.programmed(zone), self.block_bytes, self.page_bytes);
        for (ahead, page) in self.held_mut(zone).iter_mut() {
            if page.present != 0 && (page.is_dirty || !dirty_only) {
                metadata::held_records(zone, programmed + ahead, page, block, page_bytes, out);
                page.is_dirty = false;
            }
        }
    }

    /// Logs what zones hold and the log does not have yet.
    pub fn log_held(&mut self, table: &ZoneTable, at: SimTime) -> Done {
        let mut records = Vec::new();
        for zone in self.holding() {
            self.held_records(zone, true, &mut records);
        }
        if records.is_empty() {
            return Ok(Token::NONE);
        }
        // Data that is held lies behind that of the programs.
        self.log_after_programs(at)?;
        self.log(&records, table, at)
    }

    /// Notes that a zone was reset; gives the record. What it held is gone at once, lest a snapshot has it
    /// behind the number of the reset.
    pub fn note_reset(&mut self, zone: u32) -> Record {
        self.drop_held(zone);
        self.next_seq += 1;
        self.log.reset_seqs.resize(self.zones() as usize, 0);
        self.log.reset_seqs[zone as usize] = self.next_seq;
        Record::Reset { zone, seq: self.next_seq }
    }
}
