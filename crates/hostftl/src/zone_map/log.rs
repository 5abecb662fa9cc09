//! Writing the log: records of changes to the map, and checkpoints of it, in a ring of zones.
//!
//! A checkpoint is written part by part between pages of records, so that no write waits for it. A start
//! applies the records from the first page of the last complete checkpoint on, and the parts of that
//! checkpoint where they lie among them.

use super::ZoneMap;
use super::format::{self, Header, Identity, Kind, Records};
use super::sabotage::Sabotage;
use super::space::Frontier;
use nandscape_core::zone::{ZoneAction, ZoneState};
use nandscape_core::{
    Cause, Extent, FtlError, Issue, Lpn, NamespaceError, NamespaceResult, Ppn, SimTime, Subsystem, Token,
};
use std::collections::VecDeque;

const TOO_FEW_ZONES: &str = "too few zones are left for the metadata of the map";

/// Where the log is, and how far.
#[derive(Debug)]
pub(super) struct Log {
    /// Zones with pages of the log, each with the number of its first page, in order.
    pub used: VecDeque<(u64, u32)>,
    /// Zones before the last complete checkpoint, with what their reset waits for.
    pub stale: VecDeque<(u32, Token)>,
    /// Empty zones with what their first write waits for.
    pub free: VecDeque<(u32, Token)>,
    /// Next page of the last used zone, and the one behind its last.
    pub next: u32,
    pub end: u32,
    /// The next page waits for this.
    pub gate: Token,
    /// Completes when the pages so far are written.
    pub done: Token,
    /// Number of the next page.
    pub seq: u64,
    /// Changes that are in no page yet.
    pub records: Records,
    /// Number of the first page of the last complete checkpoint; 0 if there is none.
    pub checkpoint: u64,
    /// The checkpoint that is being written.
    pub draft: Option<Draft>,
    /// Pages of records since the last checkpoint began.
    pub since: u32,
    interval: u32,
    zone_pages: u32,
    page_bytes: u32,
    entries_per_page: u32,
}

/// A checkpoint that is being written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draft {
    /// Number of its first page.
    pub start: u64,
    /// The first unit that is in none of its parts.
    pub next: u32,
}

impl Log {
    pub fn new(identity: &Identity, page_bytes: u32, zone_bytes: u64) -> Self {
        Self {
            used: VecDeque::new(),
            stale: VecDeque::new(),
            free: VecDeque::new(),
            next: 0,
            end: 0,
            gate: Token::NONE,
            done: Token::NONE,
            seq: 1,
            records: Records::new(page_bytes),
            checkpoint: 0,
            draft: None,
            since: 0,
            interval: format::interval(identity.logical_units, page_bytes),
            zone_pages: (zone_bytes / u64::from(page_bytes)) as u32,
            page_bytes,
            entries_per_page: format::entries_per_page(page_bytes),
        }
    }

    /// Whether so many pages of records are enough for a new checkpoint.
    pub const fn is_checkpoint_due(&self) -> bool {
        self.since >= self.interval
    }

    /// Whether a start has to write a checkpoint because one is due, or because there is no room for the
    /// records until one is: a loss of power may have ended zones before they were full. One zone is left for
    /// the next loss.
    pub fn is_short(&self) -> bool {
        let until_due = u64::from(self.interval.saturating_sub(self.since));
        let zones = self.free.len().saturating_sub(1) as u64;
        let room = zones * u64::from(self.zone_pages) + u64::from(self.end - self.next);
        // The interval is two checkpoints long: room for one and the records between its parts.
        self.is_checkpoint_due() || room < until_due + u64::from(self.interval)
    }

    /// Entries of a part of a checkpoint.
    pub const fn entries_per_page(&self) -> u32 {
        self.entries_per_page
    }

    pub const fn bytes(&self) -> u64 {
        self.page_bytes as u64
    }
}

impl<S: Subsystem> ZoneMap<S> {
    /// Notes where a unit is now.
    #[inline(always)]
    pub(super) fn record(&mut self, lpn: Lpn, place: Ppn, at: SimTime) -> NamespaceResult<()> {
        if self.log.records.is_full() {
            self.write_records(at)?;
        }
        self.log.records.place(lpn, place);
        Ok(())
    }

    /// Notes that units hold nothing any more.
    pub(super) fn record_drop(&mut self, first: Lpn, count: u32, at: SimTime) -> NamespaceResult<()> {
        if self.log.records.is_full() {
            self.write_records(at)?;
        }
        self.log.records.drop_units(first, count);
        Ok(())
    }

