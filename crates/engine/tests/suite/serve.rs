//! The engine over whole stacks: what clients wrote comes back, what the model says is what a replay says,
//! and what was counted adds up.

use nandscape_core::command::HostCounts;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{Extent, Op, SimTime};
use nandscape_engine::{Clock, DEFAULT_DEPTH, DueQueue, Engine, Latencies, Request, Stat};
use nandscape_report::Run;
use nandscape_stack::{RunOptions, StackConfig, Typed, build_storing, build_subsystem, replay};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PAGE: u64 = 4096;
/// Pages that the load covers.
const SPAN: u64 = 2048;

fn config(keys: &[&str]) -> StackConfig {
    let mut typed = Typed::new();
    let device = [
        "device.channels=2",
        "device.dies_per_channel=2",
        "device.planes_per_die=1",
        "device.blocks_per_plane=32",
        "device.pages_per_block=32",
        "device.page=4KiB",
        "device.endurance=endless",
        "ftl.op=0.28",
    ];
    for key in device.iter().chain(keys) {
        typed.set_pair(key).unwrap();
    }
    typed.check().unwrap()
}

/// An engine over a stack that keeps bytes.
fn storing(keys: &[&str], clock: Clock) -> Engine {
    Engine::new(build_storing(&config(keys)).unwrap(), clock)
}

/// What a client asks for.
#[derive(Clone, Copy)]
struct Ask {
    op: Op,
    offset: u64,
    len: u64,
    is_fua: bool,
}

/// Seeded requests: overwrites of single pages mostly, and some of everything else.
fn load(seed: u64, count: usize, with_barriers: bool) -> Vec<Ask> {
    let mut rng = seeded(seed);
    let mut ask = || {
        let offset = below(&mut rng, SPAN) * PAGE;
        let len = if below(&mut rng, 8) == 0 { (PAGE * 4).min(SPAN * PAGE - offset) } else { PAGE };
        let (op, is_fua) = match below(&mut rng, 100) {
            0..20 => (Op::Read, false),
            20..25 => (Op::Trim, false),
            25..28 => (Op::WriteZeroes, false),
            28..30 if with_barriers => (Op::Flush, false),
            30..32 => (Op::Write, with_barriers),
            _ => (Op::Write, false),
        };
        if op == Op::Flush { Ask { op, offset: 0, len: 0, is_fua } } else { Ask { op, offset, len, is_fua } }
    };
    (0..count).map(|_| ask()).collect()
}

/// Runs requests in batches of so many. Everything that is written to a page is the number of its write;
/// reads are compared with `oracle`, if the stack keeps bytes. The first issue and the last completion.
fn serve(
    engine: &Engine,
    asks: &[Ask],
    batch: usize,
    mut oracle: Option<&mut Vec<u8>>,
) -> (SimTime, SimTime) {
    let mut number = 0u8;
    let mut span = (SimTime::MAX, SimTime::ZERO);
    for asks in asks.chunks(batch) {
        let mut buffers: Vec<Vec<u8>> = Vec::new();
        for ask in asks {
            number = number.wrapping_add(1);
            let fill = if ask.op == Op::Write { number } else { 0 };
            buffers
                .push(vec![fill; if matches!(ask.op, Op::Read | Op::Write) { ask.len as usize } else { 0 }]);
        }
        let expected: Vec<Option<Vec<u8>>> = asks
            .iter()
            .zip(&buffers)
            .map(|(ask, buffer)| {
                let oracle = oracle.as_deref_mut()?;
                let range = ask.offset as usize..(ask.offset + ask.len) as usize;
                match ask.op {
                    Op::Read => return Some(oracle[range].to_vec()),
                    Op::Write => oracle[range].copy_from_slice(buffer),
                    Op::Trim | Op::WriteZeroes => oracle[range].fill(0),
                    Op::Flush => {}
                }
                None
            })
            .collect();
        let mut requests: Vec<Request<'_>> = asks
            .iter()
            .zip(&mut buffers)
            .map(|(ask, buffer)| {
                match ask.op {
                    Op::Read => Request::read(0, ask.offset, buffer),
                    Op::Write => Request::write(0, ask.offset, buffer),
                    op => Request::plain(0, op, Extent::new(ask.offset, ask.len)),
                }
                .durable(ask.is_fua)
            })
            .collect();
        engine.run(&mut requests);
        for request in &requests {
            let served = request.outcome.as_ref().unwrap();
            assert!(served.done >= served.issued);
            span = (span.0.min(served.issued), span.1.max(served.done));
        }
        drop(requests);
        for (got, expected) in buffers.iter().zip(&expected) {
            if let Some(expected) = expected {
                assert_eq!(got, expected);
            }
        }
    }
    span
}

