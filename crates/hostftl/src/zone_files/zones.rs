//! Choosing, opening and emptying zones, and what is done about those that fail.

use super::placement::{Facts, GOOD, Lifetime, NEVER};
use super::sabotage::Sabotage;
use super::space::{Frontier, NO_ZONE, User};
use super::{Writer, ZoneFiles};
use nandscape_core::zone::{ZoneAction, ZoneState};
use nandscape_core::{
    Cause, FlashError, FtlError, Hint, Issue, NamespaceError, NamespaceResult, SimTime, Subsystem, Token,
};
use nandscape_ftl::victim::BlockState;

const TOO_FEW_ZONES: &str = "too few zones are left for the files";

impl<S: Subsystem> ZoneFiles<S> {
    /// The open zone with room that takes the next data of a writer.
    #[inline(always)]
    pub(super) fn frontier(&mut self, writer: Writer, at: SimTime) -> NamespaceResult<usize> {
        if !writer.moves {
            let file = self.files.get(writer.slot);
            let (index, zone) = file.frontier;
            if file.frontier_hint == writer.hint && self.space.frontiers[usize::from(index)].zone == zone {
                return Ok(usize::from(index));
            }
        }
        self.choose(writer, at)
    }

    #[inline(never)]
    fn choose(&mut self, writer: Writer, at: SimTime) -> NamespaceResult<usize> {
        let born = self.files.get(writer.slot).born;
        let lifetime = self.learned.lifetime(writer.hint, born, self.now);
        let index = if writer.moves {
            self.choose_for_moves(writer.slot, lifetime, at)?
        } else {
            self.choose_for_host(writer.slot, lifetime, at)?
        };
        if !writer.moves {
            let is_large = self.rest(writer.slot, writer.hint) >= self.space.zone_units / 2;
            let file = self.files.get_mut(writer.slot);
            file.frontier = (index as u16, self.space.frontiers[index].zone);
            file.frontier_hint = writer.hint;
            self.space.frontiers[index].user = User { slot: writer.slot, units: 0, at: self.now, is_large };
        }
        Ok(index)
    }

    /// Units that a file is expected to write from now on, at most a zone.
    fn rest(&self, slot: u32, hint: Hint) -> u32 {
        self.learned.rest(hint, self.files.get(slot).stored).min(self.space.zone_units.into()) as u32
    }

    /// The rule of `ZenFS`: the zone that fits best; where none fits well, a new one if another one may be
    /// open; else whatever fits at all; else a zone is finished to open one.
    fn choose_for_host(&mut self, slot: u32, lifetime: Lifetime, at: SimTime) -> NamespaceResult<usize> {
        let hosts = self.space.gc();
        let rest = self.rest(slot, lifetime.hint);
        let best = self.best(0..hosts, slot, (lifetime, rest));
        if let Some((fit, index)) = best
            && fit < GOOD
        {
            return Ok(index);
        }
        let is_open = |index: &usize| self.space.frontiers[*index].is_open();
        let open = (0..hosts).filter(is_open).count();
        // One more may be open for logs, which are waited for.
        let limit = hosts - usize::from(lifetime.hint != Hint::SHORT && hosts > 1);
        if open < limit && self.has_zone() {
            self.finish_nearly_full(at)?;
            return self.open_any(0..hosts, lifetime, at);
        }
        let least = (0..hosts).filter(is_open).min_by_key(|index| self.space.frontiers[*index].room());
        let room = least.map_or(0, |index| self.space.frontiers[index].room());
        // A large file is worth what is left of a zone that is nearly full.
        let is_worth = rest >= self.space.zone_units / 2 && room <= self.space.zone_units / 10;
        if let Some((fit, index)) = best
            && fit < NEVER
            && !(fit > GOOD && is_worth)
        {
            return Ok(index);
        }
        if let Some(index) = least
            && self.has_zone()
            && self.space.free_units > self.space.start_units() + u64::from(room)
        {
            self.finish(index, at)?;
            return self.open_any(index..index + 1, lifetime, at);
        }
        // Space is short: lifetimes come second.
        match best.or_else(|| self.best(hosts..hosts + 1, slot, (lifetime, rest))) {
            Some((_, index)) => Ok(index),
            None => self.open_any(0..hosts + 1, lifetime, at),
        }
    }

