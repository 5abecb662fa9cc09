//! Counters of a subsystem, added up over its namespaces or sets.

use crate::result::{CostResult, FlashResult, GcResult, SetResult, WearResult, ratio};
use nandscape_core::namespace::HostCounts;
use nandscape_core::{Cause, Cost, FtlStats, OpCounts, Subsystem};
use std::collections::BTreeMap;

/// What hosts asked for, of all namespaces or of those in one set.
pub fn hosts(subsystem: &dyn Subsystem, set: Option<u16>) -> HostCounts {
    let mut sum = HostCounts::default();
    for (index, info) in subsystem.namespaces().iter().enumerate() {
        if set.is_some_and(|set| set != info.set) {
            continue;
        }
        sum.add(&subsystem.host_counts(index as u32));
    }
    sum
}

/// Counters and cost of all translation layers.
pub fn layers(subsystem: &dyn Subsystem) -> (FtlStats, Cost) {
    let mut stats = FtlStats::default();
    let mut cost = Cost::default();
    for set in 0..subsystem.sets() {
        let (s, c) = (subsystem.ftl_stats(set), subsystem.cost(set));
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
    (subsystem.sets() > 0).then(|| u64::from(subsystem.device(0).geometry().page_bytes))
}

/// What a set did, with its wear as it is counted by whoever asks.
pub fn set(subsystem: &dyn Subsystem, set: u16, wear: WearResult) -> SetResult {
    let device = subsystem.device(set);
    let (host, totals, layer) =
        (hosts(subsystem, Some(set)), device.medium_totals(), subsystem.ftl_stats(set));
    let inside = subsystem.namespaces().iter().filter(|info| info.set == set);
    SetResult {
        set,
        namespaces: inside.map(|info| info.name.clone()).collect(),
        waf: ratio(totals.programs, host.write_pages),
        waf_bytes: ratio(totals.programs * u64::from(device.geometry().page_bytes), host.write_bytes),
        flash: FlashResult::new(totals, device.counters()),
        gc: GcResult { runs: layer.gc_runs, moved_pages: layer.gc_moved_pages },
        wear,
        cost: CostResult::from(subsystem.cost(set)),
        host,
    }
}

/// What the flash of all sets did; `totals` are the medium's own.
pub fn flash(subsystem: &dyn Subsystem, totals: OpCounts) -> FlashResult {
    let mut by_cause: BTreeMap<String, OpCounts> = BTreeMap::new();
    for set in 0..subsystem.sets() {
        for cause in Cause::ALL {
            by_cause
                .entry(cause.name().to_owned())
                .or_default()
                .add(subsystem.device(set).counters().get(cause));
        }
    }
    FlashResult { programs: totals.programs, reads: totals.reads, erases: totals.erases, by_cause }
}
