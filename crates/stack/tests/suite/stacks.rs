//! Stacks by name: what each builds, keeps over a restart, and refuses.

use nandscape_core::command::Payload;
use nandscape_core::zone::{ZoneAction, ZoneCommand, ZoneState};
use nandscape_core::{BlockCommand, Command, Extent, Hint, Op, SimTime, Subsystem};
use nandscape_sim::zones::{MOST_COLUMNS, MOST_ROWS, ZoneHistory};
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

/// The configuration of a stack over the small device.
pub(crate) fn config(stack: &str, sets: &[&str]) -> StackConfig {
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
        ("streams", "uniform:span=50%,bs=4k,count=2000", &["ftl.op=0.9"]),
        ("fdp", "uniform:span=50%,bs=4k,count=2000", &["ftl.op=0.9"]),
        ("zone", "uflip:pattern=partitioning,base=sw,bs=4k,count=500,zones=128KiB", &[]),
        ("zone-map", "uniform:span=50%,bs=4k,count=2000", &[]),
        ("dm-zoned", "uniform:span=50%,bs=4k,count=2000", &[]),
        ("dm-zoned", "uniform:span=50%,bs=4k,count=2000", conventional),
        ("dm-zoned", "uniform:span=50%,bs=4k,count=2000", &["zone.conventional=6", "zone.on=vector"]),
        ("vector", "uflip:pattern=partitioning,base=sw,bs=4k,count=500,zones=64KiB", &[]),
        // So few lines need more room than by default.
        ("pblk", "uniform:span=50%,bs=4k,count=2000", &["ftl.op=0.5"]),
        ("host-ftl", "uniform:span=50%,bs=4k,count=2000", &[]),
    ] {
        let config = config(stack, sets);
        let run = replay(&config, load, &RunOptions::default()).unwrap();
        assert!(run.is_complete(), "{stack}: {:?}", run.result.error);
        let is_drive = ["block", "streams", "fdp"].contains(&stack);
        let has_zones = !is_drive && !["pblk", "host-ftl"].contains(&stack);
        assert_eq!(run.result.between.zones.is_some(), has_zones, "{stack}");
        let has_chunks = ["vector", "pblk"].contains(&stack);
        assert_eq!(run.result.between.chunks.is_some(), has_chunks, "{stack}");
        let cost = run.result.cost;
        assert!(cost.dram_bytes > 0 && cost.usable_bytes > 0, "{stack}: {cost:?}");
        let is_on_host = !is_drive && stack != "zone";
        assert_eq!(cost.host_dram_bytes > 0, is_on_host, "{stack}: {cost:?}");
        let text = config.to_toml();
        assert_eq!(text.contains("[zone]"), !is_drive, "{text}");
        let mut again = Typed::new();
        again.merge_text("printed", &text).unwrap();
        assert_eq!(again.check().unwrap().hash(), config.hash(), "{stack}");
    }
}

