//! Tables of a policy, which count what is written to them.

use std::ops::{Add, Deref, Index, IndexMut};

/// What a policy takes: the memory that it holds, and how much of it was written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Memory held, in bytes.
    pub bytes: u64,
    /// Entries of tables that were written since the policy was made: links, counts, flags, names. What a
    /// policy holds only once, such as the ends of a list, is not counted.
    pub written: u64,
}

impl Footprint {
    /// Of a list that is held, and whose writes are not counted.
    pub(crate) const fn held<T>(items: &Vec<T>) -> Self {
        Self { bytes: (items.capacity() * size_of::<T>()) as u64, written: 0 }
    }
}

impl Add for Footprint {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, written: self.written + other.written }
    }
}

impl std::iter::Sum for Footprint {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), Add::add)
    }
}

/// A flat array. Reading an entry is free, each that is lent to be changed counts.
#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    entries: Vec<T>,
    written: u64,
}

impl<T: Clone> Table<T> {
    pub(crate) fn of(entry: T, count: u32) -> Self {
        Self { entries: vec![entry; count as usize], written: 0 }
    }

    pub(crate) fn fill(&mut self, entry: T) {
        self.written += self.entries.len() as u64;
        self.entries.fill(entry);
    }
}

impl<T> Table<T> {
    /// An empty one with room for so many.
    pub(crate) fn with_capacity(count: u32) -> Self {
        Self { entries: Vec::with_capacity(count as usize), written: 0 }
    }

    pub(crate) fn push(&mut self, entry: T) {
        self.written += 1;
        self.entries.push(entry);
    }

    /// Takes an entry out; the last one takes its place.
    pub(crate) fn swap_remove(&mut self, index: usize) -> T {
        self.written += 1;
        self.entries.swap_remove(index)
    }

    /// All, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.written += self.entries.len() as u64;
        self.entries.iter_mut()
    }

    pub(crate) const fn footprint(&self) -> Footprint {
        Footprint { written: self.written, ..Footprint::held(&self.entries) }
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.entries
    }
}

impl<T> Index<usize> for Table<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        &self.entries[index]
    }
}

impl<T> IndexMut<usize> for Table<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        self.written += 1;
        &mut self.entries[index]
    }
}
