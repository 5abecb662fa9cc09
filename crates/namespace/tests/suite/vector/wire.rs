//! Wire forms, byte by byte, at the offsets of the specification.

use super::{GEOMETRY, setup};
use nandscape_core::NvmeStatus;
use nandscape_core::rng::{below, seeded};
use nandscape_core::vector::{
    AddressFormat, ChunkDescriptor, ChunkState, DeviceFormat, MediaEvent, MediaFailure, PageShape,
    SectorAddress, SectorErrors, VectorCommand, VectorError, VectorGeometry,
};
use nandscape_namespace::vector::{VectorSetup, wire};

const PLACE: SectorAddress = SectorAddress { group: 1, unit: 1, chunk: 2, sector: 12 };

fn format() -> AddressFormat {
    setup().check(&GEOMETRY, 1).unwrap().format()
}

#[test]
fn the_geometry_has_its_fields_where_the_specification_has_them() {
    let setup = VectorSetup { spans_planes: true, resets_free: true, cached_units: Some(3), ..setup() };
    let bytes = wire::encode_geometry(&setup.check(&GEOMETRY, 2).unwrap());
    let mut expected = [0; 4096];
    expected[0] = 2; // version 2.0
    expected[8..12].copy_from_slice(&[1, 1, 2, 6]); // 2 groups, 2 units, 4 chunks, 48 sectors
    expected[16] = 0b11; // vector copy, resets of free chunks
    expected[64] = 2; // groups
    expected[66] = 2; // units
    expected[68] = 4; // chunks
    expected[72] = 48; // sectors
    expected[128] = 8; // smallest write
    expected[132] = 16; // best write
    expected[136] = 24; // cached
    for (at, time) in [(192, 50_000u32), (200, 500_000), (208, 2_000_000)] {
        expected[at..at + 4].copy_from_slice(&time.to_le_bytes());
        expected[at + 4..at + 8].copy_from_slice(&time.to_le_bytes());
    }
    assert_eq!(*bytes, expected);
}

#[test]
fn the_identify_structure_of_version_1_2_tells_planes_blocks_and_pages() {
    let spanning = VectorSetup { spans_planes: true, ..setup() };
    let mut expected = [0; 4096];
    expected[0] = 1; // version 1.2
    expected[2] = 1; // configuration groups
    expected[8] = 2; // the device corrects errors
    // Offset and bits of channel, LUN, plane, block, page and sector.
    expected[12..24].copy_from_slice(&[9, 1, 8, 1, 2, 1, 6, 2, 3, 3, 0, 2]);
    expected[260..263].copy_from_slice(&[2, 2, 2]); // channels, LUNs, planes
    expected[264] = 4; // blocks of a plane
    expected[266] = 6; // pages
    expected[268..270].copy_from_slice(&2048u16.to_le_bytes()); // bytes of a page
    expected[270..272].copy_from_slice(&512u16.to_le_bytes()); // of a sector
    for (at, time) in [(276, 50_000u32), (284, 500_000), (292, 2_000_000)] {
        expected[at..at + 4].copy_from_slice(&time.to_le_bytes());
        expected[at + 4..at + 8].copy_from_slice(&time.to_le_bytes());
    }
    let single = setup().check(&GEOMETRY, 1).unwrap();
    expected[300..303].copy_from_slice(&[1, 1, 1]); // planes of reads, programs, erases
    assert_eq!(*wire::encode_identify(&single).unwrap(), expected);
    let both = spanning.check(&GEOMETRY, 1).unwrap();
    expected[300..303].copy_from_slice(&[3, 2, 2]);
    assert_eq!(*wire::encode_identify(&both).unwrap(), expected);

    // The format is that of the addresses.
    let format = DeviceFormat::from_bytes(expected[12..24].try_into().unwrap()).unwrap();
    let address = both.pages.page_address(PLACE).unwrap();
    assert_eq!(both.pages.sector_address(format.decode(format.encode(address))), PLACE);

    // What a field cannot say.
    let pages = PageShape { planes: 3, ..both.pages };
    for wrong in [
        VectorGeometry { groups: 300, ..both },
        VectorGeometry { pages, ..both },
        VectorGeometry { sector_bytes: 16 << 10, ..both },
    ] {
        assert!(wire::encode_identify(&wrong).is_none(), "{wrong:?}");
    }
}

