//! Operations in flight: a slab with generations, intrusive lists and a pool of dependency edges. Nothing is
//! allocated once the slab has grown to the largest number of operations outstanding at a time.

use nandscape_core::{Archive, State, StateError, StateResult, Token, state};

/// No operation, no edge, end of a list.
pub(super) const NIL: u32 = u32::MAX;
pub(super) const NEVER: u64 = u64::MAX;

/// Low bits of a token that hold the slot number plus one; the rest is the slot's generation. 2^28 operations
/// outstanding would need 26 GiB, and 2^36 reuses of a slot outlast any run.
const SLOT_BITS: u32 = 28;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Program,
    Erase,
    /// No operation of the medium: completes with the last of what it follows.
    Join,
    /// One page of a program that passes through the buffer. The host's completes when it is answered,
    /// another with its program.
    Page,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Free,
    /// Something it must wait for has not happened.
    Waiting,
    /// A host page that waits for room in the buffer.
    Blocked,
    /// A host page on the link.
    Inbound,
    /// Bytes that are on their way to the link alone.
    Passing,
    /// A page of the layer that waits for its turns at the controller.
    Turns,
    /// A page whose data is in the controller.
    Gathered,
    /// In the command core of its channel.
    Core,
    /// In the queue of its die.
    Queued,
    Command,
    /// A program whose data is on the bus.
    Load,
    /// A program that has been loaded in part.
    LoadPaused,
    /// Runs with another operation of its die.
    Joined,
    Array,
    Stopping,
    Stopped,
    /// A read whose data waits for the second register.
    DataHeld,
    /// A read whose data waits for the bus.
    DataReady,
    /// A read whose data is on the bus.
    DataOut,
    /// In the decoder of its channel.
    Decode,
    Outbound,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub page: u32,
    pub block: u32,
    pub unit: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// Pages it is to have, has been given, has loaded.
    pub pages: u32,
    pub given: u32,
    pub loaded: u32,
    /// Pages to be loaded, with those of its partners.
    pub loads: u32,
    /// Pages of the host.
    pub host_pages: u32,
    /// Pages that are in the controller, a bit each.
    pub present: u64,
    /// Reads that wait for a page to be in the controller.
    pub readers: List,
}

/// How far the array is, or the load of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// When it began or goes on.
    pub from_ns: u64,
    /// Time that the array, or the bus for the page being loaded, needs from then on.
    pub left_ns: u64,
    /// The page to be loaded next does not wait for reads any longer; 0 if it has not begun to.
    pub hold_until_ns: u64,
    /// How often the array was stopped.
    pub stops: u32,
}

/// Neighbours among the pending reads, or the pending programs and erases, of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    pub older: u32,
    pub newer: u32,
}

/// Who is told of the completion: the tag counts if it is watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub is_on: bool,
    pub tag: u64,
}

/// What is so of an operation that need not be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// A read that is answered from the buffer.
    pub buffered: bool,
    /// A read that a write of its block waits for.
    pub wanted: bool,
    /// Counted among what is under way.
    pub counted: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Op {
    /// Submission number: breaks ties everywhere.
    pub seq: u64,
    pub watch: Watch,
    pub transfer_ns: u64,
    /// When the event that counts happens; others of this slot in the queue are void.
    pub due_ns: u64,
    pub run: Run,
    /// Counts what became ready at the dies.
    pub order: u64,
    pub parts: Parts,
    /// Of an operation that has its die, those that run with it on other planes.
    pub partners: List,
    /// On the link; of an erase, pages of the block that were programmed.
    pub bytes: u32,
    /// Of a page operation, its program.
    pub lead: u32,
    pub place: Place,
    /// Conditions not met yet.
    pub waits: u32,
    /// Edges to what waits for this to complete, in the order they were added.
    followers: List,
    /// Link of the list it is in: a die queue, the data-out queue or the free list.
    pub next: u32,
    pub links: Links,
    pub kind: Kind,
    pub stage: Stage,
    /// Of the host.
    pub host: bool,
    /// An operation of the layer that one of the host waits for.
    pub urgent: bool,
    pub marks: Marks,
}