#[test]
fn drives_with_directives_take_hints_and_say_so() {
    for (stack, kind) in [("streams", "streams"), ("fdp", "fdp")] {
        let config = config(stack, &["ftl.op=0.9"]);
        assert_eq!(config.label(), format!("page-map with {stack}"));
        let text = config.to_toml();
        assert!(text.contains(&format!("kind = \"{kind}\"")) && text.contains("write-hint"), "{text}");
        // What is typed stands over what the stack says.
        let other = self::config(stack, &["ftl.op=0.9", "ftl.streams=5", "host.policy=explicit"]).to_toml();
        assert!(other.contains("streams = 5") && !other.contains("write-hint"), "{other}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let lines = (0..2000).map(|n| format!("{n},W,{},4096,{}\n", n * 7919 % 256 * 4096, 2 + n % 4));
        let text = lines.fold("ts_us,op,offset,len,hint\n".to_owned(), |text, line| text + &line);
        std::fs::write(&path, text).unwrap();
        let run = replay(&config, path.to_str().unwrap(), &RunOptions::default()).unwrap();
        assert!(run.is_complete(), "{:?}", run.result.error);
        let placement = serde_json::to_string(&run.result.placement).unwrap();
        assert!(run.result.placement.is_some(), "{placement}");
        assert_eq!(run.result.between.policy.unwrap().name, "write-hint", "{placement}");
        let jobs = folder.path().join("t.fio");
        std::fs::write(&jobs, "[a]\nrw=write\nbs=4k\nsize=400k\n").unwrap();
        let run = replay(&config, jobs.to_str().unwrap(), &RunOptions::default()).unwrap();
        assert!(run.is_complete() && run.result.host.writes == 100, "jobs name their own streams");
    }
    assert!(refusal("streams", &["ftl.kind=pm-gcl"]).contains("ftl.streams"));
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
        ("fdp", &["directives.kind=streams"], "directives.kind: with stack.kind = fdp: expected fdp, or"),
        ("streams", &["directives.kind=none"], "expected streams, or stack.kind = block"),
        ("zone", &["sets.layout=vertical"], "[sets]"),
        ("zone", &["device.compression=0.5"], "device.compression"),
        ("zone", &["zone.capacity=1000"], "zone.capacity"),
        ("zone", &["zone.capacity=1GiB"], "zone.capacity"),
        ("zone", &["zone.capacity=7"], "zone.capacity = '7'"),
        ("zone", &["zone.max_open=4", "zone.max_active=3"], "zone.max_open"),
        ("zone-map", &["zone.max_open=1"], "zone.max_open = '1': expected 3"),
        ("zone-files", &["zone.max_active=2"], "zone.max_active = '2': expected 3"),
        ("dm-zoned", &["zone.max_active=1"], "zone.max_active = '1': expected 2"),
        ("zone", &["zone.dies=3"], "zone.dies"),
        ("zone", &["zone.blocks_per_die=41"], "zone.blocks_per_die"),
        ("zone", &["zone.zrwa_count=2"], "zone.zrwa_size"),
        ("zone", &["zone.zrwa_size=16KiB", "zone.zrwa_granularity=512"], "zone.zrwa_granularity"),
        ("zone", &["zone.spare=39", "zone.blocks_per_die=2"], "zone.spare"),
        ("zone", &["cache.device=flash"], "[cache]"),
        ("zone", &["cache.device=ram"], "[cache]"),
        ("zone-map", &["ftl.op=0.0"], "ftl.op"),
        ("zone-files", &["cache.device=flash"], "[cache]"),
        ("zone-map", &["cache.device=ram"], "[cache]"),
        ("zone-cache", &[], "expected a cache over it"),
        ("zone-cache", &["cache.device=ram"], "expected a cache over it"),
        ("zone-cache", &["cache.device=flash", "zone.conventional=0"], "zone.conventional: 0 of"),
        ("zone-cache", &["cache.device=flash", "cache.metadata=slots"], "journal, at-removal or none"),
        ("zone-cache", &["cache.device=flash", "cache.map=linear", "cache.ways=4"], "full"),
        ("zone-cache", &["cache.device=flash", "cache.quota=ns1=50%"], "quota"),
        ("zone-cache", &["cache.device=flash", "cache.size=64KiB"], "regions of the cache device"),
        ("zone-map", &["zone.max_active=1"], "gc_frontier"),
        ("zone", &["zone.conventional=60"], "zone.conventional"),
        ("zone-map", &["zone.conventional=4"], "conventional"),
        ("dm-zoned", &["zone.conventional=0"], "zone.conventional"),
        ("dm-zoned", &["zone.conventional=2"], "zone.conventional"),
        ("dm-zoned", &["zone.conventional=6", "zone.max_active=1"], "zone.max_active"),
        ("dm-zoned", &["zone.conventional=6", "ftl.reclaim_low=60"], "ftl.reclaim_high"),
        ("zone", &["zone.on=vector"], "--stack vector"),
        ("vector", &["vector.width=3"], "vector.width"),
        ("vector", &["vector.cached_units=16"], "vector.cached_units"),
        ("vector", &["cache.device=flash"], "[cache]"),
        ("pblk", &["ftl.op=0.0"], "ftl.op"),
        ("pblk", &["device.oob=8"], "device.oob"),
        ("pblk", &["ftl.op=0.5", "ftl.ring=2"], "ftl.ring"),
    ] {
        let message = refusal(stack, sets);
        assert!(message.contains(key), "{stack} {sets:?}: {message}");
    }
}

