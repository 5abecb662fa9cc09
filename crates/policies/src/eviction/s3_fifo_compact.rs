//! Small queue, main queue and names in two bytes a slot.

use super::names::Names;
use super::s3_fifo::{self, GHOST, PROMOTE, SMALL};
use super::table::Table;
use super::{Build, Eviction, Footprint, part};
use crate::key::BlockKey;
use nandscape_core::{Info, Params};

/// S3-FIFO without queues. Four bits for each slot say in which queue its block is and how long it stays
/// there; a hand for each queue goes round over the slots, takes one from what is left of the stay of each
/// block of its queue that it meets, and lets go the first that has nothing left. So a block that nobody asks
/// for stays for the time of a queue give or take a fifth in the small queue and a third in the main one,
/// wherever its slot is.
///
/// Departures from the paper: that inexact order; a block that was asked for often enough goes to the main
/// queue at once and not when its turn comes to leave; and the names are fingerprints, so that one new block
/// in 200 is taken for one that returns.
#[derive(Clone, Debug)]
pub struct S3FifoCompact {
    states: States,
    small: Queue,
    main: Queue,
    names: Names,
    main_share: u32,
    promote: u8,
    /// The block of the last miss, if its name was remembered.
    returning: Option<BlockKey>,
    /// The slot that was last chosen, if its block's name is to be remembered.
    leaving: Option<u32>,
}

/// Blocks of a queue, and where its hand stands.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    len: u32,
    hand: u32,
}

impl Build for S3FifoCompact {
    const INFO: Info = Info {
        name: "s3-fifo-compact",
        summary: "s3-fifo in 2 bytes a slot: its queues are hands that go over the slots, its names fingerprints",
        source: "Yang et al., SOSP '23, in the manner of Corbato's clock, 1968",
        params: s3_fifo::PARAMS,
    };

    fn new(slots: u32, params: &Params, _: u64) -> Self {
        Self {
            states: States::new(slots),
            small: Queue::default(),
            main: Queue::default(),
            names: Names::new(part(slots, params.get(GHOST))),
            main_share: slots - part(slots, params.get(SMALL)),
            promote: params.get(PROMOTE),
            returning: None,
            leaving: None,
        }
    }
}

/// Four bits for each slot: 0 where it is empty, 1 to 7 in the small queue, 8 to 15 in the main one.
#[derive(Clone, Debug)]
struct States {
    words: Table<u64>,
    slots: u32,
}

const PER_WORD: u32 = 16;
/// The lowest bit of every state of a word.
const LOWEST: u64 = 0x1111_1111_1111_1111;
const MAIN: u8 = 8;

/// Visits of the hand that a block survives in the main queue: so many after it came, so many more for each
/// hit, and so many at most. Measured: one more or one less of any of them misses more on the traces of
/// docs/cache-simulation.md.
const MAIN_FIRST: u8 = 1;
const MAIN_HIT: u8 = 3;
const MAIN_MOST: u8 = 7;
/// Visits that a block survives in the small queue times the hits that are told apart there.
const SMALL_STATES: u8 = 6;

impl States {
    fn new(slots: u32) -> Self {
        Self { words: Table::of(0, slots.div_ceil(PER_WORD)), slots }
    }

    #[inline]
    fn get(&self, slot: u32) -> u8 {
        (self.words[(slot / PER_WORD) as usize] >> (slot % PER_WORD * 4)) as u8 & 15
    }

    #[inline]
    fn set(&mut self, slot: u32, state: u8) {
        let (word, shift) = (&mut self.words[(slot / PER_WORD) as usize], slot % PER_WORD * 4);
        *word = *word & !(15 << shift) | u64::from(state) << shift;
    }

    /// The first slot from `from` until before `end` that is in this queue.
    #[inline]
    fn next(&self, from: u32, end: u32, is_main: bool) -> Option<u32> {
        let mut index = from / PER_WORD;
        let mut mask = u64::MAX << (from % PER_WORD * 4);
        while index * PER_WORD < end {
            let word = self.words[index as usize];
            let main = word >> 3 & LOWEST;
            let found = if is_main { main } else { (word | word >> 1 | word >> 2) & LOWEST & !main };
            if found & mask != 0 {
                let slot = index * PER_WORD + (found & mask).trailing_zeros() / 4;
                return (slot < end).then_some(slot);
            }
            mask = u64::MAX;
            index += 1;
        }
        None
    }
}

