//! What the journal says: copies of metadata blocks pass through it before they go to their places, so it
//! tells of new directories before their first block is written there, and of deleted ones before their
//! blocks are used again.
//!
//! A descriptor block names the places of the blocks that follow it in the journal. Blocks that begin with
//! the journal's magic number are its own; a copy never does, since the journal masks such copies.

use crate::bytes::{be16, be32};
use crate::superblock::Superblock;
use std::collections::BTreeMap;

const MAGIC: u32 = 0xc03b_3998;
const DESCRIPTOR: u32 = 1;
const SUPERBLOCKS: [u32; 2] = [3, 4];
const HEADER: usize = 12;
/// Bytes at the end of a descriptor block that belong to its checksum.
const TAIL: usize = 4;
/// Blocks for fast commits where the journal does not say how many.
const FAST_COMMIT_BLOCKS: u32 = 256;

const INCOMPAT_64BIT: u32 = 0x2;
const INCOMPAT_CHECKSUM2: u32 = 0x8;
const INCOMPAT_CHECKSUM3: u32 = 0x10;
const INCOMPAT_FAST_COMMIT: u32 = 0x20;

const TAG_MASKED: u32 = 0x1;
const TAG_SAME_UUID: u32 = 0x2;
const TAG_LAST: u32 = 0x8;

/// The journal inside a file system.
#[derive(Clone, Debug, Default)]
pub(crate) struct JournalLog {
    /// Runs of its blocks on the device, in the order of the journal, each with the journal block it begins
    /// with.
    runs: Vec<(u64, u64, u64)>,
    /// Its features, first block of the log and one past the last, as its superblock has them.
    features: u32,
    first: u64,
    end: u64,
    /// Blocks on the device that hold copies, and whose.
    awaited: BTreeMap<u64, u64>,
}

impl JournalLog {
    /// A journal in these runs of blocks.
    pub(crate) fn new(leaves: &[(u64, u64)]) -> Self {
        let mut at = 0;
        let runs = leaves
            .iter()
            .map(|(block, count)| {
                at += count;
                (at - count, *block, *count)
            })
            .collect();
        Self { runs, first: 1, end: at, ..Self::default() }
    }

    /// Block on the device of the journal's superblock.
    pub(crate) fn head(&self) -> Option<u64> {
        self.runs.first().map(|run| run.1)
    }

    /// A block of the journal is written. If it is the copy of a block, the place of that.
    pub(crate) fn see(&mut self, block: u64, bytes: &[u8], shape: &Superblock) -> Option<u64> {
        if be32(bytes, 0) != MAGIC {
            return self.awaited.remove(&block);
        }
        self.awaited.remove(&block);
        let kind = be32(bytes, 4);
        if SUPERBLOCKS.contains(&kind) && Some(block) == self.head() {
            self.superblock(bytes);
        } else if kind == DESCRIPTOR {
            self.descriptor(block, bytes, shape);
        }
        None
    }

    pub(crate) fn superblock(&mut self, bytes: &[u8]) {
        if be32(bytes, 0) != MAGIC {
            return;
        }
        let blocks = self.runs.last().map_or(0, |run| run.0 + run.2);
        self.features = be32(bytes, 0x28);
        let fast = match be32(bytes, 0x54) {
            _ if self.features & INCOMPAT_FAST_COMMIT == 0 => 0,
            0 => FAST_COMMIT_BLOCKS,
            count => count,
        };
        self.end = u64::from(be32(bytes, 0x10).saturating_sub(fast)).min(blocks);
        self.first = u64::from(be32(bytes, 0x14)).clamp(1, self.end.max(1));
    }

    fn descriptor(&mut self, block: u64, bytes: &[u8], shape: &Superblock) {
        let Some(mut at) = self.position(block) else { return };
        let has_tail = self.features & (INCOMPAT_CHECKSUM2 | INCOMPAT_CHECKSUM3) != 0;
        let end = bytes.len() - if has_tail { TAIL } else { 0 };
        let is_wide = self.features & INCOMPAT_64BIT != 0;
        let mut tag = HEADER;
        while tag + self.tag_bytes() <= end {
            let flags = if self.features & INCOMPAT_CHECKSUM3 != 0 {
                be32(bytes, tag + 4)
            } else {
                u32::from(be16(bytes, tag + 6))
            };
            let high = if is_wide { u64::from(be32(bytes, tag + 8)) << 32 } else { 0 };
            let home = high | u64::from(be32(bytes, tag));
            at = if at + 1 >= self.end { self.first } else { at + 1 };
            if let Some(copy) = self.place(at) {
                self.awaited.remove(&copy);
                // A masked copy begins otherwise than its block; it is none that anything could be learned
                // from.
                if home < shape.blocks && flags & TAG_MASKED == 0 {
                    self.awaited.insert(copy, home);
                }
            }
            if flags & TAG_LAST != 0 {
                break;
            }
            tag += self.tag_bytes() + if flags & TAG_SAME_UUID == 0 { 16 } else { 0 };
        }
    }

    fn tag_bytes(&self) -> usize {
        if self.features & INCOMPAT_CHECKSUM3 != 0 {
            return 16;
        }
        8 + if self.features & INCOMPAT_64BIT != 0 { 4 } else { 0 }
            + if self.features & INCOMPAT_CHECKSUM2 != 0 { 2 } else { 0 }
    }

    fn position(&self, block: u64) -> Option<u64> {
        let run = self.runs.iter().find(|(_, start, count)| (*start..start + count).contains(&block))?;
        Some(run.0 + (block - run.1))
    }

    /// Block on the device of a journal block.
    fn place(&self, at: u64) -> Option<u64> {
        let run = self.runs.iter().find(|(first, _, count)| (*first..first + count).contains(&at))?;
        Some(run.1 + (at - run.0))
    }
}
