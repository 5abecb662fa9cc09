//! Blocks in a number of queues: unlink and append in O(1), 8 B a block.

use nandscape_core::state;

/// Circular doubly linked lists over block numbers. List `l` has the sentinel node `blocks + l`, which saves
/// every special case for an empty list. A block that is in no list links to itself.
#[derive(Clone, Debug)]
pub struct BlockLists {
    blocks: u32,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    prev: u32,
    next: u32,
}

state!(impl [] BlockLists { tables: nodes; fixed: blocks; });
state!(impl [] Node { saved: prev, next; });

impl BlockLists {
    /// `lists` empty lists over `blocks` blocks.
    pub fn new(blocks: u32, lists: u32) -> Self {
        Self { blocks, nodes: (0..blocks + lists).map(|i| Node { prev: i, next: i }).collect() }
    }

    /// Appends a block that is in no list.
    #[inline]
    pub fn append(&mut self, list: u32, block: u32) {
        let sentinel = self.blocks + list;
        let last = self.nodes[sentinel as usize].prev;
        self.nodes[block as usize] = Node { prev: last, next: sentinel };
        self.nodes[last as usize].next = block;
        self.nodes[sentinel as usize].prev = block;
    }

    /// Takes a block out of whatever list it is in.
    #[inline]
    pub fn unlink(&mut self, block: u32) {
        let Node { prev, next } = self.nodes[block as usize];
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
        self.nodes[block as usize] = Node { prev: block, next: block };
    }

    /// Moves a block from its list to the end of another.
    #[inline]
    pub fn relink(&mut self, list: u32, block: u32) {
        let Node { prev, next } = self.nodes[block as usize];
        self.nodes[prev as usize].next = next;
        self.nodes[next as usize].prev = prev;
        self.append(list, block);
    }

    /// Whether a block is in a list.
    #[inline]
    pub fn is_linked(&self, block: u32) -> bool {
        self.nodes[block as usize].next != block
    }

    /// The block that was appended first.
    #[inline]
    pub fn first(&self, list: u32) -> Option<u32> {
        let first = self.nodes[(self.blocks + list) as usize].next;
        (first < self.blocks).then_some(first)
    }
}
