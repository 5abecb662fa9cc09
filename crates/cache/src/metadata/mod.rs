//! What is known of the cached blocks after a loss of power.
//!
//! A kind of metadata is told of every change and says what to write; the engine writes it, in order with the data. Nothing here touches a store, except
//! when a cache is opened.

use crate::key::BlockKey;

/// What a slot holds. Bits count from the block's first sub-block; a sub-block is 1/16 of a block or 512 bytes, whichever is larger.
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

/// What the slots hold now, changes included that have been noted and not yet committed. The engine has it anyway, so that metadata need not keep it twice.
pub trait Table {
    /// What `slot` holds.
    fn entry(&self, slot: u32) -> Option<Entry>;
}

/// Keeps the metadata of one cache.
///
/// The engine's order for a commit: [`Metadata::commit`] gives the writes at the moment at which a flush of the fast store is submitted (so that the flush covers
/// the data of all that is committed); when the flush is complete, the writes are made, in any order, and flushed; then [`Metadata::committed`] is called.
/// Where [`Metadata::is_in_place`] is false, the engine never overwrites data that a committed entry refers to: it writes to a free slot.
pub trait Metadata {
    /// Slots that fit.
    fn slots(&self) -> u32;

    /// First byte of a slot's data on the fast store.
    fn data_offset(&self, slot: u32) -> u64;

    /// Whether a slot's data may be overwritten while a committed entry refers to it, as the published designs do.
    fn is_in_place(&self) -> bool;

    /// Whether a slot may be given to another block only once a commit has noted its entry as gone. Never false where nothing is in place.
    fn is_reuse_deferred(&self) -> bool {
        !self.is_in_place()
    }

    /// Whether a change must be committed before the write that made it is answered, rather than before the next flush.
    fn is_synchronous(&self, old: Option<&Entry>, new: Option<&Entry>) -> bool;

    /// `slot` now holds this, or nothing.
    fn note(&mut self, slot: u32, entry: Option<Entry>);

    /// Changes noted since the last commit, at least; 0 if there is nothing to commit.
    fn noted(&self) -> u32;

    /// Changes that one commit takes. The engine commits before more are noted.
    fn room(&self) -> u32 {
        u32::MAX
    }

    /// Appends the writes that make durable what was noted so far. At most one commit is under way.
    fn commit(&mut self, table: &dyn Table, out: &mut Vec<Write>);

    /// The writes of the last commit are durable.
    fn committed(&mut self);

    /// Appends the writes of a clean removal, with which the next start finds everything. Nothing follows it; no commit is under way.
    fn close(&mut self, table: &dyn Table, out: &mut Vec<Write>);
}
