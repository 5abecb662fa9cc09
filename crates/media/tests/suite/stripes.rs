//! A stripe is what its pages are one by one, on every kind of device.

use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    BlockId, BlockState, Cause, Clocked, FlashDevice, FlashState, Geometry, Issue, Lpn, Oob, Ppn, SimTime,
    Stripe, Striped, program_each,
};
use nandscape_media::faults::{FaultPlan, Faults, parse_script};
use nandscape_media::{
    BadBlocks, Fifo, HostLink, Medium, Nand, NandOptions, Options, ReadFirst, Scheduler, Serial, Timed,
    Timing,
};

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 1,
    blocks_per_plane: 4,
    pages_per_block: 8,
    page_bytes: 512,
    sector_bytes: 512,
    oob_bytes: 16,
};

const TIMING: Timing = Timing {
    read_ns: 50,
    program_ns: 700,
    erase_ns: 3000,
    channel_bytes_per_s: 1_000_000_000,
    command_ns: 7,
};

fn nand(geometry: Geometry, stores_data: bool) -> Nand {
    let mut options = NandOptions { bad_blocks: BadBlocks::List(vec![BlockId(5)]), ..NandOptions::default() };
    options.capabilities.stores_data = stores_data;
    Nand::new(geometry.checked().unwrap(), &options).unwrap()
}

/// Programs random stripes, of which many cannot be programmed to the end, on two devices that are alike.
fn compare<M: Medium, S: Scheduler>(make: impl Fn() -> Timed<M, S>) {
    let (mut stripes, mut single) = (make(), make());
    let pages_per_block = stripes.geometry().pages_per_block;
    let (mut whole, mut cut) = (0, 0);
    let mut completions = [Vec::new(), Vec::new()];
    for step in 0..3000 {
        let mut rng = seeded(step);
        let at = SimTime(100 * step);
        stripes.advance(at, &mut completions[0]);
        single.advance(at, &mut completions[1]);
        let mut random = |below_this: u32| below(&mut rng, below_this.into()) as u32;
        // A row of blocks, one of each die.
        let row = random(4);
        let blocks: Vec<BlockId> = (0..=random(4)).map(|die| BlockId(4 * die + row)).collect();
        if random(8) == 0 {
            for block in blocks {
                let issue = Issue::new(at, Cause::Gc);
                assert_eq!(stripes.erase(block, issue).is_ok(), single.erase(block, issue).is_ok());
            }
            continue;
        }
        let behind = stripes.write_pointer(blocks[0]);
        let first = if random(5) == 0 { random(pages_per_block) } else { behind.min(pages_per_block - 1) };
        let each = 1 + random((pages_per_block - first).min(3));
        let pages = blocks.len() as u32 * each;
        let oobs: Vec<Oob> =
            (0..pages).map(|page| Oob { lpn: Lpn(random(9000) + page), stream: 0, seq: step }).collect();
        let data: Vec<u8> = (0..pages * 512).map(|byte| (u64::from(byte / 64) + step) as u8).collect();
        let data = stripes.capabilities().stores_data.then_some(&data[..]);
        let (stripe, issue) = (Stripe { blocks: &blocks, first, each }, Issue::new(at, Cause::Host));
        let one = stripes.program_stripe(stripe, &oobs, data, issue);
        let other = program_each(&mut single, stripe, Striped::default(), &oobs, data, issue);
        assert_eq!((one.pages, one.failed), (other.pages, other.failed), "step {step}: {stripe:?}");
        assert_eq!(stripes.completion(one.done), single.completion(other.done), "step {step}: {stripe:?}");
        stripes.watch(one.done, step);
        single.watch(other.done, step);
        let is_whole = one.pages == pages;
        assert_eq!(is_whole, one.failed.is_none());
        (whole, cut) = (whole + u32::from(is_whole), cut + u32::from(!is_whole && one.pages > 0));
    }
    assert!(whole > 100 && cut > 20, "{whole} stripes whole, {cut} cut short");
    let late = SimTime(1_000_000_000);
    stripes.advance(late, &mut completions[0]);
    single.advance(late, &mut completions[1]);
    assert_eq!(completions[0], completions[1]);
    assert_eq!(stripes.counters(), single.counters());
    assert_eq!(stripes.tally().totals, single.tally().totals);
    assert_eq!(stripes.idle_from(), single.idle_from());
    for page in (0..stripes.geometry().pages()).map(Ppn) {
        let issue = Issue::new(late, Cause::Host);
        let (mut left, mut right) = ([0; 512], [0; 512]);
        let one = stripes.read(page, 512, Some(&mut left), issue).map(|read| read.oob);
        let other = single.read(page, 512, Some(&mut right), issue).map(|read| read.oob);
        assert_eq!((one, left), (other, right), "page {page:?}");
    }
}

fn compare_schedulers<M: Medium>(medium: impl Fn() -> M) {
    compare(|| Timed::new(medium(), Serial::new(&GEOMETRY, &TIMING)));
    compare(|| Timed::new(medium(), Fifo::new(&GEOMETRY, &TIMING)));
    compare(|| Timed::new(medium(), ReadFirst::new(&GEOMETRY, &TIMING)));
    let host = HostLink { bytes_per_s: 400_000_000, ..HostLink::default() };
    let options = Options { host, ..Options::default() };
    compare(|| Timed::new(medium(), Fifo::with_options(&GEOMETRY, &TIMING, &options)));
}

#[test]
fn stripes_are_their_pages_with_and_without_bytes() {
    for stores_data in [false, true] {
        compare_schedulers(|| nand(GEOMETRY, stores_data));
    }
}

#[test]
fn stripes_are_their_pages_where_programs_fail_and_dies_become_slow() {
    compare_schedulers(|| {
        let mut plan = FaultPlan { seed: 3, program: 0.002, ..FaultPlan::default() };
        parse_script("500 slow die=1 factor=3\n900 slow die=1 factor=1\n", &mut plan).unwrap();
        Faults::new(nand(GEOMETRY, false), plan).unwrap()
    });
}

#[test]
fn stripes_are_their_pages_where_a_flash_page_holds_several() {
    let flash = Geometry { page_bytes: 1024, pages_per_block: 4, ..GEOMETRY };
    compare(|| Timed::new(nand(GEOMETRY, false), Fifo::new(&flash, &TIMING)).with_units(2));
}
