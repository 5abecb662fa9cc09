//! Commands that were sent to QEMU's zoned namespaces, with the answers recorded by `tests/guest/zns/record`
//! (which describes the format): the table gives the same status, address and report for each, and every zone
//! is the same after each. Where the two differ, the difference is one of [`DEVIATIONS`], which are counted.
//!
//! After a deviation the table follows QEMU, so that what comes later can be compared.

use super::manage;
use nandscape_core::zone::{ZoneAction, ZoneAttributes, ZoneCommand, ZoneError, ZoneState};
use nandscape_namespace::zones::wire::{
    DESCRIPTOR_BYTES, ZONE_APPEND, ZONE_RECEIVE, ZONE_SEND, decode_receive, decode_send, encode_report,
    identify_controller, identify_namespace,
};
use nandscape_namespace::zones::{RandomAreas, ZoneLayout, ZoneTable};
use std::collections::{BTreeMap, BTreeSet};

const VECTORS: &[u8] = include_bytes!("../../data/qemu-zones.txt.zst");

/// Where QEMU 7.2 differs: name, times in the recording, reason. The standard gives no order to the checks of
/// a command with two faults.
const DEVIATIONS: &[(&str, u32, &str)] = &[
    ("address-first", 8, "two faults: QEMU checks the address before other fields, this table after them"),
    (
        "area-first",
        26,
        "two faults: an append inside a zone with an area; this table checks the address first",
    ),
    (
        "limits-first",
        6,
        "two faults: QEMU checks the limits of zones before that of areas, this table after it",
    ),
    (
        "alignment-first",
        2,
        "two faults: an area in a full zone, from inside a unit on; this table checks the state first",
    ),
    ("unaligned-area", 161, "an area from inside a unit on: B7h, though no area is missing; B6h here"),
    ("areas-run-out", 4, "without a limit of areas, QEMU never gets back the areas of full and reset zones"),
    ("random-open-all", 15, "QEMU accepts Select All with the bit that allocates an area"),
    ("flush-past-area", 14, "QEMU flushes up to the first block behind the area"),
    (
        "flush-past-area-part",
        19,
        "QEMU takes that block for a part of a unit (02h) instead of a wrong block (B8h)",
    ),
    ("attention-filter", 224, "QEMU does not know reporting option 09h of ZNS 1.1"),
    ("short-report", 115, "QEMU refuses a buffer smaller than the header; this table fills what there is"),
    ("closes-first", 65, "QEMU closes a zone for another one that it then refuses to open"),
    ("open-all-part", 11, "QEMU opens closed zones until it refuses one; this table opens all or none"),
    ("open-all-closes", 9, "QEMU closes implicitly open zones for closed ones; this table refuses"),
    ("refused-extension", 57, "QEMU replaces the extension of a zone although it refuses the command"),
];

/// Namespaces of the recording.
const LAYOUTS: u32 = 9;

/// States that no command of QEMU's leads to.
const FAILED: [ZoneState; 2] = [ZoneState::ReadOnly, ZoneState::Offline];

const WRITE: u8 = 0x01;
const READ: u8 = 0x02;
const WRITE_ZEROES: u8 = 0x08;

/// A line of the recording.
#[derive(Debug)]
struct Recorded<'a> {
    /// In the file.
    line: u32,
    opcode: u8,
    cdw: [u32; 6],
    /// An extension that the host sends.
    extension: Vec<u8>,
    status: u16,
    result: u64,
    bytes: Option<Vec<u8>>,
    changes: Vec<&'a str>,
}

/// State, attributes, and write pointer from the start of the zone, as a report has them.
type Shown = (u8, u8, u64);

fn hex(word: &str) -> u64 {
    u64::from_str_radix(word, 16).unwrap_or_else(|error| panic!("{word}: {error}"))
}

/// `LENGTH:HEX`, without the zeroes at the end.
fn bytes(word: &str) -> Vec<u8> {
    let (len, digits) = word.split_once(':').unwrap();
    let mut bytes: Vec<u8> = (0..digits.len()).step_by(2).map(|at| hex(&digits[at..at + 2]) as u8).collect();
    bytes.resize(len.parse().unwrap(), 0);
    bytes
}

/// What changed of a zone: its number and what a report shows of it.
fn change(word: &str) -> (u32, Shown) {
    let (zone, shown) = word.split_once('=').unwrap();
    let fields: Vec<u64> = shown.split(',').map(hex).collect();
    (zone.parse().unwrap(), (fields[0] as u8, fields[1] as u8, fields[2]))
}

