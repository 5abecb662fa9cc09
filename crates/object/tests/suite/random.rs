//! Random commands against plain objects in memory.

use super::support::{Objects, Store, nand, open, open_in_steps, params};
use nandscape_core::command::Payload;
use nandscape_core::rng::{Rng as _, seeded};
use nandscape_core::{
    Command, Extent, Hint, ObjectCommand, ObjectError, ObjectId, Params, SimTime, Subsystem,
};
use nandscape_media::faults::FaultPlan;
use nandscape_object::oftl::{ObjectOob, Sabotage};
use nandscape_testkit::crash::{Buffer, CrashDevice};
use nandscape_testkit::objects::crash::is_full;
use nandscape_testkit::objects::load::{Mix, OBJECTS, apply, find, submit};
use nandscape_testkit::objects::random::{self, Run};
use std::cell::Cell;
use std::collections::BTreeMap;

fn run(seed: u64, keys: &[(&str, &str)], steps: u64, mix: Mix) -> u64 {
    let open = |device| open(device, &params(keys), Sabotage::None);
    random::run::<Objects>(&nand(), open, Run { seed, steps, mix, checked_every: 400 })
}

#[test]
fn objects_are_what_was_written_over_restarts() {
    let small = Mix { most_bytes: 3_000, most_size: 9_000, unit: 512 };
    let tiny = Mix { most_bytes: 200, most_size: 2_000, unit: 64 };
    let large = Mix { most_bytes: 20_000, most_size: 40_000, unit: 512 };
    run(1, &[], 30_000, small);
    run(2, &[("sync", "true")], 15_000, small);
    run(3, &[("diffs", "false")], 15_000, small);
    run(4, &[("lazy_index", "false"), ("cache", "2KiB")], 15_000, small);
    run(9, &[("compress", "true")], 15_000, small);
    run(11, &[("resident", "0"), ("cache", "2KiB")], 15_000, small);
    run(12, &[("resident", "2"), ("cache", "4KiB"), ("compress", "true")], 15_000, large);
    run(10, &[("compress", "true"), ("sync", "true")], 15_000, tiny);
    run(8, &[("lazy_index", "false"), ("diffs", "false"), ("sync", "true")], 15_000, small);
    run(5, &[("flush_after", "100ns"), ("victim", "fifo")], 15_000, tiny);
    assert!(run(6, &[("cache", "16KiB")], 8_000, large) > 0, "space runs out");
    assert!(run(7, &[("cache", "0"), ("window", "2"), ("op", "0.1")], 8_000, large) > 0);
}

#[test]
fn objects_are_what_was_written_where_flushes_have_steps() {
    let large = Mix { most_bytes: 9_000, most_size: 30_000, unit: 512 };
    for (seed, keys) in [(21, &[("cache", "8KiB")][..]), (22, &[("cache", "3KiB"), ("diffs", "false")])] {
        let open = |device| open_in_steps(device, &params(keys), Sabotage::None);
        random::run::<Objects>(&nand(), open, Run { seed, steps: 15_000, mix: large, checked_every: 1 });
    }
}

