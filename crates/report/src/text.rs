//! Tables for a terminal of 100 to 140 columns. Columns that no run has a value for are left out.

use crate::cached::cache_text;
use crate::lines::broken;
use crate::metrics::{
    SUMMARY, best, cause_order, latency_points, latency_weight, over_provisioning, program_bytes, rarity,
};
use crate::notes::{cautions, shared};
use crate::number::{Kind, grouped, or_dash, printable, ratio};
use crate::phases;
use crate::placement::placement_text;
use crate::shape::Shape;
use crate::table::{Head, Table};
use crate::verdict::verdict;
use crate::{Output, ReportError, Run};
use nandscape_core::units::format_bytes;
use nandscape_core::{Cause, ObjectReport};
use nandscape_sim::RunResult;
use nandscape_sim::result::{LatencySummary, PolicyResult, Spread};
use std::collections::BTreeMap;
use std::fmt::Write as _;

pub(crate) const OUTPUT: Output = Output::new("text", "a table for the terminal", |runs, _| {
    Ok::<_, ReportError>(render_text(runs, None).into_bytes())
});

/// One line per run; below, what went wrong and what a reader must know. Runs that did not end well are
/// named. For a terminal of `width` columns tables are made to fit, and the best values marked.
pub fn render_text(runs: &[Run], width: Option<usize>) -> String {
    let mut out = String::new();
    let mut specs: Vec<&str> = Vec::new();
    for run in runs {
        if !specs.contains(&run.result.workload.spec.as_str()) {
            specs.push(&run.result.workload.spec);
        }
    }
    for spec in specs {
        let group: Vec<&Run> = runs.iter().filter(|run| run.result.workload.spec == spec).collect();
        if !out.is_empty() {
            out.push('\n');
        }
        heading(&mut out, &group, width);
        out.push_str(&summary_table(&group, width.is_some()).render(width));
        if let Some(table) = cause_table(&group) {
            let _ = write!(out, "\n{}", table.render(width));
        }
        if let Some(table) = seeds_table(&group) {
            let _ = write!(out, "\n{}", table.render(width));
            out.push_str(
                "figures by cause, checks and notes: of the seed with the median write amplification\n",
            );
        }
    }
    remarks(&mut out, runs);
    out
}

fn heading(out: &mut String, runs: &[&Run], width: Option<usize>) {
    let first = &runs[0].result;
    // Block devices and stores of objects read the same recording as different requests.
    let mut formats: Vec<(&str, u64)> = Vec::new();
    for workload in runs.iter().map(|run| &run.result.workload) {
        match formats.iter_mut().find(|(format, _)| *format == workload.format) {
            Some((_, most)) => *most = workload.requests.max(*most),
            None => formats.push((&workload.format, workload.requests)),
        }
    }
    let read_as: Vec<String> = formats
        .into_iter()
        .map(|(format, requests)| format!("{}, {} requests", printable(format), grouped(requests)))
        .collect();
    let spec = printable(&first.workload.spec);
    let _ = writeln!(out, "workload {spec} ({}, {})", read_as.join(" or "), seeds_of(first));
    let mut caches: Vec<String> =
        runs.iter().filter_map(|run| run.result.cache.as_ref()).map(crate::cached::describe).collect();
    caches.dedup();
    for cache in caches {
        let _ = writeln!(out, "cache    {}", printable(&cache));
    }
    let mut devices: Vec<String> = runs
        .iter()
        // The device of a configuration is not there where a cache is over something else.
        .filter(|run| run.result.cache.is_none() || !run.result.flash.by_cause.is_empty())
        .filter_map(|run| Shape::from_config(&run.result.run.config))
        .map(|shape| shape.describe())
        .collect();
    devices.dedup();
    for device in devices {
        let _ = writeln!(out, "device   {}", printable(&device));
    }
    if let Some(usable) = same_capacity(runs) {
        let _ = writeln!(out, "usable   {}", format_bytes(usable));
    }
    out.push_str(&verdict_lines(&verdict(runs), width));
    let who = |who: &str| if runs.len() > 1 { format!("{}: ", printable(who)) } else { String::new() };
    let phases: Vec<String> =
        phases::sentences(runs, "all").iter().map(|(label, text)| who(label) + text).collect();
    out.push_str(&worded_lines("phases", &phases, width));
    for (label, note) in cautions(runs.iter().copied(), "all") {
        let _ = writeln!(out, "caution  {}{}", who(&label), printable(&note));
    }
}