#[test]
fn uflip_runs_on_chunks_and_its_operations_are_counted() {
    for pattern in [
        "granularity",
        "alignment,shift=512",
        "locality",
        "partitioning",
        "order,incr=2",
        "parallelism",
        "mix",
        "pause",
        "bursts",
    ] {
        for base in ["sw", "rw"] {
            if base == "rw" && (pattern == "partitioning" || pattern.starts_with("order")) {
                continue;
            }
            let (pattern, keys) = pattern.split_once(',').map_or((pattern, ""), |(name, keys)| (name, keys));
            // Shifts are whole write units on chunks.
            let keys = keys.replace("shift=512", "shift=4KiB");
            let load = format!("uflip:pattern={pattern},base={base},bs=16k,count=300,zones=64KiB,{keys}");
            let run =
                replay(&config("vector", &[]), load.trim_end_matches(','), &RunOptions::default()).unwrap();
            assert!(run.is_complete(), "{load}: {:?}", run.result.error);
            let chunks = run.result.between.chunks.unwrap();
            assert_eq!((chunks.chunks, chunks.chunk_bytes, chunks.write_bytes), (80, 65_536, 4096), "{load}");
            assert_eq!(chunks.states.values().sum::<u32>(), 80, "{load}");
            assert!(pattern == "granularity" || chunks.states.contains_key("closed"), "{load}: {chunks:?}");
        }
    }
}

#[test]
fn what_is_refused_counts_for_nobody() {
    for stack in ["block", "zone", "zone-map", "dm-zoned", "pblk"] {
        let op = if stack == "pblk" { &["ftl.op=0.5"][..] } else { &[] };
        let mut subsystem = nandscape_stack::build_subsystem(&config(stack, op)).unwrap();
        let page = 4096;
        let write = |offset| BlockCommand::new(Op::Write, Extent::new(offset, page), Hint::NONE);
        subsystem.submit(0, write(0).into(), Payload::None, SimTime::ZERO).unwrap();
        let before = subsystem.inspect().host_counts(0);
        assert_eq!((before.writes, before.write_bytes), (1, page), "{stack}");
        let beyond = subsystem.namespaces()[0].capacity_bytes;
        subsystem.submit(0, write(beyond).into(), Payload::None, SimTime::ZERO).unwrap_err();
        assert_eq!(subsystem.inspect().host_counts(0), before, "{stack}");
    }
}

