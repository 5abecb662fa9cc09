//! When commands are answered, and when the stores are asked for what follows from them.
//!
//! The stores serve one request after another and say at once when it ends, so every time is computed by
//! hand. Of 4 KiB the fast store reads in 2 us and writes in 4 us, the disk does either in 1 ms.

use crate::support;

use nandscape_cache::CacheCounters;
use nandscape_cache::{Cache, Mode, Setup};
use nandscape_core::command::Payload;
use nandscape_core::ftl::Hint;
use nandscape_core::{BlockCommand, Clocked, Completion, Extent, Op, SimTime, Subsystem, Token};
use nandscape_disk::decorate::Shared;
use nandscape_disk::ram::RamSpeed;
use nandscape_disk::{Keep, RamDisk};
use nandscape_policies::Map;
use support::{Journal, Lru};

const BLOCK: u64 = 4096;
const READ: u64 = 2_048;
const WRITE: u64 = 4_096;
const DISK: u64 = 1_024_000;

fn store(request_ns: [u64; 2], capacity: u64) -> Shared<RamDisk> {
    // 4 KiB take the rest of the time.
    let rate = |ns: u64| BLOCK * 1_000_000_000 / ns;
    let speed = RamSpeed {
        request_ns: 0,
        jump_ns: 0,
        read_bytes_per_s: rate(request_ns[0]),
        write_bytes_per_s: rate(request_ns[1]),
    };
    Shared::new(RamDisk::new(capacity, speed, Keep::Nothing))
}

struct Rig {
    cache: Cache<Lru>,
    fast: Shared<RamDisk>,
    disk: Shared<RamDisk>,
}

impl Rig {
    fn new(mode: Mode, slots: u32, journal: impl FnOnce(&mut Journal)) -> Self {
        let fast = store([READ, WRITE], BLOCK * u64::from(slots + 1));
        let disk = store([DISK, DISK], 1 << 30);
        let mut metadata = Journal::new(slots, BLOCK as u32, true);
        journal(&mut metadata);
        let setup = Setup { block_bytes: BLOCK as u32, mode, map: Map::Full, seed: 1 };
        let mut cache = Cache::new(Box::new(fast.clone()), Box::new(metadata), &setup, |_, _| Lru::default())
            .expect("a cache");
        cache.attach(Box::new(disk.clone())).expect("a volume");
        Self { cache, fast, disk }
    }

    fn submit(&mut self, op: Op, block: u64, at: u64) -> Token {
        let extent = if op == Op::Flush { Extent::new(0, 0) } else { Extent::new(block * BLOCK, BLOCK) };
        self.part(op, extent, at)
    }

    fn part(&mut self, op: Op, extent: Extent, at: u64) -> Token {
        let command = BlockCommand::new(op, extent, Hint::default());
        self.cache.submit(0, command, Payload::None, SimTime(at)).expect("no error")
    }

    /// When a command is answered, if nothing else comes.
    fn answered(&mut self, op: Op, block: u64, at: u64) -> u64 {
        let token = self.submit(op, block, at);
        self.end(token)
    }

    fn end(&mut self, token: Token) -> u64 {
        self.ends([token])[0]
    }

    /// When each of these is answered.
    fn ends<const N: usize>(&mut self, tokens: [Token; N]) -> [u64; N] {
        let mut ends = tokens.map(|token| self.cache.completion(token).map_or(u64::MAX, |at| at.0));
        let mut missing = 0;
        for (tag, token) in (0..).zip(tokens).filter(|(tag, _)| ends[*tag as usize] == u64::MAX) {
            self.cache.watch(token, tag);
            missing += 1;
        }
        let mut out: Vec<Completion> = Vec::new();
        while out.len() < missing {
            let next = self.cache.next_event().expect("something is under way");
            self.cache.advance(next, &mut out);
        }
        assert!(out.is_sorted_by_key(|done| done.at), "{out:?}");
        for done in out {
            ends[done.tag as usize] = done.at.0;
        }
        ends
    }

