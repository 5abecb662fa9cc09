//! `page-map` against a plain byte map, and its behaviour at the edges: full device, worn blocks, trims,
//! partial pages, timing.

use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    Capabilities, Cause, Extent, FlashLayer, Ftl, FtlError, Geometry, Hint, Lpn, Mapping, Params, SimTime,
    Token,
};
use nandscape_ftl::{PageMap, page_map};
use nandscape_media::{BadBlocks, Fifo, Nand, NandOptions, Scheduler, Timed, Timing};
use std::collections::BTreeMap;

type Device = Timed<Nand, Fifo>;

fn geometry(
    channels: u32,
    dies: u32,
    planes: u32,
    blocks: u32,
    pages: u32,
    page: u32,
    sector: u32,
) -> Geometry {
    Geometry {
        channels,
        dies_per_channel: dies,
        planes_per_die: planes,
        blocks_per_plane: blocks,
        pages_per_block: pages,
        page_bytes: page,
        sector_bytes: sector,
        oob_bytes: 16,
    }
    .checked()
    .unwrap()
}

const TIMING: Timing = Timing {
    read_ns: 50_000,
    program_ns: 500_000,
    erase_ns: 3_000_000,
    command_ns: 0,
    channel_bytes_per_s: 400_000_000,
};

fn params(pairs: &[(&str, &str)]) -> Params {
    let typed: BTreeMap<_, _> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Params::check(&page_map::INFO, "ftl.", &typed).unwrap()
}

fn device(geometry: Geometry, options: &NandOptions) -> Device {
    Timed::new(Nand::new(geometry, options).unwrap(), Fifo::new(&geometry, &TIMING))
}

fn storing() -> NandOptions {
    let capabilities = Capabilities { stores_data: true, partial_transfer: true, ..Capabilities::default() };
    NandOptions { capabilities, ..NandOptions::default() }
}

fn ftl(geometry: Geometry, options: &NandOptions, pairs: &[(&str, &str)]) -> PageMap<Device> {
    PageMap::new(device(geometry, options), &params(pairs)).unwrap()
}

/// The layer's counters by cause agree with the medium's own.
fn assert_counters_agree(ftl: &dyn Ftl) {
    assert_eq!(ftl.device().counters().total(), ftl.device().tally().totals);
}

/// Random reads, writes, trims and write-zeroes, aligned and not, against a byte vector; then every byte once
/// more.
fn against_bytes(geometry: Geometry, options: &NandOptions, pairs: &[(&str, &str)], seed: u64, steps: u32) {
    let mut ftl = ftl(geometry, options, pairs);
    let capacity = (ftl.logical_pages() * u64::from(geometry.page_bytes)) as usize;
    let mut model = vec![0u8; capacity];
    let mut rng = seeded(seed);
    for step in 0..steps {
        let sector = u64::from(geometry.sector_bytes);
        let most = (4 * u64::from(geometry.page_bytes)).min(capacity as u64);
        let mut len = 1 + below(&mut rng, most);
        let mut offset = below(&mut rng, capacity as u64 - len + 1);
        if below(&mut rng, 2) == 0 {
            offset = offset / sector * sector;
            len = len.div_ceil(sector) * sector;
            len = len.min(capacity as u64 - offset);
        }
        let extent = Extent::new(offset, len);
        let range = offset as usize..(offset + len) as usize;
        let at = SimTime(u64::from(step) * 1000);
        match below(&mut rng, 10) {
            0..5 => {
                let byte = below(&mut rng, 256) as u8;
                let data: Vec<u8> = (0..len).map(|i| byte.wrapping_add(i as u8)).collect();
                ftl.write(extent, Some(&data), Hint::default(), at).unwrap();
                model[range].copy_from_slice(&data);
            }
            5..8 => {
                let mut data = vec![0xaa; len as usize];
                ftl.read(extent, Some(&mut data), at).unwrap();
                assert_eq!(data, model[range], "step {step}: {extent}");
            }
            8 => {
                ftl.trim(extent, at).unwrap();
                let (first, count) = extent.whole_pages(geometry.page_bytes);
                let page = geometry.page_bytes as usize;
                model[first as usize * page..][..count as usize * page].fill(0);
            }
            _ => {
                ftl.write_zeroes(extent, at).unwrap();
                model[range].fill(0);
            }
        }
        if below(&mut rng, 20) == 0 {
            ftl.idle(at, at + 50_000_000).unwrap();
        }
        if step % 257 == 0 {
            ftl.check_invariants();
        }
    }
    ftl.check_invariants();
    assert_counters_agree(&ftl);
    let mut all = vec![0; capacity];
    ftl.read(Extent::new(0, capacity as u64), Some(&mut all), SimTime::ZERO).unwrap();
    assert_eq!(all, model);
}

