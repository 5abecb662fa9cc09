//! Stores in memory that fail: the cache device, disks, and the stamp files beside them.

use nandscape_cache::manage::{Beside, Disk, Mark};
use nandscape_cache::metadata::Area;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Applied, BlockCommand, Clocked, Extent, Hint, Op, SimTime, Store, StoreError, StoreShape, Token,
};
use nandscape_testkit::campaign::{Access, Faults, Medium, Refusal};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

const SECTOR: u32 = 512;

/// The time of all places together, in nanoseconds since 1970.
#[derive(Clone, Default)]
pub struct Time(Arc<AtomicU64>);

impl Time {
    pub fn pass(&self, ns: u64) {
        self.0.fetch_add(ns, Ordering::Relaxed);
    }

    pub fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A stamp file.
#[derive(Clone, Default)]
pub struct Beneath {
    pub now: Option<Vec<u8>>,
    pub durable: Option<Vec<u8>>,
}

/// What a place holds, whoever has it open.
#[derive(Clone)]
pub struct Content {
    pub medium: Medium,
    pub mark: Beneath,
    changed_ns: u64,
    alive_ns: u64,
    counts: HostCounts,
    /// A flush failed since it was opened: later ones fail too, as with a file.
    has_lost: bool,
}

impl Content {
    pub fn new(bytes: u64) -> Self {
        Self {
            medium: Medium::new(bytes),
            mark: Beneath::default(),
            changed_ns: 0,
            alive_ns: 0,
            counts: HostCounts::default(),
            has_lost: false,
        }
    }

    /// Nothing has it open any more.
    pub fn close(&mut self, is_power_lost: bool) {
        self.has_lost = false;
        if is_power_lost {
            self.medium.lose_power();
            self.mark.now.clone_from(&self.mark.durable);
        }
    }
}

/// A store with its number in the table of faults, which a cache and its management may have open at a time.
#[derive(Clone)]
pub struct Place {
    content: Arc<Mutex<Content>>,
    faults: Faults,
    time: Time,
    number: usize,
    /// Of its stamp file, if it has a place for one.
    mark: Option<usize>,
}

impl Place {
    pub fn new(content: Content, faults: &Faults, time: &Time, number: usize, mark: Option<usize>) -> Self {
        let content = Arc::new(Mutex::new(content));
        Self { content, faults: faults.clone(), time: time.clone(), number, mark }
    }

    pub fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap()
    }

    fn run(&mut self, op: Op, offset: u64, len: u64, payload: Payload<'_>) -> Result<(), StoreError> {
        let command = BlockCommand::new(op, Extent::new(offset, len), Hint::default());
        self.apply(command, payload).map(drop)
    }

    /// An operation on the stamp file.
    fn beside(&self, access: Access) -> Result<(), StoreError> {
        let refusal = self.mark.and_then(|number| self.faults.next(number, access));
        refusal.map_or(Ok(()), |refusal| Err(error(refusal, Extent::new(0, 0))))
    }
}

/// What a store gives for a refusal of this part of it.
fn error(refusal: Refusal, extent: Extent) -> StoreError {
    let detail = format!("{refusal:?}");
    match refusal {
        Refusal::Gone => StoreError::Gone { detail },
        Refusal::ReadOnly => StoreError::ReadOnly { detail },
        Refusal::Io | Refusal::Short | Refusal::NoSpace => {
            StoreError::Io { offset: extent.offset, len: extent.len, detail }
        }
    }
}