/// What a write leaves for later is done by as many chores, or by the writes that follow: memory has bounds,
/// few commands take as long as a flush of the cache layer, and a flush finds everything.
#[test]
fn a_flush_in_steps_needs_no_chores_and_takes_no_more_memory() {
    const PAGES: u64 = 200;
    let run = |is_postponed: bool, has_chores: bool| {
        let (device, handle) = CrashDevice::new(nand(), Buffer::None, &FaultPlan::default(), false);
        let keys = params(&[("cache", "8KiB")]);
        let open = if is_postponed { open_in_steps } else { open };
        let mut store = open(device, &keys, Sabotage::None).unwrap();
        let object = ObjectId(1);
        let create = ObjectCommand::Create { object, hint: Hint::NONE };
        store.submit(0, create.into(), Payload::None, SimTime::ZERO).unwrap();
        let (mut long, mut most_memory) = (0, 0);
        for page in 0..PAGES {
            let before = store.inspect().device(0).tally().totals.programs;
            let extent = Extent::new(page * 512, 512);
            let write = ObjectCommand::Write { object, extent, hint: None };
            store.submit(0, write.into(), Payload::Write(&[page as u8; 512]), SimTime(page)).unwrap();
            let programs = store.inspect().device(0).tally().totals.programs - before;
            // Ends of windows and collection take long, too.
            long += u64::from(programs >= 8);
            let read = ObjectCommand::Read { object: ObjectId(2), extent };
            assert!(store.submit(0, read.into(), Payload::None, SimTime(page)).is_err(), "there is none");
            if has_chores {
                store.control().chores.unwrap().chore(SimTime(page)).unwrap();
            }
            store.check_invariants();
            let cost = store.inspect().layer(0).cost();
            most_memory = most_memory.max(cost.dram_bytes - cost.map_table_bytes);
        }
        let flush = ObjectCommand::Flush { object: None };
        store.submit(0, flush.into(), Payload::None, SimTime(PAGES)).unwrap();
        store.check_invariants();
        drop(store);
        let (device, _) = CrashDevice::new(handle.nand(), Buffer::None, &FaultPlan::default(), false);
        let mut store = open(device, &keys, Sabotage::None).unwrap();
        let expected: Vec<u8> = (0..PAGES * 512).map(|at| (at / 512) as u8).collect();
        assert_eq!(find(&mut store, 1).unwrap().unwrap().bytes, expected);
        (long, most_memory)
    };
    let at_once = run(false, false);
    let in_steps = run(true, false);
    let with_chores = run(true, true);
    for stepwise in [in_steps, with_chores] {
        let context = format!("long commands and bytes of memory: {stepwise:?}, at once {at_once:?}");
        assert!(2 * stepwise.0 < at_once.0 && stepwise.1 < at_once.1 + 4096, "{context}");
    }
}

/// Reads of objects beyond those that stay in memory read their metadata again, and no others do.
#[test]
fn objects_leave_the_memory_and_are_read_again() {
    const OBJECTS: u64 = 60;
    let run = |resident: &str| {
        let (device, _) = CrashDevice::new(nand(), Buffer::None, &FaultPlan::default(), false);
        let keys = params(&[("resident", resident)]);
        let mut store = open(device, &keys, Sabotage::None).unwrap();
        let mut ask = |command: ObjectCommand, payload: Payload<'_>| {
            store.submit(0, command.into(), payload, SimTime::ZERO).unwrap();
        };
        let extent = Extent::new(0, 512);
        for object in (1..=OBJECTS).map(ObjectId) {
            ask(ObjectCommand::Create { object, hint: Hint::NONE }, Payload::None);
            ask(ObjectCommand::Write { object, extent, hint: None }, Payload::Write(&[object.0 as u8; 512]));
        }
        store.shutdown(SimTime::ZERO).unwrap();
        let reads = |store: &Store| store.inspect().layers.get(0).device().counters().total().reads;
        let before = reads(&store);
        for turn in 0..3 {
            for object in (1..=OBJECTS).map(ObjectId) {
                let mut bytes = [0; 512];
                let read = ObjectCommand::Read { object, extent };
                store.submit(0, read.into(), Payload::Read(&mut bytes), SimTime::ZERO).unwrap();
                assert_eq!(bytes, [object.0 as u8; 512], "turn {turn}");
            }
            store.check_invariants();
        }
        (reads(&store) - before, store.inspect().layers.get(0).cost().map_table_bytes)
    };
    let (all, few) = (run("100"), run("5"));
    assert_eq!(all.0, 3 * OBJECTS, "of data alone");
    assert!(few.0 > 5 * OBJECTS && few.0 <= 6 * OBJECTS, "{} reads", few.0);
    assert!(10 * few.1 <= all.1, "{} and {} bytes of places in memory", few.1, all.1);
}

#[test]
#[should_panic(expected = "of which the flash knows less, is in memory")]
fn objects_that_leave_the_memory_too_early_are_found() {
    let mix = Mix { most_bytes: 3_000, most_size: 9_000, unit: 512 };
    let keys = params(&[("resident", "0"), ("cache", "2KiB")]);
    let open = |device| open(device, &keys, Sabotage::EarlyUnload);
    random::run::<Objects>(&nand(), open, Run { seed: 11, steps: 15_000, mix, checked_every: 1 });
}

