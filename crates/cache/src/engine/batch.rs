//! Dirty blocks on their way to the disk: neighbours in one write.

use super::side::Bytes;
use super::steps::{Gather, Moment, Notice, Place};
use super::{Cache, CacheError};
use nandscape_core::{Extent, Op, SimTime};
use nandscape_policies::BlockKey;
use nandscape_policies::eviction::Eviction;

/// Bytes of one disk write at most, so that the memory it passes through is bounded.
const WRITE_MAX: u64 = 1 << 20;

/// Bytes that a block which has to leave takes with it to the disk at most.
const RUN_MAX: u64 = 256 << 10;

/// What was begun.
#[derive(Debug, Default)]
pub(super) struct Begun {
    /// Blocks that are clean now.
    pub blocks: u32,
    /// Blocks of which a part is clean now.
    pub parts: u32,
    /// Disk writes.
    pub writes: u32,
    /// When these are done.
    pub written: Gather,
    /// When the last read ends that the next one begins after; `None`: all begin at once.
    read: Option<Moment>,
    pub error: Option<CacheError>,
}

/// A part of a block in a write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    slot: u32,
    start: u32,
    end: u32,
    /// Its sub-blocks.
    mask: u16,
}

/// A disk write that is being put together.
#[derive(Debug, Default)]
struct Pending {
    volume: u16,
    extent: Option<Extent>,
    parts: Vec<Part>,
}

