//! A volume takes the size of a disk that grew or shrank.

use super::cuts::{fate, second_cuts};
use super::*;

impl World {
    /// The disk of a volume has another size from now on; what is new has some content.
    fn resize_disk(&mut self, id: u16, bytes: u64) {
        let (disk, model) = (&mut self.disks[usize::from(id)], &mut self.model[usize::from(id)]);
        let mut content = disk.bytes();
        for all in [&mut content, &mut *model] {
            all.resize(bytes as usize, 0xE7);
        }
        disk.device = device(bytes, &self.operations);
        disk.write(0, &content).unwrap();
        disk.flush().unwrap();
        self.strange = Some(id);
        self.power(Fate::Lost, u64::MAX);
    }

    fn size(&mut self, id: u16) -> u64 {
        Superblock::read(&mut self.fast).unwrap().0.volumes[usize::from(id)].bytes
    }
}

fn act(world: &mut World) -> Result<(u64, u64), ManageError> {
    resize(&mut world.fast, &mut world.disks[0], 0)
}

/// The old size, with a disk that is refused, or the new one, with a disk that is as it was left.
fn is_resized(world: &mut World, new: u64, context: &str) -> bool {
    world.check(context);
    let held = look(&mut world.fast).unwrap();
    let verdict = check(&held, &mut world.disks[0], 0).unwrap();
    let is_new = world.size(0) == new;
    assert!(is_new || world.size(0) == DISK, "{context}: {} bytes", world.size(0));
    let is_refused = matches!(verdict, Verdict::Changed(Change::Size { .. }));
    assert_eq!(is_refused, !is_new, "{context}: {verdict:?}");
    is_new
}

fn cut(world: &mut World, new: u64, k: u64, fate: Fate, context: &str) {
    let now = world.operations.count();
    world.power(Fate::Lost, now + k);
    act(world).expect_err(context);
    world.power(fate, u64::MAX);
    is_resized(world, new, context);
}

#[test]
fn resizing_cut_at_any_operation_leaves_the_old_or_the_new_size() {
    for (kind, is_closed, new) in [
        ("journal", true, DISK + 65_536),
        ("journal", false, DISK + 512),
        ("slots", true, DISK + 65_536),
        ("journal", true, DISK / 2 + 512),
        ("slots", true, DISK / 2),
    ] {
        let make = || {
            let mut world = World::new(kind, is_closed);
            if new < DISK {
                let [first, second, _] = &mut world.disks[..] else { unreachable!() };
                clean(&mut world.fast, &mut [(0, first), (1, second)], &mut |_, _| {}).unwrap();
                let held = look(&mut world.fast).unwrap();
                let beyond = held.entries.iter().any(|(_, entry)| entry.key.block() * u64::from(BLOCK) > new);
                assert!(beyond, "nothing is cached of what goes");
            }
            world.resize_disk(0, new);
            world
        };
        let start = Saved::of(make());
        let name = format!("{kind}, from {DISK} to {new} bytes");
        let mut whole = start.world();
        let from = whole.operations.count();
        assert_eq!(act(&mut whole).unwrap(), (DISK, new));
        let count = whole.operations.count() - from;
        assert!(is_resized(&mut whole, new, &name) && count > 3, "{name}: {count} operations");
        for (k, n) in (0..count).flat_map(|k| (0..3).map(move |n| (k, n))) {
            let context = format!("{name}, cut at operation {k} of {count}, {:?}", fate(n, k));
            let mut world = start.world();
            cut(&mut world, new, k, fate(n, k), &context);
            let from = world.operations.count();
            act(&mut world).unwrap_or_else(|error| panic!("{context}, again: {error}"));
            let again = world.operations.count() - from;
            assert!(is_resized(&mut world, new, &context), "{context}, again");
            for second in second_cuts(again, k).into_iter().filter(|_| n == k % 3) {
                let context = format!("{context}, and again at {second} of {again}");
                let mut world = start.world();
                cut(&mut world, new, k, fate(n, k), &context);
                cut(&mut world, new, second, fate(n + second, second), &context);
                act(&mut world).unwrap_or_else(|error| panic!("{context}: {error}"));
                assert!(is_resized(&mut world, new, &context), "{context}");
            }
        }
    }
}

