//! The file of an image as a model: bytes that fail by plan, a page cache that outlives the process, and
//! tables that are mapped.

use crate::store::Store;
use nandscape_testkit::campaign::{Access, Faults, Medium, Refusal};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// The file itself.
const FILE: usize = 0;
/// The mapped tables: an operation is a change of them, which fails where the file system has no page for it.
const TABLES: usize = 1;
/// Bytes of a page of the page cache.
const PAGE: usize = 4096;

/// What outlives a process.
#[derive(Clone, Debug)]
pub struct Disk(Arc<Mutex<Host>>);

#[derive(Debug)]
struct Host {
    medium: Medium,
    faults: Faults,
    /// The process that has it open is dead: what it does reaches nothing.
    is_killed: bool,
    /// The disk went away with what was not durable, and comes back as another mount.
    is_gone: bool,
    sabotage: Sabotage,
}

/// What a test breaks on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    None,
    /// A sync does nothing.
    NoSync,
    /// A sync that fails says that it is done.
    HiddenError,
}

impl Host {
    /// The error of an operation that was refused.
    fn failure(&mut self, refusal: Refusal) -> io::Error {
        match refusal {
            Refusal::NoSpace => io::ErrorKind::StorageFull.into(),
            Refusal::Io => io::Error::other("input/output error"),
            Refusal::Short => io::ErrorKind::UnexpectedEof.into(),
            Refusal::ReadOnly => io::ErrorKind::ReadOnlyFilesystem.into(),
            Refusal::Gone => {
                self.is_gone = true;
                io::ErrorKind::NotConnected.into()
            }
        }
    }
}

impl Disk {
    pub fn new(medium: Medium, faults: &Faults, sabotage: Sabotage) -> Self {
        let faults = faults.clone();
        Self(Arc::new(Mutex::new(Host { medium, faults, is_killed: false, is_gone: false, sabotage })))
    }

    fn host(&self) -> MutexGuard<'_, Host> {
        self.0.lock().expect("no thread panicked while it used the disk")
    }

    /// The process ends now, whatever it does afterwards.
    pub fn kill(&self) {
        self.host().is_killed = true;
    }

    pub fn lose_power(&self) {
        self.host().medium.lose_power();
    }

    /// Whether it was away since this was last asked.
    pub fn was_gone(&self) -> bool {
        std::mem::take(&mut self.host().is_gone)
    }

    /// The bytes as they are, durable or not.
    pub fn medium(&self) -> Medium {
        self.host().medium.clone()
    }

    /// Opens it; the beginning, `tables`, is mapped, and its first `used` bytes are ever written.
    pub fn open(&self, tables: usize, used: usize) -> ModelStore {
        let mut host = self.host();
        host.is_killed = false;
        let mut bytes = vec![0; tables];
        host.medium.peek(0, &mut bytes[..used]);
        drop(host);
        let used = used.next_multiple_of(PAGE);
        ModelStore {
            disk: self.clone(),
            cached: bytes[..used].to_vec(),
            tables: bytes,
            is_lost: false,
            loses: None,
            is_frozen: false,
        }
    }
}

/// A disk that a process has open.
#[derive(Debug)]
pub struct ModelStore {
    disk: Disk,
    tables: Vec<u8>,
    /// The tables as the page cache has them.
    cached: Vec<u8>,
    is_lost: bool,
    /// The next page that differs does not reach the page cache: of those that differ the first or the last.
    loses: Option<bool>,
    is_frozen: bool,
}

impl ModelStore {
    /// Brings what was written to the tables into the page cache.
    fn write_through(&mut self) {
        if self.is_frozen {
            return;
        }
        let pages = (0..self.cached.len()).step_by(PAGE).map(|at| at..at + PAGE);
        let mut changed: Vec<_> =
            pages.filter(|page| self.tables[page.clone()] != self.cached[page.clone()]).collect();
        if !changed.is_empty()
            && let Some(is_first) = self.loses.take()
        {
            changed.remove(if is_first { 0 } else { changed.len() - 1 });
        }
        let mut host = self.disk.host();
        for page in changed {
            host.medium.poke(page.start as u64, &self.tables[page.clone()]);
            self.cached[page.clone()].copy_from_slice(&self.tables[page]);
        }
    }

    /// Whether the process is alive; at its death the page cache has what it wrote until then.
    fn is_alive(&mut self) -> bool {
        let Host { is_killed, is_gone, .. } = *self.disk.host();
        if is_killed && !is_gone {
            self.write_through();
        }
        self.is_frozen |= is_killed || is_gone;
        !is_killed
    }
}

impl Store for ModelStore {
    fn tables(&self) -> &[u8] {
        &self.tables
    }

    fn tables_mut(&mut self) -> &mut [u8] {
        if self.is_alive() && !self.is_lost {
            let faults = self.disk.host().faults.clone();
            if let Some(refusal) = faults.next(TABLES, Access::Sync) {
                self.write_through();
                self.disk.host().failure(refusal);
                self.is_lost = true;
                self.loses = Some(faults.seen()[TABLES].len().is_multiple_of(2));
            }
        }
        &mut self.tables
    }

    fn read_at(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        let host = &mut *self.disk.host();
        let done = host.medium.read(&host.faults, FILE, offset, data);
        done.map_err(|refusal| host.failure(refusal))
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        if !self.is_alive() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let host = &mut *self.disk.host();
        let done = host.medium.write(&host.faults, FILE, offset, data);
        done.map_err(|refusal| host.failure(refusal))
    }

    fn punch(&mut self, offset: u64, len: u64) -> io::Result<()> {
        if !self.is_alive() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let host = &mut *self.disk.host();
        if let Some(refusal) = host.faults.next(FILE, Access::Write { grows: false }) {
            return Err(host.failure(refusal));
        }
        host.medium.poke(offset, &vec![0; len as usize]);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if !self.is_alive() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.write_through();
        let host = &mut *self.disk.host();
        match host.sabotage {
            Sabotage::None => {}
            Sabotage::NoSync => return Ok(()),
            Sabotage::HiddenError => {
                let _ = host.medium.sync(&host.faults, FILE);
                return Ok(());
            }
        }
        let done = host.medium.sync(&host.faults, FILE);
        done.map_err(|refusal| host.failure(refusal))
    }

    fn rewrite_tables(&mut self) {
        if self.is_alive() {
            self.disk.host().medium.poke(0, &self.tables[..self.cached.len()]);
            let used = self.cached.len();
            self.cached.copy_from_slice(&self.tables[..used]);
        }
    }

    fn is_lost(&self) -> bool {
        self.is_lost
    }
}

impl Drop for ModelStore {
    fn drop(&mut self) {
        self.is_alive();
        self.write_through();
    }
}
