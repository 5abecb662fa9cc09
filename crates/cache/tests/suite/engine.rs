//! The engine against plain bytes: whatever the mode, block size and map, a read gives what was written last,
//! and with a journal every flushed byte survives a loss of power, whichever of the unflushed writes of both
//! stores come through.

use crate::support;

use nandscape_cache::compose::Design;
use nandscape_cache::engine::Disk;
use nandscape_cache::metadata::Entry;
use nandscape_cache::{Cache, CacheError, Mode, Setup};
use nandscape_core::command::Payload;
use nandscape_core::ftl::Hint;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{BlockCommand, Extent, Op, SimTime, Subsystem};
use nandscape_policies::admission::{Admission, Ask, Bypass, Room};
use nandscape_policies::{BlockKey, Map};
use support::{Journal, Lru, Memory};

/// One kind of cache.
#[derive(Clone, Debug)]
struct Case {
    setup: Setup,
    slots: u32,
    is_in_place: bool,
    fast_unit: u32,
    disk_unit: u32,
    capacity: u64,
    refuses: bool,
}

impl Case {
    fn new(block_bytes: u32, mode: Mode, map: Map, slots: u32, is_in_place: bool) -> Self {
        let capacity = u64::from(block_bytes) * u64::from(slots * 5 / 2) + 4096;
        let setup = Setup { block_bytes, mode, map, seed: 1 };
        Self { setup, slots, is_in_place, fast_unit: 512, disk_unit: 512, capacity, refuses: false }
    }
}

/// Lets in what a counter says, so that some blocks of a request go past the cache.
struct Every(u32);

impl Admission for Every {
    fn request(&mut self, _: &Ask) -> Result<(), Bypass> {
        self.0 += 1;
        if self.0.is_multiple_of(7) { Err(Bypass::Sequential) } else { Ok(()) }
    }

    fn block(&mut self, key: BlockKey, _: Op, _: Room) -> Result<(), Bypass> {
        if (key.0 + u64::from(self.0)).is_multiple_of(5) { Err(Bypass::TooFewHits) } else { Ok(()) }
    }

    fn memory_bytes(&self) -> u64 {
        size_of::<Self>() as u64
    }
}

/// A cache over two volumes, what they must hold, and what was flushed.
struct Rig {
    cache: Cache<Lru>,
    fast: Memory,
    disks: [Memory; 2],
    journal: Journal,
    case: Case,
    model: [Vec<u8>; 2],
    /// What each byte was at the last flush of its volume; `None` once it was written since.
    flushed: [Vec<Option<u8>>; 2],
}

fn cache(case: &Case, fast: &Memory, disks: &[Memory; 2], journal: &Journal) -> Cache<Lru> {
    let mut cache =
        Cache::<Lru>::new(Box::new(fast.clone()), Box::new(journal.clone()), &case.setup, |_, _| {
            Lru::default()
        })
        .expect("a cache");
    for disk in disks {
        cache.attach(Box::new(disk.clone())).expect("a volume");
    }
    cache.set_admission(case.refuses.then(|| Box::new(Every(0)) as Box<dyn Admission + Send>));
    cache
}

impl Rig {
    fn new(case: &Case, keeps: bool) -> Self {
        let block = case.setup.block_bytes;
        let fast = Memory::new(4096 + u64::from(case.slots * block), case.fast_unit, keeps);
        let disks = [(); 2].map(|()| Memory::new(case.capacity, case.disk_unit, keeps));
        let journal = Journal::new(case.slots, block, case.is_in_place);
        let cache = cache(case, &fast, &disks, &journal);
        let len = if keeps { case.capacity as usize } else { 0 };
        let (model, flushed) = ([vec![0; len], vec![0; len]], [vec![Some(0); len], vec![Some(0); len]]);
        Self { cache, fast, disks, journal, case: case.clone(), model, flushed }
    }

