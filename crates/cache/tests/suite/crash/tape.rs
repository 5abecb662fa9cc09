//! Stores in memory that write down what is asked of them, and what a loss of power leaves of that.

use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::rng::{Xoshiro256PlusPlus, below};
use nandscape_core::{
    Applied, BlockCommand, Clocked, Extent, Op, SimTime, Store, StoreError, StoreShape, Token,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const PAGE: usize = 4096;
/// What survives whole.
pub const UNIT: usize = 512;

/// The bytes of a store, in pages that images share until one is written.
#[derive(Clone)]
pub struct Image(Vec<Arc<[u8; PAGE]>>, u64);

impl Image {
    pub fn new(bytes: u64) -> Self {
        let zeroes = Arc::new([0; PAGE]);
        Self((0..(bytes as usize).div_ceil(PAGE)).map(|_| Arc::clone(&zeroes)).collect(), bytes)
    }

    pub fn read(&self, offset: u64, bytes: &mut [u8]) {
        for (at, part) in bytes.chunks_mut(UNIT).enumerate() {
            let at = offset as usize + at * UNIT;
            part.copy_from_slice(&self.0[at / PAGE][at % PAGE..][..part.len()]);
        }
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (at, part) in bytes.chunks(UNIT).enumerate() {
            let at = offset as usize + at * UNIT;
            Arc::make_mut(&mut self.0[at / PAGE])[at % PAGE..][..part.len()].copy_from_slice(part);
        }
    }
}

/// What was asked of a store.
#[derive(Clone)]
pub enum Change {
    Write { offset: u64, bytes: Arc<[u8]>, done: u64 },
    Flush { done: u64 },
}

/// An operation: of which store, and when.
#[derive(Clone)]
pub struct Record {
    pub device: usize,
    pub at: u64,
    pub change: Change,
}

/// The operations of several stores together. Reads are not among them: a cut at a read is a cut at what
/// follows.
#[derive(Clone, Default)]
pub struct Tape(Arc<Mutex<Vec<Record>>>);

impl Tape {
    pub fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub fn take(&self) -> Vec<Record> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A store that is recorded. It takes `latency` for everything.
pub struct Device {
    pub image: Image,
    number: usize,
    tape: Tape,
    latency: u64,
    counts: HostCounts,
    applied: u64,
    /// What was applied and not started.
    waiting: BTreeMap<u64, Arc<[u8]>>,
}

impl Device {
    pub fn new(image: Image, number: usize, tape: &Tape, latency: u64) -> Self {
        Self {
            image,
            number,
            tape: tape.clone(),
            latency,
            counts: HostCounts::default(),
            applied: 0,
            waiting: BTreeMap::new(),
        }
    }
}

impl Store for Device {
    fn shape(&self) -> StoreShape {
        StoreShape {
            capacity_bytes: self.image.1,
            block_bytes: UNIT as u32,
            stores_bytes: true,
            regions: None,
        }
    }

    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> Result<Applied, StoreError> {
        let Extent { offset, len } = command.extent;
        assert!(offset + len <= self.image.1, "{offset} {len} is past the end");
        assert!((offset | len).is_multiple_of(UNIT as u64), "{offset} {len} is not whole units");
        self.counts.count(command, UNIT as u32);
        let bytes: Arc<[u8]> = match (command.op, payload) {
            (Op::Read, Payload::Read(bytes)) => {
                self.image.read(offset, bytes);
                return Ok(Applied::default());
            }
            (Op::Write, Payload::Write(bytes)) => bytes.into(),
            (Op::Trim | Op::WriteZeroes, _) => vec![0; len as usize].into(),
            (Op::Flush, _) => return Ok(Applied::default()),
            (op, _) => panic!("{op:?} without bytes"),
        };
        self.image.write(offset, &bytes);
        self.applied += 1;
        self.waiting.insert(self.applied, bytes);
        Ok(Applied(self.applied))
    }

    fn start(&mut self, command: BlockCommand, applied: Applied, at: SimTime) -> Result<Token, StoreError> {
        let done = at.0 + self.latency;
        let offset = command.extent.offset;
        let change = match command.op {
            Op::Read => return Ok(Token(done)),
            Op::Flush => Change::Flush { done },
            _ => Change::Write {
                offset,
                done,
                bytes: self.waiting.remove(&applied.0).expect("applied before, started once"),
            },
        };
        self.tape.0.lock().unwrap().push(Record { device: self.number, at: at.0, change });
        Ok(Token(done))
    }

    fn counts(&self) -> HostCounts {
        self.counts
    }

    fn shutdown(&mut self, at: SimTime) -> Result<Token, StoreError> {
        Ok(Token(at.0 + self.latency))
    }

    fn reset_counters(&mut self, _: SimTime) {
        self.counts = HostCounts::default();
    }
}

impl Clocked for Device {
    nandscape_core::tokens_are_times!();

    fn idle_from(&self) -> SimTime {
        SimTime::ZERO
    }
}

/// What becomes of a store's writes that no completed flush covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// All are lost.
    Lost,
    /// All are kept.
    Kept,
    /// Each unit holds what it held after the last flush or after any write since.
    Torn,
}

/// A write to a unit.
struct Version {
    /// Of the operation.
    number: usize,
    bytes: Arc<[u8]>,
    /// Where in them.
    at: usize,
    /// When it is answered.
    done: u64,
}

/// One store before each operation in turn: what is durable, and what was written since.
struct Side {
    durable: Image,
    latest: Image,
    /// By unit, the writes since.
    volatile: BTreeMap<u64, Vec<Version>>,
    /// Flushes under way: number, and when they complete.
    flushes: Vec<(usize, u64)>,
}

/// All stores before each operation in turn.
pub struct Walk {
    sides: Vec<Side>,
    next: usize,
    drives: Drives,
}

/// What a drive keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drives {
    /// What was flushed.
    Volatile,
    /// What it has answered.
    Honest,
}