#[test]
fn differences_are_read_with_and_without_compression() {
    let mix = Mix { most_bytes: 400, most_size: 4_000, unit: 64 };
    let starts = Cell::new(0);
    let open = |device| {
        let compress = if starts.replace(starts.get() + 1) % 2 == 0 { "true" } else { "false" };
        open(device, &params(&[("compress", compress)]), Sabotage::None)
    };
    random::run::<Objects>(&nand(), open, Run { seed: 11, steps: 20_000, mix, checked_every: 400 });
    assert!(starts.get() > 10, "{} starts", starts.get());
}

/// Bytes are programmed once for parts of pages that a metadata page has room for only if it is compressed.
#[test]
fn compression_saves_programs_of_parts_of_pages() {
    let programs = |keys: &[(&str, &str)], data: &dyn Fn(u64) -> Vec<u8>| {
        let (device, _) = CrashDevice::new(nand(), Buffer::None, &FaultPlan::default(), false);
        let mut store = open(device, &params(keys), Sabotage::None).unwrap();
        let object = ObjectId(1);
        let create = ObjectCommand::Create { object, hint: Hint::NONE };
        store.submit(0, create.into(), Payload::None, SimTime::ZERO).unwrap();
        for page in 0..100 {
            let data = data(page % 4);
            let extent = Extent::new(page % 4 * 512, data.len() as u64);
            let write = ObjectCommand::Write { object, extent, hint: None };
            store.submit(0, write.into(), Payload::Write(&data), SimTime::ZERO).unwrap();
        }
        let mut read = vec![0; 300];
        let command = ObjectCommand::Read { object, extent: Extent::new(512, 300) };
        store.submit(0, command.into(), Payload::Read(&mut read), SimTime::ZERO).unwrap();
        assert_eq!(read, data(1));
        store.inspect().device(0).tally().totals.programs
    };
    let sync = ("sync", "true");
    let text = |_| b"key=value;".repeat(30);
    let plain = programs(&[sync], &text);
    let packed = programs(&[sync, ("compress", "true")], &text);
    assert!(10 * packed < 7 * plain, "{packed} and {plain} programs");
    let noise = |page| {
        let mut rng = seeded(page);
        (0..300).map(|_| rng.next_u64() as u8).collect()
    };
    assert_eq!(programs(&[sync, ("compress", "true")], &noise), programs(&[sync], &noise));
}

/// Metadata that was written behind its data says where that is: the end of a window does not write it again.
#[test]
fn metadata_is_written_once_for_each_flush() {
    const OBJECTS: u64 = 40;
    let (device, _) = CrashDevice::new(nand(), Buffer::None, &FaultPlan::default(), false);
    let mut store = open(device, &params(&[("window", "4")]), Sabotage::None).unwrap();
    let extensions = |store: &Store| store.inspect().objects().unwrap().on_flash.unwrap().window_extensions;
    let programs = |store: &Store| store.inspect().device(0).tally().totals.programs;
    let before = (extensions(&store), programs(&store));
    for object in (1..=OBJECTS).map(ObjectId) {
        let extent = Extent::new(0, 3 * 512 + 100);
        let write = ObjectCommand::Write { object, extent, hint: None };
        let create = ObjectCommand::Create { object, hint: Hint::NONE };
        store.submit(0, create.into(), Payload::None, SimTime::ZERO).unwrap();
        store.submit(0, write.into(), Payload::Write(&[7; 3 * 512 + 100]), SimTime::ZERO).unwrap();
        store
            .submit(0, ObjectCommand::Flush { object: Some(object) }.into(), Payload::None, SimTime::ZERO)
            .unwrap();
    }
    let (extensions, programs) = (extensions(&store) - before.0, programs(&store) - before.1);
    assert!(extensions >= 4, "{extensions} windows");
    // Three pages of data and one of metadata; two roots, each one page, and a few pages of the log.
    let system = programs - 4 * OBJECTS;
    assert!(system <= 7 * extensions, "{system} pages for {extensions} windows");
}

