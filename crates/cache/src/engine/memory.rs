//! What a cache holds in memory.

use super::Cache;
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
        let (directory, durability) = (&self.directory, &self.durability);
        Memory {
            index: directory.index.memory_bytes(),
            slots: directory.slots.memory_bytes(),
            marks: durability.reuse.marks_bytes() + directory.pinned.memory_bytes(),
            metadata: durability.memory_bytes(),
            policies: directory.policies.iter().map(|policy| policy.footprint().bytes).sum(),
            admission: self.gate.admission.as_ref().map_or(0, |admission| admission.memory_bytes()),
            dirty: self.writeback.memory_bytes(),
            steps: self.timeline.memory_bytes(),
        }
    }
}