    /// Data that is moved has a zone of its own, and goes to others that fit better.
    fn choose_for_moves(&mut self, slot: u32, lifetime: Lifetime, at: SimTime) -> NamespaceResult<usize> {
        let own = self.space.gc();
        if !self.space.frontiers[own].is_open() && self.has_zone() {
            return self.open_any(own..own + 1, lifetime, at);
        }
        let own_fit = self.best(own..own + 1, slot, (lifetime, 0));
        let other = self
            .best(0..own, slot, (lifetime, 0))
            .filter(|(fit, _)| own_fit.is_none_or(|(own, _)| *fit < own));
        match other.or(own_fit) {
            Some((_, index)) => Ok(index),
            None => self.open_any(0..own, lifetime, at),
        }
    }

    /// The open zone that fits best, and how well.
    fn best(
        &self,
        indexes: std::ops::Range<usize>,
        slot: u32,
        (data, rest): (Lifetime, u32),
    ) -> Option<(u32, usize)> {
        let open = indexes.filter(|index| self.space.frontiers[*index].is_open());
        let fits = open.map(|index| {
            let frontier = self.space.frontiers[index];
            let Frontier { lifetime: zone, user, .. } = frontier;
            let (now, zone_units) = (self.now, self.space.zone_units);
            let is_shared = user.is_busy(slot, now, zone_units);
            let facts = Facts { data, zone, is_shared, rest, room: frontier.room(), now, zone_units };
            ((self.shape.config.fit)(&facts), index)
        });
        fits.min()
    }

    fn has_zone(&self) -> bool {
        !self.space.free.is_empty() || !self.space.collected.is_empty()
    }

    /// Opens a zone for a frontier that has none.
    fn open_any(
        &mut self,
        mut indexes: std::ops::Range<usize>,
        lifetime: Lifetime,
        at: SimTime,
    ) -> NamespaceResult<usize> {
        while self.space.free.is_empty() && !self.space.collected.is_empty() {
            self.reset_next(at)?;
        }
        let index = indexes.find(|index| !self.space.frontiers[*index].is_open());
        match index.filter(|index| self.space.open(*index, lifetime)) {
            Some(index) => Ok(index),
            None => Err(self.no_room()),
        }
    }

    /// No zone can be written, which space that is kept back is to prevent: too many have failed at once.
    #[cold]
    pub(super) fn no_room(&self) -> NamespaceError {
        FtlError::DeviceFull {
            reason: "no zone is free",
            needed_pages: 1,
            free_pages: self.space.free_units,
            live_pages: self.space.live,
            total_pages: self.space.total(),
        }
        .into()
    }

    /// Finishes open zones that have less left than the threshold.
    fn finish_nearly_full(&mut self, at: SimTime) -> NamespaceResult<()> {
        let threshold = u64::from(self.shape.config.finish_threshold) * u64::from(self.space.zone_units);
        for index in 0..self.space.gc() {
            let frontier = self.space.frontiers[index];
            let room = u64::from(frontier.room());
            let is_spare = self.space.free_units > self.space.start_units() + room;
            if frontier.is_open() && room * 100 < threshold && is_spare {
                self.finish(index, at)?;
            }
        }
        Ok(())
    }