impl Op {
    /// Nothing to wait for, nowhere yet.
    const NEW: Self = Self {
        seq: 0,
        watch: Watch { is_on: false, tag: 0 },
        transfer_ns: 0,
        due_ns: NEVER,
        run: Run { from_ns: 0, left_ns: 0, hold_until_ns: 0, stops: 0 },
        order: 0,
        parts: Parts {
            pages: 1,
            given: 0,
            loaded: 0,
            loads: 0,
            host_pages: 0,
            present: 0,
            readers: List::EMPTY,
        },
        partners: List::EMPTY,
        bytes: 0,
        lead: NIL,
        place: Place { page: NIL, block: NIL, unit: NIL },
        waits: 0,
        followers: List::EMPTY,
        next: NIL,
        links: Links { older: NIL, newer: NIL },
        kind: Kind::Join,
        stage: Stage::Waiting,
        host: false,
        urgent: false,
        marks: Marks { buffered: false, wanted: false, counted: false },
    };
}

/// Room for an operation, used again and again.
#[derive(Clone, Debug)]
struct Slot {
    generation: u64,
    /// Completion time of the last operation.
    done_ns: u64,
    op: Op,
}

// Of a slot that is free. What is left of its last operation is set before it is read again.
state!(impl [] Slot { saved: generation, done_ns, op; });

impl State for Op {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        self.next.state(archive)?;
        if matches!(archive, Archive::Load(_)) {
            *self = Self { next: self.next, stage: Stage::Free, ..Self::NEW };
        }
        Ok(())
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self { generation: 0, done_ns: 0, op: Op { stage: Stage::Free, ..Op::NEW } }
    }
}

/// A first-in, first-out list through `Op::next` or `Edge::next`.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub head: u32,
    pub tail: u32,
}

impl List {
    pub const EMPTY: Self = Self { head: NIL, tail: NIL };

    pub const fn is_empty(self) -> bool {
        self.head == NIL
    }
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    follower: u32,
    next: u32,
}

/// The slab. Slots are addressed by `u32`.
#[derive(Clone, Debug)]
pub(super) struct Slab {
    slots: Vec<Slot>,
    free: u32,
    edges: Vec<Edge>,
    free_edge: u32,
    pub live: u32,
    next_seq: u64,
}

/// Of one whose slots are all free: the operations that tokens stand for have completed.
impl State for Slab {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        let Self { slots, free, edges: _, free_edge: _, live, next_seq } = self;
        if *live > 0 {
            return Err(StateError::Busy { what: "read-first" });
        }
        slots.state(archive)?;
        free.state(archive)?;
        next_seq.state(archive)
    }
}

impl std::ops::Index<u32> for Slab {
    type Output = Op;
    #[inline]
    fn index(&self, slot: u32) -> &Op {
        &self.slots[slot as usize].op
    }
}

impl std::ops::IndexMut<u32> for Slab {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut Op {
        &mut self.slots[slot as usize].op
    }
}

impl Slab {
    pub const fn new() -> Self {
        Self { slots: Vec::new(), free: NIL, edges: Vec::new(), free_edge: NIL, live: 0, next_seq: 1 }
    }

    /// Takes a slot for an operation in stage `Waiting` with nothing to wait for.
    #[inline]
    pub fn take(&mut self, kind: Kind) -> u32 {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.live += 1;
        let slot = self.free;
        if slot == NIL {
            let count = self.slots.len();
            assert!((count as u64) < SLOT_MASK, "{count} operations outstanding");
            self.slots.push(Slot { generation: 0, done_ns: 0, op: Op { seq, kind, ..Op::NEW } });
            return count as u32;
        }
        // What has been set by the time it is read is left as it was.
        let op = &mut self[slot];
        let free = op.next;
        (op.seq, op.kind, op.stage) = (seq, kind, Stage::Waiting);
        (op.watch.is_on, op.urgent, op.marks) = (false, false, Op::NEW.marks);
        (op.run.left_ns, op.run.hold_until_ns, op.run.stops) = (0, 0, 0);
        (op.waits, op.due_ns, op.next) = (0, NEVER, NIL);
        (op.parts, op.partners, op.links) = (Op::NEW.parts, List::EMPTY, Op::NEW.links);
        self.free = free;
        slot
    }

    /// Gives a slot back; its token is complete from now on. Returns the followers, to be taken with
    /// [`Slab::next_follower`].
    #[inline]
    pub fn release(&mut self, slot: u32, now_ns: u64) -> List {
        let free = self.free;
        let Slot { generation, done_ns, op } = &mut self.slots[slot as usize];
        debug_assert_ne!(op.stage, Stage::Free);
        op.stage = Stage::Free;
        *generation += 1;
        *done_ns = now_ns;
        op.next = free;
        let followers = std::mem::replace(&mut op.followers, List::EMPTY);
        self.free = slot;
        self.live -= 1;
        followers
    }

