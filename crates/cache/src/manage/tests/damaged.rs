//! Metadata with damage that may hide dirty blocks: nothing starts over it, and what is left can be written
//! to the disk.

use super::*;

fn flip(world: &mut World, offset: u64) {
    let mut byte = [0; 512];
    let start = offset / 512 * 512;
    world.fast.read(start, &mut byte).unwrap();
    byte[(offset - start) as usize] ^= 0x10;
    world.fast.write(start, &byte).unwrap();
    world.fast.flush().unwrap();
}

/// First byte of the newest superblock.
fn newest(world: &mut World) -> u64 {
    Superblock::read(&mut world.fast).unwrap().0.generation % 2 * 4096
}

/// A block of the only table, with an entry of both volumes.
fn with_damaged_table(kind: &str) -> World {
    let mut world = World::new(kind, true);
    let held = look(&mut world.fast).unwrap();
    assert!((0..2).all(|id| held.usage(Some(id)).dirty_bytes > 0), "{kind}: both have dirty blocks");
    let shape = held.superblock.shape;
    for block in 0..shape.slots.div_ceil((shape.unit - 64) / 16) {
        flip(&mut world, 8192 + u64::from(block * shape.unit) + 100);
    }
    world
}

fn is_refused(world: &mut World, id: u16) -> bool {
    let disk = &mut world.disks[usize::from(id)];
    let refused = |done: Result<_, ManageError>| done == Err(ManageError::Damaged { volume: id });
    let is_refused = refused(take_up(&mut world.fast, disk, id, false).map(drop));
    assert_eq!(is_refused, refused(take_up(&mut world.fast, disk, id, true).map(drop)), "whoever trusts it");
    assert_eq!(is_refused, refused(clean(&mut world.fast, &mut [(id, disk)], &mut |_, _| {})));
    is_refused
}

#[test]
fn a_damaged_table_block_does_not_start_as_if_its_blocks_had_never_been_dirty() {
    for kind in ["slots", "at-removal"] {
        let mut world = with_damaged_table(kind);
        let before = world.disks[0].bytes();
        assert!(is_refused(&mut world, 0) && is_refused(&mut world, 1), "{kind}");
        assert!(detach(&mut world.fast, &mut world.disks[0], 0, "", &mut |_, _| {}).is_err());
        assert!(resize(&mut world.fast, &mut world.disks[0], 0).is_err());
        assert!(world.disks[0].bytes() == before, "{kind}: nothing was written to the disk");
        // What is left of one volume goes to its disk; the other one is refused until that is done for it
        // too.
        salvage(&mut world.fast, &mut world.disks[0], 0, &mut |_, _| {}).unwrap();
        assert_eq!(look(&mut world.fast).unwrap().report.unknown_slots, 0, "{kind}: it is repaired");
        assert!(!is_refused(&mut world, 0) && is_refused(&mut world, 1), "{kind}");
        remove(&mut world.fast, 1, "").unwrap();
        world.disks[1].put_mark(None).unwrap();
        world.attach(1, "").unwrap();
        assert!(!is_refused(&mut world, 1), "{kind}: it is attached anew");
    }
}

#[test]
fn a_damaged_superblock_does_not_make_a_clean_removal_a_kill_that_loses_dirty_blocks() {
    // Its checksum, its generation, and its last volume, of which the copy of the first sector knows nothing.
    for at in [0, 24, 4000] {
        let mut world = World::new("at-removal", true);
        let before = look(&mut world.fast).unwrap().usage(None);
        assert!(before.dirty_bytes > 0);
        let newest = newest(&mut world);
        flip(&mut world, newest + at);
        let after = look(&mut world.fast).unwrap().usage(None);
        assert!(
            after == before || is_refused(&mut world, 0) && is_refused(&mut world, 1),
            "byte {at}: {after:?}"
        );
    }
}

#[test]
fn a_removal_whose_superblock_lacks_a_sector_is_a_removal() {
    let mut world = World::new("at-removal", false);
    // A cache that is removed cleanly by the last write of its superblock, of which a sector does not arrive.
    let held = look(&mut world.fast).unwrap();
    forget(&mut world.fast, 0).unwrap();
    let removed = look(&mut world.fast).unwrap();
    assert!(removed.report.is_clean && !held.report.is_clean);
    let newest = newest(&mut world);
    flip(&mut world, newest + 1600);
    let again = look(&mut world.fast).unwrap();
    assert!(again.report.is_clean && again.entries == removed.entries, "{}", again.report);
}

#[test]
fn a_volume_attached_over_a_damaged_superblock_does_not_hide_the_removal_before_it() {
    let mut world = World::new("at-removal", true);
    let newest = newest(&mut world);
    flip(&mut world, newest + 24);
    world.attach(2, "").unwrap();
    assert!(is_refused(&mut world, 0) && is_refused(&mut world, 1));
    assert!(!is_refused(&mut world, 2), "it has nothing that could be lost");
}
