//! `--seed 1..3`: runs that differ only in their seed are one row with means and ranges.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const LOAD: &str = "zipf:count=4k,span=50%,bs=16k";
const SMALL: &str = "[device]\nblocks_per_plane = 16\npages_per_block = 32\n";

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nandscape")).current_dir(folder).args(args).output().unwrap()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.toml"), SMALL).unwrap();
    let job = "[global]\nsize=1m\nbs=4k\nnumber_ios=200\n[writer]\nrw=randwrite\n";
    std::fs::write(folder.path().join("job.fio"), job).unwrap();
    folder
}

fn ok(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Documents of a comparison of two layers, without what depends on the wall clock.
fn documents(folder: &Path, seed: &str) -> Vec<Value> {
    let args =
        ["compare", LOAD, "--ftl", "page-map,pm-gcl", "--config", "small.toml", "--json", "--seed", seed];
    let mut all: Vec<Value> = serde_json::from_str(&ok(folder, &args)).unwrap();
    for document in &mut all {
        document["time"]["wall_s"] = Value::Null;
        document["time"]["host_pages_per_wall_s"] = Value::Null;
    }
    all
}

#[test]
fn a_row_is_the_median_run_with_the_spread_of_all() {
    let folder = folder();
    let joined = documents(folder.path(), "1..3");
    assert_eq!(joined.len(), 2);
    let single: Vec<Vec<Value>> = ["1", "2", "3"].map(|seed| documents(folder.path(), seed)).into();
    for (layer, document) in joined.iter().enumerate() {
        let mut wafs: Vec<f64> =
            single.iter().map(|runs| runs[layer]["waf_bytes"].as_f64().unwrap()).collect();
        wafs.sort_by(f64::total_cmp);
        let spread = &document["seeds"]["spread"]["waf_bytes"];
        let is = |key: &str, value: f64| (spread[key].as_f64().unwrap() - value).abs() < 1e-9;
        assert!(is("min", wafs[0]) && is("max", wafs[2]), "{spread} {wafs:?}");
        assert!(is("mean", wafs.iter().sum::<f64>() / 3.0), "{spread} {wafs:?}");
        assert_eq!(document["seeds"]["used"], serde_json::json!([1, 2, 3]));
        assert_eq!(document["waf_bytes"].as_f64(), Some(wafs[1]));
        // But for the seeds, and for notes on the other runs, it is that run.
        let seed = document["seed"].as_u64().unwrap() as usize;
        let mut alone = single[seed - 1][layer].clone();
        let mut document = document.clone();
        for one in [&mut alone, &mut document] {
            let table = one.as_object_mut().unwrap();
            table.remove("seeds");
            table.remove("trust");
        }
        assert_eq!(document, alone);
    }
}

#[test]
fn tables_and_reports_have_means_and_ranges() {
    let folder = folder();
    let args = ["compare", LOAD, "--ftl", "page-map,pm-gcl", "--config", "small.toml", "--seed", "1,2,3"];
    let text = ok(folder.path(), &[&args[..], &["--report", "x.html", "--csv", "x.csv"]].concat());
    assert!(text.contains("means of 3 seeds: 1, 2, 3") && text.contains("\nover seeds"), "{text}");
    let html = std::fs::read_to_string(folder.path().join("x.html")).unwrap();
    assert!(html.contains("class=\"spread\"") && html.contains("Means over the seeds"));
    let csv = std::fs::read_to_string(folder.path().join("x.csv")).unwrap();
    assert!(csv.lines().next().unwrap().contains("seeds.spread.waf_bytes.max"), "{csv}");
    let replay = ok(folder.path(), &["replay", LOAD, "--config", "small.toml", "--seed", "1..2"]);
    assert!(replay.contains("means of 2 seeds: 1, 2") && replay.contains("over seeds"), "{replay}");
    let jobs = ok(
        folder.path(),
        &["compare", "job.fio", "--ftl", "page-map", "--config", "small.toml", "--seed", "1..2", "--json"],
    );
    let jobs: Vec<Value> = serde_json::from_str(&jobs).unwrap();
    assert_eq!((jobs.len(), &jobs[0]["seeds"]["used"]), (1, &serde_json::json!([1, 2])));
    // A document that was kept says so again.
    let kept = ok(folder.path(), &["replay", LOAD, "--config", "small.toml", "--seed", "1..2", "--json"]);
    std::fs::write(folder.path().join("kept.json"), kept).unwrap();
    assert!(ok(folder.path(), &["report", "kept.json"]).contains("means of 2 seeds: 1, 2"));
}

#[test]
fn seeds_that_are_none_are_refused() {
    let folder = folder();
    let cases: [(&[&str], &str); 5] = [
        (&["replay", LOAD, "--seed", "x"], "'x': expected a seed"),
        (&["replay", LOAD, "--seed", "1,1"], "expected each seed once"),
        (&["replay", "-", "--config", "small.toml", "--seed", "1,2"], "with one seed"),
        (&["compare", "-", "--config", "small.toml", "--seed", "1,2"], "with one seed"),
        (&["neighbours", "job.fio", "--victim", "writer", "--seed", "1,2"], "--seed: expected one seed"),
    ];
    for (args, wanted) in cases {
        let output = run(folder.path(), args);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.contains(wanted), "{args:?}: {message}");
    }
}
