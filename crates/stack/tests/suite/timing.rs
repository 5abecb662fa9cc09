//! `[device.timing]` and the presets that use it, through the whole stack.

use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockCommand, Cause, Command, Extent, Hint, Op, SimTime, Subsystem};
use nandscape_stack::build::{BuildOptions, build};
use nandscape_stack::{StackConfig, Typed};

fn typed(preset: &str, pairs: &[&str]) -> Typed {
    let mut typed = Typed::new();
    typed.merge_preset(preset).unwrap();
    for pair in pairs {
        typed.set_pair(pair).unwrap();
    }
    typed
}

fn refused(preset: &str, pairs: &[&str]) -> String {
    typed(preset, pairs).check().unwrap_err().to_string()
}

#[test]
fn what_a_scheduler_cannot_do_is_refused_by_name() {
    for (pair, key) in [
        ("device.timing.suspend=program", "suspend"),
        ("device.timing.burst=1KiB", "burst"),
        ("device.timing.read=40us,50us", "read"),
        ("device.timing.program_pages=2", "program_pages"),
        ("device.timing.contention=off", "contention"),
        ("device.timing.channel_decode=5us", "channel_decode"),
        ("device.timing.gc_order=host-first", "gc_order"),
    ] {
        let message = refused("generic-tlc", &[pair]);
        assert!(message.contains(&format!("device.timing.{key} = '")), "{message}");
        assert!(message.contains("read-first"), "{message}");
    }
    // Switched off it is nothing to refuse.
    for pair in [
        "suspend=none",
        "burst=0",
        "program_pages=1",
        "contention=on",
        "channel_decode=0us",
        "program_spread=0%",
    ] {
        typed("generic-tlc", &[&format!("device.timing.{pair}")]).check().unwrap();
    }
}

