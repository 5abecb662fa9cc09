//! A fast store that fails while its cache is open, goes on, ends, and is there again at the next start: what
//! was flushed is what is read, whatever was lost in between.
//!
//! The end is a clean one or a loss of power at any operation of either side, of a mark beside a disk too.

use super::cuts::fate;
use super::*;
use crate::engine::CacheError;
use nandscape_disk::decorate::{Fault, When};
use std::collections::BTreeSet;

const UNIT: u64 = 512;
const UNITS: u64 = DISK / UNIT;
const EVERYTHING: Extent = Extent { offset: 0, len: u64::MAX / 2 };

/// How the fast store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// Nothing works.
    Nothing,
    /// Nothing can be written, as on a file system that is full.
    NoSpace,
    /// It says that it takes no more writes.
    ReadOnly,
    /// Nothing but the places of the disks can be read or written.
    Slots,
}

impl Failure {
    const ALL: [Self; 4] = [Self::Nothing, Self::NoSpace, Self::ReadOnly, Self::Slots];

    fn faults(self) -> Vec<(When, Fault)> {
        let slots = Extent::new(0, FAST - WATCH_BYTES);
        match self {
            Self::Nothing => vec![(When::From(0), Fault::Io)],
            Self::NoSpace => vec![(When::Writing(EVERYTHING), Fault::Io)],
            Self::ReadOnly => vec![(When::From(0), Fault::ReadOnly)],
            Self::Slots => vec![(When::Writing(slots), Fault::Io), (When::Reading(slots), Fault::Io)],
        }
    }
}

/// A run: what it is of, and where it fails.
#[derive(Clone, Copy, Debug)]
struct Run {
    #[expect(dead_code, reason = "for messages")]
    kind: &'static str,
    mode: Mode,
    failure: Failure,
    /// A step of the session before which the fast store begins to fail.
    fails_at: u64,
    /// Beside the disks there is a place for a mark.
    has_place: bool,
    /// An operation after that at which the power goes, and one of the next start.
    cut_at: Option<u64>,
    start_cut_at: Option<u64>,
}

/// What each unit of a volume may read as, and whether the write of it was answered without an error: first
/// what was flushed, then what was written later.
type Model = Vec<Vec<(u8, bool)>>;

/// What was written is durable, but for what is lost.
fn settle<E: nandscape_policies::eviction::Eviction>(cache: &Cache<E>, volume: u16, model: &mut Model) {
    let lost: Vec<Extent> = cache.lost().filter(|(of, _)| *of == volume).map(|(_, extent)| extent).collect();
    for (unit, states) in (0..).zip(model) {
        if lost.iter().any(|extent| (extent.offset / UNIT..extent.end() / UNIT).contains(&unit)) {
            continue;
        }
        let newest = states.iter().rposition(|(_, is_done)| *is_done).expect("the first one was");
        states.drain(..newest);
    }
}

fn may_be(states: &[(u8, bool)], byte: u8) -> bool {
    states.iter().any(|(other, _)| *other == byte)
}

/// Two volumes, and what hosts were told of them.
struct Life {
    world: World,
    failing: Shared<Failing>,
    disks: [Device; 2],
    model: [Model; 2],
    next: u8,
    lost: BTreeSet<(u16, u64)>,
}

impl Life {
    fn new(saved: &Saved, has_place: bool) -> Self {
        let mut world = saved.world();
        let (device, failing) = failing_device(&saved.content[0][0], &world.operations);
        world.fast.device = device;
        world.disks.iter_mut().for_each(|disk| disk.takes_mark = has_place);
        let disks = [0, 1].map(|id: usize| world.disks[id].device.clone());
        let model = [0, 1].map(|id: usize| {
            world.disks[id].bytes().chunks(UNIT as usize).map(|unit| vec![(unit[0], true)]).collect()
        });
        Self { world, failing, disks, model, next: 0, lost: BTreeSet::new() }
    }

    fn lru(ways: u32, seed: u64) -> AnyEviction {
        AnyEviction::new(&EvictionSpec::parse("lru").unwrap(), ways, seed)
    }

