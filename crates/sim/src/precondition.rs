//! Writes that put a device into a known state before the counted part (`--precondition`).

use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{IoRecord, Op, SimTime, units};

/// A preconditioning that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "precondition '{text}': '{part}': expected fill, fill:SHARE or uniform:Nx, joined by '+' (such as fill+uniform:2x)"
)]
pub struct PreconditionError {
    text: String,
    part: String,
}

/// One step of a preconditioning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// Writes the first `share` of the logical capacity once, in order.
    Fill {
        /// Of the logical capacity, 0 to 1.
        share: f64,
    },
    /// Random whole-page writes, `times` the logical capacity in all, over the part that was filled (all of
    /// it if nothing was).
    Uniform {
        /// Multiples of the logical capacity.
        times: f64,
    },
}

/// Steps that run before the counted part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Precondition {
    /// In order.
    pub steps: Vec<Step>,
}

impl Precondition {
    /// Reads `fill`, `fill:80%`, `uniform:2x`, `fill+uniform:2x` or `none`.
    pub fn parse(text: &str) -> Result<Self, PreconditionError> {
        if text.is_empty() || text == "none" {
            return Ok(Self::default());
        }
        let steps = text
            .split('+')
            .map(|part| {
                let step = match part.trim().split_once(':') {
                    None if part.trim() == "fill" => Some(Step::Fill { share: 1.0 }),
                    Some(("fill", share)) => units::parse_share(share).ok().map(|share| Step::Fill { share }),
                    Some(("uniform", times)) => times
                        .strip_suffix('x')
                        .unwrap_or(times)
                        .parse::<f64>()
                        .ok()
                        .filter(|times| (0.0..=1e6).contains(times))
                        .map(|times| Step::Uniform { times }),
                    _ => None,
                };
                step.ok_or_else(|| PreconditionError { text: text.to_owned(), part: part.to_owned() })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { steps })
    }

    /// The requests of all steps, for a namespace of `capacity_bytes` with pages of `page_bytes`.
    pub fn records(&self, capacity_bytes: u64, page_bytes: u32, seed: u64) -> Records {
        Records {
            steps: self.steps.clone().into_iter(),
            capacity_bytes,
            page_bytes: u64::from(page_bytes),
            span_bytes: capacity_bytes,
            rng: seeded(seed ^ 0x7072_6563_6f6e_6431),
            current: Current::None,
        }
    }
}

/// Iterator over the requests of a [`Precondition`].
#[derive(Clone, Debug)]
pub struct Records {
    steps: std::vec::IntoIter<Step>,
    capacity_bytes: u64,
    page_bytes: u64,
    span_bytes: u64,
    rng: Xoshiro256PlusPlus,
    current: Current,
}

#[derive(Clone, Debug)]
enum Current {
    None,
    Fill { at: u64, end: u64 },
    Uniform { left: u64 },
}

impl Records {
    /// A fill writes in chunks of about this size.
    const CHUNK: u64 = 1 << 20;

    fn record(offset: u64, len: u64) -> IoRecord {
        IoRecord { at: SimTime::ZERO, offset, len, volume: 0, hint: 0, op: Op::Write }
    }
}

impl Iterator for Records {
    type Item = IoRecord;

    fn next(&mut self) -> Option<IoRecord> {
        loop {
            match &mut self.current {
                Current::Fill { at, end } if *at < *end => {
                    let chunk = (Self::CHUNK / self.page_bytes).max(1) * self.page_bytes;
                    let len = chunk.min(*end - *at);
                    let record = Self::record(*at, len);
                    *at += len;
                    return Some(record);
                }
                Current::Uniform { left } if *left > 0 => {
                    *left -= 1;
                    let page = below(&mut self.rng, (self.span_bytes / self.page_bytes).max(1));
                    return Some(Self::record(page * self.page_bytes, self.page_bytes));
                }
                _ => {}
            }
            self.current = match self.steps.next()? {
                Step::Fill { share } => {
                    let pages = (share * (self.capacity_bytes / self.page_bytes) as f64).round() as u64;
                    self.span_bytes = pages * self.page_bytes;
                    Current::Fill { at: 0, end: self.span_bytes }
                }
                Step::Uniform { times } => Current::Uniform {
                    left: (times * (self.capacity_bytes / self.page_bytes) as f64).round() as u64,
                },
            };
            // A fill of nothing leaves nothing to overwrite.
            if self.span_bytes == 0 {
                self.span_bytes = self.capacity_bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_wrong_ones_named() {
        assert_eq!(
            Precondition::parse("fill+uniform:2x").unwrap().steps,
            [Step::Fill { share: 1.0 }, Step::Uniform { times: 2.0 }]
        );
        assert!(Precondition::parse("none").unwrap().steps.is_empty());
        for wrong in ["fil", "fill:120%", "uniform", "uniform:-1x", "fill+", "uniform:nan"] {
            let err = Precondition::parse(wrong).unwrap_err().to_string();
            assert!(err.contains("expected fill"), "{wrong}: {err}");
        }
    }

    #[test]
    fn a_fill_covers_the_share_once_and_uniform_stays_inside() {
        let steps = Precondition::parse("fill:50%+uniform:1x").unwrap();
        let records: Vec<_> = steps.records(8 << 20, 4096, 1).collect();
        let fills: Vec<_> = records.iter().filter(|r| r.len > 4096).collect();
        assert_eq!(fills.iter().map(|r| r.len).sum::<u64>(), 4 << 20);
        let randoms: Vec<_> = records.iter().filter(|r| r.len == 4096).collect();
        assert_eq!(randoms.len(), 2048);
        assert!(randoms.iter().all(|r| r.offset + r.len <= 4 << 20));
    }
}
