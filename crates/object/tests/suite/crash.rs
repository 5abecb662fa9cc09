//! The power is cut at every operation of the flash below the objects.

use super::support::{Objects, Store, nand, open, params};
use nandscape_core::command::Payload;
use nandscape_core::{Extent, Hint, ObjectCommand, ObjectId, SimTime, Subsystem};
use nandscape_media::faults::{FaultPlan, PowerCut};
use nandscape_object::oftl::Sabotage;
use nandscape_testkit::crash::{
    Buffer, CrashDevice, Effort, Setup, campaign, finds, points_from_environment,
};
use nandscape_testkit::objects::crash::ObjectHost;

/// Cuts that all tests of this file try together.
const POINTS: u64 = 12_000;

type Host = ObjectHost<Objects>;

fn case(name: &str, pairs: &[(&str, &str)], sabotage: Sabotage) -> Setup<'static, Host> {
    let params = params(pairs);
    Setup {
        name: name.to_owned(),
        nand: nand(),
        open: Box::new(move |device| open(device, &params, sabotage)),
        plan: FaultPlan::default(),
        needs_flush: true,
        damage: None,
        effort: Effort { steps: 30, scattered: 2, again_every: 300, row_every: 100, ..Effort::default() },
    }
}

fn cases(sabotage: Sabotage) -> [Setup<'static, Host>; 4] {
    [
        case("oftl", &[("window", "4")], sabotage),
        case("oftl, sync", &[("sync", "true"), ("window", "4")], sabotage),
        case(
            "oftl, eager",
            &[("lazy_index", "false"), ("diffs", "false"), ("cache", "2KiB"), ("window", "4")],
            sabotage,
        ),
        case("oftl, full", &[("op", "0.05"), ("cache", "4KiB"), ("window", "4")], sabotage),
    ]
}

fn survives(test: &str, setups: &[Setup<'_, Host>], share: u64) {
    let points = points_from_environment(POINTS, share);
    let command = format!("cargo test -p nandscape-object --test suite crash::{test} -- --exact --nocapture");
    let tally = campaign(test, setups, points, &command);
    assert!(std::env::var("CRASH_CASE").is_ok() || tally.erases > 0, "{tally}");
}

#[test]
fn objects_survive_every_cut() {
    survives("objects_survive_every_cut", &cases(Sabotage::None), 60);
}

#[test]
fn objects_survive_cuts_while_blocks_fail() {
    let plan = FaultPlan { program: 0.02, erase: 0.1, ..FaultPlan::default() };
    let failing = cases(Sabotage::None).map(|case| Setup { plan: plan.clone(), ..case });
    survives("objects_survive_cuts_while_blocks_fail", &failing, 40);
}

#[test]
fn every_sabotage_of_objects_is_found() {
    let few = Effort { scattered: 4, deep_every: 0, again_every: 40, row_every: 0, ..Effort::default() };
    let is_found = |sabotage| {
        cases(sabotage).into_iter().any(|case| finds(&Setup { effort: few, ..case }, 30).0.is_some())
    };
    let unnoticed: Vec<Sabotage> =
        Sabotage::ALL.into_iter().filter(|sabotage| !is_found(*sabotage)).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?} went unnoticed");
}

/// Cuts the power at a program or erase, starts again, deletes an object, flushes, and starts once more:
/// whether it is gone.
fn stays_deleted(at: u64, sabotage: Sabotage) -> bool {
    let keys = params(&[("sync", "true")]);
    let cut = FaultPlan { power_cut: Some(PowerCut { at, is_torn: true }), ..FaultPlan::default() };
    let (device, handle) = CrashDevice::new(nand(), Buffer::None, &cut, false);
    let mut store = open(device, &keys, sabotage).unwrap();
    let submit = |store: &mut Store, command: ObjectCommand| {
        store.submit(0, command.into(), Payload::None, SimTime::ZERO).map(|_| ())
    };
    let object = ObjectId(1);
    submit(&mut store, ObjectCommand::Create { object, hint: Hint::NONE }).unwrap();
    submit(&mut store, ObjectCommand::Flush { object: None }).unwrap();
    let write = ObjectCommand::Write { object, extent: Extent::new(0, 4096), hint: None };
    while submit(&mut store, write).is_ok() {}
    let again = |nand| CrashDevice::new(nand, Buffer::None, &FaultPlan::default(), false);
    let (device, handle) = again(handle.nand());
    let mut store = open(device, &keys, sabotage).unwrap();
    submit(&mut store, ObjectCommand::Delete { object }).unwrap();
    submit(&mut store, ObjectCommand::Flush { object: None }).unwrap();
    let mut store = open(again(handle.nand()).0, &keys, sabotage).unwrap();
    submit(&mut store, ObjectCommand::GetAttributes { object }).is_err()
}

#[test]
fn what_follows_an_incomplete_write_is_kept() {
    let cuts = 40..80;
    for at in cuts.clone() {
        assert!(stays_deleted(at, Sabotage::None), "cut at {at}");
    }
    assert!(cuts.clone().any(|at| !stays_deleted(at, Sabotage::LeavesGaps)), "the fault is not noticed");
}
