//! Streams of `page-map`: logs that never mix, pieces, and what the example of [streams-article 1.2] costs.

use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    BlockId, Capabilities, Extent, FlashLayer, Ftl, Geometry, Hint, LogStatus, Logs, Lpn, Mapping, Params,
    Ppn, SimTime,
};
use nandscape_ftl::{PageMap, page_map};
use nandscape_media::{Nand, NandOptions, Scheduler, Serial, Timed, Timing};
use std::collections::BTreeMap;

pub type Device = Timed<Nand, Serial>;

pub const PAGE: u64 = 512;
const TIMING: Timing =
    Timing { read_ns: 1, program_ns: 1, erase_ns: 1, command_ns: 0, channel_bytes_per_s: 1_000_000_000 };

pub fn geometry(units: u32, planes: u32, blocks: u32, pages: u32) -> Geometry {
    Geometry {
        channels: units,
        dies_per_channel: 1,
        planes_per_die: planes,
        blocks_per_plane: blocks,
        pages_per_block: pages,
        page_bytes: PAGE as u32,
        sector_bytes: PAGE as u32,
        oob_bytes: 16,
    }
    .checked()
    .unwrap()
}

pub fn build(
    geometry: Geometry,
    options: &NandOptions,
    pairs: &[(&str, &str)],
) -> Result<PageMap<Device>, String> {
    let typed: BTreeMap<_, _> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let params = Params::check(&page_map::INFO, "ftl.", &typed).map_err(|error| error.to_string())?;
    let device = Timed::new(Nand::new(geometry, options).unwrap(), Serial::new(&geometry, &TIMING));
    PageMap::new(device, &params).map_err(|error| error.to_string())
}

pub fn ftl(geometry: Geometry, pairs: &[(&str, &str)]) -> PageMap<Device> {
    build(geometry, &NandOptions::default(), pairs).unwrap()
}

pub fn write(ftl: &mut PageMap<Device>, lpn: u64, stream: u16) {
    ftl.write(Extent::new(lpn * PAGE, PAGE), None, Hint(stream), SimTime::ZERO).unwrap();
}

/// Follows which stream's host pages each block got since its last erase, and which stream each logical page
/// is of.
struct Watch {
    /// Erases of the block and the stream of the host pages it holds.
    blocks: Vec<(u32, Option<u16>)>,
    pages: Vec<Option<u16>>,
    pages_per_block: u32,
}

impl Watch {
    fn new(ftl: &PageMap<Device>) -> Self {
        let geometry = ftl.device().geometry();
        Self {
            blocks: vec![(0, None); geometry.blocks() as usize],
            pages: vec![None; ftl.logical_pages() as usize],
            pages_per_block: geometry.pages_per_block,
        }
    }

    fn wrote(&mut self, ftl: &PageMap<Device>, lpn: u64, stream: u16) {
        let Ppn(page) = ftl.lookup(Lpn(lpn as u32)).expect("it was written");
        let block = page / self.pages_per_block;
        let erases = ftl.device().erase_count(BlockId(block));
        let (before, owner) = &mut self.blocks[block as usize];
        if *before != erases {
            (*before, *owner) = (erases, None);
        }
        let owner = owner.get_or_insert(stream);
        assert_eq!(*owner, stream, "block {block} got host pages of two streams");
        self.pages[lpn as usize] = Some(stream);
    }

    /// Which streams have valid pages in each block.
    fn assert_survivors_are_apart(&self, ftl: &PageMap<Device>) {
        let mut streams = vec![None; self.blocks.len()];
        for (lpn, stream) in self.pages.iter().enumerate() {
            let (Some(Ppn(page)), Some(stream)) = (ftl.lookup(Lpn(lpn as u32)), stream) else { continue };
            let held = &mut streams[(page / self.pages_per_block) as usize];
            assert_eq!(*held.get_or_insert(*stream), *stream, "two streams in the block of page {page}");
        }
    }
}

