//! What a cut leaves, block by block, and which errors come when.

use super::*;
use crate::{Keep, RamDisk, ram::RamSpeed};
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op, SimTime, Store, StoreError};

const BLOCK: u64 = 512;

fn ram() -> Box<RamDisk> {
    let speed = RamSpeed {
        request_ns: 100,
        jump_ns: 0,
        read_bytes_per_s: 1_000_000_000,
        write_bytes_per_s: 1_000_000_000,
    };
    Box::new(RamDisk::new(1 << 20, speed, Keep::Bytes))
}

fn command(op: Op, block: u64, blocks: u64) -> BlockCommand {
    BlockCommand::new(op, Extent::new(block * BLOCK, blocks * BLOCK), Hint::default())
}

fn write(store: &mut dyn Store, block: u64, blocks: u64, byte: u8, at: u64) -> Result<(), StoreError> {
    let data = vec![byte; (blocks * BLOCK) as usize];
    store.submit(command(Op::Write, block, blocks), Payload::Write(&data), SimTime(at)).map(drop)
}

/// The byte of each of the first blocks, which must be of one kind throughout.
fn blocks(store: &mut dyn Store, count: u64) -> Vec<u8> {
    let mut data = vec![0; (count * BLOCK) as usize];
    store.submit(command(Op::Read, 0, count), Payload::Read(&mut data), SimTime(1 << 40)).unwrap();
    let blocks = data.chunks(BLOCK as usize);
    blocks
        .map(|block| {
            assert!(block.iter().all(|byte| *byte == block[0]), "a block is a mix");
            block[0]
        })
        .collect()
}

/// Writes 1 and flushes; writes 2 to four blocks and 3 to two of them; then the power goes at a write of 4 to
/// six.
fn after(fate: Fate) -> Vec<u8> {
    let mut cut = Cut::new(ram(), Operations::default(), 4);
    write(&mut cut, 0, 6, 1, 0).unwrap();
    cut.submit(command(Op::Flush, 0, 0), Payload::None, SimTime(0)).unwrap();
    write(&mut cut, 0, 4, 2, 1_000_000).unwrap();
    write(&mut cut, 2, 2, 3, 1_000_000).unwrap();
    let error = write(&mut cut, 0, 6, 4, 1_000_000).unwrap_err();
    assert_eq!(error.to_string(), "the device is gone: power was lost at operation 4");
    assert!(cut.is_cut() && cut.idle(SimTime(0), SimTime(1)).is_err() && cut.shutdown(SimTime(0)).is_err());
    assert_eq!(cut.volatile_blocks(), 6);
    cut.restore(fate, SimTime(2_000_000), u64::MAX).unwrap();
    blocks(&mut cut, 6)
}

#[test]
fn what_was_flushed_survives_and_the_rest_as_the_fate_wants() {
    assert_eq!(after(Fate::Lost), [1; 6]);
    assert_eq!(after(Fate::Kept), [4; 6]);
    let mut seen = [const { Vec::new() }; 6];
    for seed in 0..200 {
        let torn = after(Fate::Torn { seed });
        assert_eq!(torn, after(Fate::Torn { seed }), "seed {seed} repeats");
        for (block, byte) in torn.into_iter().enumerate() {
            if !seen[block].contains(&byte) {
                seen[block].push(byte);
            }
        }
    }
    for bytes in &mut seen {
        bytes.sort_unstable();
    }
    let expected: [&[u8]; 6] = [&[1, 2, 4], &[1, 2, 4], &[1, 2, 3, 4], &[1, 2, 3, 4], &[1, 4], &[1, 4]];
    assert_eq!(seen, expected, "every version there was since the flush, and none before it");
}

#[test]
fn a_flush_that_has_not_completed_protects_nothing() {
    for (later, expected) in [(0, 0), (1_000_000, 7)] {
        let mut cut = Cut::new(ram(), Operations::default(), 2);
        write(&mut cut, 0, 8, 7, 0).unwrap();
        cut.submit(command(Op::Flush, 0, 0), Payload::None, SimTime(0)).unwrap();
        assert!(write(&mut cut, 9, 1, 1, later).is_err());
        cut.restore(Fate::Lost, SimTime(later), u64::MAX).unwrap();
        assert_eq!(blocks(&mut cut, 8), [expected; 8], "cut {later} ns after the flush was submitted");
    }
}

