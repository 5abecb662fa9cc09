//! From requests of a workload to units of a cache.

use super::Request;
use crate::key::BlockKey;
use nandscape_core::{IoRecord, TraceOp};

/// Volumes that a simulation tells apart.
pub const MAX_VOLUMES: u32 = 1 << 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Block {
        shift: u32,
    },
    /// A request, whatever its length, named by its first byte.
    Object,
}

/// Splits requests into blocks: each block that a read or write touches is one request, in order of
/// addresses; a trim drops the blocks that it covers wholly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Splitter(Unit);

impl Splitter {
    /// Blocks of `block_bytes`, a power of two; `None` if it is none.
    pub const fn new(block_bytes: u64) -> Option<Self> {
        if block_bytes.is_power_of_two() {
            Some(Self(Unit::Block { shift: block_bytes.trailing_zeros() }))
        } else {
            None
        }
    }

    /// One unit a request, whatever its length: two requests ask for the same if they start at the same byte.
    /// This is how simulators of object caches read block traces; a block cache does not work so.
    pub const fn objects() -> Self {
        Self(Unit::Object)
    }

    /// The block of this request's first byte and one past that of its last, which of them to ask for. Empty
    /// for a flush and for what touches nothing.
    ///
    /// # Errors
    ///
    /// In words, if a volume or block number is too large to be told apart, or if it is an operation of
    /// zones: the data of an append has no address yet.
    pub fn units(&self, record: &IoRecord) -> Result<Units, String> {
        if record.op.block_op().is_none() {
            let of = if record.op.is_zone_op() { "a zoned device" } else { "a store of objects" };
            let op = record.op.letter();
            return Err(format!("operation {op} of {of}: expected reads, writes, discards and flushes"));
        }
        let volume = volume(record)?;
        let end = record.offset.saturating_add(record.len);
        let (next, end) = match self.0 {
            _ if record.op == TraceOp::Flush || record.len == 0 => (0, 0),
            Unit::Object => (record.offset, record.offset + 1),
            Unit::Block { shift } => match record.op {
                TraceOp::Trim | TraceOp::WriteZeroes => {
                    let is_inside = record.offset & ((1 << shift) - 1) != 0;
                    ((record.offset >> shift) + u64::from(is_inside), end >> shift)
                }
                _ => (record.offset >> shift, ((end - 1) >> shift) + 1),
            },
        };
        if end > 1 << BlockKey::BLOCK_BITS {
            let what = if self.0 == Unit::Object { "a byte" } else { "a block number" };
            return Err(format!("offset {}: expected {what} below 2^48", record.offset));
        }
        Ok(Units { volume, next, end, op: record.op })
    }

    /// Appends the units of one request.
    ///
    /// # Errors
    ///
    /// As [`Splitter::units`].
    pub fn split(&self, record: &IoRecord, out: &mut Vec<Request>) -> Result<(), String> {
        out.extend(self.units(record)?);
        Ok(())
    }
}

/// The units of one request.
#[derive(Clone, Debug)]
pub struct Units {
    volume: u16,
    next: u64,
    end: u64,
    op: TraceOp,
}

impl Iterator for Units {
    type Item = Request;

    #[inline]
    fn next(&mut self) -> Option<Request> {
        let block = self.next;
        (block < self.end).then(|| {
            self.next += 1;
            Request::new(BlockKey::new(self.volume, block), self.op)
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.end.saturating_sub(self.next)).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

fn volume(record: &IoRecord) -> Result<u16, String> {
    match u16::try_from(record.volume) {
        Ok(volume) if u32::from(volume) < MAX_VOLUMES => Ok(volume),
        _ => Err(format!("volume {}: expected a number below {MAX_VOLUMES}", record.volume)),
    }
}
