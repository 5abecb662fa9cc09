//! Collection: who is the victim, and how a group is emptied and erased or given up.

use super::space::State;
use super::{Collection, FULL, PageLog};
use crate::parts::base::{Target, WORN};
use nandscape_core::{Cause, FlashDevice, FlashError, FtlError, Ppn, SimTime, Token};

impl<D: FlashDevice> PageLog<D> {
    /// What a request asks for before its first page is written.
    pub(super) fn make_room_for_request(&mut self, needed: u64, at: SimTime) -> Result<Token, FtlError> {
        match self.collection {
            // Blocks are collected when there is no page at all, so that they have had the longest time to
            // lose pages.
            Collection::Blocks => Ok(Token::NONE),
            Collection::Everything if needed <= self.space.free_pages => Ok(Token::NONE),
            Collection::Everything => self.collect_everything(at),
        }
    }

    /// Collects until `needed` pages are free.
    pub(super) fn make_room(&mut self, needed: u64, at: SimTime) -> Result<Token, FtlError> {
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
        let error = self.base.full(FULL, needed, self.space.free_pages);
        match error {
            FtlError::DeviceFull { reason: WORN, .. } => self.base.turn_read_only(WORN),
            error => error,
        }
    }

    fn collect_blocks(&mut self, needed: u64, at: SimTime) -> Result<Token, FtlError> {
        let mut done = Token::NONE;
        while self.space.free_pages < needed {
            let victim = self.space.full.first_from(self.space.rotor);
            let Some((group, live)) = victim.filter(|(_, live)| *live < self.space.size()) else { break };
            if self.space.spares.is_empty() && u64::from(live) > self.space.free_pages {
                break;
            }
            let collected = self.collect(group, at)?;
            done = self.base.device.join(done, collected);
        }
        Ok(done)
    }

    /// Every group that holds a written page, the first filled first. What was being filled is abandoned.
    fn collect_everything(&mut self, at: SimTime) -> Result<Token, FtlError> {
        while let Some((_, group)) = self.space.next_page().filter(|(_, group)| self.is_begun(*group)) {
            self.space.close(group, false);
        }
        let full = (0..self.space.groups()).filter(|group| self.space.state(*group) == State::Full);
        let mut victims: Vec<u32> = full.collect();
        victims.sort_unstable_by_key(|group| self.space.filled_at(*group));
        let mut done = Token::NONE;
        if victims.iter().all(|group| self.space.live(*group) == self.space.size()) {
            return Ok(done);
        }
        self.base.stats.gc_runs += 1;
        for group in victims {
            let live = u64::from(self.space.live(group));
            if self.space.spares.is_empty() && live > self.space.free_pages {
                // Some group was lost on the way: one further on may have fewer live pages.
                continue;
            }
            let collected = self.collect(group, at)?;
            done = self.base.device.join(done, collected);
        }
        Ok(done)
    }

    fn is_begun(&self, group: u32) -> bool {
        self.space.room(group) < self.space.size()
    }

    /// After a group was lost: makes another spare of what is free or can be emptied into what is free.
    fn refill_spares(&mut self, keep: u64, at: SimTime) -> Result<Token, FtlError> {
        let mut done = Token::NONE;
        while self.space.spares.len() < self.space.wanted_spares {
            if self.space.hold_back(keep) {
                continue;
            }
            let victim = self.space.full.first_from(self.space.rotor);
            let fits = victim.filter(|(_, live)| u64::from(*live) + keep <= self.space.free_pages);
            let Some((group, live)) = fits.filter(|(_, live)| *live < self.space.size()) else { break };
            debug_assert!(live < self.space.size());
            let collected = self.collect(group, at)?;
            done = self.base.device.join(done, collected);
        }
        Ok(done)
    }

    /// Empties failed groups into what is free beyond `keep`, and gives them up.
    fn evacuate(&mut self, keep: u64, at: SimTime) -> Result<(), FtlError> {
        let mut tried = 0;
        while let Some(group) = self.space.failed.get(tried).copied() {
            if u64::from(self.space.live(group)) + keep > self.space.free_pages {
                tried += 1;
                continue;
            }
            self.collect(group, at)?;
        }
        Ok(())
    }

