//! What a start makes of what the flash holds.
//!
//! The metadata log says what was reset, finished or failed and what was held; the first page of every block
//! says whose it is. A zone's pages count up to the first that is missing. A block of a zone that can still
//! be written, with pages behind that or with a torn one, is replaced by a copy of the pages that count, so
//! that writing goes on where the write pointer is.

use super::body::{Body, Fault};
use super::held::HeldPage;
use super::metadata::{self, FIRST, HeldPiece, LAST, Log, LogPage, Record, SNAPSHOT};
use super::pool::Pool;
use super::sabotage::Sabotage;
use super::stripes::Spot;
use super::table::{Restored, ZoneTable};
use super::tag::ZoneOob;
use nandscape_core::recovery::RecoverySource;
use nandscape_core::zone::ZoneState;
use nandscape_core::{
    BlockId, Cause, FlashDevice, FlashError, FlashResult, Geometry, Issue, Lpn, Ppn, RecoveryReport, SimTime,
};
use std::collections::{BTreeMap, BTreeSet};

/// Why zones cannot be made of what a device holds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ZoneStartError {
    #[error(transparent)]
    Flash(#[from] FlashError),
    /// Blocks of zones are there, and no whole snapshot of the metadata log.
    #[error("the metadata log of the zones cannot be read: {pages} pages of it, and no whole snapshot")]
    NoSnapshot { pages: usize },
    #[error("no block is left for the metadata log of the zones")]
    NoBlock,
    #[error("the layer of the conventional zones has {room} bytes, and they have {needed}")]
    NoRoom { room: u64, needed: u64 },
}

/// A block of a zone as it was found.
#[derive(Clone, Copy, Debug)]
struct Found {
    block: BlockId,
    seq: u64,
    /// Pages that can be read from the first on, and pages that are programmed.
    pages: u32,
    used: u32,
}

/// What the log says.
#[derive(Debug, Default)]
struct Said {
    resets: BTreeMap<u32, u64>,
    finished: BTreeMap<u32, u64>,
    extensions: BTreeMap<u32, Box<[u8]>>,
    failed: BTreeMap<u32, bool>,
    shrunk: BTreeMap<u32, u32>,
    held: BTreeMap<(u32, u32), (u128, Vec<u8>)>,
    retired: BTreeSet<u32>,
    /// Pieces of a page whose last one has not come.
    pieces: Vec<HeldPiece>,
}

impl Said {
    fn apply(&mut self, record: Record, page_bytes: u32) {
        match record {
            Record::Reset { zone, seq } => {
                // A snapshot repeats the number of a zone that was written since.
                if self.resets.insert(zone, seq) != Some(seq) {
                    self.finished.remove(&zone);
                    self.extensions.remove(&zone);
                    self.held.retain(|(held, _), _| *held != zone);
                }
            }
            Record::Finished { zone, written } => {
                self.finished.insert(zone, written);
            }
            Record::Extension { zone, bytes } => {
                self.extensions.insert(zone, bytes);
            }
            Record::Failed { zone, is_offline } => {
                self.failed.insert(zone, is_offline);
            }
            Record::Shrunk { zone, slots } => {
                self.shrunk.insert(zone, slots);
            }
            Record::Retired { block } => {
                self.retired.insert(block);
            }
            Record::Held(piece) => {
                let is_next = |before: &HeldPiece| (before.zone, before.page) == (piece.zone, piece.page);
                self.pieces.retain(is_next);
                let is_last = piece.is_last;
                self.pieces.push(piece);
                if is_last {
                    for piece in std::mem::take(&mut self.pieces) {
                        let entry = self.held.entry((piece.zone, piece.page)).or_default();
                        entry.0 |= piece.present;
                        entry.1.resize(page_bytes as usize, 0);
                        let range = piece.from as usize..(piece.from + piece.len) as usize;
                        if let (Some(kept), Some(bytes)) = (entry.1.get_mut(range), &piece.bytes) {
                            kept.copy_from_slice(bytes);
                        }
                    }
                }
            }
        }
    }
}

