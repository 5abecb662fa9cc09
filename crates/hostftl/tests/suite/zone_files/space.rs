//! Space: never full while anything can be reclaimed, zones that fail, what is free can be written.

use super::{GEOMETRY, create, is_full, open_nand, params, report, space, submit, write};
use crate::support::{TimedZones, is_read_only, nand, setup, timed};
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    Cause, Command, Extent, Geometry, Hint, NamespaceError, ObjectCommand, ObjectError, ObjectId, SimTime,
    Subsystem,
};
use nandscape_hostftl::ZoneFiles;
use nandscape_media::Timing;
use nandscape_media::faults::FaultPlan;
use nandscape_testkit::objects::load::{Mix, OBJECTS, Plain, apply, find, submit as submit_request};
use std::collections::BTreeMap;
use std::io::Write as _;

const TIMING: Timing = Timing {
    read_ns: 40_000,
    program_ns: 200_000,
    erase_ns: 2_000_000,
    command_ns: 0,
    channel_bytes_per_s: 1_000_000_000,
};

/// 100 zones of 128 pages over four dies.
const LARGE: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 1,
    blocks_per_plane: 102,
    pages_per_block: 32,
    page_bytes: 4096,
    sector_bytes: 4096,
    oob_bytes: 0,
};
const ZONE: u64 = 128 * 4096;

pub(super) fn large(keys: &[(&str, &str)]) -> ZoneFiles<TimedZones> {
    ZoneFiles::new(timed(LARGE, &setup(&LARGE, 4, 128, Some(14)), &TIMING), &params(keys)).unwrap()
}

fn delete<S: Subsystem>(files: &mut S, object: u64, at: SimTime) {
    submit(files, ObjectCommand::Delete { object: ObjectId(object) }, Payload::None, at).unwrap();
}

/// Writes a file in pieces; when its last write is answered.
fn write_file(files: &mut ZoneFiles<TimedZones>, object: u64, len: u64, mut at: SimTime) -> SimTime {
    let mut offset = 0;
    while offset < len {
        let piece = (len - offset).min(16 * 4096);
        let extent = Extent::new(offset, piece);
        let write = ObjectCommand::Write { object: ObjectId(object), extent, hint: None };
        let done = files.submit(0, write.into(), Payload::None, at).unwrap_or_else(|error| {
            panic!("object {object} at {offset}: {error}; {:?}", space(files));
        });
        at = at.max(SimTime(done.done.0));
        offset += piece;
    }
    at
}

/// Files of a size take 95 % of the capacity, and random ones are replaced by new ones, five times the
/// capacity in all. Gives the largest space amplification.
fn replace(name: &str, size: u64, keys: &[(&str, &str)]) -> f64 {
    let mut files = large(keys);
    let capacity = space(&mut files).capacity;
    let count = capacity * 95 / 100 / size;
    let mut rng = seeded(1);
    let mut live: Vec<u64> = Vec::new();
    let (mut next, mut at, mut most) = (1, SimTime::ZERO, 0.0f64);
    for number in 0..count + 5 * capacity / size {
        create(&mut files, next, Hint::MEDIUM);
        at = write_file(&mut files, next, size, at);
        live.push(next);
        next += 1;
        if number >= count {
            let victim = live.swap_remove(below(&mut rng, live.len() as u64) as usize);
            delete(&mut files, victim, at);
            let flush = files.submit(0, Command::FLUSH, Payload::None, at).unwrap();
            at = at.max(SimTime(flush.done.0));
            most = most.max(report(&files).space_amplification().unwrap());
        }
    }
    files.check_invariants();
    let report = report(&files);
    let written = files.inspect().host_counts(0).write_bytes;
    let _ = writeln!(
        std::io::stderr(),
        "{name} {keys:?}: space amplification at most {most:.3}, {:.2} bytes moved a byte, {} zones finished, writers waited \
         {:.1} % of the time",
        report.moved_bytes as f64 / written as f64,
        report.finishes,
        report.waited_ns as f64 * 100.0 / at.0 as f64,
    );
    most
}

#[test]
fn files_that_take_95_percent_are_replaced_five_times_without_a_full_store() {
    for keys in [&[][..], &[("placement", "zenfs")], &[("placement", "none")]] {
        assert!(replace("a file a zone", ZONE, keys) <= 1.10, "{keys:?}");
        assert!(replace("four files a zone", ZONE / 4, keys) <= 1.20, "{keys:?}");
    }
}

#[test]
fn files_that_take_95_percent_are_overwritten_in_place_without_a_full_store() {
    let mut files = large(&[]);
    let capacity = space(&mut files).capacity;
    let size = capacity * 95 / 100 / 10 / 4096 * 4096;
    let mut at = SimTime::ZERO;
    for object in 1..=10 {
        create(&mut files, object, Hint::NOT_SET);
        at = write_file(&mut files, object, size, at);
    }
    let mut rng = seeded(2);
    for step in 0..5 * capacity / 16384 {
        let object = 1 + below(&mut rng, 10);
        let offset = below(&mut rng, size / 4096 - 4) * 4096;
        write(&mut files, object, offset, 16384, at).unwrap_or_else(|error| panic!("step {step}: {error}"));
    }
    files.check_invariants();
    let report = report(&files);
    let _ = writeln!(std::io::stderr(), "in place: {report:?}");
    assert!(report.resets > 0 && report.space_amplification().unwrap() < 1.15, "{report:?}");
}

