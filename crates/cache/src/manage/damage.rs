//! Volumes of which dirty blocks may be missing, since metadata that may have named them is damaged.
//!
//! Their disks may be older than what was flushed, so nothing starts over them. The repair of the metadata
//! makes the damage invisible; so before it the volumes are listed in the superblock, until their data was
//! salvaged or they were taken off.

use super::held::repair;
use super::{Held, ManageError, Result, change_root, look};
use crate::metadata::{AT_REMOVAL, Area, Superblock};

/// Whether dirty blocks of the volume may be missing.
pub(super) fn is_suspect(held: &Held, id: u16) -> bool {
    held.report.hides_dirty() || held.report.lost_session || held.superblock.damaged.contains(&id)
}

/// An error for such a volume.
pub fn check(held: &Held, id: u16) -> Result<()> {
    if held.report.lost_session && !held.report.hides_dirty() {
        return Err(ManageError::LostSession { volume: id });
    }
    if is_suspect(held, id) { Err(ManageError::Damaged { volume: id }) } else { Ok(()) }
}

/// From now on somebody may make blocks dirty that only a clean end of the session writes down. Of no effect
/// with metadata of other kinds.
pub fn begin_dirty(fast: &mut dyn Area) -> Result<()> {
    if Superblock::read(fast)?.0.kind != AT_REMOVAL {
        return Ok(());
    }
    change_root(fast, |root| root.may_lose = true)
}

/// Goes on without the dirty blocks of a volume that a session which was cut short has lost; gives whether
/// there was one. Other volumes of the cache still count as suspect.
pub fn discard_lost(fast: &mut dyn Area, id: u16) -> Result<bool> {
    let held = look(fast)?;
    let is_of_kind = held.superblock.kind == AT_REMOVAL && !held.report.hides_dirty();
    if !is_of_kind || !is_suspect(&held, id) {
        return Ok(false);
    }
    if held.report.lost_session {
        // Lists every volume, and leaves the cache as after a clean end.
        repair(fast, Some)?;
    }
    settle(fast, id)?;
    Ok(true)
}

/// What was left of a volume is on its disk.
pub(super) fn settle(fast: &mut dyn Area, id: u16) -> Result<()> {
    change_root(fast, |root| root.damaged.retain(|damaged| *damaged != id))
}