#[test]
fn trims_are_volatile_too() {
    let mut cut = Cut::new(ram(), Operations::default(), 3);
    write(&mut cut, 0, 2, 7, 0).unwrap();
    cut.submit(command(Op::Flush, 0, 0), Payload::None, SimTime(0)).unwrap();
    cut.submit(command(Op::Trim, 0, 1), Payload::None, SimTime(1 << 30)).unwrap();
    assert!(cut.submit(command(Op::Flush, 0, 0), Payload::None, SimTime(1 << 30)).is_err());
    cut.restore(Fate::Lost, SimTime(1 << 30), u64::MAX).unwrap();
    assert_eq!(blocks(&mut cut, 2), [7, 7]);
}

#[test]
fn both_sides_lose_power_together_and_a_handle_sees_it() {
    let operations = Operations::default();
    let fast = Shared::new(Cut::new(ram(), operations.clone(), 3));
    let slow = Shared::new(Cut::new(ram(), operations.clone(), 3));
    let (mut a, mut b): (Box<dyn Store + Send>, Box<dyn Store + Send>) =
        (Box::new(fast.clone()), Box::new(slow.clone()));
    write(&mut *a, 0, 1, 1, 0).unwrap();
    write(&mut *b, 0, 1, 2, 0).unwrap();
    write(&mut *a, 1, 1, 3, 0).unwrap();
    assert!(!slow.get().is_cut());
    assert!(write(&mut *b, 1, 1, 4, 0).is_err());
    assert!(fast.get().is_cut() && slow.get().is_cut());
    assert!(write(&mut *a, 2, 1, 5, 0).is_err());
    assert_eq!(operations.count(), 4, "without power nothing is counted");
    // Power comes back to both, and goes once more at the second operation from there.
    for side in [&fast, &slow] {
        side.get().restore(Fate::Kept, SimTime(0), 6).unwrap();
    }
    assert_eq!((blocks(&mut *a, 3), blocks(&mut *b, 2)), (vec![1, 3, 0], vec![2, 4]));
    assert!(write(&mut *a, 2, 1, 6, 1 << 41).is_err());
}

#[test]
fn faults_come_where_and_when_they_were_asked_for() {
    let bad = Extent::new(3 * BLOCK, 2 * BLOCK);
    let faults =
        [(When::Reading(bad), Fault::Io), (When::At(2), Fault::Io), (When::From(6), Fault::ReadOnly)];
    let mut store = Failing::new(ram(), Operations::default(), faults);
    write(&mut store, 0, 8, 1, 0).unwrap();
    let error = store.submit(command(Op::Read, 4, 4), Payload::None, SimTime(0)).unwrap_err();
    let detail = "asked for, at operation 1".to_owned();
    assert_eq!(error, StoreError::Io { offset: 4 * BLOCK, len: BLOCK, detail }, "the part that is bad");
    assert!(write(&mut store, 0, 3, 2, 0).is_err());
    assert_eq!(blocks(&mut store, 3), [2, 1, 1], "a failed write leaves the first half of its blocks");
    write(&mut store, 4, 1, 3, 0).unwrap();
    store.submit(command(Op::Read, 5, 1), Payload::None, SimTime(0)).unwrap();
    assert!(matches!(write(&mut store, 0, 1, 3, 0), Err(StoreError::ReadOnly { .. })));
    assert_eq!(blocks(&mut store, 3), [2, 1, 1], "reads go on");
    store.set_faults([(When::From(0), Fault::Gone)]);
    assert!(matches!(write(&mut store, 0, 1, 3, 0), Err(StoreError::Gone { .. })));
    store.set_faults([]);
    let gone = store.submit(command(Op::Flush, 0, 0), Payload::None, SimTime(0));
    assert!(matches!(gone, Err(StoreError::Gone { .. })), "for good");
}

#[test]
fn an_overlay_reads_as_what_was_written_and_leaves_the_store_below_as_it_was() {
    let below = Shared::new(*ram());
    write(&mut below.clone(), 0, 6, 1, 0).unwrap();
    let mut overlay = Overlay::new(Box::new(below.clone()));
    write(&mut overlay, 2, 2, 2, 0).unwrap();
    overlay.submit(command(Op::Trim, 4, 1), Payload::None, SimTime(0)).unwrap();
    overlay.submit(command(Op::Flush, 0, 0), Payload::None, SimTime(0)).unwrap();
    assert_eq!(blocks(&mut overlay, 6), [1, 1, 2, 2, 0, 1]);
    assert_eq!(blocks(&mut below.clone(), 6), [1; 6]);
    let past = overlay.submit(command(Op::Write, 1 << 20, 1), Payload::None, SimTime(0));
    assert!(matches!(past, Err(StoreError::OutOfRange { .. })), "{past:?}");
}
