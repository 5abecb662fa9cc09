//! The store of sorted tables: placement, stalls, and what a run leaves behind.

use nandscape_core::vector::MediaTimes;
use nandscape_core::{Geometry, SimTime, Subsystem};
use nandscape_media::{Fifo, Nand, NandOptions, ReadFirst, Scheduler, Timed, Timing};
use nandscape_namespace::vector::{VectorNamespace, VectorSetup};
use nandscape_namespace::zones::ImpliedOob;
use nandscape_openchannel::Host;
use nandscape_openchannel::lsm::{LsmReport, LsmSetup, Placement, run_lsm};

const GEOMETRY: Geometry = Geometry {
    channels: 8,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 40,
    pages_per_block: 32,
    page_bytes: 8192,
    sector_bytes: 4096,
    oob_bytes: 128,
};

const TIMING: Timing = Timing {
    read_ns: 60_000,
    program_ns: 600_000,
    erase_ns: 3_000_000,
    channel_bytes_per_s: 400_000_000,
    command_ns: 0,
};

const SETUP: LsmSetup = LsmSetup {
    placement: Placement::Queue,
    clients: 8,
    operations: 60_000,
    put_percent: 50,
    keys: 20_000,
    entry_bytes: 1000,
    flushers: 4,
    level0: 4,
    level0_stop: 12,
    level1: 10,
    fanout: 10,
    seed: 1,
};

fn device<S: Scheduler + Send>() -> impl Subsystem + use<S> {
    let nand = Nand::<ImpliedOob>::with_oob(GEOMETRY, &NandOptions::default()).unwrap();
    let setup = VectorSetup {
        times: MediaTimes { read_ns: 60_000, write_ns: 600_000, reset_ns: 3_000_000 },
        ..VectorSetup::default()
    };
    VectorNamespace::<_, ImpliedOob>::new(Timed::new(nand, S::new(&GEOMETRY, &TIMING)), &setup).unwrap()
}

fn run<S: Scheduler + Send>(setup: &LsmSetup) -> LsmReport {
    let mut device = device::<S>();
    let mut host = Host::open(&mut device, 0, SimTime::ZERO).unwrap();
    setup.check(host.geometry()).unwrap();
    run_lsm(&mut host, setup, SimTime::ZERO).unwrap()
}

#[test]
fn every_put_and_get_is_done_whatever_the_placement_and_the_scheduler() {
    for placement in Placement::ALL {
        let setup = LsmSetup { placement, ..SETUP };
        let report = run::<Fifo>(&setup);
        assert!(report.puts.abs_diff(30_000) < 1_000, "{placement:?}: {} puts", report.puts);
        assert!(report.gets > 20_000 && report.get_ns.len() as u64 == report.gets, "{placement:?}");
        assert!(report.flushes > 20 && report.compactions > 5, "{placement:?}: {report:?}");
        let written: u64 = report.written_per_unit.iter().sum();
        assert_eq!(written, report.flushes + report.tables_written, "{placement:?}");
        assert!(report.write_amplification() > 2.0, "{placement:?}");
        // A get takes a read and its transfer at least.
        assert!(report.get_ns_at(0.0) >= 60_000 + 10_000, "{placement:?}: {}", report.get_ns_at(0.0));
        assert!(report.get_ns_mean() <= report.get_ns_at(0.999) as f64, "{placement:?}");
        assert_eq!(report, run::<Fifo>(&setup), "{placement:?} again");
        let other = run::<ReadFirst>(&setup);
        assert!(other.get_ns_at(0.99) < report.get_ns_at(0.99), "reads go first: {placement:?}");
    }
}

/// What it is worth to know of parallel units, for puts alone.
#[test]
fn placement_over_parallel_units_multiplies_the_rate_of_puts() {
    let puts = |placement| {
        let setup = LsmSetup { placement, put_percent: 100, ..SETUP };
        run::<Fifo>(&setup).puts_per_s()
    };
    let linear = puts(Placement::Linear);
    for placement in [Placement::RoundRobin, Placement::Queue, Placement::Apart] {
        let ratio = puts(placement) / linear;
        assert!(ratio > 1.5, "{placement:?} is {ratio} times as fast as linear");
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let device = device::<Fifo>();
    let geometry = device.inspect().vectors.unwrap().geometry(0);
    let refusal = |setup: LsmSetup| setup.check(&geometry).unwrap_err().to_string();
    assert!(refusal(LsmSetup { keys: 60_000, ..SETUP }).starts_with("keys = '60000': expected at most "));
    assert!(refusal(LsmSetup { level0_stop: 2, ..SETUP }).contains("level0_stop"));
    assert!(refusal(LsmSetup { entry_bytes: 1 << 20, ..SETUP }).contains("entry_bytes"));
    assert!(refusal(LsmSetup { fanout: 1, ..SETUP }).contains("fanout"));
}
