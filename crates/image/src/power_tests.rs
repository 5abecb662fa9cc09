//! Failures of the machine, on a store in memory: whatever was not synced is there or not, sector by sector,
//! in any order.

use crate::flash::Flash;
use crate::header::Header;
use crate::layout::version_for;
use crate::model::Disk;
use crate::start::{format, head, load};
use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockId, BlockState, Capabilities, FlashError, Geometry, Lpn, Oob, OutOfBand, Ppn};
use nandscape_media::{Breakable as _, Medium, MediumState, NandOptions};
use std::collections::BTreeMap;
use std::path::Path;

fn new_flash<O: Numbered>(seed: u64, page_bytes: u32) -> Flash<Disk, O> {
    let geometry = Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 12,
        pages_per_block: 8,
        page_bytes,
        sector_bytes: 512,
        oob_bytes: 16,
    };
    let header = Header {
        version: version_for(O::BYTES as u32),
        oob_bytes: O::BYTES as u32,
        uuid: [7; 16],
        geometry: geometry.checked().unwrap(),
        endurance: None,
        capabilities: Capabilities { stores_data: true, ..Capabilities::default() },
        created_s: 0,
        config: "x = 1\n".into(),
    };
    let layout = header.layout();
    let mut now = vec![0; layout.file_bytes as usize];
    let head = head(&header);
    now[..head.len()].copy_from_slice(&head);
    let disk = Disk::new(now, layout.data, seed ^ 0x5eed);
    format(disk, header, [1; 16], &[], &NandOptions::default()).unwrap()
}

/// What a block holds: erases, and the number that each page's content follows from.
#[derive(Clone, Debug, Default, PartialEq)]
struct Held {
    erases: u32,
    pages: Vec<u64>,
}

/// Pages programmed so far in each block after each erase.
type History = BTreeMap<(u32, u32), Vec<u64>>;

fn bytes(content: u64, page_bytes: usize) -> Vec<u8> {
    (0..page_bytes)
        .map(|i| (content.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (i % 57)) as u8 ^ i as u8)
        .collect()
}

fn oob(content: u64) -> Oob {
    Oob::of(content)
}

/// An OOB that follows from the number of the content.
trait Numbered: OutOfBand {
    fn of(content: u64) -> Self;
}

impl Numbered for Oob {
    fn of(content: u64) -> Self {
        Self { lpn: Lpn(content as u32 % 97), stream: 1, seq: content }
    }
}

/// An OOB that is longer than that of logical pages.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Long([u8; 40]);

impl OutOfBand for Long {
    type Page = ();
    type Block = ();

    const BYTES: usize = 40;
    const ERASED: () = ();
    const TORN: Self = Self([0; 40]);

    fn is_erased((): &()) -> bool {
        false
    }

    fn split(&self) -> ((), ()) {
        ((), ())
    }

    fn joined((): (), (): ()) -> Self {
        Self::TORN
    }

    fn encode(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0);
    }

    fn decode(bytes: &[u8]) -> Self {
        Self(bytes.try_into().expect("40 bytes"))
    }
}

impl Numbered for Long {
    fn of(content: u64) -> Self {
        Self(bytes(content ^ 0x55, 40).try_into().expect("40 bytes"))
    }
}

/// Compares what is found with what was covered by the last sync and what came after it; gives what is held
/// now.
fn judge<O: Numbered>(
    flash: &mut Flash<Disk, O>,
    covered: &[Held],
    last: &[Held],
    history: &History,
    label: &str,
) -> Vec<Held> {
    let geometry = flash.layout.geometry;
    let mut buffer = vec![0; geometry.page_bytes as usize];
    let mut found = Vec::new();
    for block in (0..geometry.blocks()).map(BlockId) {
        let (old, new) = (&covered[block.index()], &last[block.index()]);
        let is_erased = new.erases > old.erases;
        assert_eq!(flash.erase_count(block), old.erases, "{label}: {block:?}, an erase that no sync covered");
        assert!(!is_erased || new.pages.is_empty(), "{label}: programmed before its erase was settled");
        let mut held = Held { erases: old.erases, pages: Vec::new() };
        for index in 0..geometry.pages_per_block {
            let page = geometry.page(block, index);
            let read = flash.read(page, Some(&mut buffer));
            let expected = history.get(&(block.0, old.erases)).and_then(|pages| pages.get(index as usize));
            let is_covered = (index as usize) < old.pages.len();
            match (read, expected) {
                (Ok(found), Some(content)) => {
                    assert_eq!(found, O::of(*content), "{label}: {page:?}");
                    assert!(buffer == bytes(*content, buffer.len()), "{label}: bytes of {page:?}");
                }
                (Ok(_), None) => panic!("{label}: {page:?} holds what nobody programmed"),
                (Err(error), Some(_)) if is_covered => panic!("{label}: {page:?} was synced: {error}"),
                (Err(FlashError::Erased { .. } | FlashError::Uncorrectable { .. }), _) => {}
                (Err(error), _) => panic!("{label}: {error}"),
            }
            // The OOB alone must not be believed either where the bytes are not there.
            assert_eq!(
                flash.read(page, None).is_ok(),
                flash.read(page, Some(&mut buffer)).is_ok(),
                "{label}: {page:?}"
            );
            if index < flash.write_pointer(block) {
                held.pages.push(if flash.read(page, None).is_ok() { *expected.unwrap() } else { u64::MAX });
            }
        }
        found.push(held);
    }
    found
}

