//! Limits of open and active zones, random write areas, failures and starts.

use super::{LAYOUT, manage};
use nandscape_core::zone::{ZoneAction, ZoneAttributes, ZoneError, ZoneFilter, ZoneState};
use nandscape_namespace::zones::{RandomAreas, ZoneLayout, ZoneTable};

fn limited(max_active: u32, max_open: u32) -> ZoneTable {
    ZoneTable::new(ZoneLayout { max_active: Some(max_active), max_open: Some(max_open), ..LAYOUT })
}

#[test]
fn the_zone_that_was_opened_implicitly_first_is_closed_for_another_one() {
    let mut table = limited(4, 2);
    for zone in [3, 1] {
        assert_eq!(table.write(zone * 16, 1).unwrap().closed, None);
    }
    let closed = table.write(5 * 16, 1).unwrap().closed.unwrap();
    assert_eq!((closed.zone, closed.from, closed.to), (3, ZoneState::ImplicitlyOpen, ZoneState::Closed));
    // An open command closes one as well.
    assert_eq!(manage(&mut table, ZoneAction::Open, 3 * 16), Ok(vec![1, 3]));
    assert_eq!((table.open(), table.active()), (2, 3));
}

#[test]
fn zones_that_were_opened_by_a_command_are_not_closed_for_others() {
    let mut table = limited(4, 2);
    for zone in [0, 1] {
        manage(&mut table, ZoneAction::Open, zone * 16).unwrap();
    }
    assert_eq!(table.write(2 * 16, 1), Err(ZoneError::TooManyOpen));
    assert_eq!(table.append(2 * 16, 1), Err(ZoneError::TooManyOpen));
    assert_eq!(manage(&mut table, ZoneAction::Open, 2 * 16), Err(ZoneError::TooManyOpen));
    manage(&mut table, ZoneAction::Close, 0).unwrap();
    assert!(table.write(2 * 16, 1).is_ok());
}

#[test]
fn what_is_short_is_named_and_active_zones_where_both_limits_are_one() {
    let mut table = limited(2, 1);
    table.write(0, 1).unwrap();
    table.describe(16, b"x").unwrap();
    assert_eq!(table.write(2 * 16, 1), Err(ZoneError::TooManyActive));
    assert_eq!(table.describe(2 * 16, b"x"), Err(ZoneError::TooManyActive));
    // A refusal closes nothing.
    assert_eq!(table.state(0), ZoneState::ImplicitlyOpen);
    // Finishing an empty zone needs neither resource.
    assert_eq!(manage(&mut table, ZoneAction::Finish, 2 * 16), Ok(vec![2]));

    let mut table = limited(2, 2);
    for zone in [0, 1] {
        manage(&mut table, ZoneAction::Open, zone * 16).unwrap();
    }
    assert_eq!(table.write(2 * 16, 1), Err(ZoneError::TooManyActive));
}

#[test]
fn all_closed_zones_are_opened_or_none() {
    let mut table = limited(4, 2);
    for zone in [0, 1, 2] {
        table.describe(zone * 16, b"x").unwrap();
    }
    assert_eq!(manage(&mut table, ZoneAction::Open, None), Err(ZoneError::TooManyOpen));
    assert_eq!(table.open(), 0);
    manage(&mut table, ZoneAction::Reset, 0).unwrap();
    assert_eq!(manage(&mut table, ZoneAction::Open, None), Ok(vec![1, 2]));
}

#[test]
fn a_random_write_area_moves_with_what_is_written_behind_it() {
    let areas = RandomAreas { size: 4, granularity: 2, count: Some(1) };
    let mut table = ZoneTable::new(ZoneLayout { random: Some(areas), ..LAYOUT });
    manage(&mut table, ZoneAction::OpenRandom, 0).unwrap();
    assert_eq!(manage(&mut table, ZoneAction::OpenRandom, 16), Err(ZoneError::RandomAreas));
    assert_eq!(table.append(0, 1), Err(ZoneError::InvalidOperation));
    // Inside of the area in any order, and again.
    for at in [3, 0, 3] {
        assert_eq!(table.write(at, 1).unwrap().written, 0);
    }
    // Behind it whole units leave it in front: one block costs two.
    assert_eq!(table.write(4, 1).unwrap().written, 2);
    assert_eq!(table.write(1, 1), Err(ZoneError::InvalidWrite));
    assert_eq!(table.write(10, 1), Err(ZoneError::InvalidWrite));
    // By command: inside of the area, in whole units.
    assert_eq!(table.flush_random(2), Err(ZoneError::InvalidField));
    assert_eq!(table.flush_random(1), Err(ZoneError::Boundary));
    assert_eq!(table.flush_random(6), Err(ZoneError::Boundary));
    assert_eq!(table.flush_random(5).unwrap().written, 6);
    assert_eq!(table.write(12, 1), Err(ZoneError::Boundary));
    assert_eq!(table.flush_random(9).unwrap().written, 10);
    assert!(table.flush_random(11).unwrap().is_full);
    // A full zone has no area, so that another one may have it.
    assert_eq!(manage(&mut table, ZoneAction::OpenRandom, 16), Ok(vec![1]));
    assert_eq!(table.flush_random(11), Err(ZoneError::InvalidField));
}

