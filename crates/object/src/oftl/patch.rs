//! Bytes of a logical page that were written, and that replace what lies below.

use smallvec::{SmallVec, smallvec};

/// Ranges of a page, in order and none next to another one, with their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Patch {
    ranges: SmallVec<[(u32, u32); 1]>,
    /// Bytes from the first range to the end of the last one, of which only the ranges count.
    bytes: Vec<u8>,
    /// The byte of the page that the first of them is.
    first: u32,
    has_bytes: bool,
}

impl Patch {
    /// Nothing; without bytes where none are kept.
    pub const fn new(has_bytes: bool) -> Self {
        Self { ranges: SmallVec::new_const(), bytes: Vec::new(), first: 0, has_bytes }
    }

    /// All of a page, in a buffer that had another one before.
    pub fn whole(mut buffer: Vec<u8>, data: Option<&[u8]>, page_bytes: u32) -> Self {
        buffer.clear();
        match data {
            Some(data) => buffer.extend_from_slice(data),
            None => buffer.resize(page_bytes as usize, 0),
        }
        Self { ranges: smallvec![(0, page_bytes)], bytes: buffer, first: 0, has_bytes: true }
    }

    /// Its bytes, for another one.
    pub fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }

    /// Start and end of every range.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Bytes of a part of a range; nothing where none are kept.
    pub fn part(&self, start: u32, end: u32) -> &[u8] {
        if self.has_bytes {
            &self.bytes[(start - self.first) as usize..(end - self.first) as usize]
        } else {
            &[]
        }
    }

    /// Bytes that it holds.
    pub fn covered(&self) -> u32 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
    }

    /// Whether it holds all of a range.
    pub fn covers(&self, start: u32, end: u32) -> bool {
        self.ranges.iter().any(|range| range.0 <= start && end <= range.1)
    }

    /// Writes a range; without data zeroes.
    pub fn write(&mut self, start: u32, end: u32, data: Option<&[u8]>) {
        if self.has_bytes {
            self.reach(start, end);
            let part = &mut self.bytes[(start - self.first) as usize..(end - self.first) as usize];
            match data {
                Some(data) => part.copy_from_slice(data),
                None => part.fill(0),
            }
        }
        self.add(start, end);
    }

    /// There are bytes for a range.
    fn reach(&mut self, start: u32, end: u32) {
        if self.ranges.is_empty() {
            self.first = start;
        } else if start < self.first {
            let more = (self.first - start) as usize;
            self.bytes.splice(0..0, std::iter::repeat_n(0, more));
            self.first = start;
        }
        let len = (end - self.first) as usize;
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
    }

    #[inline]
    fn add(&mut self, start: u32, end: u32) {
        match self.ranges.last_mut() {
            None => return self.ranges.push((start, end)),
            Some(last) if last.1 < start => return self.ranges.push((start, end)),
            Some(last) if last.0 <= start => {
                last.1 = last.1.max(end);
                return;
            }
            Some(_) => {}
        }
        let first = self.ranges.partition_point(|range| range.1 < start);
        let behind = self.ranges.partition_point(|range| range.0 <= end);
        let mut whole = (start, end);
        for range in &self.ranges[first..behind] {
            whole = (whole.0.min(range.0), whole.1.max(range.1));
        }
        self.ranges.drain(first..behind);
        self.ranges.insert(first, whole);
    }

    /// Writes all of a newer one.
    pub fn overlay(&mut self, newer: &Self) {
        for (start, end) in &newer.ranges {
            let data = newer.has_bytes.then(|| newer.part(*start, *end));
            self.write(*start, *end, data);
        }
    }

    /// Copies what it holds of the bytes of the page from `start` on over `below`.
    pub fn apply(&self, start: u32, below: &mut [u8]) {
        if !self.has_bytes {
            return;
        }
        let end = start + below.len() as u32;
        for range in &self.ranges {
            let (from, to) = (range.0.max(start), range.1.min(end));
            if from < to {
                below[(from - start) as usize..(to - start) as usize].copy_from_slice(self.part(from, to));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{below, seeded};

    #[test]
    fn a_patch_holds_what_a_plain_list_of_bytes_says() {
        let mut rng = seeded(1);
        let mut patch = Patch::new(true);
        let mut plain = [None; 64];
        for step in 0..20_000_u32 {
            let start = below(&mut rng, 64) as u32;
            let end = start + 1 + below(&mut rng, u64::from(64 - start)) as u32;
            let range = start as usize..end as usize;
            match below(&mut rng, 40) {
                0..20 => {
                    let data = vec![step as u8; range.len()];
                    patch.write(start, end, Some(&data));
                    plain[range.clone()].fill(Some(step as u8));
                }
                20 | 21 => {
                    patch = Patch::new(true);
                    plain = [None; 64];
                }
                _ => {
                    let mut newer = Patch::new(true);
                    newer.write(start, end, None);
                    patch.overlay(&newer);
                    plain[range.clone()].fill(Some(0));
                }
            }
            let mut seen = [0xee; 64];
            patch.apply(0, &mut seen);
            assert_eq!(seen, plain.map(|byte| byte.unwrap_or(0xee)), "step {step}");
            assert_eq!(patch.covered() as usize, plain.iter().flatten().count());
            assert!(patch.ranges().windows(2).all(|pair| pair[0].1 < pair[1].0), "{:?}", patch.ranges());
            assert_eq!(patch.covers(start, end), plain[range].iter().all(Option::is_some));
            let mut part = vec![0xee; (end - start) as usize];
            patch.apply(start, &mut part);
            assert_eq!(part, seen[start as usize..end as usize]);
        }
    }
}
