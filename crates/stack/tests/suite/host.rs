//! `[host]`: stream policies and merging around a replay.

use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op, SimTime};
use nandscape_stack::{RunError, RunOptions, StackConfig, Typed, replay};
use std::io::Write as _;

fn config(keys: &[&str]) -> StackConfig {
    let mut typed = Typed::new();
    for key in [
        "device.channels=1",
        "device.dies_per_channel=1",
        "device.blocks_per_plane=64",
        "device.pages_per_block=4",
        "device.page=4KiB",
    ] {
        typed.set_pair(key).unwrap();
    }
    for key in keys {
        typed.set_pair(key).unwrap();
    }
    typed.check().unwrap()
}

fn refused(keys: &[&str]) -> String {
    let mut typed = Typed::new();
    for key in keys {
        typed.set_pair(key).unwrap();
    }
    typed.check().unwrap_err().to_string()
}

/// A recording of a write-ahead log that is written and deleted again and again beside a table that grows.
fn recording() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut ops = std::fs::File::create(folder.path().join("t.ops.csv")).unwrap();
    let mut names = std::fs::File::create(folder.path().join("t.files.csv")).unwrap();
    writeln!(ops, "ts_us,op,pid,file,offset,len\n1,create,1,1,0,0\n1,hint,1,1,0,5").unwrap();
    writeln!(names, "file,path\n1,db/base.db").unwrap();
    for round in 0..40u64 {
        let (file, at) = (round + 2, 1000 * (round + 1));
        writeln!(names, "{file},db/{file:06}.log").unwrap();
        writeln!(ops, "{at},create,1,{file},0,0\n{at},hint,1,{file},0,2").unwrap();
        for block in 0..16 {
            writeln!(ops, "{at},write,1,{file},{},4096\n{at},fdatasync,1,{file},0,0", block * 4096).unwrap();
            if block % 4 == 0 {
                writeln!(
                    ops,
                    "{at},write,2,1,{},4096\n{at},fdatasync,2,1,0,0",
                    (round * 4 + block / 4) * 4096
                )
                .unwrap();
            }
        }
        writeln!(ops, "{at},delete,1,{file},0,0").unwrap();
    }
    folder
}

fn run(keys: &[&str]) -> nandscape_sim::RunResult {
    let folder = recording();
    let workload = folder.path().join("t.ops.csv");
    let result = replay(&config(keys), workload.to_str().unwrap(), &RunOptions::default()).unwrap().result;
    assert_eq!(result.error, None);
    result
}

#[test]
fn names_and_hints_keep_the_log_apart_from_the_table_and_are_counted() {
    let plain = run(&["workload.format=ops:journal=none,discard=false", "workload.repeat=8"]);
    assert!(plain.between.policy.is_none());
    for policy in ["names", "write-hint"] {
        let host = format!("host.policy={policy}");
        let result = run(&[
            "workload.format=ops:journal=none,discard=false",
            "workload.repeat=8",
            "ftl.streams=5",
            &host,
        ]);
        let counts = result.between.policy.unwrap();
        assert_eq!((counts.name.as_str(), counts.available), (policy, 5));
        let of: Vec<_> = counts.streams.iter().map(|s| (s.writes, s.bytes, s.sectors)).collect();
        // Eight times 40 logs of 16 pages and 160 pages of the table.
        assert_eq!(of, [(5120, 5120 * 4096, 5120 * 8), (1280, 1280 * 4096, 1280 * 8)], "{policy}");
        assert_eq!(result.host.write_bytes, plain.host.write_bytes);
        assert!(result.waf.pages < plain.waf.pages, "{policy}: {:?} {:?}", result.waf.pages, plain.waf.pages);
    }
}

#[test]
fn a_device_without_streams_runs_as_ever_and_says_so() {
    let plain = run(&["workload.format=ops:journal=none"]);
    for policy in ["names", "write-hint", "autostream-mq", "oracle", "split-pools"] {
        let result = run(&["workload.format=ops:journal=none", &format!("host.policy={policy}")]);
        assert_eq!(result.flash.programs, plain.flash.programs, "{policy}");
        assert_eq!(result.speed.time.simulated_ns, plain.speed.time.simulated_ns, "{policy}");
        assert!(
            result.notes.iter().any(|note| note.contains("the device has no streams")),
            "{policy}: {:?}",
            result.notes
        );
    }
}

