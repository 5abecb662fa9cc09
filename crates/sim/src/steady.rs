//! A steady state that the workload itself brings about, before the counted part [SNIA-PTS].

use crate::trust::is_steady;
use nandscape_core::units::format_bytes;
use nandscape_core::{TraceError, TraceReader};
use std::fmt;

/// Opens the workload once more, for the nth repetition.
type Open<'a> = dyn Fn(u32) -> Result<Box<dyn TraceReader>, TraceError> + 'a;

/// The workload, to be written again and again until write amplification is steady.
#[derive(Clone, Copy)]
pub struct UntilSteady<'a>(pub &'a Open<'a>);

impl fmt::Debug for UntilSteady<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UntilSteady")
    }
}

/// Rounds that are looked at together, and rounds after which a device is taken as one that never settles.
const WINDOW: usize = 5;
const MOST_ROUNDS: usize = 25;
/// A workload that writes next to nothing is not repeated more often.
pub(crate) const MOST_REPEATS: u32 = 1000;

/// Rounds so far: in each, hosts write the capacity once.
#[derive(Debug)]
pub(crate) struct Settling {
    capacity: u64,
    page_bytes: u64,
    /// Bytes written so far.
    pub written: u64,
    /// Written and programmed at the last end of a round.
    before: (u64, u64),
    rounds: Vec<f64>,
    /// Times that the workload was begun.
    pub repeats: u32,
}

impl Settling {
    pub fn new(capacity: u64, page_bytes: u64, programs: u64) -> Self {
        Self {
            capacity: capacity.max(1),
            page_bytes,
            written: 0,
            before: (0, programs),
            rounds: Vec::new(),
            repeats: 0,
        }
    }

    /// Hosts write so much more. Whether a round has ended.
    pub const fn write(&mut self, bytes: u64) -> bool {
        self.written += bytes;
        self.written - self.before.0 >= self.capacity
    }

    /// A round has ended with so many pages programmed since the device was made. Whether that is enough.
    pub fn end_round(&mut self, programs: u64) -> bool {
        let (written, programmed) = (self.written - self.before.0, programs - self.before.1);
        self.rounds.push((programmed * self.page_bytes) as f64 / written as f64);
        self.before = (self.written, programs);
        self.is_steady() || self.rounds.len() >= MOST_ROUNDS
    }

    fn last(&self) -> &[f64] {
        &self.rounds[self.rounds.len().saturating_sub(WINDOW)..]
    }

    pub fn is_steady(&self) -> bool {
        self.rounds.len() >= WINDOW && is_steady(self.last())
    }

    /// What a reader of the result must know.
    pub fn describe(&self) -> String {
        let wafs: Vec<String> = self.last().iter().map(|waf| format!("{waf:.2}")).collect();
        let rounds = format!(
            "{} were written in {} repetitions of the workload before the counted part, {} rounds of the capacity; write \
             amplification of the last {}: {}",
            format_bytes(self.written),
            self.repeats,
            self.rounds.len(),
            wafs.len(),
            wafs.join(", ")
        );
        let cycle = if self.written / u64::from(self.repeats.max(1)) < self.capacity {
            "; a repetition writes less than the capacity, so that data of a trace die in the order in which they were \
             written, which makes write amplification too low"
        } else {
            ""
        };
        let state = if self.is_steady() { "steady" } else { "never steady" };
        format!("{state}: {rounds}{cycle}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(wafs: &[f64]) -> (Settling, usize) {
        let mut settling = Settling::new(1000, 100, 7);
        let mut programs = 7;
        for (number, waf) in wafs.iter().enumerate() {
            assert!(!settling.write(600), "not yet a round");
            assert!(settling.write(400));
            programs += (waf * 10.0) as u64;
            if settling.end_round(programs) {
                return (settling, number + 1);
            }
        }
        (settling, wafs.len() + 1)
    }

    #[test]
    fn five_rounds_that_are_alike_are_enough() {
        let (settled, after) = rounds(&[1.0, 2.0, 3.0, 4.0, 4.1, 4.0, 4.2, 4.1, 4.0]);
        assert_eq!(after, 8, "4.0, 4.1, 4.0, 4.2, 4.1");
        assert!(settled.is_steady() && settled.describe().starts_with("steady: "), "{}", settled.describe());
        let grows: Vec<f64> = (0..40).map(|i| 1.0 + f64::from(i)).collect();
        let (never, after) = rounds(&grows);
        assert_eq!(after, 25);
        assert!(!never.is_steady() && never.describe().starts_with("never steady: "));
    }
}
