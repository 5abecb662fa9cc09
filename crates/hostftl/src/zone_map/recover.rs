//! What a start makes of what the zones hold.

use super::format::{self, Change, Header, Kind, LOST};
use super::log::Draft;
use super::sabotage::Sabotage;
use super::space::Frontier;
use super::{INFO, ZoneMap};
use crate::error::HostFtlError;
use nandscape_core::zone::{Zone, ZoneAction, ZoneAttributes, ZoneState};
use nandscape_core::{
    Cause, Extent, FtlError, Issue, Lpn, NamespaceError, Ppn, RecoveryReport, SimTime, Subsystem, Token,
};
use nandscape_ftl::victim::BlockState;

type Result<T> = std::result::Result<T, HostFtlError>;

const AT: SimTime = SimTime::ZERO;
const META: Issue = Issue::new(AT, Cause::Meta);

/// The log as it was found.
#[derive(Debug)]
struct Found {
    /// Zones with pages: the number of the first page, the zone, and how many pages.
    zones: Vec<(u64, u32, u32)>,
    /// Number of the first page of the last complete checkpoint, and of the page behind the last.
    checkpoint: u64,
    end: u64,
}

/// What the pages of the log say besides the map.
#[derive(Debug, Default)]
struct Told {
    /// Records of data that is not there.
    ignored: u64,
    /// An incomplete checkpoint behind the complete one: its first page, the first unit that is in none of
    /// its parts, and whether it says what the map says now.
    draft: Option<(Draft, bool)>,
    is_clean: bool,
}

impl<S: Subsystem> ZoneMap<S> {
    /// Makes the map of what the zones hold; all zones of a namespace that keeps no data are empty.
    pub(super) fn start(&mut self) -> Result<()> {
        let zones = self.below.report(0, self.shape.identity.zones.into(), AT)?;
        assert_eq!(zones.len(), self.shape.identity.zones as usize, "zones in a report of all");
        for (zone, capacity) in zones.iter().zip(&mut self.space.capacities) {
            // A zone that ended early takes as much as any other once it is reset.
            let is_whole_again =
                zone.state == ZoneState::Full && zone.attributes.has(ZoneAttributes::RESET_RECOMMENDED);
            if !is_whole_again {
                *capacity = (zone.capacity / u64::from(self.shape.unit_bytes)) as u32;
            }
        }
        let ring = self.shape.identity.ring as usize;
        let holds_nothing =
            |zone: &Zone| matches!(zone.state, ZoneState::Empty | ZoneState::ReadOnly | ZoneState::Offline);
        let is_new = zones[ring..].iter().all(holds_nothing);
        let found = self.find_log(&zones)?;
        let Some(found) = found.filter(|found| found.checkpoint > 0) else {
            if is_new {
                return self.make_new(&zones);
            }
            return Err(start_error("data, and no complete checkpoint of a map".to_owned()));
        };
        self.recovery.checkpoint = found.checkpoint;
        let told = self.read_log(&found, &zones)?;
        self.count_valid();
        self.recovery.was_clean = told.is_clean;
        self.recovery.live_pages = self.map.live;
        match self.go_on(&found, &told, &zones) {
            // What there is can be read.
            Err(HostFtlError::Namespace(NamespaceError::Ftl(FtlError::ReadOnly { reason }))) => {
                self.stop(reason);
                let infos = self.zones.infos.iter_mut().enumerate();
                let is_free = |zone: usize| self.space.free.iter().any(|(free, _)| *free as usize == zone);
                let unknown = infos.filter(|(zone, info)| info.state == BlockState::Free && !is_free(*zone));
                unknown.for_each(|(_, info)| info.state = BlockState::Bad);
                Ok(())
            }
            done => done,
        }
    }

    fn go_on(&mut self, found: &Found, told: &Told, zones: &[Zone]) -> Result<()> {
        self.adopt_log(found, told, zones)?;
        let order = self.make_safe(told)?;
        self.adopt_zones(zones, order)
    }

    /// A namespace without data: an empty checkpoint, whatever an earlier attempt left of one.
    fn make_new(&mut self, zones: &[Zone]) -> Result<()> {
        let ring = self.shape.identity.ring;
        for zone in 0..ring {
            match zones[zone as usize].state {
                ZoneState::Empty => self.log.free.push_back((zone, Token::NONE)),
                ZoneState::ReadOnly | ZoneState::Offline => {}
                _ => self.reset_log_zone(zone, Token::NONE, AT)?,
            }
        }
        for zone in ring..self.shape.identity.zones {
            if zones[zone as usize].state == ZoneState::Empty {
                self.add_free(zone, Token::NONE);
            } else {
                self.give_up(zone);
            }
        }
        let _ = self.check_zones();
        self.write_checkpoint(Kind::Begin, Kind::End, AT)?;
        let order = self.commit(AT)?;
        self.space.free.iter_mut().for_each(|(_, ready)| *ready = order);
        self.recovery = RecoveryReport::default();
        Ok(())
    }

