//! The figures of the summary: one list, read by the text table and by the HTML report.

use crate::number::Kind::{self, Bytes, Count, Nanos, Rate, Ratio, Real};
use crate::number::Unit;
use crate::table::Weight;
use Better::{Higher, Lower, Neither};
use nandscape_core::Cause;
use nandscape_sim::RunResult;
use nandscape_sim::result::{CacheResult, LatencySummary, Spread};
use nandscape_sim::trust::ALIKE_SHARE;

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
    /// What a narrow terminal keeps of it.
    pub weight: Weight,
    /// Key of the document under which several seeds have its spread, if they have one.
    pub spread_key: Option<&'static str>,
    /// The value, if the run has one.
    pub value: fn(&RunResult) -> Option<f64>,
}

impl Metric {
    const fn essential(self) -> Self {
        Self { weight: Weight::Essential, ..self }
    }

    const fn minor(self) -> Self {
        Self { weight: Weight::Minor, ..self }
    }

    const fn over_seeds(self, key: &'static str) -> Self {
        Self { spread_key: Some(key), ..self }
    }
}

const fn metric(
    group: &'static str,
    name: &'static str,
    kind: Kind,
    better: Better,
    about: &'static str,
    value: fn(&RunResult) -> Option<f64>,
) -> Metric {
    Metric { group, name, about, kind, better, weight: Weight::Useful, spread_key: None, value }
}

impl Metric {
    /// Least, mean and largest value of a run with several seeds.
    pub fn spread(&self, result: &RunResult) -> Option<Spread> {
        spread(result, self.spread_key?)
    }

    /// The value, of a run with several seeds their mean.
    pub fn mean(&self, result: &RunResult) -> Option<f64> {
        self.spread(result).map(|spread| spread.mean).or_else(|| (self.value)(result))
    }
}

/// Least, mean and largest value of a figure of a run with several seeds, by its key.
pub(crate) fn spread(result: &RunResult, key: &str) -> Option<Spread> {
    result.run.seeds.as_ref()?.spread.get(key).copied()
}

/// A figure of a distribution, which is none where nothing was measured.
fn of(latency: &LatencySummary, value: u64) -> Option<f64> {
    (latency.count > 0).then_some(value as f64)
}

/// A count that is left out when it is 0, so that a column nobody uses disappears.
fn unless_zero(value: u64) -> Option<f64> {
    (value > 0).then_some(value as f64)
}

/// A figure of flash, which a run without flash has not.
fn if_flash(result: &RunResult, value: f64) -> Option<f64> {
    (!result.flash.by_cause.is_empty()).then_some(value)
}

fn cached(result: &RunResult, value: fn(&CacheResult) -> Option<f64>) -> Option<f64> {
    result.cache.as_ref().and_then(value)
}