#[test]
fn every_combination_reads_back_what_was_written() {
    let shapes = [
        geometry(2, 2, 2, 6, 8, 2048, 512),
        geometry(1, 1, 1, 24, 5, 512, 512),
        geometry(3, 1, 2, 10, 7, 4096, 4096),
    ];
    let mut seed = 0;
    for shape in shapes {
        for victim in ["greedy", "fifo", "random", "d-choices", "cost-benefit"] {
            for frontier in ["separate", "shared"] {
                for allocation in ["dynamic", "static"] {
                    for wear in ["none", "dynamic", "static"] {
                        seed += 1;
                        let pairs = [
                            ("victim", victim),
                            ("gc_frontier", frontier),
                            ("allocation", allocation),
                            ("wear", wear),
                            ("wear_threshold", "2"),
                            ("op", if shape.units() == 1 { "0.6" } else { "6" }),
                            ("background_gc", if seed % 2 == 0 { "true" } else { "false" }),
                            ("gc_low", "1"),
                            ("gc_step", ["0", "1", "3"][seed as usize / 2 % 3]),
                        ];
                        against_bytes(shape, &storing(), &pairs, seed, 400);
                    }
                }
            }
        }
    }
}

#[test]
fn factory_bad_blocks_are_left_alone() {
    let shape = geometry(2, 2, 1, 16, 8, 2048, 512);
    let options = NandOptions { bad_blocks: BadBlocks::Share { share: 0.2, seed: 5 }, ..storing() };
    against_bytes(shape, &options, &[("op", "0.5")], 77, 3000);
    let ftl = ftl(shape, &options, &[("op", "0.5")]);
    assert_eq!(ftl.cost().total_blocks, 64 - 12);
    assert_eq!(ftl.cost().logical_pages, (52.0 * 8.0 / 1.5) as u64);
}

#[test]
fn worn_out_blocks_are_retired_until_the_device_is_read_only() {
    let shape = geometry(1, 2, 1, 16, 8, 512, 512);
    let options = NandOptions { endurance: Some(6), ..storing() };
    let mut ftl = ftl(shape, &options, &[("op", "0.5"), ("frontiers", "1")]);
    let pages = ftl.logical_pages();
    let mut model = vec![0u8; pages as usize];
    let mut rng = seeded(3);
    let refused = loop {
        let lpn = below(&mut rng, pages);
        let byte = below(&mut rng, 256) as u8;
        match ftl.write(Extent::new(lpn * 512, 512), Some(&[byte; 512]), Hint::default(), SimTime::ZERO) {
            Ok(_) => model[lpn as usize] = byte,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, FtlError::ReadOnly { .. }), "{refused}");
    assert!(ftl.read_only().is_some_and(|reason| refused == FtlError::ReadOnly { reason }));
    assert!(ftl.cost().total_blocks < 32, "blocks were given up first: {refused}");
    // Every block did its six erases bar the few that were spared by the end.
    assert!(ftl.device().tally().totals.erases > 32 * 4, "{:?}", ftl.device().tally().totals);
    ftl.check_invariants();
    let mut data = [0; 512];
    for lpn in 0..pages {
        ftl.read(Extent::new(lpn * 512, 512), Some(&mut data), SimTime::ZERO).unwrap();
        assert_eq!(data, [model[lpn as usize]; 512], "page {lpn}");
    }
    let again = ftl.write(Extent::new(0, 512), None, Hint::default(), SimTime::ZERO).unwrap_err();
    assert_eq!(again, refused, "it stays so");
    assert_eq!(ftl.trim(Extent::new(0, 512), SimTime::ZERO), Err(refused.clone()));
    assert_eq!(ftl.write_zeroes(Extent::new(0, 512), SimTime::ZERO), Err(refused));
}

