//! The directory alone: no store is there.

use super::*;
use crate::presets::Victims;
use nandscape_core::Params;
use nandscape_policies::admission::Bypass;
use nandscape_policies::eviction::lru::Lru;
use nandscape_policies::eviction::{Build, mru::Mru};

fn directory<E: Build>(sets: u32, ways: u32) -> Directory<E> {
    let policies = (0..sets).map(|set| E::new(ways, &Params::defaults(&E::INFO), u64::from(set))).collect();
    let mut directory = Directory::new(Shape::new(4096), 1 << 16, Map::Linear { ways }, ways, policies);
    directory.attach(0, 1 << 30).unwrap();
    directory.attach(1, 10_000).unwrap();
    directory
}

/// Puts a block into a slot of its set.
fn put<E: Build>(directory: &mut Directory<E>, key: BlockKey, valid: u16, dirty: u16) -> u32 {
    let slot = directory.slots.take(directory.set(key)).expect("a free slot");
    directory.settle(slot, key);
    directory.slots.set_bits(slot, valid, dirty);
    slot
}

fn block(block: u64) -> BlockKey {
    BlockKey::new(0, block)
}

fn victim<E: Build>(directory: &mut Directory<E>, victims: Victims) -> Option<u32> {
    directory.choose_victim(0, None, victims, |_| false, |_| false)
}

#[test]
fn a_block_is_found_until_it_is_taken_out_and_its_slot_serves_another_one() {
    let mut directory = directory::<Lru>(2, 4);
    let slot = put(&mut directory, block(5), 0b11, 0b10);
    assert_eq!((directory.find(block(5)), directory.shares[0].held), (Some(slot), 1));
    directory.check(0);
    let entry = directory.take_out(slot);
    directory.drop_from_policy(slot);
    assert_eq!((entry.key, entry.valid, entry.dirty), (block(5), 0b11, 0b10));
    assert_eq!((directory.find(block(5)), directory.shares[0].held), (None, 0));
    directory.give(slot);
    directory.check(0);
    assert_eq!(put(&mut directory, block(6), 1, 0), slot, "both are of the second set");
}

#[test]
fn a_slot_of_which_nothing_came_is_free_again() {
    let mut directory = directory::<Lru>(1, 2);
    let slot = put(&mut directory, block(1), 0, 0);
    directory.unsettle(slot);
    assert_eq!((directory.find(block(1)), directory.slots.used), (None, 0));
    directory.check(0);
}

#[test]
fn a_block_that_moves_keeps_its_place_in_the_order_of_the_policy() {
    let mut directory = directory::<Lru>(1, 4);
    let [first, second] = [1, 2].map(|number| put(&mut directory, block(number), 1, 0));
    let target = directory.slots.take(0).unwrap();
    directory.slots.set_key(target, block(1));
    directory.relabel(first, target);
    directory.slots.set_bits(target, 1, 0);
    directory.give(first);
    directory.check(0);
    assert_eq!(directory.find(block(1)), Some(target));
    assert_eq!(victim(&mut directory, Victims::Any), Some(target), "it was there before {second}");
}

#[test]
fn the_oldest_block_leaves_unless_it_is_pinned_dirty_or_its_disk_refuses_it() {
    let blocks = |dirty: [u16; 4]| {
        let mut directory = directory::<Lru>(1, 4);
        let slots = [0, 1, 2, 3].map(|number| put(&mut directory, block(number as u64), 1, dirty[number]));
        (directory, slots)
    };
    let (mut directory, slots) = blocks([1, 0, 0, 0]);
    assert_eq!(victim(&mut directory, Victims::Any), Some(slots[0]));
    for victims in [Victims::CleanFirst, Victims::CleanOnly, Victims::PreferClean] {
        let (mut directory, slots) = blocks([1, 0, 0, 0]);
        directory.pinned.set(slots[1]);
        assert_eq!(victim(&mut directory, victims), Some(slots[2]), "{victims:?}");
    }
    let (mut directory, slots) = blocks([1, 1, 1, 1]);
    assert_eq!(victim(&mut directory, Victims::CleanOnly), None);
    assert_eq!(victim(&mut directory, Victims::CleanFirst), Some(slots[0]));
    let (mut directory, _) = blocks([1, 1, 1, 1]);
    assert_eq!(directory.choose_victim(0, None, Victims::Any, |_| true, |_| false), None, "all are stuck");
    let (mut directory, slots) = blocks([0, 0, 0, 0]);
    let is_late = |slot| slot == slots[0];
    let chosen = directory.choose_victim(0, None, Victims::PreferClean, |_| false, is_late);
    assert_eq!(chosen, Some(slots[1]), "the disk would still lose what the first one has");
}

