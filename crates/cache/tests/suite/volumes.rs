//! Volumes come, share the cache, and leave with all that is theirs.

use crate::rig;

use nandscape_cache::engine::Disk;
use nandscape_cache::{Cache, CacheError, Mode};
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockCommand, Clocked, Extent, Hint, Op, SimTime, Store};
use nandscape_disk::{Joined, Keep, Layout};
use nandscape_policies::BlockKey;
use nandscape_policies::admission::Bypass;
use nandscape_policies::eviction::{AnyEviction, EVICTIONS, EvictionSpec};
use rig::{design, store};

const BLOCK: u64 = 4096;

struct Rig {
    cache: Cache<AnyEviction>,
    models: Vec<Vec<u8>>,
    at: SimTime,
}

impl Rig {
    fn new(pairs: &[(&str, &str)], volumes: u8, fast: Box<dyn Store + Send>) -> Self {
        let disk = |id| Disk { store: store("ram", 4 << 20, Keep::Bytes), uuid: [id; 16] };
        let mut all = vec![("admission", "all"), ("size", "256b"), ("cleaning", "none")];
        all.extend(pairs);
        let started = design(&all).create(fast, (0..volumes).map(disk).collect(), [9; 16], SimTime::ZERO);
        let started = started.expect("a cache");
        Self { cache: started.cache, models: vec![vec![0; 4 << 20]; volumes.into()], at: started.at }
    }

    fn write(&mut self, volume: u16, block: u64, fill: u8) {
        let command = BlockCommand::new(Op::Write, Extent::new(block * BLOCK, BLOCK), Hint::default());
        let bytes = vec![fill; BLOCK as usize];
        self.at += 100_000;
        self.cache.submit(volume, command, Payload::Write(&bytes), self.at).expect("no error");
        let start = (block * BLOCK) as usize;
        self.models[usize::from(volume)][start..start + BLOCK as usize].fill(fill);
    }

    fn check(&mut self, volume: u16, block: u64) {
        let command = BlockCommand::new(Op::Read, Extent::new(block * BLOCK, BLOCK), Hint::default());
        let mut bytes = vec![1; BLOCK as usize];
        self.at += 100_000;
        self.cache.submit(volume, command, Payload::Read(&mut bytes), self.at).expect("no error");
        let start = (block * BLOCK) as usize;
        assert!(bytes == self.models[usize::from(volume)][start..start + BLOCK as usize], "{volume}:{block}");
    }

    fn pass(&mut self, ns: u64) {
        self.at += ns;
        self.cache.advance(self.at, &mut Vec::new());
    }
}

#[test]
fn another_eviction_policy_takes_over_what_is_cached_in_its_order() {
    for info in EVICTIONS {
        let mut rig = Rig::new(&[("eviction", "lru"), ("victims", "any")], 1, ram());
        for block in 0..256 {
            rig.write(0, block, block as u8);
        }
        // The oldest by its arrival, and not by its use. Some leave together.
        rig.check(0, 0);
        let spec = EvictionSpec::parse(info.name).unwrap();
        rig.cache.set_evictions(|ways, seed| AnyEviction::new(&spec, ways, seed), 3);
        rig.cache.check_invariants();
        assert_eq!(rig.cache.used(), 256, "{}", info.name);
        if info.name == "fifo" {
            rig.write(0, 300, 1);
            let is_there = |block| rig.cache.entry(BlockKey::new(0, block)).is_some();
            assert_eq!([0, 1, 200].map(is_there), [true, false, true]);
        }
        for step in 0..1000 {
            rig.write(0, step * 7 % 1000, step as u8);
            rig.check(0, step * 13 % 1000);
        }
        rig.cache.check_invariants();
        (0..1024).for_each(|block| rig.check(0, block));
    }
}