    fn run(&mut self, volume: u16, op: Op, extent: Extent, fill: u8) {
        let command = BlockCommand::new(op, extent, Hint::default());
        let at = SimTime::ZERO;
        let v = usize::from(volume);
        let range = extent.offset as usize..extent.end() as usize;
        if self.model[v].is_empty() {
            self.cache.submit(volume, command, Payload::None, at).expect("no error");
            return;
        }
        match op {
            Op::Read => {
                let mut bytes = vec![0xee; range.len()];
                self.cache.submit(volume, command, Payload::Read(&mut bytes), at).expect("no error");
                let wrong =
                    bytes.iter().zip(&self.model[v][range.clone()]).position(|(got, meant)| got != meant);
                assert_eq!(
                    wrong.map(|i| extent.offset + i as u64),
                    None,
                    "first wrong byte, reading {extent:?}"
                );
            }
            Op::Write => {
                let bytes: Vec<u8> = range.clone().map(|i| fill.wrapping_add((i / 512) as u8)).collect();
                self.cache.submit(volume, command, Payload::Write(&bytes), at).expect("no error");
                self.model[v][range.clone()].copy_from_slice(&bytes);
                self.flushed[v][range].fill(None);
            }
            Op::Trim | Op::WriteZeroes => {
                self.cache.submit(volume, command, Payload::None, at).expect("no error");
                self.model[v][range.clone()].fill(0);
                self.flushed[v][range].fill(None);
            }
            Op::Flush => {
                self.cache.submit(volume, command, Payload::None, at).expect("no error");
                self.flushed[v] = self.model[v].iter().map(|byte| Some(*byte)).collect();
            }
        }
    }

    /// A random command: mostly small, some over many blocks, some over more than the cache holds.
    fn step(&mut self, rng: &mut Xoshiro256PlusPlus) {
        let unit = u64::from(self.case.fast_unit.max(self.case.disk_unit));
        let units = self.case.capacity / unit;
        let block = u64::from(self.case.setup.block_bytes) / unit;
        let (most, is_aligned) = match below(rng, 20) {
            0 => (units, false),
            1..5 => (4 * block.max(1), false),
            5..11 => (block.max(1), true),
            _ => (block.max(1), false),
        };
        let mut offset = below(rng, units);
        let mut len = 1 + below(rng, most.min(units - offset));
        if is_aligned {
            offset = offset / block.max(1) * block.max(1);
            len = block.max(1).min(units - offset);
        }
        let extent = Extent::new(offset * unit, len * unit);
        let volume = u16::from(below(rng, 4) == 0);
        match below(rng, 100) {
            0..40 => self.run(volume, Op::Read, extent, 0),
            40..85 => self.run(volume, Op::Write, extent, below(rng, 256) as u8),
            85..90 => self.run(volume, Op::Trim, extent, 0),
            90..93 => self.run(volume, Op::WriteZeroes, extent, 0),
            93..97 => self.run(volume, Op::Flush, Extent::new(0, 0), 0),
            _ => drop(self.cache.clean(1 + below(rng, 5) as u32, SimTime::ZERO).expect("no error")),
        }
    }

    /// The cache's counters add up, and agree with what the stores counted.
    fn check_counts(&self) {
        self.cache.check_invariants();
        let counters = self.cache.counters();
        let total = counters.total();
        let fast = self.cache.fast_counts();
        assert_eq!((total.fast_reads, total.fast_read_bytes), (fast.reads, fast.read_bytes));
        assert_eq!((total.fast_writes, total.fast_write_bytes), (fast.writes, fast.write_bytes));
        assert_eq!(total.fast_flushes, fast.flushes);
        for (volume, own) in (0..).zip(&counters.volumes) {
            let disk = self.cache.disk_counts(volume);
            assert_eq!((own.disk_reads, own.disk_read_bytes), (disk.reads, disk.read_bytes));
            assert_eq!((own.disk_writes, own.disk_write_bytes), (disk.writes, disk.write_bytes));
            assert_eq!(own.disk_flushes, disk.flushes);
            let host = self.cache.host_counts(volume);
            let asked = (own.reads, own.writes, own.trims, own.flushes);
            assert_eq!(asked, (host.reads, host.writes, host.trims, host.flushes));
        }
    }

