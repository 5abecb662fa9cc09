//! When each touched 4 KiB page was used and written last.

use std::collections::BTreeMap;

const PIECE: u64 = 512;

/// Two clocks plus 1, where 0 is never.
#[derive(Clone, Copy, Default)]
pub(super) struct Page {
    used: u32,
    born: u32,
}

fn stamp(clock: u64) -> u32 {
    u32::try_from(clock + 1).unwrap_or(u32::MAX)
}

fn time(stamp: u32) -> Option<u64> {
    (stamp > 0).then(|| u64::from(stamp - 1))
}

impl Page {
    /// Last use.
    pub(super) fn used(self) -> Option<u64> {
        time(self.used)
    }

    pub(super) fn set_used(&mut self, clock: u64) {
        self.used = stamp(clock);
    }

    /// When its live data was written.
    pub(super) fn born(self) -> Option<u64> {
        time(self.born)
    }

    pub(super) fn set_born(&mut self, clock: Option<u64>) {
        self.born = clock.map_or(0, stamp);
    }
}

#[derive(Default)]
pub(super) struct Pages {
    pieces: BTreeMap<(u32, u64), Box<[Page; PIECE as usize]>>,
}

impl Pages {
    /// Pages `first` to `last`, with their numbers.
    pub(super) fn visit(&mut self, volume: u32, first: u64, last: u64, mut see: impl FnMut(u64, &mut Page)) {
        for piece in first / PIECE..=last / PIECE {
            let base = piece * PIECE;
            let pages =
                self.pieces.entry((volume, piece)).or_insert_with(|| Box::new([Page::default(); 512]));
            for number in first.max(base)..=last.min(base + PIECE - 1) {
                see(number, &mut pages[(number - base) as usize]);
            }
        }
    }

    /// Pages `first` to before `end` of pieces that were touched, so that a huge range costs little.
    pub(super) fn visit_known(&mut self, volume: u32, first: u64, end: u64, mut see: impl FnMut(&mut Page)) {
        if first >= end {
            return;
        }
        let pieces = (volume, first / PIECE)..=(volume, (end - 1) / PIECE);
        for ((_, piece), pages) in self.pieces.range_mut(pieces) {
            let base = piece * PIECE;
            let (low, high) = (first.max(base) - base, end.min(base + PIECE) - base);
            pages[low as usize..high as usize].iter_mut().for_each(&mut see);
        }
    }

    fn used(&self) -> impl Iterator<Item = u64> {
        self.pieces.values().flat_map(|pages| pages.iter()).filter_map(|page| page.used())
    }

    /// Pages that were used.
    pub(super) fn touched(&self) -> u64 {
        self.used().count() as u64
    }

    /// The last use of each of them.
    pub(super) fn last_uses(&self) -> impl Iterator<Item = u64> {
        self.used()
    }
}
