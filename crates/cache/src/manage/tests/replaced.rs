//! A cache is made, where there was none and in place of another.

use super::cuts::{fate, second_cuts};
use super::*;

const NEW: [u8; 16] = [0xDD; 16];

/// Makes the new cache.
fn make(world: &mut World, kind: &str) -> Result<(), ManageError> {
    let shape = Shape {
        capacity_bytes: FAST - WATCH_BYTES,
        store_block: 512,
        block_bytes: BLOCK,
        uuid: NEW,
        settings: "new".to_owned(),
        volumes: Vec::new(),
    };
    create(&mut world.fast, kind, &shape, true).map(drop)
}

/// The cache before, as it was; none; or the new one, empty. Gives whether it is the last.
fn is_made(world: &mut World, context: &str) -> bool {
    match look(&mut world.fast) {
        Err(ManageError::Metadata(MetadataError::Absent)) => false,
        Err(error) => panic!("{context}: {error}"),
        Ok(held) if held.superblock.uuid == NEW => {
            assert_eq!(held.entries, [], "{context}: a new cache is empty");
            assert_eq!((held.superblock.settings.as_str(), held.superblock.volumes.len()), ("new", 0));
            assert!(held.report.lost.is_empty(), "{context}: {:?}", held.report);
            true
        }
        Ok(_) => {
            assert_eq!(world.root(), (vec![0, 1], "old".to_owned()), "{context}");
            world.check(context);
            false
        }
    }
}

fn cut(world: &mut World, kind: &str, k: u64, fate: Fate, context: &str) -> bool {
    let now = world.operations.count();
    world.power(Fate::Lost, now + k);
    let outcome = make(world, kind);
    world.power(fate, u64::MAX);
    let is_new = is_made(world, context);
    // At its end it looks at what it has written, and copes with what it cannot read.
    assert!(is_new || outcome.is_err(), "{context}: {outcome:?}");
    is_new
}

/// A cache before, removed cleanly or not; what is no cache; nothing.
fn before(what: &str) -> World {
    let mut world = World::new("journal", what != "in use");
    if what == "nothing" || what == "noise" {
        let mut bytes = vec![0; FAST as usize];
        if what == "noise" {
            Xoshiro256PlusPlus::seed_from_u64(3).fill_bytes(&mut bytes);
        }
        world.fast.write(0, &bytes).unwrap();
        world.fast.flush().unwrap();
        world.power(Fate::Lost, u64::MAX);
    }
    world
}

#[test]
fn making_a_cache_cut_at_any_operation_leaves_the_one_before_or_none_or_the_new_one() {
    for (what, kind) in [
        ("nothing", "journal"),
        ("noise", "journal"),
        ("removed", "journal"),
        ("in use", "journal"),
        ("removed", "slots"),
    ] {
        let start = Saved::of(before(what));
        let mut whole = start.world();
        let from = whole.operations.count();
        make(&mut whole, kind).unwrap();
        let count = whole.operations.count() - from;
        assert!(is_made(&mut whole, what) && count > 5, "{what}: {count} operations");
        let mut seen = [0, 0];
        for (k, n) in (0..count).flat_map(|k| (0..3).map(move |n| (k, n))) {
            let context = format!("{what}, then {kind}, cut at operation {k} of {count}, {:?}", fate(n, k));
            let mut world = start.world();
            let is_new = cut(&mut world, kind, k, fate(n, k), &context);
            seen[usize::from(is_new)] += 1;
            let from = world.operations.count();
            make(&mut world, kind).unwrap_or_else(|error| panic!("{context}, again: {error}"));
            let again = world.operations.count() - from;
            assert!(is_made(&mut world, &context), "{context}, again");
            for second in second_cuts(again, k).into_iter().filter(|_| n == k % 3) {
                let context = format!("{context}, and again at {second} of {again}");
                let mut world = start.world();
                cut(&mut world, kind, k, fate(n, k), &context);
                cut(&mut world, kind, second, fate(n + second, second), &context);
                make(&mut world, kind).unwrap_or_else(|error| panic!("{context}: {error}"));
                assert!(is_made(&mut world, &context), "{context}");
            }
        }
        assert!(seen[0] > 0 && seen[1] > 0, "{what}: {seen:?}");
    }
}

#[test]
fn a_cache_that_is_there_is_replaced_only_if_asked() {
    let mut world = World::new("journal", true);
    let shape = Shape {
        capacity_bytes: FAST - WATCH_BYTES,
        store_block: 512,
        block_bytes: BLOCK,
        uuid: NEW,
        settings: String::new(),
        volumes: Vec::new(),
    };
    let refused = create(&mut world.fast, "journal", &shape, false).unwrap_err();
    assert!(
        matches!(refused, ManageError::Exists { volumes: 2, dirty_bytes } if dirty_bytes > 0),
        "{refused}"
    );
    world.check("a refused create");
}