/// The seed of a run, or how many it is the middle of.
fn seeds_of(result: &RunResult) -> String {
    match &result.run.seeds {
        None => format!("seed {}", result.run.seed),
        Some(seeds) => {
            let all: Vec<String> = seeds.used.iter().map(u64::to_string).collect();
            format!("means of {} seeds: {}", all.len(), all.join(", "))
        }
    }
}

/// Columns of a sentence.
const WIDTH: usize = 110;

/// Sentences behind the word that they are found by, each on lines of its own.
pub(crate) fn verdict_lines(sentences: &[String], width: Option<usize>) -> String {
    worded_lines("verdict", sentences, width)
}

fn worded_lines(word: &str, sentences: &[String], width: Option<usize>) -> String {
    let mut out = String::new();
    let room = width.map_or(WIDTH, |width| WIDTH.min(width.saturating_sub(9)));
    for (number, line) in sentences.iter().flat_map(|sentence| broken(sentence, room)).enumerate() {
        let _ = writeln!(out, "{:<9}{line}", if number == 0 { word } else { "" });
    }
    out
}

/// Bytes that hosts can address, if that is the same for all runs: it then stands above the table.
fn same_capacity(runs: &[&Run]) -> Option<u64> {
    let usable = runs.first()?.result.cost.usable_bytes;
    (usable > 0 && runs.iter().all(|run| run.result.cost.usable_bytes == usable)).then_some(usable)
}

fn summary_table(runs: &[&Run], marks_best: bool) -> Table {
    let mut table = Table::new();
    let name = |run: &&Run| match run.status() {
        "complete" => printable(run.name()),
        status => format!("{} {}", printable(run.name()), status.to_uppercase()),
    };
    let first = if runs.iter().any(|run| run.result.cache.is_some()) { "cache" } else { "FTL" };
    table.column(Head::text(first), runs.iter().map(name));
    for metric in SUMMARY {
        let values: Vec<Option<f64>> = runs.iter().map(|run| metric.mean(&run.result)).collect();
        let is_above = metric.name == "usable" && same_capacity(runs).is_some();
        if values.iter().any(Option::is_some) && !is_above {
            let unit = if (metric.group, metric.name) == ("GC", "moved") { "pages" } else { "" };
            let head = Head::number(metric.group, metric.name, unit).weighing(metric.weight);
            let of_complete = values.iter().zip(runs).map(|(value, run)| value.filter(|_| run.is_complete()));
            let of_complete: Vec<Option<f64>> = of_complete.collect();
            let scale = metric.kind.unit(values.iter().flatten().copied());
            table.figures(head, metric.kind, values);
            if marks_best {
                table.mark(&best(metric.better, &scale, &of_complete));
            }
        }
    }
    table
}

/// Figures whose spread is worth a column.
const SPREAD: [(&str, &str); 6] = [
    ("", "WAF"),
    ("hits", "reads"),
    ("throughput", "write"),
    ("throughput", "read"),
    ("write latency", "p99"),
    ("read latency", "p99"),
];

/// Least and largest values over the seeds; `None` where every run has one seed.
fn seeds_table(runs: &[&Run]) -> Option<Table> {
    runs.iter().find(|run| run.result.run.seeds.is_some())?;
    let mut table = Table::new();
    table.column(Head::text("over seeds"), runs.iter().map(|run| printable(run.name())));
    for metric in SUMMARY.iter().filter(|metric| SPREAD.contains(&(metric.group, metric.name))) {
        let spreads: Vec<Option<Spread>> = runs.iter().map(|run| metric.spread(&run.result)).collect();
        if spreads.iter().all(Option::is_none) {
            continue;
        }
        // In the unit of the means above.
        let unit = metric.kind.unit(runs.iter().filter_map(|run| metric.mean(&run.result)));
        let group = format!("{} {}", metric.group, metric.name);
        for (name, of) in [("min", (|s| s.min) as fn(&Spread) -> f64), ("max", |s| s.max)] {
            let cell = |spread: &Option<Spread>| or_dash(*spread, |spread| unit.show(of(&spread)));
            table.column(Head::number(group.trim(), name, unit.name), spreads.iter().map(cell));
        }
    }
    Some(table)
}

