//! Mapping units smaller than a page (`ftl.unit`): write amplification in bytes, time, and what is refused.

use crate::support;
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op, SimTime, Subsystem};
use nandscape_sim::RunResult;
use nandscape_stack::config::{ConfigError, Typed};
use nandscape_stack::storing::{self, Storage};
use nandscape_stack::{RunOptions, build_stored, replay};
use nandscape_testkit::closed_forms::greedy;

const DEVICE: [&str; 11] = [
    "device.channels=2",
    "device.dies_per_channel=2",
    "device.planes_per_die=1",
    "device.blocks_per_plane=64",
    "device.pages_per_block=64",
    "device.page=16KiB",
    "device.sector=4KiB",
    "device.endurance=endless",
    "device.partial_transfer=true",
    "device.timing.channel_bytes_per_s=1GB",
    "workload.depth=8",
];
const UNIT: &str = "ftl.unit=4KiB";
/// Read-first with a host link and a protected write buffer.
const BUFFERED: [&str; 7] = [
    "device.timing.scheduler=read-first",
    "device.timing.write_buffer=1MiB",
    "device.timing.write_buffer_kind=protected",
    "device.timing.host_bytes_per_s=4GB",
    "device.timing.host_write=2us",
    "device.timing.host_read=2us",
    "device.timing.host_completion=1us",
];

fn typed(pairs: &[&str]) -> Typed {
    support::typed(&DEVICE, pairs)
}

fn run(workload: &str, pairs: &[&str]) -> RunResult {
    support::run(workload, &typed(pairs))
}

fn waf(result: &RunResult) -> f64 {
    result.waf.bytes.unwrap()
}

/// The closed form in mapping units, with the share of the space that the layer really has.
fn expected(result: &RunResult) -> f64 {
    let cost = &result.cost;
    let units = (cost.total_blocks - cost.reserve_blocks) * cost.pages_per_block;
    greedy(cost.logical_pages as f64 / units as f64, cost.pages_per_block as u32)
}

#[test]
fn random_writes_of_a_unit_cost_what_the_closed_form_for_units_says() {
    let load = "uniform:bs=4k,span=100%,count=1M";
    let precondition = "workload.precondition=fill+uniform:4x";
    for (op, scheduler) in [("0.28", "fifo"), ("0.07", "fifo"), ("0.28", "read-first")] {
        let (op, scheduler) = (format!("ftl.op={op}"), format!("device.timing.scheduler={scheduler}"));
        let result = run(load, &[precondition, UNIT, &op, &scheduler, "device.blocks_per_plane=256"]);
        let (measured, expected) = (waf(&result), expected(&result));
        assert!((measured / expected - 1.0).abs() < 0.02, "{op}: {measured} instead of {expected}");
        assert_eq!(result.waf.pages, Some(measured), "a host write is a unit");
        assert_eq!(result.cost.pages_per_block, 256);
        assert!(!result.notes.iter().any(|note| note.contains("ftl.unit")), "{:?}", result.notes);
    }
}

#[test]
fn with_pages_as_units_the_same_writes_cost_four_times_as_much_and_a_note_says_why() {
    let load = "uniform:bs=4k,span=100%,count=400k";
    let precondition = "workload.precondition=fill+uniform:4x";
    let units = run(load, &[precondition, UNIT]);
    for page in [&[precondition][..], &[precondition, "ftl.unit=page"], &[precondition, "ftl.unit=16KiB"]] {
        let pages = run(load, page);
        let ratio = waf(&pages) / waf(&units);
        assert!((ratio / 4.0 - 1.0).abs() < 0.05, "{ratio}");
        let note = pages.notes.iter().find(|note| note.contains("ftl.unit")).unwrap();
        assert!(note.contains("16 KiB") && note.contains("4 KiB"), "{note}");
    }
}

#[test]
fn writes_in_sequence_and_mixed_sizes_are_counted_in_bytes() {
    for scheduler in ["fifo", "read-first"] {
        let scheduler = format!("device.timing.scheduler={scheduler}");
        for size in ["4k", "16k", "64k", "12k"] {
            let load = format!("sequential:bs={size},span=100%,count=3k");
            let result = run(&load, &[&scheduler, UNIT]);
            assert!((waf(&result) - 1.0).abs() < 1e-9, "{size}: {}", waf(&result));
            assert_eq!(result.flash.programs * 4096, result.host.write_bytes, "{size}");
        }
        // Half a unit is written with a read of the other half.
        let load = "uniform:bs=2k,span=25%,count=40k";
        let result = run(load, &[&scheduler, UNIT, "device.sector=512", "workload.precondition=fill"]);
        assert!(result.flash.by_cause["host"].reads == 40_000, "{:?}", result.flash);
        assert_eq!(result.flash.by_cause["host"].programs, 40_000, "{:?}", result.flash);
    }
}

