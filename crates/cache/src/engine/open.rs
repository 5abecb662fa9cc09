//! Creating, opening and closing a cache over its stores.

use super::durability::Regions;
use super::hole::Hole;
use super::timeline::{FAST, Gather, Moment};
use super::{BoxedStore, Cache, CacheError, Result, Setup};
use crate::metadata::{self, Entry, Opened, Report, StoreArea, Superblock, Table, Volume};
use nandscape_core::SimTime;
use nandscape_policies::eviction::Eviction;

/// A disk that is to be cached, and what tells it from others.
pub struct Disk {
    /// The disk.
    pub store: BoxedStore,
    /// Of this volume in this cache.
    pub uuid: [u8; 16],
}

/// What a new cache writes down besides its blocks.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Kind of metadata ([`metadata::KINDS`]).
    pub kind: String,
    /// Of this cache; never used before.
    pub uuid: [u8; 16],
    /// How the cache is to be used: text that comes back in [`Superblock::settings`].
    pub settings: String,
}

/// A cache that is ready, and how it came to be.
pub struct Started<E> {
    /// The cache. Its volumes have the numbers that they had when it was created, from 0 in the order of the
    /// disks.
    pub cache: Cache<E>,
    /// What was found.
    pub report: Report,
    /// The root as it was found; `None` where nothing is kept.
    pub superblock: Option<Superblock>,
    /// When all of this was done.
    pub at: SimTime,
}

impl<E: Eviction> Cache<E> {
    /// Makes an empty cache on `fast` for these disks, and writes its metadata. What an earlier cache left
    /// there is gone.
    pub fn create(
        mut fast: BoxedStore,
        disks: Vec<Disk>,
        identity: &Identity,
        setup: &Setup,
        make: impl FnMut(u32, u64) -> E,
        at: SimTime,
    ) -> Result<Started<E>> {
        let volumes = disks.iter().enumerate().map(|(number, disk)| Volume {
            id: number as u16,
            uuid: disk.uuid,
            bytes: disk.store.capacity_bytes(),
            stamp: [0; 16],
        });
        let metadata = metadata::Setup {
            capacity_bytes: fast.capacity_bytes(),
            store_block: fast.block_bytes(),
            block_bytes: setup.block_bytes,
            uuid: identity.uuid,
            settings: identity.settings.clone(),
            volumes: volumes.collect(),
        };
        let mut area = StoreArea::new(fast.as_mut(), at);
        let opened = metadata::create(&identity.kind, &metadata, &mut area)?;
        let at = area.at;
        Self::start(fast, disks, opened, setup, make, at)
    }

    /// Opens the cache that is on `fast`, whose volumes these disks are, in any order: after a clean removal
    /// or after a loss of power. Where the settings of an earlier run are wanted, they are in the
    /// superblock ([`metadata::open`]).
    ///
    /// Nothing is written before every disk is found and every dirty block has a place; so what is refused
    /// here is as it was. Refused is damage too that may hide dirty blocks ([`Report::hides_dirty`]).
    pub fn open(
        mut fast: BoxedStore,
        disks: Vec<Disk>,
        setup: &Setup,
        make: impl FnMut(u32, u64) -> E,
        at: SimTime,
    ) -> Result<Started<E>> {
        let mut area = StoreArea::new(fast.as_mut(), at);
        let opened = metadata::open(&mut area)?;
        opened.found.report.check()?;
        let at = area.at;
        Self::start(fast, disks, opened, setup, make, at)
    }

    /// As [`Cache::open`], with metadata that were opened already ([`metadata::open`]), perhaps to learn the
    /// settings, and of which nothing was written.
    pub fn start(
        fast: BoxedStore,
        disks: Vec<Disk>,
        opened: Opened,
        setup: &Setup,
        make: impl FnMut(u32, u64) -> E,
        at: SimTime,
    ) -> Result<Started<E>> {
        let Opened { metadata, superblock, found, repairs } = opened;
        let disks = match &superblock {
            Some(superblock) => in_order(superblock, setup, fast.stores_bytes(), disks)?,
            None => disks,
        };
        let mut cache = Self::new(fast, metadata, setup, make)?;
        for disk in disks {
            cache.attach(disk.store)?;
        }
        let refused = cache.restore(found.entries);
        if let Some((slot, Entry { key, .. })) = refused.iter().find(|(_, entry)| entry.dirty != 0) {
            let (volume, offset) = (key.volume(), cache.directory.shape.offset(key.block()));
            return Err(CacheError::Disks(format!(
                "dirty block of volume {volume} at offset {offset} in slot {slot}: expected a map and disks with which it can be there"
            )));
        }
        let mut area = StoreArea::new(cache.timeline.side_mut(FAST).store.as_mut(), at);
        metadata::apply(&mut area, &repairs).map_err(CacheError::Fast)?;
        let at = area.at;
        cache.durability.regions = Regions::found(found.doubtful);
        // Those slots are free now, which has to be durable before they are used.
        cache.arrive(at)?;
        // What somebody wrote to them before is relied on from now on.
        for volume in 0..cache.volumes.len() as u16 {
            if cache.durability.late.is_kept {
                cache.durability.flush_disk(&cache.directory.slots, &mut cache.timeline, volume)?;
            }
        }
        for (slot, _) in refused {
            cache.make_note_room()?;
            cache.durability.metadata.note(slot, None);
        }
        // Those were clean, and are dirty now.
        for slot in found.doubted {
            cache.make_note_room()?;
            let entry = Table::entry(&cache.directory.slots, slot);
            cache.durability.metadata.note(slot, entry);
        }
        cache.commit()?;
        cache.durability.regions.forget();
        cache.timeline.drain();
        let at = cache.timeline.now();
        Ok(Started { cache, report: found.report, superblock, at })
    }