    /// What would be found after a loss of power now: of each store all writes, or only the flushed ones.
    fn check_cut(&self, seed: u64) {
        let (fast, entries) = (self.fast.state.lock().unwrap(), self.journal.entries.lock().unwrap());
        let sub = (self.case.setup.block_bytes / 16).max(512) as usize;
        for (volume, flushed) in self.flushed.iter().enumerate() {
            let disk = self.disks[volume].state.lock().unwrap();
            for (from_fast, from_disk) in [
                (&fast.now, &disk.now),
                (&fast.now, &disk.durable),
                (&fast.durable, &disk.now),
                (&fast.durable, &disk.durable),
            ] {
                let mut found = from_disk.clone();
                for (slot, entry) in &entries.committed {
                    if usize::from(entry.key.volume()) != volume {
                        continue;
                    }
                    let data = 4096 + *slot as usize * self.case.setup.block_bytes as usize;
                    let first = entry.key.block() as usize * self.case.setup.block_bytes as usize;
                    for bit in (0..16).filter(|bit| entry.valid >> bit & 1 == 1) {
                        let end = (first + (bit + 1) * sub).min(found.len());
                        let start = first + bit * sub;
                        found[start..end]
                            .copy_from_slice(&from_fast[data + bit * sub..data + bit * sub + end - start]);
                    }
                }
                let lost = flushed
                    .iter()
                    .zip(&found)
                    .position(|(meant, got)| meant.is_some_and(|meant| meant != *got));
                assert_eq!(
                    lost, None,
                    "first flushed byte of volume {volume} that is lost; seed {seed}, {:?}",
                    self.case
                );
            }
        }
    }
}

fn maps() -> [Map; 3] {
    [Map::Full, Map::Linear { ways: 4 }, Map::ClusterHashed { ways: 8, cluster: 2 }]
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for mode in Mode::ALL {
        for map in maps() {
            for is_in_place in [true, false] {
                for block in [4096, 16 << 10] {
                    cases.push(Case::new(block, mode, map, 24, is_in_place));
                }
                let case = Case::new(4096, mode, map, 24, is_in_place);
                cases.push(Case { refuses: true, ..case });
            }
        }
        // Large blocks, a cache of one or two slots, and stores of other units.
        for slots in [1, 2, 9] {
            cases.push(Case::new(512, mode, Map::Full, slots, false));
            cases.push(Case::new(4096, mode, Map::Full, slots, false));
        }
        cases.push(Case::new(1 << 20, mode, Map::Full, 3, false));
        cases.push(Case { disk_unit: 4096, ..Case::new(4096, mode, Map::Full, 8, false) });
        let units = Case { disk_unit: 4096, ..Case::new(64 << 10, mode, Map::Full, 8, false) };
        cases.push(Case { fast_unit: 1024, ..Case::new(16 << 10, mode, Map::Full, 8, false) });
        cases.push(Case { fast_unit: 4096, disk_unit: 512, ..units.clone() });
        cases.push(units);
    }
    cases
}

#[test]
fn reads_give_what_was_written_last_and_flushed_bytes_survive_in_every_mode() {
    for (number, case) in cases().iter().enumerate() {
        let seed = 100 + number as u64;
        let mut rng = seeded(seed);
        let mut rig = Rig::new(case, true);
        let steps = ((20 << 20) / case.capacity).clamp(30, 250);
        for _ in 0..steps {
            rig.step(&mut rng);
            rig.check_counts();
            if !case.is_in_place && below(&mut rng, 4) == 0 {
                rig.check_cut(seed);
            }
        }
        for volume in 0..2 {
            rig.run(volume, Op::Read, Extent::new(0, case.capacity), 0);
        }
    }
}

