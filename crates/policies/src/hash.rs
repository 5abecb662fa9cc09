//! Hashing of block keys: flat tables with open addressing, the same on every run.

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

/// A name that no block has: volume and block are all ones.
const NONE: u64 = u64::MAX;

/// From key to a number. Grows.
#[derive(Clone, Debug)]
pub struct KeyMap {
    table: Vec<(u64, u64)>,
    bits: u32,
    len: usize,
}

impl KeyMap {
    /// Empty, with a table of 2^`bits` entries.
    pub fn new(bits: u32) -> Self {
        Self { table: vec![(NONE, 0); 1 << bits], bits, len: 0 }
    }

    /// A stand-in that holds nothing and to which nothing may be added.
    pub const fn nothing() -> Self {
        Self { table: Vec::new(), bits: 1, len: 0 }
    }

    /// How many keys there are.
    #[expect(clippy::len_without_is_empty, reason = "users compare the count with others")]
    pub const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        (mix(key) >> (64 - self.bits)) as usize
    }

    /// Where `key` is, or the empty place where it would be.
    #[inline]
    fn place(&self, key: u64) -> usize {
        debug_assert!(key != NONE);
        let mask = self.table.len() - 1;
        let mut at = self.home(key);
        while self.table[at].0 != key && self.table[at].0 != NONE {
            at = (at + 1) & mask;
        }
        at
    }

    /// The number of a key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<u64> {
        let (found, value) = self.table[self.place(key)];
        (found == key).then_some(value)
    }

    /// Sets the number of a key and returns the one it had.
    #[inline]
    pub fn insert(&mut self, key: u64, value: u64) -> Option<u64> {
        let at = self.place(key);
        let (found, old) = std::mem::replace(&mut self.table[at], (key, value));
        if found == key {
            return Some(old);
        }
        self.len += 1;
        if 2 * self.len > self.table.len() {
            self.grow();
        }
        None
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = Self::new(self.bits + 1);
        for &(key, value) in self.table.iter().filter(|entry| entry.0 != NONE) {
            let at = larger.place(key);
            larger.table[at] = (key, value);
        }
        larger.len = self.len;
        *self = larger;
    }

    /// Takes a key out and returns its number.
    pub fn remove(&mut self, key: u64) -> Option<u64> {
        let mask = self.table.len() - 1;
        let mut hole = self.place(key);
        let (found, value) = self.table[hole];
        if found != key {
            return None;
        }
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let moved = self.table[at].0;
            if moved == NONE {
                break;
            }
            // It may fill the hole if its home does not lie behind the hole.
            let home = self.home(moved);
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.table[hole] = self.table[at];
                hole = at;
            }
        }
        self.table[hole].0 = NONE;
        self.len -= 1;
        Some(value)
    }

    /// Changes every number.
    pub(crate) fn update(&mut self, change: impl Fn(u64) -> u64) {
        for entry in self.table.iter_mut().filter(|entry| entry.0 != NONE) {
            entry.1 = change(entry.1);
        }
    }

    /// Every key and its number.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.table.iter().filter(|entry| entry.0 != NONE).copied()
    }

    /// Removes the keys that need not be kept.
    pub fn retain(&mut self, mut is_kept: impl FnMut(u64, u64) -> bool) {
        let mut at = 0;
        while at < self.table.len() {
            let (key, value) = self.table[at];
            // Another one may come to the place of one that is removed.
            if key == NONE || is_kept(key, value) {
                at += 1;
            } else {
                self.remove(key);
            }
        }
    }

    /// Memory held, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        (self.table.capacity() * size_of::<(u64, u64)>()) as u64
    }
}
