//! A cache as it is served: sessions of its disks, the records of their places, the engine, and its end.

use crate::campaign::place::{Content, Place, Time};
use nandscape_cache::Cache;
use nandscape_cache::compose::{Design, Typed};
use nandscape_cache::engine::Disk as Member;
use nandscape_cache::manage::{self, Attach, Disk as _, ManageError, Recorder, Watch};
use nandscape_cache::metadata::{self, WATCH_BYTES};
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Clocked, Extent, Hint, Op, SimTime, Subsystem as _};
use nandscape_disk::decorate::{Tell, Told};
use nandscape_policies::eviction::AnyEviction;
use nandscape_testkit::campaign::{Access, Allowed, Fault, Faults, Kind, Subject, Version, fill};
use std::ops::Range;
use std::sync::{Arc, Mutex};

const UNIT: u64 = 512;
/// Slots of the cache.
const SLOTS: u32 = 16;
/// Written long ago: what the cache has is newer.
const OLD: Version = 1 << 30;
/// Where the units of each volume begin on its disk.
pub const DISK_AT: [u64; 2] = [128 << 10, 0];
/// Bytes of the large disk after those, which the fingerprint has all of.
const LAST: u64 = 64 << 10;
/// Places count again after so long.
const RENEW_NS: u64 = 5_000_000_000;

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    None,
    /// Every flush is answered, and none is made.
    NoFlush,
    /// A disk is opened without a look at how the last session left it.
    Trust,
    /// Errors of writes are kept from the host.
    ErrorKept,
    /// Nothing records that the cache device was given up.
    GivenUp,
}

/// A cache that is tried.
#[derive(Clone, Debug)]
pub struct Kept {
    pub design: Design,
    /// Beside the disks is a place for stamp files.
    pub has_marks: bool,
    pub sabotage: Sabotage,
}

impl Kept {
    /// Of a preset, in one of its modes.
    pub fn new(preset: &str, mode: &str, more: &[(&str, &str)]) -> Self {
        let size = format!("{SLOTS}b");
        let all = [("preset", preset), ("mode", mode), ("flushing", "both"), ("size", &size)];
        let all = all.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let design = Design::parse("", &all.collect::<Typed>()).unwrap();
        Self { design, has_marks: true, sabotage: Sabotage::None }
    }

    /// Units of each volume. The first is a part of a large disk, of which the fingerprint has few places;
    /// the second is all of a small one, which ends in the middle of a block.
    pub fn units(&self) -> [usize; 2] {
        let block = self.design.block_bytes as usize / UNIT as usize;
        [block * 14, block * 8 + 3]
    }

    const fn is_kept(&self) -> bool {
        // All kinds but 'none' begin with a superblock.
        !matches!(self.design.metadata.as_bytes(), b"none")
    }
}

fn command(op: Op, volume: usize, units: &Range<usize>) -> BlockCommand {
    let extent = Extent::new(DISK_AT[volume] + units.start as u64 * UNIT, units.len() as u64 * UNIT);
    BlockCommand::new(op, extent, Hint::default())
}

/// The stores before the first start.
#[derive(Clone)]
pub struct World {
    pub kept: Kept,
    pub fast: Content,
    pub disks: [Content; 2],
    at: u64,
}

