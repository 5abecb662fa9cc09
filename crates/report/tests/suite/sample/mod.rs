//! Made-up runs that look like real ones: five translation layers on a small device under a checkpoint-like
//! load. Nothing here is a measurement; it feeds the tests of the report and `examples/sample_report.rs`.

#![allow(dead_code, reason = "each test uses a part of it")]

use nandscape_core::command::HostCounts;
use nandscape_core::zone::{Zone, ZoneAttributes, ZoneContents, ZoneOwner, ZoneState};
use nandscape_core::{
    CacheCounts, Cause, CauseTable, Cost, FtlStats, IoRecord, Op, SimTime, TraceError, TraceOp, TraceReader,
    WorkloadInfo,
};
use nandscape_policies::simulate::Accesses;
use nandscape_policies::simulate::advice::{Advice, advise};
use nandscape_policies::simulate::curve::{Curve, Point};
use nandscape_report::{ReproductionRow, RowKind, RowSeries, Run, SweepRow, SweepTable};
use nandscape_sim::RunResult;
use nandscape_sim::cached::CachePoint;
use nandscape_sim::histogram::LogHistogram;
use nandscape_sim::metrics::{RequestSample, Sample, Series};
use nandscape_sim::result::{
    BetweenResult, CacheResult, FlashResult, LatencyResult, LatencySummary, LayerResult, MergeResult,
    RunError, RunIdentity, SCHEMA, Speed, Waf, WearResult, WorkloadResult,
};
use nandscape_sim::result::{ZoneShown, ZonesResult};
use nandscape_sim::zones::{MOST_ROWS, ZoneHistory, ZoneScan};
use nandscape_trace::{StatsOptions, TraceStats};
use serde_json::json;

const UNITS: u64 = 32;
const BLOCKS: u64 = 16;
const PAGES: u64 = 32;
const PAGE_BYTES: u64 = 32 << 10;
const READ_NS: u64 = 101_000;
const PROGRAM_NS: u64 = 116_000;
const ERASE_NS: u64 = 434_000;

/// How a made-up layer behaves.
#[derive(Clone, Copy)]
pub struct Manner {
    label: &'static str,
    /// Pages that GC or merges move per page written, once the device has filled.
    moved: f64,
    /// Moves come in bursts of so many pages.
    burst: f64,
    /// What moves are counted under.
    cause: Cause,
    /// Bytes of map changed per page written.
    map_bytes: f64,
    table_bytes: u64,
    /// Unevenness of wear, 0 to 1.
    skew: f64,
}

/// The five layers of the comparison.
pub const MANNERS: [Manner; 5] = [
    Manner {
        label: "pm-gcl",
        moved: 0.0,
        burst: 1.0,
        cause: Cause::Gc,
        map_bytes: 8.0,
        table_bytes: 131_072,
        skew: 0.5,
    },
    Manner {
        label: "pm-gcc",
        moved: 1.1,
        burst: 8_700.0,
        cause: Cause::Gc,
        map_bytes: 16.6,
        table_bytes: 131_072,
        skew: 0.05,
    },
    Manner {
        label: "sbm-gcl",
        moved: 0.11,
        burst: 12.0,
        cause: Cause::Merge,
        map_bytes: 0.28,
        table_bytes: 4096,
        skew: 0.7,
    },
    Manner {
        label: "hsbm-gcl",
        moved: 0.08,
        burst: 16.0,
        cause: Cause::Merge,
        map_bytes: 2.2,
        table_bytes: 4736,
        skew: 0.4,
    },
    Manner {
        label: "page-map",
        moved: 0.19,
        burst: 24.0,
        cause: Cause::Gc,
        map_bytes: 4.8,
        table_bytes: 65_536,
        skew: 0.15,
    },
];

/// A small value-stable generator; the sample must be the same on every machine.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Counters while the made-up run proceeds.
#[derive(Default)]
struct Totals {
    host: HostCounts,
    causes: CauseTable,
    ftl: FtlStats,
    ns: u64,
    debt: f64,
    erase_debt: f64,
}

