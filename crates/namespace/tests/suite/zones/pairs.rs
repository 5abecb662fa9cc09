//! Every command on a zone of every state. The table is written from the standard (NVMe ZNS 1.1, section
//! 2.1.1.4); where it is not met, it is printed as far as it was.

use super::{LAYOUT, in_state, manage};
use nandscape_core::zone::{ZoneAction, ZoneError, ZoneState};
use nandscape_namespace::zones::ZoneTable;
use std::fmt::Write;

/// By command, for zones that are empty, implicitly open, explicitly open, closed, full, read-only, offline:
/// the new state, or why it is refused.
const TABLE: &str = "
write           implicitly-open implicitly-open explicitly-open implicitly-open full           read-only      offline
write-elsewhere invalid-write   invalid-write   invalid-write   invalid-write   full           read-only      offline
write-too-far   boundary        boundary        boundary        boundary        full           read-only      offline
write-the-rest  full!           full!           full!           full!           full           read-only      offline
append          implicitly-open implicitly-open explicitly-open implicitly-open full           read-only      offline
append-too-much boundary        boundary        boundary        boundary        full           read-only      offline
read            empty           implicitly-open explicitly-open closed          full!          read-only!     offline
open            explicitly-open explicitly-open explicitly-open explicitly-open transition     transition     transition
open-random     explicitly-open explicitly-open explicitly-open explicitly-open transition     transition     transition
close           transition      closed          closed          closed          transition     transition     transition
finish          full!           full!           full!           full!           full!          transition     transition
reset           empty           empty           empty           empty           empty          transition     transition
offline         transition      transition      transition      transition      transition     offline!       offline!
describe        closed          transition      transition      transition      transition     transition     transition
flush-random    invalid-field   invalid-field   invalid-field   invalid-field   invalid-field  invalid-field  invalid-field
";

/// Runs a command on zone 0.
fn run(command: &str, table: &mut ZoneTable) -> Result<(), ZoneError> {
    let (at, capacity) = (table.written(0), LAYOUT.capacity);
    match command {
        "write" => table.write(at, 2).map(drop),
        "write-elsewhere" => table.write(at + 1, 1).map(drop),
        "write-too-far" => table.write(at, capacity - at + 1).map(drop),
        "write-the-rest" => table.write(at, capacity - at).map(drop),
        "append" => table.append(0, 2).map(drop),
        "append-too-much" => table.append(0, capacity - at + 1).map(drop),
        "read" => table.check_read(0, LAYOUT.size),
        "describe" => table.describe(0, b"host").map(drop),
        "flush-random" => table.flush_random(at + 1).map(drop),
        action => {
            let action = ZoneAction::ALL.into_iter().find(|known| known.name() == action).unwrap();
            manage(table, action, 0).map(drop)
        }
    }
}

#[test]
fn every_command_in_every_state_does_what_the_standard_says() {
    const STATES: [ZoneState; 7] = [
        ZoneState::Empty,
        ZoneState::ImplicitlyOpen,
        ZoneState::ExplicitlyOpen,
        ZoneState::Closed,
        ZoneState::Full,
        ZoneState::ReadOnly,
        ZoneState::Offline,
    ];
    let mut seen = String::new();
    for row in TABLE.trim().lines() {
        let (command, expected) = row.split_once(' ').unwrap();
        write!(seen, "{command:<15}").unwrap();
        for (state, expected) in STATES.into_iter().zip(expected.split_whitespace()) {
            let mut table = in_state(state);
            let before = table.describe_zone(0);
            let outcome = run(command, &mut table);
            table.check_invariants();
            // Where a status and a state share their word, the mark means the state.
            let found = match outcome {
                Err(error) => {
                    assert_eq!(table.describe_zone(0), before, "{command} of a zone that is {state:?}");
                    error.name().to_owned()
                }
                Ok(()) if ZoneError::ALL.iter().any(|error| error.name() == table.state(0).name()) => {
                    format!("{}!", table.state(0).name())
                }
                Ok(()) => table.state(0).name().to_owned(),
            };
            write!(seen, " {found:<15}").unwrap();
            assert_eq!(found, expected, "{command} of a zone that is {state:?}; so far:\n{seen}");
        }
        seen.push('\n');
    }
    assert_eq!(TABLE.trim().lines().map(|row| row.split_whitespace().count()).sum::<usize>(), 15 * 8);
}

#[test]
fn a_command_for_all_zones_is_for_those_in_its_states() {
    // Zones 0 to 6 in the seven states, in the order of the table above; zone 7 like zone 0.
    let table = || {
        let mut table = ZoneTable::new(LAYOUT);
        for zone in [1, 2, 3, 4] {
            table.write(zone * 16, 2).unwrap();
        }
        manage(&mut table, ZoneAction::Open, 2 * 16).unwrap();
        manage(&mut table, ZoneAction::Close, 3 * 16).unwrap();
        manage(&mut table, ZoneAction::Finish, 4 * 16).unwrap();
        table.fail_writes(5).unwrap();
        table.fail(6).unwrap();
        table
    };
    for (action, zones) in [
        (ZoneAction::Close, vec![1, 2]),
        (ZoneAction::Finish, vec![1, 2, 3]),
        (ZoneAction::Open, vec![3]),
        (ZoneAction::Reset, vec![1, 2, 3, 4]),
        (ZoneAction::Offline, vec![5]),
    ] {
        assert_eq!(manage(&mut table(), action, None), Ok(zones), "{action:?}");
    }
    assert_eq!(manage(&mut table(), ZoneAction::OpenRandom, None), Err(ZoneError::InvalidField));
}
