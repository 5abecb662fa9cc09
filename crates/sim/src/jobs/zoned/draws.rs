//! The random numbers of fio 3.33: combined Tausworthe generators (L'Ecuyer, Mathematics of Computation 65,
//! 1996, and 68, 1999) and a shift register, with fio's seeds. A job draws each kind of number from a
//! generator of its own.

use nandscape_core::rng::{Rng, seeded};
use nandscape_jobs::Job;
use nandscape_jobs::job::RandomGenerator;

/// Seeds of a job, by what they are for, in fio's order.
#[derive(Clone, Debug)]
pub(crate) struct Seeds([u64; Self::COUNT]);

impl Seeds {
    const COUNT: usize = 20;
    pub const READ_SIZE: usize = 0;
    pub const WRITE_SIZE: usize = 1;
    pub const TRIM_SIZE: usize = 2;
    pub const MIX: usize = 4;
    pub const FILE: usize = 5;
    pub const PLACE: usize = 6;
    pub const SEQUENTIAL: usize = 10;
    /// Seed of places where a job says nothing.
    const REPEATED: u64 = 0xb189_9bed;
    const FACTOR: u64 = 0x9e37_0001;
    /// `randseed` where a job says nothing.
    const DEFAULT: u64 = 0x89;

    /// `seed` is that of the run, for jobs that need not repeat.
    pub fn new(job: &Job, seed: u64) -> Self {
        let number = u64::from(job.number) + 1;
        let mut seeds = [0; Self::COUNT];
        if job.random.is_unrepeatable && job.seed.is_none() {
            let mut rng = seeded(seed ^ number << 32);
            seeds.fill_with(|| rng.next_u64());
        } else {
            let mut base = job.seed.unwrap_or(Self::DEFAULT);
            for _ in 0..4 {
                base = base.wrapping_mul(Self::FACTOR);
            }
            for (i, seed) in (0..).zip(&mut seeds) {
                *seed = base.wrapping_mul(number).wrapping_add(i);
                base = base.wrapping_mul(Self::FACTOR);
            }
        }
        if job.random.repeats_all {
            for (i, seed) in (0..).zip(&mut seeds) {
                *seed = Self::REPEATED.wrapping_mul(number).wrapping_add(i);
            }
        }
        // fio 3.33 draws the first round of places from this seed even where `randseed` is given.
        if job.pattern.is_random && !job.random.is_unrepeatable {
            seeds[Self::PLACE] = Self::REPEATED.wrapping_mul(number);
        }
        Self(seeds)
    }

    /// Whether a job draws the same numbers again in each round through its region.
    pub fn repeats(job: &Job) -> bool {
        !job.random.is_unrepeatable && job.seed.is_none()
    }

    pub const fn of(&self, purpose: usize) -> u64 {
        self.0[purpose]
    }
}

/// A combined Tausworthe generator.
#[derive(Clone, Debug)]
pub(crate) enum Tausworthe {
    Narrow([u32; 3]),
    Wide([u64; 5]),
}

/// What fio's seeding begins with: powers of two are meant, but the sum is one of exclusive ors.
const FIRST: u64 = 53;
/// Numbers that are thrown away after seeding.
const CRANKS: u32 = 6;

impl Tausworthe {
    pub fn new(seed: u64, is_wide: bool) -> Self {
        let mut state = if is_wide {
            let next = |x: u64, least: u64| {
                let x = x.wrapping_mul(6_906_969_069) ^ seed;
                if x < least { x.wrapping_add(least) } else { x }
            };
            let s1 = next(FIRST, 1);
            let s2 = next(s1, 7);
            let s3 = next(s2, 15);
            let s4 = next(s3, 33);
            Self::Wide([s1, s2, s3, s4, next(s4, 49)])
        } else {
            let next = |x: u32, least: u32| {
                let x = x.wrapping_mul(69_069) ^ seed as u32;
                if x < least { x.wrapping_add(least) } else { x }
            };
            let s1 = next(FIRST as u32, 1);
            let s2 = next(s1, 7);
            Self::Narrow([s1, s2, next(s2, 15)])
        };
        for _ in 0..CRANKS {
            state.next();
        }
        state
    }

    #[inline]
    pub fn next(&mut self) -> u64 {
        match self {
            Self::Narrow(s) => {
                let step = |s: u32, a: u32, b: u32, keep: u32, d: u32| (s & keep) << d ^ (s << a ^ s) >> b;
                s[0] = step(s[0], 13, 19, !1, 12);
                s[1] = step(s[1], 2, 25, !7, 4);
                s[2] = step(s[2], 3, 11, !15, 17);
                u64::from(s[0] ^ s[1] ^ s[2])
            }
            Self::Wide(s) => {
                let step = |s: u64, a: u32, b: u32, keep: u64, d: u32| (s & keep) << d ^ (s << a ^ s) >> b;
                s[0] = step(s[0], 1, 53, !1, 10);
                s[1] = step(s[1], 24, 50, !511, 5);
                s[2] = step(s[2], 3, 23, !4095, 29);
                s[3] = step(s[3], 5, 24, !0x1_ffff, 23);
                s[4] = step(s[4], 3, 33, !0x7f_ffff, 8);
                s.iter().fold(0, |sum, s| sum ^ s)
            }
        }
    }

    /// The largest number that it draws.
    pub const fn max(&self) -> u64 {
        match self {
            Self::Narrow(_) => u32::MAX as u64,
            Self::Wide(_) => u64::MAX,
        }
    }

