//! The report in headless Chromium, opened from disk: no script error, nothing requested, and every chart has
//! drawn something. Skipped, visibly, where there is no Chromium, unless `NANDSCAPE_REQUIRE=1`.

use crate::{answer, sample};

use nandscape_report::{ReportContext, render_html};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);

fn chromium() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .flat_map(|dir| ["chromium", "chromium-browser", "google-chrome"].map(|name| dir.join(name)))
        .find(|file| file.is_file());
    if found.is_none() {
        let is_required = std::env::var("NANDSCAPE_REQUIRE").is_ok_and(|v| v == "1");
        assert!(!is_required, "chromium is required (NANDSCAPE_REQUIRE=1) and not in PATH");
        #[expect(clippy::print_stderr, reason = "a skip must be seen")]
        {
            eprintln!("SKIP: no chromium in PATH: the HTML report was not opened in a browser");
        }
    }
    found
}

/// Opens a page and gives its document after the scripts ran, and what the browser logged.
fn open(browser: &Path, dir: &Path, html: &str, width: u32) -> (String, String) {
    let page = dir.join("report.html");
    std::fs::write(&page, html).unwrap();
    let (document, log) = (dir.join("document.html"), dir.join("log.txt"));
    let net = dir.join("net.json");
    let mut child = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-sync",
        ])
        .args(["--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"])
        // The browser asks for updates on its own account; nothing leaves the machine.
        .arg("--host-resolver-rules=MAP * ~NOTFOUND")
        .args(["--virtual-time-budget=15000", "--dump-dom"])
        .arg(format!("--window-size={width},1200"))
        .arg(format!("--log-net-log={}", net.display()))
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .arg(format!("file://{}#selfcheck", page.display()))
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&document).unwrap())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the browser did not finish in {LIMIT:?}: {}", std::fs::read_to_string(&log).unwrap());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let log = std::fs::read_to_string(&log).unwrap_or_default();
    // The network log names every URL that was asked for. Those the browser wants for itself have "not an
    // origin" as their initiator, those of a page from disk "null".
    let net = std::fs::read_to_string(&net).unwrap_or_default();
    assert!(net.contains("report.html"), "the network log is empty: {log}");
    for line in net
        .lines()
        .filter(|line| line.contains("\"initiator\":\"file://") || line.contains("\"initiator\":\"null\""))
    {
        assert!(!line.contains("\"url\":\"http"), "the page asked for {line}");
    }
    (std::fs::read_to_string(&document).unwrap(), log)
}

/// What the page's own check stands behind.
const MARK: &str = "id=\"selfcheck\">";

/// What the page says about itself.
fn self_check(document: &str, log: &str) -> Value {
    let start =
        document.find(MARK).unwrap_or_else(|| panic!("no self-check in the page; the browser said: {log}"));
    let rest = &document[start + MARK.len()..];
    serde_json::from_str(&rest[..rest.find("</script").unwrap()]).unwrap()
}

/// What a page says about itself; `None` without a browser.
fn report(html: &str, width: u32) -> Option<Value> {
    let browser = chromium()?;
    let dir = tempfile::tempdir().unwrap();
    // On a busy machine the browser may give up its virtual time before the page has drawn; then it looks
    // again.
    let mut looked = open(&browser, dir.path(), html, width);
    for _ in 0..2 {
        if !looked.0.contains(MARK) {
            looked = open(&browser, dir.path(), html, width);
        }
    }
    let (document, log) = looked;
    assert!(!log.contains("Uncaught"), "{log}");
    Some(self_check(&document, &log))
}

/// Checks a page in the browser and gives what its charts of zones say.
fn check(html: &str, width: u32, wanted_charts: &[&str]) -> Vec<Value> {
    let Some(report) = report(html, width) else { return Vec::new() };
    assert_eq!(report["errors"], serde_json::json!([]), "script errors");
    assert_eq!(report["requested"], serde_json::json!([]), "requests");
    // The page never scrolls sideways, wide tables do so by themselves; on a telephone no part of the answer
    // does.
    let wide = report["wide"].as_array().unwrap();
    assert!(!wide.iter().any(|part| part == "HTML" || width <= 400), "wider than {width}: {wide:?}");
    let charts = report["charts"].as_array().unwrap();
    let ids: Vec<&str> = charts.iter().map(|chart| chart["id"].as_str().unwrap()).collect();
    for wanted in wanted_charts {
        assert!(ids.contains(wanted), "no chart {wanted} among {ids:?}");
    }
    for chart in charts.iter().filter(|chart| chart["said"].is_null()) {
        match chart["series"].as_array() {
            Some(series) => {
                assert!(!series.is_empty(), "{chart}");
                for curve in series {
                    assert!(curve["points"].as_u64().unwrap() > 0, "{chart}");
                    let shown = curve["shown"].as_str().unwrap();
                    assert!(shown.contains(|c: char| c.is_ascii_digit()), "no value in the legend: {chart}");
                }
                // A curve may lie wholly below another, so not every one has pixels of its own colour; most
                // do.
                let seen = series.iter().filter(|curve| curve["pixels"].as_u64().unwrap() > 4).count();
                assert!(seen * 2 > series.len(), "{chart}");
            }
            None => assert_eq!(chart["pixels"], chart["cells"], "every cell of a map is painted: {chart}"),
        }
    }
    charts.iter().filter(|chart| chart["said"].is_string()).cloned().collect()
}

