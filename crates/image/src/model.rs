//! A store in memory that knows what of it is on disk, for tests: whatever was not synced is there or not
//! after a failure of the machine, sector by sector, in any order.

use crate::store::Store;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

const SECTOR: usize = 512;
const NEVER: u64 = u64::MAX;

/// What the machine sees, and what is on disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub now: Vec<u8>,
    pub durable: Vec<u8>,
    tables: usize,
    rng: Xoshiro256PlusPlus,
    /// Syncs that still work.
    pub syncs_left: u32,
    /// Counts operations, and gets the content.
    watch: Option<Arc<Watch>>,
}

/// Keeps the content of a [`Disk`] when it is dropped, or in the middle of an operation that was asked for.
#[derive(Debug)]
pub(crate) struct Watch {
    operations: AtomicU64,
    cut_at: AtomicU64,
    kept: Mutex<Option<Kept>>,
}

/// Content of a disk at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub now: Vec<u8>,
    pub durable: Vec<u8>,
    /// Writes and syncs until then, the one under way included.
    pub operations: u64,
}

impl Watch {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            operations: AtomicU64::new(0),
            cut_at: AtomicU64::new(NEVER),
            kept: Mutex::new(None),
        })
    }

    /// Writes and syncs so far.
    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    /// Keeps the content in the middle of the operation of this number.
    pub fn cut_at(&self, operation: u64) {
        self.cut_at.store(operation, Ordering::Relaxed);
    }

    pub fn is_kept(&self) -> bool {
        self.kept.lock().expect("no panic").is_some()
    }

    pub fn take(&self) -> Option<Kept> {
        self.kept.lock().expect("no panic").take()
    }

    fn keep(&self, now: &[u8], durable: &[u8]) {
        let mut kept = self.kept.lock().expect("no panic");
        if kept.is_none() {
            let (now, durable) = (now.to_vec(), durable.to_vec());
            *kept = Some(Kept { now, durable, operations: self.operations() });
        }
    }
}

impl Disk {
    /// A disk with this content, all of it durable.
    pub fn new(now: Vec<u8>, tables: u64, seed: u64) -> Self {
        let durable = now.clone();
        Self { now, durable, tables: tables as usize, rng: seeded(seed), syncs_left: u32::MAX, watch: None }
    }

    pub fn watched(self, watch: &Arc<Watch>) -> Self {
        let mut this = self;
        this.watch = Some(Arc::clone(watch));
        this
    }

    /// The system writes some of what has changed back.
    pub fn write_back(&mut self, one_in: u64) {
        for at in (0..self.now.len()).step_by(SECTOR) {
            let sector = at..at + SECTOR;
            if self.now[sector.clone()] != self.durable[sector.clone()] && below(&mut self.rng, one_in) == 0 {
                self.durable[sector.clone()].copy_from_slice(&self.now[sector]);
            }
        }
    }

    /// What a failure of the machine leaves.
    pub fn fail(mut self) -> Self {
        self.write_back(2);
        self.now.clone_from(&self.durable);
        self.syncs_left = u32::MAX;
        self
    }

    /// Counts an operation; whether the content is to be kept in the middle of it.
    fn count(&self) -> bool {
        let Some(watch) = &self.watch else { return false };
        let number = watch.operations.fetch_add(1, Ordering::Relaxed) + 1;
        number == watch.cut_at.load(Ordering::Relaxed)
    }

    fn keep(&self) {
        if let Some(watch) = &self.watch {
            watch.keep(&self.now, &self.durable);
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.keep();
    }
}

impl Store for Disk {
    fn tables(&self) -> &[u8] {
        &self.now[..self.tables]
    }

    fn tables_mut(&mut self) -> &mut [u8] {
        &mut self.now[..self.tables]
    }

    fn read_at(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        data.copy_from_slice(&self.now[offset as usize..][..data.len()]);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let place = offset as usize..offset as usize + data.len();
        if self.count() {
            let half = data.len() / 2;
            self.now[place.clone()][..half].copy_from_slice(&data[..half]);
            self.keep();
        }
        self.now[place].copy_from_slice(data);
        if self.watch.is_some() && below(&mut self.rng, 64) == 0 {
            self.write_back(3);
        }
        Ok(())
    }

    fn punch(&mut self, offset: u64, len: u64) -> io::Result<()> {
        self.now[offset as usize..][..len as usize].fill(0);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.syncs_left == 0 {
            return Err(io::Error::other("no power"));
        }
        self.syncs_left -= 1;
        if self.count() {
            self.keep();
        }
        self.durable.clone_from(&self.now);
        Ok(())
    }
}
