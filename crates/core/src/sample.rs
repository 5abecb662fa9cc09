//! Samplers whose draws are part of recorded results: Zipf's law, and a bijection that scatters ranks.
//! Logarithm and exponential come from a software library, so that sequences are the same on every platform.

use crate::rng::{Rng, unit};

/// Draws ranks from 0, rank k with a probability proportional to `(k + 1)^-theta`.
///
/// Rejection-inversion (Hörmann and Derflinger, ACM TOMACS 6(3), 1996): needs no table, works for every theta
/// above 0, and takes about 1.1 tries a draw.
#[derive(Clone, Debug)]
pub struct Zipf {
    ranks: u64,
    theta: f64,
    h_first: f64,
    h_last: f64,
    shortcut: f64,
}

impl Zipf {
    /// Over `ranks` ranks (at least 1), with a skew above 0.
    pub fn new(ranks: u64, theta: f64) -> Self {
        let mut sampler = Self { ranks, theta, h_first: 0.0, h_last: 0.0, shortcut: 0.0 };
        sampler.h_first = sampler.integral(1.5) - 1.0;
        sampler.h_last = sampler.integral(ranks as f64 + 0.5);
        sampler.shortcut = 2.0 - sampler.inverse(sampler.integral(2.5) - sampler.weight(2.0));
        sampler
    }

    /// x^-theta.
    fn weight(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// An integral of the weight: (x^(1-theta) - 1) / (1 - theta), and log x where theta is 1.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        expm1_ratio((1.0 - self.theta) * log) * log
    }

    /// Inverse of `integral`.
    fn inverse(&self, y: f64) -> f64 {
        let t = (y * (1.0 - self.theta)).max(-1.0);
        libm::exp(log1p_ratio(t) * y)
    }

    /// A rank.
    #[inline]
    pub fn draw(&self, rng: &mut impl Rng) -> u64 {
        loop {
            let u = self.h_last + unit(rng) * (self.h_first - self.h_last);
            let x = self.inverse(u);
            let rank = ((x + 0.5) as u64).clamp(1, self.ranks);
            let k = rank as f64;
            if k - x <= self.shortcut || u >= self.integral(k + 0.5) - self.weight(k) {
                return rank - 1;
            }
        }
    }
}

/// A draw from the exponential distribution of mean 1.
#[inline]
pub fn exponential(rng: &mut impl Rng) -> f64 {
    -libm::log(1.0 - unit(rng))
}

/// (e^x - 1) / x, also near 0.
fn expm1_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::expm1(x) / x } else { 1.0 + x / 2.0 }
}

/// log(1 + x) / x, also near 0.
fn log1p_ratio(x: f64) -> f64 {
    if x.abs() > 1e-8 { libm::log1p(x) / x } else { 1.0 - x / 2.0 }
}

/// A bijection that puts neighbouring ranks far apart: multiplication modulo the number of places, by a
/// number near the golden section of it that has no common divisor with it.
#[derive(Clone, Debug)]
pub struct Scatter {
    slots: u64,
    factor: u64,
}

impl Scatter {
    /// Over `slots` places (at least 1).
    pub fn new(slots: u64) -> Self {
        let mut factor = ((slots as f64 * 0.618_033_988_749_894_9) as u64).max(1);
        while gcd(factor, slots) != 1 {
            factor += 1;
        }
        Self { slots, factor }
    }

    /// Place of a rank.
    #[inline]
    pub fn place(&self, rank: u64) -> u64 {
        (u128::from(rank) * u128::from(self.factor) % u128::from(self.slots)) as u64
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::seeded;

    #[test]
    fn frequencies_follow_the_law() {
        for theta in [0.5, 0.99, 1.0, 1.4] {
            const RANKS: u64 = 50;
            const DRAWS: u32 = 400_000;
            let sampler = Zipf::new(RANKS, theta);
            let mut rng = seeded(3);
            let mut counts = [0u32; RANKS as usize];
            for _ in 0..DRAWS {
                counts[sampler.draw(&mut rng) as usize] += 1;
            }
            let total: f64 = (1..=RANKS).map(|k| (k as f64).powf(-theta)).sum();
            for (index, &count) in counts.iter().enumerate() {
                let p = ((index + 1) as f64).powf(-theta) / total;
                let sigma = (f64::from(DRAWS) * p * (1.0 - p)).sqrt();
                let off = (f64::from(count) - f64::from(DRAWS) * p).abs();
                assert!(
                    off < 5.0 * sigma,
                    "theta {theta} rank {index}: {count}, off by {off} with sigma {sigma}"
                );
            }
        }
    }

    #[test]
    fn draws_do_not_change_between_versions() {
        let sampler = Zipf::new(1_000_000, 0.99);
        let mut rng = seeded(42);
        let drawn: Vec<u64> = (0..5).map(|_| sampler.draw(&mut rng)).collect();
        assert_eq!(drawn, [8, 12_612, 0, 50, 12]);
    }

    #[test]
    fn scattering_is_a_bijection() {
        for slots in [1, 2, 7, 1000, 4096] {
            let scatter = Scatter::new(slots);
            let mut seen: Vec<u64> = (0..slots).map(|rank| scatter.place(rank)).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..slots).collect::<Vec<_>>());
        }
    }
}
