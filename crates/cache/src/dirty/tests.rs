//! Against a plain map in which every question is answered by looking at everything.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const SLOTS: u32 = 64;
const WAYS: u32 = 8;

/// Blocks by key: slot and when.
type Model = BTreeMap<u64, (u32, u64)>;

/// Keys with many neighbours, at the ends of volumes too.
fn key(n: u64) -> BlockKey {
    match n {
        0..200 => BlockKey(n),
        200..260 => BlockKey((1 << 48) - 30 + (n - 200)),
        _ => BlockKey(u64::MAX - (n - 260)),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Dirty(u64),
    Clean(usize),
    Rewrite(usize),
    Relabel(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..300u64).prop_map(Step::Dirty),
        2 => any::<usize>().prop_map(Step::Clean),
        1 => any::<usize>().prop_map(Step::Rewrite),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Step::Relabel(a, b)),
    ]
}

fn free_slots(model: &Model) -> Vec<u32> {
    (0..SLOTS).filter(|slot| !model.values().any(|(used, _)| used == slot)).collect()
}

fn apply(step: &Step, at: u64, index: &mut DirtyIndex, model: &mut Model) {
    let chosen = |n: usize, model: &Model| {
        let (key, (slot, _)) = model.iter().nth(n % model.len().max(1))?;
        Some((*key, *slot))
    };
    match *step {
        Step::Dirty(n) => {
            let Some(slot) = free_slots(model).first().copied() else { return };
            let is_new = !model.contains_key(&{ key(n).0 });
            assert_eq!(index.insert(key(n), slot, SimTime(at)), is_new);
            model.entry(key(n).0).or_insert((slot, at));
        }
        Step::Clean(n) => {
            let Some((key, slot)) = chosen(n, model) else { return };
            assert!(index.remove(BlockKey(key), slot));
            assert!(!index.remove(BlockKey(key), slot));
            model.remove(&key);
        }
        Step::Rewrite(n) => {
            let Some((key, slot)) = chosen(n, model) else { return };
            index.rewrite(slot, SimTime(at));
            model.insert(key, (slot, at));
        }
        Step::Relabel(n, m) => {
            let (Some((key, from)), free) = (chosen(n, model), free_slots(model)) else { return };
            let Some(to) = free.get(m % free.len().max(1)) else { return };
            index.relabel(from, *to);
            model.get_mut(&key).unwrap().0 = *to;
        }
    }
}

/// When a block became dirty last in each set that has dirty ones; a block that moves to a set without any
/// brings the age of the youngest set.
fn stamp(sets: &mut BTreeMap<u32, u64>, before: &Model, after: &Model, at: u64) {
    for (key, (slot, _)) in after {
        match before.get(key) {
            None => drop(sets.insert(slot / WAYS, at)),
            Some((from, _)) if from != slot => {
                let youngest = sets.values().max().copied().unwrap_or(0);
                sets.entry(slot / WAYS).or_insert(youngest);
            }
            Some(_) => {}
        }
    }
    sets.retain(|set, _| after.values().any(|(slot, _)| slot / WAYS == *set));
}

/// The run as found by walking.
fn run(model: &Model, key: BlockKey, limit: u32) -> Option<(BlockKey, u32)> {
    model.get(&{ key.0 })?;
    let is_dirty = |n: u64| model.contains_key(&n) && BlockKey(n).volume() == key.volume();
    let (mut first, mut last) = (key.0, key.0);
    while last - first + 1 < u64::from(limit) && last < u64::MAX && is_dirty(last + 1) {
        last += 1;
    }
    while last - first + 1 < u64::from(limit) && first > 0 && is_dirty(first - 1) {
        first -= 1;
    }
    Some((BlockKey(first), (last - first + 1) as u32))
}

