//! Random commands against plain objects in memory, with starts in between.

use super::crash::{ObjectLayer, is_full, space};
use super::load::{Mix, OBJECTS, Plain, apply, find, submit};
use crate::crash::{Buffer, CrashDevice};
use crate::shrink::Outcome;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::rng::{below, seeded};
use nandscape_core::zone::ZoneCommand;
use nandscape_core::{
    Command, Extent, Hint, NamespaceError, ObjectCommand, ObjectError, ObjectId, Reply, SimTime, Subsystem,
};
use nandscape_media::Nand;
use nandscape_media::faults::FaultPlan;
use std::collections::BTreeMap;

fn check_all<S: Subsystem>(store: &mut S, plain: &BTreeMap<u64, Plain>, context: &str) {
    for id in 1..=OBJECTS {
        let found = find(store, id).unwrap_or_else(|error| panic!("{error}; {context}"));
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

fn check_list<S: Subsystem>(store: &mut S, plain: &BTreeMap<u64, Plain>) {
    let list = store.submit(0, ObjectCommand::List.into(), Payload::None, SimTime::ZERO).unwrap().reply;
    let Reply::Objects(list) = list else { panic!("{list:?}") };
    let found: Vec<_> = list.iter().map(|status| (status.object.0, status.size, status.hint.0)).collect();
    let sizes = plain.iter().map(|(id, file)| (*id, file.bytes.len() as u64, file.hint));
    assert_eq!(found, sizes.collect::<Vec<_>>());
    let allocated: u64 = list.iter().map(|status| status.allocated).sum();
    assert_eq!(space(store).live, allocated);
}

/// How many commands, of which kind.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Decides everything else.
    pub seed: u64,
    /// Commands.
    pub steps: u64,
    /// Which.
    pub mix: Mix,
    /// After so many of them the invariants of the store are checked.
    pub checked_every: u64,
}

/// So many commands with starts in between, on an erased device; gives how many were refused for lack of
/// room. Panics where an object is not as it must be.
pub fn run<U: ObjectLayer>(
    nand: &Nand<U::Oob>,
    open: impl Fn(CrashDevice<U::Oob>) -> Outcome<U::Layer>,
    Run { seed, steps, mix, checked_every }: Run,
) -> u64 {
    let mut rng = seeded(seed);
    let start = |nand: Nand<U::Oob>| {
        let (device, handle) = CrashDevice::new(nand, Buffer::None, &FaultPlan::default(), false);
        (open(device).unwrap_or_else(|error| panic!("seed {seed}: {error}")), handle)
    };
    let (mut store, mut handle) = start(nand.clone());
    let mut plain = BTreeMap::new();
    let mut refused = 0;
    for step in 0..steps {
        let request = mix.request(&mut rng, &plain);
        let request = if U::RESERVES { mix.reserving(request, &plain) } else { request };
        let context = format!("seed {seed}, step {step}, {:?}", request.command);
        match submit(&mut store, &request, SimTime(step)) {
            Ok(_) => apply(&mut plain, &request),
            Err(error) => {
                assert!(is_full(&error), "{error}; {context}");
                let room = space(&mut store).free;
                let needed = match request.command {
                    ObjectCommand::Reserve { extent, .. } => extent.len,
                    _ => request.data.len() as u64,
                };
                let fits = needed.next_multiple_of(mix.unit) + U::SLACK <= room;
                let is_full = error == NamespaceError::Object(ObjectError::Full);
                assert!(!(is_full && fits), "{room} bytes are free; {context}");
                refused += 1;
            }
        }
        if step % checked_every == 0 {
            store.check_invariants();
        }
        if step % 400 == 0 {
            check_list(&mut store, &plain);
        }
        if step % 50 == 0 {
            check_all(&mut store, &plain, &context);
        }
        if below(&mut rng, 300) == 0 {
            if below(&mut rng, 2) == 0 {
                store.submit(0, Command::FLUSH, Payload::None, SimTime::ZERO).unwrap();
            } else {
                store.shutdown(SimTime(step)).unwrap();
            }
            drop(store);
            (store, handle) = start(handle.nand());
            store.check_invariants();
            check_all(&mut store, &plain, &format!("after a start; {context}"));
        }
    }
    check_all(&mut store, &plain, "at the end");
    refused
}

/// Commands that make no sense are refused, change nothing and count for nobody. The store is empty.
pub fn refusals<S: Subsystem>(store: &mut S) {
    let mut ask = |command: ObjectCommand, payload: Payload<'_>| {
        store.submit(0, command.into(), payload, SimTime::ZERO).map(|answer| answer.reply)
    };
    let (object, hint) = (ObjectId(7), Hint::NONE);
    let unknown = Err(NamespaceError::Object(ObjectError::Unknown));
    assert_eq!(ask(ObjectCommand::Delete { object }, Payload::None), unknown);
    assert_eq!(ask(ObjectCommand::Flush { object: Some(object) }, Payload::None), unknown);
    let read = ObjectCommand::Read { object, extent: Extent::new(0, 10) };
    assert_eq!(ask(read, Payload::None), unknown);
    ask(ObjectCommand::Create { object, hint }, Payload::None).unwrap();
    let exists = Err(NamespaceError::Object(ObjectError::Exists));
    assert_eq!(ask(ObjectCommand::Create { object, hint }, Payload::None), exists);
    let extent = Extent::new(0, 10);
    let write = ObjectCommand::Write { object, extent, hint: None };
    let refused = ask(write, Payload::Write(&[1; 9])).unwrap_err();
    assert!(refused.to_string().contains("a payload of 10 bytes, not 9"), "{refused}");
    let far = ObjectCommand::Write { object, extent: Extent::new(1 << 60, 1), hint: None };
    assert_eq!(ask(far, Payload::None), Err(NamespaceError::Object(ObjectError::TooLarge)));
    let long_end = ObjectCommand::Truncate { object, size: 1 << 60 };
    assert_eq!(ask(long_end, Payload::None), Err(NamespaceError::Object(ObjectError::TooLarge)));
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
    assert_eq!((found.status.size, found.bytes.len()), (0, 0));
    assert_eq!(store.inspect().host_counts(0), HostCounts::default());
    let error =
        store.submit(0, Command::Zone(ZoneCommand::FlushRandom { last: 0 }), Payload::None, SimTime::ZERO);
    assert_eq!(error.unwrap_err(), NamespaceError::NotSupported { command: "flush random write area" });
}