    /// Removes the cache cleanly: the next start finds every block, dirty ones too. Nothing may be asked of
    /// it afterwards. Gives when all of that is done. If the fast store is used no more, nothing is
    /// written there.
    pub fn close(&mut self, at: SimTime) -> Result<SimTime> {
        self.arrive(at)?;
        self.begin_tries();
        self.persevere(|cache| {
            cache.commit_open()?;
            cache.timeline.drain();
            cache.settle_fills()
        })?;
        if let Some(error) = self.take_late_error() {
            return Err(error);
        }
        let done = self.persevere(Self::close_stores)?;
        if self.timeline.news.has_errors() {
            self.note_late_errors();
        }
        self.take_late_error().map_or(Ok(done), Err)
    }

    /// Tries again after an error of the fast store, as a command of a host does.
    fn persevere<R>(&mut self, mut act: impl FnMut(&mut Self) -> Result<R>) -> Result<R> {
        loop {
            match act(self) {
                Err(CacheError::Fast(error)) if self.failures.bypassed.is_none() => self.degrade(error)?,
                done => return done,
            }
        }
    }

    /// What its metadata wrote last of the root ([`metadata::Metadata::superblock`]).
    pub fn superblock(&mut self) -> Option<&mut Superblock> {
        self.durability.metadata.superblock()
    }

    fn close_stores(&mut self) -> Result<SimTime> {
        self.commit()?;
        let mut before = Gather::default();
        self.timeline.gather(&mut before, self.durability.commits.last);
        for volume in 0..self.volumes.len() as u16 {
            // What relied on it is clean in what is written next.
            let flushed = self.durability.flush_disk(&self.directory.slots, &mut self.timeline, volume)?;
            self.timeline.gather(&mut before, flushed);
        }
        let flushed = self.timeline.close(&mut before);
        for volume in 0..self.volumes.len() as u16 {
            self.record_given_up(volume)?;
        }
        if self.failures.bypassed.is_none() && self.durability.settle_rest(&mut self.timeline, flushed) {
            while self.durability.late.next.is_some() {
                self.commit()?;
            }
        }
        self.timeline.gather(&mut before, self.durability.commits.last);
        let flushed = self.flush_fast(Moment::PAST)?;
        self.timeline.gather(&mut before, flushed);
        let before = self.timeline.close(&mut before);
        self.timeline.drain();
        let mut writes = Vec::new();
        if self.failures.bypassed.is_none() {
            self.durability.metadata.close(&self.directory.slots, &mut writes);
        }
        let written = self.durability.write(&mut self.timeline, &mut self.meter, &writes, before);
        let written = written.map_err(CacheError::Fast)?;
        // Whatever the design flushes otherwise, it is removed cleanly only with this.
        self.flush_fast(written)?;
        self.timeline.drain();
        let at = self.timeline.now();
        let mut done = at;
        for (number, side) in self.timeline.sides_mut().iter_mut().enumerate() {
            match side.store.shutdown(at) {
                Ok(token) => done = done.max(side.store.completion(token).unwrap_or(at)),
                Err(_) if number == usize::from(FAST) && self.failures.bypassed.is_some() => {}
                Err(error) => return Err(CacheError::of_side(number as u16, error)),
            }
        }
        Ok(done)
    }
}

/// The disks in the order of the volumes' numbers, if they are those that the superblock names.
fn in_order(
    superblock: &Superblock,
    setup: &Setup,
    keeps_bytes: bool,
    mut disks: Vec<Disk>,
) -> Result<Vec<Disk>> {
    let block = superblock.shape.block_bytes;
    if block != setup.block_bytes {
        let expected = format!("{block}, with which the cache was created");
        return Err(CacheError::Setup { what: "cache block", value: u64::from(setup.block_bytes), expected });
    }
    let mut volumes: Vec<&Volume> = superblock.volumes.iter().collect();
    volumes.sort_unstable_by_key(|volume| volume.id);
    let mut ordered = Vec::new();
    for volume in volumes {
        let number = volume.id;
        // Numbers of volumes that were taken off.
        while ordered.len() < usize::from(number) {
            let hole = Hole { bytes: block.into(), keeps_bytes };
            ordered.push(Disk { store: Box::new(hole), uuid: [0; 16] });
        }
        let place = disks.iter().position(|disk| disk.uuid == volume.uuid);
        let missing = || {
            let uuid = hex(volume.uuid);
            CacheError::Disks(format!("volume {number}: no disk with uuid {uuid} among those given"))
        };
        let disk = disks.swap_remove(place.ok_or_else(missing)?);
        let (bytes, expected) = (disk.store.capacity_bytes(), volume.bytes);
        if bytes != expected {
            return Err(CacheError::Disks(format!(
                "disk of volume {number}: {bytes} bytes, expected {expected} as when it was attached"
            )));
        }
        ordered.push(disk);
    }
    match disks.first() {
        None => Ok(ordered),
        Some(disk) => {
            let uuid = hex(disk.uuid);
            Err(CacheError::Disks(format!("the disk with uuid {uuid} is no volume of this cache")))
        }
    }
}

fn hex(uuid: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(uuid))
}
