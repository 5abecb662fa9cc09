//! `--save-state` and `--load-state`: a run that loads gives what the run that saved gives, whatever the
//! layers, policies and schedulers; and what is not the state of this device is refused.

use crate::support;
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::state::{Sink, Source};
use nandscape_core::{
    Archive, BlockCommand, Extent, Hint, Op, SimTime, StateError, StateResult, Subsystem, wait,
};
use nandscape_ftl::{registry, victim, wear};
use nandscape_media::scheduler::SCHEDULERS;
use nandscape_stack::{
    CompareOptions, RunError, RunOptions, StackConfig, StateUse, build_subsystem, compare, replay,
};
use serde_json::Value;
use std::path::Path;

const DEVICE: [&str; 11] = [
    "device.channels=2",
    "device.dies_per_channel=2",
    "device.planes_per_die=1",
    "device.blocks_per_plane=16",
    "device.pages_per_block=16",
    "device.page=16KiB",
    "device.sector=4KiB",
    "device.endurance=endless",
    "device.partial_transfer=true",
    "workload.depth=8",
    "workload.precondition=fill+uniform:1x",
];
const LOAD: &str = "zipf:bs=16k,span=100%,count=1500";
const HALF: &str = "zipf:bs=16k,span=40%,count=700";

fn config(pairs: &[&str]) -> StackConfig {
    support::typed(&DEVICE, pairs).check().unwrap_or_else(|error| panic!("{pairs:?}: {error}"))
}

fn run(config: &StackConfig, load: &str, state: Option<StateUse<'_>>) -> Result<Value, RunError> {
    let options = RunOptions { state, with_detail: true, ..RunOptions::default() };
    let result = replay(config, load, &options)?.result;
    assert_eq!(result.error, None);
    let mut document = serde_json::to_value(&result).unwrap();
    document["time"] = document["time"]["simulated_ns"].take();
    Ok(document)
}

fn error(config: &StackConfig, state: StateUse<'_>) -> String {
    run(config, LOAD, Some(state)).unwrap_err().to_string()
}

/// Runs without a state, saving one and loading it; gives the size of the file.
fn check(pairs: &[&str], load: &str) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("device.state");
    let config = config(pairs);
    let plain = run(&config, load, None).unwrap();
    let saved = run(&config, load, Some(StateUse::Save(&file))).unwrap();
    assert_eq!(saved, plain, "{pairs:?}: saving changes a run");
    let mut loaded = run(&config, load, Some(StateUse::Load(&file))).unwrap();
    let state = loaded.as_object_mut().unwrap().remove("state").expect("a state that was loaded");
    assert_eq!(state["precondition"], plain["config"]["workload"]["precondition"]);
    let note = loaded["notes"].as_array_mut().unwrap().pop().unwrap();
    assert!(note.as_str().unwrap().contains("was loaded from"), "{note}");
    assert_eq!(loaded, plain, "{pairs:?}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");
    bytes_agree(&config);
    file.metadata().unwrap().len()
}

#[derive(Default)]
struct Bytes {
    bytes: Vec<u8>,
    at: usize,
}