impl World {
    /// The time, in nanoseconds since 1970.
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// A cache with two disks, which has newer data than they have where it may.
    pub fn new(kept: &Kept) -> Self {
        let mut disks = [DISK_AT[0] + kept.units()[0] as u64 * UNIT + LAST, kept.units()[1] as u64 * UNIT]
            .map(Content::new);
        for (volume, (disk, units)) in disks.iter_mut().zip(kept.units()).enumerate() {
            write_units(disk, volume, 0..units, |_| 1);
        }
        let setup = metadata::Setup {
            capacity_bytes: 1 << 40,
            store_block: UNIT as u32,
            block_bytes: kept.design.block_bytes,
            uuid: [7; 16],
            settings: kept.design.text(),
            volumes: Vec::new(),
        };
        let needed = metadata::bytes_for(kept.design.metadata, &setup, SLOTS).unwrap();
        let bytes = needed.next_multiple_of(4096) + WATCH_BYTES;
        let world = Self { kept: kept.clone(), fast: Content::new(bytes), disks, at: 1 << 40 };
        if !kept.is_kept() {
            return world;
        }
        let setup = kept.design.metadata_setup(needed, UNIT as u32, [7; 16], Vec::new()).unwrap();
        let mut served = Served::new(&world, &Faults::default());
        manage::create(&mut served.fast, kept.design.metadata, &setup, false).unwrap();
        for id in 0..2 {
            let with = Attach { id, uuid: uuid(id), settings: kept.design.text(), replace: false };
            manage::attach(&mut served.fast, &mut served.disks[usize::from(id)], &with).unwrap();
        }
        served.start().unwrap();
        // Every third block is cached: newer than on the disk if the mode allows it.
        let block = kept.design.block_bytes as usize / UNIT as usize;
        for (volume, count) in kept.units().into_iter().enumerate() {
            for first in (0..count).step_by(3 * block) {
                let units = first..count.min(first + block);
                let mut bytes = vec![0; units.len() * UNIT as usize];
                if kept.design.mode.makes_dirty() {
                    write_units(&mut served.disks[volume].content(), volume, units.clone(), |_| OLD);
                    fill_all(volume, units.clone(), 1, &mut bytes);
                    served.write(volume, units, &bytes, false).unwrap();
                } else {
                    served.read(volume, units, &mut bytes).unwrap();
                }
            }
        }
        served.end().unwrap();
        served.world()
    }
}

pub fn uuid(volume: u16) -> [u8; 16] {
    [volume as u8 + 1; 16]
}

pub fn fill_all(volume: usize, units: Range<usize>, version: Version, bytes: &mut [u8]) {
    for (unit, bytes) in units.zip(bytes.chunks_mut(UNIT as usize)) {
        fill(volume, unit, version, bytes);
    }
}

fn write_units(disk: &mut Content, volume: usize, units: Range<usize>, version: impl Fn(usize) -> Version) {
    let mut bytes = [0; UNIT as usize];
    for unit in units {
        fill(volume, unit, version(unit), &mut bytes);
        disk.medium.poke(DISK_AT[volume] + unit as u64 * UNIT, &bytes);
    }
    disk.medium.settle();
}

/// A cache that is served, or was.
pub struct Served {
    kept: Kept,
    pub fast: Place,
    pub disks: [Place; 2],
    time: Time,
    at: u64,
    cache: Option<Cache<AnyEviction>>,
    watch: Option<Arc<Mutex<Watch>>>,
    renewed_at: u64,
    idles: u32,
}

impl Served {
    pub fn new(world: &World, faults: &Faults) -> Self {
        let time = Time::default();
        time.pass(world.at);
        let mark = |number| world.kept.has_marks.then_some(number);
        let place =
            |content: &Content, number, mark| Place::new(content.clone(), faults, &time, number, mark);
        Self {
            fast: place(&world.fast, 0, None),
            disks: [place(&world.disks[0], 1, mark(3)), place(&world.disks[1], 2, mark(4))],
            kept: world.kept.clone(),
            time: time.clone(),
            at: world.at,
            cache: None,
            watch: None,
            renewed_at: world.at,
            idles: 0,
        }
    }

    /// Of a cache that is not open, what its stores hold now.
    pub fn world(&self) -> World {
        World {
            kept: self.kept.clone(),
            fast: self.fast.content().clone(),
            disks: [0, 1].map(|disk| self.disks[disk].content().clone()),
            at: self.at,
        }
    }

    fn pass(&mut self, ns: u64) {
        self.at += ns;
        self.time.pass(ns);
        for disk in &mut self.disks {
            let _ = disk.sign_of_life();
        }
    }

