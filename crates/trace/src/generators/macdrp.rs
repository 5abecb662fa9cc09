//! A load with the published properties of the MACDRP trace of the thesis [thesis 2.2.2], whose
//! recording is not public.
//!
//! 16509 requests, nearly all of half a block (512 KiB), into 87.6 MiB live below 93 MiB. The blocks are
//! worked on in groups of 8: each sweep over the device goes through every group 1 to 7 times before the
//! next, writing each block in two halves, the second half first in 13 % of the visits. 225 second halves lie
//! 4 KiB behind their place and so reach into the next block. A header of 576 KiB behind the groups is
//! written 25 times, evenly over the run, and the last request is cut short at 448 KiB, which makes 8256 MiB
//! in all.

use super::Generator;
use super::common::{GAP, SEED, rng};
use super::listed::Listed;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, unit};
use nandscape_core::{Info, keys};

keys! { PARAMS: GAP; SEED; }

pub const ENTRY: Generator = Generator {
    info: Info {
        name: "macdrp",
        summary: "the thesis' MACDRP load: 16509 writes of 512 KiB, 8256 MiB over 87.6 MiB live below 93 MiB",
        source: "[thesis 2.2.2]",
        params: PARAMS,
    },
    build: |params, context| {
        Ok(Box::new(Listed::new("macdrp", requests(&mut rng(params, context)), params.get(GAP))))
    },
};

const BLOCK: u64 = 1 << 20;
const HALF: u64 = BLOCK / 2;
const SHIFT: u64 = 4 << 10;
const LAST: u64 = 448 << 10;
/// Requests that are half a block, the shortened last one included.
const HALVES: u64 = 16_484;
const HEADERS: u64 = 25;
const HEADER_BLOCK: u64 = 92;
const HEADER: u64 = 576 << 10;
const UNALIGNED: u64 = 225;
const SWAPPED: f64 = 0.13;
const GROUP: usize = 8;
/// Blocks below the header that are never written.
const HOLES: usize = 5;

/// Says when the next of `wanted` events that are spread evenly over `total` steps is due.
struct Spread {
    wanted: u64,
    total: u64,
    done: u64,
}

impl Spread {
    fn is_due(&self, step: u64) -> bool {
        self.done < self.wanted && step * self.wanted >= self.done * self.total
    }
}

fn requests(rng: &mut Xoshiro256PlusPlus) -> Vec<(u64, u64)> {
    let blocks = live_blocks(rng);
    let mut headers = Spread { wanted: HEADERS, total: HALVES, done: 0 };
    // Finished a little before the end, since a due shift may have to wait for a block that can take it.
    let mut shifts = Spread { wanted: UNALIGNED, total: HALVES - 400, done: 0 };
    let mut out = Vec::with_capacity((HALVES + HEADERS) as usize);
    let mut halves = 0;
    loop {
        for group in blocks.chunks(GROUP) {
            for _ in 0..=below(rng, 7) {
                if headers.is_due(halves) {
                    headers.done += 1;
                    out.push((HEADER_BLOCK * BLOCK, HEADER));
                }
                for &(block, next_is_live) in group {
                    let shift = next_is_live && shifts.is_due(halves);
                    shifts.done += u64::from(shift);
                    let first = block * BLOCK;
                    let second = first + HALF + if shift { SHIFT } else { 0 };
                    let is_swapped = unit(rng) < SWAPPED;
                    let order = if is_swapped { [second, first] } else { [first, second] };
                    out.extend(order.map(|offset| (offset, HALF)));
                    halves += 2;
                    if halves == HALVES {
                        if let Some(last) = out.last_mut() {
                            last.1 = LAST;
                        }
                        return out;
                    }
                }
            }
        }
    }
}

/// Blocks that are written, and whether the block behind each one is written too (so that a shifted request
/// adds no live page). The last one stays, since the header stands behind it.
fn live_blocks(rng: &mut Xoshiro256PlusPlus) -> Vec<(u64, bool)> {
    let mut is_live = [true; HEADER_BLOCK as usize + 1];
    let mut left = HOLES;
    while left > 0 {
        let hole = 1 + below(rng, HEADER_BLOCK - 2) as usize;
        left -= usize::from(std::mem::replace(&mut is_live[hole], false));
    }
    (0..HEADER_BLOCK).filter(|&b| is_live[b as usize]).map(|b| (b, is_live[b as usize + 1])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OpenOptions, Target, Workload};
    use nandscape_core::IoRecord;
    use std::collections::BTreeSet;

    fn load(seed: u64) -> Vec<IoRecord> {
        let workload =
            Workload::new(&format!("macdrp:seed={seed}"), &OpenOptions::default(), Target::NONE).unwrap();
        workload.open().unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn the_published_facts_hold_for_any_seed() {
        const PAGE: u64 = 32 << 10;
        for seed in 0..20 {
            let records = load(seed);
            assert_eq!(records.len(), 16_509);
            assert_eq!(records.iter().map(|r| r.len).sum::<u64>(), 8256 * BLOCK);
            assert_eq!(records.iter().map(|r| r.offset + r.len).max(), Some(92 * BLOCK + HEADER));
            assert_eq!(records.iter().filter(|r| r.len == HALF).count(), 16_483);
            let unaligned = records.iter().filter(|r| r.offset % PAGE != 0 || (r.offset + r.len) % PAGE != 0);
            assert_eq!(unaligned.count(), 225);

            let pages: BTreeSet<u64> =
                records.iter().flat_map(|r| r.offset / PAGE..(r.offset + r.len).div_ceil(PAGE)).collect();
            assert_eq!(pages.len() as u64 * PAGE, 87 * BLOCK + HEADER, "87.6 MiB");

            let share = |test: &dyn Fn(u64) -> bool| {
                records.iter().filter(|r| test(r.offset % BLOCK)).count() as f64 / records.len() as f64
            };
            assert!((share(&|at| at == 0) - 0.5).abs() < 0.01);
            assert!((share(&|at| at == HALF) - 0.5).abs() < 0.02);

            let mut visits = (0, 0);
            let mut previous = None;
            for record in &records {
                let block = record.offset / BLOCK;
                if previous != Some(block) {
                    visits.0 += 1;
                    visits.1 += u32::from(record.offset % BLOCK != 0);
                }
                previous = Some(block);
            }
            let swapped = f64::from(visits.1) / f64::from(visits.0);
            assert!((0.115..0.145).contains(&swapped), "{swapped}");
        }
    }

    #[test]
    fn an_area_is_rewritten_up_to_seven_times_before_the_next() {
        let records = load(1);
        let mut runs = BTreeSet::new();
        let firsts: Vec<u64> = records.iter().filter(|r| r.offset % BLOCK == 0).map(|r| r.offset).collect();
        // Within one sweep a block comes back after the other 7 of its group, so a window of 8 visits finds
        // it again.
        let mut run = 1;
        for index in 8..4000 {
            if firsts[index - 8..index].contains(&firsts[index]) {
                run += 1;
            } else {
                runs.insert(run / 8);
                run = 1;
            }
        }
        assert!(runs.iter().max().is_some_and(|&most| (5..=7).contains(&most)), "{runs:?}");
    }
}
