//! Directives through the whole stack: a trace with hints in, a result document out.

use crate::support;
use nandscape_sim::RunResult;
use nandscape_stack::{RunOptions, Typed, replay};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// 64 MiB of flash.
const DEVICE: &[&str] = &[
    "device.channels=2",
    "device.dies_per_channel=2",
    "device.planes_per_die=1",
    "device.blocks_per_plane=64",
    "device.pages_per_block=64",
    "device.page=4KiB",
    "ftl.op=0.25",
    "ftl.frontiers=1",
    "workload.depth=8",
];

/// Four sequential writers at rates 10 : 3 : 2 : 1 with hints 1 to 4, and reads between them; without hints
/// if `hints` is false.
fn trace(name: &str, hints: bool) -> PathBuf {
    const CHUNK: u64 = 16384;
    const PART: u64 = 800;
    let mut text = String::from("ts_us,op,offset,len,hint\n");
    let mut at = [0u64; 4];
    for i in 0..24_000u64 {
        // Which writer is next is a matter of chance, as it is between four processes.
        let writer = match i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60 {
            0..10 => 0usize,
            10..13 => 1,
            13..15 => 2,
            _ => 3,
        };
        let offset = (writer as u64 * PART + at[writer] % PART) * CHUNK;
        at[writer] += 1;
        let hint = if hints { writer + 1 } else { 0 };
        let _ = writeln!(text, "{i},W,{offset},{CHUNK},{hint}");
        if i % 3 == 0 {
            let _ = writeln!(text, "{i},R,{},4096,0", i * 7919 % 12_000 * 4096);
        }
    }
    let path = std::env::temp_dir().join(format!("nandscape-{}-{name}.csv", std::process::id()));
    std::fs::write(&path, text).unwrap();
    path
}

fn typed(sets: &[&str]) -> Typed {
    support::typed(DEVICE, sets)
}

fn run(path: &Path, sets: &[&str]) -> RunResult {
    let config = typed(sets).check().unwrap();
    let run = replay(&config, path.to_str().unwrap(), &RunOptions::default()).unwrap();
    assert!(run.is_complete(), "{:?}", run.result.error);
    run.result
}

/// What a run counted and how long it took, without what names its input.
fn figures(result: &RunResult) -> serde_json::Value {
    let mut json = serde_json::to_value(result).unwrap();
    for key in ["config", "config_hash", "workload", "workload_hash"] {
        json.as_object_mut().unwrap().remove(key);
    }
    json["time"].as_object_mut().unwrap().retain(|key, _| key == "simulated_ns");
    json
}

