//! What is made durable when the fast store is given up, so that the next start does not take it for newer
//! than the disks.
//!
//! For each volume, in this order:
//! * [`GiveUp::begin`] is durable before dirty data goes to the disk. From then on clean blocks on the fast
//!   store count for nothing; dirty ones still count.
//! * The dirty data is written to the disk, then the change of the host that is under way, if one is, since
//!   what was dirty there may have made way for it already; and the disk is flushed.
//! * [`GiveUp::record`] is durable before that change is answered, before the next one, and before a flush is
//!   answered. From then on nothing on the fast store counts but the ranges that are lost.
//!
//! While `begin` cannot be made durable, no dirty data goes to the disk: it stays on the fast store, and here
//! it counts as lost. While `record` cannot be, writes, discards and flushes of the volume fail; reads go on.
//! Both are tried again with each such command.

use super::{Cache, CacheError, Result};
use nandscape_core::{Extent, SimTime, StoreError, StoreResult};
use nandscape_policies::eviction::Eviction;

/// Makes durable, outside the engine, that the fast store is given up.
pub trait GiveUp: Send {
    /// Dirty data of this volume is about to go to its disk, because the fast store failed with `why`.
    fn begin(&mut self, volume: u16, why: &StoreError) -> StoreResult<()>;

    /// The disk of this volume has everything but `lost`: ranges in order, none of which touch.
    fn record(&mut self, volume: u16, lost: &[Extent]) -> StoreResult<()>;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Known {
    is_begun: bool,
    is_recorded: bool,
    /// Something that was lost has been written anew since.
    is_stale: bool,
}

/// What is durable of each volume.
#[derive(Default)]
pub(super) struct GivenUp {
    keeper: Option<Box<dyn GiveUp>>,
    volumes: Vec<Known>,
    /// The volume of the change that is tried again. Its record waits for that.
    pub(super) under_way: Option<u16>,
}

impl GivenUp {
    fn known(&mut self, volume: u16) -> &mut Known {
        let at = usize::from(volume);
        if self.volumes.len() <= at {
            self.volumes.resize(at + 1, Known::default());
        }
        &mut self.volumes[at]
    }

    /// Whether dirty data of this volume may go to its disk.
    pub(super) fn begin(&mut self, volume: u16, why: &StoreError) -> bool {
        let is_begun = self.keeper.as_mut().is_none_or(|keeper| keeper.begin(volume, why).is_ok());
        self.known(volume).is_begun = is_begun;
        is_begun
    }

    /// Whether the record of a volume is to wait for the change that is under way.
    fn waits(&self, volume: u16) -> bool {
        let is_begun = self.volumes.get(usize::from(volume)).is_some_and(|known| known.is_begun);
        is_begun && self.under_way == Some(volume)
    }

    /// Whether anybody makes it durable.
    pub(super) const fn is_kept(&self) -> bool {
        self.keeper.is_some()
    }

    /// What was lost of this volume has changed.
    pub(super) fn note_change(&mut self, volume: u16) {
        self.known(volume).is_stale = true;
    }

    pub(super) fn is_missing(&self, volume: u16) -> bool {
        self.keeper.is_some() && self.volumes.get(usize::from(volume)).is_none_or(|known| !known.is_recorded)
    }
}

impl<E: Eviction> Cache<E> {
    /// Who makes durable that the fast store is given up. Without anybody nothing is, and the fast store must
    /// not be opened with its disks again after that.
    pub fn set_give_up(&mut self, keeper: Box<dyn GiveUp>) {
        self.failures.given_up.keeper = Some(keeper);
    }

    /// Gives up the fast store at `at` though it has not failed: what is dirty is read once more and goes to
    /// the disks, then everything passes to them. Of no effect if it was given up already.
    pub fn give_up(&mut self, why: StoreError, at: SimTime) -> Result<()> {
        self.arrive(at)?;
        if self.failures.bypassed.is_none() {
            self.abandon(why);
        }
        Ok(())
    }

    /// After the dirty data went to the disks: what cannot be recorded now is tried again later.
    pub(super) fn record_all(&mut self) {
        for volume in 0..self.volumes.len() as u16 {
            if !self.failures.given_up.waits(volume) {
                let _ = self.record_given_up(volume);
            }
        }
    }

    /// Before a command that changes a disk past a cache that was given up.
    #[cold]
    pub(super) fn ensure_recorded(&mut self, volume: u16) -> Result<()> {
        let given_up = &self.failures.given_up;
        let is_due = given_up.is_missing(volume) && !given_up.waits(volume);
        if is_due { self.record_given_up(volume) } else { Ok(()) }
    }

    /// Makes durable what the disk of a volume has, and what is lost, if that changed.
    pub(super) fn record_given_up(&mut self, volume: u16) -> Result<()> {
        if self.failures.bypassed.is_none() || self.failures.given_up.keeper.is_none() {
            return Ok(());
        }
        let Known { is_recorded, is_stale, .. } = *self.failures.given_up.known(volume);
        if is_recorded && !is_stale || !self.volumes[usize::from(volume)].is_attached {
            return Ok(());
        }
        // The disk may lose it before that.
        self.durability.flush_disk(&self.directory.slots, &mut self.timeline, volume)?;
        let failures = &mut self.failures;
        let lost: Vec<Extent> =
            failures.lost.iter().filter(|(of, _)| *of == volume).map(|(_, extent)| extent).collect();
        let keeper = failures.given_up.keeper.as_mut().expect("it was looked for");
        keeper.record(volume, &lost).map_err(|source| CacheError::Slow { volume, source })?;
        *failures.given_up.known(volume) = Known { is_begun: true, is_recorded: true, is_stale: false };
        Ok(())
    }
}
