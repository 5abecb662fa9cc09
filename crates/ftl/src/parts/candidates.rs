//! Candidates for collection, kept in a winner tree so that the exact choice of the source ("fewest live
//! pages; ties go to the first met, walking the groups from the rotor and each group's queue from its head")
//! costs O(log n) instead of a scan.
//!
//! Items are numbered group-major, so a group is a run of leaves. An item's place in its group's queue is the
//! growing number it was pushed with: removal from the middle of a queue needs no links.

const ABSENT: u32 = u32::MAX;

/// Winner tree over items with a weight and a queue position.
#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    per_group: u32,
    /// Weight by item, `ABSENT` where it is not a candidate.
    weights: Vec<u32>,
    /// Position in the queue by item; meaningful for candidates only.
    order: Vec<u64>,
    /// Node `i` holds the winner of `2i` and `2i + 1`; the leaves `n..2n` hold the items themselves. The
    /// order of winners is total, so any `n` works, a power of two or not.
    winners: Vec<u32>,
}

nandscape_core::state!(impl [] Candidates { tables: weights, order, winners; fixed: per_group; });

impl Candidates {
    /// No candidates among `groups * per_group` items.
    pub(crate) fn new(groups: u32, per_group: u32) -> Self {
        let items = groups * per_group;
        let mut tree = Self {
            per_group,
            weights: vec![ABSENT; items as usize],
            order: vec![0; items as usize],
            winners: vec![0; 2 * items as usize],
        };
        for item in 0..items {
            tree.winners[(items + item) as usize] = item;
        }
        for node in (1..items as usize).rev() {
            tree.winners[node] = tree.better(tree.winners[2 * node], tree.winners[2 * node + 1]);
        }
        tree
    }

    /// The item that comes first: by weight, then group, then queue position.
    #[inline]
    fn better(&self, a: u32, b: u32) -> u32 {
        let (i, j) = (a as usize, b as usize);
        let (wa, wb) = (self.weights[i], self.weights[j]);
        if wa != wb {
            return if wa < wb { a } else { b };
        }
        let key = |item: u32, index: usize| (item / self.per_group, self.order[index]);
        if key(a, i) <= key(b, j) { a } else { b }
    }

    pub(crate) fn contains(&self, item: u32) -> bool {
        self.weights[item as usize] != ABSENT
    }

    /// Makes `item` a candidate; `position` orders it in its group's queue.
    pub(crate) fn insert(&mut self, item: u32, weight: u32, position: u64) {
        let known = self.weights[item as usize];
        assert!(weight != ABSENT && known == ABSENT, "item {item} of {weight} is a candidate of {known}");
        self.order[item as usize] = position;
        self.weights[item as usize] = weight;
        self.replay(item, false);
    }

    #[inline]
    pub(crate) fn lower(&mut self, item: u32, weight: u32) {
        let before = std::mem::replace(&mut self.weights[item as usize], weight);
        assert!(before != ABSENT && weight <= before, "item {item} goes from {before} to {weight}");
        self.replay(item, true);
    }

    pub(crate) fn remove(&mut self, item: u32) {
        let before = std::mem::replace(&mut self.weights[item as usize], ABSENT);
        assert!(before != ABSENT, "item {item} is taken out, and is no candidate");
        self.replay(item, false);
    }

    /// Plays the matches above a leaf again. An item that only improved stops at a match that it loses.
    #[inline]
    fn replay(&mut self, item: u32, improved: bool) {
        let leaf = self.weights.len() + item as usize;
        debug_assert_eq!(self.winners[leaf], item, "the item at leaf {leaf}");
        let mut node = leaf >> 1;
        while node > 0 {
            let winner = self.better(self.winners[2 * node], self.winners[2 * node + 1]);
            self.winners[node] = winner;
            if improved && winner != item {
                return;
            }
            node /= 2;
        }
    }

    /// The candidate of least weight that is met first walking round from `group`, with its weight.
    pub(crate) fn first_from(&self, group: u32) -> Option<(u32, u32)> {
        let items = self.weights.len();
        let overall = self.winners[1];
        let least = self.weights[overall as usize];
        if least == ABSENT {
            return None;
        }
        let mut best = overall;
        let mut left = items + (group * self.per_group) as usize;
        let mut right = 2 * items;
        let mut suffix: Option<u32> = None;
        while left < right {
            if left % 2 == 1 {
                suffix = Some(suffix.map_or(self.winners[left], |s| self.better(s, self.winners[left])));
                left += 1;
            }
            if right % 2 == 1 {
                right -= 1;
                suffix = Some(suffix.map_or(self.winners[right], |s| self.better(s, self.winners[right])));
            }
            left /= 2;
            right /= 2;
        }
        if let Some(item) = suffix
            && self.weights[item as usize] == least
        {
            best = item;
        }
        Some((best, least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{below, seeded};

    /// The source's own words: walk the groups from the rotor, each queue from its head, keep the first
    /// least.
    fn scan(queues: &[Vec<(u32, u32)>], from: usize) -> Option<(u32, u32)> {
        let mut best: Option<(u32, u32)> = None;
        for i in 0..queues.len() {
            for &(item, weight) in &queues[(from + i) % queues.len()] {
                if best.is_none_or(|(_, least)| weight < least) {
                    best = Some((item, weight));
                }
            }
        }
        best
    }

    #[test]
    fn the_tree_finds_what_a_scan_finds() {
        let mut rng = seeded(11);
        for (groups, per_group) in [(1u32, 1u32), (1, 7), (5, 3), (8, 16), (3, 1)] {
            let mut tree = Candidates::new(groups, per_group);
            let mut queues: Vec<Vec<(u32, u32)>> = vec![Vec::new(); groups as usize];
            let mut position = 0;
            for _ in 0..3000 {
                let item = below(&mut rng, u64::from(groups * per_group)) as u32;
                let queue = &mut queues[(item / per_group) as usize];
                let place = queue.iter().position(|(i, _)| *i == item);
                assert_eq!(place.is_some(), tree.contains(item));
                match (place, below(&mut rng, 3)) {
                    (None, _) => {
                        let weight = below(&mut rng, 6) as u32;
                        queue.push((item, weight));
                        tree.insert(item, weight, position);
                        position += 1;
                    }
                    (Some(at), 0) => {
                        queue.remove(at);
                        tree.remove(item);
                    }
                    (Some(at), _) => {
                        queue[at].1 = queue[at].1.saturating_sub(1);
                        let weight = queue[at].1;
                        tree.lower(item, weight);
                    }
                }
                for from in 0..groups {
                    assert_eq!(tree.first_from(from), scan(&queues, from as usize));
                }
            }
        }
    }
}
