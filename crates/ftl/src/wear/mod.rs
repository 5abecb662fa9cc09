//! Keeping erase counts together: which free block is used next, and when cold data is moved off a
//! little-worn block.

mod dynamic;
mod none;
mod static_levelling;

use crate::victim::BlockInfo;
use nandscape_core::{Info, Params, State};

/// Decides about wear. Blocks are numbered from 0 inside the collection domain.
pub trait WearPolicy: State + Send {
    /// Whether free blocks are used in the order of their erase counts instead of the order in which they
    /// were erased.
    fn sorts_free_blocks(&self) -> bool {
        false
    }

    /// Whether cold data goes to open blocks of its own, taken from the most worn.
    fn migrates(&self) -> bool {
        false
    }

    /// A block was erased and has now been erased `count` times.
    fn erased(&mut self, count: u32) {
        let _ = count;
    }

    /// A block that had been erased `count` times was given up.
    fn retired(&mut self, count: u32) {
        let _ = count;
    }

    /// A sealed block whose data is to be moved to a worn one, if it is time. Asked once after each
    /// collection.
    fn pick(&mut self, blocks: &[BlockInfo], erase_count: &dyn Fn(u32) -> u32) -> Option<u32> {
        let _ = (blocks, erase_count);
        None
    }
}

/// A registered policy.
#[derive(Clone, Copy, Debug)]
pub struct WearEntry {
    /// Name, summary, source, parameters (keys of the `ftl` table).
    pub info: Info,
    /// Makes one for a domain whose good blocks have been erased so often.
    pub build: fn(&Params, &mut dyn Iterator<Item = u32>) -> Box<dyn WearPolicy>,
}

/// Every wear policy.
pub static WEAR: &[WearEntry] = &[none::ENTRY, dynamic::ENTRY, static_levelling::ENTRY];

/// The policy of that name.
pub fn find(name: &str) -> Option<&'static WearEntry> {
    WEAR.iter().find(|entry| entry.info.name == name)
}

pub use static_levelling::WEAR_THRESHOLD;
