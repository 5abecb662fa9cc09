//! A store that is written in order, over any other.

use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Allocation, Applied, BlockCommand, Clocked, Extent, Op, Regions, SimTime, Store, StoreError, StoreShape,
    Token,
};

/// Refuses, by a panic, what regions do not take: a write before the write pointer, and beyond it, but for a
/// gap that a slot may leave which was never written.
pub struct Ordered {
    store: Box<dyn Store + Send>,
    regions: Regions,
    /// By region: bytes from its first one to its write pointer.
    written: Vec<u64>,
}

impl Ordered {
    /// Regions of so many bytes behind the first ones, for whole blocks of the store.
    pub fn new(store: Box<dyn Store + Send>, first: u64, bytes: u64) -> Self {
        let count = ((store.capacity_bytes() - first) / bytes) as u32;
        Self { store, regions: Regions { first, bytes, count }, written: vec![0; count as usize] }
    }

    /// The same of a store that was written before; `written` gives how far each region was.
    pub fn found(
        store: Box<dyn Store + Send>,
        first: u64,
        bytes: u64,
        written: impl Fn(Extent) -> u64,
    ) -> Self {
        let new = Self::new(store, first, bytes);
        let written = (0..new.regions.count).map(|region| written(new.regions.extent(region))).collect();
        Self { written, ..new }
    }

    fn region(&self, extent: Extent) -> Option<usize> {
        let at = extent.offset.checked_sub(self.regions.first)?;
        let region = (at / self.regions.bytes) as usize;
        let end = self.regions.extent(region as u32).end();
        assert!(extent.end() <= end, "{extent} crosses the end of region {region} at {end}");
        Some(region)
    }
}

impl Store for Ordered {
    fn shape(&self) -> StoreShape {
        StoreShape { regions: Some(self.regions), ..self.store.shape() }
    }

    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> Result<Applied, StoreError> {
        if matches!(command.op, Op::Write | Op::WriteZeroes | Op::Trim)
            && let Some(region) = self.region(command.extent)
        {
            let all = self.regions.extent(region as u32);
            let start = command.extent.offset - all.offset;
            let written = &mut self.written[region];
            match command.op {
                Op::Trim if command.extent == all => *written = 0,
                Op::Trim => panic!("a trim of {} in region {region}", command.extent),
                _ => {
                    let pointer = *written;
                    assert!(start >= pointer, "a write at {start} of region {region}, after {pointer}");
                    *written = start + command.extent.len;
                }
            }
        }
        self.store.apply(command, payload)
    }

    fn start(&mut self, command: BlockCommand, applied: Applied, at: SimTime) -> Result<Token, StoreError> {
        self.store.start(command, applied, at)
    }

    fn allocation(&self, extent: Extent) -> Allocation {
        let Some(region) = self.region(extent) else { return self.store.allocation(extent) };
        let all = self.regions.extent(region as u32);
        let start = extent.offset - all.offset;
        let written = self.written[region];
        let end = if start < written { written } else { all.len };
        Allocation { is_mapped: start < written, bytes: (end - start).min(extent.len) }
    }

    fn counts(&self) -> HostCounts {
        self.store.counts()
    }

    fn shutdown(&mut self, at: SimTime) -> Result<Token, StoreError> {
        self.store.shutdown(at)
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.store.reset_counters(at);
    }
}

impl Clocked for Ordered {
    nandscape_core::delegate_clock!(self, self.store);
}