fn parse(number: u32, line: &str) -> Recorded<'_> {
    let words: Vec<&str> = line.split(' ').collect();
    let mut cdw = [0; 6];
    for (cdw, word) in cdw.iter_mut().zip(&words[1..7]) {
        *cdw = hex(word) as u32;
    }
    let extension = words[7].split_once('.').map_or_else(Vec::new, |(len, tag)| {
        let tag: u16 = tag.parse().unwrap();
        (0..len.parse().unwrap()).map(|at: usize| tag.to_le_bytes()[at % 2] ^ at as u8).collect()
    });
    let (has_bytes, rest) = match words.get(10) {
        Some(word) if word.contains(':') => (true, &words[11..]),
        _ => (false, &words[10..]),
    };
    Recorded {
        line: number,
        opcode: hex(words[0]) as u8,
        cdw,
        extension,
        // Without Do Not Retry.
        status: hex(words[8]) as u16 & 0x7ff,
        result: hex(words[9]),
        bytes: has_bytes.then(|| bytes(words[10])),
        changes: rest.to_vec(),
    }
}

fn layout(line: &str) -> ZoneLayout {
    let fields: BTreeMap<&str, u64> = line
        .split(' ')
        .skip(1)
        .map(|field| field.split_once('=').unwrap())
        .map(|(key, value)| (key, value.parse().unwrap_or_else(|_| u64::from(value == "on"))))
        .collect();
    let limit = |key| Some(fields[key] as u32).filter(|most| *most > 0);
    ZoneLayout {
        zones: fields["zones"] as u32,
        conventional: 0,
        size: fields["size"],
        capacity: fields["capacity"],
        block_bytes: fields["block"] as u32,
        max_active: limit("active"),
        max_open: limit("open"),
        extension_bytes: fields["extension"] as u32,
        random: (fields["area"] > 0).then(|| RandomAreas {
            size: fields["area"],
            granularity: fields["granularity"],
            count: limit("areas"),
        }),
        reads_across: fields["across"] == 1,
    }
}

/// What the table answers with: an address for an append, bytes for a report.
#[derive(Debug, Default, PartialEq)]
struct Answer {
    status: u16,
    address: u64,
    bytes: Option<Vec<u8>>,
}

impl Recorded<'_> {
    fn context(&self) -> String {
        format!("line {}: {self:x?}", self.line)
    }

    fn address(&self) -> u64 {
        u64::from(self.cdw[0]) | u64::from(self.cdw[1]) << 32
    }

    fn action(&self) -> u8 {
        self.cdw[3] as u8
    }

    fn is_all(&self) -> bool {
        self.opcode == ZONE_SEND && self.cdw[3] & 1 << 8 != 0
    }

    /// Opens a zone with a random write area.
    fn opens_random(&self) -> bool {
        self.opcode == ZONE_SEND && self.action() == 3 && self.cdw[3] & 1 << 9 != 0
    }

    fn flushes(&self) -> bool {
        self.opcode == ZONE_SEND && self.action() == 0x11 && !self.is_all()
    }
}

/// Executes a command as a front end does.
fn execute(table: &mut ZoneTable, command: &Recorded<'_>) -> Answer {
    let refused = |error: ZoneError| Answer { status: error.status(), ..Answer::default() };
    let layout = *table.layout();
    let block = u64::from(layout.block_bytes);
    let (at, blocks) = (command.address(), u64::from(command.cdw[2] & 0xffff) + 1);
    let invalid = refused(ZoneError::InvalidField);
    let outcome = match command.opcode {
        WRITE | WRITE_ZEROES => table.write(at, blocks).map(|_| Answer::default()),
        ZONE_APPEND => table.append(at, blocks).map(|written| Answer {
            address: u64::from(written.zone) * layout.size + written.from,
            ..Answer::default()
        }),
        READ => table.check_read(at, blocks).map(|()| Answer::default()),
        ZONE_SEND => match decode_send(&command.cdw, &layout) {
            Err(error) => {
                assert_eq!(error.code(), (0, 0x02));
                return invalid;
            }
            Ok(ZoneCommand::Manage { action, zone }) => {
                manage(table, action, zone.map(|zone| zone / block)).map(|_| Answer::default())
            }
            Ok(ZoneCommand::FlushRandom { last }) => {
                table.flush_random(last / block).map(|_| Answer::default())
            }
            Ok(ZoneCommand::Describe { zone }) => {
                table.describe(zone / block, &command.extension).map(|_| Answer::default())
            }
            Ok(other) => panic!("{other:?} of {command:?}"),
        },
        ZONE_RECEIVE => {
            let Ok(receive) = decode_receive(&command.cdw, &layout) else { return invalid };
            let ZoneCommand::Report { from, filter, room } = receive.report else { panic!("{receive:?}") };
            table.report(from / block, filter, room).map(|report| {
                let mut bytes = vec![0; receive.bytes];
                encode_report(&report, &receive, &layout, &mut bytes);
                Answer { bytes: Some(bytes), ..Answer::default() }
            })
        }
        other => panic!("opcode {other:#x}"),
    };
    outcome.unwrap_or_else(refused)
}

