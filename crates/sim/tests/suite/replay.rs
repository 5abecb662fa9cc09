//! The replay loops over a real stack: pacing, latency, errors, partial results, and the same counters
//! whatever the scheduler.

use nandscape_core::{
    Capabilities, Geometry, IoRecord, Params, SimTime, Subsystem, TraceError, TraceOp, TraceReader,
    WorkloadInfo,
};
use nandscape_media::{Fifo, Nand, NandOptions, ReadFirst, Scheduler, Serial, Timed, Timing};
use nandscape_namespace::NvmSubsystem;
use nandscape_sim::{Pacing, Precondition, ReplayOptions, RunResult, Snapshot, replay};
use std::sync::atomic::AtomicBool;

pub const PAGE: u32 = 4096;
const TIMING: Timing = Timing {
    read_ns: 100,
    program_ns: 1000,
    erase_ns: 5000,
    channel_bytes_per_s: 4_096_000_000_000,
    command_ns: 0,
};

/// 2 channels x 2 dies x 8 blocks x 4 pages.
pub fn namespace<S: Scheduler + Send + 'static>() -> Box<dyn Subsystem> {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 8,
        pages_per_block: 4,
        page_bytes: PAGE,
        sector_bytes: PAGE,
        oob_bytes: 64,
    }
    .checked()
    .unwrap();
    let capabilities = Capabilities { out_of_order_program: true, ..Capabilities::default() };
    let nand = Nand::new(geometry, &NandOptions { capabilities, ..NandOptions::default() }).unwrap();
    let entry = nandscape_ftl::find("pm-gcl").unwrap();
    let device = Timed::new(nand, S::new(&geometry, &TIMING));
    Box::new(NvmSubsystem::plain((entry.build)(Box::new(device), &Params::defaults(entry.info)).unwrap()))
}

pub struct List(pub std::vec::IntoIter<IoRecord>);

impl Iterator for List {
    type Item = Result<IoRecord, TraceError>;
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(Ok)
    }
}

impl TraceReader for List {
    fn info(&self) -> WorkloadInfo {
        WorkloadInfo { format: "list".into(), ..WorkloadInfo::default() }
    }
}

pub fn write(at_ns: u64, page: u64, pages: u64) -> IoRecord {
    IoRecord {
        at: SimTime(at_ns),
        offset: page * u64::from(PAGE),
        len: pages * u64::from(PAGE),
        volume: 0,
        hint: 0,
        op: TraceOp::Write,
    }
}

fn run_with<S: Scheduler + Send + 'static>(
    records: Vec<IoRecord>,
    pacing: Pacing,
    precondition: &str,
    stop: Option<&AtomicBool>,
) -> RunResult {
    let mut namespace = namespace::<S>();
    let options = ReplayOptions {
        pacing,
        precondition: &Precondition::parse(precondition).unwrap(),
        snapshot: Snapshot::Unused,
        until_steady: None,
        seed: 1,
        with_series: true,
        marks: &[],
        with_detail: true,
        stop,
    };
    let outcome =
        replay(&mut *namespace, &mut List(records.into_iter()), "list", &options, &mut || {}, &mut |_| {})
            .unwrap();
    namespace.check_invariants();
    let last = outcome.series.unwrap().samples.last().unwrap().clone();
    assert_eq!(last.causes.total().programs, outcome.result.flash.programs);
    outcome.result
}

fn run<S: Scheduler + Send + 'static>(records: Vec<IoRecord>, pacing: Pacing) -> RunResult {
    run_with::<S>(records, pacing, "none", None)
}

#[test]
fn a_closed_loop_of_one_is_the_sum_of_latencies() {
    let result = run::<Serial>((0..10).map(|i| write(0, i, 1)).collect(), Pacing::Closed { depth: 1 });
    assert_eq!(result.speed.time.simulated_ns, 10_000);
    assert_eq!(result.latency_ns.write.count, 10);
    assert_eq!(
        (result.latency_ns.write.min, result.latency_ns.write.p99, result.latency_ns.write.max),
        (1000, 1000, 1000)
    );
    assert_eq!(result.host.write_pages, 10);
    assert_eq!(result.waf.pages, Some(1.0));
}

#[test]
fn points_of_the_series_count_the_requests_whose_time_they_give() {
    let mut namespace = namespace::<Serial>();
    let options = ReplayOptions {
        pacing: Pacing::Closed { depth: 1 },
        precondition: &Precondition::default(),
        snapshot: Snapshot::Unused,
        until_steady: None,
        seed: 1,
        with_series: true,
        // The third lies between two requests, the last behind all.
        marks: &[0, 400, 405, 5000].map(SimTime),
        with_detail: false,
        stop: None,
    };
    let records: Vec<_> = (0..100).map(|i| write(i * 10, i % 60, 1)).collect();
    let outcome =
        replay(&mut *namespace, &mut List(records.into_iter()), "list", &options, &mut || {}, &mut |_| {})
            .unwrap();
    let series = outcome.series.unwrap();
    assert!(series.samples.len() > 3);
    assert_eq!(series.marks.iter().map(|mark| mark.requests).collect::<Vec<_>>(), [0, 40, 41]);
    for sample in series.samples.iter().chain(&series.marks) {
        assert_eq!(sample.requests, sample.host.writes);
        let busy = sample.causes.total().programs * TIMING.program_ns
            + sample.causes.total().reads * TIMING.read_ns
            + sample.causes.total().erases * TIMING.erase_ns;
        assert_eq!(sample.simulated_ns, busy, "serial time is the sum of the operations counted so far");
    }
}