#[test]
fn no_erase_block_ever_holds_host_pages_of_two_streams() {
    let mut seed = 0;
    for victim in ["greedy", "fifo", "random", "d-choices", "cost-benefit"] {
        for (frontier, isolation) in [
            ("separate", "persistently"),
            ("separate", "initially"),
            ("separate", "initially,persistently,initially,persistently"),
            ("shared", "persistently"),
        ] {
            for (allocation, shape) in [("dynamic", geometry(2, 2, 30, 6)), ("static", geometry(2, 1, 40, 5))]
            {
                for wear in ["none", "static"] {
                    seed += 1;
                    let mut ftl = ftl(
                        shape,
                        &[
                            ("streams", "3"),
                            ("victim", victim),
                            ("gc_frontier", frontier),
                            ("gc_isolation", isolation),
                            ("allocation", allocation),
                            ("wear", wear),
                            ("wear_threshold", "3"),
                            (
                                "split",
                                match seed % 4 {
                                    _ if isolation != "persistently" => "global",
                                    1 => "auto",
                                    2 => "0.3,0.2,0.4",
                                    _ => "global",
                                },
                            ),
                            ("gc_step", ["0", "1", "4"][seed as usize / 3 % 3]),
                            ("background_gc", if seed % 3 == 0 { "true" } else { "false" }),
                            ("op", "0.7"),
                        ],
                    );
                    let mut watch = Watch::new(&ftl);
                    let mut rng = seeded(seed);
                    let pages = ftl.logical_pages();
                    for step in 0..6000 {
                        let lpn = below(&mut rng, pages);
                        // Small streams are rewritten often, so that survivors differ.
                        let stream =
                            if lpn < pages / 8 { 1 + (lpn % 2) as u16 } else { below(&mut rng, 4) as u16 };
                        match below(&mut rng, 40) {
                            0 => {
                                let count = (pages - lpn).min(3);
                                ftl.trim(Extent::new(lpn * PAGE, count * PAGE), SimTime::ZERO).unwrap();
                            }
                            1 => {
                                ftl.renew_log(stream, SimTime::ZERO).unwrap();
                            }
                            2 => ftl.idle(SimTime::ZERO, SimTime(1_000_000)).unwrap(),
                            _ => {
                                write(&mut ftl, lpn, stream);
                                watch.wrote(&ftl, lpn, stream);
                            }
                        }
                        if step % 499 == 0 {
                            ftl.check_invariants();
                        }
                    }
                    ftl.check_invariants();
                    assert!(ftl.stats().gc_moved_pages > 300, "{:?}", ftl.stats());
                    if isolation == "persistently" {
                        watch.assert_survivors_are_apart(&ftl);
                    }
                }
            }
        }
    }
}

/// [streams-article 1.2]: hot and cold pages written in turns to blocks of four pages, then the hot ones
/// again.
fn example(pairs: &[(&str, &str)], hot: u16, cold: u16) -> PageMap<Device> {
    let mut ftl = ftl(
        geometry(1, 1, 24, 4),
        &[
            pairs,
            &[
                ("op", "3"),
                ("frontiers", "1"),
                ("background_gc", "true"),
                // All of it: whatever has an invalid page is reclaimed.
                ("background_watermark", "100%"),
            ],
        ]
        .concat(),
    );
    // H1 C1 H2 C2 C3 H3 H4 C4, then H1..H4.
    for (lpn, is_hot) in
        [(0, true), (4, false), (1, true), (5, false), (6, false), (2, true), (3, true), (7, false)]
    {
        write(&mut ftl, lpn, if is_hot { hot } else { cold });
    }
    (0..4).for_each(|lpn| write(&mut ftl, lpn, hot));
    assert_eq!(ftl.stats().gc_runs, 0);
    ftl.idle(SimTime::ZERO, SimTime(1_000_000)).unwrap();
    ftl.check_invariants();
    ftl
}

#[test]
fn the_example_copies_four_pages_in_one_log_and_none_in_two_streams() {
    let one_log = example(&[], 1, 2);
    assert_eq!((one_log.stats().gc_runs, one_log.stats().gc_moved_pages), (2, 4));
    let cold: Vec<_> = (4..8).map(|lpn| one_log.lookup(Lpn(lpn)).unwrap().0 / 4).collect();
    assert_eq!(cold, [cold[0]; 4], "C1 to C4 are in one block now");
    for isolation in ["initially", "persistently"] {
        let streams = example(&[("streams", "2"), ("gc_isolation", isolation)], 1, 2);
        assert_eq!((streams.stats().gc_runs, streams.stats().gc_moved_pages), (1, 0));
    }
    let unstreamed = example(&[("streams", "2")], 0, 0);
    assert_eq!(unstreamed.stats().gc_moved_pages, 4, "mixed in one stream is one log");
}

