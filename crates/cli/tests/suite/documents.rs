//! Every `nandscape` command that docs/cache-simulation.md shows runs, on a small trace; and what it says of
//! the JSON is so.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn document() -> String {
    std::fs::read_to_string(Path::new(ROOT).join("docs/cache-simulation.md")).unwrap()
}

#[test]
fn the_commands_of_the_document_run() {
    let dir = tempfile::tempdir().unwrap();
    let trace = Path::new(ROOT).join("crates/cache/tests/data/mixed.csv.gz");
    std::fs::copy(trace, dir.path().join("my.csv.gz")).unwrap();
    let mut commands = 0;
    let mut is_inside = false;
    for line in document().lines() {
        if line.starts_with("```") {
            is_inside = !is_inside;
        }
        let Some(arguments) = line.strip_prefix("nandscape ").filter(|_| is_inside) else { continue };
        let output = Command::new(env!("CARGO_BIN_EXE_nandscape"))
            .args(arguments.split_whitespace())
            .current_dir(dir.path())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "nandscape {arguments}: {stderr}");
        assert!(!output.stdout.is_empty(), "nandscape {arguments} printed nothing");
        commands += 1;
    }
    assert!(commands >= 6, "the document shows only {commands} commands");
    assert!(dir.path().join("curves.html").exists() && dir.path().join("curves.csv").exists());
}

#[test]
fn the_document_names_every_field_and_flag() {
    let args = ["cache", "simulate", "zipf-cdf:ranks=10,count=10", "--size", "4b", "--json"];
    let output = Command::new(env!("CARGO_BIN_EXE_nandscape")).args(args).output().unwrap();
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = document();
    for key in rows[0].as_object().unwrap().keys().filter(|key| *key != "workload") {
        assert!(text.contains(&format!("`{key}`")), "{key} is not in the document");
    }
    for flag in [
        "--size",
        "--block",
        "--eviction",
        "--preset",
        "--objects",
        "--jobs",
        "--sample",
        "--csv",
        "--report",
    ] {
        assert!(text.contains(flag), "{flag} is not in the document");
    }
    // In prose, `arc` and `clock` are in other words too.
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let cells: Vec<&str> = rows.flat_map(|row| row.split(['|', ',', '`', ' '])).collect();
    for info in nandscape_cache::eviction::EVICTIONS {
        assert!(cells.contains(&info.name), "{} is in no table of the document", info.name);
    }
}
