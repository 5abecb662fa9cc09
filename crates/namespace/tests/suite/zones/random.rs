//! Random commands on the table and on the model, which agree on every answer and on every zone.
//!
//! Each run of the tests has 10^7 commands (2 s: the test profile is optimised). `ZONE_COMMANDS` sets another
//! number; 10^9 in release agreed too (622 s on two busy cores).

use super::LAYOUT;
use super::model::{Model, Place, Status};
use nandscape_core::rng::{below, seeded};
use nandscape_core::zone::{ZoneAction, ZoneAttributes, ZoneError, ZoneFilter, ZoneState};
use nandscape_namespace::zones::{RandomAreas, Written, ZoneLayout, ZoneTable};
use std::collections::BTreeSet;

/// Over all layouts, unless `ZONE_COMMANDS` says otherwise.
const COMMANDS: u64 = 10_000_000;

fn commands() -> u64 {
    std::env::var("ZONE_COMMANDS").map_or(COMMANDS, |text| {
        text.parse().unwrap_or_else(|_| panic!("ZONE_COMMANDS={text}: expected a number of commands"))
    })
}

fn layouts() -> Vec<ZoneLayout> {
    let areas = |size, granularity, count| Some(RandomAreas { size, granularity, count });
    vec![
        LAYOUT,
        ZoneLayout { max_active: Some(5), max_open: Some(3), ..LAYOUT },
        ZoneLayout { max_active: Some(3), max_open: Some(3), random: None, ..LAYOUT },
        ZoneLayout { max_active: Some(4), max_open: Some(1), random: areas(6, 3, Some(2)), ..LAYOUT },
        ZoneLayout { max_active: Some(1), extension_bytes: 0, random: areas(12, 12, Some(1)), ..LAYOUT },
        ZoneLayout {
            max_open: Some(2),
            capacity: 16,
            reads_across: true,
            random: areas(8, 1, None),
            ..LAYOUT
        },
        ZoneLayout { zones: 1, size: 3, capacity: 1, max_active: Some(1), random: None, ..LAYOUT },
        ZoneLayout { conventional: 3, max_active: Some(3), max_open: Some(2), ..LAYOUT },
        ZoneLayout { conventional: 7, reads_across: true, random: None, extension_bytes: 0, ..LAYOUT },
        ZoneLayout { zones: 14, size: 7, capacity: 6, max_active: Some(8), max_open: Some(6), ..LAYOUT },
    ]
}

/// A command as it is drawn, in blocks.
#[derive(Clone, Copy, Debug)]
enum Draw {
    Write(u64, u64),
    Append(u64, u64),
    Read(u64, u64),
    Manage(ZoneAction, Option<u64>),
    FlushRandom(u64),
    Describe(u64, usize),
    Fail(u32, bool),
    FinishByDevice(u32),
    Restart,
}

impl Draw {
    const fn name(&self) -> &'static str {
        match self {
            Self::Write(..) => "write",
            Self::Append(..) => "append",
            Self::Read(..) => "read",
            Self::Manage(_, None) => "manage all",
            Self::Manage(action, Some(_)) => action.name(),
            Self::FlushRandom(_) => "flush random",
            Self::Describe(..) => "describe",
            Self::Fail(..) => "fail",
            Self::FinishByDevice(_) => "finish by device",
            Self::Restart => "restart",
        }
    }
}

/// What a command is answered with, by the table and by the model.
type Answer = Result<Option<Place>, Status>;

const fn place(written: Written) -> Place {
    let closed = match written.closed {
        Some(change) => Some(change.zone),
        None => None,
    };
    (written.from, written.written, closed)
}