fn replayed(keys: &[&str], path: &Path) -> Run {
    let depth = format!("workload.depth={DEFAULT_DEPTH}");
    let keys: Vec<&str> = keys.iter().copied().chain([depth.as_str()]).collect();
    let run = replay(&config(&keys), path.to_str().unwrap(), &RunOptions::default()).unwrap();
    assert_eq!(run.result.error, None);
    run
}

/// All the schedulers: two know when requests complete, one is event-driven.
const SCHEDULERS: [&str; 3] =
    ["device.timing.mode=serial", "device.timing.scheduler=fifo", "device.timing.scheduler=read-first"];

#[test]
fn what_clients_wrote_comes_back_whatever_the_clock_scheduler_and_batch() {
    for scheduler in SCHEDULERS {
        for clock in [Clock::free(), Clock::Free { depth: 1 }, Clock::Paced, Clock::Real] {
            for batch in [1, 7, 256] {
                let engine = storing(&[scheduler], clock);
                let mut oracle = vec![0; (SPAN * PAGE) as usize];
                serve(&engine, &load(1, 1500, true), batch, Some(&mut oracle));
                // Ends what an event-driven model has not completed yet.
                engine.with(|subsystem, _| subsystem.check_invariants());
                let stat = engine.stat();
                assert_eq!(
                    stat.service.latency_ns.read.count, stat.host.reads,
                    "{scheduler} {clock:?} {batch}"
                );
                assert_eq!(stat.service.real_latency_ns.write.count, stat.host.writes);
                assert_eq!(stat.service.queue.batches, 1500usize.div_ceil(batch) as u64);
            }
        }
    }
}

#[test]
fn an_event_driven_model_has_what_several_batches_asked_for_under_way_together() {
    // Large enough that each die has an open block.
    let keys =
        ["device.timing.scheduler=read-first", "device.timing.program=100ms", "device.blocks_per_plane=320"];
    let engine = storing(&keys, Clock::Paced);
    let mut waiting = DueQueue::default();
    let begin = Instant::now();
    for page in 0..4 {
        let data = [page as u8; 4096];
        let mut batch = [Request::write(0, page * PAGE, &data)];
        engine.run(&mut batch);
        let mut due = engine.due(batch[0].outcome.as_ref().unwrap());
        assert!(due.as_mut().unwrap().at().is_none(), "events tell, in 100 ms");
        waiting.push(due, Instant::now(), page, |_, _| panic!("it is not known yet"));
    }
    let (mut known, mut order) = (Vec::new(), Vec::new());
    while let Some(next) = waiting.look(&engine, |page, at| known.push((*page, at))) {
        let now = Instant::now();
        while let Some(answer) = waiting.pop(now, |_| true) {
            order.push(answer.what);
            let due = answer.counted.unwrap();
            assert!(due <= now && due >= begin + Duration::from_millis(100));
            engine.answered(due);
        }
        std::thread::sleep(next.saturating_duration_since(now));
    }
    // One a die, at the same time: with one after the other the last is due after 400 ms.
    assert_eq!((order, known.len(), waiting.is_empty()), (vec![0, 1, 2, 3], 4, true));
    let last = known.iter().map(|(_, at)| *at).max().unwrap();
    assert!(last < begin + Duration::from_millis(300), "{:?}", last - begin);
    let stat = engine.stat();
    let [model, real] = [&stat.service.latency_ns.write, &stat.service.real_latency_ns.write];
    assert!((100_000_000..150_000_000).contains(&model.max), "{}", model.max);
    assert_eq!((model.count, real.count, real.max), (4, 4, model.max));
    let pace = stat.service.pace.unwrap();
    assert_eq!((pace.answers, pace.late_ns.count), (4, 4));
}