fn run<O: Numbered>(seed: u64, page_bytes: u32) {
    let mut flash = new_flash::<O>(seed, page_bytes);
    let mut rng = seeded(seed);
    let blocks = flash.layout.geometry.blocks();
    let mut last = vec![Held::default(); blocks as usize];
    let mut content = 0;
    for round in 0..12 {
        let mut covered = last.clone();
        let mut epoch = flash.state.epoch;
        let mut history: History =
            (0..).zip(&last).map(|(block, held)| ((block, held.erases), held.pages.clone())).collect();
        let steps = below(&mut rng, 120);
        for _ in 0..steps {
            let block = BlockId(below(&mut rng, u64::from(blocks)) as u32);
            let before = last.clone();
            let held = &mut last[block.index()];
            let mut is_program = false;
            match below(&mut rng, 20) {
                0..=14 if held.pages.len() < 8 => {
                    content += 1;
                    is_program = true;
                    let page = flash.layout.geometry.page(block, held.pages.len() as u32);
                    flash.program(page, O::of(content), Some(&bytes(content, page_bytes as usize))).unwrap();
                    held.pages.push(content);
                    history.insert((block.0, held.erases), held.pages.clone());
                }
                0..=17 => {
                    flash.erase(block).unwrap();
                    *held = Held { erases: held.erases + 1, pages: Vec::new() };
                }
                18 => flash.sync().unwrap(),
                _ => flash.store.write_back(3),
            }
            if flash.state.epoch != epoch {
                // A program that opened a block synced before it did anything.
                covered = if is_program { before } else { last.clone() };
                epoch = flash.state.epoch;
            }
        }
        let disk = flash.store.clone().fail();
        let header = flash.header.clone();
        flash = load(disk, header, [round + 2; 16], Path::new("disk")).unwrap();
        let label = format!("seed {seed}, round {round}");
        last = judge(&mut flash, &covered, &last, &history, &label);
        // What cannot be read goes with the next erase; a block with a gap takes no more programs until then.
        for block in (0..blocks).map(BlockId) {
            if last[block.index()].pages.contains(&u64::MAX) {
                flash.erase(block).unwrap();
                let erases = last[block.index()].erases + 1;
                last[block.index()] = Held { erases, pages: Vec::new() };
            }
        }
        flash.sync().unwrap();
    }
}

#[test]
fn a_failure_of_the_machine_loses_nothing_that_was_synced() {
    for seed in 0..60 {
        run::<Oob>(seed, if seed % 2 == 0 { 512 } else { 8192 });
        run::<Long>(seed, if seed % 2 == 0 { 512 } else { 8192 });
    }
}

/// Flips each bit of a long OOB: the page is damaged, and no other.
#[test]
fn a_flipped_bit_of_any_byte_of_a_long_oob_is_found() {
    let mut flash = new_flash::<Long>(1, 512);
    for page in 0..3 {
        flash.program(Ppn(page), Long::of(u64::from(page)), Some(&bytes(u64::from(page), 512))).unwrap();
    }
    let whole = flash.store.now.clone();
    for bit in 512 * 8..(512 + 40) * 8 {
        assert!(flash.rot(Ppn(1), bit), "bit {bit}");
        assert_eq!(flash.read(Ppn(1), None), Err(FlashError::Damaged { page: Ppn(1) }), "bit {bit}");
        flash.store.now.clone_from(&whole);
        assert_eq!([0, 1, 2].map(|page| flash.read(Ppn(page), None).unwrap()), [0, 1, 2].map(Long::of));
    }
    assert!(!flash.rot(Ppn(1), (512 + 40) * 8), "nothing is stored there");
}

