//! What a disk holds in memory: data that it reads on, and data that it has not written yet.

use super::mechanics::Mechanics;
use super::order::Candidate;
use std::collections::{BTreeMap, VecDeque};

/// Dirty extents on either side of the arm among which the disk chooses.
const NEAR: usize = 128;

/// Reading on after a read: from sector `from` at `from_ns`, up to `limit`.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    start: u64,
    from: u64,
    from_ns: u64,
    limit: u64,
}

/// Ranges that were read, the most recent last, and the one that is being read.
#[derive(Debug)]
pub struct ReadBuffer {
    segments: VecDeque<(u64, u64)>,
    segments_max: usize,
    ahead_sectors: u64,
    ahead: Option<Ahead>,
}

impl ReadBuffer {
    pub const fn new(segments_max: usize, ahead_sectors: u64) -> Self {
        Self { segments: VecDeque::new(), segments_max, ahead_sectors, ahead: None }
    }

    /// Whether a range is there, without reading on.
    pub fn covers(&self, sector: u64, count: u64) -> bool {
        let is_within = |start: u64, end: u64| start <= sector && sector + count <= end;
        self.segments.iter().any(|(start, end)| is_within(*start, *end))
            || self.ahead.is_some_and(|ahead| is_within(ahead.start, ahead.from))
    }

    /// Whether reading on, which goes on at `now_ns`, comes to a range, or has it.
    pub fn is_ahead(&self, sector: u64, count: u64, mechanics: &Mechanics, now_ns: u64) -> bool {
        let Some(ahead) = self.ahead else { return false };
        if sector < ahead.start || sector > ahead.limit {
            return false;
        }
        sector + count <= ahead.limit
            || mechanics.stream(ahead.from, ahead.limit - ahead.from, ahead.from_ns).0 > now_ns
    }

    /// Reads on to the end of a range for which [`ReadBuffer::is_ahead`]. Gives when it is there.
    pub fn follow(&mut self, sector: u64, count: u64, mechanics: &Mechanics, end: u64) -> u64 {
        let ahead = self.ahead.as_mut().expect("reading on");
        let until = sector + count;
        if until > ahead.from {
            ahead.from_ns = mechanics.stream(ahead.from, until - ahead.from, ahead.from_ns).0;
            ahead.from = until;
        }
        ahead.limit = ahead.limit.max((ahead.from + self.ahead_sectors).min(end));
        // The buffer holds as much behind the head as before it.
        ahead.start = ahead.start.max(ahead.from.saturating_sub(self.ahead_sectors.max(count)));
        ahead.from_ns
    }

    /// A read has ended at `now_ns`; the disk reads on, up to sector `end` at most.
    pub fn begin(&mut self, sector: u64, count: u64, now_ns: u64, end: u64) {
        if self.ahead_sectors > 0 {
            let from = sector + count;
            let limit = (from + self.ahead_sectors).min(end);
            self.ahead = Some(Ahead { start: sector, from, from_ns: now_ns, limit });
        }
    }

    /// The arm is needed elsewhere: what has been read by `now_ns` stays.
    pub fn cut(&mut self, mechanics: &Mechanics, now_ns: u64) {
        let Some(ahead) = self.ahead.take() else { return };
        if self.segments_max == 0 {
            return;
        }
        if self.segments.len() == self.segments_max {
            self.segments.pop_front();
        }
        let passed = mechanics.passed(ahead.from, ahead.limit - ahead.from, ahead.from_ns, now_ns);
        self.segments.push_back((ahead.start, ahead.from + passed));
    }

    /// A range is overwritten: whatever holds part of it is dropped.
    pub fn forget(&mut self, sector: u64, count: u64, mechanics: &Mechanics, now_ns: u64) {
        if self.ahead.is_some_and(|ahead| sector < ahead.limit && sector + count > ahead.start) {
            self.cut(mechanics, now_ns);
        }
        self.segments.retain(|(start, end)| sector >= *end || sector + count <= *start);
    }

    pub fn clear(&mut self) {
        self.segments.clear();
        self.ahead = None;
    }
}