#[test]
fn pieces_are_taken_when_full_counted_and_given_back_when_trimmed() {
    // Pieces of four blocks of eight pages, of which two are open at once.
    let granularity = (4 * 8 * PAGE).to_string();
    let mut ftl = ftl(
        geometry(2, 1, 48, 8),
        &[("streams", "2"), ("stream_granularity", &granularity), ("frontiers", "2"), ("op", "0.6")],
    );
    let piece_bytes = 4 * 8 * PAGE;
    let status = |ftl: &PageMap<Device>, log| ftl.log_status(log);
    assert_eq!(ftl.logs(), 3);
    let none = LogStatus { piece_bytes, ..LogStatus::default() };
    assert_eq!(status(&ftl, 1), none);
    for lpn in 0..65 {
        write(&mut ftl, lpn, 1);
        let written = (lpn + 1) * PAGE;
        let pieces = written.div_ceil(piece_bytes);
        let expected =
            LogStatus { room_bytes: pieces * piece_bytes - written, pieces, host_bytes: written, ..none };
        assert_eq!(status(&ftl, 1), expected, "after page {lpn}");
    }
    assert_eq!(status(&ftl, 2), none);
    let erases = ftl.device().tally().totals.erases;
    ftl.trim(Extent::new(0, piece_bytes), SimTime::ZERO).unwrap();
    assert_eq!(status(&ftl, 1).pieces, 2, "the first piece holds nothing any more");
    // The host updates its handle: what is left of the third piece is returned.
    assert_eq!(ftl.renew_log(1, SimTime::ZERO), Ok(piece_bytes - PAGE));
    assert_eq!(ftl.renew_log(1, SimTime::ZERO), Ok(0), "there is no piece to leave");
    assert_eq!((status(&ftl, 1).room_bytes, status(&ftl, 1).pieces), (0, 2));
    write(&mut ftl, 64, 1);
    assert_eq!((status(&ftl, 1).room_bytes, status(&ftl, 1).pieces), (piece_bytes - PAGE, 2));
    assert_eq!(ftl.device().tally().totals.erases, erases);
    ftl.check_invariants();
    ftl.reset_stats();
    assert_eq!((status(&ftl, 1).host_bytes, status(&ftl, 1).pieces), (0, 2), "space is no counter");
}

#[test]
fn whole_pieces_that_are_trimmed_are_freed_without_a_copy() {
    let piece = 2 * 8u64;
    let granularity = (piece * PAGE).to_string();
    let mut ftl =
        ftl(geometry(2, 1, 48, 8), &[("streams", "1"), ("stream_granularity", &granularity), ("op", "0.5")]);
    let pieces = ftl.logical_pages() / piece;
    let mut rng = seeded(4);
    (0..pieces * piece).for_each(|lpn| write(&mut ftl, lpn, 1));
    for _ in 0..20 * pieces {
        let first = below(&mut rng, pieces) * piece;
        ftl.trim(Extent::new(first * PAGE, piece * PAGE), SimTime::ZERO).unwrap();
        (first..first + piece).for_each(|lpn| write(&mut ftl, lpn, 1));
    }
    assert!(ftl.stats().gc_runs > 10 * pieces);
    assert_eq!(ftl.stats().gc_moved_pages, 0);
    assert_eq!(ftl.log_status(1).pieces, pieces);
}

#[test]
fn hints_without_a_log_go_to_log_0_and_mean_nothing_without_streams() {
    let shape = geometry(1, 1, 64, 4);
    let mut streams = ftl(shape, &[("streams", "2"), ("op", "1")]);
    for hint in [0, 3, 99, u16::MAX] {
        write(&mut streams, u64::from(hint) % 7, hint);
    }
    assert_eq!(streams.log_status(0).host_bytes, 4 * PAGE);
    assert_eq!((streams.log_status(3), streams.renew_log(3, SimTime::ZERO)), (LogStatus::default(), Ok(0)));
    let run = |hints: bool| {
        let mut ftl = ftl(shape, &[("op", "0.3")]);
        let mut rng = seeded(8);
        for _ in 0..5000 {
            let lpn = below(&mut rng, ftl.logical_pages());
            let hint = below(&mut rng, 5) as u16;
            write(&mut ftl, lpn, if hints { hint } else { 0 });
        }
        (ftl.stats(), ftl.device().tally().totals, ftl.log_status(0).host_bytes, ftl.logs())
    };
    assert_eq!(run(true), run(false), "hints change nothing");
    assert_eq!((run(true).2, run(true).3), (5000 * PAGE, 1));
}

