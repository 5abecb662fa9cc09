//! The figures of the summary: one list, read by the text table and by the HTML report.

use crate::number::Kind;
use nandscape_sim::RunResult;

/// Which direction is good, for marking the best run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// Neither; the figure describes.
    Neither,
}

/// One figure of a run.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Columns with the same group stand under one heading.
    pub group: &'static str,
    /// Heading of the column.
    pub name: &'static str,
    /// One line for those who do not know the word.
    pub about: &'static str,
    /// Unit and digits.
    pub kind: Kind,
    /// Which direction is good.
    pub better: Better,
    /// The value, if the run has one.
    pub value: fn(&RunResult) -> Option<f64>,
}

const fn metric(
    group: &'static str,
    name: &'static str,
    kind: Kind,
    better: Better,
    about: &'static str,
    value: fn(&RunResult) -> Option<f64>,
) -> Metric {
    Metric { group, name, about, kind, better, value }
}

fn if_written(result: &RunResult, value: u64) -> Option<f64> {
    (result.latency_ns.write.count > 0).then_some(value as f64)
}

fn if_read(result: &RunResult, value: u64) -> Option<f64> {
    (result.latency_ns.read.count > 0).then_some(value as f64)
}

/// A count that is left out when it is 0, so that a column nobody uses disappears.
fn unless_zero(value: u64) -> Option<f64> {
    (value > 0).then_some(value as f64)
}

/// The figures of the summary, in the order of the columns.
pub static SUMMARY: &[Metric] = &[
    metric("", "WAF", Kind::Ratio, Better::Lower, "flash pages programmed / host pages written", |r| r.waf),
    metric(
        "throughput",
        "write",
        Kind::Rate,
        Better::Higher,
        "host bytes written per simulated second",
        |r| (r.host.write_bytes > 0).then_some(r.throughput.write_bytes_per_s),
    ),
    metric("throughput", "read", Kind::Rate, Better::Higher, "host bytes read per simulated second", |r| {
        (r.host.read_bytes > 0).then_some(r.throughput.read_bytes_per_s)
    }),
    metric("write latency", "p50", Kind::Nanos, Better::Lower, "half of the writes were faster", |r| {
        if_written(r, r.latency_ns.write.p50)
    }),
    metric("write latency", "p99", Kind::Nanos, Better::Lower, "one write in 100 was slower", |r| {
        if_written(r, r.latency_ns.write.p99)
    }),
    metric("read latency", "p50", Kind::Nanos, Better::Lower, "half of the reads were faster", |r| {
        if_read(r, r.latency_ns.read.p50)
    }),
    metric("read latency", "p99", Kind::Nanos, Better::Lower, "one read in 100 was slower", |r| {
        if_read(r, r.latency_ns.read.p99)
    }),
    metric("erases", "total", Kind::Count, Better::Lower, "blocks erased", |r| Some(r.flash.erases as f64)),
    metric("erases", "min", Kind::Count, Better::Neither, "erases of the least worn good block", |r| {
        Some(r.wear.erases_min as f64)
    }),
    metric("erases", "max", Kind::Count, Better::Lower, "erases of the most worn block", |r| {
        Some(r.wear.erases_max as f64)
    }),
    metric(
        "erases",
        "sd",
        Kind::Real,
        Better::Lower,
        "standard deviation of the erases per good block",
        |r| Some(r.wear.erases_stddev),
    ),
    metric(
        "map",
        "table",
        Kind::Bytes,
        Better::Lower,
        "size of the mapping table in the layer's own model",
        |r| Some(r.map.table_bytes as f64),
    ),
    metric("map", "updates", Kind::Bytes, Better::Lower, "bytes of mapping table changed", |r| {
        Some(r.map.update_bytes as f64)
    }),
    metric("GC", "runs", Kind::Count, Better::Neither, "victims collected", |r| Some(r.gc.runs as f64)),
    metric("GC", "moved", Kind::Count, Better::Lower, "valid pages moved by garbage collection", |r| {
        Some(r.gc.moved_pages as f64)
    }),
    metric("merges", "switch", Kind::Count, Better::Neither, "log blocks that became data blocks", |r| {
        unless_zero(r.merges.switch)
    }),
    metric("merges", "full", Kind::Count, Better::Neither, "merges that copied log and data together", |r| {
        unless_zero(r.merges.full)
    }),
    metric("merges", "in place", Kind::Count, Better::Neither, "superblocks rewritten in place", |r| {
        unless_zero(r.merges.in_place)
    }),
    metric("", "DRAM", Kind::Bytes, Better::Lower, "memory the layer needs on a real device", |r| {
        Some(r.cost.dram_bytes as f64)
    }),
];

/// Over-provisioning, (physical - logical) / logical, of the good blocks; `None` without logical pages.
pub fn over_provisioning(result: &RunResult) -> Option<f64> {
    (result.cost.logical_pages > 0).then_some(result.cost.op_ratio)
}
