//! Counters of a subsystem, added up over its namespaces or sets.

use crate::result::{
    BetweenResult, CacheResult, ChunksResult, CostResult, FlashResult, GcResult, LatencyResult, LayerResult,
    RunIdentity, RunResult, SCHEMA, SetResult, Speed, Waf, WearResult, WorkloadResult, ZonesResult,
    placement_of_logs, ratio,
};
use nandscape_core::command::HostCounts;
use nandscape_core::{
    BlockId, CauseTable, Cost, FtlStats, Layers, MapCacheStats, NamespaceResult, OpCounts, Outstanding,
    SimTime, SlcStatus, Subsystem,
};

/// What hosts asked for, of all namespaces or of those in one set.
pub fn hosts(subsystem: &dyn Subsystem, set: Option<u16>) -> HostCounts {
    let mut sum = HostCounts::default();
    for (index, info) in (0..).zip(subsystem.namespaces()) {
        if set.is_none_or(|set| set == info.set) {
            sum.add(&subsystem.inspect().host_counts(index));
        }
    }
    sum
}

/// The layer under the first namespace; none without flash. For replays, where it is the only one.
pub fn first(subsystem: &dyn Subsystem) -> Layers<'_> {
    let set = usize::from(subsystem.namespaces()[0].set);
    subsystem.inspect().layers.only(set)
}

/// Counters and cost of translation layers.
pub fn layers(layers: Layers<'_>) -> (FtlStats, Cost) {
    let mut stats = FtlStats::default();
    let mut cost = Cost::default();
    for layer in layers.iter() {
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
        let [of_device, of_host] = match layer.device().capabilities().dram_below {
            Some(below) => [below, c.dram_bytes],
            None => [c.dram_bytes, 0],
        };
        cost.dram_bytes += of_device;
        cost.host_dram_bytes += c.host_dram_bytes + of_host;
        cost.usable_bytes += c.usable_bytes;
        cost.total_blocks += c.total_blocks;
        cost.reserve_blocks += c.reserve_blocks;
        cost.pages_per_block = c.pages_per_block;
        cost.logical_pages += c.logical_pages;
    }
    (stats, cost)
}

/// The SLC caches of translation layers, together; `None` without any.
pub fn slc(layers: Layers<'_>) -> Option<SlcStatus> {
    layers.iter().filter_map(nandscape_core::Mapping::slc).reduce(|sum, slc| SlcStatus {
        capacity_bytes: sum.capacity_bytes + slc.capacity_bytes,
        host_pages: sum.host_pages + slc.host_pages,
    })
}

/// What translation layers did.
pub fn layer_result(layers: Layers<'_>, stats: &FtlStats, cost: &Cost) -> LayerResult {
    LayerResult { slc: slc(layers), map_cache: map_cache(layers), ..LayerResult::new(stats, cost) }
}

/// The maps of which a part is in memory, together; `None` without any.
pub fn map_cache(layers: Layers<'_>) -> Option<MapCacheStats> {
    layers.iter().filter_map(nandscape_core::Mapping::map_cache).reduce(|sum, one| MapCacheStats {
        hits: sum.hits + one.hits,
        misses: sum.misses + one.misses,
        most_bytes: sum.most_bytes + one.most_bytes,
    })
}

/// Lets a device with an SLC cache fold it in the pause of the host that ends at `until`: step by step, where
/// only events tell how long a step took.
pub(crate) fn fold_until<T: Copy>(
    subsystem: &mut dyn Subsystem,
    outstanding: &mut Outstanding<T>,
    until: SimTime,
) -> NamespaceResult<()> {
    loop {
        outstanding.run_events(subsystem, until);
        let from = subsystem.idle_from();
        if from >= until {
            return Ok(());
        }
        subsystem.idle(from, until)?;
        if subsystem.next_event().is_none() {
            return Ok(());
        }
    }
}

/// Pages programmed by the layers under the first namespace.
pub(crate) fn programs(subsystem: &dyn Subsystem) -> u64 {
    first(subsystem).iter().map(|layer| layer.device().tally().totals.programs).sum()
}

/// Bytes of a flash page; `None` without flash.
pub fn page_bytes(layers: Layers<'_>) -> Option<u64> {
    layers.first().map(|layer| u64::from(layer.device().geometry().page_bytes))
}

