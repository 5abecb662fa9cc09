//! How large a domain is, in blocks and in memory.

use super::{Domain, Frontier, Log};

impl Domain {
    /// Blocks that collection keeps free or open in the mean, so that they are never victims.
    pub fn reserve_blocks(&self) -> u64 {
        // The marks' missing half block rounds up again. A victim in hand is no candidate either.
        u64::from(self.marks.shape.steps)
            + (self.marks.low_pages + self.marks.high_pages).div_ceil(2 * u64::from(self.pages_per_block))
    }

    /// Pages of the host that a reclaim group takes: its share, and half of what is to spare.
    pub fn most_live(&self) -> u64 {
        let block = u64::from(self.pages_per_block);
        let share = self.marks.shape.data_blocks * block;
        let spare = u64::from(self.counts.good_blocks) * block;
        share + spare.saturating_sub(share + self.marks.high_pages) / 2
    }

    /// DRAM for logs and, with streams, for owners and pieces.
    pub fn log_bytes(&self) -> u64 {
        let slots = self.slots.len() * size_of::<Frontier>();
        let logs = slots + self.logs.len() * size_of::<Log>() + self.open_on.len() * size_of::<u32>();
        // Bucket lists of each stream where each has its own victims.
        let families = self.candidates.split.as_ref().map_or(0, |split| split.shares().count() as u64);
        let lists = families * u64::from(self.blocks) * 8;
        logs as u64
            + lists
            + self.candidates.bytes()
            + self.pieces.as_ref().map_or(0, |pieces| pieces.bytes())
    }
}

impl std::fmt::Debug for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Domain")
            .field("base", &self.base)
            .field("blocks", &self.blocks)
            .field("free_blocks", &self.counts.free_blocks)
            .field("free_pages", &self.counts.free_pages)
            .field("sealed", &self.counts.sealed)
            .field("invalid_sealed", &self.counts.invalid_sealed)
            .finish_non_exhaustive()
    }
}
