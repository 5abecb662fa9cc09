//! Recordings of file operations on stores of objects, beside block devices.

use crate::stacks::config;
use nandscape_core::command::{Payload, stored_runs};
use nandscape_core::{Allocation, Extent, Hint, ObjectCommand, ObjectId, Reply, SimTime};
use nandscape_stack::{CompareOptions, RunOptions, Storage, build_stored, build_subsystem, compare, replay};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const PAGE: u64 = 4096;

fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Files of `pages` pages come and go, `live` at a time, each synced once.
fn recording(files: u64, live: u64, pages: u64) -> String {
    let mut text = "ts_us,op,pid,file,offset,len\n".to_owned();
    let mut op = |at, op, file, len| writeln!(text, "{at},{op},1,{file},0,{len}").unwrap();
    for number in 1..=files {
        op(number * 1000, "create", number, 0);
        op(number * 1000, "hint", number, 2 + number % 3);
        op(number * 1000, "write", number, pages * PAGE);
        op(number * 1000, "fsync", number, 0);
        if number > live {
            op(number * 1000, "delete", number - live, 0);
        }
    }
    text
}

#[test]
fn files_of_a_recording_are_objects() {
    let folder = tempfile::tempdir().unwrap();
    let recording = file(folder.path(), "t.ops.csv", &recording(300, 20, 10));
    let segment = "f2fs.segment=32KiB";
    let cases = [
        ("zone-files", &[][..]),
        ("zone-files", &["zone.on=vector"]),
        ("zone-files", &["ftl.placement=zenfs"]),
        ("f2fs", &[segment]),
        ("f2fs", &[segment, "ftl.streams=6", "ftl.op=0.5", "directives.kind=streams", "f2fs.streams=true"]),
        ("f2fs-zones", &[segment, "zone.conventional=20", "f2fs.logs=4", "device.blocks_per_plane=160"]),
    ];
    for (stack, sets) in cases {
        let run = replay(&config(stack, sets), recording.to_str().unwrap(), &RunOptions::default());
        let run = run.unwrap_or_else(|error| panic!("{stack}, {sets:?}: {error}"));
        assert!(run.is_complete(), "{sets:?}: {:?}", run.result.error);
        let result = &run.result;
        assert_eq!(result.workload.format, "ops:level=object", "{sets:?}");
        assert_eq!(result.host.write_bytes, 300 * 10 * PAGE, "{sets:?}");
        assert!(
            result.flash.programs >= 300 * 10 && result.waf.pages.unwrap() < 2.0 || stack != "zone-files",
            "{:?}",
            result.waf
        );
        let objects = result.between.objects.as_ref().expect("a store of objects");
        assert_eq!((objects.objects, objects.live_bytes), (20, 20 * 10 * PAGE), "{sets:?}");
        // What died is emptied without moving anything but its last neighbours.
        assert!(objects.resets > 40, "{stack}, {sets:?}: {objects:?}");
    }
}

#[test]
fn a_comparison_gives_blocks_to_block_devices_and_objects_to_stores() {
    let folder = tempfile::tempdir().unwrap();
    let recording = file(folder.path(), "t.ops.csv", &recording(40, 20, 10));
    let journal = "workload.format=ops:journal=64KiB";
    let configs = [
        config("block", &[journal]),
        config("zone-map", &[journal, "ftl.op=0.3"]),
        config("zone-files", &[journal]),
    ];
    let loads = [recording.to_str().unwrap().to_owned()];
    let runs = compare(&configs, &loads, CompareOptions::default(), &RunOptions::default()).unwrap();
    let formats: Vec<&str> = runs.iter().map(|run| &*run.result.workload.format).collect();
    assert_eq!(formats, ["ops", "ops", "ops:level=object"]);
    for run in &runs {
        assert!(run.is_complete(), "{}: {:?}", run.label, run.result.error);
        assert_eq!(run.result.between.objects.is_some(), run.label == "zone-files", "{}", run.label);
    }
    // A file system writes metadata and its journal besides.
    let [block, _, files] = [0, 1, 2].map(|number: usize| runs[number].result.host.write_bytes);
    assert!(files == 40 * 10 * PAGE && block > files, "{block} {files}");
}

