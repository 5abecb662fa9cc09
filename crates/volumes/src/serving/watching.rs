//! What is kept while a cache is served so that a use of its disks without it shows even after a kill.

use super::Served;
use nandscape_cache::manage::Watch;
use nandscape_cache::metadata::Area as _;
use nandscape_core::{SimTime, Store};
use nandscape_disk::decorate::{Tell, Told};
use std::sync::{Arc, Mutex, MutexGuard};

/// Places that were written to count again after so long.
const RENEW_NS: u64 = 5_000_000_000;

/// A [`Watch`], if the cache has one.
#[derive(Clone, Default)]
pub struct Watching {
    watch: Option<Arc<Mutex<Watch>>>,
    renewed_at: SimTime,
}

impl Watching {
    pub(super) fn new(watch: Option<Watch>) -> Self {
        Self { watch: watch.map(|watch| Arc::new(Mutex::new(watch))), renewed_at: SimTime::ZERO }
    }

    pub(super) fn records(&self) -> Option<Arc<Mutex<Watch>>> {
        self.watch.clone()
    }

    pub(super) fn over(&self, volume: u16, disk: Box<dyn Store + Send>) -> Box<dyn Store + Send> {
        let Some(watch) = self.watch.clone() else { return disk };
        Box::new(Told::new(disk, move |tell| match tell {
            Tell::BeforeWrite(extent) => lock(&watch).before_write(volume, extent),
            Tell::Flushed => lock(&watch).flushed(volume),
        }))
    }

    /// Takes down anew what has been flushed, if it is time to.
    pub(super) fn renew(&mut self, served: &mut [Served], at: SimTime) {
        let Some(watch) = &self.watch else { return };
        if at.since(self.renewed_at).0 < RENEW_NS {
            return;
        }
        self.renewed_at = at;
        let mut watch = lock(watch);
        for volume in served {
            if watch.is_renewable(volume.id) {
                watch.renew(volume.id, &mut volume.place);
            }
        }
    }

    /// The same while nobody asks for anything: flushes the disks first whose places were written to.
    pub(super) fn settle(&mut self, served: &mut [Served], at: SimTime) {
        let Some(watch) = &self.watch else { return };
        if at.since(self.renewed_at).0 < RENEW_NS {
            return;
        }
        for volume in served.iter_mut() {
            // The engine tells of errors of its own flushes; without this one the places stay struck off.
            if lock(watch).is_volatile(volume.id) && volume.place.flush().is_ok() {
                lock(watch).flushed(volume.id);
            }
        }
        self.renew(served, at);
    }
}

fn lock(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    watch.lock().expect("nobody panicked with the records in hand")
}
