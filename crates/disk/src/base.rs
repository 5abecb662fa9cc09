//! What all stores in memory have in common: a range that is checked, bytes, and counters.

use crate::contents::{Contents, Keep};
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{BlockCommand, Extent, Op, StoreError, StoreResult, StoreShape};

/// Range, bytes and counters of a store.
#[derive(Debug)]
pub(crate) struct Base {
    pub shape: StoreShape,
    pub contents: Contents,
    pub counts: HostCounts,
}

impl Base {
    /// A range of `capacity_bytes`, which are whole blocks.
    pub fn new(capacity_bytes: u64, block_bytes: u32, keep: Keep) -> Self {
        assert!(
            block_bytes.is_power_of_two() && (512..=65_536).contains(&block_bytes),
            "a block of {block_bytes} bytes: expected a power of two from 512 to 65536"
        );
        assert!(
            capacity_bytes.is_multiple_of(u64::from(block_bytes)),
            "{capacity_bytes} bytes are not whole blocks of {block_bytes}"
        );
        Self {
            shape: StoreShape {
                capacity_bytes,
                block_bytes,
                stores_bytes: keep == Keep::Bytes,
                regions: None,
            },
            contents: Contents::new(capacity_bytes, keep),
            counts: HostCounts::default(),
        }
    }

    /// What will be read comes nearer; of what will be written, where it is.
    pub fn prepare(&self, op: Op, extent: Extent) {
        if op == Op::Read {
            self.contents.prefetch(extent.offset);
        } else {
            self.contents.prefetch_place(extent.offset);
        }
    }

    /// Counts a command, checks it, and does to the bytes what it asks for.
    pub fn take(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<()> {
        self.counts.count(command, self.shape.block_bytes);
        if command.op == Op::Flush {
            return Ok(());
        }
        let extent = command.extent;
        check(extent, self.shape.capacity_bytes, self.shape.block_bytes)?;
        match (command.op, payload) {
            (Op::Write, Payload::Write(data)) => {
                assert_eq!(data.len() as u64, extent.len, "the payload of {extent} has another length");
                self.contents.write(extent, Some(data));
            }
            (Op::Write, _) => self.contents.write(extent, None),
            (Op::Read, Payload::Read(data)) => {
                assert_eq!(data.len() as u64, extent.len, "the buffer of {extent} has another length");
                self.contents.read(extent, data);
            }
            (Op::Read | Op::Flush, _) => {}
            (Op::Trim | Op::WriteZeroes, _) => self.contents.trim(extent),
        }
        Ok(())
    }
}

/// Methods of a store whose field `base` is a [`Base`].
macro_rules! of_base {
    () => {
        fn shape(&self) -> nandscape_core::StoreShape {
            self.base.shape
        }

        fn prepare(&self, op: Op, extent: nandscape_core::Extent) {
            self.base.prepare(op, extent);
        }

        fn allocation(&self, extent: nandscape_core::Extent) -> nandscape_core::Allocation {
            self.base.contents.allocation(extent)
        }

        fn counts(&self) -> HostCounts {
            self.base.counts
        }
    };
}
pub(crate) use of_base;

pub(crate) const fn check(extent: Extent, capacity: u64, block: u32) -> StoreResult<()> {
    let Extent { offset, len } = extent;
    if extent.end() > capacity {
        return Err(StoreError::OutOfRange { offset, len, capacity });
    }
    let mask = block as u64 - 1;
    if (offset | len) & mask != 0 {
        return Err(StoreError::Unaligned { offset, len, block });
    }
    Ok(())
}