impl<O: ZoneOob, D: FlashDevice<O>> Body<D, O> {
    /// Makes the zones of what the flash holds; the pool is empty and nothing is bound. A device that was
    /// never written stays as it is.
    pub fn start(&mut self, table: &mut ZoneTable) -> Result<RecoveryReport, ZoneStartError> {
        let geometry = *self.device.geometry();
        let mut report = RecoveryReport::default();
        let mut pool = Pool::like(&self.pool);
        let mut found: BTreeMap<(u32, u32, u32), Vec<(Found, u16)>> = BTreeMap::new();
        let mut log_blocks = Vec::new();
        for block in (0..geometry.blocks()).map(BlockId) {
            let used = self.device.write_pointer(block);
            if self.device.is_bad(block) {
                continue;
            }
            let unit = geometry.unit_of(block).0;
            if used == 0 {
                pool.give(unit, block, false);
                continue;
            }
            report.scanned_blocks += 1;
            match self.read_tag(geometry.page(block, 0), &mut report)? {
                Some(tag) if tag.page == Lpn::META => log_blocks.push(block),
                Some(tag) => match self.owner(tag.page, unit) {
                    Some(place) => {
                        let pages = self.readable(&geometry, block, used, &mut report)?;
                        let one = Found { block, seq: tag.seq, pages, used };
                        found.entry(place).or_default().push((one, tag.copied));
                    }
                    None => pool.give(unit, block, true),
                },
                None => pool.give(unit, block, true),
            }
        }
        self.pool = pool;
        if found.is_empty() && log_blocks.is_empty() {
            return Ok(report);
        }
        let (said, seq, pages) = self.read_log(&geometry, &mut log_blocks, &mut report)?;
        if said.is_none() && !found.is_empty() {
            return Err(ZoneStartError::NoSnapshot { pages });
        }
        // Without zones the first snapshot of a new device was cut short.
        self.restart(table, said.unwrap_or_default(), found, log_blocks, seq, report)
    }

    fn restart(
        &mut self,
        table: &mut ZoneTable,
        said: Said,
        found: BTreeMap<(u32, u32, u32), Vec<(Found, u16)>>,
        log_blocks: Vec<BlockId>,
        seq: u64,
        mut report: RecoveryReport,
    ) -> Result<RecoveryReport, ZoneStartError> {
        self.log = Log::default();
        self.log.reset_seqs = vec![0; self.zones() as usize];
        for (zone, seq) in &said.resets {
            self.next_seq = self.next_seq.max(*seq);
            self.log.reset_seqs[*zone as usize] = *seq;
        }
        for (zone, slots) in &said.shrunk {
            self.shrink(*zone, *slots);
            if *slots > 0 {
                table.set_capacity(*zone, self.blocks_of(self.pages_of(*slots)));
            }
        }
        // What they held is elsewhere or void. The log has them until a start finds the mark.
        for block in said.retired.iter().copied().map(BlockId) {
            if !self.device.is_bad(block) {
                self.pool.drop(self.device.geometry().unit_of(block).0, block);
                self.device.mark_bad(block);
                self.retired.push(block);
            }
        }
        // Pages of each bound block, for what is programmed and what is to be replaced.
        let mut bound: BTreeMap<(u32, u32, u32), Found> = BTreeMap::new();
        for (place, mut candidates) in found {
            candidates.retain(|(one, _)| !said.retired.contains(&one.block.0));
            let reset = said.resets.get(&place.0).copied().unwrap_or(0);
            let is_whole = |(one, copied): &(Found, u16)| {
                let is_complete = one.pages >= u32::from(*copied);
                one.seq >= reset && (is_complete || self.sabotage == Sabotage::IncompleteCopies)
            };
            let best = candidates.iter().filter(|one| is_whole(one)).max_by_key(|(one, _)| one.seq);
            let best = best.map(|(one, _)| *one);
            for (one, _) in candidates {
                self.next_seq = self.next_seq.max(one.seq);
                if best.is_none_or(|best| best.block != one.block) {
                    self.discard(one.block)?;
                }
            }
            if let Some(best) = best {
                let (zone, die, slot) = place;
                self.bind(zone, Spot { die, slot, page: 0 }, best.block);
                bound.insert(place, best);
            }
        }
        self.next_seq += 1;
        for zone in 0..self.zones() {
            let mut pages = 0;
            while pages < self.zone_pages {
                let Spot { die, slot, page } = self.striping.spot(pages);
                if bound.get(&(zone, die, slot)).is_none_or(|one| one.pages <= page) {
                    break;
                }
                pages += 1;
            }
            let host = said.finished.get(&zone).map_or(pages, |written| pages.min(self.pages_for(*written)));
            if self.sabotage == Sabotage::LastPage {
                let ends = bound.iter().filter(|((of, ..), _)| *of == zone).map(|(&(_, die, slot), one)| {
                    self.striping.index(Spot { die, slot, page: one.pages - 1 }) + 1
                });
                pages = ends.max().unwrap_or(0);
            }
            self.set_programmed(zone, pages, host);
            report.live_pages += u64::from(pages);
        }
        let mut faults = Vec::new();
        for (&(zone, die, slot), one) in &bound {
            let is_over = said.finished.contains_key(&zone) || said.failed.contains_key(&zone);
            if is_over || self.programmed(zone) == self.zone_pages {
                continue;
            }
            let counts = (0..one.used)
                .take_while(|page| {
                    self.striping.index(Spot { die, slot, page: *page }) < self.programmed(zone)
                })
                .count() as u32;
            if counts == one.used {
                continue;
            }
            if counts == 0 {
                self.unbind(zone, Spot { die, slot, page: 0 })?;
                continue;
            }
            match self.replace(zone, Spot { die, slot, page: counts }, SimTime::ZERO) {
                Ok(_) => self.discard(one.block)?,
                Err(_) => faults.push(zone),
            }
        }
        self.restore(table, said, &faults);
        self.log.adopt(log_blocks, seq);
        match self.snapshot(table, SimTime::ZERO) {
            Ok(_) => {
                self.started = self.log.done;
                Ok(report)
            }
            // What there is can be read.
            Err(Fault::NoBlock) => {
                self.log.is_ended = true;
                Ok(report)
            }
            Err(Fault::Flash(error)) => Err(error.into()),
        }
    }

