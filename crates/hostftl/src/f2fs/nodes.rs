//! Files, and the nodes that say where their blocks are.

use super::config::Layout;
use super::sections::NONE;
use nandscape_core::{Hint, NamespaceResult, ObjectError, ObjectId};
use std::collections::{BTreeMap, BTreeSet};

/// The file of names.
pub(super) const DIRECTORY: u32 = 0;

/// A node: the inode of a file, or pointers to more of its blocks.
#[derive(Debug)]
pub(super) struct Node {
    pub file: u32,
    /// 0 for the inode, then the others by the blocks that they point to.
    pub index: u32,
    /// Where it was written last.
    pub place: u32,
    pub is_dirty: bool,
    /// Pointers that are set.
    pub used: u32,
    pub pointers: Box<[u32]>,
}

/// A file.
#[derive(Debug)]
pub(super) struct File {
    pub id: ObjectId,
    pub hint: Hint,
    pub size: u64,
    /// Blocks that are stored.
    pub blocks: u64,
    /// Nodes by their index.
    pub nodes: BTreeMap<u32, u32>,
    /// Nodes that changed since they were written; some of them may have been written since.
    pub dirty: Vec<u32>,
    /// The last block of the file, if it is not full and waits in memory.
    pub tail: Option<u32>,
    /// Block of the directory that has its name.
    pub name: u32,
}

/// Everything that files need. A number below is a place in one of the tables.
pub(super) struct Nodes {
    files: Vec<Option<File>>,
    free_files: Vec<u32>,
    by_id: BTreeMap<ObjectId, u32>,
    table: Vec<Option<Node>>,
    free: Vec<u32>,
    /// Nodes that there are.
    pub count: u64,
    /// Those that were never written.
    pub unwritten: u64,
    /// Nodes that changed since they were written.
    pub dirty: u64,
    /// Files with entries in `dirty`.
    pub dirty_files: BTreeSet<u32>,
    /// Files with a tail in memory.
    pub tails: BTreeSet<u32>,
    /// Nodes whose place changed since the last checkpoint.
    pub moved: BTreeSet<u32>,
    /// Blocks of the directory with names that changed since.
    pub names: BTreeSet<u32>,
}

impl Nodes {
    pub fn new() -> Self {
        let mut this = Self {
            files: Vec::new(),
            free_files: Vec::new(),
            by_id: BTreeMap::new(),
            table: Vec::new(),
            free: Vec::new(),
            count: 0,
            unwritten: 0,
            dirty: 0,
            dirty_files: BTreeSet::new(),
            tails: BTreeSet::new(),
            moved: BTreeSet::new(),
            names: BTreeSet::new(),
        };
        // No host can ask for it: its number is in no table.
        this.put(ObjectId(u64::MAX), Hint::NOT_SET);
        this
    }

    fn put(&mut self, id: ObjectId, hint: Hint) -> u32 {
        let number = self.free_files.pop().unwrap_or(self.files.len() as u32);
        let file = File {
            id,
            hint,
            size: 0,
            blocks: 0,
            nodes: BTreeMap::new(),
            dirty: Vec::new(),
            tail: None,
            name: 0,
        };
        if number as usize == self.files.len() {
            self.files.push(Some(file));
        } else {
            self.files[number as usize] = Some(file);
        }
        number
    }

    /// A new file, without an inode yet.
    pub fn create(&mut self, id: ObjectId, hint: Hint, names_per_block: u32) -> u32 {
        let number = self.put(id, hint);
        self.by_id.insert(id, number);
        let name = number / names_per_block;
        self.file_mut(number).name = name;
        self.names.insert(name);
        number
    }

    pub fn find(&self, id: ObjectId) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    pub fn number(&self, id: ObjectId) -> NamespaceResult<u32> {
        self.find(id).ok_or_else(|| ObjectError::Unknown.into())
    }

    /// A file is gone; its nodes are removed one by one before.
    pub fn forget(&mut self, number: u32) {
        let file = self.files[number as usize].take().expect("it is there");
        self.by_id.remove(&file.id);
        self.names.insert(file.name);
        self.dirty_files.remove(&number);
        self.tails.remove(&number);
        self.free_files.push(number);
    }

    #[inline]
    pub fn file(&self, number: u32) -> &File {
        self.files[number as usize].as_ref().expect("it is there")
    }

    #[inline]
    pub fn file_mut(&mut self, number: u32) -> &mut File {
        self.files[number as usize].as_mut().expect("it is there")
    }

    /// Files of hosts, in the order of their identifiers.
    pub fn files(&self) -> Vec<u32> {
        self.by_id.values().copied().collect()
    }