#[test]
fn units_of_one_request_in_one_page_are_one_array_read() {
    // A read of the array takes 60 us, a unit 4.096 us on the bus.
    let time = |size: &str, extra: &[&str]| {
        let load = format!("sequential:bs={size},span=100%,read=1,count=500");
        let pairs = ["workload.precondition=fill", "workload.depth=1", "device.timing.read=60us"];
        let pairs: Vec<&str> = pairs.iter().chain(extra).copied().collect();
        run(&load, &pairs).latency_ns.read.mean
    };
    for scheduler in ["device.timing.scheduler=fifo", "device.timing.scheduler=read-first"] {
        let near = |time: f64, expected: f64| assert!((time / expected - 1.0).abs() < 0.005, "{time}");
        near(time("4k", &[scheduler, UNIT]), 64_096.0);
        near(time("16k", &[scheduler, UNIT]), 60_000.0 + 16_384.0);
        near(time("16k", &[scheduler]), 60_000.0 + 16_384.0);
    }
}

#[test]
fn a_write_is_answered_when_its_unit_is_in_the_controller() {
    for scheduler in ["fifo", "read-first"] {
        let scheduler = format!("device.timing.scheduler={scheduler}");
        let mut pairs = BUFFERED.to_vec();
        pairs[0] = &scheduler;
        pairs.extend([UNIT, "workload.depth=1"]);
        let result = run("uniform:bs=4k,span=100%,count=250", &pairs);
        let latency = result.latency_ns.write;
        // 2 us to the link, 4096 B at 4 GB/s, 1 us back, whichever unit of its page it is.
        assert!((latency.mean - 4024.0).abs() < 5.0, "{scheduler}: {latency:?}");
        assert!(latency.max < 4100, "{scheduler}: {latency:?}");
    }
}

#[test]
fn writes_beyond_what_the_flash_programs_wait_for_the_buffer() {
    for scheduler in ["fifo", "read-first"] {
        let scheduler = format!("device.timing.scheduler={scheduler}");
        let mut pairs = BUFFERED.to_vec();
        pairs[0] = &scheduler;
        pairs.extend([UNIT, "workload.depth=32", "ftl.frontiers=4"]);
        let result = run("sequential:bs=4k,span=100%,count=30k", &pairs);
        // 4 dies program a page in 700 us and its transfer.
        let rate = result.speed.throughput.write_bytes_per_s;
        let flash = 4.0 * 16384.0 / 716.4e-6;
        assert!((rate / flash - 1.0).abs() < 0.03, "{scheduler}: {rate} instead of {flash}");
    }
}

#[test]
fn collection_programs_no_more_than_its_dies_do() {
    let mut typed = Typed::new();
    typed.merge_preset("dc-tlc-28op").unwrap();
    // Short blocks, little room to spare and a few hot pages: many copies wait for each other.
    let shape = ["device.blocks_per_plane=48", "device.pages_per_block=24", "device.timing.erase=125us"];
    let load = ["workload.depth=32", "workload.precondition=fill+uniform:1x"];
    for pair in shape.iter().chain(&load) {
        typed.set_pair(pair).unwrap();
    }
    let mut rates = Vec::new();
    for op in ["0.07", "0.28"] {
        typed.set("ftl.op", op).unwrap();
        let result = support::run("zipf:bs=8k,span=100%,count=200k", &typed);
        let seconds = result.speed.time.simulated_ns as f64 / 1e9;
        let programmed = result.flash.programs as f64 * 4096.0 / seconds;
        // 32 dies program 96 KiB in 2.1 ms; what the controller holds at the end is the rest.
        let most = 32.0 * 98304.0 / 2.1e-3;
        assert!(programmed < 1.02 * most, "{op}: {programmed} B/s, and the dies do {most}");
        rates.push(result.speed.throughput.write_bytes_per_s);
    }
    assert!(rates[0] < rates[1], "less room is slower: {rates:?}");
}