fn of_table(table: &mut ZoneTable, draw: Draw) -> Answer {
    let mut changes = Vec::new();
    let answer = match draw {
        Draw::Write(at, blocks) => table.write(at, blocks).map(|written| Some(place(written))),
        Draw::Append(at, blocks) => table.append(at, blocks).map(|written| Some(place(written))),
        Draw::Read(at, blocks) => table.check_read(at, blocks).map(|()| None),
        Draw::Manage(action, at) => table.manage(action, at, &mut changes).map(|()| None),
        Draw::FlushRandom(last) => table.flush_random(last).map(|written| Some(place(written))),
        Draw::Describe(at, len) => table.describe(at, &vec![len as u8; len]).map(|_| None),
        Draw::Fail(zone, true) => Ok(table.fail_writes(zone)).map(|_| None),
        Draw::Fail(zone, false) => Ok(table.fail(zone)).map(|_| None),
        Draw::FinishByDevice(zone) => Ok(table.finish_by_device(zone)).map(|_| None),
        Draw::Restart => {
            table.restart();
            Ok(None)
        }
    };
    for change in &changes {
        assert_ne!(change.from, change.to, "{draw:?}: {change:?}");
    }
    assert!(answer.is_ok() || changes.is_empty(), "{draw:?} was refused and changed {changes:?}");
    answer.map_err(ZoneError::name)
}

fn of_model(model: &mut Model, draw: Draw) -> Answer {
    match draw {
        Draw::Write(at, blocks) => model.write(at, blocks).map(Some),
        Draw::Append(at, blocks) => model.append(at, blocks).map(Some),
        Draw::Read(at, blocks) => model.read(at, blocks).map(|()| None),
        Draw::Manage(action, at) => model.manage(action, at).map(|()| None),
        Draw::FlushRandom(last) => model.flush_random(last).map(Some),
        Draw::Describe(at, len) => model.describe(at, &vec![len as u8; len]).map(|()| None),
        Draw::Fail(zone, is_readable) => {
            model.fail(zone as usize, is_readable);
            Ok(None)
        }
        Draw::FinishByDevice(zone) => {
            model.finish_by_device(zone as usize);
            Ok(None)
        }
        Draw::Restart => {
            model.restart();
            Ok(None)
        }
    }
}

/// A draw that is often sensible: near write pointers, at starts of zones.
fn draw(rng: &mut impl nandscape_core::rng::Rng, table: &ZoneTable) -> Draw {
    let layout = table.layout();
    let zone = below(rng, u64::from(layout.zones)) as u32;
    let start = u64::from(zone) * layout.size;
    let slip = |rng: &mut _| if below(rng, 8) == 0 { below(rng, layout.size + 2) } else { 0 };
    let pointer = start + table.written(zone);
    let blocks = 1 + below(rng, layout.capacity.min(5));
    match below(rng, 100) {
        0..20 if zone < layout.conventional => Draw::Write(start + below(rng, layout.size), blocks),
        0..40 => Draw::Write(pointer + slip(rng), blocks - u64::from(below(rng, 500) == 0 && blocks == 1)),
        40..55 => Draw::Append(start + slip(rng), blocks),
        55..62 => Draw::Read(start + below(rng, layout.size), blocks * 2),
        62..90 => {
            // Failed zones stay failed, so that few are made offline.
            let action = ZoneAction::ALL[below(rng, ZoneAction::ALL.len() as u64) as usize];
            let is_all = below(rng, 30) == 0;
            Draw::Manage(action, (!is_all).then(|| start + slip(rng)))
        }
        90..95 => {
            // Of few tries the first zone with an area, and in most cases inside of it.
            let has_area =
                |zone: &u32| table.describe_zone(*zone).attributes.has(ZoneAttributes::RANDOM_AREA);
            let mut tries = (0..4).map(|_| below(rng, u64::from(layout.zones)) as u32);
            let zone = tries.find(has_area).unwrap_or(zone);
            let end = if below(rng, 4) == 0 {
                layout.capacity
            } else {
                layout.random.map_or(1, |areas| areas.size)
            };
            Draw::FlushRandom(u64::from(zone) * layout.size + table.written(zone) + below(rng, end))
        }
        95..99 => Draw::Describe(start + slip(rng), below(rng, 66) as usize),
        _ => match below(rng, 400) {
            0 => Draw::Fail(zone, below(rng, 2) == 0),
            1..100 => Draw::Restart,
            _ => Draw::FinishByDevice(zone),
        },
    }
}