pub(crate) fn erases(layers: Layers<'_>) -> Vec<Vec<u32>> {
    let devices = layers.iter().map(nandscape_core::FlashLayer::device);
    devices
        .map(|device| (0..device.geometry().blocks()).map(|b| device.erase_count(BlockId(b))).collect())
        .collect()
}

/// Erases of the good blocks since `before`, and with `with_detail` of every block.
pub(crate) fn wear(layers: Layers<'_>, before: &[Vec<u32>], with_detail: bool) -> WearResult {
    let (mut good, mut all) = (Vec::new(), Vec::new());
    for (layer, before) in layers.iter().zip(before) {
        let device = layer.device();
        for (block, before) in (0..).map(BlockId).zip(before) {
            let count = device.erase_count(block) - before;
            good.extend((!device.is_bad(block)).then_some(count));
            all.push(count);
        }
    }
    WearResult { per_block: with_detail.then_some(all), ..WearResult::new(good.into_iter()) }
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

/// What the flash of these layers did, by the mediums' own counts.
pub fn flash(layers: Layers<'_>) -> FlashResult {
    let mut totals = OpCounts::default();
    let mut causes = CauseTable::default();
    for device in layers.iter().map(nandscape_core::FlashLayer::device) {
        totals.add(device.tally().totals);
        causes.add(device.counters());
    }
    if layers.is_empty() {
        return FlashResult::default();
    }
    FlashResult::new(totals, &causes)
}

/// Write amplification of the flash of these layers. A cache counts blocks of its own, and has none in pages.
pub fn waf(subsystem: &dyn Subsystem, layers: Layers<'_>, programs: u64, host: &HostCounts) -> Waf {
    let Some(page) = page_bytes(layers) else { return Waf::default() };
    let is_paged = subsystem.namespaces().iter().all(|info| u64::from(info.page_bytes) == page);
    Waf {
        pages: ratio(programs, host.write_pages).filter(|_| is_paged),
        bytes: ratio(programs * page, host.write_bytes),
    }
}

/// What a run measured that its subsystem does not know.
pub(crate) struct Measured {
    pub seed: u64,
    pub workload_hash: u64,
    pub workload: WorkloadResult,
    pub simulated_ns: u64,
    pub wear: WearResult,
    pub latency_ns: LatencyResult,
}

/// The document of a run over these layers, without what only some runs have.
pub(crate) fn document(subsystem: &dyn Subsystem, layers_of_run: Layers<'_>, run: Measured) -> RunResult {
    let inside = subsystem.inspect();
    let host = hosts(subsystem, None);
    let flash = flash(layers_of_run);
    let (stats, mut cost) = layers(layers_of_run);
    cost.host_dram_bytes += inside.host_bytes;
    if let Some(store) = subsystem.namespaces().first().filter(|info| info.objects) {
        // A file system keeps a part of the drive for itself.
        cost.usable_bytes = store.capacity_bytes;
    }
    let page_bytes = page_bytes(layers_of_run);
    let logs = layers_of_run.iter().map(|layer| {
        (0..if inside.has_logs { layer.logs() } else { 1 }).map(|log| layer.log_status(log)).collect()
    });
    RunResult {
        run: RunIdentity {
            schema: SCHEMA,
            workload_hash: format!("{:016x}", run.workload_hash),
            seed: run.seed,
            ..RunIdentity::default()
        },
        workload: run.workload,
        waf: waf(subsystem, layers_of_run, flash.programs, &host),
        layer: layer_result(layers_of_run, &stats, &cost),
        wear: run.wear,
        speed: Speed::new(&host, run.simulated_ns, 0.0),
        latency_ns: run.latency_ns,
        cost: cost.into(),
        placement: inside.placement().or_else(|| placement_of_logs((0..).zip(logs))),
        between: BetweenResult {
            zones: ZonesResult::of(&inside),
            chunks: ChunksResult::of(&inside, 0),
            objects: inside.objects(),
            policy: None,
        },
        cache: inside.cache().map(|report| {
            CacheResult::new(report, host.write_bytes, page_bytes.map(|page| flash.programs * page))
        }),
        host,
        flash,
        ..RunResult::default()
    }
}
