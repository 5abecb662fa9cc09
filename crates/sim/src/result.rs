//! The result document, schema 1. Other tools rely on these names: add, never rename.

mod chunks;
mod jobs;
mod latency;
mod lifetime;
mod seeds;
mod state;
mod trust;
mod zones;

pub use chunks::ChunksResult;
pub use jobs::{
    DirectionResult, JobResult, LatencyLevel, LatencyPoint, PercentilesOf, RateSamples, SyncResult,
};
pub use latency::{LatencyResult, LatencySummary};
pub use lifetime::LifetimeResult;
pub use seeds::{SeedsResult, Spread};
pub use state::StateSource;
pub use trust::TrustNote;
pub use zones::{ZoneShown, ZonesResult};

use nandscape_core::command::HostCounts;
use nandscape_core::{
    CacheReport, Cause, CauseTable, Cost, FtlStats, LogStatus, MapCacheStats, ObjectReport, OpCounts,
    PlacementReport, SlcStatus, StreamReport, WorkloadInfo,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the document's shape.
pub const SCHEMA: u32 = 1;

/// What a run gives.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunResult {
    /// What was run, and with what.
    #[serde(flatten)]
    pub run: RunIdentity,
    /// The workload as it was given, and what its reader reported.
    pub workload: WorkloadResult,
    /// The run was interrupted: the counters are those of the requests done until then.
    pub partial: bool,
    /// The run ended with this error; the counters are those up to it, the failing request counted under
    /// `host`.
    pub error: Option<RunError>,
    /// What the host asked for.
    pub host: HostCounts,
    /// What its flash did.
    pub flash: FlashResult,
    /// Write amplification.
    #[serde(flatten)]
    pub waf: Waf,
    /// What the translation layers did.
    #[serde(flatten)]
    pub layer: LayerResult,
    /// Erase counts over good blocks, preconditioning excluded.
    pub wear: WearResult,
    /// Virtual and wall time, and throughput.
    #[serde(flatten)]
    pub speed: Speed,
    /// Latency by kind of request, in nanoseconds of simulated time.
    pub latency_ns: LatencyResult,
    /// What the translation layer costs.
    pub cost: CostResult,
    /// Each job of a job file, or each report group; empty for other workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobResult>,
    /// Each NVM set by itself, for job files; empty for other workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<SetResult>,
    /// What streams or placement handles were written, where writes are told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<PlacementReport>,
    /// What the cache did; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheResult>,
    /// What is between the workload and the flash.
    #[serde(flatten)]
    pub between: BetweenResult,
    /// Until the flash is worn out.
    #[serde(default)]
    pub lifetime: LifetimeResult,
    /// What a reader must not take from it; empty if no check found anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trust: Vec<TrustNote>,
    /// Things a reader must know: options that change the meaning, parts that were left out and why.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// What is between the workload and the flash, as far as it says anything of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BetweenResult {
    /// Zones, where the namespace has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<ZonesResult>,
    /// Chunks, where the host has vector access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<ChunksResult>,
    /// A store of objects, where the host has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<ObjectReport>,
    /// What the host's stream policy did; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyResult>,
}

/// Which run a document is of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunIdentity {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of nandscape.
    pub version: String,
    /// Hash of the full configuration.
    pub config_hash: String,
    /// Hash of the requests that were replayed (operation, offset, length, time stamp, hint of each).
    pub workload_hash: String,
    /// Seed of the run.
    pub seed: u64,
    /// The full configuration, as nested tables.
    pub config: serde_json::Value,
    /// Where the state before the counted part comes from; absent where the run brought it about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateSource>,
    /// Options of the job file's global sections, as typed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub job_defaults: BTreeMap<String, String>,
    /// The same with other seeds; absent for a run of one seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<SeedsResult>,
}

/// Write amplification; null without writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waf {
    /// Programs over host pages written.
    #[serde(rename = "waf")]
    pub pages: Option<f64>,
    /// Programs times page size over host bytes written.
    #[serde(rename = "waf_bytes")]
    pub bytes: Option<f64>,
}

impl Waf {
    /// Bytes of flash that one of so many programs writes, where hosts wrote so many bytes; `None` where
    /// nothing was written or programmed.
    pub fn program_bytes(&self, written: u64, programs: u64) -> Option<f64> {
        let programmed = self.bytes? * written as f64;
        (programs > 0).then(|| programmed / programs as f64)
    }
}

