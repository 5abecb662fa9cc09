//! What is known of the cached blocks after a loss of power.
//!
//! A kind of metadata is told of every change and says what to write; the engine writes it, in order with the
//! data. Nothing here touches a store, except when a cache is opened.

use nandscape_core::{Info, StoreError};
use nandscape_policies::BlockKey;
use nandscape_policies::hash::mix;
use std::ops::Range;

mod area;
mod at_removal;
mod format;
mod journal;
mod none;
mod periodic;
mod report;
mod slots;
mod superblock;
mod table;
#[cfg(test)]
mod tests;

/// Records in a block of them.
pub(crate) const RECORDS: u32 = format::items(format::BLOCK);

/// Bytes of metadata that are written at once, of every kind that has any.
pub const METADATA_BLOCK: u32 = format::BLOCK as u32;

pub use area::{Area, Sketch, StoreArea, apply};
pub use report::{Found, Lost, Report};
pub(crate) use report::{dirty_of, merged, sub_bytes};
pub(crate) use superblock::Root;
pub use superblock::{SETTINGS_MAX, Shape, Superblock, VOLUMES_MAX, Volume, WATCH_BYTES};

/// Why metadata cannot be created or opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum MetadataError {
    #[error("the fast store has {capacity} bytes: expected at least {needed}")]
    TooSmall { capacity: u64, needed: u64 },
    #[error("{0}")]
    Refused(String),
    #[error("no cache here: neither superblock, at bytes 0 and 4096, is intact")]
    Absent,
    #[error("the superblock is not sound: {0}")]
    Superblock(String),
    /// Blocks that the disks do not have may be missing.
    #[error("metadata of the cache is damaged: blocks that the disks do not have may be missing")]
    Damaged,
    #[error("metadata on the fast store: {0}")]
    Store(#[from] StoreError),
}

/// What a cache is created with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Of the fast store.
    pub capacity_bytes: u64,
    /// Of the fast store: what survives a loss of power whole. At most 4096, unless nothing is kept.
    pub store_block: u32,
    /// Bytes of a cached block, a power of two.
    pub block_bytes: u32,
    /// Of this cache; never used before.
    pub uuid: [u8; 16],
    /// Text for [`Superblock::settings`].
    pub settings: String,
    /// What is attached.
    pub volumes: Vec<Volume>,
}

/// A cache that is open.
pub struct Opened {
    /// Goes on from here.
    pub metadata: Box<dyn Metadata + Send>,
    /// The root as it was found; `None` where nothing is kept.
    pub superblock: Option<Superblock>,
    /// What was found.
    pub found: Found,
    /// To be written and flushed before anything else ([`apply`]). They are the same however often a start
    /// is cut short.
    pub repairs: Vec<Write>,
}

/// A kind of metadata.
#[derive(Clone, Copy)]
pub struct Kind {
    /// What `list` says.
    pub info: Info,
    shape: fn(&Setup) -> Result<Shape, MetadataError>,
    open: fn(&Superblock, &mut dyn Area) -> Result<Opened, MetadataError>,
}

/// Every kind.
pub static KINDS: &[Kind] = &[journal::KIND, none::KIND, at_removal::KIND, slots::KIND, periodic::KIND];

/// The kind that loses everything in a loss of power.
pub(crate) const AT_REMOVAL: &str = at_removal::KIND.info.name;

/// The kind of that name.
pub fn find(name: &str) -> Result<&'static Kind, MetadataError> {
    let unknown = || {
        let known = KINDS.iter().map(|kind| kind.info.name).collect::<Vec<_>>().join(", ");
        MetadataError::Refused(format!("cache.metadata = '{name}': expected one of {known}"))
    };
    KINDS.iter().find(|kind| kind.info.name == name).ok_or_else(unknown)
}

/// Bytes of a fast store on which exactly so many slots fit. Of `setup` the capacity does not matter.
pub fn bytes_for(kind: &str, setup: &Setup, slots: u32) -> Result<u64, MetadataError> {
    let kind = find(kind)?;
    let fits = |capacity_bytes| {
        let shape = (kind.shape)(&Setup { capacity_bytes, ..setup.clone() });
        shape.is_ok_and(|shape| shape.slots >= slots)
    };
    let (mut low, mut high) = (0, u64::from(slots) * u64::from(setup.block_bytes) + 4096);
    while !fits(high) {
        (low, high) = (high, high.saturating_mul(2));
        if low == high {
            return Err(MetadataError::Refused(format!("slots = {slots}: expected fewer")));
        }
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(middle) { high = middle } else { low = middle + 1 }
    }
    Ok(low)
}

