use super::*;
use nandscape_core::Lpn;

fn nand(options: &NandOptions) -> Nand {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 4,
        pages_per_block: 4,
        page_bytes: 512,
        sector_bytes: 512,
        oob_bytes: 16,
    };
    Nand::new(geometry.checked().unwrap(), options).unwrap()
}

fn oob(lpn: u32) -> Oob {
    Oob { lpn: Lpn(lpn), stream: 0, seq: 7 }
}

#[test]
fn program_after_program_is_refused_until_the_erase() {
    let mut nand = nand(&NandOptions::default());
    nand.program(Ppn(0), oob(5), None).unwrap();
    assert_eq!(nand.program(Ppn(0), oob(6), None), Err(FlashError::NotErased { page: Ppn(0) }));
    assert_eq!(nand.read(Ppn(0), None).unwrap(), oob(5));
    nand.erase(BlockId(0)).unwrap();
    assert_eq!(nand.read(Ppn(0), None), Err(FlashError::Erased { page: Ppn(0) }));
    nand.program(Ppn(0), oob(6), None).unwrap();
    assert_eq!(nand.tally().totals, OpCounts { programs: 2, reads: 1, erases: 1 });
}

#[test]
fn pages_are_programmed_in_order_unless_relaxed() {
    let mut strict = nand(&NandOptions::default());
    assert_eq!(
        strict.program(Ppn(2), oob(1), None),
        Err(FlashError::OutOfOrder { page: Ppn(2), expected: 0 })
    );
    let relaxed = Capabilities { out_of_order_program: true, ..Capabilities::default() };
    let mut relaxed = nand(&NandOptions { capabilities: relaxed, ..NandOptions::default() });
    relaxed.program(Ppn(2), oob(1), None).unwrap();
    relaxed.program(Ppn(0), oob(2), None).unwrap();
    assert_eq!(relaxed.write_pointer(BlockId(0)), 3);
    assert!(!relaxed.is_programmed(Ppn(1)));
    relaxed.erase(BlockId(0)).unwrap();
    assert!(!relaxed.is_programmed(Ppn(2)) && !relaxed.is_programmed(Ppn(0)));
    // What was programmed before the erase does not shine through a gap.
    relaxed.program(Ppn(3), oob(3), None).unwrap();
    assert!(!relaxed.is_programmed(Ppn(0)) && !relaxed.is_programmed(Ppn(2)));
    assert_eq!(relaxed.read(Ppn(2), None), Err(FlashError::Erased { page: Ppn(2) }));
    relaxed.program(Ppn(2), oob(4), None).unwrap();
    assert_eq!(relaxed.program(Ppn(2), oob(5), None), Err(FlashError::NotErased { page: Ppn(2) }));
    assert_eq!(relaxed.program(Ppn(3), oob(5), None), Err(FlashError::NotErased { page: Ppn(3) }));
}

#[test]
fn endurance_and_bad_blocks_are_enforced() {
    let mut nand = nand(&NandOptions {
        endurance: Some(1),
        bad_blocks: BadBlocks::List(vec![BlockId(3)]),
        ..NandOptions::default()
    });
    nand.erase(BlockId(0)).unwrap();
    assert_eq!(nand.erase(BlockId(0)), Err(FlashError::WornOut { block: BlockId(0), endurance: 1 }));
    assert_eq!(nand.erase(BlockId(3)), Err(FlashError::BadBlock { block: BlockId(3) }));
    assert_eq!(nand.program(Ppn(12), oob(0), None), Err(FlashError::BadBlock { block: BlockId(3) }));
    assert!(matches!(nand.erase(BlockId(99)), Err(FlashError::OutOfRange { address: 99, .. })));
}

#[test]
fn a_share_of_bad_blocks_is_drawn_exactly() {
    let nand =
        nand(&NandOptions { bad_blocks: BadBlocks::Share { share: 0.5, seed: 3 }, ..NandOptions::default() });
    assert_eq!((0..8).filter(|b| nand.is_bad(BlockId(*b))).count(), 4);
}

fn storing() -> Nand {
    let capabilities = Capabilities { stores_data: true, ..Capabilities::default() };
    nand(&NandOptions { capabilities, ..NandOptions::default() })
}

#[test]
fn payload_is_kept_where_the_medium_stores_data() {
    let mut nand = storing();
    nand.program(Ppn(0), oob(1), Some(&[9; 512])).unwrap();
    nand.program(Ppn(1), oob(2), None).unwrap();
    let mut buffer = [0; 512];
    assert_eq!(nand.read(Ppn(0), Some(&mut buffer)).unwrap(), oob(1));
    assert_eq!(buffer, [9; 512]);
    assert_eq!(nand.read(Ppn(1), Some(&mut buffer)).unwrap(), oob(2));
    assert_eq!(buffer, [0; 512]);
    let mut part = [1; 100];
    nand.read_part(Ppn(0), 300, &mut part).unwrap();
    assert_eq!(part, [9; 100]);
}

#[test]
fn an_erased_block_holds_nothing_of_what_it_held() {
    let mut nand = storing();
    nand.program(Ppn(0), oob(1), Some(&[9; 512])).unwrap();
    nand.erase(BlockId(0)).unwrap();
    nand.program(Ppn(0), oob(2), Some(&[7; 512])).unwrap();
    nand.program(Ppn(1), oob(3), None).unwrap();
    let mut buffer = [1; 512];
    nand.read(Ppn(1), Some(&mut buffer)).unwrap();
    assert_eq!(buffer, [0; 512]);
    assert_eq!(nand.read(Ppn(2), None), Err(FlashError::Erased { page: Ppn(2) }));
}

