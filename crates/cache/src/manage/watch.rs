//! Whether a disk was used without its cache in a session that was cut short, of which no side could take
//! down how it ended.
//!
//! Beside the metadata of the cache lies what the places of each disk ([`super::fingerprint()`]) hold that
//! the cache has not written to in its session. A place that the cache is about to write to is struck off
//! first, and that is durable before the write begins; so what a place holds that was not struck off is what
//! the cache left there. File systems write to some of these places whenever they are mounted for writing,
//! and a cache rarely does.
//!
//! The records are written to two blocks in turn. If one of them is damaged, the other may not know of a
//! place that was struck off, and nothing is told.

use super::counts::GivenUp;
use super::fingerprint::{PLACES_MAX, places, sum};
use super::stamp::Stamp;
use super::{Disk, ManageError, Result};
use crate::metadata::{Area, Lost, Superblock, Volume, Write};
use nandscape_core::{Extent, StoreError, StoreResult};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const BLOCK: usize = 4096;
const MAGIC: &[u8; 4] = b"nsW1";
const HEADER: usize = 32;
const ITEM: usize = 40;

const _: () = assert!(PLACES_MAX <= 128, "a bit for each place");
const _: () = assert!(HEADER + ITEM * crate::metadata::VOLUMES_MAX <= BLOCK, "a record for each volume");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    volume: u16,
    pub(super) session: u64,
    /// Places that were struck off.
    written: u128,
    digest: u64,
    /// Code and number of what was given up ([`GivenUp::to_code`]); 0 if the cache was not.
    given_up: (u8, u32),
}

impl Record {
    pub(super) const fn is_of(&self, volume: u16) -> bool {
        self.volume == volume
    }

    /// What is known of a cache that was given up in that session.
    pub(super) const fn given_up(&self) -> Option<GivenUp> {
        GivenUp::from_code(self.given_up.0, self.given_up.1)
    }
}

/// Whether places are looked at: of a cache that was not given up, or is about to be.
const fn counts_places((code, _): (u8, u32)) -> bool {
    code <= 1
}

fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("so many bytes")
}

fn encode(tag: u64, number: u64, records: &[Record]) -> Vec<u8> {
    let mut b = vec![0; BLOCK];
    b[8..12].copy_from_slice(MAGIC);
    b[12..16].copy_from_slice(&(records.len() as u32).to_le_bytes());
    b[16..24].copy_from_slice(&number.to_le_bytes());
    b[24..32].copy_from_slice(&tag.to_le_bytes());
    for (record, item) in records.iter().zip(b[HEADER..].chunks_exact_mut(ITEM)) {
        item[..2].copy_from_slice(&record.volume.to_le_bytes());
        item[2] = record.given_up.0;
        item[4..8].copy_from_slice(&record.given_up.1.to_le_bytes());
        item[8..16].copy_from_slice(&record.session.to_le_bytes());
        item[16..32].copy_from_slice(&record.written.to_le_bytes());
        item[32..40].copy_from_slice(&record.digest.to_le_bytes());
    }
    let sum = xxh3_64(&b[8..]);
    b[..8].copy_from_slice(&sum.to_le_bytes());
    b
}

/// Number and records of a block: `Ok(None)` where none of this cache was written, an error where one is
/// damaged.
fn decode(b: &[u8], tag: u64) -> Result<Option<(u64, Vec<Record>)>, ()> {
    if &b[8..12] != MAGIC || u64::from_le_bytes(bytes_at(b, 24)) != tag {
        return Ok(None);
    }
    let count = u32::from_le_bytes(bytes_at(b, 12)) as usize;
    if u64::from_le_bytes(bytes_at(b, 0)) != xxh3_64(&b[8..]) || count > (BLOCK - HEADER) / ITEM {
        return Err(());
    }
    let record = |item: &[u8]| Record {
        volume: u16::from_le_bytes(bytes_at(item, 0)),
        session: u64::from_le_bytes(bytes_at(item, 8)),
        written: u128::from_le_bytes(bytes_at(item, 16)),
        digest: u64::from_le_bytes(bytes_at(item, 32)),
        given_up: (item[2], u32::from_le_bytes(bytes_at(item, 4))),
    };
    let records = b[HEADER..].chunks_exact(ITEM).take(count).map(record).collect();
    Ok(Some((u64::from_le_bytes(bytes_at(b, 16)), records)))
}