fn write(totals: &mut Totals, manner: &Manner, pages: u64, noise: &mut Noise) -> u64 {
    totals.host.writes += 1;
    totals.host.write_bytes += pages * PAGE_BYTES;
    totals.host.write_pages += pages;
    totals.causes.row(Cause::Host).programs += pages;
    totals.ftl.map_updates += pages;
    totals.ftl.map_update_bytes += (pages as f64 * manner.map_bytes) as u64;
    let mut ns = pages * PROGRAM_NS;
    let is_filled = totals.host.write_pages > UNITS * BLOCKS * PAGES;
    if is_filled {
        totals.debt += pages as f64 * manner.moved * (0.5 + noise.next());
        totals.erase_debt += pages as f64;
    }
    if is_filled && totals.debt >= manner.burst && manner.moved > 0.0 {
        let moved = totals.debt as u64;
        totals.debt = 0.0;
        let row = totals.causes.row(manner.cause);
        row.programs += moved;
        row.reads += moved;
        totals.erase_debt += moved as f64;
        totals.ftl.gc_runs += 1;
        totals.ftl.gc_moved_pages += moved;
        totals.ftl.map_update_bytes += moved * 2;
        ns += moved * (PROGRAM_NS + READ_NS);
    }
    let erases = (totals.erase_debt / PAGES as f64) as u64;
    totals.erase_debt -= (erases * PAGES) as f64;
    totals.causes.row(manner.cause).erases += erases;
    totals.ns += ns + erases * ERASE_NS;
    ns + erases * ERASE_NS
}

fn summary(mut sorted: Vec<u64>) -> LatencySummary {
    sorted.sort_unstable();
    let Some(last) = sorted.len().checked_sub(1) else { return LatencySummary::default() };
    let at = |q: f64| sorted[((sorted.len() as f64 * q).ceil() as usize).clamp(1, last + 1) - 1];
    LatencySummary {
        count: sorted.len() as u64,
        mean: sorted.iter().sum::<u64>() as f64 / sorted.len() as f64,
        min: sorted[0],
        max: sorted[last],
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        p99_99: at(0.9999),
        p99_999: at(0.99999),
        p99_9999: at(0.999_999),
    }
}

/// One made-up run of `requests` requests, of which every eighth reads.
pub fn run(manner: &Manner, requests: u64) -> Run {
    let mut noise = Noise(manner.table_bytes ^ requests);
    let mut totals = Totals::default();
    let mut series = Series { interval_bytes: 8 << 20, request_stride: 1, ..Series::default() };
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    let (mut read_latency, mut write_latency) = (LogHistogram::default(), LogHistogram::default());
    let mut next_sample = series.interval_bytes;
    for index in 0..requests {
        let pages = if noise.next() < 0.5 { 16 } else { 16 + (noise.next() * 200.0) as u64 };
        let (op, ns) = if index % 8 == 7 {
            totals.host.reads += 1;
            totals.host.read_bytes += pages * PAGE_BYTES;
            totals.host.read_pages += pages;
            totals.causes.row(Cause::Host).reads += pages;
            let ns = pages * READ_NS;
            totals.ns += ns;
            reads.push(ns);
            read_latency.record(ns);
            (Op::Read, ns)
        } else {
            let ns = write(&mut totals, manner, pages, &mut noise);
            writes.push(ns);
            write_latency.record(ns);
            (Op::Write, ns)
        };
        series.requests.push(RequestSample { index, op, bytes: pages * PAGE_BYTES, latency_ns: ns });
        if totals.host.write_bytes + totals.host.read_bytes >= next_sample || index + 1 == requests {
            next_sample = totals.host.write_bytes + totals.host.read_bytes + series.interval_bytes;
            series.samples.push(Sample {
                requests: index + 1,
                simulated_ns: totals.ns,
                host: totals.host,
                causes: totals.causes,
                ftl: totals.ftl,
                cache: None,
                read_latency: std::mem::take(&mut read_latency),
                write_latency: std::mem::take(&mut write_latency),
            });
        }
    }
    let per_block = erase_counts(manner, totals.causes.total().erases, &mut noise);
    series.program_counts = Some(
        per_block
            .iter()
            .flat_map(|erases| (0..PAGES).map(move |page| erases + u32::from(page < 20)))
            .collect(),
    );
    series.erase_counts.clone_from(&per_block);
    let result = result(manner, &totals, summary(reads), summary(writes), per_block);
    Run { label: manner.label.to_owned(), result, series: Some(series), jobs: None }
}

fn erase_counts(manner: &Manner, total: u64, noise: &mut Noise) -> Vec<u32> {
    let blocks = UNITS * BLOCKS;
    let mean = total as f64 / blocks as f64;
    (0..blocks)
        .map(|block| {
            // Blocks early in a die are used more often.
            let place = 1.0 - (block % BLOCKS) as f64 / BLOCKS as f64;
            let factor = 1.0 + manner.skew * (2.0 * place - 1.0) + manner.skew * 0.5 * (noise.next() - 0.5);
            (mean * factor).round().max(0.0) as u32
        })
        .collect()
}