    fn add_free(&mut self, zone: u32, ready: Token) {
        self.zones.infos[zone as usize].state = BlockState::Free;
        self.space.release(zone, ready);
        self.space.free_units += u64::from(self.space.capacities[zone as usize]);
    }

    /// The zones of the log in their order; `None` where no page of one can be found.
    fn find_log(&mut self, zones: &[Zone]) -> Result<Option<Found>> {
        let mut found = Vec::new();
        for zone in 0..self.shape.identity.ring {
            let described = &zones[zone as usize];
            if matches!(described.state, ZoneState::Empty | ZoneState::Offline) {
                continue;
            }
            if let Some(first) = self.header(zone, 0) {
                found.push((first.seq, zone, self.pages_of(zone, described)));
            }
        }
        found.sort_unstable();
        let Some(&(first, zone, pages)) = found.last() else { return Ok(None) };
        // Zones before the last one are as long as the number of the next one says.
        for index in 1..found.len() {
            found[index - 1].2 = (found[index].0 - found[index - 1].0) as u32;
        }
        let last = self.header(zone, pages - 1).ok_or_else(|| damaged(first + u64::from(pages) - 1, zone))?;
        Ok(Some(Found { checkpoint: last.checkpoint, end: last.seq + 1, zones: found }))
    }

    /// Pages of the log in a zone.
    fn pages_of(&mut self, zone: u32, described: &Zone) -> u32 {
        let page = u64::from(self.shape.page_bytes);
        match described.write_pointer {
            Some(pointer) => ((pointer - described.start) / page) as u32,
            None if described.state == ZoneState::Full && self.header(zone, self.last_page()).is_some() => {
                self.last_page() + 1
            }
            // It was finished, or failed: what was written ends where no page of the log is.
            None => (1..=self.last_page()).find(|page| self.header(zone, *page).is_none()).unwrap_or(1),
        }
    }

    fn last_page(&self) -> u32 {
        let bytes = u64::from(self.space.zone_units) * u64::from(self.shape.unit_bytes);
        (bytes / u64::from(self.shape.page_bytes)) as u32 - 1
    }

    fn page(&mut self, zone: u32, page: u32) -> Option<Vec<u8>> {
        let bytes = u64::from(self.shape.page_bytes);
        let extent = Extent::new(self.shape.start(zone) + u64::from(page) * bytes, bytes);
        let mut data = vec![0; self.shape.page_bytes as usize];
        self.recovery.metadata_pages += 1;
        self.below.read(extent, Some(&mut data), META).ok().map(|_| data)
    }

    fn header(&mut self, zone: u32, page: u32) -> Option<Header> {
        let mut data = self.page(zone, page)?;
        format::decode(&mut data).map(|(header, _)| header)
    }

    /// Applies the log from the last complete checkpoint on.
    fn read_log(&mut self, found: &Found, zones: &[Zone]) -> Result<Told> {
        let unit = u64::from(self.shape.unit_bytes);
        // Places from here on in each zone hold nothing that was recorded.
        let written: Vec<u32> = zones
            .iter()
            .map(|zone| match zone.write_pointer {
                Some(pointer) if self.sabotage != Sabotage::BelieveAllRecords => {
                    ((pointer - zone.start) / unit) as u32
                }
                _ => (zone.capacity / unit) as u32,
            })
            .collect();
        let mut told = Told::default();
        for &(first, zone, pages) in &found.zones {
            for page in 0..pages {
                let seq = first + u64::from(page);
                if seq < found.checkpoint {
                    continue;
                }
                let mut data = self.page(zone, page).ok_or_else(|| damaged(seq, zone))?;
                let (header, payload) = format::decode(&mut data)
                    .filter(|(header, _)| header.seq == seq)
                    .ok_or_else(|| damaged(seq, zone))?;
                self.apply(found, &header, payload, &written, &mut told)?;
            }
        }
        Ok(told)
    }

