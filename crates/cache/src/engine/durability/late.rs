//! Slots of which the metadata do not say yet what they hold, since their disk would lose it.

use crate::engine::directory::{Bits, Slots};
use crate::engine::timeline::Moment;
use crate::metadata::{Entry, Metadata, Survives, Table};
use nandscape_policies::hash::KeyMap;
use std::ops::Range;

/// A disk is flushed beside the work when one slot in so many waits for it. A flush costs a disk the freedom
/// to choose the order of what it writes.
const FLUSH_SHARE: u32 = 8;

/// One slot in so many may not be there for the metadata, since each takes 32 bytes of memory, and 100 in the
/// commit after the flush.
const ABSENT_SHARE: u32 = 256;
/// In small caches as many may be absent in any case, up to an eighth of all.
const ABSENT_LEAST: u32 = 256;

/// Slots whose disk would lose what is clean in them.
pub struct Late {
    /// Whether all that is clean in a slot is dirty for the metadata.
    pub dirty: Bits,
    /// How many these are.
    pub count: u32,
    /// Which of them the flushes beside the work cover.
    pub flushing: Bits,
    /// At how many of them disks are flushed.
    pub flush_at: u32,
    /// By slot, sub-blocks that are not there for the metadata.
    pub absent: KeyMap,
    /// How many slots these may be.
    most_absent: usize,
    /// Whether anything is looked at.
    pub is_kept: bool,
    /// When these flushes have ended.
    pub flushed: Option<Moment>,
    /// They have, and slots from here on are still to be settled.
    pub next: Option<u32>,
}

impl Late {
    /// For so many slots.
    pub fn new(slots: u32, metadata: &dyn Metadata) -> Self {
        // A commit must have room for all that a flush settles.
        let absent = (slots / ABSENT_SHARE).max((slots / 8).min(ABSENT_LEAST));
        Self {
            dirty: Bits::new(slots),
            count: 0,
            flushing: Bits::new(slots),
            flush_at: (slots / FLUSH_SHARE).max(1),
            absent: KeyMap::default(),
            most_absent: absent.min(metadata.room() / 2).max(1) as usize,
            is_kept: metadata.survives() != Survives::Nothing,
            flushed: None,
            next: None,
        }
    }

    pub fn absent_of(&self, slot: u32) -> u16 {
        if self.absent.is_empty() {
            0
        } else {
            self.absent.get(&u64::from(slot)).map_or(0, |subs| *subs as u16)
        }
    }

    pub fn is_dirty(&self, slot: u32) -> bool {
        self.count > 0 && self.dirty.has(slot)
    }

    /// Whether any of a slot's neighbours, or the slot, may wait for a flush of its disk.
    #[inline]
    fn has_near(&self, slot: u32) -> bool {
        self.count > 0 && !self.dirty.is_free_word(slot) || !self.absent.is_empty()
    }

    /// Whether a slot waits for a flush of its disk.
    pub fn has(&self, slot: u32) -> bool {
        self.is_dirty(slot) || self.absent_of(slot) != 0
    }

    pub fn set(&mut self, slot: u32, is_dirty: bool, absent: u16) {
        if self.dirty.has(slot) != is_dirty {
            if is_dirty {
                self.dirty.set(slot);
                self.count += 1;
            } else {
                self.dirty.clear(slot);
                self.count -= 1;
            }
        }
        self.flushing.clear(slot);
        if absent != 0 {
            self.absent.insert(u64::from(slot), absent.into());
        } else if !self.absent.is_empty() {
            self.absent.remove(&u64::from(slot));
        }
    }

    /// Sub-blocks that are valid and that are dirty for the metadata.
    #[inline]
    pub fn bits(&self, slot: u32, entry: Entry) -> (u16, u16) {
        let valid = entry.valid & !self.absent_of(slot);
        (valid, if self.is_dirty(slot) { valid } else { entry.dirty })
    }

    /// Sub-blocks that are dirty for the metadata.
    pub fn dirty_of(&self, slot: u32, entry: Entry) -> u16 {
        self.bits(slot, entry).1
    }

    /// What the metadata are to say of a slot.
    #[inline]
    pub fn recorded(&self, slot: u32, entry: Entry) -> Option<Entry> {
        let (valid, dirty) = self.bits(slot, entry);
        (valid != 0).then_some(Entry { valid, dirty, ..entry })
    }

    /// Whether of so many blocks something is not there for the metadata that the next commit has to flush
    /// disks for them.
    #[inline]
    pub fn has_too_many(&self) -> bool {
        self.absent.len() >= self.most_absent
    }

    /// Nothing waits any more.
    pub fn forget(&mut self) {
        self.dirty.clear_all();
        self.flushing.clear_all();
        self.absent = KeyMap::default();
        (self.count, self.next, self.flushed) = (0, None, None);
    }

    /// A flush failed: what the last ones beside the work cover is to be covered again.
    pub fn distrust(&mut self) {
        self.flushing.clear_all();
        (self.flushed, self.next) = (None, None);
    }

    /// Everything that was under way is over.
    pub fn forget_times(&mut self) {
        self.flushed = self.flushed.map(|_| Moment::PAST);
    }

    pub fn memory_bytes(&self) -> u64 {
        self.absent.allocation_size() as u64 + self.dirty.memory_bytes() + self.flushing.memory_bytes()
    }
}

/// The slots as the metadata are to have them.
pub struct Recorded<'a> {
    pub slots: &'a Slots,
    pub late: &'a Late,
    /// Slots that are to be filled, and with what.
    pub filling: &'a KeyMap,
}

impl Table for Recorded<'_> {
    fn list(&self, slots: Range<u32>, out: &mut Vec<(u32, Entry)>) {
        if !self.filling.is_empty() {
            return out.extend(slots.filter_map(|slot| Some((slot, self.entry(slot)?))));
        }
        // A third of a commit of small writes is here.
        out.reserve(slots.len());
        for slot in slots.start..slots.end.min(self.slots.count()) {
            let entry = self.slots.entry(slot);
            if entry.valid == 0 {
                continue;
            }
            let is_plain = !self.late.has_near(slot);
            let (valid, dirty) =
                if is_plain { (entry.valid, entry.dirty) } else { self.late.bits(slot, entry) };
            if valid != 0 {
                out.push((slot, Entry { valid, dirty, ..entry }));
            }
        }
    }

    fn prepare(&self, slot: u32) {
        self.slots.prepare(slot);
    }

    #[inline]
    fn entry(&self, slot: u32) -> Option<Entry> {
        let mut entry = Table::entry(self.slots, slot)?;
        if !self.filling.is_empty() {
            entry.valid &= !self.filling.get(&u64::from(slot)).map_or(0, |subs| *subs as u16);
        }
        self.late.recorded(slot, entry)
    }
}
