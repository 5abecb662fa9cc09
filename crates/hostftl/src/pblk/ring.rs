//! The write buffer in the host's memory: a ring of pages that are written in their order.
//!
//! The map points to a slot until the slot is used again: the device may not give back the pages that it
//! wrote last.

use super::Kind;
use nandscape_core::{Lpn, Ppn, Token};

/// In a map entry: the number of a slot follows.
const CACHED: u32 = 1 << 31;
/// Entries of a window, in which the rate limiter counts.
pub(super) const WINDOW: u32 = 64;

/// A page of the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub lpn: Lpn,
    pub kind: Kind,
    /// Where it was written; none as long as it was not.
    pub place: Ppn,
    /// It is written once this completes: its data was read.
    pub after: Token,
    /// Completes when it is written.
    pub done: Token,
}

/// The ring.
#[derive(Debug)]
pub(super) struct Ring {
    pub slots: Vec<Slot>,
    /// Pages so far, and those of them that were written.
    pub head: u64,
    pub written: u64,
    data: Vec<u8>,
    page_bytes: usize,
    /// Writes of the last pages of users, by their number.
    users: Vec<Token>,
    user_pages: u64,
    users_written: u64,
}

/// The slot that a map entry names.
#[inline]
pub(super) fn slot_of(entry: Ppn) -> Option<usize> {
    (entry.is_some() && entry.0 & CACHED != 0).then_some((entry.0 & !CACHED) as usize)
}

impl Ring {
    pub fn new(entries: u32, page_bytes: u32, stores_data: bool) -> Self {
        let empty =
            Slot { lpn: Lpn::PADDING, kind: Kind::Pad, place: Ppn(0), after: Token::NONE, done: Token::NONE };
        let data = if stores_data { entries as usize * page_bytes as usize } else { 0 };
        Self {
            slots: vec![empty; entries as usize],
            head: 0,
            written: 0,
            data: vec![0; data],
            page_bytes: page_bytes as usize,
            users: vec![Token::NONE; entries as usize],
            user_pages: 0,
            users_written: 0,
        }
    }

    pub const fn entries(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Pages that were not written yet.
    pub const fn waiting(&self) -> u32 {
        (self.head - self.written) as u32
    }

    /// The number of a page's slot.
    #[inline]
    pub const fn index(&self, position: u64) -> usize {
        (position & (self.slots.len() as u64 - 1)) as usize
    }

    /// The map entry of a slot.
    #[inline]
    pub const fn entry(index: usize) -> Ppn {
        Ppn(CACHED | index as u32)
    }

    /// The bytes of a slot; empty where none are kept.
    pub fn data(&self, index: usize) -> &[u8] {
        let start = (index * self.page_bytes).min(self.data.len());
        &self.data[start..(start + self.page_bytes).min(self.data.len())]
    }

    /// Takes the next slot. What was there before is written.
    pub fn push(&mut self, slot: Slot, data: Option<&[u8]>) -> usize {
        let index = self.index(self.head);
        assert!(self.waiting() < self.entries(), "{} pages wait to be written", self.waiting());
        self.slots[index] = slot;
        if !self.data.is_empty() {
            let own = &mut self.data[index * self.page_bytes..(index + 1) * self.page_bytes];
            match data {
                Some(data) => own.copy_from_slice(data),
                None => own.fill(0),
            }
        }
        self.head += 1;
        index
    }

    /// A page of a user enters, of whom at most so many may be in the ring: it does so once this completes.
    pub fn admit(&mut self, most: u32) -> Token {
        let before = self.user_pages.checked_sub(u64::from(most.min(self.entries())));
        let token = before.map_or(Token::NONE, |number| self.users[self.index(number)]);
        let index = self.index(self.user_pages);
        self.users[index] = Token::NONE;
        self.user_pages += 1;
        token
    }

    /// The next page of a user is written.
    pub fn user_written(&mut self, done: Token) {
        let index = self.index(self.users_written);
        self.users[index] = done;
        self.users_written += 1;
    }

    /// Time starts anew.
    pub fn forget_tokens(&mut self) {
        for slot in &mut self.slots {
            (slot.after, slot.done) = (Token::NONE, Token::NONE);
        }
        self.users.fill(Token::NONE);
    }

    pub const fn bytes(&self) -> u64 {
        (self.slots.len() * size_of::<Slot>() + self.users.len() * size_of::<Token>() + self.data.len())
            as u64
    }
}
