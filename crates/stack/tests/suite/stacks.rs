//! Stacks by name: what each builds, keeps over a restart, and refuses.

use nandscape_core::command::Payload;
use nandscape_core::zone::{ZoneAction, ZoneCommand};
use nandscape_core::{BlockCommand, Command, Extent, Hint, Op, SimTime, Subsystem};
use nandscape_stack::kinds::KINDS;
use nandscape_stack::stacks::STACKS;
use nandscape_stack::{RunOptions, StackConfig, Storage, Typed, build_stored, replay};

/// Small enough for images, with room for zones and their log.
const DEVICE: &[&str] = &[
    "device.channels=2",
    "device.dies_per_channel=1",
    "device.planes_per_die=1",
    "device.blocks_per_plane=40",
    "device.pages_per_block=16",
    "device.page=4KiB",
    "device.sector=512",
];

fn typed(stack: &str, sets: &[&str]) -> Typed {
    let mut typed = Typed::new();
    typed.set_stack(stack).unwrap();
    for pair in DEVICE.iter().chain(sets) {
        typed.set_pair(pair).unwrap();
    }
    typed
}

fn config(stack: &str, sets: &[&str]) -> StackConfig {
    typed(stack, sets).check().unwrap_or_else(|error| panic!("{stack} {sets:?}: {error}"))
}

fn refusal(stack: &str, sets: &[&str]) -> String {
    let built = typed(stack, sets).check().and_then(|config| nandscape_stack::build_subsystem(&config));
    built.err().unwrap_or_else(|| panic!("{stack} {sets:?} was accepted")).to_string()
}

fn block(op: Op, offset: u64, len: u64) -> Command {
    BlockCommand::new(op, Extent::new(offset, len), Hint::default()).into()
}

#[test]
fn every_kind_of_stack_can_be_built() {
    let built: Vec<&str> = STACKS.iter().map(|entry| entry.kind.info.name).collect();
    let kinds: Vec<&str> = KINDS.iter().map(|kind| kind.info.name).collect();
    assert_eq!(built, kinds);
}

#[test]
fn every_stack_replays_what_it_can_take_and_prints_its_keys() {
    let conventional: &[&str] = &["zone.conventional=6"];
    for (stack, load, sets) in [
        ("block", "uniform:span=50%,bs=4k,count=2000", &[][..]),
        ("zone", "uflip:pattern=partitioning,base=sw,bs=4k,count=500,zones=128KiB", &[]),
        ("zone-map", "uniform:span=50%,bs=4k,count=2000", &[]),
        ("dm-zoned", "uniform:span=50%,bs=4k,count=2000", conventional),
    ] {
        let config = config(stack, sets);
        let run = replay(&config, load, &RunOptions::default()).unwrap();
        assert!(run.is_complete(), "{stack}: {:?}", run.result.error);
        assert_eq!(run.result.between.zones.is_some(), stack == "zone", "{stack}");
        let text = config.to_toml();
        assert_eq!(text.contains("[zone]"), stack != "block", "{text}");
        let mut again = Typed::new();
        again.merge_text("printed", &text).unwrap();
        assert_eq!(again.check().unwrap().hash(), config.hash(), "{stack}");
    }
}

#[test]
fn a_fill_of_raw_zones_leaves_out_what_lies_behind_their_capacity() {
    let sets = ["zone.size=256KiB", "zone.capacity=96KiB", "workload.precondition=fill"];
    let load = "uflip:pattern=partitioning,base=sr,bs=4k,count=50,zones=256KiB";
    let run = replay(&config("zone", &sets), load, &RunOptions::default()).unwrap();
    assert!(run.is_complete(), "{:?}", run.result.error);
    let zones = run.result.between.zones.unwrap();
    assert!(zones.capacity_bytes < zones.size_bytes, "{zones:?}");
    assert_eq!(zones.states.get("full"), Some(&zones.zones), "{zones:?}");
}

#[test]
fn a_random_load_on_raw_zones_ends_with_the_reason() {
    let run = replay(&config("zone", &[]), "uniform:bs=4k,count=50", &RunOptions::default()).unwrap();
    let error = run.result.error.unwrap().message;
    assert!(error.contains("Zone Invalid Write"), "{error}");
    assert!(run.result.notes.iter().any(|note| note.contains("zone-map")), "{:?}", run.result.notes);
}

