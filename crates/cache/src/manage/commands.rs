//! The commands.

use super::copying::{copy_out, copy_tail};
use super::fingerprint::first_byte;
use super::held::rewrite;
use super::stamp::{Stamp, judge};
use super::{Beside, Change, Disk, DiskState, Held, ManageError, Mark, Progress, Verdict};
use super::{change_root, fingerprint, look, watch};
use crate::metadata::{self, Area, Entry, Lost, MetadataError, Superblock, VOLUMES_MAX, Volume};
use nandscape_core::StoreError;

/// Makes an empty cache. One that is there, or anything else, is refused unless it is to be replaced, with all that it holds. A cut leaves no cache, if not the one
/// before it.
pub fn create(
    fast: &mut dyn Area,
    kind: &str,
    setup: &metadata::Setup,
    replace: bool,
) -> Result<Superblock, ManageError> {
    if !replace {
        match look(fast) {
            Err(ManageError::Metadata(
                MetadataError::Absent | MetadataError::TooSmall { .. } | MetadataError::Superblock { .. },
            )) => {
                if let Some(offset) = first_byte(fast).map_err(ManageError::Fast)? {
                    return Err(ManageError::NotBlank { offset });
                }
            }
            Err(error) => return Err(error),
            Ok(held) => {
                let dirty_bytes = held.usage(None).dirty_bytes;
                return Err(ManageError::Exists { volumes: held.superblock.volumes.len(), dirty_bytes });
            }
        }
    }
    let opened = metadata::create(kind, setup, fast)?;
    opened.superblock.ok_or(ManageError::Metadata(MetadataError::Absent))
}

/// What a volume is attached with.
#[derive(Clone, Debug)]
pub struct Attach {
    /// Its number, see [`free_id`].
    pub id: u16,
    /// Never used before.
    pub uuid: [u8; 16],
    /// Settings of the cache from then on.
    pub settings: String,
    /// A mark of another cache does not matter.
    pub replace: bool,
}

/// The number of the next volume.
pub fn free_id(superblock: &Superblock) -> u16 {
    let is_free = |id: &u16| superblock.volumes.iter().all(|volume| volume.id != *id);
    (0..u16::MAX).find(is_free).expect("a superblock has room for few volumes")
}

/// Puts a disk behind the cache. Nothing of the disk itself is changed.
pub fn attach(fast: &mut dyn Area, disk: &mut dyn Disk, with: &Attach) -> Result<(), ManageError> {
    let held = look(fast)?;
    let superblock = &held.superblock;
    let slow = |source| ManageError::Disk { volume: with.id, source };
    let count = superblock.volumes.len() + 1;
    if count > VOLUMES_MAX {
        return Err(ManageError::Full { count, max: VOLUMES_MAX });
    }
    if let Beside::Mark(mark) = disk.beside().map_err(slow)? {
        let is_ours = mark.cache == superblock.uuid;
        let is_listed = superblock.volumes.iter().any(|volume| volume.uuid == mark.volume);
        // What a command of this cache left that was cut short is no cache.
        if is_ours && is_listed || !is_ours && !with.replace {
            return Err(ManageError::Taken { cache: mark.cache });
        }
    }
    if held.usage(Some(with.id)).blocks != 0 {
        forget(fast, with.id)?;
    }
    let state = state(disk, &with.uuid).map_err(slow)?;
    let mark = Mark { cache: superblock.uuid, volume: with.uuid, session: 1, closed: Some(state) };
    // The root may have no room, which should be known before the mark is there.
    let stamp = Stamp { session: 1, digest: state.digest() }.encode();
    let volume = Volume { id: with.id, uuid: with.uuid, bytes: state.bytes, stamp };
    let change = |superblock: &mut Superblock| {
        superblock.volumes.push(volume);
        superblock.settings.clone_from(&with.settings);
    };
    let mut trial = superblock.clone();
    change.clone()(&mut trial);
    trial.write()?;
    disk.put_mark(Some(&mark)).map_err(slow)?;
    change_root(fast, change)
}

/// Takes a volume off: its dirty blocks go to the disk, its blocks leave the cache, then the volume goes. The disk is then complete by itself.
pub fn detach(
    fast: &mut dyn Area,
    disk: &mut dyn Disk,
    id: u16,
    settings: &str,
    progress: Progress<'_>,
) -> Result<(), ManageError> {
    let held = look(fast)?;
    judged(&held, disk, id)?;
    copy_to_disks(&held, fast, &mut [(id, &mut *disk)], progress)?;
    remove(fast, id, settings)?;
    disk.put_mark(None).map_err(|source| ManageError::Disk { volume: id, source })
}

/// Takes a volume off without its disk: what is dirty is lost.
pub fn remove(fast: &mut dyn Area, id: u16, settings: &str) -> Result<(), ManageError> {
    volume_of(&look(fast)?.superblock, id)?;
    forget(fast, id)?;
    change_root(fast, |superblock| {
        superblock.volumes.retain(|volume| volume.id != id);
        settings.clone_into(&mut superblock.settings);
    })
}