#[test]
fn a_random_write_area_begins_at_a_whole_unit_of_a_device_that_has_them() {
    let mut table = ZoneTable::new(LAYOUT);
    table.write(0, 3).unwrap();
    assert_eq!(manage(&mut table, ZoneAction::OpenRandom, 0), Err(ZoneError::InvalidOperation));
    assert_eq!(table.flush_random(4), Err(ZoneError::InvalidField));
    table.write(3, 1).unwrap();
    assert_eq!(manage(&mut table, ZoneAction::OpenRandom, 0), Ok(vec![0]));
    let mut without = ZoneTable::new(ZoneLayout { random: None, ..LAYOUT });
    assert_eq!(manage(&mut without, ZoneAction::OpenRandom, 0), Err(ZoneError::InvalidOperation));
    assert_eq!(without.flush_random(1), Err(ZoneError::InvalidOperation));
}

#[test]
fn open_zones_come_back_closed_and_untouched_ones_empty() {
    let mut table = limited(5, 5);
    table.write(0, 4).unwrap();
    manage(&mut table, ZoneAction::OpenRandom, 16).unwrap();
    manage(&mut table, ZoneAction::Open, 2 * 16).unwrap();
    table.write(2 * 16, 4).unwrap();
    table.describe(3 * 16, b"x").unwrap();
    manage(&mut table, ZoneAction::Open, 3 * 16).unwrap();
    manage(&mut table, ZoneAction::Finish, 4 * 16).unwrap();
    table.fail_writes(5).unwrap();
    table.fail(6).unwrap();
    manage(&mut table, ZoneAction::OpenRandom, 7 * 16).unwrap();
    table.write(7 * 16 + 4, 2).unwrap();
    table.restart();
    let states: Vec<&str> = (0..8).map(|zone| table.state(zone).name()).collect();
    assert_eq!(states, ["closed", "empty", "closed", "closed", "full", "read-only", "offline", "closed"]);
    assert_eq!((table.open(), table.active()), (0, 4));
    assert_eq!(table.describe_zone(7).attributes, ZoneAttributes::default());
}

#[test]
fn a_reset_takes_back_what_was_said_of_a_zone() {
    let mut table = ZoneTable::new(LAYOUT);
    table.describe(0, b"host").unwrap();
    table.write(0, 1).unwrap();
    table.recommend(0, ZoneAttributes::RESET_RECOMMENDED);
    assert_eq!(table.finish_by_device(0).unwrap().to, ZoneState::Full);
    let asked = table.report(0, ZoneFilter::Attention, 8).unwrap();
    assert_eq!(asked.zones[0].attributes, ZoneAttributes(0b1000_0101));
    assert_eq!(asked.zones[0].extension.as_ref().unwrap()[..5], *b"host\0");
    manage(&mut table, ZoneAction::Reset, 0).unwrap();
    assert_eq!(table.describe_zone(0), ZoneTable::new(LAYOUT).describe_zone(0));
    assert_eq!(table.report(0, ZoneFilter::Attention, 8).unwrap().matching, 0);
    assert_eq!(table.finish_by_device(0), None);
}

#[test]
fn a_zone_that_shrank_is_full_earlier() {
    let mut table = ZoneTable::new(LAYOUT);
    table.set_capacity(0, 6);
    assert_eq!(table.append(0, 7), Err(ZoneError::Boundary));
    assert!(table.append(0, 6).unwrap().is_full);
}

#[test]
fn reads_cross_zones_only_where_the_device_says_so() {
    let mut table = ZoneTable::new(LAYOUT);
    assert_eq!(table.check_read(15, 1), Ok(()));
    assert_eq!(table.check_read(15, 2), Err(ZoneError::Boundary));
    assert_eq!(table.check_read(0, 129), Err(ZoneError::OutOfRange));
    assert_eq!(table.check_read(u64::MAX, 2), Err(ZoneError::OutOfRange));
    table.fail(1).unwrap();
    let mut across = ZoneTable::new(ZoneLayout { reads_across: true, ..LAYOUT });
    assert_eq!(across.check_read(15, 113), Ok(()));
    across.fail(4).unwrap();
    assert_eq!(across.check_read(15, 113), Err(ZoneError::Offline));
}

#[test]
fn a_layout_that_is_no_namespace_is_refused_by_its_key() {
    let areas = |size, granularity, count| Some(RandomAreas { size, granularity, count });
    for (layout, key) in [
        (ZoneLayout { zones: 0, ..LAYOUT }, "zone.size"),
        (ZoneLayout { conventional: 8, ..LAYOUT }, "zone.conventional"),
        (ZoneLayout { size: u64::MAX, ..LAYOUT }, "zone.size"),
        (ZoneLayout { capacity: 17, ..LAYOUT }, "zone.capacity"),
        (ZoneLayout { max_active: Some(0), ..LAYOUT }, "zone.max_active"),
        (ZoneLayout { max_open: Some(0), ..LAYOUT }, "zone.max_open"),
        (ZoneLayout { max_active: Some(2), max_open: Some(3), ..LAYOUT }, "zone.max_open"),
        (ZoneLayout { extension_bytes: 65, ..LAYOUT }, "zone.descriptor_bytes"),
        (ZoneLayout { extension_bytes: 64 * 256, ..LAYOUT }, "zone.descriptor_bytes"),
        (ZoneLayout { random: areas(4, 5, None), ..LAYOUT }, "zone.zrwa_granularity"),
        (ZoneLayout { random: areas(3, 2, None), ..LAYOUT }, "zone.zrwa_size"),
        (ZoneLayout { random: areas(4, 2, Some(0)), ..LAYOUT }, "zone.zrwa_count"),
    ] {
        let error = layout.check().unwrap_err().to_string();
        assert!(error.starts_with(&format!("{key} = ")), "{error}");
    }
    assert_eq!(LAYOUT.check(), Ok(()));
}