#[test]
fn requests_past_the_capacity_change_nothing() {
    let mut ftl = ftl(geometry(1, 1, 1, 32, 8, 512, 512), &storing(), &[]);
    let capacity = ftl.cost().usable_bytes;
    for extent in [Extent::new(capacity - 512, 1024), Extent::new(u64::MAX, 1), Extent::new(capacity + 1, 0)]
    {
        let error = FtlError::OutOfRange { extent, capacity_bytes: capacity };
        assert_eq!(ftl.write(extent, None, Hint::default(), SimTime::ZERO), Err(error.clone()));
        assert_eq!(ftl.trim(extent, SimTime::ZERO), Err(error.clone()));
        assert_eq!(ftl.write_zeroes(extent, SimTime::ZERO), Err(error.clone()));
        assert_eq!(ftl.read(extent, None, SimTime::ZERO), Err(error));
    }
    assert_eq!(ftl.device().tally().totals.programs, 0);
}

#[test]
fn a_full_logical_space_can_be_overwritten_for_ever() {
    // The tightest over-provisioning that is accepted, with every logical page live.
    let shape = geometry(2, 1, 1, 32, 8, 512, 512);
    for (frontier, allocation) in
        [("separate", "dynamic"), ("shared", "dynamic"), ("separate", "static"), ("shared", "static")]
    {
        let pairs = |capacity: &'static str| {
            [
                ("capacity", capacity),
                ("gc_frontier", frontier),
                ("allocation", allocation),
                ("gc_low", "1"),
                ("frontiers", "2"),
            ]
        };
        let capacities =
            ["30720", "29696", "28672", "27648", "26624", "245760", "237568", "229376", "221184"];
        let mut built = capacities.map(|c| c.parse::<u64>().unwrap());
        built.sort_unstable();
        let largest = built.iter().rev().find_map(|bytes| {
            let text: &'static str = capacities.iter().find(|c| **c == bytes.to_string()).unwrap();
            PageMap::new(device(shape, &storing()), &params(&pairs(text))).ok()
        });
        let mut ftl = largest.expect("some capacity fits");
        let pages = ftl.logical_pages();
        let cost = ftl.cost();
        assert!(cost.logical_pages.div_ceil(8) + cost.reserve_blocks <= cost.total_blocks);
        let mut rng = seeded(11);
        for lpn in 0..pages {
            ftl.write(Extent::new(lpn * 512, 512), None, Hint::default(), SimTime::ZERO).unwrap();
        }
        for _ in 0..20_000 {
            let lpn = below(&mut rng, pages);
            ftl.write(Extent::new(lpn * 512, 512), None, Hint::default(), SimTime::ZERO).unwrap();
        }
        assert_eq!(ftl.stats().live_pages, pages);
        ftl.check_invariants();
    }
}

#[test]
fn a_capacity_without_room_for_open_blocks_is_refused_by_key() {
    let shape = geometry(1, 1, 1, 16, 8, 512, 512);
    for (pairs, start) in [
        (vec![("op", "0.01")], "ftl.op = '0.01': expected a capacity that needs at most the 16 good blocks"),
        (vec![("capacity", "64k")], "ftl.capacity = '64k'"),
        (vec![("allocation_order", "cwd")], "ftl.allocation_order = 'cwd'"),
        (vec![("rmw", "false")], "ftl.rmw = 'false'"),
        (vec![("gc_low", "x")], "ftl.gc_low = 'x'"),
    ] {
        let error = PageMap::new(device(shape, &storing()), &params(&pairs)).unwrap_err().to_string();
        assert!(error.starts_with(start), "{error}");
    }
}

