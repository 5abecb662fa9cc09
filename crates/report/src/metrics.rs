//! The figures of the summary: one list, read by the text table and by the HTML report.

use crate::number::Kind;
use nandscape_sim::RunResult;
use nandscape_sim::result::CacheResult;

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

/// A figure of flash, which a run without flash has not.
fn if_flash(result: &RunResult, value: f64) -> Option<f64> {
    (!result.flash.by_cause.is_empty()).then_some(value)
}

/// A figure of a cache.
fn cached(result: &RunResult, value: fn(&CacheResult) -> Option<f64>) -> Option<f64> {
    result.cache.as_ref().and_then(value)
}

/// The figures of the summary, in the order of the columns.
pub static SUMMARY: &[Metric] = &[
    metric("", "WAF", Kind::Ratio, Better::Lower, "flash pages programmed / host pages written", |r| {
        r.waf.pages
    }),
    metric(
        "hits",
        "reads",
        Kind::Ratio,
        Better::Higher,
        "read requests answered wholly from the cache / all",
        |r| cached(r, |cache| cache.read_hit_ratio),
    ),
    metric(
        "hits",
        "writes",
        Kind::Ratio,
        Better::Higher,
        "write requests whose blocks were cached / all",
        |r| cached(r, |cache| cache.write_hit_ratio),
    ),
    metric("disk", "read", Kind::Bytes, Better::Lower, "bytes the cache read from the disks", |r| {
        cached(r, |cache| Some(cache.report.disk().read_bytes as f64))
    }),
    metric("disk", "written", Kind::Bytes, Better::Lower, "bytes the cache wrote to the disks", |r| {
        cached(r, |cache| Some(cache.report.disk().write_bytes as f64))
    }),
    metric("cache device", "read", Kind::Bytes, Better::Neither, "bytes read from the cache device", |r| {
        cached(r, |cache| Some(cache.report.fast.read_bytes as f64))
    }),
    metric(
        "cache device",
        "written",
        Kind::Bytes,
        Better::Lower,
        "bytes written to the cache device, metadata included",
        |r| cached(r, |cache| Some(cache.report.fast.write_bytes as f64)),
    ),
    metric(
        "cache device",
        "WAF",
        Kind::Ratio,
        Better::Lower,
        "bytes programmed to flash / bytes the cache wrote to it",
        |r| cached(r, |cache| cache.device_waf),
    ),
    metric(
        "throughput",
        "write",
        Kind::Rate,
        Better::Higher,
        "host bytes written per simulated second",
        |r| (r.host.write_bytes > 0).then_some(r.speed.throughput.write_bytes_per_s),
    ),
    metric("throughput", "read", Kind::Rate, Better::Higher, "host bytes read per simulated second", |r| {
        (r.host.read_bytes > 0).then_some(r.speed.throughput.read_bytes_per_s)
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
    metric("erases", "total", Kind::Count, Better::Lower, "blocks erased", |r| {
        if_flash(r, r.flash.erases as f64)
    }),
    metric("erases", "min", Kind::Count, Better::Neither, "erases of the least worn good block", |r| {
        if_flash(r, r.wear.erases_min as f64)
    }),
    metric("erases", "max", Kind::Count, Better::Lower, "erases of the most worn block", |r| {
        if_flash(r, r.wear.erases_max as f64)
    }),
    metric(
        "erases",
        "sd",
        Kind::Real,
        Better::Lower,
        "standard deviation of the erases per good block",
        |r| if_flash(r, r.wear.erases_stddev),
    ),
    metric(
        "map",
        "table",
        Kind::Bytes,
        Better::Lower,
        "size of the mapping table in the layer's own model",
        |r| if_flash(r, r.layer.map.table_bytes as f64),
    ),
    metric("map", "updates", Kind::Bytes, Better::Lower, "bytes of mapping table changed", |r| {
        if_flash(r, r.layer.map.update_bytes as f64)
    }),
    metric("GC", "runs", Kind::Count, Better::Neither, "victims collected", |r| {
        if_flash(r, r.layer.gc.runs as f64)
    }),
    metric("GC", "moved", Kind::Count, Better::Lower, "valid pages moved by garbage collection", |r| {
        if_flash(r, r.layer.gc.moved_pages as f64)
    }),
    metric("merges", "switch", Kind::Count, Better::Neither, "log blocks that became data blocks", |r| {
        unless_zero(r.layer.merges.switch)
    }),
    metric("merges", "full", Kind::Count, Better::Neither, "merges that copied log and data together", |r| {
        unless_zero(r.layer.merges.full)
    }),
    metric("merges", "in place", Kind::Count, Better::Neither, "superblocks rewritten in place", |r| {
        unless_zero(r.layer.merges.in_place)
    }),
    metric("", "DRAM", Kind::Bytes, Better::Lower, "memory the layer needs on a real device", |r| {
        if_flash(r, r.cost.dram_bytes as f64)
    }),
];

/// Over-provisioning, (physical - logical) / logical, of the good blocks; `None` without logical pages.
pub fn over_provisioning(result: &RunResult) -> Option<f64> {
    (result.cost.logical_pages > 0).then_some(result.cost.op_ratio)
}
