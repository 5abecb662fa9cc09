//! What of cleaning is under way.

use nandscape_core::SimTime;

/// Between two batches for stores that take no time (files), so that requests have their turn.
const PAUSE_NS: u64 = 5_000_000;

/// What has been begun, and what of it is done.
#[derive(Default)]
pub struct Progress {
    under_way: u32,
    /// Blocks that were written the moment they were begun count as under way until a while later: a policy
    /// limits what it does at a time by what is under way, and stores that take no time would have
    /// everything cleaned at once.
    written_at_once: u32,
    pub pause_until: SimTime,
    pub cleaned: u64,
    pub started: u64,
    pub writes: u64,
    pub waited: u64,
}

impl Progress {
    /// A disk write has begun, with which so many blocks are clean.
    pub fn begin(&mut self, blocks: u32) {
        self.under_way += blocks;
        self.started += u64::from(blocks);
        self.writes += 1;
    }

    /// Blocks that are now on the disk.
    pub fn end(&mut self, blocks: u32) {
        // Those that a policy began that is gone are not among them.
        self.under_way = self.under_way.saturating_sub(blocks);
        self.cleaned += u64::from(blocks);
    }

    /// Blocks were written the moment they were begun.
    pub fn wrote_at_once(&mut self, blocks: u32, at: SimTime) {
        if at >= self.pause_until {
            (self.pause_until, self.written_at_once) = (at + PAUSE_NS, 0);
        }
        self.written_at_once += blocks;
    }

    /// A pause begins at `at`. Gives its end.
    pub fn pause(&mut self, at: SimTime) -> SimTime {
        self.pause_until = self.pause_until.max(at + PAUSE_NS);
        self.pause_until
    }

    /// Blocks that count as under way at `at`.
    pub fn busy(&self, at: SimTime) -> u32 {
        self.under_way + if at < self.pause_until { self.written_at_once } else { 0 }
    }
}
