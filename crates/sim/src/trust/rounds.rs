//! Programs over what hosts wrote, at a few points of a run.

/// Points kept; when there would be more, every second is dropped.
const MOST: usize = 128;
/// Programs below which a fifth says nothing.
const FEWEST_PROGRAMS: u64 = 1000;

/// Bytes that hosts wrote and pages that were programmed until then, at evenly spaced points.
#[derive(Clone, Debug)]
pub struct Rounds {
    points: Vec<(u64, u64)>,
    page_bytes: u64,
    written: u64,
    interval: u64,
    next: u64,
}

const FIRST_INTERVAL: u64 = 64 << 10;

impl Rounds {
    /// Of flash with pages of so many bytes.
    pub fn new(page_bytes: u64) -> Self {
        Self { points: vec![(0, 0)], page_bytes, written: 0, interval: FIRST_INTERVAL, next: FIRST_INTERVAL }
    }

    /// Hosts write so much more. Whether a point is due.
    #[inline]
    pub fn write(&mut self, bytes: u64) -> bool {
        self.written += bytes;
        self.written >= self.next
    }

    /// So many pages are programmed.
    pub fn add(&mut self, programs: u64) {
        if self.points.len() == MOST {
            let mut index = 0;
            // The first one stays, and every second after it.
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.interval *= 2;
        }
        self.points.push((self.written, programs));
        self.next = self.written + self.interval;
    }

    /// Write amplification, in bytes, of the fifths of what was written; nothing if that was too little.
    pub fn fifths(&self) -> Option<Vec<f64>> {
        let &(written, programs) = self.points.last()?;
        if written == 0 || programs < 5 * FEWEST_PROGRAMS {
            return None;
        }
        let at = |bytes: f64| {
            let behind = self.points.partition_point(|point| (point.0 as f64) < bytes).max(1);
            let (x0, y0) = self.points[behind - 1];
            let (x1, y1) = self.points[behind.min(self.points.len() - 1)];
            if x1 == x0 {
                return y1 as f64;
            }
            y0 as f64 + (y1 - y0) as f64 * (bytes - x0 as f64) / (x1 - x0) as f64
        };
        let fifth = written as f64 / 5.0;
        let programs = |from: f64, to: f64| at(to) - at(from);
        let of =
            |i| programs(fifth * f64::from(i), fifth * f64::from(i + 1)) * self.page_bytes as f64 / fifth;
        Some((0..5).map(of).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifths_are_those_of_the_whole_run_however_long_it_is() {
        for scale in [1, 1_000] {
            let mut rounds = Rounds::new(4096);
            let mut programs = 0;
            for write in 0..10_000 * scale {
                // Twice as many programs in the last fifth.
                programs += if write >= 8_000 * scale { 2 } else { 1 };
                if rounds.write(4096) {
                    rounds.add(programs);
                }
            }
            rounds.add(programs);
            let fifths = rounds.fifths().unwrap();
            for (fifth, expected) in fifths.iter().zip([1.0, 1.0, 1.0, 1.0, 2.0]) {
                assert!((fifth - expected).abs() < 0.05, "{fifths:?}");
            }
        }
        let mut short = Rounds::new(4096);
        short.write(4096);
        short.add(1);
        assert_eq!(short.fifths(), None);
    }
}
