//! Policies against tables of numbers, and greedy and cost-benefit against exhaustive search.

use super::*;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{Param, Params};

const PARAMS: &[Param] = &[d_choices::D.param, d_choices::SEED.param];
const INFO: Info = Info { name: "test", summary: "", source: "", params: PARAMS };

fn build(name: &str, blocks: u32) -> Box<dyn VictimPolicy> {
    let params = Params::defaults(&INFO);
    (find(name).unwrap().build)(&VictimSetup { blocks, pages_per_block: 8, domain: 0, params: &params })
}

fn facts(blocks: &[BlockInfo], now: u64) -> VictimFacts<'_> {
    VictimFacts { blocks, now }
}

#[test]
fn every_policy_returns_none_when_nothing_is_sealed() {
    for entry in VICTIMS {
        let mut policy = build(entry.info.name, 4);
        assert_eq!(policy.pick(&facts(&[BlockInfo::default(); 4], 0)), None, "{}", entry.info.name);
        policy.sealed(2, 8, 5);
        assert_eq!(policy.pick(&facts(&[BlockInfo::default(); 4], 9)), Some(2), "{}", entry.info.name);
        policy.removed(2);
        assert_eq!(policy.pick(&facts(&[BlockInfo::default(); 4], 9)), None, "{}", entry.info.name);
    }
}

/// Seals, invalidates and removes at random; gives the policy's pick and the table to check it against at
/// each step.
fn exercise(name: &str, mut check: impl FnMut(&[Option<(u32, u64, u64)>], u64, u32)) {
    const BLOCKS: u32 = 20;
    let mut policy = build(name, BLOCKS);
    let mut rng = seeded(9);
    let mut infos = [BlockInfo::default(); BLOCKS as usize];
    // Valid pages, time of the last change, time of sealing.
    let mut table: Vec<Option<(u32, u64, u64)>> = vec![None; BLOCKS as usize];
    for now in 0..20_000u64 {
        let block = below(&mut rng, u64::from(BLOCKS)) as u32;
        match &mut table[block as usize] {
            None => {
                policy.sealed(block, 8, now);
                table[block as usize] = Some((8, now, now));
            }
            Some((valid, changed, _)) if *valid > 0 => {
                *valid -= 1;
                *changed = now;
                policy.invalidated(block, *valid, now);
            }
            Some(_) => {
                policy.removed(block);
                table[block as usize] = None;
            }
        }
        for (info, row) in infos.iter_mut().zip(&table) {
            info.valid = row.map_or(0, |(valid, ..)| valid);
        }
        let pick = policy.pick(&facts(&infos, now));
        assert_eq!(pick.is_some(), table.iter().any(Option::is_some));
        if let Some(pick) = pick {
            check(&table, now, pick);
        }
    }
}

#[test]
fn greedy_takes_the_fewest_valid_pages_and_of_equals_the_longest_so() {
    exercise("greedy", |table, _, pick| {
        let best = table.iter().flatten().map(|(valid, changed, _)| (*valid, *changed)).min().unwrap();
        let (valid, changed, _) = table[pick as usize].unwrap();
        assert_eq!((valid, changed), best);
    });
}

#[test]
fn fifo_takes_the_first_sealed() {
    exercise("fifo", |table, _, pick| {
        let first = table.iter().flatten().map(|(.., sealed)| *sealed).min().unwrap();
        assert_eq!(table[pick as usize].unwrap().2, first);
    });
}

#[test]
fn cost_benefit_agrees_with_exhaustive_search() {
    exercise("cost-benefit", |table, now, pick| {
        let score = |(valid, changed, _): (u32, u64, u64)| {
            if valid == 0 {
                return f64::INFINITY;
            }
            (now - changed) as f64 * f64::from(8 - valid) / (2.0 * f64::from(valid))
        };
        let best = table.iter().flatten().map(|row| score(*row)).fold(0.0, f64::max);
        let picked = score(table[pick as usize].unwrap());
        assert!(picked >= best * (1.0 - 1e-12), "picked {picked}, best {best}");
    });
}

#[test]
fn d_choices_prefers_emptier_blocks_and_random_does_not() {
    let mut mean = Vec::new();
    for name in ["random", "d-choices"] {
        let mut policy = build(name, 100);
        let infos: Vec<_> = (0..100).map(|i| BlockInfo { valid: i % 8, state: BlockState::Sealed }).collect();
        for block in 0..100 {
            policy.sealed(block, infos[block as usize].valid, 0);
        }
        let picks = (0..4000).map(|_| policy.pick(&facts(&infos, 0)).unwrap());
        mean.push(picks.map(|b| f64::from(infos[b as usize].valid)).sum::<f64>() / 4000.0);
    }
    // Uniform over 0..8 (13 blocks each of 0..4, 12 each of 4..8): mean 3.44. The least of ten: sum of ((8 -
    // i) / 8)^10, about 0.33.
    assert!((mean[0] - 3.44).abs() < 0.2, "{mean:?}");
    assert!((mean[1] - 0.33).abs() < 0.06, "{mean:?}");
}
