//! Metadata of the file system: which blocks change, when the journal takes them, when they go home.
//!
//! Modelled after ext4 with an ordinary (ordered) journal and nothing of its layout but the kinds of block:
//! inodes of 256 B, sixteen to a block; bitmaps of one block for 32,768 blocks or inodes; eighty entries to
//! a directory block. A transaction is written as a descriptor block for each 508 blocks, the changed
//! blocks and one commit block, one after the other in a ring. Changed blocks go home when dirty for the
//! expiry time, or all at once when the ring is three quarters full. A block that changed again waits for
//! its next transaction.

use nandscape_core::BlockKind;
use std::collections::{BTreeMap, BTreeSet};

const INODES_PER_BLOCK: u64 = 16;
const BITS_PER_BLOCK: u64 = 32_768;
const ENTRIES_PER_BLOCK: u64 = 80;
/// Blocks that a descriptor block lists, by tags of 8 bytes.
const TAGS_PER_BLOCK: u64 = 508;
/// Directories are told apart by this many blocks each.
const DIRECTORY_SPAN: u64 = 1 << 32;

pub(crate) type Key = (BlockKind, u64);

/// What a file system call does to metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A name appears or goes: the inode, its bitmap, the descriptors, the directory.
    Name {
        inode: u64,
        directory: u64,
    },
    Rename {
        inode: u64,
        directory: u64,
    },
    /// Size, blocks or times of a file.
    Inode {
        inode: u64,
    },
    /// Blocks were taken or given back.
    Blocks {
        start: u64,
        len: u64,
    },
    /// Blocks of a file have new data, which go through the journal.
    Data {
        file: u32,
        start: u64,
        len: u64,
    },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    /// Where metadata blocks live; allocated when they are first needed.
    pub(crate) homes: BTreeMap<Key, u64>,
    /// Changed since the last commit.
    uncommitted: BTreeSet<Key>,
    /// In the journal and not at home yet, since when.
    committed: BTreeMap<Key, u64>,
    ring: Vec<(u64, u64)>,
    ring_blocks: u64,
    head: u64,
    used: u64,
    /// Whose data a block holds that went through the journal.
    owners: BTreeMap<u64, u32>,
    inodes: BTreeSet<u64>,
    next_inode: u64,
    directories: BTreeMap<String, u64>,
}

impl Journal {
    /// A journal in the given runs of the volume.
    pub(crate) fn new(ring: Vec<(u64, u64)>) -> Self {
        let ring_blocks = ring.iter().map(|(_, len)| len).sum();
        Self {
            uncommitted: BTreeSet::from([(BlockKind::Superblock, 0)]),
            ring,
            ring_blocks,
            ..Self::default()
        }
    }

    /// The lowest free inode.
    pub(crate) fn take_inode(&mut self) -> u64 {
        self.inodes.pop_first().unwrap_or_else(|| {
            self.next_inode += 1;
            self.next_inode - 1
        })
    }

    pub(crate) fn release_inode(&mut self, inode: u64) {
        self.inodes.insert(inode);
    }

    /// The number of the directory that holds a path.
    pub(crate) fn directory_of(&mut self, path: Option<&str>) -> u64 {
        let parent = path.and_then(|path| path.rsplit_once('/')).map_or("", |(parent, _)| parent);
        if let Some(&number) = self.directories.get(parent) {
            return number;
        }
        let number = self.directories.len() as u64;
        self.directories.insert(parent.to_owned(), number);
        number
    }

    pub(crate) fn change(&mut self, change: Change) {
        let mut dirty = |kind, index| {
            self.uncommitted.insert((kind, index));
        };
        let entry = |inode: u64, directory: u64| directory * DIRECTORY_SPAN + inode / ENTRIES_PER_BLOCK;
        match change {
            Change::Name { inode, directory } => {
                dirty(BlockKind::InodeTable, inode / INODES_PER_BLOCK);
                dirty(BlockKind::InodeBitmap, inode / BITS_PER_BLOCK);
                dirty(BlockKind::GroupDescriptors, 0);
                dirty(BlockKind::Directory, entry(inode, directory));
            }
            Change::Rename { inode, directory } => {
                dirty(BlockKind::InodeTable, inode / INODES_PER_BLOCK);
                dirty(BlockKind::Directory, entry(inode, directory));
            }
            Change::Inode { inode } => dirty(BlockKind::InodeTable, inode / INODES_PER_BLOCK),
            Change::Blocks { start, len } => {
                // A run of 2^40 bytes has 8192 bitmaps; more are never in one call.
                for bitmap in start / BITS_PER_BLOCK..=(start + len - 1) / BITS_PER_BLOCK {
                    dirty(BlockKind::BlockBitmap, bitmap);
                }
                dirty(BlockKind::GroupDescriptors, 0);
            }
            Change::Data { file, start, len } => {
                for block in start..start + len {
                    dirty(BlockKind::FileData, block);
                    self.owners.insert(block, file);
                }
            }
        }
    }

    /// Blocks with data were freed: what of them is in the journal does not go home.
    pub(crate) fn revoke(&mut self, start: u64, len: u64) {
        // What was only reserved may be far larger than what was written.
        let held: Vec<u64> = self.owners.range(start..start + len).map(|(block, _)| *block).collect();
        for block in held {
            self.owners.remove(&block);
            self.uncommitted.remove(&(BlockKind::FileData, block));
            self.committed.remove(&(BlockKind::FileData, block));
        }
    }

