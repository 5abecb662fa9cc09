//! Writing the journal: records of changes, and snapshots of all files, in a ring of zones.
//!
//! A generation is a snapshot and the records after it. The first page of a generation begins a zone. The
//! next one is written beside it, once its zones are nearly full.

use super::ZoneFiles;
use super::files::{PIECE, Tail};
use super::format::{self, Header, Kind, Records};
use super::placement::Learned;
use super::sabotage::Sabotage;
use nandscape_core::zone::{ZoneAction, ZoneState};
use nandscape_core::{Cause, Extent, Issue, NamespaceError, NamespaceResult, SimTime, Subsystem, Token};
use std::collections::VecDeque;

const TOO_FEW_ZONES: &str = "too few zones are left for the journal of the files";

/// Changes of places, and bytes of records, that are kept in memory at most.
pub(super) const MOST_CHANGES: u64 = 1 << 16;
pub(super) const MOST_BYTES: u64 = 1 << 16;
/// Files that are not as in the journal, at most.
pub(super) const MOST_DIRTY: usize = 4_096;

/// Where the journal is, and how far.
#[derive(Debug)]
pub(super) struct Log {
    /// Zones of the present generation, in order.
    pub used: Vec<u32>,
    /// Zones of older ones, with what their reset waits for.
    pub stale: VecDeque<(u32, Token)>,
    /// Empty zones with what their first write waits for.
    pub free: VecDeque<(u32, Token)>,
    /// Next page of the last used zone, and the one behind its last.
    next: u32,
    end: u32,
    /// The next page waits for this.
    gate: Token,
    /// Completes when the pages so far are written.
    done: Token,
    /// Number of the next page.
    pub seq: u64,
    /// Number of the first page of the present generation.
    generation: u64,
    /// Records that are in no page yet.
    pub records: Records,
    zone_pages: u32,
    page_bytes: u32,
    /// Pages that are being written.
    pages: Vec<u8>,
    /// A zone of the present generation went offline: nothing of it is worth anything.
    is_broken: bool,
}

impl Log {
    pub fn new(page_bytes: u32, zone_bytes: u64, keeps: bool) -> Self {
        Self {
            used: Vec::new(),
            stale: VecDeque::new(),
            free: VecDeque::new(),
            next: 0,
            end: 0,
            gate: Token::NONE,
            done: Token::NONE,
            seq: 1,
            generation: 0,
            records: Records::new(keeps),
            zone_pages: (zone_bytes / u64::from(page_bytes)) as u32,
            page_bytes,
            pages: Vec::new(),
            is_broken: false,
        }
    }

    pub const fn zone_pages(&self) -> u32 {
        self.zone_pages
    }

    const fn pages_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(format::payload_bytes(self.page_bytes))
    }

    /// Whether records of so many bytes can be written, and a snapshot of so many after them; one zone is
    /// kept for the case that another one fails.
    fn has_room(&self, bytes: u64, snapshot_bytes: u64) -> bool {
        let snapshot = (self.pages_of(snapshot_bytes) + 2).div_ceil(self.zone_pages.into());
        let zones = ((self.free.len() + self.stale.len()) as u64).saturating_sub(snapshot + 1);
        self.pages_of(bytes) <= zones * u64::from(self.zone_pages) + u64::from(self.end - self.next)
    }

    pub fn forget_tokens(&mut self) {
        (self.gate, self.done) = (Token::NONE, Token::NONE);
        self.stale.iter_mut().chain(&mut self.free).for_each(|(_, ready)| *ready = Token::NONE);
    }

    pub fn bytes(&self) -> u64 {
        (self.records.bytes.capacity() + self.pages.capacity()) as u64
    }
}

impl<S: Subsystem> ZoneFiles<S> {
    /// Writes what files keep in memory. Gives what completes when their data is written.
    fn write_tails(&mut self, slots: &[u32], at: SimTime) -> NamespaceResult<Token> {
        let mut written = Token::NONE;
        for slot in slots {
            self.write_tail(*slot, at)?;
            written = self.below.device.join(written, self.files.get(*slot).done);
        }
        Ok(written)
    }

    /// Writes the unit that a file keeps in memory, if it is not written as it is.
    pub(super) fn write_tail(&mut self, slot: u32, at: SimTime) -> NamespaceResult<Token> {
        let file = self.files.get_mut(slot);
        let is_dirty = |tail: &mut Box<Tail>| tail.is_dirty;
        let Some(mut tail) = file.tail.take_if(is_dirty) else { return Ok(Token::NONE) };
        let writer = super::Writer { slot, hint: file.hint, moves: false };
        let before = file.extents.place(tail.unit).is_none();
        let data = (!tail.bytes.is_empty()).then_some(tail.bytes.as_slice());
        let issue = Issue::new(at, Cause::Host).after(tail.read);
        let written = self.append(writer, (tail.unit, 1), data, issue);
        if written.is_ok() {
            (tail.is_dirty, tail.read) = (false, Token::NONE);
            self.files.owed -= u64::from(before);
        }
        self.files.get_mut(slot).tail = Some(tail);
        written.map(|(_, done)| done)
    }

