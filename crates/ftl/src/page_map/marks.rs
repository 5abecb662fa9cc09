//! What a domain is made with, and its watermarks: when collection begins, and when it ends.

use super::config::Watermarks;

/// The size of a domain, and what it has to allow for.
#[derive(Clone, Copy, Debug, Default)]
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

/// The watermarks in pages, for the logs that are in use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    /// A host write starts GC below this: `low_pages`, or the floor while collection is put off.
    pub trigger_pages: u64,
    /// GC runs while the free pages are below this ...
    pub low_pages: u64,
    /// ... until they are not below this.
    pub high_pages: u64,
    pub background_pages: u64,
    /// Blocks without which the logical pages do not fit any more.
    pub needed_blocks: u32,
    /// Collection is put off.
    pub deferred: bool,
    pub shape: DomainShape,
}

nandscape_core::state!(impl [] Marks {
    saved: trigger_pages, low_pages, high_pages, background_pages, needed_blocks, deferred;
    fixed: shape;
});

impl Marks {
    /// Marks that are not set yet ([`Marks::set`]).
    pub fn new(shape: &DomainShape) -> Self {
        Self { shape: *shape, ..Self::default() }
    }

    /// For so many open blocks.
    pub fn set(&mut self, open: u64, has_streams: bool) {
        let block = u64::from(self.shape.pages_per_block);
        let pages = |mark: u64| open * block + mark - block / 2;
        let Watermarks { low, high, background } = self.shape.marks;
        (self.low_pages, self.high_pages, self.background_pages) =
            (pages(low), pages(high), pages(background));
        assert!(
            low <= high && high <= background,
            "watermarks of {open} open blocks: {:?}",
            self.shape.marks
        );
        self.needed_blocks = (self.shape.data_blocks + open + low.div_ceil(block)) as u32;
        // Victims are emptied step by step from a block before the low watermark on.
        let head_start = if self.shape.steps { block } else { 0 };
        self.trigger_pages =
            if self.deferred { self.floor_pages(has_streams) } else { self.low_pages + head_start };
    }

    /// What collection needs for itself: a block to move a victim to, and one on the way there. With streams
    /// all of it, since free pages in the open blocks of one are no use to another.
    pub fn floor_pages(&self, has_streams: bool) -> u64 {
        if has_streams {
            return self.low_pages;
        }
        self.low_pages.min(u64::from(2 + self.shape.spare_blocks) * u64::from(self.shape.pages_per_block))
    }
}
