//! The engines on small devices that keep data, and on the device of the thesis.

use super::device;
use super::thesis::{self, PARALLEL, SERIAL};
use nandscape_core::vector::ChunkState;
use nandscape_core::{SimTime, Subsystem};
use nandscape_media::{Fifo, ReadFirst, Scheduler, Serial};
use nandscape_openchannel::Host;
use nandscape_openchannel::bench::{Engine, IoKind, Log, Workload, run};

fn run_on<S: Scheduler + Send>(program_pages: u32, workload: &Workload) -> Log {
    let mut device = device::<S>(program_pages);
    let mut host = Host::open(&mut device, 0, SimTime::ZERO).unwrap();
    workload.check(host.geometry()).unwrap();
    let log = run(&mut host, workload, SimTime::ZERO).unwrap();
    let all = host.geometry().all_chunks();
    assert!(host.chunks(0, all, SimTime(u64::MAX)).unwrap().iter().all(|one| one.state == ChunkState::Free));
    Subsystem::check_invariants(&device);
    log
}

#[test]
fn every_engine_reads_what_it_wrote_and_does_each_page_once() {
    for engine in Engine::ALL {
        for read_percent in [0, 50, 100] {
            for (program_pages, pages) in [(1, 6), (1, 4), (2, 6), (2, 3)] {
                let workload = Workload {
                    engine,
                    jobs: 2,
                    channels: 2,
                    luns: 2,
                    blocks: 2,
                    pages,
                    read_percent,
                    compares: true,
                };
                let context = format!("{workload:?}, {program_pages} pages a program");
                let known = run_on::<Fifo>(program_pages, &workload);
                let log = run_on::<ReadFirst>(program_pages, &workload);
                for log in [&known, &log] {
                    let summary = log.summary();
                    assert_eq!((summary.failed, summary.differing), (0, 0), "{context}");
                    assert_eq!(summary.counts[2], 8, "{context}");
                    let share = match engine {
                        Engine::Isolated => u64::from(workload.readers()) * 4 * u64::from(pages),
                        _ if read_percent == 100 => 8 * u64::from(pages),
                        _ => summary.counts[0],
                    };
                    assert_eq!(summary.counts[0], share, "{context}");
                    let writers = match engine {
                        Engine::Isolated => u64::from(2 - workload.readers()) * 4,
                        _ if read_percent == 100 => 0,
                        _ => 8,
                    };
                    assert_eq!(summary.counts[1], writers * u64::from(pages), "{context}");
                    assert!(log.ios.is_sorted_by_key(|io| io.start), "{context}");
                    assert!(log.ios.iter().all(|io| io.end > io.start), "{context}");
                }
                assert_eq!(known.ios.len(), log.ios.len(), "{context}");
            }
        }
    }
}

#[test]
fn the_log_has_a_line_for_each_operation() {
    let workload = Workload {
        engine: Engine::RoundRobin,
        jobs: 1,
        channels: 2,
        luns: 1,
        blocks: 1,
        pages: 6,
        read_percent: 0,
        compares: true,
    };
    let log = run_on::<Fifo>(1, &workload);
    let mut csv = Vec::new();
    log.write_csv(&mut csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 12 + 2);
    assert_eq!(lines[0].split(';').count(), 14);
    // Two pages of 2048 bytes over a bus of 1 byte a nanosecond, and programs of 500 us one after the other.
    assert_eq!(lines[1], "0;0;0;0;0;0;0;0;1004096;1004096;w;0;0;4096");
    assert_eq!(lines[2], "1;1;0;1;0;0;0;1004096;2008192;1004096;w;0;0;4096");
    assert!(lines[13].ends_with(";e;0;0;0"), "{}", lines[13]);
    assert_eq!(log.ios[12].kind, IoKind::Erase);
}

#[test]
fn impossible_workloads_name_the_key() {
    let mut device = device::<Fifo>(1);
    let host = Host::open(&mut device, 0, SimTime::ZERO).unwrap();
    let good = Workload {
        engine: Engine::Sequential,
        jobs: 4,
        channels: 2,
        luns: 2,
        blocks: 3,
        pages: 6,
        read_percent: 50,
        compares: false,
    };
    assert_eq!(good.check(host.geometry()), Ok(()));
    for (workload, key) in [
        (Workload { channels: 3, ..good }, "channels"),
        (Workload { luns: 0, ..good }, "luns"),
        (Workload { blocks: 4, ..good }, "blocks"),
        (Workload { pages: 7, ..good }, "pages"),
        (Workload { jobs: 5, ..good }, "jobs"),
        (Workload { read_percent: 101, ..good }, "read_percent"),
    ] {
        let error = workload.check(host.geometry()).unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
    }
}

#[test]
fn one_operation_at_a_time_gives_the_latencies_of_the_table() {
    for engine in Engine::ALL {
        let summary = thesis::run_on::<Serial>(&SERIAL, &thesis::workload(engine, 1, 0)).summary();
        assert_eq!(summary.counts, [0, 16_384, 512]);
        assert_eq!((summary.write_ns_mean as u64, summary.erase_ns_mean as u64), (116_000, 434_000));
        assert_eq!(summary.elapsed_ns, 16_384 * 116_000);
        let summary = thesis::run_on::<Serial>(&SERIAL, &thesis::workload(engine, 1, 100)).summary();
        assert_eq!((summary.counts, summary.read_ns_mean as u64), ([16_384, 0, 512], 101_000));
    }
}

#[test]
fn isolated_jobs_on_dies_of_their_own_do_not_wait_for_each_other() {
    // 8 jobs on 8 channels: each has a channel for itself.
    let summary = thesis::run_on::<Fifo>(&PARALLEL, &thesis::workload(Engine::Isolated, 8, 50)).summary();
    assert_eq!(summary.counts, [8192, 8192, 512]);
    assert_eq!(summary.read_ns_mean as u64, 100_960);
    assert_eq!(summary.write_ns_mean as u64, 115_960);
    // 32 jobs on 32 dies wait for the buses of their channels alone.
    let summary = thesis::run_on::<Fifo>(&PARALLEL, &thesis::workload(Engine::RoundRobin, 32, 0)).summary();
    assert!(summary.throughput > 6e9 && summary.throughput < 6.4e9, "{summary:?}");
}
