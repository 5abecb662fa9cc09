//! What a domain is made with.

use super::config::Watermarks;

/// The size of a domain, and what it has to allow for.
#[derive(Clone, Copy, Debug)]
pub(super) struct DomainShape {
    /// First device block.
    pub base: u32,
    pub lanes: u32,
    pub blocks_per_lane: u32,
    pub planes_per_lane: u32,
    pub pages_per_block: u32,
    /// Pages that are programmed together ([`nandscape_core::Capabilities::program_pages`]).
    pub program_pages: u32,
    /// Blocks of a piece; 0 where there are no streams.
    pub blocks_per_piece: u32,
    /// Victims are emptied step by step.
    pub steps: bool,
    /// Blocks that the logical pages fill.
    pub data_blocks: u64,
    pub marks: Watermarks,
    /// Blocks by which the marks were raised for what a loss of power costs.
    pub spare_blocks: u32,
    /// Erases that may be under way when a block is opened; 0 where that does not matter.
    pub erases_under_way: u32,
}