#[test]
fn the_policy_none_ignores_streams_that_the_workload_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hints.csv");
    let mut trace = std::fs::File::create(&path).unwrap();
    writeln!(trace, "ts_us,op,offset,len,hint").unwrap();
    for at in 0..6000u64 {
        // Few pages that are rewritten often, and many that are not, on a device that they fill.
        let page = if at % 2 == 0 { at / 2 % 16 } else { 16 + at / 2 * 7919 % 380 };
        writeln!(trace, "{at},W,{},4096,{}", page * 4096, at % 2 + 1).unwrap();
    }
    let run =
        |keys: &[&str]| replay(&config(keys), path.to_str().unwrap(), &RunOptions::default()).unwrap().result;
    let without = run(&["ftl.streams=0"]);
    let named = run(&["ftl.streams=2"]);
    assert_ne!(named.flash.programs, without.flash.programs);
    let explicit = run(&["ftl.streams=2", "host.policy=explicit"]);
    assert_eq!(explicit.flash.programs, named.flash.programs);
    let none = run(&["ftl.streams=2", "host.policy=none"]);
    assert_eq!(none.flash.programs, without.flash.programs);
    let counts = none.between.policy.unwrap();
    assert_eq!(counts.streams.iter().map(|s| (s.stream, s.writes)).collect::<Vec<_>>(), [(0, 6000)]);
    // Merging alone changes nothing about who chooses.
    let merging = run(&["ftl.streams=2", "host.plug=1"]);
    assert_eq!(merging.flash.programs, named.flash.programs);
}

#[test]
fn the_oracle_is_shown_the_whole_workload_with_its_repetitions() {
    let result = run(&[
        "workload.format=ops:journal=none",
        "workload.repeat=3",
        "ftl.streams=4",
        "host.policy=oracle",
    ]);
    assert!(result.notes.iter().all(|note| !note.contains("not foreseen")), "{:?}", result.notes);
    assert!(result.between.policy.unwrap().streams.len() > 1);
}

#[test]
fn merging_stands_before_the_policy_and_is_counted() {
    let keys = ["workload.format=ops:journal=none,request=4KiB", "workload.depth=1"];
    let plain = run(&keys);
    let merged = run(&[keys[0], keys[1], "host.plug=32"]);
    assert_eq!(merged.host.write_bytes, plain.host.write_bytes);
    assert_eq!(merged.host.writes + merged.between.policy.unwrap().merges, plain.host.writes);
}

#[test]
fn wrong_keys_name_what_there_is() {
    let error = refused(&["host.policy=autostream"]);
    assert!(error.contains("host.policy 'autostream'") && error.contains("autostream-sfr"), "{error}");
    let error = refused(&["host.chunk=1MiB"]);
    assert!(
        error.contains("host.chunk") && error.contains("policy explicit") && error.contains("plug"),
        "{error}"
    );
    let error = refused(&["host.policy=autostream-mq", "host.base=1"]);
    assert!(error.contains("host.base = '1'"), "{error}");
    let error = refused(&["host.policy=split-pools", "host.streams=4", "host.kernel=4"]);
    assert!(error.contains("host.kernel = '4'"), "{error}");
    let error = refused(&["host.policy=names", "host.rules=;"]);
    assert!(error.contains("host.rules = ';'"), "{error}");
    // The device's streams are known only with the whole configuration.
    let late = replay(
        &config(&["ftl.streams=2", "host.policy=split-pools", "host.kernel=2"]),
        "uniform:count=10,span=50%,bs=4k",
        &RunOptions::default(),
    );
    assert!(matches!(late, Err(RunError::Config(_))), "{:?}", late.err());
}

#[test]
fn another_policy_does_not_inherit_the_keys_of_the_one_before() {
    let mut typed = Typed::new();
    typed.merge_text("file", "[host]\npolicy = 'autostream-mq'\nchunk = '2MiB'\nstreams = 5").unwrap();
    assert!(typed.check().unwrap().to_toml().contains("chunk = \"2MiB\""));
    typed.set("host.policy", "names").unwrap();
    let text = typed.check().unwrap().to_toml();
    assert!(
        text.contains("policy = \"names\"") && text.contains("streams = 5") && !text.contains("chunk"),
        "{text}"
    );
    // And what is printed can be read back.
    let mut again = Typed::new();
    again.merge_text("printed", &text).unwrap();
    assert_eq!(again.check().unwrap().hash(), typed.check().unwrap().hash());
}

#[test]
fn a_served_device_follows_the_policy_and_refuses_one_that_needs_the_future() {
    let config =
        |policy: &str| config(&["ftl.streams=4", &format!("host.policy={policy}"), "host.streams=3"]);
    let mut device = nandscape_stack::build_storing(&config("autostream-sfr")).unwrap();
    let data = vec![7; 4096];
    for write in 0..64u64 {
        let command = BlockCommand::new(Op::Write, Extent::new(write % 2 * 8192, 4096), Hint(0));
        device.submit(0, command.into(), Payload::Write(&data), SimTime(write)).unwrap();
    }
    let written = |stream| device.inspect().layer(0).log_status(stream).host_bytes;
    assert_eq!((0..=3).map(written).sum::<u64>(), 64 * 4096);
    assert!(written(0) == 0 && written(1) > 0 && written(3) > 0, "counts of writes make streams");
    let refused = nandscape_stack::build_storing(&config("oracle"));
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("host.policy = 'oracle'"), "{error}");
}
