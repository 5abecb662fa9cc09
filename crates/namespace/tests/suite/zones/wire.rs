//! Commands and reports byte by byte, written from the figures of the standard (NVMe ZNS 1.1, section 3.4).

use super::{LAYOUT, manage};
use nandscape_core::NvmeStatus;
use nandscape_core::zone::{ZoneAction, ZoneAttributes, ZoneCommand, ZoneFilter, ZoneState};
use nandscape_namespace::zones::wire::{
    Receive, decode_receive, decode_send, encode_report, identify_controller, identify_namespace,
};
use nandscape_namespace::zones::{RandomAreas, ZoneLayout, ZoneTable};

const BLOCK: u64 = LAYOUT.block_bytes as u64;

/// What Zone Management Receive fills of a buffer.
fn received(table: &ZoneTable, cdw: [u32; 6]) -> Vec<u8> {
    let receive = decode_receive(&cdw, table.layout()).unwrap();
    let ZoneCommand::Report { from, filter, room } = receive.report else { panic!("{receive:?}") };
    let report = table.report(from / BLOCK, filter, room).unwrap();
    let mut bytes = vec![0xaa; receive.bytes + 8];
    let filled = encode_report(&report, &receive, table.layout(), &mut bytes);
    assert!(bytes[filled..].iter().all(|byte| *byte == 0xaa), "no byte beyond what was filled");
    bytes.truncate(filled);
    bytes
}

/// Dwords of a report from a block on, into so many bytes.
const fn report(from: u32, bytes: u32, action: u32, option: u32, is_partial: bool) -> [u32; 6] {
    [from, 0, bytes / 4 - 1, action | option << 8 | (is_partial as u32) << 16, 0, 0]
}

/// Three zones: closed with an extension, implicitly open, full and recommended for a reset.
fn table() -> ZoneTable {
    let mut table = ZoneTable::new(ZoneLayout { zones: 3, random: None, ..LAYOUT });
    table.describe(0, b"nandscape").unwrap();
    table.write(16, 5).unwrap();
    manage(&mut table, ZoneAction::Finish, 32).unwrap();
    table.recommend(2, ZoneAttributes::RESET_RECOMMENDED);
    table
}

