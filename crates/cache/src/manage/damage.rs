//! Volumes of which dirty blocks may be missing, since metadata that may have named them is damaged.
//!
//! Their disks may be older than what was flushed, so nothing starts over them. The repair of the metadata
//! makes the damage invisible; so before it the volumes are listed in the superblock, until their data was
//! salvaged or they were taken off.

use super::{Held, ManageError, change_root};
use crate::metadata::{AT_REMOVAL, Area, Superblock};

/// An error for such a volume.
pub(super) fn check(held: &Held, id: u16) -> Result<(), ManageError> {
    let is_damaged = held.report.hides_dirty() || held.superblock.damaged.contains(&id);
    if is_damaged { Err(ManageError::Damaged { volume: id }) } else { Ok(()) }
}

/// Before metadata is repaired: lists every volume if blocks of any may be missing.
pub(super) fn list(fast: &mut dyn Area, held: &Held) -> Result<(), ManageError> {
    let root = &held.superblock;
    let is_listed = root.volumes.iter().all(|volume| root.damaged.contains(&volume.id));
    if !held.report.hides_dirty() || is_listed {
        return Ok(());
    }
    change_root(fast, |root| root.damaged = root.volumes.iter().map(|volume| volume.id).collect())
}

/// The newest superblock is damaged, and the next one takes its place: with `at-removal` nobody could tell
/// after that whether there was a removal.
pub(super) fn list_all(root: &mut Superblock) {
    if root.kind == AT_REMOVAL {
        root.damaged = root.volumes.iter().map(|volume| volume.id).collect();
    }
}

/// What was left of a volume is on its disk.
pub(super) fn settle(fast: &mut dyn Area, id: u16) -> Result<(), ManageError> {
    change_root(fast, |root| root.damaged.retain(|damaged| *damaged != id))
}
