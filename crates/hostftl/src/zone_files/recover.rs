//! What a start makes of what the zones hold.

use super::files::{File, HOLE, LOST, Piece};
use super::format::{self, Header, Kind, Record};
use super::placement::Lifetime;
use super::sabotage::Sabotage;
use super::space::{Frontier, Owner};
use super::{INFO, ZoneFiles};
use crate::error::HostFtlError;
use nandscape_core::zone::{Zone, ZoneAction, ZoneAttributes, ZoneState};
use nandscape_core::{
    Cause, Extent, FtlError, Issue, NamespaceError, ObjectId, RecoveryReport, SimTime, Subsystem, Token,
};
use nandscape_ftl::victim::BlockState;

type Result<T> = std::result::Result<T, HostFtlError>;

const AT: SimTime = SimTime::ZERO;
const META: Issue = Issue::new(AT, Cause::Meta);

/// Pages of the journal in a zone.
#[derive(Debug)]
struct Found {
    generation: u64,
    /// Number of the first page.
    first: u64,
    zone: u32,
    pages: Vec<(Kind, Vec<u8>)>,
    /// Fewer pages are whole than lie below the write pointer.
    is_damaged: bool,
}

impl<S: Subsystem> ZoneFiles<S> {
    /// Makes the files of what the zones hold; all zones of a namespace that keeps no data are empty.
    pub(super) fn start(&mut self) -> Result<()> {
        let identity = self.shape.config.identity;
        let zones = self.below.report(0, identity.zones.into(), AT)?;
        assert_eq!(zones.len(), identity.zones as usize, "zones in a report of all");
        for (zone, capacity) in zones.iter().zip(&mut self.space.capacities) {
            // A zone that ended early takes as much as any other once it is reset.
            let is_whole_again =
                zone.state == ZoneState::Full && zone.attributes.has(ZoneAttributes::RESET_RECOMMENDED);
            if !is_whole_again {
                *capacity = (zone.capacity / self.shape.unit) as u32;
            }
        }
        let mut found = Vec::new();
        for zone in 0..identity.ring {
            found.extend(self.find_pages(zone, &zones[zone as usize]));
        }
        found.sort_unstable_by_key(|found: &Found| (found.generation, found.first, found.pages.len()));
        self.log.seq = found.iter().map(|found| found.first + found.pages.len() as u64).max().unwrap_or(1);
        let generation = self.last_generation(&found);
        let holds_nothing =
            |zone: &Zone| matches!(zone.state, ZoneState::Empty | ZoneState::ReadOnly | ZoneState::Offline);
        if let Some(generation) = generation {
            self.recovery.checkpoint = generation;
            self.read_log(generation, &found)?;
            self.take_places()?;
            self.recovery.live_pages = self.space.live;
        } else if !zones[identity.ring as usize..].iter().all(holds_nothing) {
            return Err(start_error("data, and no complete snapshot of files".to_owned()));
        }
        match self.go_on(&zones) {
            // What there is can be read.
            Err(HostFtlError::Namespace(NamespaceError::Ftl(FtlError::ReadOnly { reason }))) => {
                self.stop(reason);
                let free: Vec<u32> = self.space.free.iter().map(|(zone, _)| *zone).collect();
                let infos = self.space.infos.iter_mut().zip(0..);
                let unknown =
                    infos.filter(|(info, zone)| info.state == BlockState::Free && !free.contains(zone));
                unknown.for_each(|(info, _)| info.state = BlockState::Bad);
            }
            done => done?,
        }
        self.count_capacity();
        if generation.is_none() {
            self.recovery = RecoveryReport::default();
        }
        Ok(())
    }

    /// The pages of the journal in a zone.
    fn find_pages(&mut self, zone: u32, described: &Zone) -> Option<Found> {
        if matches!(described.state, ZoneState::Empty | ZoneState::Offline) {
            return None;
        }
        let page_bytes = u64::from(self.shape.page_bytes);
        let written =
            described.write_pointer.map(|pointer| ((pointer - described.start) / page_bytes) as u32);
        let mut found = None;
        for page in 0..written.unwrap_or_else(|| self.log.zone_pages()) {
            let next = self.page(zone, page);
            let Some((header, payload)) = next else { break };
            let Header { kind, seq, generation, .. } = header;
            let found = found.get_or_insert(Found {
                generation,
                first: seq,
                zone,
                pages: Vec::new(),
                is_damaged: false,
            });
            if generation != found.generation || seq != found.first + found.pages.len() as u64 {
                break;
            }
            found.pages.push((kind, payload));
        }
        if let (Some(found), Some(written)) = (&mut found, written) {
            found.is_damaged = (found.pages.len() as u32) < written;
        }
        found
    }

    fn page(&mut self, zone: u32, page: u32) -> Option<(Header, Vec<u8>)> {
        let bytes = u64::from(self.shape.page_bytes);
        let extent = Extent::new(self.shape.start(zone) + u64::from(page) * bytes, bytes);
        let mut data = vec![0; self.shape.page_bytes as usize];
        self.recovery.metadata_pages += 1;
        self.below.read(extent, Some(&mut data), META).ok()?;
        format::decode(&mut data).map(|(header, payload)| (header, payload.to_vec()))
    }