    /// Sets the states of the zones, and what they hold. Those of conventional zones never change.
    fn restore(&mut self, table: &mut ZoneTable, said: Said, faults: &[u32]) {
        let mut held_now: BTreeMap<u32, BTreeMap<u32, HeldPage>> = BTreeMap::new();
        for ((zone, page), (present, data)) in said.held {
            if page >= self.programmed(zone) {
                let data = Some(data.into_boxed_slice());
                let page = page - self.programmed(zone);
                held_now.entry(zone).or_default().insert(page, HeldPage { present, data, is_dirty: false });
            }
        }
        let per_page = self.page_bytes / self.block_bytes;
        for zone in table.layout().conventional..self.zones() {
            let mut written = self.blocks_of(self.programmed(zone));
            let is_finished = said.finished.contains_key(&zone);
            let held = held_now.remove(&zone);
            if let Some(held) = held {
                for (next, (ahead, page)) in (0..).zip(&held) {
                    if *ahead != next {
                        break;
                    }
                    let blocks = page.present.trailing_ones().min(per_page);
                    written += u64::from(blocks);
                    if blocks < per_page {
                        break;
                    }
                }
                let page_bytes = self.page_bytes;
                self.held_mut(zone).set(held, page_bytes);
            }
            let full = self.blocks_of(self.pages_of(self.slots(zone)));
            let is_used = written > 0 || said.extensions.contains_key(&zone) || self.held(zone).is_some();
            let state = match said.failed.get(&zone) {
                Some(true) => ZoneState::Offline,
                Some(false) => ZoneState::ReadOnly,
                None if faults.contains(&zone) => ZoneState::ReadOnly,
                None if is_finished || written >= full => ZoneState::Full,
                None if is_used => ZoneState::Closed,
                None => ZoneState::Empty,
            };
            let written = said.finished.get(&zone).copied().unwrap_or(written).min(full);
            let extension = said.extensions.get(&zone).cloned();
            table.restore(zone, Restored { state, written, extension });
        }
    }

    fn unbind(&mut self, zone: u32, spot: Spot) -> FlashResult<()> {
        let block = self.block_at(zone, spot);
        self.bind(zone, spot, BlockId::NONE);
        self.pool.owe(self.striping.unit(zone, spot.die), 1);
        self.discard(block)
    }

    /// Erases a block whose pages are not those of its zone. What is programmed later comes after that, lest
    /// a later start finds the pages again, behind new ones.
    fn discard(&mut self, block: BlockId) -> FlashResult<()> {
        if self.sabotage == Sabotage::KeepDiscarded {
            self.pool.give(self.device.geometry().unit_of(block).0, block, true);
            return Ok(());
        }
        let issue = Issue::new(SimTime::ZERO, Cause::Meta).after(self.log.done);
        match self.device.erase(block, issue) {
            Ok(done) => {
                self.log.done = self.device.join(self.log.done, done);
                let unit = self.device.geometry().unit_of(block).0;
                self.pool.give(unit, block, false);
                Ok(())
            }
            Err(error) => {
                if let Err(Fault::Flash(error)) = self.retire(block, error) {
                    return Err(error);
                }
                // The pages may be found again, since nothing says when the erase has failed.
                self.retired.push(block);
                Ok(())
            }
        }
    }

    /// The zone, die and slot whose first page this is, if a block of a unit can be there.
    fn owner(&self, page: Lpn, unit: u32) -> Option<(u32, u32, u32)> {
        let zone = page.0 / self.zone_pages;
        let spot = self.striping.spot(page.0 % self.zone_pages);
        let fits = zone < self.zones() && spot.page == 0 && self.striping.unit(zone, spot.die) == unit;
        fits.then_some((zone, spot.die, spot.slot))
    }

