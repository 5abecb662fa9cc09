//! Random commands against plain files in memory.

use super::load::{FILES, Mix, Plain, apply, find, submit};
use super::{Crashing, GEOMETRY, is_full, open_nand, space};
use crate::support::nand;
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    Command, Extent, Hint, NamespaceError, ObjectCommand, ObjectError, ObjectId, Reply, SimTime, Subsystem,
};
use nandscape_media::faults::FaultPlan;
use std::collections::BTreeMap;

fn check_all(files: &mut Crashing, plain: &BTreeMap<u64, Plain>, context: &str) {
    for id in 1..=FILES {
        let found = find(files, id).unwrap_or_else(|error| panic!("{error}; {context}"));
        let expected = plain.get(&id);
        if found.as_ref() == expected {
            continue;
        }
        let (Some(found), Some(expected)) = (&found, expected) else {
            panic!("object {id}: exists {}, expected {}; {context}", found.is_some(), expected.is_some());
        };
        assert_eq!(found.bytes.len(), expected.bytes.len(), "size of object {id}; {context}");
        let wrong = found.bytes.iter().zip(&expected.bytes).position(|(found, expected)| found != expected);
        assert_eq!(wrong, None, "first wrong byte of object {id}; {context}");
        assert_eq!(found, expected, "object {id}; {context}");
    }
}

fn check_list(files: &mut Crashing, plain: &BTreeMap<u64, Plain>) {
    let list = files.submit(0, ObjectCommand::List.into(), Payload::None, SimTime::ZERO).unwrap().reply;
    let Reply::Objects(list) = list else { panic!("{list:?}") };
    let found: Vec<_> = list.iter().map(|status| (status.object.0, status.size, status.hint.0)).collect();
    let sizes = plain.iter().map(|(id, file)| (*id, file.bytes.len() as u64, file.hint));
    assert_eq!(found, sizes.collect::<Vec<_>>());
    let allocated: u64 = list.iter().map(|status| status.allocated).sum();
    assert_eq!(space(files).live, allocated);
}

/// So many commands with starts in between; gives how many were refused for lack of room.
fn run(seed: u64, keys: &[(&str, &str)], steps: u64, mix: Mix) -> u64 {
    let mut rng = seeded(seed);
    let plan = FaultPlan::default();
    let (mut files, mut handle) = open_nand(nand(GEOMETRY), keys, &plan);
    let mut plain = BTreeMap::new();
    let mut refused = 0;
    for step in 0..steps {
        let request = mix.request(&mut rng, &plain);
        let context = format!("seed {seed}, step {step}, {:?}", request.command);
        match submit(&mut files, &request, SimTime(step)) {
            Ok(_) => apply(&mut plain, &request),
            Err(error) => {
                assert!(is_full(&error), "{error}; {context}");
                let room = space(&mut files).free;
                let fits = (request.data.len() as u64).next_multiple_of(mix.unit) + mix.unit <= room;
                let is_full = error == NamespaceError::Object(ObjectError::Full);
                assert!(!(is_full && fits), "{room} bytes are free; {context}");
                refused += 1;
            }
        }
        if step % 400 == 0 {
            files.check_invariants();
            check_list(&mut files, &plain);
        }
        if step % 50 == 0 {
            check_all(&mut files, &plain, &context);
        }
        if below(&mut rng, 300) == 0 {
            if below(&mut rng, 2) == 0 {
                submit_flush(&mut files);
            } else {
                files.shutdown(SimTime(step)).unwrap();
            }
            drop(files);
            (files, handle) = open_nand(handle.nand(), keys, &plan);
            files.check_invariants();
            check_all(&mut files, &plain, &format!("after a start; {context}"));
        }
    }
    check_all(&mut files, &plain, "at the end");
    refused
}

fn submit_flush(files: &mut Crashing) {
    files.submit(0, Command::FLUSH, Payload::None, SimTime::ZERO).unwrap();
}

#[test]
fn files_are_what_was_written_over_restarts() {
    let small = Mix { most_bytes: 3_000, most_size: 9_000, unit: 512 };
    let large = Mix { most_bytes: 30_000, most_size: 60_000, unit: 512 };
    run(1, &[], 40_000, small);
    run(2, &[("placement", "zenfs"), ("finish_threshold", "30")], 25_000, small);
    run(3, &[("placement", "none"), ("victim", "fifo"), ("gc_step", "3")], 15_000, small);
    assert!(run(4, &[("background_gc", "true"), ("reserve", "4")], 10_000, large) > 0, "space runs out");
    assert!(run(5, &[("gc_low", "1"), ("open_zones", "2"), ("meta_zones", "5")], 10_000, large) > 0);
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let (mut files, _) = open_nand(nand(GEOMETRY), &[], &FaultPlan::default());
    let mut ask = |command: ObjectCommand, payload: Payload<'_>| {
        files.submit(0, command.into(), payload, SimTime::ZERO).map(|answer| answer.reply)
    };
    let (object, hint) = (ObjectId(7), Hint::NONE);
    let unknown = Err(NamespaceError::Object(ObjectError::Unknown));
    assert_eq!(ask(ObjectCommand::Delete { object }, Payload::None), unknown);
    assert_eq!(ask(ObjectCommand::Flush { object: Some(object) }, Payload::None), unknown);
    ask(ObjectCommand::Create { object, hint }, Payload::None).unwrap();
    let exists = Err(NamespaceError::Object(ObjectError::Exists));
    assert_eq!(ask(ObjectCommand::Create { object, hint }, Payload::None), exists);
    let extent = Extent::new(0, 10);
    let write = ObjectCommand::Write { object, extent, hint: None };
    let refused = ask(write, Payload::Write(&[1; 9])).unwrap_err();
    assert!(refused.to_string().contains("a payload of 10 bytes, not 9"), "{refused}");
    let far = ObjectCommand::Write { object, extent: Extent::new(1 << 60, 1), hint: None };
    assert_eq!(ask(far, Payload::None), Err(NamespaceError::Object(ObjectError::Full)));
    let long = ObjectCommand::SetAttributes { object, replaces: None };
    let refused = ask(long, Payload::Write(&[1; 4_001])).unwrap_err();
    assert!(refused.to_string().contains("at most 4000 bytes of attributes"), "{refused}");
    let itself = ObjectCommand::SetAttributes { object, replaces: Some(object) };
    assert!(ask(itself, Payload::None).unwrap_err().to_string().contains("another object to replace"));
    let other = ObjectCommand::SetAttributes { object, replaces: Some(ObjectId(8)) };
    assert_eq!(ask(other, Payload::None), unknown);
    let Reply::Attributes(found) = ask(ObjectCommand::GetAttributes { object }, Payload::None).unwrap()
    else {
        panic!("attributes");
    };
    assert_eq!((found.status.size, found.status.allocated, found.bytes.len()), (0, 0, 0));
    let error = files.submit(
        0,
        Command::Zone(nandscape_core::zone::ZoneCommand::FlushRandom { last: 0 }),
        Payload::None,
        SimTime::ZERO,
    );
    assert_eq!(error.unwrap_err(), NamespaceError::NotSupported { command: "flush random write area" });
}
