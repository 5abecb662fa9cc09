//! Each published design on a load that is small enough to be worked out by hand, and what it prints of it.

use crate::rig;

use nandscape_cache::compose::Now;
use nandscape_cache::status::{self, Health, Page};
use nandscape_cache::{Counters, Gauges};
use nandscape_core::rng::seeded;
use nandscape_core::{Op, SimTime};
use nandscape_disk::Keep;
use nandscape_policies::admission::Bypass;
use rig::Rig;

const MS: u64 = 1_000_000;

fn rig(pairs: &[(&str, &str)]) -> Rig {
    Rig::new(pairs, ("ram", 16 << 20), ("ram", 64 << 20), Keep::Bytes)
}

fn page(pairs: &[(&str, &str)], rig: &Rig, counters: &Counters, is_status: bool) -> Page {
    let design = rig::design(pairs);
    let printer = status::find(design.preset.info.name).expect("a printer");
    let now = Now {
        fast_name: "/dev/sdb",
        disk_name: "/dev/sda3",
        volume_bytes: 64 << 20,
        mode: rig.cache.mode(),
        health: Health::Normal,
        gauges: rig.cache.gauges(),
        counters,
    };
    let facts = design.facts(&now);
    if is_status { (printer.status)(&facts) } else { (printer.table)(&facts) }
}

fn status(pairs: &[(&str, &str)], rig: &Rig) -> String {
    page(pairs, rig, &rig.counters(), true).text().to_owned()
}

/// Every access is over before the next.
fn slowly(rig: &mut Rig, load: &[(Op, u64)]) {
    for (op, block) in load {
        rig.run(*op, block * rig.block, rig.block, *block as u8);
        rig.pass(MS);
    }
}

use Op::{Read, Write};

#[test]
fn dm_cache_of_fiu_replaces_clean_blocks_first_and_caches_blocks_whole() {
    let pairs = [("preset", "dm-cache-fiu"), ("size", "4b"), ("ways", "4")];
    let mut rig = rig(&pairs);
    // Dirty blocks are 3 and 1, and later 7 and 8; the clean ones leave in the order 2, 0, 4, 5, 6, and then
    // block 3, which is dirty.
    let load = [
        (Read, 0),
        (Read, 1),
        (Read, 2),
        (Write, 3),
        (Read, 0),
        (Write, 1),
        (Read, 4),
        (Read, 5),
        (Read, 6),
        (Write, 7),
        (Write, 8),
        (Write, 9),
    ];
    slowly(&mut rig, &load);
    assert_eq!(
        status(&pairs, &rig),
        "0 131072 cache stats: reads(7), writes(5), cache hits(2, 0.16),replacement(6), replaced dirty blocks(1)"
    );
    let counters = rig.counters();
    assert_eq!((counters.disk_reads, counters.disk_writes), (6, 1));
    rig.run(Read, 20 * 4096 + 1024, 512, 0);
    rig.read(20);
    rig.run(Write, 21 * 4096 + 512, 512, 3);
    rig.read(21);
    let since = rig.counters().since(&counters);
    assert_eq!(since.read_piece_hits, 2);
    assert_eq!(
        (since.disk_reads, since.disk_read_bytes),
        (3, 8192 - 512),
        "the rest of both, that of the second on both sides"
    );
    let table = page(&pairs, &rig, &rig.counters(), false);
    assert_eq!(
        table.text(),
        "0 131072 cache conf: capacity(0M), associativity(4), block size(4K), write-back"
    );
}

#[test]
fn flashcache_takes_clean_victims_only_and_throws_out_what_is_asked_for_in_parts() {
    let pairs = [
        ("preset", "flashcache"),
        ("map", "linear"),
        ("size", "4b"),
        ("ways", "4"),
        ("clean_threshold", "100%"),
    ];
    let mut rig = rig(&pairs);
    slowly(&mut rig, &[(Write, 0), (Write, 1), (Write, 2), (Write, 3), (Write, 4), (Read, 0), (Write, 1)]);
    // Block 2 is dirty: it goes to the disk and leaves.
    rig.run(Read, 2 * 4096, 512, 0);
    rig.pass(MS);
    rig.run(Write, 9 * 4096 + 512, 512, 1);
    let counters = rig.counters();
    let expected = "\
0 131072 flashcache stats: \n\treads(2), writes(7)
\tread hits(1), read hit percent(50)
\twrite hits(1) write hit percent(14)
\tdirty write hits(1) dirty write hit percent(14)
\treplacement(0), write replacement(0)
\twrite invalidates(0), read invalidates(1)";
    assert!(status(&pairs, &rig).starts_with(expected), "{}", status(&pairs, &rig));
    assert_eq!((counters.no_room, counters.dirtied, counters.cleaned), (1, 4, 1));
    assert_eq!((counters.cleanings, counters.forced_cleanings), (1, 1));
    let shape = Bypass::Shape.index();
    assert_eq!((counters.bypass.read_pieces[shape], counters.bypass.write_pieces[shape]), (1, 1));
    assert_eq!(counters.bypass.write_pieces[Bypass::NoRoom.index()], 1);
    assert_eq!(
        (counters.disk_reads, counters.disk_writes),
        (1, 3),
        "block 4, block 2, and the part of block 9"
    );
    assert_eq!((counters.fast_reads, counters.fast_writes), (2, 5), "what was cleaned is read, too");
}

