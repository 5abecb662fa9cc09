//! The SLC cache of `page-map`: where writes go, folding in idle time, counts, and what is refused.

use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockId, Cause, Extent, Ftl, Geometry, Hint, Lpn, Mapping, Params, SimTime};
use nandscape_ftl::{PageMap, page_map};
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed, Timing};
use std::collections::BTreeMap;

type Layer = PageMap<Timed<Nand, Fifo>>;

/// 2 dies of 2 planes of 16 blocks of 12 pages. With 2 blocks a plane the cache is 8 blocks of 4 pages.
const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 2,
    blocks_per_plane: 16,
    pages_per_block: 12,
    page_bytes: 4096,
    sector_bytes: 4096,
    oob_bytes: 16,
};
const CACHE: [(&str, &str); 3] = [("slc_blocks", "2"), ("op", "0.5"), ("slc_fold_after", "1ms")];
/// Pages of the cache.
const PAGES: u64 = 8 * 4;

fn layer(pairs: &[(&str, &str)]) -> Result<Layer, String> {
    let geometry = GEOMETRY.checked().unwrap();
    let timing = Timing {
        read_ns: 50_000,
        program_ns: 500_000,
        erase_ns: 3_000_000,
        command_ns: 0,
        channel_bytes_per_s: 400_000_000,
    };
    let nand = Nand::new(geometry, &NandOptions::default()).unwrap();
    let typed: BTreeMap<_, _> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let params = Params::check(&page_map::INFO, "ftl.", &typed).map_err(|error| error.to_string())?;
    PageMap::new(Timed::new(nand, Fifo::new(&geometry, &timing)), &params).map_err(|error| error.to_string())
}

fn write(layer: &mut Layer, pages: impl IntoIterator<Item = u64>) {
    for page in pages {
        let at = layer.device_mut().idle_from();
        layer.write(Extent::new(page * 4096, 4096), None, Hint::default(), at).unwrap();
    }
    layer.check_invariants();
}

/// Lets the layer be idle for so long; checks that causes add up to what the medium counts.
fn idle(layer: &mut Layer, ns: u64) {
    let from = layer.device_mut().idle_from();
    layer.idle(from, from + ns).unwrap();
    layer.check_invariants();
    let device = layer.device_mut();
    assert_eq!(device.counters().total(), device.tally().totals, "the sum over causes");
}

fn is_cached(layer: &Layer, page: u64) -> bool {
    let place = layer.lookup(Lpn(page as u32)).expect("it was written");
    GEOMETRY.block_of(place).0 % 16 < 2
}

