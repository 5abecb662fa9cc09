//! Sets in the order of how many of their blocks are dirty.

/// Counts that change by one, kept sorted by an exchange within each run of equal counts (as vertices by
/// degree in Batagelj and Zaversnik, 2003).
#[derive(Debug)]
pub struct Sets {
    /// Sets, by count, lowest first.
    order: Vec<u32>,
    /// Where each set stands in `order`.
    place: Vec<u32>,
    counts: Vec<u32>,
    /// Where in `order` the sets with each count begin; of a count that no set has, where they would.
    begins: Vec<u32>,
}

impl Sets {
    pub fn new(sets: u32, ways: u32) -> Self {
        let mut begins = vec![sets; ways as usize + 2];
        begins[0] = 0;
        Self {
            order: (0..sets).collect(),
            place: (0..sets).collect(),
            counts: vec![0; sets as usize],
            begins,
        }
    }

    pub fn count(&self, set: u32) -> u32 {
        self.counts[set as usize]
    }

    pub fn increment(&mut self, set: u32) {
        let count = self.counts[set as usize] as usize;
        // The last of its equals becomes the first of the next.
        let last = self.begins[count + 1] - 1;
        self.exchange(set, last);
        self.begins[count + 1] = last;
        self.counts[set as usize] += 1;
    }

    pub fn decrement(&mut self, set: u32) {
        let count = self.counts[set as usize] as usize;
        let first = self.begins[count];
        self.exchange(set, first);
        self.begins[count] = first + 1;
        self.counts[set as usize] -= 1;
    }

    /// A set with the most, and how many.
    pub fn fullest(&self) -> (u32, u32) {
        let set = *self.order.last().expect("there is a set");
        (set, self.count(set))
    }

    pub fn memory_bytes(&self) -> u64 {
        let words =
            self.order.capacity() + self.place.capacity() + self.counts.capacity() + self.begins.capacity();
        (words * size_of::<u32>()) as u64
    }

    /// Puts `set` at a place, and the set there where it was.
    fn exchange(&mut self, set: u32, to: u32) {
        let from = self.place[set as usize];
        let other = self.order[to as usize];
        self.order.swap(from as usize, to as usize);
        self.place[set as usize] = to;
        self.place[other as usize] = from;
    }
}