    #[inline]
    pub fn node(&self, number: u32) -> &Node {
        self.table[number as usize].as_ref().expect("it is there")
    }

    #[inline]
    pub fn node_mut(&mut self, number: u32) -> &mut Node {
        self.table[number as usize].as_mut().expect("it is there")
    }

    /// The index of the node that points to a block of a file, the slot there, and how many blocks from there
    /// on it points to.
    #[inline]
    pub fn split(layout: &Layout, block: u32) -> (u32, u32, u32) {
        let (inode, node) = (layout.inode_pointers(), layout.node_pointers());
        match block.checked_sub(inode) {
            None => (0, block, inode - block),
            Some(beyond) => (1 + beyond / node, beyond % node, node - beyond % node),
        }
    }

    /// A node of a file, made if there is none.
    #[inline]
    pub fn need(&mut self, layout: &Layout, file: u32, index: u32) -> u32 {
        match self.file(file).nodes.get(&index) {
            Some(node) => *node,
            None => self.add(layout, file, index),
        }
    }

    fn add(&mut self, layout: &Layout, file: u32, index: u32) -> u32 {
        let pointers = if index == 0 { layout.inode_pointers() } else { layout.node_pointers() };
        let number = self.free.pop().unwrap_or(self.table.len() as u32);
        let pointers = vec![NONE; pointers as usize].into_boxed_slice();
        let node = Node { file, index, place: NONE, is_dirty: false, used: 0, pointers };
        if number as usize == self.table.len() {
            self.table.push(Some(node));
        } else {
            self.table[number as usize] = Some(node);
        }
        self.count += 1;
        self.unwritten += 1;
        self.file_mut(file).nodes.insert(index, number);
        self.touch(number);
        if index > 0 {
            // The node above points to it: the inode, whatever is between the two.
            self.touch_inode(layout, file);
        }
        number
    }

    /// The inode of a file changed.
    pub fn touch_inode(&mut self, layout: &Layout, file: u32) {
        let inode = self.need(layout, file, 0);
        self.touch(inode);
    }

    /// A node changed.
    #[inline]
    pub fn touch(&mut self, number: u32) {
        let node = self.node_mut(number);
        if node.is_dirty {
            return;
        }
        node.is_dirty = true;
        let file = node.file;
        self.dirty += 1;
        self.file_mut(file).dirty.push(number);
        self.dirty_files.insert(file);
    }

    /// A node was written somewhere. Gives the place before.
    pub fn written(&mut self, number: u32, place: u32) -> u32 {
        let node = self.node_mut(number);
        let before = std::mem::replace(&mut node.place, place);
        self.dirty -= u64::from(std::mem::take(&mut node.is_dirty));
        self.unwritten -= u64::from(before == NONE);
        self.moved.insert(number);
        before
    }

    /// Takes a node away, and says where it was written last.
    pub fn remove(&mut self, number: u32) -> u32 {
        let node = self.table[number as usize].take().expect("it is there");
        self.count -= 1;
        self.unwritten -= u64::from(node.place == NONE);
        self.dirty -= u64::from(node.is_dirty);
        self.moved.insert(number);
        self.free.push(number);
        let file = self.file_mut(node.file);
        file.nodes.remove(&node.index);
        file.dirty.retain(|other| *other != number);
        node.place
    }

    /// Hands out the runs of blocks of a file from `from` to `to` that are next to each other on the device,
    /// holes left out: first block, place, length.
    #[inline]
    pub fn each_run(
        &self,
        layout: &Layout,
        file: u32,
        (from, to): (u32, u32),
        mut act: impl FnMut(u32, u32, u32) -> NamespaceResult<()>,
    ) -> NamespaceResult<()> {
        let file = self.file(file);
        let mut run = (0, 0, 0);
        let mut block = from;
        while block < to {
            let (index, slot, room) = Self::split(layout, block);
            let Some(node) = file.nodes.get(&index) else {
                block = block.saturating_add(room);
                continue;
            };
            let len = room.min(to - block);
            for place in &self.node(*node).pointers[slot as usize..][..len as usize] {
                if *place != NONE {
                    let (at, start, blocks) = run;
                    let goes_on = blocks > 0
                        && at + blocks == block
                        && start + blocks == *place
                        && layout.is_next(*place);
                    if goes_on {
                        run.2 += 1;
                    } else {
                        if blocks > 0 {
                            act(at, start, blocks)?;
                        }
                        run = (block, *place, 1);
                    }
                }
                block += 1;
            }
        }
        if run.2 > 0 { act(run.0, run.1, run.2) } else { Ok(()) }
    }
}