#[test]
fn requests_without_a_pause_do_not_stop_the_time_that_cleaning_waits_for() {
    let engine = storing(&[], Clock::Real);
    let begin = Instant::now();
    let mut data = [0; 4096];
    // Without a gap of 10 ms, which would count as idle time on any clock.
    let mut is_over = false;
    while !is_over {
        is_over = begin.elapsed() >= Duration::from_millis(60);
        let mut batch = [Request::read(0, 0, &mut data)];
        engine.run(&mut batch);
        assert!(engine.due(batch[0].outcome.as_ref().unwrap()).is_none(), "answered at once");
    }
    let stat = engine.stat();
    assert!(stat.speed.time.simulated_ns >= 60_000_000, "{} ns of 60 ms", stat.speed.time.simulated_ns);
    assert_eq!((stat.server.clock.mode.as_str(), stat.service.pace.is_none()), ("real", true));
}

/// A load served while it is recorded, and its replay.
fn recorded_and_replayed(keys: &[&str], path: &Path) -> (Stat, Run) {
    let engine = Engine::new(build_subsystem(&config(keys)).unwrap(), Clock::free());
    engine.start_recording(path).unwrap();
    // In one batch, so that no pause of this process counts as idle time of the host.
    let asks = load(3, 40_000, false);
    serve(&engine, &asks, asks.len(), None);
    // Requests that have not completed yet in an event-driven model.
    engine.with(|_, _| ());
    let stat = engine.stat();
    let recording = engine.stop_recording().unwrap();
    assert_eq!((recording.commands, recording.left_out, recording.error), (40_000, 0, None));
    assert_eq!(recording.file_bytes, path.metadata().unwrap().len());
    (stat, replayed(keys, path))
}

#[test]
fn a_recording_replays_to_the_same_counts_waf_and_times() {
    let dir = tempfile::tempdir().unwrap();
    for (at, scheduler) in SCHEDULERS.into_iter().enumerate() {
        for ftl in ["ftl.victim=greedy", "ftl.victim=fifo"] {
            let path = dir.path().join(format!("{at}-{}.csv.zst", &ftl[11..]));
            let (stat, run) = recorded_and_replayed(&[scheduler, ftl], &path);
            let result = run.result;
            assert_eq!(stat.host, result.host, "{scheduler} {ftl}");
            assert_eq!(stat.flash.by_cause, result.flash.by_cause);
            assert_eq!(stat.waf.pages, result.waf.pages);
            assert!(stat.waf.pages.unwrap() > 1.1, "the load must collect garbage: {:?}", stat.waf.pages);
            assert_eq!(stat.layer.gc.runs, result.layer.gc.runs);
            for (live, replayed) in [
                (stat.service.latency_ns.read, result.latency_ns.read),
                (stat.service.latency_ns.write, result.latency_ns.write),
            ] {
                assert_eq!((live.count, live.min, live.max), (replayed.count, replayed.min, replayed.max));
                assert!((live.mean / replayed.mean - 1.0).abs() < 1e-9, "{} {}", live.mean, replayed.mean);
                assert!((live.p99 as f64 / replayed.p99 as f64 - 1.0).abs() < 0.02);
            }
        }
    }
}

#[test]
fn host_counts_of_a_stack_that_keeps_bytes_survive_recording_and_replay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    let engine = storing(&[], Clock::free());
    engine.start_recording(&path).unwrap();
    let twice = engine.start_recording(&dir.path().join("u.csv")).unwrap_err().to_string();
    assert!(twice.contains("u.csv") && twice.contains("t.csv is running already"), "{twice}");
    serve(&engine, &load(4, 5000, true), 16, None);
    // Refused, so not recorded, but told.
    let mut outside = [0; 512];
    let capacity = engine.namespaces()[0].capacity_bytes;
    let mut refused = [Request::read(0, capacity, &mut outside)];
    let before = engine.stat().host;
    engine.run(&mut refused);
    assert!(refused[0].outcome.is_err());
    let recording = engine.stop_recording().unwrap();
    assert_eq!((recording.left_out, recording.is_running), (1, false));
    assert!(engine.stop_recording().is_err());
    assert_eq!(replayed(&[], &path).result.host, before);
    assert_eq!(engine.stat().faults.errors.get("out-of-range"), Some(&1));
}

