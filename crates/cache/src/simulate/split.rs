//! From requests of a workload to blocks.

use super::Request;
use crate::key::BlockKey;
use nandscape_core::{IoRecord, Op};

/// Volumes that a simulation tells apart.
pub const MAX_VOLUMES: u32 = 1 << 14;

/// Splits requests into blocks: each block that a read or write touches is one request, in order of addresses; a trim drops the blocks that it covers wholly.
#[derive(Clone, Copy, Debug)]
pub struct Splitter {
    shift: u32,
}

impl Splitter {
    /// Blocks of `block_bytes`, a power of two; `None` if it is none.
    pub const fn new(block_bytes: u64) -> Option<Self> {
        if block_bytes.is_power_of_two() { Some(Self { shift: block_bytes.trailing_zeros() }) } else { None }
    }

    /// Appends the blocks of one request.
    ///
    /// # Errors
    ///
    /// In words, if a volume or block number is too large to be told apart.
    pub fn split(&self, record: &IoRecord, out: &mut Vec<Request>) -> Result<(), String> {
        let volume = volume(record)?;
        let end = record.offset.saturating_add(record.len);
        let blocks = match record.op {
            Op::Flush => return Ok(()),
            _ if record.len == 0 => return Ok(()),
            Op::Read | Op::Write => record.offset >> self.shift..((end - 1) >> self.shift) + 1,
            Op::Trim | Op::WriteZeroes => {
                let first =
                    (record.offset >> self.shift) + u64::from(record.offset & ((1 << self.shift) - 1) != 0);
                first..end >> self.shift
            }
        };
        if blocks.end > 1 << 48 {
            return Err(format!("offset {}: expected a block number below 2^48", record.offset));
        }
        out.extend(blocks.map(|block| Request::new(BlockKey::new(volume, block), record.op)));
        Ok(())
    }
}

fn volume(record: &IoRecord) -> Result<u16, String> {
    match u16::try_from(record.volume) {
        Ok(volume) if u32::from(volume) < MAX_VOLUMES => Ok(volume),
        _ => Err(format!("volume {}: expected a number below {MAX_VOLUMES}", record.volume)),
    }
}
