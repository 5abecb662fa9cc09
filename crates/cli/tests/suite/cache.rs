//! Simulated caches and advice as a user gets them.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Output, Stdio};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../policies/tests/data/mixed.csv.gz");

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nandscape")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(args: &[&str]) -> Value {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn fails(args: &[&str], code: i32, wanted: &[&str]) {
    let output = run(args);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    assert!(output.stdout.is_empty(), "{args:?} printed a result");
    for part in wanted {
        assert!(message.contains(part), "{args:?}: '{message}' lacks '{part}'");
    }
}

/// Everything but what depends on the machine.
fn counts(row: &Value) -> BTreeMap<String, Value> {
    let row = row.as_object().unwrap().iter();
    row.filter(|(key, _)| !key.contains("wall")).map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[test]
fn every_policy_and_size_is_a_row_with_its_counts() {
    let rows =
        json(&["cache", "simulate", TRACE, "--eviction", "lru,belady", "--size", "200b,4000KiB", "--json"]);
    let rows = rows.as_array().unwrap();
    let expected =
        [("lru", 200, 21_481), ("lru", 1000, 15_893), ("belady", 200, 16_026), ("belady", 1000, 9782)];
    assert_eq!(rows.len(), expected.len());
    for (row, (eviction, size, misses)) in rows.iter().zip(expected) {
        assert_eq!(row["eviction"], eviction);
        assert_eq!(row["size_blocks"], size);
        assert_eq!(row["size_bytes"], size * 4096);
        assert_eq!(row["misses"], misses);
        assert_eq!(row["requests"], 22_930);
        assert_eq!(row["preset"], Value::Null);
        let number = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("no count {key}: {row}"));
        assert_eq!(number("hits") + number("misses"), number("requests"));
        assert_eq!(number("read_misses") + number("write_misses"), number("misses"));
        assert_eq!(number("write_hits") + number("write_misses"), 12_238);
        assert_eq!(number("misses") - number("evictions"), number("used_blocks"));
        assert!(row["wall_s"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn threads_and_standard_input_change_nothing() {
    let base =
        ["cache", "simulate", TRACE, "--eviction", "s3-fifo:small=20%,rand,arc", "--size", "50b,3000b"];
    let alone = json(&[&base[..], &["--json", "--jobs", "1"]].concat());
    let together = json(&[&base[..], &["--json", "--jobs", "4"]].concat());
    let mut piped = Command::new(env!("CARGO_BIN_EXE_nandscape"))
        .args(["cache", "simulate", "-", "--json"])
        .args(&base[3..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = piped.stdin.take().unwrap();
    input.write_all(&std::fs::read(TRACE).unwrap()).unwrap();
    drop(input);
    let piped: Value = serde_json::from_slice(&piped.wait_with_output().unwrap().stdout).unwrap();
    for other in [together, piped] {
        for (row, other) in alone.as_array().unwrap().iter().zip(other.as_array().unwrap()) {
            let mut other = counts(other);
            other.insert("workload".into(), TRACE.into());
            assert_eq!(counts(row), other);
        }
    }
}

#[test]
fn designs_bring_their_map_block_and_policy() {
    let output = run(&[
        "cache",
        "simulate",
        TRACE,
        "--preset",
        "nandscape,flashcache,rapidcache,dm-cache",
        "--size",
        "10MiB",
        "--json",
    ]);
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let shape = |row: &Value| {
        let text = |key: &str| row[key].as_str().unwrap().to_owned();
        let number = |key: &str| row[key].as_u64().unwrap();
        (
            text("preset"),
            text("map"),
            text("eviction"),
            number("ways"),
            number("block_bytes"),
            number("size_blocks"),
        )
    };
    let shapes: Vec<_> = rows.as_array().unwrap().iter().map(shape).collect();
    let expected = [
        ("nandscape", "full", "s3-fifo-compact", 2560, 4096, 2560),
        ("flashcache", "cluster-hashed", "fifo", 512, 4096, 2560),
        ("rapidcache", "linear", "fifo", 512, 4096, 2560),
        ("dm-cache", "full", "smq", 320, 32_768, 320),
    ];
    let expected = expected.map(|(p, m, e, w, b, s)| (p.to_owned(), m.to_owned(), e.to_owned(), w, b, s));
    assert_eq!(shapes, expected);
    assert!(stderr(&output).is_empty(), "{}", stderr(&output));
    let uneven = run(&["cache", "simulate", TRACE, "--preset", "flashcache", "--size", "1000b", "--json"]);
    assert!(stderr(&uneven).contains("1000 blocks are no whole sets of 512 ways: 512 are used"));
    let default = json(&["cache", "simulate", TRACE, "--size", "1000b", "--json"]);
    assert_eq!(default[0]["preset"], "nandscape");
    assert_eq!(default[0]["misses"], 16_401);
}

#[test]
fn objects_count_once_a_request() {
    let args = ["cache", "simulate", TRACE, "--objects", "--eviction", "lru", "--size", "100b", "--json"];
    let rows = json(&args);
    assert_eq!(rows[0]["requests"], 6600);
    assert_eq!(rows[0]["block_bytes"], 0);
}

#[test]
fn long_requests_are_split_without_being_held() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("long.csv");
    // From the middle of a block over 1 GiB, then a trim of the middle of it.
    std::fs::write(&path, "ts_us,op,offset,len\n0,W,2048,1073741824\n1,D,4096,536870912\n2,R,0,4096\n")
        .unwrap();
    let rows = json(&[
        "cache",
        "simulate",
        path.to_str().unwrap(),
        "--eviction",
        "fifo",
        "--size",
        "2GiB",
        "--json",
    ]);
    assert_eq!(rows[0]["write_misses"], 262_145);
    assert_eq!(rows[0]["trimmed"], 131_072);
    assert_eq!(rows[0]["read_hits"], 1);
    assert_eq!(rows[0]["used_blocks"], 262_145 - 131_072);
}

#[test]
fn what_is_wrong_is_named() {
    let simulate =
        |extra: &[&'static str]| [&["cache", "simulate", "zipf-cdf:ranks=100,count=10"], extra].concat();
    fails(&simulate(&[]), 2, &["--size"]);
    for (extra, code, wanted) in [
        (&["--size", "10000"][..], 2, &["--size '10000'", "a multiple of the block of 4 KiB", "3b"][..]),
        (&["--size", "1b,x"], 2, &["--size 'x'", "64MiB", "10000b"]),
        (&["--size", "1b", "--eviction", "lur"], 2, &["lur", "lru", "belady"]),
        (&["--size", "1b", "--eviction", "s3-fifo:smal=2"], 2, &["smal"]),
        (&["--size", "1b", "--preset", "flashcash"], 2, &["flashcash", "flashcache"]),
        (&["--size", "1b", "--preset", "bcache", "--eviction", "lru"], 2, &["--eviction"]),
        (&["--size", "1b", "--block", "3000"], 2, &["--block 3000", "a power of two from 512"]),
        (&["--size", "4MiB", "--block", "8k", "--preset", "rapidcache"], 2, &["8192", "rapidcache", "4096"]),
        (&["--size", "1b", "--objects"], 2, &["--objects", "--eviction"]),
        (&["--size", "1MiB", "--objects", "--eviction", "lru"], 2, &["a count of objects"]),
        (&["--size", "1b", "--jobs", "0"], 2, &["--jobs"]),
    ] {
        fails(&simulate(extra), code, wanted);
    }
    fails(&["cache", "simulate", "/no/such/file", "--size", "1b"], 1, &["/no/such/file"]);
    fails(&["cache", "simulate", "x.fio", "--size", "1b"], 2, &["x.fio", "a trace or a generator"]);
    let advise =
        |extra: &[&'static str]| [&["cache", "advise", "zipf-cdf:ranks=100,count=10"], extra].concat();
    fails(&advise(&["--sample", "0"]), 2, &["sample", "a share above 0"]);
    fails(&advise(&["--sample", "200%"]), 2, &["200%"]);
    fails(&advise(&["--sample", "1%", "--size", "20b"]), 2, &["size", "20", "at least 100 blocks"]);
}

#[test]
fn advice_agrees_with_simulations_and_writes_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (report, csv) = (at("r.html"), at("c.csv"));
    let args = [
        "cache",
        "advise",
        TRACE,
        "--size",
        "1000b,50b,200b,7000b",
        "--json",
        "--report",
        &report,
        "--csv",
        &csv,
    ];
    let advice = json(&args);
    assert_eq!(advice["requests"], 22_930);
    assert_eq!(advice["blocks"], 6737);
    assert_eq!(advice["first_misses"], 6737);
    let curves = advice["curves"].as_array().unwrap();
    assert!(curves.len() >= 14, "every policy and belady");
    let misses = |name: &str| -> Vec<u64> {
        let curve = curves.iter().find(|curve| curve["eviction"] == name).unwrap();
        curve["points"].as_array().unwrap().iter().map(|point| point["misses"].as_u64().unwrap()).collect()
    };
    assert_eq!(misses("lru"), [22_530, 21_481, 15_893, 6737]);
    assert_eq!(misses("sieve"), [22_576, 21_944, 18_549, 6737]);
    assert_eq!(misses("belady"), [19_456, 16_026, 9782, 6737]);
    assert!(advice["best"].as_array().unwrap().iter().all(|best| best["eviction"] != "belady"));
    assert!(advice["knee"]["size_blocks"].is_u64() && advice["enough"]["size_blocks"].is_u64());
    let html = std::fs::read_to_string(&report).unwrap();
    assert!(html.contains("data-chart=\"misses\"") && html.trim_end().ends_with("</html>"));
    // Every size at which the LRU curve falls, down to the first misses.
    let csv = std::fs::read_to_string(&csv).unwrap();
    let lru: Vec<Vec<u64>> = csv
        .lines()
        .filter_map(|line| line.strip_prefix("lru,"))
        .map(|line| line.split(',').take(4).map(|n| n.parse().unwrap()).collect())
        .collect();
    assert!(lru.len() > 500, "{} steps", lru.len());
    assert!(lru.windows(2).all(|pair| pair[0][0] < pair[1][0] && pair[0][3] > pair[1][3]));
    assert_eq!(lru.last().unwrap()[3], 6737);
    let step = lru.iter().rev().find(|step| step[0] <= 1000).unwrap();
    assert_eq!(step[3], 15_893);
}

#[test]
fn a_sample_is_marked_and_near() {
    let workload = "zipf-cdf:ranks=20k,alpha=0.8,count=200k,read=70%";
    let args = ["cache", "advise", workload, "--eviction", "lru,s3-fifo", "--size", "2000b,8000b", "--json"];
    let exact = json(&args);
    let sampled = json(&[&args[..], &["--sample", "20%"]].concat());
    assert_eq!(exact["sample"], Value::Null);
    assert_eq!(sampled["sample"]["rate"], 0.2);
    assert!(sampled["sample"]["requests"].as_u64().unwrap() < 80_000);
    for key in ["requests", "reads", "writes"] {
        assert_eq!(exact[key], sampled[key]);
    }
    for curve in 0..2 {
        for point in 0..2 {
            let ratio =
                |advice: &Value| advice["curves"][curve]["points"][point]["miss_ratio"].as_f64().unwrap();
            assert!((ratio(&exact) - ratio(&sampled)).abs() < 0.03, "{exact} {sampled}");
        }
    }
}

#[test]
fn a_workload_without_reads_and_writes_has_no_curve_and_no_crash() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trims.csv");
    std::fs::write(&path, "ts_us,op,offset,len\n0,D,0,8192\n1,F,0,0\n").unwrap();
    let path = path.to_str().unwrap();
    let output = run(&["cache", "advise", path]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("nothing is read or written"));
    let rows = json(&["cache", "simulate", path, "--eviction", "lru,belady", "--size", "1b", "--json"]);
    assert_eq!(rows[1]["requests"], 0);
    assert_eq!(rows[1]["miss_ratio"], 0.0);
}

#[test]
fn compare_gives_a_document_for_each_cache_with_the_settings_that_it_has() {
    let shape = [
        "compare",
        "zipf:count=3000,span=16MiB,bs=4k,read=70%",
        "--set",
        "cache.device=ram",
        "--set",
        "cache.size=4MiB",
        "--set",
        "disk.size=1GiB",
    ];
    let caches = ["--cache", "nandscape,flashcache,none", "--set", "cache.fallow_delay=60s", "--json"];
    let documents = json(&[&shape[..], &caches].concat());
    let documents = documents.as_array().unwrap();
    let presets: Vec<&Value> = documents.iter().map(|document| &document["cache"]["preset"]).collect();
    assert_eq!(presets[..2], ["nandscape", "flashcache"]);
    let delay = |at: usize| &documents[at]["config"]["cache"]["fallow_delay"];
    assert_eq!((delay(0), delay(1)), (&Value::Null, &Value::from("60s")));
    for document in &documents[..2] {
        let cache = &document["cache"];
        assert_eq!((&cache["device"], &cache["slots"]), (&Value::from("ram"), &Value::from(1024)));
        let (hits, reads) = (&cache["counters"]["read_hits"], &cache["counters"]["reads"]);
        assert!(hits.as_u64().unwrap() > 100 && reads.as_u64().unwrap() > 2000, "{hits} of {reads}");
        assert!(cache["read_hit_ratio"].as_f64().unwrap() > 0.05);
    }
    let alone = &documents[2];
    assert_eq!(alone["config"]["cache"]["preset"], "none");
    assert_eq!(alone["host"]["writes"], documents[0]["host"]["writes"], "the same workload");
    let table = run(&[&shape[..], &["--cache", "nandscape,none"]].concat());
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(
        table.contains("nandscape: write-back, 1,024 slots of 4 KiB on ram")
            && table.contains("none, article-hdd")
    );
    for (extra, wanted) in [
        (&["--cache", "nandscape,bcach"][..], &["'bcach'", "did you mean 'bcache'"][..]),
        (&["--cache", "nandscape", "--set", "cache.fallow_delay=1s"], &["cache.fallow_delay", "'idle-age'"]),
        (&["--cache", "nandscape,flashcache", "--set", "cache.nope=1"], &["cache.nope", "known keys"]),
        (&["--cache", "nandscape", "--set", "disk.presset=x"], &["disk.presset", "did you mean 'preset'"]),
        (&["--cache", "nandscape", "--set", "cash.size=1"], &["cash", "did you mean 'cache'"]),
    ] {
        fails(&[&shape[..], extra].concat(), 2, wanted);
    }
}
