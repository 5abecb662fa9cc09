//! Slots between two commits: which ones a committed entry refers to, and which may not be used yet.

use crate::engine::directory::Bits;
use nandscape_policies::BlockKey;
use nandscape_policies::hash::mix;

/// What the last commit has of slots, and what the next one changes.
pub struct Reuse {
    /// Slots that a committed entry refers to; of no meaning where data may be overwritten that one refers
    /// to and slots be used again before a commit.
    pub committed: Bits,
    /// Blocks that left a committed slot since the last commit, by hash: a bit for eight slots, of which few
    /// leave between two commits.
    pub left: Bits,
    /// Where `left` had the blocks that leave with the last commit, and with those under way when it was
    /// made.
    pub leaving: Bits,
    /// Bits of these two.
    places: u32,
    /// Slots that become free with the next commit, and whether their data may be discarded then.
    pub limbo: Vec<(u32, bool)>,
    /// Slots that got a block since the last commit, and how many of them lead to the next.
    pub fresh: Vec<u32>,
    /// Slots that the metadata have as dirty until the next commit; of meaning where they may be taken
    /// without one.
    pub settled: Vec<u32>,
}

impl Reuse {
    pub fn new(slots: u32) -> Self {
        let places = slots.div_ceil(8);
        Self {
            committed: Bits::new(slots),
            left: Bits::new(places),
            leaving: Bits::new(places),
            places,
            limbo: Vec::new(),
            fresh: Vec::new(),
            settled: Vec::new(),
        }
    }

    /// Where `left` and `leaving` have a key.
    pub fn place_of(&self, key: BlockKey) -> u32 {
        ((u128::from(mix(key.0)) * u128::from(self.places)) >> 64) as u32
    }

    /// A block leaves a committed slot, which is free with the next commit.
    pub fn release(&mut self, slot: u32, key: BlockKey, discard: bool) {
        self.committed.clear(slot);
        self.left.set(self.place_of(key));
        self.limbo.push((slot, discard));
    }

    /// The fast store is used no more. Gives the slots that waited.
    pub fn give_up(&mut self) -> Vec<(u32, bool)> {
        self.fresh.clear();
        self.settled.clear();
        self.committed.clear_all();
        self.left.clear_all();
        std::mem::take(&mut self.limbo)
    }

    /// Memory of the bits.
    pub fn marks_bytes(&self) -> u64 {
        [&self.committed, &self.left, &self.leaving].iter().map(|marks| marks.memory_bytes()).sum()
    }

    /// Memory of the lists.
    pub fn waiting_bytes(&self) -> u64 {
        (self.limbo.capacity() * size_of::<(u32, bool)>() + self.fresh.capacity() * size_of::<u32>()) as u64
    }
}