    /// Finishes the zone of a frontier: what it has left is not written.
    pub(super) fn finish(&mut self, index: usize, at: SimTime) -> NamespaceResult<()> {
        let frontier = self.space.frontiers[index];
        assert!(frontier.zone != NO_ZONE, "frontier {index} has no zone to finish");
        let after = self.below.device.join(frontier.done, frontier.after);
        let issue = Issue::new(at, Cause::Finish).after(after);
        match self.below.manage(ZoneAction::Finish, self.shape.start(frontier.zone), issue) {
            Ok(_) => {
                self.stats.finishes += 1;
                self.seal_frontier(index);
                Ok(())
            }
            Err(error @ NamespaceError::Zone(_)) => self.write_failed(index, error, at),
            Err(error) => Err(error),
        }
    }

    /// The zone of a frontier takes no more: a candidate from now on.
    pub(super) fn seal_frontier(&mut self, index: usize) {
        let zone = self.space.close(index);
        self.space.seal(zone, &mut *self.victims, self.now);
    }

    /// Zones without live data can be reset once the records are durable that say so.
    #[inline(never)]
    pub(super) fn reclaim_emptied(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let is_early = self.sabotage == Sabotage::ResetBeforeRecords;
        let after = if is_early { Token::NONE } else { self.commit(None, at)? };
        for zone in self.space.emptied.drain(..) {
            assert_eq!(self.space.infos[zone as usize].valid, 0, "live units of zone {zone}");
            self.space.collected.push_back((zone, after));
            self.space.free_units += u64::from(self.space.capacities[zone as usize]);
        }
        Ok(after)
    }

