//! A load with the published properties of the LAMMPS trace of the thesis [thesis 2.2.1], whose
//! recording is not public.
//!
//! The node writes the same set of dump files again and again: 26 passes of 76 requests over 34 extents, in
//! an order that is drawn once and kept. All borders lie on 32 KiB pages and, but for one file that grows, on
//! 512 KiB. The extents fill 272 MiB of an address range of 358 MiB that has 14 holes. 7 of the 76 requests
//! are no larger than a block of 1 MiB, as about one in ten of the recorded ones. The growing file ends the
//! address range: a last piece of 1 to 6 pages, growing over the passes, which makes 7075 MiB in all.

use super::common::{GAP, SEED, rng};
use super::listed::Listed;
use super::{Context, Generator};
use nandscape_core::rng::{Xoshiro256PlusPlus, below};
use nandscape_core::{Info, ParamError, Params, keys};

keys! { PARAMS: GAP; SEED; }

pub const ENTRY: Generator = Generator {
    info: Info {
        name: "lammps",
        summary: "the thesis' LAMMPS load: 1976 writes, 7075 MiB over 272 MiB live in 34 extents below 358 MiB",
        source: "[thesis 2.2.1]",
        params: PARAMS,
    },
    build: |params, context| Ok(Box::new(Listed::new("lammps", requests(params, context)?, params.get(GAP)))),
};

/// Half a block; all sizes below are in this unit unless they say bytes.
const HALF: u64 = 512 << 10;
const PAGE: u64 = 32 << 10;
const PASSES: u64 = 26;
const REQUESTS: usize = 76;
const EXTENTS: usize = 34;
const HOLES: usize = 14;
const LIVE: u64 = 272 * 2;
/// The range ends 6 pages behind this.
const RANGE: u64 = 358 * 2 - 1;
/// Last pass (exclusive) in which the growing file ends in 1, 2, ... 6 more pages; 96 pages over all passes.
const GROWTH: [u64; 6] = [4, 8, 11, 16, 21, 26];

fn requests(params: &Params, context: Context) -> Result<Vec<(u64, u64)>, ParamError> {
    let mut rng = rng(params, context);
    // Starts fall on block borders and halves by chance; a layout that is not near one half is drawn again.
    let pass = (0..1000)
        .map(|_| lay_out(&mut rng))
        .find(|pass| {
            let aligned = pass.iter().filter(|(start, _)| start % 2 == 0).count();
            (REQUESTS * 45 / 100..=REQUESTS * 55 / 100).contains(&aligned)
        })
        .ok_or_else(|| params.error(SEED, "another seed: no layout with half of the starts on a block"))?;
    let tail = pass.iter().map(|(start, len)| start + len).max().unwrap_or(0);
    let mut out = Vec::with_capacity(REQUESTS * PASSES as usize);
    for number in 0..PASSES {
        let pages = 1 + GROWTH.iter().filter(|&&until| number >= until).count() as u64;
        for &(start, len) in &pass {
            let growth = if start + len == tail { pages * PAGE } else { 0 };
            out.push((start * HALF, len * HALF + growth));
        }
    }
    Ok(out)
}

/// One pass: start and length of every request in half blocks, in the order of writing.
fn lay_out(rng: &mut Xoshiro256PlusPlus) -> Vec<(u64, u64)> {
    let lengths = lengths(rng);
    let mut firsts = split_points(rng, REQUESTS, EXTENTS);
    firsts.push(REQUESTS);
    let mut with_hole = vec![false; EXTENTS];
    with_hole[..HOLES].fill(true);
    shuffle(rng, &mut with_hole);
    let mut holes = parts(rng, RANGE - LIVE, HOLES);

    let mut extents = Vec::with_capacity(EXTENTS);
    let mut at = 0;
    for (extent, bounds) in firsts.windows(2).enumerate() {
        if with_hole[extent] {
            at += holes.pop().unwrap_or(0);
        }
        let mut run = Vec::new();
        for &len in &lengths[bounds[0]..bounds[1]] {
            run.push((at, len));
            at += len;
        }
        extents.push(run);
    }
    shuffle(rng, &mut extents);
    extents.concat()
}

