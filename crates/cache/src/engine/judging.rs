//! What admission is asked and told.

use super::steps::{Moment, Notice};
use super::{Cache, CacheError};
use nandscape_core::{Command, Extent, Hint, Op};
use nandscape_policies::BlockKey;
use nandscape_policies::admission::{Ask, Bypass, Room};
use nandscape_policies::eviction::Eviction;

impl<E: Eviction> Cache<E> {
    /// Whether a request may enter.
    pub(super) fn ask(&mut self, volume: u16, command: Command) -> Result<Result<(), Bypass>, CacheError> {
        let Some(admission) = &mut self.admission else { return Ok(Ok(())) };
        let at = self.steps.now();
        let Command { op, extent, hint, .. } = command;
        let answer = admission.request(&Ask { volume, op, extent, hint, at });
        if answer.is_err() {
            self.meter.goes_past();
            self.take_back(op)?;
        }
        Ok(answer)
    }

    /// Whether a block may be inserted.
    pub(super) fn may_insert(&mut self, key: BlockKey, op: Op) -> Result<(), Bypass> {
        let makes_dirty = op == Op::Write && self.active_mode().makes_dirty();
        let Some(admission) = &mut self.admission else { return Ok(()) };
        let (slots, used, dirty) = (self.slots.count(), self.slots.used(), self.slots.dirty());
        admission.block(key, op, Room { slots, used, dirty, makes_dirty })
    }

    /// Drops what turned out not to be worth it: whole blocks, and clean ones only.
    #[cold]
    fn take_back(&mut self, op: Op) -> Result<(), CacheError> {
        let mut ranges = std::mem::take(&mut self.retracted);
        if let Some(admission) = &mut self.admission {
            admission.retract(&mut ranges);
        }
        let mut result = Ok(());
        for (volume, extent) in ranges.drain(..) {
            let end = extent.end().min(self.capacity(volume));
            let extent = Extent::new(extent.offset.min(end), end - extent.offset.min(end));
            if extent.len == 0 {
                continue;
            }
            self.each_cached(volume, extent, |cache, slot, piece| {
                let is_whole = (piece.start, piece.end) == (0, piece.limit);
                if result.is_ok() && is_whole && cache.slots.dirty_bits(slot) == 0 {
                    result = cache.make_note_room();
                    cache.expel(slot, false);
                    let own = cache.meter.own();
                    *(if op == Op::Read { &mut own.read_invalidates } else { &mut own.write_invalidates }) +=
                        1;
                }
            });
        }
        self.retracted = ranges;
        result
    }

    /// Whether bytes of a slot that have come from the disk are still worth it.
    pub(super) fn is_worth(&mut self, slot: u32, mask: u16) -> bool {
        let Some(admission) = &mut self.admission else { return true };
        let key = self.slots.key(slot);
        let capacity = self.volumes[usize::from(key.volume())].capacity;
        let first = self.shape.offset(key.block());
        let sub = u64::from(self.shape.sub_bytes());
        let start = first + u64::from(mask.trailing_zeros()) * sub;
        let end = (first + u64::from(16 - mask.leading_zeros()) * sub).min(capacity);
        let extent = Extent::new(start, end - start);
        let at = self.steps.now();
        let ask = Ask { volume: key.volume(), op: Op::Read, extent, hint: Hint::default(), at };
        admission.confirm(&ask).is_ok()
    }

    /// A read or write of a host at the fast store ends at this moment.
    #[inline]
    pub(super) fn watch_device(&mut self, op: Op, moment: Moment) {
        if self.watches_device {
            let start = self.steps.now();
            self.steps.notify(moment, Notice::Served(op, start));
        }
    }
}
