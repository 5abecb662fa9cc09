//! Collection: who is the victim, and how a group is emptied and erased or given up.

use super::space::{Group, State};
use super::{Collection, Move, PageLog};
use crate::parts::base::{Target, WORN};
use crate::parts::layer::Strategy as _;
use crate::parts::order::Order;
use nandscape_core::{
    BlockId, Cause, FlashDevice, FlashError, FtlError, FtlResult, Issue, Ppn, SimTime, Token,
};

impl<D: FlashDevice> PageLog<D> {
    /// Before the first page of a request for which there is no room as a whole.
    #[inline(never)]
    pub(super) fn make_room_for_request(&mut self, needed: u64, at: SimTime) -> FtlResult<Token> {
        match (self.base.order, self.collection) {
            (Order::EraseFirst, _) => self.make_room(needed, at),
            // Blocks are collected once no page is free, so that they had the longest time to lose pages.
            (Order::CopyFirst, Collection::Blocks) => Ok(Token::NONE),
            (Order::CopyFirst, Collection::Everything) => self.collect_everything(at),
        }
    }

    /// Collects until `needed` pages are free.
    #[inline(never)]
    pub(super) fn make_room(&mut self, needed: u64, at: SimTime) -> FtlResult<Token> {
        let mut done = match self.collection {
            Collection::Blocks => self.collect_blocks(needed, at)?,
            Collection::Everything => self.collect_everything(at)?,
        };
        if self.space.free_pages < needed {
            return Err(self.no_room(needed));
        }
        let refilled = self.refill_spares(needed, at)?;
        done = self.base.device.join(done, refilled);
        self.evacuate(needed, at)?;
        if self.space.free_pages < needed { Err(self.no_room(needed)) } else { Ok(done) }
    }

    fn no_room(&mut self, needed: u64) -> FtlError {
        let reason = match (self.base.order, self.collection) {
            (Order::EraseFirst, Collection::Everything) => "nothing is left after a whole-device collection",
            _ => "no block with an invalid page",
        };
        self.base.no_room(reason, needed, self.space.free_pages)
    }

    /// Whether a victim's live pages have somewhere to go.
    fn has_target(&self, live: u32) -> bool {
        !self.copies_first() || !self.space.spares.is_empty() || u64::from(live) <= self.space.free_pages
    }

    fn collect_blocks(&mut self, needed: u64, at: SimTime) -> FtlResult<Token> {
        let mut done = Token::NONE;
        while self.space.free_pages < needed {
            let victim = self.space.emptiest();
            let Some((group, live)) = victim.filter(|(_, live)| *live < self.space.size) else { break };
            if !self.has_target(live) {
                break;
            }
            let collected = self.collect(group, at)?;
            done = self.base.device.join(done, collected);
        }
        Ok(done)
    }

    /// Every group that holds a written page; what was being filled is abandoned. Copy-first the first filled
    /// goes first; erase-first the lowest row does, so that the log begins anew at the first row.
    fn collect_everything(&mut self, at: SimTime) -> FtlResult<Token> {
        assert_eq!(self.collection, Collection::Everything, "what is collected when there is no room");
        self.abandon();
        let groups = 0..self.space.groups.len() as u32;
        let mut victims: Vec<u32> =
            groups.filter(|group| self.space.group(*group).state == State::Full).collect();
        if self.copies_first() {
            victims.sort_unstable_by_key(|group| self.space.group(*group).filled_at);
            if victims.iter().all(|group| self.space.group(*group).live == self.space.size) {
                return Ok(Token::NONE);
            }
        }
        self.base.stats.gc_runs += 1;
        let mut done = Token::NONE;
        for group in victims {
            if !self.has_target(self.space.group(group).live) {
                // Some group was lost on the way: one further on may have fewer live pages.
                continue;
            }
            let collected = self.collect_row(group, at)?;
            done = self.base.device.join(done, collected);
        }
        Ok(done)
    }

    /// Collects one group of [`Self::collect_everything`].
    fn collect_row(&mut self, group: u32, at: SimTime) -> FtlResult<Token> {
        let collected = self.collect(group, at);
        if collected.is_err() && !self.copies_first() {
            // Rows further on still hold data, so nothing may be written before a complete collection.
            self.abandon();
        }
        collected
    }

