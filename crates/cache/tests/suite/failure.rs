//! Stores that fail, at every operation: who sees an error, which bytes it is about, and what the cache still
//! holds.

use crate::support;

use nandscape_cache::engine::{Disk, Identity};
use nandscape_cache::{Cache, CacheError, Mode, Setup};
use nandscape_core::command::Payload;
use nandscape_core::ftl::Hint;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{
    BlockCommand, Command, ErrorClass, Extent, NamespaceError, Op, SimTime, Store, StoreError, Subsystem,
};
use nandscape_disk::decorate::{Failing, Fault, Operations, Shared, When};
use nandscape_policies::{BlockKey, Map};
use std::collections::BTreeSet;
use support::{Lru, Memory, Ordered};

const UNIT: u64 = 512;
const BLOCK: u64 = 4096;
/// Units of each volume.
const UNITS: [u64; 2] = [8 * 14 + 3, 8 * 8];

/// A unit of a volume.
type Place = (u16, u64);

struct Rig {
    cache: Cache<Lru>,
    fast: Shared<Failing>,
    disks: [Shared<Failing>; 2],
    memory: Memory,
    operations: Operations,
    /// What each unit holds; `None` where a disk failed while it was written.
    model: [Vec<Option<u8>>; 2],
    next: u8,
    /// Errors that callers saw.
    errors: Vec<CacheError>,
}

impl Rig {
    fn new(kind: &str, mode: Mode) -> Self {
        let operations = Operations::default();
        let shared =
            |memory: &Memory| Shared::new(Failing::new(Box::new(memory.clone()), operations.clone(), []));
        let (kind, is_ordered) = kind.strip_suffix(ORDERED).map_or((kind, false), |kind| (kind, true));
        // The cache is to be small, whatever the metadata needs.
        let metadata = match kind {
            "journal" => 133,
            "periodic" => 134,
            "slots" | "at-removal" => 3,
            _ => 0,
        };
        let memory = Memory::new((metadata + 12) * BLOCK, 512, true);
        let fast = shared(&memory);
        let disks = UNITS.map(|units| shared(&Memory::new(units * UNIT, 512, true)));
        let identity = Identity { kind: kind.to_owned(), uuid: [3; 16], settings: String::new() };
        let setup = Setup { block_bytes: BLOCK as u32, mode, map: Map::Full, seed: 1 };
        let given = disks
            .iter()
            .zip(1..)
            .map(|(disk, number)| Disk { store: Box::new(disk.clone()), uuid: [number; 16] });
        let given_fast: Box<dyn Store + Send> = if is_ordered {
            Box::new(Ordered::new(Box::new(fast.clone()), metadata * BLOCK, 3 * BLOCK))
        } else {
            Box::new(fast.clone())
        };
        let made = Cache::create(
            given_fast,
            given.collect(),
            &identity,
            &setup,
            |_, _| Lru::default(),
            SimTime::ZERO,
        );
        let cache = made.expect("a cache").cache;
        let model = UNITS.map(|units| vec![Some(0); units as usize]);
        Self { cache, fast, disks, memory, operations, model, next: 0, errors: Vec::new() }
    }

    fn submit(&mut self, volume: u16, op: Op, units: std::ops::Range<u64>, payload: Payload<'_>) -> bool {
        let extent = Extent::new(units.start * UNIT, (units.end - units.start) * UNIT);
        let command = BlockCommand::new(op, extent, Hint::default());
        let done = self.cache.submit(volume, command, payload, SimTime::ZERO);
        self.cache.check_invariants();
        if let Err(error) = &done {
            self.errors.push(error.clone());
        }
        done.is_ok()
    }

    fn write(&mut self, volume: u16, units: std::ops::Range<u64>) {
        self.next = self.next % 250 + 1;
        let bytes = vec![self.next; ((units.end - units.start) * UNIT) as usize];
        let is_done = self.submit(volume, Op::Write, units.clone(), Payload::Write(&bytes));
        let new = is_done.then_some(self.next);
        self.model[usize::from(volume)][units.start as usize..units.end as usize].fill(new);
    }

    fn trim(&mut self, volume: u16, units: std::ops::Range<u64>) {
        let is_done = self.submit(volume, Op::Trim, units.clone(), Payload::None);
        self.model[usize::from(volume)][units.start as usize..units.end as usize].fill(is_done.then_some(0));
    }

