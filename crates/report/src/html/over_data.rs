//! What a run did over the data that it wrote or read.

use super::Page;
use super::elements::{CHART, Chart};
use super::sections::{for_each_group, has_series};
use crate::Run;
use nandscape_sim::cached::CachePoint;
use nandscape_sim::metrics::Sample;

/// A workload that writes nothing is drawn over what it reads.
pub(super) fn heading(page: &Page<'_>) -> &'static str {
    let writes =
        |group: &super::Group<'_>| group.members.iter().any(|i| page.runs[*i].result.host.write_bytes > 0);
    match (page.groups.iter().any(writes), page.groups.iter().all(writes)) {
        (_, true) => "Over the data written",
        (false, _) => "Over the data read",
        _ => "Over the data written or read",
    }
}

/// Throughput, WAF, map traffic, erases, hits and dirty blocks. What stays at nothing in every run is not
/// worth a chart.
pub(super) fn over_data(page: &Page<'_>) -> String {
    for_each_group(page, |group| {
        if !has_series(page, group) {
            return String::new();
        }
        let ends = |of: &dyn Fn(&Run, &Sample) -> u64| {
            let runs = page.groups[group].members.iter().map(|i| &page.runs[*i]);
            let mut lasts = runs.filter_map(|run| Some((run, run.series.as_ref()?.samples.last()?)));
            lasts.any(|(run, sample)| of(run, sample) > 0)
        };
        let data = [("group", group)];
        let chart = |kind, title, about, tabs| {
            Chart { kind, number: group, data: &data, title, about, tabs, ..CHART }.html()
        };
        let mut out = String::from("<div class=\"grid\">\n");
        out += &chart(
            "throughput",
            "Throughput",
            "host bytes read and written per simulated second, MB/s (1e6)",
            &["since the start", "per interval"],
        );
        if ends(&|_, sample| sample.host.write_pages.min(sample.causes.total().programs)) {
            let about = "flash pages programmed per host page written";
            out += &chart("waf", "Write amplification", about, &["since the start", "per interval"]);
        }
        if ends(&|_, sample| sample.ftl.map_update_bytes) {
            out += &chart("map", "Map update traffic", "bytes of mapping table changed so far", &[]);
        }
        if ends(&|_, sample| sample.causes.total().erases) {
            out += &chart("erases", "Erases", "blocks erased so far", &[]);
        }
        let of_cache =
            |of: fn(&CachePoint) -> u64| ends(&|run, sample| run.cache_at(sample).as_ref().map_or(0, of));
        let tabs: &[&str] =
            match (of_cache(|cache| cache.counts.reads), of_cache(|cache| cache.counts.writes)) {
                (true, true) => &["reads", "writes", "reads per interval", "writes per interval"],
                (true, false) => &["since the start", "", "per interval", ""],
                (false, true) => &["", "since the start", "", "per interval"],
                (false, false) => &[],
            };
        if !tabs.is_empty() {
            out += &chart("hits", "Hit ratio", "requests that found all of their blocks in the cache", tabs);
        }
        if of_cache(|cache| cache.dirty + cache.counts.cleaned) {
            let about =
                "share of the cache that is newer than the disk, in %; blocks written to the disk so far";
            out += &chart("dirty", "Dirty blocks", about, &["dirty", "cleaned"]);
        }
        out + "</div>\n"
    })
}
