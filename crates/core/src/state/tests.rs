//! What is loaded is what was saved, and what is wrong is refused without a large allocation.

use super::*;
use crate::rng::{Rng, seeded};

impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) -> StateResult {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Source for Bytes<'_> {
    fn take(&mut self, bytes: &mut [u8]) -> StateResult {
        let from = self.bytes[self.at..].get(..bytes.len());
        let from = from.ok_or_else(|| StateError::File(format!("byte {}: the end", self.at)))?;
        bytes.copy_from_slice(from);
        self.at += bytes.len();
        Ok(())
    }

    fn offset(&self) -> u64 {
        self.at as u64
    }

    fn left(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }
}

fn saved(state: &mut dyn State) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.state(&mut Archive::Save(&mut bytes)).unwrap();
    bytes
}

fn load(state: &mut dyn State, bytes: &[u8]) -> StateResult {
    let mut source = Bytes { bytes, at: 0 };
    state.state(&mut Archive::Load(&mut source))?;
    assert_eq!(source.at, bytes.len(), "bytes that nobody read");
    Ok(())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    First,
    Second,
}

state_of_enum!(Kind: First, Second);

type Numbers = (u8, (u16, (u32, (u64, (u128, (i64, f64))))));

#[derive(Debug, PartialEq)]
struct Everything {
    numbers: Numbers,
    is_so: bool,
    kind: Kind,
    list: Vec<Vec<u16>>,
    queue: VecDeque<u32>,
    heap: Vec<Reverse<(u32, u32)>>,
    map: BTreeMap<u32, Kind>,
    some: Option<u64>,
    pages: Vec<Ppn>,
    part: Option<Box<[u8; 3]>>,
    rng: Xoshiro256PlusPlus,
    size: u32,
}

#[derive(Default)]
struct Reverse2(BinaryHeap<Reverse<(u32, u32)>>);

state!(impl [] Everything {
    saved: numbers, is_so, kind, list, queue, heap, map, some, rng;
    tables: pages;
    parts: part;
    fixed: size;
});

fn new() -> Everything {
    Everything {
        numbers: Numbers::default(),
        is_so: false,
        kind: Kind::First,
        list: Vec::new(),
        queue: VecDeque::from([1, 2, 3]),
        heap: Vec::new(),
        map: BTreeMap::from([(7, Kind::First)]),
        some: None,
        pages: vec![Ppn::NONE; 10_000],
        part: Some(Box::new([0; 3])),
        rng: seeded(1),
        size: 5,
    }
}

fn used() -> Everything {
    let mut this = new();
    this.numbers = (1, (2, (3, (4, (5, (-6, 7.5))))));
    (this.is_so, this.kind, this.some) = (true, Kind::Second, Some(9));
    this.list = vec![vec![1; 3], vec![], vec![2; 9000]];
    this.queue = VecDeque::from([9, 8, 7, 6]);
    this.queue.rotate_left(2);
    this.heap = vec![Reverse((1, 2)), Reverse((3, 4))];
    this.map = BTreeMap::from([(1, Kind::Second), (9, Kind::First)]);
    this.pages = (0..10_000).map(Ppn).collect();
    this.part = Some(Box::new([1, 2, 3]));
    this.rng.next_u64();
    this
}

#[test]
fn what_is_loaded_is_what_was_saved() {
    let mut before = used();
    let bytes = saved(&mut before);
    assert_eq!(before, used(), "saving changes nothing");
    let mut after = new();
    load(&mut after, &bytes).unwrap();
    assert_eq!(after, before);
    assert_eq!(after.rng.next_u64(), before.rng.next_u64());
}

#[test]
fn a_heap_keeps_the_order_of_its_memory() {
    let mut before = Reverse2::default();
    for number in [5, 3, 8, 1, 9, 2, 7, 1, 4] {
        before.0.push(Reverse((number, 100 - number)));
        before.0.pop().filter(|_| number == 9);
    }
    for number in 0..20 {
        before.0.push(Reverse((number * 7 % 11, number)));
    }
    let bytes = saved(&mut before.0);
    let mut after = Reverse2::default();
    load(&mut after.0, &bytes).unwrap();
    assert_eq!(after.0.into_vec(), before.0.into_vec());
}

#[test]
fn every_end_and_every_other_structure_is_an_error() {
    let bytes = saved(&mut used());
    for end in (0..bytes.len()).step_by(97) {
        assert!(load(&mut new(), &bytes[..end]).is_err(), "{end}");
    }
    let mut other = bytes.clone();
    other[0] ^= 1;
    let error = load(&mut new(), &other).unwrap_err().to_string();
    assert!(error.contains("where Everything begins"), "{error}");
    let mut smaller = Everything { pages: vec![Ppn::NONE; 9_999], ..new() };
    let error = load(&mut smaller, &bytes).unwrap_err().to_string();
    assert!(error.contains("a table of 10000: expected 9999"), "{error}");
    let error = load(&mut Everything { part: None, ..new() }, &bytes).unwrap_err().to_string();
    assert!(error.contains("a part that is there: expected no such part"), "{error}");
}

#[test]
fn a_forged_length_is_refused_before_anything_is_allocated() {
    for length in [u64::MAX, 1 << 60, 100] {
        let bytes = [&length.to_le_bytes()[..], &[0; 50]].concat();
        let error = load(&mut Vec::<u64>::new(), &bytes).unwrap_err().to_string();
        assert!(error.contains("expected at most 50"), "{error}");
    }
    let error = load(&mut Kind::First, &[2]).unwrap_err().to_string();
    assert!(error.contains("2: expected less than 2"), "{error}");
    assert!(load(&mut false, &[2]).is_err());
}
