//! What size and policy a workload asks for.

use super::curve::{Curve, Point, knee};
use super::{Accesses, BELADY};
use serde::Serialize;

/// What a workload would gain from a cache, by policy and size. Fields are added, never renamed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Advice {
    /// The workload as it was typed.
    pub workload: String,
    /// Bytes of a cache block; 0 where every request counts as one object.
    pub block_bytes: u64,
    /// Blocks read and written.
    pub requests: u64,
    /// Blocks read.
    pub reads: u64,
    /// Blocks written.
    pub writes: u64,
    /// Different blocks, those trimmed apart; estimated from a sample.
    pub blocks: u64,
    /// Requests that miss whatever the cache: the first for each block.
    pub first_misses: u64,
    /// Seconds from the first to the last request, where time stamps are real.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// How the sample was taken; none for exact counts.
    pub sample: Option<Sample>,
    /// One for each policy, in the order given.
    pub curves: Vec<Curve>,
    /// The policy that misses least, at every size. Belady's, which must know the future, is not among them.
    pub best: Vec<Choice>,
    /// The knee of the best policies together.
    pub knee: Option<Suggestion>,
    /// The smallest size and policy within a hundredth of the requests of the least misses.
    pub enough: Option<Suggestion>,
    /// Policies by how much they miss more than the best one of each size, the one with the least first.
    pub ranking: Vec<Standing>,
    /// Seconds for all of it.
    pub wall_s: f64,
}

/// A part of the blocks stands for all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Share of the blocks.
    pub rate: f64,
    /// Which blocks.
    pub seed: u64,
    /// Requests in the sample.
    pub requests: u64,
    /// Different blocks in the sample.
    pub blocks: u64,
}

/// The best policy of a size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The size and the policy.
    #[serde(flatten)]
    pub suggestion: Suggestion,
    /// What the best policy that knows the future would have, where it was simulated.
    pub least: Option<f64>,
}

/// A size and a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suggestion {
    /// Blocks of the cache.
    pub size_blocks: u64,
    /// The same in bytes; 0 where requests are objects.
    pub size_bytes: u64,
    /// Its name.
    pub eviction: String,
    /// Misses over requests.
    pub miss_ratio: f64,
}

/// How a policy compares over all sizes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// Its name.
    pub eviction: String,
    /// Its miss ratio minus that of the best policy of the same size: mean of all sizes.
    pub excess_mean: f64,
    /// The same: largest of all sizes.
    pub excess_max: f64,
}

/// Misses that do not count for [`Advice::enough`], as a share of all requests.
const ENOUGH: f64 = 0.01;

/// Curves with their knees, and everything that follows from them. The curves have the same sizes; `lru` has
/// every step of the LRU curve, for its knee.
pub fn advise(base: Advice, lru: &[Point]) -> Advice {
    let mut advice = base;
    for curve in &mut advice.curves {
        let all = if curve.eviction == "lru" && !lru.is_empty() { lru } else { &curve.points };
        curve.knee = knee(all);
    }
    let is_online = |curve: &&Curve| curve.eviction != BELADY.name;
    let least = advice.curves.iter().find(|curve| !is_online(curve));
    let online: Vec<&Curve> = advice.curves.iter().filter(is_online).collect();
    let sizes = online.first().map_or(0, |curve| curve.points.len());
    let mut envelope = Vec::new();
    let mut best = Vec::new();
    for at in 0..sizes {
        // The first of equals.
        let winner =
            online.iter().min_by_key(|curve| curve.points[at].accesses.misses()).expect("there is one");
        let point = winner.points[at];
        envelope.push(point);
        best.push(Choice {
            suggestion: Suggestion {
                size_blocks: point.size_blocks,
                size_bytes: point.size_bytes,
                eviction: winner.eviction.clone(),
                miss_ratio: point.accesses.miss_ratio(),
            },
            least: least.map(|curve| curve.points[at].accesses.miss_ratio()),
        });
    }
    let suggestions = || best.iter().map(|choice: &Choice| &choice.suggestion);
    let knee = knee(&envelope);
    advice.knee = knee.and_then(|knee| suggestions().find(|s| s.size_blocks == knee.size_blocks).cloned());
    let bottom = suggestions().map(|suggestion| suggestion.miss_ratio).fold(1.0, f64::min);
    advice.enough = suggestions().find(|suggestion| suggestion.miss_ratio <= bottom + ENOUGH).cloned();
    advice.ranking = ranking(&online, &envelope);
    advice.best = best;
    advice
}