#[test]
fn stacks_that_are_called_alike_are_told_apart_and_file_systems_differ_in_discards() {
    let folder = tempfile::tempdir().unwrap();
    let recording = file(folder.path(), "t.ops.csv", &recording(40, 20, 10));
    let journal = "workload.format=ops:journal=64KiB";
    let configs = [
        config("block", &[journal, "ftl.op=0.2"]),
        config("block", &[journal, "ftl.op=0.4"]),
        config("xfs", &[journal]),
        config("f2fs", &[journal, "f2fs.segment=32KiB"]),
    ];
    let loads = [recording.to_str().unwrap().to_owned()];
    let runs = compare(&configs, &loads, CompareOptions::default(), &RunOptions::default()).unwrap();
    let labels: Vec<&str> = runs.iter().map(|run| &*run.label).collect();
    assert_eq!(labels, ["page-map, ftl.op=0.2", "page-map, ftl.op=0.4", "page-map with xfs", "f2fs"]);
    let trims: Vec<u64> = runs.iter().map(|run| run.result.host.trims).collect();
    assert!(trims[0] > 0 && trims[0] == trims[1] && trims[2] == 0 && trims[3] == 20, "{trims:?}");
}

#[test]
fn a_journal_of_data_writes_more_than_one_of_metadata_and_atomic_writes_need_none() {
    let folder = tempfile::tempdir().unwrap();
    let recording = file(folder.path(), "t.ops.csv", &recording(200, 20, 10));
    let configs =
        ["atomic", "block", "data-journal"].map(|stack| config(stack, &["workload.format=ops:journal=1MiB"]));
    let loads = [recording.to_str().unwrap().to_owned()];
    let runs = compare(&configs, &loads, CompareOptions::default(), &RunOptions::default()).unwrap();
    let labels: Vec<&str> = runs.iter().map(|run| &*run.label).collect();
    assert_eq!(labels, ["page-map with atomic", "page-map", "page-map with data-journal"]);
    let [atomic, ordered, data] = [0, 1, 2].map(|number: usize| runs[number].result.host.write_bytes / PAGE);
    // Each sync writes ten blocks and six or more of metadata; a journal adds descriptor and commit, and
    // one of data the data.
    assert!(atomic >= 200 * 10 && ordered >= atomic + 200 * 2, "{atomic} {ordered}");
    assert!(data >= ordered + 20 * 10 && data >= 200 * 18, "{data} {ordered}");
    // The same by the format, on any stack.
    let typed = config("block", &["workload.format=ops:data=atomic"]);
    let run = replay(&typed, &loads[0], &RunOptions::default()).unwrap();
    assert_eq!(run.result.host.write_bytes / PAGE, atomic);
}

#[test]
fn operations_on_objects_replay_from_the_native_csv() {
    let folder = tempfile::tempdir().unwrap();
    let text = "ts_us,op,offset,len,volume,hint\n0,c,0,0,5,2\n0,w,0,40960,5,2\n1,p,4096,8192,5,0\n2,f,0,0,5,0\n\
                3,r,0,40960,5,0\n4,t,20480,0,5,0\n5,c,0,0,6,0\n5,w,0,100,6,0\n6,f,0,1,0,0\n7,d,0,0,6,0\n";
    let trace = file(folder.path(), "t.csv", text);
    let run = replay(&config("zone-files", &[]), trace.to_str().unwrap(), &RunOptions::default()).unwrap();
    assert!(run.is_complete(), "{:?}", run.result.error);
    let objects = run.result.between.objects.unwrap();
    assert_eq!((objects.objects, objects.live_bytes), (1, 20_480 - 8192));
    assert_eq!((run.result.host.reads, run.result.host.writes), (1, 2));
    assert_eq!(run.result.latency_ns.flush.unwrap().count, 2);
    let again = "ts_us,op,offset,len,volume\n0,c,0,0,5\n0,c,0,0,5\n";
    let trace = file(folder.path(), "again.csv", again);
    let run = replay(&config("zone-files", &[]), trace.to_str().unwrap(), &RunOptions::default()).unwrap();
    let error = run.result.error.unwrap().message;
    assert!(error.contains("request 2") && error.contains("expected a number that no object has"), "{error}");
}

