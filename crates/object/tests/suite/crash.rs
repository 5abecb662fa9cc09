//! The power is cut at every operation of the flash below the objects.

use super::support::{GEOMETRY, Objects, Store, nand, open, open_in_steps, params};
use nandscape_core::command::Payload;
use nandscape_core::rng::seeded;
use nandscape_core::{Extent, Hint, NamespaceError, ObjectCommand, ObjectId, Ppn, SimTime, Subsystem};
use nandscape_media::faults::{FaultPlan, PowerCut};
use nandscape_media::{Breakable as _, Nand};
use nandscape_object::oftl::{ObjectOob, Sabotage};
use nandscape_testkit::crash::{Buffer, CrashDevice, Effort, Handle, Setup, points_from_environment};
use nandscape_testkit::objects::crash::{self, ObjectHost};
use nandscape_testkit::objects::load::{Mix, OBJECTS, apply, find, submit};
use std::collections::BTreeMap;

/// Cuts that all tests of this file try together.
const POINTS: u64 = 12_000;

type Host = ObjectHost<Objects>;

fn cases(sabotage: Sabotage) -> Vec<Setup<'static, Host>> {
    let effort = Effort { steps: 30, scattered: 2, again_every: 300, row_every: 100, ..Effort::default() };
    let case = |name, pairs: &[(&str, &str)]| {
        let params = params(pairs);
        crash::case::<Objects>(name, nand(), effort, move |device| open(device, &params, sabotage))
    };
    let in_steps = |name, pairs: &[(&str, &str)]| {
        let params = params(pairs);
        crash::case::<Objects>(name, nand(), effort, move |device| open_in_steps(device, &params, sabotage))
    };
    vec![
        in_steps("oftl, in steps", &[("window", "4"), ("cache", "5KiB")]),
        in_steps("oftl, in steps, whole pages", &[("diffs", "false"), ("window", "4"), ("cache", "8KiB")]),
        case("oftl", &[("window", "4")]),
        case("oftl, few in memory", &[("window", "4"), ("cache", "2KiB"), ("resident", "1")]),
        case("oftl, sync", &[("sync", "true"), ("window", "4")]),
        case(
            "oftl, eager",
            &[("lazy_index", "false"), ("diffs", "false"), ("cache", "2KiB"), ("window", "4")],
        ),
        case("oftl, whole pages", &[("diffs", "false"), ("sync", "true"), ("window", "4")]),
        case("oftl, compressed", &[("compress", "true"), ("window", "4")]),
        case("oftl, full", &[("op", "0.05"), ("cache", "4KiB"), ("window", "4")]),
    ]
}

