//! What is due, what waits and what is told to the metadata, with the metadata of a journal and stores that
//! take 100 ns for a command.

use super::late::Recorded;
use super::*;
use crate::engine::counting::Meter;
use crate::engine::directory::{Directory, Shape};
use crate::engine::timeline::{Bytes, FAST, Notice, Side};
use crate::metadata::{self, Entry, Setup, Sketch, Table, Volume};
use nandscape_core::{Extent, Op, Params, SimTime};
use nandscape_disk::ram::RamSpeed;
use nandscape_disk::{Keep, RamDisk};
use nandscape_policies::BlockKey;
use nandscape_policies::Map;
use nandscape_policies::eviction::{Build, lru::Lru};

const BYTES: u64 = 4 << 20;

struct Rig {
    durability: Durability,
    directory: Directory<Lru>,
    timeline: Timeline,
    meter: Meter,
}

impl Rig {
    fn new(kind: &str) -> Self {
        let volumes = vec![Volume { id: 0, uuid: [9; 16], bytes: 1 << 30, stamp: [0; 16] }];
        let settings = String::new();
        let setup = Setup {
            capacity_bytes: BYTES,
            store_block: 512,
            block_bytes: 4096,
            uuid: [1; 16],
            settings,
            volumes,
        };
        let metadata = metadata::create(kind, &setup, &mut Sketch::new(BYTES)).unwrap().metadata;
        let slots = metadata.slots();
        let speed =
            RamSpeed { request_ns: 100, jump_ns: 0, read_bytes_per_s: u64::MAX, write_bytes_per_s: u64::MAX };
        let side = |bytes| Side::new(Box::new(RamDisk::new(bytes, speed, Keep::Nothing)));
        let policies = vec![Lru::new(slots, &Params::defaults(&Lru::INFO), 0)];
        let mut directory = Directory::new(Shape::new(4096), 0, Map::Full, slots, policies);
        directory.attach(0, 1 << 30).unwrap();
        let mut durability = Durability::new(metadata, slots, true);
        durability.attach(0);
        let mut timeline = Timeline::new(side(BYTES));
        timeline.add(side(1 << 30));
        // What the stores were asked before they came here may be volatile still.
        timeline.flush(FAST, Moment::PAST).unwrap();
        timeline.flush(1, Moment::PAST).unwrap();
        timeline.drain();
        let mut meter = Meter::default();
        meter.attach();
        Self { durability, directory, timeline, meter }
    }

    fn commit(&mut self) -> Option<Moment> {
        let Self { durability, directory, timeline, meter } = self;
        durability.commit(&directory.slots, timeline, meter).unwrap()
    }

    fn put(&mut self, block: u64, dirty: u16) -> u32 {
        let slot = self.directory.slots.take(0).unwrap();
        self.directory.settle(slot, BlockKey::new(0, block));
        self.record(slot, 1, dirty);
        slot
    }

    fn record(&mut self, slot: u32, valid: u16, dirty: u16) {
        let Self { durability, directory, timeline, .. } = self;
        durability.record(&mut directory.slots, timeline, slot, valid, dirty);
    }

    fn leave(&mut self, slot: u32) -> bool {
        let Self { durability, directory, timeline, .. } = self;
        directory.take_out(slot);
        durability.leave(&mut directory.slots, timeline, slot, false, false)
    }

    /// The disk gets what is dirty in a slot, which is clean then.
    fn clean(&mut self, slot: u32, block: u64) {
        let extent = Extent::new(block << 12, 512);
        self.timeline.submit(1, Op::Write, extent, Bytes::None, Moment::PAST).unwrap();
        self.durability.note_disk_write(0, block, block + 1);
        self.record(slot, 1, 0);
    }

    fn recorded(&self, slot: u32) -> Option<Entry> {
        let Durability { late, filling, .. } = &self.durability;
        Recorded { slots: &self.directory.slots, late, filling }.entry(slot)
    }
}

#[test]
fn a_slot_of_a_committed_entry_is_free_only_with_the_next_commit() {
    let mut rig = Rig::new("journal");
    assert_eq!(rig.commit(), None, "nothing has changed");
    let (first, second) = (rig.put(1, 1), rig.put(2, 1));
    assert!(!rig.durability.must_move(first) && rig.durability.must_commit_first(first));
    assert!(rig.leave(second), "nobody was told of it");
    assert!(rig.commit().is_some());
    assert!(rig.durability.must_move(first) && !rig.durability.must_commit_first(first));
    assert!(!rig.leave(first));
    assert_eq!(rig.durability.reuse.limbo, [(first, false)]);
    let key = BlockKey::new(0, 1);
    assert!(rig.durability.reuse.left.has(rig.durability.reuse.place_of(key)));
    assert!(rig.commit().is_some());
    assert!(!rig.durability.reuse.left.has(rig.durability.reuse.place_of(key)));
    assert!(rig.durability.reuse.leaving.has(rig.durability.reuse.place_of(key)), "until it is durable");
}