#[test]
fn what_makes_no_sense_together_is_refused_by_name() {
    let device = ["device.scale=1/64"];
    for (pairs, expected) in [
        (vec!["device.timing.write_buffer=0"], "device.timing.program_pages = '3'"),
        (vec!["device.timing.write_buffer=32KiB"], "device.timing.write_buffer = '32KiB'"),
        (vec!["device.timing.program_pages=5"], "device.timing.program_pages = '5'"),
        (vec!["device.timing.gc_rate=1MB"], "device.timing.gc_rate = '1MB'"),
        (vec!["device.timing.gc_order=rate-limited"], "device.timing.gc_rate = ''"),
        (vec!["device.timing.read=46us,x"], "device.timing.read = '46us,x'"),
        (vec!["device.timing.suspend_stop=2h"], "device.timing.suspend_stop = '2h'"),
        (vec!["device.timing.program_jitter=100%"], "device.timing.program_jitter = '100%'"),
        (vec!["device.scale=2"], "device.scale = '2'"),
        (vec!["device.scale=1/0"], "device.scale = '1/0'"),
    ] {
        let message = refused("pblaze5-916", &[&device[..], &pairs].concat());
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_scaled_device_has_fewer_blocks_and_says_so() {
    let whole = typed("pblaze5-916", &[]).check().unwrap();
    let scaled = typed("pblaze5-916", &["device.scale=1/16"]).check().unwrap();
    assert_eq!(whole.geometry.blocks_per_plane, 1366);
    assert_eq!(scaled.geometry.blocks_per_plane, 85);
    let config = scaled.to_json();
    assert_eq!(config["device"]["scale"], "1/16");
    assert_eq!(config["device"]["preset"], "pblaze5-916");
    let mut again = Typed::new();
    again.merge_text("printed", &scaled.to_toml()).unwrap();
    let again = again.check().unwrap();
    assert_eq!(again.geometry, scaled.geometry, "what is printed is not scaled twice");
    assert_eq!((again.hash(), again.to_toml()), (scaled.hash(), scaled.to_toml()));
    // Small devices stay as they are.
    assert_eq!(typed("thesis", &["device.scale=1/8"]).check().unwrap().geometry.blocks_per_plane, 16);
}

#[test]
fn the_name_of_the_preset_does_not_change_the_hash() {
    let preset = typed("generic-tlc", &[]).check().unwrap();
    assert_eq!(preset.hash(), Typed::new().check().unwrap().hash());
    assert_eq!(preset.to_json()["device"]["preset"], "generic-tlc");
}

fn run_one(namespace: &mut dyn Subsystem, op: Op, offset: u64, len: u64, at: u64) -> u64 {
    let command = BlockCommand::new(op, Extent::new(offset, len), Hint::default());
    let token = namespace.submit(0, command.into(), Payload::None, SimTime(at)).unwrap();
    let mut out = Vec::new();
    if let Some(done) = namespace.completion(token.done) {
        return done.0.saturating_sub(at);
    }
    namespace.watch(token.done, 1);
    while out.is_empty() {
        let event = namespace.next_event().expect("the request completes");
        namespace.advance(event, &mut out);
    }
    out[0].at.0.saturating_sub(at)
}

fn namespace(config: &StackConfig) -> Box<dyn Subsystem + Send> {
    build(config, BuildOptions::default()).unwrap()
}

#[test]
fn latencies_at_depth_1_are_sums_of_what_is_configured() {
    let config = typed("pblaze5-916", &["device.scale=1/64", "device.timing.read=53us"]).check().unwrap();
    let mut ssd = namespace(&config);
    // 32 KiB: front 6 us, 2 x 3.277 us on the link, completion 2 us.
    assert_eq!(run_one(&mut *ssd, Op::Write, 0, 32 << 10, 0), 6_000 + 2 * 3_277 + 2_000);
    // From the buffer: front 6, link 0.820, completion 2.
    assert_eq!(run_one(&mut *ssd, Op::Read, 4096, 4096, 100_000), 6_000 + 820 + 2_000);
    // Fill the unit, let it be programmed, and read it from flash.
    run_one(&mut *ssd, Op::Write, 32 << 10, 16 << 10, 200_000);
    let quiet = 10_000_000;
    ssd.advance(SimTime(quiet), &mut Vec::new());
    // Front 6, core 16, command 0.4, array 53, data out 0.5 + 8.606, decoder 6, link 0.820, completion 2.
    let flash = 6_000 + 16_000 + 400 + 53_000 + 500 + 8_606 + 6_000 + 820 + 2_000;
    assert_eq!(run_one(&mut *ssd, Op::Read, 4096, 4096, quiet), flash);
}

#[test]
fn a_flush_waits_for_a_volatile_buffer_only() {
    for (kind, least) in [("volatile", 1_700_000), ("protected", 0)] {
        let pair = format!("device.timing.write_buffer_kind={kind}");
        let config = typed("pblaze5-916", &["device.scale=1/64", &pair]).check().unwrap();
        let mut ssd = namespace(&config);
        run_one(&mut *ssd, Op::Write, 0, 16 << 10, 0);
        let token = ssd.submit(0, Command::FLUSH, Payload::None, SimTime(100_000)).unwrap().done;
        if least == 0 {
            assert_eq!(token, nandscape_core::Token::NONE, "{kind}");
            continue;
        }
        ssd.watch(token, 9);
        let mut out = Vec::new();
        while out.is_empty() {
            ssd.advance(ssd.next_event().expect("the flush completes"), &mut out);
        }
        assert!(out[0].tag == 9 && out[0].at.0 > least, "{kind}: {out:?}");
    }
}

/// A small relative of the preset that has to collect garbage soon.
const SMALL: [&str; 7] = [
    "device.channels=2",
    "device.dies_per_channel=2",
    "device.blocks_per_plane=40",
    "device.pages_per_block=24",
    "ftl.op=0.28",
    "ftl.gc_low=2",
    "ftl.gc_high=4",
];

/// What a closed loop, or requests with a gap between them, measured.
struct Load {
    read_mean_us: f64,
    write_bytes_per_s: f64,
}

/// Random 16 KiB requests, `reads` in ten of them reads. With `gap_ns` above 0 they come so far apart, else
/// `depth` are outstanding.
fn load(namespace: &mut dyn Subsystem, count: u64, reads: u64, depth: usize, gap_ns: u64) -> Load {
    let mut rng = seeded(3);
    let pages = namespace.namespaces()[0].capacity_bytes >> 14;
    let start = namespace.idle_from().0;
    let (mut now, mut outstanding, mut out) = (start, 0, Vec::new());
    let mut issued: Vec<(bool, u64)> = Vec::new();
    let (mut answered, mut read_ns, mut read_count, mut written) = (0, 0, 0u64, 0u64);
    while answered < count {
        let due = if gap_ns > 0 { start + issued.len() as u64 * gap_ns } else { now };
        let next = namespace.next_event();
        let can_issue = (issued.len() as u64) < count && (gap_ns > 0 || outstanding < depth);
        if can_issue && next.is_none_or(|next| gap_ns == 0 || next.0 > due) {
            now = due;
            namespace.advance(SimTime(now), &mut out);
            let is_read = below(&mut rng, 10) < reads;
            let op = if is_read { Op::Read } else { Op::Write };
            let extent = Extent::new(below(&mut rng, pages) << 14, 16 << 10);
            let command = BlockCommand::new(op, extent, Hint::default());
            let token = namespace.submit(0, command.into(), Payload::None, SimTime(now)).unwrap();
            namespace.watch(token.done, issued.len() as u64);
            issued.push((is_read, now));
            outstanding += 1;
        } else {
            let next = next.expect("every request is answered");
            namespace.advance(next, &mut out);
        }
        for done in out.drain(..) {
            let (is_read, at) = issued[done.tag as usize];
            now = now.max(done.at.0);
            answered += 1;
            outstanding -= 1;
            if is_read {
                read_ns += done.at.0 - at;
                read_count += 1;
            } else {
                written += 16 << 10;
            }
        }
    }
    assert_eq!(outstanding, 0);
    Load {
        read_mean_us: read_ns as f64 / read_count.max(1) as f64 / 1e3,
        write_bytes_per_s: written as f64 * 1e9 / (now - start) as f64,
    }
}

#[test]
fn under_collection_every_combination_answers_every_request() {
    let timing = |pairs: &[&str]| -> Vec<String> {
        pairs.iter().map(|pair| format!("device.timing.{pair}")).collect()
    };
    for gc in [&["gc_order=fifo"][..], &["gc_order=host-first"], &["gc_order=rate-limited", "gc_rate=20MB"]] {
        for more in [
            &["write_buffer=48KiB", "write_buffer_kind=volatile"][..],
            &["load_overlap=true", "suspend=program-erase", "suspend_run=0us"],
            &["multi_plane=true", "contention=off"],
            &["program_pages=1", "write_buffer=0"],
        ] {
            for layer in ["ftl.gc_frontier=shared", "ftl.wear=static"] {
                let pairs = [timing(gc), timing(more), vec![layer.to_owned()]].concat();
                let all: Vec<&str> = SMALL.into_iter().chain(pairs.iter().map(String::as_str)).collect();
                let mut ssd = namespace(&typed("pblaze5-916", &all).check().unwrap());
                load(&mut *ssd, 6000, 3, 16, 0);
                let device = ssd.inspect().device(0);
                assert!(device.counters().get(Cause::Gc).erases > 0, "{pairs:?}");
                assert_eq!(device.counters().total(), device.tally().totals, "{pairs:?}");
            }
        }
    }
}

#[test]
fn collection_costs_nothing_visible_under_light_load_and_much_under_heavy_load() {
    // [streams-article 1.1], with two load levels.
    let pairs: Vec<&str> = SMALL.into_iter().chain(["device.timing.write_buffer=192KiB"]).collect();
    let ssd = || namespace(&typed("pblaze5-916", &pairs).check().unwrap());
    let mut fresh = ssd();
    let quick = load(&mut *fresh, 1200, 0, 16, 0);
    let mut worn = ssd();
    load(&mut *worn, 12_000, 0, 16, 0);
    let heavy = load(&mut *worn, 6000, 5, 16, 0);
    let slow = load(&mut *worn, 6000, 0, 16, 0);
    let light = load(&mut *worn, 3000, 5, 16, 20_000_000);
    let idle = load(&mut *worn, 1000, 10, 1, 0);
    let [quick, slow] = [quick, slow].map(|load| load.write_bytes_per_s);
    assert!(slow < 0.5 * quick, "writes fall: {slow} of {quick} B/s");
    let [heavy, light, idle] = [heavy, light, idle].map(|load| load.read_mean_us);
    assert!(light < 1.3 * idle, "nothing visible: {light} against {idle} us");
    assert!(heavy > 2.0 * idle, "reads suffer: {heavy} against {idle} us");
}

/// State and time are apart: what a layer does, no scheduler changes.
#[test]
fn every_scheduler_gives_the_same_counts_and_runs_to_the_end() {
    use nandscape_media::scheduler::PARALLEL;
    let counts = |key: &str| {
        let mut ssd = namespace(&typed("thesis-parallel", &["device.scale=1/8", key]).check().unwrap());
        let page = u64::from(ssd.namespaces()[0].page_bytes);
        let pages = ssd.namespaces()[0].capacity_bytes / page;
        let mut rng = seeded(3);
        let mut at = 0;
        for request in 0..2 * pages {
            let op = if request % 5 == 0 { Op::Read } else { Op::Write };
            at += run_one(&mut *ssd, op, below(&mut rng, pages) * page, page, at);
        }
        assert!(at > 0, "{key}: time passed");
        ssd.check_invariants();
        let layer = ssd.inspect().layer(0);
        (layer.stats(), layer.device().tally().totals)
    };
    let serial = counts("device.timing.mode=serial");
    assert!(serial.0.gc_runs > 0, "{serial:?}");
    for name in PARALLEL {
        assert_eq!(counts(&format!("device.timing.scheduler={name}")), serial, "{name}");
    }
}