#[test]
fn the_mode_changes_under_load_and_cleaning_leaves_the_disk_complete() {
    for map in maps() {
        for is_in_place in [true, false] {
            let mut rng = seeded(7);
            let mut rig = Rig::new(&Case::new(8192, Mode::WriteBack, map, 24, is_in_place), true);
            for _ in 0..40 {
                rig.cache.set_mode(Mode::ALL[below(&mut rng, 5) as usize]);
                for _ in 0..25 {
                    rig.step(&mut rng);
                    rig.check_counts();
                }
                if !is_in_place {
                    rig.check_cut(7);
                }
            }
            rig.cache.set_mode(Mode::PassThrough);
            while rig.cache.dirty() > 0 {
                assert_ne!(rig.cache.clean(3, SimTime::ZERO).expect("no error"), 0);
            }
            for (disk, model) in rig.disks.iter().zip(&rig.model) {
                assert!(disk.state.lock().unwrap().now == *model, "the disk alone is what the volume was");
            }
        }
    }
}

#[test]
fn a_cache_without_bytes_does_and_counts_the_same() {
    for case in cases() {
        let [mut with, mut without] = [true, false].map(|keeps| Rig::new(&case, keeps));
        let mut rngs = [seeded(5), seeded(5)];
        for _ in 0..((10 << 20) / case.capacity).clamp(10, 100) {
            with.step(&mut rngs[0]);
            without.step(&mut rngs[1]);
        }
        assert_eq!(with.cache.counters(), without.cache.counters(), "{case:?}");
        assert_eq!(with.cache.fast_counts(), without.cache.fast_counts(), "{case:?}");
        for volume in 0..2 {
            assert_eq!(with.cache.disk_counts(volume), without.cache.disk_counts(volume), "{case:?}");
            assert_eq!(with.cache.host_counts(volume), without.cache.host_counts(volume), "{case:?}");
        }
    }
}

#[test]
fn whole_blocks_hit_as_in_a_plain_list_and_the_stores_were_asked_no_more_than_that() {
    let (slots, block) = (50, 4096);
    let case = Case::new(block, Mode::WriteBack, Map::Full, slots, true);
    let mut rig = Rig::new(&case, true);
    let mut rng = seeded(11);
    let mut list: Vec<u64> = Vec::new();
    let (mut hits, mut writes, mut reads, mut missed_reads) = (0, 0, 0, 0);
    for _ in 0..5000 {
        // The smaller of two draws, so that some blocks are asked for more often.
        let key = below(&mut rng, 120).min(below(&mut rng, 120));
        let is_read = below(&mut rng, 2) == 0;
        let found = list.iter().position(|other| *other == key);
        if let Some(place) = found {
            list.remove(place);
        } else if list.len() == slots as usize {
            list.remove(0);
        }
        list.push(key);
        hits += u64::from(found.is_some());
        reads += u64::from(is_read);
        writes += u64::from(!is_read);
        missed_reads += u64::from(is_read && found.is_none());
        let extent = Extent::new(key * u64::from(block), u64::from(block));
        rig.run(0, if is_read { Op::Read } else { Op::Write }, extent, key as u8);
    }
    let counts = rig.cache.counters().total();
    assert_eq!(counts.piece_hits(), hits);
    assert_eq!((counts.read_piece_misses, counts.read_piece_partial_hits), (missed_reads, 0));
    assert_eq!(counts.bypass.total_reads() + counts.bypass.total_writes(), 0);
    let inserted = counts.read_insertions + counts.write_insertions;
    assert_eq!(inserted - counts.replacements(), u64::from(rig.cache.used()));
    let (fast, disk) = (rig.cache.fast_counts(), rig.cache.disk_counts(0));
    assert_eq!((disk.reads, disk.writes), (missed_reads, counts.dirty_replacements));
    assert_eq!((fast.reads, fast.writes), (counts.read_piece_hits + counts.cleanings, writes + missed_reads));
    assert_eq!(reads, counts.read_piece_hits + counts.read_piece_misses);
}

