//! A store as the engine uses it, and the memory that data passes through.

use super::steps::{FAST, Gather, Moment, Place};
use super::{BoxedStore, Cache, CacheError};
use nandscape_core::command::Payload;
use nandscape_core::{Applied, Command, Extent, Op, SimTime, StoreError, Token};
use nandscape_policies::eviction::Eviction;

/// The bytes of a step, where bytes are kept.
pub(super) enum Bytes<'a> {
    None,
    Write(&'a [u8]),
    Read(&'a mut [u8]),
}

impl<'a> Bytes<'a> {
    /// Room to read into, if there is any.
    pub(super) fn into(buffer: &mut [u8]) -> Bytes<'_> {
        if buffer.is_empty() { Bytes::None } else { Bytes::Read(buffer) }
    }

    /// What was read, to be written.
    pub(super) fn of(buffer: &[u8]) -> Bytes<'_> {
        if buffer.is_empty() { Bytes::None } else { Bytes::Write(buffer) }
    }

    fn payload(self) -> Payload<'a> {
        match self {
            Bytes::None => Payload::None,
            Bytes::Write(bytes) => Payload::Write(bytes),
            Bytes::Read(bytes) => Payload::Read(bytes),
        }
    }
}

/// One store.
pub(super) struct Side {
    pub(super) store: BoxedStore,
    pub(super) unit: u32,
    /// Something was written since the last flush.
    pub(super) is_volatile: bool,
    /// What a flush has to wait for: only then all that was submitted has been started.
    pub(super) behind: Gather,
    /// When the last flush is done.
    pub(super) flushed: Moment,
    /// Steps under way whose end is unknown.
    pub(super) watched: u32,
    /// Flushes since the last reset.
    pub(super) flushes: u64,
}

impl Side {
    pub(super) fn new(store: BoxedStore) -> Self {
        Self {
            unit: store.block_bytes(),
            store,
            // What the store was asked before it came here may be volatile still.
            is_volatile: true,
            behind: Gather::default(),
            flushed: Moment::PAST,
            watched: 0,
            flushes: 0,
        }
    }

    /// Applies a command that is started later.
    pub(super) fn apply(&mut self, command: Command, bytes: Bytes<'_>) -> Result<Applied, StoreError> {
        self.is_volatile |= is_write(command.op);
        self.flushes += u64::from(command.op == Op::Flush);
        self.store.apply(command, bytes.payload())
    }

    /// Applies a command and starts it.
    #[inline]
    pub(super) fn submit(
        &mut self,
        command: Command,
        bytes: Bytes<'_>,
        at: SimTime,
    ) -> Result<Token, StoreError> {
        self.is_volatile |= is_write(command.op);
        self.flushes += u64::from(command.op == Op::Flush);
        if command.op == Op::Flush {
            // What is applied from now on and has to wait for the flush may count on it.
            let applied = self.store.apply(command, Payload::None)?;
            return self.store.start(command, applied, at);
        }
        self.store.submit(command, bytes.payload(), at)
    }
}

const fn is_write(op: Op) -> bool {
    matches!(op, Op::Write | Op::Trim | Op::WriteZeroes)
}

/// Reused memory, so that no step allocates once the cache runs.
#[derive(Default)]
pub(super) struct Buffers(Vec<Vec<u8>>);

impl<E: Eviction> Cache<E> {
    /// Memory of this length; none where no bytes are kept. Its content is of no meaning.
    pub(super) fn buffer(&mut self, len: u64) -> Vec<u8> {
        let mut buffer = self.buffers.0.pop().unwrap_or_default();
        buffer.resize(if self.keeps_bytes { len as usize } else { 0 }, 0);
        buffer
    }

    pub(super) fn give_buffer(&mut self, buffer: Vec<u8>) {
        self.buffers.0.push(buffer);
    }

    /// Where bytes of a slot lie on the fast store.
    pub(super) fn place(&self, slot: u32, start: u32, end: u32) -> Extent {
        Extent::new(self.data_at + self.shape.offset(slot.into()) + u64::from(start), u64::from(end - start))
    }

    /// A step at a slot's data, after `after` and after whatever the slot waits for.
    #[inline]
    pub(super) fn at_slot(
        &mut self,
        op: Op,
        slot: u32,
        start: u32,
        end: u32,
        bytes: Bytes<'_>,
        after: Moment,
    ) -> Result<Moment, CacheError> {
        let extent = self.place(slot, start, end);
        self.meter.fast(self.slots.key(slot).volume(), op, extent.len);
        let free_at = self.steps.free_at(Place::slot(slot));
        let after = self.steps.join(after, free_at);
        let done = self.at_fast(op, extent, bytes, after)?;
        if op == Op::Write && !self.flushing.covers_cache() {
            self.steps.gather(&mut self.ahead, done);
        }
        Ok(done)
    }

    /// A step at the fast store.
    #[inline]
    pub(super) fn at_fast(
        &mut self,
        op: Op,
        extent: Extent,
        bytes: Bytes<'_>,
        after: Moment,
    ) -> Result<Moment, CacheError> {
        self.steps.submit(FAST, op, extent, bytes, after).map_err(|source| {
            self.meter.fast_failed(op);
            CacheError::Fast(source)
        })
    }

    /// A step at a volume's disk, after `after` and after whatever is under way to the same blocks.
    pub(super) fn at_disk(
        &mut self,
        op: Op,
        volume: u16,
        extent: Extent,
        bytes: Bytes<'_>,
        after: Moment,
    ) -> Result<Moment, CacheError> {
        self.meter.disk(volume, op, extent.len);
        let (first, end) = self.shape.blocks(extent);
        let free_at = self.steps.blocks_free_at(volume, first, end);
        let after = self.steps.join(after, free_at);
        if op != Op::Read {
            self.note_disk_write(volume, first, end);
        }
        let step = self.steps.submit(volume + 1, op, extent, bytes, after);
        if op != Op::Read
            && !self.flushing.covers_disks()
            && let Ok(written) = step
        {
            self.steps.gather(&mut self.ahead, written);
        }
        if op == Op::Write {
            self.volumes[usize::from(volume)].is_failing = step.is_err();
        }
        step.map_err(|source| {
            self.meter.disk_failed(volume, op);
            CacheError::Slow { volume, source }
        })
    }

    /// The answer waits for this.
    #[inline]
    pub(super) fn wait(&mut self, moment: Moment) {
        self.steps.gather(&mut self.answer, moment);
    }

    /// Flushes the fast store after `after`, if it was written to, and gives when that is done.
    pub(super) fn flush_fast(&mut self, after: Moment) -> Result<Moment, CacheError> {
        if self.failures.bypassed.is_some() {
            return Ok(Moment::PAST);
        }
        self.steps.flush(FAST, after).map_err(CacheError::Fast)
    }
}
