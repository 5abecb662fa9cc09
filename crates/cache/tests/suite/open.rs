//! Creating, removing and opening a cache over stores, with metadata of every kind.

use crate::support;

use nandscape_cache::engine::{Disk, Identity, Started};
use nandscape_cache::metadata::{KINDS, MetadataError};
use nandscape_cache::{Cache, CacheError, Mode, Setup};
use nandscape_core::command::Payload;
use nandscape_core::ftl::Hint;
use nandscape_core::{BlockCommand, Clocked, Extent, Op, SimTime, Store};
use nandscape_disk::{Keep, registry};
use nandscape_policies::{BlockKey, Map};
use std::collections::BTreeMap;
use support::{Lru, Memory};

const BLOCK: u32 = 4096;
const UUIDS: [[u8; 16]; 2] = [[1; 16], [2; 16]];

struct Rig {
    fast: Memory,
    disks: [Memory; 2],
}

impl Rig {
    fn new() -> Self {
        let disks = [1 << 20, (1 << 20) + 512].map(|bytes| Memory::new(bytes, 512, true));
        Self { fast: Memory::new(1 << 20, 512, true), disks }
    }

    fn disk(&self, number: usize) -> Disk {
        Disk { store: Box::new(self.disks[number].clone()), uuid: UUIDS[number] }
    }

    fn create(&self, kind: &str, setup: &Setup) -> Result<Started<Lru>, CacheError> {
        let identity =
            Identity { kind: kind.to_owned(), uuid: [9; 16], settings: "mode = \"write-back\"".to_owned() };
        let disks = vec![self.disk(0), self.disk(1)];
        Cache::create(Box::new(self.fast.clone()), disks, &identity, setup, lru, SimTime::ZERO)
    }

    fn open(&self, disks: &[usize], setup: &Setup) -> Result<Started<Lru>, CacheError> {
        let disks = disks.iter().map(|number| self.disk(*number)).collect();
        Cache::open(Box::new(self.fast.clone()), disks, setup, lru, SimTime::ZERO)
    }
}

fn lru(_: u32, _: u64) -> Lru {
    Lru::default()
}

fn setup(map: Map) -> Setup {
    Setup { block_bytes: BLOCK, mode: Mode::WriteBack, map, seed: 1 }
}

fn run(cache: &mut Cache<Lru>, volume: u16, op: Op, block: u64, payload: Payload<'_>) {
    let command = BlockCommand::new(op, extent(block), Hint::default());
    cache.submit(volume, command, payload, SimTime::ZERO).expect("no error");
}

fn extent(block: u64) -> Extent {
    Extent::new(block * u64::from(BLOCK), u64::from(BLOCK))
}

#[test]
fn a_removed_cache_comes_back_with_all_blocks_whatever_the_order_of_the_disks() {
    for kind in KINDS.iter().map(|kind| kind.info.name) {
        let (rig, setup) = (Rig::new(), setup(Map::Full));
        let mut started = rig.create(kind, &setup).expect("a cache");
        run(&mut started.cache, 0, Op::Write, 3, Payload::Write(&[3; 4096]));
        run(&mut started.cache, 1, Op::Write, 3, Payload::Write(&[4; 4096]));
        run(&mut started.cache, 1, Op::Read, 7, Payload::Read(&mut [0; 4096]));
        let keys = [BlockKey::new(0, 3), BlockKey::new(1, 3), BlockKey::new(1, 7)];
        let held = keys.map(|key| started.cache.entry(key));
        started.cache.close(SimTime::ZERO).expect("no error");
        let again = rig.open(&[1, 0], &setup);
        if kind == "none" {
            assert!(matches!(again, Err(CacheError::Metadata(MetadataError::Absent))));
            continue;
        }
        let mut again = again.unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert!(again.report.is_clean && again.report.entries == 3, "{kind}: {}", again.report);
        assert_eq!(again.superblock.expect("a root").settings, "mode = \"write-back\"");
        assert_eq!(keys.map(|key| again.cache.entry(key)), held, "{kind}");
        again.cache.check_invariants();
        for (volume, expected) in [(0, 3), (1, 4)] {
            let mut bytes = [0; 4096];
            run(&mut again.cache, volume, Op::Read, 3, Payload::Read(&mut bytes));
            assert_eq!(bytes, [expected; 4096], "{kind}, volume {volume}");
        }
        drop(again.cache);
        let third = rig.open(&[0, 1], &setup).expect("a cache");
        assert!(!third.report.is_clean, "{kind}: in use since, and not removed");
    }
}

#[test]
fn disks_that_are_not_the_caches_are_refused_and_nothing_is_written() {
    let (rig, setup) = (Rig::new(), setup(Map::Full));
    rig.create("journal", &setup).expect("a cache").cache.close(SimTime::ZERO).expect("no error");
    let before = rig.fast.state.lock().unwrap().now.clone();
    let refused = |disks: Vec<Disk>, setup: &Setup| {
        let fast = Box::new(rig.fast.clone());
        Cache::<Lru>::open(fast, disks, setup, lru, SimTime::ZERO).err().expect("an error").to_string()
    };
    let disk = |number, uuid| Disk { uuid, ..rig.disk(number) };
    assert_eq!(
        refused(vec![rig.disk(0)], &setup),
        format!("volume 1: no disk with uuid {} among those given", "02".repeat(16))
    );
    assert_eq!(
        refused(vec![rig.disk(0), rig.disk(1), disk(1, [7; 16])], &setup),
        format!("the disk with uuid {} is no volume of this cache", "07".repeat(16))
    );
    assert_eq!(
        refused(vec![disk(1, UUIDS[0]), disk(0, UUIDS[1])], &setup),
        "disk of volume 0: 1049088 bytes, expected 1048576 as when it was attached"
    );
    assert_eq!(
        refused(vec![rig.disk(0), rig.disk(1)], &Setup { block_bytes: 8192, ..setup.clone() }),
        "cache block = 8192: expected 4096, with which the cache was created"
    );
    assert!(rig.fast.state.lock().unwrap().now == before, "what is refused is as it was");
}

