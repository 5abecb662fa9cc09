//! Job files: requests a second of the whole stack, event loop, generator, page map and scheduler together,
//! with both kinds of scheduler. Budgets: 3 M/s with `fifo`, 1 M/s event-driven.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nandscape_bench::TIMING;
use nandscape_core::{BlockState, Geometry, Params, Subsystem};
use nandscape_ftl::page_map;
use nandscape_jobs::JobFile;
use nandscape_media::{Fifo, Nand, NandOptions, ReadFirst, Scheduler, Timed};
use nandscape_namespace::NvmSubsystem;
use nandscape_sim::{JobOptions, Precondition, Snapshot, run_jobs};

const GEOMETRY: Geometry = Geometry {
    channels: 16,
    dies_per_channel: 8,
    planes_per_die: 1,
    blocks_per_plane: 64,
    pages_per_block: 64,
    page_bytes: 4096,
    sector_bytes: 4096,
    oob_bytes: 64,
};

/// Requests of each run.
const REQUESTS: u64 = 1_000_000;

fn subsystem<S: Scheduler + Send + 'static>() -> Box<dyn Subsystem> {
    let nand =
        Nand::new(GEOMETRY.checked().expect("a shape"), &NandOptions::default()).expect("no bad blocks");
    let device = Timed::new(nand, S::new(&GEOMETRY, &TIMING));
    assert_eq!(device.geometry().pages(), GEOMETRY.pages());
    let ftl = page_map::build(device, &Params::defaults(&page_map::INFO)).expect("the defaults fit");
    Box::new(NvmSubsystem::plain(ftl))
}

fn run(subsystem: &mut dyn Subsystem, file: &JobFile, precondition: &str) -> u64 {
    let precondition = Precondition::parse(precondition).expect("a preconditioning");
    let options = JobOptions {
        snapshot: Snapshot::Unused,
        precondition: &precondition,
        seed: 1,
        with_series: false,
        interval_ns: None,
        with_detail: false,
        stop: None,
        log: None,
        recordings: None,
    };
    let outcome = run_jobs(subsystem, file, "bench", &options, &mut || {}, &mut |_| {}).expect("it runs");
    assert_eq!(outcome.result.error, None);
    outcome.result.workload.requests
}

fn bench<S: Scheduler + Send + 'static>(criterion: &mut Criterion, scheduler: &str) {
    let mut group = criterion.benchmark_group("jobs");
    group.throughput(Throughput::Elements(REQUESTS)).sample_size(10);
    for (name, lines) in [
        ("6 x randread, depth 64", "rw=randread\niodepth=64\nnumjobs=6"),
        ("randrw 70/30, depth 32", "rw=randrw\nrwmixread=70\niodepth=32"),
        ("randwrite, depth 32", "rw=randwrite\niodepth=32"),
    ] {
        let text = format!("[load]\nfilename=ns1\nbs=4k\nnorandommap\ntime_based=0\n{lines}\n");
        let mut file = JobFile::parse("bench.fio", &text).expect("a job file");
        let jobs = file.jobs.len() as u64;
        for job in &mut file.jobs {
            job.io_size = nandscape_jobs::Amount::Bytes(REQUESTS / jobs * 4096);
        }
        let mut subsystem = subsystem::<S>();
        run(&mut *subsystem, &file, "fill");
        group.bench_function(format!("{scheduler}, {name}"), |b| {
            b.iter(|| run(&mut *subsystem, &file, "none"));
        });
    }
    group.finish();
}

fn jobs(criterion: &mut Criterion) {
    bench::<Fifo>(criterion, "fifo");
    bench::<ReadFirst>(criterion, "read-first");
}

criterion_group!(benches, jobs);
criterion_main!(benches);
