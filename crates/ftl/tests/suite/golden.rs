//! The four thesis strategies against the golden counters of an independent implementation: every counter,
//! and the erase count of every block where the file has them.

use crate::support;

use nandscape_core::{BlockId, Cause, Ftl};
use nandscape_media::BadBlocks;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use support::{Host, THESIS_GEOMETRY, build, device, replay};

fn golden(file: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/thesis").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn measured(ftl: &dyn Ftl, host: &Host) -> BTreeMap<&'static str, u64> {
    let stats = ftl.stats();
    let device = ftl.device();
    let by = |cause| device.counters().get(cause);
    let total = device.tally().totals;
    assert_eq!(total, device.counters().total(), "the causes sum to the medium's own counts");
    let moved = |f: fn(nandscape_core::OpCounts) -> u64| f(by(Cause::Gc)) + f(by(Cause::Merge));
    BTreeMap::from([
        ("write_requests", host.writes),
        ("read_requests", host.reads),
        ("host_write_bytes", host.write_bytes),
        ("host_pages_written", host.write_pages),
        ("live_pages", stats.live_pages),
        ("flash_pages_programmed", total.programs),
        ("programs_host", by(Cause::Host).programs),
        ("programs_gc", moved(|counts| counts.programs)),
        ("reads_gc", moved(|counts| counts.reads)),
        ("reads_rmw+host", by(Cause::Host).reads),
        ("blocks_erased", total.erases),
        ("gc_runs", stats.gc_runs),
        ("map_entries", stats.map_updates),
        ("map_bytes", stats.map_update_bytes),
        ("log_table_updates", stats.log_table_updates),
        ("merge_switch", stats.merges_switch),
        ("merge_full", stats.merges_full),
        ("merge_evictions", stats.merges_evicted),
        ("in_place_rewrites", stats.in_place_rewrites),
        ("map_table_bytes", ftl.cost().map_table_bytes),
        ("time_serial_us", host.end.0 / 1000),
    ])
}

fn check(trace: &str, name: &str) {
    let csv = golden(&format!("{trace}.csv"));
    let json: Value = serde_json::from_str(&golden(&format!("{trace}.json"))).expect("JSON");
    let expected = &json[name.to_uppercase().replace('-', "_")];
    let mut ftl = build(name, &BTreeMap::new(), device(THESIS_GEOMETRY, BadBlocks::None)).expect("a layer");
    let host = replay(&mut *ftl, &csv);
    ftl.check_invariants();

    let value = |key: &str| expected[key].as_u64().unwrap_or_else(|| panic!("{trace}/{name}: no {key}"));
    for (key, got) in measured(&*ftl, &host) {
        let want: u64 =
            key.split('+').map(|part| value(if part == "host" { "reads_host" } else { part })).sum();
        assert_eq!(got, want, "{trace}/{name}: {key}");
    }
    assert_eq!(host.end.0 % 1000, 0, "latencies are whole microseconds");

    let erases: Vec<u64> = (0..THESIS_GEOMETRY.blocks())
        .map(|block| u64::from(ftl.device().erase_count(BlockId(block))))
        .collect();
    if let Some(list) = expected["erase_counts_unit_major"].as_array() {
        let want: Vec<u64> = list.iter().map(|count| count.as_u64().expect("a count")).collect();
        assert_eq!(erases, want, "{trace}/{name}: erases of every block");
    }
    assert_eq!(erases.iter().min(), Some(&value("erase_min")), "{trace}/{name}");
    assert_eq!(erases.iter().max(), Some(&value("erase_max")), "{trace}/{name}");
    let mean = erases.iter().sum::<u64>() as f64 / erases.len() as f64;
    let variance =
        erases.iter().map(|&count| (count as f64 - mean).powi(2)).sum::<f64>() / erases.len() as f64;
    let stddev = expected["erase_stddev"].as_f64().expect("a number");
    assert!((variance.sqrt() - stddev).abs() < 1e-8, "{trace}/{name}: {} against {stddev}", variance.sqrt());

    match (expected["error"].as_str(), &host.error) {
        (None, None) => {}
        (Some(want), Some(got)) => {
            let got = got.to_string();
            assert!(got.starts_with(want), "{trace}/{name}: '{got}' should begin with '{want}'");
        }
        (want, got) => panic!("{trace}/{name}: expected {want:?}, got {got:?}"),
    }
}

macro_rules! goldens {
    ($($test:ident: $trace:literal, $name:literal;)*) => {
        $(#[test]
        fn $test() {
            check($trace, $name);
        })*
    };
}

goldens! {
    lammps_pm_gcl: "lammps", "pm-gcl";
    macdrp_pm_gcl: "macdrp", "pm-gcl";
    small_pm_gcl: "small", "pm-gcl";
    full_pm_gcl: "full", "pm-gcl";
    lammps_pm_gcc: "lammps", "pm-gcc";
    macdrp_pm_gcc: "macdrp", "pm-gcc";
    small_pm_gcc: "small", "pm-gcc";
    full_pm_gcc: "full", "pm-gcc";
    lammps_sbm_gcl: "lammps", "sbm-gcl";
    macdrp_sbm_gcl: "macdrp", "sbm-gcl";
    small_sbm_gcl: "small", "sbm-gcl";
    full_sbm_gcl: "full", "sbm-gcl";
    lammps_hsbm_gcl: "lammps", "hsbm-gcl";
    macdrp_hsbm_gcl: "macdrp", "hsbm-gcl";
    small_hsbm_gcl: "small", "hsbm-gcl";
    full_hsbm_gcl: "full", "hsbm-gcl";
}
