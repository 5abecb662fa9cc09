//! What a cache holds in memory.

use super::{Cache, Slots};
use nandscape_policies::eviction::Eviction;

/// Bytes of memory by what they are for. Buffers that data passes through, which do not grow with the cache,
/// are not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// From block to slot.
    pub index: u64,
    /// Which block each slot has, and which of its sub-blocks are valid and dirty.
    pub slots: u64,
    /// Two bits for each slot, committed and to be noted, and two for eight of them.
    pub marks: u64,
    /// What the metadata keep beside the slots, and what is to be committed.
    pub metadata: u64,
    /// The eviction policies, with the names that they remember.
    pub policies: u64,
    /// What admission remembers.
    pub admission: u64,
    /// Dirty blocks in order, for cleaning.
    pub dirty: u64,
    /// Steps under way, and what waits for them.
    pub steps: u64,
}

impl Memory {
    /// All of it.
    pub const fn total(&self) -> u64 {
        let of_slots = self.index + self.slots + self.marks + self.metadata;
        of_slots + self.policies + self.admission + self.dirty + self.steps
    }
}

impl<E: Eviction> Cache<E> {
    /// Memory held now, in bytes.
    pub fn memory(&self) -> Memory {
        let marks = [&self.committed, &self.left, &self.leaving];
        let waiting =
            self.limbo.capacity() * size_of::<(u32, bool)>() + self.fresh.capacity() * size_of::<u32>();
        let waiting = waiting + (self.late.memory_bytes() + self.filling.memory_bytes()) as usize;
        Memory {
            index: self.index.memory_bytes(),
            slots: Slots::memory_bytes(&self.slots),
            marks: marks.iter().map(|marks| marks.memory_bytes()).sum::<u64>() + self.pinned.memory_bytes(),
            metadata: self.metadata.memory_bytes() + waiting as u64,
            policies: self.policies.iter().map(Eviction::memory_bytes).sum(),
            admission: self.admission.as_ref().map_or(0, |admission| admission.memory_bytes()),
            dirty: self.cleaner.as_ref().map_or(0, |cleaner| cleaner.memory_bytes()),
            steps: self.steps.memory_bytes(),
        }
    }
}