    /// One step of background collection: the victim that gains most, while fewer pages are free than are
    /// wanted. Rows are collected one by one too, which the foreground never does.
    pub(super) fn collect_in_background(
        &mut self,
        wanted_pages: u64,
        at: SimTime,
    ) -> FtlResult<Option<Token>> {
        if self.space.free_pages >= wanted_pages {
            return Ok(None);
        }
        let victim = self.space.most_gain();
        let Some((group, live)) = victim.filter(|(_, live)| self.has_target(*live)) else { return Ok(None) };
        assert!(live < self.space.size, "group {group} with {live} live pages is no gain");
        let collected = match self.collection {
            Collection::Blocks => self.collect(group, at)?,
            Collection::Everything => self.collect_row(group, at)?,
        };
        self.base.stats.gc_runs += u64::from(self.collection == Collection::Everything);
        let refilled = self.refill_spares(1, at)?;
        self.evacuate(1, at)?;
        Ok(Some(self.base.both(collected, refilled)))
    }

    /// Gives up the room of the group that is being filled; erase-first also that of the others.
    fn abandon(&mut self) {
        let is_begun = |this: &Self, group| this.space.group(group).room < this.space.size;
        while let Some((_, group)) = self.space.next_page()
            && (!self.copies_first() || is_begun(self, group))
        {
            self.space.close(group, false);
        }
    }

    /// After a group was lost: makes another spare of what is free or can be emptied into what is free.
    fn refill_spares(&mut self, keep: u64, at: SimTime) -> FtlResult<Token> {
        let mut done = Token::NONE;
        while self.space.spares.len() < self.space.wanted_spares {
            if self.space.hold_back(keep) {
                continue;
            }
            let victim = self.space.emptiest();
            let fits = victim.filter(|(_, live)| u64::from(*live) + keep <= self.space.free_pages);
            let Some((group, _)) = fits.filter(|(_, live)| *live < self.space.size) else { break };
            let collected = self.collect(group, at)?;
            done = self.base.device.join(done, collected);
        }
        Ok(done)
    }

    /// Empties failed groups into what is free beyond `keep`, and gives them up.
    fn evacuate(&mut self, keep: u64, at: SimTime) -> FtlResult<()> {
        let mut tried = 0;
        while let Some(group) = self.space.failed.get(tried).copied() {
            if u64::from(self.space.group(group).live) + keep > self.space.free_pages {
                tried += 1;
                continue;
            }
            self.collect(group, at)?;
        }
        Ok(())
    }

    /// A program failed in a group: nothing more is written to it, and it is given up once it is empty.
    pub(super) fn fail(&mut self, group: u32, page: Ppn, at: SimTime) -> FtlResult<()> {
        self.close_failed(group, page);
        self.evacuate(1, at)
    }

    fn close_failed(&mut self, group: u32, page: Ppn) {
        self.space.close(group, true);
        self.failed_blocks.push(self.base.geometry.block_of(page));
        self.base.count_failure();
    }

    /// Empties a group and erases it, in the order of the layer; a failed one is given up instead.
    fn collect(&mut self, group: u32, at: SimTime) -> FtlResult<Token> {
        let state = self.space.group(group).state;
        assert!(matches!(state, State::Full | State::Failed), "group {group} is collected: {state:?}");
        let has_failed = state == State::Failed;
        if self.copies_first() && (has_failed || self.space.group(group).filled_at >= self.safe_before) {
            // A copy that outlived its original could not be thrown away.
            self.make_durable(at)?;
        }
        let reads = self.read_live(group, at)?;
        if self.copies_first() {
            let (moved, gated) = self.rewrite(reads, at)?;
            self.emptied(group);
            let erased = self.erase(group, has_failed, at, moved)?;
            if let Some(lane) = gated {
                let gate = self.space.lanes[lane as usize].gate;
                self.space.lanes[lane as usize].gate = self.base.device.join(gate, erased);
            }
            return Ok(self.base.device.join(moved, erased));
        }
        let erased = self.erase(group, has_failed, at, reads)?;
        let done = self.base.device.join(reads, erased);
        if self.space.group(group).state == State::Gone {
            return Ok(done);
        }
        self.emptied(group);
        let (moved, _) = self.rewrite(done, at)?;
        Ok(moved)
    }

    /// A group was emptied as far as it can be.
    fn emptied(&mut self, group: u32) {
        self.base.stats.gc_runs += u64::from(self.collection == Collection::Blocks);
        self.space.turn_rotor(group);
    }

