//! When dirty blocks go to the disk, and which.

mod alru;
mod caps;
mod cleaner;
mod idle_age;
mod none;
mod pi_rate;
mod set_age;
mod set_threshold;
mod smq;
mod watermarks;

pub use caps::CAPS;

use nandscape_core::{Info, ParamError, Params, SimTime, registry};
use std::collections::BTreeMap;

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
    /// Blocks whose cleaning has been started since the beginning.
    pub started: u64,
    /// Disk writes that cleaning has issued since the beginning: neighbours in one write count once.
    pub writes: u64,
    /// Blocks since the beginning that came in only after something dirty had been written to the disk to
    /// make room, or went past the cache because too much is dirty.
    pub waited: u64,
    /// Slots of a set; all of them where the cache is fully associative.
    pub ways: u32,
    /// The set with the most dirty blocks, and how many they are; `None` without dirty blocks. Of
    /// equals, any.
    pub fullest: Option<(u32, u32)>,
    /// Of the sets with dirty blocks the one in which a block became dirty longest ago last, and when;
    /// `None` without dirty blocks.
    pub oldest_set: Option<(u32, SimTime)>,
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
    /// Disk writes to issue for them now, at most; blocks that would need more wait.
    pub writes: u32,
    /// Which first.
    pub order: Order,
    /// Only blocks of this set.
    pub set: Option<u32>,
    /// Only blocks that are dirty since this time or before.
    pub until: Option<SimTime>,
    /// They are read from the fast store one after the other, so that hosts do not wait for many reads at
    /// once. Else all at once.
    pub in_turn: bool,
    /// When to ask again, if no request comes before; `None` means at the next change of the dirty count.
    pub again: Option<SimTime>,
}

impl Plan {
    /// Nothing to do before the dirty count changes.
    pub const NONE: Self = Self {
        blocks: 0,
        writes: u32::MAX,
        order: Order::Disk,
        set: None,
        until: None,
        in_turn: false,
        again: None,
    };

    /// So many blocks, in this order, without other limits.
    pub const fn of(blocks: u32, order: Order) -> Self {
        Self { blocks, order, ..Self::NONE }
    }
}

/// From when on the age of a dirty block counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Needs {
    /// The policy does not look at ages: [`View::oldest`] and [`View::oldest_set`] may be `None`, and no
    /// memory is spent on them.
    #[default]
    NoAges,
    /// Since it became dirty.
    SinceDirty,
    /// Since it was written last: each write of a dirty block makes it the youngest.
    SinceWritten,
    /// One age for all dirty blocks of a set ([`View::oldest_set`]): since one of them became dirty last.
    OfSets,
}

/// Decides about cleaning.
pub trait Cleaning {
    /// Asked when the dirty count has grown, when a cleaning has ended, when [`Plan::again`] is reached, and
    /// when the cache is idle.
    fn plan(&mut self, view: &View) -> Plan;

    /// Which ages it looks at.
    fn needs(&self) -> Needs {
        Needs::NoAges
    }
}

/// What a policy is built for.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Slots of the cache.
    pub slots: u32,
    /// Slots of a set.
    pub ways: u32,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Checked parameters of the policy.
    pub params: &'a Params,
}

/// A registered policy.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name, summary, source and parameters.
    pub info: Info,
    /// Makes one; an error where parameters are in range each and wrong together.
    pub build: fn(&Setup<'_>) -> Result<Box<dyn Cleaning + Send>, ParamError>,
}

/// Every cleaning policy.
pub static CLEANINGS: &[Entry] = &[
    none::ENTRY,
    pi_rate::ENTRY,
    watermarks::ENTRY,
    set_threshold::ENTRY,
    idle_age::ENTRY,
    set_age::ENTRY,
    smq::ENTRY,
    cleaner::ENTRY,
    alru::ENTRY,
];

/// The policy of that name, or an error with the names there are.
pub fn find(name: &str) -> Result<&'static Entry, ParamError> {
    registry::find("cleaning", name, CLEANINGS, |entry| &entry.info)
}

/// The policy `name` with its share of the `typed` parameters, under the limits of [`CAPS`] if any is typed.
/// `prefix` is the table that the keys stand in, for errors.
///
/// # Errors
///
/// An unknown name or key; a value out of range; values that contradict each other.
pub fn build(
    name: &str,
    prefix: &str,
    typed: &BTreeMap<String, String>,
    (slots, ways, block_bytes): (u32, u32, u32),
) -> Result<Box<dyn Cleaning + Send>, ParamError> {
    let entry = find(name)?;
    let mut own = typed.clone();
    let caps = Params::check(&CAPS, prefix, &CAPS.take(&mut own));
    let params = Params::check(&entry.info, prefix, &own)?;
    let caps = caps?;
    let inner = (entry.build)(&Setup { slots, ways, block_bytes, params: &params })?;
    Ok(caps::wrap(inner, &Setup { slots, ways, block_bytes, params: &caps }))
}

/// Blocks that are a share of `of`, rounded down.
fn part(of: u32, share: f64) -> u32 {
    (f64::from(of) * share) as u32
}

#[cfg(test)]
mod tests;
