//! Steps at the stores, as the engine makes them: what each waits for, and what is counted of it.

use super::timeline::{Bytes, FAST, Moment, Place};
use super::{Cache, CacheError, Result};
use nandscape_core::{Extent, Op};
use nandscape_policies::eviction::Eviction;

impl<E: Eviction> Cache<E> {
    /// A step at a slot's data, after `after` and after whatever the slot waits for.
    #[inline]
    pub(super) fn at_slot(
        &mut self,
        op: Op,
        slot: u32,
        start: u32,
        end: u32,
        bytes: Bytes<'_>,
        after: Moment,
    ) -> Result<Moment> {
        let extent = self.directory.place(slot, start, end);
        self.meter.fast(self.directory.slots.key(slot).volume(), op, extent.len);
        let free_at = self.timeline.free_at(Place::slot(slot));
        let after = self.timeline.join(after, free_at);
        let done = self.at_fast(op, extent, bytes, after)?;
        if op == Op::Write && !self.durability.rules.flushing.covers_cache() {
            self.timeline.gather(&mut self.durability.commits.ahead, done);
        }
        Ok(done)
    }

    #[inline]
    pub(super) fn at_fast(
        &mut self,
        op: Op,
        extent: Extent,
        bytes: Bytes<'_>,
        after: Moment,
    ) -> Result<Moment> {
        self.timeline.submit(FAST, op, extent, bytes, after).map_err(|source| {
            self.meter.fast_failed(op);
            CacheError::Fast(source)
        })
    }

    /// A step at a volume's disk, after `after` and after whatever is under way to the same blocks.
    pub(super) fn at_disk(
        &mut self,
        op: Op,
        volume: u16,
        extent: Extent,
        bytes: Bytes<'_>,
        after: Moment,
    ) -> Result<Moment> {
        self.meter.disk(volume, op, extent.len);
        let (first, end) = self.directory.shape.blocks(extent);
        let free_at = self.timeline.blocks_free_at(volume, first, end);
        let after = self.timeline.join(after, free_at);
        if op != Op::Read {
            self.durability.note_disk_write(volume, first, end);
        }
        let step = self.timeline.submit(volume + 1, op, extent, bytes, after);
        if op != Op::Read
            && !self.durability.rules.flushing.covers_disks()
            && let Ok(written) = step
        {
            self.timeline.gather(&mut self.durability.commits.ahead, written);
        }
        if op == Op::Write {
            self.volumes[usize::from(volume)].is_failing = step.is_err();
        }
        step.map_err(|source| {
            self.meter.disk_failed(volume, op);
            CacheError::Slow { volume, source }
        })
    }

    /// Sub-blocks of a slot's block, each run of them with its place in the block and memory for its bytes.
    pub(super) fn each_run(
        &mut self,
        slot: u32,
        mask: u16,
        mut step: impl FnMut(&mut Self, (u32, u32), u16, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let limit = self.directory.limit(self.directory.slots.key(slot));
        let mut rest = mask;
        while let Some((start, end, others)) = self.directory.shape.run(rest, limit) {
            let mut bytes = self.buffers.take(u64::from(end - start));
            let done = step(self, (start, end), rest & !others, &mut bytes);
            self.buffers.give(bytes);
            done?;
            rest = others;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn wait(&mut self, moment: Moment) {
        self.timeline.gather(&mut self.answer, moment);
    }

    /// Flushes the fast store after `after`, if it was written to, and gives when that is done.
    pub(super) fn flush_fast(&mut self, after: Moment) -> Result<Moment> {
        if self.failures.bypassed.is_some() {
            return Ok(Moment::PAST);
        }
        self.timeline.flush(FAST, after).map_err(CacheError::Fast)
    }

    /// What a disk gets comes from a host, and not from dirty blocks.
    pub(super) fn note_host_write(&mut self, volume: u16) {
        self.has_written_disk = true;
        self.durability.disks[usize::from(volume)].by_host = true;
    }
}
