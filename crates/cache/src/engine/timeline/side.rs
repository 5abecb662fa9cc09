//! A store as the timeline uses it.

use super::moment::{Gather, Moment};
use crate::engine::BoxedStore;
use nandscape_core::command::Payload;
use nandscape_core::{Applied, BlockCommand, Op, SimTime, StoreResult, Token};

/// The bytes of a step, where bytes are kept.
pub enum Bytes<'a> {
    None,
    Write(&'a [u8]),
    Read(&'a mut [u8]),
}

impl<'a> Bytes<'a> {
    /// Room to read into, if there is any.
    pub fn into(buffer: &mut [u8]) -> Bytes<'_> {
        if buffer.is_empty() { Bytes::None } else { Bytes::Read(buffer) }
    }

    /// What was read, to be written.
    pub fn of(buffer: &[u8]) -> Bytes<'_> {
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
pub struct Side {
    pub store: BoxedStore,
    pub unit: u32,
    /// Something was written since the last flush.
    pub is_volatile: bool,
    /// What a flush has to wait for: only then all that was submitted has been started.
    pub behind: Gather,
    /// When the last flush is done.
    pub flushed: Moment,
    /// Steps under way whose end is unknown.
    pub watched: u32,
    /// Flushes since the last reset.
    pub flushes: u64,
}

impl Side {
    pub fn new(store: BoxedStore) -> Self {
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
    pub fn apply(&mut self, command: BlockCommand, bytes: Bytes<'_>) -> StoreResult<Applied> {
        self.is_volatile |= is_write(command.op);
        self.flushes += u64::from(command.op == Op::Flush);
        self.store.apply(command, bytes.payload())
    }

    /// Applies a command and starts it.
    #[inline]
    pub fn submit(&mut self, command: BlockCommand, bytes: Bytes<'_>, at: SimTime) -> StoreResult<Token> {
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
