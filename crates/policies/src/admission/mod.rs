//! What is not worth caching.

mod all;
mod bcache;
mod chain;
mod dirty_cutoff;
mod nhit;
mod sequential;
mod streams;
mod tags;

pub use bcache::BCACHE_CUTOFF;
pub use chain::Chain;
pub use sequential::SEQUENTIAL_READ;

use crate::key::BlockKey;
use nandscape_core::{Extent, Hint, Info, Op, ParamError, Params, SimTime, registry, words};
use serde::Serialize;

/// A request, as admission sees it.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Volume it addresses.
    pub volume: u16,
    /// Read or write.
    pub op: Op,
    /// Bytes on the volume.
    pub extent: Extent,
    /// Stream or tag that the client gave it.
    pub hint: Hint,
    /// When it came.
    pub at: SimTime,
}

/// Why a request or a block went past the cache. Every one is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Bypass {
    /// Part of a sequential stream longer than the threshold.
    Sequential,
    /// Not asked for often enough yet.
    TooFewHits,
    /// Its client tag is ruled out.
    Tag,
    /// The mode does not cache such requests.
    Mode,
    /// The design does not cache requests of this shape (not whole blocks).
    Shape,
    /// Every slot that it could take is busy or dirty.
    NoRoom,
    /// The volume has used up its quota.
    Quota,
    /// The fast device has failed.
    Failed,
    /// The fast device answers too slowly for a request of this length.
    Congested,
    /// Its block was being filled, cleaned or moved, and the design does not come back to the cache after it
    /// has waited for that.
    Busy,
    /// So many slots are dirty that no further block may become so.
    Dirty,
}

words! { pub Bypass:
    Sequential = "sequential", TooFewHits = "too-few-hits", Tag = "tag", Mode = "mode", Shape = "shape",
    NoRoom = "no-room", Quota = "quota", Failed = "failed", Congested = "congested", Busy = "busy",
    Dirty = "dirty",
}

impl Bypass {
    /// How many reasons there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Its place in arrays that count by reason.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The slots, as a block that is not cached finds them.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Slots there are.
    pub slots: u32,
    /// Slots in use.
    pub used: u32,
    /// Slots that hold something that the disk does not have.
    pub dirty: u32,
    /// Whether the block is to be written, and would be dirty.
    pub makes_dirty: bool,
}

impl Room {
    /// Share of slots in use, from 0 to 1.
    pub fn fill(&self) -> f32 {
        self.used as f32 / self.slots as f32
    }
}

/// What the fast device took for something, told to admission so that it can send requests past a device that
/// is overloaded.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// Read or write.
    pub op: Op,
    /// From submission to completion.
    pub took: SimTime,
    /// When it completed.
    pub at: SimTime,
}

/// Decides what is cached.
pub trait Admission {
    /// Whether a request may enter the cache at all; asked once for each read or write, in order of arrival.
    /// Blocks of it that are cached already are served from there regardless.
    fn request(&mut self, ask: &Ask) -> Result<(), Bypass>;

    /// Whether a block that is not cached may be inserted; asked for each of them, after
    /// [`Admission::request`] had let the request pass.
    fn block(&mut self, key: BlockKey, op: Op, room: Room) -> Result<(), Bypass> {
        let _ = (key, op, room);
        Ok(())
    }

    /// Asked once more of a read that missed, when its bytes have come from the disk and are about to be
    /// inserted: what arrived meanwhile may have shown that they are not worth it. Nothing waits for
    /// this.
    fn confirm(&mut self, ask: &Ask) -> Result<(), Bypass> {
        let _ = ask;
        Ok(())
    }

    /// Appends ranges that were let in and turned out not to be worth it since the last call, as volume and
    /// bytes. The cache may drop what is clean of them, and loses nothing if it does not.
    fn retract(&mut self, out: &mut Vec<(u16, Extent)>) {
        let _ = out;
    }

    /// Whether [`Admission::served`] is of any use: if not, it is not called.
    fn watches_device(&self) -> bool {
        false
    }

    /// The fast device has answered.
    fn served(&mut self, served: &Served) {
        let _ = served;
    }

    /// Appends what explains the decisions: names and counts since the beginning.
    fn counts(&self, out: &mut Vec<(&'static str, u64)>) {
        let _ = out;
    }

    /// Memory held, in bytes.
    fn memory_bytes(&self) -> u64;
}

/// What a policy is built for.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Slots of the cache.
    pub slots: u32,
    /// Seed of random draws.
    pub seed: u64,
    /// Checked parameters of the policy.
    pub params: &'a Params,
}

/// A registered policy.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name, summary, source and parameters. Names of parameters are unique among all of [`ADMISSIONS`],
    /// since several policies are chained under one table.
    pub info: Info,
    /// Makes one; an error where parameters are in range each and wrong together.
    pub build: fn(&Setup<'_>) -> Result<Box<dyn Admission + Send>, ParamError>,
}

/// Every admission policy.
pub static ADMISSIONS: &[Entry] =
    &[all::ENTRY, sequential::ENTRY, nhit::ENTRY, tags::ENTRY, bcache::ENTRY, dirty_cutoff::ENTRY];

/// The policy of that name, or an error with the names there are.
pub fn find(name: &str) -> Result<&'static Entry, ParamError> {
    registry::find("admission", name, ADMISSIONS, |entry| &entry.info)
}

#[cfg(test)]
mod tests;