// After what the cache was given, where there is room.
fn watch(setup: &Setup, area: &dyn Area) -> u64 {
    let at = setup.capacity_bytes.next_multiple_of(format::BLOCK as u64);
    if at.saturating_add(WATCH_BYTES) <= area.capacity_bytes() { at } else { 0 }
}

/// Creates an empty cache. Until this is through there is none: the superblock comes last, and after a flush.
pub fn create(kind: &str, setup: &Setup, area: &mut dyn Area) -> Result<Opened, MetadataError> {
    let kind = find(kind)?;
    if !setup.block_bytes.is_power_of_two() || !(512..=1 << 24).contains(&setup.block_bytes) {
        let block = setup.block_bytes;
        let detail = format!("cache.block = {block}: expected a power of two from 512 to 16777216 bytes");
        return Err(MetadataError::Refused(detail));
    }
    let shape = (kind.shape)(setup)?;
    let mut superblock = Superblock {
        kind: kind.info.name.to_owned(),
        uuid: setup.uuid,
        generation: 1,
        shape,
        watch: watch(setup, area),
        settings: setup.settings.clone(),
        volumes: setup.volumes.clone(),
        ..Superblock::default()
    };
    if shape.tables == 0 {
        return (kind.open)(&superblock, area);
    }
    if !setup.store_block.is_power_of_two() || setup.store_block as usize > format::BLOCK {
        return Err(MetadataError::Refused(format!(
            "block of the fast store = {}: expected a power of two of at most 4096 bytes, for metadata that is kept",
            setup.store_block
        )));
    }
    let copies = [superblock.write()?, {
        superblock.generation = 2;
        superblock.write()?
    }];
    // What an earlier cache left here must not be found instead, should this be cut short.
    for copy in &copies {
        area.write(copy.offset, &vec![0; format::BLOCK])?;
    }
    area.flush()?;
    let mut block = vec![0; shape.unit as usize];
    for copy in 0..shape.tables {
        for index in 0..shape.table_blocks() {
            let count = shape.slots_of(index).len() as u32;
            let header =
                format::Header { index, sequence: 0, count, part: 0, parts: 0, visited: 0, regions: 0 };
            format::seal(&mut block, format::Magic::Table, superblock.tag(), &header);
            area.write(shape.table_offset(copy, index), &block)?;
        }
    }
    area.flush()?;
    apply(area, &copies)?;
    open(area)
}

/// Opens what is there. Nothing is written: see [`Opened::repairs`].
pub fn open(area: &mut dyn Area) -> Result<Opened, MetadataError> {
    let Root { superblock, is_damaged, is_sure, .. } = Root::read(area)?;
    let mut opened = (find(&superblock.kind)?.open)(&superblock, area)?;
    if !is_sure && superblock.kind == AT_REMOVAL {
        // Whether there was a removal is all that tells whether anything was dirty.
        opened.found.report.unknown_slots = superblock.shape.slots;
    }
    opened.found.report.damaged_superblocks = u32::from(is_damaged);
    opened.found.report.lost_session = superblock.may_lose && !superblock.is_clean;
    opened.found.report.is_new = !superblock.is_used && !is_damaged;
    opened.superblock = Some(superblock);
    Ok(opened)
}

// The superblock of a cache that is in use from now on.
fn running(superblock: &Superblock, sequence: u64) -> Superblock {
    let generation = superblock.generation + 1;
    Superblock { generation, is_used: true, is_clean: false, sequence, ..superblock.clone() }
}

// The superblock of a clean removal.
fn clean(superblock: &Superblock, sequence: u64) -> Superblock {
    let running = running(superblock, sequence);
    Superblock { is_clean: true, may_lose: false, removal: running.generation, ..running }
}

// Of a superblock that was written before, or is one that was but for numbers.
fn written(superblock: &Superblock) -> Write {
    superblock.write().expect("it fitted before")
}

/// What a slot holds. Bits count from the block's first sub-block; a sub-block is 1/16 of a block or 512
/// bytes, whichever is larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whose data.
    pub key: BlockKey,
    /// Sub-blocks that are there.
    pub valid: u16,
    /// Sub-blocks that are newer than the disk's; each of them is valid.
    pub dirty: u16,
}

/// A write of metadata to the fast store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// First byte on the fast store.
    pub offset: u64,
    /// Whole blocks.
    pub bytes: Vec<u8>,
}

