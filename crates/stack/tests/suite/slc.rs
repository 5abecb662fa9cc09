//! `client-tlc`: the cliff behind the SLC cache, pauses that empty it, what a flush costs, its images, notes,
//! and what is refused. The drive has 16 GiB here and shorter blocks, so that as many can be open as on the
//! whole one.

use crate::support;
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op, SimTime, Subsystem};
use nandscape_sim::RunResult;
use nandscape_stack::build_stored;
use nandscape_stack::storing::{self, Storage};
use std::fmt::Write as _;

const DEVICE: [&str; 4] = [
    "device.preset=client-tlc",
    "device.blocks_per_plane=683",
    "device.pages_per_block=384",
    "ftl.slc_blocks=32",
];
const CACHE: u64 = 256 << 20;

fn run(workload: &str, pairs: &[&str]) -> RunResult {
    support::run(workload, &support::typed(&DEVICE, pairs))
}

/// A native CSV of these lines.
fn run_lines(lines: &str, pairs: &[&str]) -> RunResult {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.csv");
    std::fs::write(&path, format!("ts_us,op,offset,len\n{lines}")).unwrap();
    run(path.to_str().unwrap(), pairs)
}

fn notes(result: &RunResult) -> Vec<&str> {
    result.trust.iter().map(|note| note.check.as_str()).filter(|check| *check == "slc-cache").collect()
}

fn seconds(result: &RunResult) -> f64 {
    result.speed.time.simulated_ns as f64 / 1e9
}

#[test]
fn sequential_writes_fall_to_the_rate_of_tlc_behind_the_cache() {
    let inside = run("sequential:bs=128k,size=240m", &[]);
    let beyond = run("sequential:bs=128k,size=1g", &[]);
    let fast = inside.host.write_bytes as f64 / seconds(&inside) / 1e6;
    let more = beyond.host.write_bytes - inside.host.write_bytes;
    let slow = more as f64 / (seconds(&beyond) - seconds(&inside)) / 1e6;
    assert!((1800.0..2100.0).contains(&fast), "{fast} MB/s into the cache");
    assert!((750.0..1000.0).contains(&slow), "{slow} MB/s past it");
    let slc = beyond.layer.slc.unwrap();
    assert_eq!((slc.capacity_bytes, slc.host_pages * 4096), (CACHE, CACHE));
    assert_eq!(beyond.flash.programs * 4096, 1 << 30, "nothing is folded while the host writes");
    assert_eq!((notes(&inside), notes(&beyond)), (vec!["slc-cache"], vec!["slc-cache"]));
}

#[test]
fn a_pause_empties_the_cache_and_its_copies_count() {
    // Two bursts of 240 MiB, the second after a pause.
    let load = |pause_us: u64| {
        let mut lines = String::new();
        for number in 0..3840 {
            let at = number * 40 + if number < 1920 { 0 } else { pause_us };
            writeln!(lines, "{at},W,{},131072", number * 131_072).unwrap();
        }
        run_lines(&lines, &["workload.depth=0"])
    };
    let (without, with) = (load(0), load(10_000_000));
    assert!(without.layer.slc.unwrap().host_pages * 4096 <= CACHE, "{:?}", without.layer.slc);
    assert_eq!(with.layer.slc.unwrap().host_pages * 4096, 480 << 20, "both bursts went to the cache");
    let fold = with.flash.by_cause["fold"];
    // What is in blocks that are not full stays: at most one on each die.
    assert!(fold.programs * 4096 > 240 << 20 >> 1 && fold.programs * 4096 <= 240 << 20, "{fold:?}");
    assert!(fold.erases >= 15, "{fold:?}");
    assert!(with.waf.bytes.unwrap() > 1.25, "the copies count: {:?}", with.waf);
    assert_eq!(without.waf.bytes, Some(1.0));
    assert!(!without.flash.by_cause.contains_key("fold"));
    assert!(with.latency_ns.write.p99 < without.latency_ns.write.p99, "the second burst is faster");
    assert_eq!((notes(&with).len(), notes(&without).len()), (0, 1));
}

