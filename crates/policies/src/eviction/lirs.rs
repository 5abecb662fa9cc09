//! Low inter-reference recency set.

use super::lists::{Links, List, NIL};
use super::table::Table;
use super::{Build, Eviction, Footprint, part};
use crate::hash::KeyMap;
use crate::key::BlockKey;
use nandscape_core::{Info, Params, keys};

/// Blocks asked for again after few others (low) hold nearly all slots; the rest (high) pass through a short
/// queue. The stack holds, by recency, all low blocks and whatever was asked for since the oldest of them,
/// cached or not.
///
/// Nodes `0..slots` are slots, those above are names of blocks that have left.
#[derive(Clone, Debug)]
pub struct Lirs {
    stack_links: Links,
    stack: List,
    /// The queue of cached high blocks, and by the same links the names in order of leaving, and the unused
    /// names.
    queue_links: Links,
    queue: List,
    names: List,
    unused: List,
    nodes: Table<Node>,
    place_of_name: KeyMap,
    names_written: u64,
    low: u32,
    low_max: u32,
    slots: u32,
    /// Whether the block of the last miss was in the stack.
    returning: Option<BlockKey>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    key: u64,
    is_low: bool,
    is_stacked: bool,
}

keys! { PARAMS:
    HIGH: f64 = share() or "1%", "share of the slots for the queue";
    NAMES: u32 = int(1, 16) or "1", "blocks remembered that have left, for each slot";
}

impl Build for Lirs {
    const INFO: Info = Info {
        name: "lirs",
        summary: "blocks asked for again after few others stay; the others pass through a short queue",
        source: "Jiang and Zhang, SIGMETRICS '02; names bounded, as in libCacheSim to one a slot",
        params: PARAMS,
    };

    fn new(slots: u32, params: &Params, _: u64) -> Self {
        let high = part(slots, params.get(HIGH)).clamp(1, slots.max(1));
        let names = slots.saturating_mul(params.get(NAMES));
        let nodes = slots + names.min(u32::MAX - 1 - slots);
        let mut queue_links = Links::new(nodes);
        let mut unused = List::new();
        for name in slots..nodes {
            unused.push_young(&mut queue_links, name);
        }
        Self {
            stack_links: Links::new(nodes),
            stack: List::new(),
            queue_links,
            queue: List::new(),
            names: List::new(),
            unused,
            nodes: Table::of(Node::default(), nodes),
            place_of_name: KeyMap::default(),
            names_written: 0,
            low: 0,
            low_max: slots - high.min(slots),
            slots,
            returning: None,
        }
    }
}

impl Lirs {
    fn unstack(&mut self, node: u32) {
        if std::mem::take(&mut self.nodes[node as usize].is_stacked) {
            self.stack.unlink(&mut self.stack_links, node);
        }
    }

    fn restack(&mut self, node: u32) {
        self.unstack(node);
        self.nodes[node as usize].is_stacked = true;
        self.stack.push_young(&mut self.stack_links, node);
    }

    /// Takes from the old end of the stack what is not low.
    fn prune(&mut self) {
        while self.stack.oldest() != NIL && !self.nodes[self.stack.oldest() as usize].is_low {
            let node = self.stack.oldest();
            self.unstack(node);
            if node >= self.slots {
                self.forget(node);
            }
        }
    }

    /// A name is not needed any more.
    fn forget(&mut self, name: u32) {
        self.place_of_name.remove(&self.nodes[name as usize].key);
        self.names_written += 1;
        self.names.unlink(&mut self.queue_links, name);
        self.unused.push_young(&mut self.queue_links, name);
    }

    /// The low blocks are too many: the one at the old end of the stack becomes a high one.
    fn demote(&mut self) {
        while self.low > self.low_max {
            let node = self.stack.oldest();
            self.nodes[node as usize].is_low = false;
            self.low -= 1;
            self.unstack(node);
            self.queue.push_young(&mut self.queue_links, node);
            self.prune();
        }
    }