#[test]
fn random_commands_are_answered_as_the_model_answers_them() {
    let layouts = layouts();
    let share = commands() / layouts.len() as u64;
    let mut seen = BTreeSet::new();
    // Names of the commands that were accepted, and how many left as many zones open and active as may be.
    let mut accepted = BTreeSet::new();
    let mut at_limit = [0; 2];
    for (seed, layout) in (1..).zip(layouts) {
        let mut rng = seeded(seed);
        let (mut table, mut model) = (ZoneTable::new(layout), Model::new(layout));
        for step in 0..share {
            // Failed zones stay failed: begin anew from time to time.
            if step % 5_000 == 0 {
                (table, model) = (ZoneTable::new(layout), Model::new(layout));
            }
            let draw = draw(&mut rng, &table);
            let context = || format!("layout {seed}, step {step}, {draw:?}");
            let (found, expected) = (of_table(&mut table, draw), of_model(&mut model, draw));
            assert_eq!(found, expected, "{}", context());
            match found {
                Err(status) => drop(seen.insert(status)),
                Ok(_) => drop(accepted.insert(draw.name())),
            }
            let limits = [layout.max_open.or(layout.max_active), layout.max_active];
            for ((limit, found), at_limit) in
                limits.into_iter().zip([model.open(), model.active()]).zip(&mut at_limit)
            {
                assert!(limit.is_none_or(|most| found <= most as usize), "{}", context());
                *at_limit += u64::from(limit.is_some_and(|most| found == most as usize));
            }
            assert_eq!(table.open() as usize, model.open(), "{}", context());
            assert_eq!(table.active() as usize, model.active(), "{}", context());
            for zone in 0..layout.zones {
                check_zone(&table, &model, zone, &context);
            }
            if step % 64 == 0 {
                table.check_invariants();
                check_report(&table, &model, &context);
            }
        }
    }
    let missing: Vec<_> =
        ZoneError::ALL.iter().map(|error| error.name()).filter(|name| !seen.contains(name)).collect();
    assert!(missing.is_empty(), "no command was refused as {missing:?}");
    assert_eq!(accepted.len(), 15, "{accepted:?} were accepted");
    assert!(
        at_limit.iter().all(|count| *count > share / 10),
        "{at_limit:?} at the limits of open, active zones"
    );
}

fn check_zone(table: &ZoneTable, model: &Model, zone: u32, context: &dyn Fn() -> String) {
    let (state, pointer, ..) = model.shown(zone as usize);
    assert_eq!(table.state(zone), state, "zone {zone}: {}", context());
    if let Some(pointer) = pointer {
        assert_eq!(table.written(zone), pointer, "zone {zone}: {}", context());
    }
}

fn check_report(table: &ZoneTable, model: &Model, context: &dyn Fn() -> String) {
    let layout = table.layout();
    let block = u64::from(layout.block_bytes);
    let report = table.report(0, ZoneFilter::All, u64::MAX).unwrap();
    assert_eq!(report.matching, u64::from(layout.zones));
    for (number, zone) in report.zones.iter().enumerate() {
        let (state, pointer, attributes, extension) = model.shown(number);
        let start = number as u64 * layout.size * block;
        assert_eq!((zone.start, zone.capacity, zone.state), (start, layout.capacity * block, state));
        assert_eq!(zone.write_pointer, pointer.map(|at| start + at * block), "{}", context());
        assert_eq!((zone.attributes.0, zone.extension.as_deref()), (attributes, extension), "{}", context());
    }
    for state in ZoneState::ALL {
        let some = table.report(0, ZoneFilter::State(state), 1).unwrap();
        let expected: Vec<_> = report.zones.iter().filter(|zone| zone.state == state).collect();
        assert_eq!(some.matching, expected.len() as u64, "{}", context());
        assert_eq!(some.zones.first(), expected.first().copied(), "{}", context());
    }
}
