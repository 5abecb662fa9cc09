//! What a cache holds in memory for each of its slots, as counted by the allocator: index, records, marks,
//! metadata, policy, names and dirty blocks, and the most that it held on the way. The stores keep nothing,
//! so that all that is counted is the cache's.

#[path = "suite/rig/mod.rs"]
mod rig;

use nandscape_cache::Cache;
use nandscape_cache::engine::Disk;
use nandscape_cache::metadata::{self, Entry, Sketch, Table, Volume};
use nandscape_cache::presets::PRESETS;
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockCommand, Clocked, Extent, Hint, Op, SimTime};
use nandscape_disk::Keep;
use nandscape_policies::BlockKey;
use nandscape_policies::eviction::AnyEviction;
use nandscape_testkit::allocator::{self, Counting};
use rig::{design, store};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A cache, full, and what it takes.
struct Filled {
    cache: Cache<AnyEviction>,
    /// Bytes held now, and the most at any time since it was created, for each slot.
    held: f64,
    most: f64,
}

/// Fills a cache with single blocks of a disk 50 times as large, this share of the requests writes, and reads
/// and writes blocks that are there.
fn filled(pairs: &[(&str, &str)], slots: u64, writes: u64) -> Filled {
    let size = format!("{slots}b");
    let mut pairs = pairs.to_vec();
    pairs.push(("size", &size));
    let design = design(&pairs);
    let block = u64::from(design.block_bytes);
    let fast = store("ram", (slots + slots / 8 + 1000) * block, Keep::Nothing);
    let disks = vec![Disk { store: store("ram", 50 * slots * block, Keep::Nothing), uuid: [1; 16] }];
    let before = allocator::held();
    let started = design.create(fast, disks, [2; 16], SimTime::ZERO).expect("a cache");
    allocator::start();
    let (mut cache, mut at) = (started.cache, started.at);
    let mut rng = seeded(3);
    let mut recent = vec![0; 1024];
    for step in 0..slots * 2 {
        let is_again = step % 4 == 3;
        let number = if is_again { recent[(step / 7 % 1024) as usize] } else { below(&mut rng, 50 * slots) };
        recent[(step % 1024) as usize] = number;
        let op = if below(&mut rng, 100) < writes { Op::Write } else { Op::Read };
        let command = BlockCommand::new(op, Extent::new(number * block, block), Hint::default());
        at += 100_000;
        cache.submit(0, command, Payload::None, at).expect("no error");
    }
    cache.advance(at, &mut Vec::new());
    drop(recent);
    let of_slot = |bytes: isize| (bytes - before) as f64 / slots as f64;
    Filled { cache, held: of_slot(allocator::held()), most: of_slot(allocator::most()) }
}

/// The bound for the default design: 16 bytes for each block of 4 KiB.
#[test]
fn the_default_cache_takes_16_bytes_for_each_block_whatever_it_holds() {
    // As it comes, partly dirty; and with nothing but single dirty blocks, which are as much as there can be.
    let lazy = [("rate_max", "4KiB"), ("rate_high", "100%"), ("cutoff_dirty", "100%")];
    for (pairs, slots, writes) in [(&[][..], 1 << 20, 30), (&lazy, 1 << 18, 100)] {
        let Filled { cache, held, most } = filled(pairs, slots, writes);
        let gauges = cache.gauges();
        assert!(gauges.used * 100 >= slots * 99, "{} of {slots} are used", gauges.used);
        assert!(gauges.dirty * 100 >= slots * if writes == 100 { 95 } else { 10 }, "{} dirty", gauges.dirty);
        let memory = cache.memory();
        assert!(held <= 16.0, "{held:.2} B for each of {slots} slots: {memory:?}");
        // What a commit takes for a moment does not grow with the cache.
        let most = most - 131_072.0 / slots as f64;
        assert!(most <= 16.0, "{most:.2} B for each of {slots} slots on the way");
        let own = gauges.memory_bytes as f64 / slots as f64;
        assert!((held / own - 1.0).abs() < 0.03, "{own:.2} B by its own account, {held:.2} held");
    }
}

/// Row by row, the table of the document.
#[test]
fn each_design_takes_what_the_document_says() {
    let document = include_str!("../../../docs/cache.md");
    let slots = 1 << 16;
    let mut wrong = Vec::new();
    for preset in PRESETS {
        let name = preset.info.name;
        let Filled { cache, held, .. } = filled(&[("preset", name)], slots, 30);
        let memory = cache.memory();
        let of_slot = |bytes: u64| bytes as f64 / slots as f64;
        let row =
            |cells: &[f64]| cells.iter().map(|cell| format!("{cell:.1}")).collect::<Vec<_>>().join(" | ");
        let meant = [
            held,
            of_slot(memory.index),
            of_slot(memory.slots),
            of_slot(memory.marks + memory.metadata + memory.steps + memory.admission),
            of_slot(memory.policies),
            of_slot(memory.dirty),
        ];
        let kib = preset.block_bytes >> 10;
        let meant = format!("| {name} | {kib} KiB | {} |", row(&meant));
        let found = document.lines().find(|line| line.starts_with(&format!("| {name} | {kib} KiB |")));
        let numbers = |line: &str| -> Vec<f64> {
            line.split('|').filter_map(|cell| cell.trim().parse().ok()).collect()
        };
        let found = numbers(found.unwrap_or_default());
        let is_near = |(found, meant): (&f64, f64)| (found - meant).abs() <= 0.15;
        if found.len() != 6 || !found.iter().zip(numbers(&meant)).all(is_near) {
            wrong.push(meant);
        }
    }
    assert!(wrong.is_empty(), "docs/cache.md should say:\n{}", wrong.join("\n"));
}