#[test]
fn the_areas_of_a_database_run_on_blocks_zones_and_chunks() {
    let places = [
        ("block", ""),
        ("zone", ",zones=128KiB"),
        ("zone", ",zones=128KiB,append=true"),
        ("vector", ",zones=64KiB"),
        ("vector", ",zones=64KiB,append=true"),
    ];
    for (keys, steps) in [
        ("part=log", 2000),
        ("part=rollback,segments=4", 4000),
        ("part=temp,operator=sort,memory=32k", 6000),
        ("part=temp,operator=hash,partitions=4", 6000),
        ("part=temp,operator=hash-append", 6000),
    ] {
        for (stack, zones) in places {
            let extent = if stack == "block" && keys.contains("rollback") { ",extent=64k" } else { "" };
            let load = format!("database:{keys},bs=4k,count={steps}{zones}{extent}");
            let run = replay(&config(stack, &[]), &load, &RunOptions::default()).unwrap();
            assert!(run.is_complete(), "{stack} {load}: {:?}", run.result.error);
            let host = run.result.host;
            let done = if keys == "part=log" { host.flushes } else { host.reads + host.writes };
            assert_eq!(done, steps, "{stack} {load}: {host:?}");
            assert_eq!(host.trims > 0, stack == "block" && keys.contains("temp"), "{load}: {host:?}");
            let resets = run.result.latency_ns.zone.map_or(0, |zone| zone.count);
            assert!(if stack == "block" { resets == 0 } else { resets > 20 }, "{load}: {resets} resets");
            // Nobody copies anything. A zone of 32 pages adds one to the log of zones.
            if keys.contains("temp") && stack != "block" {
                let waf = run.result.waf.pages.unwrap();
                assert!((0.99..1.05).contains(&waf), "{stack} {load}: {waf}");
            }
        }
    }
}

#[test]
fn zones_of_chunks_carry_a_block_device() {
    let config = config("zone-map", &["zone.on=vector"]);
    assert!(config.to_toml().contains("[vector]"), "{}", config.to_toml());
    let load = "uniform:span=90%,bs=4k,count=6000";
    let run = replay(&config, load, &RunOptions::default()).unwrap();
    assert!(run.is_complete(), "{:?}", run.result.error);
    let chunks = run.result.between.chunks.unwrap();
    assert!(chunks.counts.resets > 0, "{chunks:?}");
}

