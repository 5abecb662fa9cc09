//! Write amplification.

use super::Curves;
use crate::html::values::ratio;
use nandscape_sim::metrics::Sample;

pub const CURVES: Curves = Curves {
    kind: "waf",
    title: "Write amplification",
    about: "flash pages programmed per host page written",
    show: "digits",
    floor: 1,
    columns: &[
        ("waf", |moment| ratio(programs(moment.now), pages(moment.now))),
        ("waf_i", |moment| ratio(moment.since(programs), moment.since(pages))),
    ],
    tabs: |ends| {
        let has_both = ends.any(|sample| sample.host.write_pages.min(sample.causes.total().programs));
        has_both.then_some(&["since the start", "per interval"])
    },
};

fn programs(sample: &Sample) -> f64 {
    sample.causes.total().programs as f64
}

fn pages(sample: &Sample) -> f64 {
    sample.host.write_pages as f64
}
