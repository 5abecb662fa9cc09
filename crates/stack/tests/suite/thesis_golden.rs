//! The golden counters of the thesis strategies through everything: preset, trace reader, namespace, replay,
//! result document.

use nandscape_core::Cause;
use nandscape_sim::RunResult;
use nandscape_stack::{RunOptions, Typed, replay};
use serde_json::Value;
use std::path::PathBuf;

fn golden(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/thesis").join(file)
}

fn run(trace: &str, ftl: &str) -> RunResult {
    let mut typed = Typed::new();
    typed.merge_preset("thesis").expect("a preset");
    typed.set_ftl(ftl).expect("a kind");
    let config = typed.check().expect("valid");
    let path = golden(&format!("{trace}.csv"));
    let options = RunOptions { with_detail: true, ..RunOptions::default() };
    replay(&config, path.to_str().expect("UTF-8"), &options).expect("a result").result
}

/// Counters of the document under the names of the golden files.
fn counters(result: &RunResult) -> Vec<(&'static str, u64)> {
    let by = |cause| result.flash.cause(cause);
    vec![
        ("write_requests", result.host.writes),
        ("read_requests", result.host.reads),
        ("host_write_bytes", result.host.write_bytes),
        ("host_pages_written", result.host.write_pages),
        ("flash_pages_programmed", result.flash.programs),
        ("programs_host", by(Cause::Host).programs),
        ("programs_gc", by(Cause::Gc).programs + by(Cause::Merge).programs),
        ("reads_gc", by(Cause::Gc).reads + by(Cause::Merge).reads),
        ("blocks_erased", result.flash.erases),
        ("gc_runs", result.layer.gc.runs),
        ("map_entries", result.layer.map.updates),
        ("map_bytes", result.layer.map.update_bytes),
        ("map_table_bytes", result.layer.map.table_bytes),
        ("log_table_updates", result.layer.map.log_table_updates),
        ("merge_switch", result.layer.merges.switch),
        ("merge_full", result.layer.merges.full),
        ("merge_evictions", result.layer.merges.evicted),
        ("in_place_rewrites", result.layer.merges.in_place),
        ("erase_min", result.wear.erases_min),
        ("erase_max", result.wear.erases_max),
    ]
}

fn check(trace: &str) {
    let text = std::fs::read_to_string(golden(&format!("{trace}.json"))).expect("a golden file");
    let json: Value = serde_json::from_str(&text).expect("JSON");
    for ftl in ["pm-gcl", "pm-gcc", "sbm-gcl", "hsbm-gcl"] {
        let want = &json[ftl.to_uppercase().replace('-', "_")];
        let value = |key: &str| want[key].as_u64().unwrap_or_else(|| panic!("{trace}/{ftl}: no {key}"));
        let result = run(trace, ftl);
        for (key, got) in counters(&result) {
            assert_eq!(got, value(key), "{trace}/{ftl}: {key}");
        }
        let reads = value("reads_rmw") + value("reads_host");
        assert_eq!(result.flash.cause(Cause::Host).reads, reads, "{trace}/{ftl}: host reads");
        let simulated_us = value("time_serial_us");
        assert_eq!(result.speed.time.simulated_ns, simulated_us * 1000, "{trace}/{ftl}: simulated time");
        let waf = want["waf_pages"].as_f64().expect("a number");
        assert!(
            (result.waf.pages.expect("writes") - waf).abs() < 1e-8,
            "{trace}/{ftl}: {:?} against {waf}",
            result.waf.pages
        );
        assert_eq!(result.error.is_some(), !want["error"].is_null(), "{trace}/{ftl}: {:?}", result.error);
        if let Some(list) = want["erase_counts_unit_major"].as_array() {
            let got: Vec<u64> = result.wear.per_block.expect("detail").into_iter().map(u64::from).collect();
            let want: Vec<u64> = list.iter().filter_map(Value::as_u64).collect();
            assert_eq!(got, want, "{trace}/{ftl}: erases of every block");
        }
    }
}

#[test]
fn lammps() {
    check("lammps");
}

#[test]
fn macdrp() {
    check("macdrp");
}

#[test]
fn small() {
    check("small");
}

#[test]
fn full() {
    check("full");
}