fn result(
    manner: &Manner,
    totals: &Totals,
    read: LatencySummary,
    write: LatencySummary,
    per_block: Vec<u32>,
) -> RunResult {
    let all = totals.causes.total();
    let mut wear = WearResult::new(per_block.iter().copied());
    wear.per_block = Some(per_block);
    let cost = Cost {
        map_table_bytes: manner.table_bytes,
        dram_bytes: manner.table_bytes + 70_000,
        host_dram_bytes: 0,
        usable_bytes: 400 << 20,
        total_blocks: UNITS * BLOCKS,
        reserve_blocks: UNITS,
        pages_per_block: PAGES,
        logical_pages: (400 << 20) / PAGE_BYTES,
    };
    let mut layer = LayerResult::new(&totals.ftl, &cost);
    layer.map.log_table_updates = 0;
    layer.merges = MergeResult::default();
    if manner.cause == Cause::Merge {
        let runs = std::mem::take(&mut layer.gc).runs;
        layer.merges = MergeResult { switch: runs / 3, full: runs, ..MergeResult::default() };
    }
    let waf = all.programs as f64 / totals.host.write_pages as f64;
    RunResult {
        run: RunIdentity {
            schema: SCHEMA,
            version: "0.1.0".to_owned(),
            config_hash: format!("{:016x}", manner.table_bytes * 0x9e37_79b9),
            workload_hash: "5ca1ab1e0ddba11".to_owned(),
            seed: 1,
            config: json!({
                "device": {"name": "thesis", "channels": 8, "dies_per_channel": 4, "planes_per_die": 1, "blocks_per_plane": BLOCKS,
                    "pages_per_block": PAGES, "page": "32KiB", "sector": "4KiB", "oob": null,
                    "timing": {"mode": "serial", "read": "101us", "program": "116us", "erase": "434us"}},
                "ftl": {"kind": manner.label, "op": 0.28},
                "workload": {"depth": 1},
            }),
            ..RunIdentity::default()
        },
        workload: WorkloadResult {
            requests: totals.host.reads + totals.host.writes,
            ..WorkloadResult::new(
                "traces/sample.csv",
                &WorkloadInfo { format: "native-csv".to_owned(), ..WorkloadInfo::default() },
            )
        },
        partial: false,
        error: None,
        host: totals.host,
        flash: FlashResult::new(all, &totals.causes),
        waf: Waf { pages: Some(waf), bytes: Some(waf) },
        layer,
        wear,
        speed: Speed::new(&totals.host, totals.ns, 0.0),
        latency_ns: LatencyResult { all: write, read, write, flush: None, zone: None },
        cost: cost.into(),
        jobs: Vec::new(),
        sets: Vec::new(),
        placement: None,
        cache: None,
        between: BetweenResult::default(),
        lifetime: nandscape_sim::LifetimeResult::default(),
        trust: Vec::new(),
        notes: vec![
            "the runs of this sample are made up; they show the report, not a measurement".to_owned(),
        ],
    }
}

/// The five runs; the last but one stopped early with an error.
pub fn runs(requests: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = MANNERS
        .iter()
        .map(|manner| run(manner, if manner.label == "hsbm-gcl" { requests * 3 / 5 } else { requests }))
        .collect();
    runs[3].result.error = Some(RunError {
        request: runs[3].result.workload.requests,
        message: "device full: no block has an invalid page; the request needs 128 page(s), 12 are free, 16372 of 16384 \
                  physical pages are live"
            .to_owned(),
    });
    runs
}