#[test]
fn stores_count_the_same_operations_alike() {
    let folder = tempfile::tempdir().unwrap();
    // The last punch goes on behind the end.
    let text = "ts_us,op,offset,len,volume,hint\n0,c,0,0,5,0\n0,w,0,40960,5,0\n1,p,4096,8192,5,0\n2,f,0,0,5,0\n\
                3,t,20480,0,5,0\n4,p,16384,1000000,5,0\n5,d,0,0,5,0\n";
    let trace = file(folder.path(), "t.csv", text);
    for (stack, sets) in [("oftl", &[][..]), ("zone-files", &[]), ("f2fs", &["f2fs.segment=32KiB"])] {
        let run = replay(&config(stack, sets), trace.to_str().unwrap(), &RunOptions::default()).unwrap();
        assert!(run.is_complete(), "{stack}: {:?}", run.result.error);
        let host = run.result.host;
        assert_eq!((host.writes, host.flushes, host.trims), (1, 1, 4), "{stack}");
        assert_eq!(host.trim_bytes, 8192 + 4096 + 20_480, "{stack}");
    }
}

#[test]
fn a_cut_is_told_wherever_it_is() {
    let whole = replay(&config("zone-files", &[]), "fast13:load=lasr-2,scale=1/300", &RunOptions::default());
    let operations = whole.unwrap().result.flash.programs;
    assert!(operations > 100, "{operations} programs");
    for cut in (1..operations).step_by(7) {
        let sets = [format!("faults.power_cut={cut}")];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let run =
            replay(&config("zone-files", &sets), "fast13:load=lasr-2,scale=1/300", &RunOptions::default());
        let said = run.map_or_else(
            |error| error.to_string(),
            |run| run.result.error.map_or_else(String::new, |error| error.message),
        );
        assert!(said.contains(&format!("the power was cut at operation {cut}")), "cut {cut}: {said}");
    }
}

#[test]
fn what_a_store_cannot_take_is_refused_with_what_it_takes() {
    let refused = |sets: &[&str], load: &str| {
        let run = replay(&config("zone-files", sets), load, &RunOptions::default()).unwrap();
        assert!(
            run.result.notes.iter().any(|note| note.contains("file operations")),
            "{:?}",
            run.result.notes
        );
        run.result.error.unwrap().message
    };
    let error = refused(&[], "uniform:bs=4k,count=50");
    assert!(error.contains("not supported"), "{error}");
    let error = refused(&["workload.precondition=fill"], "uniform:bs=4k,count=50");
    assert!(error.contains("no addresses to fill"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let jobs = file(folder.path(), "t.fio", "[a]\nrw=write\nbs=4k\nsize=40k\n");
    let error = replay(&config("zone-files", &[]), jobs.to_str().unwrap(), &RunOptions::default());
    assert!(error.unwrap_err().to_string().contains("expected a recording of file operations"));
}

#[test]
fn an_image_of_files_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let image = Storage::Image(folder.path().join("files.img"));
    let config = config("zone-files", &[]);
    let object = ObjectId(7);
    let bytes: Vec<u8> = (0..10_000u32).map(|at| (at % 251) as u8).collect();
    {
        let mut stack = build_stored(&config, &image).unwrap().subsystem;
        for (command, payload) in [
            (ObjectCommand::Create { object, hint: Hint::SHORT }, Payload::None),
            (
                ObjectCommand::Write { object, extent: Extent::new(0, 10_000), hint: None },
                Payload::Write(&bytes),
            ),
            (ObjectCommand::Flush { object: Some(object) }, Payload::None),
        ] {
            stack.submit(0, command.into(), payload, SimTime::ZERO).unwrap();
        }
    }
    let mut stack = build_stored(&config, &image).unwrap().subsystem;
    let mut got = vec![0; 12_000];
    let read = ObjectCommand::Read { object, extent: Extent::new(0, 12_000) };
    let answer = stack.submit(0, read.into(), Payload::Read(&mut got), SimTime::ZERO).unwrap();
    assert!(matches!(answer.reply, Reply::Bytes(10_000)), "{:?}", answer.reply);
    assert!(got[..10_000] == bytes);
}

/// A unit of the store holds more than the object: the kernel asks for what is behind the end of a file
/// whose writes it gathers.
#[test]
fn a_read_behind_the_end_of_an_object_gives_no_bytes_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    for stack in ["zone-files", "oftl"] {
        let image = Storage::Image(folder.path().join(stack));
        let config = config(stack, &["device.page=16KiB"]);
        let object = ObjectId(1);
        let read = |from| ObjectCommand::Read { object, extent: Extent::new(from, 100) };
        let mut store = build_stored(&config, &image).unwrap().subsystem;
        let mut submit = |command: ObjectCommand, payload: Payload<'_>| {
            store.submit(0, command.into(), payload, SimTime::ZERO).unwrap().reply
        };
        submit(ObjectCommand::Create { object, hint: Hint::NONE }, Payload::None);
        let write = ObjectCommand::Write { object, extent: Extent::new(0, PAGE), hint: None };
        submit(write, Payload::Write(&[7; PAGE as usize]));
        assert_eq!(submit(read(PAGE), Payload::Read(&mut [0; 100])), Reply::Bytes(0));
        store.shutdown(SimTime::ZERO).unwrap();
        drop(store);
        let mut store = build_stored(&config, &image).unwrap().subsystem;
        for (from, bytes) in [(PAGE, 0), (PAGE + 1, 0), (5 * PAGE, 0), (PAGE - 1, 1)] {
            let answer = store.submit(0, read(from).into(), Payload::Read(&mut [0; 100]), SimTime::ZERO);
            assert_eq!(answer.unwrap().reply, Reply::Bytes(bytes), "{stack}, from {from}");
        }
    }
}

