//! What outlives a loss of power: the metadata, when they are committed, and what waits for that.
//!
//! * Where metadata are not in place, no sub-block that a committed entry calls valid is overwritten, and a
//!   slot that one refers to gets another block only after the next commit (`reuse`).
//! * None of a disk's copy that the disk would lose is relied on by a committed entry (`disks`, `late`).
//! * What is written to the disk past a committed entry is announced by a commit (`regions`).
//!
//! Nothing here reads or writes data: methods say that a commit is due, or which slots are free, and the
//! engine acts.

mod commit;
mod disks;
mod late;
mod recording;
mod regions;
mod reuse;
#[cfg(test)]
mod tests;

pub(super) use regions::{Guard, Regions};

use super::directory::Slots;
use super::timeline::{Gather, Moment, Timeline};
use crate::metadata::{Metadata, RECORDS, Survives};
use crate::presets::Flushing;
use commit::Commits;
use disks::Unflushed;
use late::Late;
use nandscape_policies::hash::KeyMap;
use reuse::Reuse;

/// Insertions after which the metadata are committed though nobody asked for a flush, in a cache of so many
/// slots: a bound for memory, and for what a loss of power costs. A commit takes up to a hundred bytes for
/// each on its way to the store. Each changes two slots, since something leaves for it or it comes from
/// elsewhere; these and a few other changes fill whole blocks of records.
fn commit_after(slots: u32) -> u32 {
    const OTHERS: u32 = 8;
    let half = RECORDS / 2;
    (slots / 256).clamp(RECORDS, 1 << 16).next_multiple_of(half) - OTHERS
}

/// Facts of the metadata, asked for once, and of what is done for them.
pub(super) struct Rules {
    /// Whether data may be overwritten that a committed entry refers to.
    is_in_place: bool,
    /// Whether a slot gets another block only after a commit.
    pub defers_reuse: bool,
    /// Whether clean blocks are to come back after a loss of power, and so must equal the disk.
    keeps_clean: bool,
    pub flushing: Flushing,
    commit_after: u32,
}

/// Metadata, commits, and what is not yet flushed.
pub(super) struct Durability {
    pub metadata: Box<dyn Metadata + Send>,
    pub rules: Rules,
    /// Whether the mode in force makes blocks dirty.
    pub makes_dirty: bool,
    pub commits: Commits,
    pub reuse: Reuse,
    pub regions: Regions,
    pub late: Late,
    /// By volume.
    pub disks: Vec<Unflushed>,
    /// Slots whose filling has not begun, and the sub-blocks that the metadata are not told of before.
    filling: KeyMap,
}

impl Durability {
    pub fn new(metadata: Box<dyn Metadata + Send>, slots: u32, makes_dirty: bool) -> Self {
        let is_in_place = metadata.is_in_place();
        Self {
            rules: Rules {
                is_in_place,
                defers_reuse: metadata.is_reuse_deferred() || !is_in_place,
                keeps_clean: metadata.survives() == Survives::Clean,
                flushing: Flushing::Both,
                commit_after: commit_after(slots),
            },
            makes_dirty,
            commits: Commits::default(),
            reuse: Reuse::new(slots),
            regions: Regions::default(),
            late: Late::new(slots, metadata.as_ref()),
            disks: Vec::new(),
            filling: KeyMap::default(),
            metadata,
        }
    }

    /// A volume has this number from now on, which is that of another one or the next.
    pub fn attach(&mut self, volume: u16) {
        self.disks.resize_with(self.disks.len().max(usize::from(volume) + 1), Unflushed::default);
        self.disks[usize::from(volume)] = Unflushed::default();
    }

    /// What is flushed before metadata are written, from now on.
    pub fn set_flushing(&mut self, flushing: Flushing) {
        self.rules.flushing = flushing;
        self.late.is_kept = flushing.covers_disks() && self.metadata.survives() != Survives::Nothing;
        if !self.late.is_kept {
            self.late.forget();
        }
    }

    /// Whether a block must leave its slot before what it holds there changes.
    pub fn must_move(&self, slot: u32) -> bool {
        !self.rules.is_in_place && self.reuse.committed.has(slot)
    }

    /// Whether what is dirty in a slot goes to the disk only after a commit that speaks of it.
    pub fn must_commit_first(&self, slot: u32) -> bool {
        !self.rules.is_in_place && !self.reuse.committed.has(slot)
    }

    /// Whether a commit is to come before the changes of one block, since the metadata may not have room for
    /// them, or have many changes already.
    pub fn must_make_room(&mut self, slots: &Slots, timeline: &mut Timeline) -> bool {
        let can_settle = self.flush_ahead(timeline);
        can_settle || self.late.has_too_many() && self.need_flushes(slots) || self.lacks_room()
    }

    /// Whether the metadata may not have room for the changes of one block, or have many.
    pub fn lacks_room(&self) -> bool {
        const NOTES: u32 = 8;
        let (noted, room) = (self.metadata.noted(), self.metadata.room().saturating_sub(NOTES));
        // What a flush settles is noted too.
        noted.saturating_add(self.late.absent.len() as u32) > room
            || noted > (4 * self.rules.commit_after).saturating_sub(NOTES)
    }

    /// Whether the metadata have no room for changes of so many slots.
    pub fn is_full_with(&self, changes: u32) -> bool {
        self.metadata.noted().saturating_add(changes) > self.metadata.room()
    }

    /// Everything that was under way is over.
    pub fn forget_times(&mut self) {
        (self.commits.last, self.commits.ahead) = (Moment::PAST, Gather::default());
        self.disks.iter_mut().for_each(Unflushed::forget_times);
        self.late.forget_times();
    }

    /// The fast store is used no more. Gives the slots that waited for a commit; what answers wait for is
    /// still open ([`Durability::settle_open`]).
    pub fn give_up(&mut self) -> Vec<(u32, bool)> {
        self.makes_dirty = false;
        self.late.forget();
        self.filling = KeyMap::default();
        (self.commits.is_due, self.commits.is_due_for_reuse) = (false, false);
        self.reuse.give_up()
    }

    /// Memory of the metadata, and of lists of what waits for a commit or a disk.
    pub fn memory_bytes(&self) -> u64 {
        let waiting =
            self.reuse.waiting_bytes() + self.late.memory_bytes() + self.filling.allocation_size() as u64;
        self.metadata.memory_bytes() + waiting
    }
}