#[test]
fn depth_fills_the_dies() {
    // Four dies: four writes at once take little longer than one (1 ns of bus each on two channels).
    let records: Vec<_> = (0..4).map(|i| write(0, i, 1)).collect();
    let one = run::<Fifo>(records.clone(), Pacing::Closed { depth: 1 });
    let four = run::<Fifo>(records.clone(), Pacing::Closed { depth: 4 });
    assert_eq!(one.speed.time.simulated_ns, 4 * 1001);
    assert_eq!(four.speed.time.simulated_ns, 1002);
    let events = run::<ReadFirst>(records, Pacing::Closed { depth: 4 });
    assert_eq!(events.speed.time.simulated_ns, 1002);
}

#[test]
fn an_open_loop_follows_time_stamps_and_counts_waiting() {
    // The second arrives while the first is being written and waits for it; the third finds the device idle.
    let records = vec![write(500, 0, 1), write(600, 1, 1), write(9_500, 2, 1)];
    let result = run::<Serial>(records, Pacing::Open);
    assert_eq!(result.latency_ns.write.max, 1900);
    assert_eq!(result.latency_ns.write.min, 1000);
    assert_eq!(result.speed.time.simulated_ns, 10_000, "from the first issue to the last completion");
}

#[test]
fn counters_do_not_depend_on_the_scheduler() {
    let mut state = 7u64;
    let records: Vec<_> = (0..2000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            write(0, (state >> 33) % 80, 1 + (state >> 50) % 3)
        })
        .collect();
    let serial = run::<Serial>(records.clone(), Pacing::Closed { depth: 8 });
    for other in [
        run::<Fifo>(records.clone(), Pacing::Closed { depth: 8 }),
        run::<ReadFirst>(records.clone(), Pacing::Closed { depth: 8 }),
    ] {
        assert_eq!(other.flash.programs, serial.flash.programs);
        assert_eq!(other.flash.erases, serial.flash.erases);
        assert_eq!(other.wear.per_block, serial.wear.per_block);
        assert_eq!(other.run.workload_hash, serial.run.workload_hash);
        assert_eq!(other.latency_ns.write.count, 2000, "every request is answered");
    }
}

#[test]
fn preconditioning_is_not_counted() {
    let result =
        run_with::<Fifo>(vec![write(0, 0, 1)], Pacing::Closed { depth: 1 }, "fill:50%+uniform:2x", None);
    assert_eq!(result.host.write_pages, 1);
    assert_eq!(
        result.flash.programs,
        result.flash.cause(nandscape_core::Cause::Host).programs
            + result.flash.cause(nandscape_core::Cause::Gc).programs
    );
    assert!(result.flash.programs < 10, "{}", result.flash.programs);
    assert!(result.wear.erases_max <= 1);
    assert!(result.speed.time.simulated_ns < 50_000);
}

#[test]
fn a_failing_request_is_named_and_counts_for_nobody() {
    let result = run::<Serial>(vec![write(0, 0, 1), write(0, 1 << 20, 1)], Pacing::Closed { depth: 1 });
    let error = result.error.unwrap();
    assert_eq!(error.request, 2);
    assert!(error.message.contains("W offset 4294967296 len 4096"), "{}", error.message);
    assert_eq!(result.host.writes, 1);
    assert_eq!(result.flash.programs, 1);
}

#[test]
fn a_stopped_run_is_marked_partial() {
    let stop = AtomicBool::new(true);
    let result =
        run_with::<Serial>(vec![write(0, 0, 1); 10], Pacing::Closed { depth: 1 }, "none", Some(&stop));
    assert!(result.partial);
    assert_eq!(result.host.writes, 0);
}

#[test]
fn the_document_has_the_names_other_tools_rely_on() {
    let result = run::<Serial>(vec![write(0, 0, 1)], Pacing::Closed { depth: 1 });
    let document = serde_json::to_value(&result).unwrap();
    for (table, names) in [
        ("host", "reads writes trims flushes read_bytes write_bytes read_pages write_pages"),
        ("flash", "programs reads erases by_cause"),
        ("map", "table_bytes updates update_bytes"),
        ("gc", "runs moved_pages"),
        ("merges", "switch full"),
        ("wear", "erases_min erases_max erases_mean erases_stddev per_block"),
        ("time", "simulated_ns wall_s host_pages_per_wall_s"),
        ("throughput", "read_bytes_per_s write_bytes_per_s"),
        (
            "cost",
            "dram_bytes host_dram_bytes op_ratio usable_bytes total_blocks reserve_blocks pages_per_block logical_pages",
        ),
    ] {
        for name in names.split(' ') {
            assert!(document[table].get(name).is_some(), "{table}.{name}");
        }
    }
    for kind in ["read", "write"] {
        for name in "count mean min max p50 p90 p99 p99_9 p99_99 p99_999 p99_9999".split(' ') {
            assert!(document["latency_ns"][kind].get(name).is_some(), "latency_ns.{kind}.{name}");
        }
    }
    for cause in "host gc merge meta wear".split(' ') {
        for name in ["programs", "reads", "erases"] {
            assert!(document["flash"]["by_cause"][cause].get(name).is_some(), "{cause}.{name}");
        }
    }
    for name in "schema version config_hash workload_hash seed config waf waf_bytes".split(' ') {
        assert!(document.get(name).is_some(), "{name}");
    }
    assert_eq!(document["schema"], 1);
}
