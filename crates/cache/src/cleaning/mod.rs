//! When dirty blocks go to the disk, and which.

use nandscape_core::SimTime;

/// What a cleaning policy may look at.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Now.
    pub at: SimTime,
    /// Slots there are.
    pub slots: u32,
    /// Slots in use.
    pub used: u32,
    /// Dirty slots.
    pub dirty: u32,
    /// When the block that has been dirty longest became dirty; `None` without dirty blocks.
    pub oldest: Option<SimTime>,
    /// When a host last asked for anything.
    pub last_request: SimTime,
    /// Blocks under way to the disk.
    pub cleaning: u32,
    /// Blocks cleaned since the beginning.
    pub cleaned: u64,
}

/// In which order blocks are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By their place on the disk, going round, neighbours in one write.
    Disk,
    /// Longest dirty first.
    Oldest,
    /// As the eviction policy would evict them.
    Eviction,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Blocks to start cleaning now, at most.
    pub blocks: u32,
    /// Which first.
    pub order: Order,
    /// When to ask again, if no request comes before; `None` means at the next change of the dirty count.
    pub again: Option<SimTime>,
}

/// Decides about cleaning.
pub trait Cleaning {
    /// Asked when the dirty count has grown, when a cleaning has ended, when [`Plan::again`] is reached, and when the cache is idle.
    fn plan(&mut self, view: &View) -> Plan;
}
