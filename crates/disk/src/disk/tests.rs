//! Closed forms, and runs that repeat.

pub mod measure;

use super::*;
use measure::{Load, Measured, Pattern, measure};
use nandscape_core::Hint;
use nandscape_core::rng::{below, seeded};

/// A small disk with one zone: 100 MB/s at 7200 turns a minute, no switch that is not hidden by the skew.
pub const BUILD: Build = Build {
    capacity_bytes: 4 << 30,
    rpm: 7200,
    heads: 4,
    zones: 1,
    outer_bytes_per_s: 100_000_000,
    inner_bytes_per_s: 100_000_000,
    seek_next_ns: 1_000_000,
    seek_third_ns: 9_000_000,
    seek_full_ns: 18_000_000,
    head_switch_ns: 800_000,
};

const OPTIONS: DiskOptions = DiskOptions {
    order: Order::Shortest,
    depth: 32,
    wait_ns_max: 1_000_000_000,
    command_ns: 10_000,
    interface_bytes_per_s: 300_000_000,
    write_cache_bytes: 0,
    read_segments: 0,
    read_ahead_bytes: 0,
};

fn disk(options: DiskOptions) -> Disk {
    Disk::new(BUILD, options, 512, Keep::Nothing)
}

fn command(op: Op, offset: u64, len: u64) -> BlockCommand {
    BlockCommand::new(op, Extent::new(offset, len), Hint::default())
}

fn random(op: Op, depth: u32, requests: u64) -> Load {
    Load { op, pattern: Pattern::Random, depth, requests, ..Load::default() }
}

fn run(disk: &mut Disk, load: &Load) -> Measured {
    measure(disk, load, SimTime::ZERO).unwrap()
}

/// The mean seek of two random cylinders: the seek curve over the density `2 (1 - x)` of their distance.
fn mean_seek_ns(mechanics: &Mechanics) -> f64 {
    let all = mechanics.cylinders as f64;
    let (next, third, full) =
        (BUILD.seek_next_ns as f64, BUILD.seek_third_ns as f64, BUILD.seek_full_ns as f64);
    let root = (third - next) / ((all / 3.0).sqrt() - 1.0);
    let start = next - root;
    let slope = (full - third) / (all - 1.0 - all / 3.0) * all;
    let base = third - slope / 3.0;
    // The antiderivatives of 2 (1 - x) (start + root sqrt(all x)) and of 2 (1 - x) (base + slope x).
    let short = |x: f64| {
        start * (2.0 * x - x * x) + 2.0 * root * all.sqrt() * (x.powf(1.5) / 1.5 - x.powf(2.5) / 2.5)
    };
    let long = |x: f64| base * (2.0 * x - x * x) + 2.0 * slope * (x * x / 2.0 - x * x * x / 3.0);
    short(1.0 / 3.0) + long(1.0) - long(1.0 / 3.0)
}

#[test]
fn random_accesses_take_the_mean_seek_and_half_a_turn() {
    let mut disk = disk(DiskOptions { order: Order::Fifo, ..OPTIONS });
    let requests = 20_000;
    run(&mut disk, &random(Op::Read, 1, requests));
    let counts = disk.counts;
    assert_eq!(counts.accesses, requests);
    let seek = counts.seek_ns as f64 / requests as f64;
    let expected = mean_seek_ns(&disk.mechanics);
    assert!((seek / expected - 1.0).abs() < 0.01, "seek {seek} ns, {expected} by the closed form");
    let rotation = counts.rotation_ns as f64 / requests as f64;
    let half = disk.mechanics.turn_ns as f64 / 2.0;
    assert!((rotation / half - 1.0).abs() < 0.01, "rotation {rotation} ns, half a turn is {half}");
}

#[test]
fn the_seek_curve_goes_through_the_data_sheet_and_never_falls() {
    let mechanics = Mechanics::new(BUILD);
    let n = mechanics.cylinders;
    assert_eq!((mechanics.seek_ns(0), mechanics.seek_ns(1)), (0, BUILD.seek_next_ns));
    assert!(mechanics.seek_ns(n / 3).abs_diff(BUILD.seek_third_ns) < 10_000);
    assert_eq!(mechanics.seek_ns(n - 1), BUILD.seek_full_ns);
    let mut last = 0;
    for distance in 0..n {
        let seek = mechanics.seek_ns(distance);
        assert!(seek >= last, "{distance} cylinders");
        last = seek;
    }
}

