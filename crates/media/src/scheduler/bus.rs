//! One channel bus whose transfers are booked ahead of time.
//!
//! A transfer that is queued behind a busy die is booked in the future; the stretches left free before it
//! stay usable ("backfill"), since otherwise one busy die would stop its whole channel. Every such gap is
//! kept until its time has passed: a garbage collection books hundreds of transfers of one die ahead, and
//! forgetting a gap would delay the other dies by as much.
//!
//! Invariants: gaps are disjoint, in time order, before `free`, and no shorter than the shortest transfer.

/// Gaps of the past that are kept before they are thrown away together.
const PASSED: usize = 64;

/// A bus: busy up to `free` except for the gaps.
#[derive(Clone, Debug)]
pub(super) struct Bus {
    free: u64,
    /// The gaps are `gaps[head..]`; those before have passed. In one piece, so that a search has no seam to
    /// look out for.
    gaps: Vec<(u64, u64)>,
    head: usize,
    /// Shorter gaps are of no use to anyone.
    shortest: u64,
}

impl Bus {
    /// A bus that is free from `at`, and on which no transfer takes less than `shortest` ns.
    pub fn new(at: u64, shortest: u64) -> Self {
        Self { free: at, gaps: Vec::with_capacity(2 * PASSED), head: 0, shortest: shortest.max(1) }
    }

    /// Forgets every booking.
    pub fn reset(&mut self, at: u64) {
        self.free = at;
        self.gaps.clear();
        self.head = 0;
    }

    /// Books `span` ns at or after `earliest`; gives the start. Nothing will be booked before `now` any more.
    #[inline]
    pub fn book(&mut self, now: u64, earliest: u64, span: u64) -> u64 {
        if earliest >= self.free {
            if earliest - self.free >= self.shortest {
                self.gaps.push((self.free, earliest));
            }
            self.free = earliest + span;
            return earliest;
        }
        self.book_in_gap(now, earliest, span)
    }

    /// Takes the first gap that fits, else the end of the queue.
    #[inline]
    fn book_in_gap(&mut self, now: u64, earliest: u64, span: u64) -> u64 {
        while self.gaps.get(self.head).is_some_and(|gap| gap.1 < now + self.shortest) {
            self.head += 1;
        }
        if self.head >= PASSED {
            self.gaps.drain(..self.head);
            self.head = 0;
        }
        let needed = earliest + span;
        // Most bookings that find no gap are later than all of them.
        if self.gaps.last().is_some_and(|gap| gap.1 >= needed) {
            let first = self.head + self.gaps[self.head..].partition_point(|gap| gap.1 < needed);
            for i in first..self.gaps.len() {
                let (start, end) = self.gaps[i];
                let begin = start.max(earliest);
                if begin + span <= end {
                    self.use_gap(i, begin, begin + span);
                    return begin;
                }
            }
        }
        let begin = self.free;
        self.free += span;
        begin
    }

    #[inline]
    fn use_gap(&mut self, i: usize, begin: u64, end: u64) {
        let (gap_start, gap_end) = self.gaps[i];
        match (begin - gap_start >= self.shortest, gap_end - end >= self.shortest) {
            (true, false) => self.gaps[i].1 = begin,
            (false, true) => self.gaps[i].0 = end,
            (false, false) => {
                self.gaps.remove(i);
            }
            (true, true) => {
                self.gaps[i].1 = begin;
                self.gaps.insert(i + 1, (end, gap_end));
            }
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
        assert!(bus.gaps.len() < PASSED + 5, "{}", bus.gaps.len());
    }
}