    /// A cached block that was high and in the stack is low from now on.
    fn promote(&mut self, slot: u32) {
        self.nodes[slot as usize].is_low = true;
        self.low += 1;
        self.restack(slot);
        self.prune();
        self.demote();
    }

    /// A block that leaves is remembered while it is in the stack.
    fn remember(&mut self, slot: u32) {
        if !self.nodes[slot as usize].is_stacked {
            return;
        }
        if self.unused.len() == 0 {
            let oldest = self.names.oldest();
            self.unstack(oldest);
            self.forget(oldest);
        }
        let name = self.unused.oldest();
        self.unused.unlink(&mut self.queue_links, name);
        self.names.push_young(&mut self.queue_links, name);
        self.nodes[name as usize] = self.nodes[slot as usize];
        self.stack.relabel(&mut self.stack_links, slot, name);
        self.nodes[slot as usize].is_stacked = false;
        self.place_of_name.insert(self.nodes[name as usize].key, u64::from(name));
        self.names_written += 1;
    }
}

impl Eviction for Lirs {
    fn hit(&mut self, slot: u32) {
        let node = self.nodes[slot as usize];
        if node.is_low {
            self.restack(slot);
            self.prune();
        } else if node.is_stacked && self.low_max > 0 {
            self.queue.unlink(&mut self.queue_links, slot);
            self.promote(slot);
        } else {
            self.restack(slot);
            self.queue.make_youngest(&mut self.queue_links, slot);
        }
    }

    fn miss(&mut self, key: BlockKey) {
        self.returning = None;
        if let Some(name) = self.place_of_name.get(&{ key.0 }).copied() {
            self.unstack(name as u32);
            self.forget(name as u32);
            self.returning = Some(key);
        }
    }

    fn evict(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        if let Some(slot) = self.queue.take_first(&mut self.queue_links, &mut may) {
            self.remember(slot);
            return Some(slot);
        }
        // Only low blocks may leave: the one asked for least recently.
        let (nodes, slots) = (&self.nodes, self.slots);
        let slot = self
            .stack
            .first(&self.stack_links, |node| node < slots && nodes[node as usize].is_low && may(node))?;
        self.remove(slot);
        Some(slot)
    }

    fn insert(&mut self, slot: u32, key: BlockKey) {
        let is_returning = self.returning.take_if(|returning| *returning == key).is_some();
        self.nodes[slot as usize] = Node { key: key.0, is_low: false, is_stacked: false };
        if self.low_max > 0 && (is_returning || self.low < self.low_max) {
            self.promote(slot);
        } else {
            self.restack(slot);
            self.queue.push_young(&mut self.queue_links, slot);
        }
    }

    fn remove(&mut self, slot: u32) {
        if std::mem::take(&mut self.nodes[slot as usize].is_low) {
            self.low -= 1;
        } else {
            self.queue.unlink(&mut self.queue_links, slot);
        }
        self.unstack(slot);
        self.prune();
    }

    fn relabel(&mut self, from: u32, to: u32) {
        let node = self.nodes[from as usize];
        self.nodes[to as usize] = node;
        if node.is_stacked {
            self.stack.relabel(&mut self.stack_links, from, to);
        }
        if !node.is_low {
            self.queue.relabel(&mut self.queue_links, from, to);
        }
        self.nodes[from as usize] = Node::default();
    }

    fn coldest(&self, each: &mut dyn FnMut(u32) -> bool) {
        let is_low = |node: u32| node < self.slots && self.nodes[node as usize].is_low;
        let _ = self.queue.visit(&self.queue_links, each)
            && self.stack.visit(&self.stack_links, &mut |node| !is_low(node) || each(node));
    }

    fn favoured(&self) -> u32 {
        self.low
    }

    fn footprint(&self) -> Footprint {
        let links = self.stack_links.footprint() + self.queue_links.footprint();
        let bytes = self.place_of_name.allocation_size() as u64;
        links + self.nodes.footprint() + Footprint { bytes, written: self.names_written }
    }
}
