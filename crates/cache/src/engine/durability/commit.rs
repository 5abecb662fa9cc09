//! Commits of the metadata, and what they come after.

use super::Durability;
use super::late::Recorded;
use crate::engine::counting::Meter;
use crate::engine::directory::Slots;
use crate::engine::timeline::{Bytes, FAST, Gather, Moment, Notice, Place, Timeline};
use crate::metadata::Write;
use nandscape_core::{Extent, Op, StoreResult};

/// Commits that were made, and the next one.
#[derive(Default)]
pub struct Commits {
    /// When the last one is durable.
    pub last: Moment,
    /// When the next one will be, which answers wait for.
    pub open: Option<Moment>,
    /// What the next one waits for where it flushes nothing.
    pub ahead: Gather,
    /// Those that answers wait for are made when somebody says so.
    pub is_grouped: bool,
    /// Ends of commits that the engine is to be told of.
    pub awaited: u32,
    /// The command under way needs a commit before it is answered.
    pub is_due: bool,
    /// A free slot must not be taken before a commit.
    pub is_due_for_reuse: bool,
    /// Memory, kept so that they need not ask for it.
    writes: Vec<Write>,
}

impl Durability {
    /// What answers wait for is done at this moment.
    pub fn settle_open(&mut self, timeline: &mut Timeline, done: Moment) {
        if let Some(open) = self.commits.open.take() {
            timeline.settle(open, done);
        }
    }

    /// Whether so much has changed that a commit is made though nobody asked for a flush.
    pub const fn is_long(&self) -> bool {
        self.reuse.fresh.len() as u32 >= self.rules.commit_after
    }

    /// Whether a free slot may be taken only after a commit, since an entry on the store says that it has
    /// something dirty.
    pub const fn is_due_for_reuse(&self) -> bool {
        self.commits.is_due_for_reuse || !self.reuse.settled.is_empty()
    }

    /// A commit that was waited for has ended.
    pub const fn note_end(&mut self) {
        self.commits.awaited -= 1;
        self.commits.is_due |= self.commits.open.is_some();
    }

    /// When a commit for many that wait is durable; `None` if it is to be made at once, since none is under
    /// way.
    pub fn join_open(&mut self, timeline: &mut Timeline) -> Option<Moment> {
        let Commits { last, is_grouped, .. } = self.commits;
        if !is_grouped && timeline.is_past(last) {
            return None;
        }
        self.commits.is_due = false;
        if self.commits.open.is_none() {
            self.commits.open = Some(timeline.open());
            if !is_grouped {
                self.commits.awaited += 1;
                timeline.notify(last, Notice::Committed);
            }
        }
        self.commits.open
    }

    /// Makes the metadata durable, and what they speak of before them, and gives when that is done; `None` if
    /// there is nothing to commit. What waited for it is to be freed (`reuse.limbo`).
    pub fn commit(
        &mut self,
        slots: &Slots,
        timeline: &mut Timeline,
        meter: &mut Meter,
    ) -> StoreResult<Option<Moment>> {
        (self.commits.is_due, self.commits.is_due_for_reuse) = (false, false);
        let regions = self.regions.next();
        self.metadata.expect_writes(regions);
        self.settle_flushed(slots, timeline);
        let is_empty =
            self.metadata.noted() == 0 && self.reuse.limbo.is_empty() && self.reuse.fresh.is_empty();
        if is_empty && !self.needs_flushes() {
            return Ok(None);
        }
        let mut before = std::mem::take(&mut self.commits.ahead);
        timeline.gather(&mut before, self.commits.last);
        self.flush_needed(slots, timeline, &mut before);
        // What the flushes settled is part of this.
        (self.commits.is_due, self.commits.is_due_for_reuse) = (false, false);
        if self.rules.flushing.covers_cache() {
            let flushed = timeline.flush(FAST, Moment::PAST)?;
            timeline.gather(&mut before, flushed);
        }
        let before = timeline.close(&mut before);
        let mut writes = std::mem::take(&mut self.commits.writes);
        let changes = u64::from(self.metadata.noted());
        let table = Recorded { slots, late: &self.late, filling: &self.filling };
        self.metadata.commit(&table, &mut writes);
        let done = self.write(timeline, meter, &writes, before);
        let bytes = writes.iter().map(|write| write.bytes.len() as u64).sum();
        meter.committed(changes, writes.len() as u64, bytes);
        writes.clear();
        self.commits.writes = writes;
        let done = done?;
        let was_past = timeline.is_past(self.commits.last);
        self.commits.last = done;
        self.metadata.committed();
        self.confirm(timeline, meter)?;
        self.regions.commit(regions);
        for slot in self.reuse.settled.drain(..) {
            timeline.hold(Place::taking(slot), done);
        }
        for slot in self.reuse.fresh.drain(..) {
            if slots.valid(slot) != 0 {
                self.reuse.committed.set(slot);
            }
        }
        if was_past {
            self.reuse.leaving.clear_all();
        }
        for (slot, _) in &self.reuse.limbo {
            let place = self.reuse.place_of(slots.key(*slot));
            self.reuse.left.clear(place);
            self.reuse.leaving.set(place);
        }
        Ok(Some(done))
    }

    /// Writes that the last commit is durable, which need not be so itself.
    fn confirm(&mut self, timeline: &mut Timeline, meter: &mut Meter) -> StoreResult<()> {
        let mut writes = std::mem::take(&mut self.commits.writes);
        self.metadata.confirm(&mut writes);
        let is_volatile = timeline.side(FAST).is_volatile;
        let done = write_each(timeline, meter, &writes, self.commits.last).map(drop);
        timeline.side_mut(FAST).is_volatile = is_volatile;
        writes.clear();
        self.commits.writes = writes;
        done
    }

    /// Writes metadata once `before` is past, flushes them, and gives when that is done.
    pub fn write(
        &self,
        timeline: &mut Timeline,
        meter: &mut Meter,
        writes: &[Write],
        before: Moment,
    ) -> StoreResult<Moment> {
        let written = write_each(timeline, meter, writes, before)?;
        if writes.is_empty() || !self.rules.flushing.covers_cache() {
            Ok(written)
        } else {
            timeline.flush(FAST, written)
        }
    }
}

/// Makes these writes once `before` is past, and gives when that is done.
fn write_each(
    timeline: &mut Timeline,
    meter: &mut Meter,
    writes: &[Write],
    before: Moment,
) -> StoreResult<Moment> {
    let keeps_bytes = timeline.side(FAST).store.stores_bytes();
    let mut all = Gather::default();
    timeline.gather(&mut all, before);
    for write in writes {
        let extent = Extent::new(write.offset, write.bytes.len() as u64);
        let bytes = if keeps_bytes { Bytes::of(&write.bytes) } else { Bytes::None };
        let written = timeline.submit(FAST, Op::Write, extent, bytes, before);
        let written = written.inspect_err(|_| meter.fast_failed(Op::Write))?;
        timeline.gather(&mut all, written);
    }
    Ok(timeline.close(&mut all))
}