/// What a cache did, and what is before and behind it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheResult {
    /// The design.
    pub preset: String,
    /// What its fast side is.
    pub device: String,
    /// What its slow side is.
    pub disk: String,
    /// Share of read requests that were answered wholly from the cache; null without reads.
    pub read_hit_ratio: Option<f64>,
    /// Share of write requests whose blocks were all cached; null without writes.
    pub write_hit_ratio: Option<f64>,
    /// The same of both.
    pub hit_ratio: Option<f64>,
    /// Bytes programmed to flash over bytes that the cache wrote to its fast side, metadata included; null
    /// where that is no flash.
    pub device_waf: Option<f64>,
    /// Bytes that the cache wrote to its fast side over bytes that hosts wrote.
    pub device_write_ratio: Option<f64>,
    /// Bytes that the cache wrote to the disks over bytes that hosts wrote.
    pub disk_write_ratio: Option<f64>,
    /// Counters and standing.
    #[serde(flatten)]
    pub report: CacheReport,
}

impl CacheResult {
    /// From what the cache reports, what hosts wrote, and what was programmed to flash, in bytes.
    pub fn new(report: CacheReport, host_write_bytes: u64, programmed: Option<u64>) -> Self {
        Self {
            read_hit_ratio: report.counters.read_hit_ratio(),
            write_hit_ratio: report.counters.write_hit_ratio(),
            hit_ratio: report.counters.hit_ratio(),
            device_waf: programmed.and_then(|bytes| ratio(bytes, report.fast.write_bytes)),
            device_write_ratio: ratio(report.fast.write_bytes, host_write_bytes),
            disk_write_ratio: ratio(report.disk().write_bytes, host_write_bytes),
            report,
            ..Self::default()
        }
    }

    /// Whether this is the report of a disk with no cache in front of it.
    pub const fn is_disk_alone(&self) -> bool {
        self.device.is_empty()
    }
}

/// What a stream policy of the host did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyResult {
    /// Name of the policy.
    pub name: String,
    /// Streams it might use.
    pub available: u16,
    /// Requests that were merged into neighbours before.
    pub merges: u64,
    /// Every stream that was used, ascending; 0 is no stream.
    pub streams: Vec<PolicyStream>,
}

impl PolicyResult {
    /// Adds what the same policy of another host did.
    pub fn add(&mut self, other: &Self) {
        self.available = self.available.max(other.available);
        self.merges += other.merges;
        for stream in &other.streams {
            match self.streams.binary_search_by_key(&stream.stream, |own| own.stream) {
                Ok(at) => {
                    self.streams[at].writes += stream.writes;
                    self.streams[at].bytes += stream.bytes;
                    self.streams[at].sectors += stream.sectors;
                }
                Err(at) => self.streams.insert(at, *stream),
            }
        }
    }
}

/// What was written to one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyStream {
    /// The stream, from 1; over placement handles its id is one more. 0 is no stream.
    pub stream: u16,
    /// Write requests.
    pub writes: u64,
    /// Bytes.
    pub bytes: u64,
    /// The same in sectors of 512 B, as the Linux driver counts.
    pub sectors: u64,
}

/// The workload of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct WorkloadResult {
    pub spec: String,
    /// Format or generator.
    pub format: String,
    pub requests: u64,
    pub has_real_times: bool,
    /// Time stamps that went back and were clamped or sorted.
    pub time_reversals: u64,
    /// Records skipped because they are not I/O.
    pub skipped: u64,
}

impl WorkloadResult {
    /// From what a reader knows.
    pub fn new(spec: &str, info: &WorkloadInfo) -> Self {
        Self {
            spec: spec.to_owned(),
            format: info.format.clone(),
            requests: 0,
            has_real_times: info.has_real_times,
            time_reversals: info.time_reversals,
            skipped: info.skipped,
        }
    }
}

/// Why a run ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// Number of the failing request, from 1; 0 if a write of the preconditioning failed.
    pub request: u64,
    /// The message, with the request and the numbers.
    pub message: String,
}

/// Flash operations, in all and by cause.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FlashResult {
    /// Pages programmed, by the medium's own count.
    pub programs: u64,
    /// Pages read.
    pub reads: u64,
    /// Blocks erased.
    pub erases: u64,
    /// The same by cause.
    pub by_cause: BTreeMap<String, OpCounts>,
}

impl FlashResult {
    /// From the medium's totals and the counts by cause. Only zones are finished, only file systems
    /// clean and only SLC caches are folded: without any these causes are absent.
    pub fn new(totals: OpCounts, causes: &CauseTable) -> Self {
        let is_there = |cause: &&Cause| {
            !matches!(**cause, Cause::Finish | Cause::Clean | Cause::Fold)
                || causes.get(**cause) != OpCounts::default()
        };
        Self {
            programs: totals.programs,
            reads: totals.reads,
            erases: totals.erases,
            by_cause: Cause::ALL
                .iter()
                .filter(is_there)
                .map(|c| (c.name().to_owned(), causes.get(*c)))
                .collect(),
        }
    }