/// The class of regions that a block belongs to, of 64, as a bit. A region is 256 neighbouring blocks.
pub const fn region(key: BlockKey) -> u64 {
    1 << (mix(BlockKey::new(key.volume(), key.block() >> 8).0) >> 58)
}

/// What the slots hold now, changes included that have been noted and not yet committed. The engine has it
/// anyway, so that metadata need not keep it twice.
pub trait Table {
    /// What `slot` holds.
    fn entry(&self, slot: u32) -> Option<Entry>;

    /// [`Table::entry`] of a slot will be asked for soon.
    fn prepare(&self, slot: u32) {
        let _ = slot;
    }

    /// Appends what consecutive slots hold, without those that hold nothing.
    fn list(&self, slots: Range<u32>, out: &mut Vec<(u32, Entry)>) {
        out.extend(slots.filter_map(|slot| Some((slot, self.entry(slot)?))));
    }
}

/// What is found after a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survives {
    /// Nothing.
    Nothing,
    /// Blocks that were dirty, and perhaps others, which count as dirty then.
    Dirty,
    /// Those, and clean blocks as clean ones.
    Clean,
}

/// Keeps the metadata of one cache.
///
/// The engine's order for a commit: [`Metadata::commit`] gives the writes at the moment at which a flush of
/// the fast store is submitted (so that the flush covers the data of all that is committed); when the flush
/// is complete, the writes are made, in any order, and flushed; then [`Metadata::committed`] is called. Where
/// [`Metadata::is_in_place`] is false, the engine never overwrites data that a committed entry refers to: it
/// writes to a free slot.
pub trait Metadata {
    /// Slots that fit.
    fn slots(&self) -> u32;

    /// What a loss of power leaves.
    fn survives(&self) -> Survives {
        Survives::Dirty
    }

    /// First byte of a slot's data on the fast store.
    fn data_offset(&self, slot: u32) -> u64;

    /// Whether a slot's data may be overwritten while a committed entry refers to it, as the published
    /// designs do.
    fn is_in_place(&self) -> bool;

    /// Whether a slot may be given to another block only once a commit has noted its entry as gone. Never
    /// false where nothing is in place.
    fn is_reuse_deferred(&self) -> bool {
        !self.is_in_place()
    }

    /// Whether a change must be committed before the write that made it is answered, rather than before the
    /// next flush. Asked only where data are overwritten in place ([`Metadata::is_in_place`]).
    fn is_synchronous(&self, old: Option<&Entry>, new: Option<&Entry>) -> bool {
        let _ = (old, new);
        false
    }

    /// `slot` now holds this, or nothing. Like the commits, without effect where nothing is committed.
    fn note(&mut self, slot: u32, entry: Option<Entry>) {
        let _ = (slot, entry);
    }

    /// Changes noted since the last commit, at least; 0 if there is nothing to commit.
    fn noted(&self) -> u32 {
        0
    }

    /// Changes that one commit takes. The engine commits before more are noted.
    fn room(&self) -> u32 {
        u32::MAX
    }

    /// Appends the writes that make durable what was noted so far. At most one commit is under way.
    fn commit(&mut self, table: &dyn Table, out: &mut Vec<Write>) {
        let _ = (table, out);
    }

    /// After the next commit the disks may get something newer than a committed entry has, in blocks of these
    /// classes ([`region`]). A class that is new, or not named any more, counts as a change. Without
    /// effect unless clean blocks survive ([`Metadata::survives`]).
    fn expect_writes(&mut self, regions: u64) {
        let _ = regions;
    }

    /// The writes of the last commit are durable.
    fn committed(&mut self) {}

    /// After [`Metadata::committed`]: appends writes that say so. Nothing waits for them, and they need not
    /// be flushed. They tell a commit whose records are damaged from one that was cut short.
    fn confirm(&self, out: &mut Vec<Write>) {
        let _ = out;
    }

    /// Memory held, in bytes.
    fn memory_bytes(&self) -> u64 {
        0
    }

    /// The superblock that was written last, for settings that change while the cache is open: the one of a
    /// clean removal follows it. `None` where nothing is kept.
    fn superblock(&mut self) -> Option<&mut Superblock> {
        None
    }

    /// Appends the writes of a clean removal, with which the next start finds everything. Nothing follows it;
    /// no commit is under way.
    fn close(&mut self, table: &dyn Table, out: &mut Vec<Write>);
}
