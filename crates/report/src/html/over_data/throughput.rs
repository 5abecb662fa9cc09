//! Bytes per simulated second.

use super::{Curves, Show};
use crate::html::values::ratio;
use nandscape_sim::metrics::Sample;

pub const CURVES: Curves = Curves {
    kind: "throughput",
    title: "Throughput",
    about: "host bytes read and written per simulated second, MB/s (1e6)",
    show: Show::Digits,
    floor: 0,
    columns: &[
        ("rate", |moment| ratio(megabytes(moment.now), seconds(moment.now))),
        ("rate_i", |moment| ratio(moment.since(megabytes), moment.since(seconds))),
    ],
    tabs: |_| Some(&["since the start", "per interval"]),
};

fn megabytes(sample: &Sample) -> f64 {
    (sample.host.read_bytes + sample.host.write_bytes) as f64 / 1e6
}

fn seconds(sample: &Sample) -> f64 {
    sample.simulated_ns as f64 / 1e9
}
