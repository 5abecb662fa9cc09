//! Every command, cut at every one of its writes on either device or beside a disk, with what was not flushed
//! lost, kept and torn; and again when it is repeated.

mod cuts;
mod damaged;
mod given_up;
mod replaced;
mod resized;
mod watched;

use super::*;
use crate::engine::{Cache, Disk as Member, Setup};
use crate::metadata::{Setup as Shape, StoreArea, Superblock, WATCH_BYTES};
use crate::mode::Mode;
use nandscape_core::command::Payload;
use nandscape_core::rng::{Rng, SeedableRng, Xoshiro256PlusPlus, below};
use nandscape_core::{BlockCommand, Extent, Hint, Op, SimTime, Store};
use nandscape_disk::decorate::{Cut, Failing, Fate, Operations, Shared, Tell, Told};
use nandscape_disk::ram::RamSpeed;
use nandscape_disk::{Keep, RamDisk};
use nandscape_policies::Map;
use nandscape_policies::eviction::{AnyEviction, EvictionSpec};
use std::sync::{Arc, Mutex};

const FAST: u64 = 1 << 20;
const DISK: u64 = 192 << 10;
const BLOCK: u32 = 4096;
/// The store of a mark.
const MARK: u64 = 16 << 10;

type Device = Shared<Cut>;

fn device(bytes: u64, operations: &Operations) -> Device {
    device_with(&vec![0; bytes as usize], operations)
}

/// With this content, which is durable.
fn device_with(content: &[u8], operations: &Operations) -> Device {
    failing_device(content, operations).0
}

/// The same, and what makes it fail.
fn failing_device(content: &[u8], operations: &Operations) -> (Device, Shared<Failing>) {
    let bytes = content.len() as u64;
    let speed =
        RamSpeed { request_ns: 10, jump_ns: 0, read_bytes_per_s: 1 << 30, write_bytes_per_s: 1 << 30 };
    let mut ram = RamDisk::new(bytes, speed, Keep::Bytes);
    ram.apply(command(Op::Write, 0, bytes), Payload::Write(content)).unwrap();
    let failing = Shared::new(Failing::new(Box::new(ram), Operations::default(), []));
    (Shared::new(Cut::new(Box::new(failing.clone()), operations.clone(), u64::MAX)), failing)
}

/// A store, its time, and the mark beside it.
#[derive(Clone)]
struct Place {
    device: Device,
    mark: Device,
    /// Whether a mark can be kept beside it: not beside a block device.
    takes_mark: bool,
    at: SimTime,
}

impl Place {
    fn run<R>(&mut self, act: impl FnOnce(&mut StoreArea<'_, Device>) -> R) -> R {
        let mut area = StoreArea::new(&mut self.device, self.at);
        let done = act(&mut area);
        self.at = area.at;
        done
    }

    fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; self.device.capacity_bytes() as usize];
        self.run(|area| area.read(0, &mut bytes)).unwrap();
        bytes
    }
}

impl Area for Place {
    fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), StoreError> {
        self.run(|area| area.read(offset, bytes))
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.run(|area| area.write(offset, bytes))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.run(|area| area.flush())
    }
}

impl Disk for Place {
    fn changed_ns(&mut self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    fn beside(&mut self) -> Result<Beside, StoreError> {
        if !self.takes_mark {
            return Ok(Beside::NoPlace);
        }
        let mut bytes = vec![0; MARK as usize];
        StoreArea::new(&mut self.mark, self.at).read(0, &mut bytes)?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(Beside::Nothing);
        }
        Ok(Mark::parse(&String::from_utf8_lossy(&bytes)).map_or(Beside::Damaged, Beside::Mark))
    }

    fn put_mark(&mut self, mark: Option<&Mark>) -> Result<(), StoreError> {
        if !self.takes_mark {
            return Ok(());
        }
        let mut bytes = mark.map_or_else(String::new, Mark::to_text).into_bytes();
        assert!(bytes.len() <= MARK as usize, "{} bytes", bytes.len());
        // Most are short, and tests write many.
        let mut rest = [0; 512];
        StoreArea::new(&mut self.mark, self.at).read(512, &mut rest)?;
        let is_short = bytes.len() <= 512 && rest == [0; 512];
        bytes.resize(if is_short { 512 } else { MARK as usize }, 0);
        let mut area = StoreArea::new(&mut self.mark, self.at);
        area.write(0, &bytes)?;
        area.flush()?;
        self.at = area.at;
        Ok(())
    }

