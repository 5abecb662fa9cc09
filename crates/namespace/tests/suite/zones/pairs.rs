//! Every command on a zone of every state. The tables are written from the standard (NVMe ZNS 1.1, section
//! 2.1.1.4). The answers, printed with status codes, are `golden/zone-states.txt`, which the documents show;
//! `UPDATE_GOLDEN=1` rewrites it.

use super::{LAYOUT, in_state, manage};
use nandscape_core::zone::{ZoneAction, ZoneError, ZoneState};
use nandscape_namespace::zones::{RandomAreas, ZoneLayout, ZoneTable};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// By command, for zones that are conventional, empty, implicitly open, explicitly open, closed, full,
/// read-only, offline: the new state, or why it is refused.
const TABLE: &str = "
write           not-write-pointer   implicitly-open implicitly-open explicitly-open implicitly-open full           read-only      offline
write-elsewhere not-write-pointer   invalid-write   invalid-write   invalid-write   invalid-write   full           read-only      offline
write-too-far   boundary            boundary        boundary        boundary        boundary        full           read-only      offline
write-the-rest  not-write-pointer   full!           full!           full!           full!           full           read-only      offline
append          invalid-field       implicitly-open implicitly-open explicitly-open implicitly-open full           read-only      offline
append-too-much invalid-field       boundary        boundary        boundary        boundary        full           read-only      offline
read            not-write-pointer   empty           implicitly-open explicitly-open closed          full!          read-only!     offline
open            invalid-field       explicitly-open explicitly-open explicitly-open explicitly-open transition     transition     transition
open-random     invalid-field       explicitly-open explicitly-open explicitly-open explicitly-open transition     transition     transition
close           invalid-field       transition      closed          closed          closed          transition     transition     transition
finish          invalid-field       full!           full!           full!           full!           full!          transition     transition
reset           invalid-field       empty           empty           empty           empty           empty          transition     transition
offline         invalid-field       transition      transition      transition      transition      transition     offline!       offline!
describe        invalid-field       closed          transition      transition      transition      transition     transition     transition
flush-random    invalid-field       invalid-field   invalid-field   invalid-field   invalid-field   invalid-field  invalid-field  invalid-field
flush-part      invalid-field       invalid-field   invalid-field   invalid-field   invalid-field   invalid-field  invalid-field  invalid-field
flush-too-far   invalid-field       invalid-field   invalid-field   invalid-field   invalid-field   invalid-field  invalid-field  invalid-field
read-beyond     out-of-range        out-of-range    out-of-range    out-of-range    out-of-range    out-of-range   out-of-range   out-of-range
";

/// The same of a zone with a random write area, in the states that it may have.
const TABLE_WITH_AREA: &str = "
write           -                   -               implicitly-open explicitly-open implicitly-open -              -              -
write-elsewhere -                   -               implicitly-open explicitly-open implicitly-open -              -              -
write-too-far   -                   -               invalid-write   invalid-write   invalid-write   -              -              -
write-the-rest  -                   -               invalid-write   invalid-write   invalid-write   -              -              -
append          -                   -               invalid-operation invalid-operation invalid-operation -        -              -
append-too-much -                   -               invalid-operation invalid-operation invalid-operation -        -              -
read            -                   -               implicitly-open explicitly-open closed          -              -              -
open            -                   -               explicitly-open explicitly-open explicitly-open -              -              -
open-random     -                   -               explicitly-open explicitly-open explicitly-open -              -              -
close           -                   -               closed          closed          closed          -              -              -
finish          -                   -               full!           full!           full!           -              -              -
reset           -                   -               empty           empty           empty           -              -              -
offline         -                   -               transition      transition      transition      -              -              -
describe        -                   -               transition      transition      transition      -              -              -
flush-random    -                   -               implicitly-open explicitly-open implicitly-open -              -              -
flush-part      -                   -               invalid-field   invalid-field   invalid-field   -              -              -
flush-too-far   -                   -               boundary        boundary        boundary        -              -              -
read-beyond     -                   -               out-of-range    out-of-range    out-of-range    -              -              -
";

const STATES: [ZoneState; 8] = [
    ZoneState::NotWritePointer,
    ZoneState::Empty,
    ZoneState::ImplicitlyOpen,
    ZoneState::ExplicitlyOpen,
    ZoneState::Closed,
    ZoneState::Full,
    ZoneState::ReadOnly,
    ZoneState::Offline,
];

/// What else is true when the command comes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Condition {
    Free,
    NoOpenLeft,
    NoActiveLeft,
    NoAreaLeft,
    NoAreas,
    WithArea,
}

impl Condition {
    const ALL: [(Self, &str); 6] = [
        (Self::Free, "No limit is reached"),
        (
            Self::NoOpenLeft,
            "The limit of open zones is reached; the other open zones were opened by a command",
        ),
        (Self::NoActiveLeft, "The limit of active zones is reached"),
        (Self::NoAreaLeft, "All random write areas belong to other zones"),
        (Self::NoAreas, "The namespace has no random write areas"),
        (Self::WithArea, "The zone has a random write area; nothing is written, or only inside of the area"),
    ];

