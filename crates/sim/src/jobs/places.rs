//! Random places in a region: fio's distributions.

use super::axmap::Axmap;
use super::permutation::Permutation;
use nandscape_core::rng::{Rng, Xoshiro256PlusPlus, below, unit};
use nandscape_core::sample::{Scatter, Zipf};
use nandscape_jobs::job::ZoneShare;
use nandscape_jobs::{Amount, Distribution};

#[derive(Clone, Debug)]
pub(crate) enum Law {
    Uniform,
    /// By rank; ranks are scattered by a bijection, or lie from a centre on.
    Zipf {
        law: Zipf,
        spread: Spread,
    },
    /// Self-similar with exponent log h / log (1 - h).
    Pareto {
        exponent: f64,
        spread: Spread,
    },
    /// Normal around a centre, the tails beyond the region cut off.
    Normal {
        centre: f64,
        deviation: f64,
    },
    /// Zones with cumulated shares: up to this share of the requests, slots from, slots.
    Zoned(Vec<(f64, u64, u64)>),
}

#[derive(Clone, Debug)]
pub(crate) enum Spread {
    /// Neighbouring ranks far apart, rank 0 at a random slot.
    Scattered(Scatter, u64),
    /// Rank 0 at this slot, others behind it, around the end of the region.
    From(u64),
}

impl Spread {
    fn new(centre: Option<f64>, slots: u64, rng: &mut Xoshiro256PlusPlus) -> Self {
        match centre {
            None => Self::Scattered(Scatter::new(slots), below(rng, slots)),
            Some(centre) => Self::From(((slots as f64 * centre) as u64).min(slots - 1)),
        }
    }

    #[inline]
    fn slot(&self, rank: u64, slots: u64) -> u64 {
        match self {
            Self::Scattered(scatter, first) => (scatter.place(rank) + first) % slots,
            Self::From(first) => (rank + first) % slots,
        }
    }
}

impl Law {
    /// For `slots` (at least 1) places of `slot_bytes` each.
    pub fn new(
        distribution: &Distribution,
        slots: u64,
        slot_bytes: u64,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Self {
        match *distribution {
            Distribution::Uniform => Self::Uniform,
            Distribution::Zipf { theta, centre } => {
                Self::Zipf { law: Zipf::new(slots, theta), spread: Spread::new(centre, slots, rng) }
            }
            Distribution::Pareto { h, centre } => Self::Pareto {
                exponent: libm::log(h) / libm::log(1.0 - h),
                spread: Spread::new(centre, slots, rng),
            },
            Distribution::Normal { deviation, centre } => Self::Normal {
                centre: slots as f64 * centre.unwrap_or(0.5),
                deviation: slots as f64 * deviation / 100.0,
            },
            Distribution::Zoned(ref zones) => Self::Zoned(zone_slots(zones, slots, slot_bytes)),
        }
    }

    #[inline]
    pub fn draw(&self, slots: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
        if matches!(self, Self::Uniform) { below(rng, slots) } else { self.draw_skewed(slots, rng) }
    }

    /// Not inlined into the path of uniform places.
    #[inline(never)]
    fn draw_skewed(&self, slots: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match self {
            Self::Uniform => below(rng, slots),
            Self::Zipf { law, spread } => spread.slot(law.draw(rng), slots),
            Self::Pareto { exponent, spread } => {
                let rank = (slots as f64 * libm::pow(unit(rng), *exponent)) as u64;
                spread.slot(rank.min(slots - 1), slots)
            }
            Self::Normal { centre, deviation } => loop {
                let at = libm::floor(centre + deviation * standard_normal(rng));
                if at >= 0.0 && at < slots as f64 {
                    break at as u64;
                }
                // A deviation of nothing on the end of the region would never be inside.
                if *deviation < 1e-9 {
                    break slots - 1;
                }
            },
            Self::Zoned(zones) => {
                let share = unit(rng) * 100.0;
                let zone = zones.iter().find(|(up_to, _, _)| share < *up_to).or(zones.last());
                zone.map_or(0, |(_, from, len)| from + below(rng, *len))
            }
        }
    }
}

/// Box and Muller, one of the pair.
fn standard_normal(rng: &mut impl Rng) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - unit(rng)));
    radius * libm::cos(2.0 * std::f64::consts::PI * unit(rng))
}

/// Zones as slots; what lies beyond the region is cut off, a last zone short of it stays short.
fn zone_slots(zones: &[ZoneShare], slots: u64, slot_bytes: u64) -> Vec<(f64, u64, u64)> {
    let mut out = Vec::with_capacity(zones.len());
    let (mut share, mut edge) = (0.0, 0.0);
    for zone in zones {
        share += zone.accesses;
        let from = (edge as u64).min(slots - 1);
        edge += match zone.size {
            Amount::Percent(percent) => slots as f64 * percent / 100.0,
            Amount::Bytes(bytes) => bytes as f64 / slot_bytes as f64,
            Amount::None | Amount::Zones(_) => 0.0,
        };
        // Shares are rounded to whole slots, the error of one slot going to the next zone.
        let to = (libm::round(edge) as u64).clamp(from + 1, slots);
        edge = libm::round(edge).min(slots as f64);
        if zone.accesses > 0.0 {
            out.push((share, from, to - from));
        }
    }
    out
}

