//! The shipped configurations: each is explained, accepted, and does what the command in its header says.

use nandscape_stack::{Run, RunOptions, StackConfig, Typed, replay};
use std::path::PathBuf;

/// Requests of each run: enough to collect garbage on the small devices, few enough for a test.
const LIMIT: &str = "60000";

struct Shipped {
    name: String,
    text: String,
    typed: Typed,
}

fn shipped() -> Vec<Shipped> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs"));
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let mut typed = Typed::new();
            typed.merge_file(path.to_str().unwrap()).unwrap();
            Shipped {
                name: path.file_name().unwrap().to_str().unwrap().to_owned(),
                text: std::fs::read_to_string(path).unwrap(),
                typed,
            }
        })
        .collect()
}

fn named(name: &str) -> Typed {
    shipped().into_iter().find(|s| s.name == name).unwrap_or_else(|| panic!("{name}")).typed
}

/// The workload of the first command in the header, which must name the file itself.
fn workload(shipped: &Shipped) -> String {
    let command = shipped
        .text
        .lines()
        .find_map(|line| line.strip_prefix("#   nandscape "))
        .unwrap_or_else(|| panic!("{}: the header shows no command", shipped.name));
    let words: Vec<&str> = command.split(' ').collect();
    assert!(["replay", "compare"].contains(&words[0]), "{command}");
    let file = words.iter().position(|word| *word == "--config").map(|at| words[at + 1]);
    assert_eq!(file, Some(format!("configs/{}", shipped.name).as_str()), "{command}");
    words[1].to_owned()
}

fn run(config: &StackConfig, workload: &str) -> Run {
    replay(config, workload, &RunOptions::default()).unwrap()
}

#[test]
fn each_runs_the_command_of_its_header() {
    let all = shipped();
    assert!(all.len() >= 8);
    for mut shipped in all {
        let workload = workload(&shipped);
        shipped.typed.set("workload.limit", LIMIT).unwrap();
        let result = run(&shipped.typed.check().unwrap(), &workload).result;
        assert_eq!(result.error, None, "{}", shipped.name);
        assert!(result.host.write_pages > 1000, "{}", shipped.name);
        let by_cause: u64 = result.flash.by_cause.values().map(|count| count.programs).sum();
        assert_eq!(by_cause, result.flash.programs, "{}", shipped.name);
        assert!(result.flash.programs >= result.host.write_pages, "{}", shipped.name);
    }
}

#[test]
fn each_says_what_it_is_for_and_why_its_values_are_what_they_are() {
    for Shipped { name, text, .. } in shipped() {
        assert!(text.starts_with("# "), "{name}: says what it is for");
        let beside = text.lines().filter(|line| !line.starts_with('#') && line.contains("# ")).count();
        assert!(beside >= 1, "{name}: no value has a comment beside it");
        assert!(text.lines().all(|line| line.len() <= 140), "{name}: lines of at most 140 characters");
    }
}

#[test]
fn thesis_toml_is_the_device_of_the_reproduction() {
    let mut plain = Typed::new();
    plain.merge_preset("thesis").unwrap();
    plain.set_ftl("hsbm-gcl").unwrap();
    assert_eq!(named("thesis.toml").check().unwrap().hash(), plain.check().unwrap().hash());
}

#[test]
fn generic_toml_spells_out_the_defaults() {
    let config = named("generic.toml").check().unwrap();
    let defaults = {
        let mut typed = Typed::new();
        typed.merge_preset("generic-tlc").unwrap();
        typed.set("workload.depth", "32").unwrap();
        typed.check().unwrap()
    };
    assert_eq!(config.hash(), defaults.hash());
}

#[test]
fn a_superblock_above_the_request_size_costs_what_the_header_promises() {
    let mut typed = named("thesis-superblock.toml");
    let fits = run(&typed.check().unwrap(), "macdrp").result.waf.pages.unwrap();
    typed.set("ftl.pn", "4").unwrap();
    let too_large = run(&typed.check().unwrap(), "macdrp").result.waf.pages.unwrap();
    assert!(fits < 1.1 && too_large > 2.0, "{fits}, {too_large}");
}

#[test]
fn age_and_separation_pay_as_the_hot_cold_header_says() {
    let load = workload(shipped().iter().find(|s| s.name == "page-map-hot-cold.toml").unwrap());
    let waf = |key: &str, value: &str| {
        let mut typed = named("page-map-hot-cold.toml");
        typed.set(key, value).unwrap();
        run(&typed.check().unwrap(), &load).result.waf.pages.unwrap()
    };
    for (key, value, expected) in [
        ("ftl.victim", "cost-benefit", 1.6),
        ("ftl.victim", "greedy", 3.2),
        ("ftl.gc_frontier", "shared", 3.8),
    ] {
        let waf = waf(key, value);
        assert!((waf / expected - 1.0).abs() < 0.04, "{key} = {value}: {waf}");
    }
}

#[test]
fn reads_overtake_in_read_tail() {
    let load = "uniform:bs=16k,read=70%,count=40k";
    let mut typed = named("read-tail.toml");
    let first = run(&typed.check().unwrap(), load).result.latency_ns.read;
    typed.set("device.timing.scheduler", "fifo").unwrap();
    let fifo = run(&typed.check().unwrap(), load).result.latency_ns.read;
    assert!(first.mean < fifo.mean && first.p99 < fifo.p99, "{first:?} {fifo:?}");
}

#[test]
fn the_worn_device_lasts_as_long_as_its_header_says() {
    let load = workload(shipped().iter().find(|s| s.name == "worn-device.toml").unwrap());
    for (wear, millions) in [("static", 1.14), ("none", 0.34)] {
        let mut typed = named("worn-device.toml");
        typed.set("ftl.wear", wear).unwrap();
        let error = run(&typed.check().unwrap(), &load).result.error.expect("it wears out");
        assert!(
            error.message.contains("read-only: too many blocks are worn out or bad"),
            "{}",
            error.message
        );
        assert!((error.request as f64 / 1e6 / millions - 1.0).abs() < 0.05, "{wear}: {}", error.request);
    }
}