/// Other settings.
pub fn set(fast: &mut dyn Area, settings: &str) -> Result<(), ManageError> {
    change_root(fast, |superblock| settings.clone_into(&mut superblock.settings))
}

/// Takes the size that a disk has now, after it grew or shrank. What only the cache has must lie within it; what is cached beyond is dropped.
pub fn resize(fast: &mut dyn Area, disk: &mut dyn Disk, id: u16) -> Result<(u64, u64), ManageError> {
    let held = look(fast)?;
    let volume = volume_of(&held.superblock, id)?.clone();
    let slow = |source| ManageError::Disk { volume: id, source };
    let (old, bytes) = (volume.bytes, disk.capacity_bytes());
    changed(&held, disk, id)?;
    if old == bytes {
        return Ok((old, bytes));
    }
    let needed = held.certain(id).map(|range| range.offset + range.len).max().unwrap_or(0);
    if bytes < needed {
        return Err(ManageError::TooSmall { volume: id, bytes, needed });
    }
    let end = old.min(bytes);
    if bytes > old {
        // A sub-block in which the disk ended has what nobody wrote after that end.
        copy_tail(&held, fast, id, disk)?;
    }
    let reaches_past = |entry: &Entry| entry.key.volume() == id && held.within(entry, end) != entry.valid;
    if held.entries.iter().any(|(_, entry)| reaches_past(entry)) {
        rewrite(fast, |entry| {
            let within = if entry.key.volume() == id { held.within(&entry, end) } else { u16::MAX };
            Some(Entry { valid: entry.valid & within, dirty: entry.dirty & within, ..entry })
        })?;
    }
    let state = state(disk, &volume.uuid).map_err(slow)?;
    // Changing the size of a disk changes the time of its last change as well, so there is nothing to compare with.
    let session = Stamp::decode(&volume.stamp).session;
    let mark =
        Mark { cache: held.superblock.uuid, volume: volume.uuid, session: session + 1, closed: Some(state) };
    disk.put_mark(Some(&mark)).map_err(slow)?;
    change_root(fast, |superblock| {
        for volume in superblock.volumes.iter_mut().filter(|volume| volume.id == id) {
            volume.bytes = bytes;
            volume.stamp = Stamp { session: session + 1, digest: state.digest() }.encode();
        }
    })?;
    Ok((old, bytes))
}

/// Writes all dirty blocks of these volumes to their disks; they stay cached.
pub fn clean(
    fast: &mut dyn Area,
    disks: &mut [(u16, &mut dyn Disk)],
    progress: Progress<'_>,
) -> Result<(), ManageError> {
    let held = look(fast)?;
    for (id, disk) in disks.iter_mut() {
        judged(&held, *disk, *id)?;
    }
    copy_to_disks(&held, fast, disks, progress)?;
    let ids: Vec<u16> = disks.iter().map(|(id, _)| *id).collect();
    let is_of_them = |entry: &Entry| ids.contains(&entry.key.volume());
    rewrite(fast, |entry| Some(if is_of_them(&entry) { Entry { dirty: 0, ..entry } } else { entry }))?;
    disks.iter_mut().try_for_each(|(id, disk)| end(fast, *disk, *id))
}

fn copy_to_disks(
    held: &Held,
    fast: &mut dyn Area,
    disks: &mut [(u16, &mut dyn Disk)],
    progress: Progress<'_>,
) -> Result<(), ManageError> {
    let bytes = |id: u16| held.usage(Some(id)).dirty_bytes;
    let all: u64 = disks.iter().map(|(id, _)| bytes(*id)).sum();
    let mut before = 0;
    for (id, disk) in disks.iter_mut() {
        begin(fast, *disk, *id, &held.dirty_or_doubted(*id))?;
        copy_out(held, fast, *id, *disk, true, &mut |done, _| progress(before + done, all))?;
        before += bytes(*id);
    }
    Ok(())
}

/// Writes the dirty blocks of a volume whose disk was used without its cache, over whatever is there now. The volume has no cached blocks then.
pub fn salvage(
    fast: &mut dyn Area,
    disk: &mut dyn Disk,
    id: u16,
    progress: Progress<'_>,
) -> Result<(), ManageError> {
    let held = look(fast)?.certain_only();
    changed(&held, disk, id)?;
    // No session: until its blocks have left the cache, the disk has to count as one that was used without it.
    copy_out(&held, fast, id, disk, false, progress)?;
    forget(fast, id)?;
    begin(fast, disk, id, &[])?;
    end(fast, disk, id)
}

/// Copies the dirty blocks of a volume to the same offsets of something else. Nothing changes in the cache.
pub fn copy_dirty(
    fast: &mut dyn Area,
    target: &mut dyn Disk,
    id: u16,
    progress: Progress<'_>,
) -> Result<(), ManageError> {
    let held = look(fast)?.certain_only();
    volume_of(&held.superblock, id)?;
    copy_out(&held, fast, id, target, false, progress)
}

