//! The power is cut at every operation of the flash below the zones below the files.

use super::{Crashing, GEOMETRY, open, params};
use crate::support::nand;
use nandscape_core::Oob;
use nandscape_hostftl::zone_files::Sabotage;
use nandscape_media::faults::FaultPlan;
use nandscape_testkit::crash::{Effort, Setup, points_from_environment};
use nandscape_testkit::objects::crash::{self, ObjectHost, ObjectLayer};

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

fn cases(sabotage: Sabotage) -> Vec<Setup<'static, FilesHost>> {
    let effort = Effort { steps: 80, again_every: 500, row_every: 1_000, ..Effort::default() };
    let case = |name, pairs: &[(&str, &str)]| {
        let params = params(pairs);
        crash::case::<Files>(name, nand(GEOMETRY), effort, move |device| open(device, &params, sabotage))
    };
    vec![
        case("zone-files", &[]),
        case("zone-files, learned", &[("placement", "zenfs"), ("gc_step", "3"), ("meta_zones", "5")]),
        case(
            "zone-files, full",
            &[("reserve", "16"), ("gc_low", "1"), ("open_zones", "2"), ("background_gc", "true")],
        ),
    ]
}

fn survives(test: &str, setups: &[Setup<'_, FilesHost>], share: u64) {
    let points = points_from_environment(POINTS, share);
    crash::survives("nandscape-hostftl", &format!("zone_files::crash::{test}"), setups, points);
}

#[test]
fn files_survive_every_cut() {
    survives("files_survive_every_cut", &cases(Sabotage::None), 60);
}

#[test]
fn files_survive_cuts_while_blocks_fail() {
    let plan = FaultPlan { program: 0.003, erase: 0.02, ..FaultPlan::default() };
    let failing = cases(Sabotage::None).into_iter().map(|case| Setup { plan: plan.clone(), ..case });
    survives("files_survive_cuts_while_blocks_fail", &failing.collect::<Vec<_>>(), 40);
}

#[test]
fn every_sabotage_of_files_is_found() {
    crash::all_are_found(&Sabotage::ALL, cases);
}