/// The newest number, and its records; of what is damaged, none.
fn newest(fast: &mut dyn Area, superblock: &Superblock) -> StoreResult<(u64, Vec<Record>)> {
    let (mut newest, mut is_damaged) = ((0, Vec::new()), false);
    for copy in 0..2 {
        let mut bytes = vec![0; BLOCK];
        fast.read(superblock.watch + copy * BLOCK as u64, &mut bytes)?;
        match decode(&bytes, superblock.tag()) {
            Ok(Some(found)) if found.0 >= newest.0 => newest = found,
            Ok(_) => {}
            Err(()) => is_damaged = true,
        }
    }
    if is_damaged {
        // Of places nothing is known; a cache that was given up stays so.
        newest.1.retain(|record| record.given_up.0 != 0);
    }
    Ok(newest)
}

fn write(tag: u64, at: u64, number: u64, records: &[Record]) -> Write {
    Write { offset: at + number % 2 * BLOCK as u64, bytes: encode(tag, number, records) }
}

/// All records; none where the cache keeps none.
pub(super) fn read(fast: &mut dyn Area, superblock: &Superblock) -> StoreResult<Vec<Record>> {
    if superblock.watch == 0 { Ok(Vec::new()) } else { newest(fast, superblock).map(|(_, records)| records) }
}

fn digest(sums: impl Iterator<Item = u64>, written: u128) -> u64 {
    let mut all = Xxh3::new();
    for (place, sum) in (0_u32..).zip(sums).filter(|(place, _)| written >> place & 1 == 0) {
        all.update(&place.to_le_bytes());
        all.update(&sum.to_le_bytes());
    }
    all.digest()
}

/// The places that an extent touches, as bits.
fn touched(places: &[Extent], extent: Extent) -> u128 {
    let first = places.partition_point(|place| place.end() <= extent.offset);
    let reached = places[first..].iter().take_while(|place| place.offset < extent.end()).count();
    (first..first + reached).fold(0, |bits, place| bits | 1 << place)
}

/// Whether the places hold what they held; `None` if that is not known of this session.
pub(super) fn is_same(
    watched: &[Record],
    disk: &mut dyn Disk,
    volume: &Volume,
    session: u64,
) -> StoreResult<Option<bool>> {
    // A session that was begun over this one and has not told the cache has looked at the disk as well.
    let is_of_it = |record: &&Record| {
        record.volume == volume.id && (record.session == session || record.session == session + 1)
    };
    let record = watched.iter().find(is_of_it).filter(|record| counts_places(record.given_up));
    let Some(record) = record else { return Ok(None) };
    let places = places(disk.capacity_bytes(), &volume.uuid);
    let mut sums = Vec::with_capacity(places.len());
    for (at, place) in places.iter().enumerate() {
        sums.push(if record.written >> at & 1 == 0 { sum(disk, *place)? } else { 0 });
    }
    Ok(Some(digest(sums.into_iter(), record.written) == record.digest))
}

/// Takes down what a disk has before a session in which `writes` will be written to and nothing else, unless
/// a [`Watch`] tells. It is durable with the next flush of the fast store.
pub(super) fn begin(
    fast: &mut dyn Area,
    superblock: &Superblock,
    disk: &mut dyn Disk,
    volume: &Volume,
    session: u64,
    writes: &[Lost],
) -> StoreResult<()> {
    if superblock.watch == 0 {
        return Ok(());
    }
    let (number, mut records) = newest(fast, superblock)?;
    let mut live = Live::look(disk, volume, session);
    for range in writes {
        live.written |= touched(&live.places, Extent::new(range.offset, range.len));
    }
    // Volumes that are gone need none.
    records.retain(|old| old.volume != volume.id && superblock.volumes.iter().any(|v| v.id == old.volume));
    records.push(live.record());
    let write = write(superblock.tag(), superblock.watch, number + 1, &records);
    fast.write(write.offset, &write.bytes)
}

#[derive(Clone, Debug)]
struct Live {
    volume: u16,
    session: u64,
    places: Vec<Extent>,
    sums: Vec<u64>,
    /// Places that were struck off.
    written: u128,
    /// Of these, places with a write that no flush covers.
    volatile: u128,
    given_up: (u8, u32),
}

impl Live {
    fn look(disk: &mut dyn Area, volume: &Volume, session: u64) -> Self {
        let places = places(disk.capacity_bytes(), &volume.uuid);
        let (mut written, mut sums) = (0, Vec::with_capacity(places.len()));
        for (at, place) in places.iter().enumerate() {
            // What cannot be read tells nothing.
            let sum = sum(disk, *place).unwrap_or_else(|_| {
                written |= 1 << at;
                0
            });
            sums.push(sum);
        }
        Self { volume: volume.id, session, places, sums, written, volatile: 0, given_up: (0, 0) }
    }