fn compare(index: &DirtyIndex, model: &Model) {
    assert_eq!(index.len() as usize, model.len());
    assert_eq!(index.is_empty(), model.is_empty());
    let mut by_age: Vec<_> = model.values().map(|(slot, at)| (*slot, SimTime(*at))).collect();
    by_age.sort_by_key(|(_, at)| *at);
    assert_eq!(index.by_age().collect::<Vec<_>>(), by_age);
    assert_eq!(index.oldest(), by_age.first().copied());
    for (slot, at) in &by_age {
        assert_eq!(index.since(*slot), Some(*at));
    }
    let in_set = |set| model.values().filter(|(slot, _)| slot / WAYS == set).count() as u32;
    for set in 0..SLOTS / WAYS {
        assert_eq!(index.len_of_set(set), in_set(set));
    }
    let most = (0..SLOTS / WAYS).map(in_set).max().filter(|most| *most > 0);
    assert_eq!(index.fullest_set().map(|(_, count)| count), most);
    if let Some((set, count)) = index.fullest_set() {
        assert_eq!(in_set(set), count);
    }
    for n in 0..300 {
        let key = key(n);
        assert_eq!(index.has(key), model.contains_key(&{ key.0 }));
        let next = model.range(key.0..).next().or(model.iter().next()).map(|(next, _)| BlockKey(*next));
        assert_eq!(index.next_on_disk(key), next);
        for limit in [1, 2, 7, 64, 100] {
            assert_eq!(index.run(key, limit), run(model, key, limit), "{key:?}, at most {limit}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_index_agrees_with_a_plain_map(steps in prop::collection::vec(step(), 0..200)) {
        let mut index = DirtyIndex::new(SLOTS, WAYS, Kept { of_blocks: true, of_sets: true });
        let (mut model, mut sets) = (Model::new(), BTreeMap::new());
        for (at, step) in steps.iter().enumerate() {
            let before = model.clone();
            apply(step, at as u64, &mut index, &mut model);
            stamp(&mut sets, &before, &model, at as u64);
            let oldest = index.oldest_set();
            assert_eq!(oldest.map(|(_, at)| at.0), sets.values().min().copied());
            assert!(oldest.is_none_or(|(set, at)| sets[&set] == at.0), "{oldest:?} of {sets:?}");
            if at % 40 == 0 {
                compare(&index, &model);
            }
        }
        compare(&index, &model);
    }
}

#[test]
fn a_run_over_several_chunks_is_one_and_stops_at_the_limit() {
    let mut index = DirtyIndex::new(4096, 4096, Kept::default());
    for block in 10..1000u64 {
        index.insert(BlockKey::new(3, block), block as u32, SimTime::ZERO);
    }
    assert_eq!(index.run(BlockKey::new(3, 500), 10_000), Some((BlockKey::new(3, 10), 990)));
    assert_eq!(index.run(BlockKey::new(3, 500), 300), Some((BlockKey::new(3, 500), 300)));
    assert_eq!(index.run(BlockKey::new(3, 900), 300), Some((BlockKey::new(3, 700), 300)));
    assert_eq!(index.run(BlockKey::new(3, 5), 300), None);
    assert_eq!(index.oldest(), None, "ages are not kept");
    assert_eq!(index.since(0), None);
}

#[test]
fn memory_is_small_where_neighbours_are_dirty_and_nothing_when_clean() {
    let mut index = DirtyIndex::new(1 << 16, 1 << 16, Kept::default());
    assert_eq!(index.memory_bytes(), 0);
    for slot in 0..1 << 16 {
        index.insert(BlockKey(u64::from(slot)), slot, SimTime::ZERO);
    }
    assert!(index.memory_bytes() * 2 <= 1 << 16, "half a byte a block, not {}", index.memory_bytes());
    for slot in 0..1 << 16 {
        index.remove(BlockKey(u64::from(slot)), slot);
    }
    assert_eq!(index.memory_bytes(), 0);
}

#[test]
fn a_block_alone_takes_two_bytes_and_lists_and_bits_hold_the_same() {
    use nandscape_core::rng::{below, seeded};
    let mut index = DirtyIndex::new(1 << 20, 1 << 20, Kept::default());
    let mut rng = seeded(4);
    let mut model = std::collections::BTreeSet::new();
    let mut most = [0.0_f64; 2];
    // Ranges grow to bits and shrink to lists again.
    for (count, span) in [(60_000, 1 << 20), (1000, 1 << 20), (12_000, 1 << 17), (20, 1 << 17)] {
        while model.len() != count {
            let key = BlockKey::new(1, below(&mut rng, span));
            if model.len() < count {
                assert_eq!(index.insert(key, 0, SimTime::ZERO), model.insert(key.0));
            } else {
                let key =
                    model.range(key.0..).next().or(model.iter().next()).copied().expect("some are left");
                assert!(model.remove(&key) && index.remove(BlockKey(key), 0));
            }
        }
        assert_eq!(index.len() as usize, model.len());
        for _ in 0..2000 {
            let key = BlockKey::new(1, below(&mut rng, span));
            assert_eq!(index.has(key), model.contains(&{ key.0 }));
            let next = model.range(key.0..).next().or(model.iter().next()).copied();
            assert_eq!(index.next_on_disk(key), next.map(BlockKey));
            let up = (key.0..u64::MAX).take_while(|key| model.contains(key)).count() as u64;
            let down = (0..key.0).rev().take_while(|key| model.contains(key)).count() as u64;
            let run = index.run(key, u32::MAX);
            assert_eq!(run, (up > 0).then(|| (BlockKey(key.0 - down), (up + down) as u32)));
        }
        if count > 5000 {
            let each = index.memory_bytes() as f64 / count as f64;
            most = [most[0].max(each), most[1] + 1.0];
        }
    }
    assert!(most[1] > 1.0 && most[0] < 2.4, "{} bytes a block", most[0]);
}
