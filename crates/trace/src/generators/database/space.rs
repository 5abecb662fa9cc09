//! The area that a load has: bytes one behind the other, whatever the device makes of them.

use super::super::zones::Zones;
use nandscape_core::{IoRecord, SimTime, TraceOp};
use std::collections::VecDeque;

/// Places are bytes from the start of the area. On zones the parts of them that cannot be written are left
/// out, so that the area has no holes.
pub(super) struct Space {
    /// Bytes that can be used.
    pub(super) usable: u64,
    /// Bytes of a block.
    pub(super) bs: u64,
    /// What is taken and freed at a time is a multiple of this: a zone, or a block.
    pub(super) grain: u64,
    zones: Option<Zones>,
    discard: bool,
    pub(super) out: Out,
}

/// Operations that are ready to be taken.
pub(super) struct Out {
    origin: u64,
    /// When they arrive.
    pub(super) at: SimTime,
    pub(super) ready: VecDeque<IoRecord>,
    /// Bytes read and written so far.
    pub(super) bytes: u64,
}

impl Out {
    fn give(&mut self, op: TraceOp, offset: u64, len: u64) {
        if op == TraceOp::Read || op.is_write() {
            self.bytes += len;
        }
        let offset = if op == TraceOp::Flush { 0 } else { self.origin + offset };
        self.ready.push_back(IoRecord { at: self.at, offset, len, volume: 0, hint: 0, op });
    }
}

impl Space {
    pub(super) fn new(origin: u64, span: u64, bs: u64, zones: Option<Zones>, discard: bool) -> Self {
        let (usable, grain) = match &zones {
            None => (span / bs * bs, bs),
            Some(zones) => (zones.count() * zones.capacity, zones.capacity),
        };
        let out = Out { origin, at: SimTime(0), ready: VecDeque::new(), bytes: 0 };
        Self { usable, bs, grain, zones, discard, out }
    }

    /// Most places that may be written in part at a time; `None` if any number may.
    pub(super) fn most_active(&self) -> Option<u64> {
        self.zones.as_ref().map(|zones| zones.most_active as u64)
    }

    /// The largest multiple of the grain that is at most `bytes`.
    pub(super) fn whole(&self, bytes: u64) -> u64 {
        bytes / self.grain * self.grain
    }

    /// Writes, in one request for each zone.
    pub(super) fn write(&mut self, at: u64, len: u64) {
        assert!(at + len <= self.usable, "{len} B at {at} end behind the area of {} B", self.usable);
        let Some(zones) = &mut self.zones else { return self.out.give(TraceOp::Write, at, len) };
        let (mut at, end) = (at, at + len);
        while at < end {
            let (zone, inside) = (at / self.grain, at % self.grain);
            assert_eq!(zones.written(zone), inside, "a write of zone {zone} is off its write pointer");
            let len = (end - at).min(self.grain - inside);
            zones.write(zone, len, 0, |op, offset, len| self.out.give(op, offset, len));
            at += len;
        }
    }

    /// Reads a block.
    pub(super) fn read(&mut self, at: u64) {
        let offset = match &self.zones {
            None => at,
            Some(zones) => at / self.grain * zones.size + at % self.grain,
        };
        self.out.give(TraceOp::Read, offset, self.bs);
    }

    /// Frees what is written of a range of whole grains.
    pub(super) fn free(&mut self, at: u64, len: u64) {
        match &mut self.zones {
            None if self.discard => self.out.give(TraceOp::Trim, at, len),
            None => {}
            Some(zones) => {
                for zone in at / self.grain..(at + len) / self.grain {
                    zones.reset(zone, |op, offset, len| self.out.give(op, offset, len));
                }
            }
        }
    }

    pub(super) fn flush(&mut self) {
        self.out.give(TraceOp::Flush, 0, 0);
    }
}