    /// The counts of one cause.
    pub fn cause(&self, cause: Cause) -> OpCounts {
        self.by_cause.get(cause.name()).copied().unwrap_or_default()
    }
}

/// What translation layers did, from their counters.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct LayerResult {
    /// Mapping table.
    pub map: MapResult,
    /// Garbage collection.
    pub gc: GcResult,
    /// Log-block merges.
    pub merges: MergeResult,
    /// The SLC cache, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slc: Option<SlcStatus>,
    /// The part of the map that is in memory, where that is not all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map_cache: Option<MapCacheStats>,
}

impl LayerResult {
    /// From counters and cost.
    pub const fn new(stats: &FtlStats, cost: &Cost) -> Self {
        Self {
            map: MapResult {
                table_bytes: cost.map_table_bytes,
                updates: stats.map_updates,
                update_bytes: stats.map_update_bytes,
                log_table_updates: stats.log_table_updates,
            },
            gc: GcResult { runs: stats.gc_runs, moved_pages: stats.gc_moved_pages },
            merges: MergeResult {
                switch: stats.merges_switch,
                full: stats.merges_full,
                evicted: stats.merges_evicted,
                in_place: stats.in_place_rewrites,
            },
            slc: None,
            map_cache: None,
        }
    }
}

/// Mapping table.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct MapResult {
    /// Size of the table.
    pub table_bytes: u64,
    /// Entries changed.
    pub updates: u64,
    /// Bytes changed.
    pub update_bytes: u64,
    /// Changes to the log table, apart from `updates`.
    pub log_table_updates: u64,
}

/// Garbage collection.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct GcResult {
    /// Victims collected.
    pub runs: u64,
    /// Pages moved.
    pub moved_pages: u64,
}

/// Log-block merges.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct MergeResult {
    /// The log block became the data block.
    pub switch: u64,
    /// Log and data were copied together.
    pub full: u64,
    /// Merges forced by a full log table.
    pub evicted: u64,
    /// Superblocks rewritten in place.
    pub in_place: u64,
}

/// Erase counts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct WearResult {
    pub erases_min: u64,
    pub erases_max: u64,
    pub erases_mean: f64,
    /// Standard deviation of the population.
    pub erases_stddev: f64,
    /// One per block in the order `unit x blocks + block`, with `--detail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_block: Option<Vec<u32>>,
}

impl WearResult {
    /// From the erases of every good block.
    pub fn new(counts: impl Iterator<Item = u32>) -> Self {
        let (mut n, mut sum, mut squares) = (0u64, 0u64, 0u128);
        let (mut min, mut max) = (u64::MAX, 0);
        for count in counts {
            let count = u64::from(count);
            n += 1;
            sum += count;
            squares += u128::from(count * count);
            min = min.min(count);
            max = max.max(count);
        }
        if n == 0 {
            return Self::default();
        }
        let mean = sum as f64 / n as f64;
        // n * squares - sum^2 is exact in integers, so equal counts give exactly 0.
        let variance =
            (u128::from(n) * squares - u128::from(sum) * u128::from(sum)) as f64 / (n as f64 * n as f64);
        Self {
            erases_min: min,
            erases_max: max,
            erases_mean: mean,
            erases_stddev: variance.sqrt(),
            per_block: None,
        }
    }
}

/// Virtual and wall time of the counted part.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct TimeResult {
    /// From the first issue to the last completion.
    pub simulated_ns: u64,
    /// Wall time of the replay, preconditioning excluded.
    pub wall_s: f64,
    /// Host pages read and written per second of wall time.
    pub host_pages_per_wall_s: f64,
}

/// Throughput in simulated time; 0 in no time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct ThroughputResult {
    /// Host bytes read per simulated second.
    pub read_bytes_per_s: f64,
    /// Host bytes written per simulated second.
    pub write_bytes_per_s: f64,
}

/// How long it took, and how much was moved in that time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Speed {
    /// Virtual and wall time of the counted part.
    pub time: TimeResult,
    /// In simulated time.
    pub throughput: ThroughputResult,
}