#[test]
fn another_map_drops_clean_blocks_that_do_not_fit_and_refuses_where_a_dirty_one_does_not() {
    for makes_dirty in [false, true] {
        let rig = Rig::new();
        let mut started = rig.create("journal", &setup(Map::Full)).expect("a cache");
        for block in 0..20 {
            if makes_dirty {
                run(&mut started.cache, 0, Op::Write, block, Payload::Write(&[block as u8; 4096]));
            } else {
                run(&mut started.cache, 0, Op::Read, block, Payload::Read(&mut [0; 4096]));
            }
        }
        started.cache.close(SimTime::ZERO).expect("no error");
        let other = setup(Map::ClusterHashed { ways: 3, cluster: 1 });
        match rig.open(&[0, 1], &other) {
            Err(error) => {
                assert!(makes_dirty && error.to_string().starts_with("dirty block of volume 0"), "{error}");
                assert_eq!(rig.open(&[0, 1], &setup(Map::Full)).expect("a cache").cache.used(), 20);
            }
            Ok(started) => {
                assert!(!makes_dirty && started.cache.used() < 20);
                drop(started);
                // What did not fit is forgotten for good: its slots may have been used since.
                let used = rig.open(&[0, 1], &other).expect("a cache").cache.used();
                assert_eq!(rig.open(&[0, 1], &setup(Map::Full)).expect("a cache").cache.used(), used);
            }
        }
    }
}

/// What a loss of power now would leave of a cache whose disk reads take time, opened: which of `blocks` it
/// has, each with the bytes of the disk.
fn held_after_cut(fast: &Memory, blocks: std::ops::Range<u64>) -> Vec<u64> {
    let left = Memory::new(1 << 20, 512, true);
    left.state.lock().unwrap().now.clone_from(&fast.state.lock().unwrap().now);
    let disk = Disk { store: slow_disk(), uuid: UUIDS[0] };
    let opened = Cache::open(Box::new(left), vec![disk], &setup(Map::Full), lru, SimTime::ZERO);
    let mut cache = opened.expect("a cache").cache;
    let held = |cache: &Cache<Lru>, block: &u64| cache.entry(BlockKey::new(0, *block)).is_some();
    let held: Vec<u64> = blocks.filter(|block| held(&cache, block)).collect();
    for block in &held {
        let mut bytes = [0; BLOCK as usize];
        run(&mut cache, 0, Op::Read, *block, Payload::Read(&mut bytes));
        assert_eq!(bytes, [*block as u8; BLOCK as usize], "block {block} was not filled yet");
    }
    held
}

/// A disk that takes its time; each block holds its number.
fn slow_disk() -> Box<dyn Store + Send> {
    let mut disk = registry::build("disk", "disk.", &BTreeMap::new(), 1 << 20, Keep::Bytes).expect("a disk");
    for block in 0..disk.capacity_bytes() / u64::from(BLOCK) {
        let command = BlockCommand::new(Op::Write, extent(block), Hint::default());
        disk.apply(command, Payload::Write(&[block as u8; BLOCK as usize])).expect("no error");
    }
    disk
}

/// Reads that miss are under way while others write and flush: what is not filled yet is in no copy of the
/// table, although its block of the table is written.
#[test]
fn a_loss_of_power_while_blocks_are_filled_brings_back_none_that_was_not() {
    let fast = Memory::new(1 << 20, 512, true);
    let identity = Identity { kind: "journal".to_owned(), uuid: [9; 16], settings: String::new() };
    let disk = Disk { store: slow_disk(), uuid: UUIDS[0] };
    let setup = setup(Map::Full);
    let started = Cache::create(Box::new(fast.clone()), vec![disk], &identity, &setup, lru, SimTime::ZERO);
    let Started { mut cache, at, .. } = started.expect("a cache");
    let mut submit = |op, block, payload: Payload<'_>| {
        let extent = if op == Op::Flush { Extent::new(0, 0) } else { extent(block) };
        cache.submit(0, BlockCommand::new(op, extent, Hint::default()), payload, at).expect("no error");
    };
    for block in 0..8 {
        submit(Op::Read, 100 + block, Payload::Read(&mut [0; BLOCK as usize]));
        submit(Op::Write, block, Payload::Write(&[block as u8; BLOCK as usize]));
        submit(Op::Flush, 0, Payload::None);
        let written: Vec<u64> = (0..=block).collect();
        assert_eq!(held_after_cut(&fast, 0..200), written, "blocks from 100 on are still being read");
    }
    // Once they are there, they come back too.
    while let Some(next) = cache.next_event() {
        cache.advance(next, &mut Vec::new());
    }
    cache.check_invariants();
    let flush = BlockCommand::FLUSH;
    cache.submit(0, flush, Payload::None, SimTime(10_000_000_000)).expect("no error");
    assert_eq!(held_after_cut(&fast, 0..200), (0..8).chain(100..108).collect::<Vec<_>>());
}
