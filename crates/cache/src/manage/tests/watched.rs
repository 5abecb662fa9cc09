//! A disk that was used without its cache after a session that was cut short.

use super::*;

/// Places of the disk to which the session did not write, as far as the records say.
fn verdict(world: &mut World, id: u16) -> Verdict {
    let held = look(&mut world.fast).unwrap();
    check(&held, &mut world.disks[usize::from(id)], id).unwrap()
}

/// Changes a sector, and puts it back.
fn changed(world: &mut World, offset: u64) -> Verdict {
    let mut old = [0; 512];
    world.disks[0].read(offset, &mut old).unwrap();
    world.disks[0].write(offset, &old.map(|byte| !byte)).unwrap();
    let found = verdict(world, 0);
    world.disks[0].write(offset, &old).unwrap();
    found
}

/// Sectors in which a change is told, of all.
fn told(world: &mut World) -> usize {
    (0..DISK / 512).filter(|sector| changed(world, sector * 512) != Verdict::Same).count()
}

#[test]
fn a_change_where_the_session_did_not_write_is_told_and_one_where_it_did_is_not_mistaken() {
    let mut world = World::new("journal", false);
    assert_eq!([verdict(&mut world, 0), verdict(&mut world, 1)], [Verdict::Same, Verdict::Same]);
    let all = (DISK / 512) as usize;
    let found = told(&mut world);
    assert!(found > all / 2, "{found} of {all}");
    let refused = take_up(&mut world.fast, &mut world.disks[0], 0, false);
    assert_eq!(refused, Ok(None), "nothing has changed");
}

#[test]
fn what_was_written_and_flushed_counts_again_once_it_is_taken_down() {
    let mut world = World::new("journal", true);
    take_up(&mut world.fast, &mut world.disks[0], 0, false).unwrap();
    let all = (DISK / 512) as usize;
    assert_eq!(told(&mut world), all, "a session that has written nothing");
    let mut watch = Watch::open(Box::new(world.fast.clone())).unwrap().unwrap();
    watch.add(0, &mut world.disks[0]);
    watch.before_write(0, nandscape_core::Extent::new(4096, 8192));
    world.disks[0].write(4096, &[3; 8192]).unwrap();
    assert_eq!(verdict(&mut world, 0), Verdict::Same);
    assert_eq!(told(&mut world), all - 16);
    assert!(!watch.is_renewable(0), "not flushed yet");
    world.disks[0].flush().unwrap();
    watch.flushed(0);
    assert!(watch.is_renewable(0));
    watch.renew(0, &mut world.disks[0]);
    assert_eq!(told(&mut world), all);
    // A record that is damaged tells nothing, and no lie.
    let (superblock, _) = Superblock::read(&mut world.fast).unwrap();
    for copy in [0, 4096] {
        let mut bytes = [0; 4096];
        world.fast.read(superblock.watch + copy, &mut bytes).unwrap();
        bytes[100] ^= 1;
        world.fast.write(superblock.watch + copy, &bytes).unwrap();
        assert_eq!(told(&mut world), all, "copy {copy}: nothing is known");
        assert_eq!(verdict(&mut world, 0), Verdict::Unknown);
        bytes[100] ^= 1;
        world.fast.write(superblock.watch + copy, &bytes).unwrap();
    }
    assert_eq!(verdict(&mut world, 0), Verdict::Same);
}

#[test]
fn a_place_is_struck_off_durably_before_it_is_written_to() {
    let mut world = World::new("journal", true);
    take_up(&mut world.fast, &mut world.disks[0], 0, false).unwrap();
    let mut watch = Watch::open(Box::new(world.fast.clone())).unwrap().unwrap();
    watch.add(0, &mut world.disks[0]);
    watch.before_write(0, nandscape_core::Extent::new(0, 512));
    world.fast.at = SimTime(1 << 42);
    world.power(Fate::Lost, u64::MAX);
    world.disks[0].write(0, &[9; 512]).unwrap();
    assert_eq!(verdict(&mut world, 0), Verdict::Same);
}