#[test]
fn depth_one_is_the_sum_of_latencies_and_a_greater_depth_overlaps_them() {
    let run = |depth| {
        let engine = storing(&[], Clock::Free { depth });
        let asks = load(5, 4000, false);
        let (first, last) = serve(&engine, &asks, asks.len(), None);
        let Latencies { read, write, trim, .. } = engine.stat().service.latency_ns;
        let sum: f64 = [read, write, trim].iter().map(|l| l.mean * l.count as f64).sum();
        (last.since(first).0 as f64, sum)
    };
    let ((one, sum), (many, _)) = (run(1), run(16));
    assert!((sum / one - 1.0).abs() < 1e-6, "{sum} {one}");
    assert!(many < one / 2.0, "four dies work side by side: {many} {one}");
}

#[test]
fn a_flush_waits_for_what_came_before_and_is_waited_for() {
    let engine = storing(&[], Clock::free());
    let data = [1; 4096];
    let flush = || Request::plain(0, Op::Flush, Extent::new(0, 0));
    let mut batch = [
        Request::write(0, 0, &data),
        Request::write(0, PAGE, &data),
        flush(),
        Request::write(0, 2 * PAGE, &data),
    ];
    engine.run(&mut batch);
    let served = batch.each_ref().map(|request| request.outcome.clone().unwrap());
    assert_eq!(served[0].issued, served[1].issued);
    assert!(served[2].issued >= served[0].done.max(served[1].done));
    assert!(served[3].issued >= served[2].done);
    // Forced unit access completes when its write has, not before.
    let mut forced = [Request::write(0, 0, &data).durable(true)];
    engine.run(&mut forced);
    let served = forced[0].outcome.clone().unwrap();
    assert!(served.done.since(served.issued) > SimTime(0));
}

#[test]
fn paced_answers_are_due_in_real_time_and_lateness_is_told() {
    // A device that is never the one to wait for: every answer is late by what the host took.
    let engine = storing(
        &[
            "device.timing.read=1ns",
            "device.timing.program=1ns",
            "device.timing.erase=1ns",
            "device.timing.channel_bytes_per_s=100000GB",
        ],
        Clock::Paced,
    );
    let asks = load(6, 3000, true);
    serve(&engine, &asks, 1000, None);
    let pace = engine.stat().service.pace.unwrap();
    assert_eq!(pace.answers, 3000);
    assert_eq!(pace.late_ns.count, 3000, "the host is slower than a nanosecond");
    assert!(pace.late_ns.max > 0 && pace.late_after_ns > 0 && pace.late <= pace.answers);
    // A slow device: answers wait, and only who sends them knows when.
    let engine = storing(&["device.timing.program=10s"], Clock::Paced);
    let data = [1; 4096];
    let mut batch = [Request::write(0, 0, &data)];
    engine.run(&mut batch);
    let served = batch[0].outcome.clone().unwrap();
    let due = engine.due(&served).unwrap().at().unwrap();
    assert!(due > std::time::Instant::now() + std::time::Duration::from_secs(5));
    assert_eq!(
        (engine.stat().service.pace.unwrap().answers, engine.stat().service.pace.unwrap().late_ns.count),
        (1, 0)
    );
    engine.answered(due);
    let pace = engine.stat().service.pace.unwrap();
    assert_eq!((pace.late_ns.count, pace.late), (1, 0));
    assert!(
        engine.stat().service.real_latency_ns.write.min >= 10_000_000_000,
        "the client waits for the model"
    );
    assert!(storing(&[], Clock::free()).due(&served).is_none());
}