#[test]
fn only_a_remaining_valid_sector_causes_a_read_before_a_write() {
    let shape = geometry(1, 1, 1, 32, 8, 4096, 1024);
    let mut ftl = ftl(shape, &storing(), &[]);
    let mut write = |offset: u64, len: u64| {
        let before = ftl.device().counters().get(Cause::Host).reads;
        ftl.write(Extent::new(offset, len), None, Hint::default(), SimTime::ZERO).unwrap();
        ftl.device().counters().get(Cause::Host).reads - before
    };
    assert_eq!(write(0, 1024), 0, "the page held nothing");
    assert_eq!(write(0, 1024), 0, "the only valid sector is overwritten");
    assert_eq!(write(1024, 1024), 1, "sector 0 remains");
    assert_eq!(write(0, 2048), 0, "both valid sectors are overwritten");
    assert_eq!(write(100, 100), 1, "a part of a valid sector remains");
    assert_eq!(write(0, 4096), 0, "the whole page");
    assert_eq!(write(4096 + 100, 100), 0, "part of a sector of an empty page");
}

#[test]
fn a_huge_trim_of_nothing_is_cheap_and_a_trim_drops_whole_pages_only() {
    let shape = geometry(1, 1, 1, 4096, 256, 4096, 4096);
    let mut ftl = ftl(shape, &NandOptions::default(), &[]);
    let all = Extent::new(0, ftl.cost().usable_bytes);
    for lpn in [5, 6, 7] {
        ftl.write(Extent::new(lpn * 4096, 4096), None, Hint::default(), SimTime::ZERO).unwrap();
    }
    ftl.trim(Extent::new(5 * 4096 + 1, 2 * 4096 - 1), SimTime::ZERO).unwrap();
    assert_eq!(ftl.lookup(Lpn(6)), None);
    assert!(ftl.lookup(Lpn(5)).is_some() && ftl.lookup(Lpn(7)).is_some());
    let before = ftl.device().tally().totals;
    // Each of these would cost 800 000 steps page by page: 16 G in all, which no test would survive.
    for _ in 0..20_000 {
        ftl.trim(all, SimTime::ZERO).unwrap();
    }
    assert_eq!(ftl.device().tally().totals, before, "no flash operation");
    assert_eq!(ftl.stats().live_pages, 0);
    ftl.check_invariants();
}

#[test]
fn unmapped_reads_cost_nothing_or_one_read_at_the_static_place() {
    let shape = geometry(2, 1, 1, 16, 8, 4096, 4096);
    let mut free = ftl(shape, &NandOptions::default(), &[]);
    assert_eq!(free.read(Extent::new(0, 4096), None, SimTime(5)), Ok(Token::NONE));
    assert_eq!(free.device().tally().totals.reads, 0);
    let mut paid = ftl(shape, &NandOptions::default(), &[("unmapped_read", "flash")]);
    let read = |ftl: &mut PageMap<Device>, lpn: u64| {
        let token = ftl.read(Extent::new(lpn * 4096, 4096), None, SimTime::ZERO).unwrap();
        ftl.device().completion(token).unwrap()
    };
    let alone = 50_000 + 10_240;
    assert_eq!(read(&mut paid, 0), SimTime(alone));
    assert_eq!(read(&mut paid, 1), SimTime(alone), "the other channel");
    assert_eq!(read(&mut paid, 2), SimTime(2 * alone), "queued behind page 0");
    assert_eq!(paid.device().counters().get(Cause::Host).reads, 3);
}

#[test]
fn sequential_writes_go_to_all_dies_at_once() {
    let shape = geometry(4, 2, 1, 64, 8, 4096, 4096);
    for allocation in ["dynamic", "static"] {
        let mut ftl = ftl(shape, &NandOptions::default(), &[("allocation", allocation), ("frontiers", "8")]);
        let token = ftl.write(Extent::new(0, 8 * 4096), None, Hint::default(), SimTime::ZERO).unwrap();
        // Two transfers of 10.24 us on each bus, then the programs side by side.
        let expected = SimTime(2 * 10_240 + 500_000);
        assert_eq!(ftl.device().completion(token), Some(expected), "{allocation}");
    }
}

