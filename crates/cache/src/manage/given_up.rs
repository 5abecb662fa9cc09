//! Records that a cache is given up while it is open, on both sides, and reads what they hold.

use super::counts::{Counts, GivenUp};
use super::stamp::Stamp;
use super::{Beside, Disk, Held, ManageError, Mark, Result, Watch, watch};
use crate::engine::GiveUp;
use crate::metadata::{Area, Superblock, Volume};
use nandscape_core::{Extent, StoreError, StoreResult};
use std::sync::{Arc, Mutex, PoisonError};

/// What is known of a volume of this cache; `None` if it was not given up in the session that the superblock
/// names.
pub(super) fn found(
    superblock: &Superblock,
    watched: &[watch::Record],
    volume: &Volume,
    beside: &Beside,
) -> Option<GivenUp> {
    let session = Stamp::decode(&volume.stamp).session;
    let fits = |other: u64| session != 0 && (other == session || other == session + 1);
    let mark = if let Beside::Mark(mark) = beside { Some(mark) } else { None };
    if mark.is_some_and(|mark| mark.cache != superblock.uuid || mark.volume != volume.uuid) {
        return None;
    }
    let on_fast = watched.iter().filter(|record| record.is_of(volume.id) && fits(record.session));
    // A mark of a later session shows that one to have been dealt with.
    let on_fast = on_fast.filter(|record| mark.is_none_or(|mark| mark.session <= record.session));
    let beside = mark.filter(|mark| fits(mark.session)).and_then(|mark| mark.given_up.clone());
    on_fast.filter_map(watch::Record::given_up).chain(beside).max_by_key(|given_up| given_up.number)
}

/// What is known of a volume, with its disk or, if that is not there, without.
pub fn given_up(held: &Held, disk: Option<&mut dyn Disk>, id: u16) -> Result<Option<GivenUp>> {
    let volume = held.volume(id)?;
    let beside = disk.map_or(Ok(Beside::NoPlace), Disk::beside);
    let beside = beside.map_err(|source| ManageError::Disk { volume: id, source })?;
    Ok(found(&held.superblock, &held.watched, volume, &beside))
}

struct Kept {
    volume: u16,
    disk: Box<dyn Disk + Send>,
    has_place: bool,
    mark: Mark,
}

/// Takes down that a cache which is open is given up.
pub struct Recorder {
    superblock: Superblock,
    watch: Option<Arc<Mutex<Watch>>>,
    disks: Vec<Kept>,
}

impl Recorder {
    /// For the cache on `fast`, whose sessions have begun ([`super::take_up`]), with the records that are
    /// kept there.
    pub fn new(fast: &mut dyn Area, watch: Option<Arc<Mutex<Watch>>>) -> Result<Self> {
        let (superblock, _) = Superblock::read(fast)?;
        Ok(Self { superblock, watch, disks: Vec::new() })
    }

    /// Adds the disk of a volume.
    pub fn add(&mut self, volume: u16, mut disk: Box<dyn Disk + Send>) -> Result<()> {
        let known = self.superblock.volumes.iter().find(|known| known.id == volume);
        let known = known.ok_or(ManageError::NoVolume(volume))?;
        let beside = disk.beside().map_err(|source| ManageError::Disk { volume, source })?;
        let session = Stamp::decode(&known.stamp).session;
        let mark =
            Mark { cache: self.superblock.uuid, volume: known.uuid, session, closed: None, given_up: None };
        self.disks.push(Kept { volume, disk, has_place: beside != Beside::NoPlace, mark });
        Ok(())
    }

    /// Durable beside the disk, on the fast store, or on both.
    fn put(&mut self, volume: u16, counts: Counts) -> StoreResult<()> {
        let Some(kept) = self.disks.iter_mut().find(|kept| kept.volume == volume) else { return Ok(()) };
        let number = kept.mark.given_up.as_ref().map_or(0, |before| before.number) + 1;
        let given_up = GivenUp { number, counts };
        kept.mark.given_up = Some(given_up.clone());
        // The mark first: after a cut between the two, the newer one is that which names the ranges.
        let beside = kept.has_place.then(|| kept.disk.put_mark(Some(&kept.mark)));
        let on_fast = self.watch.as_ref().map(|watch| {
            let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
            watch.give_up(volume, &given_up)
        });
        let mut error = None;
        for outcome in [beside, on_fast].into_iter().flatten() {
            match outcome {
                Ok(()) => return Ok(()),
                Err(source) => error = error.or(Some(source)),
            }
        }
        let nowhere =
            || StoreError::ReadOnly { detail: "no place to record that the cache was given up".to_owned() };
        Err(error.unwrap_or_else(nowhere))
    }
}

impl GiveUp for Recorder {
    fn begin(&mut self, volume: u16, _: &StoreError) -> StoreResult<()> {
        self.put(volume, Counts::Dirty)
    }

    fn record(&mut self, volume: u16, lost: &[Extent]) -> StoreResult<()> {
        self.put(volume, Counts::Within(lost.to_vec()))
    }
}
