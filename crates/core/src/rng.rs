//! Random numbers whose sequences are part of recorded results: named algorithms, our own bounded and Zipf
//! samplers, no dependence on a library's choice of distribution code.

pub use rand_core::{Rng, SeedableRng};

use rand_core::{Infallible, TryRng, utils};

/// xoshiro256++ (Blackman and Vigna, ACM TOMS 47(4), 2021). Our own copy, because the state of a generator is
/// part of the state of a device, and libraries do not show it; a test compares both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xoshiro256PlusPlus {
    words: [u64; 4],
}

impl Xoshiro256PlusPlus {
    /// Its state, to be saved and loaded.
    pub(crate) const fn words_mut(&mut self) -> &mut [u64; 4] {
        &mut self.words
    }
}

impl SeedableRng for Xoshiro256PlusPlus {
    type Seed = [u8; 32];

    /// A seed of zeroes, from which only zeroes would come, counts as the number 0.
    fn from_seed(seed: [u8; 32]) -> Self {
        if seed == [0; 32] { Self::seed_from_u64(0) } else { Self { words: utils::read_words(&seed) } }
    }

    /// Four numbers of `SplitMix64`.
    fn seed_from_u64(seed: u64) -> Self {
        let mut at = seed;
        let words = std::array::from_fn(|_| {
            at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (at ^ at >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        });
        Self { words }
    }
}

impl TryRng for Xoshiro256PlusPlus {
    type Error = Infallible;

    /// The upper half, since the lowest bits depend on each other.
    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.next_u64() >> 32) as u32)
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let [a, b, c, d] = &mut self.words;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        Ok(result)
    }

    #[inline]
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        utils::fill_bytes_via_next_word(bytes, || self.try_next_u64())
    }
}

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

    #[test]
    fn the_generator_is_that_of_rand_xoshiro() {
        fn compare(mut own: Xoshiro256PlusPlus, mut other: rand_xoshiro::Xoshiro256PlusPlus) {
            for _ in 0..100 {
                assert_eq!(own.next_u64(), other.next_u64());
                assert_eq!(own.next_u32(), other.next_u32());
            }
            let (mut bytes, mut others) = ([0; 13], [0; 13]);
            own.fill_bytes(&mut bytes);
            other.fill_bytes(&mut others);
            assert_eq!(bytes, others);
        }
        for seed in [0, 1, 42, u64::MAX] {
            compare(seeded(seed), rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed));
        }
        for byte in [0, 1, 0xa5] {
            let seed = [byte; 32];
            let other = rand_xoshiro::Xoshiro256PlusPlus::from_seed(seed);
            compare(Xoshiro256PlusPlus::from_seed(seed), other);
        }
    }
}