    /// As `serve --cache FAST` does.
    fn open(&mut self) -> Result<(), String> {
        let text = |error: ManageError| error.to_string();
        let is_trusted = self.kept.sabotage == Sabotage::Trust;
        let held = manage::look(&mut self.fast).map_err(text)?;
        for volume in &held.superblock.volumes {
            let disk = &mut self.disks[usize::from(volume.id)];
            let taken = manage::take_up(&mut self.fast, disk, volume.id, is_trusted);
            taken.map_err(text)?;
        }
        let mut watch = Watch::open(Box::new(self.fast.clone())).map_err(text)?;
        if let Some(watch) = &mut watch {
            (0..2).for_each(|id| watch.add(id, &mut self.disks[usize::from(id)]));
        }
        self.watch = watch.map(|watch| Arc::new(Mutex::new(watch)));
        let members = (0..2).map(|id| Member { store: self.member(id), uuid: uuid(id) }).collect();
        let opened = self.kept.design.open(Box::new(self.fast.clone()), members, SimTime(self.at));
        let mut cache = opened.map_err(|error| error.to_string())?.cache;
        let mut recorder = Recorder::new(&mut self.fast, self.watch.clone()).map_err(text)?;
        for id in 0..2 {
            recorder.add(id, Box::new(self.disks[usize::from(id)].clone())).map_err(text)?;
        }
        if self.kept.sabotage != Sabotage::GivenUp {
            cache.set_give_up(Box::new(recorder));
        }
        self.cache = Some(cache);
        Ok(())
    }

    /// A disk that tells of its writes.
    fn member(&self, id: u16) -> Box<dyn nandscape_core::Store + Send> {
        let disk = Box::new(self.disks[usize::from(id)].clone());
        let Some(watch) = self.watch.clone() else { return disk };
        Box::new(Told::new(disk, move |tell| match tell {
            Tell::BeforeWrite(extent) => watch.lock().unwrap().before_write(id, extent),
            Tell::Flushed => watch.lock().unwrap().flushed(id),
        }))
    }

    fn submit(
        &mut self,
        volume: usize,
        command: BlockCommand,
        payload: Payload<'_>,
        is_durable: bool,
    ) -> Result<(), String> {
        self.pass(1_000_000);
        let (volume, at) = (volume as u16, SimTime(self.at));
        let cache = self.cache.as_mut().expect("it was started");
        cache.advance(at, &mut Vec::new());
        let done = cache.submit(volume, BlockCommand { is_durable, ..command }, payload, at);
        cache.check_invariants();
        let done = done.map(drop).map_err(|error| error.to_string());
        if (is_durable || command.op == Op::Flush) && done.is_ok() {
            self.renew();
        }
        done
    }

    fn renew(&mut self) {
        if let Some(watch) = self.watch.clone()
            && self.at - self.renewed_at >= RENEW_NS
        {
            self.renewed_at = self.at;
            let mut watch = watch.lock().unwrap();
            for id in 0..2 {
                if watch.is_renewable(id) {
                    watch.renew(id, &mut self.disks[usize::from(id)]);
                }
            }
        }
    }

    /// While nobody asks for anything.
    fn settle(&mut self) {
        if let Some(watch) = self.watch.clone()
            && self.at - self.renewed_at >= RENEW_NS
        {
            for id in 0..2 {
                let is_volatile = watch.lock().unwrap().is_volatile(id);
                if is_volatile
                    && nandscape_cache::metadata::Area::flush(&mut self.disks[usize::from(id)]).is_ok()
                {
                    watch.lock().unwrap().flushed(id);
                }
            }
            self.renew();
        }
    }

    fn leave(&mut self, is_power_lost: bool) {
        (self.cache, self.watch) = (None, None);
        for place in [&self.fast, &self.disks[0], &self.disks[1]] {
            place.content().close(is_power_lost);
        }
        if !self.kept.is_kept() {
            // It was in memory.
            let bytes = self.fast.content().medium.bytes;
            *self.fast.content() = Content::new(bytes);
        }
    }
}

impl Subject for Served {
    fn volumes(&self) -> Vec<usize> {
        self.kept.units().to_vec()
    }

    fn start(&mut self) -> Result<(), String> {
        self.pass(1_000_000_000);
        self.renewed_at = self.at;
        let done = if self.kept.is_kept() {
            self.open()
        } else {
            let members = (0..2).map(|id| Member { store: self.member(id), uuid: uuid(id) }).collect();
            let fast = Box::new(self.fast.clone());
            let made = self.kept.design.create(fast, members, [7; 16], SimTime(self.at));
            made.map(|made| self.cache = Some(made.cache)).map_err(|error| error.to_string())
        };
        if done.is_err() {
            self.leave(false);
        }
        done
    }

