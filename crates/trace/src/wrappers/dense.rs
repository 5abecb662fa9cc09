//! `--remap dense`: the pages that reads and writes touch, moved together in address order.
//!
//! Public traces touch a few GiB spread over hundreds. Keeping the order of addresses keeps sequential runs
//! sequential; offsets inside a 4 KiB page are kept too, and a request over several pages stays one piece
//! because all its pages are touched. With several volumes the dense space holds one volume after the other.
//!
//! Discards and zeroing do not count as touching: ext4 with online discard trims hundreds of MiB that are
//! never written. In the dense space the touched pages inside a discarded range are neighbours, so a discard
//! stays one request over exactly these. One that covers no touched page stays as a request of length 0, so
//! that the command is still counted. Operations of zones are refused: a zone does not begin at another
//! place.

use super::Changed;
use crate::error::io;
use crate::options::BoxReader;
use crate::pages::{DenseMap, GRANULE};
use nandscape_core::{IoRecord, TraceOp, TraceReader};
use std::sync::Arc;

struct Dense {
    map: Arc<DenseMap>,
    hint: usize,
}

pub(crate) fn dense(inner: BoxReader, source: &str, map: Arc<DenseMap>) -> impl TraceReader + use<> {
    let source = source.to_owned();
    let mut dense = Dense { map, hint: 0 };
    Changed::new(inner, move |record| {
        if record.op.block_op().is_none() {
            let of = if record.op.is_zone_op() { "a zone" } else { "an object" };
            return Err(io(
                &source,
                format!(
                    "operation {} of {of} at {}: expected none with --remap dense, which moves addresses",
                    record.op.letter(),
                    record.offset
                ),
            ));
        }
        dense.remap(record);
        Ok(())
    })
}

/// Whether a request counts as touching its pages.
pub(crate) fn touches(op: TraceOp) -> bool {
    matches!(op, TraceOp::Read | TraceOp::Write)
}

impl Dense {
    /// Where a byte of the source lies in the dense space; the start of the next touched page if its own is
    /// untouched.
    fn locate(&mut self, volume: u32, at: u64) -> u64 {
        let rank = self.map.rank(volume, at / GRANULE, &mut self.hint);
        rank.before * GRANULE + if rank.touched { at % GRANULE } else { 0 }
    }

    fn remap(&mut self, record: &mut IoRecord) {
        match record.op {
            TraceOp::Read | TraceOp::Write => record.offset = self.locate(record.volume, record.offset),
            TraceOp::Trim | TraceOp::WriteZeroes => {
                let start = self.locate(record.volume, record.offset);
                let end = self.locate(record.volume, record.offset + record.len);
                (record.offset, record.len) = (start, end - start);
            }
            _ => {}
        }
        record.volume = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::PageSet;
    use crate::wrappers::testing::{all, io, list};

    fn dense(records: &[IoRecord]) -> Vec<IoRecord> {
        let mut set = PageSet::new();
        for record in records.iter().filter(|r| touches(r.op)) {
            set.insert(record.volume, record.offset, record.len);
        }
        all(super::dense(list(records), "t", Arc::new(DenseMap::new(set))))
    }

    const G: u64 = GRANULE;

    #[test]
    fn order_and_offsets_inside_pages_are_kept() {
        let records = [
            io(0, TraceOp::Write, 0, 900 * G + 512, 2 * G),
            io(1, TraceOp::Write, 0, 10 * G, G),
            io(2, TraceOp::Read, 0, 902 * G, 100),
            io(3, TraceOp::Write, 1, 0, 8),
        ];
        let got: Vec<_> = dense(&records).iter().map(|r| (r.volume, r.offset, r.len)).collect();
        assert_eq!(got, [(0, G + 512, 2 * G), (0, 0, G), (0, 3 * G, 100), (0, 4 * G, 8)]);
    }

    #[test]
    fn operations_of_zones_are_refused() {
        let records = [io(0, TraceOp::Write, 0, 0, G), io(1, TraceOp::Reset, 0, 9 * G, 0)];
        let mut set = PageSet::new();
        set.insert(0, 0, G);
        let mut reader = super::dense(list(&records), "t", Arc::new(DenseMap::new(set)));
        assert!(reader.next().unwrap().is_ok());
        let error = reader.next().unwrap().unwrap_err().to_string();
        assert!(
            error.contains("t: operation X of a zone at 36864: expected none with --remap dense"),
            "{error}"
        );
        assert!(reader.next().is_none());
    }

    #[test]
    fn a_trim_covers_the_touched_pages_inside_it_and_no_others() {
        let records = [
            io(0, TraceOp::Write, 0, 100 * G, G),
            io(0, TraceOp::Write, 0, 200 * G, G),
            io(0, TraceOp::Write, 0, 300 * G, 2 * G),
            io(1, TraceOp::Trim, 0, 150 * G, 151 * G),
            io(2, TraceOp::Trim, 0, 0, 50 * G),
            io(3, TraceOp::WriteZeroes, 0, 301 * G + 512, 100 * G),
            io(4, TraceOp::Trim, 0, 250 * G, 50 * G + 512),
            io(5, TraceOp::Flush, 0, 0, 0),
        ];
        let got: Vec<_> = dense(&records)[3..].iter().map(|r| (r.offset, r.len)).collect();
        assert_eq!(got, [(G, 2 * G), (0, 0), (3 * G + 512, G - 512), (2 * G, 512), (0, 0)]);
    }
}
