//! Several volumes laid side by side in one address space.
//!
//! The first volume that is met starts at 0. Only when a second one turns up does the workload get scanned
//! for the largest end of each, so that a file with one volume costs one pass. The others follow in the order
//! of their numbers, each start rounded up to 1 MiB. What a request says of its volume goes on as its origin.
//! Operations on objects go through as they are.
//! An operation on every zone of a volume has no form beside other volumes, and is refused.

use super::Changed;
use crate::error::Result;
use crate::error::io;
use crate::options::BoxReader;
use nandscape_core::{TraceOp, TraceReader};
use std::collections::BTreeMap;

/// Largest end of each volume of the workload, in bytes.
pub(crate) type Ends = BTreeMap<u32, u64>;
pub(crate) type Scanner = Box<dyn FnMut() -> Result<Ends> + Send>;

const ALIGN: u64 = 1 << 20;

struct SideBySide {
    source: String,
    scan: Scanner,
    first: Option<u32>,
    last: (u32, u64),
    /// A request was for every zone of the first volume.
    resets_all: bool,
    bases: Option<BTreeMap<u32, u64>>,
}

pub(crate) fn side_by_side(inner: BoxReader, source: &str, scan: Scanner) -> impl TraceReader + use<> {
    let source = source.to_owned();
    let mut volumes = SideBySide { source, scan, first: None, last: (0, 0), resets_all: false, bases: None };
    Changed::new(inner, move |record| {
        // Objects have numbers; where they are, the store knows.
        if record.op.is_object_op() {
            return Ok(());
        }
        let base = volumes.base(record.volume)?;
        volumes.resets_all |= record.is_for_every_zone();
        if volumes.resets_all && volumes.bases.is_some() {
            return Err(io(
                &volumes.source,
                format!(
                    "an operation on every zone of volume {}: expected none beside other volumes; choose one with --volume",
                    record.volume
                ),
            ));
        }
        if record.op != TraceOp::Flush {
            record.offset += base;
        }
        record.volume = 0;
        Ok(())
    })
}

impl SideBySide {
    #[inline]
    fn base(&mut self, volume: u32) -> Result<u64> {
        match self.first {
            Some(_) if self.last.0 == volume => return Ok(self.last.1),
            Some(first) => {
                if self.bases.is_none() {
                    self.bases = Some(lay_out(first, &(self.scan)()?, &self.source)?);
                }
                let bases = self.bases.as_ref().expect("set above");
                let base = *bases.get(&volume).ok_or_else(|| {
                    io(&self.source, format!("volume {volume} appeared while the file was being read"))
                })?;
                self.last = (volume, base);
            }
            None => {
                self.first = Some(volume);
                self.last = (volume, 0);
            }
        }
        Ok(self.last.1)
    }
}

fn lay_out(first: u32, ends: &Ends, source: &str) -> Result<BTreeMap<u32, u64>> {
    let mut bases = BTreeMap::from([(first, 0)]);
    let mut next = ends.get(&first).copied().unwrap_or(0);
    for (&volume, &end) in ends.iter().filter(|(volume, _)| **volume != first) {
        let base = next.checked_next_multiple_of(ALIGN);
        next = base.and_then(|base| base.checked_add(end)).ok_or_else(|| {
            io(
                source,
                format!("volume {volume} does not fit 2^64 bytes behind the others: expected fewer volumes or --remap dense"),
            )
        })?;
        bases.insert(volume, base.expect("checked with next"));
    }
    Ok(bases)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrappers::testing::{all, io, list};
    use nandscape_core::IoRecord;

    #[test]
    fn one_volume_is_never_scanned() {
        let records = [io(0, TraceOp::Read, 7, 512, 512), io(0, TraceOp::Read, 7, 0, 512)];
        let side = side_by_side(list(&records), "t", Box::new(|| panic!("scanned")));
        assert_eq!(all(side).iter().map(|r| (r.volume, r.offset)).collect::<Vec<_>>(), [(0, 512), (0, 0)]);
    }

    #[test]
    fn volumes_do_not_overlap() {
        let records = [
            io(0, TraceOp::Read, 7, 0, 512),
            io(0, TraceOp::Read, 2, 512, 512),
            io(0, TraceOp::Read, 9, 1, 1),
        ];
        let scan = || Ok(Ends::from([(7, 3 << 20), (2, ALIGN + 1), (9, 2)]));
        let got: Vec<_> =
            all(side_by_side(list(&records), "t", Box::new(scan))).iter().map(|r| r.offset).collect();
        assert_eq!(got, [0, (3 << 20) + 512, (5 << 20) + 1]);
    }

    #[test]
    fn the_origin_says_which_volume_it_was() {
        let records = [io(0, TraceOp::Read, 7, 0, 512), io(0, TraceOp::Read, 2, 0, 512)];
        let scan = || Ok(Ends::from([(7, 512), (2, 512)]));
        let mut side = side_by_side(list(&records), "t", Box::new(scan));
        for volume in [7, 2] {
            assert_eq!((side.next().unwrap().unwrap().volume, side.origin().volume), (0, volume));
        }
    }

    #[test]
    fn every_zone_of_one_of_several_volumes_is_refused() {
        let all = io(0, TraceOp::Reset, 7, 0, IoRecord::EVERY_ZONE);
        let other = io(0, TraceOp::Read, 2, 0, 512);
        let scan = || Ok(Ends::from([(7, 512), (2, 512)]));
        for records in [[all, other, other], [io(0, TraceOp::Read, 7, 0, 512), other, all]] {
            let mut side = side_by_side(list(&records), "t", Box::new(scan));
            let error = side.find_map(Result::err).unwrap().to_string();
            assert!(error.contains("choose one with --volume"), "{error}");
        }
        assert_eq!(
            crate::wrappers::testing::all(side_by_side(list(&[all; 2]), "t", Box::new(scan))).len(),
            2
        );
    }

    #[test]
    fn volumes_that_do_not_fit_are_refused() {
        let records = [io(0, TraceOp::Read, 0, 0, 512), io(0, TraceOp::Read, 1, 512, 512)];
        let scan = || Ok(Ends::from([(0, u64::MAX - 5), (1, 512)]));
        let mut side = side_by_side(list(&records), "t", Box::new(scan));
        assert!(side.next().unwrap().is_ok());
        assert!(side.next().unwrap().unwrap_err().to_string().contains("volume 1 does not fit"));
        assert!(side.next().is_none());
    }
}