#[test]
fn a_program_unit_is_filled_on_one_die_before_the_next() {
    let geometry = geometry(2, 2, 1, 16, 9, 4096, 4096);
    let capabilities = Capabilities { program_pages: 3, ..Capabilities::default() };
    let options = NandOptions { capabilities, ..NandOptions::default() };
    let mut ftl = ftl(geometry, &options, &[("capacity", "1MiB"), ("frontiers", "4")]);
    let bytes = u64::from(geometry.page_bytes);
    let mut unit_of = |page: u64| {
        ftl.write(Extent::new(page * bytes, bytes), None, Hint::default(), SimTime(0)).unwrap();
        let place = ftl.lookup(Lpn(page as u32)).unwrap();
        place.0 / (geometry.blocks_per_unit() * geometry.pages_per_block)
    };
    let units: Vec<u32> = (0..15).map(&mut unit_of).collect();
    assert_eq!(units, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 0, 0, 0]);
    ftl.check_invariants();
}

#[test]
fn a_program_of_gc_waits_for_its_read_and_the_host_for_neither() {
    // Two dies; GC moves between them, the host's token carries only its own program.
    let shape = geometry(1, 1, 1, 12, 4, 4096, 4096);
    let mut ftl = ftl(shape, &NandOptions::default(), &[("capacity", "98304"), ("gc_low", "1")]);
    let mut at = SimTime::ZERO;
    let mut rng = seeded(2);
    let (mut longest, mut collected) = (0, 0);
    for _ in 0..500 {
        let lpn = below(&mut rng, ftl.logical_pages());
        let runs = ftl.stats().gc_runs;
        let token = ftl.write(Extent::new(lpn * 4096, 4096), None, Hint::default(), at).unwrap();
        let done = ftl.device().completion(token).unwrap();
        let alone = 510_240;
        assert!(done >= at + alone);
        if ftl.stats().gc_runs > runs {
            collected += 1;
            assert!(done.since(at).0 >= 3_000_000 + alone, "the only die was busy with the erase");
        }
        longest = longest.max(done.since(at).0);
        at = done;
    }
    assert!(collected > 100, "{collected}");
    // A victim has at most three valid pages: three reads, three programs, an erase, then the host's page.
    assert!(longest <= 2 * (3 * (60_240 + 510_240) + 3_000_000) + 510_240, "{longest}");
}

#[test]
fn background_gc_works_only_in_idle_time() {
    let shape = geometry(2, 1, 1, 32, 8, 4096, 4096);
    let pairs = [("background_gc", "true"), ("background_watermark", "12"), ("frontiers", "1"), ("op", "1")];
    let mut ftl = ftl(shape, &NandOptions::default(), &pairs);
    let mut rng = seeded(4);
    let pages = ftl.logical_pages();
    let mut write = |ftl: &mut PageMap<Device>| {
        let lpn = below(&mut rng, pages);
        ftl.write(Extent::new(lpn * 4096, 4096), None, Hint::default(), SimTime::ZERO).unwrap();
    };
    while ftl.stats().gc_runs == 0 {
        write(&mut ftl);
    }
    let runs = ftl.stats().gc_runs;
    let idle_from = ftl.device().idle_from();
    ftl.idle(SimTime::ZERO, idle_from).unwrap();
    assert_eq!(ftl.stats().gc_runs, runs, "no time to spare");
    ftl.idle(idle_from, idle_from + 1).unwrap();
    assert_eq!(ftl.stats().gc_runs, runs + 1, "one victim may start in a nanosecond");
    ftl.idle(idle_from, SimTime(idle_from.0 + 1_000_000_000_000)).unwrap();
    assert!(ftl.stats().gc_runs > runs + 3);
    // The erased space now lasts for a while without foreground GC.
    let before = ftl.stats().gc_runs;
    for _ in 0..8 * 8 {
        write(&mut ftl);
    }
    assert_eq!(ftl.stats().gc_runs, before);
    ftl.check_invariants();
}