#[test]
fn reading_and_writing_in_sequence_run_at_the_rate_of_the_medium() {
    let ahead = DiskOptions { read_ahead_bytes: 256 << 10, read_segments: 16, ..OPTIONS };
    let cache = DiskOptions { write_cache_bytes: 8 << 20, ..OPTIONS };
    // A turn passes one track, and then a head or a cylinder is switched; the skew loses no more than that.
    let turn = 60e9 / 7200.0;
    let rate = 100e6 * 4.0 * turn / (4.0 * turn + 3.0 * 800e3 + 1e6);
    for (what, options, op, depth) in [
        ("read ahead, deep", ahead, Op::Read, 32),
        ("read ahead, one at a time", ahead, Op::Read, 1),
        ("read, deep", OPTIONS, Op::Read, 32),
        ("write, deep", OPTIONS, Op::Write, 32),
        ("write cache, one at a time", cache, Op::Write, 1),
    ] {
        let load = Load { op, depth, requests: 50_000, ..Load::default() };
        let ratio = run(&mut disk(options), &load).bytes_per_s() / rate;
        assert!((0.98..1.05).contains(&ratio), "{what}: {ratio} of the rate of the medium");
    }
    // Without either, each request of 4 KiB misses its sector by the controller's time and waits a turn.
    let load = Load { op: Op::Write, depth: 1, requests: 1000, ..Load::default() };
    let measured = run(&mut disk(OPTIONS), &load);
    let ratio = measured.latency_ns_sum as f64 / measured.requests as f64 / turn;
    assert!((0.95..1.05).contains(&ratio), "{ratio} turns a write");
}

#[test]
fn zones_are_faster_outside() {
    let build = Build { zones: 10, inner_bytes_per_s: 50_000_000, ..BUILD };
    let options = DiskOptions { read_ahead_bytes: 256 << 10, ..OPTIONS };
    let mut disk = Disk::new(build, options, 512, Keep::Nothing);
    let outside =
        run(&mut disk, &Load { request_bytes: 1 << 20, requests: 100, ..Load::default() }).bytes_per_s();
    // The last requests of the disk.
    let mut tail = Vec::new();
    let start = disk.idle_from();
    for index in 0..100_u64 {
        let offset = build.capacity_bytes - (100 - index) * (1 << 20);
        let token = disk.submit(command(Op::Read, offset, 1 << 20), Payload::None, start).unwrap();
        disk.watch(token, index);
    }
    while let Some(event) = disk.next_event() {
        disk.advance(event, &mut tail);
    }
    let inside = f64::from(99 << 20) / tail[99].at.since(tail[0].at).as_secs_f64();
    let ratio = outside / inside;
    assert!((1.7..2.0).contains(&ratio), "{outside} B/s outside, {inside} inside");
}

#[test]
fn reordering_beats_the_order_of_coming() {
    let iops = |order, depth| {
        let load = random(Op::Read, depth, 4000);
        4000.0 / (run(&mut disk(DiskOptions { order, ..OPTIONS }), &load).elapsed_ns as f64 / 1e9)
    };
    let (fifo, elevator, shortest) =
        (iops(Order::Fifo, 32), iops(Order::Elevator, 32), iops(Order::Shortest, 32));
    assert!(elevator > 1.2 * fifo, "elevator {elevator}, fifo {fifo}");
    assert!(shortest > 1.25 * elevator, "shortest {shortest}, elevator {elevator}");
    assert!(shortest > 2.0 * fifo, "shortest {shortest}, fifo {fifo}");
    let (alone, with_fifo) = (iops(Order::Shortest, 1), iops(Order::Fifo, 1));
    assert!((alone / with_fifo - 1.0).abs() < 1e-9, "there is nothing to choose at depth 1");
}

#[test]
fn nobody_waits_for_ever() {
    let limit = 200_000_000;
    let load = random(Op::Read, 64, 8000);
    let bounded = run(&mut disk(DiskOptions { wait_ns_max: limit, depth: 64, ..OPTIONS }), &load);
    let free = run(&mut disk(DiskOptions { wait_ns_max: u64::MAX / 2, depth: 64, ..OPTIONS }), &load);
    // Past the limit commands go in their order, each with an access of its own: a full seek and a turn at
    // most.
    let access = BUILD.seek_full_ns + 60_000_000_000 / 7200 + 1_000_000;
    assert!(bounded.latency_ns_max < limit + 64 * access, "{bounded:?}");
    assert!(bounded.latency_ns_max < free.latency_ns_max, "{bounded:?} {free:?}");
}

#[test]
fn a_written_cache_answers_at_once_and_a_flush_waits_for_the_medium() {
    let mut disk = disk(DiskOptions { write_cache_bytes: 1 << 20, ..OPTIONS });
    let mut last = Token::NONE;
    for index in 0..100_u64 {
        let offset = (index * 7919 % 1000) * 4_000_256 / 512 * 512;
        last = disk.submit(command(Op::Write, offset, 4096), Payload::None, SimTime(0)).unwrap();
    }
    let written = disk.completion(last).expect("the cache had room");
    assert!(written.0 < 3_000_000, "{written}");
    assert_eq!(disk.dirty_bytes(), 100 * 4096);
    let flush = disk.submit(command(Op::Flush, 0, 0), Payload::None, SimTime(0)).unwrap();
    assert_eq!(disk.completion(flush), None);
    disk.watch(flush, 7);
    let mut out = Vec::new();
    while let Some(event) = disk.next_event() {
        disk.advance(event, &mut out);
    }
    assert_eq!((out.len(), out[0].tag, disk.dirty_bytes()), (1, 7, 0));
    assert_eq!(disk.completion(flush), Some(out[0].at));
    assert_eq!(disk.counts.accesses, 100);
    assert!(out[0].at.0 > 100_000_000, "a hundred accesses take longer than {}", out[0].at);
    // Nothing is left: a flush now takes the controller's time only.
    let now = out[0].at;
    let again = disk.submit(command(Op::Flush, 0, 0), Payload::None, now).unwrap();
    assert_eq!(disk.completion(again), Some(now + OPTIONS.command_ns));
}