/// The table, QEMU's zones beside it, and what differed so far.
struct Replay {
    table: ZoneTable,
    shown: Vec<Shown>,
    /// Extensions that QEMU replaced although it refused the command.
    replaced: BTreeMap<u32, Vec<u8>>,
    deviations: BTreeMap<&'static str, u32>,
}

impl Replay {
    fn new(layout: ZoneLayout, deviations: BTreeMap<&'static str, u32>) -> Self {
        let shown = vec![(ZoneState::Empty as u8, 0, 0); layout.zones as usize];
        Self { table: ZoneTable::new(layout), shown, replaced: BTreeMap::new(), deviations }
    }

    fn deviates(&mut self, name: &'static str) {
        *self.deviations.entry(name).or_default() += 1;
    }

    fn run(&mut self, command: &Recorded<'_>) {
        let mut trial = self.table.clone();
        let answer = execute(&mut trial, command);
        if answer.status == command.status {
            self.compare(command, &answer);
            self.table = trial;
        } else {
            let name = deviation(&self.table, command, answer.status);
            self.deviates(name.unwrap_or_else(|| panic!("{:#x} here, {}", answer.status, command.context())));
            if name == Some("flush-past-area") && command.status == 0 {
                self.table.flush_random(command.address() - 1).unwrap();
                self.table.flush_random(command.address()).unwrap();
            }
        }
        self.track_extensions(command);
        self.follow(command);
    }

    /// Compares what two commands that ended in the same way returned.
    fn compare(&mut self, command: &Recorded<'_>, answer: &Answer) {
        if command.status != 0 {
            return;
        }
        assert_eq!(answer.address, command.result, "{}", command.context());
        if answer.bytes == command.bytes {
            return;
        }
        let mut bytes = answer.bytes.clone().unwrap();
        self.replace_extensions(&mut bytes);
        assert_eq!(Some(bytes), command.bytes, "{}", command.context());
        self.deviates("refused-extension");
    }

    /// Puts the extensions that QEMU has into an extended report.
    fn replace_extensions(&self, report: &mut [u8]) {
        let layout = self.table.layout();
        let entry = DESCRIPTOR_BYTES + layout.extension_bytes as usize;
        for entry in report[DESCRIPTOR_BYTES..].chunks_exact_mut(entry) {
            let start = u64::from_le_bytes(entry[16..24].try_into().unwrap());
            let has_extension = ZoneAttributes(entry[2]).has(ZoneAttributes::EXTENSION);
            let replaced = self.replaced.get(&((start / layout.size) as u32));
            if let Some(bytes) = replaced.filter(|_| has_extension) {
                entry[DESCRIPTOR_BYTES..].copy_from_slice(bytes);
            }
        }
    }

    /// Notes the bytes of every extension that a zone of QEMU's got.
    fn track_extensions(&mut self, command: &Recorded<'_>) {
        let layout = self.table.layout();
        let at = command.address();
        if !command.extension.is_empty()
            && !command.is_all()
            && at < layout.blocks()
            && at.is_multiple_of(layout.size)
        {
            self.replaced.insert((at / layout.size) as u32, command.extension.clone());
        }
    }

