//! Commands that leave the old or the new state of a cache.

use super::*;
use crate::metadata;

/// A command, and what it is about.
type Action = fn(&mut World) -> Result<(), ManageError>;

pub(super) const FATES: [Fate; 3] = [Fate::Lost, Fate::Kept, Fate::Torn { seed: 0 }];

/// What becomes of what was not flushed before operation `k`, the `n`th of three.
pub(super) fn fate(n: u64, k: u64) -> Fate {
    if let Fate::Torn { .. } = FATES[(n % 3) as usize] {
        Fate::Torn { seed: k }
    } else {
        FATES[(n % 3) as usize]
    }
}

/// Where a command of so many operations, that was cut at `k`, is cut when it is repeated: a short one
/// everywhere, else here and there.
pub(super) fn second_cuts(count: u64, k: u64) -> Vec<u64> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(k);
    let cuts = if count <= 100 { 2 } else { u64::from(k.is_multiple_of(5)) };
    if count <= 12 { (0..count).collect() } else { (0..cuts).map(|_| below(&mut rng, count)).collect() }
}

fn detach_first(world: &mut World) -> Result<(), ManageError> {
    detach(&mut world.fast, &mut world.disks[0], 0, "new", &mut |_, _| {})
}

fn clean_both(world: &mut World) -> Result<(), ManageError> {
    let [first, second, _] = &mut world.disks[..] else { unreachable!() };
    clean(&mut world.fast, &mut [(0, first), (1, second)], &mut |_, _| {})?;
    set(&mut world.fast, "new")
}

fn attach_third(world: &mut World) -> Result<(), ManageError> {
    world.attach(2, "new")
}

fn set_all(world: &mut World) -> Result<(), ManageError> {
    set(&mut world.fast, "new")
}

fn set_while_open(world: &mut World) -> Result<(), ManageError> {
    let mut opened = metadata::open(&mut world.fast)?;
    metadata::apply(&mut world.fast, &opened.repairs).map_err(ManageError::Fast)?;
    set_open(&mut world.fast, opened.metadata.superblock().unwrap(), "new")
}

fn discard_first(world: &mut World) -> Result<(), ManageError> {
    remove(&mut world.fast, 0, "new")
}

/// What the command is to lead to.
struct Goal<'a> {
    name: &'a str,
    act: Action,
    /// Volumes after it.
    volumes: &'a [u16],
}

impl Goal<'_> {
    /// The root is the one before the command or the one after it; gives whether it is the latter.
    fn is_reached(&self, world: &mut World, context: &str) -> bool {
        let (old, new) = ((vec![0, 1], "old".to_owned()), (self.volumes.to_vec(), "new".to_owned()));
        let root = world.root();
        assert!(root == old || root == new, "{context}: {root:?}");
        world.check(context);
        root == new
    }

    /// Cuts it at operation `k` from now on.
    fn cut(&self, world: &mut World, k: u64, fate: Fate, context: &str) -> bool {
        let now = world.operations.count();
        world.power(Fate::Lost, now + k);
        (self.act)(world).expect_err(context);
        world.power(fate, u64::MAX);
        self.is_reached(world, context)
    }

    /// Carries it out, and gives its operations.
    fn finish(&self, world: &mut World, context: &str) -> u64 {
        let before = world.operations.count();
        (self.act)(world).unwrap_or_else(|error| panic!("{context}: {error}"));
        let count = world.operations.count() - before;
        assert!(self.is_reached(world, context), "{context}: not reached");
        count
    }

    /// Cuts the command at every operation, and what was cut short when it is repeated.
    fn cut_everywhere(&self, start: World) {
        let start = Saved::of(start);
        let count = self.finish(&mut start.world(), self.name);
        assert!(count > 3, "{}: {count} operations", self.name);
        let mut seen = [0, 0];
        for k in 0..count {
            // Long commands do one thing over and over; each fate in turn is enough.
            for n in if count > 60 { k % 3..k % 3 + 1 } else { 0..3 } {
                let fate = fate(n, k);
                let context = format!("{}, cut at operation {k} of {count}, {fate:?}", self.name);
                let mut world = start.world();
                let is_new = self.cut(&mut world, k, fate, &context);
                seen[usize::from(is_new)] += 1;
                if is_new {
                    continue;
                }
                let again = self.finish(&mut world, &format!("{context}, again"));
                for second in second_cuts(again, k).into_iter().filter(|_| n == k % 3) {
                    let fate = self::fate(n + second, second);
                    let context = format!("{context}, and again at {second} of {again}, {fate:?}");
                    let mut world = start.world();
                    self.cut(&mut world, k, self::fate(n, k), &context);
                    if !self.cut(&mut world, second, fate, &context) {
                        self.finish(&mut world, &format!("{context}, and to its end"));
                    }
                }
            }
        }
        assert!(seen[0] > 0, "{}: a cut before the command had effect", self.name);
    }
}

