//! What a reader sees first, in every kind of report: the verdict in at most three sentences, key figures,
//! phases, cautions; and that charts have something to say without a script and on paper.

use crate::sample;

use nandscape_policies::simulate::advice::{Advice, advise};
use nandscape_policies::simulate::curve::{Curve, Point};
use nandscape_report::{ReportContext, ReproductionRow, Run, Verdict, render_detail, render_html};
use nandscape_sim::JobSeries;
use nandscape_sim::histogram::LogHistogram;
use nandscape_sim::jobs::timeline::{Cell, SetPoint, Window};
use nandscape_sim::result::{DirectionResult, JobResult};
use serde_json::{Value, json};

/// A reader and a writer for 20 s; at 7 s the writes fall from 480 to 120 MB/s.
pub fn job_run() -> Run {
    let mut run = sample::runs(1600).swap_remove(4);
    run.series = None;
    let cell = |bytes: u64, latency_ns: u64| {
        let requests = bytes / 16_384;
        let mut latencies = LogHistogram::default();
        (0..requests).for_each(|_| latencies.record(latency_ns));
        let latency_sum_ns = requests * latency_ns;
        Cell { requests, bytes, latency_sum_ns, latency_max_ns: latency_ns, buckets: latencies.sparse() }
    };
    let mut programs = 0;
    let windows = (0..200u64).map(|at| {
        let (rate, latency_ns) = if at < 70 { (480, 2_000_000) } else { (120, 8_000_000) };
        // In 100 ms, with a little noise.
        let bytes = rate * 98_304 + at * 7919 % 20 * 16_384;
        programs += bytes / 32_768;
        Window {
            end_ns: (at + 1) * 100_000_000,
            rows: vec![
                [cell(bytes / 8, 100_000), Cell::default()],
                [Cell::default(), cell(bytes, latency_ns)],
            ],
            sets: vec![SetPoint { host_pages: programs, programs, ..SetPoint::default() }],
            cache: None,
        }
    });
    let rows = ["reader", "writer"].map(str::to_owned).to_vec();
    run.jobs = Some(JobSeries { interval_ns: 100_000_000, windows: windows.collect(), rows: rows.clone() });
    let direction = DirectionResult { requests: 1000, ..DirectionResult::default() };
    run.result.jobs =
        rows.into_iter().map(|name| JobResult { name, members: 1, ..JobResult::default() }).collect();
    run.result.jobs[0].read = direction.clone();
    run.result.jobs[1].write = direction;
    run
}

/// Published figures: a number met, one missed, a statement.
fn rows() -> Vec<ReproductionRow> {
    let row = |name: &str, measured: Value, ratio, note: &str| ReproductionRow {
        id: "table".into(),
        name: name.into(),
        published: json!(100),
        measured,
        ratio,
        note: note.into(),
        ..ReproductionRow::default()
    };
    let mut rows = vec![
        row("near", json!(104), Some(1.04), ""),
        row("far", json!(50), Some(0.5), "half of the dies"),
        row("ordering", json!(true), None, ""),
    ];
    rows[0].verdict = Some(Verdict::Met);
    rows
}

/// Ten policies, of which lru is the worst but one.
fn many_policies() -> (Advice, Vec<Point>) {
    let (base, lru) = sample::advice("zipf");
    let curve = |name: &str| base.curves.iter().find(|curve| curve.eviction == name).cloned();
    let mut curves: Vec<Curve> = ["lru", "belady"].iter().filter_map(|name| curve(name)).collect();
    let points = &curves[0].points;
    let better = |gain: u64| {
        let improve = |point: &Point| {
            let mut point = *point;
            let moved = gain.min(point.accesses.write_misses);
            point.accesses.write_misses -= moved;
            point.accesses.write_hits += moved;
            point
        };
        Curve { eviction: format!("p{gain}"), points: points.iter().map(improve).collect(), knee: None }
    };
    let more: Vec<Curve> = (1..9).map(better).collect();
    curves.extend(more);
    (advise(Advice { curves, ..base }, &lru), lru)
}

