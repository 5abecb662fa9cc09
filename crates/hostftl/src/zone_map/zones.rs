//! Opening and emptying zones, and what is done about those that fail.

use super::format::LOST;
use super::sabotage::Sabotage;
use super::space::Frontier;
use super::{NO_ZONE, ZoneMap};
use nandscape_core::zone::{ZoneAction, ZoneState};
use nandscape_core::{Cause, FtlError, Issue, NamespaceError, NamespaceResult, SimTime, Subsystem, Token};
use nandscape_ftl::victim::BlockState;

const TOO_FEW_ZONES: &str = "too few zones are left for the data";

impl<S: Subsystem> ZoneMap<S> {
    /// Opens a zone for a log that has none.
    #[cold]
    #[inline(never)]
    pub(super) fn open_zone(&mut self, log: usize, at: SimTime) -> NamespaceResult<()> {
        if self.space.frontiers[log].zone != NO_ZONE {
            self.seal_frontier(log);
        }
        while self.space.free.is_empty() && !self.space.collected.is_empty() {
            self.reset_next(at)?;
        }
        if !self.space.open(log) {
            return Err(self.full("no zone is free", 1));
        }
        let Frontier { zone, mut after, done, done_before, .. } = self.space.frontiers[log];
        let both = self.below.device.join(done, done_before);
        if self.sabotage != Sabotage::OpenWithoutOrder {
            let before = if self.space.overlaps { done_before } else { both };
            let before = self.below.device.join(before, after);
            after = self.below.flush(Issue::new(at, Cause::Meta).after(before))?;
            // Were the reset lost, what the zone held before would lie where records say that data is.
            self.log.gate = self.below.device.join(self.log.gate, after);
        }
        let frontier = &mut self.space.frontiers[log];
        (frontier.after, frontier.done, frontier.done_before) = (after, Token::NONE, both);
        let info = &mut self.zones.infos[zone as usize];
        assert_eq!((info.state, info.valid), (BlockState::Free, 0), "zone {zone}, which was free");
        info.state = BlockState::Open;
        Ok(())
    }

    /// A zone was emptied: it is reset once what made its units superfluous is durable.
    pub(super) fn emptied(&mut self, zone: u32, at: SimTime) -> NamespaceResult<Token> {
        assert_eq!(self.zones.infos[zone as usize].valid, 0, "valid units of zone {zone}");
        let mut after = self.commit(at)?;
        if self.sabotage == Sabotage::ResetWithoutWait {
            after = Token::NONE;
        }
        self.space.collected.push_back((zone, after));
        self.space.free_units += u64::from(self.space.capacities[zone as usize]);
        Ok(after)
    }

    /// Resets a zone that waits for it, of the data or else of the log: one at a time, and when what it waits
    /// for is known to be complete. A reset that is submitted early would hold up whatever comes after it on
    /// the same dies.
    pub(super) fn reset_in_time(&mut self, at: SimTime) -> NamespaceResult<()> {
        let next = self.space.collected.front().or(self.log.stale.front());
        let Some((_, after)) = next.copied() else { return Ok(()) };
        let both = self.below.device.join(after, self.space.resetting);
        if self.below.device.completion(both).is_some_and(|end| end > at) {
            return Ok(());
        }
        if self.space.collected.is_empty() { self.reset_stale(at) } else { self.reset_next(at) }
    }

    /// Resets the next emptied zone.
    fn reset_next(&mut self, at: SimTime) -> NamespaceResult<()> {
        let Some((zone, after)) = self.space.collected.front().copied() else { return Ok(()) };
        let issue = Issue::new(at, Cause::Gc).after(after);
        let reset = self.below.manage(ZoneAction::Reset, self.shape.start(zone), issue);
        match reset {
            Ok(done) => {
                self.space.collected.pop_front();
                self.space.resetting = done;
                let known = self.space.capacities[zone as usize];
                let capacity = self.read_capacity(zone, at)?;
                self.space.free_units = self.space.free_units + u64::from(capacity) - u64::from(known);
                self.zones.infos[zone as usize].state = BlockState::Free;
                self.space.release(zone, done);
                Ok(())
            }
            Err(NamespaceError::Zone(_)) => {
                self.space.collected.pop_front();
                self.space.free_units -= u64::from(self.space.capacities[zone as usize]);
                self.give_up(zone);
                self.check_zones()
            }
            Err(error) => Err(error),
        }
    }

    /// Units of a zone that was reset: one that could be written in part only may have all of its capacity
    /// again.
    pub(super) fn read_capacity(&mut self, zone: u32, at: SimTime) -> NamespaceResult<u32> {
        let known = self.space.capacities[zone as usize];
        if known == self.space.zone_units {
            return Ok(known);
        }
        let found = self.below.report(self.shape.start(zone), 1, at)?;
        let bytes = found.first().map_or(0, |found| found.capacity);
        let capacity = (bytes / u64::from(self.shape.unit_bytes)) as u32;
        self.space.capacities[zone as usize] = capacity;
        Ok(capacity)
    }

