//! Where the logical pages of an object are.

use std::collections::BTreeMap;

/// The place of nothing.
pub(super) const NOWHERE: u32 = u32::MAX;
/// The place of a page whose data could not be read when it was to be moved.
pub(super) const LOST: u32 = u32::MAX - 1;
/// The place of a page that is about to be programmed.
pub(super) const PLANNED: u32 = u32::MAX - 2;
/// The place of a page that has room, and nothing written.
pub(super) const RESERVED: u32 = u32::MAX - 3;

/// Whether a place is a page of the flash.
pub(super) const fn is_page(place: u32) -> bool {
    place < RESERVED
}

/// How the places of a leaf are known on the flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Known {
    /// As they are.
    #[default]
    Whole,
    /// But for pages that were written since: their back pointers tell.
    Lags,
    /// Otherwise: the next metadata has to say it.
    Stale,
}

/// Places of neighbouring logical pages.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    places: Vec<u32>,
    mapped: u32,
    /// Where its layout page is; [`NOWHERE`] while the metadata of the object has the places.
    pub page: u32,
    /// Up to which write the layout page tells of.
    pub tid: u64,
    pub known: Known,
}

impl Leaf {
    fn empty() -> Self {
        Self { page: NOWHERE, ..Self::default() }
    }

    /// The place of every page, behind the last one nothing.
    pub fn places(&self) -> &[u32] {
        &self.places
    }
}

/// Places by logical page.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    leaf_pages: u32,
    leaves: BTreeMap<u32, Leaf>,
    mapped: u64,
}

impl Layout {
    /// Nothing anywhere; a leaf has the places of so many pages.
    pub const fn new(leaf_pages: u32) -> Self {
        Self { leaf_pages, leaves: BTreeMap::new(), mapped: 0 }
    }

    /// Pages that are somewhere.
    pub const fn mapped(&self) -> u64 {
        self.mapped
    }

    #[inline]
    pub fn get(&self, page: u32) -> Option<u32> {
        let leaf = self.leaves.get(&(page / self.leaf_pages))?;
        let place = *leaf.places.get((page % self.leaf_pages) as usize)?;
        (place != NOWHERE).then_some(place)
    }

    /// Sets the place of a page and gives where it was; the leaf lags from now on.
    #[inline]
    pub fn set(&mut self, page: u32, place: u32) -> Option<u32> {
        let leaf = self.leaves.entry(page / self.leaf_pages).or_insert_with(Leaf::empty);
        let index = (page % self.leaf_pages) as usize;
        if leaf.places.len() <= index {
            leaf.places.resize(index + 1, NOWHERE);
        }
        let before = std::mem::replace(&mut leaf.places[index], place);
        if leaf.known == Known::Whole {
            leaf.known = Known::Lags;
        }
        let (was, is) = (before != NOWHERE, place != NOWHERE);
        leaf.mapped = leaf.mapped + u32::from(is) - u32::from(was);
        self.mapped = self.mapped + u64::from(is) - u64::from(was);
        was.then_some(before)
    }

    /// Keeps room for a page; only metadata can say so.
    pub fn reserve(&mut self, page: u32) {
        self.set(page, RESERVED);
        if let Some(leaf) = self.leaves.get_mut(&(page / self.leaf_pages)) {
            leaf.known = Known::Stale;
        }
    }

    /// Pages are nowhere from now on; where they were is passed to `freed`.
    pub fn remove(&mut self, from: u32, to: u32, mut freed: impl FnMut(u32)) {
        if from >= to {
            return;
        }
        for (number, leaf) in self.leaves.range_mut(from / self.leaf_pages..=(to - 1) / self.leaf_pages) {
            let first = number * self.leaf_pages;
            let start = from.saturating_sub(first) as usize;
            let end = ((to - first).min(self.leaf_pages) as usize).min(leaf.places.len());
            for place in leaf.places.iter_mut().take(end).skip(start) {
                if *place != NOWHERE {
                    freed(std::mem::replace(place, NOWHERE));
                    leaf.mapped -= 1;
                    self.mapped -= 1;
                    leaf.known = Known::Stale;
                }
            }
        }
    }