    /// Reads, and compares what is not lost.
    fn read(&mut self, volume: u16, units: std::ops::Range<u64>) -> bool {
        let mut bytes = vec![0xee; ((units.end - units.start) * UNIT) as usize];
        let is_done = self.submit(volume, Op::Read, units.clone(), Payload::Read(&mut bytes));
        for (unit, bytes) in units.zip(bytes.chunks(UNIT as usize)).filter(|_| is_done) {
            if let Some(meant) = self.model[usize::from(volume)][unit as usize] {
                assert_eq!(bytes, [meant; UNIT as usize], "unit {unit} of volume {volume}");
            }
        }
        is_done
    }

    fn step(&mut self, rng: &mut Xoshiro256PlusPlus) {
        let volume = u16::from(below(rng, 3) == 0);
        let count = UNITS[usize::from(volume)];
        let first = below(rng, count);
        let most = if below(rng, 8) == 0 { 40 } else { 10 };
        let units = first..count.min(first + 1 + below(rng, most));
        match below(rng, 20) {
            0..9 => self.write(volume, units),
            9..14 => drop(self.read(volume, units)),
            14..16 => self.trim(volume, units),
            16..18 => drop(self.submit(volume, Op::Flush, 0..0, Payload::None)),
            _ => {
                let most = 1 + below(rng, 3) as u32;
                if let Err(error) = self.cache.clean(most, SimTime::ZERO) {
                    self.errors.push(error);
                }
                self.cache.check_invariants();
            }
        }
    }

    /// Units that only the cache device has.
    fn dirty(&self) -> BTreeSet<Place> {
        let places =
            (0..2).flat_map(|volume| (0..UNITS[usize::from(volume)]).map(move |unit| (volume, unit)));
        let is_dirty = |&(volume, unit): &Place| {
            let entry = self.cache.entry(BlockKey::new(volume, unit / 8));
            entry.is_some_and(|entry| entry.dirty >> (unit % 8) & 1 == 1)
        };
        places.filter(is_dirty).collect()
    }

    fn lost(&self) -> BTreeSet<Place> {
        let units = |(volume, extent): (u16, Extent)| {
            (extent.offset / UNIT..extent.end() / UNIT).map(move |unit| (volume, unit))
        };
        self.cache.lost().flat_map(units).collect()
    }

    /// Every unit by itself: an error if it is in this set, and what was written last if not; then all of it
    /// is written anew and there is no error any more.
    fn check_all(&mut self, lost: &BTreeSet<Place>) {
        assert_eq!(self.lost(), *lost);
        for volume in 0..2 {
            for unit in 0..UNITS[usize::from(volume)] {
                let is_read = self.read(volume, unit..unit + 1);
                assert_eq!(is_read, !lost.contains(&(volume, unit)), "unit {unit} of volume {volume}");
                if !is_read {
                    let extent = Extent::new(unit * UNIT, UNIT);
                    assert_eq!(self.errors.last(), Some(&CacheError::Lost { volume, extent }));
                }
            }
        }
        for (volume, unit) in lost {
            self.write(*volume, *unit..unit + 1);
        }
        for volume in 0..2 {
            assert!(self.read(volume, 0..UNITS[usize::from(volume)]), "all was written anew");
        }
        assert_eq!(self.cache.health().lost_bytes, 0);
    }
}

/// Runs a load, with a fault of a store at one operation; what was dirty just before it.
fn run(
    kind: &str,
    mode: Mode,
    seed: u64,
    side: Option<usize>,
    fault: (When, Fault),
) -> (Rig, BTreeSet<Place>) {
    let mut rig = Rig::new(kind, mode);
    let start = rig.operations.count();
    let fault = match fault {
        (When::At(at), fault) => (When::At(start.saturating_add(at)), fault),
        (When::From(at), fault) => (When::From(start + at), fault),
        other => other,
    };
    match side {
        Some(0) => rig.fast.get().set_faults([fault]),
        Some(disk) => rig.disks[disk - 1].get().set_faults([fault]),
        None => {}
    }
    let mut rng = seeded(seed);
    let mut before = BTreeSet::new();
    for _ in 0..50 {
        if rig.cache.health().bypassed.is_none() {
            // Errors may cost blocks one by one before the device is given up.
            before = if fault.1 == Fault::Io { &before | &rig.dirty() } else { rig.dirty() };
        }
        rig.step(&mut rng);
    }
    (rig, before)
}

/// In the name of a kind of metadata: the cache device is written in order.
const ORDERED: &str = ", in order";

const CASES: [(&str, Mode); 9] = [
    ("journal, in order", Mode::WriteBack),
    ("journal, in order", Mode::WriteThrough),
    ("journal", Mode::WriteBack),
    ("journal", Mode::WriteThrough),
    ("journal", Mode::WriteAround),
    ("slots", Mode::WriteBack),
    ("periodic", Mode::WriteBack),
    ("at-removal", Mode::WriteThrough),
    ("none", Mode::WriteThrough),
];