    fn sign_of_life(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn alive_ns(&mut self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }
}

/// A cache with its disks, and what each volume reads as.
struct World {
    fast: Place,
    disks: Vec<Place>,
    model: Vec<Vec<u8>>,
    operations: Operations,
    /// A volume whose disk may count as used without its cache, so that nothing clean of it is ever looked
    /// at.
    strange: Option<u16>,
    /// What only the cache has of volume 0 may be gone.
    is_discarded: bool,
}

/// A world to begin with over and over, which is quicker than to make it anew.
struct Saved {
    /// Fast store and disks, each with what lies beside it.
    content: Vec<[Vec<u8>; 2]>,
    at: SimTime,
    model: Vec<Vec<u8>>,
    strange: Option<u16>,
    is_discarded: bool,
}

impl Saved {
    fn of(mut world: World) -> Self {
        let places = std::iter::once(&mut world.fast).chain(&mut world.disks);
        let content = places.map(|place| {
            let mut beside = vec![0; MARK as usize];
            StoreArea::new(&mut place.mark, place.at).read(0, &mut beside).unwrap();
            [place.bytes(), beside]
        });
        Self {
            content: content.collect(),
            at: world.fast.at,
            model: world.model,
            strange: world.strange,
            is_discarded: world.is_discarded,
        }
    }

    fn world(&self) -> World {
        let operations = Operations::default();
        let mut places = self.content.iter().map(|[bytes, beside]| Place {
            device: device_with(bytes, &operations),
            mark: device_with(beside, &operations),
            takes_mark: true,
            at: self.at,
        });
        World {
            fast: places.next().expect("it has a fast store"),
            disks: places.collect(),
            model: self.model.clone(),
            operations,
            strange: self.strange,
            is_discarded: self.is_discarded,
        }
    }
}

fn uuid(id: u16) -> [u8; 16] {
    [id as u8 + 1; 16]
}

fn command(op: Op, offset: u64, len: u64) -> BlockCommand {
    BlockCommand::new(op, Extent::new(offset, len), Hint::default())
}

impl World {
    /// Two volumes with clean and dirty blocks, and a third disk. `is_closed`: removed cleanly, or as a loss
    /// of power left it.
    fn new(kind: &str, is_closed: bool) -> Self {
        let mut world = Self::empty(kind);
        for id in 0..2 {
            world.attach(id, "old").unwrap();
        }
        world.use_it(is_closed);
        world
    }

    /// A cache without volumes, and three disks.
    fn empty(kind: &str) -> Self {
        let operations = Operations::default();
        let place = |bytes| Place {
            device: device(bytes, &operations),
            mark: device(MARK, &operations),
            takes_mark: true,
            at: SimTime::ZERO,
        };
        let (mut fast, mut disks) = (place(FAST), vec![place(DISK), place(DISK), place(DISK)]);
        let mut model = Vec::new();
        for (seed, disk) in (0..).zip(&mut disks) {
            let mut bytes = vec![0; DISK as usize];
            Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut bytes);
            disk.write(0, &bytes).unwrap();
            disk.flush().unwrap();
            model.push(bytes);
        }
        let shape = Shape {
            capacity_bytes: FAST - WATCH_BYTES,
            store_block: 512,
            block_bytes: BLOCK,
            uuid: [0xCC; 16],
            settings: "old".to_owned(),
            volumes: Vec::new(),
        };
        create(&mut fast, kind, &shape, false).unwrap();
        Self { fast, disks, model, operations, strange: None, is_discarded: false }
    }

    fn attach(&mut self, id: u16, settings: &str) -> Result<(), ManageError> {
        let with = Attach { id, uuid: uuid(id), settings: settings.to_owned(), replace: false };
        attach(&mut self.fast, &mut self.disks[usize::from(id)], &with)
    }