/// The first two runs as caches, the first over flash and the second over a drive without any; and a disk
/// alone.
pub fn cached_runs(requests: u64) -> Vec<Run> {
    let mut runs = runs(requests);
    runs.truncate(3);
    for (number, (run, device)) in runs.iter_mut().zip(["flash", "article-ssd", ""]).enumerate() {
        let report = nandscape_core::CacheReport { slots: 1000, ..Default::default() };
        run.result.cache = Some(CacheResult { device: device.to_owned(), report, ..CacheResult::default() });
        let series = run.series.as_mut().expect("it has a series");
        for (at, sample) in (1..).zip(&mut series.samples) {
            sample.cache = Some(CachePoint {
                slots: 1000,
                used: (3 * at).min(1000),
                dirty: (2 * at).min(100 + 300 * number as u64),
                counts: CacheCounts {
                    cleaned: at * at / 7,
                    reads: sample.host.reads,
                    read_hits: sample.host.reads * at / (at + 40),
                    writes: sample.host.writes,
                    write_hits: sample.host.writes * at / (at + 90),
                    ..CacheCounts::default()
                },
                dirty_bytes: 4096 * (2 * at).min(100 + 300 * number as u64),
                fast: HostCounts {
                    read_bytes: sample.host.read_bytes * at / (at + 40),
                    write_bytes: sample.host.write_bytes + 512 * at,
                    ..HostCounts::default()
                },
                disk: HostCounts {
                    read_bytes: sample.host.read_bytes + 4096 * at,
                    write_bytes: 4096 * (at * at / 7),
                    ..HostCounts::default()
                },
            });
            if device != "flash" {
                (sample.causes, sample.ftl) = (CauseTable::default(), FtlStats::default());
            }
        }
        if device != "flash" {
            run.result.flash = FlashResult::default();
            (series.program_counts, series.erase_counts, run.result.wear.per_block) =
                (None, Vec::new(), None);
        }
    }
    runs
}

/// An experiment with figures over time: two ways and a limit, in two charts.
pub fn rows_over_time() -> Vec<ReproductionRow> {
    let time_s: Vec<f64> = (1..=30).map(|at| f64::from(at) * 2.5).collect();
    let row = |chart: &str,
               unit: &str,
               line: &str,
               is_bound: bool,
               time_s: &[f64],
               value: &dyn Fn(f64) -> Option<f64>| {
        let values: Vec<Option<f64>> = time_s.iter().map(|s| value(*s)).collect();
        ReproductionRow {
            id: "sample".into(),
            source: String::new(),
            name: format!("{chart}, {line}"),
            unit: unit.into(),
            published: serde_json::Value::Null,
            measured: json!(values.iter().flatten().copied().fold(0.0, f64::max)),
            ratio: None,
            kind: RowKind::Measured,
            verdict: None,
            note: String::new(),
            seeds: None,
            series: Some(RowSeries {
                part: "a load".into(),
                chart: chart.into(),
                line: line.into(),
                is_bound,
                axis: String::new(),
                at: time_s.to_vec(),
                values,
            }),
        }
    };
    vec![
        row("latency", "us", "slow", false, &time_s, &|s| Some(100.0 + s)),
        row("latency", "us", "fast", false, &time_s, &|s| (s > 10.0).then_some(50.0)),
        row("latency", "us", "limit", true, &[0.0, 75.0], &|_| Some(150.0)),
        row("share", "%", "slow", false, &time_s, &|s| Some(s / 10.0)),
        row("share", "%", "fast", false, &time_s, &|s| Some(0.2 * s)),
    ]
}

/// The same with a chart over a parameter, in a part of its own.
pub fn rows_over_a_parameter() -> Vec<ReproductionRow> {
    let mut rows = rows_over_time();
    rows.truncate(3);
    for series in rows.iter_mut().filter_map(|row| row.series.as_mut()) {
        (series.part, series.axis) = ("a cliff".into(), "share, %".into());
    }
    rows
}

/// Statistics of a small generated load, in every kind of request the page draws.
pub fn workload_stats() -> TraceStats {
    let records: Vec<Result<IoRecord, TraceError>> = (0..4000u64)
        .map(|i| {
            let op = [TraceOp::Write, TraceOp::Write, TraceOp::Read, TraceOp::Write, TraceOp::Trim]
                [(i % 5) as usize];
            let offset = (i * 7919 % 3000) * 4096 + (i % 3) * 512;
            Ok(IoRecord { at: SimTime(i * 50_000), offset, len: 4096 << (i % 6), volume: 0, hint: 0, op })
        })
        .collect();
    let options = StatsOptions::default();
    TraceStats::of(Records(records.into_iter()), options).expect("the records are fine")
}

/// Advice on a made-up load, and its LRU curve at twice as many sizes.
pub fn advice(name: &str) -> (Advice, Vec<Point>) {
    let accesses = |bend: f64, size: u64| {
        let misses = (1000.0 / (1.0 + size as f64 / bend)) as u64 + 200;
        let hits = 1200 - misses;
        Accesses {
            read_hits: hits / 2,
            read_misses: misses / 3,
            write_hits: hits - hits / 2,
            write_misses: misses - misses / 3,
        }
    };
    let points = |bend: f64, step: usize| -> Vec<Point> {
        (2..14u32).step_by(step).map(|i| Point::new(1 << i, 4096, accesses(bend, 1 << i))).collect()
    };
    let all = Accesses { read_misses: 400, write_misses: 800, ..Accesses::default() };
    let mut base = Advice::of_accesses(name, 4096, all);
    base.curves = [("lru", 900.0), ("s3-fifo", 700.0), (name, 800.0), ("belady", 300.0)]
        .map(|(name, bend)| Curve { eviction: name.to_owned(), points: points(bend, 2), knee: None })
        .into();
    let lru = points(900.0, 1);
    (advise(base, &lru), lru)
}

