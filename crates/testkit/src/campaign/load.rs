//! A seeded load.

use nandscape_core::rng::{Xoshiro256PlusPlus, below};
use std::ops::Range;

/// One command: a volume by its number, and units of it.
#[expect(missing_docs, reason = "the fields are those two")]
#[derive(Clone, Debug)]
pub enum Act {
    Write { volume: usize, units: Range<usize>, is_durable: bool },
    Trim { volume: usize, units: Range<usize> },
    Read { volume: usize, units: Range<usize> },
    Flush { volume: usize },
    Idle,
}

/// So many commands on volumes with so many units. Reads, so that what was written is noticed; few units, so
/// that they are overwritten.
pub fn acts(volumes: &[usize], count: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<Act> {
    (0..count).map(|_| act(volumes, rng)).collect()
}

fn act(volumes: &[usize], rng: &mut Xoshiro256PlusPlus) -> Act {
    let volume = below(rng, volumes.len() as u64 + 1) as usize % volumes.len();
    let count = volumes[volume];
    let most = match below(rng, 12) {
        0 => count / 2 + 1,
        1..4 => 24,
        _ => 8,
    };
    // The smaller of two draws, so that some units are written again and again.
    let mut first = below(rng, count as u64).min(below(rng, count as u64)) as usize;
    if below(rng, 2) == 0 {
        first = first / 8 * 8;
    }
    let units = first..count.min(first + 1 + below(rng, most as u64) as usize);
    match below(rng, 20) {
        0..8 => Act::Write { volume, units, is_durable: false },
        8..10 => Act::Write { volume, units, is_durable: true },
        10..14 => Act::Read { volume, units },
        14 => Act::Trim { volume, units },
        15..18 => Act::Flush { volume },
        _ => Act::Idle,
    }
}
