//! The power is cut at every operation of the flash below the zones below the files.

use super::{Crashing, GEOMETRY, open, params};
use crate::support::nand;
use nandscape_core::Oob;
use nandscape_hostftl::zone_files::Sabotage;
use nandscape_media::faults::FaultPlan;
use nandscape_testkit::crash::{Effort, Setup, campaign, finds, points_from_environment};
use nandscape_testkit::objects::crash::{ObjectHost, ObjectLayer};

/// Cuts that all tests of this file try together.
const POINTS: u64 = 24_000;

pub struct Files;

impl ObjectLayer for Files {
    type Oob = Oob;
    type Layer = Crashing;
    const UNIT: usize = 512;
    const IS_ATOMIC: bool = false;
    const SLACK: u64 = 512;
}

type FilesHost = ObjectHost<Files>;

fn case(name: &str, pairs: &[(&str, &str)], sabotage: Sabotage) -> Setup<'static, FilesHost> {
    let params = params(pairs);
    Setup {
        name: name.to_owned(),
        nand: nand(GEOMETRY),
        open: Box::new(move |device| open(device, &params, sabotage)),
        plan: FaultPlan::default(),
        needs_flush: true,
        damage: None,
        effort: Effort { steps: 80, again_every: 500, row_every: 1_000, ..Effort::default() },
    }
}

fn cases(sabotage: Sabotage) -> [Setup<'static, FilesHost>; 3] {
    [
        case("zone-files", &[], sabotage),
        case(
            "zone-files, learned",
            &[("placement", "zenfs"), ("gc_step", "3"), ("meta_zones", "5")],
            sabotage,
        ),
        case(
            "zone-files, full",
            &[("reserve", "16"), ("gc_low", "1"), ("open_zones", "2"), ("background_gc", "true")],
            sabotage,
        ),
    ]
}

fn survives(test: &str, setups: &[Setup<'_, FilesHost>], share: u64) {
    let points = points_from_environment(POINTS, share);
    let command = format!(
        "cargo test -p nandscape-hostftl --test suite zone_files::crash::{test} -- --exact --nocapture"
    );
    let tally = campaign(test, setups, points, &command);
    assert!(std::env::var("CRASH_CASE").is_ok() || tally.erases > 0, "{tally}");
}

#[test]
fn files_survive_every_cut() {
    survives("files_survive_every_cut", &cases(Sabotage::None), 60);
}

#[test]
fn files_survive_cuts_while_blocks_fail() {
    let plan = FaultPlan { program: 0.003, erase: 0.02, ..FaultPlan::default() };
    let failing = cases(Sabotage::None).map(|case| Setup { plan: plan.clone(), ..case });
    survives("files_survive_cuts_while_blocks_fail", &failing, 40);
}

#[test]
fn every_sabotage_of_files_is_found() {
    let few = Effort { scattered: 4, deep_every: 0, again_every: 40, row_every: 0, ..Effort::default() };
    let is_found = |sabotage| {
        cases(sabotage).into_iter().any(|case| finds(&Setup { effort: few, ..case }, 30).0.is_some())
    };
    let unnoticed: Vec<Sabotage> =
        Sabotage::ALL.into_iter().filter(|sabotage| !is_found(*sabotage)).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?} went unnoticed");
}