    /// The next number as a share, below 1 as far as a float can say.
    #[inline]
    pub fn share(&mut self) -> f64 {
        self.next() as f64 / (self.max() as f64 + 1.0)
    }

    /// From 1 to 100.
    #[inline]
    pub fn percent(&mut self) -> u32 {
        1 + (100.0 * self.share()) as u32
    }
}

/// A shift register that visits each of a number of blocks once.
#[derive(Clone, Debug)]
pub(crate) struct Lfsr {
    taps: u64,
    top: u64,
    value: u64,
    last: u64,
    visited: u64,
    seed: u64,
    /// The first step after the beginning is a double one, as in fio.
    is_new: bool,
}

/// Taps of a register by its bits, from 3 on, as masks: those of fio (after Xilinx XAPP 052).
#[rustfmt::skip]
const TAPS: [&[u32]; 61] = [
    &[3, 2], &[4, 3], &[5, 3], &[6, 5], &[7, 6], &[8, 6, 5, 4], &[9, 5], &[10, 7], &[11, 9], &[12, 6, 4, 1],
    &[13, 4, 3, 1], &[14, 5, 3, 1], &[15, 14], &[16, 15, 13, 4], &[17, 14], &[18, 11], &[19, 6, 2, 1], &[20, 17],
    &[21, 19], &[22, 21], &[23, 18], &[24, 23, 22, 17], &[25, 22], &[26, 6, 2, 1], &[27, 5, 2, 1], &[28, 25],
    &[29, 27], &[30, 6, 4, 1], &[31, 28], &[32, 31, 29, 1], &[33, 20], &[34, 27, 2, 1], &[35, 33], &[36, 25],
    &[37, 5, 4, 3, 2, 1], &[38, 6, 5, 1], &[39, 35], &[40, 38, 21, 19], &[41, 38], &[42, 41, 20, 19],
    &[43, 42, 38, 37], &[44, 43, 18, 17], &[45, 44, 42, 41], &[46, 45, 26, 25], &[47, 42], &[48, 47, 21, 20],
    &[49, 40], &[50, 49, 24, 23], &[51, 50, 36, 35], &[52, 49], &[53, 52, 38, 37], &[54, 53, 18, 17], &[55, 31],
    &[56, 55, 35, 34], &[57, 50], &[58, 39], &[59, 58, 38, 37], &[60, 59], &[61, 60, 46, 45], &[62, 61, 6, 5],
    &[63, 62],
];

impl Lfsr {
    /// For `blocks` blocks (below 2^63); `None` for a seed that the register cannot begin with, which is all
    /// ones in its bits.
    pub fn new(blocks: u64, seed: u64) -> Option<Self> {
        let bits = (3..64).find(|bits| blocks > 0 && 1u64 << bits > blocks)?;
        let taps = TAPS[bits - 3];
        let mut lfsr = Self {
            taps: taps.iter().fold(0, |mask, tap| mask | 1 << (tap - 1)),
            top: 1 << (taps[0] - 1),
            value: 0,
            last: blocks - 1,
            visited: 0,
            seed,
            is_new: true,
        };
        lfsr.restart();
        (lfsr.value != (lfsr.top << 1) - 1).then_some(lfsr)
    }

    pub const fn restart(&mut self) {
        self.visited = 0;
        self.value = self.seed & ((self.top << 1) - 1);
    }

    pub fn next(&mut self) -> Option<u64> {
        self.visited += 1;
        if self.visited > self.last + 1 {
            return None;
        }
        loop {
            if std::mem::take(&mut self.is_new) {
                self.step();
            }
            self.step();
            if self.value <= self.last {
                return Some(self.value);
            }
        }
    }

    const fn step(&mut self) {
        let mask = if self.value & 1 == 0 { self.taps } else { 0 };
        self.value = (self.value >> 1 | self.top) ^ mask;
    }
}

/// Whether a generator draws 64 bits at a time.
pub(crate) fn is_wide(generator: RandomGenerator) -> bool {
    generator == RandomGenerator::Tausworthe64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_register_visits_each_block_once() {
        for blocks in [1, 7, 8, 100, 4096, 5000] {
            let mut lfsr = Lfsr::new(blocks, 5).unwrap();
            for _ in 0..2 {
                let mut seen: Vec<u64> = std::iter::from_fn(|| lfsr.next()).collect();
                assert_eq!(seen.len() as u64, blocks);
                seen.sort_unstable();
                seen.dedup();
                assert!(seen.len() as u64 >= blocks - 1, "the first double step may meet a block again");
                lfsr.restart();
            }
        }
    }

    #[test]
    fn a_seed_of_ones_begins_no_shift_register() {
        assert!(Lfsr::new(5, 7).is_none() && Lfsr::new(5, 15).is_none() && Lfsr::new(0, 1).is_none());
        assert!(Lfsr::new(5, 6).is_some() && Lfsr::new(1 << 40, u64::MAX >> 1 ^ 1).is_some());
    }

    #[test]
    fn tausworthe_generators_have_the_mean_of_their_law() {
        for is_wide in [false, true] {
            let mut draws = Tausworthe::new(0x89, is_wide);
            let mean = (0..10_000).map(|_| draws.share()).sum::<f64>() / 10_000.0;
            assert!((mean - 0.5).abs() < 0.01, "{mean}");
            assert!((0..10_000).all(|_| (1..=100).contains(&draws.percent())));
        }
    }
}