fn ranking(online: &[&Curve], envelope: &[Point]) -> Vec<Standing> {
    let mut ranking: Vec<Standing> = online
        .iter()
        .map(|curve| {
            let ratio = |point: &Point| point.accesses.miss_ratio();
            let excess = || curve.points.iter().zip(envelope).map(|(own, best)| ratio(own) - ratio(best));
            Standing {
                eviction: curve.eviction.clone(),
                excess_mean: excess().sum::<f64>() / envelope.len().max(1) as f64,
                excess_max: excess().fold(0.0, f64::max),
            }
        })
        .collect();
    ranking.sort_by(|a, b| a.excess_mean.total_cmp(&b.excess_mean));
    ranking
}

/// Sizes to look at where none are named: powers of two up to the first that holds every block that is ever
/// asked for again, with the sizes half way between for the largest of them. `smallest` blocks at least.
pub fn sizes(largest: u64, smallest: u64) -> Vec<u64> {
    let top = largest.max(2).next_power_of_two();
    let bottom = (top >> 12).max(smallest.next_power_of_two()).max(1);
    let mut sizes: Vec<u64> =
        std::iter::successors(Some(bottom), |size| Some(size * 2)).take_while(|size| *size <= top).collect();
    let between = (1..=4).map(|back| (top >> back) / 2 * 3).filter(|size| *size > bottom && *size < largest);
    sizes.extend(between);
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.is_empty() { vec![top] } else { sizes }
}

impl Advice {
    /// What is known before there are curves.
    pub fn of_accesses(workload: &str, block_bytes: u64, all: Accesses) -> Self {
        Self {
            workload: workload.to_owned(),
            block_bytes,
            requests: all.requests(),
            reads: all.read_hits + all.read_misses,
            writes: all.write_hits + all.write_misses,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, misses: [u64; 4]) -> Curve {
        let accesses =
            |misses| Accesses { read_misses: misses, read_hits: 1000 - misses, ..Accesses::default() };
        let points = [10, 20, 40, 80].into_iter().zip(misses);
        let points = points.map(|(size, misses)| Point::new(size, 4096, accesses(misses))).collect();
        Curve { eviction: name.to_owned(), points, knee: None }
    }

    #[test]
    fn advice_follows_from_the_curves() {
        let mut base = Advice::of_accesses("w", 4096, Accesses { read_misses: 1000, ..Accesses::default() });
        base.curves = vec![
            curve("fifo", [900, 300, 250, 150]),
            curve("lru", [800, 320, 159, 151]),
            curve("belady", [500, 200, 150, 150]),
        ];
        let steps = curve("lru", [700, 600, 159, 151]).points;
        let advice = advise(base, &steps);
        let best: Vec<&str> = advice.best.iter().map(|best| best.suggestion.eviction.as_str()).collect();
        assert_eq!(best, ["lru", "fifo", "lru", "fifo"]);
        assert_eq!(advice.best[0].least, Some(0.5));
        // The best of each size fall from 1 to 0.15 at 80 blocks: at 20 they have done 0.82 of it, at 40
        // 0.99.
        let knee = advice.knee.unwrap();
        assert_eq!((knee.size_blocks, knee.eviction.as_str()), (20, "fifo"));
        assert_eq!(
            advice.curves[1].knee.unwrap().size_blocks,
            40,
            "from every step, not from the sizes here"
        );
        let enough = advice.enough.unwrap();
        assert_eq!((enough.size_blocks, enough.eviction.as_str()), (40, "lru"));
        let ranking: Vec<&str> = advice.ranking.iter().map(|standing| standing.eviction.as_str()).collect();
        assert_eq!(ranking, ["lru", "fifo"]);
        assert!((advice.ranking[1].excess_max - 0.1).abs() < 1e-12);
    }

    #[test]
    fn sizes_reach_what_the_workload_can_use() {
        assert_eq!(sizes(1000, 1), [1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024]);
        assert_eq!(sizes(700, 64), [64, 96, 128, 192, 256, 384, 512, 1024]);
        assert_eq!(sizes(0, 1), [1, 2]);
        assert_eq!(sizes(3, 4096), [4]);
        assert_eq!(sizes(1 << 30, 1).first(), Some(&(1 << 18)));
    }
}
