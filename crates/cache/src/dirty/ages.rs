//! Slots, or sets, in the order in which they became dirty.

use nandscape_core::SimTime;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    older: u32,
    younger: u32,
    at: SimTime,
}

/// A list through the slots or sets, oldest first.
#[derive(Debug)]
pub struct Ages {
    nodes: Vec<Node>,
    oldest: u32,
    youngest: u32,
}

impl Ages {
    pub fn new(slots: u32) -> Self {
        let empty = Node { older: NONE, younger: NONE, at: SimTime::ZERO };
        Self { nodes: vec![empty; slots as usize], oldest: NONE, youngest: NONE }
    }

    pub fn push_young(&mut self, slot: u32, at: SimTime) {
        let older = std::mem::replace(&mut self.youngest, slot);
        debug_assert!(older == NONE || self.nodes[older as usize].at <= at, "times go on");
        self.nodes[slot as usize] = Node { older, younger: NONE, at };
        match older {
            NONE => self.oldest = slot,
            _ => self.nodes[older as usize].younger = slot,
        }
    }

    pub fn remove(&mut self, slot: u32) {
        let Node { older, younger, .. } = self.nodes[slot as usize];
        self.join(older, younger);
    }

    pub fn relabel(&mut self, from: u32, to: u32) {
        let node = self.nodes[from as usize];
        self.nodes[to as usize] = node;
        self.join(node.older, to);
        self.join(to, node.younger);
    }

    pub fn at(&self, slot: u32) -> SimTime {
        self.nodes[slot as usize].at
    }

    /// The time of the last one; zero if there is none.
    pub fn youngest_at(&self) -> SimTime {
        if self.youngest == NONE { SimTime::ZERO } else { self.at(self.youngest) }
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, SimTime)> {
        let slot = |slot: u32| (slot != NONE).then_some(slot);
        std::iter::successors(slot(self.oldest), move |at| slot(self.nodes[*at as usize].younger))
            .map(|at| (at, self.nodes[at as usize].at))
    }

    pub fn memory_bytes(&self) -> u64 {
        (self.nodes.capacity() * size_of::<Node>()) as u64
    }

    /// Makes two slots neighbours; `NONE` stands for the end.
    fn join(&mut self, older: u32, younger: u32) {
        match older {
            NONE => self.oldest = younger,
            _ => self.nodes[older as usize].younger = younger,
        }
        match younger {
            NONE => self.youngest = older,
            _ => self.nodes[younger as usize].older = older,
        }
    }
}