    fn read_tag(
        &mut self,
        page: Ppn,
        report: &mut RecoveryReport,
    ) -> FlashResult<Option<super::tag::ZoneTag>> {
        report.scanned_pages += 1;
        match self.device.read(page, 0, None, Issue::new(SimTime::ZERO, Cause::Meta)) {
            // A page without an owner is what a flash device made of chunks has behind their ends.
            Ok(read) => Ok(Some(read.oob.tag()).filter(|tag| tag.page != Lpn::PADDING || tag.seq > 0)),
            Err(
                FlashError::Uncorrectable { .. } | FlashError::Damaged { .. } | FlashError::Erased { .. },
            ) => {
                report.torn_pages += 1;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Pages of a block that count: all that are programmed but for torn ones at the end.
    fn readable(
        &mut self,
        geometry: &Geometry,
        block: BlockId,
        used: u32,
        report: &mut RecoveryReport,
    ) -> FlashResult<u32> {
        let mut pages = used;
        while pages > 1 && self.read_tag(geometry.page(block, pages - 1), report)?.is_none() {
            pages -= 1;
        }
        Ok(pages)
    }

    /// What the log says, the number of its next page and how many pages can be read. Blocks of earlier runs
    /// go to the pool.
    fn read_log(
        &mut self,
        geometry: &Geometry,
        blocks: &mut Vec<BlockId>,
        report: &mut RecoveryReport,
    ) -> FlashResult<(Option<Said>, u64, usize)> {
        let mut pages: BTreeMap<u64, LogPage> = BTreeMap::new();
        let mut numbers: BTreeMap<BlockId, (u64, u64)> = BTreeMap::new();
        let mut data = vec![0; self.page_bytes as usize];
        for block in blocks.iter() {
            for page in 0..self.device.write_pointer(*block) {
                report.metadata_pages += 1;
                let page = geometry.page(*block, page);
                let issue = Issue::new(SimTime::ZERO, Cause::Meta);
                match self.device.read(page, self.page_bytes, Some(&mut data), issue) {
                    Ok(read) => {
                        if let Some(kept) = metadata::decode_page(&data) {
                            let seq = read.oob.tag().seq;
                            let (least, most) = numbers.entry(*block).or_insert((seq, seq));
                            (*least, *most) = (seq.min(*least), seq.max(*most));
                            pages.insert(seq, kept);
                        }
                    }
                    Err(FlashError::Uncorrectable { .. } | FlashError::Damaged { .. }) => {
                        report.torn_pages += 1;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let count = pages.len();
        let next = pages.last_key_value().map_or(1, |(seq, _)| seq + 1);
        let is_snapshot = |seq: &u64| pages.get(seq).is_some_and(|page| page.flags & SNAPSHOT != 0);
        let first_of =
            |last: u64| (1..=last).rev().take_while(is_snapshot).find(|seq| pages[seq].flags & FIRST != 0);
        let mut lasts = pages.iter().rev().filter(|(_, page)| page.flags & LAST != 0).map(|(seq, _)| *seq);
        let Some(first) = lasts.find_map(first_of) else { return Ok((None, next, count)) };
        // Behind the run there may be snapshots that were cut short. Their blocks are free at once, so that
        // any number of starts may be cut short in a row.
        let is_next = |seq: &u64| pages.get(seq).is_some_and(|page| page.flags & FIRST == 0);
        let end = (first + 1..=next).find(|seq| !is_next(seq)).expect("there is no page of the next number");
        blocks.retain(|block| {
            let is_live = numbers.get(block).is_some_and(|(least, most)| *most >= first && *least < end);
            if !is_live {
                self.pool.give(geometry.unit_of(*block).0, *block, true);
            }
            is_live
        });
        report.checkpoint = first;
        report.source = RecoverySource::Checkpoint;
        let mut said = Said::default();
        for seq in first..end {
            let page = pages.remove(&seq).expect("the run has no gap");
            report.map_entries += page.records.len() as u64;
            page.records.into_iter().for_each(|record| said.apply(record, self.page_bytes));
        }
        let zones = self.zones();
        said.resets.retain(|zone, _| *zone < zones);
        said.shrunk.retain(|zone, slots| *zone < zones && *slots <= self.striping.blocks_per_die);
        said.held.retain(|(zone, _), _| *zone < zones);
        said.retired.retain(|block| *block < geometry.blocks());
        Ok((Some(said), next, count))
    }
}