#[test]
fn wear_levelling_narrows_the_spread_of_erases() {
    let shape = geometry(2, 1, 1, 64, 8, 4096, 4096);
    let spread = |wear: &str| {
        let pairs = [("wear", wear), ("wear_threshold", "20"), ("frontiers", "1")];
        let mut ftl = ftl(shape, &NandOptions::default(), &pairs);
        let pages = ftl.logical_pages();
        let mut rng = seeded(6);
        for lpn in 0..pages {
            ftl.write(Extent::new(lpn * 4096, 4096), None, Hint::default(), SimTime::ZERO).unwrap();
        }
        // One page in twenty is ever written again.
        for _ in 0..60_000 {
            let lpn = below(&mut rng, pages / 20) * 20;
            ftl.write(Extent::new(lpn * 4096, 4096), None, Hint::default(), SimTime::ZERO).unwrap();
        }
        ftl.check_invariants();
        let counts: Vec<u32> =
            (0..128).map(|b| ftl.device().erase_count(nandscape_core::BlockId(b))).collect();
        let wear_moves = ftl.device().counters().get(Cause::Wear).programs;
        assert_eq!(wear_moves > 0, wear == "static", "{wear}");
        counts.iter().max().unwrap() - counts.iter().min().unwrap()
    };
    let (none, leveled) = (spread("none"), spread("static"));
    assert!(leveled <= 30, "threshold 20, spread {leveled}");
    assert!(none > 3 * leveled, "without it the spread is {none}, with it {leveled}");
}

#[test]
fn a_run_repeats_bit_for_bit() {
    let run = || {
        let shape = geometry(2, 2, 1, 32, 16, 4096, 4096);
        let mut ftl = ftl(shape, &NandOptions::default(), &[("victim", "d-choices")]);
        let mut rng = seeded(8);
        let mut last = SimTime::ZERO;
        for i in 0..20_000 {
            let lpn = below(&mut rng, ftl.logical_pages());
            let token =
                ftl.write(Extent::new(lpn * 4096, 4096), None, Hint::default(), SimTime(i * 1000)).unwrap();
            last = ftl.device().completion(token).unwrap();
        }
        (last, ftl.stats(), ftl.device().tally().totals)
    };
    assert_eq!(run(), run());
}

/// Random overwrites one at a time; gives every latency, the shortest first, and the write amplification.
fn overwrite_latencies(pairs: &[(&str, &str)]) -> (Vec<u64>, f64) {
    let mut ftl = ftl(geometry(2, 2, 1, 128, 64, 4096, 4096), &NandOptions::default(), pairs);
    let pages = ftl.logical_pages();
    let mut rng = seeded(9);
    let mut at = SimTime::ZERO;
    let mut latencies = Vec::new();
    for step in 0..5 * pages {
        let lpn = if step < pages { step } else { below(&mut rng, pages) };
        if step == 3 * pages {
            ftl.device_mut().reset_counters();
        }
        let token = ftl.write(Extent::new(lpn * 4096, 4096), None, Hint::default(), at).unwrap();
        let done = ftl.device().completion(token).unwrap();
        if step >= 3 * pages {
            latencies.push(done.0 - at.0);
        }
        at = done;
    }
    ftl.check_invariants();
    latencies.sort_unstable();
    (latencies, ftl.device().tally().totals.programs as f64 / (2 * pages) as f64)
}

#[test]
fn collection_in_steps_shortens_the_tail_of_writes() {
    let (whole, waf) = overwrite_latencies(&[("frontiers", "4")]);
    let (steps, waf_of_steps) = overwrite_latencies(&[("frontiers", "4"), ("gc_step", "3")]);
    let tail = |latencies: &[u64]| latencies[latencies.len() * 999 / 1000];
    assert!(tail(&steps) * 3 < tail(&whole), "{} against {}", tail(&steps), tail(&whole));
    assert!((waf_of_steps / waf - 1.0).abs() < 0.03, "{waf_of_steps} against {waf}");
}