struct Records(std::vec::IntoIter<Result<IoRecord, TraceError>>);

impl Iterator for Records {
    type Item = Result<IoRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl TraceReader for Records {
    fn info(&self) -> WorkloadInfo {
        WorkloadInfo { format: "sample".to_owned(), has_real_times: true, ..WorkloadInfo::default() }
    }
}

/// A run on zones and one on a block device over them, with their course: `zones` of them, at 40 moments.
pub fn zoned_runs(zones: u32) -> Vec<Run> {
    let mut runs = runs(300);
    runs.truncate(2);
    for (number, run) in runs.iter_mut().enumerate() {
        let mut history = ZoneHistory { interval_ns: 1_000_000, ..ZoneHistory::default() };
        let state = |zone: u32, moment: u32| match (zone * 40 / zones, zone % 11) {
            (_, 9) => ZoneState::ReadOnly,
            (_, 10) => ZoneState::Offline,
            (turn, _) if turn > moment => ZoneState::Empty,
            (turn, _) if turn == moment => ZoneState::ImplicitlyOpen,
            (turn, _) if turn + 1 == moment => ZoneState::Closed,
            _ => ZoneState::Full,
        };
        let mut states = std::collections::BTreeMap::new();
        let mut shown = Vec::new();
        for moment in 0..40 {
            let mut scan = ZoneScan::new(zones, MOST_ROWS);
            shown.clear();
            for zone in 0..zones {
                let state = state(zone, moment);
                let written = if state.is_active() { 40 } else { 0 };
                let it = Zone {
                    start: 0,
                    capacity: 100,
                    write_pointer: state.has_write_pointer().then_some(written),
                    state,
                    attributes: ZoneAttributes(0),
                    extension: None,
                };
                let valid = (number == 1 && zone > 2).then(|| it.written_bytes() * u64::from(zone % 7) / 7);
                let owner = valid.and_then(|_| ZoneOwner::ALL.get(zone as usize % 8).copied());
                let lifetime = owner.map(|_| (zone % 7) as u8);
                scan.add(&it, ZoneContents { valid_bytes: valid, owner, lifetime });
                shown.push(ZoneShown {
                    zone,
                    state: state.name().to_owned(),
                    written: it.written_bytes() as f64 / 100.0,
                    valid: valid.map(|valid| valid as f64 / 100.0),
                });
            }
            history.zones_per_row = scan.zones_per_row();
            history.time_ns.push(u64::from(moment) * 1_300_000);
            let (counts, column) = scan.finish();
            history.columns.push(column);
            states = counts;
        }
        run.result.between.zones = Some(ZonesResult {
            zones,
            size_bytes: 128,
            capacity_bytes: 100,
            max_active: Some(6),
            states,
            shown,
            history: Some(history),
            ..ZonesResult::default()
        });
    }
    runs
}

/// A sweep over two axes with two seeds, in which one run failed.
pub fn sweep(workload: &str) -> SweepTable {
    let mut rows = Vec::new();
    for (point, (op, victim)) in
        (0..).zip([("0.07", "greedy"), ("0.07", workload), ("0.28", "greedy"), ("0.28", workload)])
    {
        for seed in [1, 2] {
            let failed = (point, seed) == (3, 2);
            let waf = 4.0 - f64::from(point) * 0.7 + seed as f64 * 0.01;
            rows.push(SweepRow {
                point,
                values: vec![op.to_owned(), victim.to_owned()],
                seed,
                metrics: vec![(!failed).then_some(waf), (!failed).then_some(1e6 / waf), Some(4096.0)],
                error: failed.then(|| workload.to_owned()),
                workload_hash: Some(format!("{seed}")),
            });
        }
    }
    let metrics = ["waf_bytes", "latency_ns.all.p99_9", "cost.dram_bytes"].map(str::to_owned).to_vec();
    SweepTable {
        workload: workload.to_owned(),
        axes: vec!["ftl.op".into(), "ftl.victim".into()],
        metrics,
        rows,
        planned: 8,
    }
}