    /// Opens the cache as a server does.
    fn open(&mut self, mode: Mode) -> Result<Cache<AnyEviction>, ManageError> {
        for id in 0..2 {
            take_up(&mut self.world.fast, &mut self.world.disks[id], id as u16, false)?;
        }
        let watch = Watch::open(Box::new(self.world.fast.clone())).unwrap().expect("it has records");
        let watch = Arc::new(Mutex::new(watch));
        let mut recorder = Recorder::new(&mut self.world.fast, Some(Arc::clone(&watch)))?;
        let mut members = Vec::new();
        for id in 0..2_u16 {
            let place = &mut self.world.disks[usize::from(id)];
            watch.lock().unwrap().add(id, place);
            recorder.add(id, Box::new(place.clone()))?;
            let watch = Arc::clone(&watch);
            let told = Told::new(Box::new(self.disks[usize::from(id)].clone()), move |tell| {
                let mut watch = watch.lock().unwrap();
                match tell {
                    Tell::BeforeWrite(extent) => watch.before_write(id, extent),
                    Tell::Flushed => watch.flushed(id),
                }
            });
            members.push(Member { store: Box::new(told), uuid: uuid(id) });
        }
        let setup = Setup { block_bytes: BLOCK, mode, map: Map::Full, seed: 1 };
        let fast = Box::new(self.world.fast.device.clone());
        let started = Cache::open(fast, members, &setup, Self::lru, SimTime(1 << 40));
        let gone = |error: CacheError| ManageError::Fast(StoreError::Gone { detail: error.to_string() });
        let mut cache = started.map_err(gone)?.cache;
        cache.set_give_up(Box::new(recorder));
        Ok(cache)
    }

    fn step(&mut self, cache: &mut Cache<AnyEviction>, rng: &mut Xoshiro256PlusPlus) {
        let volume = below(rng, 2) as u16;
        let first = below(rng, UNITS - 24);
        let units = first..first + 1 + below(rng, 24);
        let extent = Extent::new(units.start * UNIT, (units.end - units.start) * UNIT);
        let model = &mut self.model[usize::from(volume)];
        let at = SimTime(1 << 40);
        match below(rng, 8) {
            0..5 => {
                self.next = self.next % 200 + 1;
                let bytes = vec![self.next; extent.len as usize];
                let is_durable = below(rng, 4) == 0;
                let op = BlockCommand { is_durable, ..BlockCommand::new(Op::Write, extent, Hint::default()) };
                let done = cache.submit(volume, op, Payload::Write(&bytes), at);
                for unit in units {
                    let states = &mut model[unit as usize];
                    if done.is_ok() && is_durable {
                        states.clear();
                    }
                    states.push((self.next, done.is_ok()));
                }
            }
            5 => {
                let mut bytes = vec![0; extent.len as usize];
                let op = BlockCommand::new(Op::Read, extent, Hint::default());
                match cache.submit(volume, op, Payload::Read(&mut bytes), at) {
                    Ok(_) => {
                        for (unit, bytes) in units.zip(bytes.chunks(UNIT as usize)) {
                            let states = &model[unit as usize];
                            assert!(
                                may_be(states, bytes[0]),
                                "unit {unit} of {volume}: {} of {states:?}",
                                bytes[0]
                            );
                        }
                    }
                    Err(CacheError::Lost { .. }) => {}
                    Err(_) => assert!(self.world.fast.device.get().is_cut(), "a read failed"),
                }
            }
            _ => {
                if cache.submit(volume, command(Op::Flush, 0, 0), Payload::None, at).is_ok() {
                    settle(cache, volume, model);
                }
            }
        }
    }

    /// A session that fails, and its end.
    fn run(&mut self, run: Run) {
        let mut cache = self.open(run.mode).unwrap();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(run.fails_at);
        for step in 0..24 {
            if step == run.fails_at {
                if let Some(cut_at) = run.cut_at {
                    let now = self.world.operations.count();
                    self.power_goes_at(now + cut_at);
                }
                self.failing.get().set_faults(run.failure.faults());
            }
            self.step(&mut cache, &mut rng);
        }
        self.lost = cache
            .lost()
            .flat_map(|(volume, extent)| {
                (extent.offset / UNIT..extent.end() / UNIT).map(move |unit| (volume, unit))
            })
            .collect();
        if cache.close(SimTime(1 << 40)).is_ok() {
            for id in 0..2 {
                let _ = end(&mut self.world.fast, &mut self.world.disks[id], id as u16);
                settle(&cache, id as u16, &mut self.model[id]);
            }
        }
        drop(cache);
        // The fast store is as it was.
        self.failing.get().set_faults([]);
        let cut = run.cut_at.unwrap_or(0);
        self.world.power(fate(cut, cut), u64::MAX);
    }