impl Store for Place {
    fn shape(&self) -> StoreShape {
        StoreShape {
            capacity_bytes: self.content().medium.bytes,
            block_bytes: SECTOR,
            stores_bytes: true,
            regions: None,
        }
    }

    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> Result<Applied, StoreError> {
        let Extent { offset, len } = command.extent;
        assert!((offset | len).is_multiple_of(SECTOR.into()), "{:?} is not whole sectors", command.extent);
        let now = self.time.now();
        let content = &mut *self.content.lock().unwrap();
        content.counts.count(command, SECTOR);
        let (medium, faults, number) = (&mut content.medium, &self.faults, self.number);
        let done = match (command.op, payload) {
            (Op::Read, Payload::Read(bytes)) => medium.read(faults, number, offset, bytes),
            (Op::Write, Payload::Write(bytes)) => medium.write(faults, number, offset, bytes),
            (Op::Write | Op::Trim | Op::WriteZeroes, Payload::None) => {
                medium.write(faults, number, offset, &vec![0; len as usize])
            }
            (Op::Flush, _) if content.has_lost => Err(Refusal::Io),
            (Op::Flush, _) => medium.sync(faults, number).inspect_err(|_| content.has_lost = true),
            (op, _) => panic!("{op:?} without bytes, or with those of another kind"),
        };
        if matches!(command.op, Op::Write | Op::Trim | Op::WriteZeroes) {
            content.changed_ns = now;
        }
        done.map(|()| Applied::default()).map_err(|refusal| error(refusal, command.extent))
    }

    fn start(&mut self, _: BlockCommand, _: Applied, _: SimTime) -> Result<Token, StoreError> {
        Ok(Token::NONE)
    }

    fn counts(&self) -> HostCounts {
        self.content().counts
    }

    fn shutdown(&mut self, _: SimTime) -> Result<Token, StoreError> {
        self.run(Op::Flush, 0, 0, Payload::None).map(|()| Token::NONE)
    }

    fn reset_counters(&mut self, _: SimTime) {
        self.content().counts = HostCounts::default();
    }
}

impl Clocked for Place {
    nandscape_core::tokens_are_times!();

    fn idle_from(&self) -> SimTime {
        SimTime::ZERO
    }
}

impl Area for Place {
    fn capacity_bytes(&self) -> u64 {
        self.content().medium.bytes
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), StoreError> {
        self.run(Op::Read, offset, bytes.len() as u64, Payload::Read(bytes))
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.run(Op::Write, offset, bytes.len() as u64, Payload::Write(bytes))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.run(Op::Flush, 0, 0, Payload::None)
    }
}

impl Disk for Place {
    fn changed_ns(&mut self) -> Result<Option<u64>, StoreError> {
        Ok(self.mark.map(|_| self.content().changed_ns))
    }

    fn beside(&mut self) -> Result<Beside, StoreError> {
        if self.mark.is_none() {
            return Ok(Beside::NoPlace);
        }
        Self::beside(self, Access::Read)?;
        let content = self.content();
        let Some(bytes) = &content.mark.now else { return Ok(Beside::Nothing) };
        Ok(Mark::parse(&String::from_utf8_lossy(bytes)).map_or(Beside::Damaged, Beside::Mark))
    }

    /// A new file that takes the place of the old one: written, synced, renamed, and the directory synced.
    fn put_mark(&mut self, mark: Option<&Mark>) -> Result<(), StoreError> {
        if self.mark.is_none() {
            return Ok(());
        }
        if mark.is_some() {
            Self::beside(self, Access::Write { grows: true })?;
            Self::beside(self, Access::Sync)?;
        }
        Self::beside(self, Access::Sync)?;
        let bytes = mark.map(|mark| mark.to_text().into_bytes());
        self.content().mark.now = bytes;
        Self::beside(self, Access::Sync)?;
        let content = &mut *self.content();
        content.mark.durable.clone_from(&content.mark.now);
        // The file that was made for it is as good as a sign of life.
        content.alive_ns = self.time.now();
        Ok(())
    }

    fn sign_of_life(&mut self) -> Result<(), StoreError> {
        self.content().alive_ns = self.time.now();
        Ok(())
    }

    fn alive_ns(&mut self) -> Result<Option<u64>, StoreError> {
        Ok(self.mark.map(|_| self.content().alive_ns))
    }
}
