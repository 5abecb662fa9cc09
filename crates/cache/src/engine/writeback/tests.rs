//! What the policies are told and which blocks their plans mean, without stores.

use super::*;
use crate::engine::directory::Shape;
use nandscape_core::{Extent, Params};
use nandscape_policies::Map;
use nandscape_policies::cleaning::Order;
use nandscape_policies::eviction::{Build, lru::Lru};

/// Wants nothing, and looks at ages since the last write if it `ages`.
struct Quiet {
    ages: bool,
}

impl Cleaning for Quiet {
    fn plan(&mut self, _: &View) -> Plan {
        Plan::NONE
    }

    fn needs(&self) -> Needs {
        if self.ages { Needs::SinceWritten } else { Needs::NoAges }
    }
}

/// Slots 0, 1, ... have these blocks, all of them dirty.
fn directory(blocks: &[u64]) -> Directory<Lru> {
    let ways = 32;
    let policies = vec![Lru::new(ways, &Params::defaults(&Lru::INFO), 0)];
    let mut directory = Directory::new(Shape::new(4096), 0, Map::Full, ways, policies);
    directory.attach(0, 1 << 40).unwrap();
    for block in blocks {
        let slot = directory.slots.take(0).unwrap();
        directory.settle(slot, BlockKey::new(0, *block));
        directory.slots.set_bits(slot, 1, 1);
    }
    directory
}

fn writeback(directory: &Directory<Lru>, ages: bool) -> Writeback {
    let mut writeback = Writeback::default();
    let policies: Vec<Box<dyn Cleaning + Send>> = vec![Box::new(Quiet { ages })];
    writeback.set_policies(policies, &directory.slots, directory.ways(), SimTime(1000));
    writeback
}

fn view(writeback: &mut Writeback, directory: &Directory<Lru>, at: u64) -> View {
    writeback.view(directory, directory.slots.used, Needs::NoAges, SimTime(at)).expect("somebody cleans")
}

#[test]
fn without_policies_nothing_is_kept_or_asked_for() {
    let directory = directory(&[1, 2]);
    let mut writeback = Writeback::default();
    writeback.turn(BlockKey::new(0, 1), 0, true, SimTime(0));
    writeback.note_waited();
    assert!(!writeback.is_asked());
    assert_eq!((writeback.again(), writeback.memory_bytes()), (SimTime::MAX, 0));
    assert!(!writeback.begun(1, SimTime(0), false), "nobody wants to know of its end");
    assert!(writeback.view(&directory, 2, Needs::NoAges, SimTime(0)).is_none());
}

#[test]
fn blocks_under_way_count_as_dirty_until_they_are_on_the_disk() {
    let directory = directory(&[1, 2, 3]);
    let mut writeback = writeback(&directory, false);
    assert_eq!(view(&mut writeback, &directory, 1000).dirty, 3, "those that were dirty before");
    writeback.turn(BlockKey::new(0, 2), 1, false, SimTime(1000));
    assert!(writeback.begun(1, SimTime(1000), false));
    let View { dirty, cleaning, cleaned, started, .. } = view(&mut writeback, &directory, 1000);
    assert_eq!((dirty, cleaning, cleaned, started), (3, 1, 0, 1));
    assert!(!writeback.is_asked());
    writeback.ended(1);
    assert!(writeback.is_asked());
    let View { dirty, cleaning, cleaned, .. } = view(&mut writeback, &directory, 1000);
    assert_eq!((dirty, cleaning, cleaned), (2, 0, 1));
}

#[test]
fn stores_that_take_no_time_are_not_asked_for_everything_at_once() {
    let directory = directory(&[1, 2, 3]);
    let mut writeback = writeback(&directory, false);
    assert!(writeback.begun(2, SimTime(1000), true));
    writeback.ended(2);
    assert_eq!(view(&mut writeback, &directory, 1000).cleaning, 2, "for a while");
    let members = std::mem::take(&mut writeback.members);
    writeback.answered(members, false, SimTime(1000));
    let again = writeback.again();
    assert!(again > SimTime(1000) && again < SimTime::MAX);
    assert_eq!(view(&mut writeback, &directory, again.0).cleaning, 0);
}

