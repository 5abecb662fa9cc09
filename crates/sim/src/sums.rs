//! Counters of a subsystem, added up over its namespaces or sets.

use crate::result::{CostResult, FlashResult, GcResult, SetResult, WearResult, ratio};
use nandscape_core::command::HostCounts;
use nandscape_core::{Cause, Cost, Ftl, FtlStats, OpCounts, Subsystem};
use std::collections::BTreeMap;

/// What hosts asked for, of all namespaces or of those in one set.
pub fn hosts(subsystem: &dyn Subsystem, set: Option<u16>) -> HostCounts {
    let mut sum = HostCounts::default();
    for (index, info) in subsystem.namespaces().iter().enumerate() {
        if set.is_some_and(|set| set != info.set) {
            continue;
        }
        sum.add(&subsystem.inspect().host_counts(index as u32));
    }
    sum
}

/// The layer under the first namespace; `None` without flash. For replays, where it is the only one.
pub fn layer(subsystem: &dyn Subsystem) -> Option<&(dyn Ftl + Send)> {
    let set = subsystem.namespaces()[0].set;
    let inside = subsystem.inspect();
    (inside.sets() > 0).then(|| inside.layer(set))
}

/// Counters and cost of all translation layers.
pub fn layers(subsystem: &dyn Subsystem) -> (FtlStats, Cost) {
    let mut stats = FtlStats::default();
    let mut cost = Cost::default();
    for layer in subsystem.inspect().layers {
        let (s, c) = (layer.stats(), layer.cost());
        stats.map_updates += s.map_updates;
        stats.map_update_bytes += s.map_update_bytes;
        stats.log_table_updates += s.log_table_updates;
        stats.gc_runs += s.gc_runs;
        stats.gc_moved_pages += s.gc_moved_pages;
        stats.merges_switch += s.merges_switch;
        stats.merges_full += s.merges_full;
        stats.merges_evicted += s.merges_evicted;
        stats.in_place_rewrites += s.in_place_rewrites;
        stats.live_pages += s.live_pages;
        cost.map_table_bytes += c.map_table_bytes;
        cost.dram_bytes += c.dram_bytes;
        cost.usable_bytes += c.usable_bytes;
        cost.total_blocks += c.total_blocks;
        cost.reserve_blocks += c.reserve_blocks;
        cost.pages_per_block = c.pages_per_block;
        cost.logical_pages += c.logical_pages;
    }
    (stats, cost)
}

/// Bytes of a flash page; `None` without flash.
pub fn page_bytes(subsystem: &dyn Subsystem) -> Option<u64> {
    subsystem.inspect().layers.first().map(|layer| u64::from(layer.device().geometry().page_bytes))
}

/// What a set did, with its wear as it is counted by whoever asks.
pub fn set(subsystem: &dyn Subsystem, set: u16, wear: WearResult) -> SetResult {
    let layer = subsystem.inspect().layer(set);
    let (device, stats) = (layer.device(), layer.stats());
    let (host, totals) = (hosts(subsystem, Some(set)), device.tally().totals);
    let inside = subsystem.namespaces().iter().filter(|info| info.set == set);
    SetResult {
        set,
        namespaces: inside.map(|info| info.name.clone()).collect(),
        waf: ratio(totals.programs, host.write_pages),
        waf_bytes: ratio(totals.programs * u64::from(device.geometry().page_bytes), host.write_bytes),
        flash: FlashResult::new(totals, device.counters()),
        gc: GcResult { runs: stats.gc_runs, moved_pages: stats.gc_moved_pages },
        wear,
        cost: CostResult::from(layer.cost()),
        host,
    }
}

/// What the flash of all sets did; `totals` are the medium's own.
pub fn flash(subsystem: &dyn Subsystem, totals: OpCounts) -> FlashResult {
    let mut by_cause: BTreeMap<String, OpCounts> = BTreeMap::new();
    for layer in subsystem.inspect().layers {
        for cause in Cause::ALL {
            by_cause.entry(cause.name().to_owned()).or_default().add(layer.device().counters().get(cause));
        }
    }
    FlashResult { programs: totals.programs, reads: totals.reads, erases: totals.erases, by_cause }
}
