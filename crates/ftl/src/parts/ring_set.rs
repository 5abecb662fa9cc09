//! A set of small numbers that answers "the first member from here on, going round".

/// Members are `0..len`. One bit each; a search looks at 64 numbers at a time.
#[derive(Clone, Debug)]
pub(crate) struct RingSet {
    words: Vec<u64>,
    len: u32,
}

nandscape_core::state!(impl [] RingSet { tables: words; fixed: len; });

impl RingSet {
    pub(crate) fn new(len: u32) -> Self {
        Self { words: vec![0; len.div_ceil(64) as usize], len }
    }

    pub(crate) fn insert(&mut self, member: u32) {
        assert!(member < self.len, "{member} of {}", self.len);
        self.words[(member / 64) as usize] |= 1 << (member % 64);
    }

    pub(crate) fn remove(&mut self, member: u32) {
        assert!(member < self.len, "{member} of {}", self.len);
        self.words[(member / 64) as usize] &= !(1 << (member % 64));
    }

    pub(crate) fn contains(&self, member: u32) -> bool {
        self.words[(member / 64) as usize] >> (member % 64) & 1 == 1
    }

    /// The first member at or after `from`, else the first member at all.
    #[inline]
    pub(crate) fn first_from(&self, from: u32) -> Option<u32> {
        debug_assert!(from < self.len, "{from} of {}", self.len);
        let start = (from / 64) as usize;
        let head = self.words[start] & (u64::MAX << (from % 64));
        if head != 0 {
            return Some(start as u32 * 64 + head.trailing_zeros());
        }
        // The word of `from` comes last again, for its bits below `from`.
        (start + 1..self.words.len())
            .chain(0..=start)
            .find(|&i| self.words[i] != 0)
            .map(|i| i as u32 * 64 + self.words[i].trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{below, seeded};

    #[test]
    fn first_from_equals_a_walk_round_the_ring() {
        let mut rng = seeded(7);
        for len in [1u32, 5, 64, 65, 200] {
            let mut set = RingSet::new(len);
            let mut plain = vec![false; len as usize];
            for _ in 0..400 {
                let member = below(&mut rng, u64::from(len)) as u32;
                if below(&mut rng, 3) == 0 {
                    set.insert(member);
                    plain[member as usize] = true;
                } else {
                    set.remove(member);
                    plain[member as usize] = false;
                }
                assert_eq!(set.contains(member), plain[member as usize]);
                let from = below(&mut rng, u64::from(len)) as u32;
                let walked = (0..len).map(|i| (from + i) % len).find(|i| plain[*i as usize]);
                assert_eq!(set.first_from(from), walked);
            }
        }
    }
}