/// Every kind of report, with its name.
pub fn pages() -> Vec<(&'static str, String)> {
    let empty = ReportContext::default;
    vec![
        ("compare", render_html(&sample::runs(1600), &empty())),
        ("job", render_html(&[job_run()], &empty())),
        ("caches", render_html(&sample::cached_runs(1600), &empty())),
        ("advise", render_html(&[], &ReportContext { advice: vec![many_policies()], ..empty() })),
        ("sweep", render_html(&[], &ReportContext { sweep: Some(sample::sweep("zipf")), ..empty() })),
        ("reproduce", render_html(&[], &ReportContext { reproduction: rows(), ..empty() })),
    ]
}

fn between<'a>(html: &'a str, start: &str, end: &str) -> &'a str {
    let from = html.find(start).unwrap_or_else(|| panic!("no {start}")) + start.len();
    &html[from..from + html[from..].find(end).unwrap_or_else(|| panic!("no {end} behind {start}"))]
}

fn data(html: &str) -> Value {
    serde_json::from_str(between(html, "id=\"data\">", "</script")).unwrap()
}

#[test]
fn every_report_begins_with_a_verdict_and_four_to_six_figures() {
    for (kind, html) in pages() {
        let body = &html[html.find("<body>").unwrap()..];
        let answer = body.find("<section class=\"answer\"").unwrap_or_else(|| panic!("{kind} has no answer"));
        for later in ["<dl class=\"facts\"", "<table", "<figure", "<nav"] {
            assert!(body.find(later).is_none_or(|at| at > answer), "{kind}: {later} is above the answer");
        }
        let answer = between(body, "<section class=\"answer\"", "</section>");
        let sentences = between(answer, "<p class=\"verdict\">", "</p>").split("<br>").count();
        assert!((1..=3).contains(&sentences), "{kind}: {sentences} sentences");
        let figures = between(answer, "<dl class=\"figures\">", "</dl>").matches("<dt>").count();
        assert!((4..=6).contains(&figures), "{kind}: {figures} figures");
    }
}

#[test]
fn a_verdict_on_published_figures_counts_what_was_met() {
    let html = render_html(&[], &ReportContext { reproduction: rows(), ..ReportContext::default() });
    let verdict = between(&html, "<p class=\"verdict\">", "</p>");
    for part in [
        "1 of 2 published numbers come out within a factor of 0.8 to 1.25; the farthest, far, at 0.500.",
        "1 of 1 published statements hold.",
        "1 of 1 rules that were stated before the run are kept.",
    ] {
        assert!(verdict.contains(part), "{verdict}");
    }
}

#[test]
fn a_disk_without_a_cache_is_called_that() {
    let mut runs = sample::cached_runs(400);
    runs.remove(1);
    runs[1].result.latency_ns.write.mean = 1.0;
    let verdict = |runs: &[Run]| {
        between(&render_html(runs, &ReportContext::default()), "<p class=\"verdict\">", "</p>").to_owned()
    };
    let soonest = verdict(&runs);
    assert!(soonest.starts_with("The disk alone (sbm-gcl) answers soonest"), "{soonest}");
    assert!(!soonest.contains("done first"), "{soonest}");
    // A mean is of reads and writes; what waits for flushes is done later.
    for (run, ns) in runs.iter_mut().zip([2_000_000, 5_000_000]) {
        run.result.speed.time.simulated_ns = ns;
    }
    let later = verdict(&runs);
    let done = "is done first, after 2 ms, flushes included; the disk alone (sbm-gcl) after 5 ms.";
    assert!(later.contains(done), "{later}");
}