    /// Pages that are somewhere, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.leaves.iter().flat_map(|(number, leaf)| {
            let places = (number * self.leaf_pages..).zip(&leaf.places);
            places.filter(|(_, place)| **place != NOWHERE).map(|(page, place)| (page, *place))
        })
    }

    /// Pages in `from..to` that are somewhere, in order.
    pub fn within(&self, from: u32, to: u32) -> impl Iterator<Item = u32> {
        let first = from / self.leaf_pages;
        let last = to.saturating_sub(1).max(from) / self.leaf_pages;
        self.leaves.range(first..=last).flat_map(move |(number, leaf)| {
            let places = (number * self.leaf_pages..).zip(&leaf.places);
            let is_in = move |(page, place): &(u32, &u32)| **place != NOWHERE && (from..to).contains(page);
            places.filter(is_in).map(|(page, _)| page)
        })
    }

    /// Runs of pages that follow each other: first page and places.
    pub fn runs(&self) -> Vec<(u32, Vec<u32>)> {
        let mut runs: Vec<(u32, Vec<u32>)> = Vec::new();
        for (page, place) in self.iter() {
            match runs.last_mut() {
                Some((first, places)) if *first as usize + places.len() == page as usize => {
                    places.push(place);
                }
                _ => runs.push((page, vec![place])),
            }
        }
        runs
    }

    /// Bytes of all runs in the metadata of the object, if these are at most `limit`.
    pub fn run_bytes(&self, limit: u64) -> Option<u64> {
        if 4 * self.mapped > limit {
            return None;
        }
        let mut runs = 0;
        let mut next = None;
        for (page, _) in self.iter() {
            runs += u64::from(next != Some(page));
            next = Some(page + 1);
        }
        let bytes = 4 * self.mapped + RUN * runs;
        (bytes <= limit).then_some(bytes)
    }

    pub fn leaves(&self) -> impl Iterator<Item = (u32, &Leaf)> {
        self.leaves.iter().map(|(number, leaf)| (*number, leaf))
    }

    /// Whether back pointers say more than the flash does otherwise.
    pub fn lags(&self) -> bool {
        self.leaves.values().any(|leaf| leaf.known != Known::Whole)
    }

    pub fn leaf(&self, number: u32) -> Option<&Leaf> {
        self.leaves.get(&number)
    }

    pub fn leaf_mut(&mut self, number: u32) -> Option<&mut Leaf> {
        self.leaves.get_mut(&number)
    }

    /// Drops leaves without pages; the places of their layout pages are passed to `freed`.
    pub fn drop_empty(&mut self, mut freed: impl FnMut(u32)) {
        self.leaves.retain(|_, leaf| {
            if leaf.mapped == 0 && leaf.page != NOWHERE {
                freed(leaf.page);
            }
            leaf.mapped > 0
        });
    }

    /// The metadata of the object has all places from now on; where layout pages were is passed to `freed`.
    pub fn is_inline(&mut self, mut freed: impl FnMut(u32)) {
        for leaf in self.leaves.values_mut() {
            if leaf.page != NOWHERE {
                freed(leaf.page);
            }
            (leaf.page, leaf.tid, leaf.known) = (NOWHERE, 0, Known::Whole);
        }
    }

    /// The metadata of the object is on the flash: it says all of the leaves that have no layout page.
    pub fn is_said_inline(&mut self) {
        for leaf in self.leaves.values_mut().filter(|leaf| leaf.page == NOWHERE) {
            leaf.known = Known::Whole;
        }
    }

    /// A leaf as it was read from its layout page.
    pub fn put_leaf(&mut self, number: u32, places: Vec<u32>, page: u32, tid: u64) {
        let mapped = places.iter().filter(|place| **place != NOWHERE).count() as u32;
        self.mapped += u64::from(mapped);
        let leaf = Leaf { places, mapped, page, tid, known: Known::Whole };
        let before = self.leaves.insert(number, leaf);
        assert!(before.is_none(), "leaf {number} is there");
    }

    /// Memory in bytes, roughly.
    pub fn bytes(&self) -> u64 {
        let leaves = self.leaves.values().map(|leaf| 4 * leaf.places.capacity() as u64 + 64);
        leaves.sum()
    }
}

/// Bytes of a layout page before its places.
pub(super) const LEAF_HEAD: u32 = 16;
/// Bytes of a run in the metadata of an object before its places.
pub(super) const RUN: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{below, seeded};

    #[test]
    fn a_layout_is_what_a_plain_list_of_places_says() {
        let mut rng = seeded(1);
        let mut layout = Layout::new(7);
        let mut plain = vec![None; 120];
        for step in 0..20_000 {
            let page = below(&mut rng, 100) as u32;
            if below(&mut rng, 4) > 0 {
                assert_eq!(layout.set(page, step), plain[page as usize].replace(step));
            } else {
                let to = page + below(&mut rng, 20) as u32;
                let mut freed = Vec::new();
                layout.remove(page, to, |place| freed.push(place));
                let range = page as usize..to as usize;
                assert_eq!(freed, plain[range.clone()].iter().flatten().copied().collect::<Vec<_>>());
                plain[range].fill(None);
                layout.drop_empty(|_| panic!("there are no layout pages"));
            }
            let expected: Vec<_> =
                (0..).zip(&plain).filter_map(|(page, place)| place.map(|place| (page, place))).collect();
            assert_eq!(layout.iter().collect::<Vec<_>>(), expected);
            assert_eq!(layout.mapped(), expected.len() as u64);
            let runs = layout.runs();
            let bytes: u64 = runs.iter().map(|(_, places)| RUN + 4 * places.len() as u64).sum();
            assert_eq!(layout.run_bytes(1_000_000), Some(bytes));
            assert_eq!(layout.run_bytes(bytes.saturating_sub(1)), (bytes == 0).then_some(0));
            let flat = runs.into_iter().flat_map(|(first, places)| (first..).zip(places));
            assert_eq!(flat.collect::<Vec<_>>(), expected);
        }
    }
}
