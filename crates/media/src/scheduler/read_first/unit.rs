//! Programs that are made of pages: those that pass through the write buffer, and those of several pages
//! ([`Options::program_pages`]).
//!
//! Each page is submitted by itself. Its program operation (the lead) is ready when the last page has been
//! submitted and the data of all of them is in the controller. A page of the host is answered when its data
//! is there; other pages complete with the program. A read of a page whose program has not ended is answered
//! from the controller.
//!
//! A lead that waits for more pages is *open*. It is closed with the pages it has when an erase of its block
//! or a flush wants it, when it holds the room in the buffer that others wait for, when the host waits for an
//! erase that waits for moved pages, and when time would pass without any event while someone waits. The rest
//! of its pages are then programmed by another operation. If then still nothing can happen, a page waits for
//! another one of its own program, and goes on.
//!
//! [`Options::program_pages`]: crate::scheduler::Options::program_pages

use super::ReadFirst;
use super::rules::Rules;
use super::slab::{Kind, NEVER, NIL, Stage};
use nandscape_core::{Sender, Token};

#[derive(Clone, Debug)]
pub(super) struct Units {
    /// The open lead of each block, or `NIL`. Empty where a program is one page.
    by_block: Vec<u32>,
    /// Open leads; the tag of each is its place here.
    pub open: Vec<u32>,
    /// Erases of each block, as far as times depend on it.
    erases: Vec<u32>,
    /// Operations that are ready and not complete and that a write may wait for: all but reads of the host
    /// without a write behind them.
    pub under_way: u32,
}

nandscape_core::state!(impl [] Units { tables: erases; fixed: by_block, open, under_way; });

impl Units {
    pub fn new(blocks: usize, rules: &Rules) -> Self {
        Self {
            by_block: if rules.options.program_pages > 1 { vec![NIL; blocks] } else { Vec::new() },
            open: Vec::new(),
            erases: if rules.options.program_jitter > 0.0 { vec![0; blocks] } else { Vec::new() },
            under_way: 0,
        }
    }

    pub fn reset(&mut self) {
        self.by_block.fill(NIL);
        self.open.clear();
        self.under_way = 0;
    }

    #[inline]
    pub fn erased(&mut self, block: usize) {
        if let Some(count) = self.erases.get_mut(block) {
            *count = count.wrapping_add(1);
        }
    }

    #[inline]
    pub fn erases(&self, block: u32) -> u32 {
        self.erases.get(block as usize).copied().unwrap_or(0)
    }
}

impl ReadFirst {
    pub(super) fn submit_page(
        &mut self,
        page: u32,
        (bytes, held): (u32, u32),
        sender: Sender,
        at_ns: u64,
        after: Token,
    ) -> Token {
        let predecessor = self.slab.find(after);
        let host = sender != Sender::Device;
        let answered = host && self.rules.options.buffer.bytes > 0;
        let lead = self.lead_of(page, host);
        let transfer_ns = self.rules.transfer_ns(bytes + held);
        let program = &mut self.slab[lead];
        program.parts.given += 1;
        program.transfer_ns = program.transfer_ns.max(transfer_ns);
        program.parts.host_pages += u32::from(answered);
        if answered && program.parts.host_pages == 1 {
            self.note_buffered(lead);
        }
        let slot = self.take(Kind::Page, page, answered);
        self.slab[slot].lead = lead;
        self.slab[slot].bytes = bytes;
        if self.slab[lead].parts.given == self.slab[lead].parts.pages {
            self.forget_open(lead);
        }
        if let Some(predecessor) = predecessor {
            // What the host has sent is in the buffer whatever the rest of the page waits for.
            let is_there = answered && sender == Sender::Host;
            self.slab.follow(predecessor, if is_there { lead } else { slot });
        }
        let at_ns = at_ns.max(self.now_ns);
        self.wait_until(slot, if answered { at_ns + self.rules.options.host.write_front_ns } else { at_ns });
        let token = self.slab.token(slot);
        if self.slab[slot].waits == 0 {
            self.page_ready(slot);
        }
        token
    }

    /// The open program that `page` is the next of, or a new one.
    fn lead_of(&mut self, page: u32, host: bool) -> u32 {
        let block = (page / self.rules.pages_per_block) as usize;
        let width = self.rules.program_pages(block as u32);
        if width > 1 {
            let open = self.units.by_block[block];
            if open != NIL {
                if page == self.slab[open].place.page + self.slab[open].parts.given {
                    return open;
                }
                self.close(open);
            }
        }
        let lead = self.take(Kind::Program, page, host);
        let index = page % self.rules.pages_per_block;
        let pages = (width - index % width).min(self.rules.pages_per_block - index);
        let program = &mut self.slab[lead];
        program.transfer_ns = 0;
        program.parts.pages = pages;
        program.waits = pages;
        self.order_in_block(lead);
        if pages > 1 {
            self.units.by_block[block] = lead;
            self.slab[lead].watch.tag = self.units.open.len() as u64;
            self.units.open.push(lead);
        }
        lead
    }