    fn counts(&self) -> [u64; 4] {
        use nandscape_core::Store;
        let (fast, disk) = (self.fast.counts(), self.disk.counts());
        [fast.reads, fast.writes, disk.reads, disk.writes]
    }
}

#[test]
fn a_read_waits_for_what_it_reads_and_the_fill_goes_on_by_itself() {
    let mut rig = Rig::new(Mode::WriteBack, 8, |_| {});
    assert_eq!(rig.answered(Op::Read, 1, 0), DISK, "a miss: the disk");
    // The fill takes the fast store from then on; a hit in the middle of it comes after it.
    assert_eq!(rig.answered(Op::Read, 1, DISK + 1_000), DISK + WRITE + READ);
    assert_eq!(rig.answered(Op::Read, 1, 2 * DISK), 2 * DISK + READ, "a hit: the fast store");
    assert_eq!(rig.counts(), [2, 1, 1, 0]);
}

#[test]
fn a_hit_on_a_block_that_is_being_filled_waits_for_the_disk_read() {
    let mut rig = Rig::new(Mode::WriteBack, 8, |_| {});
    let miss = rig.submit(Op::Read, 1, 0);
    let (read, write) = (rig.submit(Op::Read, 1, 10_000), rig.submit(Op::Write, 1, 20_000));
    assert_eq!(
        (rig.cache.counters().total().read_piece_hits, rig.cache.counters().total().write_piece_hits),
        (1, 1)
    );
    assert_eq!(rig.cache.completion(miss), Some(SimTime(DISK)));
    let ends = rig.ends([read, write]);
    assert_eq!(
        ends,
        [DISK + WRITE + READ, DISK + WRITE + READ + WRITE],
        "first the fill, then what came later"
    );
    rig.cache.check_invariants();
}

#[test]
fn a_write_is_answered_by_the_cache_or_by_both() {
    let mut rig = Rig::new(Mode::WriteBack, 8, |_| {});
    assert_eq!(rig.answered(Op::Write, 1, 0), WRITE);
    rig.cache.set_mode(Mode::WriteThrough);
    assert_eq!(rig.answered(Op::Write, 2, 10_000), 10_000 + DISK, "both at the same time");
    assert_eq!(rig.answered(Op::Read, 2, 20_000), 20_000 + READ, "though the disk has not answered");
    rig.cache.set_mode(Mode::WriteAround);
    assert_eq!(rig.answered(Op::Write, 2, 30_000), 10_000 + 2 * DISK);
    assert_eq!(rig.counts(), [1, 2, 0, 2]);
}

#[test]
fn a_write_to_a_part_of_a_sub_block_waits_for_the_rest_of_it() {
    let fast = store([READ, WRITE], 17 * 16 * BLOCK);
    let disk = store([DISK, DISK], 1 << 30);
    let setup = Setup { block_bytes: 16 << 10, mode: Mode::WriteBack, map: Map::Full, seed: 1 };
    let metadata = Journal::new(16, 16 << 10, true);
    let mut cache =
        Cache::<Lru>::new(Box::new(fast.clone()), Box::new(metadata), &setup, |_, _| Lru::default()).unwrap();
    cache.attach(Box::new(disk.clone())).unwrap();
    let mut rig = Rig { cache, fast, disk };
    // Of the sub-block of 1 KiB, which the disk reads in a quarter of the time.
    let token = rig.part(Op::Write, Extent::new(0, 512), 0);
    assert_eq!(rig.end(token), DISK / 4 + WRITE / 4 + WRITE / 8);
    let token = rig.part(Op::Write, Extent::new(512, 512), DISK);
    assert_eq!(rig.end(token), DISK + WRITE / 8, "the sub-block is there");
}

