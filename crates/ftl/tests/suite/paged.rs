//! A map on the flash: how often translation pages are written against closed forms, what reads and trims
//! cost, and what is refused.

use crate::support::THESIS_TIMING;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{Cause, Extent, Ftl, Geometry, Hint, Lpn, Mapping, OpCounts, Params, SimTime};
use nandscape_ftl::{PageMap, page_map};
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed};
use std::collections::{BTreeMap, BTreeSet};

/// Array and bus.
const ONE_READ_NS: u64 = THESIS_TIMING.read_ns + 4096;

type Layer = PageMap<Timed<Nand, Fifo>>;

/// A device of one die with so many blocks of 128 pages of 4 KiB.
fn layer(blocks: u32, pairs: &[(&str, &str)]) -> Result<Layer, String> {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: blocks,
        pages_per_block: 128,
        page_bytes: 4096,
        sector_bytes: 4096,
        oob_bytes: 16,
    };
    let geometry = geometry.checked().unwrap();
    let nand = Nand::new(geometry, &NandOptions::default()).unwrap();
    let typed: BTreeMap<_, _> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let params = Params::check(&page_map::INFO, "ftl.", &typed).map_err(|error| error.to_string())?;
    let device = Timed::new(nand, Fifo::new(&geometry, &THESIS_TIMING));
    PageMap::new(device, &params).map_err(|error| error.to_string())
}

fn write(layer: &mut Layer, page: u64) {
    let at = layer.device_mut().idle_from();
    layer.write(Extent::new(page * 4096, 4096), None, Hint::default(), at).unwrap();
}

/// Reads pages in one request; gives how long it took.
fn read(layer: &mut Layer, page: u64, count: u64) -> u64 {
    let at = layer.device_mut().idle_from();
    let done = layer.read(Extent::new(page * 4096, count * 4096), None, at).unwrap();
    layer.device_mut().completion(done).expect("known at submission").as_ns() - at.as_ns()
}

fn meta(layer: &mut Layer) -> OpCounts {
    layer.device_mut().counters().get(Cause::Meta)
}

/// Host writes for each translation page that is written, without collection.
fn batch(commit: &str, changes: u64) -> f64 {
    let cache = (changes as f64 * 16.0 / 262_144.0).to_string();
    let pairs = [("capacity", "256MiB"), ("map_cache", cache.as_str()), ("map_commit", commit)];
    let mut layer = layer(1600, &pairs).unwrap();
    let pages = layer.logical_pages();
    let mut rng = seeded(7);
    (0..20_000).for_each(|_| write(&mut layer, below(&mut rng, pages)));
    let before = meta(&mut layer).programs;
    (0..100_000).for_each(|_| write(&mut layer, below(&mut rng, pages)));
    layer.check_invariants();
    assert_eq!(layer.device_mut().counters().get(Cause::Gc), OpCounts::default(), "there is room for all");
    100_000.0 / (meta(&mut layer).programs - before) as f64
}

/// With `r` changes for each translation page, uniform ones: the page with the most has `2 r + 1`, since
/// pages grow evenly from none. In the order of the first change a page has `1 + x`, where `x` are the
/// changes that come while it waits, and `r = (x + x^2 / 2) / (1 + x)`: the mean over the time without any,
/// and the wait.
#[test]
fn translation_pages_gather_as_many_changes_as_closed_forms_say() {
    for r in [2.0, 10.0, 40.0] {
        let changes = (r * 64.0) as u64;
        let largest = batch("largest", changes);
        let form = 2.0 * r + 1.0;
        assert!((largest / form - 1.0).abs() < 0.05, "largest, {r}: {largest:.2}, by the form {form:.2}");
        let lazy = batch("lazy", changes);
        let x: f64 = (r - 1.0) + f64::hypot(r - 1.0, f64::sqrt(2.0 * r));
        let form = 1.0 + x;
        assert!((lazy / form - 1.0).abs() < 0.05, "lazy, {r}: {lazy:.2}, by the form {form:.2}");
    }
}

#[test]
fn changes_stay_in_their_share_while_collection_moves_pages() {
    for commit in ["largest", "lazy"] {
        let pairs = [("op", "0.15"), ("map_cache", "50%"), ("map_commit", commit)];
        let mut layer = layer(300, &pairs).unwrap();
        let pages = layer.logical_pages();
        let mut rng = seeded(3);
        (0..pages).for_each(|page| write(&mut layer, page));
        (0..3 * pages).for_each(|_| write(&mut layer, below(&mut rng, pages)));
        layer.check_invariants();
        let device = layer.device_mut();
        assert!(device.counters().get(Cause::Gc).programs > pages, "{commit}: pages were moved");
        assert_eq!(device.counters().total(), device.tally().totals, "{commit}: the sum over causes");
        let most = layer.map_cache().unwrap().most_bytes;
        // Collection may change as many entries as a victim has before they can be written.
        let cost = layer.cost();
        assert!(most <= cost.map_table_bytes / 2 + 8 * 2 * 128, "{commit}: {most}");
        assert!(cost.dram_bytes < cost.map_table_bytes, "{commit}: {cost:?}");
        assert_eq!(layer.stats().live_pages, pages, "{commit}: translation pages are not the host's");
    }
}