#[test]
fn a_reset_starts_every_counter_anew_but_wear() {
    let engine = storing(&[], Clock::free());
    serve(&engine, &load(7, 10_000, true), 64, None);
    let before = engine.stat();
    assert!(before.waf.pages.unwrap() > 1.0 && before.interval.host.writes > 0 && before.wear.erases_max > 0);
    assert_eq!(before.interval.host, before.host, "younger than an interval");
    engine.reset();
    let after = engine.stat();
    assert_eq!(
        (after.host, after.waf.pages, after.service.latency_ns.write.count),
        (HostCounts::default(), None, 0)
    );
    assert_eq!((after.interval.host, after.service.queue.batches), (HostCounts::default(), 0));
    assert_eq!(
        (after.wear.erases_max, after.space.live_pages),
        (before.wear.erases_max, before.space.live_pages)
    );
    serve(&engine, &load(8, 1000, true), 64, None);
    assert_eq!(engine.stat().service.latency_ns.write.count, engine.stat().host.writes);
}

#[test]
fn times_of_a_recording_never_go_back_however_many_clients_there_are() {
    let engine = storing(&[], Clock::free());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    engine.start_recording(&path).unwrap();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let engine = &engine;
            scope.spawn(move || serve(engine, &load(seed, 3000, false), 3, None));
        }
    });
    assert!(engine.stop_recording().unwrap().commands >= 12_000);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut last = 0.0;
    for (number, line) in (1..).zip(text.lines()).skip(1) {
        let at: f64 = line.split(',').next().unwrap().parse().unwrap();
        assert!(at >= last, "line {number}: {at} after {last}");
        last = at;
    }
}

#[test]
fn a_stat_document_is_of_one_moment_while_requests_run() {
    let engine = storing(&[], Clock::free());
    let is_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let load = load(10, 20_000, false);
            for asks in load.chunks(5).cycle().take_while(|_| !is_ended.load(Ordering::Relaxed)) {
                serve(&engine, asks, 5, None);
            }
        });
        let mut last = 0;
        while last < 20_000 {
            let stat = engine.stat();
            let measured = [stat.service.latency_ns.read.count, stat.service.latency_ns.write.count];
            assert_eq!(measured, [stat.host.reads, stat.host.writes]);
            assert_eq!(stat.interval.latency_ns.write.count, stat.interval.host.writes);
            let programs: u64 = stat.flash.by_cause.values().map(|counts| counts.programs).sum();
            assert_eq!(stat.flash.programs, programs);
            last = stat.host.writes;
        }
        is_ended.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_stat_document_reads_back_and_its_space_and_wear_agree_with_the_device() {
    let engine = storing(&["namespaces.count=2", "sets.layout=vertical", "sets.count=2"], Clock::free());
    let asks: Vec<Ask> =
        load(9, 1000, false).iter().map(|ask| Ask { offset: ask.offset / 2 / PAGE * PAGE, ..*ask }).collect();
    serve(&engine, &asks, 10, None);
    let stat = engine.stat();
    assert_eq!((stat.server.schema, stat.namespaces.len(), stat.sets.len()), (1, 2, 2));
    assert_eq!(stat.host, stat.namespaces[0].host);
    assert_eq!(stat.sets[1].host, HostCounts::default());
    let (erased, blocks) = engine.look(|subsystem| {
        let (mut erased, mut blocks) = (0, 0);
        for set in 0..subsystem.inspect().sets() {
            let device = subsystem.inspect().device(set);
            for block in (0..device.geometry().blocks()).map(nandscape_core::BlockId) {
                blocks += u64::from(!device.is_bad(block));
                erased += u64::from(!device.is_bad(block) && device.write_pointer(block) == 0);
            }
        }
        (erased, blocks)
    });
    assert_eq!((stat.space.free_blocks, stat.space.total_blocks), (erased, blocks));
    let text = serde_json::to_string(&stat).unwrap();
    let again: Stat = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (again.host, again.service.latency_ns.write.max),
        (stat.host, stat.service.latency_ns.write.max)
    );
    // The same names; JSON may take a last bit from a mean.
    let names = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    assert_eq!(names(&serde_json::to_string(&again).unwrap()), names(&text));
}