    /// Takes over what changed in QEMU, and checks that the table's zones are the same, or become so by
    /// commands that a deviation explains.
    fn follow(&mut self, command: &Recorded<'_>) {
        let before = self.shown.clone();
        let changed = self.take_over(&command.changes);
        if self.is_same() {
            return;
        }
        let opens_all = command.opcode == ZONE_SEND && command.action() == 3 && command.is_all();
        let is_closing = |zone: u32| {
            let (from, to) = (before[zone as usize].0, self.shown[zone as usize].0);
            (from, to) == (ZoneState::ImplicitlyOpen as u8, ZoneState::Closed as u8)
        };
        let name = match (&changed[..], opens_all, command.status) {
            ([zone], false, 0x1b7 | 0x1bd | 0x1be) if is_closing(*zone) => "closes-first",
            (_, true, 0x1be) => "open-all-part",
            (_, true, 0) => "open-all-closes",
            _ => panic!("zones {changed:?} differ, {}", command.context()),
        };
        let size = self.table.layout().size;
        let (closing, opening): (Vec<u32>, Vec<u32>) = changed.iter().partition(|zone| is_closing(**zone));
        for zone in closing {
            manage(&mut self.table, ZoneAction::Close, u64::from(zone) * size).unwrap();
        }
        for zone in opening {
            manage(&mut self.table, ZoneAction::Open, u64::from(zone) * size).unwrap();
        }
        if name != "open-all-closes" {
            self.deviates(name);
        }
        assert!(self.is_same(), "{name}, {}", command.context());
    }

    /// Takes over what QEMU shows of the zones that changed; gives their numbers.
    fn take_over(&mut self, changes: &[&str]) -> Vec<u32> {
        let take = |word: &&str| {
            let (zone, shown) = change(word);
            self.shown[zone as usize] = shown;
            zone
        };
        changes.iter().map(take).collect()
    }

    /// Whether every zone is in the state in which QEMU has it.
    fn is_same(&self) -> bool {
        (0..).zip(&self.shown).all(|(number, shown)| {
            let zone = self.table.describe_zone(number);
            let block = u64::from(self.table.layout().block_bytes);
            let pointer = zone.write_pointer.map_or(u64::MAX, |pointer| (pointer - zone.start) / block);
            (zone.state as u8, zone.attributes.0, pointer) == *shown
        })
    }
}