    /// Resets a zone that waits for it, of the data or else of the journal: one at a time, and when what it
    /// waits for is known to be complete. A reset that is submitted early would hold up whatever comes after
    /// it on the same dies.
    #[inline(never)]
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
        let known = u64::from(self.space.capacities[zone as usize]);
        match reset {
            Ok(done) => {
                self.space.collected.pop_front();
                self.space.resetting = done;
                self.stats.resets += 1;
                let capacity = self.read_capacity(zone, at)?;
                self.space.free_units = self.space.free_units + u64::from(capacity) - known;
                self.space.release(zone, done);
                Ok(())
            }
            Err(NamespaceError::Zone(_)) => {
                self.space.collected.pop_front();
                self.space.free_units -= known;
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
        let capacity = (found.first().map_or(0, |found| found.capacity) / self.shape.unit) as u32;
        self.space.capacities[zone as usize] = capacity;
        self.count_capacity();
        Ok(capacity)
    }

    /// A write to the zone of a frontier failed. Afterwards it can be tried again, there or in another zone.
    #[cold]
    #[inline(never)]
    pub(super) fn write_failed(
        &mut self,
        index: usize,
        error: NamespaceError,
        at: SimTime,
    ) -> NamespaceResult<()> {
        let error = self.of_a_zone(error)?;
        let zone = self.space.frontiers[index].zone;
        let described = self.below.report(self.shape.start(zone), 1, at)?;
        let Some(described) = described.first() else { return Err(error) };
        match described.state {
            ZoneState::ReadOnly => {
                self.space.close(index);
                self.space.infos[zone as usize].state = BlockState::Failed;
                self.collector.failed.push(zone);
            }
            ZoneState::Offline => {
                self.space.close(index);
                self.give_up(zone);
            }
            ZoneState::Full => self.seal_frontier(index),
            _ => {
                let capacity = (described.capacity / self.shape.unit) as u32;
                if capacity >= self.space.capacities[zone as usize] {
                    return Err(error);
                }
                self.space.shrink(zone, capacity);
                if self.space.frontiers[index].room() == 0 {
                    self.seal_frontier(index);
                }
            }
        }
        self.check_zones()
    }

    /// Passes on the failure of a device as a whole, which another zone would not help.
    pub(super) fn of_a_zone(&mut self, error: NamespaceError) -> NamespaceResult<NamespaceError> {
        match error {
            NamespaceError::Ftl(
                FtlError::ReadOnly { reason } | FtlError::Flash(FlashError::ReadOnly { reason }),
            ) => Err(self.stop(reason)),
            NamespaceError::Ftl(FtlError::Flash(FlashError::Injected(_))) => Err(error),
            error => Ok(error),
        }
    }

    /// A zone is not used any more. What files have there cannot be read.
    pub(super) fn give_up(&mut self, zone: u32) {
        let info = &mut self.space.infos[zone as usize];
        assert!(!matches!(info.state, BlockState::Sealed | BlockState::Bad), "zone {zone}: {info:?}");
        info.state = BlockState::Bad;
        self.count_capacity();
    }

    /// What files can have, with the zones that there are now.
    pub(super) fn count_capacity(&mut self) {
        self.capacity = self.space.total().saturating_sub(self.shape.config.reserve_units);
    }

    /// Stops if too few zones are left for the files and what is kept free.
    pub(super) fn check_zones(&mut self) -> NamespaceResult<()> {
        self.count_capacity();
        let needed = self.space.live + self.files.owed + self.space.floor_units;
        if self.space.total() < needed { Err(self.stop(TOO_FEW_ZONES)) } else { Ok(()) }
    }

    /// Moves what zones hold that turned read-only.
    #[cold]
    #[inline(never)]
    pub(super) fn evacuate(&mut self, at: SimTime) -> NamespaceResult<()> {
        while let Some(zone) = self.collector.failed.last().copied() {
            assert_eq!(self.space.infos[zone as usize].state, BlockState::Failed, "state of zone {zone}");
            self.move_all(zone, at)?;
            self.collector.failed.retain(|failed| *failed != zone);
            self.give_up(zone);
        }
        Ok(())
    }

    /// Checks who has which zone and which place; panics with the values.
    pub(super) fn check(&self) {
        let space = &self.space;
        assert_eq!(space.free_units, space.count_free(), "units that can be written");
        let (mut stored, mut owed, mut record_bytes) = (0, 0, 0);
        for (slot, file) in self.files.iter() {
            let mut units = 0;
            for (at, piece) in file.extents.iter().filter(|(_, piece)| piece.is_stored()) {
                units += u64::from(piece.units);
                for unit in 0..piece.units {
                    let owner = space.owners[(piece.place + unit) as usize];
                    assert_eq!((owner.file, owner.unit), (slot, at + unit), "owner in {piece:?} at {at}");
                }
                assert!(space.zone_of(piece.place) >= space.first, "{piece:?} is in the metadata");
            }
            assert_eq!(file.stored, units, "units of object {}", file.id);
            let end = u64::from(file.extents.end()) * self.shape.unit;
            assert!(
                end < file.size + self.shape.unit,
                "object {} of {} bytes ends at {end}",
                file.id,
                file.size
            );
            assert_eq!(file.is_dirty, self.files.dirty.contains(&slot), "object {}", file.id);
            assert_eq!(file.tail.is_some(), self.files.tails.contains(&slot), "object {}", file.id);
            stored += units;
            owed += u64::from(file.owes());
            record_bytes += file.record_bytes();
        }
        let live: u64 = space.infos.iter().map(|info| u64::from(info.valid)).sum();
        assert_eq!(
            (stored, owed, record_bytes),
            (live, self.files.owed, self.files.record_bytes),
            "of all files"
        );
        assert_eq!(live, space.live, "live units");
        for (zone, info) in space.infos.iter().enumerate().skip(space.first as usize) {
            let zone = zone as u32;
            let places = &space.owners[space.places_of(zone)];
            let owned = places.iter().filter(|owner| owner.file != super::space::NO_FILE).count();
            assert_eq!(owned as u32, info.valid, "live places of zone {zone}");
            let is_free = space.free.iter().any(|(free, _)| *free == zone);
            let is_open = space.frontiers.iter().any(|frontier| frontier.zone == zone);
            assert_eq!(info.state == BlockState::Free, is_free, "zone {zone} is {info:?}, free: {is_free}");
            assert_eq!(info.state == BlockState::Open, is_open, "zone {zone} is {info:?}, open: {is_open}");
        }
    }
}