#[test]
fn a_disk_that_shrank_below_what_only_the_cache_has_is_refused_and_nothing_changes() {
    let mut world = World::new("journal", true);
    let last = look(&mut world.fast).unwrap().dirty(0).last().copied().expect("it has dirty blocks");
    let end = last.offset + last.len;
    assert!(end < DISK || last.len > 512);
    let model = world.model[0].clone();
    world.resize_disk(0, end - 512);
    let before = world.fast.bytes();
    let refused = act(&mut world).unwrap_err();
    assert_eq!(refused, ManageError::TooSmall { volume: 0, bytes: end - 512, needed: end });
    assert!(world.fast.bytes() == before, "a refused command has written something");
    world.model[0] = model;
    world.resize_disk(0, end);
    world.model[0].truncate(end as usize);
    act(&mut world).unwrap();
    world.check("as large as it has to be");
}

#[test]
fn a_sub_block_that_reached_past_the_old_end_brings_nothing_of_what_it_held_there() {
    // A block of 16 KiB has sub-blocks of 1 KiB, and the disk ends in the middle of one.
    const OLD: u64 = 24_064;
    let operations = Operations::default();
    let place = |bytes| Place {
        device: device(bytes, &operations),
        mark: device(MARK, &operations),
        takes_mark: true,
        at: SimTime::ZERO,
    };
    let (mut fast, mut disk) = (place(FAST), place(OLD));
    let shape = Shape {
        capacity_bytes: FAST,
        store_block: 512,
        block_bytes: 16_384,
        uuid: [0xCC; 16],
        settings: String::new(),
        volumes: Vec::new(),
    };
    create(&mut fast, "journal", &shape, false).unwrap();
    // What is in the slots from before is nobody's.
    let data = look(&mut fast).unwrap().superblock.shape.slot_offset(0);
    fast.write(data, &vec![0xBD; (FAST - data) as usize / 512 * 512]).unwrap();
    let with = Attach { id: 0, uuid: uuid(0), settings: String::new(), replace: false };
    attach(&mut fast, &mut disk, &with).unwrap();
    take_up(&mut fast, &mut disk, 0, false).unwrap();
    let setup = Setup { block_bytes: 16_384, mode: Mode::WriteBack, map: Map::Full, seed: 1 };
    let lru = EvictionSpec::parse("lru").unwrap();
    let member = Member { store: Box::new(disk.device.clone()), uuid: uuid(0) };
    let policy = |ways, seed| AnyEviction::new(&lru, ways, seed);
    let mut started =
        Cache::open(Box::new(fast.device.clone()), vec![member], &setup, policy, SimTime(1 << 40)).unwrap();
    let (at, tail) = (started.at, [0x11; 1024]);
    started.cache.submit(0, command(Op::Write, OLD - 1024, 1024), Payload::Write(&tail), at).unwrap();
    started.cache.close(at).unwrap();
    (fast.at, disk.at) = (SimTime(1 << 41), SimTime(1 << 41));
    end(&mut fast, &mut disk, 0).unwrap();

    let grown = OLD + 512 + 4096;
    let mut content = disk.bytes();
    content.resize(grown as usize, 0xE7);
    disk.device = device(grown, &operations);
    disk.write(0, &content).unwrap();
    disk.flush().unwrap();
    assert_eq!(resize(&mut fast, &mut disk, 0).unwrap(), (OLD, grown));
    detach(&mut fast, &mut disk, 0, "", &mut |_, _| {}).unwrap();
    content[(OLD - 1024) as usize..OLD as usize].fill(0x11);
    let found = disk.bytes();
    let wrong = (0..grown as usize).find(|at| found[*at] != content[*at]);
    assert_eq!(wrong, None, "the disk has {:#x} there", wrong.map_or(0, |at| found[at]));
}
