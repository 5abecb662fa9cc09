//! The block map of one inode: extent tree or indirect blocks.

use crate::bytes::{le16, le32};
use crate::inode::Inode;

const EXTENT_MAGIC: u16 = 0xf30a;
/// Deepest extent tree that ext4 makes.
const DEPTH_MAX: u16 = 5;
/// Extents longer than this are unwritten ones, of that much less.
const UNWRITTEN: u16 = 0x8000;
/// Block pointers in the inode before the indirect ones.
const DIRECT: usize = 12;
/// One entry of an extent tree, and its header.
const ENTRY: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Met {
    /// A block of the map itself. `level` is how many steps above the blocks of the file it lies: 1 or more.
    Node {
        block: u64,
        /// Above the blocks of the file.
        level: u16,
    },
    Leaf {
        block: u64,
        count: u64,
    },
}

/// Walks the map of an inode, top down. `meet` says whether a node is to be looked into; `node` gives the
/// content of one, if it can be had. What does not look like a map is passed over.
pub(crate) fn walk(
    inode: &Inode,
    blocks: u64,
    meet: &mut dyn FnMut(Met) -> bool,
    node: &mut dyn FnMut(u64) -> Option<Vec<u8>>,
) {
    if !inode.has_map() {
        return;
    }
    let mut walk = Walk { blocks, meet, node };
    if inode.has_extents() {
        walk.extents(&inode.root, DEPTH_MAX + 1);
    } else {
        walk.pointers(&inode.root[..4 * DIRECT], 0);
        for level in 1..=3 {
            let at = 4 * (DIRECT + level - 1);
            walk.pointer(le32(&inode.root, at), level as u16);
        }
    }
}

/// Whether a block begins as a node of an extent tree does.
pub(crate) fn is_extent_node(bytes: &[u8]) -> bool {
    le16(bytes, 0) == EXTENT_MAGIC
}

struct Walk<'a> {
    blocks: u64,
    meet: &'a mut dyn FnMut(Met) -> bool,
    node: &'a mut dyn FnMut(u64) -> Option<Vec<u8>>,
}

impl Walk<'_> {
    fn leaf(&mut self, block: u64, count: u64) {
        let end = block.saturating_add(count).min(self.blocks);
        if block > 0 && block < end {
            (self.meet)(Met::Leaf { block, count: end - block });
        }
    }

    /// Content of a node that is to be looked into.
    fn enter(&mut self, block: u64, level: u16) -> Option<Vec<u8>> {
        let is_inside = block > 0 && block < self.blocks;
        if is_inside && (self.meet)(Met::Node { block, level }) { (self.node)(block) } else { None }
    }

    /// A node of an extent tree that must be less deep than `below`.
    fn extents(&mut self, node: &[u8], below: u16) {
        let (entries, depth) = (usize::from(le16(node, 2)), le16(node, 6));
        if !is_extent_node(node) || depth >= below {
            return;
        }
        for entry in node[ENTRY..].chunks_exact(ENTRY).take(entries) {
            if depth == 0 {
                let count = le16(entry, 4);
                let count = if count > UNWRITTEN { count - UNWRITTEN } else { count };
                let block = u64::from(le16(entry, 6)) << 32 | u64::from(le32(entry, 8));
                self.leaf(block, count.into());
            } else {
                let block = u64::from(le16(entry, 8)) << 32 | u64::from(le32(entry, 4));
                if let Some(child) = self.enter(block, depth) {
                    self.extents(&child, depth);
                }
            }
        }
    }

    fn pointers(&mut self, node: &[u8], level: u16) {
        for entry in node.chunks_exact(4) {
            self.pointer(le32(entry, 0), level);
        }
    }

    fn pointer(&mut self, block: u32, level: u16) {
        if level == 0 {
            self.leaf(block.into(), 1);
        } else if let Some(child) = self.enter(block.into(), level) {
            self.pointers(&child, level - 1);
        }
    }
}