    /// The last generation whose snapshot is complete.
    fn last_generation(&self, found: &[Found]) -> Option<u64> {
        let believes_all = self.sabotage == Sabotage::BelievePartialSnapshots;
        let is_end = |(kind, _): &(Kind, Vec<u8>)| matches!(kind, Kind::End | Kind::CleanEnd);
        let ends = found.iter().filter(|found| believes_all || found.pages.iter().any(is_end));
        ends.map(|found| found.generation).max()
    }

    /// Applies the snapshot of a generation, and its records.
    fn read_log(&mut self, generation: u64, found: &[Found]) -> Result<()> {
        if let Some(damaged) = found.iter().find(|found| found.generation >= generation && found.is_damaged) {
            return Err(damaged_at(damaged.first + damaged.pages.len() as u64, damaged.zone));
        }
        let mut next = generation;
        let (mut snapshot, mut records) = (Vec::new(), Vec::new());
        for found in found.iter().filter(|found| found.generation == generation) {
            if found.first > next {
                return Err(damaged_at(next, found.zone));
            }
            self.log.used.push(found.zone);
            // A write that failed in part was done again in the next zone.
            for (kind, payload) in found.pages.iter().skip((next - found.first) as usize) {
                next += 1;
                self.recovery.was_clean = *kind == Kind::CleanEnd;
                match kind {
                    Kind::Begin => {
                        if let Some(difference) = self.shape.config.identity.difference(payload) {
                            return Err(start_error(difference));
                        }
                    }
                    Kind::Snapshot => snapshot.extend_from_slice(payload),
                    Kind::End | Kind::CleanEnd => {}
                    Kind::Records => {
                        self.recovery.scanned_pages += 1;
                        records.extend_from_slice(payload);
                    }
                }
            }
        }
        self.apply_all(&snapshot)?;
        self.recovery.map_entries =
            self.files.iter().map(|(_, file)| file.extents.iter().count() as u64).sum();
        self.apply_all(&records)
    }

    /// Applies records up to the end of a stream, or to one that is cut short: it was never durable.
    fn apply_all(&mut self, mut stream: &[u8]) -> Result<()> {
        loop {
            match format::record(stream) {
                Ok(Some((record, len))) => {
                    self.apply(&record)?;
                    stream = &stream[len..];
                }
                Ok(None) => return Ok(()),
                Err(()) => return Err(start_error("a record that no layer writes".to_owned())),
            }
        }
    }

    fn apply(&mut self, record: &Record<'_>) -> Result<()> {
        match *record {
            Record::Deleted(id) => self.forget(id),
            Record::Learned { now, means } => {
                self.now = now;
                self.learned.set(format::numbers(means));
            }
            Record::Object { id, size, hint, born, is_whole, attributes, replaced, pieces } => {
                if is_whole {
                    self.forget(id);
                }
                format::numbers(replaced).for_each(|id| self.forget(ObjectId(id)));
                let slot = match self.files.find(id) {
                    Some(slot) => slot,
                    None => self.files.add(File::new(id, hint, born)),
                };
                if let Some(attributes) = attributes {
                    let old = self.files.get(slot).attributes.len() as u64;
                    self.files.record_bytes = self.files.record_bytes + attributes.len() as u64 - old;
                    self.files.get_mut(slot).attributes = attributes.into();
                }
                for (at, piece) in format::pieces(pieces) {
                    self.check_piece(id, at, piece)?;
                    if piece.place == HOLE {
                        self.files.unmap(slot, at, at + piece.units, |_| {});
                    } else {
                        self.files.place(slot, at, piece, |_| {});
                    }
                }
                let file = self.files.get_mut(slot);
                (file.size, file.hint, file.born) = (size, hint, born);
                if u64::from(file.extents.end()) > size.div_ceil(self.shape.unit) {
                    return Err(start_error(format!("object {id} with data behind its end at {size}")));
                }
                self.files.touch(slot);
            }
        }
        Ok(())
    }

    fn forget(&mut self, id: ObjectId) {
        if let Some(slot) = self.files.find(id) {
            self.recovery.drop_records += 1;
            self.files.remove(slot);
        }
    }

    fn check_piece(&self, id: ObjectId, at: u32, piece: Piece) -> Result<()> {
        let space = &self.space;
        let last = piece.place.checked_add(piece.units.saturating_sub(1));
        let is_in_zone = |place: u32| {
            let zone = space.zone_of(place);
            zone >= space.first && (zone as usize) < space.infos.len()
        };
        let is_right = match (piece.is_stored(), last) {
            (false, _) => true,
            // The place behind the last unit of a zone is in that zone.
            (true, Some(last)) => {
                is_in_zone(piece.place) && space.zone_of(piece.place) == space.zone_of(last.saturating_add(1))
            }
            (true, None) => false,
        };
        if is_right && piece.units > 0 && at.checked_add(piece.units).is_some_and(|end| end < LOST) {
            return Ok(());
        }
        Err(start_error(format!("object {id} with {piece:?} at {at}, which is none of the data")))
    }

