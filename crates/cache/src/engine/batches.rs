//! Disk writes of dirty blocks, neighbours in one.

use super::timeline::{Bytes, Gather, Moment, Notice, Place};
use super::writeback::{Begun, Part, Pending};
use super::{Cache, CacheError, Result};
use nandscape_core::{Extent, Op, SimTime};
use nandscape_policies::BlockKey;
use nandscape_policies::eviction::Eviction;

impl<E: Eviction> Cache<E> {
    /// Writes these blocks, which are in the order of the disk, with no more than so many disk writes; what
    /// they do not suffice for stays dirty. Of the blocks so many lie before the ones that they were
    /// found by. `in_turn`: they are read one after the other, so that no host has to wait for many reads at
    /// once.
    pub(super) fn write_batch(&mut self, slots: &[u32], most: u32, front: u32, in_turn: bool) -> Begun {
        let mut begun = Begun { read: in_turn.then_some(Moment::PAST), ..Begun::default() };
        let mut pending = Pending { parts: std::mem::take(&mut self.writeback.parts), ..Pending::default() };
        let mut merged = 0;
        'blocks: for slot in slots {
            if let Err(error) = self.make_note_room() {
                begun.error = Some(error);
                break;
            }
            let key = self.directory.slots.key(*slot);
            let mut is_first = true;
            let mut rest = self.directory.slots.dirty_bits(*slot);
            while let Some(((start, end), mask, others)) = self.directory.next_dirty_run(*slot, rest) {
                rest = others;
                let part = Part { slot: *slot, start, end, mask };
                let start = self.directory.shape.offset(key.block()) + u64::from(part.start);
                let len = u64::from(part.end - part.start);
                let joined = pending.joined(key.volume(), start, len, self.directory.shape.block_bytes());
                if joined.is_some() {
                    pending.extent = joined;
                    merged += u32::from(is_first);
                } else {
                    if begun.writes + u32::from(pending.extent.is_some()) >= most {
                        break 'blocks;
                    }
                    self.write_pending(&mut pending, &mut begun);
                    (pending.volume, pending.extent) = (key.volume(), Some(Extent::new(start, len)));
                }
                pending.parts.push(part);
                is_first = false;
                if begun.error.is_some() {
                    break 'blocks;
                }
            }
        }
        if begun.error.is_none() {
            self.write_pending(&mut pending, &mut begun);
        }
        pending.parts.clear();
        self.writeback.parts = pending.parts;
        let own = self.meter.shared();
        let front = front.min(merged);
        own.front_merges += u64::from(front);
        own.back_merges += u64::from(merged - front);
        begun
    }

    /// Writes a dirty block that is to leave to the disk, in one write with its dirty neighbours there, which
    /// stay. Gives when it is there.
    pub(super) fn write_run(&mut self, slot: u32) -> Result<Moment> {
        let key = self.directory.slots.key(slot);
        let (slots, front) = self.writeback.run_around(&self.directory, slot);
        let mut begun = self.write_batch(&slots, u32::MAX, front, false);
        if slots.len() > 1 && matches!(begun.error, Some(CacheError::Slow { .. })) {
            // It may be a neighbour that the disk does not take.
            begun = self.write_batch(&[slot], u32::MAX, 0, false);
        }
        self.writeback.run = slots;
        if self.directory.slots.dirty_bits(slot) == 0 {
            self.meter.of(key.volume()).forced_cleanings += 1;
            return Ok(self.timeline.close(&mut begun.written));
        }
        Err(begun.error.expect("what is still dirty was refused"))
    }

    /// Makes the write that was put together.
    fn write_pending(&mut self, pending: &mut Pending, begun: &mut Begun) {
        let Some(extent) = pending.extent.take() else { return };
        let is_uncommitted = pending.parts.iter().any(|part| self.durability.must_commit_first(part.slot));
        // All of them are noted when the write is made.
        if (is_uncommitted || self.durability.is_full_with(pending.parts.len() as u32))
            && let Err(error) = self.commit()
        {
            begun.error = Some(error);
            return;
        }
        let mut bytes = self.buffers.take(extent.len);
        let done = self.write_parts(pending.volume, extent, &pending.parts, &mut bytes, &mut begun.read);
        self.buffers.give(bytes);
        let written = match done {
            Ok(written) => written,
            Err(error) => {
                begun.error = Some(error);
                return;
            }
        };
        begun.writes += 1;
        self.timeline.gather(&mut begun.written, written);
        let mut blocks = 0;
        let mut seen = None;
        for part in pending.parts.drain(..) {
            let entry = self.directory.slots.entry(part.slot);
            let dirty = entry.dirty & !part.mask;
            self.record(part.slot, entry.valid, dirty);
            blocks += u32::from(dirty == 0 && entry.dirty != 0);
            begun.parts += u32::from(dirty != 0 && seen != Some(part.slot));
            seen = Some(part.slot);
        }
        begun.blocks += blocks;
        let of = self.meter.of(pending.volume);
        of.cleanings += u64::from(blocks);
        self.meter.cleaning_write(pending.volume, extent.len);
        self.note_cleaning(written, blocks);
    }

    fn write_parts(
        &mut self,
        volume: u16,
        extent: Extent,
        parts: &[Part],
        bytes: &mut [u8],
        before: &mut Option<Moment>,
    ) -> Result<Moment> {
        let mut all = Gather::default();
        // Not before the commit that speaks of them.
        self.timeline.gather(&mut all, self.durability.commits.last);
        let mut place = 0;
        for part in parts {
            let len = (part.end - part.start) as usize;
            let into =
                if bytes.is_empty() { Bytes::None } else { Bytes::into(&mut bytes[place..place + len]) };
            let begin = before.unwrap_or(Moment::PAST);
            let read = self.at_slot(Op::Read, part.slot, part.start, part.end, into, begin)?;
            *before = before.map(|_| read);
            self.timeline.gather(&mut all, read);
            place += len;
        }
        let read = self.timeline.close(&mut all);
        let written = self.at_disk(Op::Write, volume, extent, Bytes::of(bytes), read)?;
        let (first, end) = self.directory.shape.blocks(extent);
        for block in first..end {
            self.timeline.hold(Place::block(BlockKey::new(volume, block)), read);
        }
        Ok(written)
    }

    fn note_cleaning(&mut self, written: Moment, blocks: u32) {
        let (now, at_once) = (self.timeline.now(), self.timeline.is_past(written));
        if self.writeback.begun(blocks, now, at_once) {
            self.timeline.notify(written, Notice::Cleaned(blocks));
        }
    }

    /// Writes up to `max` dirty blocks to the disk from `at` on, which stay cached, and gives how many there
    /// were. Goes round over the slots; what it found is written in the order of the disk, neighbours in
    /// one write.
    pub fn clean(&mut self, max: u32, at: SimTime) -> Result<u32> {
        self.arrive(at)?;
        let found = self.writeback.next_dirty(&self.directory, max);
        self.clean_slots(&found)
    }

    /// Writes these blocks to the disk, and gives how many they are. What a disk does not take stays dirty;
    /// the first error of those is given after all others were tried.
    pub(super) fn clean_slots(&mut self, slots: &[u32]) -> Result<u32> {
        self.begin_tries();
        let begun = self.write_batch(slots, u32::MAX, 0, false);
        let mut blocks = begun.blocks;
        let mut refused = None;
        if begun.error.is_some() {
            for slot in slots {
                while self.directory.slots.dirty_bits(*slot) != 0 {
                    let begun = self.write_batch(&[*slot], u32::MAX, 0, false);
                    blocks += begun.blocks;
                    match begun.error {
                        None => {}
                        Some(CacheError::Fast(error)) => self.degrade(error)?,
                        Some(error) => {
                            refused.get_or_insert(error);
                            break;
                        }
                    }
                }
            }
        }
        if self.durability.commits.is_due
            && let Err(error) = self.commit()
        {
            let CacheError::Fast(error) = error else { return Err(error) };
            self.degrade(error)?;
        }
        self.settle_fills()?;
        refused.map_or(Ok(blocks), Err)
    }
}