    /// Makes durable what is known now of a file, or of all: their data first, then the records that tell of
    /// it.
    pub(super) fn commit(&mut self, only: Option<u32>, at: SimTime) -> NamespaceResult<Token> {
        let slots = match only {
            Some(slot) if self.files.get(slot).is_dirty => vec![slot],
            Some(_) => Vec::new(),
            None => self.files.dirty.clone(),
        };
        if slots.is_empty() && self.log.records.len == 0 && !self.log.is_broken {
            return Ok(self.committed);
        }
        let written = self.write_tails(&slots, at)?;
        let mut durable = Token::NONE;
        if written != Token::NONE && self.sabotage != Sabotage::RecordsBeforeData {
            durable = self.durable(written, at)?;
        }
        for slot in &slots {
            let file = self.files.get(*slot);
            self.log.records.object(file, !file.is_logged, file.changes());
        }
        let done = self.write_records(durable, at)?;
        for slot in &slots {
            self.files.recorded(*slot);
        }
        if let Some(slot) = only {
            self.files.dirty.retain(|dirty| *dirty != slot);
        } else {
            self.files.dirty.clear();
            self.files.changes = 0;
        }
        Ok(done)
    }

    /// Writes the records that are in no page yet, and makes them durable.
    fn write_records(&mut self, after: Token, at: SimTime) -> NamespaceResult<Token> {
        if self.log.is_broken || !self.log.has_room(self.log.records.len, self.snapshot_bytes()) {
            return self.roll(Kind::End, at);
        }
        let mut records = std::mem::take(&mut self.log.records);
        let result = self.write_pages(Kind::Records, &records.bytes, records.len, after, at);
        records.clear();
        self.log.records = records;
        result?;
        self.recovery_point(at)
    }

    /// Completes when the pages so far are durable.
    fn recovery_point(&mut self, at: SimTime) -> NamespaceResult<Token> {
        if self.log.is_broken {
            return self.roll(Kind::End, at);
        }
        self.committed = self.durable(self.log.done, at)?;
        Ok(self.committed)
    }

    /// Completes when what these writes wrote, and all before them in their zones, is durable.
    pub(super) fn durable(&mut self, written: Token, at: SimTime) -> NamespaceResult<Token> {
        if self.shape.durable_writes {
            return Ok(written);
        }
        self.below.flush(Issue::new(at, Cause::Meta).after(written))
    }

    fn snapshot_bytes(&self) -> u64 {
        // A file that is not as in the journal may get another piece by its tail.
        self.files.record_bytes + Learned::RECORD + PIECE * self.shape.config.tails as u64
    }

    /// Begins a new generation with a snapshot of all files as they are now, which makes them durable.
    pub(super) fn roll(&mut self, end: Kind, at: SimTime) -> NamespaceResult<Token> {
        let slots = self.files.dirty.clone();
        let written = self.write_tails(&slots, at)?;
        let mut durable = Token::NONE;
        if written != Token::NONE {
            durable = self.durable(written, at)?;
        }
        loop {
            // Only one zone of the journal may be active.
            if self.log.next < self.log.end {
                let zone = *self.log.used.last().expect("a zone of the journal is open");
                self.finish_log_zone(zone, at)?;
            }
            let old = std::mem::take(&mut self.log.used);
            self.log.is_broken = false;
            self.log.generation = self.log.seq;
            let identity = self.shape.config.identity.bytes();
            self.write_pages(Kind::Begin, &identity, identity.len() as u64, durable, at)?;
            let mut snapshot = Records::new(self.shape.stores_data);
            snapshot.learned(self.now, self.learned.means());
            for (_, file) in self.files.iter() {
                snapshot.object(file, true, file.extents.iter());
            }
            self.write_pages(Kind::Snapshot, &snapshot.bytes, snapshot.len, durable, at)?;
            self.write_pages(end, &[], 0, durable, at)?;
            let is_early = self.sabotage == Sabotage::RollWithoutWait;
            let done = self.durable(self.log.done, at)?;
            self.committed = done;
            self.log
                .stale
                .extend(old.into_iter().map(|zone| (zone, if is_early { Token::NONE } else { done })));
            while is_early && !self.log.stale.is_empty() {
                self.reset_stale(at)?;
            }
            if !self.log.is_broken {
                break;
            }
        }
        self.log.records.clear();
        for slot in &slots {
            self.files.recorded(*slot);
        }
        self.files.dirty.clear();
        self.files.changes = 0;
        Ok(self.committed)
    }