#[test]
fn steady_random_writes_use_the_dies_well() {
    let mut typed = Typed::new();
    typed.merge_preset("dc-tlc-28op").unwrap();
    let shape = ["device.blocks_per_plane=171", "device.pages_per_block=96", "device.timing.erase=500us"];
    let load = ["workload.depth=256", "workload.precondition=fill+uniform:1x"];
    for pair in shape.iter().chain(&load) {
        typed.set_pair(pair).unwrap();
    }
    let result = support::run("uniform:bs=4k,span=100%,count=200k", &typed);
    let writes = result.flash.programs as f64;
    // 32 dies program 24 units in 2.1 ms, and read what they copy: 60 us for a page, with at most 4 units.
    let copies = writes - 200_000.0;
    let least_s = (writes / 24.0 * 2.1e-3 + copies / 4.0 * 60e-6) / 32.0;
    let share = least_s / (result.speed.time.simulated_ns as f64 / 1e9);
    assert!((0.7..1.0).contains(&share), "dies work {share} of the time");
}

#[test]
fn pages_of_one_shot_programs_and_whole_transfers_hold_units() {
    let pairs = ["device.timing.program_pages=4", "device.partial_transfer=false", UNIT];
    let pairs: Vec<&str> = BUFFERED.iter().chain(&pairs).copied().collect();
    let result = run("uniform:bs=4k,span=100%,count=200k", &pairs);
    assert!(waf(&result) > 1.0 && result.flash.erases > 0);
}

#[test]
fn what_units_cannot_go_with_is_refused_by_name() {
    let without = |pairs: &[&str], part: &str| {
        let error: ConfigError = match typed(pairs).check() {
            Err(error) => error,
            Ok(config) => replay(&config, "uniform:bs=4k,count=1", &RunOptions::default())
                .map(|_| ())
                .map_err(|error| ConfigError::Unsuited(error.to_string()))
                .unwrap_err(),
        };
        let error = error.to_string();
        assert!(error.contains("ftl.unit") && error.contains(part), "{error}");
    };
    without(&["ftl.unit=6KiB"], "divide the page of 16384 bytes");
    without(&["ftl.unit=1KiB"], "device.sector, 4096 bytes");
    without(&["ftl.unit=32KiB"], "divide the page");
    without(&["ftl.unit=0"], "4KiB");
    without(&["ftl.unit=four"], "page, or a size");
    without(&[UNIT, "device.compression=0.5"], "device.compression");
    without(&[UNIT, "device.out_of_order_program=true"], "device.out_of_order_program");
    without(&[UNIT, "device.timing.write_buffer=1MiB"], "write_buffer_kind");
    without(&[UNIT, "stack.kind=host-ftl"], "stack.kind");
}

#[test]
fn failing_programs_and_sets_of_dies_work_on_units() {
    let load = "uniform:bs=4k,span=100%,count=100k";
    let failing = run(load, &[UNIT, "faults.program=0.0001", "faults.slow=1:3"]);
    assert!(failing.flash.programs >= 100_000, "{:?}", failing.flash);
    let sets = run(load, &[UNIT, "sets.layout=vertical", "sets.count=2", "namespaces.count=1"]);
    assert_eq!(sets.cost.pages_per_block, 256);
}

#[test]
fn an_image_with_units_starts_with_what_was_flushed() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Storage::Image(dir.path().join("flash.img"));
    let pairs = ["device.blocks_per_plane=12", "device.pages_per_block=16", UNIT];
    let page = |page: u64| -> Vec<u8> { (0..4096).map(|byte| (byte ^ (page * 7)) as u8).collect() };
    let submit = |stack: &mut dyn Subsystem, op, number: u64, payload: Payload<'_>| {
        let extent = if op == Op::Flush { Extent::new(0, 0) } else { Extent::new(number * 4096, 4096) };
        let command = BlockCommand::new(op, extent, Hint::default());
        stack.submit(0, command.into(), payload, SimTime::ZERO).unwrap();
    };
    let config = storing::resolve(&typed(&pairs), &storage).unwrap();
    let mut stored = build_stored(&config, &storage).unwrap();
    // Five units: the second page is not full when the process ends.
    for number in 0..5 {
        submit(&mut *stored.subsystem, Op::Write, number, Payload::Write(&page(number)));
    }
    submit(&mut *stored.subsystem, Op::Flush, 0, Payload::None);
    drop(stored);
    let config = storing::resolve(&typed(&pairs), &storage).unwrap();
    let mut stored = build_stored(&config, &storage).unwrap();
    let mut data = vec![0; 4096];
    for number in 0..5 {
        submit(&mut *stored.subsystem, Op::Read, number, Payload::Read(&mut data));
        assert!(data == page(number), "unit {number}");
    }
    stored.subsystem.check_invariants();
}
