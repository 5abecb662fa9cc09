//! Hashing of block keys, the same on every run.

use std::hash::{BuildHasherDefault, Hasher};

/// Mixes all bits of a key into all bits of the answer. One-to-one.
#[inline]
pub const fn mix(key: u64) -> u64 {
    let x = (key ^ (key >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^ (x >> 32)
}

/// Bits of a table that is at most half full with `entries`.
pub(crate) const fn bits_for(entries: usize) -> u32 {
    let bits = usize::BITS - (2 * entries).leading_zeros();
    if bits < 3 { 3 } else { bits }
}

/// From key to a number.
pub type KeyMap = hashbrown::HashMap<u64, u64, BuildHasherDefault<KeyHasher>>;

/// [`mix`] as a hasher.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    #[inline]
    fn write_u64(&mut self, key: u64) {
        self.0 = mix(key);
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are whole numbers");
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