#[test]
fn metadata_in_place_want_a_commit_before_a_write_is_answered_and_before_a_slot_is_used_again() {
    let mut rig = Rig::new("slots");
    let slot = rig.put(1, 1);
    assert!(rig.durability.commits.is_due && !rig.durability.is_due_for_reuse());
    rig.commit();
    assert!(!rig.durability.commits.is_due && !rig.durability.must_move(slot));
    assert!(rig.leave(slot), "it is free at once");
    assert!(rig.durability.commits.is_due && rig.durability.is_due_for_reuse(), "but still named as dirty");
    rig.commit();
    assert!(!rig.durability.is_due_for_reuse());
}

#[test]
fn a_cleaned_block_is_dirty_for_the_metadata_until_its_disk_is_flushed() {
    let mut rig = Rig::new("journal");
    let slot = rig.put(3, 1);
    rig.commit();
    rig.clean(slot, 3);
    assert_eq!(rig.recorded(slot).map(|entry| entry.dirty), Some(1));
    assert_eq!(rig.directory.slots.dirty_bits(slot), 0);
    rig.commit();
    assert_eq!(rig.timeline.side(1).flushes, 1, "no commit flushes the disk for it");
    let flushed = rig.durability.flush_disk(&rig.directory.slots, &mut rig.timeline, 0).unwrap();
    assert!(rig.durability.settle_rest(&mut rig.timeline, flushed));
    while rig.durability.late.next.is_some() {
        rig.commit();
    }
    assert_eq!(rig.recorded(slot).map(|entry| entry.dirty), Some(0));
    assert!(!rig.durability.settle_rest(&mut rig.timeline, flushed), "nothing waits");
}

#[test]
fn a_commit_flushes_the_disk_of_a_block_that_leaves_to_it() {
    let mut rig = Rig::new("journal");
    let slot = rig.put(3, 1);
    rig.commit();
    rig.clean(slot, 3);
    rig.leave(slot);
    rig.commit();
    assert_eq!(rig.timeline.side(1).flushes, 2);
    let other = rig.put(400, 1);
    rig.commit();
    rig.timeline.drain();
    rig.clean(other, 400);
    rig.durability.set_flushing(Flushing::Nothing);
    rig.leave(other);
    rig.commit();
    assert_eq!(rig.timeline.side(1).flushes, 2, "nor does one in a design that flushes nothing");
}

#[test]
fn only_the_first_write_into_a_region_past_a_committed_entry_asks_for_a_commit() {
    let mut rig = Rig::new("journal");
    rig.put(5, 0);
    rig.commit();
    let extent = Extent::new(5 << 12, 4096);
    assert_eq!(rig.durability.guard(&rig.directory, 0, extent), Guard::Commit);
    let done = rig.commit().expect("the region is new");
    assert_eq!(rig.durability.guard(&rig.directory, 0, extent), Guard::After(done));
    let elsewhere = Extent::new(9 << 20, 4096);
    assert_eq!(rig.durability.guard(&rig.directory, 0, elsewhere), Guard::After(Moment::PAST));
}

#[test]
fn answers_that_come_while_a_commit_is_under_way_share_the_next_one() {
    let mut rig = Rig::new("journal");
    rig.put(1, 1);
    assert_eq!(rig.durability.join_open(&mut rig.timeline), None, "none is under way");
    rig.commit();
    let open = rig.durability.join_open(&mut rig.timeline).expect("one is");
    assert_eq!(rig.durability.join_open(&mut rig.timeline), Some(open));
    assert_eq!((rig.durability.commits.awaited, rig.durability.commits.is_due), (1, false));
    rig.timeline.run(SimTime(1 << 40), true);
    assert_eq!(rig.timeline.news.take_noticed().map(|(notice, _)| notice), Some(Notice::Committed));
    rig.durability.note_end();
    assert!(rig.durability.commits.is_due && !rig.timeline.is_past(open));
    rig.put(2, 1);
    let done = rig.commit().unwrap();
    rig.durability.settle_open(&mut rig.timeline, done);
    rig.timeline.drain();
    assert!(rig.timeline.is_past(open) && rig.timeline.is_past(done));
}

#[test]
fn what_is_on_its_way_into_a_slot_is_told_when_it_is_there() {
    let mut rig = Rig::new("journal");
    let slot = rig.directory.slots.take(0).unwrap();
    rig.directory.settle(slot, BlockKey::new(0, 1));
    rig.durability.record_later(&mut rig.directory.slots, slot, 0b11);
    assert_eq!((rig.directory.slots.valid(slot), rig.recorded(slot)), (0b11, None));
    let filling = rig.durability.end_filling(slot);
    assert_eq!((filling, rig.durability.is_unknown(slot)), (0b11, true));
    rig.durability.record_filled(&rig.directory.slots, &rig.timeline, slot, filling);
    assert_eq!(rig.recorded(slot).map(|entry| entry.valid), Some(0b11));
    assert_eq!(rig.durability.end_filling(slot), 0);
}

#[test]
fn nothing_waits_for_a_commit_once_the_fast_store_is_given_up() {
    let mut rig = Rig::new("journal");
    let slot = rig.put(1, 1);
    rig.commit();
    rig.clean(slot, 1);
    rig.leave(slot);
    assert_eq!(rig.durability.give_up(), [(slot, false)]);
    assert!(!rig.durability.late.has(slot) && !rig.durability.must_move(slot));
    assert!(rig.durability.reuse.limbo.is_empty() && !rig.durability.is_long());
}
