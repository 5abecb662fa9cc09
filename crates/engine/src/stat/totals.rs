//! What was measured since the start, and in the last seconds.

use crate::meter::{Meter, Sample};
use std::collections::VecDeque;
use std::time::Duration;

const WINDOW: Duration = Duration::from_secs(10);
const PIECE: Duration = Duration::from_secs(1);

/// Sums of everything that was taken from the stack's meter.
pub(crate) struct Totals {
    /// When counting began.
    pub first: Sample,
    /// Since then.
    pub sum: Meter,
    /// Pieces of the last seconds, each with where it begins. The last one is still open.
    pieces: VecDeque<(Sample, Box<Meter>)>,
    /// For the stack to go on with.
    pub empty: Box<Meter>,
}

impl Totals {
    pub fn new(first: Sample) -> Self {
        let pieces = VecDeque::from([(first, Box::default())]);
        Self { first, sum: Meter::default(), pieces, empty: Box::default() }
    }

    /// Adds what [`Totals::empty`] has become: the stack's meter until `now`.
    pub fn add_taken(&mut self, now: Sample) {
        self.sum.merge(&self.empty);
        let (start, open) = self.pieces.back_mut().expect("one piece is always open");
        open.merge(&self.empty);
        self.empty.clear();
        if now.at.saturating_duration_since(start.at) < PIECE {
            return;
        }
        // A piece is let go when the next one covers the whole window.
        let mut reused = None;
        while self
            .pieces
            .get(1)
            .is_some_and(|(start, _)| now.at.saturating_duration_since(start.at) >= WINDOW)
        {
            reused = self.pieces.pop_front();
        }
        let mut meter = reused.map_or_else(Box::default, |(_, meter)| meter);
        meter.clear();
        self.pieces.push_back((now, meter));
    }

    /// Where the last seconds begin, and what was measured in them.
    pub fn recent(&self) -> (Sample, Meter) {
        let (start, first) = self.pieces.front().expect("one piece is always open");
        let mut sum = (**first).clone();
        for (_, piece) in self.pieces.iter().skip(1) {
            sum.merge(piece);
        }
        (*start, sum)
    }

    /// Starts anew.
    pub fn reset(&mut self, now: Sample) {
        *self = Self::new(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Kind;
    use nandscape_core::command::HostCounts;
    use nandscape_core::{OpCounts, SimTime};
    use std::time::Instant;

    #[test]
    fn the_last_seconds_are_what_was_measured_in_them_and_totals_keep_all() {
        let begin = Instant::now();
        let at = |s: u64| Sample {
            at: begin + Duration::from_secs(s),
            model: SimTime(s),
            host: HostCounts { reads: s, ..HostCounts::default() },
            flash: OpCounts::default(),
        };
        let mut totals = Totals::new(at(0));
        for second in 1..=100 {
            totals.empty.model(Kind::Read, second);
            totals.add_taken(at(second));
        }
        let (start, recent) = totals.recent();
        assert_eq!(totals.sum.model[0].summary().count, 100);
        // Between ten and eleven seconds, as pieces end.
        assert!((89..=90).contains(&start.host.reads), "{}", start.host.reads);
        assert_eq!(recent.model[0].summary().count, 100 - start.host.reads);
        assert_eq!(
            (recent.model[0].summary().min, recent.model[0].summary().max),
            (start.host.reads + 1, 100)
        );
        totals.reset(at(100));
        assert_eq!((totals.sum.model[0].summary().count, totals.recent().1.model[0].summary().count), (0, 0));
    }
}
