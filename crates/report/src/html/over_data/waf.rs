//! Write amplification.

use super::{Curves, Show};
use crate::html::values::ratio;
use nandscape_sim::metrics::Sample;

pub const CURVES: Curves = Curves {
    kind: "waf",
    title: "Write amplification",
    about: "bytes programmed to flash for each byte that hosts wrote",
    show: Show::Digits,
    floor: 1,
    columns: &[
        ("waf", |moment| ratio(programs(moment.now) * moment.program_bytes, written(moment.now))),
        ("waf_i", |moment| ratio(moment.since(programs) * moment.program_bytes, moment.since(written))),
    ],
    tabs: |ends| {
        let has_both = ends.any(|sample| sample.host.write_bytes.min(sample.causes.total().programs));
        has_both.then_some(&["since the start", "per interval"])
    },
};

fn programs(sample: &Sample) -> f64 {
    sample.causes.total().programs as f64
}

fn written(sample: &Sample) -> f64 {
    sample.host.write_bytes as f64
}
