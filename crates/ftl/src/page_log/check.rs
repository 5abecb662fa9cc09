//! The invariants, for tests.

use super::PageLog;
use super::space::{NONE, State};
use nandscape_core::FlashDevice;

/// Panics unless map, counts, queues and spares agree with each other and with the device.
pub(super) fn check<D: FlashDevice>(ftl: &PageLog<D>) {
    let (base, space, table) = (&ftl.base, &ftl.space, &ftl.table);
    assert_eq!(table.check(), base.stats.live_pages, "mapped pages against the count");
    let mut queued = vec![0u32; space.groups() as usize];
    let mut free_pages = 0;
    for (index, lane) in space.lanes.iter().enumerate() {
        assert_eq!(space.has_open(index as u32), !lane.queue.is_empty(), "lane {index}");
        for group in &lane.queue {
            queued[*group as usize] += 1;
            assert_eq!(space.lane_of(*group), index as u32, "lane of group {group}");
            let unwritten =
                (0..space.size()).filter(|place| !base.device.is_programmed(space.page(*group, *place)));
            assert_eq!(unwritten.count() as u32, space.room(*group), "room of group {group}");
            assert!(space.room(*group) > 0, "group {group} is queued without room");
            free_pages += u64::from(space.room(*group));
        }
        if let Some(first) = lane.queue.front() {
            let page = space.page(*first, space.next_place(*first));
            assert!(
                !base.device.is_programmed(page),
                "the next page {page:?} of group {first} is programmed"
            );
        }
    }
    assert_eq!(free_pages, space.free_pages, "free pages");
    for group in &space.spares {
        queued[*group as usize] += 1;
        assert!(
            space.blocks(*group).all(|block| base.device.write_pointer(block) == 0),
            "spare group {group} is not erased"
        );
    }
    for group in 0..space.groups() {
        let state = space.state(group);
        assert_eq!(queued[group as usize], u32::from(state == State::Room), "places of group {group}");
        assert_eq!(space.full.contains(group), state == State::Full, "group {group} as a candidate");
        assert_eq!(space.failed.contains(&group), state == State::Failed, "group {group} among the failed");
        if state == State::Gone {
            continue;
        }
        let pages = (0..space.size()).map(|place| space.page(group, place));
        let live = pages.clone().filter(|page| table.logical(*page).is_some()).count();
        assert_eq!(live as u32, space.live(group), "live pages of group {group}");
        for page in pages.filter(|page| table.logical(*page).is_some()) {
            assert!(base.device.is_programmed(page), "live page {page:?} is erased");
            assert!(space.group_of(base.geometry.block_of(page)) != NONE, "block of {page:?}");
        }
    }
    // A block that failed before the last start may not be known as such.
    let may_have_failed = base.has_failed() || ftl.was_taken_over;
    assert!(
        may_have_failed || !space.spares.is_empty(),
        "no group is kept erased, though no block has failed"
    );
}