    fn power_goes_at(&mut self, lost_at: u64) {
        for place in self.world.disks.iter_mut().chain([&mut self.world.fast]) {
            place.device.get().set_lost_at(lost_at);
            place.mark.get().set_lost_at(lost_at);
        }
    }

    /// A start that a loss of power ends, and a salvage if it asks for that.
    fn cut_start(&mut self, at: u64) {
        let now = self.world.operations.count();
        self.power_goes_at(now + at);
        if let Err(ManageError::GivenUp { volume, .. }) = self.open(Mode::WriteBack) {
            let disk = &mut self.world.disks[usize::from(volume)];
            let _ = salvage(&mut self.world.fast, disk, volume, &mut |_, _| {});
            let _ = self.open(Mode::WriteBack);
        }
        self.world.power(fate(at, at), u64::MAX);
    }

    /// The next start, after what was lost was salvaged if it asks for that. Every unit is what was flushed,
    /// or something that was written later; and it stays that when everything leaves the cache.
    fn check(&mut self, run: Run) -> bool {
        run.start_cut_at.into_iter().for_each(|at| self.cut_start(at));
        let mut cache = None;
        for _ in 0..5 {
            match self.open(Mode::WriteBack) {
                Ok(opened) => {
                    cache = Some(opened);
                    break;
                }
                Err(ManageError::GivenUp { volume, given_up }) => {
                    assert!(!self.lost.is_empty() || run.cut_at.is_some(), "{run:?}: {given_up:?}");
                    let disk = &mut self.world.disks[usize::from(volume)];
                    let done = salvage(&mut self.world.fast, disk, volume, &mut |_, _| {});
                    if done == Err(ManageError::Unrecorded(volume)) {
                        assert!(!run.has_place, "{run:?}");
                        return false;
                    }
                    done.unwrap();
                }
                // The fast store did not take down to which places of the disk was written.
                Err(ManageError::Changed { volume, .. }) if run.cut_at.is_some() || !run.has_place => {
                    let disk = &mut self.world.disks[usize::from(volume)];
                    salvage(&mut self.world.fast, disk, volume, &mut |_, _| {}).unwrap();
                }
                Err(error) => panic!("{run:?}: {error}"),
            }
        }
        let mut cache = cache.expect("it was salvaged");
        let mut seen = Vec::new();
        for volume in 0..2_u16 {
            let mut bytes = vec![0; DISK as usize];
            let read = BlockCommand::new(Op::Read, Extent::new(0, DISK), Hint::default());
            cache.submit(volume, read, Payload::Read(&mut bytes), SimTime(1 << 42)).unwrap();
            for (unit, data) in bytes.chunks(UNIT as usize).enumerate() {
                let states = &self.model[usize::from(volume)][unit];
                assert!(data.iter().all(|byte| *byte == data[0]), "{run:?}: unit {unit} is a mix");
                assert!(
                    may_be(states, data[0]),
                    "{run:?}: unit {unit} of volume {volume} reads as {}, of {states:?}",
                    data[0]
                );
            }
            seen.push(bytes);
        }
        cache.close(SimTime(1 << 42)).unwrap();
        drop(cache);
        for id in 0..2_u16 {
            let disk = &mut self.world.disks[usize::from(id)];
            end(&mut self.world.fast, disk, id).unwrap();
            detach(&mut self.world.fast, disk, id, "", &mut |_, _| {}).unwrap();
            assert!(
                disk.bytes() == seen[usize::from(id)],
                "{run:?}: volume {id} changed when it was taken off"
            );
        }
        true
    }
}

/// A world whose units are of one byte each.
fn saved(kind: &str, has_place: bool) -> Saved {
    let mut world = World::empty(kind);
    for (id, disk) in (0..).zip(&mut world.disks) {
        let bytes: Vec<u8> =
            (0..UNITS).flat_map(|unit| [201 + (unit + id) as u8 % 50; UNIT as usize]).collect();
        disk.write(0, &bytes).unwrap();
        disk.flush().unwrap();
        disk.takes_mark = has_place;
    }
    for id in 0..2 {
        world.attach(id, "old").unwrap();
    }
    Saved::of(world)
}

