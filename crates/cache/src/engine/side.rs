//! A store as the engine uses it, and the memory that data passes through.

use super::CacheError;
use super::{BoxedStore, Cache};
use crate::eviction::Eviction;
use nandscape_core::ftl::Hint;
use nandscape_core::namespace::Payload;
use nandscape_core::{Command, Extent, Op, SimTime, StoreError, Token};

/// A step that an answer waits for: a token of the fast store (`None`) or of a volume's disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The volume, or the fast store.
    pub volume: Option<u16>,
    /// Its token.
    pub token: Token,
}

/// The bytes of a step, where bytes are kept.
pub(super) enum Bytes<'a> {
    None,
    Write(&'a [u8]),
    Read(&'a mut [u8]),
}

impl Bytes<'_> {
    /// Room to read into, if there is any.
    pub(super) fn into(buffer: &mut [u8]) -> Bytes<'_> {
        if buffer.is_empty() { Bytes::None } else { Bytes::Read(buffer) }
    }

    /// What was read, to be written.
    pub(super) fn of(buffer: &[u8]) -> Bytes<'_> {
        if buffer.is_empty() { Bytes::None } else { Bytes::Write(buffer) }
    }
}

/// One store.
pub(super) struct Side {
    pub(super) store: BoxedStore,
    pub(super) unit: u32,
    /// Something was written since the last flush.
    pub(super) is_volatile: bool,
}

impl Side {
    pub(super) fn new(store: BoxedStore) -> Self {
        // What the store was asked before it came here may be volatile still.
        Self { unit: store.block_bytes(), store, is_volatile: true }
    }

    fn submit(&mut self, op: Op, extent: Extent, bytes: Bytes<'_>, at: SimTime) -> Result<Token, StoreError> {
        let payload = match bytes {
            Bytes::None => Payload::None,
            Bytes::Write(bytes) => Payload::Write(bytes),
            Bytes::Read(bytes) => Payload::Read(bytes),
        };
        self.is_volatile |= matches!(op, Op::Write | Op::Trim | Op::WriteZeroes);
        let token = self.store.submit(Command { op, extent, hint: Hint::default() }, payload, at)?;
        if op == Op::Flush {
            self.is_volatile = false;
        }
        Ok(token)
    }
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

    /// Submits to the fast store, at an offset of a slot's data.
    pub(super) fn at_slot(
        &mut self,
        op: Op,
        slot: u32,
        start: u32,
        end: u32,
        bytes: Bytes<'_>,
        at: SimTime,
    ) -> Result<Token, CacheError> {
        let extent = Extent::new(self.metadata.data_offset(slot) + u64::from(start), u64::from(end - start));
        self.fast.submit(op, extent, bytes, at).map_err(CacheError::Fast)
    }

    /// Submits to the fast store.
    pub(super) fn at_fast(
        &mut self,
        op: Op,
        extent: Extent,
        bytes: Bytes<'_>,
        at: SimTime,
    ) -> Result<Token, CacheError> {
        self.fast.submit(op, extent, bytes, at).map_err(CacheError::Fast)
    }

    /// Submits to a volume's disk.
    pub(super) fn at_disk(
        &mut self,
        op: Op,
        volume: u16,
        extent: Extent,
        bytes: Bytes<'_>,
        at: SimTime,
    ) -> Result<Token, CacheError> {
        let disk = &mut self.volumes[usize::from(volume)].disk;
        disk.submit(op, extent, bytes, at).map_err(|source| CacheError::Slow { volume, source })
    }

    /// The answer waits for this step.
    pub(super) fn wait(&mut self, volume: Option<u16>, token: Token) {
        if token != Token::NONE {
            self.waits.push(Wait { volume, token });
        }
    }

    pub(super) fn flush_disk(&mut self, volume: u16, at: SimTime) -> Result<(), CacheError> {
        if self.volumes[usize::from(volume)].disk.is_volatile {
            let token = self.at_disk(Op::Flush, volume, Extent::new(0, 0), Bytes::None, at)?;
            self.wait(Some(volume), token);
        }
        Ok(())
    }

    pub(super) fn flush_fast(&mut self, at: SimTime) -> Result<(), CacheError> {
        if self.fast.is_volatile {
            let token = self.at_fast(Op::Flush, Extent::new(0, 0), Bytes::None, at)?;
            self.wait(None, token);
        }
        Ok(())
    }
}