    /// Makes everything durable, and says that the layer was shut down.
    pub(super) fn close(&mut self, at: SimTime) -> NamespaceResult<Token> {
        self.log.records.learned(self.now, self.learned.means());
        self.commit(None, at)?;
        if self.log.is_broken || !self.log.has_room(1, self.snapshot_bytes()) {
            return self.roll(Kind::CleanEnd, at);
        }
        self.write_pages(Kind::CleanEnd, &[], 0, Token::NONE, at)?;
        self.recovery_point(at)
    }

    /// Writes a stream of so many bytes as pages of the journal, at least one.
    fn write_pages(
        &mut self,
        kind: Kind,
        stream: &[u8],
        len: u64,
        after: Token,
        at: SimTime,
    ) -> NamespaceResult<()> {
        let payload = format::payload_bytes(self.shape.page_bytes) as usize;
        let pages = self.log.pages_of(len).max(1) as u32;
        let mut first = 0;
        while first < pages {
            if self.log.next == self.log.end {
                self.next_log_zone(at)?;
            }
            let count = (pages - first).min(self.log.end - self.log.next);
            let mut data = std::mem::take(&mut self.log.pages);
            data.clear();
            for page in first..first + if self.shape.stores_data { count } else { 0 } {
                let start = (page as usize * payload).min(stream.len());
                let part = &stream[start..stream.len().min(start + payload)];
                let seq = self.log.seq + u64::from(page - first);
                let header = Header { kind, seq, generation: self.log.generation, len: part.len() as u32 };
                format::encode(&header, part, self.shape.page_bytes, &mut data);
            }
            let zone = *self.log.used.last().expect("a zone of the journal is open");
            let page = u64::from(self.shape.page_bytes);
            let offset = self.shape.start(zone) + u64::from(self.log.next) * page;
            let issue = Issue::new(at, Cause::Meta).after(self.below.device.join(self.log.gate, after));
            let part = (!data.is_empty()).then_some(data.as_slice());
            let written = self.below.write(Extent::new(offset, u64::from(count) * page), part, issue);
            self.log.pages = data;
            match written {
                Ok(done) => {
                    self.log.next += count;
                    self.log.seq += u64::from(count);
                    self.log.gate = Token::NONE;
                    self.log.done = self.below.device.join(self.log.done, done);
                    first += count;
                }
                Err(error) => self.log_zone_failed(zone, error, at)?,
            }
        }
        Ok(())
    }

    /// A zone of the journal takes no more pages; those that it has still count.
    #[cold]
    fn log_zone_failed(&mut self, zone: u32, error: NamespaceError, at: SimTime) -> NamespaceResult<()> {
        let error = self.of_a_zone(error)?;
        let described = self.below.report(self.shape.start(zone), 1, at)?;
        let Some(described) = described.first() else { return Err(error) };
        match described.state {
            ZoneState::Offline => self.log.is_broken |= self.log.next > 0,
            ZoneState::ReadOnly | ZoneState::Full => {}
            _ if described.capacity / u64::from(self.shape.page_bytes) < u64::from(self.log.zone_pages) => {}
            _ => return Err(error),
        }
        self.log.end = self.log.next;
        if self.log.next == 0 {
            self.log.used.pop();
        }
        Ok(())
    }

    /// A zone of the journal takes no more pages, though it could.
    fn finish_log_zone(&mut self, zone: u32, at: SimTime) -> NamespaceResult<()> {
        self.log.end = self.log.next;
        let issue = Issue::new(at, Cause::Meta).after(self.log.done);
        match self.below.manage(ZoneAction::Finish, self.shape.start(zone), issue) {
            // Whatever became of it: it is not active.
            Ok(_) | Err(NamespaceError::Zone(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Opens another zone for the journal. Its pages come after those before.
    fn next_log_zone(&mut self, at: SimTime) -> NamespaceResult<()> {
        let order = self.below.flush(Issue::new(at, Cause::Meta).after(self.log.done))?;
        while self.log.free.is_empty() && !self.log.stale.is_empty() {
            self.reset_stale(at)?;
        }
        let Some((zone, ready)) = self.log.free.pop_front() else { return Err(self.stop(TOO_FEW_ZONES)) };
        assert!(zone < self.space.first, "zone {zone}, where {} are for metadata", self.space.first);
        self.log.used.push(zone);
        (self.log.next, self.log.end) = (0, self.log.zone_pages);
        self.log.gate = self.below.device.join(order, ready);
        Ok(())
    }

    /// Resets the next zone that the journal does not need any more.
    pub(super) fn reset_stale(&mut self, at: SimTime) -> NamespaceResult<()> {
        let Some((zone, after)) = self.log.stale.front().copied() else { return Ok(()) };
        self.reset_log_zone(zone, after, at)?;
        self.log.stale.pop_front();
        Ok(())
    }

    /// Empties a zone of the journal; one that cannot be reset is not used again.
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
}