#[test]
fn what_is_free_can_be_written_to_the_last_unit_and_no_further() {
    for keys in [&[][..], &[("placement", "none"), ("reserve", "3")], &[("open_zones", "2")]] {
        let mut files = large(keys);
        let mut rng = seeded(3);
        let mut written = 0;
        let capacity = space(&mut files).capacity;
        for object in 1.. {
            create(&mut files, object, Hint(below(&mut rng, 6) as u16));
            let free = space(&mut files).free;
            if free == 0 {
                let error = write(&mut files, object, 0, 1, SimTime::ZERO).unwrap_err();
                assert_eq!(error, NamespaceError::Object(ObjectError::Full));
                break;
            }
            let len = free.min(4096 * (1 + below(&mut rng, 200)));
            let error = write(&mut files, object, 0, free + 1, SimTime::ZERO).unwrap_err();
            assert!(is_full(&error), "{error}");
            write(&mut files, object, 0, len, SimTime::ZERO).unwrap();
            written += len;
        }
        assert_eq!(written, capacity);
        // Bytes of a file are written over however little is free.
        for step in 0..3_000 {
            write(&mut files, 1 + step % 9, 0, 4096, SimTime::ZERO).unwrap();
        }
        assert_eq!(space(&mut files).free, 0);
        files.check_invariants();
        delete(&mut files, 1, SimTime::ZERO);
        assert!(space(&mut files).free > 0);
    }
}

#[test]
fn writers_wait_when_space_is_short_and_do_not_otherwise() {
    let mut files = large(&[("placement", "none")]);
    let capacity = space(&mut files).capacity;
    create(&mut files, 1, Hint::NONE);
    let mut at = write_file(&mut files, 1, capacity * 60 / 100, SimTime::ZERO);
    assert_eq!(report(&files).waited_ns, 0);
    let mut rng = seeded(4);
    for _ in 0..2 * capacity / 4096 {
        let extent = Extent::new(below(&mut rng, capacity * 60 / 100 / 4096) * 4096, 4096);
        let write = ObjectCommand::Write { object: ObjectId(1), extent, hint: None };
        at = at.max(SimTime(files.submit(0, write.into(), Payload::None, at).unwrap().done.0));
    }
    let report = report(&files);
    assert!(report.waited_ns > 0 && report.moved_bytes > 0, "{report:?}");
}

/// Random commands while blocks fail, with starts in between, until the store takes no more writes.
#[test]
fn files_outlive_failing_zones() {
    let mix = Mix { most_bytes: 6_000, most_size: 9_000, unit: 512 };
    let mut ended = 0;
    for seed in 0..8 {
        let plan = FaultPlan { seed, program: 0.002, erase: 0.01, ..FaultPlan::default() };
        let (mut files, mut handle) = open_nand(nand(GEOMETRY), &[], &plan);
        let mut rng = seeded(seed);
        let mut plain: BTreeMap<u64, Plain> = BTreeMap::new();
        for step in 0..4_000u64 {
            let request = mix.request(&mut rng, &plain);
            match submit_request(&mut files, &request, SimTime(step)) {
                Ok(_) => apply(&mut plain, &request),
                Err(error) if is_full(&error) => {}
                Err(error) => {
                    assert!(is_read_only(&error), "{error}: seed {seed}, step {step}, {:?}", request.command);
                    ended += 1;
                    break;
                }
            }
            if step % 500 == 499 {
                files.check_invariants();
                let Ok(_) = files.submit(0, Command::FLUSH, Payload::None, SimTime(step)) else {
                    ended += 1;
                    break;
                };
                drop(files);
                let plan = FaultPlan { seed: seed ^ (step << 8), ..plan.clone() };
                (files, handle) = open_nand(handle.nand(), &[], &plan);
                for id in 1..=OBJECTS {
                    assert_eq!(
                        find(&mut files, id).unwrap().as_ref(),
                        plain.get(&id),
                        "seed {seed}, step {step}"
                    );
                }
            }
        }
    }
    assert!(ended > 0, "no store ended");
}

#[test]
fn a_clean_end_writes_its_records_and_pads_no_zone() {
    let mut files = large(&[]);
    for object in 1..=20 {
        create(&mut files, object, Hint::MEDIUM);
        write_file(&mut files, object, 16 * 4096, SimTime::ZERO);
    }
    let programs = |files: &ZoneFiles<TimedZones>| files.inspect().layer(0).device().tally().totals.programs;
    let before = programs(&files);
    files.shutdown(SimTime(1 << 40)).unwrap();
    let more = programs(&files) - before;
    assert!((2..=4).contains(&more), "{more} programs for the records of 20 files and a page of the end");
}

/// A start begins a new zone of the journal and resets the one before, whatever that had room for.
#[test]
fn a_start_pads_no_zone() {
    let (mut files, mut handle) = open_nand(nand(GEOMETRY), &[], &FaultPlan::default());
    for turn in 0..6 {
        for object in 1..=3 {
            if turn == 0 {
                create(&mut files, object, Hint::MEDIUM);
            }
            write(&mut files, object, 0, 512, SimTime::ZERO).unwrap();
        }
        files.shutdown(SimTime::ZERO).unwrap();
        (files, handle) = open_nand(handle.nand(), &[], &FaultPlan::default());
        let causes = *files.inspect().layer(0).device().counters();
        assert_eq!(causes.get(Cause::Finish).programs, 0, "start {turn}");
        files.check_invariants();
    }
}