#[test]
fn key_figures_of_rare_requests_and_of_idle_flash_are_left_out() {
    let mut run = sample::runs(1600).swap_remove(0);
    run.result.host.reads = 3;
    (run.result.flash.erases, run.result.wear.erases_max) = (0, 0);
    let html = render_html(&[run], &ReportContext::default());
    let figures = between(&html, "<dl class=\"figures\">", "</dl>");
    for (title, is_there) in
        [("write p99", true), ("read p99", false), ("write amplification", false), ("erases of", false)]
    {
        assert_eq!(figures.contains(title), is_there, "{title}: {figures}");
    }
}

#[test]
fn a_cliff_of_a_job_is_named_with_its_time_and_marked_in_the_charts() {
    let run = job_run();
    let text = render_detail(&run, None);
    let line = text.lines().find(|line| line.starts_with("phases")).expect("a line of phases");
    assert!(line.starts_with("phases   From 7 s the write rate is 11"), "{line}");
    let html = render_html(&[run], &ReportContext::default());
    let phases = between(&html, "<ul class=\"phases\"", "</ul>");
    assert!(phases.contains("<li>From 7 s the write rate is 11"), "{phases}");
    assert!(phases.contains("the p99 of writes 7.8") && phases.contains(", before 1.9"), "{phases}");
    assert_eq!(phases.matches("<li>").count(), 1, "{phases}");
    assert_eq!(data(&html)["runs"][0]["phases"][0]["ns"], json!(7_000_000_000u64));
}

#[test]
fn runs_that_change_alike_share_a_sentence_and_steady_ones_have_none() {
    let two = [job_run(), Run { label: "other".to_owned(), ..job_run() }];
    let html = render_html(&two, &ReportContext::default());
    let phases = between(&html, "<ul class=\"phases\"", "</ul>");
    assert_eq!(phases.matches("<li><strong>All runs</strong>: From 7 s").count(), 1, "{phases}");
    assert_eq!(phases.matches("<li>").count(), 1, "{phases}");
    let html = render_html(&sample::runs(1600)[..1], &ReportContext::default());
    assert!(!html.contains("class=\"phases\""), "{}", between(&html, "<ul class=\"phases\"", "</ul>"));
}

#[test]
fn charts_compare_at_least_two_bars_and_none_is_empty() {
    let mut idle = sample::runs(400).swap_remove(0);
    idle.result.flash.by_cause.values_mut().for_each(|counts| *counts = nandscape_core::OpCounts::default());
    idle.series.as_mut().unwrap().erase_counts.fill(0);
    idle.result.wear.per_block = Some(vec![0; 512]);
    let mut pages = pages();
    pages.push(("idle", render_html(&[idle], &ReportContext::default())));
    let stats = vec![("sample".to_owned(), sample::workload_stats())];
    pages.push((
        "stats",
        render_html(&[], &ReportContext { workload_stats: stats, ..ReportContext::default() }),
    ));
    for (kind, html) in &pages {
        for chart in html.split("<table class=\"bars\">").skip(1) {
            let chart = &chart[..chart.find("</table>").unwrap()];
            assert!(chart.matches("<tr>").count() > 1, "{kind}: one bar: {chart}");
            assert!(chart.contains("style=\"width:"), "{kind}: no bar: {chart}");
        }
    }
    let of = |wanted: &str| &pages.iter().find(|(kind, _)| *kind == wanted).unwrap().1;
    assert!(!of("idle").contains("data-heat=\"blocks\""), "a map of nothing");
    assert!(of("job").contains("garbage collection</th>"), "one run has a bar for each cause");
    assert!(of("compare").contains("<span class=\"title\">Write throughput</span>"));
    assert!(!of("job").contains("<span class=\"title\">Write throughput</span>"));
}

