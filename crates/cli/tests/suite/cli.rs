//! The command as a user runs it: exact counters on the golden traces, exit status, messages, files,
//! repeatability.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/thesis").join(name)
}

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nandscape")).args(args).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
        panic!("{e}: {} {}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    })
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn fails(args: &[&str], code: i32, wanted: &[&str]) {
    let output = run(args);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    for part in wanted {
        assert!(message.contains(part), "{args:?}: '{message}' lacks '{part}'");
    }
    assert!(!message.contains("panicked"), "{args:?}: {message}");
}

/// One counter of the golden file beside ours.
fn same(context: &str, golden: &Value, key: &str, ours: &Value) {
    assert_eq!(golden[key].as_u64(), ours.as_u64(), "{context}: {key}");
}

#[test]
fn the_thesis_strategies_give_the_golden_counters() {
    for trace in ["small", "full", "lammps", "macdrp"] {
        let text = std::fs::read_to_string(golden(&format!("{trace}.json"))).unwrap();
        let expected: Value = serde_json::from_str(&text).unwrap();
        for (name, ftl) in
            [("PM_GCL", "pm-gcl"), ("PM_GCC", "pm-gcc"), ("SBM_GCL", "sbm-gcl"), ("HSBM_GCL", "hsbm-gcl")]
        {
            let path = golden(&format!("{trace}.csv"));
            let output = run(&[
                "replay",
                path.to_str().unwrap(),
                "--device",
                "thesis",
                "--ftl",
                ftl,
                "--json",
                "--detail",
            ]);
            let want = &expected[name];
            let got = json(&output);
            let context = format!("{trace} {name}");
            assert_eq!(output.status.success(), want["error"].is_null(), "{context}: {}", stderr(&output));
            let causes = &got["flash"]["by_cause"];
            let copies = |kind: &str| {
                Value::from(causes["gc"][kind].as_u64().unwrap() + causes["merge"][kind].as_u64().unwrap())
            };
            same(&context, want, "write_requests", &got["host"]["writes"]);
            same(&context, want, "read_requests", &got["host"]["reads"]);
            same(&context, want, "host_write_bytes", &got["host"]["write_bytes"]);
            same(&context, want, "host_pages_written", &got["host"]["write_pages"]);
            same(&context, want, "flash_pages_programmed", &got["flash"]["programs"]);
            same(&context, want, "programs_host", &causes["host"]["programs"]);
            same(&context, want, "programs_gc", &copies("programs"));
            same(&context, want, "reads_gc", &copies("reads"));
            let host_reads = want["reads_rmw"].as_u64().unwrap() + want["reads_host"].as_u64().unwrap();
            assert_eq!(causes["host"]["reads"].as_u64(), Some(host_reads), "{context}");
            same(&context, want, "blocks_erased", &got["flash"]["erases"]);
            same(&context, want, "gc_runs", &got["gc"]["runs"]);
            same(&context, want, "map_entries", &got["map"]["updates"]);
            same(&context, want, "map_bytes", &got["map"]["update_bytes"]);
            same(&context, want, "map_table_bytes", &got["map"]["table_bytes"]);
            same(&context, want, "log_table_updates", &got["map"]["log_table_updates"]);
            same(&context, want, "merge_switch", &got["merges"]["switch"]);
            same(&context, want, "merge_full", &got["merges"]["full"]);
            same(&context, want, "merge_evictions", &got["merges"]["evicted"]);
            same(&context, want, "in_place_rewrites", &got["merges"]["in_place"]);
            same(&context, want, "erase_min", &got["wear"]["erases_min"]);
            same(&context, want, "erase_max", &got["wear"]["erases_max"]);
            let simulated_us = got["time"]["simulated_ns"].as_u64().unwrap() / 1000;
            assert_eq!(want["time_serial_us"].as_u64(), Some(simulated_us), "{context}");
            if let Some(per_block) = want.get("erase_counts_unit_major") {
                assert_eq!(per_block, &got["wear"]["per_block"], "{context}");
            }
        }
    }
}

#[test]
fn the_same_seed_and_input_give_the_same_bytes() {
    let text = || {
        let output = run(&[
            "replay",
            "zipf:count=20k,span=90%",
            "--set",
            "device.blocks_per_plane=16",
            "--set",
            "device.pages_per_block=32",
            "--precondition",
            "fill+uniform:0.5x",
            "--json",
            "--detail",
            "--seed",
            "7",
        ]);
        assert!(output.status.success(), "{}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter(|line| !line.contains("wall_s")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(text(), text());
}

#[test]
fn bad_usage_exits_with_2_and_names_what_is_wrong() {
    fails(&["replay"], 2, &["WORKLOAD"]);
    fails(&["replay", "uniform:count=1", "--ftl", "nope"], 2, &["unknown ftl 'nope'", "page-map"]);
    fails(&["replay", "uniform:count=1", "--set", "ftl.op=-3"], 2, &["ftl.op = '-3'"]);
    fails(&["replay", "uniform:count=1", "--device", "nope"], 2, &["unknown device 'nope'", "thesis"]);
    fails(&["replay", "uniform:cuont=1"], 2, &["cuont"]);
    fails(&["replay", "uniform:count=1", "--precondition", "fil"], 2, &["expected fill"]);
    fails(&["compare", "uniform:count=1", "--ftl", "pm-gcl", "--set", "ftl.nope=1"], 2, &["ftl.nope"]);
    fails(&["reproduce", "nope"], 2, &["unknown reproduction 'nope'"]);
}

#[test]
fn a_failed_run_exits_with_1_and_names_what_failed() {
    fails(&["replay", "/nonexistent/t.csv"], 1, &["/nonexistent/t.csv"]);
    fails(&["replay", "uniform:count=1", "--config", "/nonexistent/c.toml"], 1, &["/nonexistent/c.toml"]);
    let dir = tempfile::tempdir().unwrap();
    let bad = dir.path().join("bad.csv");
    std::fs::write(&bad, "ts_us,op,offset,len\n1,W,0,4096\n2,Q,0,4096\n").unwrap();
    fails(&["replay", bad.to_str().unwrap(), "--device", "thesis"], 1, &["bad.csv", "line 3"]);
    let report = "/nonexistent-dir/r.html";
    fails(&["replay", "uniform:count=10", "--device", "thesis", "--report", report], 1, &[report]);
}

#[test]
fn device_full_is_reported_in_the_document_and_in_the_status() {
    let path = golden("full.csv");
    let output = run(&["replay", path.to_str().unwrap(), "--device", "thesis", "--ftl", "pm-gcl", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let document = json(&output);
    let message = document["error"]["message"].as_str().unwrap();
    assert!(message.contains("device full") && message.contains("16384"), "{message}");
    assert!(stderr(&output).contains("device full"));
}

#[test]
fn compare_gives_one_document_per_layer_and_refuses_what_does_not_fit() {
    let path = golden("small.csv");
    let output = run(&["compare", path.to_str().unwrap(), "--device", "thesis", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let documents = json(&output);
    let kinds: Vec<&str> =
        documents.as_array().unwrap().iter().map(|d| d["config"]["ftl"]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.len(), 5);
    let hashes: Vec<&str> =
        documents.as_array().unwrap().iter().map(|d| d["workload_hash"].as_str().unwrap()).collect();
    assert!(hashes.iter().all(|h| *h == hashes[0]), "all layers get the same requests: {hashes:?}");

    let dir = tempfile::tempdir().unwrap();
    let far = dir.path().join("far.csv");
    std::fs::write(&far, "ts_us,op,offset,len\n1,W,600000000,4096\n").unwrap();
    fails(
        &["compare", far.to_str().unwrap(), "--device", "thesis"],
        1,
        &["far.csv", "page-map", "600004096"],
    );
}

#[test]
fn what_print_config_prints_is_a_configuration() {
    let printed =
        run(&["replay", "--device", "thesis", "--ftl", "hsbm-gcl", "--set", "ftl.logs=4", "--print-config"]);
    assert!(printed.status.success(), "{}", stderr(&printed));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("stack.toml");
    std::fs::write(&file, &printed.stdout).unwrap();
    let again = run(&["replay", "--config", file.to_str().unwrap(), "--print-config"]);
    assert_eq!(String::from_utf8_lossy(&printed.stdout), String::from_utf8_lossy(&again.stdout));
}

#[test]
fn reports_series_and_csv_are_written_whole() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let path = golden("small.csv");
    let output = run(&[
        "compare",
        path.to_str().unwrap(),
        "--device",
        "thesis",
        "--report",
        &at("r.html"),
        "--series",
        &at("s.parquet"),
        "--csv",
        &at("t.csv"),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let html = std::fs::read_to_string(at("r.html")).unwrap();
    assert!(html.trim_end().ends_with("</html>") && html.contains("hsbm-gcl"));
    let parquet = std::fs::read(at("s.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let csv = std::fs::read_to_string(at("t.csv")).unwrap();
    assert_eq!(csv.lines().count(), 6);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "no temporary file is left");
}

#[test]
fn traces_convert_there_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let path = golden("small.csv");
    for step in [
        [path.to_str().unwrap(), &at("a.nst.zst")],
        [&at("a.nst.zst"), &at("b.csv.gz")],
        [&at("b.csv.gz"), &at("c.csv")],
    ] {
        let output = run(&["trace", "convert", step[0], "--output", step[1]]);
        assert!(output.status.success(), "{step:?}: {}", stderr(&output));
    }
    let original = std::fs::read_to_string(path).unwrap();
    let back = std::fs::read_to_string(at("c.csv")).unwrap();
    assert_eq!(original.lines().count(), back.lines().count());
    let head = run(&["trace", "head", &at("c.csv"), "-n", "3"]);
    assert_eq!(String::from_utf8_lossy(&head.stdout).lines().count(), 4);
    let volumes =
        "128166372003061629,hm,0,Read,383496192,32768,413\n128166372016382155,hm,1,Write,2822144,4096,1571\n";
    std::fs::write(at("volumes.csv"), volumes).unwrap();
    for (output, volume, is_told) in
        [("d.csv", None, true), ("-", None, true), ("d.csv", Some("hm_1"), false)]
    {
        let output = if output == "-" { "-".to_owned() } else { at(output) };
        let args = ["trace", "convert", &at("volumes.csv"), "--to", "csv", "--output", &output];
        let output = run(&args
            .into_iter()
            .chain(volume.into_iter().flat_map(|name| ["--volume", name]))
            .collect::<Vec<_>>());
        assert_eq!(
            stderr(&output).contains("several volumes were written as one"),
            is_told,
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn statistics_name_mix_and_alignment() {
    let output = run(&["trace", "stats", golden("macdrp.csv").to_str().unwrap(), "--page", "32k", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("16509"), "{text}");
}

#[test]
fn help_manual_and_completions_come_from_one_definition() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&["man", "--out", dir.path().to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    for page in [
        "nandscape.1",
        "nandscape-replay.1",
        "nandscape-compare.1",
        "nandscape-trace-stats.1",
        "nandscape-cache-simulate.1",
    ] {
        let text = std::fs::read_to_string(dir.path().join(page)).unwrap();
        assert!(text.contains(".TH"), "{page}");
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = run(&["completions", shell]);
        assert!(String::from_utf8_lossy(&script.stdout).contains("precondition"), "{shell}");
    }
}

#[test]
fn list_names_every_registry() {
    let output = run(&["list", "--json", "--detail"]);
    let lists = json(&output);
    for (registry, name) in [
        ("devices", "thesis"),
        ("ftls", "page-map"),
        ("victims", "greedy"),
        ("policies", "autostream-mq"),
        ("evictions", "belady"),
        ("evictions", "s3-fifo"),
        ("admissions", "sequential"),
        ("cleanings", "pi-rate"),
        ("metadata", "journal"),
        ("disks", "ram"),
        ("disks", "article-hdd"),
        ("workloads", "lammps"),
        ("formats", "msr"),
        ("reproductions", "thesis-table-4.2"),
        ("outputs", "parquet"),
        ("schedulers", "read-first"),
        ("interfaces", "directives"),
        ("front-ends", "nbd"),
    ] {
        let found = lists[registry].as_array().unwrap().iter().any(|e| e["name"] == name);
        assert!(found, "{registry} lacks {name}");
    }
}

#[test]
fn neighbours_prints_a_row_for_each_layout_and_names_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let jobs = dir.path().join("noise.fio");
    std::fs::write(
        &jobs,
        "[noise]\nfilename=ns1\nrw=write\nbs=64k\niodepth=4\nsize=100%\ntime_based\nruntime=1d\n\
         [victim]\nfilename=ns2\nrw=randread\nnorandommap\nbs=16k\niodepth=2\nsize=100%\nio_size=8m\n",
    )
    .unwrap();
    let run = |victim: &str, extra: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_nandscape"))
            .args(["neighbours", jobs.to_str().unwrap(), "--victim", victim, "--alone", "50ms"])
            .args(["--set", "device.channels=4", "--set", "device.dies_per_channel=2"])
            .args(["--set", "device.blocks_per_plane=32", "--set", "device.pages_per_block=32"])
            .args(["--set", "ftl.op=0.5", "--set", "scheduler=read-first"])
            .args(extra)
            .output()
            .unwrap()
    };
    let table = run("victim", &[]);
    assert!(table.status.success(), "{}", String::from_utf8_lossy(&table.stderr));
    let text = String::from_utf8(table.stdout).unwrap();
    for layout in ["traditional", "vertical", "horizontal"] {
        assert_eq!(text.lines().filter(|line| line.starts_with(layout)).count(), 4, "{text}");
    }
    let json = run("victim", &["--json", "--layouts", "vertical"]);
    let cases: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(cases[0]["victim"]["read"]["requests"], 512);
    let missing = run("reader", &[]);
    assert!(!missing.status.success());
    let message = String::from_utf8(missing.stderr).unwrap();
    assert!(message.contains("noise.fio") && message.contains("'reader'"), "{message}");
}
