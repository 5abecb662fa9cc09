//! The commands.

use super::copying::{copy_out, copy_tail};
use super::fingerprint::first_byte;
use super::held::{repair, rewrite};
use super::stamp::{Stamp, judge};
use super::{
    Beside, Change, Counts, Disk, DiskState, GivenUp, Held, ManageError, Mark, Progress, Result, Verdict,
};
use super::{change_root, damage, fingerprint, given_up, look, watch};
use crate::metadata::{self, Area, Entry, Lost, MetadataError, Superblock, VOLUMES_MAX, Volume};
use nandscape_core::StoreResult;

/// Makes an empty cache. One that is there, or anything else, is refused unless it is to be replaced, with
/// all that it holds. A cut leaves no cache, if not the one before it.
pub fn create(fast: &mut dyn Area, kind: &str, setup: &metadata::Setup, replace: bool) -> Result<Superblock> {
    if !replace {
        match look(fast) {
            Err(ManageError::Metadata(
                MetadataError::Absent | MetadataError::TooSmall { .. } | MetadataError::Superblock(_),
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
pub fn attach(fast: &mut dyn Area, disk: &mut dyn Disk, with: &Attach) -> Result<()> {
    let held = look(fast)?;
    let superblock = &held.superblock;
    let slow = |source| ManageError::Disk { volume: with.id, source };
    let count = superblock.volumes.len() + 1;
    if count > VOLUMES_MAX {
        return Err(ManageError::Refused(format!("{count} volumes: expected at most {VOLUMES_MAX}")));
    }
    if let Beside::Mark(mark) = disk.beside().map_err(slow)? {
        let is_ours = mark.cache == superblock.uuid;
        let is_listed = superblock.volumes.iter().any(|volume| volume.uuid == mark.volume);
        // What a command of this cache left that was cut short is no cache.
        if is_ours && is_listed || !is_ours && !with.replace {
            return Err(ManageError::Taken { cache: mark.cache });
        }
    }
    if held.usage(Some(with.id)).blocks != 0 || held.report.lost_session {
        // Lists the volumes that a lost session may concern, of which this one is none.
        forget(fast, with.id)?;
    }
    let state = state(disk, &with.uuid).map_err(slow)?;
    let mark =
        Mark { cache: superblock.uuid, volume: with.uuid, session: 1, closed: Some(state), given_up: None };
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

/// Takes a volume off: its dirty blocks go to the disk, its blocks leave the cache, then the volume goes. The
/// disk is then complete by itself.
pub fn detach(
    fast: &mut dyn Area,
    disk: &mut dyn Disk,
    id: u16,
    settings: &str,
    progress: Progress<'_>,
) -> Result<()> {
    let (held, _) = settled(fast, disk, id, false)?;
    copy_to_disks(&held, fast, &mut [(id, &mut *disk)], progress)?;
    remove(fast, id, settings)?;
    disk.put_mark(None).map_err(|source| ManageError::Disk { volume: id, source })
}

/// Takes a volume off without its disk: what is dirty is lost.
pub fn remove(fast: &mut dyn Area, id: u16, settings: &str) -> Result<()> {
    look(fast)?.volume(id)?;
    forget(fast, id)?;
    change_root(fast, |superblock| {
        superblock.volumes.retain(|volume| volume.id != id);
        superblock.damaged.retain(|damaged| *damaged != id);
        settings.clone_into(&mut superblock.settings);
    })
}

/// Other settings.
pub fn set(fast: &mut dyn Area, settings: &str) -> Result<()> {
    change_root(fast, |superblock| settings.clone_into(&mut superblock.settings))
}

/// Other settings of a cache that is open, of whose metadata `held` is the superblock
/// ([`Metadata::superblock`](crate::metadata::Metadata::superblock)): durable when this returns. After an
/// error the next start may have the old ones or the new ones, until the cache is removed cleanly.
pub fn set_open(fast: &mut dyn Area, held: &mut Superblock, settings: &str) -> Result<()> {
    let next = Superblock { generation: held.generation + 1, settings: settings.to_owned(), ..held.clone() };
    metadata::apply(fast, &[next.write()?]).map_err(ManageError::Fast)?;
    *held = next;
    Ok(())
}

/// Takes the size that a disk has now, after it grew or shrank. What only the cache has must lie within it;
/// what is cached beyond is dropped.
pub fn resize(fast: &mut dyn Area, disk: &mut dyn Disk, id: u16) -> Result<(u64, u64)> {
    let mut held = look(fast)?;
    damage::check(&held, id)?;
    if let Some(change @ Change::GivenUp(_)) = changed(&held, disk, id)? {
        refuse_lost(id, &change)?;
        drop_stale(fast, id, &change)?;
        held = look(fast)?;
    }
    let volume = held.volume(id)?.clone();
    let slow = |source| ManageError::Disk { volume: id, source };
    let (old, bytes) = (volume.bytes, disk.capacity_bytes());
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
    // Changing the size of a disk changes the time of its last change as well, so there is nothing to compare
    // with.
    let session = Stamp::decode(&volume.stamp).session;
    let mark = Mark {
        cache: held.superblock.uuid,
        volume: volume.uuid,
        session: session + 1,
        closed: Some(state),
        given_up: None,
    };
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
pub fn clean(fast: &mut dyn Area, disks: &mut [(u16, &mut dyn Disk)], progress: Progress<'_>) -> Result<()> {
    for (id, disk) in disks.iter_mut() {
        settled(fast, *disk, *id, false)?;
    }
    let held = look(fast)?;
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
) -> Result<()> {
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

/// Writes the dirty blocks of a volume whose disk was used without its cache, over whatever is there now. The
/// volume has no cached blocks then.
pub fn salvage(fast: &mut dyn Area, disk: &mut dyn Disk, id: u16, progress: Progress<'_>) -> Result<()> {
    let mut held = look(fast)?.certain_only();
    match changed(&held, disk, id)? {
        Some(Change::GivenUp(GivenUp { counts: Counts::Unknown, .. })) if held.certain_bytes(id) != 0 => {
            return Err(ManageError::Unrecorded(id));
        }
        Some(Change::GivenUp(GivenUp { counts, .. })) => held.count_only(id, &counts),
        _ => {}
    }
    // No session: until its blocks have left the cache, the disk has to count as one that was used without
    // it.
    copy_out(&held, fast, id, disk, false, progress)?;
    forget(fast, id)?;
    damage::settle(fast, id)?;
    begin(fast, disk, id, &[])?;
    end(fast, disk, id)
}

/// Copies the dirty blocks of a volume to the same offsets of something else: those that count, if the cache
/// was given up ([`given_up::given_up`]). Nothing changes in the cache.
pub fn copy_dirty(
    fast: &mut dyn Area,
    target: &mut dyn Disk,
    id: u16,
    given_up: Option<&GivenUp>,
    progress: Progress<'_>,
) -> Result<()> {
    let mut held = look(fast)?.certain_only();
    held.volume(id)?;
    if let Some(given_up) = given_up {
        held.count_only(id, &given_up.counts);
    }
    copy_out(&held, fast, id, target, false, progress)
}

/// Drops all blocks of a volume from the cache, dirty ones too.
pub fn forget(fast: &mut dyn Area, id: u16) -> Result<()> {
    repair(fast, |entry| (entry.key.volume() != id).then_some(entry))
}

/// Whether a disk is as the cache left it.
pub fn check(held: &Held, disk: &mut dyn Disk, id: u16) -> Result<Verdict> {
    let volume = held.volume(id)?;
    let slow = |source| ManageError::Disk { volume: id, source };
    let (beside, alive) = (disk.beside().map_err(slow)?, disk.alive_ns().map_err(slow)?);
    let given_up = given_up::found(&held.superblock, &held.watched, volume, &beside);
    let given_up = match given_up {
        Some(given_up) if given_up.counts != Counts::Dirty => {
            return Ok(Verdict::Changed(Change::GivenUp(given_up)));
        }
        given_up => given_up.map(|given_up| Verdict::Changed(Change::GivenUp(given_up))),
    };
    let state = state(disk, &volume.uuid).map_err(slow)?;
    let session = Stamp::decode(&volume.stamp).session;
    let watched = watch::is_same(&held.watched, disk, volume, session).map_err(slow)?;
    Ok(match (judge(&held.superblock.uuid, volume, &beside, &state, alive, watched), given_up) {
        // As after a kill: what is dirty counts only if the disk was not used otherwise.
        (Verdict::Same | Verdict::Unknown, Some(given_up)) => given_up,
        (verdict, _) => verdict,
    })
}

/// The disk of another volume, or of another cache, is an error. If not, gives how the disk has changed.
fn changed(held: &Held, disk: &mut dyn Disk, id: u16) -> Result<Option<Change>> {
    match check(held, disk, id)? {
        Verdict::Changed(change @ Change::OtherCache { .. }) => {
            Err(ManageError::WrongDisk { volume: id, change })
        }
        Verdict::Changed(change) => Ok(Some(change)),
        Verdict::Same | Verdict::Unknown => Ok(None),
    }
}

/// A changed disk is an error if there is anything that it does not have.
fn judged(held: &Held, disk: &mut dyn Disk, id: u16) -> Result<Option<Change>> {
    let Some(change) = changed(held, disk, id)? else { return Ok(None) };
    refuse_lost(id, &change)?;
    if matches!(change, Change::GivenUp(_)) {
        return Ok(Some(change));
    }
    match held.certain_bytes(id) {
        0 => Ok(Some(change)),
        dirty_bytes => Err(ManageError::Changed { volume: id, change, dirty_bytes }),
    }
}

/// A cache that was given up with dirty data that the disk does not have is an error.
fn refuse_lost(id: u16, change: &Change) -> Result<()> {
    match change {
        Change::GivenUp(given_up) if given_up.counts != Counts::Dirty && !given_up.counts.is_nothing() => {
            Err(ManageError::GivenUp { volume: id, given_up: given_up.clone() })
        }
        _ => Ok(()),
    }
}

/// Drops what is cached of a volume whose disk has changed, as far as it does not count.
fn drop_stale(fast: &mut dyn Area, id: u16, change: &Change) -> Result<()> {
    let Change::GivenUp(GivenUp { counts: Counts::Dirty, .. }) = change else { return forget(fast, id) };
    rewrite(fast, |entry| {
        let is_of_it = entry.key.volume() == id;
        Some(if is_of_it { Entry { valid: entry.dirty, ..entry } } else { entry })
    })
}

/// What the cache holds once a volume whose disk has changed is dropped from it as far as it does not count,
/// and why that was.
fn settled(fast: &mut dyn Area, disk: &mut dyn Disk, id: u16, trust: bool) -> Result<(Held, Option<Change>)> {
    let held = look(fast)?;
    let change = changed(&held, disk, id)?;
    // Where the disk has everything, nothing that is missing counts.
    let has_all = matches!(&change, Some(Change::GivenUp(given_up)) if given_up.counts.is_nothing());
    if !has_all {
        damage::check(&held, id)?;
    }
    let change = match change {
        // However much the disk is trusted: what the cache has is older.
        Some(Change::GivenUp(_)) => judged(&held, disk, id)?,
        _ if trust => None,
        _ => judged(&held, disk, id)?,
    };
    let is_damaged = damage::is_suspect(&held, id);
    match &change {
        Some(change) if is_damaged || held.usage(Some(id)).blocks != 0 => drop_stale(fast, id, change)?,
        _ => return Ok((held, change)),
    }
    if is_damaged {
        damage::settle(fast, id)?;
    }
    Ok((look(fast)?, change))
}

/// Before a cache is opened over its disk: compares both, and begins a session. If the disk was used without
/// its cache, or the cache was given up, what is cached of it is dropped as far as it does not count, and the
/// reason is given; where something would be lost, that is an error. `trust`: the disk was not used, whatever
/// it looks like.
pub fn take_up(fast: &mut dyn Area, disk: &mut dyn Disk, id: u16, trust: bool) -> Result<Option<Change>> {
    let (_, change) = settled(fast, disk, id, trust)?;
    begin(fast, disk, id, &[])?;
    Ok(change)
}

/// The cache may write to the disk from now on: to these ranges, or wherever a [`super::Watch`] is told of.
/// After [`ManageError::Stamp`] it may not, and nothing has changed.
pub fn begin(fast: &mut dyn Area, disk: &mut dyn Disk, id: u16, writes: &[Lost]) -> Result<()> {
    let (superblock, _) = Superblock::read(fast)?;
    let volume = volume_of(&superblock, id)?;
    let session = Stamp::decode(&volume.stamp).session + 1;
    let (cache, volume_uuid) = (superblock.uuid, volume.uuid);
    let mark = Mark { cache, volume: volume_uuid, session, closed: None, given_up: None };
    disk.put_mark(Some(&mark)).map_err(|source| ManageError::Stamp { volume: id, source })?;
    watch::begin(fast, &superblock, disk, volume, session, writes).map_err(ManageError::Fast)?;
    stamp(fast, id, Stamp { session, digest: 0 })
}

/// The cache has written to the disk for the last time, and nothing else may have since it began. Of no
/// effect if the cache was given up: the next start has to know.
pub fn end(fast: &mut dyn Area, disk: &mut dyn Disk, id: u16) -> Result<()> {
    let (superblock, _) = Superblock::read(fast)?;
    let volume = volume_of(&superblock, id)?;
    let slow = |source| ManageError::Disk { volume: id, source };
    let watched = watch::read(fast, &superblock).map_err(ManageError::Fast)?;
    if given_up::found(&superblock, &watched, volume, &disk.beside().map_err(slow)?).is_some() {
        return Ok(());
    }
    disk.flush().map_err(slow)?;
    let (session, state) = (Stamp::decode(&volume.stamp).session, state(disk, &volume.uuid).map_err(slow)?);
    let (cache, volume_uuid) = (superblock.uuid, volume.uuid);
    let mark = Mark { cache, volume: volume_uuid, session, closed: Some(state), given_up: None };
    disk.put_mark(Some(&mark)).map_err(slow)?;
    stamp(fast, id, Stamp { session, digest: state.digest() })
}

fn stamp(fast: &mut dyn Area, id: u16, stamp: Stamp) -> Result<()> {
    change_root(fast, |superblock| {
        let of_it = superblock.volumes.iter_mut().filter(|volume| volume.id == id);
        of_it.for_each(|volume| volume.stamp = stamp.encode());
    })
}

fn state(disk: &mut dyn Disk, uuid: &[u8; 16]) -> StoreResult<DiskState> {
    let fingerprint = fingerprint(disk, uuid)?;
    let changed_ns = disk.changed_ns()?.unwrap_or(0);
    Ok(DiskState { bytes: disk.capacity_bytes(), changed_ns, fingerprint })
}

fn volume_of(superblock: &Superblock, id: u16) -> Result<&Volume> {
    superblock.volumes.iter().find(|volume| volume.id == id).ok_or(ManageError::NoVolume(id))
}