/// Whatever fills the store meanwhile, over a restart, in parts of pages and whole ones.
#[test]
fn what_is_reserved_can_be_written_in_a_full_store() {
    const RESERVED: u64 = 100 * 512;
    for keys in [&[][..], &[("sync", "true"), ("diffs", "false")], &[("compress", "true"), ("op", "0.05")]] {
        let new = |nand| CrashDevice::new(nand, Buffer::None, &FaultPlan::default(), false);
        let (device, handle) = new(nand());
        let mut store = open(device, &params(keys), Sabotage::None).unwrap();
        let ask = |store: &mut Store, command: ObjectCommand, data: &[u8]| {
            let payload = if data.is_empty() { Payload::None } else { Payload::Write(data) };
            store.submit(0, command.into(), payload, SimTime::ZERO).map(|_| ())
        };
        let [kept, other] = [ObjectId(1), ObjectId(2)];
        for object in [kept, other] {
            ask(&mut store, ObjectCommand::Create { object, hint: Hint::NONE }, &[]).unwrap();
        }
        let extent = Extent::new(0, 3 * 512 + 7);
        ask(&mut store, ObjectCommand::Write { object: kept, extent, hint: None }, &[1; 3 * 512 + 7])
            .unwrap();
        let all = |len| ObjectCommand::Reserve { object: kept, extent: Extent::new(0, len) };
        for len in [1 << 20, 1 << 39] {
            assert!(is_full(&ask(&mut store, all(len), &[]).unwrap_err()), "{len}");
        }
        for len in [1 << 40, u64::MAX >> 1] {
            assert_eq!(ask(&mut store, all(len), &[]).unwrap_err(), ObjectError::TooLarge.into(), "{len}");
        }
        ask(&mut store, all(RESERVED), &[]).unwrap();
        let fill = |store: &mut Store, from: u64| {
            (from..1 << 20).find(|page| {
                let extent = Extent::new(page * 512, 512);
                ask(store, ObjectCommand::Write { object: other, extent, hint: None }, &[2; 512]).is_err()
            })
        };
        let full = fill(&mut store, 0).unwrap();
        store.submit(0, Command::FLUSH, Payload::None, SimTime::ZERO).unwrap();
        store.check_invariants();
        drop(store);
        let (device, _) = new(handle.nand());
        let mut store = open(device, &params(keys), Sabotage::None).unwrap();
        assert_eq!(fill(&mut store, full), Some(full), "{keys:?}: it is full still");
        let mut expected = vec![0; RESERVED as usize];
        expected[..3 * 512 + 7].fill(1);
        assert_eq!(find(&mut store, 1).unwrap().unwrap().bytes, expected, "{keys:?}");
        for at in (0..RESERVED - 300).step_by(300) {
            let extent = Extent::new(at, 300);
            let write = ObjectCommand::Write { object: kept, extent, hint: None };
            ask(&mut store, write, &[3; 300]).unwrap_or_else(|error| panic!("{error} at {at}, {keys:?}"));
            expected[at as usize..][..300].fill(3);
            if at % 900 == 0 {
                store.submit(0, Command::FLUSH, Payload::None, SimTime::ZERO).unwrap();
                store.check_invariants();
            }
        }
        assert_eq!(find(&mut store, 1).unwrap().unwrap().bytes, expected, "{keys:?}");
        // What is given up can be taken by others.
        ask(&mut store, ObjectCommand::Truncate { object: kept, size: 0 }, &[]).unwrap();
        assert!(fill(&mut store, full).unwrap() >= full + RESERVED / 512, "{keys:?}");
    }
}

