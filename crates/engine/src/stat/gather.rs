//! Gathers a stat document.

use super::document::{
    ClockStat, Interval, Latencies, NamespaceStat, PaceStat, QueueStat, ServerStat, ServiceStat, Stat,
};
use super::totals::Totals;
use crate::Engine;
use crate::clock::Clock;
use crate::meter::{Meter, Sample};
use crate::pace::{LATE, Pace};
use crate::stack::Stack;
use nandscape_core::{BlockId, OpCounts};
use nandscape_sim::result::{CostResult, Speed, WearResult, ZonesResult, ratio};
use nandscape_sim::sums;
use nandscape_sim::zones::{ZoneHistory, ZoneScan};
use std::time::Instant;

/// Blocks looked at before requests get their turn again: some tens of microseconds.
const CHUNK_BLOCKS: u32 = 8192;
/// The same of zones.
const CHUNK_ZONES: u32 = 1024;
/// Most rows of the zones in a document.
const ZONE_ROWS: u32 = 256;

impl Engine {
    /// Everything that is counted and measured, of one moment but for wear, erased blocks and zones, which
    /// are looked at after it. Requests wait only while the counters are copied.
    pub fn stat(&self) -> Stat {
        let mut totals = self.lock_totals();
        let (now, mut stat) = self.take_meter(&mut totals, Stack::counters);
        let (recent_start, recent) = totals.recent();
        stat.interval = interval(&recent_start, &now, &recent);
        let wall_s = (now.at - totals.first.at).as_secs_f64();
        stat.speed = Speed::new(&stat.host, now.model.since(totals.first.model).0, wall_s);
        stat.service = ServiceStat {
            latency_ns: Latencies::new(&totals.sum.model),
            real_latency_ns: Latencies::new(&totals.sum.real),
            queue: QueueStat { batches: totals.sum.batches, wait_ns: totals.sum.wait.summary() },
            pace: None,
        };
        stat.faults.errors = totals.sum.errors.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        drop(totals);
        stat.server = ServerStat {
            schema: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_s: (now.at - self.start).as_secs_f64(),
            clock: ClockStat::new(self.clock),
        };
        if self.clock == Clock::Paced {
            stat.service.pace = Some(self.pace_stat());
        }
        self.scan_blocks(&mut stat);
        if let Some(zones) = &mut stat.zones {
            self.scan_zones(zones, now.model.0);
        }
        stat
    }

    /// Starts all counters and measurements anew. Wear counts on.
    pub fn reset(&self) {
        let mut totals = self.lock_totals();
        let mut stack = self.lock();
        stack.reset();
        totals.reset(stack.sample(Instant::now()));
        drop(stack);
        *self.lock_pace() = Pace::default();
    }

    /// Takes what was measured since the last time, so that intervals have edges. [`crate::Background`] does
    /// so each second.
    pub(crate) fn sample(&self) {
        let mut totals = self.lock_totals();
        self.take_meter(&mut totals, |_| ());
    }

    pub(crate) fn pace_stat(&self) -> PaceStat {
        let pace = self.lock_pace();
        PaceStat {
            answers: pace.answers,
            late: pace.late,
            late_after_ns: LATE.as_nanos() as u64,
            late_ns: pace.times.summary(),
        }
    }

    /// Adds to the totals what was measured since it was last taken, and takes something else of the same
    /// moment.
    fn take_meter<R>(&self, totals: &mut Totals, take: impl FnOnce(&mut Stack) -> R) -> (Sample, R) {
        let mut stack = self.lock();
        std::mem::swap(&mut stack.model.meter, &mut totals.empty);
        let now = stack.sample(Instant::now());
        let taken = take(&mut stack);
        drop(stack);
        totals.add_taken(now);
        (now, taken)
    }

    /// Wear and free blocks, a part at a time, so that no request waits for a big device.
    fn scan_blocks(&self, stat: &mut Stat) {
        let mut erases = Vec::with_capacity(stat.cost.total_blocks as usize);
        let sets = self.look(|subsystem| subsystem.inspect().sets());
        for set in 0..sets {
            let blocks = self.look(|subsystem| subsystem.inspect().device(set).geometry().blocks());
            for first in (0..blocks).step_by(CHUNK_BLOCKS as usize) {
                self.look(|subsystem| {
                    let device = subsystem.inspect().device(set);
                    for block in (first..blocks.min(first + CHUNK_BLOCKS)).map(BlockId) {
                        if !device.is_bad(block) {
                            erases.push(device.erase_count(block));
                            stat.space.free_blocks += u64::from(device.write_pointer(block) == 0);
                        }
                    }
                });
            }
        }
        stat.space.total_blocks = erases.len() as u64;
        stat.wear = WearResult::new(erases.into_iter());
    }
}

