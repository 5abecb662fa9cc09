//! Names in any case, shares as percentages, and what the shell completes.
#![expect(clippy::print_stderr, reason = "a skip that is seen")]

use serde_json::Value;
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nandscape")).args(args).output().unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn names_in_any_case_and_percentages_are_the_same_configuration() {
    let plain = stdout(&[
        "replay",
        "--print-config",
        "--device",
        "dc-tlc-28op",
        "--ftl",
        "page-map",
        "--set",
        "ftl.op=0.07",
        "--set",
        "ftl.victim=greedy",
        "--set",
        "scheduler=read-first",
    ]);
    let other = stdout(&[
        "replay",
        "--print-config",
        "--device",
        "DC-TLC-28OP",
        "--ftl",
        "Page-Map",
        "--set",
        "ftl.op=7%",
        "--set",
        "ftl.victim=Greedy",
        "--set",
        "scheduler=Read-First",
    ]);
    assert_eq!(plain, other);
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/thesis/lammps.csv");
    let fitted = |share: &str, layers: &str| {
        let device = ["--device", "thesis", "--fit", share, "--ftl", layers, "--json"];
        let output = stdout(&[&["compare", trace][..], &device].concat());
        let runs: Value = serde_json::from_str(&output).unwrap();
        runs.as_array().unwrap().iter().map(|run| run["run"]["config_hash"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(fitted("90%", "page-map"), fitted("0.9", "Page-Map"));
    let generated =
        |workload: &str| stdout(&["trace", "convert", workload, "-q", "--to", "csv", "--output", "-"]);
    assert_eq!(generated("uniform:count=10"), generated("Uniform:count=10"));
    let wrong = run(&["replay", trace, "--ftl", "Page-Mpa"]);
    let message = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(message.contains("did you mean 'page-map'?"), "{message}");
}

#[test]
fn sizes_of_simulated_caches_are_shares_of_the_blocks_of_the_workload() {
    // A thousand blocks, all of them asked for.
    let workload = "sequential:count=2000,bs=4k,span=4000KiB";
    let simulated = |size: &str| {
        let sizes = ["--eviction", "LRU,S3-FIFO", "--size", size, "--json"];
        let output = stdout(&[&["cache", "simulate", workload][..], &sizes].concat());
        let rows: Value = serde_json::from_str(&output).unwrap();
        rows.as_array().unwrap().iter().map(|row| row["size_blocks"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(simulated("10%,0.5"), [100, 500, 100, 500]);
    let advised = stdout(&["cache", "advise", workload, "--size", "10%,400b", "--eviction", "LRU", "--json"]);
    let advice: Value = serde_json::from_str(&advised).unwrap();
    let points = advice["curves"][0]["points"].as_array().unwrap();
    let sizes: Vec<u64> = points.iter().map(|point| point["size_blocks"].as_u64().unwrap()).collect();
    assert_eq!(sizes, [100, 400]);
    let piped = run(&["cache", "simulate", "-", "--size", "10%"]);
    let message = String::from_utf8_lossy(&piped.stderr).into_owned();
    assert!(piped.status.code() == Some(2) && message.contains("read only once"), "{message}");
}

#[test]
fn bash_completes_names_and_keys() {
    if !Command::new("bash").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIP: bash is absent");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("nandscape.bash");
    std::fs::write(&script, stdout(&["completions", "bash"])).unwrap();
    let completed = |words: &[&str]| -> Vec<String> {
        let (current, previous) = (words[words.len() - 1], words[words.len() - 2]);
        let line = format!(
            "source '{}'; COMP_WORDS=({}); COMP_CWORD={}; _nandscape_keys nandscape '{current}' '{previous}'; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display(),
            words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
            words.len() - 1
        );
        let output = Command::new("bash").args(["--norc", "-c", &line]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    };
    assert_eq!(completed(&["nandscape", "replay", "my.csv", "--ftl", "pm-"]), ["pm-gcl", "pm-gcc"]);
    assert_eq!(completed(&["nandscape", "compare", "my.csv", "--device", "dc-tlc-2"]), ["dc-tlc-28op"]);
    assert_eq!(completed(&["nandscape", "compare", "my.csv", "--cache", "bc"]), ["bcache"]);
    assert_eq!(completed(&["nandscape", "replay", "my.csv", "--set", "device.chan"]), ["device.channels="]);
    assert_eq!(completed(&["nandscape", "cache", "simulate", "my.csv", "--eviction", "siev"]), ["sieve"]);
    assert!(completed(&["nandscape", "replay", "--set", "ftl.op", "="]).is_empty(), "a value is free");
    let keys = completed(&["nandscape", "replay", "my.csv", "--set", ""]);
    for key in ["device.channels=", "cache.preset=", "host.policy=", "device.timing.scheduler="] {
        assert!(keys.iter().any(|known| known == key), "{key} is not completed");
    }
}