    fn read(&mut self, volume: usize, units: Range<usize>, bytes: &mut [u8]) -> Result<(), String> {
        self.submit(volume, command(Op::Read, volume, &units), Payload::Read(bytes), false)
    }

    fn write(
        &mut self,
        volume: usize,
        units: Range<usize>,
        bytes: &[u8],
        is_durable: bool,
    ) -> Result<(), String> {
        let done = self.submit(volume, command(Op::Write, volume, &units), Payload::Write(bytes), is_durable);
        if self.kept.sabotage == Sabotage::ErrorKept { Ok(()) } else { done }
    }

    fn trim(&mut self, volume: usize, units: Range<usize>) -> Result<(), String> {
        self.submit(volume, command(Op::Trim, volume, &units), Payload::None, false)
    }

    fn flush(&mut self, volume: usize) -> Result<(), String> {
        if self.kept.sabotage == Sabotage::NoFlush {
            return Ok(());
        }
        self.submit(
            volume,
            BlockCommand { extent: Extent::new(0, 0), ..command(Op::Flush, volume, &(0..0)) },
            Payload::None,
            false,
        )
    }

    /// What is cleaned is for the design's policies, and every other time for a `cache clean` of a few
    /// blocks.
    fn idle(&mut self) {
        self.idles += 1;
        let (from, until) = (SimTime(self.at), SimTime(self.at + 3_000_000_000));
        self.pass(3_000_000_000);
        let cache = self.cache.as_mut().expect("it was started");
        // Its errors are told by the next flush.
        if self.idles.is_multiple_of(2) {
            let _ = cache.clean(4, until);
        } else {
            let _ = cache.idle(from, until);
        }
        cache.check_invariants();
        self.settle();
    }

    fn end(&mut self) -> Result<(), String> {
        self.pass(1_000_000);
        let at = SimTime(self.at);
        let cache = self.cache.as_mut().expect("it was started");
        let mut done = cache.close(at).map(drop).map_err(|error| error.to_string());
        let is_given_up = cache.health().bypassed.is_some();
        if done.is_ok() && self.kept.is_kept() && !is_given_up {
            done = (0..2).try_for_each(|id| {
                let ended = manage::end(&mut self.fast, &mut self.disks[usize::from(id)], id);
                ended.map_err(|error| error.to_string())
            });
        }
        self.leave(false);
        done
    }

    fn kill(&mut self, is_power_lost: bool) {
        self.leave(is_power_lost);
    }

    /// docs/formats/cache.md, "When a store fails".
    fn allows(&self, faults: &[Fault]) -> Allowed {
        let is_fast = |fault: &&Fault| fault.store == 0;
        let (fast, others) = (faults.iter().find(is_fast), faults.iter().any(|fault| fault.store != 0));
        let stays = |kind| matches!(kind, Kind::IoForever | Kind::IoWhile | Kind::Gone);
        let makes_dirty = self.kept.design.mode.makes_dirty();
        // What is dirty is lost with the cache device, or if a second fault keeps it from being saved.
        let loses = fast.is_some_and(|fault| makes_dirty && (stays(fault.kind) || faults.len() > 1));
        // Without a stamp file, a cache device that takes no write cannot record that it is given up.
        let is_unrecorded = fast.is_some() && !self.kept.has_marks;
        let of_disks = |is_it: &dyn Fn(Kind) -> bool| {
            let of_them = faults.iter().filter(|fault| matches!(fault.store, 1 | 2) && is_it(fault.kind));
            of_them.map(|fault| fault.store - 1).collect::<Vec<usize>>()
        };
        let has_removal = makes_dirty && self.kept.design.metadata == "at-removal";
        // A disk that cannot be flushed may lose what was cleaned, with the power or by itself.
        let older_after_kill = if has_removal { vec![0, 1] } else { of_disks(&|kind| kind == Kind::Gone) };
        Allowed {
            in_service: others || loses || is_unrecorded,
            after_mend: loses,
            // If a place of a disk cannot be struck off before it is written to, the disk counts as changed;
            // and with a second fault blocks may count as dirty that are not.
            refusal: fast.is_some() && (makes_dirty || faults.len() > 1) || is_unrecorded,
            older_after_kill,
            older_after_power_loss: of_disks(&|kind| kind.fits(Access::Sync)),
        }
    }
}