/// Drops all blocks of a volume from the cache, dirty ones too.
pub fn forget(fast: &mut dyn Area, id: u16) -> Result<(), ManageError> {
    rewrite(fast, |entry| (entry.key.volume() != id).then_some(entry))
}

/// Whether a disk is as the cache left it.
pub fn check(held: &Held, disk: &mut dyn Disk, id: u16) -> Result<Verdict, ManageError> {
    let volume = volume_of(&held.superblock, id)?;
    let slow = |source| ManageError::Disk { volume: id, source };
    let state = state(disk, &volume.uuid).map_err(slow)?;
    let (beside, alive) = (disk.beside().map_err(slow)?, disk.alive_ns().map_err(slow)?);
    let session = Stamp::decode(&volume.stamp).session;
    let watched = watch::is_same(held, disk, volume, session).map_err(slow)?;
    Ok(judge(&held.superblock.uuid, volume, beside, &state, alive, watched))
}

/// The disk of another volume, or of another cache, is an error. If not, gives how the disk has changed.
fn changed(held: &Held, disk: &mut dyn Disk, id: u16) -> Result<Option<Change>, ManageError> {
    match check(held, disk, id)? {
        Verdict::Changed(change @ Change::OtherCache { .. }) => {
            Err(ManageError::WrongDisk { volume: id, change })
        }
        Verdict::Changed(change) => Ok(Some(change)),
        Verdict::Same | Verdict::Unknown => Ok(None),
    }
}

/// A changed disk is an error if there is anything that it does not have.
fn judged(held: &Held, disk: &mut dyn Disk, id: u16) -> Result<Option<Change>, ManageError> {
    let Some(change) = changed(held, disk, id)? else { return Ok(None) };
    match held.certain_bytes(id) {
        0 => Ok(Some(change)),
        dirty_bytes => Err(ManageError::Changed { volume: id, change, dirty_bytes }),
    }
}

/// Before a cache is opened over its disk: compares both, and begins a session. If the disk was used without its cache, what is cached of it is dropped, and the
/// reason is given; where something would be lost, that is an error. `trust`: it was not, whatever it looks like.
pub fn take_up(
    fast: &mut dyn Area,
    disk: &mut dyn Disk,
    id: u16,
    trust: bool,
) -> Result<Option<Change>, ManageError> {
    let held = look(fast)?;
    let change = if trust { changed(&held, disk, id).map(|_| None) } else { judged(&held, disk, id) }?;
    if change.is_some() && held.usage(Some(id)).blocks != 0 {
        forget(fast, id)?;
    }
    begin(fast, disk, id, &[])?;
    Ok(change)
}

/// The cache may write to the disk from now on: to these ranges, or wherever a [`super::Watch`] is told of.
pub fn begin(fast: &mut dyn Area, disk: &mut dyn Disk, id: u16, writes: &[Lost]) -> Result<(), ManageError> {
    let (superblock, _) = Superblock::read(fast)?;
    let volume = volume_of(&superblock, id)?;
    let session = Stamp::decode(&volume.stamp).session + 1;
    let mark = Mark { cache: superblock.uuid, volume: volume.uuid, session, closed: None };
    disk.put_mark(Some(&mark)).map_err(|source| ManageError::Disk { volume: id, source })?;
    watch::begin(fast, &superblock, disk, volume, session, writes).map_err(ManageError::Fast)?;
    stamp(fast, id, Stamp { session, digest: 0 })
}

/// The cache has written to the disk for the last time, and nothing else may have since it began.
pub fn end(fast: &mut dyn Area, disk: &mut dyn Disk, id: u16) -> Result<(), ManageError> {
    let (superblock, _) = Superblock::read(fast)?;
    let volume = volume_of(&superblock, id)?;
    let slow = |source| ManageError::Disk { volume: id, source };
    disk.flush().map_err(slow)?;
    let (session, state) = (Stamp::decode(&volume.stamp).session, state(disk, &volume.uuid).map_err(slow)?);
    let mark = Mark { cache: superblock.uuid, volume: volume.uuid, session, closed: Some(state) };
    disk.put_mark(Some(&mark)).map_err(slow)?;
    stamp(fast, id, Stamp { session, digest: state.digest() })
}

fn stamp(fast: &mut dyn Area, id: u16, stamp: Stamp) -> Result<(), ManageError> {
    change_root(fast, |superblock| {
        let of_it = superblock.volumes.iter_mut().filter(|volume| volume.id == id);
        of_it.for_each(|volume| volume.stamp = stamp.encode());
    })
}

fn state(disk: &mut dyn Disk, uuid: &[u8; 16]) -> Result<DiskState, StoreError> {
    let fingerprint = fingerprint(disk, uuid)?;
    let changed_ns = disk.changed_ns()?.unwrap_or(0);
    Ok(DiskState { bytes: disk.capacity_bytes(), changed_ns, fingerprint })
}

fn volume_of(superblock: &Superblock, id: u16) -> Result<&Volume, ManageError> {
    superblock.volumes.iter().find(|volume| volume.id == id).ok_or(ManageError::NoVolume(id))
}