#[test]
fn a_failed_sync_makes_the_image_read_only() {
    let mut flash = new_flash::<Oob>(1, 512);
    flash.program(Ppn(0), oob(1), Some(&bytes(1, 512))).unwrap();
    flash.store.syncs_left = 0;
    let refused = Err(FlashError::ReadOnly { reason: "the image could not be written" });
    assert_eq!(flash.sync(), refused);
    flash.store.syncs_left = 9;
    assert_eq!(flash.sync(), refused, "what became of the data is not known");
    assert_eq!(flash.program(Ppn(1), oob(2), None), refused);
    assert_eq!(flash.erase(BlockId(0)), refused);
    assert!(flash.read(Ppn(0), None).is_ok());
    assert!(flash.close().is_err());
}

#[test]
fn the_space_of_erased_blocks_is_given_up_once_there_is_enough_of_it() {
    let mut flash = new_flash::<Oob>(1, 512);
    for block in 0..12 {
        flash.program(Ppn(block * 8), oob(1), Some(&bytes(1, 512))).unwrap();
        flash.erase(BlockId(block)).unwrap();
    }
    flash.sync().unwrap();
    let is_held = |block| {
        let at = flash.layout.block_data(BlockId(block)) as usize;
        flash.store.now[at..at + 512].iter().any(|byte| *byte != 0)
    };
    // As many bytes as the spare ones are worth are more than this device has.
    assert!((0..12).all(is_held));
}

/// A block with three pages after a kill, with the copies of the record of the last one changed.
fn killed_in_a_record(change: impl FnOnce(&mut [u8], usize, usize)) -> Flash<Disk> {
    let mut flash = new_flash::<Oob>(1, 512);
    for page in 0..3 {
        flash.program(Ppn(page), oob(u64::from(page)), Some(&bytes(u64::from(page), 512))).unwrap();
    }
    let first = flash.layout.record(Ppn(2)) as usize;
    let second = first + flash.layout.to_second_record as usize;
    change(&mut flash.store.now, first, second);
    load(flash.store.clone(), flash.header.clone(), [1; 16], Path::new("disk")).unwrap()
}

#[test]
fn a_kill_in_the_middle_of_a_record_is_a_torn_page_and_no_damage() {
    let mut torn = killed_in_a_record(|image, first, second| {
        image[first + 16..first + 32].fill(0);
        image[second..second + 32].fill(0);
    });
    assert_eq!(torn.read(Ppn(2), None), Err(FlashError::Uncorrectable { page: Ppn(2) }));
    assert_eq!(torn.write_pointer(BlockId(0)), 3);
    for second_half in [0, 16] {
        let mut whole =
            killed_in_a_record(|image, _, second| image[second + second_half..second + 32].fill(0));
        assert_eq!(whole.read(Ppn(2), None), Ok(oob(2)));
        assert_eq!(whole.verify_all(&mut |_, _| {}).problem_count, 0, "the second copy is written again");
    }
    // No kill leaves this: the first copy is complete before the second is begun.
    let mut damaged = killed_in_a_record(|image, first, second| {
        image[first] ^= 1;
        image[second] ^= 2;
    });
    assert_eq!(damaged.read(Ppn(2), None), Err(FlashError::Damaged { page: Ppn(2) }));
}

#[test]
fn after_a_failure_of_the_machine_damage_of_what_an_earlier_sync_covered_is_no_torn_page() {
    let mut flash = new_flash::<Oob>(1, 512);
    for page in 0..3 {
        flash.program(Ppn(page), oob(u64::from(page)), Some(&bytes(u64::from(page), 512))).unwrap();
        flash.sync().unwrap();
    }
    let mut disk = flash.store.clone();
    disk.now.clone_from(&flash.store.durable);
    let (data, record) = (flash.layout.page(Ppn(0)) as usize, flash.layout.record(Ppn(1)) as usize);
    disk.now[data] ^= 1;
    for copy in [record, record + flash.layout.to_second_record as usize] {
        disk.now[copy] ^= 1;
    }
    let mut flash = load(disk, flash.header.clone(), [2; 16], Path::new("disk")).unwrap();
    assert_eq!(
        flash.read(Ppn(0), None),
        Ok(oob(0)),
        "the page is still known to be the newest of its logical page"
    );
    assert_eq!(flash.read(Ppn(0), Some(&mut [0; 512])), Err(FlashError::Uncorrectable { page: Ppn(0) }));
    assert_eq!(flash.read(Ppn(1), None), Err(FlashError::Damaged { page: Ppn(1) }));
    assert!(flash.read(Ppn(2), Some(&mut [0; 512])).is_ok());
}