#[test]
fn every_flipped_bit_is_found_by_the_next_read_that_touches_it() {
    for bit in 0..(512 * 8 + 14 * 8) {
        let mut nand = storing();
        let data: Vec<u8> = (0..512).map(|i| (i * 7 % 251) as u8).collect();
        nand.program(Ppn(0), Oob { lpn: Lpn(u32::MAX - 9), stream: 0, seq: 0 }, Some(&data)).unwrap();
        assert!(nand.rot(Ppn(0), bit));
        let mut buffer = [0; 512];
        let page = Ppn(0);
        let expected =
            if bit < 512 * 8 { FlashError::Uncorrectable { page } } else { FlashError::Damaged { page } };
        assert_eq!(nand.read(page, Some(&mut buffer)), Err(expected), "{bit}");
        assert_eq!(nand.tally().health.checksum_errors, 1, "{bit}");
        // What does not touch the data does not know of its decay.
        assert_eq!(nand.read(Ppn(0), None).is_ok(), bit < 512 * 8, "{bit}");
    }
    let mut nand = storing();
    assert!(!nand.rot(Ppn(0), 0), "an erased page holds nothing");
    nand.program(Ppn(0), oob(1), Some(&[0; 512])).unwrap();
    assert!(!nand.rot(Ppn(0), 512 * 8 + 14 * 8), "beyond the OOB");
}

#[test]
fn a_read_of_a_part_fails_by_rot_in_any_unit_it_touches_and_in_no_other() {
    let capabilities = Capabilities { stores_data: true, ..Capabilities::default() };
    let options = NandOptions { capabilities, ..NandOptions::default() };
    let geometry = Geometry { page_bytes: 16 << 10, ..*nand(&options).geometry() };
    let stored: Vec<u8> = (0..16 << 10).map(|byte: u32| (byte % 251) as u8).collect();
    // Units of 4 KiB: whole ones, parts of one, and parts at either end.
    for (start, len) in
        [(0, 16 << 10), (4 << 10, 8 << 10), (100, 3000), (3000, 4000), (4095, 8194), (8191, 1)]
    {
        for rotten in 0..4_usize {
            let mut nand = Nand::new(geometry, &options).unwrap();
            nand.program(Ppn(0), oob(5), Some(&stored)).unwrap();
            assert!(nand.rot(Ppn(0), (rotten as u64 * 4096 + 7) * 8));
            let mut data = vec![0; len];
            let read = nand.read_part(Ppn(0), start as u32, &mut data);
            if (start / 4096..=(start + len - 1) / 4096).contains(&rotten) {
                assert_eq!(read, Err(FlashError::Uncorrectable { page: Ppn(0) }), "{start} {len} {rotten}");
            } else {
                read.unwrap();
                assert!(data == stored[start..start + len], "{start} {len} {rotten}");
            }
        }
    }
}

#[test]
fn to_prepare_a_read_changes_nothing_whatever_the_page() {
    let capabilities = Capabilities { stores_data: true, ..Capabilities::default() };
    let mut nand = nand(&NandOptions { capabilities, ..NandOptions::default() });
    nand.program(Ppn(0), oob(5), Some(&[7; 512])).unwrap();
    for page in [0, 1, 4, 31, 32, 1 << 31, u32::MAX] {
        nand.prepare_read(Ppn(page));
    }
    let mut data = [0; 512];
    nand.read(Ppn(0), Some(&mut data)).unwrap();
    assert_eq!(data, [7; 512]);
    assert_eq!(nand.tally().totals, OpCounts { programs: 1, reads: 1, erases: 0 });
}

#[test]
fn no_bit_is_kept_of_a_block_whose_erase_was_cut_short() {
    let capabilities = Capabilities { stores_data: true, ..Capabilities::default() };
    let mut nand = nand(&NandOptions { capabilities, ..NandOptions::default() });
    nand.program(Ppn(0), oob(5), Some(&[7; 512])).unwrap();
    assert!(nand.rot(Ppn(0), 3));
    nand.tear_erase(BlockId(0));
    assert!(!nand.rot(Ppn(0), 3));
}

#[test]
fn torn_pages_count_as_programmed_until_the_erase() {
    let mut nand = storing();
    nand.program(Ppn(0), oob(1), Some(&[9; 512])).unwrap();
    nand.tear_program(Ppn(1)).unwrap();
    assert_eq!(nand.write_pointer(BlockId(0)), 2);
    assert_eq!(nand.read(Ppn(1), None), Err(FlashError::Uncorrectable { page: Ppn(1) }));
    assert!(nand.read(Ppn(0), None).is_ok());
    nand.tear_erase(BlockId(0));
    for page in 0..4 {
        assert_eq!(nand.read(Ppn(page), None), Err(FlashError::Uncorrectable { page: Ppn(page) }));
    }
    assert_eq!(nand.tally().health.torn_pages, 5);
    nand.erase(BlockId(0)).unwrap();
    nand.program(Ppn(0), oob(2), Some(&[8; 512])).unwrap();
    assert_eq!(nand.read(Ppn(0), None).unwrap(), oob(2));
}
