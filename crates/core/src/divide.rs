//! Division by a number that is known only when a device is built, without a division instruction: addresses
//! are taken apart several times for every page.

/// Divides 32-bit numbers by a fixed divisor: with a shift where it is a power of two, else with one
/// multiplication.
///
/// `(n + 1) * m / 2^64` with `m = floor((2^64 - 1) / d)` is exact for every 32-bit `n` and `d`: with `2^64 -
/// 1 = m d + r` the product lies below `(n + 1) / d`, and by less than `1 / d`, since `(n + 1) (r + 1) <=
/// 2^64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divider {
    divisor: u32,
    /// log2 of the divisor; 32 if it is no power of two. Shifts are ready some ten cycles earlier, which
    /// counts where several divisions follow each other.
    shift: u32,
    factor: u64,
}

impl Divider {
    /// Panics if `divisor` is 0.
    pub const fn new(divisor: u32) -> Self {
        let shift = if divisor.is_power_of_two() { divisor.trailing_zeros() } else { 32 };
        Self { divisor, shift, factor: u64::MAX / divisor as u64 }
    }

    /// The divisor.
    pub const fn divisor(self) -> u32 {
        self.divisor
    }

    /// `n / divisor`
    #[inline]
    pub const fn quotient(self, n: u32) -> u32 {
        if self.shift < 32 { n >> self.shift } else { (((n as u128 + 1) * self.factor as u128) >> 64) as u32 }
    }

    /// `(n / divisor, n % divisor)`
    #[inline]
    pub const fn split(self, n: u32) -> (u32, u32) {
        if self.shift < 32 {
            return (n >> self.shift, n & (self.divisor - 1));
        }
        let quotient = self.quotient(n);
        (quotient, n - quotient * self.divisor)
    }
}

/// Divides 64-bit numbers by a fixed divisor: with a shift where it is a power of two, as nearly all sizes in
/// bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Splitter {
    divisor: u64,
    /// log2 of the divisor; 64 if it is no power of two.
    shift: u32,
}

impl Splitter {
    /// Panics if `divisor` is 0.
    pub const fn new(divisor: u64) -> Self {
        assert!(divisor > 0, "a divisor of 0");
        Self { divisor, shift: if divisor.is_power_of_two() { divisor.trailing_zeros() } else { 64 } }
    }

    /// The divisor.
    pub const fn divisor(self) -> u64 {
        self.divisor
    }

    /// `n / divisor`
    #[inline]
    pub const fn quotient(self, n: u64) -> u64 {
        if self.shift < 64 { n >> self.shift } else { n / self.divisor }
    }

    /// `(n / divisor, n % divisor)`
    #[inline]
    pub const fn split(self, n: u64) -> (u64, u64) {
        if self.shift < 64 {
            (n >> self.shift, n & (self.divisor - 1))
        } else {
            (n / self.divisor, n % self.divisor)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, seeded};

    #[test]
    fn quotients_are_exact_at_every_edge_and_at_random() {
        let mut rng = seeded(5);
        let mut divisors = vec![1, 2, 3, 5, 7, 64, 255, 256, 257, 65_535, 1 << 31, u32::MAX - 1, u32::MAX];
        divisors.extend((0..300).map(|_| (rng.next_u64() >> (32 + rng.next_u64() % 32)) as u32 | 1));
        for divisor in divisors {
            let divider = Divider::new(divisor);
            let mut numbers = vec![0, 1, u32::MAX, u32::MAX - 1];
            for _ in 0..300 {
                let multiple = (rng.next_u64() as u32 / divisor) * divisor;
                numbers.extend([
                    multiple,
                    multiple.wrapping_sub(1),
                    multiple.wrapping_add(1),
                    rng.next_u64() as u32,
                ]);
            }
            for n in numbers {
                assert_eq!(divider.split(n), (n / divisor, n % divisor), "{n} / {divisor}");
                let (n, divisor) = (u64::from(n) << 31 | 5, u64::from(divisor) << (n % 32));
                let splitter = Splitter::new(divisor);
                assert_eq!(splitter.split(n), (n / divisor, n % divisor), "{n} / {divisor}");
                assert_eq!(splitter.quotient(n), n / divisor, "{n} / {divisor}");
            }
        }
    }
}
