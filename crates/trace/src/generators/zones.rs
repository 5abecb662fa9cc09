//! What generators know of a device's zones, so that all that they write is legal there.
//!
//! The zones are empty at first. A write goes to the write pointer of its zone, a full zone is reset before
//! it is written again, and at most `active` zones are written in part.

use super::common::{OFFSET, refuse};
use nandscape_core::rng::{Xoshiro256PlusPlus, below};
use nandscape_core::{ParamError, Params, TraceOp, keys};
use std::collections::VecDeque;
use std::ops::Range;

/// Most zones whose write pointers are kept.
const ZONES_MAX: u64 = 1 << 20;

keys! {
    pub(crate) ZONES: Option<u64> = size(512, 1 << 40),
        "size of the device's zones; without it the writes are for a block device";
    pub(crate) CAPACITY: Option<u64> = size(512, 1 << 40),
        "bytes of a zone that can be written; the whole zone if absent";
    pub(crate) ACTIVE: Option<u64> = int(1, 1 << 20),
        "zones that may be written in part at a time; 8 if absent";
    pub(crate) APPEND: Option<bool> = flag(),
        "write zones by append; false, that is by writes at the write pointer, if absent";
}

/// Refuses the other keys of zones where there are none.
pub(crate) fn check_keys(params: &Params) -> Result<(), ParamError> {
    if params.get(ZONES).is_none() {
        for name in [CAPACITY.param.name, ACTIVE.param.name, APPEND.param.name] {
            refuse(params, name, "with zones")?;
        }
    }
    Ok(())
}

/// The zones of an area, by their numbers in it, and what is written of each.
pub(crate) struct Zones {
    pub(crate) size: u64,
    pub(crate) capacity: u64,
    append: bool,
    /// Bytes written of each zone; all of the capacity if it was finished.
    next: Vec<u64>,
    /// Zones that are written in part, least recently written first.
    active: VecDeque<u64>,
    pub(crate) most_active: usize,
}

impl Zones {
    /// The zones of `size` bytes in an area of `span` bytes at `origin`, written in requests of `bs` bytes.
    pub(crate) fn new(
        params: &Params,
        size: u64,
        origin: u64,
        span: u64,
        bs: u64,
    ) -> Result<Self, ParamError> {
        if !origin.is_multiple_of(size) {
            return Err(params.error(OFFSET, format!("the start of a zone, a multiple of {size} B")));
        }
        let capacity = params.get(CAPACITY).unwrap_or(size);
        if capacity > size || !capacity.is_multiple_of(bs) {
            let key = if params.get(CAPACITY).is_some() { CAPACITY } else { ZONES };
            return Err(
                params.error(key, format!("a multiple of bs, {bs} B, and at most the zone size, {size} B"))
            );
        }
        let zones = (span / size).max(1);
        if zones > ZONES_MAX {
            return Err(
                params.error(ZONES, format!("at most {ZONES_MAX} zones in the span (they are {zones})"))
            );
        }
        // A target below a zone is rewritten as soon as it is full.
        let capacity = capacity.min(span / bs * bs);
        Ok(Self {
            size,
            capacity,
            append: params.get(APPEND).unwrap_or(false),
            next: vec![0; zones as usize],
            active: VecDeque::new(),
            most_active: params.get(ACTIVE).unwrap_or(8) as usize,
        })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.next.len() as u64
    }

    /// The zone that a random write goes to: the one that was drawn or, if that would begin one too many, one
    /// of the process's own that are written in part, drawn anew.
    pub(crate) fn writable(&self, drawn: u64, own: &Range<u64>, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let written = self.next[drawn as usize];
        if written > 0 && written < self.capacity || self.active.len() < self.most_active {
            return drawn;
        }
        let candidates = || self.active.iter().copied().filter(|zone| own.contains(zone));
        match candidates().count() as u64 {
            0 => drawn,
            count => candidates().nth(below(rng, count) as usize).unwrap_or(drawn),
        }
    }

    /// The operations of a write of `bytes` to a zone, the first of an empty zone longer by `shift`: offset
    /// in the area, length and kind.
    pub(crate) fn write(
        &mut self,
        zone: u64,
        bytes: u64,
        shift: u64,
        mut give: impl FnMut(TraceOp, u64, u64),
    ) {
        let start = zone * self.size;
        let index = zone as usize;
        if self.next[index] == self.capacity {
            self.reset(zone, &mut give);
        }
        let written = self.next[index];
        if written == 0 {
            if self.active.len() == self.most_active
                && let Some(oldest) = self.active.pop_front()
            {
                give(TraceOp::Finish, oldest * self.size, 0);
                self.next[oldest as usize] = self.capacity;
            }
        } else {
            self.active.retain(|active| *active != zone);
        }
        let len = if written == 0 { bytes + shift } else { bytes }.min(self.capacity - written);
        if self.append {
            give(TraceOp::Append, start, len);
        } else {
            give(TraceOp::Write, start + written, len);
        }
        self.next[index] = written + len;
        if written + len < self.capacity {
            self.active.push_back(zone);
        }
    }

    /// Empties a zone if anything was written to it.
    pub(crate) fn reset(&mut self, zone: u64, mut give: impl FnMut(TraceOp, u64, u64)) {
        let written = std::mem::take(&mut self.next[zone as usize]);
        if written > 0 {
            give(TraceOp::Reset, zone * self.size, 0);
            if written < self.capacity {
                self.active.retain(|active| *active != zone);
            }
        }
    }

    /// Bytes written of a zone.
    pub(crate) fn written(&self, zone: u64) -> u64 {
        self.next[zone as usize]
    }
}