/// Operations of the load.
fn length(kind: &str, mode: Mode, seed: u64) -> u64 {
    let fresh = Rig::new(kind, mode).operations.count();
    let (rig, _) = run(kind, mode, seed, None, (When::At(0), Fault::Gone));
    assert_eq!(rig.errors, [], "{kind} {mode:?}");
    rig.operations.count() - fresh
}

#[test]
fn the_cache_device_gone_at_any_operation_loses_what_was_dirty_and_no_caller_sees_more() {
    for (number, (kind, mode)) in CASES.into_iter().enumerate() {
        let seed = 10 + number as u64;
        let mut lost_at_all = 0;
        // Gone, or there and never without an error: that is the same for everybody.
        let all = (0..length(kind, mode, seed)).map(|at| (at, Fault::Gone));
        let errors = (0..length(kind, mode, seed)).step_by(3).map(|at| (at, Fault::Io));
        for (at, fault) in all.chain(errors) {
            let (mut rig, mut dirty) = run(kind, mode, seed, Some(0), (When::From(at), fault));
            // Where nothing has asked the device since.
            for volume in (0..2).filter(|_| mode.makes_dirty()) {
                if rig.cache.health().bypassed.is_none() {
                    dirty = if fault == Fault::Io { &dirty | &rig.dirty() } else { rig.dirty() };
                }
                rig.read(volume, 0..UNITS[usize::from(volume)]);
            }
            let what = format!("{kind}, {}, {fault:?} from operation {at}", mode.name());
            let errors = std::mem::take(&mut rig.errors);
            assert!(
                errors.iter().all(|error| matches!(error, CacheError::Lost { .. })),
                "{what}: {errors:?}"
            );
            let lost = rig.lost();
            let is_gone = matches!(rig.cache.health().bypassed, Some(StoreError::Gone { .. }));
            assert!(is_gone || lost.is_empty() || fault == Fault::Io, "{what}");
            if !mode.makes_dirty() {
                assert_eq!((errors, lost.len()), (vec![], 0), "{what}");
            }
            assert!(lost.is_subset(&dirty), "{what}: {lost:?} were lost, and {dirty:?} dirty");
            lost_at_all += lost.len();
            rig.check_all(&lost);
        }
        assert_eq!(lost_at_all > 0, mode.makes_dirty(), "{kind}, {mode:?}");
    }
}

#[test]
fn an_error_of_the_cache_device_at_any_operation_that_does_not_stay_costs_nothing() {
    for (number, (kind, mode)) in CASES.into_iter().enumerate() {
        let seed = 30 + number as u64;
        for at in 0..length(kind, mode, seed) {
            let (mut rig, _) = run(kind, mode, seed, Some(0), (When::At(at), Fault::Io));
            assert_eq!(rig.errors, [], "{kind}, {}, error at operation {at}", mode.name());
            rig.check_all(&BTreeSet::new());
        }
    }
}

#[test]
fn a_cache_device_that_takes_no_more_writes_is_read_once_more_and_nothing_is_lost() {
    for (number, (kind, mode)) in CASES.into_iter().enumerate() {
        let seed = 50 + number as u64;
        for at in (0..length(kind, mode, seed)).step_by(3) {
            let (mut rig, _) = run(kind, mode, seed, Some(0), (When::From(at), Fault::ReadOnly));
            assert_eq!(rig.errors, [], "{kind}, {}, read-only from operation {at}", mode.name());
            rig.check_all(&BTreeSet::new());
        }
    }
}

#[test]
fn a_block_that_cannot_be_read_is_served_from_the_disk_if_clean_and_lost_alone_if_dirty() {
    for (kind, mode) in CASES {
        let units = Rig::new(kind, mode).memory.state.lock().unwrap().now.len() as u64 / UNIT;
        let (mut clean, mut dirty) = (0, 0);
        for unit in (0..units).rev().take(140) {
            let nothing = (When::At(u64::MAX), Fault::Io);
            let (mut rig, _) = run(kind, mode, 70, None, nothing);
            let before = rig.dirty();
            let bad = Extent::new(unit * UNIT, UNIT);
            rig.fast.get().set_faults([(When::Reading(bad), Fault::Io)]);
            for volume in 0..2 {
                rig.read(volume, 0..UNITS[usize::from(volume)]);
            }
            let lost = rig.lost();
            assert!(lost.len() <= 1 && lost.is_subset(&before), "{kind}, unit {unit}: {lost:?}");
            assert_eq!(rig.cache.health().bypassed, None);
            dirty += lost.len();
            clean += u32::from(lost.is_empty() && rig.cache.health().retired_slots > 0);
            rig.errors.clear();
            rig.check_all(&lost);
        }
        assert_eq!(dirty > 0, mode.makes_dirty(), "{kind}, {mode:?}");
        assert!(clean > 0 || mode == Mode::WriteBack, "{kind}, {mode:?}");
    }
}