    fn apply(
        &mut self,
        found: &Found,
        header: &Header,
        payload: &[u8],
        written: &[u32],
        told: &mut Told,
    ) -> Result<()> {
        let is_complete = header.part_of == found.checkpoint;
        told.is_clean = header.kind == Kind::CleanEnd;
        match header.kind {
            Kind::Begin | Kind::Restart => {
                if let Some(difference) = self.shape.identity.difference(payload) {
                    return Err(start_error(difference));
                }
                if !is_complete {
                    let draft = Draft { start: header.seq, next: 0 };
                    told.draft = Some((draft, header.kind == Kind::Restart));
                }
            }
            Kind::Map => {
                let first = header.part * self.log.entries_per_page();
                if is_complete {
                    for (lpn, place) in (first..).zip(format::entries(payload)) {
                        self.place(Lpn(lpn), place, written, told)?;
                        self.recovery.map_entries += u64::from(place.is_some());
                    }
                } else if let Some((draft, _)) = &mut told.draft {
                    draft.next = (first + header.count).min(self.shape.identity.logical_units);
                }
            }
            Kind::End | Kind::CleanEnd => {}
            Kind::Records => {
                self.log.since += 1;
                self.recovery.scanned_pages += 1;
                // What was written before the draft was complete may not be in it.
                if let Some((_, is_current)) = &mut told.draft {
                    *is_current = false;
                }
                for change in format::changes(payload)
                    .ok_or_else(|| start_error("a page of records that no layer writes".to_owned()))?
                {
                    match change {
                        Change::Placed(lpn, place) => self.place(lpn, place, written, told)?,
                        Change::Dropped(first, count) => {
                            self.recovery.drop_records += 1;
                            let end = first.0.saturating_add(count).min(self.shape.identity.logical_units);
                            let mut next = first.0;
                            while let Some(lpn) = self.map.next_mapped(next, end) {
                                self.map.unset(lpn);
                                next = lpn.0 + 1;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Maps a unit to where a record or a checkpoint says that it is.
    fn place(&mut self, lpn: Lpn, place: Ppn, written: &[u32], told: &mut Told) -> Result<()> {
        let old = *self
            .map
            .entries()
            .get(lpn.index())
            .ok_or_else(|| start_error(format!("unit {} behind the last one", lpn.0)))?;
        if place == Ppn::NONE || place == old {
            return Ok(());
        }
        if place != LOST {
            let zone = place.0 / self.space.zone_units;
            if zone < self.shape.identity.ring || zone >= self.shape.identity.zones {
                return Err(start_error(format!(
                    "unit {} at place {}, which is none of the data",
                    lpn.0, place.0
                )));
            }
            if place.0 % self.space.zone_units >= written[zone as usize] {
                told.ignored += 1;
                return Ok(());
            }
        }
        self.map.set(lpn, place, old);
        Ok(())
    }

    /// The log goes on where it was found to end.
    fn adopt_log(&mut self, found: &Found, told: &Told, zones: &[Zone]) -> Result<()> {
        let pages = self.last_page() + 1;
        self.log.seq = found.end;
        self.log.checkpoint = found.checkpoint;
        if let Some((draft, true)) = told.draft {
            self.log.draft = Some(draft);
        }
        let kept = self.drop_draft(found, zones)?;
        for &(first, zone, count) in kept {
            let is_last = first + u64::from(count) == self.log.seq;
            if first + u64::from(count) <= found.checkpoint && !is_last {
                self.reset_log_zone(zone, Token::NONE, AT)?;
                continue;
            }
            self.log.used.push_back((first, zone));
            (self.log.next, self.log.end) = (count, pages);
        }
        let zones = self.below.report(0, self.shape.identity.ring.into(), AT)?;
        for (zone, number) in zones.iter().zip(0..) {
            let is_used = self.log.used.iter().any(|(_, used)| *used == number);
            let is_free = self.log.free.iter().any(|(free, _)| *free == number);
            match zone.state {
                ZoneState::Empty if !is_free => self.log.free.push_back((number, Token::NONE)),
                ZoneState::ReadOnly | ZoneState::Offline | ZoneState::Empty => {}
                _ if is_used => {}
                // Nothing of the log could be read there.
                _ => self.reset_log_zone(number, Token::NONE, AT)?,
            }
        }
        let last = self.log.used.back().map(|(_, zone)| &zones[*zone as usize]);
        let goes_on = last.and_then(|zone| zone.write_pointer).is_some_and(|pointer| {
            (pointer % self.shape.zone_bytes) == u64::from(self.log.next) * u64::from(self.shape.page_bytes)
        });
        if !goes_on {
            if let Some(start) = last.filter(|zone| zone.state.is_active()).map(|zone| zone.start) {
                self.below.manage(ZoneAction::Finish, start, META)?;
            }
            self.log.end = self.log.next;
        }
        Ok(())
    }

    /// Where the last zone of the log takes no more pages, a start that goes on with an incomplete checkpoint
    /// would take another zone, and losses of power one after the other all of them: zones that hold nothing
    /// but that checkpoint are emptied, the last one first, before it begins anew. Gives the other zones.
    fn drop_draft<'a>(&mut self, found: &'a Found, zones: &[Zone]) -> Result<&'a [(u64, u32, u32)]> {
        let mut kept = found.zones.as_slice();
        let Some(draft) = self.log.draft else { return Ok(kept) };
        let goes_on = kept.last().is_some_and(|(_, zone, count)| {
            let Zone { start, write_pointer, .. } = zones[*zone as usize];
            let written = u64::from(*count) * u64::from(self.shape.page_bytes);
            write_pointer == Some(start + written)
        });
        while let Some((&(first, zone, _), before)) = kept.split_last()
            && !goes_on
            && first >= draft.start
        {
            self.reset_log_zone(zone, self.log.gate, AT)?;
            self.log.gate = self.space.resetting;
            (self.log.seq, self.log.draft, kept) = (first, None, before);
        }
        Ok(kept)
    }

    /// Counts and owners of places, of the map.
    fn count_valid(&mut self) {
        for lpn in 0..self.shape.identity.logical_units {
            let place = self.map.get(Lpn(lpn));
            if place.0 < LOST.0 {
                self.zones.set(place, self.zones.block_of(place));
                self.owners[place.index()] = Lpn(lpn);
            }
        }
    }

    /// Before anything is written to places that ignored records name, a checkpoint takes these out of the
    /// log. Returns what writes wait for.
    fn make_safe(&mut self, told: &Told) -> Result<Token> {
        let is_needed = told.ignored > 0 || told.draft.is_some() || self.log.is_short();
        if !is_needed || self.sabotage == Sabotage::KeepIgnoredRecords {
            self.log.draft = None;
            return Ok(Token::NONE);
        }
        self.write_checkpoint(Kind::Restart, Kind::End, AT)?;
        Ok(self.commit(AT)?)
    }

    /// Zones go on as they were found.
    fn adopt_zones(&mut self, zones: &[Zone], order: Token) -> Result<()> {
        let unit = u64::from(self.shape.unit_bytes);
        let mut open = 0;
        for number in self.shape.identity.ring..self.shape.identity.zones {
            let zone = &zones[number as usize];
            let valid = self.zones.infos[number as usize].valid;
            self.recovery.scanned_blocks += u64::from(zone.state.is_active());
            let written = zone.write_pointer.map_or(0, |pointer| pointer - zone.start);
            match zone.state {
                ZoneState::Empty => self.add_free(number, order),
                ZoneState::ReadOnly if valid > 0 => {
                    self.zones.infos[number as usize].state = BlockState::Failed;
                    self.collector.failed.push(number);
                }
                ZoneState::ReadOnly | ZoneState::Offline => {
                    self.zones.infos[number as usize].state = BlockState::Bad;
                }
                _ if valid == 0 => self.reset_found(number, order)?,
                ZoneState::Full => self.seal(number),
                _ if open < self.space.frontiers.len() && written.is_multiple_of(unit) => {
                    let (next, end) = ((written / unit) as u32, self.space.capacities[number as usize]);
                    self.zones.infos[number as usize].state = BlockState::Open;
                    self.space.frontiers[open] = Frontier::at(number, (next, end), order);
                    self.space.free_units += u64::from(end - next);
                    open += 1;
                }
                _ => {
                    self.below.manage(ZoneAction::Finish, zone.start, META.after(order))?;
                    self.seal(number);
                }
            }
        }
        self.now = self.map.live;
        if self.check_zones().is_err() {
            assert!(self.stopped.is_some(), "too few zones stop the layer");
        }
        Ok(())
    }

    /// Resets a zone in which nothing is mapped.
    fn reset_found(&mut self, zone: u32, order: Token) -> Result<()> {
        match self.below.manage(ZoneAction::Reset, self.shape.start(zone), META.after(order)) {
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

fn damaged(seq: u64, zone: u32) -> HostFtlError {
    start_error(format!("page {seq} of the metadata in zone {zone} is damaged"))
}