/// 4 requests of half a block, 3 of a block and 69 of 1.5 to 7.5 MiB, all together `LIVE`, shuffled.
fn lengths(rng: &mut Xoshiro256PlusPlus) -> Vec<u64> {
    const SMALL: [u64; 7] = [1, 1, 1, 1, 2, 2, 2];
    const SHORTEST: u64 = 3;
    const LONGEST: u64 = 15;
    let mut large: Vec<u64> = (SMALL.len()..REQUESTS).map(|_| SHORTEST + below(rng, 11)).collect();
    let wanted = LIVE - SMALL.iter().sum::<u64>();
    let mut sum: u64 = large.iter().sum();
    while sum != wanted {
        let index = below(rng, large.len() as u64) as usize;
        if sum < wanted && large[index] < LONGEST {
            large[index] += 1;
            sum += 1;
        } else if sum > wanted && large[index] > SHORTEST {
            large[index] -= 1;
            sum -= 1;
        }
    }
    large.extend(SMALL);
    shuffle(rng, &mut large);
    large
}

/// Starts of `count` non-empty runs of `0..total`, ascending from 0.
fn split_points(rng: &mut Xoshiro256PlusPlus, total: usize, count: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> = (1..total).collect();
    shuffle(rng, &mut cuts);
    cuts.truncate(count - 1);
    cuts.push(0);
    cuts.sort_unstable();
    cuts
}

/// `count` positive numbers with the given sum.
fn parts(rng: &mut Xoshiro256PlusPlus, sum: u64, count: usize) -> Vec<u64> {
    let mut starts = split_points(rng, sum as usize, count);
    starts.push(sum as usize);
    starts.windows(2).map(|pair| (pair[1] - pair[0]) as u64).collect()
}

fn shuffle<T>(rng: &mut Xoshiro256PlusPlus, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(rng, last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OpenOptions, Target, Workload};
    use nandscape_core::IoRecord;
    use std::collections::BTreeSet;

    fn load(seed: u64) -> Vec<IoRecord> {
        let workload =
            Workload::new(&format!("lammps:seed={seed}"), &OpenOptions::default(), Target::NONE).unwrap();
        workload.open().unwrap().collect::<Result<_, _>>().unwrap()
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_published_facts_hold_for_any_seed() {
        for seed in 0..50 {
            let records = load(seed);
            assert_eq!(records.len(), 1976);
            assert_eq!(records.iter().map(|r| r.len).sum::<u64>(), 7075 * MIB);
            let end = records.iter().map(|r| r.offset + r.len).max().unwrap();
            assert!((357 * MIB..358 * MIB).contains(&end), "{end}");
            assert!(records.iter().all(|r| r.offset % PAGE == 0 && r.len % PAGE == 0), "page aligned");
            assert!(records.iter().all(|r| r.len > 500_000));
            let starts: BTreeSet<u64> = records.iter().map(|r| r.offset % MIB).collect();
            assert_eq!(starts, BTreeSet::from([0, HALF]));
            let aligned = records.iter().filter(|r| r.offset % MIB == 0).count() as f64 / 1976.0;
            assert!((0.44..=0.56).contains(&aligned), "{aligned}");
            let large = records.iter().filter(|r| r.len > MIB).count() as f64 / 1976.0;
            assert!((0.88..=0.93).contains(&large), "{large}");

            let pages: BTreeSet<u64> =
                records.iter().flat_map(|r| r.offset / PAGE..(r.offset + r.len) / PAGE).collect();
            assert_eq!(pages.len(), 8710, "272 MiB and the 6 pages that the growing file reaches");
            let mut holes = u32::from(!pages.contains(&0));
            holes += pages.iter().filter(|&&p| !pages.contains(&(p + 1))).count() as u32 - 1;
            assert_eq!(holes, 14);

            for pass in records.chunks(76) {
                let runs = 1 + pass.windows(2).filter(|w| w[0].offset + w[0].len != w[1].offset).count();
                // Two extents that are neighbours on the device may also be drawn one after the other.
                assert!((28..=34).contains(&runs), "{runs}");
                assert!(pass.iter().map(|r| r.offset).eq(records[..76].iter().map(|r| r.offset)));
            }
        }
    }

    #[test]
    fn seeds_differ_and_repeat() {
        assert_eq!(load(3), load(3));
        assert_ne!(load(3), load(4));
    }
}