impl Engine {
    /// How zones stand, a part at a time.
    fn scan_zones(&self, stat: &mut ZonesResult, model_ns: u64) {
        let mut scan = ZoneScan::new(stat.zones, ZONE_ROWS);
        for first in (0..stat.zones).step_by(CHUNK_ZONES as usize) {
            self.look(|subsystem| {
                let Some(zones) = subsystem.inspect().zones else { return };
                for zone in first..stat.zones.min(first + CHUNK_ZONES) {
                    scan.add(&zones.zone(0, zone), zones.contents(0, zone));
                }
            });
        }
        let mut history = ZoneHistory { zones_per_row: scan.zones_per_row(), ..ZoneHistory::default() };
        let (states, column) = scan.finish();
        history.time_ns.push(model_ns);
        history.columns.push(column);
        (stat.states, stat.history) = (states, Some(history));
    }
}

impl Stack {
    /// The part of the document that comes from the stack's own counters.
    fn counters(&mut self) -> Stat {
        let recording = self.tap.as_ref().map(crate::record::Tap::stat);
        let subsystem = &*self.model.subsystem;
        let inside = subsystem.inspect();
        let layers = inside.layers;
        let mut stat = Stat { recording, ..Stat::default() };
        for (set, layer) in (0..).zip(layers.iter()) {
            stat.faults.read_only.extend(layer.read_only().map(|why| (set.to_string(), why.to_owned())));
            stat.faults.recovery.extend(layer.recovery().cloned());
        }
        // Of the whole device, whichever set is asked.
        if let Some(layer) = layers.first() {
            let health = layer.device().tally().health;
            stat.faults.checksum_errors = health.checksum_errors;
            stat.faults.torn_pages = health.torn_pages;
            stat.space.bad_blocks = health.bad_blocks;
        }
        let (counts, mut cost) = sums::layers(layers);
        cost.host_dram_bytes += inside.host_bytes;
        stat.host = sums::hosts(subsystem, None);
        stat.flash = sums::flash(layers);
        stat.waf = sums::waf(subsystem, layers, stat.flash.programs, &stat.host);
        stat.layer = sums::layer_result(layers, &counts, &cost);
        stat.cost = CostResult::from(cost);
        stat.space.live_pages = counts.live_pages;
        stat.space.live_bytes = counts.live_pages * sums::page_bytes(layers).unwrap_or(0);
        stat.space.logical_pages = cost.logical_pages;
        stat.zones = ZonesResult::counted(&inside);
        stat.space.objects = inside.objects();
        stat.placement = inside.placement().map(to_json);
        // One that was taken away has no bytes.
        let namespaces =
            (0..).zip(subsystem.namespaces()).filter(|(_, info)| info.capacity_bytes > 0 || info.objects);
        for (index, info) in namespaces {
            if let Some(kinds) = inside.kinds(index) {
                stat.kinds.insert(info.name.clone(), to_json(kinds));
            }
            stat.namespaces.push(NamespaceStat {
                name: info.name.clone(),
                capacity_bytes: info.capacity_bytes,
                page_bytes: info.page_bytes,
                set: info.set,
                host: inside.host_counts(index),
            });
        }
        if inside.sets() > 1 {
            let set = |set| sums::set(subsystem, set, WearResult::default());
            stat.sets = (0..inside.sets()).map(set).collect();
        }
        stat
    }
}

fn to_json(report: impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(report).expect("a report of numbers and names is valid JSON")
}

fn interval(start: &Sample, now: &Sample, meter: &Meter) -> Interval {
    let seconds = (now.at - start.at).as_secs_f64();
    let host = now.host.since(&start.host);
    let flash = OpCounts {
        programs: now.flash.programs - start.flash.programs,
        reads: now.flash.reads - start.flash.reads,
        erases: now.flash.erases - start.flash.erases,
    };
    let per_s = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
    Interval {
        seconds,
        simulated_ns: now.model.since(start.model).0,
        waf: ratio(flash.programs, host.write_pages),
        requests_per_s: per_s(host.reads + host.writes + host.trims + host.flushes),
        read_bytes_per_s: per_s(host.read_bytes),
        write_bytes_per_s: per_s(host.write_bytes),
        latency_ns: Latencies::new(&meter.model),
        real_latency_ns: Latencies::new(&meter.real),
        host,
        flash,
    }
}

impl Latencies {
    fn new(times: &[crate::meter::Times; crate::meter::KINDS]) -> Self {
        let [read, write, trim, flush, _] = times.each_ref().map(crate::meter::Times::summary);
        Self { read, write, trim, flush }
    }
}

impl ClockStat {
    fn new(clock: Clock) -> Self {
        match clock {
            Clock::Free { depth } => Self { mode: "free".to_owned(), depth: Some(depth) },
            Clock::Paced => Self { mode: "paced".to_owned(), depth: None },
            Clock::Real => Self { mode: "real".to_owned(), depth: None },
        }
    }
}
