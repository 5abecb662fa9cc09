//! Commits of the metadata: one that is asked for at once, and one for many that wait.

use super::side::Bytes;
use super::steps::{FAST, Gather, Moment, Notice, Place};
use super::unflushed::Recorded;
use super::{Cache, CacheError};
use crate::metadata::Write;
use nandscape_core::{Extent, Op, SimTime};
use nandscape_policies::eviction::Eviction;

impl<E: Eviction> Cache<E> {
    /// Writes that the last commit is durable, which need not be so itself.
    fn confirm(&mut self) -> Result<(), CacheError> {
        let mut writes = std::mem::take(&mut self.writes);
        self.metadata.confirm(&mut writes);
        let is_volatile = self.steps.side(FAST).is_volatile;
        let done = self.write_each(&writes, self.last_commit).map(drop);
        self.steps.side_mut(FAST).is_volatile = is_volatile;
        writes.clear();
        self.writes = writes;
        done
    }

    /// A commit that is answered for: at once if none is under way, and otherwise when that one is done,
    /// together with all that comes until then. In a group, when the group ends.
    pub(super) fn commit_together(&mut self) -> Result<Moment, CacheError> {
        if !self.groups_commits && self.steps.is_past(self.last_commit) {
            return self.commit();
        }
        self.must_commit = false;
        if let Some(open) = self.open_commit {
            return Ok(open);
        }
        let open = self.steps.open();
        self.open_commit = Some(open);
        if !self.groups_commits {
            self.commits_awaited += 1;
            self.steps.notify(self.last_commit, Notice::Committed);
        }
        Ok(open)
    }

    /// From now on a commit that an answer waits for is made by [`Cache::end_group`], for all answers that
    /// wait: for stores that take no time in the model, where none would ever be under way. A flush, and
    /// whatever else needs a commit for itself, makes it at once, and the group's with it.
    pub const fn group_commits(&mut self) {
        self.groups_commits = true;
    }

    /// The model's time.
    pub const fn now(&self) -> SimTime {
        self.steps.now()
    }

    /// Whether answers wait for the end of the group.
    pub const fn has_group(&self) -> bool {
        self.groups_commits && self.open_commit.is_some()
    }

    /// Makes the commit that the answers of the group wait for. If a disk fails that it relies on, the writes
    /// are answered all the same, since no flush is, and the next flush tells.
    pub fn end_group(&mut self) {
        self.begin_tries();
        while let Err(error) = self.commit_open() {
            let done = if let CacheError::Fast(error) = error { self.degrade(error) } else { Err(error) };
            if let Err(error) = done {
                self.keep_error(error);
                if let Some(open) = self.open_commit.take() {
                    self.steps.settle(open, Moment::PAST);
                }
            }
        }
        if self.steps.has_noticed() {
            self.take_notices();
        }
    }

    /// Makes the commit that answers wait for, if there is one.
    pub(super) fn commit_open(&mut self) -> Result<(), CacheError> {
        if self.open_commit.is_some() {
            self.commit()?;
        }
        Ok(())
    }

    /// Makes the metadata durable, and what they speak of before them; then frees what waited for it. Gives
    /// when all of that is done.
    pub(super) fn commit(&mut self) -> Result<Moment, CacheError> {
        let done = self.commit_now()?;
        if let Some(open) = self.open_commit.take() {
            self.steps.settle(open, done);
        }
        Ok(done)
    }

    fn commit_now(&mut self) -> Result<Moment, CacheError> {
        if self.failures.bypassed.is_some() {
            return Ok(Moment::PAST);
        }
        self.must_commit = false;
        self.must_commit_free = false;
        let regions = self.regions.next();
        self.metadata.expect_writes(regions);
        self.settle_flushed();
        let is_empty = self.metadata.noted() == 0 && self.limbo.is_empty() && self.fresh.is_empty();
        if is_empty && !self.needs_flushes() {
            return Ok(self.last_commit);
        }
        let mut before = std::mem::take(&mut self.ahead);
        self.steps.gather(&mut before, self.last_commit);
        self.flush_needed(&mut before)?;
        // What the flushes settled is part of this.
        (self.must_commit, self.must_commit_free) = (false, false);
        if self.flushing.covers_cache() {
            let flushed = self.flush_fast(Moment::PAST)?;
            self.steps.gather(&mut before, flushed);
        }
        let before = self.steps.close(&mut before);
        let mut writes = std::mem::take(&mut self.writes);
        let changes = u64::from(self.metadata.noted());
        let table = Recorded { slots: &self.slots, late: &self.late, filling: &self.filling };
        self.metadata.commit(&table, &mut writes);
        let done = self.write_metadata(&writes, before);
        let bytes = writes.iter().map(|write| write.bytes.len() as u64).sum();
        self.meter.committed(changes, writes.len() as u64, bytes);
        writes.clear();
        self.writes = writes;
        let done = done?;
        let was_past = self.steps.is_past(self.last_commit);
        self.last_commit = done;
        self.metadata.committed();
        self.confirm()?;
        self.regions.commit(regions);
        for slot in self.settled.drain(..) {
            self.steps.hold(Place::taking(slot), done);
        }
        for slot in self.fresh.drain(..) {
            if self.slots.valid(slot) != 0 {
                self.committed.set(slot);
            }
        }
        let mut limbo = std::mem::take(&mut self.limbo);
        if was_past {
            self.leaving.clear_all();
        }
        for (slot, discard) in limbo.drain(..) {
            let place = self.left_at(self.slots.key(slot));
            self.left.clear(place);
            self.leaving.set(place);
            self.steps.hold(Place::slot(slot), done);
            self.free(slot, discard);
        }
        self.limbo = limbo;
        Ok(done)
    }

    /// Writes metadata once `before` is past, flushes them, and gives when that is done.
    pub(super) fn write_metadata(&mut self, writes: &[Write], before: Moment) -> Result<Moment, CacheError> {
        let written = self.write_each(writes, before)?;
        if writes.is_empty() || !self.flushing.covers_cache() {
            Ok(written)
        } else {
            self.flush_fast(written)
        }
    }

    fn write_each(&mut self, writes: &[Write], before: Moment) -> Result<Moment, CacheError> {
        let mut all = Gather::default();
        self.steps.gather(&mut all, before);
        for write in writes {
            let extent = Extent::new(write.offset, write.bytes.len() as u64);
            let bytes = if self.keeps_bytes { Bytes::of(&write.bytes) } else { Bytes::None };
            let written = self.at_fast(Op::Write, extent, bytes, before)?;
            self.steps.gather(&mut all, written);
        }
        Ok(self.steps.close(&mut all))
    }
}