#[test]
fn memory_is_proportional_to_the_number_of_slots() {
    for name in ["nandscape", "flashcache"] {
        let held =
            [13, 14, 16].map(|bits| filled(&[("preset", name)], 1 << bits, 30).held * f64::from(1 << bits));
        // Four times the slots take four times the memory, but for a constant.
        let slope = (held[2] - held[1]) / f64::from((1 << 16) - (1 << 14));
        let constant = held[0] - slope * f64::from(1 << 13);
        assert!(constant.abs() < 100_000.0, "{name}: {constant:.0} B beside {slope:.2} B a slot");
        assert!((held[1] - constant - slope * f64::from(1 << 14)).abs() < 100_000.0, "{name}: {held:?}");
    }
}

/// All slots in use, for metadata to write down.
struct Full(u32);

impl Table for Full {
    fn entry(&self, slot: u32) -> Option<Entry> {
        (slot < self.0).then(|| {
            // Not in the order of the slots.
            let block = u64::from(slot) * 7919 % u64::from(self.0);
            Entry {
                key: BlockKey::new(0, block),
                valid: 0xff,
                dirty: if slot.is_multiple_of(3) { 0x0f } else { 0 },
            }
        })
    }
}

/// What opening takes beside the cache that comes of it: while the metadata are read 16 bytes for each slot,
/// and 8 where blocks in two slots are looked for; while the cache is filled, the 16.
#[test]
fn opening_takes_24_bytes_for_each_slot_while_it_reads_and_16_beside_the_new_cache() {
    let slots = 1 << 18;
    for kind in ["journal", "slots", "at-removal", "periodic"] {
        for is_removed in [true, false] {
            if !is_removed && kind != "journal" {
                continue;
            }
            let design = design(&[("metadata", kind)]);
            let disk = u64::from(slots) * 4096;
            let volume = Volume { id: 0, uuid: [1; 16], bytes: disk, stamp: [0; 16] };
            let mut setup = metadata::Setup {
                capacity_bytes: 0,
                store_block: 4096,
                block_bytes: 4096,
                uuid: [2; 16],
                settings: String::new(),
                volumes: vec![volume],
            };
            setup.capacity_bytes = metadata::bytes_for(kind, &setup, slots).expect("it fits");
            let mut area = Sketch::new(setup.capacity_bytes);
            let metadata::Opened { mut metadata, repairs, .. } =
                metadata::create(kind, &setup, &mut area).expect("a cache");
            metadata::apply(&mut area, &repairs).expect("no error");
            let (full, mut writes) = (Full(slots), Vec::new());
            for slot in 0..slots {
                if metadata.noted() >= metadata.room() {
                    metadata.commit(&full, &mut writes);
                    metadata::apply(&mut area, &std::mem::take(&mut writes)).expect("no error");
                    metadata.committed();
                }
                metadata.note(slot, full.entry(slot));
            }
            metadata.commit(&full, &mut writes);
            if is_removed {
                metadata.close(&full, &mut writes);
            }
            metadata::apply(&mut area, &std::mem::take(&mut writes)).expect("no error");
            drop((metadata, writes));

            let of_slot = |bytes: isize| bytes as f64 / f64::from(slots);
            let fast = store("ram", setup.capacity_bytes, Keep::Nothing);
            let disks = vec![Disk { store: store("ram", disk, Keep::Nothing), uuid: [1; 16] }];
            let before = allocator::start();
            let opened = metadata::open(&mut area).expect("a cache");
            let found = &opened.found;
            assert_eq!(found.entries.len(), slots as usize, "{kind}: {}", found.report);
            assert_eq!(found.report.is_clean, is_removed, "{kind}");
            let reading = of_slot(allocator::most() - before);
            assert!(reading <= 25.0, "{kind}: {reading:.2} B a slot while it is read");
            let held = of_slot(allocator::held() - before);
            assert!(held <= 17.0, "{kind}: {held:.2} B a slot of what was found");

            let started =
                Cache::start(fast, disks, opened, &design.setup(), design.policies(), SimTime::ZERO);
            let cache = started.expect("a cache").cache;
            assert_eq!(cache.used(), slots, "{kind}");
            let most = of_slot(allocator::most() - before);
            let own = of_slot(allocator::held() - before);
            assert!(most <= own + 17.0, "{kind}: {most:.2} B a slot on the way to {own:.2} B");
        }
    }
}