const CASES: [(&str, Mode); 4] = [
    ("journal", Mode::WriteBack),
    ("journal", Mode::WriteThrough),
    ("slots", Mode::WriteBack),
    ("periodic", Mode::WriteBack),
];

/// Failures before every step of a session, each with so many cuts after it, or none; by default before some
/// steps.
fn each(has_place: bool, has_cuts: bool) {
    let points = std::env::var("CRASH_POINTS").ok();
    let points: Option<u64> = points.map(|text| text.parse().expect("CRASH_POINTS is a number"));
    let cuts = if has_cuts { points.map_or(1, |points| (points / 10_000).max(1)) } else { 1 };
    let (mut rng, mut first) = (Xoshiro256PlusPlus::seed_from_u64(1), 0);
    let (mut refused, mut lost) = (0, 0);
    for (kind, mode) in CASES {
        let saved = saved(kind, has_place);
        for failure in Failure::ALL {
            first += 1;
            let (first, step) = if points.is_some() { (0, 1) } else { (first % 3, 3) };
            for fails_at in (first..24).step_by(step) {
                for cut_at in (0..cuts).map(|_| has_cuts.then(|| below(&mut rng, 60))).collect::<Vec<_>>() {
                    let start_cut_at = has_cuts.then(|| below(&mut rng, 60));
                    let run = Run { kind, mode, failure, fails_at, has_place, cut_at, start_cut_at };
                    // Half of the losses of power are at the start alone.
                    let run = if below(&mut rng, 2) == 0 { Run { cut_at: None, ..run } } else { run };
                    let mut life = Life::new(&saved, has_place);
                    life.run(run);
                    lost += usize::from(!life.lost.is_empty());
                    refused += usize::from(!life.check(run));
                }
            }
        }
    }
    assert!(lost > 0, "nothing was ever lost, so the refusal was not tried");
    assert!(has_place || refused > 0, "without a place beside the disk nobody knows what was lost");
}

#[test]
fn flushed_data_stays_after_the_cache_was_given_up_and_opened_again() {
    each(true, false);
}

#[test]
fn flushed_data_stays_when_the_power_goes_while_the_cache_is_given_up() {
    each(true, true);
}

#[test]
fn a_cache_over_block_devices_that_was_given_up_is_known_by_its_fast_store_or_takes_no_writes() {
    each(false, false);
}

#[test]
fn writes_and_flushes_fail_while_nothing_can_record_that_the_cache_was_given_up() {
    let mut life = Life::new(&saved("journal", false), false);
    let mut cache = life.open(Mode::WriteBack).unwrap();
    let at = SimTime(1 << 40);
    let write = |cache: &mut Cache<AnyEviction>, byte: u8| {
        cache.submit(0, command(Op::Write, 0, 4096), Payload::Write(&[byte; 4096]), at).map(drop)
    };
    let flush = |cache: &mut Cache<AnyEviction>| {
        cache.submit(0, command(Op::Flush, 0, 0), Payload::None, at).map(drop)
    };
    write(&mut cache, 1).unwrap();
    flush(&mut cache).unwrap();
    life.failing.get().set_faults(Failure::NoSpace.faults());
    for _ in 0..2 {
        assert!(matches!(write(&mut cache, 2), Err(CacheError::Slow { volume: 0, .. })));
        assert!(matches!(
            flush(&mut cache),
            Err(CacheError::Slow { volume: 0, .. } | CacheError::Lost { .. })
        ));
    }
    assert_eq!(cache.health().unrecorded, [0, 1]);
    let read = cache.submit(0, command(Op::Read, 8192, 4096), Payload::Read(&mut [0; 4096]), at);
    assert!(read.is_ok(), "what is on the disk can be read");
    // As soon as there is a place, everything goes on.
    life.failing.get().set_faults([]);
    write(&mut cache, 3).unwrap();
    flush(&mut cache).unwrap_or_else(|error| assert!(matches!(error, CacheError::Lost { .. }), "{error}"));
    assert_eq!(cache.health().unrecorded, [1]);
}