#[test]
fn an_error_of_a_disk_at_any_operation_is_told_to_users_of_its_volume_and_leaves_the_cache_right() {
    for (number, (kind, mode)) in CASES.into_iter().enumerate() {
        let seed = 90 + number as u64;
        for at in 0..length(kind, mode, seed) {
            let (mut rig, _) = run(kind, mode, seed, Some(1), (When::At(at), Fault::Io));
            let errors = std::mem::take(&mut rig.errors);
            let is_named = |error: &CacheError| matches!(error, CacheError::Slow { volume: 0, .. });
            let what = format!("{kind}, {}, error at operation {at}", mode.name());
            assert!(errors.iter().all(is_named) && errors.len() <= 1, "{what}: {errors:?}");
            rig.check_all(&BTreeSet::new());
        }
    }
}

#[test]
fn a_disk_that_is_gone_does_not_concern_other_volumes() {
    for (number, (kind, mode)) in CASES.into_iter().enumerate() {
        let seed = 110 + number as u64;
        for at in (0..length(kind, mode, seed)).step_by(2) {
            let (mut rig, _) = run(kind, mode, seed, Some(1), (When::From(at), Fault::Gone));
            let errors = std::mem::take(&mut rig.errors);
            let is_named = |error: &CacheError| matches!(error, CacheError::Slow { volume: 0, .. });
            assert!(errors.iter().all(is_named), "{kind}, {}, gone at {at}: {errors:?}", mode.name());
            for _ in 0..3 {
                rig.write(1, 0..UNITS[1]);
                assert!(rig.read(1, 0..UNITS[1]) && rig.submit(1, Op::Flush, 0..0, Payload::None));
            }
            assert_eq!((rig.errors.as_slice(), rig.lost().len()), ([].as_slice(), 0));
        }
    }
}

#[test]
fn a_host_is_told_by_name_whose_disk_failed() {
    let mut rig = Rig::new("journal", Mode::WriteBack);
    rig.cache.rename(1, "data");
    rig.disks[1].get().set_faults([(When::From(0), Fault::Gone)]);
    let command = BlockCommand::new(Op::Read, Extent::new(BLOCK, BLOCK), Hint::default());
    let payload = &mut [0; BLOCK as usize];
    let error = Subsystem::submit(&mut rig.cache, 1, command.into(), Payload::Read(payload), SimTime::ZERO);
    let told = error.unwrap_err().to_string();
    assert!(told.starts_with("disk of data, for 4096 bytes at offset 4096: the device is gone"), "{told}");
}

#[test]
fn a_read_and_a_flush_of_lost_bytes_are_errors_of_the_medium_and_not_of_the_request() {
    let mut rig = Rig::new("journal", Mode::WriteBack);
    rig.write(0, 8..24);
    rig.write(0, 60..64);
    rig.fast.get().set_faults([(When::From(0), Fault::Gone)]);
    let mut bytes = vec![0; 8 * UNIT as usize];
    let extent = Extent::new(4 * UNIT, 8 * UNIT);
    let command = |op, extent| -> Command { BlockCommand::new(op, extent, Hint::default()).into() };
    // Through the trait, as a server asks.
    let cache: &mut dyn Subsystem = &mut rig.cache;
    let read = cache.submit(0, command(Op::Read, extent), Payload::Read(&mut bytes), SimTime::ZERO);
    let read = read.expect_err("the bytes are lost");
    let lost = Extent::new(8 * UNIT, 4 * UNIT);
    assert_eq!(read, NamespaceError::Lost { extent, lost }, "what of the request is lost");
    assert_eq!(ErrorClass::of(&command(Op::Read, extent), &read), ErrorClass::Medium, "{read}");
    let flush = cache.submit(0, Command::FLUSH, Payload::None, SimTime::ZERO);
    let flush = flush.expect_err("acknowledged bytes are not durable");
    assert_eq!(ErrorClass::of(&Command::FLUSH, &flush), ErrorClass::Medium, "{flush}");
    // A request without sense stays one.
    let outside = Extent::new(UNITS[0] * UNIT, UNIT);
    let wrong = cache.submit(0, command(Op::Read, outside), Payload::Read(&mut bytes[..512]), SimTime::ZERO);
    let wrong = wrong.expect_err("outside the volume");
    assert_eq!(ErrorClass::of(&command(Op::Read, extent), &wrong), ErrorClass::Invalid, "{wrong}");
}
