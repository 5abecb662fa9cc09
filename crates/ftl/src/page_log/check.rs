//! The invariants, for tests.

use super::PageLog;
use super::space::State;
use nandscape_core::FlashDevice;

/// Panics unless map, counts, queues and spares agree with each other and with the device.
pub(super) fn check<D: FlashDevice>(ftl: &PageLog<D>) {
    let (base, space, table) = (&ftl.base, &ftl.space, &ftl.table);
    assert_eq!(table.check(), base.stats.live_pages, "mapped pages against the count");
    let mut queued = vec![0u32; space.groups.len()];
    let mut free_pages = 0;
    for (index, lane) in space.lanes.iter().enumerate() {
        assert_eq!(space.open.contains(index as u32), !lane.queue.is_empty(), "lane {index}");
        for group in &lane.queue {
            queued[*group as usize] += 1;
            assert_eq!(space.lane_of(*group), index as u32, "lane of group {group}");
            let room = space.group(*group).room;
            let pages = (0..space.size).filter_map(|place| space.page(*group, place));
            let unwritten = pages.filter(|page| !base.device.is_programmed(*page));
            assert_eq!(unwritten.count() as u32, room, "room of group {group}");
            assert!(room > 0, "group {group} is queued without room");
            free_pages += u64::from(room);
        }
        if let Some(first) = lane.queue.front() {
            let page = space.page(*first, space.group(*first).next);
            assert!(
                page.is_some_and(|page| !base.device.is_programmed(page)),
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
    for group in 0..space.groups.len() as u32 {
        let state = space.group(group).state;
        assert_eq!(queued[group as usize], u32::from(state == State::Room), "places of group {group}");
        assert_eq!(space.is_candidate(group), state == State::Full, "group {group} as a candidate");
        assert_eq!(space.failed.contains(&group), state == State::Failed, "group {group} among the failed");
        if state == State::Gone {
            continue;
        }
        let pages = (0..space.size).filter_map(|place| space.page(group, place));
        let live = pages.filter(|page| table.logical(*page).is_some());
        assert_eq!(live.clone().count() as u32, space.group(group).live, "live pages of group {group}");
        for page in live {
            assert!(base.device.is_programmed(page), "live page {page:?} is erased");
            assert!(space.group_of(page) == group, "block of {page:?}");
        }
    }
    // A block that failed before the last start may not be known as such.
    let may_have_failed = base.has_failed() || ftl.was_taken_over || space.wanted_spares == 0;
    assert!(
        may_have_failed || !space.spares.is_empty(),
        "no group is kept erased, though no block has failed"
    );
}