/// Write amplification of several runs by what programs were for; `None` where hosts wrote all of them.
fn cause_table(runs: &[&Run]) -> Option<Table> {
    let programs = |run: &Run, cause: &str| run.result.flash.by_cause.get(cause).map_or(0, |c| c.programs);
    let mut causes: Vec<&str> =
        runs.iter().flat_map(|run| run.result.flash.by_cause.keys()).map(String::as_str).collect();
    causes.sort_unstable_by_key(|cause| (cause_order(cause), *cause));
    causes.dedup();
    causes.retain(|cause| runs.iter().any(|run| programs(run, cause) > 0));
    if runs.len() < 2 || causes.len() < 2 {
        return None;
    }
    let mut table = Table::new();
    table.column(Head::text("WAF by cause"), runs.iter().map(|run| printable(run.name())));
    for cause in causes {
        let values = runs.iter().map(|run| {
            let bytes = programs(run, cause) as f64 * program_bytes(&run.result)?;
            Some(bytes / run.result.host.write_bytes as f64)
        });
        table.figures(Head::number("", cause, ""), Kind::Ratio, values);
    }
    Some(table)
}

/// Errors and notes; a note that several runs share is printed once.
fn remarks(out: &mut String, runs: &[Run]) {
    let mut lines = String::new();
    for run in runs {
        let label = printable(&run.label);
        if let Some(error) = &run.result.error {
            let _ = writeln!(
                lines,
                "! {label}: failed at request {}: {}",
                error.request,
                printable(&error.message)
            );
        }
        if run.result.partial {
            let _ = writeln!(
                lines,
                "! {label}: interrupted after {} requests; the figures are those until then",
                grouped(run.result.workload.requests)
            );
        }
        if run.result.workload.time_reversals > 0 {
            let _ = writeln!(
                lines,
                "* {label}: {} time stamps went back and were clamped or sorted",
                run.result.workload.time_reversals
            );
        }
    }
    for (who, note) in shared(runs.iter(), "all", |run| run.result.notes.clone()) {
        let _ = writeln!(lines, "* {}: {}", printable(&who), printable(&note));
    }
    if !lines.is_empty() {
        out.push('\n');
        out.push_str(&lines);
    }
}

/// Everything about one run, for `replay`. For a terminal of `width` columns tables are made to fit.
pub fn render_detail(run: &Run, width: Option<usize>) -> String {
    let mut out = String::new();
    heading(&mut out, &[run], width);
    let _ = writeln!(
        out,
        "{}      {}{}",
        if run.result.cache.is_some() { "run" } else { "ftl" },
        printable(&run.label),
        if run.is_complete() { "" } else { "  (see below)" }
    );
    out.push('\n');
    for (name, value) in detail_pairs(&run.result) {
        let _ = writeln!(out, "  {name:<22} {value}");
    }
    if let Some(table) = seeds_table(&[run]) {
        let _ = write!(
            out,
            "\nfigures above and below are of seed {}\n{}",
            run.result.run.seed,
            table.render(width)
        );
    }
    out.push_str(&cache_text(run, width));
    if !run.result.flash.by_cause.is_empty() {
        out.push('\n');
        out.push_str(&causes_table(&run.result).render(width));
    }
    let of_jobs =
        run.result.jobs.iter().filter_map(|job| Some((job.policy.as_ref()?, Some(job.name.as_str()))));
    let policies = run.result.between.policy.iter().map(|policy| (policy, None)).chain(of_jobs);
    let tables = [
        crate::jobs::jobs_table(&run.result),
        crate::jobs::sets_table(&run.result),
        // Jobs have their own latencies in their own table.
        if run.result.jobs.len() == 1 { None } else { latency_table(&run.result) },
    ];
    let policies = policies.map(|(policy, host)| policy_table(policy, host));
    for table in policies.chain(tables.into_iter().flatten()) {
        out.push('\n');
        out.push_str(&table.render(width));
    }
    out.push_str(&placement_text(run, width));
    remarks(&mut out, std::slice::from_ref(run));
    out
}

