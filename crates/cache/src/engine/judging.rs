//! What admission is asked and told.

use super::timeline::{Moment, Notice};
use super::{Cache, Result};
use nandscape_core::{BlockCommand, Extent, Hint, Op};
use nandscape_policies::BlockKey;
use nandscape_policies::admission::{Admission, Ask, Bypass, Room};
use nandscape_policies::eviction::Eviction;

/// Who decides what enters.
#[derive(Default)]
pub(super) struct Gate {
    /// Everything does, where nobody decides.
    pub(super) admission: Option<Box<dyn Admission + Send>>,
    /// Admission is told what the fast store takes.
    watches_device: bool,
    /// Memory for what admission takes back.
    retracted: Vec<(u16, Extent)>,
}

impl<E: Eviction> Cache<E> {
    /// Who decides what is cached from now on; everything, where nobody does.
    pub fn set_admission(&mut self, admission: Option<Box<dyn Admission + Send>>) {
        self.gate.watches_device = admission.as_ref().is_some_and(|admission| admission.watches_device());
        self.gate.admission = admission;
    }

    /// Whether a request may enter.
    pub(super) fn ask(&mut self, volume: u16, command: BlockCommand) -> Result<Result<(), Bypass>> {
        let Some(admission) = &mut self.gate.admission else { return Ok(Ok(())) };
        let at = self.timeline.now();
        let BlockCommand { op, extent, hint, .. } = command;
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
        let Some(admission) = &mut self.gate.admission else { return Ok(()) };
        let (slots, used, dirty) =
            (self.directory.slots.count(), self.directory.in_use(), self.directory.slots.dirty);
        admission.block(key, op, Room { slots, used, dirty, makes_dirty })
    }

    /// Drops what turned out not to be worth it: whole blocks, and clean ones only.
    #[cold]
    fn take_back(&mut self, op: Op) -> Result<()> {
        let mut ranges = std::mem::take(&mut self.gate.retracted);
        if let Some(admission) = &mut self.gate.admission {
            admission.retract(&mut ranges);
        }
        let mut result = Ok(());
        for (volume, extent) in ranges.drain(..) {
            let end = extent.end().min(self.directory.capacity(volume));
            let extent = Extent::new(extent.offset.min(end), end - extent.offset.min(end));
            if extent.len == 0 {
                continue;
            }
            let done = self.each_cached(volume, extent, |cache, slot, piece| {
                let is_whole = (piece.start, piece.end) == (0, piece.limit);
                if !is_whole || cache.directory.slots.dirty_bits(slot) != 0 {
                    return Ok(());
                }
                let has_room = cache.make_note_room();
                cache.expel(slot, false);
                let own = cache.meter.own();
                *(if op == Op::Read { &mut own.read_invalidates } else { &mut own.write_invalidates }) += 1;
                has_room
            });
            if done.is_err() {
                result = done;
                break;
            }
        }
        self.gate.retracted = ranges;
        result
    }

    /// Whether bytes of a slot that have come from the disk are still worth it.
    pub(super) fn is_worth(&mut self, slot: u32, mask: u16) -> bool {
        let Some(admission) = &mut self.gate.admission else { return true };
        let key = self.directory.slots.key(slot);
        let capacity = self.directory.capacity(key.volume());
        let first = self.directory.shape.offset(key.block());
        let sub = u64::from(self.directory.shape.sub_bytes());
        let start = first + u64::from(mask.trailing_zeros()) * sub;
        let end = (first + u64::from(16 - mask.leading_zeros()) * sub).min(capacity);
        let extent = Extent::new(start, end - start);
        let at = self.timeline.now();
        let ask = Ask { volume: key.volume(), op: Op::Read, extent, hint: Hint::default(), at };
        admission.confirm(&ask).is_ok()
    }

    /// A read or write of a host at the fast store ends at this moment.
    #[inline]
    pub(super) fn watch_device(&mut self, op: Op, moment: Moment) {
        if self.gate.watches_device {
            let start = self.timeline.now();
            self.timeline.notify(moment, Notice::Served(op, start));
        }
    }
}
