//! What is printed for five made-up runs, byte for byte. `UPDATE_GOLDEN=1` rewrites the files; the difference
//! is to be reviewed.

use crate::sample;

use nandscape_report::{
    OUTPUTS, ReportContext, ReproductionRow, RowKind, render_csv, render_detail, render_json,
    render_json_document, render_reproduction_csv, render_reproduction_text, render_text,
};
use serde_json::{Value, json};
use std::path::Path;

fn golden(name: &str, got: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, got).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    for (number, (want, have)) in expected.lines().zip(got.lines()).enumerate() {
        assert_eq!(have, want, "{name}, line {}; UPDATE_GOLDEN=1 rewrites the file", number + 1);
    }
    assert_eq!(got.lines().count(), expected.lines().count(), "{name}: number of lines");
}

#[test]
fn text_of_a_comparison() {
    let text = render_text(&sample::runs(400), None);
    golden("compare.txt", &text);
    // The first lines are the table; messages may be longer.
    let table: Vec<&str> = text.lines().take_while(|line| !line.starts_with('!')).collect();
    let widest = table.iter().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 140, "{widest} columns");
}

#[test]
fn text_of_one_run() {
    let mut run = sample::runs(400).swap_remove(3);
    run.result.partial = true;
    run.result.workload.spec = "evil\u{1b}[2Jname.csv".into();
    let text = render_detail(&run, None);
    golden("replay.txt", &text);
    assert!(!text.contains('\u{1b}'), "a file name must not steer the terminal");
}

#[test]
fn csv_of_a_comparison() {
    let mut runs = sample::runs(400);
    runs[0].label = "a,\"b\"".into();
    let csv = render_csv(&runs);
    golden("compare.csv", &csv);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), runs.len() + 1);
    assert!(lines[1].starts_with("\"a,\"\"b\"\"\",1,"), "{}", lines[1]);
    assert!(
        lines[0].contains(",flash.by_cause.gc.programs,") && !lines[0].contains("config."),
        "{}",
        lines[0]
    );
}

#[test]
fn json_of_a_comparison_is_an_array_of_documents() {
    let runs = sample::runs(50);
    let list: Value = serde_json::from_str(&render_json(&runs)).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 5);
    let one: Value = serde_json::from_str(&render_json_document(&runs[2].result)).unwrap();
    assert_eq!(list[2], one);
    assert_eq!(
        one["flash"]["by_cause"]["merge"]["programs"],
        json!(runs[2].result.flash.by_cause["merge"].programs)
    );
}

#[test]
fn text_of_a_reproduction() {
    let row = |name: &str, published: Value, measured: Value, ratio, note: &str| ReproductionRow {
        id: "thesis-table-4.2".into(),
        source: "[thesis table 4.2]".into(),
        name: name.into(),
        unit: "MB/s".into(),
        published,
        measured,
        ratio,
        kind: RowKind::Measured,
        verdict: None,
        note: note.into(),
        series: None,
        seeds: None,
    };
    let far = row("lammps pm-gcc", json!(72.324), json!(93.5), Some(1.293), "the counts leave no other time");
    assert!(far.needs_note());
    let rows = [
        row("lammps pm-gcl", json!(261.487), json!(254.9), Some(0.975), ""),
        far,
        row("order of throughput", json!("pm-gcl > hsbm-gcl > sbm-gcl"), json!(true), None, ""),
        row("erases", json!([10, 20]), json!(false), None, "outside"),
    ];
    golden("reproduce.txt", &render_reproduction_text(&rows, None));
}

#[test]
fn figures_over_time_and_over_a_parameter_as_text_and_csv() {
    for (rows, name) in
        [(sample::rows_over_time(), "over-time"), (sample::rows_over_a_parameter(), "over-a-parameter")]
    {
        golden(&format!("{name}.txt"), &render_reproduction_text(&rows, None));
        golden(&format!("{name}.csv"), &render_reproduction_csv(&rows));
    }
}

#[test]
fn every_output_gives_something_for_runs_and_survives_none() {
    let runs = sample::runs(50);
    for output in OUTPUTS {
        let render = |runs: &[_]| (output.render)(runs, &ReportContext::default()).unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (some, none) = (text(render(&runs)), text(render(&[])));
        assert!(!none.contains("pm-gcl"), "{} of no run", output.info.name);
        for run in &runs {
            let erases = run.result.flash.erases.to_string();
            for wanted in [&run.label, &erases] {
                assert!(
                    some.contains(wanted.as_str()),
                    "{}: {wanted} of {} is missing",
                    output.info.name,
                    run.label
                );
            }
        }
        assert_eq!(some, text(render(&runs)), "{}", output.info.name);
    }
}