    /// Whose data a block holds; 0 for metadata.
    pub(crate) fn owner(&self, key: &Key) -> u32 {
        if key.0 == BlockKind::FileData { self.owners.get(&key.1).copied().unwrap_or(0) } else { 0 }
    }

    /// What changed since the last commit, where transactions go home at once.
    pub(crate) fn take_changed(&mut self) -> Vec<Key> {
        std::mem::take(&mut self.uncommitted).into_iter().collect()
    }

    /// Whether nothing waits for a commit.
    pub(crate) fn is_committed(&self) -> bool {
        self.uncommitted.is_empty()
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.uncommitted.is_empty() && self.committed.is_empty()
    }

    /// Whether the next transaction must wait for a checkpoint.
    pub(crate) fn needs_checkpoint(&self) -> bool {
        self.used + self.transaction_blocks() > self.ring_blocks / 4 * 3
    }

    /// Puts the changed blocks into the journal; gives the runs of the ring that are written, in order.
    pub(crate) fn commit(&mut self, now: u64) -> Vec<(u64, u64)> {
        if self.uncommitted.is_empty() {
            return Vec::new();
        }
        // Larger transactions than the ring are several; what they write is the same.
        let blocks = self.transaction_blocks();
        for key in std::mem::take(&mut self.uncommitted) {
            self.committed.entry(key).or_insert(now);
        }
        self.used += blocks;
        let mut written = Vec::new();
        let mut left = blocks;
        while left > 0 {
            let (start, len) = self.ring_at(self.head);
            let part = left.min(len);
            written.push((start, part));
            self.head = (self.head + part) % self.ring_blocks;
            left -= part;
        }
        written
    }

    /// Blocks that the next transaction takes in the journal.
    fn transaction_blocks(&self) -> u64 {
        let changed = self.uncommitted.len() as u64;
        changed + changed.div_ceil(TAGS_PER_BLOCK) + 1
    }

    fn ring_at(&self, mut position: u64) -> (u64, u64) {
        for &(start, len) in &self.ring {
            if position < len {
                return (start + position, len - position);
            }
            position -= len;
        }
        unreachable!("position {position} past the ring")
    }

    /// Blocks to write home: those committed not after `before`, and not changed again.
    pub(crate) fn checkpoint(&mut self, before: u64) -> Vec<Key> {
        let is_due = |(key, since): &(&Key, &u64)| **since <= before && !self.uncommitted.contains(*key);
        let due: Vec<Key> = self.committed.iter().filter(is_due).map(|(key, _)| *key).collect();
        for key in &due {
            self.committed.remove(key);
        }
        if self.committed.is_empty() {
            self.used = 0;
        }
        due
    }

    /// The ring is full: what is committed goes home now, and what changed again is written home as well,
    /// since its old copy in the ring is about to be overwritten.
    pub(crate) fn empty_ring(&mut self) -> Vec<Key> {
        self.used = 0;
        std::mem::take(&mut self.committed).into_keys().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> Journal {
        let mut journal = Journal::new(vec![(100, 8), (300, 8)]);
        journal.uncommitted.clear();
        journal
    }

    #[test]
    fn a_transaction_is_its_blocks_and_two_more_and_the_ring_goes_round() {
        let mut journal = journal();
        assert!(journal.commit(0).is_empty());
        journal.change(Change::Name { inode: 3, directory: 0 });
        assert_eq!(journal.commit(1), [(100, 6)]);
        journal.change(Change::Inode { inode: 3 });
        assert_eq!(journal.commit(2), [(106, 2), (300, 1)]);
        journal.change(Change::Blocks { start: 32_767, len: 2 });
        assert!(journal.needs_checkpoint());
        assert_eq!(journal.empty_ring().len(), 4);
        assert_eq!(journal.commit(3), [(301, 5)]);
        journal.change(Change::Name { inode: 17, directory: 1 });
        assert_eq!(journal.commit(4), [(306, 2), (100, 4)]);
    }

    #[test]
    fn a_block_that_changed_again_does_not_go_home_before_its_commit() {
        let mut journal = journal();
        journal.change(Change::Inode { inode: 0 });
        journal.commit(10);
        journal.change(Change::Inode { inode: 1 });
        assert!(journal.checkpoint(100).is_empty());
        journal.commit(20);
        assert!(journal.checkpoint(9).is_empty());
        assert_eq!(journal.checkpoint(10), [(BlockKind::InodeTable, 0)]);
        assert!(journal.is_clean());
    }

    #[test]
    fn inodes_and_directories_are_numbered_from_the_lowest() {
        let mut journal = journal();
        assert_eq!([journal.take_inode(), journal.take_inode()], [0, 1]);
        journal.release_inode(0);
        assert_eq!([journal.take_inode(), journal.take_inode()], [0, 2]);
        let of = |journal: &mut Journal, path| journal.directory_of(path);
        assert_eq!(
            [of(&mut journal, Some("a/b/c")), of(&mut journal, Some("x")), of(&mut journal, None)],
            [0, 1, 1]
        );
        assert_eq!(of(&mut journal, Some("a/b/d")), 0);
    }
}
