//! The bytes that metadata is read from, and created on.

use super::Write;
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op, SimTime, Store, StoreResult, wait};
use std::collections::BTreeMap;

/// A range of bytes, used only when a cache is created or opened.
pub trait Area {
    /// Capacity in bytes.
    fn capacity_bytes(&self) -> u64;

    /// Fills `bytes` from `offset` on.
    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> StoreResult<()>;

    /// Writes.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> StoreResult<()>;

    /// What was written so far is durable.
    fn flush(&mut self) -> StoreResult<()>;
}

/// Makes these writes, in order, and flushes.
pub fn apply(area: &mut dyn Area, writes: &[Write]) -> StoreResult<()> {
    for write in writes {
        area.write(write.offset, &write.bytes)?;
    }
    area.flush()
}

/// Bytes in memory, as many as were written: where metadata are created for a store that keeps none.
#[derive(Debug)]
pub struct Sketch {
    capacity: u64,
    written: BTreeMap<u64, Vec<u8>>,
}

impl Sketch {
    /// So many bytes, all zero.
    pub fn new(capacity_bytes: u64) -> Self {
        Self { capacity: capacity_bytes, written: BTreeMap::new() }
    }
}

impl Area for Sketch {
    fn capacity_bytes(&self) -> u64 {
        self.capacity
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> StoreResult<()> {
        bytes.fill(0);
        let end = offset + bytes.len() as u64;
        // What begins before may reach into it.
        let first = self.written.range(..=offset).next_back().map_or(offset, |(start, _)| *start);
        for (start, written) in self.written.range(first..end) {
            let (from, to) = (offset.max(*start), end.min(start + written.len() as u64));
            if from < to {
                let part = &written[(from - start) as usize..(to - start) as usize];
                bytes[(from - offset) as usize..(to - offset) as usize].copy_from_slice(part);
            }
        }
        Ok(())
    }

    // Metadata are written in blocks that are the same each time.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> StoreResult<()> {
        self.written.insert(offset, bytes.to_vec());
        Ok(())
    }

    fn flush(&mut self) -> StoreResult<()> {
        Ok(())
    }
}

/// A store, one command after the other.
#[derive(Debug)]
pub struct StoreArea<'a, S: Store + ?Sized> {
    store: &'a mut S,
    /// When the last command completed: the time that opening took.
    pub at: SimTime,
}

impl<'a, S: Store + ?Sized> StoreArea<'a, S> {
    /// The first command is issued at `at`.
    pub fn new(store: &'a mut S, at: SimTime) -> Self {
        Self { store, at }
    }

    fn run(&mut self, op: Op, offset: u64, len: u64, payload: Payload<'_>) -> StoreResult<()> {
        let payload = if self.store.stores_bytes() { payload } else { Payload::None };
        let command = BlockCommand::new(op, Extent { offset, len }, Hint::default());
        let token = self.store.submit(command, payload, self.at)?;
        self.at = wait(self.store, token, self.at);
        Ok(())
    }
}

impl<S: Store + ?Sized> Area for StoreArea<'_, S> {
    fn capacity_bytes(&self) -> u64 {
        self.store.capacity_bytes()
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> StoreResult<()> {
        self.run(Op::Read, offset, bytes.len() as u64, Payload::Read(bytes))
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> StoreResult<()> {
        self.run(Op::Write, offset, bytes.len() as u64, Payload::Write(bytes))
    }

    fn flush(&mut self) -> StoreResult<()> {
        self.run(Op::Flush, 0, 0, Payload::None)
    }
}
