//! What a cache holds, read and changed without its engine.

use super::counts::Counts;
use super::{ManageError, Result, watch};
use crate::metadata::{
    self, AT_REMOVAL, Area, Entry, Lost, Metadata, Opened, Report, Root, Superblock, Table, Volume, Write,
    apply, dirty_of, sub_bytes,
};
use nandscape_core::Extent;
use std::collections::{BTreeMap, BTreeSet};

/// What is on the fast store. Nothing was written to find it out.
#[derive(Clone, Debug)]
pub struct Held {
    /// The root.
    pub superblock: Superblock,
    /// What the opening found.
    pub report: Report,
    /// Slots in use.
    pub entries: Vec<(u32, Entry)>,
    /// Of these, slots that count as dirty only because the disk may be newer.
    pub doubted: BTreeSet<u32>,
    /// What is known of the disks of sessions that were cut short.
    pub(super) watched: Vec<watch::Record>,
    /// Ranges of volumes outside of which nothing dirty of them counts, in order.
    only: BTreeMap<u16, Vec<Extent>>,
}

/// How much of a cache a volume has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Blocks cached.
    pub blocks: u64,
    /// Of those, dirty ones.
    pub dirty_blocks: u64,
    /// Bytes that the disk does not have.
    pub dirty_bytes: u64,
}

/// Reads it.
pub fn look(fast: &mut dyn Area) -> Result<Held> {
    let Opened { superblock, found, .. } = metadata::open(fast)?;
    let superblock = superblock.ok_or(metadata::MetadataError::Absent)?;
    let doubted = found.doubted.into_iter().collect();
    let watched = watch::read(fast, &superblock).map_err(ManageError::Fast)?;
    Ok(Held {
        superblock,
        report: found.report,
        entries: found.entries,
        doubted,
        watched,
        only: BTreeMap::new(),
    })
}

impl Held {
    pub(super) fn volume(&self, id: u16) -> Result<&Volume> {
        self.superblock.volumes.iter().find(|volume| volume.id == id).ok_or(ManageError::NoVolume(id))
    }

    /// Without the dirty blocks of a volume that do not count, since the cache was given up.
    pub fn count_only(&mut self, volume: u16, counts: &Counts) {
        if let Counts::Within(ranges) = counts {
            self.only.insert(volume, ranges.clone());
        }
    }

    /// What the volume has; of all volumes for `None`.
    pub fn usage(&self, volume: Option<u16>) -> Usage {
        let mut usage = Usage::default();
        let of_it = |entry: &&Entry| volume.is_none_or(|volume| entry.key.volume() == volume);
        for entry in self.entries.iter().map(|(_, entry)| entry).filter(of_it) {
            let dirty_bytes = self.ranges(entry).map(|range| range.len).sum::<u64>();
            usage.blocks += 1;
            usage.dirty_blocks += u64::from(dirty_bytes != 0);
            usage.dirty_bytes += dirty_bytes;
        }
        usage
    }

    /// Ranges that the disk of a volume certainly does not have, in any order.
    pub(super) fn certain(&self, volume: u16) -> impl Iterator<Item = Lost> + '_ {
        let is_certain =
            move |slot: &u32, entry: &Entry| entry.key.volume() == volume && !self.doubted.contains(slot);
        let entries = self.entries.iter().filter(move |(slot, entry)| is_certain(slot, entry));
        entries.flat_map(|(_, entry)| self.ranges(entry))
    }

    /// Bytes of these.
    pub fn certain_bytes(&self, volume: u16) -> u64 {
        self.certain(volume).map(|range| range.len).sum()
    }

    /// Ranges of the volume that its disk certainly does not have, in order.
    pub fn dirty(&self, volume: u16) -> Vec<Lost> {
        metadata::merged(self.certain(volume).collect())
    }

    /// Ranges that may be written to the disk of the volume when it is cleaned.
    pub(super) fn dirty_or_doubted(&self, volume: u16) -> Vec<Lost> {
        let of_it = self.entries.iter().map(|(_, entry)| entry).filter(|entry| entry.key.volume() == volume);
        metadata::merged(of_it.flat_map(|entry| self.ranges(entry)).collect())
    }

    /// Without what counts as dirty only because the disk may be newer.
    #[must_use]
    pub(super) fn certain_only(mut self) -> Self {
        self.entries.retain(|(slot, _)| !self.doubted.contains(slot));
        self
    }

    /// Valid sub-blocks of an entry that end at `end` or before.
    pub(super) fn within(&self, entry: &Entry, end: u64) -> u16 {
        let block = u64::from(self.superblock.shape.block_bytes);
        let room = end.saturating_sub(entry.key.block().saturating_mul(block));
        let whole = room / u64::from(sub_bytes(self.superblock.shape.block_bytes));
        if whole >= 16 { entry.valid } else { entry.valid & ((1 << whole) - 1) }
    }

    /// Dirty ranges of an entry, no further than its volume.
    pub(super) fn ranges(&self, entry: &Entry) -> impl Iterator<Item = Lost> + '_ {
        let volume = self.superblock.volumes.iter().find(|volume| volume.id == entry.key.volume());
        let end = volume.map_or(0, |volume| volume.bytes);
        let ranges = dirty_of(entry, self.superblock.shape.block_bytes);
        let inside = ranges.filter(move |range| range.offset < end);
        let inside = inside.map(move |range| Lost { len: range.len.min(end - range.offset), ..range });
        let only = self.only.get(&entry.key.volume()).map_or(EVERYTHING, |ranges| ranges);
        inside.flat_map(move |range| common(only, range))
    }
}

const EVERYTHING: &[Extent] = &[Extent { offset: 0, len: u64::MAX }];