    /// Writes the records so far, and a part of a checkpoint if it is time for one.
    #[cold]
    #[inline(never)]
    pub(super) fn write_records(&mut self, at: SimTime) -> NamespaceResult<()> {
        if self.log.records.is_empty() {
            return Ok(());
        }
        let payload = if self.shape.stores_data { self.log.records.bytes() } else { Vec::new() };
        let count = self.log.records.len() as u32;
        self.write_page(Kind::Records, (0, 0, count), &payload, Token::NONE, at)?;
        self.log.records.slots.clear();
        self.log.since += 1;
        if self.log.draft.is_some() {
            if !self.write_map_part(at)? {
                self.end_checkpoint(Kind::End, at)?;
            }
        } else if self.log.is_checkpoint_due() {
            self.begin_checkpoint(Kind::Begin, at)?;
        }
        Ok(())
    }

    pub(super) fn begin_checkpoint(&mut self, kind: Kind, at: SimTime) -> NamespaceResult<()> {
        let identity = self.shape.identity.bytes();
        let start = self.log.seq;
        self.write_page(kind, (start, 0, identity.len() as u32), &identity, Token::NONE, at)?;
        self.log.draft = Some(Draft { start, next: 0 });
        self.log.since = 0;
        Ok(())
    }

    /// Writes the next part of the checkpoint with a unit that holds something; whether there was one.
    fn write_map_part(&mut self, at: SimTime) -> NamespaceResult<bool> {
        let Some(draft) = self.log.draft else { return Ok(false) };
        let (units, size) = (self.shape.identity.logical_units, self.log.entries_per_page);
        let Some(mapped) = self.map.next_mapped(draft.next, units) else { return Ok(false) };
        let part = mapped.0 / size;
        let (first, end) = (part * size, units.min((part + 1) * size));
        let payload = if self.shape.stores_data {
            format::entry_bytes(&self.map.entries()[first as usize..end as usize])
        } else {
            Vec::new()
        };
        self.write_page(Kind::Map, (draft.start, part, end - first), &payload, Token::NONE, at)?;
        self.log.draft = Some(Draft { next: end, ..draft });
        Ok(true)
    }

    /// Completes the checkpoint: its last page comes after all data that it tells of.
    fn end_checkpoint(&mut self, kind: Kind, at: SimTime) -> NamespaceResult<Token> {
        let draft = self.log.draft.expect("a checkpoint is being written");
        let mut order = Token::NONE;
        if self.sabotage != Sabotage::EndWithoutWait {
            let so_far = self.so_far();
            order = self.below.flush(Issue::new(at, Cause::Meta).after(so_far))?;
        }
        let done = self.write_page(kind, (draft.start, 0, 0), &[], order, at)?;
        self.log.checkpoint = draft.start;
        self.log.draft = None;
        Ok(done)
    }

    /// Writes all that is left of the checkpoint, or a whole one.
    pub(super) fn write_checkpoint(&mut self, begin: Kind, end: Kind, at: SimTime) -> NamespaceResult<Token> {
        assert!(self.log.records.is_empty(), "{} records are not written", self.log.records.len());
        if self.log.draft.is_none() {
            self.begin_checkpoint(begin, at)?;
        }
        while self.write_map_part(at)? {}
        self.end_checkpoint(end, at)
    }

    /// Writes the next page of the log; `part_of`, `part` and `count` are those of its header.
    fn write_page(
        &mut self,
        kind: Kind,
        (part_of, part, count): (u64, u32, u32),
        payload: &[u8],
        after: Token,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        loop {
            if self.log.next == self.log.end {
                self.next_log_zone(at)?;
            }
            let (_, zone) = *self.log.used.back().expect("a zone of the log is open");
            let is_end = matches!(kind, Kind::End | Kind::CleanEnd);
            let checkpoint = if is_end { part_of } else { self.log.checkpoint };
            let header = Header { kind, seq: self.log.seq, checkpoint, part_of, part, count };
            let page_bytes = self.shape.page_bytes;
            let page = self.shape.stores_data.then(|| format::encode(&header, payload, page_bytes));
            let offset = self.shape.start(zone) + u64::from(self.log.next) * u64::from(page_bytes);
            let extent = Extent::new(offset, page_bytes.into());
            let after = self.below.device.join(self.log.gate, after);
            let issue = Issue::new(at, Cause::Meta).after(after);
            match self.below.write(extent, page.as_deref(), issue) {
                Ok(done) => {
                    self.log.next += 1;
                    self.log.seq += 1;
                    self.log.gate = Token::NONE;
                    self.log.done = self.below.device.join(self.log.done, done);
                    return Ok(done);
                }
                Err(error) => self.log_zone_failed(zone, error, at)?,
            }
        }
    }