#[derive(Clone, Debug)]
pub(crate) enum Places {
    /// Each block once, in a random order; for requests of one size.
    Once(Permutation),
    /// Each block once; for requests of several sizes.
    Map(Axmap),
    /// By a distribution over so many slots for each direction; a place may come again at any time.
    Drawn([(Law, u64); 3]),
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::seeded;

    fn counts(distribution: &Distribution, slots: u64, draws: u32) -> Vec<u32> {
        let mut rng = seeded(11);
        let law = Law::new(distribution, slots, 4096, &mut rng);
        let mut counts = vec![0; slots as usize];
        for _ in 0..draws {
            counts[law.draw(slots, &mut rng) as usize] += 1;
        }
        counts
    }

    #[test]
    fn zipf_frequencies_follow_the_law_and_the_popular_are_scattered() {
        const DRAWS: u32 = 300_000;
        let zipf = |centre| counts(&Distribution::Zipf { theta: 1.2, centre }, 1000, DRAWS);
        let total: f64 = (1..=1000).map(|k| f64::from(k).powf(-1.2)).sum();
        let scattered = zipf(None);
        let mut ranked = scattered.clone();
        ranked.sort_unstable_by(|a, b| b.cmp(a));
        for (rank, count) in ranked.iter().take(10).enumerate() {
            let p = (rank as f64 + 1.0).powf(-1.2) / total;
            let sigma = (f64::from(DRAWS) * p * (1.0 - p)).sqrt();
            assert!((f64::from(*count) - f64::from(DRAWS) * p).abs() < 5.0 * sigma, "rank {rank}: {count}");
        }
        let places: Vec<usize> =
            ranked[..3].iter().map(|c| scattered.iter().position(|s| s == c).unwrap()).collect();
        assert!(places.windows(2).all(|w| w[0].abs_diff(w[1]) > 10), "{places:?}");
        let centred = zipf(Some(0.25));
        assert!(centred[250] > centred[251] && centred[251] > centred[252] && centred[249] < centred[252]);
    }

    #[test]
    fn pareto_gives_a_share_h_of_the_blocks_all_but_h_of_the_requests() {
        for h in [0.1, 0.2, 0.4] {
            let counts = counts(&Distribution::Pareto { h, centre: Some(0.0) }, 10_000, 200_000);
            let hot: u32 = counts[..(10_000.0 * h) as usize].iter().sum();
            let share = f64::from(hot) / 200_000.0;
            assert!((share - (1.0 - h)).abs() < 0.01, "{share} for {h}");
        }
    }

    #[test]
    fn normal_has_its_centre_and_deviation() {
        let counts = counts(&Distribution::Normal { deviation: 10.0, centre: None }, 10_000, 100_000);
        let mean: f64 = counts.iter().enumerate().map(|(i, c)| i as f64 * f64::from(*c)).sum::<f64>() / 1e5;
        let variance: f64 =
            counts.iter().enumerate().map(|(i, c)| (i as f64 - mean).powi(2) * f64::from(*c)).sum::<f64>()
                / 1e5;
        assert!((mean - 5000.0).abs() < 20.0 && (variance.sqrt() - 1000.0).abs() < 15.0, "{mean} {variance}");
    }

    #[test]
    fn zones_have_their_shares() {
        let zone = |accesses, size| ZoneShare { accesses, size: Amount::Percent(size) };
        let zones =
            Distribution::Zoned(vec![zone(60.0, 10.0), zone(30.0, 20.0), zone(0.0, 30.0), zone(10.0, 40.0)]);
        let counts = counts(&zones, 1000, 100_000);
        let share = |from: usize, to: usize| f64::from(counts[from..to].iter().sum::<u32>()) / 1e5;
        for (got, want) in
            [(share(0, 100), 0.6), (share(100, 300), 0.3), (share(300, 600), 0.0), (share(600, 1000), 0.1)]
        {
            assert!((got - want).abs() < 0.01, "{got} for {want}");
        }
        let absolute = vec![
            ZoneShare { accesses: 90.0, size: Amount::Bytes(4096 * 3) },
            ZoneShare { accesses: 10.0, size: Amount::Bytes(4096 * 7) },
        ];
        let counts = self::counts(&Distribution::Zoned(absolute), 1000, 1000);
        assert!(counts[..3].iter().sum::<u32>() > 850 && counts[10..].iter().sum::<u32>() == 0);
    }
}
