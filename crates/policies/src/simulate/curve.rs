//! Miss-ratio curves, and what follows from them.

use super::Accesses;
use serde::Serialize;

/// What a cache of one size counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Blocks of the cache.
    pub size_blocks: u64,
    /// The same in bytes; 0 where requests are objects.
    pub size_bytes: u64,
    /// Blocks read and written.
    #[serde(flatten)]
    pub accesses: Accesses,
}

impl Point {
    /// The point of a size in blocks of `block_bytes`.
    pub fn new(size_blocks: u64, block_bytes: u64, accesses: Accesses) -> Self {
        Self { size_blocks, size_bytes: size_blocks * block_bytes, accesses }
    }
}

/// Misses by size, of one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Eviction policy, with the parameters that were typed.
    pub eviction: String,
    /// By ascending size.
    pub points: Vec<Point>,
    /// Where it bends.
    pub knee: Option<Knee>,
}

/// Where a curve bends most: up to there a block of cache saves more than on average over the whole curve,
/// from there on less.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Knee {
    /// Blocks of the cache.
    pub size_blocks: u64,
    /// The same in bytes; 0 where requests are objects.
    pub size_bytes: u64,
    /// Misses over requests there.
    pub miss_ratio: f64,
    /// How far the curve lies below the straight line between its ends, as a share of what it falls in all.
    pub depth: f64,
}

/// A curve that lies less than this below its straight line has no knee to speak of.
const DEPTH_MIN: f64 = 0.05;

/// The knee of a curve, from no cache (every request a miss) to the size at which it has fallen to its least.
///
/// Found as in Kneedle (Satopaa, Albrecht, Irwin and Raghavan, ICDCS workshops 2011, section III) on a whole
/// curve without noise: both axes are scaled to 0..1, and the knee is where the curve is farthest from the
/// straight line between its ends. Both axes are linear, since what a cache costs is linear in its size.
/// `None` where the curve lies nowhere clearly below the line: misses then fall evenly with the size, or
/// late.
pub fn knee(points: &[Point]) -> Option<Knee> {
    let least = points.iter().map(|point| point.accesses.miss_ratio()).fold(1.0, f64::min);
    let last = points.iter().find(|point| point.accesses.miss_ratio() <= least)?;
    let (size, fall) = (last.size_blocks as f64, 1.0 - least);
    let depth = |point: &Point| (1.0 - point.accesses.miss_ratio()) / fall - point.size_blocks as f64 / size;
    let mut best: Option<Knee> = None;
    for point in points.iter().take_while(|point| point.size_blocks <= last.size_blocks) {
        let depth = depth(point);
        if depth > DEPTH_MIN && best.is_none_or(|best| depth > best.depth) {
            best = Some(Knee {
                size_blocks: point.size_blocks,
                size_bytes: point.size_bytes,
                miss_ratio: point.accesses.miss_ratio(),
                depth,
            });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(ratios: &[(u64, u64)]) -> Vec<Point> {
        let accesses =
            |misses| Accesses { read_misses: misses, read_hits: 1000 - misses, ..Accesses::default() };
        ratios.iter().map(|(size, misses)| Point::new(*size, 4096, accesses(*misses))).collect()
    }

    #[test]
    fn the_knee_is_farthest_below_the_line() {
        // The line falls by 8 a block from 1000 to 200; at 30 blocks it is at 760.
        let knee = knee(&curve(&[(10, 800), (30, 300), (60, 250), (100, 200), (200, 200)])).unwrap();
        assert_eq!(knee.size_blocks, 30);
        assert_eq!(knee.size_bytes, 30 * 4096);
        assert!((knee.depth - (700.0 / 800.0 - 0.3)).abs() < 1e-12, "{}", knee.depth);
    }

    #[test]
    fn straight_lines_and_cliffs_at_the_end_have_none() {
        assert_eq!(knee(&curve(&[(25, 800), (50, 600), (75, 400), (100, 200)])), None);
        assert_eq!(knee(&curve(&[(25, 990), (50, 980), (75, 970), (100, 200)])), None);
        assert_eq!(knee(&curve(&[(25, 1000), (50, 1000)])), None);
        assert_eq!(knee(&[]), None);
    }
}