    /// A zone of the log takes no more pages; those that it has still count.
    #[cold]
    fn log_zone_failed(&mut self, zone: u32, error: NamespaceError, at: SimTime) -> NamespaceResult<()> {
        if matches!(error, NamespaceError::Ftl(FtlError::ReadOnly { .. })) {
            return Err(self.stop(TOO_FEW_ZONES));
        }
        let described = self.below.report(self.shape.start(zone), 1, at)?;
        let state = described.first().map(|zone| zone.state);
        if !matches!(state, Some(ZoneState::ReadOnly | ZoneState::Offline | ZoneState::Full)) {
            let capacity =
                described.first().map_or(0, |zone| zone.capacity) / u64::from(self.shape.page_bytes);
            if capacity != u64::from(self.log.next) {
                return Err(error);
            }
        }
        self.log.end = self.log.next;
        if self.log.next == 0 {
            self.log.used.pop_back();
        }
        Ok(())
    }

    /// Opens another zone for the log. Its pages come after those before; zones before the last complete
    /// checkpoint are not needed any more.
    fn next_log_zone(&mut self, at: SimTime) -> NamespaceResult<()> {
        let mut order = Token::NONE;
        if self.sabotage != Sabotage::LogWithoutOrder {
            order = self.below.flush(Issue::new(at, Cause::Meta).after(self.log.done))?;
        }
        while self.log.used.get(1).is_some_and(|(first, _)| *first <= self.log.checkpoint) {
            let (_, zone) = self.log.used.pop_front().expect("there are two");
            self.log.stale.push_back((zone, order));
        }
        while self.log.free.is_empty() && !self.log.stale.is_empty() {
            self.reset_stale(at)?;
        }
        let Some((zone, ready)) = self.log.free.pop_front() else { return Err(self.stop(TOO_FEW_ZONES)) };
        assert!(zone < self.shape.identity.ring, "zone {zone} of {:?}", self.shape.identity);
        self.log.used.push_back((self.log.seq, zone));
        (self.log.next, self.log.end) = (0, self.log.zone_pages);
        self.log.gate = self.below.device.join(order, ready);
        Ok(())
    }

    /// Resets the next zone that the log does not need any more.
    pub(super) fn reset_stale(&mut self, at: SimTime) -> NamespaceResult<()> {
        let Some((zone, after)) = self.log.stale.front().copied() else { return Ok(()) };
        self.reset_log_zone(zone, after, at)?;
        self.log.stale.pop_front();
        Ok(())
    }

    /// Empties a zone of the log; one that cannot be reset is not used again.
    pub(super) fn reset_log_zone(&mut self, zone: u32, after: Token, at: SimTime) -> NamespaceResult<()> {
        let issue = Issue::new(at, Cause::Meta).after(after);
        match self.below.manage(ZoneAction::Reset, self.shape.start(zone), issue) {
            Ok(done) => {
                let ready = self.below.device.join(after, done);
                self.space.resetting = done;
                self.log.free.push_back((zone, ready));
                Ok(())
            }
            Err(NamespaceError::Zone(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Completes when the data and the pages of the log so far are there, and the last commit is.
    fn so_far(&mut self) -> Token {
        let mut written = Token::NONE;
        for log in 0..self.space.frontiers.len() {
            let Frontier { done, done_before, .. } = self.space.frontiers[log];
            written = self.below.device.join(written, done);
            written = self.below.device.join(written, done_before);
        }
        let logged = self.below.device.join(written, self.log.done);
        self.below.device.join(logged, self.committed)
    }

    /// Makes everything durable that was written and recorded so far.
    pub(super) fn commit(&mut self, at: SimTime) -> NamespaceResult<Token> {
        if self.sabotage != Sabotage::ResetBeforeRecords {
            self.write_records(at)?;
        }
        let so_far = self.so_far();
        self.committed = self.below.flush(Issue::new(at, Cause::Meta).after(so_far))?;
        self.space.frontiers.iter_mut().for_each(Frontier::forget_writes);
        Ok(self.committed)
    }

    /// Makes durable what hosts were answered. Data in a zone is found again only behind data, so writes that
    /// are under way in the same zones have to be there as well.
    pub(super) fn flush_records(&mut self, at: SimTime) -> NamespaceResult<Token> {
        if self.sabotage != Sabotage::FlushWithoutRecords && self.stopped.is_none() {
            self.write_records(at)?;
        }
        let so_far = self.so_far();
        self.below.flush(Issue::new(at, Cause::Host).after(so_far))
    }

    /// Leaves a log that opens at once.
    pub(super) fn close(&mut self, at: SimTime) -> NamespaceResult<Token> {
        self.write_records(at)?;
        self.log.draft = None;
        self.write_checkpoint(Kind::Begin, Kind::CleanEnd, at)?;
        self.commit(at)
    }
}