/// The figures of the summary, in the order of the columns.
pub static SUMMARY: &[Metric] = &[
    metric("", "WAF", Ratio, Lower, "bytes programmed to flash / bytes hosts wrote", |r| r.waf.bytes)
        .essential()
        .over_seeds("waf_bytes"),
    metric("hits", "reads", Ratio, Higher, "read requests answered wholly from the cache / all", |r| {
        cached(r, |cache| cache.read_hit_ratio)
    })
    .essential()
    .over_seeds("cache.read_hit_ratio"),
    metric("hits", "writes", Ratio, Higher, "write requests whose blocks were cached / all", |r| {
        cached(r, |cache| cache.write_hit_ratio)
    })
    .over_seeds("cache.write_hit_ratio"),
    metric("disk", "read", Bytes, Lower, "bytes the cache read from the disks", |r| {
        cached(r, |cache| Some(cache.report.disk().read_bytes as f64))
    }),
    metric("disk", "written", Bytes, Lower, "bytes the cache wrote to the disks", |r| {
        cached(r, |cache| Some(cache.report.disk().write_bytes as f64))
    }),
    metric("cache device", "read", Bytes, Neither, "bytes read from the cache device", |r| {
        cached(r, |cache| Some(cache.report.fast.read_bytes as f64))
    })
    .minor(),
    metric(
        "cache device",
        "written",
        Bytes,
        Lower,
        "bytes written to the cache device, metadata included",
        |r| cached(r, |cache| Some(cache.report.fast.write_bytes as f64)),
    ),
    metric(
        "cache device",
        "WAF",
        Ratio,
        Lower,
        "bytes programmed to flash / bytes the cache wrote to it",
        |r| cached(r, |cache| cache.device_waf),
    ),
    metric("throughput", "write", Rate, Higher, "host bytes written per simulated second", |r| {
        (r.host.write_bytes > 0).then_some(r.speed.throughput.write_bytes_per_s)
    })
    .over_seeds("throughput.write_bytes_per_s"),
    metric("throughput", "read", Rate, Higher, "host bytes read per simulated second", |r| {
        (r.host.read_bytes > 0).then_some(r.speed.throughput.read_bytes_per_s)
    })
    .over_seeds("throughput.read_bytes_per_s"),
    metric("write latency", "p50", Nanos, Lower, "half of the writes were faster", |r| {
        of(&r.latency_ns.write, r.latency_ns.write.p50)
    })
    .minor()
    .over_seeds("latency_ns.write.p50"),
    metric("write latency", "p99", Nanos, Lower, "one write in 100 was slower", |r| {
        of(&r.latency_ns.write, r.latency_ns.write.p99)
    })
    .essential()
    .over_seeds("latency_ns.write.p99"),
    metric("flush latency", "p99", Nanos, Lower, "one flush in 100 was slower", |r| {
        r.latency_ns.flush.as_ref().map(|flush| flush.p99 as f64)
    })
    .minor()
    .over_seeds("latency_ns.flush.p99"),
    metric("read latency", "p50", Nanos, Lower, "half of the reads were faster", |r| {
        of(&r.latency_ns.read, r.latency_ns.read.p50)
    })
    .minor()
    .over_seeds("latency_ns.read.p50"),
    metric("read latency", "p99", Nanos, Lower, "one read in 100 was slower", |r| {
        of(&r.latency_ns.read, r.latency_ns.read.p99)
    })
    .over_seeds("latency_ns.read.p99"),
    metric("erases", "total", Count, Lower, "blocks erased", |r| if_flash(r, r.flash.erases as f64))
        .over_seeds("flash.erases"),
    metric("erases", "min", Count, Neither, "erases of the least worn good block", |r| {
        if_flash(r, r.wear.erases_min as f64)
    })
    .minor(),
    metric("erases", "max", Count, Lower, "erases of the most worn block", |r| {
        if_flash(r, r.wear.erases_max as f64)
    }),
    metric("erases", "sd", Real, Lower, "standard deviation of the erases per good block", |r| {
        if_flash(r, r.wear.erases_stddev)
    })
    .minor(),
    metric("map", "table", Bytes, Lower, "size of the mapping table in the layer's own model", |r| {
        if_flash(r, r.layer.map.table_bytes as f64)
    })
    .minor(),
    metric("map", "updates", Bytes, Lower, "bytes of mapping table changed", |r| {
        if_flash(r, r.layer.map.update_bytes as f64)
    })
    .minor(),
    metric("GC", "runs", Count, Neither, "victims collected", |r| if_flash(r, r.layer.gc.runs as f64))
        .minor(),
    metric("GC", "moved", Count, Lower, "valid pages moved by garbage collection", |r| {
        if_flash(r, r.layer.gc.moved_pages as f64)
    })
    .over_seeds("gc.moved_pages"),
    metric("merges", "switch", Count, Neither, "log blocks that became data blocks", |r| {
        unless_zero(r.layer.merges.switch)
    })
    .minor(),
    metric("merges", "full", Count, Neither, "merges that copied log and data together", |r| {
        unless_zero(r.layer.merges.full)
    })
    .minor(),
    metric("merges", "in place", Count, Neither, "superblocks rewritten in place", |r| {
        unless_zero(r.layer.merges.in_place)
    })
    .minor(),
    metric("DRAM", "device", Bytes, Lower, "memory that the device needs for maps and tables", |r| {
        if_flash(r, r.cost.dram_bytes as f64)
    }),
    metric("DRAM", "host", Bytes, Lower, "memory that a translation layer of the host needs", |r| {
        unless_zero(r.cost.host_dram_bytes)
    })
    .minor(),
    metric("", "usable", Bytes, Higher, "bytes that hosts can address", |r| {
        if_flash(r, r.cost.usable_bytes as f64)
    }),
];