    /// Takes a lead out of the list of the open ones, if it is there.
    fn forget_open(&mut self, lead: u32) {
        let Some(open) = self.units.by_block.get_mut(self.slab[lead].place.block as usize) else { return };
        if *open == lead {
            *open = NIL;
            let index = self.slab[lead].watch.tag as usize;
            self.units.open.swap_remove(index);
            if let Some(moved) = self.units.open.get(index) {
                self.slab[*moved].watch.tag = index as u64;
            }
        }
    }

    /// An open lead waits for no more pages than it has.
    fn close(&mut self, lead: u32) {
        self.forget_open(lead);
        let program = &mut self.slab[lead];
        program.waits -= program.parts.pages - program.parts.given;
        program.parts.pages = program.parts.given;
        if program.waits == 0 {
            self.enqueue(lead);
        }
    }

    /// Closes the open lead of a block that is to be erased.
    pub(super) fn close_block(&mut self, block: u32) {
        if let Some(&lead) = self.units.by_block.get(block as usize)
            && lead != NIL
        {
            self.close(lead);
        }
    }

    pub(super) fn close_all(&mut self) {
        while let Some(&lead) = self.units.open.last() {
            self.close(lead);
        }
    }

    /// Counts an operation that is ready, if a write may wait for it.
    #[inline]
    pub(super) fn count_under_way(&mut self, slot: u32) {
        let op = &mut self.slab[slot];
        if self.rules.gathers && !op.marks.counted && (op.kind != Kind::Read || !op.host || op.marks.wanted) {
            op.marks.counted = true;
            self.units.under_way += 1;
        }
    }

    /// A write waits for a read. One that only waits for its time is as good as ready.
    pub(super) fn want(&mut self, read: u32) {
        let op = &mut self.slab[read];
        op.marks.wanted = true;
        if op.stage != Stage::Waiting || op.due_ns != NEVER {
            self.count_under_way(read);
        }
    }

    /// Whether a page is in the controller that its program waits with, for others that were given.
    fn is_held_up(&self, slot: u32) -> bool {
        let page = &self.slab[slot];
        page.kind == Kind::Page
            && page.stage == Stage::Gathered
            && self.slab.has_followers(slot)
            && self.slab[page.lead].stage == Stage::Waiting
    }

    /// Whether any page is: what waits for it may be a page of its own program.
    pub(super) fn has_held_up(&self) -> bool {
        (0..self.slab.len()).any(|slot| self.is_held_up(slot))
    }

    /// What waits for such pages goes on as if they were programmed: a page of the same program among it
    /// could never be otherwise. Whatever else waits begins earlier than it would on a device.
    pub(super) fn let_go_held_up(&mut self) {
        for slot in 0..self.slab.len() {
            if self.is_held_up(slot) {
                let mut followers = self.slab.take_followers(slot);
                while let Some(follower) = self.slab.next_follower(&mut followers) {
                    self.settle(follower);
                }
                self.end_completing();
            }
        }
    }

    /// Nothing that a page of a program waited for is missing.
    pub(super) fn page_ready(&mut self, slot: u32) {
        let page = &mut self.slab[slot];
        if page.stage == Stage::Gathered {
            // Its program has ended.
            self.completing.push(slot);
        } else if page.host {
            self.ask_for_room(slot);
        } else {
            self.ask_for_turns(slot);
        }
    }

    /// The data of a page of the layer is in the controller.
    pub(super) fn gathered(&mut self, slot: u32) {
        let page = &mut self.slab[slot];
        page.stage = Stage::Gathered;
        let (lead, number) = (page.lead, page.place.page);
        self.slab.follow(lead, slot);
        self.page_present(lead, number);
    }

    pub(super) fn page_present(&mut self, lead: u32, page: u32) {
        let program = &mut self.slab[lead];
        program.parts.present |= 1 << (page - program.place.page);
        if !program.parts.readers.is_empty() {
            self.wake_readers(lead);
        }
        self.settle(lead);
    }

    /// Lets reads go on whose page is in the controller by now.
    fn wake_readers(&mut self, lead: u32) {
        let mut waiting = std::mem::replace(&mut self.slab[lead].parts.readers, super::slab::List::EMPTY);
        while let Some(read) = self.slab.pop_front(&mut waiting) {
            // The read before may have brought what another page waited for.
            let program = &self.slab[lead];
            if program.parts.present >> (self.slab[read].place.page - program.place.page) & 1 == 1 {
                self.settle(read);
            } else {
                self.push_reader(lead, read);
            }
        }
    }

    fn push_reader(&mut self, lead: u32, read: u32) {
        let mut list = self.slab[lead].parts.readers;
        self.slab.push_back(&mut list, read);
        self.slab[lead].parts.readers = list;
    }

    /// A read of a page whose program has not ended needs no flash.
    pub(super) fn read_from_buffer(&mut self, read: u32, lead: u32) {
        self.slab[read].marks.buffered = true;
        let program = &self.slab[lead];
        if program.parts.present >> (self.slab[read].place.page - program.place.page) & 1 == 0 {
            self.slab[read].waits += 1;
            self.push_reader(lead, read);
        }
    }
}
