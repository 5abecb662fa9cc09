//! Which zones data can be written to, and how much of them.

use nandscape_core::{Ppn, Token};
use std::collections::VecDeque;

/// No zone.
pub(super) const NO_ZONE: u32 = u32::MAX;

/// Where the next unit of a log goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frontier {
    /// The open zone, or [`NO_ZONE`].
    pub zone: u32,
    /// Its next unit, and the one behind its last.
    pub next: u32,
    pub end: u32,
    /// The next write waits for this: the reset of the zone, and the zone before.
    pub after: Token,
    /// Completes when the writes to the zone do, and those to the zones before.
    pub done: Token,
    pub done_before: Token,
}

impl Frontier {
    pub const CLOSED: Self = Self::at(NO_ZONE, (0, 0), Token::NONE);

    /// At a unit of a zone, before the unit `end`.
    pub const fn at(zone: u32, (next, end): (u32, u32), after: Token) -> Self {
        Self { zone, next, end, after, done: Token::NONE, done_before: Token::NONE }
    }

    /// Nothing that was written so far has to be waited for.
    pub const fn forget_writes(&mut self) {
        (self.done, self.done_before) = (Token::NONE, Token::NONE);
    }

    #[inline]
    pub const fn room(&self) -> u32 {
        self.end - self.next
    }
}

/// Zones with data, free zones, and the number of units that can still be written.
#[derive(Debug)]
pub(super) struct Space {
    /// Units from one zone to the next, in places.
    pub zone_units: u32,
    /// Units of each zone that can be written.
    pub capacities: Vec<u32>,
    /// Empty zones with what their first write waits for, that which is empty longest in front.
    pub free: VecDeque<(u32, Token)>,
    /// Zones without data, each with what its reset waits for: until everything is durable that made its
    /// units superfluous.
    pub collected: VecDeque<(u32, Token)>,
    /// Completes when the last reset does.
    pub resetting: Token,
    /// By log: host logs, then that of moved data unless it shares one.
    pub frontiers: Vec<Frontier>,
    pub host_logs: usize,
    /// Units that can be written: of frontiers, free zones and collected zones.
    pub free_units: u64,
    /// A zone of a log may be written before the zone before it is durable, though not before the one before
    /// that: so many active zones the device allows.
    pub overlaps: bool,
    /// With fewer of them a victim is chosen ...
    pub start_units: u64,
    /// ... and has to be empty before there are fewer than these.
    pub floor_units: u64,
    /// Units of host writes to each log, so far and until the last reset of counters.
    pub host_units: Vec<[u64; 2]>,
    /// By zone, for reports: the log that it was opened for last. Unknown of zones that were full before the
    /// start, and then the first.
    pub opened_for: Vec<u16>,
}

impl Space {
    pub fn new(zone_units: u32, zones: u32, host_logs: usize, has_gc_log: bool, gc_low: u32) -> Self {
        let logs = host_logs + usize::from(has_gc_log);
        let start_units = (logs as u64 + u64::from(gc_low)) * u64::from(zone_units);
        Self {
            zone_units,
            capacities: vec![zone_units; zones as usize],
            free: VecDeque::new(),
            collected: VecDeque::new(),
            resetting: Token::NONE,
            frontiers: vec![Frontier::CLOSED; logs],
            host_logs,
            free_units: 0,
            overlaps: false,
            start_units,
            floor_units: start_units - u64::from(zone_units),
            host_units: vec![[0; 2]; host_logs],
            opened_for: vec![0; zones as usize],
        }
    }

    /// The log of moved data.
    pub const fn gc_log(&self) -> usize {
        self.frontiers.len() - 1
    }

    /// Zones that are kept open or free.
    pub const fn reserve_zones(&self) -> u64 {
        self.start_units / self.zone_units as u64
    }

    /// Places of the next units of a log.
    #[inline]
    pub fn place(&self, log: usize) -> Ppn {
        let frontier = &self.frontiers[log];
        Ppn(frontier.zone * self.zone_units + frontier.next)
    }