#[test]
fn legends_have_values_without_a_script() {
    for (kind, html) in pages() {
        for chart in html.split("<figure class=\"card chart\"").skip(1) {
            let chart = &chart[..chart.find("</figure>").unwrap()];
            let legend = between(chart, "<ul class=\"legend\">", "</ul>");
            for entry in legend.split("<li>").skip(1) {
                let value = between(entry, "<b>", "</b>");
                assert!(value.contains(|c: char| c.is_ascii_digit()), "{kind}: {entry}");
            }
            assert!(legend.contains("<li>"), "{kind}: {chart}");
        }
    }
}

#[test]
fn a_job_has_one_colour_in_all_charts() {
    let data = data(&render_html(&[job_run()], &ReportContext::default()));
    let jobs = &data["runs"][0]["jobs"];
    let ink = |part: &str, label: &str| {
        let lines = jobs[part].as_array().unwrap();
        lines.iter().find(|line| line["label"] == label).unwrap_or_else(|| panic!("no {label}"))["ink"]
            .clone()
    };
    assert_eq!((ink("rate", "reader read"), ink("read", "reader")), (json!("c0"), json!("c0")));
    assert_eq!((ink("rate", "writer write"), ink("write", "writer")), (json!("c1"), json!("c1")));
    // A line of an experiment too, even where another chart does not have the one before it.
    let mut rows = sample::rows_over_time();
    rows.remove(3);
    let context = ReportContext { reproduction: rows, ..ReportContext::default() };
    let data = self::data(&render_html(&[], &context));
    let ink = |chart: usize, line: usize| data["figures"][chart]["lines"][line]["ink"].clone();
    assert_eq!((ink(0, 1), ink(1, 0)), (json!("c1"), json!("c1")), "fast, in both charts");
}

#[test]
fn advice_shows_the_best_four_with_lru_and_belady() {
    let html = render_html(&[], &ReportContext { advice: vec![many_policies()], ..ReportContext::default() });
    let data = data(&html);
    let lines = data["caches"][0]["lines"].as_array().unwrap();
    let labels: Vec<&str> = lines.iter().map(|line| line["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["p8", "p7", "p6", "p5", "lru", "belady"]);
    assert_eq!(lines[5]["is_bound"], json!(true));
    let first = between(&html, "aria-label=\"Miss ratios\"", "</table>");
    assert!(first.contains(">p8<") && !first.contains(">p4<") && first.contains(">belady<"), "{first}");
    let all = between(&html, "<summary>All 10 policies</summary>", "</details>");
    assert!(all.contains(">p1<"));
}

#[test]
fn tables_of_the_answer_become_blocks_where_there_is_no_room() {
    for (kind, html) in pages() {
        for table in html.split("<table class=\"stacked\">").skip(1) {
            let body = between(table, "<tbody>", "</tbody>");
            let cells = body.matches("<td").count();
            assert_eq!(body.matches("<td data-head=\"").count(), cells, "{kind}: cells know their heads");
        }
    }
    let css = include_str!("../../assets/report.css");
    let narrow = between(css, "@media (max-width: 44rem) {", "\n}");
    assert!(
        narrow.contains(".stacked thead { display: none; }") && narrow.contains("content: attr(data-head)")
    );
}

#[test]
fn print_is_light_and_whole() {
    let css = include_str!("../../assets/report.css");
    // What is dark is for screens.
    assert_eq!(css.matches("prefers-color-scheme: dark").count(), 1);
    assert!(css.contains("@media screen and (prefers-color-scheme: dark)"));
    let print = between(css, "@media print {", "\n}");
    for rule in [
        "color-scheme: light",
        "nav.parts, .controls, .tabs, .skip, .zone-at output { display: none; }",
        ".scroll { overflow: visible;",
        ".scroll thead { display: table-header-group; }",
        ".u-wrap canvas { width: 100% !important;",
    ] {
        assert!(print.contains(rule), "{rule}");
    }
    let whole = print.lines().find(|line| line.contains("break-inside: avoid")).unwrap();
    assert!(whole.contains(".card") && whole.contains(".scroll tr"), "{whole}");
}