    /// A write to the frontier of a log failed. Afterwards it can be tried again, there or in another zone.
    #[cold]
    #[inline(never)]
    pub(super) fn write_failed(
        &mut self,
        log: usize,
        error: NamespaceError,
        at: SimTime,
    ) -> NamespaceResult<()> {
        if matches!(error, NamespaceError::Ftl(FtlError::ReadOnly { .. })) {
            return Err(self.stop("the zoned namespace takes no more writes"));
        }
        let frontier = self.space.frontiers[log];
        let zone = frontier.zone;
        let described = self.below.report(self.shape.start(zone), 1, at)?;
        let Some(described) = described.first() else { return Err(error) };
        match described.state {
            ZoneState::ReadOnly => {
                self.space.close(log);
                self.zones.infos[zone as usize].state = BlockState::Failed;
                self.collector.failed.push(zone);
            }
            ZoneState::Offline => {
                self.space.close(log);
                self.give_up(zone);
            }
            ZoneState::Full => self.seal_frontier(log),
            _ => {
                let capacity = (described.capacity / u64::from(self.shape.unit_bytes)) as u32;
                if capacity >= self.space.capacities[zone as usize] {
                    return Err(error);
                }
                self.space.shrink(zone, capacity);
                if self.space.frontiers[log].room() == 0 {
                    self.seal_frontier(log);
                }
            }
        }
        self.check_zones()
    }

    /// A zone is not used any more. What the map has there cannot be read.
    pub(super) fn give_up(&mut self, zone: u32) {
        let info = &mut self.zones.infos[zone as usize];
        assert!(!matches!(info.state, BlockState::Sealed | BlockState::Bad), "zone {zone}: {info:?}");
        info.state = BlockState::Bad;
    }

    /// Stops if too few zones are left for the logical capacity and what is kept free.
    pub(super) fn check_zones(&mut self) -> NamespaceResult<()> {
        let first = self.shape.identity.ring as usize;
        let zones = self.zones.infos[first..].iter().zip(&self.space.capacities[first..]);
        let good = zones.filter(|(info, _)| !matches!(info.state, BlockState::Bad | BlockState::Failed));
        let units: u64 = good.map(|(_, capacity)| u64::from(*capacity)).sum();
        let needed = u64::from(self.shape.identity.logical_units) + self.space.start_units;
        if units < needed { Err(self.stop(TOO_FEW_ZONES)) } else { Ok(()) }
    }

    /// Moves what zones hold that turned read-only.
    #[cold]
    #[inline(never)]
    pub(super) fn evacuate(&mut self, at: SimTime) -> NamespaceResult<()> {
        while let Some(zone) = self.collector.failed.last().copied() {
            assert_eq!(self.zones.infos[zone as usize].state, BlockState::Failed, "state of zone {zone}");
            self.move_all(zone, at)?;
            self.collector.failed.retain(|failed| *failed != zone);
            self.give_up(zone);
        }
        Ok(())
    }

    /// Checks who has which zone and which place; panics with the values.
    pub(super) fn check(&self) {
        let ring = self.shape.identity.ring;
        assert_eq!(self.space.free_units, self.space.count_free(), "units that can be written");
        let mut live = 0;
        for (lpn, place) in self.map.entries().iter().enumerate() {
            live += u64::from(place.is_some());
            if place.0 < LOST.0 {
                let owner = self.owners[place.index()].index();
                assert_eq!(owner, lpn, "owner of {place:?}");
                assert!(self.zones.is_valid(*place), "unit {lpn} is at {place:?}, which is not valid");
                assert!(self.zones.block_of(*place) >= ring, "unit {lpn} is in the metadata at {place:?}");
            }
        }
        assert_eq!(live, self.map.live, "mapped units");
        let valid: u64 = self.zones.infos.iter().map(|info| u64::from(info.valid)).sum();
        let lost = self.map.entries().iter().filter(|place| **place == LOST).count() as u64;
        assert_eq!(valid + lost, live, "valid places");
        for (zone, info) in self.zones.infos.iter().enumerate().skip(ring as usize) {
            let zone = zone as u32;
            assert_eq!(self.zones.count_bits(zone), info.valid, "valid places of zone {zone}");
            let is_free = self.space.free.iter().any(|(free, _)| *free == zone);
            let is_open = self.space.frontiers.iter().any(|frontier| frontier.zone == zone);
            assert_eq!(info.state == BlockState::Free, is_free, "zone {zone} is {info:?}, free: {is_free}");
            assert_eq!(info.state == BlockState::Open, is_open, "zone {zone} is {info:?}, open: {is_open}");
        }
    }
}