/// Written data that is not on the medium.
#[derive(Debug, Default)]
pub struct Dirty {
    /// By first sector: sectors, number of the write, and since when it is there.
    extents: BTreeMap<u64, (u64, u64, u64)>,
    /// First sector by the number of the write.
    numbers: BTreeMap<u64, u64>,
    pub sectors: u64,
}

impl Dirty {
    /// A write. Where one begins at the same sector, both are one, as old as the older.
    pub fn insert(&mut self, sector: u64, count: u64, number: u64, ready_ns: u64) {
        let entry = self.extents.entry(sector).or_insert((0, number, ready_ns));
        let grown = count.saturating_sub(entry.0);
        entry.0 += grown;
        self.sectors += grown;
        self.numbers.insert(entry.1, sector);
    }

    /// Takes out what begins at `sector`, and gives its length.
    pub fn remove(&mut self, sector: u64) -> u64 {
        let (count, number, _) = self.extents.remove(&sector).expect("it is dirty");
        self.numbers.remove(&number);
        self.sectors -= count;
        count
    }

    /// Whether one write covers a range.
    pub fn covers(&self, sector: u64, count: u64) -> bool {
        let before = self.extents.range(..=sector).next_back();
        before.is_some_and(|(start, (sectors, ..))| sector + count <= start + sectors)
    }

    /// Number of the oldest write.
    pub fn first_number(&self) -> Option<u64> {
        self.numbers.first_key_value().map(|(number, _)| *number)
    }

    /// Since when the oldest write is there.
    pub fn first_ready_ns(&self) -> Option<u64> {
        self.numbers.first_key_value().map(|(_, sector)| self.extents[sector].2)
    }

    /// Writes below `limit` nearest to a sector, on either side, or at the other end if one side is short.
    pub fn near(&self, sector: u64, limit: u64, now_ns: u64) -> Vec<Candidate> {
        let eligible = |(sector, (_, number, ready_ns)): (&u64, &(u64, u64, u64))| {
            (*number < limit && *ready_ns <= now_ns).then_some(Candidate { sector: *sector, number: *number })
        };
        let before = self.numbers.range(..limit);
        // A flush waits for these alone, and many that are newer may lie between them.
        if limit < u64::MAX && before.clone().nth(NEAR).is_none() {
            let extents = before.filter_map(|(_, sector)| self.extents.get_key_value(sector));
            return extents.filter_map(eligible).collect();
        }
        let above = self.extents.range(sector..).filter_map(eligible).take(NEAR);
        let below = self.extents.range(..sector).rev().filter_map(eligible).take(NEAR);
        let mut near: Vec<_> = above.chain(below).collect();
        // A queue in the order of coming wants the oldest, wherever it lies; the elevator begins again at the
        // lowest.
        let oldest = self.numbers.values().next().and_then(|sector| self.extents.get_key_value(sector));
        for wanted in [oldest, self.extents.first_key_value()] {
            let wanted = wanted.and_then(eligible);
            near.extend(wanted.filter(|wanted| near.iter().all(|other| other.number != wanted.number)));
        }
        near
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_writes_before_a_flush_are_near_if_they_are_few() {
        for of_flush in [0, 1, NEAR, NEAR + 1, 3 * NEAR] {
            let mut dirty = Dirty::default();
            // Sectors in another order than numbers.
            let sector = |number: u64| number * 7919 % 4096 * 8;
            (1..=1000).for_each(|number| dirty.insert(sector(number), 8, number, 10 * (number % 3)));
            let limit = of_flush as u64 + 1;
            let mut near: Vec<_> =
                dirty.near(16_384, limit, 15).into_iter().map(|found| found.sector).collect();
            near.sort_unstable();
            let is_ready = |number: &u64| 10 * (number % 3) <= 15;
            let mut want: Vec<_> = (1..limit).filter(is_ready).map(sector).collect();
            want.sort_unstable();
            let place = want.partition_point(|sector| *sector < 16_384);
            let both_sides = &want[place.saturating_sub(NEAR)..want.len().min(place + NEAR)];
            let oldest = (1..limit).take(1).filter(is_ready).map(sector);
            let mut want: Vec<_> = oldest.chain(both_sides.iter().copied()).collect();
            want.sort_unstable();
            want.dedup();
            assert_eq!(near, want, "{of_flush} before the flush");
        }
    }
}