    /// A session of the engine in write-back.
    fn use_it(&mut self, is_closed: bool) {
        for id in 0..2 {
            let change = take_up(&mut self.fast, &mut self.disks[id], id as u16, false).unwrap();
            assert_eq!(change, None);
        }
        let setup = Setup { block_bytes: BLOCK, mode: Mode::WriteBack, map: Map::Full, seed: 1 };
        let mut watch = Watch::open(Box::new(self.fast.clone())).unwrap().expect("it has records");
        (0..2).for_each(|id| watch.add(id, &mut self.disks[usize::from(id)]));
        let watch = Arc::new(Mutex::new(watch));
        let members = (0..2).map(|id| {
            let watch = Arc::clone(&watch);
            let told = Told::new(Box::new(self.disks[usize::from(id)].device.clone()), move |tell| {
                let mut watch = watch.lock().unwrap();
                match tell {
                    Tell::BeforeWrite(extent) => watch.before_write(id, extent),
                    Tell::Flushed => watch.flushed(id),
                }
            });
            Member { store: Box::new(told), uuid: uuid(id) }
        });
        let lru = EvictionSpec::parse("lru").unwrap();
        let mut started = Cache::open(
            Box::new(self.fast.device.clone()),
            members.collect(),
            &setup,
            |ways, seed| AnyEviction::new(&lru, ways, seed),
            SimTime(1 << 40),
        )
        .unwrap();
        let (cache, at) = (&mut started.cache, started.at);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        for _ in 0..40 {
            let volume = below(&mut rng, 2) as u16;
            let offset = below(&mut rng, DISK / 512 - 16) * 512;
            let len = (1 + below(&mut rng, 16)) * 512;
            let mut bytes = vec![0; len as usize];
            if below(&mut rng, 2) == 0 {
                cache.submit(volume, command(Op::Read, offset, len), Payload::Read(&mut bytes), at).unwrap();
            } else {
                rng.fill_bytes(&mut bytes);
                cache.submit(volume, command(Op::Write, offset, len), Payload::Write(&bytes), at).unwrap();
                let range = offset as usize..(offset + len) as usize;
                self.model[usize::from(volume)][range].copy_from_slice(&bytes);
            }
        }
        if is_closed {
            cache.close(at).unwrap();
        } else {
            for volume in 0..2 {
                cache.submit(volume, command(Op::Flush, 0, 0), Payload::None, at).unwrap();
            }
        }
        let late = SimTime(1 << 41);
        self.fast.at = late;
        self.disks.iter_mut().for_each(|disk| disk.at = late);
        if is_closed {
            for id in 0..2 {
                end(&mut self.fast, &mut self.disks[id], id as u16).unwrap();
            }
        }
        self.power(Fate::Lost, u64::MAX);
    }

    fn power(&mut self, fate: Fate, lost_at: u64) {
        for place in self.disks.iter_mut().chain([&mut self.fast]) {
            place.at = SimTime(place.at.0 + 1_000_000);
            place.device.get().restore(fate, place.at, lost_at).unwrap();
            // A file that is replaced is the old or the new one.
            let fate = match fate {
                Fate::Torn { seed } if seed % 2 == 0 => Fate::Kept,
                Fate::Torn { .. } => Fate::Lost,
                fate => fate,
            };
            place.mark.get().restore(fate, place.at, lost_at).unwrap();
        }
    }

    fn root(&mut self) -> (Vec<u16>, String) {
        let (superblock, _) = Superblock::read(&mut self.fast).unwrap();
        (superblock.volumes.iter().map(|volume| volume.id).collect(), superblock.settings)
    }

    /// Every volume that is attached reads as its model; clean blocks equal the disk's; a disk that is not
    /// attached has everything itself.
    fn check(&mut self, context: &str) {
        let held = look(&mut self.fast).unwrap();
        let ids = self.root().0;
        for id in 0..3_u16 {
            let disk = &mut self.disks[usize::from(id)];
            let mut bytes = disk.bytes();
            let verdict = if ids.contains(&id) { check(&held, disk, id).unwrap() } else { Verdict::Same };
            let is_refused = matches!(verdict, Verdict::Changed(_));
            assert!(!is_refused || self.strange == Some(id), "{context}: volume {id}: {verdict:?}");
            for (slot, entry) in held.entries.iter().filter(|(_, entry)| entry.key.volume() == id) {
                assert!(ids.contains(&id), "{context}: a block of volume {id}, which is not there");
                let at = held.superblock.shape.slot_offset(*slot);
                let mut data = vec![0; BLOCK as usize];
                self.fast.read(at, &mut data).unwrap();
                let first = entry.key.block() as usize * BLOCK as usize;
                for bit in (0..8).filter(|bit| entry.valid >> bit & 1 == 1) {
                    let (from, to) = (first + bit * 512, bit * 512);
                    let cached = &data[to..to + 512];
                    if entry.dirty >> bit & 1 == 1 {
                        bytes[from..from + 512].copy_from_slice(cached);
                    } else if !is_refused {
                        assert!(
                            &bytes[from..from + 512] == cached,
                            "{context}: volume {id}, clean, byte {from}"
                        );
                    }
                }
            }
            let is_whole = bytes == self.model[usize::from(id)];
            assert!(
                is_whole || self.is_discarded && id == 0,
                "{context}: volume {id}, with its cached blocks"
            );
        }
    }
}