impl<E: Eviction> Cache<E> {
    /// Writes these blocks, which are in the order of the disk, with no more than so many disk writes; what
    /// they do not suffice for stays dirty. Of the blocks so many lie before the ones that they were
    /// found by. `in_turn`: they are read one after the other, so that no host has to wait for many reads at
    /// once.
    pub(super) fn write_batch(&mut self, slots: &[u32], most: u32, front: u32, in_turn: bool) -> Begun {
        let mut begun = Begun { read: in_turn.then_some(Moment::PAST), ..Begun::default() };
        let mut pending = Pending { parts: std::mem::take(&mut self.parts), ..Pending::default() };
        let mut merged = 0;
        'blocks: for slot in slots {
            if let Err(error) = self.make_note_room() {
                begun.error = Some(error);
                break;
            }
            let key = self.slots.key(*slot);
            let mut is_first = true;
            let mut rest = self.slots.dirty_bits(*slot);
            while let Some((part, others)) = self.next_part(*slot, rest) {
                rest = others;
                let start = self.shape.offset(key.block()) + u64::from(part.start);
                let len = u64::from(part.end - part.start);
                let joined = pending.extent.filter(|extent| {
                    pending.volume == key.volume()
                        && extent.end() == start
                        && extent.len + len <= WRITE_MAX.max(u64::from(self.shape.block_bytes()))
                });
                if let Some(extent) = joined {
                    pending.extent = Some(Extent::new(extent.offset, extent.len + len));
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
        self.parts = pending.parts;
        let own = self.meter.shared();
        let front = front.min(merged);
        own.front_merges += u64::from(front);
        own.back_merges += u64::from(merged - front);
        begun
    }

    /// Writes a dirty block that is to leave to the disk, in one write with its dirty neighbours there, which
    /// stay. Gives when it is there.
    pub(super) fn write_run(&mut self, slot: u32) -> Result<Moment, CacheError> {
        let key = self.slots.key(slot);
        let mut room = (RUN_MAX / u64::from(self.shape.block_bytes())).max(1) - 1;
        let mut front = 0;
        let mut slots = std::mem::take(&mut self.run);
        slots.clear();
        slots.push(slot);
        while room > 0
            && let Some(before) = key.block().checked_sub(front + 1)
            && let Some(other) = self.neighbour(BlockKey::new(key.volume(), before))
        {
            slots.push(other);
            (front, room) = (front + 1, room - 1);
        }
        slots.reverse();
        let mut behind = key.block() + 1;
        while room > 0
            && let Some(other) = self.neighbour(BlockKey::new(key.volume(), behind))
        {
            slots.push(other);
            (behind, room) = (behind + 1, room - 1);
        }
        let mut begun = self.write_batch(&slots, u32::MAX, front as u32, false);
        if slots.len() > 1 && matches!(begun.error, Some(CacheError::Slow { .. })) {
            // It may be a neighbour that the disk does not take.
            begun = self.write_batch(&[slot], u32::MAX, 0, false);
        }
        self.run = slots;
        if self.slots.dirty_bits(slot) == 0 {
            self.meter.of(key.volume()).forced_cleanings += 1;
            return Ok(self.steps.close(&mut begun.written));
        }
        Err(begun.error.expect("what is still dirty was refused"))
    }

    /// The slot of a block that may go to the disk with its neighbour.
    fn neighbour(&self, key: BlockKey) -> Option<u32> {
        let slot = self.index.find(key, &self.slots)?;
        (self.slots.dirty_bits(slot) != 0 && !self.pinned.has(slot)).then_some(slot)
    }

    /// The next sub-blocks of a block that go in one write, and the rest: from the first dirty one to the
    /// last, if all between are there, and otherwise a run of dirty ones.
    fn next_part(&self, slot: u32, dirty: u16) -> Option<(Part, u16)> {
        if dirty == 0 {
            return None;
        }
        let limit = self.limit(self.slots.key(slot));
        let span = (u16::MAX << dirty.trailing_zeros()) & (u16::MAX >> dirty.leading_zeros());
        let set = if span & !self.slots.valid(slot) == 0 { span } else { dirty };
        let (start, end, others) = self.shape.run(set, limit)?;
        let mask = set & !others;
        Some((Part { slot, start, end, mask }, dirty & !mask))
    }

    /// Makes the write that was put together.
    fn write_pending(&mut self, pending: &mut Pending, begun: &mut Begun) {
        let Some(extent) = pending.extent.take() else { return };
        let is_uncommitted =
            !self.is_in_place && pending.parts.iter().any(|part| !self.committed.has(part.slot));
        // All of them are noted when the write is made.
        let is_full = self.metadata.noted().saturating_add(pending.parts.len() as u32) > self.metadata.room();
        if (is_uncommitted || is_full)
            && let Err(error) = self.commit()
        {
            begun.error = Some(error);
            return;
        }
        let mut bytes = self.buffer(extent.len);
        let done = self.write_parts(pending.volume, extent, &pending.parts, &mut bytes, &mut begun.read);
        self.give_buffer(bytes);
        let written = match done {
            Ok(written) => written,
            Err(error) => {
                begun.error = Some(error);
                return;
            }
        };
        begun.writes += 1;
        self.steps.gather(&mut begun.written, written);
        let mut blocks = 0;
        let mut seen = None;
        for part in pending.parts.drain(..) {
            let entry = self.slots.entry(part.slot);
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
    ) -> Result<Moment, CacheError> {
        let mut all = Gather::default();
        // Not before the commit that speaks of them.
        self.steps.gather(&mut all, self.last_commit);
        let mut place = 0;
        for part in parts {
            let len = (part.end - part.start) as usize;
            let into =
                if bytes.is_empty() { Bytes::None } else { Bytes::into(&mut bytes[place..place + len]) };
            let begin = before.unwrap_or(Moment::PAST);
            let read = self.at_slot(Op::Read, part.slot, part.start, part.end, into, begin)?;
            *before = before.map(|_| read);
            self.steps.gather(&mut all, read);
            place += len;
        }
        let read = self.steps.close(&mut all);
        let written = self.at_disk(Op::Write, volume, extent, Bytes::of(bytes), read)?;
        let (first, end) = self.shape.blocks(extent);
        for block in first..end {
            self.steps.hold(Place::block(BlockKey::new(volume, block)), read);
        }
        Ok(written)
    }

    fn note_cleaning(&mut self, written: Moment, blocks: u32) {
        let Some(cleaner) = &mut self.cleaner else { return };
        cleaner.begun(blocks);
        let now = self.steps.now();
        if self.steps.known(written).is_some_and(|at| at <= now) {
            cleaner.wrote_at_once(blocks, now);
        }
        if blocks > 0 {
            self.steps.notify(written, Notice::Cleaned(blocks));
        }
    }

    /// Writes up to `max` dirty blocks to the disk from `at` on, which stay cached, and gives how many there
    /// were. Goes round over the slots; what it found is written in the order of the disk, neighbours in
    /// one write.
    pub fn clean(&mut self, max: u32, at: SimTime) -> Result<u32, CacheError> {
        self.arrive(at)?;
        let count = self.slots.count();
        let mut found: Vec<u32> = Vec::new();
        for _ in 0..count {
            if found.len() as u32 >= max.min(self.slots.dirty()) {
                break;
            }
            if self.slots.dirty_bits(self.hand) != 0 {
                found.push(self.hand);
            }
            self.hand = if self.hand + 1 == count { 0 } else { self.hand + 1 };
        }
        found.sort_unstable_by_key(|slot| self.slots.key(*slot));
        self.clean_slots(&found)
    }

    /// Writes these blocks to the disk, and gives how many they are. What a disk does not take stays dirty;
    /// the first error of those is given after all others were tried.
    pub(super) fn clean_slots(&mut self, slots: &[u32]) -> Result<u32, CacheError> {
        self.begin_tries();
        let begun = self.write_batch(slots, u32::MAX, 0, false);
        let mut blocks = begun.blocks;
        let mut refused = None;
        if begun.error.is_some() {
            for slot in slots {
                while self.slots.dirty_bits(*slot) != 0 {
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
        if self.must_commit
            && let Err(error) = self.commit()
        {
            let CacheError::Fast(error) = error else { return Err(error) };
            self.degrade(error)?;
        }
        self.settle_fills()?;
        refused.map_or(Ok(blocks), Err)
    }
}