#[test]
fn flashcache_skips_long_streams_and_what_is_busy() {
    let pairs = [
        ("preset", "flashcache"),
        ("admission", "sequential"),
        ("sequential_read", "32KiB"),
        ("size", "512b"),
        ("ways", "512"),
    ];
    let mut rig = Rig::new(&pairs, ("ram", 16 << 20), ("disk", 64 << 20), Keep::Bytes);
    for block in 100..116 {
        rig.read(block);
        rig.pass(100 * MS);
    }
    let counters = rig.counters();
    assert_eq!((counters.read_piece_misses, counters.bypass.total_reads()), (8, 8));
    assert_eq!(rig.cache.used(), 8);
    // The fill of block 300 waits for the disk.
    rig.read(300);
    rig.pass(10_000);
    rig.read(300);
    let since = rig.counters().since(&counters);
    assert_eq!((since.read_piece_misses, since.waits, since.requeued_past_cache), (1, 1, 1));
    assert_eq!(since.bypass.read_pieces[Bypass::Busy.index()], 1);
    assert_eq!((since.disk_reads, since.read_invalidates), (2, 1));
    let table = page(&pairs, &rig, &counters, false);
    assert!(table.text().contains("skip sequential thresh(32K)"), "{}", table.text());
    assert!(page(&pairs, &rig, &counters, true).text().contains("uncached reads(8)"));
}