impl Speed {
    /// What `host` asked for took so long in the model, and in real time (0 where that is not known).
    pub fn new(host: &HostCounts, simulated_ns: u64, wall_s: f64) -> Self {
        let pages = (host.read_pages + host.write_pages) as f64;
        let host_pages_per_wall_s = if wall_s > 0.0 { pages / wall_s } else { 0.0 };
        let per_s =
            |bytes: u64| if simulated_ns == 0 { 0.0 } else { bytes as f64 * 1e9 / simulated_ns as f64 };
        Self {
            time: TimeResult { simulated_ns, wall_s, host_pages_per_wall_s },
            throughput: ThroughputResult {
                read_bytes_per_s: per_s(host.read_bytes),
                write_bytes_per_s: per_s(host.write_bytes),
            },
        }
    }
}

/// `over / under`; `None` of nothing.
pub fn ratio(over: u64, under: u64) -> Option<f64> {
    (under > 0).then(|| over as f64 / under as f64)
}

/// What the translation layer costs, and how its space is divided.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct CostResult {
    /// DRAM that the device needs.
    pub dram_bytes: u64,
    /// Memory that a translation layer of the host needs; 0 where there is none.
    #[serde(default)]
    pub host_dram_bytes: u64,
    /// (physical - logical) / logical, over good blocks.
    pub op_ratio: f64,
    /// Logical capacity in bytes.
    pub usable_bytes: u64,
    pub total_blocks: u64,
    /// Blocks kept free or open, so never a victim.
    pub reserve_blocks: u64,
    pub pages_per_block: u64,
    pub logical_pages: u64,
}

impl From<Cost> for CostResult {
    fn from(cost: Cost) -> Self {
        let physical = cost.total_blocks * cost.pages_per_block;
        let spare = physical as f64 - cost.logical_pages as f64;
        Self {
            dram_bytes: cost.dram_bytes,
            host_dram_bytes: cost.host_dram_bytes,
            op_ratio: if cost.logical_pages == 0 { 0.0 } else { spare / cost.logical_pages as f64 },
            usable_bytes: cost.usable_bytes,
            total_blocks: cost.total_blocks,
            reserve_blocks: cost.reserve_blocks,
            pages_per_block: cost.pages_per_block,
            logical_pages: cost.logical_pages,
        }
    }
}

/// One NVM set of the device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetResult {
    /// Number, from 0.
    pub set: u16,
    /// Names of the namespaces in it.
    pub namespaces: Vec<String>,
    /// What hosts asked of them.
    pub host: HostCounts,
    /// What its flash did.
    pub flash: FlashResult,
    /// Programs over host pages written; null without writes.
    pub waf: Option<f64>,
    /// Programs times page size over host bytes written; null without writes.
    pub waf_bytes: Option<f64>,
    /// Garbage collection.
    pub gc: GcResult,
    /// Erase counts over its good blocks.
    pub wear: WearResult,
    /// What its translation layer costs.
    pub cost: CostResult,
}

impl RunResult {
    /// Whether there was a cache. A disk alone has a report of one too.
    pub fn has_cache(&self) -> bool {
        self.cache.as_ref().is_some_and(|cache| !cache.is_disk_alone())
    }

    /// Fills in the wall time, which the simulator does not know.
    pub fn set_wall(&mut self, wall_s: f64) {
        self.speed = Speed::new(&self.host, self.speed.time.simulated_ns, wall_s);
    }
}

/// What the logs of translation layers were written, for devices without directives whose layer tells writes
/// apart; `None` where no layer does. `status` gives the logs of a set.
pub fn placement_of_logs(sets: impl Iterator<Item = (u16, Vec<LogStatus>)>) -> Option<PlacementReport> {
    let mut report = PlacementReport { directive: "none".to_owned(), ..PlacementReport::default() };
    for (set, logs) in sets.filter(|(_, logs)| logs.len() > 1) {
        for (log, status) in (0..).zip(logs).filter(|(_, status)| status.host_bytes > 0) {
            report.streams.push(StreamReport {
                id: log,
                set,
                log,
                host_bytes: status.host_bytes,
                pieces: status.pieces,
                piece_bytes: status.piece_bytes,
                spilled_bytes: status.spilled_bytes,
                ..StreamReport::default()
            });
        }
    }
    report.unplaced_bytes = report.streams.iter().filter(|log| log.log == 0).map(|log| log.host_bytes).sum();
    (!report.streams.is_empty()).then_some(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_wear_has_no_deviation() {
        let wear = WearResult::new([7u32; 100].into_iter());
        assert_eq!((wear.erases_min, wear.erases_max), (7, 7));
        assert!(wear.erases_stddev.abs() < f64::EPSILON);
        let wear = WearResult::new([1, 3].into_iter());
        assert!((wear.erases_mean - 2.0).abs() < 1e-12 && (wear.erases_stddev - 1.0).abs() < 1e-12);
    }
}