    /// Counts and owners of places, of the files.
    fn take_places(&mut self) -> Result<()> {
        for (slot, file) in self.files.iter() {
            for (at, piece) in file.extents.iter().filter(|(_, piece)| piece.is_stored()) {
                let places = piece.place as usize..(piece.place + piece.units) as usize;
                if self.space.owners[places].iter().any(|owner| *owner != Owner::NONE) {
                    let reason = format!("object {} at {piece:?}, which has another object", file.id);
                    return Err(start_error(reason));
                }
                let zone = self.space.zone_of(piece.place);
                self.space.take(zone, piece, Owner { file: slot, unit: at });
            }
        }
        for slot in std::mem::take(&mut self.files.dirty) {
            self.files.recorded(slot);
        }
        self.files.changes = 0;
        // Records do not say how far the clock was.
        let born = self.files.iter().map(|(_, file)| file.born).max();
        self.now = self.now.max(self.space.live).max(born.unwrap_or(0));
        Ok(())
    }

    /// Zones go on as they were found, and a new generation of the journal begins.
    fn go_on(&mut self, zones: &[Zone]) -> Result<()> {
        for (zone, number) in zones.iter().zip(0..self.space.first) {
            match zone.state {
                ZoneState::Empty => self.log.free.push_back((number, Token::NONE)),
                ZoneState::ReadOnly | ZoneState::Offline => {}
                _ if self.log.used.contains(&number) => {}
                _ => self.reset_log_zone(number, Token::NONE, AT)?,
            }
        }
        // One zone fewer than there may be is open for data afterwards: the journal has two for a moment,
        // and what was found need not be finished, which would fill it up.
        self.adopt_zones(zones)?;
        self.roll(Kind::End, AT)?;
        while !self.log.stale.is_empty() {
            self.reset_stale(AT)?;
        }
        Ok(())
    }

    fn adopt_zones(&mut self, zones: &[Zone]) -> Result<()> {
        let unit = self.shape.unit;
        let mut open = 0;
        for number in self.space.first..zones.len() as u32 {
            let zone = &zones[number as usize];
            let valid = self.space.infos[number as usize].valid;
            self.recovery.scanned_blocks += u64::from(zone.state.is_active());
            let written = zone.write_pointer.map_or(0, |pointer| pointer - zone.start);
            match zone.state {
                ZoneState::ReadOnly if valid > 0 => {
                    self.space.infos[number as usize].state = BlockState::Failed;
                    self.collector.failed.push(number);
                }
                ZoneState::ReadOnly | ZoneState::Offline => {
                    self.space.infos[number as usize].state = BlockState::Bad;
                }
                ZoneState::Empty if valid > 0 => {
                    return Err(start_error(format!("data of objects in zone {number}, which is empty")));
                }
                ZoneState::Empty => self.add_free(number, Token::NONE),
                _ if valid == 0 => self.reset_found(number)?,
                ZoneState::Full => self.space.seal(number, &mut *self.victims, self.now),
                _ if open < self.space.gc() && written.is_multiple_of(unit) => {
                    let (next, end) = ((written / unit) as u32, self.space.capacities[number as usize]);
                    self.space.infos[number as usize].state = BlockState::Open;
                    let lifetime = self.lifetime_of(number);
                    self.space.frontiers[open] =
                        Frontier { zone: number, next, end, lifetime, ..Frontier::CLOSED };
                    self.space.free_units += u64::from(end - next);
                    open += 1;
                }
                _ => {
                    self.below.manage(ZoneAction::Finish, zone.start, META)?;
                    self.space.seal(number, &mut *self.victims, self.now);
                }
            }
        }
        if self.check_zones().is_err() {
            assert!(self.stopped.is_some(), "too few zones stop the layer");
        }
        Ok(())
    }

    /// The lifetime of the last live unit of a zone.
    fn lifetime_of(&self, zone: u32) -> Lifetime {
        let last = self.space.owners[self.space.places_of(zone)].iter().rfind(|owner| **owner != Owner::NONE);
        last.map_or_else(Lifetime::default, |owner| {
            let file = self.files.get(owner.file);
            self.learned.lifetime(file.hint, file.born, self.now)
        })
    }

    fn add_free(&mut self, zone: u32, ready: Token) {
        self.space.release(zone, ready);
        self.space.free_units += u64::from(self.space.capacities[zone as usize]);
    }

    /// Resets a zone without live data.
    fn reset_found(&mut self, zone: u32) -> Result<()> {
        match self.below.manage(ZoneAction::Reset, self.shape.start(zone), META) {
            Ok(done) => {
                self.read_capacity(zone, AT)?;
                self.add_free(zone, done);
                Ok(())
            }
            Err(NamespaceError::Zone(_)) => {
                self.give_up(zone);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn start_error(reason: String) -> HostFtlError {
    HostFtlError::Start { layer: INFO.name, reason }
}

fn damaged_at(seq: u64, zone: u32) -> HostFtlError {
    start_error(format!("page {seq} of the journal in zone {zone} is damaged"))
}