#[test]
fn a_read_over_many_missing_blocks_is_one_command_for_the_disk() {
    let mut rig = Rig::new(&Case::new(4096, Mode::WriteThrough, Map::Full, 64, false), true);
    rig.run(0, Op::Read, Extent::new(1536, 40_960), 0);
    let disk = rig.cache.disk_counts(0);
    assert_eq!(
        (disk.reads, disk.read_bytes),
        (1, 40_960),
        "sub-blocks are 512 bytes, so nothing is read beside"
    );
    rig.run(0, Op::Read, Extent::new(1536, 40_960), 0);
    assert_eq!(rig.cache.disk_counts(0).reads, 1, "all of it is cached, the parts of blocks too");
    rig.run(0, Op::Read, Extent::new(0, 4096), 0);
    let disk = rig.cache.disk_counts(0);
    assert_eq!((disk.reads, disk.read_bytes), (2, 40_960 + 1536), "only what was missing of the first block");
}

#[test]
fn a_discard_over_both_layers_reaches_the_fast_store_with_the_commit() {
    let mut rig = Rig::new(&Case::new(4096, Mode::WriteBack, Map::Full, 64, false), true);
    rig.run(0, Op::Write, Extent::new(0, 16_384), 1);
    rig.run(0, Op::Flush, Extent::new(0, 0), 0);
    rig.run(0, Op::Trim, Extent::new(0, 8192), 0);
    assert_eq!(rig.cache.used(), 2);
    assert_eq!(rig.cache.fast_counts().trims, 0, "committed entries refer to the data still");
    rig.run(0, Op::Flush, Extent::new(0, 0), 0);
    assert_eq!(rig.cache.fast_counts().trim_bytes, 8192);
    assert_eq!(rig.cache.disk_counts(0).trim_bytes, 8192);
}

#[test]
fn a_restored_cache_serves_what_it_held() {
    let case = Case::new(4096, Mode::WriteBack, Map::Linear { ways: 4 }, 24, false);
    let mut rig = Rig::new(&case, true);
    let mut rng = seeded(3);
    for _ in 0..300 {
        rig.step(&mut rng);
    }
    rig.run(0, Op::Flush, Extent::new(0, 0), 0);
    rig.run(1, Op::Flush, Extent::new(0, 0), 0);
    let entries: Vec<(u32, Entry)> =
        rig.journal.entries.lock().unwrap().committed.iter().map(|(slot, entry)| (*slot, *entry)).collect();
    assert!(entries.len() > 5);
    rig.cache = cache(&case, &rig.fast, &rig.disks, &rig.journal);
    assert_eq!(rig.cache.restore(entries.iter().copied()), []);
    rig.cache.check_invariants();
    assert_eq!(rig.cache.used() as usize, entries.len());
    for volume in 0..2 {
        rig.run(volume, Op::Read, Extent::new(0, case.capacity), 0);
    }
    rig.cache = cache(&case, &rig.fast, &rig.disks, &rig.journal);
    let (slot, entry) = entries[0];
    let elsewhere = Entry { key: BlockKey::new(5, 0), ..entry };
    let bad = [(slot, entry), (slot, entry), (slot + 1, entry), (9999, entry), (slot, elsewhere)];
    assert_eq!(rig.cache.restore(bad), bad[1..], "each slot and each block once, and only what is there");
    rig.cache.check_invariants();
}

#[test]
fn what_does_not_fit_is_refused_with_its_value() {
    let case = Case::new(4096, Mode::WriteBack, Map::Full, 8, false);
    let mut rig = Rig::new(&case, true);
    let mut ask = |volume, offset, len, bytes: usize| {
        let command = BlockCommand::new(Op::Write, Extent::new(offset, len), Hint::default());
        rig.cache.submit(volume, command, Payload::Write(&vec![0; bytes]), SimTime::ZERO)
    };
    assert_eq!(ask(2, 0, 512, 512), Err(CacheError::NoVolume(2)));
    assert!(matches!(ask(0, case.capacity, 512, 512), Err(CacheError::OutOfRange { .. })));
    assert!(matches!(ask(0, u64::MAX - 511, 512, 512), Err(CacheError::OutOfRange { .. })));
    assert!(matches!(ask(0, 0, 0, 0), Err(CacheError::OutOfRange { .. })));
    assert_eq!(
        ask(0, 100, 512, 512),
        Err(CacheError::Unaligned { extent: Extent::new(100, 512), unit: 512 })
    );
    assert_eq!(ask(0, 0, 1024, 512), Err(CacheError::Payload { expected: 1024, got: 512 }));
    let fast = |unit| Box::new(Memory::new(4096 + 8 * 4096, unit, true));
    for (block_bytes, unit, slots, map) in [
        (3000, 512, 8, Map::Full),
        (2 << 20, 512, 8, Map::Full),
        (4096, 8192, 8, Map::Full),
        (4096, 520, 8, Map::Full),
        (4096, 512, 9, Map::Full),
        (4096, 512, 0, Map::Full),
        (4096, 512, 8, Map::Linear { ways: 0 }),
    ] {
        let setup = Setup { block_bytes, mode: Mode::WriteBack, map, seed: 0 };
        let journal = Box::new(Journal::new(slots, block_bytes, false));
        let made = Cache::<Lru>::new(fast(unit), journal, &setup, |_, _| Lru::default());
        assert!(matches!(made, Err(CacheError::Setup { .. })), "{block_bytes} {unit} {slots} {map:?}");
    }
}

