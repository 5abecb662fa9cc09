//! `--save-state` and `--load-state`.

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
    folder
}

fn ok(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn failing(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, args);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {error}");
    error
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_run_that_loads_prints_what_the_run_that_saved_printed() {
    let folder = folder();
    let replay = |more: &[&str]| -> Value {
        let args = ["replay", LOAD, "--config", "small.toml", "--ftl", "page-map", "--json", "-q"];
        let mut document: Value = serde_json::from_str(&ok(folder.path(), &[&args, more].concat())).unwrap();
        document["time"]["wall_s"] = Value::Null;
        document["time"]["host_pages_per_wall_s"] = Value::Null;
        document
    };
    let saved = replay(&["--precondition", "fill+uniform:1x", "--save-state", "drive.state"]);
    assert_eq!(names(folder.path()), ["drive.state", "small.toml"]);
    let mut loaded = replay(&["--load-state", "drive.state"]);
    assert_eq!(loaded["state"]["file"], "drive.state");
    assert_eq!(loaded["state"]["precondition"], "fill+uniform:1x");
    loaded.as_object_mut().unwrap().remove("state");
    let note = loaded["notes"].as_array_mut().unwrap().pop().unwrap();
    assert_eq!(note, "the state after the preconditioning (fill+uniform:1x) was loaded from drive.state");
    assert_eq!(loaded, saved);
    let args = ["replay", LOAD, "--config", "small.toml", "--load-state", "drive.state"];
    let error = failing(folder.path(), &[&args[..], &["--set", "ftl.op=0.5"]].concat());
    assert!(error.contains("drive.state: it was saved with ftl.op = 0.28: expected ftl.op = 0.5"), "{error}");
    let error = failing(folder.path(), &["replay", LOAD, "--load-state", "small.toml"]);
    assert!(error.contains("small.toml: byte 0: '[device]': expected 'NANDSCST'"), "{error}");
    let error = failing(folder.path(), &["replay", LOAD, "--load-state", "none.state"]);
    assert!(error.contains("none.state: open: No such file"), "{error}");
    let both = ["--load-state", "drive.state", "--save-state", "other.state"];
    assert_eq!(run(folder.path(), &[&args[..4], &both].concat()).status.code(), Some(2));
}

#[test]
fn a_disk_that_is_full_leaves_no_file() {
    let folder = folder();
    let script = format!(
        "trap '' XFSZ; ulimit -f 8; exec '{}' replay {LOAD} --config small.toml -q --precondition fill --save-state drive.state",
        env!("CARGO_BIN_EXE_nandscape")
    );
    let output = Command::new("sh").current_dir(folder.path()).args(["-c", &script]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("drive.state: write: "), "{error}");
    assert_eq!(names(folder.path()), ["small.toml"]);
}

#[test]
fn a_comparison_saves_to_a_folder() {
    let folder = folder();
    let args = ["compare", LOAD, "--config", "small.toml", "--ftl", "page-map,pm-gcl", "-q", "--json"];
    let precondition = ["--precondition", "fill:50%", "--save-state"];
    let error = failing(folder.path(), &[&args[..], &precondition, &["one"]].concat());
    assert!(error.contains("expected a folder, such as one/"), "{error}");
    ok(folder.path(), &[&args[..], &precondition, &["all/"]].concat());
    assert_eq!(names(&folder.path().join("all")).len(), 2);
    let loaded = ok(folder.path(), &[&args[..], &["--load-state", "all/"]].concat());
    let loaded: Vec<Value> = serde_json::from_str(&loaded).unwrap();
    assert!(loaded.iter().all(|document| document["state"]["precondition"] == "fill:50%"));
}
