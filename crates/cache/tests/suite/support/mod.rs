//! What the tests of the engine stand on: stores in memory that know what a flush has made durable, a journal
//! that is nothing but a list of committed entries, and the simplest least-recently-used list.

mod ordered;

pub use ordered::Ordered;

use nandscape_cache::metadata::{Entry, Metadata, Table, Write};
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{Applied, BlockCommand, Clocked, Op, SimTime, Store, StoreError, StoreShape, Token};
use nandscape_policies::BlockKey;
use nandscape_policies::eviction::{Eviction, Footprint};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The state of a [`Memory`], which a test can look at while a cache owns the store.
pub struct Bytes {
    pub now: Vec<u8>,
    pub durable: Vec<u8>,
    pub counts: HostCounts,
}

/// A store in memory. Without bytes it only counts.
#[derive(Clone)]
pub struct Memory {
    pub state: Arc<Mutex<Bytes>>,
    capacity: u64,
    block: u32,
    keeps: bool,
}

impl Memory {
    pub fn new(capacity: u64, block: u32, keeps: bool) -> Self {
        let bytes = vec![0; if keeps { capacity as usize } else { 0 }];
        let state = Bytes { now: bytes.clone(), durable: bytes, counts: HostCounts::default() };
        Self { state: Arc::new(Mutex::new(state)), capacity, block, keeps }
    }
}

impl Store for Memory {
    fn shape(&self) -> StoreShape {
        StoreShape {
            capacity_bytes: self.capacity,
            block_bytes: self.block,
            stores_bytes: self.keeps,
            regions: None,
        }
    }

    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> Result<Applied, StoreError> {
        let extent = command.extent;
        assert!(extent.end() <= self.capacity, "{extent:?} is past {}", self.capacity);
        assert!(
            extent.offset.is_multiple_of(u64::from(self.block))
                && extent.len.is_multiple_of(u64::from(self.block))
        );
        let state = &mut *self.state.lock().unwrap();
        state.counts.count(command, self.block);
        let range = extent.offset as usize..extent.end() as usize;
        match (command.op, payload) {
            (Op::Write, Payload::Write(bytes)) if self.keeps => state.now[range].copy_from_slice(bytes),
            (Op::Read, Payload::Read(bytes)) if self.keeps => bytes.copy_from_slice(&state.now[range]),
            (Op::Trim | Op::WriteZeroes, Payload::None) if self.keeps => state.now[range].fill(0),
            (Op::Flush, _) => state.durable.clone_from(&state.now),
            (op, Payload::None) => assert!(!self.keeps, "{op:?} without bytes"),
            (op, _) => panic!("{op:?} with bytes of another kind"),
        }
        Ok(Applied::default())
    }

    fn start(&mut self, _: BlockCommand, _: Applied, _: SimTime) -> Result<Token, StoreError> {
        Ok(Token::NONE)
    }

    fn counts(&self) -> HostCounts {
        self.state.lock().unwrap().counts
    }

    fn shutdown(&mut self, _: SimTime) -> Result<Token, StoreError> {
        Ok(Token::NONE)
    }

    fn reset_counters(&mut self, _: SimTime) {
        self.state.lock().unwrap().counts = HostCounts::default();
    }
}

impl Clocked for Memory {
    nandscape_core::tokens_are_times!();

    fn idle_from(&self) -> SimTime {
        SimTime::ZERO
    }
}

/// Committed entries by slot, and the notes since.
#[derive(Default)]
pub struct Entries {
    pub committed: BTreeMap<u32, Entry>,
    noted: BTreeMap<u32, Option<Entry>>,
    under_way: BTreeMap<u32, Option<Entry>>,
}

/// Metadata that are kept outside of the fast store, so that nothing but the order of commits is tried.
#[derive(Clone)]
pub struct Journal {
    pub entries: Arc<Mutex<Entries>>,
    slots: u32,
    block: u32,
    is_in_place: bool,
    /// Bytes that a commit writes at the start of the fast store, for the time that it takes.
    pub record: usize,
    /// Whether a change is committed before the write that made it is answered.
    pub is_synchronous: bool,
}

impl Journal {
    pub fn new(slots: u32, block: u32, is_in_place: bool) -> Self {
        Self { entries: Arc::default(), slots, block, is_in_place, record: 0, is_synchronous: false }
    }
}

impl Metadata for Journal {
    fn slots(&self) -> u32 {
        self.slots
    }

    fn data_offset(&self, slot: u32) -> u64 {
        4096 + u64::from(slot) * u64::from(self.block)
    }

    fn is_in_place(&self) -> bool {
        self.is_in_place
    }

    fn is_synchronous(&self, old: Option<&Entry>, new: Option<&Entry>) -> bool {
        let is_dirty = |entry: Option<&Entry>| entry.is_some_and(|entry| entry.dirty != 0);
        self.is_synchronous && is_dirty(old) != is_dirty(new)
    }

    fn note(&mut self, slot: u32, entry: Option<Entry>) {
        self.entries.lock().unwrap().noted.insert(slot, entry);
    }

    fn noted(&self) -> u32 {
        self.entries.lock().unwrap().noted.len() as u32
    }

    fn room(&self) -> u32 {
        200
    }

    fn commit(&mut self, table: &dyn Table, out: &mut Vec<Write>) {
        if self.record > 0 {
            out.push(Write { offset: 0, bytes: vec![0; self.record] });
        }
        let mut entries = self.entries.lock().unwrap();
        for (slot, entry) in &entries.noted {
            assert_eq!(table.entry(*slot), *entry, "slot {slot}: the last note and the table");
        }
        assert!(entries.noted.len() <= 200, "{} changes in a commit of 200", entries.noted.len());
        entries.under_way = std::mem::take(&mut entries.noted);
    }

    fn committed(&mut self) {
        let mut entries = self.entries.lock().unwrap();
        for (slot, entry) in std::mem::take(&mut entries.under_way) {
            match entry {
                Some(entry) => entries.committed.insert(slot, entry),
                None => entries.committed.remove(&slot),
            };
        }
    }

    fn close(&mut self, _: &dyn Table, _: &mut Vec<Write>) {}
}

/// Slots from the least to the most recently used.
#[derive(Default)]
pub struct Lru(Vec<u32>);

impl Eviction for Lru {
    fn hit(&mut self, slot: u32) {
        self.remove(slot);
        self.0.push(slot);
    }

    fn miss(&mut self, _: BlockKey) {}

    fn evict(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        let place = self.0.iter().position(|slot| may(*slot))?;
        Some(self.0.remove(place))
    }

    fn insert(&mut self, slot: u32, _: BlockKey) {
        assert!(!self.0.contains(&slot), "slot {slot} is taken");
        self.0.push(slot);
    }

    fn remove(&mut self, slot: u32) {
        let place = self.0.iter().position(|other| *other == slot).expect("a slot that is in use");
        self.0.remove(place);
    }

    fn relabel(&mut self, from: u32, to: u32) {
        assert!(!self.0.contains(&to), "slot {to} is taken");
        let place = self.0.iter().position(|other| *other == from).expect("a slot that is in use");
        self.0[place] = to;
    }

    fn footprint(&self) -> Footprint {
        Footprint { bytes: self.0.len() as u64 * 4, written: 0 }
    }
}