impl S3FifoCompact {
    /// The state of a block that comes to the small queue. Below it lie those with hits and with less of
    /// their stay left.
    const fn small_first(&self) -> u8 {
        (SMALL_STATES / self.promote - 1) * self.promote + 1
    }

    fn queue(&mut self, is_main: bool) -> &mut Queue {
        if is_main { &mut self.main } else { &mut self.small }
    }

    /// What is left of a stay, in visits of the hand.
    const fn left(&self, state: u8) -> u8 {
        if state >= MAIN { state - MAIN } else { (state - 1) / self.promote }
    }

    /// Moves the hand of a queue until it meets a block that has nothing left and may leave.
    #[inline]
    fn sweep(&mut self, is_main: bool, may: &mut impl FnMut(u32) -> bool) -> Option<u32> {
        let taken = if is_main { 1 } else { self.promote };
        let Queue { len, hand } = *self.queue(is_main);
        let longest = u64::from(if is_main { MAIN_MOST } else { SMALL_STATES / self.promote });
        let mut from = hand;
        let mut visits = (longest + 1) * u64::from(len);
        while visits > 0 {
            let Some(slot) = self.states.next(from, self.states.slots, is_main) else {
                from = 0;
                continue;
            };
            let state = self.states.get(slot);
            from = slot + 1;
            if self.left(state) > 0 {
                self.states.set(slot, state - taken);
            } else if may(slot) {
                self.states.set(slot, 0);
                *self.queue(is_main) = Queue { len: len - 1, hand: from };
                self.leaving = (!is_main).then_some(slot);
                return Some(slot);
            }
            visits -= 1;
        }
        self.queue(is_main).hand = from;
        None
    }

    /// Visits the blocks of a queue, those with the least left first; whether `each` never said no.
    fn visit(&self, is_main: bool, each: &mut dyn FnMut(u32) -> bool) -> bool {
        let (queue, longest) =
            if is_main { (self.main, MAIN_MOST) } else { (self.small, SMALL_STATES / self.promote) };
        for left in 0..=longest {
            for (mut from, end) in [(queue.hand, self.states.slots), (0, queue.hand)] {
                while let Some(slot) = self.states.next(from, end, is_main) {
                    if self.left(self.states.get(slot)) == left && !each(slot) {
                        return false;
                    }
                    from = slot + 1;
                }
            }
        }
        true
    }

    const fn is_main_first(&self) -> bool {
        self.main.len > self.main_share || self.small.len == 0
    }
}

impl Eviction for S3FifoCompact {
    #[inline]
    fn hit(&mut self, slot: u32) {
        let state = self.states.get(slot);
        let state = if state >= MAIN {
            (state + MAIN_HIT).min(MAIN + MAIN_MOST)
        } else if (state - 1) % self.promote + 1 < self.promote {
            state + 1
        } else {
            self.small.len -= 1;
            self.main.len += 1;
            MAIN + MAIN_FIRST
        };
        self.states.set(slot, state);
    }

    #[inline]
    fn miss(&mut self, key: BlockKey) {
        self.returning = self.names.take(key).then_some(key);
    }

    #[inline]
    fn evict(&mut self, mut may: impl FnMut(u32) -> bool) -> Option<u32> {
        let is_main = self.is_main_first();
        self.sweep(is_main, &mut may).or_else(|| self.sweep(!is_main, &mut may))
    }

    #[inline]
    fn evicted(&mut self, slot: u32, key: BlockKey) {
        if self.leaving.take() == Some(slot) {
            self.names.push(key);
        }
    }

    #[inline]
    fn insert(&mut self, slot: u32, key: BlockKey) {
        let is_main = self.returning.take_if(|returning| *returning == key).is_some();
        let state = if is_main { MAIN + MAIN_FIRST } else { self.small_first() };
        self.states.set(slot, state);
        self.queue(is_main).len += 1;
    }

    fn remove(&mut self, slot: u32) {
        let is_main = self.states.get(slot) >= MAIN;
        self.queue(is_main).len -= 1;
        self.states.set(slot, 0);
    }

    fn relabel(&mut self, from: u32, to: u32) {
        self.states.set(to, self.states.get(from));
        self.states.set(from, 0);
    }

    fn coldest(&self, each: &mut dyn FnMut(u32) -> bool) {
        let is_main = self.is_main_first();
        let _ = self.visit(is_main, each) && self.visit(!is_main, each);
    }

    fn favoured(&self) -> u32 {
        self.main.len
    }

    fn footprint(&self) -> Footprint {
        self.states.words.footprint() + self.names.buckets.footprint()
    }
}