fn cut_everywhere(kind: &str, is_closed: bool, name: &str, act: Action, volumes: &[u16]) {
    let name = format!("{kind}, {name}");
    Goal { name: &name, act, volumes }.cut_everywhere(World::new(kind, is_closed));
}

#[test]
fn attach_and_set_cut_at_any_operation_leave_the_old_or_the_new_volumes() {
    for kind in ["journal", "slots"] {
        cut_everywhere(kind, true, "attach", attach_third, &[0, 1, 2]);
        cut_everywhere(kind, true, "set", set_all, &[0, 1]);
        cut_everywhere(kind, true, "set while open", set_while_open, &[0, 1]);
        cut_everywhere(kind, false, "set while open after a loss of power", set_while_open, &[0, 1]);
    }
    cut_everywhere("journal", false, "attach after a loss of power", attach_third, &[0, 1, 2]);
}

#[test]
fn detach_cut_at_any_operation_leaves_the_volume_whole_and_at_its_end_the_disk_alone() {
    cut_everywhere("journal", true, "detach", detach_first, &[1]);
    cut_everywhere("slots", true, "detach", detach_first, &[1]);
    cut_everywhere("journal", false, "detach after a loss of power", detach_first, &[1]);
}

#[test]
fn cleaning_cut_at_any_operation_loses_nothing() {
    for kind in ["journal", "slots", "at-removal", "periodic"] {
        cut_everywhere(kind, true, "clean", clean_both, &[0, 1]);
    }
    let mut world = World::new("journal", true);
    assert_ne!(look(&mut world.fast).unwrap().usage(None).dirty_blocks, 0);
    clean_both(&mut world).unwrap();
    let held = look(&mut world.fast).unwrap();
    assert_eq!(held.usage(None).dirty_bytes, 0);
    assert_ne!(held.usage(None).blocks, 0, "what is clean stays");
    for id in 0..2 {
        assert!(world.disks[id].bytes() == world.model[id], "disk {id}");
    }
}

/// A session has ended; then somebody writes to the first disk.
fn with_strange_write(kind: &str) -> World {
    let mut world = World::new(kind, true);
    world.strange = Some(0);
    let held = look(&mut world.fast).unwrap();
    // Over a block that is clean in the cache and over one that is dirty.
    let found = |is_clean: bool| {
        let found = held.entries.iter().map(|(_, entry)| entry).find(|entry| {
            entry.key.volume() == 0 && (entry.dirty == 0) == is_clean && entry.valid & entry.dirty.max(1) != 0
        });
        found.expect("the cache has both").key.block() * u64::from(BLOCK)
    };
    for offset in [found(true), found(false)] {
        world.disks[0].write(offset, &[0x5A; BLOCK as usize]).unwrap();
    }
    world.disks[0].flush().unwrap();
    // The volume is then what the disk has, and over it what only the cache has.
    world.model[0] = world.disks[0].bytes();
    let shape = held.superblock.shape;
    for (slot, entry) in held.entries.iter().filter(|(_, entry)| entry.key.volume() == 0) {
        let mut data = vec![0; BLOCK as usize];
        world.fast.read(shape.slot_offset(*slot), &mut data).unwrap();
        for bit in (0..8).filter(|bit| entry.dirty >> bit & 1 == 1) {
            let from = entry.key.block() as usize * BLOCK as usize + bit * 512;
            world.model[0][from..from + 512].copy_from_slice(&data[bit * 512..bit * 512 + 512]);
        }
    }
    let verdict = check(&held, &mut world.disks[0], 0).unwrap();
    assert!(matches!(verdict, Verdict::Changed(_)), "{verdict:?}");
    world
}

fn salvage_first(world: &mut World) -> Result<(), ManageError> {
    salvage(&mut world.fast, &mut world.disks[0], 0, &mut |_, _| {})?;
    set(&mut world.fast, "new")
}

#[test]
fn salvage_cut_at_any_operation_leaves_a_disk_that_is_refused_or_one_that_fits() {
    // With 'periodic' whatever is left after a cut counts as dirty, what was clean before too.
    for kind in ["journal", "slots"] {
        let name = format!("{kind}, salvage");
        let goal = Goal { name: &name, act: salvage_first, volumes: &[0, 1] };
        goal.cut_everywhere(with_strange_write(kind));
        let mut world = with_strange_write(kind);
        salvage_first(&mut world).unwrap();
        world.strange = None;
        world.check("a salvaged disk is as its cache left it");
        assert!(world.disks[0].bytes() == world.model[0]);
    }
}

#[test]
fn discarding_a_volume_cut_at_any_operation_leaves_it_whole_or_gone() {
    // What is cut short has lost some of the dirty blocks, as it was to; so only the other volume has to be
    // whole.
    for (kind, is_closed) in [("journal", true), ("journal", false), ("slots", true)] {
        let name = format!("{kind}, detach --discard");
        let mut world = World::new(kind, is_closed);
        world.is_discarded = true;
        Goal { name: &name, act: discard_first, volumes: &[1] }.cut_everywhere(world);
    }
}
