//! Zones: the state machine against a model and against a table, and reports byte by byte.

mod conventional;
mod crash;
mod flash;
mod limits;
mod model;
mod pairs;
mod qemu;
mod random;
mod wire;

use nandscape_core::zone::{ZoneAction, ZoneError, ZoneState};
use nandscape_namespace::zones::{RandomAreas, ZoneLayout, ZoneTable};

/// Eight zones of 16 blocks, 12 of which can be written.
const LAYOUT: ZoneLayout = ZoneLayout {
    zones: 8,
    conventional: 0,
    size: 16,
    capacity: 12,
    block_bytes: 4096,
    max_active: None,
    max_open: None,
    extension_bytes: 64,
    random: Some(RandomAreas { size: 4, granularity: 2, count: None }),
    reads_across: false,
};

/// Changes the state of the zone that begins at a block; gives the numbers of the zones that changed.
fn manage(
    table: &mut ZoneTable,
    action: ZoneAction,
    start: impl Into<Option<u64>>,
) -> Result<Vec<u32>, ZoneError> {
    let mut changes = Vec::new();
    let result = table.manage(action, start.into(), &mut changes);
    table.check_invariants();
    result.map(|()| changes.iter().map(|change| change.zone).collect())
}

/// A table with zone 0 in a state, four blocks of it written where that is possible.
fn in_state(layout: ZoneLayout, state: ZoneState) -> ZoneTable {
    if state == ZoneState::NotWritePointer {
        let table = ZoneTable::new(ZoneLayout { conventional: 1, ..layout });
        assert_eq!(table.state(0), state);
        return table;
    }
    let mut table = ZoneTable::new(layout);
    if state == ZoneState::Empty {
        return table;
    }
    table.write(0, 4).unwrap();
    match state {
        ZoneState::NotWritePointer | ZoneState::Empty | ZoneState::ImplicitlyOpen => {}
        ZoneState::ExplicitlyOpen => drop(manage(&mut table, ZoneAction::Open, 0).unwrap()),
        ZoneState::Closed => drop(manage(&mut table, ZoneAction::Close, 0).unwrap()),
        ZoneState::Full => drop(manage(&mut table, ZoneAction::Finish, 0).unwrap()),
        ZoneState::ReadOnly => drop(table.fail_writes(0).unwrap()),
        ZoneState::Offline => drop(table.fail(0).unwrap()),
    }
    assert_eq!(table.state(0), state);
    table
}