#[test]
fn holes_of_objects_are_told_by_every_store() {
    let stacks: [(&str, &[&str]); 4] = [
        ("zone-files", &[]),
        ("oftl", &[]),
        ("f2fs", &["f2fs.segment=32KiB"]),
        ("f2fs-zones", &["f2fs.segment=32KiB", "zone.conventional=20", "device.blocks_per_plane=160"]),
    ];
    for (stack, sets) in stacks {
        let mut store = build_subsystem(&config(stack, sets)).unwrap();
        let mut submit = |command: ObjectCommand| {
            store.submit(0, command.into(), Payload::None, SimTime::ZERO).unwrap().reply
        };
        let object = ObjectId(1);
        submit(ObjectCommand::Create { object, hint: Hint::NONE });
        for extent in [Extent::new(0, 2 * PAGE), Extent::new(10 * PAGE, PAGE), Extent::new(20 * PAGE, 100)] {
            submit(ObjectCommand::Write { object, extent, hint: None });
        }
        submit(ObjectCommand::Punch { object, extent: Extent::new(PAGE, PAGE) });
        submit(ObjectCommand::Truncate { object, size: 30 * PAGE });
        submit(ObjectCommand::Flush { object: Some(object) });
        let runs = stored_runs(object, |command| Ok::<_, ()>(submit(command))).unwrap();
        let pages: Vec<_> = runs.iter().map(|run| (run.offset / PAGE, run.len / PAGE)).collect();
        assert_eq!(pages, [(0, 1), (10, 1), (20, 1)], "{stack}");
        let ask = |extent| ObjectCommand::Allocation { object, extent };
        let found = |is_mapped, bytes| Reply::Allocation(Allocation { is_mapped, bytes });
        assert_eq!(submit(ask(Extent::new(PAGE - 1, 9))), found(true, 1), "{stack}");
        assert_eq!(submit(ask(Extent::new(PAGE, 9))), found(false, 9), "{stack}");
        assert_eq!(submit(ask(Extent::new(25 * PAGE, u64::MAX / 2))), found(false, 5 * PAGE), "{stack}");
        assert_eq!(submit(ask(Extent::new(30 * PAGE, 9))), found(false, 0), "{stack}");
    }
}