    fn record(&self) -> Record {
        let digest = digest(self.sums.iter().copied(), self.written);
        let given_up = self.given_up;
        Record { volume: self.volume, session: self.session, written: self.written, digest, given_up }
    }
}

/// Keeps the records of a cache that is open: it is told of every write to a disk.
pub struct Watch {
    fast: Box<dyn Area + Send>,
    superblock: Superblock,
    number: u64,
    volumes: Vec<Live>,
}

impl Watch {
    /// For the cache on `fast`, whose sessions have begun ([`super::take_up`]); `None` if it has no place for
    /// records. A session without them would make the next start take the disks for changed.
    pub fn open(mut fast: Box<dyn Area + Send>) -> Result<Option<Self>> {
        let (superblock, _) = Superblock::read(fast.as_mut())?;
        if superblock.watch == 0 {
            return Ok(None);
        }
        let (number, _) = newest(fast.as_mut(), &superblock).map_err(ManageError::Fast)?;
        Ok(Some(Self { fast, superblock, number, volumes: Vec::new() }))
    }

    /// Watches the disk of a volume, to which nothing was written since its session began.
    pub fn add(&mut self, volume: u16, disk: &mut dyn Area) {
        if let Some(volume) = self.superblock.volumes.iter().find(|known| known.id == volume) {
            let session = Stamp::decode(&volume.stamp).session;
            self.volumes.push(Live::look(disk, volume, session));
        }
    }

    fn live(&mut self, volume: u16) -> Option<&mut Live> {
        self.volumes.iter_mut().find(|live| live.volume == volume)
    }

    /// Called before each write to a disk, trims too. Places that it touches for the first time are struck
    /// off, durably.
    pub fn before_write(&mut self, volume: u16, extent: Extent) {
        // Nobody looks at places once nothing that is dirty counts for sure.
        let Some(live) = self.live(volume).filter(|live| counts_places(live.given_up)) else { return };
        let bits = touched(&live.places, extent);
        live.volatile |= bits;
        if bits & !live.written != 0 {
            live.written |= bits;
            self.write(true);
        }
    }

    /// Called when a disk has been flushed.
    pub fn flushed(&mut self, volume: u16) {
        if let Some(live) = self.live(volume) {
            live.volatile = 0;
        }
    }

    /// Whether a place was written to since the disk was flushed.
    pub fn is_volatile(&self, volume: u16) -> bool {
        self.volumes.iter().any(|live| live.volume == volume && live.volatile != 0)
    }

    /// Whether [`Watch::renew`] has something to do.
    pub fn is_renewable(&self, volume: u16) -> bool {
        self.volumes.iter().any(|live| live.volume == volume && live.written & !live.volatile != 0)
    }

    /// Takes down what the disk has at the places that were written to and flushed, which count again from
    /// now on.
    pub fn renew(&mut self, volume: u16, disk: &mut dyn Area) {
        let Some(live) = self.live(volume).filter(|live| counts_places(live.given_up)) else { return };
        let settled = live.written & !live.volatile;
        for at in (0..live.places.len()).filter(|at| settled >> at & 1 == 1) {
            if let Ok(sum) = sum(disk, live.places[at]) {
                live.sums[at] = sum;
                live.written &= !(1 << at);
            }
        }
        // Were it lost, less would be told.
        self.write(false);
    }

    /// Takes down that the cache is given up, in both blocks, so that neither of them says anything else.
    pub(super) fn give_up(&mut self, volume: u16, given_up: &GivenUp) -> StoreResult<()> {
        let nowhere = || StoreError::ReadOnly { detail: "no records are kept of this volume".to_owned() };
        self.live(volume).ok_or_else(nowhere)?.given_up = given_up.to_code();
        for _ in 0..2 {
            self.number += 1;
            let records: Vec<Record> = self.volumes.iter().map(Live::record).collect();
            let write = write(self.superblock.tag(), self.superblock.watch, self.number, &records);
            self.fast.write(write.offset, &write.bytes)?;
            self.fast.flush()?;
        }
        Ok(())
    }

    /// If the fast store takes no more writes, the places differ from what is kept, and the next start finds
    /// the disk used without it, as it was.
    fn write(&mut self, is_urgent: bool) {
        self.number += 1;
        let records: Vec<Record> = self.volumes.iter().map(Live::record).collect();
        let write = write(self.superblock.tag(), self.superblock.watch, self.number, &records);
        let done = self.fast.write(write.offset, &write.bytes);
        if is_urgent && done.is_ok() {
            let _ = self.fast.flush();
        }
    }
}
