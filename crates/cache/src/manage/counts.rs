//! What of the blocks of a cache that was given up while it was open still counts.
//!
//! The mark beside the disk and the records of the places on the fast store ([`super::Watch`]) both take it;
//! one of them is enough. Each says which part of what the fast store holds of a volume still counts
//! ([`Counts`]), with a number that grows, so that the newer of both is known.

use nandscape_core::Extent;
use std::fmt;

/// Ranges that a mark names at most.
const RANGES_MAX: usize = 4096;

/// What counts of the blocks of a volume on a fast store that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Dirty blocks: not all of them are known to be on the disk, and nothing was written past the cache yet.
    Dirty,
    /// Dirty blocks within these ranges, in order. All others are on the disk, where something newer may be
    /// by now.
    Within(Vec<Extent>),
    /// Some dirty blocks; which was not taken down. The disk may have something newer of any of them.
    Unknown,
}

impl Counts {
    /// Whether the disk has everything.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Within(ranges) if ranges.is_empty())
    }

    /// As one word for ranges that are not kept: on the fast store.
    const fn code(&self) -> u8 {
        match self {
            Self::Dirty => 1,
            Self::Within(ranges) if ranges.is_empty() => 2,
            Self::Within(_) | Self::Unknown => 3,
        }
    }
}

/// That a cache was given up, of one volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// Grows with each change; from 1.
    pub number: u32,
    /// What counts.
    pub counts: Counts,
}

impl GivenUp {
    /// For the fast store: the code, 1 to 3, and the number.
    pub(super) const fn to_code(&self) -> (u8, u32) {
        (self.counts.code(), self.number)
    }

    /// From the fast store; `None` for code 0. A code that is not known is the most careful one.
    pub(super) const fn from_code(code: u8, number: u32) -> Option<Self> {
        let counts = match code {
            0 => return None,
            1 => Counts::Dirty,
            2 => Counts::Within(Vec::new()),
            _ => Counts::Unknown,
        };
        Some(Self { number, counts })
    }

    /// As a line of a mark: number and word, or number and ranges.
    pub(super) fn to_text(&self) -> String {
        let counts = match &self.counts {
            Counts::Dirty => "dirty".to_owned(),
            Counts::Within(ranges) if ranges.is_empty() => "nothing".to_owned(),
            Counts::Within(ranges) if ranges.len() <= RANGES_MAX => {
                let texts: Vec<String> =
                    ranges.iter().map(|range| format!("{}+{}", range.offset, range.len)).collect();
                texts.join(" ")
            }
            Counts::Within(_) | Counts::Unknown => "unknown".to_owned(),
        };
        format!("{} {counts}", self.number)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (number, counts) = text.split_once(' ')?;
        let range = |text: &str| {
            let (offset, len) = text.split_once('+')?;
            let (offset, len): (u64, u64) = (offset.parse().ok()?, len.parse().ok()?);
            offset.checked_add(len).map(|_| Extent::new(offset, len))
        };
        let counts = match counts {
            "dirty" => Counts::Dirty,
            "nothing" => Counts::Within(Vec::new()),
            "unknown" => Counts::Unknown,
            ranges => Counts::Within(ranges.split(' ').map(range).collect::<Option<_>>()?),
        };
        Some(Self { number: number.parse().ok()?, counts })
    }
}

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.counts {
            Counts::Dirty => {
                f.write_str("the cache was given up while its dirty blocks were written to the disk")
            }
            Counts::Within(ranges) if ranges.is_empty() => {
                f.write_str("the cache was given up, and the disk has everything")
            }
            Counts::Within(ranges) => {
                let bytes: u64 = ranges.iter().map(|range| range.len).sum();
                write!(f, "the cache was given up, and {bytes} bytes did not reach the disk")
            }
            Counts::Unknown => {
                f.write_str("the cache was given up, and dirty blocks of it did not reach the disk")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_is_read_as_it_was_written() {
        let ranges = vec![Extent::new(0, 512), Extent::new(4096, 8192)];
        for counts in [Counts::Dirty, Counts::Within(Vec::new()), Counts::Within(ranges), Counts::Unknown] {
            let given_up = GivenUp { number: 7, counts };
            assert_eq!(GivenUp::parse(&given_up.to_text()), Some(given_up));
        }
        for text in ["", "7", "x dirty", "7 dirt", "7 1+", "7 18446744073709551615+1", "7 1+1 "] {
            assert_eq!(GivenUp::parse(text), None, "{text}");
        }
        let many = (0..=RANGES_MAX as u64).map(|at| Extent::new(at * 1024, 512)).collect();
        let many = GivenUp { number: 1, counts: Counts::Within(many) };
        assert_eq!(GivenUp::parse(&many.to_text()).unwrap().counts, Counts::Unknown, "more than are kept");
    }
}