/// The parts of a range that are within these, which are in order.
fn common(within: &[Extent], range: Lost) -> impl Iterator<Item = Lost> + '_ {
    let end = range.offset + range.len;
    let first = within.partition_point(|other| other.end() <= range.offset);
    within[first..].iter().take_while(move |other| other.offset < end).map(move |other| {
        let offset = other.offset.max(range.offset);
        Lost { volume: range.volume, offset, len: other.end().min(end) - offset }
    })
}

/// Changes volumes or settings by one write. A cut leaves the one or the other.
pub fn change_root(fast: &mut dyn Area, change: impl FnOnce(&mut Superblock)) -> Result<()> {
    let Root { mut superblock, is_sure, unreadable, .. } = Root::read(fast)?;
    if let Some(error) = unreadable {
        // It may be the newest one, in whose place the next one would be written.
        return Err(ManageError::Fast(error));
    }
    if !is_sure {
        list_all(&mut superblock);
    }
    change(&mut superblock);
    superblock.generation += 1;
    apply(fast, &[superblock.write()?]).map_err(ManageError::Fast)
}

/// The newest superblock is damaged, and the next one takes its place: with `at-removal` nobody could tell
/// after that whether there was a removal.
fn list_all(root: &mut Superblock) {
    if root.kind == AT_REMOVAL {
        root.damaged = root.volumes.iter().map(|volume| volume.id).collect();
    }
}

struct Slots(Vec<Option<Entry>>);

impl Table for Slots {
    fn entry(&self, slot: u32) -> Option<Entry> {
        self.0[slot as usize]
    }
}

/// Gives every entry what `change` says, and leaves the cache as after a clean removal. A cut leaves some
/// entries changed and others not, each of them whole; so `change` must be right for each by itself. Metadata
/// that hides dirty blocks, or cannot be read now, is an error, and nothing is written.
pub(super) fn rewrite(fast: &mut dyn Area, change: impl FnMut(Entry) -> Option<Entry>) -> Result<()> {
    let held = look(fast)?;
    held.report.check()?;
    rewrite_held(fast, &held, change)
}

/// As [`rewrite`], over damage too: the superblock lists the volumes that it concerns.
pub(super) fn repair(fast: &mut dyn Area, change: impl FnMut(Entry) -> Option<Entry>) -> Result<()> {
    let held = look(fast)?;
    rewrite_held(fast, &held, change)
}

fn rewrite_held(
    fast: &mut dyn Area,
    held: &Held,
    mut change: impl FnMut(Entry) -> Option<Entry>,
) -> Result<()> {
    let stays_dirty = |(_, entry): &&(u32, Entry)| change(*entry).is_some_and(|new| new.dirty != 0);
    let dirty: Vec<&Entry> = held.entries.iter().filter(stays_dirty).map(|(_, entry)| entry).collect();
    if held.superblock.kind == AT_REMOVAL && !dirty.is_empty() {
        let dirty_bytes: u64 =
            dirty.into_iter().flat_map(|entry| held.ranges(entry)).map(|range| range.len).sum();
        return Err(ManageError::Refused(format!(
            "{dirty_bytes} dirty bytes of other volumes: expected none, since metadata '{}' would lose them in a loss of power; clean them first",
            held.superblock.kind
        )));
    }
    list(fast, held)?;
    let Opened { mut metadata, found, repairs, .. } = metadata::open(fast)?;
    if !held.report.hides_dirty() {
        // It could be read a moment ago.
        found.report.check()?;
    }
    apply(fast, &repairs).map_err(ManageError::Fast)?;
    let mut slots = Slots(vec![None; metadata.slots() as usize]);
    found.entries.iter().for_each(|(slot, entry)| slots.0[*slot as usize] = Some(*entry));
    // What the disk may have newer than a clean block is settled now: such blocks are dirty, or gone.
    metadata.expect_writes(0);
    for (slot, entry) in found.entries {
        let new = change(entry).filter(|new| new.valid != 0);
        if new != Some(entry) || held.doubted.contains(&slot) {
            slots.0[slot as usize] = new;
            metadata.note(slot, new);
            if metadata.noted() >= metadata.room() {
                commit(fast, metadata.as_mut(), &slots)?;
            }
        }
    }
    commit(fast, metadata.as_mut(), &slots)?;
    close(fast, metadata.as_mut(), &slots)
}

/// Before metadata is repaired: lists every volume if blocks of any may be missing.
fn list(fast: &mut dyn Area, held: &Held) -> Result<()> {
    let root = &held.superblock;
    let is_listed = root.volumes.iter().all(|volume| root.damaged.contains(&volume.id));
    if !held.report.hides_dirty() && !held.report.lost_session || is_listed {
        return Ok(());
    }
    change_root(fast, |root| root.damaged = root.volumes.iter().map(|volume| volume.id).collect())
}

fn commit(fast: &mut dyn Area, metadata: &mut dyn Metadata, slots: &Slots) -> Result<()> {
    let mut writes = Vec::new();
    metadata.commit(slots, &mut writes);
    apply(fast, &writes).map_err(ManageError::Fast)?;
    metadata.committed();
    Ok(())
}

/// The superblock says that the rest is there, so it comes after a flush of the rest.
fn close(fast: &mut dyn Area, metadata: &mut dyn Metadata, slots: &Slots) -> Result<()> {
    let mut writes: Vec<Write> = Vec::new();
    metadata.close(slots, &mut writes);
    let (root, rest) = writes.split_last().expect("a removal writes a superblock");
    apply(fast, rest).map_err(ManageError::Fast)?;
    apply(fast, std::slice::from_ref(root)).map_err(ManageError::Fast)
}