impl Sink for Bytes {
    fn put(&mut self, bytes: &[u8]) -> StateResult {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

impl Source for Bytes {
    fn take(&mut self, bytes: &mut [u8]) -> StateResult {
        let from = self.bytes[self.at..].get(..bytes.len());
        bytes.copy_from_slice(from.ok_or_else(|| StateError::File("the end".to_owned()))?);
        self.at += bytes.len();
        Ok(())
    }

    fn offset(&self) -> u64 {
        self.at as u64
    }

    fn left(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }
}

fn saved(subsystem: &mut dyn Subsystem) -> Vec<u8> {
    let mut bytes = Bytes::default();
    subsystem.state(&mut Archive::Save(&mut bytes)).unwrap();
    bytes.bytes
}

/// Random writes and trims of whole pages in the first half, one at a time, to the namespaces in turn, with
/// idle time between them.
fn drive(subsystem: &mut dyn Subsystem, seed: u64) {
    let mut rng = seeded(seed);
    let mut at = SimTime::ZERO;
    for number in 0..1200_u32 {
        let namespace = number % subsystem.namespaces().len() as u32;
        let info = &subsystem.namespaces()[namespace as usize];
        let page = u64::from(info.page_bytes);
        let place = below(&mut rng, info.capacity_bytes / page / 2) * page;
        let op = if below(&mut rng, 10) == 0 { Op::Trim } else { Op::Write };
        let command = BlockCommand::new(op, Extent::new(place, page), Hint(number as u16 % 3));
        let done = subsystem.submit(namespace, command.into(), Payload::None, at).unwrap().done;
        at = wait(subsystem, done, at);
        if number % 16 == 0 {
            subsystem.idle(at, at + 10_000_000).unwrap();
            at += 10_000_000;
        }
    }
    subsystem.advance(SimTime::MAX, &mut Vec::new());
    subsystem.reset_counters(SimTime::ZERO);
}

/// What a device has come to be is the same byte for byte, right after the state was loaded, and when both
/// went on.
fn bytes_agree(config: &StackConfig) {
    let mut first = build_subsystem(config).unwrap();
    drive(&mut *first, 1);
    let bytes = saved(&mut *first);
    let mut second = build_subsystem(config).unwrap();
    second.reset_counters(SimTime::ZERO);
    let mut source = Bytes { bytes, at: 0 };
    second.state(&mut Archive::Load(&mut source)).unwrap();
    assert_eq!(source.left(), 0);
    second.check_invariants();
    assert!(saved(&mut *second) == source.bytes, "right after the state was loaded");
    drive(&mut *first, 2);
    drive(&mut *second, 2);
    assert!(saved(&mut *first) == saved(&mut *second), "when both went on");
}

#[test]
fn every_layer_with_every_scheduler_goes_on_as_if_it_had_not_been_loaded() {
    for layer in registry::infos() {
        for scheduler in SCHEDULERS {
            let scheduler = match scheduler.info.name {
                "serial" => "device.timing.mode=serial".to_owned(),
                name => format!("device.timing.scheduler={name}"),
            };
            let kind = format!("ftl.kind={}", layer.name);
            let is_thesis = layer.name != "page-map";
            let order = format!("device.out_of_order_program={is_thesis}");
            if is_thesis {
                // Without spare space a device that is full takes no overwrite.
                let half = "workload.precondition=fill:50%+uniform:0.5x";
                check(&[&kind, &scheduler, &order, half], HALF);
                check(&[&kind, &scheduler, &order, half, "ftl.gc_order=copy-first"], HALF);
                let background = ["ftl.background_gc=true", "ftl.background_watermark=50%"];
                check(&[&[&*kind, &scheduler, &order, half], &background[..]].concat(), HALF);
            } else {
                check(&[&kind, &scheduler], LOAD);
            }
        }
    }
}

#[test]
fn every_victim_wear_and_allocation_policy_goes_on() {
    for victim in victim::VICTIMS {
        let victim = format!("ftl.victim={}", victim.info.name);
        check(&[&victim], LOAD);
        check(&[&victim, "ftl.allocation=static", "ftl.op=0.5"], LOAD);
    }
    for wear in wear::WEAR {
        let wear = format!("ftl.wear={}", wear.info.name);
        check(&[&wear, "ftl.victim=fifo"], LOAD);
    }
    check(&["ftl.wear=static", "ftl.wear_threshold=1"], "hotcold:bs=16k,f=5%,r=95%,count=1500");
}

#[test]
fn everything_else_that_a_drive_has_goes_on() {
    const BUFFER: [&str; 4] = [
        "device.timing.write_buffer=256KiB",
        "device.timing.host_bytes_per_s=4GB",
        "device.timing.host_write=2us",
        "device.timing.host_completion=1us",
    ];
    for scheduler in ["fifo", "read-first"] {
        let scheduler = format!("device.timing.scheduler={scheduler}");
        for kind in ["protected", "volatile"] {
            let kind = format!("device.timing.write_buffer_kind={kind}");
            check(&[&BUFFER[..], &[&scheduler, &kind]].concat(), LOAD);
        }
        check(&[&scheduler, "ftl.unit=4KiB"], "zipf:bs=4k,span=100%,count=1500");
        check(&[&scheduler, "device.compression=0.5"], LOAD);
        check(&[&scheduler, "ftl.gc_step=4", "ftl.background_gc=true"], LOAD);
        check(&[&scheduler, "faults.slow=1:3"], LOAD);
    }
    let paced = ["device.timing.scheduler=read-first", "device.timing.write_buffer_kind=protected"];
    let more = ["device.timing.program_pages=2", "device.timing.program_jitter=10%"];
    check(&[&BUFFER[..], &paced, &more].concat(), LOAD);
}

#[test]
fn streams_placement_handles_and_sets_go_on() {
    let large = ["device.blocks_per_plane=64", "ftl.op=0.5"];
    for stack in ["stack.kind=streams", "stack.kind=fdp"] {
        check(&[&large[..], &[stack]].concat(), LOAD);
    }
    for split in ["ftl.split=global", "ftl.split=auto", "ftl.split=0.5,0.2"] {
        check(&[&large[..], &["ftl.streams=2", split]].concat(), LOAD);
    }
    for way in ["ftl.collect=piece", "ftl.reclaim_groups=2"] {
        check(&[&large[..], &["stack.kind=fdp", "ftl.streams=2", way]].concat(), LOAD);
    }
    bytes_agree(&config(&["sets.layout=horizontal", "namespaces.count=4"]));
}

#[test]
fn what_cannot_be_saved_says_so_before_anything_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("device.state");
    for (stack, what) in [("zone-map", "zone-map cannot"), ("pblk", "pblk cannot")] {
        let stack = format!("stack.kind={stack}");
        let pairs = [&stack, "device.blocks_per_plane=32", "workload.precondition=fill"];
        let config = support::typed(&[], &pairs).check().unwrap();
        let error = error(&config, StateUse::Save(&file));
        assert!(error.contains(what) && error.contains("be saved yet"), "{error}");
        assert!(!file.exists());
    }
    let error = error(&config(&["workload.precondition=none"]), StateUse::Save(&file));
    assert!(error.contains("nothing to save: expected --precondition"), "{error}");
}

#[test]
fn a_run_that_names_no_preconditioning_takes_that_of_the_state() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("device.state");
    let saved = run(&config(&[]), LOAD, Some(StateUse::Save(&file))).unwrap();
    let loaded = run(&config(&["workload.precondition=none"]), LOAD, Some(StateUse::Load(&file))).unwrap();
    assert_eq!(loaded["config"], saved["config"]);
    assert_eq!(loaded["config_hash"], saved["config_hash"]);
    assert_eq!(loaded["waf"], saved["waf"]);
    // Another load begins with the same state.
    let other = "uniform:bs=16k,count=700";
    let plain = run(&config(&[]), other, None).unwrap();
    let loaded = run(&config(&[]), other, Some(StateUse::Load(&file))).unwrap();
    assert_eq!((&loaded["flash"], &loaded["latency_ns"]), (&plain["flash"], &plain["latency_ns"]));
}

