//! Virtual blocks.

use super::{bytes, device};
use nandscape_core::SimTime;
use nandscape_core::rng::{below, seeded};
use nandscape_core::vector::SectorAddress;
use nandscape_media::{Fifo, ReadFirst};
use nandscape_openchannel::{Host, HostError, VirtualBlock};

#[test]
fn what_is_written_by_offset_is_read_by_offset_and_a_reopened_block_goes_on() {
    // The second device programs two pages at a time and its chunks end with a narrower stripe: 6 pages are
    // no multiple of 4.
    for program_pages in [1, 2, 4] {
        let mut device = device::<Fifo>(program_pages);
        let mut host = Host::open(&mut device, 0, SimTime::ZERO).unwrap();
        let mut block = VirtualBlock::over(&mut host, 0..4, 1, SimTime::ZERO).unwrap();
        assert_eq!(block.bytes(), 4 * 48 * 512);
        let data = bytes(block.bytes() as usize, program_pages);
        let mut rng = seeded(u64::from(program_pages));
        while block.write_pointer() < block.bytes() {
            let from = block.write_pointer();
            let len = (4096 * (1 + below(&mut rng, 5))).min(block.bytes() - from);
            let part = &data[from as usize..(from + len) as usize];
            block.write(&mut host, len, Some(part), SimTime::ZERO).unwrap();
            let reopened = VirtualBlock::over(&mut host, 0..4, 1, SimTime::ZERO).unwrap();
            assert_eq!(reopened.write_pointer(), block.write_pointer());
            block = reopened;
        }
        for _ in 0..50 {
            let from = 512 * below(&mut rng, 4 * 48);
            let len = 512 * below(&mut rng, 4 * 48 - from / 512 + 1);
            let mut back = vec![0; len as usize];
            block.read(&mut host, from, len, Some(&mut back), SimTime::ZERO).unwrap();
            assert!(back == data[from as usize..(from + len) as usize]);
        }
        block.erase(&mut host, SimTime::ZERO).unwrap();
        assert_eq!(block.write_pointer(), 0);
        assert!(block.read(&mut host, 0, 512, None, SimTime::ZERO).is_err());
    }
}

#[test]
fn a_block_that_is_padded_can_be_read_and_erased() {
    let mut device = device::<ReadFirst>(2);
    let mut host = Host::open(&mut device, 0, SimTime::ZERO).unwrap();
    let mut block = VirtualBlock::over(&mut host, 1..3, 0, SimTime::ZERO).unwrap();
    let data = bytes(4096, 3);
    let written = block.write(&mut host, 4096, Some(&data), SimTime::ZERO).unwrap();
    assert!(written > SimTime::ZERO);
    // So close below the write pointer the host has to have the data itself.
    let mut back = vec![0; 4096];
    assert!(matches!(
        block.read(&mut host, 0, 4096, Some(&mut back), written),
        Err(HostError::Failed { others: 7, .. })
    ));
    assert!(matches!(block.erase(&mut host, written), Err(HostError::Failed { .. })));
    let padded = block.pad(&mut host, written).unwrap();
    assert_eq!(block.write_pointer(), block.bytes());
    block.read(&mut host, 0, 4096, Some(&mut back), padded).unwrap();
    assert!(back == data);
    block.erase(&mut host, padded).unwrap();
}

#[test]
fn ranges_and_chunks_that_cannot_be_are_refused() {
    let mut device = device::<Fifo>(1);
    let mut host = Host::open(&mut device, 0, SimTime::ZERO).unwrap();
    let mut block = VirtualBlock::over(&mut host, 0..2, 0, SimTime::ZERO).unwrap();
    let error = block.write(&mut host, 512, None, SimTime::ZERO).unwrap_err().to_string();
    assert_eq!(error, "512 bytes at offset 0: expected multiples of 4096 bytes, up to 49152");
    assert!(block.read(&mut host, 49_152, 512, None, SimTime::ZERO).is_err());
    assert!(block.read(&mut host, u64::MAX - 511, 512, None, SimTime::ZERO).is_err());
    // A chunk that was written ahead of its neighbour.
    let chunk = SectorAddress { group: 1, ..SectorAddress::default() };
    let ahead: Vec<_> = (0..8).map(|sector| chunk.at(sector)).collect();
    host.write(&ahead, None, SimTime::ZERO).unwrap();
    assert!(VirtualBlock::over(&mut host, 0..2, 0, SimTime::ZERO).is_err());
    assert!(VirtualBlock::of(&mut host, vec![chunk], SimTime::ZERO).is_ok());
    assert!(VirtualBlock::of(&mut host, Vec::new(), SimTime::ZERO).is_err());
}