fn survives(test: &str, setups: &[Setup<'_, Host>], share: u64) {
    let points = points_from_environment(POINTS, share);
    crash::survives("nandscape-object", &format!("crash::{test}"), setups, points);
}

#[test]
fn objects_survive_every_cut() {
    survives("objects_survive_every_cut", &cases(Sabotage::None), 60);
}

#[test]
fn objects_survive_cuts_while_blocks_fail() {
    let plan = FaultPlan { program: 0.02, erase: 0.1, ..FaultPlan::default() };
    let failing = cases(Sabotage::None).into_iter().map(|case| Setup { plan: plan.clone(), ..case });
    survives("objects_survive_cuts_while_blocks_fail", &failing.collect::<Vec<_>>(), 40);
}

#[test]
fn every_sabotage_of_objects_is_found() {
    crash::all_are_found(&Sabotage::ALL, cases);
}

fn ask(store: &mut Store, command: ObjectCommand) -> Result<(), NamespaceError> {
    store.submit(0, command.into(), Payload::None, SimTime::ZERO).map(|_| ())
}

fn again(nand: Nand<ObjectOob>) -> (CrashDevice<ObjectOob>, Handle<ObjectOob>) {
    CrashDevice::new(nand, Buffer::None, &FaultPlan::default(), false)
}

/// Writes objects, deletes old ones without a flush, and cuts the power after each, while blocks fail until
/// too few are free and each deletion makes room at once: whether each object is whole or gone then. So many
/// objects are there at a time.
fn stay_whole(objects: u64, sabotage: Sabotage) -> bool {
    let keys = params(&[("sync", "true"), ("op", "0.05"), ("window", "4")]);
    let plan = FaultPlan { erase: 0.2, ..FaultPlan::default() };
    let (device, handle) = CrashDevice::new(nand(), Buffer::None, &plan, false);
    let mut store = open(device, &keys, sabotage).unwrap();
    let write = |object| ObjectCommand::Write { object, extent: Extent::new(0, 4_096), hint: None };
    let mut last = 0;
    for id in 1.. {
        let object = ObjectId(id);
        let made = ask(&mut store, ObjectCommand::Create { object, hint: Hint::NONE });
        if made.is_err() || ask(&mut store, write(object)).is_err() {
            break;
        }
        // One that has left the update window.
        let Some(old) = u64::checked_sub(id, objects).filter(|old| *old > 0) else { continue };
        let before = find(&mut store, old).unwrap();
        if ask(&mut store, ObjectCommand::Delete { object: ObjectId(old) }).is_err() {
            break;
        }
        let Ok(mut cut) = open(again(handle.nand()).0, &keys, sabotage) else { return false };
        if !find(&mut cut, old).is_ok_and(|found| found.is_none() || found == before) {
            return false;
        }
        last = id;
    }
    assert!(last > 50, "{last} objects");
    true
}

#[test]
fn what_is_deleted_without_a_flush_is_whole_or_gone() {
    let all = 24..=32;
    for objects in all.clone() {
        assert!(stay_whole(objects, Sabotage::None), "{objects} objects");
    }
    let is_noticed = all.map(|objects| !stay_whole(objects, Sabotage::ForgottenDeletions));
    assert!(is_noticed.filter(|is_noticed| *is_noticed).count() > 4, "the fault is not noticed");
}

/// Cuts the power at a program or erase, starts again, deletes an object, flushes, and starts once more:
/// whether it is gone.
fn stays_deleted(at: u64, sabotage: Sabotage) -> bool {
    let keys = params(&[("sync", "true")]);
    let cut = FaultPlan { power_cut: Some(PowerCut { at, is_torn: true }), ..FaultPlan::default() };
    let (device, handle) = CrashDevice::new(nand(), Buffer::None, &cut, false);
    let mut store = open(device, &keys, sabotage).unwrap();
    let object = ObjectId(1);
    ask(&mut store, ObjectCommand::Create { object, hint: Hint::NONE }).unwrap();
    ask(&mut store, ObjectCommand::Flush { object: None }).unwrap();
    let write = ObjectCommand::Write { object, extent: Extent::new(0, 4096), hint: None };
    while ask(&mut store, write).is_ok() {}
    let (device, handle) = again(handle.nand());
    let mut store = open(device, &keys, sabotage).unwrap();
    ask(&mut store, ObjectCommand::Delete { object }).unwrap();
    ask(&mut store, ObjectCommand::Flush { object: None }).unwrap();
    let mut store = open(again(handle.nand()).0, &keys, sabotage).unwrap();
    ask(&mut store, ObjectCommand::GetAttributes { object }).is_err()
}

#[test]
fn what_follows_an_incomplete_write_is_kept() {
    let cuts = 40..80;
    for at in cuts.clone() {
        assert!(stays_deleted(at, Sabotage::None), "cut at {at}");
    }
    assert!(cuts.clone().any(|at| !stays_deleted(at, Sabotage::LeavesGaps)), "the fault is not noticed");
}

/// Pages of an object that lie so far apart that each has a layout page of its own, more of them than a
/// window has pages, are flushed; the power is cut at every program and erase. Each is there as it was
/// written, or not yet.
#[test]
fn an_object_with_more_layout_pages_than_a_window_survives_every_cut() {
    const PAGES: u64 = 40;
    const APART: u64 = 1 << 16;
    let keys = params(&[("window", "2")]);
    let object = ObjectId(1);
    let mut ends = 0;
    for at in 1.. {
        let cut = FaultPlan { power_cut: Some(PowerCut { at, is_torn: true }), ..FaultPlan::default() };
        let (device, handle) = CrashDevice::new(nand(), Buffer::None, &cut, false);
        let Ok(mut store) = open(device, &keys, Sabotage::None) else { continue };
        let made = ask(&mut store, ObjectCommand::Create { object, hint: Hint::NONE });
        let mut is_flushed = made.is_ok() && ask(&mut store, ObjectCommand::Flush { object: None }).is_ok();
        let is_made = is_flushed;
        for page in 0..PAGES {
            let extent = Extent::new(page * APART, 512);
            let write = ObjectCommand::Write { object, extent, hint: None };
            is_flushed &= store.submit(0, write.into(), Payload::Write(&[7; 512]), SimTime::ZERO).is_ok();
        }
        is_flushed &= ask(&mut store, ObjectCommand::Flush { object: None }).is_ok();
        let mut store = open(again(handle.nand()).0, &keys, Sabotage::None).unwrap();
        for page in (0..PAGES).filter(|_| is_made) {
            // Behind the end nothing is read.
            let mut data = [0; 512];
            let read = ObjectCommand::Read { object, extent: Extent::new(page * APART, 512) };
            store.submit(0, read.into(), Payload::Read(&mut data), SimTime::ZERO).unwrap();
            assert!(data == [7; 512] || (data == [0; 512] && !is_flushed), "cut at {at}, page {page}");
        }
        ends += u64::from(is_flushed);
        if ends > 2 {
            assert!(at > 2 * PAGES, "{at} cuts");
            return;
        }
    }
}

/// Rots a bit of each page in turn after a loss of power: of its data, or of its back pointer. What was
/// flushed is as it was or an error, of the object or of the start; it is never an earlier version.
#[test]
fn damage_after_a_loss_of_power_brings_nothing_older_back() {
    let keys = params(&[("window", "4")]);
    let (device, handle) = again(nand());
    let mut store = open(device, &keys, Sabotage::None).unwrap();
    let mut plain = BTreeMap::new();
    let (mut rng, mix) = (seeded(5), Mix { most_bytes: 3_000, most_size: 9_000, unit: 512 });
    for _ in 0..250 {
        let request = mix.request(&mut rng, &plain);
        submit(&mut store, &request, SimTime::ZERO).unwrap();
        apply(&mut plain, &request);
    }
    ask(&mut store, ObjectCommand::Flush { object: None }).unwrap();
    let whole = handle.nand();
    let page_bits = u64::from(GEOMETRY.page_bytes) * 8;
    let (mut whole_ones, mut errors, mut refused) = (0, 0, 0);
    for (page, bit) in (0..GEOMETRY.pages()).flat_map(|page| [(page, 77), (page, page_bits + 70)]) {
        let mut rotten = whole.clone();
        if !rotten.rot(Ppn(page), bit) {
            continue;
        }
        let Ok(mut store) = open(again(rotten).0, &keys, Sabotage::None) else {
            refused += 1;
            continue;
        };
        for id in 1..=OBJECTS {
            match find(&mut store, id) {
                Ok(found) => {
                    assert_eq!(found.as_ref(), plain.get(&id), "object {id}, page {page}, bit {bit}");
                    whole_ones += 1;
                }
                Err(_) => errors += 1,
            }
        }
    }
    assert!(
        whole_ones > 100 && errors > 10 && refused > 10,
        "{whole_ones} whole, {errors} errors, {refused} refused"
    );
}