/// `RANDOM_STEPS`: how many commands, with starts in between [default: 20000].
#[test]
fn invariants_hold_after_every_command() {
    let steps = std::env::var("RANDOM_STEPS").map_or(20_000, |text| text.parse().expect("a number"));
    let mix = Mix { most_bytes: 3_000, most_size: 9_000, unit: 512 };
    let few = [("cache", "1KiB"), ("resident", "1")];
    let all = [&[][..], &[("sync", "true")], &[("cache", "2KiB"), ("op", "0.1")], &few];
    for (seed, keys) in (1..).zip(all) {
        let open = |device| open(device, &params(keys), Sabotage::None);
        let run = Run { seed, steps: steps / 4, mix, checked_every: 1 };
        random::run::<Objects>(&nand(), open, run);
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let (device, _) = CrashDevice::new(nand(), Buffer::None, &FaultPlan::default(), false);
    let mut store = open(device, &params(&[]), Sabotage::None).unwrap();
    random::refusals(&mut store);
}

#[test]
fn pages_that_cannot_be_read_are_lost_and_nothing_else() {
    let plan = FaultPlan { unreadable: 0.004, seed: 3, ..FaultPlan::default() };
    let mix = Mix { most_bytes: 3_000, most_size: 9_000, unit: 512 };
    for keys in [&[("cache", "4KiB")][..], &[("sync", "true")], &[("diffs", "false")]] {
        let (device, handle) = CrashDevice::new(nand(), Buffer::None, &plan, false);
        let mut store = open(device, &params(keys), Sabotage::None).unwrap();
        let mut rng = seeded(1);
        let mut plain = BTreeMap::new();
        let (mut read, mut lost) = (0, 0);
        for step in 0..20_000 {
            let request = mix.request(&mut rng, &plain);
            match submit(&mut store, &request, SimTime(step)) {
                Ok(_) => apply(&mut plain, &request),
                Err(error) => assert!(is_full(&error), "{error}, step {step} with {keys:?}"),
            }
            if step % 20 > 0 {
                continue;
            }
            store.check_invariants();
            for id in 1..=OBJECTS {
                match find(&mut store, id) {
                    Ok(found) => {
                        assert_eq!(found.as_ref(), plain.get(&id), "object {id}, step {step} with {keys:?}");
                        read += 1;
                    }
                    Err(error) => {
                        assert!(error.contains("uncorrectable"), "{error}, step {step} with {keys:?}");
                        lost += 1;
                    }
                }
            }
        }
        assert!(handle.faults().unreadable > 100 && lost > 0 && read > 10 * lost, "{read} read, {lost} lost");
    }
}

#[test]
fn a_store_that_writes_no_more_does_not_say_that_it_flushed() {
    for open in [open, open_in_steps] {
        let refused = (5..15).filter(|seed| refuses_to_flush(*seed, open)).count();
        assert!(refused >= 5, "{refused} of 10");
    }
}

type Open = fn(CrashDevice<ObjectOob>, &Params, Sabotage) -> Result<Store, String>;

/// Programs fail until the store writes no more. Whether it says so of a flush.
fn refuses_to_flush(seed: u64, open: Open) -> bool {
    let plan = FaultPlan { program: 0.04, seed, ..FaultPlan::default() };
    let keys = params(&[("cache", "4KiB")]);
    let (device, handle) = CrashDevice::new(nand(), Buffer::None, &plan, false);
    let mut store = open(device, &keys, Sabotage::None).unwrap();
    let mix = Mix { most_bytes: 3_000, most_size: 9_000, unit: 512 };
    let mut rng = seeded(1);
    let mut plain = BTreeMap::new();
    let (error, failed) = loop {
        let request = mix.request(&mut rng, &plain);
        match submit(&mut store, &request, SimTime::ZERO) {
            Ok(_) => apply(&mut plain, &request),
            Err(error) if is_full(&error) => {}
            Err(error) => break (error, request),
        }
    };
    assert!(error.to_string().starts_with("read-only: "), "{error}");
    // What is there can be read, on the flash or not; the command that failed may have been done.
    let mut with_failed = plain.clone();
    apply(&mut with_failed, &failed);
    let check = |store: &mut Store, when: &str| {
        for id in 1..=OBJECTS {
            let found = find(store, id).unwrap();
            let is_right = [&plain, &with_failed].iter().any(|plain| plain.get(&id) == found.as_ref());
            assert!(is_right, "seed {seed}, {when}: object {id} after {:?}", failed.command);
        }
    };
    check(&mut store, "in memory");
    let flushed = store.submit(0, Command::FLUSH, Payload::None, SimTime::ZERO);
    let ended = store.shutdown(SimTime::ZERO);
    if let Err(again) = &flushed {
        assert_eq!((again, ended.as_ref()), (&error, Err(&error)));
    } else {
        // Nothing was left to be flushed.
        let (device, _) = CrashDevice::new(handle.nand(), Buffer::None, &FaultPlan::default(), false);
        check(&mut open(device, &keys, Sabotage::None).unwrap(), "after a start");
    }
    check(&mut store, "after a flush");
    flushed.is_err()
}