#[test]
fn more_blocks_are_cleaned_at_once_than_a_commit_has_room_for() {
    const BLOCKS: u64 = 6000;
    let fast = store("ram", 64 << 20, Keep::Nothing);
    let disk = Disk { store: store("ram", BLOCKS * BLOCK, Keep::Nothing), uuid: [1; 16] };
    let pairs = [("admission", "all"), ("cleaning", "none"), ("metadata", "journal")];
    let started = design(&pairs).create(fast, vec![disk], [9; 16], SimTime::ZERO).expect("a cache");
    let (mut cache, mut at) = (started.cache, started.at);
    for block in 0..BLOCKS {
        at += 100_000;
        let command = BlockCommand::new(Op::Write, Extent::new(block * BLOCK, BLOCK), Hint::default());
        cache.submit(0, command, Payload::None, at).expect("no error");
    }
    let command = BlockCommand::FLUSH;
    cache.submit(0, command, Payload::None, at).expect("no error");
    assert_eq!(u64::from(cache.dirty()), BLOCKS);
    // A disk write has 256 neighbours, and they are clean in the metadata all at once.
    assert_eq!(cache.drain(None, u32::MAX, at).expect("no error"), BLOCKS as u32);
    assert_eq!(cache.dirty(), 0);
    cache.check_invariants();
    cache.close(at).expect("no error");
}

fn ram() -> Box<dyn Store + Send> {
    store("ram", 4 << 20, Keep::Bytes)
}

#[test]
fn a_volume_holds_no_more_than_its_quota_and_others_keep_theirs() {
    for pairs in [&[("map", "full")][..], &[("map", "linear"), ("ways", "32")]] {
        let mut rig = Rig::new(pairs, 2, ram());
        rig.cache.set_quota(0, Some(50)).expect("there is such a volume");
        for block in 0..100 {
            rig.write(1, block, 1);
        }
        let held = rig.cache.held(1);
        for block in 0..400 {
            rig.write(0, block, block as u8);
            rig.check(0, block / 2);
            assert!(rig.cache.held(0) <= 50);
        }
        rig.cache.check_invariants();
        assert_eq!(rig.cache.held(0), 50, "{pairs:?}");
        // Blocks of a set that both have make room for each other still.
        assert!(rig.cache.held(1) == held || pairs.len() > 1, "{} of {held}", rig.cache.held(1));
        rig.cache.set_quota(0, Some(0)).expect("there is such a volume");
        let before = rig.cache.counters().volumes[0].bypass.write_pieces[Bypass::Quota.index()];
        for block in 500..600 {
            rig.write(0, block, 3);
        }
        let bypassed = rig.cache.counters().volumes[0].bypass.write_pieces[Bypass::Quota.index()] - before;
        assert_eq!(bypassed, 100, "nothing may enter any more");
        for block in 0..600 {
            rig.check(0, block);
        }
        assert_eq!(rig.cache.set_quota(2, None), Err(CacheError::NoVolume(2)));
    }
}

#[test]
fn a_cache_shrinks_by_eviction_and_grows_again() {
    let mut rig = Rig::new(&[], 1, ram());
    for block in 0..300 {
        rig.write(0, block, block as u8);
    }
    assert!(rig.cache.used() > 150);
    rig.cache.set_limit(100);
    let mut left = u32::MAX;
    while left > 0 {
        let now = rig.cache.shrink(20, rig.at).expect("no error");
        assert!(now < left, "it goes on");
        left = now;
    }
    rig.cache.check_invariants();
    assert_eq!(rig.cache.used(), 100);
    for block in 300..500 {
        rig.write(0, block, 7);
        assert!(rig.cache.used() <= 100);
    }
    rig.cache.set_limit(u32::MAX);
    for block in 0..500 {
        rig.check(0, block);
    }
    assert!(rig.cache.used() > 150);
}