#[test]
fn only_streams_that_are_written_are_kept_in_reserve() {
    let mut ftl = ftl(geometry(2, 1, 128, 8), &[("streams", "4"), ("frontiers", "2"), ("op", "0.6")]);
    assert_eq!(ftl.cost().reserve_blocks, 2);
    write(&mut ftl, 0, 3);
    assert_eq!(ftl.cost().reserve_blocks, 2 + 4, "its own two and two for its survivors");
    write(&mut ftl, 1, 1);
    write(&mut ftl, 2, 3);
    assert_eq!(ftl.cost().reserve_blocks, 2 + 8);
}

/// Programs of random overwrites after a fill, spread over these streams.
fn overwrite(ftl: &mut PageMap<Device>, streams: &[u16]) -> u64 {
    let mut rng = seeded(11);
    let pages = ftl.logical_pages();
    let stream = |lpn: u64| streams[(lpn % streams.len() as u64) as usize];
    (0..pages).for_each(|lpn| write(ftl, lpn, stream(lpn)));
    for step in 0..6 * pages {
        let lpn = below(&mut rng, pages);
        write(ftl, lpn, stream(lpn));
        if step % (pages / 2) == 0 {
            ftl.check_invariants();
        }
    }
    ftl.device().tally().totals.programs
}

#[test]
fn streams_that_nobody_uses_do_not_lower_write_amplification() {
    let programs = |streams: &str, used: &[u16]| {
        overwrite(&mut ftl(geometry(8, 1, 96, 16), &[("streams", streams), ("op", "0.25")]), used)
    };
    let none = programs("0", &[0]);
    for streams in ["1", "2", "4", "8"] {
        assert_eq!(programs(streams, &[0]), none, "{streams} streams, none in use");
    }
    let two = programs("2", &[0, 1, 2]);
    assert_eq!(programs("8", &[0, 1, 2]), two, "two of eight in use");
    assert_ne!(two, none);
}

#[test]
fn open_blocks_are_divided_as_streams_come_into_use_and_pieces_stay_as_they_are() {
    let mut ftl = ftl(geometry(8, 1, 96, 16), &[("streams", "4"), ("op", "0.25")]);
    let piece_bytes = 8 * 16 * PAGE;
    let mut open = Vec::new();
    for stream in 0..5 {
        for lpn in 0..400 {
            write(&mut ftl, u64::from(stream) * 400 + lpn, stream);
        }
        // Blocks beyond the share of a log are written to their end.
        for other in 0..stream {
            for lpn in 0..400 {
                write(&mut ftl, u64::from(other) * 400 + lpn, other);
            }
        }
        ftl.check_invariants();
        assert!((0..5).all(|log| ftl.log_status(log).piece_bytes == piece_bytes), "{stream}");
        open.push(ftl.cost().reserve_blocks - 2);
    }
    // For each stream in use two logs, with open blocks that fill a piece evenly: 8, 4, 2, 2 and 1 of them.
    assert_eq!(open, [2 * 8, 4 * 4, 6 * 2, 8 * 2, 10]);
}

#[test]
fn streams_pay_dram_for_owners_pieces_and_victims_of_their_own() {
    let dram = |pairs: &[(&str, &str)]| {
        ftl(geometry(2, 1, 128, 8), &[pairs, &[("op", "0.6"), ("frontiers", "1")]].concat()).cost().dram_bytes
    };
    let (none, two) = (dram(&[]), dram(&[("streams", "2")]));
    // For each of 256 blocks its log (2 B), its piece (4 B), and a piece's counters (8 B).
    assert!((256 * 14..256 * 14 + 1500).contains(&(two - none)), "{two} against {none}");
    // Lists of 8 B a block for each of three logs.
    assert_eq!(dram(&[("streams", "2"), ("split", "auto")]) - two, 3 * 256 * 8);
}