/// A descriptor: state and attributes, capacity, start and write pointer in blocks.
fn descriptor(state: u8, attributes: u8, start: u8, pointer: [u8; 8]) -> Vec<u8> {
    let mut bytes = vec![2, state << 4, attributes, 0, 0, 0, 0, 0];
    bytes.extend([12, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([start, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(pointer);
    bytes.extend([0; 32]);
    bytes
}

const NO_POINTER: [u8; 8] = [0xff; 8];

fn header(count: u8) -> Vec<u8> {
    let mut bytes = vec![count];
    bytes.extend([0; 63]);
    bytes
}

#[test]
fn a_report_has_a_header_and_a_descriptor_for_each_zone() {
    let zones = [
        descriptor(4, 0x80, 0, [0, 0, 0, 0, 0, 0, 0, 0]),
        descriptor(2, 0, 16, [21, 0, 0, 0, 0, 0, 0, 0]),
        descriptor(0xe, 0x04, 32, NO_POINTER),
    ];
    assert_eq!(received(&table(), report(0, 4096, 0, 0, false)), [header(3), zones.concat()].concat());
    // From the zone of any block on.
    assert_eq!(received(&table(), report(31, 4096, 0, 0, false)), [header(2), zones[1..].concat()].concat());
    // With room for one: all that match are counted, or what is there.
    assert_eq!(received(&table(), report(0, 191, 0, 0, false)), [header(3), zones[0].clone()].concat());
    assert_eq!(received(&table(), report(0, 128, 0, 0, true)), [header(1), zones[0].clone()].concat());
    // Without room for one, and for half a header.
    assert_eq!(received(&table(), report(0, 64, 0, 0, false)), header(3));
    assert_eq!(received(&table(), report(0, 32, 0, 0, false)), header(3)[..32]);
    // By state, and those of which the device asks something.
    assert_eq!(received(&table(), report(0, 4096, 0, 2, true)), [header(1), zones[1].clone()].concat());
    assert_eq!(received(&table(), report(0, 4096, 0, 9, true)), [header(1), zones[2].clone()].concat());
    assert_eq!(received(&table(), report(0, 4096, 0, 7, true)), header(0));
}

#[test]
fn conventional_zones_have_type_and_state_of_zbc() {
    let mut table = ZoneTable::new(ZoneLayout { zones: 3, conventional: 2, random: None, ..LAYOUT });
    table.write(18, 3).unwrap();
    table.write(32, 5).unwrap();
    let conventional = |start: u8| {
        let mut bytes = descriptor(0, 0, start, NO_POINTER);
        bytes[0] = 1;
        bytes
    };
    let sequential = descriptor(2, 0, 32, [37, 0, 0, 0, 0, 0, 0, 0]);
    let all = [header(3), conventional(0), conventional(16), sequential];
    assert_eq!(received(&table, report(0, 4096, 0, 0, false)), all.concat());
    // By their state, which is an option of its own.
    let two = [header(2), conventional(0), conventional(16)];
    assert_eq!(received(&table, report(0, 4096, 0, 0x3f, true)), two.concat());
    assert_eq!(received(&table, report(0, 4096, 0, 1, true)), header(0));
}

#[test]
fn an_extended_report_has_the_hosts_bytes_behind_each_descriptor() {
    let mut extension = b"nandscape".to_vec();
    extension.resize(64, 0);
    let expected = [
        header(3),
        descriptor(4, 0x80, 0, [0; 8]),
        extension,
        descriptor(2, 0, 16, [21, 0, 0, 0, 0, 0, 0, 0]),
        vec![0; 64],
    ];
    assert_eq!(received(&table(), report(0, 64 + 3 * 128 - 4, 1, 0, false)), expected.concat());
    let without = ZoneLayout { extension_bytes: 0, ..LAYOUT };
    assert_eq!(decode_receive(&report(0, 4096, 1, 0, false), &without), Err(NvmeStatus::InvalidField));
}

#[test]
fn the_dwords_of_a_receive_say_what_is_reported() {
    let states = [(1, ZoneState::Empty), (3, ZoneState::ExplicitlyOpen), (6, ZoneState::ReadOnly)];
    for (option, state) in states {
        let receive = decode_receive(&[5, 1, 1023, option << 8 | 1 << 16 | 1, 0, 0], &LAYOUT).unwrap();
        let filter = ZoneFilter::State(state);
        let from = (5 + (1 << 32)) * BLOCK;
        let expected = ZoneCommand::Report { from, filter, room: (4096 - 64) / 128 };
        assert_eq!(receive, Receive { report: expected, bytes: 4096, is_extended: true, is_partial: true });
    }
    for wrong in [2, 8 << 8, 10 << 8, 0xff] {
        assert_eq!(decode_receive(&[0, 0, 1023, wrong, 0, 0], &LAYOUT), Err(NvmeStatus::InvalidField));
    }
}

#[test]
fn the_dwords_of_a_send_say_what_is_done() {
    let send = |word: u32| decode_send(&[16, 0, 0, word, 0, 0], &LAYOUT);
    let zone = 16 * BLOCK;
    for (code, action) in [
        (1, ZoneAction::Close),
        (2, ZoneAction::Finish),
        (3, ZoneAction::Open),
        (0x203, ZoneAction::OpenRandom),
        (4, ZoneAction::Reset),
        (5, ZoneAction::Offline),
    ] {
        assert_eq!(send(code), Ok(ZoneCommand::Manage { action, zone: Some(zone) }));
        assert_eq!(send(code | 0x100), Ok(ZoneCommand::Manage { action, zone: None }));
    }
    assert_eq!(send(0x10), Ok(ZoneCommand::Describe { zone }));
    assert_eq!(send(0x11), Ok(ZoneCommand::FlushRandom { last: zone }));
    for wrong in [0, 6, 0x110, 0x111, 0xff] {
        assert_eq!(send(wrong), Err(NvmeStatus::InvalidField), "{wrong:#x}");
    }
    // An address beyond any namespace stays one.
    let far = decode_send(&[u32::MAX, u32::MAX, 0, 4, 0, 0], &LAYOUT);
    assert_eq!(far, Ok(ZoneCommand::Manage { action: ZoneAction::Reset, zone: Some(u64::MAX) }));
}

#[test]
fn identify_has_the_limits_counted_from_zero() {
    let layout = ZoneLayout {
        max_active: Some(14),
        max_open: Some(8),
        extension_bytes: 128,
        random: Some(RandomAreas { size: 256, granularity: 4, count: Some(7) }),
        reads_across: true,
        size: 0x8_0000,
        capacity: 0x4_0000,
        ..LAYOUT
    };
    let data = identify_namespace(&layout, true);
    let mut expected = vec![0u8; 4096];
    expected[..12].copy_from_slice(&[1, 0, 3, 0, 13, 0, 0, 0, 7, 0, 0, 0]);
    expected[44..53].copy_from_slice(&[6, 0, 0, 0, 4, 0, 0, 1, 1]);
    expected[2816..2825].copy_from_slice(&[0, 0, 8, 0, 0, 0, 0, 0, 2]);
    assert_eq!(data[..], expected);

    let unlimited = identify_namespace(&ZoneLayout { random: None, extension_bytes: 0, ..LAYOUT }, false);
    expected.fill(0);
    expected[4..12].fill(0xff);
    expected[2816] = 16;
    assert_eq!(unlimited[..], expected);

    let mut controller = vec![0u8; 4096];
    controller[0] = 5;
    assert_eq!(identify_controller(5)[..], controller);
}
