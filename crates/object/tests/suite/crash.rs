//! The power is cut at every operation of the flash below the objects.

use super::support::{Objects, nand, open, params};
use nandscape_media::faults::FaultPlan;
use nandscape_object::oftl::Sabotage;
use nandscape_testkit::crash::{Effort, Setup, campaign, finds, points_from_environment};
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
        effort: Effort { steps: 30, scattered: 2, again_every: 500, row_every: 1_000, ..Effort::default() },
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
