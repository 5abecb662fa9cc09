//! Dirty blocks on their way to the disk: what the cleaning policies are told, which blocks their plans mean,
//! and how these are put together to disk writes.
//!
//! Nothing here reads or writes data: the engine does what a plan says, and tells what has begun and ended.

mod batch;
mod choose;
mod progress;
#[cfg(test)]
mod tests;

pub(super) use batch::{Begun, Part, Pending};

use super::directory::{Directory, Slots};
use crate::dirty::{DirtyIndex, Kept};
use nandscape_core::SimTime;
use nandscape_policies::BlockKey;
use nandscape_policies::cleaning::{Cleaning, Needs, Plan, View};
use nandscape_policies::eviction::Eviction;
use progress::Progress;

/// After an error of a disk, cleaning pauses for so long.
const RETRY_NS: u64 = 1_000_000_000;

/// A policy.
pub(super) struct Member {
    policy: Box<dyn Cleaning + Send>,
    pub needs: Needs,
    again: Option<SimTime>,
}

impl Member {
    /// What it wants to begin.
    pub fn plan(&mut self, view: &View) -> Plan {
        let plan = self.policy.plan(view);
        self.again = plan.again.map(|again| again.max(view.at + 1));
        plan
    }
}

/// What cleaning needs beside the slots. Without policies nothing is kept of dirty blocks.
#[derive(Default)]
pub(super) struct Writeback {
    /// The policies; taken while they are asked one after the other.
    pub members: Vec<Member>,
    /// Dirty blocks; ages, if kept, since they became dirty.
    dirty: Option<DirtyIndex>,
    /// The same with ages since the last write, where both are looked at, or only these.
    written: Option<DirtyIndex>,
    /// Where the order of the disk goes on.
    next_key: BlockKey,
    /// Which set comes next in the order of eviction.
    next_set: u32,
    progress: Progress,
    /// When a host asked for something last.
    pub last_request: SimTime,
    /// When the policies are to be asked though nothing happens; [`SimTime::MAX`] if only on occasion.
    again: SimTime,
    is_asked: bool,
    /// Where cleaning on demand goes on.
    pub hand: u32,
    /// Memory of chosen blocks, of runs around one, and of disk writes that are put together.
    pub chosen: Vec<u32>,
    pub run: Vec<u32>,
    pub parts: Vec<Part>,
}

impl Writeback {
    /// Who cleans from now on; nobody, where there are none.
    pub fn set_policies(
        &mut self,
        policies: Vec<Box<dyn Cleaning + Send>>,
        slots: &Slots,
        ways: u32,
        now: SimTime,
    ) {
        let members =
            policies.into_iter().map(|policy| Member { needs: policy.needs(), policy, again: None });
        let members: Vec<Member> = members.collect();
        let has = |needs| members.iter().any(|member: &Member| member.needs == needs);
        let index = |ages| DirtyIndex::new(slots.count(), ways, ages);
        let since_dirty = Kept { of_blocks: has(Needs::SinceDirty), of_sets: has(Needs::OfSets) };
        let since_written = Kept { of_blocks: true, of_sets: false };
        *self = Self {
            dirty: (!members.is_empty()).then(|| index(since_dirty)),
            written: has(Needs::SinceWritten).then(|| index(since_written)),
            members,
            last_request: now,
            again: now,
            is_asked: true,
            hand: self.hand,
            ..Self::default()
        };
        if self.has_policies() {
            for slot in (0..slots.count()).filter(|slot| slots.dirty_bits(*slot) != 0) {
                self.turn(slots.key(slot), slot, true, now);
            }
        }
    }

    #[inline]
    pub const fn has_policies(&self) -> bool {
        self.dirty.is_some()
    }

    fn index(&self, needs: Needs) -> Option<&DirtyIndex> {
        if needs == Needs::SinceWritten { self.written.as_ref() } else { self.dirty.as_ref() }
    }

