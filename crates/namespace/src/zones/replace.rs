//! Blocks of zones that take the places of others.

use super::body::{Body, Done};
use super::sabotage::Sabotage;
use super::stripes::Spot;
use super::tag::{ZoneOob, ZoneTag};
use nandscape_core::{BlockId, Cause, FlashDevice, FlashError, Issue, Ppn, SimTime};

impl<O: ZoneOob, D: FlashDevice<O>> Body<D, O> {
    /// The program of a page failed: what its block holds moves to another one, where the page follows.
    #[cold]
    pub(super) fn program_elsewhere(
        &mut self,
        zone: u32,
        index: u32,
        (transfer, data): (u32, Option<&[u8]>),
        issue: Issue,
    ) -> Done {
        let spot = self.striping.spot(index);
        loop {
            let failed = self.block_at(zone, spot);
            let moved = self.replace(zone, spot, issue.at)?;
            self.give_up(failed);
            let page = Ppn(self.block_at(zone, spot).0 * self.pages_per_block + spot.page);
            let tag =
                ZoneTag { page: self.page_number(zone, index), copied: spot.page as u16, seq: self.next_seq };
            let after = self.device.join(issue.after, moved);
            match self.device.program(page, O::of(tag), transfer, data, issue.after(after)) {
                Ok(done) => return Ok(done),
                Err(FlashError::ProgramFailed { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Moves the pages of a block before that of `spot` to a block that takes its place.
    pub fn replace(&mut self, zone: u32, spot: Spot, at: SimTime) -> Done {
        let old = self.block_at(zone, spot);
        let unit = self.striping.unit(zone, spot.die);
        let mut data = self.stores_data.then(|| vec![0; self.page_bytes as usize]);
        'block: loop {
            let block = self.take_block(unit, Cause::Gc, at)?;
            self.next_seq += 1;
            let mut done = self.log.done;
            for page in 0..spot.page {
                let from = Ppn(old.0 * self.pages_per_block + page);
                let read = self.device.read(
                    from,
                    self.page_bytes,
                    data.as_deref_mut(),
                    Issue::new(at, Cause::Gc),
                )?;
                done = self.device.join(done, read.done);
                let index = self.striping.index(Spot { page, ..spot });
                let tag = ZoneTag {
                    page: self.page_number(zone, index),
                    copied: spot.page as u16,
                    seq: self.next_seq,
                };
                let to = Ppn(block.0 * self.pages_per_block + page);
                let issue = Issue::new(at, Cause::Gc).after(done);
                match self.device.program(to, O::of(tag), self.page_bytes, data.as_deref(), issue) {
                    Ok(programmed) => done = programmed,
                    Err(FlashError::ProgramFailed { .. }) => {
                        self.give_up(block);
                        continue 'block;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            self.bind(zone, spot, block);
            if self.rules.is_volatile {
                // The old block is not erased before.
                done = self.ordered(done, at)?;
                self.log.done = self.device.join(self.log.done, done);
            }
            return Ok(done);
        }
    }

    /// Takes a block in which a program failed out of use. It stays readable until the next start, since the
    /// copies of what it holds may not be on flash yet.
    pub fn give_up(&mut self, block: BlockId) {
        if self.rules.is_volatile && self.sabotage != Sabotage::MarkAtOnce {
            self.retired.push(block);
        } else {
            self.device.mark_bad(block);
        }
    }
}