#[test]
fn enhanceio_cleans_between_its_watermarks_and_caches_whole_blocks_only() {
    let pairs = [("preset", "enhanceio"), ("size", "100b"), ("ways", "100")];
    let mut rig = rig(&pairs);
    for block in 0..30 {
        rig.write(block);
        rig.pass(MS);
    }
    assert_eq!(rig.cache.dirty(), 30);
    rig.write(30);
    rig.pass(MS);
    assert_eq!((rig.cache.dirty(), rig.counters().cleanings), (10, 21));
    rig.read(5);
    rig.run(Read, 5 * 4096, 512, 0);
    rig.run(Write, 6 * 4096, 1024, 0);
    let page = page(&pairs, &rig, &rig.counters(), true);
    for (name, value) in [
        ("reads", 4096 / 512 + 1),
        ("uncached_reads", 1),
        ("uncached_writes", 1),
        ("cleanings", rig.counters().cleanings),
        ("nr_dirty", u64::from(rig.cache.dirty())),
        ("cached_blocks", 29),
        ("readcount", 2),
        ("writecount", 32),
    ] {
        let field = page.field(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(field.value, value.into(), "{name}");
    }
}

#[test]
fn rapidcache_writes_through_and_no_write_is_ever_a_hit() {
    let pairs = [("preset", "rapidcache"), ("size", "2b"), ("ways", "2")];
    let mut rig = rig(&pairs);
    slowly(&mut rig, &[(Read, 0), (Read, 0), (Write, 0), (Read, 0), (Write, 1), (Write, 2), (Read, 2)]);
    rig.run(Read, 2 * 4096, 512, 0);
    let expected = "\
0 131072 rxcache stats: \n\treads(5), writes(3)
\tcache hits(3) replacement(0), write replacement(1)
\tread invalidates(1), write invalidates(1)
\tuncached reads(1), uncached writes(0)
\tdisk reads(2), disk writes(3)
\tcache reads(3), cache writes(4)";
    assert_eq!(status(&pairs, &rig), expected);
    assert_eq!(rig.cache.dirty(), 0);
    let mut around = self::rig(&[("preset", "rapidcache"), ("size", "2b"), ("mode", "write-around")]);
    slowly(&mut around, &[(Read, 0), (Write, 0), (Read, 0)]);
    let counters = around.counters();
    assert_eq!((counters.write_invalidates, counters.read_piece_misses, counters.fast_writes), (1, 2, 2));
    assert_eq!(counters.bypass.write_pieces[Bypass::Mode.index()], 1);
}

#[test]
fn bcache_caches_parts_of_blocks_and_counts_a_partial_hit_as_a_miss() {
    let pairs = [("preset", "bcache"), ("size", "64b")];
    let mut rig = rig(&pairs);
    for len in [512, 512, 1024, 1024] {
        rig.run(Read, 8192, len, 0);
        rig.pass(MS);
    }
    let counters = rig.counters();
    assert_eq!((counters.read_misses, counters.read_hits, counters.read_partial_hits), (1, 2, 1));
    assert_eq!((counters.disk_reads, counters.disk_read_bytes), (2, 1024), "each byte once");
    let page = page(&pairs, &rig, &counters, true);
    assert_eq!(page.field("cache_hits").expect("a field").value, 2_u64.into());
    let misses = page.field("cache_misses").expect("a field");
    assert_eq!(
        (&misses.value, misses.truth.as_ref().expect("it misleads").value.as_str()),
        (&2_u64.into(), "1")
    );
}

#[test]
fn dm_cache_promotes_a_whole_block_when_it_is_asked_for_again() {
    let pairs = [("preset", "dm-cache"), ("size", "16b")];
    let mut rig = rig(&pairs);
    for _ in 0..3 {
        rig.run(Read, 65_536 + 4096, 4096, 0);
        rig.pass(MS);
    }
    let counters = rig.counters();
    assert_eq!(counters.bypass.read_pieces[Bypass::TooFewHits.index()], 1);
    assert_eq!((counters.disk_reads, counters.disk_read_bytes), (2, 4096 + 32_768));
    assert_eq!((counters.read_piece_misses, counters.read_piece_hits), (1, 1));
    let page = page(&pairs, &rig, &counters, true);
    for (name, value) in
        [("read hits", 1_u32), ("read misses", 2), ("promotions", 1), ("demotions", 0), ("dirty", 0)]
    {
        assert_eq!(page.field(name).expect(name).value, u64::from(value).into(), "{name}");
    }
}

#[test]
fn dm_cache_with_mq_keeps_hot_blocks_and_with_the_cleaner_has_none_dirty_under_load() {
    let pairs = [
        ("preset", "dm-cache"),
        ("size", "16b"),
        ("admission", "all"),
        ("eviction", "mq"),
        ("cleaning", "cleaner"),
    ];
    let mut rig = rig(&pairs);
    for at in 0..12 {
        rig.write(at % 4);
        rig.pass(MS);
        assert_eq!(rig.cache.dirty(), 0, "a millisecond after each write");
    }
    // Blocks 0 to 3 have counts of three; twice as many others pass through as there are slots.
    for block in 100..132 {
        rig.read(block);
        rig.pass(MS);
    }
    let before = rig.counters();
    assert_eq!((before.cleanings, before.replacements()), (12, 20));
    for block in 0..4 {
        rig.read(block);
    }
    assert_eq!(rig.counters().since(&before).read_piece_hits, 4);
    let status = status(&pairs, &rig);
    assert!(status.contains(" mq "), "{status}");
}

#[test]
fn every_design_prints_what_a_run_has_counted() {
    for preset in nandscape_cache::presets::PRESETS {
        let pairs = [("preset", preset.info.name), ("size", "512KiB")];
        let mut rig = Rig::new(&pairs, ("ram", 4 << 20), ("disk", 2 << 20), Keep::Bytes);
        let mut rng = seeded(8);
        for _ in 0..400 {
            rig.step(&mut rng);
        }
        let counters = rig.counters();
        let gauges: Gauges = rig.cache.gauges();
        assert!(gauges.used > 0 && counters.read_pieces > 0 && rig.at > SimTime::ZERO);
        let status = page(&pairs, &rig, &counters, true);
        let said = |name: &str| status.field(name).map(|field| field.value.to_string());
        // What each calls the reads that it saw, in the unit of the design.
        let reads = match preset.info.name {
            "dm-cache" => {
                let part = |name: &str| said(name).expect(name).parse::<u64>().expect("a number");
                (Some((part("read hits") + part("read misses")).to_string()), counters.read_pieces)
            }
            "bcache" => {
                let part = |name: &str| said(name).expect(name).parse::<u64>().expect("a number");
                let parts = ["cache_hits", "cache_misses", "cache_bypass_hits", "cache_bypass_misses"];
                let all: u64 = parts.into_iter().map(part).sum();
                assert!(part("cache_hits") > 0 && part("cache_misses") > 0, "{}", status.text());
                (Some(all.to_string()), counters.reads + counters.writes)
            }
            "enhanceio" => (said("readcount"), counters.reads),
            "nandscape" => (said("reads"), counters.reads),
            _ => (said("reads"), counters.read_pieces),
        };
        assert_eq!(reads.0, Some(reads.1.to_string()), "{}: {}", preset.info.name, status.text());
        let table = page(&pairs, &rig, &counters, false);
        assert!(!table.text().is_empty() && !table.fields().is_empty(), "{}", preset.info.name);
    }
}
