//! What is known of a file system in use.

use super::Overlay;
use crate::classify::each_inode;
use crate::group::{Group, fixed_layout, read_groups};
use crate::inode::Inode;
use crate::journal::JournalLog;
use crate::kind::Kind;
use crate::superblock::{self, Feature, Superblock};
use crate::walk::{Met, is_extent_node, walk};
use crate::{ExtError, ReadAt};
use nandscape_core::ranges::Ranges;
use std::collections::BTreeMap;

/// Nodes of one inode's map that are looked at: a directory of a million blocks has 3,000.
const NODES_MAX: u32 = 1 << 16;
/// Copies of mapping blocks kept from the journal until their place is known.
const COPIES_MAX: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    kind: Kind,
    inode: u32,
    /// Steps above the blocks of the file; 0 for these.
    level: u16,
}

/// An inode with blocks that matter.
#[derive(Clone, Debug)]
struct Known {
    fingerprint: u64,
    ranges: Vec<(u64, u64)>,
    /// Kept where nodes of its map may change without it.
    inode: Option<Box<Inode>>,
}

#[derive(Clone, Debug)]
pub(super) struct FileSystem {
    pub(super) shape: Superblock,
    groups: Vec<Group>,
    fixed: Ranges<Kind>,
    /// First blocks of inode tables, and their groups.
    tables: BTreeMap<u64, u32>,
    claims: Ranges<Claim>,
    known: BTreeMap<u32, Known>,
    journal: JournalLog,
    /// Contents of mapping blocks that were seen in the journal and not yet at their places.
    copies: BTreeMap<u64, Vec<u8>>,
}

impl FileSystem {
    /// Reads the descriptors and the inodes in use.
    pub(super) fn read(shape: Superblock, below: &mut Overlay<'_, '_>) -> Self {
        let mut this = Self {
            groups: Vec::new(),
            fixed: Ranges::default(),
            tables: BTreeMap::new(),
            claims: Ranges::default(),
            known: BTreeMap::new(),
            journal: JournalLog::default(),
            copies: BTreeMap::new(),
            shape,
        };
        if this.shape.features.has(Feature::JOURNAL_DEVICE) {
            let at = superblock::OFFSET / u64::from(this.shape.block_bytes);
            this.fixed.fill(at, at + 1, Kind::Superblock);
            this.fixed.fill(at + 1, this.shape.blocks, Kind::Journal);
            return this;
        }
        let groups = read_groups(&this.shape, &mut |offset, out| below.read(offset, out), false);
        this.place(groups.unwrap_or_default(), below);
        this
    }

