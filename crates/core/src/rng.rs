//! Random numbers whose sequences are part of recorded results: named algorithms, our own bounded and Zipf
//! samplers, no dependence on a library's choice of distribution code.

pub use rand_core::{Rng, SeedableRng};
pub use rand_xoshiro::Xoshiro256PlusPlus;

/// The simulation's generator: xoshiro256++, seeded through `SplitMix64` from a 64-bit seed.
pub fn seeded(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// A number in `0..bound`, by Lemire's multiplication without the rejection step. The bias is at most `bound
/// / 2^64`.
#[inline]
pub fn below(rng: &mut impl Rng, bound: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// A number in `[0, 1)` with 53 random bits.
#[inline]
pub fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_do_not_change_between_versions() {
        let mut rng = seeded(42);
        let first: Vec<u64> = (0..3).map(|_| below(&mut rng, 1000)).collect();
        let mut again = seeded(42);
        assert_eq!(first, (0..3).map(|_| below(&mut again, 1000)).collect::<Vec<_>>());
        assert_eq!(first, [814, 318, 983]);
    }
}