#[test]
fn blocks_of_other_volumes_stay_where_one_has_to_make_room_for_its_own() {
    let mut directory = directory::<Lru>(1, 4);
    put(&mut directory, block(0), 1, 0);
    let own = put(&mut directory, BlockKey::new(1, 2), 1, 0);
    put(&mut directory, block(3), 1, 0);
    assert_eq!(directory.excess(1, 3), None);
    directory.shares[1].quota = Some(1);
    assert_eq!(directory.excess(1, 3), Some((Some(1), Bypass::Quota)));
    assert_eq!(directory.choose_victim(0, Some(1), Victims::Any, |_| false, |_| false), Some(own));
    assert_eq!(directory.excess(0, 3), None);
    directory.set_limit(2);
    assert_eq!(directory.excess(0, 3), Some((None, Bypass::NoRoom)));
    assert_eq!(directory.too_many(3), 1);
    directory.set_limit(4);
    assert_eq!(directory.excess(0, 4), None, "no limit");
}

#[test]
fn a_retired_slot_is_never_given_again() {
    let mut directory = directory::<Lru>(1, 2);
    let slot = put(&mut directory, block(0), 1, 0);
    directory.retire(slot);
    directory.retire(1 - slot);
    assert_eq!(directory.withdrawn, 1, "the other one is in use");
    directory.take_out(slot);
    directory.drop_from_policy(slot);
    directory.give(slot);
    assert_eq!((directory.withdrawn, directory.slots.take(0)), (2, None));
    directory.check(0);
}

#[test]
fn another_policy_gets_the_blocks_in_the_order_in_which_they_would_have_left() {
    let mut directory = directory::<Mru>(1, 4);
    let slots = [0, 1, 2].map(|number| put(&mut directory, block(number), 1, 0));
    directory.set_evictions(|ways, seed| Mru::new(ways, &Params::defaults(&Mru::INFO), seed), 0);
    assert_eq!(victim(&mut directory, Victims::Any), Some(slots[0]), "the last one in the order of before");
}

#[test]
fn the_next_write_of_a_block_takes_clean_sub_blocks_between_dirty_ones() {
    let mut directory = directory::<Lru>(1, 4);
    let slot = put(&mut directory, block(0), 0b111, 0b101);
    assert_eq!(directory.next_dirty_run(slot, 0b101), Some(((0, 1536), 0b111, 0)));
    directory.slots.set_bits(slot, 0b101, 0b101);
    assert_eq!(directory.next_dirty_run(slot, 0b101), Some(((0, 512), 0b001, 0b100)), "one is not there");
    let last = put(&mut directory, BlockKey::new(1, 2), 0b1111, 0b1000);
    assert_eq!(directory.limit(BlockKey::new(1, 2)), 10_000 - 8192);
    assert_eq!(directory.next_dirty_run(last, 0b1000), Some(((1536, 1808), 0b1000, 0)), "the volume ends");
}

#[test]
fn what_is_cached_or_on_the_disk_is_allocated_up_to_where_that_changes() {
    let mut directory = directory::<Lru>(1, 4);
    put(&mut directory, block(2), 1, 0);
    put(&mut directory, block(3), 1, 0);
    let hole = |extent: Extent| Allocation { is_mapped: false, bytes: extent.len };
    let at = |block: u64, blocks: u64| directory.allocated(0, Extent::new(block << 12, blocks << 12), hole);
    assert_eq!(at(2, 8), Allocation { is_mapped: true, bytes: 2 << 12 });
    assert_eq!(at(0, 8), Allocation { is_mapped: false, bytes: 2 << 12 });
    assert_eq!(at(4, 100), Allocation { is_mapped: false, bytes: 100 << 12 }, "more blocks than slots");
}