#[test]
fn memory_of_device_and_host_and_the_capacity_stand_beside_every_result() {
    let mut runs = sample::zoned_runs(12);
    runs[1].result.cost.host_dram_bytes = 3 << 20;
    assert!(render_text(&runs, None).contains("\nusable   400 MiB\n"), "the same for all");
    runs[1].result.cost.usable_bytes = 300 << 20;
    let table = render_text(&runs, None);
    let heads: Vec<&str> = table.lines().skip_while(|line| !line.contains("throughput")).take(3).collect();
    assert!(heads[0].contains("DRAM") && heads[1].contains("device") && heads[1].contains("host"), "{table}");
    assert!(heads[1].contains("usable"), "{table}");
    assert!(
        render_detail(&runs[1], None).contains("of the host 3 MiB; usable 300 MiB"),
        "{}",
        render_detail(&runs[1], None)
    );
    let html = nandscape_report::render_html(&runs, &ReportContext::default());
    assert!(html.contains("host DRAM") && html.contains("<td>3 MiB</td>"), "the table of costs");
    // Only where there is any.
    assert!(!render_text(&runs[..1], None).contains("host  "), "{}", render_text(&runs[..1], None));
}

/// The sentences of a comparison.
fn verdict(runs: &[nandscape_report::Run]) -> String {
    let text = render_text(runs, None);
    let lines = text.lines().skip_while(|line| !line.starts_with("verdict"));
    let lines = lines.take_while(|line| line.starts_with("verdict  ") || line.starts_with("         "));
    lines.map(|line| line[9..].trim()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_comparison_of_stacks_says_first_how_much_flash_each_programs() {
    let mut runs: Vec<_> = sample::runs(400).into_iter().take(3).collect();
    assert!(verdict(&runs).starts_with("pm-gcl programs the least flash, 1.00 bytes"), "{}", verdict(&runs));
    for ((run, stack), (bytes, waf)) in
        runs.iter_mut().zip(["block", "zone-map", "zone-files"]).zip([(1000, 2.0), (1000, 1.1), (500, 2.0)])
    {
        run.label = stack.to_owned();
        run.result.run.config = serde_json::json!({ "stack": { "kind": stack } });
        (run.result.host.write_bytes, run.result.waf.bytes) = (bytes << 20, Some(waf));
    }
    let said = verdict(&runs);
    let expected = "zone-files programs the least flash, 1000 MiB; zone-map 1.07 GiB (10.0 % more), block 1.95 GiB \
                    (2.0 times as much).";
    assert!(said.starts_with(expected), "{said}");
    runs[2].result.error = runs[0].result.error.clone().or_else(|| sample::runs(400)[3].result.error.clone());
    assert!(verdict(&runs).starts_with("zone-map programs"), "complete runs only");
    runs[0].result.waf.bytes = Some(1.101);
    assert!(
        verdict(&runs).starts_with("All program the same amount of flash, 1.07 GiB."),
        "{}",
        verdict(&runs)
    );
    for run in &mut runs {
        run.result.flash.erases = 0;
    }
    assert!(verdict(&runs).starts_with("Nothing was erased, so"), "{}", verdict(&runs));
    let html = nandscape_report::render_html(&runs, &ReportContext::default());
    assert!(html.contains("<p class=\"verdict\">Nothing was erased, so"), "the same in the page");
}

#[test]
fn flushes_have_a_sentence_where_they_take_longer_than_writes_and_a_row_where_there_are_any() {
    let mut runs: Vec<_> = sample::runs(400).into_iter().take(2).collect();
    let flushes = |mean: f64, count: u64| {
        Some(nandscape_sim::result::LatencySummary { count, mean, ..Default::default() })
    };
    for (run, mean) in runs.iter_mut().zip([1e6, 2e6]) {
        (run.result.latency_ns.write.count, run.result.latency_ns.write.mean) = (5000, mean);
    }
    let said = |runs: &[nandscape_report::Run]| verdict(runs).contains("Flushes");
    assert!(!said(&runs), "{}", verdict(&runs));
    runs[0].result.latency_ns.flush = flushes(1e6, 4999);
    assert!(!said(&runs), "one has none: {}", verdict(&runs));
    runs[1].result.latency_ns.flush = flushes(2e6, 5000);
    assert!(!said(&runs), "no run waits longer for flushes: {}", verdict(&runs));
    runs[1].result.latency_ns.flush = flushes(2.5e6, 5000);
    let expected = "Flushes take 1 ms in the mean on pm-gcl, 2.50 ms on pm-gcc.";
    assert!(verdict(&runs).contains(expected), "{}", verdict(&runs));
    assert!(verdict(&runs[1..]).contains("Flushes take 2.50 ms in the mean."), "{}", verdict(&runs[1..]));
    runs[0].result.latency_ns.flush = flushes(2.5e6, 99);
    assert!(!said(&runs), "too few for a mean");
    assert!(
        render_detail(&runs[1], None).lines().any(|line| line.starts_with("  flush ")),
        "a row of the run"
    );
    let html = nandscape_report::render_html(&runs, &ReportContext::default());
    assert!(html.contains("<td class=\"left\">flush</td>"), "a row of the page");
}
