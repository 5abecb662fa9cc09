//! Records of what happened, as they are written.

use super::Journal;
use super::error::Sabotage;
use super::format::Kind;
use super::pool::Place;
use super::records::Record;
use nandscape_core::{Barrier, FlashDevice, FlashResult, SimTime, Token};

impl<D: FlashDevice> Journal<D> {
    /// Writes down the records that wait, if there are any.
    pub(super) fn write_records(&mut self, at: SimTime) -> FlashResult<()> {
        while !self.meta.records.is_empty() {
            if self.room() < 2 {
                return self.checkpoint_now(at);
            }
            self.write_record_page(Place::Current, at)?;
        }
        Ok(())
    }

    /// Writes the first page of the records that wait, twice.
    pub(super) fn write_record_page(&mut self, place: Place, at: SimTime) -> FlashResult<()> {
        let meta = &mut self.meta;
        let count = meta.records.len().min(meta.layout.records());
        assert!(count > 0, "a page without records goes to {place:?}");
        meta.payload.clear();
        let mut after = Token::NONE;
        for record in &meta.records[..count] {
            record.write(&mut meta.payload);
            if matches!(record, Record::Retire { .. }) {
                // A retired block is not read any more, so what was copied from it must be safe.
                let durable = self.device.barrier(Barrier::Order, at)?;
                after = self.device.join(durable, self.programmed);
            }
        }
        let what = (Kind::Records, meta.region(place).parts + 1);
        if self.options.sabotage == Sabotage::RecordsOnce {
            self.put(place, what, after, at)?;
        } else {
            self.put_twice(place, what, after, at)?;
        }
        let meta = &mut self.meta;
        meta.region(place).parts += 1;
        let repeats = meta.draft.as_mut().filter(|_| place == Place::Current);
        let written = meta.records.drain(..count);
        if let Some(draft) = repeats {
            draft.repeats.extend(written);
        } else {
            drop(written);
        }
        meta.records_done = meta.chain;
        if place == Place::Current
            && self.meta.draft.is_none()
            && self.room() < u64::from(self.meta.layout.record_pages / 2)
        {
            // Soon full: the next checkpoint begins with the next program, in steps.
            self.due = self.programs;
        }
        Ok(())
    }
}