#[test]
fn an_image_of_chunks_comes_back_below_pblk() {
    let folder = std::env::temp_dir().join(format!("nandscape-pblk-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let storage = Storage::Image(folder.join("pblk.nand"));
    let config = config("pblk", &["ftl.op=0.5"]);
    let open = || build_stored(&config, &storage).unwrap().subsystem;
    let mut pblk = open();
    let data: Vec<u8> = (0..40_000u32).map(|byte| byte as u8).collect();
    let at = SimTime::ZERO;
    pblk.submit(0, block(Op::Write, 4096, data.len() as u64), Payload::Write(&data), at).unwrap();
    pblk.submit(0, Command::FLUSH, Payload::None, at).unwrap();
    // Without a shutdown, as after a kill.
    drop(pblk);
    let mut pblk = open();
    let mut read = vec![0; data.len()];
    pblk.submit(0, block(Op::Read, 4096, data.len() as u64), Payload::Read(&mut read), at).unwrap();
    assert_eq!(read, data);
    assert!(pblk.inspect().layer(0).recovery().is_some_and(|report| report.live_pages == 10));
    pblk.check_invariants();
    drop(pblk);
    std::fs::remove_dir_all(&folder).unwrap();
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

/// The history of zones of a run, which is checked against what the run says of its end.
fn history(stack: &str, load: &str, sets: &[&str]) -> ZoneHistory {
    let options = RunOptions { with_series: true, ..RunOptions::default() };
    let run = replay(&config(stack, sets), load, &options).unwrap();
    assert!(run.is_complete(), "{stack}: {:?}", run.result.error);
    let zones = run.result.between.zones.as_ref().unwrap();
    let history = zones.history.clone().unwrap();
    let (columns, time) = (&history.columns, &history.time_ns);
    assert_eq!(columns.len(), time.len());
    assert!(columns.len() <= MOST_COLUMNS && time.is_sorted_by(|a, b| a < b), "{time:?}");
    assert_eq!((time[0], *time.last().unwrap()), (0, run.result.speed.time.simulated_ns));
    // The last may be nearer, and each is late by a request at most.
    assert!(time.windows(2).rev().skip(1).all(|two| two[1] - two[0] >= history.interval_ns / 2), "{time:?}");
    let rows = zones.zones.div_ceil(history.zones_per_row) as usize;
    assert!(rows as u32 <= MOST_ROWS);
    for column in columns {
        assert_eq!((column.states.len(), column.written.len()), (rows, rows));
        assert_eq!(column.valid.len(), if stack == "zone-map" { rows } else { 0 });
    }
    assert!(columns[0].written.iter().all(|percent| *percent <= 10), "{:?}", columns[0]);
    let last = columns.last().unwrap();
    if history.zones_per_row == 1 {
        for (zone, shown) in zones.shown.iter().enumerate() {
            let percent = |share: f64| (share * 100.0).round() as u8;
            assert_eq!(
                ZoneState::of_letter(last.states.as_bytes()[zone].into()).unwrap().name(),
                shown.state
            );
            assert_eq!(last.written[zone], percent(shown.written), "zone {zone}");
            assert_eq!(last.valid.get(zone).copied().flatten(), shown.valid.map(percent), "zone {zone}");
        }
    }
    let document = serde_json::to_value(&run.result).unwrap();
    for name in ["zones_per_row", "interval_ns", "time_ns", "columns"] {
        assert!(document["zones"]["history"].get(name).is_some(), "{name}");
    }
    history
}

#[test]
fn the_course_of_zones_is_kept_and_bounded_whatever_the_length_of_a_run() {
    let load = |count: u32| format!("uniform:span=50%,bs=4k,count={count}");
    let few = history("zone-map", &load(300), &[]);
    let many = history("zone-map", &load(60_000), &[]);
    assert!(few.columns.len() > 20 && few.interval_ns < many.interval_ns, "{} ns", few.interval_ns);
    assert!(many.columns.len() > MOST_COLUMNS / 2 - 2, "{}", many.columns.len());
    // Zones are emptied and written again: some row has been full and something else later.
    let full = |column: usize, row: usize| many.columns[column].states.as_bytes()[row] == b'f';
    let has_turned = |row| (1..many.columns.len()).any(|column| full(column - 1, row) && !full(column, row));
    assert!((0..many.columns[0].states.len()).any(has_turned), "no zone was ever collected");
    // All that hosts can read is valid somewhere, and nothing of it twice.
    let last = many.columns.last().unwrap();
    assert!(
        last.valid
            .iter()
            .zip(&last.written)
            .all(|(valid, written)| valid.is_none_or(|valid| valid <= *written))
    );

    let raw = "uflip:pattern=partitioning,base=sw,bs=4k,count=3000,zones=128KiB";
    let raw = history("zone", raw, &[]);
    assert!(raw.columns.iter().any(|column| column.states.contains('i')), "{raw:?}");
    let small = ["zone.dies=1", "device.pages_per_block=4", "device.blocks_per_plane=400"];
    let merged = history("zone-map", &load(500), &small);
    assert!(merged.zones_per_row > 1, "{}", merged.zones_per_row);

    let run = replay(&config("zone-map", &[]), &load(300), &RunOptions::default()).unwrap();
    assert!(run.result.between.zones.unwrap().history.is_none(), "nobody asked for the series");
}

#[test]
fn a_job_file_keeps_the_course_of_zones_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("zones.fio");
    let text =
        "[w]\nfilename=ns1\nzonemode=zbd\nrw=write\nbs=4k\nsize=256k\nloops=3\nzone_reset_threshold=1\n";
    std::fs::write(&file, text).unwrap();
    let options = RunOptions { with_series: true, ..RunOptions::default() };
    let run = replay(&config("zone", &[]), file.to_str().unwrap(), &options).unwrap();
    assert!(run.is_complete(), "{:?}", run.result.error);
    let history = run.result.between.zones.unwrap().history.unwrap();
    assert!(history.columns.len() > 3, "{history:?}");
    assert!(history.columns[0].written.iter().all(|percent| *percent == 0), "{history:?}");
    assert!(history.columns.last().unwrap().written.iter().any(|percent| *percent > 0), "{history:?}");
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

/// What a layer of the host moves crosses the link to the host, there and back; what a layer on the device
/// moves does not.
#[test]
fn what_a_layer_of_the_host_collects_crosses_the_link() {
    const LINK: u64 = 512 << 10;
    let load = "uniform:span=100%,bs=4k,count=4000";
    let over = ["ftl.op=0.5", "device.timing.scheduler=fifo", "device.timing.host_bytes_per_s=512KiB"];
    for (stack, is_on_host) in [("block", false), ("zone-map", true), ("pblk", true), ("host-ftl", true)] {
        let run = replay(&config(stack, &over), load, &RunOptions::default()).unwrap().result;
        assert!(run.layer.gc.moved_pages > 1_000, "{stack}: {:?}", run.layer.gc);
        let bytes = (run.host.write_pages + u64::from(is_on_host) * run.layer.gc.moved_pages) * 4096;
        let least = bytes as f64 / LINK as f64;
        let took = run.speed.time.simulated_ns as f64 / 1e9;
        assert!(took > least && took < least * 1.25, "{stack}: {took} s, {least} s of link");
    }
}

/// Without a link to the host, a layer of the device does the same at the same time over chunks.
#[test]
fn a_layer_on_the_host_does_what_it_does_on_the_device() {
    let load = "uniform:span=70%,bs=4k,count=4000";
    let run = |stack: &str, ftl: &[&str]| {
        let run = replay(&config(stack, ftl), load, &RunOptions::default()).unwrap();
        assert!(run.is_complete(), "{stack}: {:?}", run.result.error);
        run.result
    };
    for ftl in [&["ftl.op=0.5"][..], &["ftl.op=0.5", "ftl.victim=fifo"], &["ftl.kind=pm-gcl"]] {
        let [device, host] = ["block", "host-ftl"].map(|stack| run(stack, ftl));
        let json = |part| serde_json::to_value(part).unwrap();
        assert_eq!(json(&host.flash), json(&device.flash), "{ftl:?}");
        assert_eq!(format!("{:?}", host.latency_ns), format!("{:?}", device.latency_ns), "{ftl:?}");
        assert_eq!(host.speed.time.simulated_ns, device.speed.time.simulated_ns, "{ftl:?}");
        assert_eq!(host.cost.host_dram_bytes, device.cost.dram_bytes, "{ftl:?}");
        assert_eq!(config("host-ftl", ftl).label(), format!("{} on the host", config("block", ftl).label()));
    }
}

/// Several requests of `pblk` wait for one page of its ring. What host software sends once others are written
/// waits for these itself, not the program that it is part of.
#[test]
fn every_request_is_answered_where_programs_gather_pages_in_a_buffer() {
    let gathers = [
        "device.pages_per_block=64",
        "device.timing.scheduler=read-first",
        "device.timing.program_pages=4",
        "device.timing.write_buffer=256KiB",
    ];
    for (stack, more) in [
        ("block", &["ftl.op=0.5"][..]),
        ("zone-map", &["ftl.op=0.5"]),
        ("zone-map", &["ftl.op=0.5", "zone.on=vector"]),
        ("pblk", &["ftl.op=0.5"]),
        ("pblk", &["ftl.op=0.5", "ftl.ring=64", "vector.cached_units=0"]),
        ("host-ftl", &["ftl.op=0.5"]),
    ] {
        let sets: Vec<&str> = gathers.iter().chain(more).copied().collect();
        let load = "uniform:span=90%,bs=4k,count=3000";
        let run = replay(&config(stack, &sets), load, &RunOptions::default());
        let run = run.unwrap_or_else(|error| panic!("{stack} {more:?}: {error}"));
        assert!(run.is_complete(), "{stack} {more:?}: {:?}", run.result.error);
        assert_eq!(run.result.host.writes, 3_000, "{stack} {more:?}");
    }
}