    /// A zone becomes free once `ready` completes.
    pub fn release(&mut self, zone: u32, ready: Token) {
        assert!(!self.free.iter().any(|(free, _)| *free == zone), "zone {zone} is free already");
        self.free.push_back((zone, ready));
    }

    /// Units were written to the frontier of a log, whose writes so far complete with `done`.
    #[inline]
    pub fn advance(&mut self, log: usize, units: u32, done: Token) {
        let frontier = &mut self.frontiers[log];
        assert!(units <= frontier.room(), "{units} units are written to {frontier:?}");
        frontier.next += units;
        (frontier.after, frontier.done) = (Token::NONE, done);
        self.free_units -= u64::from(units);
    }

    /// The frontier of a log is closed; what it has left cannot be written.
    pub fn close(&mut self, log: usize) -> u32 {
        let frontier = self.frontiers[log];
        let Frontier { done, done_before, .. } = frontier;
        self.frontiers[log] = Frontier { done, done_before, ..Frontier::CLOSED };
        assert!(frontier.zone != NO_ZONE, "log {log} has no open zone");
        self.free_units -= u64::from(frontier.room());
        frontier.zone
    }

    /// Opens the zone that is free longest for a log.
    pub fn open(&mut self, log: usize) -> bool {
        assert!(self.frontiers[log].zone == NO_ZONE, "log {log} has {:?}", self.frontiers[log]);
        let Some((zone, after)) = self.free.pop_front() else { return false };
        self.opened_for[zone as usize] = log as u16;
        let end = self.capacities[zone as usize];
        self.frontiers[log] = Frontier { zone, end, after, ..self.frontiers[log] };
        true
    }

    /// A zone that is written or free can take fewer units from now on.
    pub fn shrink(&mut self, zone: u32, capacity: u32) {
        let old = std::mem::replace(&mut self.capacities[zone as usize], capacity);
        assert!(capacity <= old, "zone {zone} grows from {old} to {capacity} units");
        for frontier in self.frontiers.iter_mut().filter(|frontier| frontier.zone == zone) {
            let end = capacity.max(frontier.next);
            self.free_units -= u64::from(frontier.end - end);
            frontier.end = end;
        }
    }

    /// Memory of it.
    pub const fn bytes(&self) -> u64 {
        (self.capacities.len() * size_of::<u32>() + self.frontiers.len() * size_of::<Frontier>()) as u64
    }

    /// What [`Space::free_units`] must be.
    pub fn count_free(&self) -> u64 {
        let of = |zone: u32| u64::from(self.capacities[zone as usize]);
        let free: u64 = self.free.iter().map(|(zone, _)| of(*zone)).sum();
        let collected: u64 = self.collected.iter().map(|(zone, _)| of(*zone)).sum();
        free + collected + self.frontiers.iter().map(|frontier| u64::from(frontier.room())).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_can_be_written_are_those_of_frontiers_and_free_zones() {
        let mut space = Space::new(10, 6, 2, true, 2);
        for zone in 2..6 {
            space.release(zone, Token(u64::from(zone)));
            space.free_units += 10;
        }
        assert_eq!((space.start_units, space.floor_units, space.reserve_zones()), (50, 40, 5));
        assert!(space.open(0) && space.open(space.gc_log()));
        assert_eq!((space.place(0), space.place(2), space.frontiers[0].after), (Ppn(20), Ppn(30), Token(2)));
        space.advance(0, 7, Token(9));
        assert_eq!(
            (space.place(0), space.frontiers[0].after, space.frontiers[0].done),
            (Ppn(27), Token::NONE, Token(9))
        );
        space.shrink(2, 5);
        assert_eq!((space.frontiers[0].room(), space.free_units), (0, 30));
        space.shrink(3, 8);
        assert_eq!((space.close(2), space.free_units), (3, 20));
        assert_eq!(space.count_free(), 20);
        assert!(space.open(2) && space.open(1));
        assert_eq!(space.close(0), 2);
        assert!(!space.open(0), "no zone is free");
    }
}
