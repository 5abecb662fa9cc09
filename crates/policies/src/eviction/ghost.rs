//! Names of blocks that have left, in order of leaving.

use super::table::Footprint;
use crate::hash::KeyMap;
use std::collections::VecDeque;

/// A bounded queue of names, from which any name can be taken.
///
/// Names lie in a ring in order of arrival. One that is taken leaves a hole, which goes when the ring is
/// closed up.
#[derive(Clone, Debug)]
pub(crate) struct Ghost {
    ring: VecDeque<Option<u64>>,
    /// Arrival number of the ring's first place.
    first: u64,
    places: KeyMap,
    max: usize,
    /// Entries of both that were written.
    written: u64,
}

impl Ghost {
    /// A queue of at most `max` names.
    pub(crate) fn new(max: u32) -> Self {
        let max = max as usize;
        Self { ring: VecDeque::new(), first: 0, places: KeyMap::default(), max, written: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Appends a name; the oldest leaves if there is no room. A name that is there already stays where it is.
    pub(crate) fn push(&mut self, key: u64) {
        if self.max == 0 || self.places.contains_key(&key) {
            return;
        }
        if self.len() >= self.max {
            self.pop();
        }
        if self.ring.len() > 2 * self.max + 8 {
            self.close_up();
        }
        self.places.insert(key, self.first + self.ring.len() as u64);
        self.ring.push_back(Some(key));
        self.written += 2;
    }

    /// Drops the oldest name.
    pub(crate) fn pop(&mut self) {
        while let Some(name) = self.ring.pop_front() {
            self.first += 1;
            if let Some(key) = name {
                self.places.remove(&key);
                self.written += 1;
                return;
            }
        }
    }

    /// Takes a name out. Returns whether it was there.
    pub(crate) fn take(&mut self, key: u64) -> bool {
        let Some(place) = self.places.remove(&key) else { return false };
        self.ring[(place - self.first) as usize] = None;
        self.written += 2;
        true
    }

    #[cold]
    fn close_up(&mut self) {
        self.ring.retain(Option::is_some);
        for (index, key) in self.ring.iter().flatten().enumerate() {
            self.places.insert(*key, self.first + index as u64);
        }
        self.written += 2 * self.ring.len() as u64;
    }

    pub(crate) fn footprint(&self) -> Footprint {
        let ring = self.ring.capacity() * size_of::<Option<u64>>();
        Footprint { bytes: (ring + self.places.allocation_size()) as u64, written: self.written }
    }
}