#[test]
fn a_volume_leaves_when_it_is_clean_and_its_disk_is_complete() {
    for metadata in ["journal", "slots"] {
        let mut rig = Rig::new(&[("metadata", metadata)], 2, ram());
        let mut rng = seeded(6);
        for _ in 0..500 {
            rig.write(below(&mut rng, 2) as u16, below(&mut rng, 300), below(&mut rng, 256) as u8);
        }
        let dirty = rig.cache.dirty_of(0);
        assert!(dirty > 20);
        let refused = rig.cache.detach(0, rig.at).err().expect("it is dirty").to_string();
        assert_eq!(
            refused,
            format!("dirty blocks of the volume = {dirty}: expected 0: they are written to the disk first")
        );
        let mut drained = 0;
        while rig.cache.dirty_of(0) > 0 {
            drained += rig.cache.drain(Some(0), 16, rig.at).expect("no error");
            rig.pass(1_000_000);
        }
        assert_eq!(drained, dirty);
        let others = rig.cache.dirty_of(1);
        assert!(others > 0, "the other volume's stay");
        let mut disk = rig.cache.detach(0, rig.at).expect("it is clean");
        rig.cache.check_invariants();
        let mut bytes = vec![1; 4 << 20];
        let all = BlockCommand::new(Op::Read, Extent::new(0, 4 << 20), Hint::default());
        disk.submit(all, Payload::Read(&mut bytes), rig.at).expect("no error");
        assert!(bytes == rig.models[0], "the disk alone is what the volume was");
        assert_eq!((rig.cache.held(0), rig.cache.dirty_of(1)), (0, others));
        assert_eq!(rig.cache.attached().collect::<Vec<_>>(), [1]);
        let read = BlockCommand::new(Op::Read, Extent::new(0, BLOCK), Hint::default());
        let asked = rig.cache.submit(0, read, Payload::Read(&mut bytes[..4096]), rig.at);
        assert_eq!(asked, Err(CacheError::NoVolume(0)));
        assert_eq!(rig.cache.detach(0, rig.at).err(), Some(CacheError::NoVolume(0)));
        // Another disk takes its number.
        assert_eq!(rig.cache.attach(store("ram", 4 << 20, Keep::Bytes)).expect("it fits"), 0);
        rig.models[0].fill(0);
        for block in 0..300 {
            rig.check(0, block);
            rig.check(1, block);
        }
        assert_eq!(rig.cache.counters().volumes[0].reads, 300);
    }
}

#[test]
fn a_cache_that_is_to_hold_nothing_dirty_is_drained_while_it_is_used() {
    let mut rig = Rig::new(&[], 1, ram());
    for block in 0..100 {
        rig.write(0, block, 5);
    }
    rig.cache.set_mode(Mode::WriteThrough);
    let mut steps = 0;
    while rig.cache.dirty() > 0 {
        rig.cache.drain(None, 10, rig.at).expect("no error");
        rig.write(0, 1000 - steps, 6);
        rig.check(0, steps);
        steps += 1;
    }
    assert_eq!(steps, 10);
    let writes = rig.cache.disk_counts(0).writes;
    assert_eq!(writes, 10 + 10, "neighbours together, and the writes through");
}

#[test]
fn several_fast_stores_are_one_cache() {
    for layout in [Layout::Striped(65_536), Layout::Concatenated] {
        let stores = (0..3).map(|_| store("rated", 1 << 20, Keep::Bytes)).collect();
        let joined = Joined::new(stores, layout).expect("they fit");
        let mut rig = Rig::new(&[("size", "500b")], 2, Box::new(joined));
        let mut rng = seeded(1);
        for _ in 0..2000 {
            let (volume, block) = (below(&mut rng, 2) as u16, below(&mut rng, 600));
            if below(&mut rng, 2) == 0 {
                rig.write(volume, block, below(&mut rng, 256) as u8);
            } else {
                rig.check(volume, block);
            }
        }
        rig.cache.check_invariants();
        let counters = rig.cache.counters().total();
        assert!(counters.read_hits > 100 && counters.replacements() > 100);
    }
}