#[test]
fn over_placement_handles_a_policy_keeps_its_streams_apart_from_what_has_none() {
    let load = "hotcold:hints=true,f=10%,r=90%,bs=4k,span=90%,count=60k";
    let run = |keys: &[&str]| {
        let keys = [&["host.policy=write-hint"], keys].concat();
        let run = replay(&typed(&keys).check().unwrap(), load, &RunOptions::default()).unwrap().result;
        (run.placement.unwrap(), run.between.policy.unwrap())
    };
    let (streams, _) = run(&["ftl.streams=4", "directives.kind=streams"]);
    let (fdp, policy) = run(&["ftl.streams=4", "directives.kind=fdp"]);
    let bytes =
        |of: &nandscape_core::PlacementReport| of.streams.iter().map(|s| s.host_bytes).collect::<Vec<_>>();
    // SHORT is stream 1 of the policy, and the second handle.
    assert_eq!(fdp.streams.iter().map(|s| s.id).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(bytes(&fdp), [streams.unplaced_bytes, bytes(&streams)[0]]);
    assert_eq!(policy.streams.iter().map(|s| s.stream).max(), Some(1));
}

#[test]
fn forced_stream_ids_change_nothing_without_directives_and_much_with_them() {
    let (with, without) = (trace("hints", true), trace("plain", false));
    let none = &["directives.kind=none", "ftl.streams=4"];
    // [streams-article 3.3]: on a device without directives the difference is not below 0.5 % but none at
    // all.
    let forced = run(&with, none);
    assert_eq!(figures(&forced), figures(&run(&without, none)));
    assert!(forced.placement.is_none() && forced.waf.pages.unwrap() > 1.1, "WAF {:?}", forced.waf.pages);

    // With streams the same load amplifies nothing, and is faster.
    let streams = run(&with, &["directives.kind=streams", "ftl.streams=4"]);
    assert!(streams.waf.pages.unwrap() < 1.05, "WAF {:?}", streams.waf.pages);
    assert!(streams.speed.throughput.write_bytes_per_s > 1.1 * forced.speed.throughput.write_bytes_per_s);
    let placement = streams.placement.unwrap();
    assert_eq!((placement.directive.as_str(), placement.opened, placement.evicted), ("streams", 4, 0));
    assert_eq!(placement.streams.iter().map(|s| s.id).max(), Some(4));
    assert_eq!(placement.streams.iter().map(|s| s.host_bytes).sum::<u64>(), streams.host.write_bytes);

    // Data placement, the successor of streams, with the same load.
    let fdp = run(&with, &["directives.kind=fdp", "ftl.streams=4"]);
    let placement = fdp.placement.as_ref().unwrap();
    let counts = placement.fdp.as_ref().unwrap();
    assert_eq!((counts.hbmw, counts.invalid_pids), (fdp.host.write_bytes, 0));
    assert!((counts.dlwa.unwrap() - fdp.waf.bytes.unwrap()).abs() < 1e-12, "DLWA is the layer's own WAF");
    assert!(counts.dlwa.unwrap() < 1.05, "DLWA {:?}", counts.dlwa);
    // Hint n is entry n - 1 of the list.
    assert_eq!(placement.streams.iter().map(|s| s.id).collect::<Vec<_>>(), [0, 1, 2, 3]);

    // Fewer streams than writers: no write fails, and ids come and go.
    let few = run(&with, &["directives.kind=streams", "ftl.streams=4", "directives.msl=2"]);
    let placement = few.placement.unwrap();
    assert!(placement.evicted > 1000 && few.waf.pages.unwrap() > streams.waf.pages.unwrap(), "{placement:?}");
    // Streams that nobody enabled.
    let off = run(&with, &["directives.kind=streams", "ftl.streams=4", "directives.enabled=false"]);
    assert_eq!(off.placement.as_ref().unwrap().unplaced_bytes, off.host.write_bytes);
    assert_eq!(off.speed.time.simulated_ns, forced.speed.time.simulated_ns);
    // Without any directive a hint is the number of a log, which the result tells apart, too.
    let direct = run(&with, &["ftl.streams=4"]);
    assert_eq!(direct.placement.as_ref().unwrap().streams.len(), 4);
    assert_eq!(
        direct.waf.pages, streams.waf.pages,
        "stream ids 1 to 4 open in the order of their first writes"
    );
    for path in [with, without] {
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let cases: &[(&[&str], &str)] = &[
        (
            &["directives.kind=stream"],
            "directives.kind = 'stream': expected one of direct, none, streams, fdp",
        ),
        (&["directives.kind=none", "directives.msl=4"], "directives.msl = '4': expected no such key"),
        (
            &["directives.kind=fdp", "directives.allocate=1"],
            "directives.allocate = '1': expected no such key",
        ),
        (
            &["directives.kind=streams", "directives.tail=media"],
            "directives.tail = 'media': expected no such key",
        ),
        (&["directives.kind=streams"], "directives.kind = 'streams': expected a layer with streams below it"),
        (&["directives.kind=fdp"], "directives.kind = 'fdp': expected a layer with reclaim units below it"),
        (
            &["directives.kind=fdp", "ftl.streams=3", "directives.handles=0,4"],
            "directives.handles = '0,4': expected for each of the 1 namespaces handles from 0 to 3",
        ),
        (&["directives.kind=fdp", "ftl.streams=3", "directives.handles=1,1"], "none of them twice"),
        (&["directives.kind=fdp", "ftl.streams=3", "directives.handles=0;1"], "for each of the 1 namespaces"),
        (&["directives.kind=fdp", "ftl.streams=3", "directives.events=3"], "directives.events = '3'"),
        (
            &["directives.kind=streams", "ftl.streams=3", "directives.msl=4"],
            "directives.msl = '4': expected at most 3, the streams of the layer (ftl.streams)",
        ),
        (&["directives.kind=streams", "ftl.streams=3", "directives.allocate=4"], "directives.allocate = '4'"),
        (
            &["directives.kind=streams", "ftl.streams=3", "directives.allocate=1;1"],
            "for each of the 1 namespaces",
        ),
        (
            &[
                "directives.kind=streams",
                "ftl.streams=3",
                "directives.allocate=1",
                "directives.enabled=false",
            ],
            "directives.enabled = true",
        ),
        (
            &["directives.kind=streams", "ftl.streams=3", "directives.write_size=5000"],
            "directives.write_size",
        ),
        (
            &["directives.kind=streams", "ftl.streams=3", "directives.write_size=12KiB"],
            "directives.write_size",
        ),
    ];
    for (sets, expected) in cases {
        let error = match typed(sets).check() {
            Err(error) => error.to_string(),
            Ok(config) => match nandscape_stack::build_subsystem(&config) {
                Err(error) => error.to_string(),
                Ok(_) => panic!("{sets:?} is accepted"),
            },
        };
        assert!(error.contains(expected), "{sets:?}: {error}");
    }
}

#[test]
fn the_table_survives_printing() {
    let sets = &["directives.kind=streams", "ftl.streams=4", "directives.allocate=2", "directives.msl=3"];
    let config = typed(sets).check().unwrap();
    let mut again = Typed::new();
    again.merge_text("printed", &config.to_toml()).unwrap();
    let again = again.check().unwrap();
    assert_eq!(again.hash(), config.hash());
    assert!(config.to_toml().contains("[directives]"));
    // Without the table nothing of it is printed, so that hashes stay what they were.
    assert!(!typed(&[]).check().unwrap().to_toml().contains("directives"));
}

#[test]
fn namespaces_of_several_sets_have_streams_of_their_own() {
    let sets = &[
        "directives.kind=streams",
        "ftl.streams=4",
        "directives.allocate=1;0",
        "sets.layout=horizontal",
        "sets.count=2",
    ];
    let config = typed(sets).check().unwrap();
    let subsystem = nandscape_stack::build_subsystem(&config).unwrap();
    assert_eq!(subsystem.namespaces().len(), 2);
    let placement = subsystem.inspect().placement().unwrap();
    assert!(placement.streams.is_empty() && placement.opened == 0);
    let fdp = &["directives.kind=fdp", "ftl.streams=2", "sets.layout=horizontal", "sets.count=2"];
    let config = typed(fdp).check().unwrap();
    assert!(nandscape_stack::build_subsystem(&config).unwrap().inspect().placement().unwrap().fdp.is_some());
    // A group of two sets would need reclaim groups.
    let config = typed(&[&fdp[..], &["sets.endurance_groups=0,1"]].concat()).check().unwrap();
    let error = nandscape_stack::build_subsystem(&config).err().unwrap().to_string();
    assert!(error.contains("endurance groups of one set each"), "{error}");
}

#[test]
fn placement_identifiers_name_a_reclaim_group_and_what_is_written_there_stays_there() {
    let groups = &["directives.kind=fdp", "ftl.streams=1", "ftl.reclaim_groups=2"];
    // The list is by handle, so that writers 1 and 3 are in group 0 and the others in group 1. Writer 1 of
    // four in fourteen bytes has no more data than another.
    let fdp = run(&trace("groups", true), groups);
    let placement = fdp.placement.as_ref().unwrap();
    let rows: Vec<_> = placement.streams.iter().map(|row| (row.group, row.id, row.log)).collect();
    assert_eq!(rows, [(0, 0, 0), (0, 1, 1), (1, 0, 2), (1, 1, 3)]);
    let bytes: Vec<u64> = placement.streams.iter().map(|row| row.host_bytes).collect();
    assert!(bytes[0] > 2 * bytes[1] && bytes[2] > bytes[3], "{bytes:?} of writers 1, 3, 2 and 4");
    assert_eq!(bytes.iter().sum::<u64>(), fdp.host.write_bytes);
    assert!(placement.streams.iter().all(|row| row.spilled_bytes == 0), "{placement:?}");
    assert!(fdp.waf.pages.unwrap() < 1.05, "WAF {:?}", fdp.waf.pages);

    // Without a directive both groups are written in turn.
    let plain = run(&trace("no-groups", false), groups);
    let placement = plain.placement.unwrap();
    assert_eq!(placement.unplaced_bytes, plain.host.write_bytes);
    let rows: Vec<_> = placement.streams.iter().map(|row| (row.group, row.id, row.writes)).collect();
    assert_eq!(rows, [(0, 0, 12_000), (1, 0, 12_000)]);

    // All ids of a policy: four, of which the first two mean the same as none.
    let typed = typed(&[groups, &["host.policy=write-hint"][..]].concat()).check().unwrap();
    let setup = typed.policy_setup(0);
    assert_eq!((setup.streams, setup.id_offset), (4, 2));
    let error = support::typed(DEVICE, &["directives.kind=streams", "ftl.streams=1", "ftl.reclaim_groups=2"]);
    let error = replay(&error.check().unwrap(), "uniform:count=10", &RunOptions::default()).unwrap_err();
    assert!(error.to_string().contains("fdp or direct with ftl.reclaim_groups"), "{error}");
}

#[test]
fn a_reader_of_one_reclaim_group_is_not_held_up_by_the_collection_of_another() {
    let trace = |name: &str, has_writer: bool, has_group: bool| {
        let mut text = String::from("ts_us,op,offset,len,hint\n");
        let hint = if has_group { 2 } else { 1 };
        // What is read, and what is overwritten: together a group's share.
        for at in 0..2800u64 {
            let _ = writeln!(text, "{},W,{},4096,{hint}", at * 1000, (4000 + at) * 4096);
        }
        for at in 0..30_000u64 {
            let time = 4_000_000 + at * 1000;
            if has_writer {
                let page = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 3500;
                let _ = writeln!(text, "{time},W,{},4096,1", page * 4096);
            }
            if at % 4 == 0 {
                let _ = writeln!(text, "{time},R,{},4096,0", (4000 + at * 7919 % 2800) * 4096);
            }
        }
        let path = std::env::temp_dir().join(format!("nandscape-{}-{name}.csv", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path
    };
    let keys = ["directives.kind=fdp", "ftl.streams=1", "ftl.reclaim_groups=2", "workload.depth=0"];
    let reads = |name: &str, has_writer, has_group| {
        let run = run(&trace(name, has_writer, has_group), &keys);
        (run.latency_ns.read.max, run)
    };
    let (alone, _) = reads("alone", false, true);
    let (apart, run_apart) = reads("apart", true, true);
    let (together, _) = reads("together", true, false);
    assert!(run_apart.layer.gc.runs > 100, "there is collection: {:?}", run_apart.layer.gc);
    // Groups share the channels.
    assert!(apart < alone + alone / 2, "{apart} ns beside another group's collection, {alone} ns alone");
    assert!(together > 3 * apart, "{together} ns in the same group, {apart} ns apart");
}