#[test]
fn after_a_refused_write_the_policies_are_asked_a_second_later() {
    let directory = directory(&[1]);
    let mut writeback = writeback(&directory, false);
    let members = std::mem::take(&mut writeback.members);
    writeback.answered(members, true, SimTime(1000));
    assert_eq!((writeback.again(), writeback.is_asked()), (SimTime(1_000_001_000), false));
}

#[test]
fn a_plan_in_the_order_of_the_disk_goes_on_where_the_last_one_ended() {
    let directory = directory(&[40, 7, 5, 6, 41]);
    let mut writeback = writeback(&directory, false);
    let plan = Plan::of(3, Order::Disk);
    let (first, _) = writeback.choose(&directory, &plan, Needs::NoAges);
    assert_eq!(first, [2, 3, 1], "blocks 5, 6 and 7");
    let (second, _) = writeback.choose(&directory, &Plan::of(2, Order::Disk), Needs::NoAges);
    assert_eq!(second, [0, 4], "blocks 40 and 41");
}

#[test]
fn the_block_that_was_dirty_or_written_longest_ago_comes_first() {
    let directory = directory(&[4, 5, 6]);
    let mut writeback = writeback(&directory, true);
    for (slot, at) in [(1, 2000), (0, 3000), (2, 4000)] {
        writeback.rewrite(slot, SimTime(at));
    }
    let oldest = |writeback: &mut Writeback, plan| writeback.choose(&directory, &plan, Needs::SinceWritten).0;
    assert_eq!(oldest(&mut writeback, Plan::of(1, Order::Oldest)), [1]);
    let until = Plan { until: Some(SimTime(3500)), ..Plan::of(9, Order::Oldest) };
    assert_eq!(oldest(&mut writeback, until), [0, 1], "in the order of the disk");
    assert_eq!(oldest(&mut writeback, Plan::of(1, Order::Eviction)), [0], "which was asked for longest ago");
}

#[test]
fn a_block_that_leaves_takes_its_dirty_neighbours_up_to_one_that_is_pinned() {
    let mut directory = directory(&[10, 11, 12, 13, 9, 20]);
    let mut writeback = Writeback::default();
    assert_eq!(writeback.run_around(&directory, 2), (vec![4, 0, 1, 2, 3], 3));
    directory.pinned.set(0);
    assert_eq!(writeback.run_around(&directory, 2), (vec![1, 2, 3], 1));
    assert_eq!(writeback.run_around(&directory, 5), (vec![5], 0));
}

#[test]
fn a_part_joins_a_write_that_ends_where_it_begins_and_is_not_too_large() {
    let mut pending = Pending { volume: 1, extent: Some(Extent::new(4096, 8192)), parts: Vec::new() };
    assert_eq!(pending.joined(1, 12_288, 512, 4096), Some(Extent::new(4096, 8704)));
    assert_eq!(pending.joined(2, 12_288, 512, 4096), None, "another volume");
    assert_eq!(pending.joined(1, 12_800, 512, 4096), None, "a gap");
    pending.extent = Some(Extent::new(0, 1 << 20));
    assert_eq!(pending.joined(1, 1 << 20, 512, 4096), None, "more than a mebibyte");
}

#[test]
fn cleaning_on_demand_goes_round_over_the_slots() {
    let directory = directory(&[40, 7, 5]);
    let mut writeback = Writeback::default();
    assert_eq!(writeback.next_dirty(&directory, 2), [1, 0], "slots 0 and 1 in the order of the disk");
    assert_eq!(writeback.next_dirty(&directory, 2), [2, 0], "then 2, and 0 again");
}