    /// Programs what waits in memory; completes with `done`. Gives the lane of the first spare that it took.
    fn rewrite(&mut self, mut done: Token, at: SimTime) -> FtlResult<(Token, Option<u32>)> {
        let mut gated = None;
        let issue = Issue::new(at, Cause::Gc);
        for index in 0..self.moves.len() {
            let Move { slot, lpn, read } = self.moves[index];
            loop {
                let Some((page, target)) = self.space.next_page() else {
                    let lane = self.space.take_spare(&self.base);
                    gated = gated.or(lane);
                    if lane.is_none() {
                        // What was moved is moved, the rest is where it was.
                        return Err(self.base.turn_read_only(WORN));
                    }
                    continue;
                };
                let Group { mark, state, .. } = *self.space.group(target);
                debug_assert_eq!(state, State::Room, "group {target}, which {lpn:?} goes to");
                let to = Target { page, stream: mark, after: read };
                match self.base.program_slot(slot, to, lpn, issue) {
                    Ok(moved) => {
                        self.map(lpn, page, target);
                        done = self.base.device.join(done, moved);
                        break;
                    }
                    Err(FtlError::Flash(FlashError::ProgramFailed { .. })) if self.copies_first() => {
                        self.close_failed(target, page);
                    }
                    Err(error) => return Err(error),
                }
            }
            self.base.stats.gc_moved_pages += 1;
        }
        Ok((done, gated))
    }

    /// Reads the live pages of a group into memory, unit first.
    fn read_live(&mut self, group: u32, at: SimTime) -> FtlResult<Token> {
        self.moves.clear();
        let mut reads = Token::NONE;
        let live = self.space.group(group).live;
        if live == 0 {
            return Ok(reads);
        }
        let (geometry, width) = (self.base.geometry, self.space.width.divisor());
        let issue = Issue::new(at, Cause::Gc);
        for index in 0..geometry.pages_per_block {
            for slot in 0..width {
                let Some(block) = self.space.block_at(group, slot) else { continue };
                let page = geometry.page(block, index);
                let Some(lpn) = self.table.logical(page) else { continue };
                let slot = self.moves.len();
                let read = self.base.read_to_move(slot, page, issue)?;
                let read = self.base.both(read, self.before_copies);
                reads = self.base.device.join(reads, read);
                self.moves.push(Move { slot, lpn, read });
            }
        }
        assert_eq!(self.moves.len(), live as usize, "live pages of group {group}");
        Ok(reads)
    }

    /// Erases a group, not before `after`, and gives it back to be filled. If a block of it cannot be erased,
    /// or has failed, the group is dissolved; erase-first the block alone leaves it, with its live pages, and
    /// the others are unmapped until they are rewritten.
    fn erase(&mut self, group: u32, has_failed: bool, at: SimTime, after: Token) -> FtlResult<Token> {
        let live = self.space.group(group).live;
        assert!(live == 0 || !self.copies_first(), "group {group} is erased with {live} live pages");
        let mut done = Token::NONE;
        let mut is_whole = true;
        for slot in 0..self.space.width.divisor() {
            let Some(block) = self.space.block_at(group, slot) else { continue };
            if has_failed && self.failed_blocks.contains(&block) {
                self.failed_blocks.retain(|failed| *failed != block);
                self.base.give_up(block);
                is_whole = false;
                continue;
            }
            if self.base.device.write_pointer(block) == 0 {
                continue;
            }
            match self.base.erase(block, Issue::new(at, Cause::Gc).after(after))? {
                Some(erased) => done = self.base.device.join(done, erased),
                None if self.copies_first() => is_whole = false,
                None => self.keep(block),
            }
        }
        // Not before: if the device takes no erase any more, the group stays what it was.
        self.space.take_candidate(group);
        if !self.copies_first() {
            self.release_moves(group);
        }
        if self.space.group(group).state == State::Gone {
            return Ok(done);
        }
        if is_whole {
            self.space.give(&self.base, group);
            return Ok(done);
        }
        self.space.dissolve(&self.base, group);
        while let Some(group) = self.space.form_from_surplus() {
            self.space.give(&self.base, group);
        }
        Ok(done)
    }

    /// A block cannot be erased any more: it keeps its live pages and is never written again.
    fn keep(&mut self, block: BlockId) {
        assert!(!self.copies_first(), "{block:?} was erased before its pages were copied");
        self.space.remove(block);
        let (geometry, table) = (&self.base.geometry, &self.table);
        let is_here = |lpn| table.physical(lpn).is_some_and(|page| geometry.block_of(page) == block);
        self.moves.retain(|kept| !is_here(kept.lpn));
    }

    /// What waits is only in memory now: the erased pages may be the very ones that get other data back.
    fn release_moves(&mut self, group: u32) {
        for waiting in &self.moves {
            self.table.release(waiting.lpn);
        }
        let (live, moves) = (self.base.stats.live_pages, self.moves.len() as u64);
        assert!(moves <= live, "{moves} of {live} live pages of group {group} wait in memory");
        self.base.stats.live_pages = live - moves;
        self.space.groups[group as usize].live = 0;
    }
}
