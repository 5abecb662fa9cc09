//! Ctrl-C: exit status 130, a marked partial result where there is one, and no half-written file.
//!
//! The workloads are far longer than any wait here, and the interrupt is sent only after the handler is
//! installed, so no test depends on the speed of the machine.
#![cfg(unix)]

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ENDLESS: &str = "uniform:count=100G,span=50%";

/// What a command leaves behind that is interrupted as soon as it handles that.
fn interrupted(args: &[&str]) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_nandscape"))
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let handles_interrupts = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).unwrap_or("0").trim().to_owned();
        u64::from_str_radix(&caught, 16).is_ok_and(|mask| mask & 0b10 != 0)
    };
    while !handles_interrupts() {
        std::thread::yield_now();
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{args:?}: {stderr}");
    assert!(stderr.contains("error: interrupted"), "{args:?}: {stderr}");
    output
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn runs_keep_a_marked_partial_result() {
    let device = ["--device", "thesis", "--ftl", "pm-gcl", "--json"];
    let replay = interrupted(&[&["replay", ENDLESS][..], &device].concat());
    assert_eq!(json(&replay)["partial"], true);
    let dir = tempfile::tempdir().unwrap();
    let csv = dir.path().join("runs.csv");
    let written = ["--csv", csv.to_str().unwrap()];
    let compare = interrupted(&[&["compare", "zipf:count=10M,span=50%"][..], &device, &written].concat());
    assert_eq!(json(&compare)[0]["partial"], true);
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 2, "it is whole");
    let simulate = ["cache", "simulate", ENDLESS, "--eviction", "lru", "--size", "64MiB", "--json"];
    assert_eq!(json(&interrupted(&simulate))[0]["partial"], true);
}

#[test]
fn what_has_no_partial_result_prints_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| Path::new(dir.path()).join(name).to_str().unwrap().to_owned();
    let (csv, html, trace) = (file("a.csv"), file("a.html"), file("a.csv.zst"));
    for args in [
        &["cache", "advise", ENDLESS, "--csv", &csv, "--report", &html][..],
        &["cache", "simulate", ENDLESS, "--size", "10%"],
        &["reproduce", "thesis-table-4.2", "--csv", &csv],
        &["trace", "convert", ENDLESS, "--output", &trace],
    ] {
        let output = interrupted(args);
        assert!(output.stdout.is_empty(), "{args:?}");
        let left: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{args:?}: {left:?}");
    }
}

#[test]
fn a_sweep_leaves_nothing_of_the_run_under_way_and_can_be_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| Path::new(dir.path()).join(name).to_str().unwrap().to_owned();
    let (plan, out) = (file("plan.toml"), file("out"));
    let text = format!("workload = \"{ENDLESS}\"\ndevice = \"thesis\"\n[grid]\nftl.op = [0.2, 0.3]\n");
    std::fs::write(&plan, text).unwrap();
    let output = interrupted(&["sweep", &plan, "--out", &out, "--jobs", "1"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("2 runs have no result yet; --resume runs them"), "{stderr}");
    let points = Path::new(&out).join("points");
    assert_eq!(std::fs::read_dir(points).unwrap().count(), 0, "a run that was stopped has no document");
}
