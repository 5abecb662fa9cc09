//! Where appends go: the write pointers of zones, as a device that is empty when the workload begins has
//! them; and how long objects are.

use nandscape_core::{IoRecord, TraceOp};
use std::collections::BTreeMap;

/// Write pointers of the zones that an operation of zones named. A zone that was only written has none: its
/// first byte is not known.
#[derive(Default)]
pub(super) struct Pointers {
    next: BTreeMap<(u32, u64), u64>,
    /// Bytes of objects.
    sizes: BTreeMap<u32, u64>,
}

impl Pointers {
    /// The same request of a block device: an append becomes the write that it leads to, an object a volume
    /// of its own whose lost bytes are discarded.
    pub(super) fn place(&mut self, record: &IoRecord) -> IoRecord {
        let IoRecord { volume, offset, len, .. } = *record;
        match record.op {
            TraceOp::Append => {
                let next = self.next.entry((volume, offset)).or_insert(offset);
                let at = *next;
                *next = at.saturating_add(len);
                IoRecord { op: TraceOp::Write, offset: at, ..*record }
            }
            TraceOp::Write => {
                let zone = self.next.range_mut(..=(volume, offset)).next_back();
                if let Some((_, next)) = zone.filter(|((of, _), next)| *of == volume && **next == offset) {
                    *next = offset.saturating_add(len);
                }
                *record
            }
            TraceOp::Reset | TraceOp::Finish | TraceOp::Open | TraceOp::Close if len == 0 => {
                self.next.entry((volume, offset)).or_insert(offset);
                *record
            }
            _ if record.op.is_object_op() => self.place_object(record),
            _ => *record,
        }
    }

    fn place_object(&mut self, record: &IoRecord) -> IoRecord {
        let IoRecord { volume, offset, len, .. } = *record;
        if record.op == TraceOp::ObjectDelete {
            let len = self.sizes.remove(&volume).unwrap_or(0);
            return IoRecord { op: TraceOp::Trim, offset: 0, len, ..*record };
        }
        let size = self.sizes.entry(volume).or_insert(0);
        let (op, offset, len) = match record.op {
            TraceOp::ObjectWrite => {
                *size = offset.saturating_add(len).max(*size);
                (TraceOp::Write, offset, len)
            }
            TraceOp::ObjectRead => (TraceOp::Read, offset, len),
            TraceOp::ObjectPunch => (TraceOp::Trim, offset, len),
            TraceOp::ObjectTruncate => {
                let old = std::mem::replace(size, offset);
                (TraceOp::Trim, offset, old.saturating_sub(offset))
            }
            _ => (TraceOp::Flush, 0, 0),
        };
        IoRecord { op, offset, len, ..*record }
    }

    /// Moves the pointers back that a reset is for; gives the bytes before them, as offset and length.
    pub(super) fn reset(&mut self, reset: &IoRecord) -> Vec<(u64, u64)> {
        let IoRecord { volume, offset, .. } = *reset;
        let (first, last) = if reset.is_for_every_zone() { (0, u64::MAX) } else { (offset, offset) };
        let zones = self.next.range_mut((volume, first)..=(volume, last));
        zones.map(|((_, zone), next)| (*zone, std::mem::replace(next, *zone) - zone)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::SimTime;

    #[test]
    fn appends_follow_each_other_and_start_again_after_a_reset() {
        let io = |op, offset, len| IoRecord { at: SimTime(0), offset, len, volume: 0, hint: 0, op };
        let mut pointers = Pointers::default();
        let mut place = |op, offset, len| {
            let record = io(op, offset, len);
            let gone = if op == TraceOp::Reset { pointers.reset(&record) } else { Vec::new() };
            (pointers.place(&record).offset, gone)
        };
        assert_eq!(place(TraceOp::Append, 1000, 10), (1000, vec![]));
        assert_eq!(place(TraceOp::Append, 1000, 10), (1010, vec![]));
        assert_eq!(place(TraceOp::Write, 1020, 5), (1020, vec![]), "a write at the pointer moves it");
        assert_eq!(place(TraceOp::Open, 0, 0), (0, vec![]));
        assert_eq!(place(TraceOp::Append, 0, 7), (0, vec![]));
        assert_eq!(place(TraceOp::Reset, 1000, 0), (1000, vec![(1000, 25)]));
        assert_eq!(place(TraceOp::Append, 1000, 10), (1000, vec![]));
        assert_eq!(place(TraceOp::Reset, 0, IoRecord::EVERY_ZONE).1, [(0, 7), (1000, 10)]);
    }

    #[test]
    fn objects_are_volumes_whose_lost_bytes_are_discarded() {
        let mut pointers = Pointers::default();
        let mut place = |op, offset, len| {
            let record = IoRecord { at: SimTime(0), offset, len, volume: 3, hint: 0, op };
            let placed = pointers.place(&record);
            (placed.op, placed.volume, placed.offset, placed.len)
        };
        assert_eq!(place(TraceOp::ObjectWrite, 100, 900), (TraceOp::Write, 3, 100, 900));
        assert_eq!(place(TraceOp::ObjectTruncate, 600, 0), (TraceOp::Trim, 3, 600, 400));
        assert_eq!(place(TraceOp::ObjectTruncate, 800, 0), (TraceOp::Trim, 3, 800, 0));
        assert_eq!(place(TraceOp::ObjectDelete, 0, 0), (TraceOp::Trim, 3, 0, 800));
        assert_eq!(place(TraceOp::ObjectDelete, 0, 0), (TraceOp::Trim, 3, 0, 0));
    }
}