impl Walk {
    pub fn new(images: &[Image], drives: Drives) -> Self {
        let side = |image: &Image| Side {
            durable: image.clone(),
            latest: image.clone(),
            volatile: BTreeMap::new(),
            flushes: Vec::new(),
        };
        Self { sides: images.iter().map(side).collect(), next: 0, drives }
    }

    /// Goes on past an operation.
    pub fn step(&mut self, record: &Record) {
        let number = self.next;
        self.next += 1;
        let side = &mut self.sides[record.device];
        match &record.change {
            Change::Write { offset, bytes, done } => {
                side.latest.write(*offset, bytes);
                for at in (0..bytes.len()).step_by(UNIT) {
                    let versions = side.volatile.entry((*offset + at as u64) / UNIT as u64).or_default();
                    versions.push(Version { number, bytes: Arc::clone(bytes), at, done: *done });
                }
            }
            Change::Flush { done } => side.flushes.push((number, *done)),
        }
    }

    /// It is `at`: flushes and writes may have completed.
    pub fn settle(&mut self, at: u64) {
        let drives = self.drives;
        for Side { durable, volatile, flushes, .. } in &mut self.sides {
            let last = flushes.iter().filter(|(_, done)| *done <= at).map(|(number, _)| *number).max();
            flushes.retain(|(_, done)| *done > at);
            if last.is_none() && drives == Drives::Volatile {
                continue;
            }
            let is_kept = |version: &Version| {
                last.is_some_and(|last| version.number < last)
                    || drives == Drives::Honest && version.done <= at
            };
            volatile.retain(|unit, versions| {
                let covered = versions.iter().take_while(|version| is_kept(version)).count();
                if let Some(newest) = covered.checked_sub(1).map(|newest| &versions[newest]) {
                    durable.write(unit * UNIT as u64, &newest.bytes[newest.at..newest.at + UNIT]);
                }
                versions.drain(..covered);
                !versions.is_empty()
            });
        }
    }

    /// Whether anything hangs on the fate of a store.
    pub fn is_volatile(&self, device: usize) -> bool {
        !self.sides[device].volatile.is_empty()
    }

    /// What a loss of power leaves now of one store.
    pub fn image(&self, device: usize, fate: Fate, rng: &mut Xoshiro256PlusPlus) -> Image {
        let side = &self.sides[device];
        match fate {
            Fate::Lost => side.durable.clone(),
            Fate::Kept => side.latest.clone(),
            Fate::Torn => {
                let mut image = side.durable.clone();
                for (unit, versions) in &side.volatile {
                    let chosen = below(rng, versions.len() as u64 + 1) as usize;
                    if let Some(Version { bytes, at, .. }) = chosen.checked_sub(1).map(|nth| &versions[nth]) {
                        image.write(unit * UNIT as u64, &bytes[*at..at + UNIT]);
                    }
                }
                image
            }
        }
    }

    pub fn devices(&self) -> usize {
        self.sides.len()
    }
}
