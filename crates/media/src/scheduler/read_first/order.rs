//! What must wait for what: conflicts in a block, tokens, and the chain of events when an operation
//! completes.

use super::ReadFirst;
use super::slab::{Kind, NIL, Stage};
use crate::scheduler::GcOrder;

impl ReadFirst {
    /// Lets a new operation wait for the earlier ones of its block that it conflicts with, and lists it
    /// there.
    pub(super) fn order_in_block(&mut self, slot: u32) {
        let block = self.slab[slot].place.block as usize;
        let page = self.slab[slot].place.page;
        match self.slab[slot].kind {
            Kind::Read => {
                let mut other = self.block_writes[block];
                while other != NIL {
                    let write = &self.slab[other];
                    if write.kind == Kind::Erase || page.wrapping_sub(write.place.page) < write.parts.given {
                        // Writes of a block complete in order, so the newest conflict stands for the earlier
                        // ones.
                        if self.rules.gathers && write.kind == Kind::Program {
                            self.read_from_buffer(slot, other);
                        } else {
                            self.slab.follow(other, slot);
                        }
                        break;
                    }
                    other = write.links.older;
                }
                self.slab.link(&mut self.block_reads[block], slot);
            }
            Kind::Program | Kind::Erase => {
                let erase = self.slab[slot].kind == Kind::Erase;
                let pages = self.slab[slot].parts.pages;
                let mut other = self.block_reads[block];
                while other != NIL {
                    let read = &self.slab[other];
                    let older = read.links.older;
                    if erase || read.place.page.wrapping_sub(page) < pages {
                        self.slab.follow(other, slot);
                        self.want(other);
                    }
                    other = older;
                }
                let newest = self.block_writes[block];
                if newest != NIL && self.slab[newest].stage == Stage::Waiting {
                    self.slab[slot].waits += 1;
                }
                self.slab.link(&mut self.block_writes[block], slot);
                if newest != NIL {
                    self.wait_in_block(newest, slot);
                }
            }
            Kind::Join | Kind::Page => {}
        }
    }

    /// A program or an erase comes after another of its block: what of it two queues and gathered pages would
    /// break.
    fn wait_in_block(&mut self, newest: u32, slot: u32) {
        let [before, after] = [&self.slab[newest], &self.slab[slot]];
        if self.rules.options.gc_order != GcOrder::Fifo && before.host != after.host {
            let urgent = after.host && !before.urgent;
            self.slab.follow(newest, slot);
            if urgent {
                self.slab[newest].urgent = true;
                self.urgent += 1;
                for unit in 0..self.dies.len() as u32 {
                    self.mark_die(unit);
                }
            }
        }
        // An erase that waits for the moved pages of its block may wait for a program that is short of pages.
        if self.slab[newest].kind == Kind::Erase && self.slab[newest].stage == Stage::Waiting {
            self.close_all();
        }
    }

    /// One thing that `slot` waited for has happened.
    #[inline]
    pub(super) fn settle(&mut self, slot: u32) {
        let op = &mut self.slab[slot];
        op.waits -= 1;
        if op.waits == 0 {
            match op.kind {
                Kind::Join => self.completing.push(slot),
                Kind::Page => self.page_ready(slot),
                Kind::Read | Kind::Program | Kind::Erase => self.enqueue(slot),
            }
        }
    }

    /// Notes a ready operation, and with it later writes of the block that only waited for their turn.
    pub(super) fn enqueue(&mut self, slot: u32) {
        self.count_under_way(slot);
        if self.slab[slot].kind == Kind::Read {
            self.enter(slot);
            return;
        }
        let mut slot = slot;
        loop {
            let op = &mut self.slab[slot];
            op.stage = Stage::Queued;
            self.ready.push((op.seq, slot));
            let newer = op.links.newer;
            if newer == NIL {
                return;
            }
            let next = &mut self.slab[newer];
            next.waits -= 1;
            if next.waits > 0 {
                return;
            }
            slot = newer;
            self.count_under_way(slot);
        }
    }

    /// Ends an operation, and the joins that end with it.
    pub(super) fn complete(&mut self, slot: u32) {
        self.completing.push(slot);
        self.end_completing();
    }

    /// Ends everything that has completed.
    pub(super) fn end_completing(&mut self) {
        while let Some(slot) = self.completing.pop() {
            let op = &self.slab[slot];
            if op.watch.is_on {
                self.watch.finished.push((op.seq, op.watch.tag));
                self.watch.count -= 1;
            }
            if op.urgent {
                self.urgent -= 1;
            }
            if op.marks.counted {
                self.units.under_way -= 1;
            }
            let block = op.place.block as usize;
            match op.kind {
                Kind::Read => self.slab.unlink(&mut self.block_reads[block], slot),
                Kind::Program => {
                    self.slab.unlink(&mut self.block_writes[block], slot);
                    if self.rules.gathers {
                        self.leave_buffer(slot);
                    }
                }
                Kind::Erase => {
                    self.units.erased(block);
                    self.slab.unlink(&mut self.block_writes[block], slot);
                }
                Kind::Join | Kind::Page => {}
            }
            let mut followers = self.slab.release(slot, self.now_ns);
            while let Some(follower) = self.slab.next_follower(&mut followers) {
                self.settle(follower);
            }
        }
        self.relieve();
    }
}