fn count(layer: &mut Layer, cause: Cause) -> (u64, u64) {
    let counts = layer.device_mut().counters().get(cause);
    (counts.programs, counts.erases)
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn writes_fill_the_cache_first_and_go_past_it_when_it_is_full() {
    let mut layer = layer(&CACHE).unwrap();
    write(&mut layer, 0..PAGES + 10);
    assert!((0..PAGES).all(|page| is_cached(&layer, page)));
    assert!((PAGES..PAGES + 10).all(|page| !is_cached(&layer, page)));
    let slc = layer.slc().unwrap();
    assert_eq!((slc.capacity_bytes, slc.host_pages), (PAGES * 4096, PAGES));
    assert_eq!(count(&mut layer, Cause::Fold), (0, 0), "writes do not wait for the cache");
    let blocks = layer.cost().total_blocks;
    assert_eq!(blocks, 64 - 8, "the cache is no part of the capacity");
}

#[test]
fn a_host_that_is_idle_long_enough_finds_the_cache_empty_again() {
    let mut layer = layer(&CACHE).unwrap();
    write(&mut layer, 0..PAGES + 10);
    idle(&mut layer, 0);
    assert_eq!(count(&mut layer, Cause::Fold), (0, 0), "no time to spare");
    idle(&mut layer, 400_000);
    assert_eq!(count(&mut layer, Cause::Fold), (0, 0), "slc_fold_after has not passed");
    idle(&mut layer, SECOND);
    assert_eq!(count(&mut layer, Cause::Fold), (PAGES, 8), "all pages copied, all blocks erased");
    assert!((0..PAGES).all(|page| !is_cached(&layer, page)));
    write(&mut layer, PAGES..2 * PAGES);
    assert!((PAGES..2 * PAGES).all(|page| is_cached(&layer, page)));
}

#[test]
fn what_was_overwritten_in_the_cache_is_erased_without_a_copy() {
    let mut layer = layer(&CACHE).unwrap();
    // The cache's pages are all of the same few logical pages.
    write(&mut layer, (0..5 * PAGES).map(|number| number % 4));
    assert_eq!(layer.slc().unwrap().host_pages, 5 * PAGES, "there is always a block to erase");
    let (programs, erases) = count(&mut layer, Cause::Fold);
    assert_eq!(programs, 0);
    assert!(erases >= 4 * 8, "{erases}");
    let extent = Extent::new(0, 4 * 4096);
    layer.trim(extent, SimTime(u64::MAX / 2)).unwrap();
    layer.check_invariants();
}

#[test]
fn folding_a_full_device_collects_for_what_it_copies() {
    let mut layer = layer(&CACHE).unwrap();
    let pages = layer.logical_pages();
    let mut rng = seeded(1);
    write(&mut layer, 0..pages);
    for round in 0..20 {
        write(&mut layer, (0..pages).map(|_| below(&mut rng, pages)));
        idle(&mut layer, 10 * SECOND);
        assert!(layer.slc().unwrap().host_pages >= PAGES, "round {round}");
        let left = (0..pages).filter(|page| is_cached(&layer, *page)).count() as u64;
        // What is in blocks that are not full stays.
        assert!(left < 2 * 4, "round {round}: {left} pages are left in the cache");
    }
    let (programs, _) = count(&mut layer, Cause::Gc);
    assert!(programs > 0, "collection had something to copy");
    assert_eq!(layer.stats().live_pages, pages);
}

#[test]
fn wear_of_the_cache_is_spread_over_its_blocks() {
    let mut layer = layer(&CACHE).unwrap();
    write(&mut layer, (0..100 * PAGES).map(|number| number % 4));
    let device = layer.device_mut();
    let erases = |block: u32| device.erase_count(BlockId(block));
    let of_cache: Vec<u32> = (0..64).filter(|block| block % 16 < 2).map(erases).collect();
    let (least, most) = (of_cache.iter().min().unwrap(), of_cache.iter().max().unwrap());
    assert!(*least > 90 && most - least <= 2, "{of_cache:?}");
}

#[test]
fn a_cache_that_cannot_be_is_refused_by_name() {
    let refused = |key: &'static str, value: &'static str, with: &[(&'static str, &'static str)]| {
        let error = layer(&[with, &[("op", "0.5"), (key, value)]].concat()).unwrap_err();
        assert!(error.starts_with("ftl.slc_blocks = "), "{error}");
        error
    };
    assert!(refused("slc_blocks", "16", &[]).contains("fewer blocks than the 16 of a plane"));
    refused("slc_blocks", "100%", &[]);
    refused("slc_blocks", "few", &[]);
    refused("slc_blocks", "-1", &[]);
    assert!(refused("slc_blocks", "1", &[("streams", "2")]).contains("0 with ftl.streams"));
    assert!(refused("slc_blocks", "1", &[("allocation", "static")]).contains("ftl.allocation"));
    assert!(layer(&[("op", "0.5"), ("slc_blocks", "0%")]).unwrap().slc().is_none());
    // An eighth of a block is a block.
    assert_eq!(
        layer(&[("op", "0.5"), ("slc_blocks", "1%")]).unwrap().slc().unwrap().capacity_bytes,
        4 * 4 * 4096
    );
}