#[test]
fn a_chunk_descriptor_and_an_event_have_their_fields_where_the_specification_has_them() {
    // A group and a unit of a bit each, 3 bits of chunk, 5 bits of sector.
    assert_eq!(format().bits(), [1, 1, 3, 5]);
    let chunk = ChunkDescriptor {
        state: ChunkState::Open,
        wear: 9,
        start: PLACE.at(0),
        sectors: 24,
        write_pointer: 16,
    };
    let mut expected = [0; 32];
    expected[..3].copy_from_slice(&[4, 1, 9]);
    expected[8..10].copy_from_slice(&[0x40, 0x03]);
    expected[16] = 24;
    expected[24] = 16;
    assert_eq!(wire::encode_chunk(&chunk, format()), expected);

    let event = MediaEvent { number: 0x0102, failure: MediaFailure::Program, address: PLACE, sectors: 4 };
    let mut expected = [0; 64];
    expected[..2].copy_from_slice(&[2, 1]);
    expected[8..10].copy_from_slice(&[0x4c, 0x03]);
    expected[16] = 1; // namespace
    expected[20] = 4; // high error rate
    expected[22] = 1; // of sectors
    expected[32] = 3; // from 0
    assert_eq!(wire::encode_event(&event, 1, format()), expected);
    let worn = MediaEvent { failure: MediaFailure::WornOut, address: PLACE.at(0), sectors: 0, ..event };
    let bytes = wire::encode_event(&worn, 1, format());
    assert_eq!((bytes[20], bytes[21], bytes[22], bytes[32]), (8, 1, 2, 0));
}

#[test]
fn lists_commands_and_completions_come_back() {
    let list = [PLACE, PLACE.at(13), SectorAddress::default()];
    let bytes = wire::encode_list(&list, format());
    assert_eq!(bytes[..8], [0x4c, 0x03, 0, 0, 0, 0, 0, 0]);
    assert_eq!(*wire::decode_list(&bytes, format()).unwrap(), list);
    assert_eq!(wire::decode_list(&[], format()), Err(VectorError::InvalidField));
    assert_eq!(wire::decode_list(&[0; 65 * 8], format()), Err(VectorError::InvalidField));
    assert_eq!(wire::decode_list(&[0; 12], format()), Err(VectorError::InvalidField));
    assert_eq!(wire::decode_list(&[0xff; 8], format()), Err(VectorError::OutOfRange));
    assert_eq!((wire::address_count(0), wire::address_count(63)), (1, 64));

    let addresses: Box<[_]> = list.into();
    let decode = |opcode| wire::decode_command(opcode, &bytes, &bytes, format());
    assert_eq!(decode(0x90), Ok(VectorCommand::Reset(addresses.clone())));
    assert_eq!(decode(0x91), Ok(VectorCommand::Write(addresses.clone())));
    assert_eq!(decode(0x92), Ok(VectorCommand::Read(addresses.clone())));
    assert_eq!(decode(0x93), Ok(VectorCommand::Copy { sources: addresses.clone(), targets: addresses }));
    assert_eq!(decode(0x94), Err(NvmeStatus::InvalidOpcode));

    let errors = SectorErrors(vec![(63, VectorError::Unwritten), (2, VectorError::Unrecovered)]);
    assert_eq!(wire::completion(&errors), (1 << 63 | 1 << 2, 0x281));
    assert_eq!(wire::completion(&SectorErrors::default()), (0, 0));
}

#[test]
fn any_bytes_are_a_list_that_comes_back_or_no_list() {
    let mut rng = seeded(1);
    let mut lists = 0;
    for _ in 0..4_000 {
        let bits = below(&mut rng, 20);
        let count = 1 + below(&mut rng, 4);
        let mut bytes: Vec<u8> = (0..count).flat_map(|_| below(&mut rng, 1 << bits).to_le_bytes()).collect();
        bytes.truncate(bytes.len() - usize::from(below(&mut rng, 20) == 0));
        if let Ok(list) = wire::decode_list(&bytes, format()) {
            assert_eq!(wire::encode_list(&list, format()), bytes);
            lists += 1;
        }
    }
    assert!(lists > 1_000 && lists < 4_000, "{lists}");
}

#[test]
fn statuses_are_those_of_the_specification() {
    let status = VectorError::ALL.map(VectorError::status);
    assert_eq!(status, [0x002, 0x080, 0x281, 0x287, 0x2c0, 0x2c1, 0x2f0, 0x2f1, 0x2f2]);
}
