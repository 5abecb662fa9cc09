//! The page as text: well formed, self-contained, and nothing from outside gets through unescaped.

use crate::sample;

use nandscape_report::{ReportContext, ReproductionRow, RowKind, RowSeries, Run, render_html};
use nandscape_sim::result::RunError;
use serde_json::{Value, json};

const EVIL: &str =
    "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"&\u{202e}\u{1b}[31m<!--";

fn evil_runs() -> Vec<Run> {
    let mut runs = sample::runs(200);
    for run in &mut runs {
        run.label = format!("{}{EVIL}", run.label);
        run.result.workload.spec = EVIL.into();
        run.result.workload.format = EVIL.into();
        run.result.run.version = EVIL.into();
        run.result.run.config_hash = EVIL.into();
        run.result.run.workload_hash = EVIL.into();
        run.result.notes = vec![EVIL.into()];
        run.result.run.config["ftl"]["kind"] = EVIL.into();
        run.result.run.config["device"]["name"] = EVIL.into();
        run.result.run.config[EVIL] = json!({EVIL: [EVIL]});
        run.result.error = Some(RunError { request: 3, message: EVIL.into() });
        let counts = run.result.flash.by_cause["gc"];
        run.result.flash.by_cause.insert(EVIL.into(), counts);
    }
    runs
}

fn evil_context() -> ReportContext {
    let row = ReproductionRow {
        id: EVIL.into(),
        source: EVIL.into(),
        name: EVIL.into(),
        unit: EVIL.into(),
        published: EVIL.into(),
        measured: json!({EVIL: EVIL}),
        ratio: Some(2.0),
        kind: RowKind::Measured,
        verdict: None,
        note: EVIL.into(),
        seeds: None,
        series: Some(RowSeries {
            part: EVIL.into(),
            chart: EVIL.into(),
            line: EVIL.into(),
            is_bound: false,
            axis: EVIL.into(),
            at: vec![1.0, 2.0],
            values: vec![Some(3.0), None],
        }),
    };
    ReportContext {
        title: EVIL.into(),
        command: EVIL.into(),
        reproduction: vec![row],
        workload_stats: vec![(EVIL.into(), sample::workload_stats())],
        advice: vec![sample::advice(EVIL)],
        sweep: Some(sample::sweep(EVIL)),
    }
}

/// The elements of a page: names with `/` where they end, and their attributes as text. Script contents are
/// skipped as a browser does: to the next `</script`.
fn tags(html: &str) -> Vec<(String, String)> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let inside = &rest[at + 1..];
        let end = inside.find('>').unwrap_or_else(|| panic!("a tag without an end: {inside:.80}"));
        let tag = &inside[..end];
        rest = &inside[end + 1..];
        let (name, attributes) = tag.split_once([' ', '\n']).unwrap_or((tag, ""));
        tags.push((name.to_owned(), attributes.to_owned()));
        if name == "script" || name == "style" {
            let close = format!("</{name}");
            rest = &rest[rest.find(&close).unwrap_or_else(|| panic!("no {close}"))..];
        }
    }
    tags
}

