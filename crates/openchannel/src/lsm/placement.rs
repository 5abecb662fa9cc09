//! In which parallel unit a table goes.

use nandscape_core::words;

/// How places are chosen. All of them take a parallel unit that has a free chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The first that has room, by number, as a host does that does not know of parallel units.
    Linear,
    /// One after the other.
    RoundRobin,
    /// Where the work that the host has given out and that is not done takes the least time.
    Queue,
    /// As queue, among those with the fewest tables that a compaction would read together with this one:
    /// tables of its level and of the next with keys in its range.
    Apart,
}

words!(pub Placement: Linear = "linear", RoundRobin = "round-robin", Queue = "queue", Apart = "apart");

/// Chooses, and knows where it was last.
#[derive(Clone, Debug)]
pub(super) struct Chooser {
    placement: Placement,
    last: u32,
}

impl Chooser {
    pub const fn new(placement: Placement) -> Self {
        Self { placement, last: u32::MAX }
    }

    /// A parallel unit for a table: by work in nanoseconds, by tables that are read together with it, and by
    /// free chunks of each.
    pub fn choose(&mut self, work: &[u64], together: &[u32], free: &[Vec<u32>]) -> Option<u32> {
        let units = work.len() as u32;
        let from = self.last.wrapping_add(1);
        let candidates = (0..units).map(|step| (from.wrapping_add(step)) % units);
        let candidates = candidates.filter(|unit| !free[*unit as usize].is_empty());
        let unit = candidates.min_by_key(|unit| {
            let index = *unit as usize;
            match self.placement {
                Placement::Linear => (0, u64::from(*unit)),
                Placement::RoundRobin => (0, 0),
                Placement::Queue => (0, work[index]),
                Placement::Apart => (together[index], work[index]),
            }
        })?;
        self.last = unit;
        Some(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_takes_what_it_says_among_units_with_room() {
        let free = [vec![1], vec![], vec![2], vec![3]];
        let (work, together) = ([9, 0, 5, 5], [0, 0, 2, 1]);
        let choose = |placement| {
            let mut chooser = Chooser::new(placement);
            [0, 1].map(|_| chooser.choose(&work, &together, &free).unwrap())
        };
        assert_eq!(choose(Placement::Linear), [0, 0]);
        assert_eq!(choose(Placement::RoundRobin), [0, 2]);
        // Of equals the next after the last one.
        assert_eq!(choose(Placement::Queue), [2, 3]);
        assert_eq!(choose(Placement::Apart), [0, 0]);
        assert_eq!(Chooser::new(Placement::Queue).choose(&work, &together, &vec![vec![]; 4]), None);
    }
}
