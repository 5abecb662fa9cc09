//! One channel bus whose transfers are booked ahead of time.
//!
//! A transfer that is queued behind a busy die is booked in the future; the stretches left free before it
//! stay usable ("backfill"), since otherwise one busy die would stop its whole channel. Every such gap is
//! kept until its time has passed: a garbage collection books hundreds of transfers of one die ahead, and
//! forgetting a gap would delay the other dies by as much.
//!
//! Which of the dies comes next looks random to a processor, so a booking decides as little as it can by
//! jumps: one tells whether it may fit in a gap.
//!
//! Invariants: gaps are disjoint, in time order, before `free`, and no shorter than the shortest transfer.
#![expect(clippy::inline_always, reason = "measured: the path of every transfer")]

/// Gaps that are compared without a search, those that end last.
const NEAR: usize = 8;
/// Room for gaps at first. Those of the past are thrown away when it is used up.
const ROOM: usize = 128;

/// A bus: busy up to `free` except for the gaps.
#[derive(Clone, Debug)]
pub(super) struct Bus {
    free: u64,
    /// The gaps are `gaps[NEAR..end]`; those before are none and end at 0.
    gaps: Vec<(u64, u64)>,
    end: usize,
    /// Near where a search ended last: the next one mostly ends there, too. A guess that may be wrong.
    guess: usize,
    /// Shorter gaps are of no use to anyone.
    shortest: u64,
}

nandscape_core::state!(impl [] Bus { saved: free, gaps, end; fixed: guess, shortest; });

impl Bus {
    /// A bus that is free from `at`, and on which no transfer takes less than `shortest` ns.
    pub fn new(at: u64, shortest: u64) -> Self {
        Self { free: at, gaps: vec![(0, 0); ROOM], end: NEAR, guess: NEAR, shortest: shortest.max(1) }
    }

    /// Forgets every booking.
    pub fn reset(&mut self, at: u64) {
        (self.free, self.end) = (at, NEAR);
    }

    /// Books `span` ns at or after `earliest`; gives the start. Nothing will be booked before `now` any more.
    #[inline(always)]
    pub fn book(&mut self, now: u64, earliest: u64, span: u64) -> u64 {
        // Gaps that end before have passed.
        let passed = now + self.shortest;
        let needed = passed.max(earliest + span);
        if self.gaps[self.end - 1].1 >= needed {
            return self.book_in_gap((earliest, span), needed, passed);
        }
        let begin = earliest.max(self.free);
        self.gaps[self.end] = (self.free, begin);
        self.end += usize::from(begin - self.free >= self.shortest);
        self.free = begin + span;
        if self.end == self.gaps.len() {
            self.make_room(passed);
        }
        begin
    }

    /// Takes the first gap that fits, else the end of the queue. The last gap ends after `needed`.
    #[inline(never)]
    fn book_in_gap(&mut self, (earliest, span): (u64, u64), needed: u64, passed: u64) -> u64 {
        let later = self.later_before(self.end, needed);
        let first = if later < NEAR { self.end - later } else { self.search(needed) };
        for i in first..self.end {
            let (start, end) = self.gaps[i];
            let begin = start.max(earliest);
            if begin + span <= end {
                self.use_gap(i, begin, begin + span, passed);
                return begin;
            }
        }
        let begin = self.free;
        self.free += span;
        begin
    }

    /// How many of the gaps before one, [`NEAR`] of them, end at a time or later.
    #[inline(always)]
    fn later_before(&self, end: usize, needed: u64) -> usize {
        self.gaps[end - NEAR..end].iter().map(|gap| usize::from(gap.1 >= needed)).sum()
    }

    /// The first gap that ends at a time or later.
    #[inline(never)]
    fn search(&mut self, needed: u64) -> usize {
        let end = (self.guess + NEAR / 2).clamp(NEAR, self.end);
        let later = self.later_before(end, needed);
        self.guess = if later > 0 && later < NEAR {
            end - later
        } else {
            NEAR + self.gaps[NEAR..self.end].partition_point(|gap| gap.1 < needed)
        };
        self.guess
    }

    /// Leaves of a gap what is before and after a transfer, where that is of use.
    #[inline(always)]
    fn use_gap(&mut self, i: usize, begin: u64, end: u64, passed: u64) {
        let (gap_start, gap_end) = self.gaps[i];
        let is_left = begin - gap_start >= self.shortest;
        let is_right = gap_end - end >= self.shortest;
        if is_left == is_right {
            let (from, to) = (i + 1, if is_left { i + 2 } else { i });
            self.gaps.copy_within(from..self.end, to);
            self.end = self.end + to - from;
        }
        if is_left || is_right {
            self.gaps[i] = if is_left { (gap_start, begin) } else { (end, gap_end) };
        }
        if is_left && is_right {
            self.gaps[i + 1] = (end, gap_end);
            if self.end == self.gaps.len() {
                self.make_room(passed);
            }
        }
    }

    /// Throws gaps of the past away, or makes some more room where most are not.
    #[cold]
    fn make_room(&mut self, passed: u64) {
        let first = NEAR + self.gaps[NEAR..self.end].partition_point(|gap| gap.1 < passed);
        if 2 * (first - NEAR) < self.end - NEAR {
            // In small steps, so that memory is touched where it is written next.
            self.gaps.resize(self.gaps.len() + ROOM, (0, 0));
        } else {
            self.gaps.copy_within(first..self.end, NEAR);
            self.end -= first - NEAR;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{below, seeded};

    /// The first place where a transfer fits, from all bookings so far.
    fn first_fit(booked: &[(u64, u64)], earliest: u64, span: u64) -> u64 {
        let mut begin = earliest;
        for (start, end) in booked {
            if begin + span <= *start {
                break;
            }
            begin = begin.max(*end);
        }
        begin
    }

    #[test]
    fn every_booking_is_the_first_fit_and_none_overlap() {
        for (seed, ahead) in [(1, 300), (2, 30_000), (3, 3_000_000)] {
            let mut rng = seeded(seed);
            let mut bus = Bus::new(0, 1);
            let mut booked: Vec<(u64, u64)> = Vec::new();
            let mut now = 0;
            for _ in 0..3000 {
                now += below(&mut rng, 40);
                let earliest = now + below(&mut rng, ahead);
                let span = 1 + below(&mut rng, 30);
                let start = bus.book(now, earliest, span);
                assert_eq!(start, first_fit(&booked, earliest, span), "seed {seed}");
                let at = booked.partition_point(|b| b.0 < start);
                booked.insert(at, (start, start + span));
            }
            for pair in booked.windows(2) {
                assert!(pair[0].1 <= pair[1].0, "{pair:?} overlap");
            }
        }
    }

    #[test]
    fn gaps_of_the_past_are_forgotten() {
        let mut bus = Bus::new(0, 10);
        for i in 1..1000 {
            bus.book(i * 100, i * 100 + 50, 20);
            bus.book(i * 100, i * 100, 10);
        }
        assert!(bus.gaps.len() == ROOM && bus.end < ROOM, "{}", bus.end);
    }
}