#[test]
fn what_contradicts_a_stack_is_refused_by_its_key() {
    for (stack, sets, key) in [
        ("zone", &["ftl.kind=page-map"][..], "ftl.kind"),
        ("block", &["ftl.kind=zone-map"], "--stack zone-map"),
        ("zone", &["sets.layout=vertical"], "[sets]"),
        ("zone", &["device.compression=0.5"], "device.compression"),
        ("zone", &["zone.capacity=1000"], "zone.capacity"),
        ("zone", &["zone.capacity=1GiB"], "zone.capacity"),
        ("zone", &["zone.max_open=4", "zone.max_active=3"], "zone.max_open"),
        ("zone", &["zone.dies=3"], "zone.dies"),
        ("zone", &["zone.blocks_per_die=41"], "zone.blocks_per_die"),
        ("zone", &["zone.zrwa_count=2"], "zone.zrwa_size"),
        ("zone", &["zone.zrwa_size=16KiB", "zone.zrwa_granularity=512"], "zone.zrwa_granularity"),
        ("zone", &["zone.spare=39", "zone.blocks_per_die=2"], "zone.spare"),
        ("zone", &["cache.device=flash"], "[cache]"),
        ("zone-map", &["ftl.op=0.0"], "ftl.op"),
        ("zone-map", &["cache.device=flash"], "[cache]"),
        ("zone-map", &["zone.max_active=1"], "gc_frontier"),
        ("zone", &["zone.conventional=60"], "zone.conventional"),
        ("zone-map", &["zone.conventional=4"], "conventional"),
        ("dm-zoned", &[], "zone.conventional"),
        ("dm-zoned", &["zone.conventional=2"], "zone.conventional"),
        ("dm-zoned", &["zone.conventional=6", "zone.max_active=1"], "zone.max_active"),
        ("dm-zoned", &["zone.conventional=6", "ftl.reclaim_low=60"], "ftl.reclaim_high"),
    ] {
        let message = refusal(stack, sets);
        assert!(message.contains(key), "{stack} {sets:?}: {message}");
    }
}

#[test]
fn an_image_of_zones_comes_back_with_data_and_write_pointers() {
    let folder = std::env::temp_dir().join(format!("nandscape-zones-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("zones.nand");
    let storage = Storage::Image(path.clone());
    let config = config("zone", &[]);
    let data: Vec<u8> = (0..6000u32 / 512 * 512).map(|byte| byte as u8).collect();
    let open = || build_stored(&config, &storage).unwrap().subsystem;
    let mut zones = open();
    let size = zones.namespaces()[0].zones.unwrap().size;
    let at = SimTime::ZERO;
    let write = block(Op::Write, size, data.len() as u64);
    zones.submit(0, write, Payload::Write(&data), at).unwrap();
    let finish = ZoneCommand::Manage { action: ZoneAction::Finish, zone: Some(3 * size) };
    zones.submit(0, Command::Zone(finish), Payload::None, at).unwrap();
    zones.submit(0, Command::FLUSH, Payload::None, at).unwrap();
    // Without a shutdown, as after a kill.
    drop(zones);
    let mut zones = open();
    let shown = |zones: &dyn Subsystem, zone| zones.inspect().zones.unwrap().zone(0, zone);
    assert_eq!(shown(&*zones, 1).write_pointer, Some(size + data.len() as u64));
    assert_eq!(shown(&*zones, 3).state.name(), "full");
    let mut read = vec![0; data.len()];
    zones.submit(0, block(Op::Read, size, data.len() as u64), Payload::Read(&mut read), at).unwrap();
    assert_eq!(read, data);
    assert!(zones.inspect().layer(0).recovery().is_some_and(|report| report.live_pages > 0));
    zones.check_invariants();
    drop(zones);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_image_of_chunks_over_conventional_zones_comes_back_and_both_kinds_count_in_reports() {
    let folder = std::env::temp_dir().join(format!("nandscape-chunks-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let storage = Storage::Image(folder.join("chunks.nand"));
    let config = config("dm-zoned", &["zone.conventional=6"]);
    let open = || build_stored(&config, &storage).unwrap().subsystem;
    let mut layer = open();
    let data: Vec<u8> = (0..100_000u32).map(|byte| (byte / 7) as u8).collect();
    let write = block(Op::Write, 5_000, data.len() as u64);
    layer.submit(0, write, Payload::Write(&data), SimTime::ZERO).unwrap();
    layer.submit(0, Command::FLUSH, Payload::None, SimTime::ZERO).unwrap();
    let device = layer.inspect().device(0);
    assert_eq!(device.geometry().blocks_per_plane, 40, "of the whole device");
    assert!(device.counters().total().programs >= 25);
    // Without a shutdown, as after a kill.
    drop(layer);
    let mut layer = open();
    let mut read = vec![0; data.len()];
    let command = block(Op::Read, 5_000, data.len() as u64);
    layer.submit(0, command, Payload::Read(&mut read), SimTime::ZERO).unwrap();
    assert_eq!(read, data);
    assert!(layer.inspect().layer(0).recovery().is_some_and(|report| report.live_pages > 0));
    layer.check_invariants();
    drop(layer);
    std::fs::remove_dir_all(&folder).unwrap();
}
