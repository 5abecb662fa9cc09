//! What happened since a checkpoint, applied to it.

use super::error::{JournalError, Result, Sabotage};
use super::format::Kind;
use super::load::{Checkpoint, Loaded};
use super::pool::Place;
use super::records::Record;
use super::scan::Scan;
use super::{Journal, RETIRED, SEQ_STEP};
use nandscape_core::recovery::RecoverySource;
use nandscape_core::{BlockId, FlashDevice, FlashError, FlashResult, SimTime, Token};

impl<D: FlashDevice> Journal<D> {
    /// Takes over what was loaded, and what was written since.
    pub(super) fn take_over(&mut self, loaded: Loaded) -> Result<()> {
        let Loaded { checkpoint, region, used, records, seq, single, is_thin, .. } = loaded;
        let Checkpoint { generation, start_seq, table, missing, .. } = checkpoint;
        self.report.checkpoint = generation;
        self.report.map_entries = checkpoint.map_entries;
        self.report.drop_records = loaded.drop_records;
        self.report.source = loaded.source;
        self.report.damage = loaded.damage;
        self.meta.resume(region, used);
        self.newest = checkpoint.newest;
        for block in (0..self.device.geometry().blocks()).map(BlockId) {
            let record = table.get(block);
            // A device that gives up a block by itself does so for blocks in use; others were bad when it was
            // made.
            let was_used = record.erase_count > 0 || record.is_programmed(0);
            let went_bad = self.device.is_bad(block)
                && (was_used || self.device.erase_count(block) > 0 || self.device.write_pointer(block) > 0);
            match (self.is_reserved(block), record.is_retired) {
                (true, true) => self.meta.remember_failed(block),
                (false, is_retired) if is_retired || went_bad => self.flags[block.index()] |= RETIRED,
                _ => {}
            }
        }
        let mut scan = Scan::new(start_seq, self.options.sabotage);
        for record in &records {
            if let Record::Retire { block } = *record {
                let last = self.flags.len() as u32 - 1;
                let flags = self.flags.get_mut(block as usize);
                *flags.ok_or_else(|| JournalError::foreign("a retired block", block, last))? |= RETIRED;
                self.newest.leave_block(block);
            }
            scan.add_record(record);
        }
        let unknown = |error| match error {
            FlashError::Damaged { page } => JournalError::Unknown { generation, page: page.0 },
            error => error.into(),
        };
        if self.options.sabotage != Sabotage::IgnoreScan {
            scan.read_blocks(&mut self.device, &table, &self.flags, &mut self.report).map_err(unknown)?;
        }
        scan.read_places(&mut self.device, &self.flags, &mut self.report).map_err(unknown)?;
        let last = scan.apply(&mut self.device, &mut self.newest)?;
        self.seq = (seq.max(start_seq).max(last) | (SEQ_STEP - 1)) + 1;
        assert!(self.seq > start_seq, "number {} of the next write is not after {start_seq}", self.seq);
        self.report.live_pages = self.newest.live;
        let is_newest = self.report.source == RecoverySource::Checkpoint;
        self.report.was_clean = is_newest && self.report.scanned_blocks == 0 && records.is_empty();
        self.is_touched = !self.report.was_clean;
        // The interval counts from the checkpoint, however often power is lost.
        self.due = self.meta.interval.saturating_sub(self.report.scanned_pages).max(1);
        for block in (0..self.device.geometry().blocks()).map(BlockId) {
            if self.flags[block.index()] & RETIRED != 0 && !self.device.is_bad(block) {
                self.device.mark_bad(block);
            }
        }
        // From here on the map is right; if the journal cannot be written, it can be read at least.
        if !missing.is_empty() {
            let count = missing.len();
            let gone = || format!("{count} pages of the map are gone, and reading them is an error");
            self.report.damage.get_or_insert_with(gone);
            self.report.was_clean = false;
            self.is_touched = true;
        }
        let marked = self.mark_missing(&missing, &table);
        if let Err(error) =
            marked.and_then(|()| self.mend(is_newest && !is_thin && missing.is_empty(), single))
        {
            self.stop(error);
        }
        Ok(())
    }

    /// Writes down again what no second page tells any more.
    fn mend(&mut self, is_whole: bool, single: Vec<(u32, Vec<u8>)>) -> FlashResult<()> {
        if !is_whole || (self.room() as usize) < single.len() {
            return self.checkpoint_now(SimTime::ZERO);
        }
        for (part, payload) in single {
            let what = (Kind::Records, part);
            assert!(part > 0, "a page of {} bytes of records without a number", payload.len());
            self.meta.payload.clear();
            self.meta.payload.extend_from_slice(&payload);
            self.put(Place::Current, what, Token::NONE, SimTime::ZERO)?;
        }
        self.meta.records_done = self.meta.chain;
        Ok(())
    }
}