    /// A program failed in a group: nothing more is written to it, and it is given up once it is empty.
    pub(super) fn fail(&mut self, group: u32, page: Ppn, at: SimTime) -> Result<(), FtlError> {
        self.close_failed(group, page);
        self.evacuate(1, at)
    }

    fn close_failed(&mut self, group: u32, page: Ppn) {
        self.space.close(group, true);
        self.failed_blocks.push(self.base.geometry.block_of(page));
        self.base.count_failure();
    }

    /// Copies what a group holds to where there is room, and erases it; a failed one is given up instead.
    pub(super) fn collect(&mut self, group: u32, at: SimTime) -> Result<Token, FtlError> {
        let has_failed = self.space.state(group) == State::Failed;
        if has_failed || self.space.filled_at(group) >= self.safe_before {
            // A copy that outlived its original could not be thrown away.
            self.make_safe(at)?;
        }
        let reads = self.read_live(group, at)?;
        let mut gated = None;
        let mut done = reads;
        for slot in 0..self.moves.len() {
            let (lpn, read) = self.moves[slot];
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
                let to = Target { page, stream: self.space.mark(target), after: read };
                match self.base.program_slot(slot, to, lpn, Cause::Gc, at) {
                    Ok(moved) => {
                        self.map(lpn, page, target);
                        done = self.base.device.join(done, moved);
                        break;
                    }
                    Err(FtlError::Flash(FlashError::ProgramFailed { .. })) => {
                        self.close_failed(target, page);
                    }
                    Err(error) => return Err(error),
                }
            }
            self.base.stats.gc_moved_pages += 1;
        }
        self.base.stats.gc_runs += u64::from(self.collection == Collection::Blocks);
        let lane = self.space.lane_of(group);
        self.space.rotor = if lane as usize + 1 == self.space.lanes.len() { 0 } else { lane + 1 };
        let erased = self.erase(group, has_failed, at, done)?;
        if let Some(lane) = gated {
            let gate = self.space.lanes[lane as usize].gate;
            self.space.lanes[lane as usize].gate = self.base.device.join(gate, erased);
        }
        Ok(self.base.device.join(done, erased))
    }

    /// Reads the live pages of a group into memory, unit first.
    fn read_live(&mut self, group: u32, at: SimTime) -> Result<Token, FtlError> {
        self.moves.clear();
        let mut reads = Token::NONE;
        for place in 0..self.space.size() {
            let page = self.space.page(group, place);
            let Some(lpn) = self.table.logical(page) else { continue };
            let read = self.base.read_slot_or_mark(self.moves.len(), page, Cause::Gc, at)?;
            let read = self.base.both(read, self.before_copies);
            reads = self.base.device.join(reads, read);
            self.moves.push((lpn, read));
        }
        Ok(reads)
    }

    /// Erases a group without live pages, not before `after`, and gives it back to be filled. If a block of
    /// it cannot be erased, or has failed, the group is dissolved.
    fn erase(&mut self, group: u32, has_failed: bool, at: SimTime, after: Token) -> Result<Token, FtlError> {
        debug_assert_eq!(self.space.live(group), 0);
        let blocks: Vec<_> = self.space.blocks(group).collect();
        let mut done = Token::NONE;
        let mut is_whole = true;
        for block in blocks {
            if has_failed && self.failed_blocks.contains(&block) {
                self.failed_blocks.retain(|failed| *failed != block);
                self.base.give_up(block);
                is_whole = false;
                continue;
            }
            if self.base.device.write_pointer(block) == 0 {
                continue;
            }
            match self.base.erase(block, Cause::Gc, at, after)? {
                Some(erased) => done = self.base.device.join(done, erased),
                None => is_whole = false,
            }
        }
        // Not before: if the device takes no erase any more, the group stays what it was.
        if self.space.full.contains(group) {
            self.space.full.remove(group);
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
}