#[test]
fn a_flush_waits_for_the_write_before_it_without_a_cache_too() {
    let mut disk = disk(OPTIONS);
    let write = disk.submit(command(Op::Write, 1 << 30, 4096), Payload::None, SimTime(0)).unwrap();
    let flush = disk.submit(command(Op::Flush, 0, 0), Payload::None, SimTime(0)).unwrap();
    disk.submit(command(Op::Read, 0, 4096), Payload::None, SimTime(0)).unwrap();
    while let Some(event) = disk.next_event() {
        disk.advance(event, &mut Vec::new());
    }
    assert!(disk.completion(write).is_some() && disk.completion(flush) >= disk.completion(write));
}

#[test]
fn what_was_read_is_in_the_buffer_until_it_is_overwritten() {
    let options = DiskOptions { read_ahead_bytes: 64 << 10, read_segments: 4, ..OPTIONS };
    let mut disk = disk(options);
    let mut now = SimTime(0);
    let mut read = |disk: &mut Disk, op, offset| {
        let token = disk.submit(command(op, offset, 4096), Payload::None, now).unwrap();
        while disk.completion(token).is_none() {
            let event = disk.next_event().expect("something is queued");
            disk.advance(event, &mut Vec::new());
        }
        let before = now;
        now = disk.completion(token).unwrap();
        now.since(before).0
    };
    read(&mut disk, Op::Read, 1 << 30);
    read(&mut disk, Op::Read, 2 << 30);
    let hit = read(&mut disk, Op::Read, 1 << 30);
    assert!(hit < 30_000, "{hit} ns");
    read(&mut disk, Op::Write, 1 << 30);
    let miss = read(&mut disk, Op::Read, 1 << 30);
    assert!(miss > 1_000_000, "{miss} ns");
    assert_eq!(disk.counts.read_hits, 1);
}

/// A mix of everything at irregular times, with tokens watched and asked for.
fn mixed(seed: u64) -> (Vec<(u64, u64)>, DiskCounts) {
    let options = DiskOptions {
        write_cache_bytes: 256 << 10,
        read_ahead_bytes: 128 << 10,
        read_segments: 4,
        depth: 8,
        ..OPTIONS
    };
    let mut disk = disk(options);
    let mut rng = seeded(seed);
    let (mut log, mut out, mut now) = (Vec::new(), Vec::new(), 0);
    let commands = 3000;
    for index in 0..commands {
        now += below(&mut rng, 4_000_000);
        disk.advance(SimTime(now), &mut out);
        let op = match below(&mut rng, 20) {
            0 => Op::Flush,
            1 => Op::Trim,
            2..8 => Op::Write,
            _ => Op::Read,
        };
        let offset = below(&mut rng, 1000) * 4_194_304;
        let len = if op == Op::Flush { 0 } else { 4096 << below(&mut rng, 6) };
        let token = disk.submit(command(op, offset, len), Payload::None, SimTime(now)).unwrap();
        match disk.completion(token) {
            Some(at) => log.push((index, at.0)),
            None => disk.watch(token, index),
        }
    }
    while let Some(event) = disk.next_event() {
        disk.advance(event, &mut out);
    }
    assert!(out.is_sorted_by_key(|completion| completion.at), "reports come in the order of time");
    log.extend(out.iter().map(|completion| (completion.tag, completion.at.0)));
    assert_eq!(log.len() as u64, commands, "everything is answered once");
    assert_eq!((disk.dirty_bytes(), disk.next_event()), (0, None));
    (log, disk.counts)
}

#[test]
fn a_run_repeats_bit_for_bit() {
    for seed in 0..5 {
        assert_eq!(mixed(seed), mixed(seed), "seed {seed}");
    }
    assert_ne!(mixed(0), mixed(1));
}

#[test]
fn bytes_are_what_was_written_last() {
    let mut disk = Disk::new(BUILD, OPTIONS, 4096, Keep::Bytes);
    disk.submit(command(Op::Write, 8192, 4096), Payload::Write(&[5; 4096]), SimTime(0)).unwrap();
    let mut bytes = [9; 8192];
    disk.submit(command(Op::Read, 4096, 8192), Payload::Read(&mut bytes), SimTime(0)).unwrap();
    assert_eq!((&bytes[..4096], &bytes[4096..]), (&[0; 4096][..], &[5; 4096][..]));
    let error = disk.submit(command(Op::Read, 512, 4096), Payload::None, SimTime(0)).unwrap_err();
    assert_eq!(error, nandscape_core::StoreError::Unaligned { offset: 512, len: 4096, block: 4096 });
}