#[test]
fn a_comparison_draws_every_chart_and_asks_for_nothing() {
    let runs = sample::runs(2200);
    let mut wanted: Vec<String> = Vec::new();
    for kind in ["throughput", "waf", "map", "erases", "lat-write", "lat-read", "nines-write", "nines-read"] {
        wanted.push(format!("{kind}-0"));
    }
    for run in 0..runs.len() {
        wanted.extend(["request", "blocks", "pages"].map(|kind| format!("{kind}-{run}")));
    }
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    check(&render_html(&runs, &ReportContext::default()), 1400, &wanted);
}

#[test]
fn no_report_scrolls_sideways_on_a_telephone() {
    for (_, html) in answer::pages() {
        check(&html, 390, &[]);
    }
}

#[test]
fn phases_are_marked_in_the_charts_over_time() {
    let html = render_html(&[answer::job_run()], &ReportContext::default());
    let Some(report) = report(&html, 1000) else { return };
    for chart in report["charts"].as_array().unwrap().iter().filter(|chart| chart["marks"].is_u64()) {
        let is_over_time = chart["id"].as_str().unwrap().starts_with("job-");
        assert_eq!(chart["marks"] == 1, is_over_time, "{chart}");
    }
}

#[test]
fn two_workloads_and_hostile_names_draw_on_a_narrow_screen() {
    let mut runs = sample::runs(300);
    let mut others = sample::runs(300);
    for run in &mut others {
        run.result.workload.spec = "</script><script>throw 1</script>".into();
        run.label.push_str("<img src=x onerror=alert(1)>");
    }
    runs.extend(others);
    check(
        &render_html(&runs, &ReportContext::default()),
        360,
        &["throughput-0", "throughput-1", "request-9"],
    );
}

#[test]
fn statistics_of_a_workload_draw() {
    let context = ReportContext {
        workload_stats: vec![("sample".into(), sample::workload_stats())],
        ..ReportContext::default()
    };
    check(&render_html(&[], &context), 1000, &["addresses-0", "workingset-0"]);
}

#[test]
fn curves_of_caches_draw() {
    let context = ReportContext { advice: vec![sample::advice("mine")], ..ReportContext::default() };
    check(&render_html(&[], &context), 1000, &["misses-0"]);
}

#[test]
fn a_sweep_draws_its_front_and_its_lines() {
    let context = ReportContext { sweep: Some(sample::sweep("zipf")), ..ReportContext::default() };
    check(&render_html(&[], &context), 1000, &["sweep-front-0", "sweep-line-0", "sweep-line-1"]);
}

#[test]
fn figures_of_an_experiment_over_time_and_over_a_parameter_draw() {
    let reproduction = [sample::rows_over_time(), sample::rows_over_a_parameter()].concat();
    let context = ReportContext { reproduction, ..ReportContext::default() };
    check(&render_html(&[], &context), 1000, &["figure-0", "figure-1", "figure-2"]);
}

#[test]
fn caches_draw_over_the_data_and_what_is_not_there_has_no_chart() {
    let html = render_html(&sample::cached_runs(800), &ReportContext::default());
    check(&html, 1200, &["hits-0", "dirty-0", "waf-0", "blocks-0"]);
    for absent in ["data-heat=\"blocks\" data-group=\"0\" data-run=\"1\"", ">FTL<"] {
        assert!(!html.contains(absent), "{absent}");
    }
    let alone: Vec<_> = sample::cached_runs(800).split_off(1);
    let html = render_html(&alone, &ReportContext::default());
    for absent in
        ["data-chart=\"waf\"", "data-chart=\"erases\"", "Flash operations by cause", "h-wear", "h-cost"]
    {
        assert!(!html.contains(absent), "{absent}");
    }
}

#[test]
fn a_run_without_a_series_has_no_empty_charts() {
    let mut runs = sample::runs(100);
    for run in &mut runs {
        run.series = None;
    }
    check(&render_html(&runs, &ReportContext::default()), 1000, &["nines-write-0"]);
}

#[test]
fn zones_draw_in_every_view_and_say_what_is_under_the_keyboard() {
    // A row each with letters; rows of several zones, on a narrow screen.
    for (zones, width, rows) in [(12, 1300, 12), (1000, 360, 125)] {
        let html = render_html(&sample::zoned_runs(zones), &ReportContext::default());
        for (run, chart) in check(&html, width, &["zones-0", "zones-1"]).iter().enumerate() {
            assert_eq!(chart["zone_cells"], rows * 40, "{chart}");
            let views: Vec<&String> = chart["views"].as_object().unwrap().keys().collect();
            let known: &[&str] = if run == 1 { &["valid", "owner", "lifetime"] } else { &[] };
            assert_eq!(views, [&["state", "written"], known].concat(), "{chart}");
            // Axes have pixels too, but cells most of them.
            for (view, pixels) in chart["views"].as_object().unwrap() {
                assert!(pixels.as_u64().unwrap() > 15_000, "{view}: {chart}");
            }
            let said = chart["said"].as_str().unwrap();
            let zone = if zones == 12 { "zone 1 at 0: empty, 0 % written" } else { "zones 8 to 15 at 0: " };
            assert!(said.starts_with(zone), "{said}");
        }
    }
}