#[test]
fn every_element_is_closed_in_order() {
    for html in [
        render_html(&sample::runs(200), &ReportContext::default()),
        render_html(&evil_runs(), &evil_context()),
        render_html(&sample::zoned_runs(300), &ReportContext::default()),
        render_html(&[], &ReportContext::default()),
    ] {
        let mut open: Vec<String> = Vec::new();
        for (name, _) in tags(&html) {
            if ["!DOCTYPE", "meta", "link", "br", "img"].contains(&name.as_str()) {
                continue;
            }
            match name.strip_prefix('/') {
                Some(closed) => assert_eq!(open.pop().as_deref(), Some(closed), "closed in {open:?}"),
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
}

#[test]
fn text_from_outside_adds_no_element_and_no_attribute() {
    let html = render_html(&evil_runs(), &evil_context());
    let tags = tags(&html);
    let count = |name: &str| tags.iter().filter(|(tag, _)| tag == name).count();
    assert_eq!(count("img"), 0);
    // The guard, the data, uPlot, and the report's own.
    assert_eq!(count("script"), 4);
    for (name, attributes) in &tags {
        assert!(!attributes.contains("onerror"), "<{name} {attributes}>");
    }
    let scripts = html.find("<script type=\"application/json\"").unwrap();
    assert!(!html[..scripts].contains('\u{1b}') && !html[..scripts].contains('\u{202e}'));
    assert!(html.contains("&lt;img src=x onerror=&#39;alert(2)&#39;&gt;&quot;&amp;\\u{202e}\\u{1b}[31m"));
}

#[test]
fn a_layer_has_one_name_and_one_colour_under_every_workload() {
    let mut runs = Vec::new();
    for (spec, mut more) in ["a.csv", "b.csv"].map(|spec| (spec, sample::runs(100))) {
        for run in &mut more {
            run.result.workload.spec = spec.into();
            run.label = format!("{} | {spec}", run.label);
        }
        runs.extend(more);
    }
    let html = render_html(&runs, &ReportContext::default());
    assert!(!html.contains("pm-gcl | "));
    let names = html.matches("<span class=\"key c0\" aria-hidden=\"true\"></span>pm-gcl").count();
    // The charts of single requests have the colour of their run.
    let requests = html.matches("<span class=\"key c0\" aria-hidden=\"true\"></span>write, median").count();
    assert_eq!(html.matches("<span class=\"key c0\"").count(), names + requests);
}

#[test]
fn the_data_reads_back_with_its_labels() {
    let runs = evil_runs();
    let html = render_html(&runs, &ReportContext::default());
    let start = html.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + html[start..].find("</script").unwrap();
    let data: Value = serde_json::from_str(&html[start..end]).unwrap();
    assert_eq!(data["groups"][0]["name"], EVIL);
    assert_eq!(data["runs"].as_array().unwrap().len(), runs.len());
    let samples = runs[0].series.as_ref().unwrap().samples.len();
    for column in ["x", "rate", "rate_i", "waf", "waf_i", "map", "erases", "w99", "r99"] {
        assert_eq!(data["runs"][0]["series"][column].as_array().unwrap().len(), samples, "{column}");
    }
}

#[test]
fn nothing_is_fetched_and_the_policy_forbids_it() {
    let html = render_html(&sample::runs(200), &ReportContext::default());
    assert!(html.contains("Content-Security-Policy\" content=\"default-src 'none'"));
    for (name, attributes) in tags(&html) {
        for attribute in ["src=", "href="] {
            if let Some(at) = attributes.find(attribute) {
                let target = attributes[at + attribute.len()..].trim_start_matches('"');
                let is_local = target.starts_with('#') || target.starts_with("data:");
                assert!(is_local, "<{name} {attributes}>");
            }
        }
    }
}

#[test]
fn the_page_can_be_used_without_seeing_it() {
    let html = render_html(&sample::runs(200), &ReportContext::default());
    let tags = tags(&html);
    let all = |name: &str| tags.iter().filter(|(tag, _)| tag == name).collect::<Vec<_>>();
    assert_eq!((all("main").len(), all("h1").len()), (1, 1));
    assert_eq!(all("table").len(), all("caption").len(), "every table has a caption");
    for (_, attributes) in all("canvas") {
        assert!(attributes.contains("aria-label=\""), "{attributes}");
    }
    for (_, attributes) in all("figure") {
        assert!(
            attributes.contains("aria-labelledby") || attributes.contains("class=\"heat\""),
            "{attributes}"
        );
    }
    for (_, attributes) in all("th") {
        assert!(attributes.contains("scope="), "{attributes}");
    }
    let ids: Vec<&str> = tags
        .iter()
        .filter_map(|(_, a)| Some(a.split_once(" id=\"").or(a.strip_prefix("id=\"").map(|r| ("", r)))?.1))
        .collect();
    let mut names: Vec<&str> = ids.iter().map(|rest| rest.split('"').next().unwrap()).collect();
    names.sort_unstable();
    let total = names.len();
    names.dedup();
    assert_eq!(names.len(), total, "ids are unique");
}

#[test]
fn failed_runs_say_so_and_are_not_marked_best() {
    let html = render_html(&sample::runs(400), &ReportContext::default());
    assert!(html.contains("<span class=\"badge\">failed</span>"));
    assert!(html.contains("failed at request 240: device full"));
    let row = html.lines().find(|line| line.contains("class=\"incomplete\"")).unwrap();
    assert!(row.contains("hsbm-gcl") && !row.contains("<b>"), "{row}");
}

#[test]
fn five_runs_stay_below_three_megabytes() {
    let html = render_html(&sample::runs(20_000), &ReportContext::default());
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
}

#[test]
fn vendored_files_are_those_of_the_readme() {
    // SHA-256 is not worth a dependency; the length and the version line tell an edit or an update from the
    // original.
    let js = include_str!("../../assets/vendor/uplot-1.6.32.iife.min.js");
    let css = include_str!("../../assets/vendor/uplot-1.6.32.min.css");
    assert_eq!((js.len(), css.len()), (51_081, 1857));
    assert!(js.starts_with("/*! https://github.com/leeoniya/uPlot (v1.6.32) */"));
    assert!(!js.contains("</script") && !css.contains("</style"));
}

#[test]
fn zones_over_the_run_are_a_table_too_and_the_page_says_how_fine_they_are() {
    let html = render_html(&sample::zoned_runs(300), &ReportContext::default());
    let about = &html[html.find("300 zones, a row for 3 neighbours: ").expect("the resolution")..];
    let about = &about[..about.find("</p>").unwrap()];
    assert!(about.ends_with("; 40 moments, at least 1.00 ms apart"), "{about}");
    let table = &html[html.find("aria-label=\"Zones over the run\"").unwrap()..];
    let table = &table[..table.find("</table>").unwrap()];
    assert_eq!(table.matches("<th scope=\"row\"").count(), 100, "a row for each row of the chart");
    assert!(table.contains("<th scope=\"row\" class=\"left\">297 to 299</th>"));
    // The first moment, the last, and those between them; the last zones are open at the end.
    assert_eq!(table.matches("<th scope=\"col\">").count(), 12);
    assert!(table.contains("<th scope=\"col\">50.70 ms</th>"), "{table:.900}");
    assert!(
        table.contains(">e 0</td>")
            && table.contains(">f 100</td>")
            && table.contains("e empty, i implicitly-open")
    );
    let canvas = &html[html.find("<canvas tabindex=\"0\"").unwrap()..];
    assert!(
        canvas.contains("aria-describedby=\"at-zones-0\"") && canvas.contains("id=\"at-zones-0\" aria-live")
    );
    // What nobody knows has no view, no column and no words.
    for view in ["valid", "owner", "lifetime"] {
        assert_eq!(html.matches(&format!("data-zone-view=\"{view}\"")).count(), 1, "{view}");
    }
    assert!(html.contains("Behind it whose data it is, and its lifetime: m metadata, o one file"));
    assert!(html.contains("zone 12: full, 100 % written, 71 % valid"), "the strip at the end");
    let start = html.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let data: Value =
        serde_json::from_str(&html[start..start + html[start..].find("</script").unwrap()]).unwrap();
    let zones = &data["runs"][0]["zones"];
    assert_eq!((zones["states"].as_array().unwrap().len(), &zones["valid"]), (40, &Value::Null));
    assert_eq!(zones["kinds"], serde_json::json!({ "owner": null, "lifetime": null }));
    let kinds = &data["runs"][1]["zones"]["kinds"];
    assert_eq!(
        (&kinds["owner"]["names"][1][1], kinds["lifetime"]["columns"].as_array().unwrap().len()),
        (&"one file".into(), 40)
    );
    assert!(data["runs"][1]["zones"]["valid"].is_string() && html.len() < 1_000_000);

    let mut runs = sample::zoned_runs(300);
    for run in &mut runs {
        run.result.between.zones.as_mut().unwrap().history = None;
    }
    let html = render_html(&runs, &ReportContext::default());
    assert!(!html.contains("data-zones=") && html.contains("zones at the end of the run"));
}
