//! Commits of the metadata: one that is asked for at once, and one for many that wait.

use super::durability::Guard;
use super::timeline::{Moment, Place};
use super::{Cache, CacheError, Result};
use crate::presets::Flushing;
use nandscape_core::{Extent, SimTime};
use nandscape_policies::eviction::Eviction;

impl<E: Eviction> Cache<E> {
    /// From now on a commit that an answer waits for is made by [`Cache::end_group`], for all answers that
    /// wait: for stores that take no time in the model, where none would ever be under way. A flush, and
    /// whatever else needs a commit for itself, makes it at once, and the group's with it.
    pub const fn group_commits(&mut self) {
        self.durability.commits.is_grouped = true;
    }

    /// Whether answers wait for the end of the group.
    pub const fn has_group(&self) -> bool {
        self.durability.commits.is_grouped && self.durability.commits.open.is_some()
    }

    /// What is flushed before metadata are written, from now on.
    pub fn set_flushing(&mut self, flushing: Flushing) {
        self.durability.set_flushing(flushing);
    }

    /// A commit that is answered for: at once if none is under way, and otherwise when that one is done,
    /// together with all that comes until then. In a group, when the group ends.
    pub(super) fn commit_together(&mut self) -> Result<Moment> {
        match self.durability.join_open(&mut self.timeline) {
            Some(open) => Ok(open),
            None => self.commit(),
        }
    }

    /// Commits if the metadata may not have room for the changes of one block, or if they have many.
    pub(super) fn make_note_room(&mut self) -> Result<()> {
        if self.durability.must_make_room(&self.directory.slots, &mut self.timeline) {
            self.commit()?;
        }
        Ok(())
    }

    /// Before the disk gets something that did not come from a dirty block whose entry is committed. Gives
    /// when it may.
    pub(super) fn guard(&mut self, volume: u16, extent: Extent) -> Result<Moment> {
        match self.durability.guard(&self.directory, volume, extent) {
            Guard::After(moment) => Ok(moment),
            Guard::Commit => self.commit(),
        }
    }

    /// Makes the metadata durable, and what they speak of before them; then frees what waited for it. Gives
    /// when all of that is done.
    pub(super) fn commit(&mut self) -> Result<Moment> {
        let done = self.commit_now()?;
        self.durability.settle_open(&mut self.timeline, done);
        Ok(done)
    }

    fn commit_now(&mut self) -> Result<Moment> {
        if self.failures.bypassed.is_some() {
            return Ok(Moment::PAST);
        }
        let done = self.durability.commit(&self.directory.slots, &mut self.timeline, &mut self.meter);
        let Some(done) = done.map_err(CacheError::Fast)? else { return Ok(self.durability.commits.last) };
        let mut limbo = std::mem::take(&mut self.durability.reuse.limbo);
        for (slot, discard) in limbo.drain(..) {
            self.timeline.hold(Place::slot(slot), done);
            self.free(slot, discard);
        }
        self.durability.reuse.limbo = limbo;
        Ok(done)
    }

    /// The model's time.
    pub const fn now(&self) -> SimTime {
        self.timeline.now()
    }

    /// Makes the commit that the answers of the group wait for. If a disk fails that it relies on, the writes
    /// are answered all the same, since no flush is, and the next flush tells.
    pub fn end_group(&mut self) {
        self.begin_tries();
        while let Err(error) = self.commit_open() {
            let done = if let CacheError::Fast(error) = error { self.degrade(error) } else { Err(error) };
            if let Err(error) = done {
                self.keep_error(error);
                self.durability.settle_open(&mut self.timeline, Moment::PAST);
            }
        }
        if self.timeline.news.has_noticed() {
            self.take_notices();
        }
    }

    /// Makes the commit that answers wait for, if there is one.
    pub(super) fn commit_open(&mut self) -> Result<()> {
        if self.durability.commits.open.is_some() {
            self.commit()?;
        }
        Ok(())
    }
}
