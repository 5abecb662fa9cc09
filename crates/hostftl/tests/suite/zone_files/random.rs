//! Random commands against plain files in memory.

use super::crash::Files;
use super::{GEOMETRY, open, open_nand, params};
use crate::support::nand;
use nandscape_hostftl::zone_files::Sabotage;
use nandscape_media::faults::FaultPlan;
use nandscape_testkit::objects::load::Mix;
use nandscape_testkit::objects::random::{self, Run};

fn run(seed: u64, keys: &[(&str, &str)], steps: u64, mix: Mix) -> u64 {
    let open = |device| open(device, &params(keys), Sabotage::None);
    random::run::<Files>(&nand(GEOMETRY), open, Run { seed, steps, mix, checked_every: 400 })
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
    random::refusals(&mut files);
}