    /// Gives all slots back; every token so far is complete.
    pub fn release_all(&mut self, now_ns: u64) {
        for slot in 0..self.slots.len() as u32 {
            if self[slot].stage != Stage::Free {
                self.release(slot, now_ns);
            }
        }
        self.edges.clear();
        self.free_edge = NIL;
    }

    /// Lets `follower` wait for `slot` to complete.
    #[inline]
    pub fn follow(&mut self, slot: u32, follower: u32) {
        let edge = Edge { follower, next: NIL };
        let id = if self.free_edge == NIL {
            self.edges.push(edge);
            self.edges.len() as u32 - 1
        } else {
            let id = self.free_edge;
            self.free_edge = self.edges[id as usize].next;
            self.edges[id as usize] = edge;
            id
        };
        let list = self[slot].followers;
        if list.head == NIL {
            self[slot].followers = List { head: id, tail: id };
        } else {
            self.edges[list.tail as usize].next = id;
            self[slot].followers.tail = id;
        }
        self[follower].waits += 1;
    }

    pub fn has_followers(&self, slot: u32) -> bool {
        self[slot].followers.head != NIL
    }

    /// What waits for an operation does so no longer, and is given.
    pub fn take_followers(&mut self, slot: u32) -> List {
        std::mem::replace(&mut self[slot].followers, List::EMPTY)
    }

    /// Takes the first follower of a list that [`Slab::release`] gave.
    #[inline]
    pub fn next_follower(&mut self, list: &mut List) -> Option<u32> {
        let id = list.head;
        if id == NIL {
            return None;
        }
        let Edge { follower, next } = self.edges[id as usize];
        self.edges[id as usize].next = self.free_edge;
        self.free_edge = id;
        list.head = next;
        Some(follower)
    }

    /// Appends a slot to a list.
    #[inline]
    pub fn push_back(&mut self, list: &mut List, slot: u32) {
        self[slot].next = NIL;
        if list.head == NIL {
            list.head = slot;
        } else {
            self[list.tail].next = slot;
        }
        list.tail = slot;
    }

    /// Takes the first slot of a list.
    #[inline]
    pub fn pop_front(&mut self, list: &mut List) -> Option<u32> {
        let slot = list.head;
        if slot == NIL {
            return None;
        }
        list.head = self[slot].next;
        Some(slot)
    }

    /// Puts a list behind another one.
    #[inline]
    pub fn append(&mut self, list: &mut List, rest: List) {
        if list.is_empty() {
            *list = rest;
        } else if !rest.is_empty() {
            self[list.tail].next = rest.head;
            list.tail = rest.tail;
        }
    }

    /// Links a slot as the newest of its block's list, whose newest so far is `newest`.
    #[inline]
    pub fn link(&mut self, newest: &mut u32, slot: u32) {
        self[slot].links.older = *newest;
        if *newest != NIL {
            self[*newest].links.newer = slot;
        }
        *newest = slot;
    }

    /// Takes a slot out of its block's list.
    #[inline]
    pub fn unlink(&mut self, newest: &mut u32, slot: u32) {
        let Links { older, newer } = self[slot].links;
        if older != NIL {
            self[older].links.newer = newer;
        }
        if newer == NIL {
            *newest = older;
        } else {
            self[newer].links.older = older;
        }
    }

    /// Slots in use and free.
    pub const fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// The token of a live slot.
    #[inline]
    pub fn token(&self, slot: u32) -> Token {
        Token((self.slots[slot as usize].generation << SLOT_BITS) | (u64::from(slot) + 1))
    }

    /// The slot of a token that is not complete.
    #[inline]
    pub fn find(&self, token: Token) -> Option<u32> {
        let slot = (token.0 & SLOT_MASK).checked_sub(1)? as u32;
        // The generation grows when a slot is given back, so that equality means in flight.
        let Slot { generation, op, .. } = self.slots.get(slot as usize)?;
        (*generation == token.0 >> SLOT_BITS && op.stage != Stage::Free).then_some(slot)
    }

    /// When a complete token completed, while that is still known.
    pub fn done_ns(&self, token: Token) -> Option<u64> {
        let slot = (token.0 & SLOT_MASK).checked_sub(1)?;
        let Slot { generation, done_ns, op } = self.slots.get(slot as usize)?;
        (*generation == (token.0 >> SLOT_BITS) + 1 && op.stage == Stage::Free).then_some(*done_ns)
    }
}