#[test]
fn a_dirty_block_is_on_the_disk_before_its_slot_is_written() {
    let mut rig = Rig::new(Mode::WriteBack, 2, |_| {});
    // Neighbours would go to the disk together.
    for block in [10, 1] {
        rig.submit(Op::Write, block, 0);
    }
    assert_eq!(rig.answered(Op::Write, 20, 10_000), 10_000 + READ + DISK + WRITE);
    // The disk read comes behind that: a read of the block that went out sees it there.
    let later = 5 * DISK;
    let evicting = rig.submit(Op::Write, 30, later);
    let reading = rig.submit(Op::Read, 1, later);
    let ends = rig.ends([evicting, reading]);
    assert_eq!(ends, [later + READ + DISK + WRITE, later + READ + DISK + DISK]);
    rig.cache.check_invariants();
}

#[test]
fn a_flush_is_a_flush_of_the_data_the_metadata_and_their_flush() {
    let mut rig = Rig::new(Mode::WriteBack, 8, |journal| journal.record = BLOCK as usize);
    rig.answered(Op::Write, 1, 0);
    assert_eq!(rig.answered(Op::Flush, 0, 10_000), 10_000 + WRITE, "one block of metadata");
    assert_eq!(rig.answered(Op::Flush, 0, 20_000), 20_000, "nothing to do");
    // Behind a write that has not ended.
    rig.submit(Op::Write, 2, 30_000);
    let first = rig.submit(Op::Flush, 0, 30_001);
    let second = rig.submit(Op::Flush, 0, 30_002);
    let ends = rig.ends([first, second]);
    assert_eq!(ends, [30_000 + WRITE + WRITE; 2], "the second has nothing to do, and waits for the first");
    assert_eq!(rig.cache.counters().total().metadata_commits, 2);
}

#[test]
fn a_flush_does_not_wait_for_reads_of_others() {
    let mut rig = Rig::new(Mode::WriteBack, 8, |journal| journal.record = BLOCK as usize);
    // What the disk was asked before is nobody's business any more.
    rig.submit(Op::Flush, 0, 0);
    rig.submit(Op::Read, 1, 0);
    rig.submit(Op::Write, 2, 0);
    assert_eq!(rig.answered(Op::Flush, 0, 10_000), 10_000 + WRITE, "the fill is not part of it");
    assert_eq!(rig.answered(Op::Flush, 0, 2 * DISK), 2 * DISK + WRITE, "now it is");
    assert_eq!(rig.cache.counters().total().metadata_commits, 2);
    // But of a block that is written while it is being filled, all is committed.
    rig.submit(Op::Read, 3, 3 * DISK);
    rig.submit(Op::Write, 3, 3 * DISK);
    assert_eq!(rig.answered(Op::Flush, 0, 3 * DISK + 1), 4 * DISK + WRITE + WRITE + WRITE);
}

#[test]
fn synchronous_metadata_delay_the_write_that_changed_them() {
    let mut rig = Rig::new(Mode::WriteBack, 8, |journal| {
        (journal.record, journal.is_synchronous) = (BLOCK as usize, true);
    });
    assert_eq!(rig.answered(Op::Write, 1, 0), WRITE + WRITE);
    assert_eq!(rig.answered(Op::Write, 1, 10_000), 10_000 + WRITE, "it is dirty already");
}

#[test]
fn counters_begin_anew_and_what_is_cached_stays() {
    let mut rig = Rig::new(Mode::WriteBack, 8, |_| {});
    rig.submit(Op::Read, 1, 0);
    rig.submit(Op::Write, 2, 0);
    Subsystem::reset_counters(&mut rig.cache, SimTime::ZERO);
    assert_eq!(rig.counts(), [0; 4]);
    assert_eq!(rig.cache.counters(), CacheCounters::new(1));
    assert_eq!((rig.cache.used(), rig.cache.dirty()), (2, 1));
    assert_eq!(rig.answered(Op::Read, 1, 0), READ, "time begins anew, too");
    assert_eq!(rig.answered(Op::Read, 2, 0), 2 * READ);
}
