//! The traces T1 and T2 through the whole stack (generator, namespace, page-map, scheduler) against what
//! `MQSim` gave for them.
//!
//! `MQSim` 7ec40e3, shipped configuration with this geometry, ideal map, no write cache, no preconditioning;
//! means in microseconds, its host link included. Every value below is that configuration's; nothing was
//! chosen to meet the figures. The same traces against the bare scheduler are in the media crate.

use nandscape_core::{Capabilities, Geometry, Params};
use nandscape_media::{Fifo, Nand, NandOptions, ReadFirst, Scheduler, Timed, Timing};
use nandscape_namespace::NvmSubsystem;
use nandscape_sim::{Pacing, Precondition, ReplayOptions, RunResult, Snapshot, replay};
use nandscape_trace::{OpenOptions, Target, open};
use std::collections::BTreeMap;

const TIMING: Timing = Timing {
    read_ns: 75_000,
    program_ns: 750_000,
    erase_ns: 3_800_000,
    channel_bytes_per_s: 333_000_000,
    command_ns: 0,
};

fn run<S: Scheduler + Send + 'static>(workload: &str) -> RunResult {
    let geometry = Geometry {
        channels: 8,
        dies_per_channel: 4,
        planes_per_die: 2,
        blocks_per_plane: 512,
        pages_per_block: 256,
        page_bytes: 16384,
        sector_bytes: 4096,
        oob_bytes: 128,
    };
    let capabilities = Capabilities { partial_transfer: true, ..Capabilities::default() };
    let nand = Nand::new(geometry, &NandOptions { capabilities, ..NandOptions::default() }).unwrap();
    let entry = nandscape_ftl::find("page-map").unwrap();
    // 0.15 of the physical pages, as MQSim counts it.
    let typed = [("op", "0.176"), ("allocation", "static"), ("unmapped_read", "flash")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    let params = Params::check(entry.info, "ftl", &BTreeMap::from(typed)).unwrap();
    let device = Timed::new(nand, S::new(&geometry, &TIMING));
    let mut namespace = NvmSubsystem::plain((entry.build)(Box::new(device), &params).unwrap());
    let mut reader = open(workload, &OpenOptions::default(), Target::NONE).unwrap();
    let options = ReplayOptions {
        pacing: Pacing::Open,
        precondition: &Precondition::parse("none").unwrap(),
        snapshot: Snapshot::Unused,
        until_steady: None,
        seed: 1,
        with_series: false,
        marks: &[],
        with_detail: false,
        stop: None,
    };
    replay(&mut namespace, &mut reader, workload, &options, &mut || {}, &mut |_| {}).unwrap().result
}

#[expect(clippy::print_stdout, reason = "the misfit is what a reader of the test log wants to see")]
fn misfit(name: &str, result: &RunResult, mqsim_us: f64) -> f64 {
    let us = |ns: f64| ns / 1e3;
    let latency = &result.latency_ns;
    let misfit = us(latency.all.mean) / mqsim_us - 1.0;
    println!(
        "{name}: mean {:.1} us (MQSim {mqsim_us}, {:+.2} %), writes {:.1}, reads {:.1}, {} programs, {} flash reads, {:.1} s",
        us(latency.all.mean),
        misfit * 100.0,
        us(latency.write.mean),
        us(latency.read.mean),
        result.flash.programs,
        result.flash.reads,
        result.speed.time.wall_s,
    );
    misfit
}

#[test]
fn t1_through_page_map_is_within_2_percent() {
    let result = run::<ReadFirst>("mqsim-t:preset=t1");
    let found = misfit("T1 read-first", &result, 1178.0);
    misfit("T1 fifo", &run::<Fifo>("mqsim-t:preset=t1"), 1178.0);
    assert!(found.abs() < 0.02, "{found}");
    assert_eq!(result.latency_ns.write.count, 1_000_000);
    assert_eq!((result.flash.programs, result.flash.erases), (1_000_000, 0));
}

#[test]
fn t2_through_page_map_is_within_2_percent() {
    let result = run::<ReadFirst>("mqsim-t:preset=t2");
    let found = misfit("T2 read-first", &result, 431.0);
    misfit("T2 fifo", &run::<Fifo>("mqsim-t:preset=t2"), 431.0);
    assert!(found.abs() < 0.02, "{found}");
    assert_eq!(result.latency_ns.all.count, 1_000_000);
    assert_eq!((result.flash.programs, result.flash.erases), (299_675, 0));
}