    /// Takes over where bitmaps and tables are, and reads the inodes that the bitmaps have as used.
    fn place(&mut self, groups: Vec<Group>, below: &mut Overlay<'_, '_>) {
        self.fixed = fixed_layout(&self.shape, &groups);
        self.tables = (0..)
            .zip(&groups)
            .filter(|(_, group)| group.inode_table > 0)
            .map(|(number, group)| (group.inode_table, number))
            .collect();
        let shape = self.shape.clone();
        let mut found = |number, inode: &Inode, read: &mut ReadAt<'_>| {
            self.learn_inode(number, inode, read);
            Ok::<(), ExtError>(())
        };
        // What cannot be read stays unknown.
        let _ = each_inode(&shape, &groups, &mut |offset, out| below.read(offset, out), false, &mut found);
        self.groups = groups;
    }

    /// Calls back with first block, one past the last, and kind for every part of a range of blocks.
    pub(super) fn parts(&self, from: u64, end: u64, mut part: impl FnMut(u64, u64, Kind)) {
        let mut next = from;
        let between = |from: u64, end: u64, part: &mut dyn FnMut(u64, u64, Kind)| {
            let mut next = from;
            for (start, stop, claim) in self.claims.within(from, end) {
                if next < start {
                    part(next, start, Kind::Data);
                }
                part(start, stop, claim.kind);
                next = stop;
            }
            if next < end {
                part(next, end, Kind::Data);
            }
        };
        for (start, stop, kind) in self.fixed.within(from, end) {
            between(next, start, &mut part);
            part(start, stop, kind);
            next = stop;
        }
        between(next, end, &mut part);
    }

    pub(super) fn learn(&mut self, below: &mut Overlay<'_, '_>) {
        let block_bytes = u64::from(self.shape.block_bytes);
        let (offset, data) = (below.offset, below.data);
        let end = offset + data.len() as u64;
        let mut parts = Vec::new();
        self.parts(offset / block_bytes, end.div_ceil(block_bytes), |start, stop, kind| {
            if !matches!(kind, Kind::Data | Kind::Directory) {
                parts.push((start, stop, kind));
            }
        });
        for (start, stop, kind) in parts {
            let (from, to) = ((start * block_bytes).max(offset), (stop * block_bytes).min(end));
            let bytes = &data[(from - offset) as usize..(to - offset) as usize];
            match kind {
                Kind::InodeTable => self.learn_table(from, bytes, &mut |at, out| below.read(at, out)),
                Kind::GroupDescriptors => self.learn_descriptors(from, to, below),
                Kind::Journal => self.learn_journal(from, bytes, below),
                Kind::Mapping => {
                    for block in start..stop {
                        self.copies.remove(&block);
                        self.learn_node(block, &mut |at, out| below.read(at, out));
                    }
                }
                _ => {}
            }
        }
    }

    fn learn_table(&mut self, offset: u64, bytes: &[u8], read: &mut ReadAt<'_>) {
        let (block_bytes, inode_bytes) =
            (u64::from(self.shape.block_bytes), u64::from(self.shape.inode_bytes));
        let (mut at, end) = (offset, offset + bytes.len() as u64);
        while let Some((&table, &group)) = self.tables.range(..=at / block_bytes).next_back() {
            let start = table * block_bytes;
            // A block that is cut is known once the rest of it is written too; inodes never straddle blocks.
            let index = (at - start).div_ceil(inode_bytes);
            if index >= u64::from(self.shape.inodes_per_group) {
                // The unused rest of the last block of a table, or another table after a gap.
                let Some((&next, _)) = self.tables.range(at / block_bytes + 1..).next() else { break };
                at = next * block_bytes;
                if at >= end {
                    break;
                }
                continue;
            }
            let from = start + index * inode_bytes;
            if from + inode_bytes > end {
                break;
            }
            let place = (from - offset) as usize;
            let number = group * self.shape.inodes_per_group + index as u32 + 1;
            if let Some(inode) = Inode::parse(&bytes[place..place + inode_bytes as usize]) {
                self.learn_inode(number, &inode, read);
            }
            at = from + inode_bytes;
            if at >= end {
                break;
            }
        }
    }

    /// Primary descriptors: whether bitmaps and tables are somewhere else than before.
    fn learn_descriptors(&mut self, from: u64, to: u64, below: &mut Overlay<'_, '_>) {
        let block_bytes = u64::from(self.shape.block_bytes);
        let is_primary = |block: u64| {
            let group = (block.saturating_sub(u64::from(self.shape.first_data_block))
                / u64::from(self.shape.blocks_per_group)) as u32;
            let index = group / self.shape.descriptors_per_block();
            self.shape.descriptor_block(index) == block || group == 0
        };
        if !(from / block_bytes..to.div_ceil(block_bytes)).any(is_primary) {
            return;
        }
        let groups = read_groups(&self.shape, &mut |offset, out| below.read(offset, out), false);
        let groups = groups.unwrap_or_default();
        let is_same = groups.len() == self.groups.len()
            && groups.iter().zip(&self.groups).all(|(new, old)| new.is_placed_as(old));
        if is_same {
            self.groups = groups;
        } else {
            self.place(groups, below);
        }
    }

    fn learn_journal(&mut self, offset: u64, bytes: &[u8], below: &mut Overlay<'_, '_>) {
        let block_bytes = self.shape.block_bytes as usize;
        let first = offset.next_multiple_of(block_bytes as u64);
        let skip = (first - offset) as usize;
        let Some(whole) = bytes.get(skip..) else { return };
        for (block, copy) in (first / block_bytes as u64..).zip(whole.chunks_exact(block_bytes)) {
            let Some(home) = self.journal.see(block, copy, &self.shape) else { continue };
            let mut read = |at: u64, out: &mut [u8]| below.read(at, out);
            match self.fixed.get(home) {
                Some(Kind::InodeTable) => self.learn_table(home * block_bytes as u64, copy, &mut read),
                Some(_) => {}
                None => {
                    let is_node = self.claims.get(home).is_some_and(|claim| claim.kind == Kind::Mapping);
                    if is_node || is_extent_node(copy) {
                        if self.copies.len() >= COPIES_MAX {
                            self.copies.clear();
                        }
                        self.copies.insert(home, copy.to_vec());
                    }
                    if is_node {
                        self.learn_node(home, &mut read);
                    }
                }
            }
        }
    }

    /// A node of an inode's map has new content.
    fn learn_node(&mut self, block: u64, read: &mut ReadAt<'_>) {
        let Some(claim) = self.claims.get(block) else { return };
        let Some(inode) = self.known.get(&claim.inode).and_then(|known| known.inode.clone()) else { return };
        // What the lowest nodes of a file name is data, whatever they say.
        if claim.level > 1 || inode.kind(claim.inode, &self.shape) != Kind::Data {
            self.forget(claim.inode);
            self.learn_inode(claim.inode, &inode, read);
        }
    }

    fn forget(&mut self, number: u32) {
        let Some(known) = self.known.remove(&number) else { return };
        for (start, end) in known.ranges {
            self.claims.remove(start, end, |claim| claim.inode == number);
        }
    }

    fn learn_inode(&mut self, number: u32, inode: &Inode, read: &mut ReadAt<'_>) {
        let known = self.known.get(&number).map(|known| known.fingerprint);
        // Most of a table is unused, or inodes of files whose blocks nobody asks about.
        if known.is_none() && !inode.is_used() {
            return;
        }
        let fingerprint = inode.fingerprint();
        if known == Some(fingerprint) {
            return;
        }
        self.forget(number);
        if !inode.is_used() {
            return;
        }
        let kind = inode.kind(number, &self.shape);
        let blocks = self.shape.blocks;
        let (mut ranges, mut leaves) = (Vec::new(), Vec::new());
        let (mut nodes, mut leaf_blocks) = (0, 0_u64);
        let claims = &mut self.claims;
        let copies = &self.copies;
        let mut claim = |from: u64, end: u64, kind, level| {
            claims.set(from, end, Claim { kind, inode: number, level });
            ranges.push((from, end));
        };
        if inode.xattr_block > 0 && inode.xattr_block < blocks {
            claim(inode.xattr_block, inode.xattr_block + 1, Kind::Xattr, 0);
        }
        let mut meet = |met| match met {
            Met::Node { block, level } => {
                claim(block, block + 1, Kind::Mapping, level);
                nodes += 1;
                nodes <= NODES_MAX && (level > 1 || kind != Kind::Data) && kind != Kind::ReservedDescriptors
            }
            Met::Leaf { block, count } => {
                leaf_blocks = leaf_blocks.saturating_add(count);
                if kind != Kind::Data && kind != Kind::ReservedDescriptors && leaf_blocks <= blocks {
                    claim(block, block + count, kind, 0);
                    leaves.push((block, count));
                }
                false
            }
        };
        let block_bytes = self.shape.block_bytes;
        let mut node = |block: u64| {
            if let Some(copy) = copies.get(&block) {
                return Some(copy.clone());
            }
            let mut bytes = vec![0; block_bytes as usize];
            read(block * u64::from(block_bytes), &mut bytes).ok().map(|()| bytes)
        };
        walk(inode, blocks, &mut meet, &mut node);
        if kind == Kind::Journal && number == self.shape.journal_inode {
            self.learn_journal_place(&leaves, read);
        }
        if !ranges.is_empty() {
            let inode = (nodes > 0).then(|| Box::new(*inode));
            self.known.insert(number, Known { fingerprint, ranges, inode });
        }
    }

    fn learn_journal_place(&mut self, leaves: &[(u64, u64)], read: &mut ReadAt<'_>) {
        self.journal = JournalLog::new(leaves);
        let mut head = vec![0; self.shape.block_bytes as usize];
        if let Some(block) = self.journal.head()
            && read(block * u64::from(self.shape.block_bytes), &mut head).is_ok()
        {
            self.journal.superblock(&head);
        }
    }

    /// Bytes were discarded or zeroed: what inodes had there they have no more.
    pub(super) fn drop_blocks(&mut self, offset: u64, end: u64) {
        let block_bytes = u64::from(self.shape.block_bytes);
        let (from, to) = (offset.div_ceil(block_bytes), (end / block_bytes).min(self.shape.blocks));
        if from >= to {
            return;
        }
        self.claims.remove(from, to, |claim| claim.kind != Kind::Journal);
        for block in self.copies.range(from..to).map(|(block, _)| *block).collect::<Vec<_>>() {
            self.copies.remove(&block);
        }
        let tables: Vec<(u64, u64)> = self
            .fixed
            .within(from, to)
            .filter(|(_, _, kind)| *kind == Kind::InodeTable)
            .map(|(start, stop, _)| (start, stop))
            .collect();
        for (start, stop) in tables {
            self.forget_table(start, stop);
        }
    }

    /// Blocks of inode tables were zeroed.
    fn forget_table(&mut self, start: u64, stop: u64) {
        let per_block = u64::from(self.shape.block_bytes / self.shape.inode_bytes);
        let length = u64::from(self.shape.inode_table_blocks());
        let first = self.tables.range(..=start).next_back().map_or(start, |(table, _)| *table);
        let tables: Vec<(u64, u32)> = self.tables.range(first..stop).map(|(t, g)| (*t, *g)).collect();
        for (table, group) in tables {
            let (from, to) = (start.max(table), stop.min(table + length));
            let base = group * self.shape.inodes_per_group;
            let number = |block: u64| base.saturating_add(((block - table) * per_block) as u32 + 1);
            if from < to {
                let gone: Vec<u32> = self.known.range(number(from)..number(to)).map(|(n, _)| *n).collect();
                for number in gone {
                    self.forget(number);
                }
            }
        }
    }
}