/// The name of a deviation in the status: the table's zones before the command, and its own answer.
fn deviation(table: &ZoneTable, command: &Recorded<'_>, ours: u16) -> Option<&'static str> {
    let layout = table.layout();
    let at = command.address();
    let is_outside = at >= layout.blocks();
    let is_report = command.opcode == ZONE_RECEIVE;
    // State and blocks below the write pointer of the zone.
    let zone = (!is_outside).then(|| (at / layout.size) as u32);
    let state = zone.map(|zone| table.state(zone));
    let is_full = state == Some(ZoneState::Full);
    let is_within_unit = zone
        .zip(layout.random)
        .is_some_and(|(zone, areas)| !table.written(zone).is_multiple_of(areas.granularity));
    let is_past_area = command.flushes()
        && zone
            .zip(layout.random)
            .is_some_and(|(zone, areas)| at % layout.size == table.written(zone) + areas.size);
    let name = match (ours, command.status) {
        (0x02 | 0x1b6, 0x80) if is_outside => "address-first",
        (0x02, 0x1b6) if command.opcode == ZONE_APPEND && !at.is_multiple_of(layout.size) => "area-first",
        (0x1b7, 0x1bd | 0x1be) if command.opens_random() => "limits-first",
        (0x1bf, 0x1b7) if command.opens_random() && is_full && is_within_unit => "alignment-first",
        (0x1b6, 0x1b7) if command.opens_random() && is_within_unit => "unaligned-area",
        (0, 0x1b7) if command.opens_random() && layout.random?.count.is_none() => "areas-run-out",
        (0x02, 0) if command.opens_random() && command.is_all() => "random-open-all",
        (0x1b8, 0 | 0x1be) if is_past_area => "flush-past-area",
        (0x1b8, 0x02) if is_past_area => "flush-past-area-part",
        (0, 0x02) if is_report && command.cdw[3] >> 8 & 0xff == 9 => "attention-filter",
        (0, 0x02) if is_report && (command.cdw[2] as usize + 1) * 4 < DESCRIPTOR_BYTES => "short-report",
        (0x1be, 0) if command.opcode == ZONE_SEND && command.action() == 3 && command.is_all() => {
            "open-all-closes"
        }
        _ => return None,
    };
    Some(name)
}

/// Compares an identify structure, field by field where ours means something else.
fn compare_identify(line: &str, layout: &ZoneLayout) {
    let words: Vec<&str> = line.split(' ').collect();
    let mut found = bytes(words[2]);
    if words[1] == "6" {
        assert_eq!(found, identify_controller(0)[..]);
        return;
    }
    let mut expected = identify_namespace(layout, false);
    // QEMU has eight formats, each with the zones of the one that is in use.
    let (fields, formats) = found.split_at_mut(2816);
    for format in formats.chunks_exact_mut(16).skip(1).take_while(|format| format[0] != 0) {
        assert_eq!(format, &expected[2816..2832]);
        format.fill(0);
    }
    // It counts random write areas from 1, zero for no limit; ours from 0 as the other limits.
    if let Some(areas) = layout.random {
        assert_eq!(fields[44..48], areas.count.unwrap_or(0).to_le_bytes());
        assert_eq!(expected[44..48], areas.count.map_or(u32::MAX, |most| most - 1).to_le_bytes());
        expected[44..48].copy_from_slice(&fields[44..48]);
    }
    assert_eq!(found, expected[..]);
}

/// What the recording is made of.
#[derive(Default)]
struct Totals {
    commands: u32,
    restarts: u32,
    identified: u32,
    statuses: BTreeSet<u16>,
    /// States of zones, with the commands that found them: opcode and action.
    pairs: BTreeSet<(u8, u8, u8)>,
}

impl Totals {
    fn add(&mut self, command: &Recorded<'_>, table: &ZoneTable) {
        self.commands += 1;
        self.statuses.insert(command.status);
        let at = command.address();
        if command.opcode != ZONE_RECEIVE && !command.is_all() && at < table.layout().blocks() {
            let state = table.state((at / table.layout().size) as u32);
            let action = if command.opcode == ZONE_SEND { command.action() } else { 0 };
            self.pairs.insert((state as u8, command.opcode, action));
        }
    }

    fn check(&self) {
        assert!(self.commands >= 10_000, "{} commands", self.commands);
        assert!(self.restarts >= 20, "{} starts", self.restarts);
        assert_eq!(self.identified, 2 * LAYOUTS);
        // Zones of QEMU's never fail, and none of them is conventional.
        let failing = [ZoneError::ReadOnly, ZoneError::Offline];
        let errors = ZoneError::ALL.into_iter().filter(|error| !failing.contains(error));
        assert_eq!(self.statuses, errors.map(ZoneError::status).chain([0]).collect());
        let has_none = |state: &ZoneState| FAILED.contains(state) || *state == ZoneState::NotWritePointer;
        for state in ZoneState::ALL.iter().filter(|state| !has_none(state)) {
            let sends = [1, 2, 3, 4, 5, 0x10, 0x11].map(|action| (*state as u8, ZONE_SEND, action));
            let others = [READ, WRITE, WRITE_ZEROES, ZONE_APPEND].map(|opcode| (*state as u8, opcode, 0));
            for pair in sends.into_iter().chain(others) {
                assert!(self.pairs.contains(&pair), "{pair:x?} was not recorded");
            }
        }
    }
}

#[test]
fn qemu_answers_every_recorded_command_in_the_same_way() {
    let text = String::from_utf8(zstd::decode_all(VECTORS).unwrap()).unwrap();
    let mut replay: Option<Replay> = None;
    let (mut totals, mut deviations) = (Totals::default(), BTreeMap::new());
    for (number, line) in (1..).zip(text.lines()) {
        let kind = line.split(' ').next().unwrap();
        if kind == "layout" {
            deviations = replay.take().map_or(deviations, |replay| replay.deviations);
            replay = Some(Replay::new(layout(line), std::mem::take(&mut deviations)));
        }
        let Some(replay) = replay.as_mut() else {
            assert_eq!(kind, "#", "line {number}");
            continue;
        };
        match kind {
            "layout" => {}
            "identify" => {
                compare_identify(line, replay.table.layout());
                totals.identified += 1;
            }
            "restart" => {
                replay.table.restart();
                replay.take_over(&line.split(' ').skip(1).collect::<Vec<_>>());
                assert!(replay.is_same(), "line {number}: {line}");
                totals.restarts += 1;
            }
            _ => {
                let command = parse(number, line);
                totals.add(&command, &replay.table);
                replay.run(&command);
                replay.table.check_invariants();
            }
        }
    }
    totals.check();
    let expected: BTreeMap<_, _> = DEVIATIONS.iter().map(|(name, count, _)| (*name, *count)).collect();
    assert_eq!(replay.unwrap().deviations, expected);
}