/// Which of the values of complete runs of one workload are the best: within noise of it, or shown alike.
/// None are where all are that.
pub(crate) fn best(better: Better, unit: &Unit, values: &[Option<f64>]) -> Vec<bool> {
    let known = || values.iter().copied().flatten();
    let pick = match better {
        Better::Neither => None,
        Better::Lower => known().reduce(f64::min),
        Better::Higher => known().reduce(f64::max),
    };
    let is_best = |pick: f64, value: f64| {
        let is_close = (value - pick).abs() <= ALIKE_SHARE * value.abs().max(pick.abs());
        is_close || unit.show(value) == unit.show(pick)
    };
    let Some(pick) = pick.filter(|pick| !known().all(|value| is_best(*pick, value))) else {
        return vec![false; values.len()];
    };
    values.iter().map(|value| value.is_some_and(|value| is_best(pick, value))).collect()
}

/// Bytes of flash that one program writes; `None` where nothing was written or programmed.
pub(crate) fn program_bytes(result: &RunResult) -> Option<f64> {
    result.waf.program_bytes(result.host.write_bytes, result.flash.programs)
}

/// Place of a cause in lists and stacks.
pub(crate) fn cause_order(name: &str) -> usize {
    Cause::ALL.iter().position(|cause| cause.name() == name).unwrap_or(Cause::ALL.len())
}

/// Over-provisioning, (physical - logical) / logical, of the good blocks; `None` without logical pages.
pub fn over_provisioning(result: &RunResult) -> Option<f64> {
    (result.cost.logical_pages > 0).then_some(result.cost.op_ratio)
}

/// Names and values of a latency distribution, in the order of the columns.
pub(crate) const fn latency_points(s: &LatencySummary) -> [(&'static str, f64); 10] {
    [
        ("mean", s.mean),
        ("min", s.min as f64),
        ("p50", s.p50 as f64),
        ("p90", s.p90 as f64),
        ("p99", s.p99 as f64),
        ("p99.9", s.p99_9 as f64),
        ("p99.99", s.p99_99 as f64),
        ("p99.999", s.p99_999 as f64),
        ("p99.9999", s.p99_9999 as f64),
        ("max", s.max as f64),
    ]
}

/// What a narrow terminal keeps of a latency distribution.
pub(crate) fn latency_weight(point: &str) -> Weight {
    match point {
        "p50" | "p99" | "max" => Weight::Essential,
        "mean" | "p99.9" => Weight::Useful,
        _ => Weight::Minor,
    }
}

/// One request in so many is slower than this percentile.
pub(crate) fn rarity(name: &str) -> Option<f64> {
    Some(match name {
        "p50" => 2.0,
        "p90" => 1e1,
        "p99" => 1e2,
        "p99.9" => 1e3,
        "p99.99" => 1e4,
        "p99.999" => 1e5,
        "p99.9999" => 1e6,
        _ => return None,
    })
}

/// Percentiles as nines and nanoseconds: p90 is 1 nine, p99 2; p50 is 0.301. Only those that at least one
/// request exceeds.
pub(crate) fn nines(summary: &LatencySummary) -> Vec<(f64, f64)> {
    latency_points(summary)
        .into_iter()
        .filter_map(|(name, ns)| Some((rarity(name)?, ns)))
        .filter(|(rarity, _)| summary.count as f64 >= *rarity)
        .map(|(rarity, ns)| (rarity.log10(), ns))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_sim::result::SeedsResult;

    #[test]
    fn keys_of_spreads_are_those_that_documents_have() {
        let mut run = RunResult::default();
        run.waf.bytes = Some(1.0);
        (run.host.read_bytes, run.host.write_bytes) = (1, 1);
        (run.latency_ns.read.count, run.latency_ns.write.count) = (1, 1);
        run.latency_ns.flush = Some(LatencySummary { count: 1, ..LatencySummary::default() });
        let ratio = Some(0.5);
        run.cache =
            Some(CacheResult { read_hit_ratio: ratio, write_hit_ratio: ratio, ..CacheResult::default() });
        let known = SeedsResult::new(&[&run]).spread;
        let keys: Vec<&str> = SUMMARY.iter().filter_map(|metric| metric.spread_key).collect();
        assert_eq!(keys.len(), 12);
        for key in keys {
            assert!(known.contains_key(key), "{key} is not among {:?}", known.keys());
        }
    }

    #[test]
    fn a_percentile_needs_a_request_beyond_it() {
        let summary =
            LatencySummary { count: 1000, p50: 5, p99_9: 9, p99_99: 9, max: 9, ..LatencySummary::default() };
        let points = nines(&summary);
        assert_eq!(points.len(), 4, "{points:?}");
        assert_eq!(format!("{:?}", points[3]), "(3.0, 9.0)");
    }
}