#[test]
fn a_flush_costs_a_program_where_the_buffer_is_volatile() {
    let mut lines = String::new();
    for number in 0..400u64 {
        writeln!(lines, "0,W,{},4096\n0,F,0,0", number * 7 % 400 * 4096).unwrap();
    }
    let each = |pairs: &[&str]| {
        let result = run_lines(&lines, &[pairs, &["workload.depth=1"]].concat());
        let (write, flush) = (&result.latency_ns.write, result.latency_ns.flush.as_ref().unwrap());
        assert_eq!((write.count, flush.count), (400, 400));
        // One after the other.
        let sum = ((write.mean + flush.mean) * 400.0).round() as u64;
        assert_eq!(sum, result.speed.time.simulated_ns, "all time is that of a write or of its flush");
        sum / 400
    };
    let volatile = each(&[]);
    let protected = each(&["device.timing.write_buffer_kind=protected"]);
    // A program with one bit a cell and the data on the bus, against the way to the buffer.
    assert!((220_000..260_000).contains(&volatile), "{volatile} ns for a write and its flush");
    assert!(protected < 12_000, "{protected} ns");
    let past = each(&["ftl.slc_blocks=0"]);
    assert!(past > 1_600_000, "{past} ns where the flash has three bits a cell");
}

#[test]
fn reads_of_the_cache_take_the_time_of_one_bit_a_cell() {
    let read = |pairs: &[&str]| {
        let small = ["device.blocks_per_plane=128", "workload.depth=1", "workload.precondition=fill"];
        // What is written first is in the cache.
        run("uniform:bs=4k,span=200m,count=2000,read=100%", &[&small, pairs].concat()).latency_ns.read.p50
    };
    let (cache, others) = (read(&[]), read(&["ftl.slc_blocks=0"]));
    assert_eq!(others - cache, 60_000 - 25_000, "{cache} ns against {others}");
}

#[test]
fn an_image_with_a_cache_starts_with_what_was_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let storage = Storage::Image(folder.path().join("flash.img"));
    let small = ["device.blocks_per_plane=12", "device.pages_per_block=48", "ftl.op=0.4"];
    let typed = support::typed(&DEVICE, &[&small[..], &["ftl.slc_blocks=1"]].concat());
    let page = |page: u64| -> Vec<u8> { (0..4096).map(|byte| (byte ^ (page * 7)) as u8).collect() };
    let submit = |stack: &mut dyn Subsystem, op, number: u64, payload: Payload<'_>| {
        let extent = if op == Op::Flush { Extent::new(0, 0) } else { Extent::new(number * 4096, 4096) };
        let command = BlockCommand::new(op, extent, Hint::default());
        stack.submit(0, command.into(), payload, SimTime::ZERO).unwrap();
    };
    // 16 blocks of 16 pages are the cache; more goes past it.
    for (round, pages) in [(0, 100), (1, 400)] {
        let config = storing::resolve(&typed, &storage).unwrap();
        let mut stored = build_stored(&config, &storage).unwrap();
        let mut data = vec![0; 4096];
        for number in 0..100 * round {
            submit(&mut *stored.subsystem, Op::Read, number, Payload::Read(&mut data));
            assert!(data == page(number), "page {number} after a start");
        }
        for number in 0..pages {
            submit(&mut *stored.subsystem, Op::Write, number, Payload::Write(&page(number)));
        }
        submit(&mut *stored.subsystem, Op::Flush, 0, Payload::None);
        stored.subsystem.check_invariants();
    }
    let config = storing::resolve(&typed, &storage).unwrap();
    let mut stored = build_stored(&config, &storage).unwrap();
    let mut data = vec![0; 4096];
    for number in 0..400 {
        submit(&mut *stored.subsystem, Op::Read, number, Payload::Read(&mut data));
        assert!(data == page(number), "page {number}");
    }
    stored.subsystem.check_invariants();
}

#[test]
fn a_cache_without_times_of_its_own_is_refused() {
    for (pairs, key) in [
        (&["ftl.slc_blocks=2"][..], "ftl.slc_blocks"),
        (&["device.timing.scheduler=read-first", "device.timing.slc_read=25us"], "device.timing.slc_program"),
        (&["device.timing.slc_read=25us", "device.timing.slc_program=200us"], "device.timing.slc_program"),
    ] {
        let error = support::typed(&[], pairs).check().unwrap_err().to_string();
        assert!(error.starts_with(key), "{error}");
    }
    let other = support::typed(&[], &["ftl.kind=pm-gcl", "ftl.slc_blocks=2"]);
    let error = other.check().unwrap_err().to_string();
    assert!(error.starts_with("unknown key 'ftl.slc_blocks' for pm-gcl"), "{error}");
}