#[test]
fn translation_pages_have_blocks_of_their_own() {
    let mut layer = layer(300, &[("op", "0.28"), ("map_cache", "5%")]).unwrap();
    let pages = layer.logical_pages();
    let mut rng = seeded(9);
    (0..pages).for_each(|page| write(&mut layer, page));
    (0..3 * pages).for_each(|_| write(&mut layer, below(&mut rng, pages)));
    layer.check_invariants();
    let block_of = |layer: &Layer, page: u64| layer.lookup(Lpn(page as u32)).map(|place| place.0 / 128);
    let of_host: BTreeSet<_> = (0..pages).filter_map(|page| block_of(&layer, page)).collect();
    let translation = pages..pages + pages.div_ceil(1024);
    let of_map: BTreeSet<_> = translation.filter_map(|page| block_of(&layer, page)).collect();
    assert!(!of_map.is_empty() && of_map.is_disjoint(&of_host), "{of_map:?}");
}

#[test]
fn a_read_waits_for_entries_that_are_not_in_memory() {
    let pairs = [("capacity", "16MiB"), ("map_cache", "25%")];
    let mut layer = layer(100, &pairs).unwrap();
    (0..4096).for_each(|page| write(&mut layer, page));
    let before = meta(&mut layer);
    assert!(before.programs > 0);
    let one = ONE_READ_NS;
    assert_eq!(read(&mut layer, 0, 1), 2 * one, "the translation page, then the page");
    assert_eq!(read(&mut layer, 5, 1), one, "it brought 64 entries");
    assert_eq!(read(&mut layer, 64, 1), 2 * one);
    // 2048 bytes have room for 7 lines of 268.
    for line in 2..9 {
        assert_eq!(read(&mut layer, line * 64, 1), 2 * one);
    }
    assert_eq!(read(&mut layer, 0, 1), 2 * one, "the line that was used least recently is gone");
    assert_eq!(read(&mut layer, 8 * 64, 1), one);
    assert_eq!(read(&mut layer, 1024, 192), 193 * one, "three lines by one read");
    let stats = layer.map_cache().unwrap();
    assert_eq!((stats.hits, stats.misses), (2, 13));
    assert_eq!(meta(&mut layer).reads - before.reads, 11);
    layer.reset_stats();
    assert_eq!(layer.map_cache().unwrap().misses, 0);
}

#[test]
fn changes_that_wait_in_memory_are_found_there() {
    let pairs = [("capacity", "16MiB"), ("map_cache", "25%")];
    let mut layer = layer(100, &pairs).unwrap();
    (0..4096).for_each(|page| write(&mut layer, page));
    let before = meta(&mut layer);
    write(&mut layer, 77);
    let time = read(&mut layer, 77, 1);
    assert_eq!(time, ONE_READ_NS);
    assert_eq!(meta(&mut layer).reads, before.reads);
}

#[test]
fn a_trim_drops_translation_pages_and_changes_the_others() {
    let pairs = [("capacity", "16MiB"), ("map_cache", "25%")];
    let mut layer = layer(100, &pairs).unwrap();
    (0..4096).for_each(|page| write(&mut layer, page));
    let at = SimTime(u64::MAX / 2);
    let translation = |layer: &Layer, page: u64| layer.lookup(Lpn((4096 + page) as u32)).is_some();
    assert!(translation(&layer, 1) && translation(&layer, 2));
    // From the middle of the first to the middle of the last.
    layer.trim(Extent::new(500 * 4096, 3000 * 4096), at).unwrap();
    layer.check_invariants();
    assert!(!translation(&layer, 1) && !translation(&layer, 2), "nothing is mapped there");
    assert!(translation(&layer, 0) && translation(&layer, 3));
    assert_eq!(layer.stats().live_pages, 4096 - 3000);
    layer.trim(Extent::new(0, 4096 * 4096), at).unwrap();
    layer.check_invariants();
    assert!((0..4).all(|page| !translation(&layer, page)));
    assert_eq!(layer.stats().live_pages, 0);
}

#[test]
fn what_cannot_be_is_refused_by_key() {
    let refused = |pairs: &[(&str, &str)]| layer(100, pairs).unwrap_err();
    let text = refused(&[("capacity", "16MiB"), ("map_cache", "0.3%")]);
    assert!(text.starts_with("ftl.map_cache = '0.3%'") && text.contains("at least 0.41%"), "{text}");
    let text = refused(&[("map_commit", "lazy")]);
    assert!(text.starts_with("ftl.map_commit = 'lazy'") && text.contains("ftl.map_cache"), "{text}");
    let text = refused(&[("map_commit", "eager"), ("map_cache", "2%")]);
    assert!(text.contains("largest, lazy"), "{text}");
}