fn detail_pairs(r: &RunResult) -> Vec<(&'static str, String)> {
    let requests = |n: u64, bytes: u64, pages: u64| {
        format!("{} requests, {}, {} pages", grouped(n), format_bytes(bytes), grouped(pages))
    };
    let mut pairs = vec![
        ("host writes", requests(r.host.writes, r.host.write_bytes, r.host.write_pages)),
        ("host reads", requests(r.host.reads, r.host.read_bytes, r.host.read_pages)),
    ];
    if r.host.trims > 0 {
        let text = format!("{} requests, {}", grouped(r.host.trims), format_bytes(r.host.trim_bytes));
        pairs.push(("host trims", text));
    }
    if r.host.flushes > 0 {
        pairs.push(("host flushes", grouped(r.host.flushes)));
    }
    let has_flash = !r.flash.by_cause.is_empty();
    if has_flash {
        let pages = r.waf.pages.map_or(String::new(), |waf| format!(" ({waf:.3} in pages)"));
        let text = ratio(r.waf.bytes) + &pages;
        pairs.push(("write amplification", text));
    }
    for (name, bytes, rate) in [
        ("write throughput", r.host.write_bytes, r.speed.throughput.write_bytes_per_s),
        ("read throughput", r.host.read_bytes, r.speed.throughput.read_bytes_per_s),
    ] {
        if bytes > 0 {
            pairs.push((name, Kind::Rate.show_alone(rate)));
        }
    }
    if let Some(zones) = &r.between.zones {
        pairs.push(("zones", states(&zones.states)));
        let counts = zones.counts;
        let text = format!(
            "{} opened, {} closed for others, {} finished, {} reset",
            grouped(counts.opens),
            grouped(counts.implicit_closes),
            grouped(counts.finishes),
            grouped(counts.resets)
        );
        pairs.push(("zone changes", text));
    }
    if let Some(chunks) = &r.between.chunks {
        pairs.push(("chunks", states(&chunks.states)));
        let counts = chunks.counts;
        let text = format!(
            "{} reset, {} closed early, {} gone offline, wear index up to {}",
            grouped(counts.resets),
            grouped(counts.early_closes),
            grouped(counts.offline_chunks),
            chunks.wear_max
        );
        pairs.push(("chunk changes", text));
    }
    pairs.extend(r.between.objects.iter().flat_map(object_pairs));
    pairs.push(("simulated time", Kind::Nanos.show_alone(r.speed.time.simulated_ns as f64)));
    if r.speed.time.wall_s > 0.0 {
        let text = format!(
            "{:.3} s, {} host pages/s",
            r.speed.time.wall_s,
            grouped(r.speed.time.host_pages_per_wall_s as u64)
        );
        pairs.push(("wall time", text));
    }
    if has_flash {
        flash_pairs(r, &mut pairs);
    }
    let [config, workload] = [&r.run.config_hash, &r.run.workload_hash].map(|hash| printable(hash));
    pairs.push(("configuration", format!("{config} (workload {workload})")));
    pairs
}