#[test]
fn a_slot_takes_twelve_bytes_beside_its_policy() {
    let slots = 100_000;
    let case = Case::new(4096, Mode::WriteBack, Map::Full, slots, false);
    let rig = Rig::new(&case, false);
    let memory = rig.cache.memory();
    let own = memory.index + memory.slots + memory.marks;
    assert!(own <= u64::from(slots) * 12 + 256, "{own} bytes for {slots} slots");
}

/// Files take no time of the model, so nothing is ever under way to them, by which policies limit themselves.
#[test]
fn stores_that_take_no_time_are_cleaned_in_batches_between_the_requests() {
    const MS: u64 = 1_000_000;
    for (batch, pairs) in [
        (64, &[("cleaning", "watermarks"), ("clean_high", "10%"), ("clean_low", "0")][..]),
        (16, &[("cleaning", "pi-rate"), ("rate_target", "0"), ("rate_idle", "10ms")]),
        (100, &[("cleaning", "alru"), ("alru_stale", "0s"), ("alru_activity", "10ms"), ("alru_wake", "1ms")]),
    ] {
        let pairs = pairs.iter().chain(&[("admission", "all"), ("size", "4096b"), ("eviction", "lru")]);
        let typed = pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let design = Design::parse("", &typed).unwrap();
        let disk = Memory::new(16 << 20, 512, false);
        let fast = Box::new(Memory::new(64 << 20, 512, false));
        let disks = vec![Disk { store: Box::new(disk.clone()), uuid: [1; 16] }];
        let mut cache = design.create(fast, disks, [9; 16], SimTime::ZERO).unwrap().cache;
        let (mut at, mut written) = (SimTime(MS), 0);
        // Every other block, so that each is a disk write of its own.
        let mut writes = |what: &str, most: u64| {
            let now = disk.state.lock().unwrap().counts.writes;
            assert!(
                now - written <= most,
                "{}: {what}: {} disk writes at once",
                design.text(),
                now - written
            );
            let since = now - written;
            written = now;
            since
        };
        let mut busy = 0;
        for block in 0..2000 {
            at += 10_000;
            let extent = Extent::new(block * 8192, 4096);
            let command = BlockCommand::new(Op::Write, extent, Hint::default());
            cache.submit(0, command, Payload::None, at).unwrap();
            busy += writes("a request", batch);
        }
        // 20 ms.
        assert!(busy <= 5 * batch, "{}: {busy} disk writes under load", design.text());
        for _ in 0..2000 {
            Subsystem::idle(&mut cache, at, at + 100 * MS).unwrap();
            at += 100 * MS;
            writes("100 ms without a request", 21 * batch);
        }
        // Every block was cached and dirty, and is written once. Watermarks leave what is below the high one.
        let dirty = u64::from(cache.dirty());
        assert!(dirty <= 409, "{}: {dirty} dirty", design.text());
        let cleaned = disk.state.lock().unwrap().counts.writes;
        assert_eq!(cleaned + dirty, 2000, "{}: {cleaned} cleaned, {dirty} dirty", design.text());
    }
}