#[test]
fn another_configuration_is_refused_with_the_key_and_both_values() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("device.state");
    run(&config(&[]), LOAD, Some(StateUse::Save(&file))).unwrap();
    for (pair, key, saved, present) in [
        ("device.channels=1", "device.channels", "2", "1"),
        ("device.timing.program=500us", "device.timing.program", "", "500us"),
        ("ftl.op=0.3", "ftl.op", "0.28", "0.3"),
        ("ftl.victim=fifo", "ftl.victim", "greedy", "fifo"),
        ("ftl.kind=pm-gcl", "ftl", "", ""),
        ("workload.seed=7", "workload.seed", "42", "7"),
        ("workload.precondition=fill", "workload.precondition", "fill+uniform:1x", "fill"),
        ("ftl.streams=1", "ftl.streams", "0", "1"),
    ] {
        let error = error(&config(&[pair]), StateUse::Load(&file));
        let words = [format!("saved with {key}"), format!("{saved}: expected {key}"), format!("= {present}")];
        assert!(words.iter().all(|word| error.contains(word)), "{pair}: {error}");
        assert!(error.contains("device.state"), "{error}");
    }
    // What the workload is, and how deep its queue, does not matter.
    run(&config(&["workload.depth=1"]), "uniform:bs=16k,count=100", Some(StateUse::Load(&file))).unwrap();
}

/// A device whose state is small.
fn tiny() -> StackConfig {
    let shape = ["device.channels=1", "device.dies_per_channel=1", "device.pages_per_block=4"];
    config(&[&shape[..], &["device.blocks_per_plane=16", "ftl.op=1.0"]].concat())
}