#[test]
fn what_does_not_fit_is_refused_by_key() {
    let shape = geometry(1, 1, 32, 8);
    let refused = |pairs: &[(&str, &str)], start: &str| {
        let error = build(shape, &NandOptions::default(), pairs).unwrap_err();
        assert!(error.starts_with(start), "{error}");
    };
    refused(
        &[("streams", "8")],
        "ftl.streams = '8': expected fewer: with 1 open blocks for each of 18 logs the 32 good",
    );
    refused(&[("streams", "8"), ("op", "0.01")], "ftl.op = '0.01'");
    refused(&[("streams", "1025")], "ftl.streams = '1025'");
    refused(
        &[("streams", "1"), ("stream_granularity", "5k")],
        "ftl.stream_granularity = '5k': expected a multiple of 4096 bytes",
    );
    refused(&[("streams", "1"), ("stream_granularity", "1M")], "ftl.stream_granularity = '1M'");
    refused(&[("streams", "1"), ("gc_isolation", "mostly")], "ftl.gc_isolation = 'mostly'");
    refused(&[("streams", "1"), ("gc_isolation", "initially,initially,initially")], "ftl.gc_isolation");
    refused(
        &[("streams", "1"), ("gc_isolation", "initially"), ("gc_frontier", "shared")],
        "ftl.gc_isolation",
    );
    for split in ["0.5", "0.5,0.6", "half,half", "-0.1,0.5", "nan,0.5", ""] {
        refused(
            &[("streams", "2"), ("op", "1"), ("split", split)],
            &format!("ftl.split = '{split}': expected global, auto or 2"),
        );
    }
    refused(&[("split", "auto")], "ftl.split = 'auto'");
    refused(&[("streams", "1"), ("gc_isolation", "initially"), ("split", "auto")], "ftl.split = 'auto'");
    assert!(build(shape, &NandOptions::default(), &[("streams", "1")]).is_ok());
}

#[test]
fn every_byte_of_every_stream_reads_back() {
    let capabilities = Capabilities { stores_data: true, ..Capabilities::default() };
    for (seed, isolation) in [(1, "persistently"), (2, "initially")] {
        let options = NandOptions { capabilities, ..NandOptions::default() };
        let pairs = [("streams", "3"), ("gc_isolation", isolation), ("op", "0.8")];
        let mut ftl = build(geometry(2, 1, 40, 8), &options, &pairs).unwrap();
        let mut model = vec![0u8; (ftl.logical_pages() * PAGE) as usize];
        let mut rng = seeded(seed);
        for step in 0..8000 {
            let len = 1 + below(&mut rng, 3 * PAGE);
            let offset = below(&mut rng, model.len() as u64 - len + 1);
            let data: Vec<u8> = (0..len).map(|i| (step + i) as u8).collect();
            let hint = Hint(below(&mut rng, 4) as u16);
            ftl.write(Extent::new(offset, len), Some(&data), hint, SimTime::ZERO).unwrap();
            model[offset as usize..][..len as usize].copy_from_slice(&data);
        }
        ftl.check_invariants();
        let mut all = vec![1; model.len()];
        ftl.read(Extent::new(0, model.len() as u64), Some(&mut all), SimTime::ZERO).unwrap();
        assert!(all == model, "{isolation}");
        assert_eq!(ftl.device().counters().total(), ftl.device().tally().totals);
    }
}

#[test]
fn streams_live_on_while_blocks_wear_out_and_never_mix() {
    let options = NandOptions { endurance: Some(12), ..NandOptions::default() };
    let mut ftl = build(geometry(2, 1, 40, 8), &options, &[("streams", "2"), ("op", "0.8")]).unwrap();
    let mut watch = Watch::new(&ftl);
    let mut rng = seeded(6);
    let mut writes = 0;
    loop {
        let lpn = below(&mut rng, ftl.logical_pages());
        let stream = (lpn % 3) as u16;
        if ftl.write(Extent::new(lpn * PAGE, PAGE), None, Hint(stream), SimTime::ZERO).is_err() {
            break;
        }
        watch.wrote(&ftl, lpn, stream);
        writes += 1;
    }
    ftl.check_invariants();
    watch.assert_survivors_are_apart(&ftl);
    assert!(writes > 2000, "{writes} writes");
    assert!(ftl.cost().total_blocks < 80);
}
