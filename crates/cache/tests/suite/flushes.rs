//! Which stores are flushed for what.

use crate::rig;

use nandscape_cache::engine::Disk;
use nandscape_cache::{Cache, Mode};
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Clocked, Extent, Hint, Op, SimTime, Subsystem};
use nandscape_disk::Keep;
use nandscape_policies::eviction::AnyEviction;
use rig::{design, store};

const BLOCK: u64 = 4096;

/// A cache in front of two disks.
struct Two {
    cache: Cache<AnyEviction>,
    at: SimTime,
}

impl Two {
    fn new(pairs: &[(&str, &str)], fast: &str, slow: &str) -> Self {
        let disk = |id| Disk { store: store(slow, 16 << 20, Keep::Nothing), uuid: [id; 16] };
        let mut all = vec![("admission", "all"), ("size", "256b"), ("cleaning", "none")];
        all.extend(pairs);
        let fast = store(fast, 4 << 20, Keep::Nothing);
        let started = design(&all).create(fast, vec![disk(1), disk(2)], [9; 16], SimTime::ZERO);
        let started = started.expect("a cache");
        let mut two = Self { cache: started.cache, at: started.at };
        two.cache.reset_counters(two.at);
        two
    }

    fn run(&mut self, volume: u16, op: Op, block: u64, is_durable: bool) {
        let len = if op == Op::Flush { 0 } else { BLOCK };
        let command = BlockCommand::new(op, Extent::new(block * len, len), Hint::default());
        let done = self.cache.submit(volume, BlockCommand { is_durable, ..command }, Payload::None, self.at);
        done.expect("no error");
        self.at += 1_000_000_000;
        self.cache.advance(self.at, &mut Vec::new());
    }

    fn write(&mut self, volume: u16, block: u64) {
        self.run(volume, Op::Write, block, false);
    }

    /// Flushes so far: of the cache device, and of both disks.
    fn flushes(&self) -> (u64, [u64; 2]) {
        let counters = self.cache.counters();
        (counters.shared.fast_flushes, [0, 1].map(|volume: usize| counters.volumes[volume].disk_flushes))
    }

    /// Flushes of both disks in this.
    fn of_disks(&mut self, act: impl FnOnce(&mut Self)) -> [u64; 2] {
        let before = self.flushes().1;
        act(self);
        let after = self.flushes().1;
        [after[0] - before[0], after[1] - before[1]]
    }
}

#[test]
fn a_flush_in_write_back_flushes_a_disk_only_for_what_hosts_wrote_there() {
    let mut two = Two::new(&[], "ram", "disk");
    for block in 0..8 {
        two.write(0, block);
    }
    let fast = two.flushes().0;
    assert_eq!(two.of_disks(|two| two.run(0, Op::Flush, 0, false)), [0, 0]);
    assert!(two.flushes().0 > fast, "the cache device is");
    two.cache.clean(8, two.at).unwrap();
    two.write(0, 9);
    let none = two.of_disks(|two| two.run(0, Op::Flush, 0, false));
    assert_eq!(none, [0, 0], "what was cleaned is dirty for the metadata");
    two.cache.set_mode(Mode::WriteAround);
    two.write(0, 10);
    two.cache.set_mode(Mode::WriteBack);
    assert_eq!(two.of_disks(|two| two.run(0, Op::Flush, 0, false)), [1, 0]);
    assert_eq!(two.of_disks(|two| two.run(0, Op::Flush, 0, false)), [0, 0], "once is enough");
}

#[test]
fn a_durable_write_flushes_what_it_was_written_to_and_nothing_else() {
    let mut two = Two::new(&[], "ram", "disk");
    two.cache.set_mode(Mode::WriteThrough);
    two.write(0, 1);
    assert_eq!(two.of_disks(|two| two.run(1, Op::Write, 1, true)), [0, 1]);
    two.cache.set_mode(Mode::WriteBack);
    two.write(1, 2);
    let fast = two.flushes().0;
    assert_eq!(two.of_disks(|two| two.run(1, Op::Write, 3, true)), [0, 0]);
    assert!(two.flushes().0 > fast, "data, then metadata");
    assert_eq!(two.of_disks(|two| two.run(0, Op::Trim, 1, true)), [1, 0], "a trim goes to the disk");
}

#[test]
fn blocks_that_leave_have_their_disk_flushed_once_for_many() {
    let mut two = Two::new(&[], "ram", "disk");
    // Twice what there is room for, all of it dirty.
    let [flushes, others] = two.of_disks(|two| (0..512).for_each(|block| two.write(0, block)));
    assert!((1..=64).contains(&flushes), "{flushes} flushes for 256 blocks that left");
    assert_eq!(others, 0);
    let mut two = Two::new(&[("flushing", "cache-device")], "ram", "disk");
    assert_eq!(two.of_disks(|two| (0..512).for_each(|block| two.write(0, block))), [0, 0]);
}

#[test]
fn requests_that_come_together_share_a_commit_and_each_is_answered() {
    for flushing in ["nothing", "both"] {
        let pairs = [("metadata", "slots"), ("flushing", flushing)];
        let mut two = Two::new(&pairs, "rated", "disk");
        let before = two.cache.counters().shared.metadata_commits;
        for block in 0..32 {
            let extent = Extent::new(block * BLOCK, BLOCK);
            let command = BlockCommand::new(Op::Write, extent, Hint::default());
            let token = two.cache.submit(0, command, Payload::None, two.at).unwrap();
            two.cache.watch(token, block);
        }
        let mut answers = Vec::new();
        while answers.len() < 32 {
            let next = two.cache.next_event().expect("an answer is still to come");
            two.cache.advance(next, &mut answers);
        }
        answers.sort_unstable_by_key(|answer| answer.tag);
        assert!(answers.iter().map(|answer| answer.tag).eq(0..32), "{flushing}: each once");
        assert!(answers.iter().all(|answer| answer.at > two.at), "{flushing}: none at once");
        let commits = two.cache.counters().shared.metadata_commits - before;
        assert_eq!(commits, 2, "{flushing}: the first, and all that came while it was under way");
        two.cache.check_invariants();
    }
}

#[test]
fn writes_that_had_to_be_durable_are_counted() {
    let mut two = Two::new(&[], "ram", "ram");
    two.write(0, 1);
    two.run(0, Op::Write, 2, true);
    two.run(1, Op::Write, 3, true);
    two.run(1, Op::Trim, 3, true);
    let volumes = two.cache.counters().volumes;
    assert_eq!([0, 1].map(|at: usize| (volumes[at].writes, volumes[at].forced_writes)), [(2, 1), (1, 1)]);
    let dirty = two.cache.dirty_by_volume();
    assert_eq!(dirty, [(2, 2 * BLOCK), (0, 0)]);
    assert_eq!([0, 1].map(|volume| u64::from(two.cache.dirty_of(volume))), [2, 0]);
}