    /// A table with zone 0 in a state; none where no zone can be so.
    fn table(self, state: ZoneState) -> Option<ZoneTable> {
        let areas = |count| LAYOUT.random.map(|areas| RandomAreas { count, ..areas });
        let layout = match self {
            Self::Free | Self::WithArea => LAYOUT,
            Self::NoOpenLeft => ZoneLayout { max_open: Some(2), ..LAYOUT },
            Self::NoActiveLeft => ZoneLayout { max_active: Some(3), ..LAYOUT },
            Self::NoAreaLeft => ZoneLayout { random: areas(Some(1)), ..LAYOUT },
            Self::NoAreas => ZoneLayout { random: None, ..LAYOUT },
        };
        let mut table = in_state(layout, if self == Self::WithArea { ZoneState::Empty } else { state });
        let mut others = (1..).map(|zone| zone * LAYOUT.size);
        match self {
            Self::Free | Self::NoAreas => {}
            Self::NoOpenLeft => {
                while table.open() < 2 {
                    manage(&mut table, ZoneAction::Open, others.next()).unwrap();
                }
            }
            Self::NoActiveLeft => {
                while table.active() < 3 {
                    table.describe(others.next().unwrap(), b"other").unwrap();
                }
            }
            Self::NoAreaLeft => drop(manage(&mut table, ZoneAction::OpenRandom, others.next()).unwrap()),
            Self::WithArea => {
                manage(&mut table, ZoneAction::OpenRandom, 0).unwrap();
                if state != ZoneState::ExplicitlyOpen {
                    manage(&mut table, ZoneAction::Close, 0).unwrap();
                }
                if state == ZoneState::ImplicitlyOpen {
                    table.write(0, 1).unwrap();
                }
            }
        }
        (table.state(0) == state).then_some(table)
    }

    /// What is expected where `free` is expected of a zone without an area and without limits.
    fn expected<'a>(self, command: &str, state: ZoneState, free: &'a str) -> &'a str {
        let opens = ["write", "write-the-rest", "append", "open", "open-random"].contains(&command);
        let is_startable = [ZoneState::Empty, ZoneState::Closed].contains(&state);
        match self {
            Self::NoOpenLeft if opens && is_startable => "too-many-open",
            Self::NoActiveLeft if (opens || command == "describe") && state == ZoneState::Empty => {
                "too-many-active"
            }
            Self::NoAreaLeft if command == "open-random" && free == "explicitly-open" => "random-areas",
            Self::NoAreas if command.starts_with("flush") => "invalid-operation",
            Self::NoAreas if command == "open-random" && state != ZoneState::NotWritePointer => {
                "invalid-operation"
            }
            _ => free,
        }
    }
}

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
        "flush-part" => table.flush_random(at).map(drop),
        "flush-too-far" => table.flush_random(at + 5).map(drop),
        "read-beyond" => table.check_read(LAYOUT.blocks(), 1),
        action => {
            let action = ZoneAction::ALL.into_iter().find(|known| known.name() == action).unwrap();
            manage(table, action, 0).map(drop)
        }
    }
}

/// A cell of a table of what is expected: the new state or the status. Where they share their word, the mark
/// means the state.
fn word(outcome: Result<(), ZoneError>, state: ZoneState) -> String {
    match outcome {
        Err(error) => error.name().to_owned(),
        Ok(()) if ZoneError::ALL.iter().any(|error| error.name() == state.name()) => {
            format!("{}!", state.name())
        }
        Ok(()) => state.name().to_owned(),
    }
}

/// The code of a status without its type.
fn code(error: ZoneError) -> String {
    format!("{:02X}h", error.status() & 0xff)
}

const INTRODUCTION: &str = "\
What a command does to a zone: the state that it leaves, or the code of the status that refuses it. Tables
after the first have only the commands whose row differs from it. \"-\" is a zone that cannot exist.

";

#[test]
fn every_command_in_every_state_does_what_the_standard_says() {
    let mut seen = String::from(INTRODUCTION);
    let mut free_rows = BTreeSet::new();
    let mut statuses = BTreeSet::new();
    for (condition, title) in Condition::ALL {
        write!(seen, "{title}\n\n{:<16}", "").unwrap();
        for state in STATES {
            write!(seen, "{:<18}", state.name()).unwrap();
        }
        let rows = if condition == Condition::WithArea { TABLE_WITH_AREA } else { TABLE };
        for row in rows.trim().lines() {
            let (command, cells) = row.split_once(' ').unwrap();
            assert_eq!(cells.split_whitespace().count(), STATES.len(), "{row}");
            let mut printed = format!("\n{command:<16}");
            for (state, free) in STATES.into_iter().zip(cells.split_whitespace()) {
                let Some(mut table) = condition.table(state) else {
                    assert_eq!(free, "-", "{command} of a zone that is {state:?}");
                    write!(printed, "{free:<18}").unwrap();
                    continue;
                };
                let before = table.describe_zone(0);
                let outcome = run(command, &mut table);
                table.check_invariants();
                let expected = condition.expected(command, state, free);
                let found = word(outcome, table.state(0));
                assert_eq!(found, expected, "{condition:?}, {command} of a zone that is {state:?}");
                let cell = match outcome {
                    Ok(()) => table.state(0).name().to_owned(),
                    Err(error) => {
                        assert_eq!(table.describe_zone(0), before, "{command} of a zone that is {state:?}");
                        statuses.insert(error.status());
                        code(error)
                    }
                };
                write!(printed, "{cell:<18}").unwrap();
            }
            if !free_rows.contains(&printed) {
                seen.push_str(&printed);
            }
            if condition == Condition::Free {
                free_rows.insert(printed);
            }
        }
        seen.push_str("\n\n");
    }
    seen.push_str("Statuses\n\n");
    for error in ZoneError::ALL {
        assert!(statuses.contains(&error.status()), "no pair has {error:?}");
        writeln!(seen, "{}  {error}", code(error)).unwrap();
    }
    let lines = seen.lines().map(|line| format!("{}\n", line.trim_end()));
    golden("zone-states.txt", &lines.collect::<String>());
}

fn golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{name} differs; UPDATE_GOLDEN=1 rewrites it. Found:\n{found}");
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