/// What a store of objects holds, and what it did for that.
fn object_pairs(objects: &ObjectReport) -> [(&'static str, String); 2] {
    let held = format!(
        "{} with {} in {} extents, space amplification {}",
        grouped(objects.objects),
        format_bytes(objects.live_bytes),
        grouped(objects.extents),
        ratio(objects.space_amplification())
    );
    let zones = format!(
        "{} zones or sections emptied, {} finished early, {} moved to empty them",
        grouped(objects.resets),
        grouped(objects.finishes),
        format_bytes(objects.moved_bytes)
    );
    [("objects", held), ("object space", zones)]
}

/// How many are in each state.
fn states(counts: &BTreeMap<String, u32>) -> String {
    let states = counts.iter().map(|(state, count)| format!("{} {state}", grouped(u64::from(*count))));
    states.collect::<Vec<_>>().join(", ")
}

fn flash_pairs(r: &RunResult, pairs: &mut Vec<(&'static str, String)>) {
    let mut pair = |name, text: String| pairs.push((name, text));
    let (wear, map, m, cost) = (&r.wear, &r.layer.map, &r.layer.merges, &r.cost);
    let (min, mean, max) = (wear.erases_min, wear.erases_mean, wear.erases_max);
    pair(
        "erases per block",
        format!("min {min}, mean {mean:.2}, max {max}, stddev {:.2}", wear.erases_stddev),
    );
    if let Some(text) = lifetime(r) {
        pair("lifetime", text);
    }
    let [table, updated] = [map.table_bytes, map.update_bytes].map(format_bytes);
    pair("map", format!("table {table}, {} updates, {updated} updated", grouped(map.updates)));
    if let Some(cache) = r.layer.map_cache {
        let lookups = cache.hits + cache.misses;
        let [found, reads] = [cache.hits, lookups].map(grouped);
        let meta = r.flash.cause(Cause::Meta);
        let text = format!(
            "{found} of {reads} lookups of reads found their entries in memory, {} at most; {} translation pages read and {} programmed \
             (cause meta)",
            format_bytes(cache.most_bytes),
            grouped(meta.reads),
            grouped(meta.programs)
        );
        pair("map cache", text);
    }
    let [runs, moved] = [r.layer.gc.runs, r.layer.gc.moved_pages].map(grouped);
    pair("garbage collection", format!("{runs} victims, {moved} pages moved"));
    if m.switch + m.full + m.evicted + m.in_place > 0 {
        let [switch, full, evicted, in_place] = [m.switch, m.full, m.evicted, m.in_place].map(grouped);
        let text = format!(
            "{switch} switch, {full} full, {evicted} forced by a full log table, {in_place} in place"
        );
        pair("merges", text);
    }
    let op = or_dash(over_provisioning(r), |op| format!("{:.1} %", op * 100.0));
    let [device, host, usable] = [cost.dram_bytes, cost.host_dram_bytes, cost.usable_bytes].map(format_bytes);
    let [reserve, total] = [cost.reserve_blocks, cost.total_blocks].map(grouped);
    let text = format!(
        "DRAM of the device {device}, of the host {host}; usable {usable}, over-provisioning {op}, \
         {reserve} of {total} blocks in reserve"
    );
    pair("cost", text);
}

/// What the stream policy of a host wrote with each id; `host` is the job of a job file that it is.
fn policy_table(policy: &PolicyResult, host: Option<&str>) -> Table {
    let mut table = Table::new();
    let name = |stream: u16| if stream == 0 { "none".to_owned() } else { stream.to_string() };
    let total: u64 = policy.streams.iter().map(|stream| stream.bytes).sum();
    let of_host = host.map(|name| format!(" of {}", printable(name))).unwrap_or_default();
    table.column(
        Head::text(&format!("stream{of_host} ({})", printable(&policy.name))),
        policy.streams.iter().map(|stream| name(stream.stream)),
    );
    table.column(Head::number("", "writes", ""), policy.streams.iter().map(|stream| grouped(stream.writes)));
    table.column(Head::number("", "written", ""), policy.streams.iter().map(|s| format_bytes(s.bytes)));
    let share = |bytes: u64| format!("{:.1}", bytes as f64 * 100.0 / total.max(1) as f64);
    table.column(Head::number("", "share", "%"), policy.streams.iter().map(|s| share(s.bytes)));
    table
}

/// What the host may write until the blocks are spent; `None` where their endurance is endless or nothing was
/// written.
fn lifetime(r: &RunResult) -> Option<String> {
    let life = &r.lifetime;
    let until = life.host_bytes_until_worn?;
    let first = life.host_bytes_until_first_block_worn.map_or(String::new(), |bytes| {
        format!(" ({} until the first block is)", Kind::Bytes.show_alone(bytes))
    });
    Some(format!(
        "{} from the host until {} erases a block are spent{first}: {:.0} drive writes, {:.1} years at 1 a day",
        Kind::Bytes.show_alone(until),
        life.endurance?,
        life.drive_writes?,
        life.years_at_1_dwpd?
    ))
}

/// Flash operations by cause; causes that did nothing are left out.
fn causes_table(result: &RunResult) -> Table {
    let mut rows: Vec<(&str, [u64; 3])> = result
        .flash
        .by_cause
        .iter()
        .map(|(name, c)| (name.as_str(), [c.programs, c.reads, c.erases]))
        .filter(|(_, counts)| counts.iter().any(|n| *n > 0))
        .collect();
    rows.sort_by_key(|(name, _)| cause_order(name));
    rows.push(("total", [result.flash.programs, result.flash.reads, result.flash.erases]));
    let mut table = Table::new();
    table.column(Head::text("  flash operations"), rows.iter().map(|r| format!("  {}", printable(r.0))));
    for (i, name) in ["programs", "reads", "erases"].into_iter().enumerate() {
        let cells = rows.iter().map(|r| grouped(r.1[i]));
        table.column(Head::number("", name, ""), cells);
    }
    table
}

fn latency_table(result: &RunResult) -> Option<Table> {
    let rows: Vec<(&str, &LatencySummary)> = result.latency_ns.kinds().collect();
    if rows.is_empty() {
        return None;
    }
    let mut table = Table::new();
    let unit = Kind::Nanos.unit(rows.iter().flat_map(|(_, s)| latency_points(s)).map(|(_, v)| v));
    let title = format!("  latency, {}", unit.name);
    table.column(Head::text(&title), rows.iter().map(|(name, _)| format!("  {name}")));
    table.column(Head::number("", "requests", ""), rows.iter().map(|(_, s)| grouped(s.count)));
    for i in 0..10 {
        let name = latency_points(rows[0].1)[i].0;
        // With fewer requests than a percentile needs, it would only be the longest one again.
        let is_known = |s: &LatencySummary| rarity(name).is_none_or(|rarity| s.count as f64 >= rarity);
        let show = |s: &LatencySummary| unit.show(latency_points(s)[i].1);
        let cells = rows.iter().map(|(_, s)| if is_known(s) { show(s) } else { "-".to_owned() });
        table.column(Head::number("", name, "").weighing(latency_weight(name)), cells);
    }
    Some(table)
}