    fn indexes(&mut self) -> impl Iterator<Item = &mut DirtyIndex> {
        [&mut self.dirty, &mut self.written].into_iter().flatten()
    }

    /// A block has become dirty, or is no longer dirty.
    pub fn turn(&mut self, key: BlockKey, slot: u32, is_dirty: bool, at: SimTime) {
        self.is_asked |= is_dirty;
        for index in self.indexes() {
            if is_dirty {
                index.insert(key, slot, at);
            } else {
                index.remove(key, slot);
            }
        }
    }

    /// A dirty block was written again.
    pub fn rewrite(&mut self, slot: u32, at: SimTime) {
        if let Some(written) = &mut self.written {
            written.rewrite(slot, at);
        }
    }

    /// A dirty block lies elsewhere now.
    pub fn relabel(&mut self, from: u32, to: u32) {
        self.indexes().for_each(|index| index.relabel(from, to));
    }

    /// A disk write has begun at `at`, with which so many blocks are clean; `at_once`: it has ended, too.
    /// Whether its end is to be told ([`Writeback::ended`]).
    pub fn begun(&mut self, blocks: u32, at: SimTime, at_once: bool) -> bool {
        self.progress.begin(blocks);
        if at_once {
            self.progress.wrote_at_once(blocks, at);
        }
        blocks > 0 && self.has_policies()
    }

    /// Blocks that are now on the disk.
    pub fn ended(&mut self, blocks: u32) {
        self.progress.end(blocks);
        self.is_asked = true;
    }

    /// Too much is dirty for a block to come in at once, or at all. Whoever cleans is asked after the
    /// command.
    #[cold]
    pub const fn note_waited(&mut self) {
        self.progress.waited += 1;
        self.is_asked = true;
    }

    /// The policies are asked as soon as the engine can act.
    pub const fn ask(&mut self) {
        self.is_asked = true;
    }

    #[inline]
    pub const fn is_asked(&self) -> bool {
        self.is_asked && self.has_policies()
    }

    /// When the policies are to be asked though nothing happens; [`SimTime::MAX`] if only on occasion.
    pub fn again(&self) -> SimTime {
        if self.has_policies() { self.again } else { SimTime::MAX }
    }

    /// Cleaning goes on a pause after `at`.
    pub fn postpone(&mut self, at: SimTime) {
        self.again = self.again.max(self.progress.pause(at));
    }

    /// What a policy is told that looks at such ages; `used`: blocks that are cached.
    pub fn view<E: Eviction>(
        &mut self,
        directory: &Directory<E>,
        used: u32,
        needs: Needs,
        at: SimTime,
    ) -> Option<View> {
        self.is_asked = false;
        let (index, progress) = (self.index(needs)?, &self.progress);
        let busy = progress.busy(at);
        Some(View {
            at,
            slots: directory.slots.count(),
            used,
            dirty: index.len() + busy,
            oldest: index.oldest().map(|(_, at)| at),
            last_request: self.last_request,
            cleaning: busy,
            cleaned: progress.cleaned,
            started: progress.started,
            writes: progress.writes,
            waited: progress.waited,
            ways: directory.ways(),
            fullest: index.fullest_set(),
            oldest_set: index.oldest_set(),
        })
    }

    /// The policies do not want to begin anything more now, or a disk has refused something.
    pub fn answered(&mut self, members: Vec<Member>, has_failed: bool, now: SimTime) {
        let again = members.iter().filter_map(|member| member.again).min().unwrap_or(SimTime::MAX);
        let pause = self.progress.pause_until;
        let pause = if now < pause { pause } else { SimTime::MAX };
        self.members = members;
        self.is_asked = false;
        self.again = if has_failed { now + RETRY_NS } else { again.min(pause) };
    }

    pub fn memory_bytes(&self) -> u64 {
        [&self.dirty, &self.written].into_iter().flatten().map(DirtyIndex::memory_bytes).sum()
    }
}