fn load_bytes(path: &Path, bytes: &[u8]) -> Result<Value, RunError> {
    std::fs::write(path, bytes).unwrap();
    run(&tiny(), "uniform:bs=16k,count=20", Some(StateUse::Load(path)))
}

#[test]
fn every_changed_byte_and_every_end_is_an_error_with_file_and_offset() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("device.state");
    run(&tiny(), "uniform:bs=16k,count=20", Some(StateUse::Save(&file))).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.len() < 16 << 10, "{} bytes are too many for this test", bytes.len());
    load_bytes(&file, &bytes).unwrap();
    for at in 0..bytes.len() {
        for bits in [1, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bits;
            let error = load_bytes(&file, &damaged).expect_err("a damaged state").to_string();
            assert!(error.contains("device.state: byte ") && error.contains("expected"), "{at}: {error}");
        }
    }
    for end in 0..bytes.len() {
        let error = load_bytes(&file, &bytes[..end]).expect_err("a part of a state").to_string();
        assert!(error.contains("device.state: byte ") && error.contains("expected"), "{end}: {error}");
    }
    let error = load_bytes(&file, &[&bytes[..], &[0]].concat()).unwrap_err().to_string();
    assert!(error.contains("expected"), "{error}");
    let mut newer = bytes;
    newer[8] = 2;
    let error = load_bytes(&file, &newer).unwrap_err().to_string();
    assert!(error.contains("byte 8: format version 2: expected 1"), "{error}");
    let error =
        load_bytes(&file, b"ts_us,op,offset,len\n1,W,0,4096\nand more, to have a header").unwrap_err();
    assert!(error.to_string().contains("byte 0: 'ts_us,op'"), "{error}");
}

#[test]
fn nothing_but_a_state_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.csv");
    std::fs::write(&file, "ts_us,op,offset,len\n").unwrap();
    let error = error(&tiny(), StateUse::Save(&file));
    assert!(error.contains("trace.csv: it exists and holds no state"), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), b"ts_us,op,offset,len\n");
    let state = folder.path().join("device.state");
    for _ in 0..2 {
        run(&tiny(), "uniform:bs=16k,count=20", Some(StateUse::Save(&state))).unwrap();
    }
}

#[test]
fn several_devices_have_a_folder_and_not_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let states = folder.path().join("states/");
    let configs = [config(&[]), config(&["ftl.victim=fifo"]), config(&["workload.depth=1"])];
    let loads = [LOAD.to_owned()];
    let all = |state| {
        let options = RunOptions { state, ..RunOptions::default() };
        compare(&configs, &loads, CompareOptions::default(), &options)
    };
    let file = folder.path().join("one.state");
    let error = all(Some(StateUse::Save(&file))).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("and there are 2: expected a folder"), "{error}");
    let saved = all(Some(StateUse::Save(&states))).unwrap();
    assert_eq!(std::fs::read_dir(&states).unwrap().count(), 2, "the depth is none of the device");
    let loaded = all(Some(StateUse::Load(&states))).unwrap();
    for (saved, loaded) in saved.iter().zip(&loaded) {
        assert_eq!(loaded.result.latency_ns.write.p99, saved.result.latency_ns.write.p99);
        assert_eq!(loaded.result.flash.programs, saved.result.flash.programs);
        assert!(loaded.result.run.state.is_some() && saved.result.run.state.is_none());
    }
}

#[test]
fn jobs_begin_with_a_state_of_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("device.state");
    let jobs = folder.path().join("load.fio");
    let text = "[global]\nsize=1m\nbs=16k\nnumber_ios=200\n[w]\nrw=randwrite\n[r]\nrw=randread\n";
    std::fs::write(&jobs, text).unwrap();
    let jobs = jobs.to_str().unwrap();
    let config = config(&[]);
    let plain = run(&config, jobs, None).unwrap();
    assert_eq!(run(&config, jobs, Some(StateUse::Save(&file))).unwrap(), plain);
    let mut loaded = run(&config, jobs, Some(StateUse::Load(&file))).unwrap();
    loaded.as_object_mut().unwrap().remove("state").unwrap();
    loaded["notes"].as_array_mut().unwrap().pop();
    assert_eq!(loaded, plain);
    let error = error(&config, StateUse::Load(&file));
    assert!(error.contains("saved with the workload = a job file on namespaces 1"), "{error}");
}
