//! Garbage collection, static wear levelling and what is done about blocks that fail.

use super::logs::HOST;
use super::{PageMap, ValidPages};
use crate::parts::base::{LOST, READS};
use crate::victim::{BlockInfo, BlockState};
use nandscape_core::{
    BlockId, Cause, FlashDevice, FlashError, FtlError, FtlResult, Issue, Lpn, Oob, Ppn, SimTime, Token,
};

const TOO_FEW_BLOCKS: &str = "too many blocks are worn out or bad";

impl<D: FlashDevice> PageMap<D> {
    /// Before a host write into a domain short of free pages: a step of collection, or all it takes.
    #[inline(never)]
    pub(super) fn make_room(&mut self, domain: usize, log: usize, needed: u64, at: SimTime) -> FtlResult<()> {
        if self.rules.gc_step == 0 {
            return self.reclaim(domain, log, needed, at);
        }
        let this = &self.domains[domain];
        if self.rules.deferred || this.counts.free_pages < this.marks.low_pages {
            self.finish_in_hand(domain, at)?;
            return self.reclaim(domain, log, needed, at);
        }
        self.step(domain, at)
    }

    /// Moves the next pages of the victim in hand, or chooses one, and erases it when it is empty.
    fn step(&mut self, domain: usize, at: SimTime) -> FtlResult<()> {
        if self.domains[domain].victim_in_hand.is_none() {
            self.domains[domain].review(&self.blocks.infos, self.seq, &self.host_bytes.all);
            // A full victim gains nothing; there is still time for the policy to offer another.
            let mut without_gain = 0;
            let Some(victim) = self.choose(domain, &mut without_gain).filter(|_| without_gain == 0) else {
                return Ok(());
            };
            let this = &mut self.domains[domain];
            assert!(this.owns(victim), "victim {victim} of {this:?}");
            this.unseal(victim, &mut self.blocks.infos);
            this.victim_in_hand = Some((victim, Token::NONE));
        }
        self.empty_in_hand(domain, self.rules.gc_step, at)?;
        if self.domains[domain].victim_in_hand.is_none() { self.level_wear(domain, at) } else { Ok(()) }
    }

    /// Empties the victim in hand to the end, if there is one.
    fn finish_in_hand(&mut self, domain: usize, at: SimTime) -> FtlResult<()> {
        if self.domains[domain].victim_in_hand.is_some() {
            self.empty_in_hand(domain, u32::MAX, at)?;
        }
        Ok(())
    }

    /// Moves up to `most` pages of the victim in hand; erases it when none is left.
    fn empty_in_hand(&mut self, domain: usize, most: u32, at: SimTime) -> FtlResult<()> {
        let Some((victim, before)) = self.domains[domain].victim_in_hand.take() else { return Ok(()) };
        let state = self.blocks.infos[victim as usize].state;
        assert_eq!(state, BlockState::Victim, "block {victim}, which is being emptied");
        let issue = Issue::new(at, Cause::Gc);
        let moved = self.empty_or_seal(domain, victim, most, issue)?;
        let moved = self.device.join(before, moved);
        if self.blocks.infos[victim as usize].valid > 0 {
            self.domains[domain].victim_in_hand = Some((victim, moved));
            return Ok(());
        }
        self.erase(domain, victim, issue.after(moved))?;
        Ok(())
    }

    /// As [`Self::empty`]. After an error the pages left are still mapped here: a candidate again.
    fn empty_or_seal(&mut self, domain: usize, victim: u32, most: u32, issue: Issue) -> FtlResult<Token> {
        let moved = self.empty(domain, victim, most, issue);
        if moved.is_err() {
            self.domains[domain].seal(victim, &mut self.blocks.infos, self.seq);
        }
        moved
    }

    /// Foreground GC: collects until the domain has its high watermark of erased space again. Fails when
    /// nothing can be gained and the next program would eat into the block that GC itself needs.
    #[inline(never)]
    pub(super) fn reclaim(&mut self, domain: usize, log: usize, needed: u64, at: SimTime) -> FtlResult<()> {
        let mut without_gain = 0u64;
        self.domains[domain].review(&self.blocks.infos, self.seq, &self.host_bytes.all);
        while self.domains[domain].counts.free_pages < self.domains[domain].marks.high_pages {
            let Some(victim) = self.choose(domain, &mut without_gain) else { break };
            self.collect(domain, victim, Issue::new(at, Cause::Gc))?;
            self.level_wear(domain, at)?;
            if self.trouble.attention && self.lacks_blocks() {
                // Going on would spend the last free pages on victims whose erases may fail as well.
                return Err(self.stop(TOO_FEW_BLOCKS));
            }
        }
        let this = &self.domains[domain];
        if this.counts.free_pages <= u64::from(self.pages_per_block) || this.room(log, true) == 0 {
            return Err(self.full("no block can be collected with a gain", needed));
        }
        Ok(())
    }

    /// A host page found no room in its stream, though there are free pages enough, in partly written blocks
    /// of other streams: losses of power can leave many of those. Collects until the stream has room. Any
    /// block goes whose pages find room with their like.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room_after(
        &mut self,
        error: FtlError,
        domain: usize,
        log: usize,
        at: SimTime,
    ) -> FtlResult<()> {
        let FtlError::DeviceFull { reason, needed_pages, .. } = error else { return Err(error) };
        if self.domains[domain].pieces.is_none() {
            return Err(self.full(reason, needed_pages));
        }
        self.finish_in_hand(domain, at)?;
        while self.domains[domain].room(log, true) == 0 {
            if let Some(victim) = self.domains[domain].emptiest_that_fits(&self.blocks.infos) {
                self.collect(domain, victim, Issue::new(at, Cause::Gc))?;
            } else if !self.domains[domain].close_leftover(&mut self.blocks.infos, self.seq) {
                return Err(self.full("no block can be collected for the stream", 1));
            }
        }
        Ok(())
    }

    /// Collects victims with a gain until so many pages are free; fewer may be if there are none.
    pub(super) fn collect_up_to(&mut self, domain: usize, free_pages: u64, at: SimTime) -> FtlResult<()> {
        self.finish_in_hand(domain, at)?;
        while self.domains[domain].counts.free_pages < free_pages {
            let mut without_gain = 0;
            let victim = self.choose(domain, &mut without_gain).filter(|_| without_gain == 0);
            let Some(victim) = victim else { break };
            self.collect(domain, victim, Issue::new(at, Cause::Gc))?;
        }
        Ok(())
    }

    /// The next victim, if collecting can gain anything and there is room for what the victim holds.
    fn choose(&mut self, domain: usize, without_gain: &mut u64) -> Option<u32> {
        let this = &mut self.domains[domain];
        if this.counts.invalid_sealed == 0 {
            return None;
        }
        // Fifo and random may draw full blocks; they are overruled long after every block had its turn.
        let blocks = if this.candidates.takes_pieces() { this.marks.shape.blocks_per_piece } else { 1 };
        let victim = if *without_gain > 4 * u64::from(this.counts.sealed / blocks) + 64 {
            this.emptiest(&self.blocks.infos)
        } else {
            this.pick(&self.blocks.infos, self.seq)
        }?;
        let BlockInfo { valid, state } = self.blocks.infos[victim as usize];
        assert_eq!(state, BlockState::Sealed, "block {victim}, which is a candidate");
        let part = this.part(victim - this.base);
        match this.candidates.gains(valid, part, self.pages_per_block) {
            Some(true) => *without_gain = 0,
            Some(false) => *without_gain += 1,
            None => {}
        }
        let fits = |victim: u32, valid: u32| {
            (u64::from(valid) <= this.room(this.target(victim, false), false)).then_some(victim)
        };
        // A loss of power may have used up the room for what the policy wants, and left blocks that only wait
        // for their erase.
        fits(victim, valid).or_else(|| {
            let least = this.emptiest(&self.blocks.infos)?;
            fits(least, self.blocks.infos[least as usize].valid)
        })
    }

    /// Background GC in the host's idle time: victims with a gain only, each started where the previous one
    /// ended. With a scheduler that does not know ends at submission, one victim for each domain and
    /// call.
    pub(super) fn collect_in_background(&mut self, at: SimTime, until: SimTime) -> FtlResult<()> {
        for domain in 0..self.domains.len() {
            self.finish_in_hand(domain, at)?;
            let mut now = at.max(self.device.idle_from());
            while now < until
                && self.domains[domain].counts.free_pages < self.domains[domain].marks.background_pages
            {
                let mut without_gain = 0;
                let victim = self.choose(domain, &mut without_gain).filter(|_| without_gain == 0);
                let Some(victim) = victim else { break };
                let erased = self.collect(domain, victim, Issue::new(now, Cause::Gc))?;
                match self.device.completion(erased) {
                    Some(end) => now = end,
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// Empties a sealed block and erases it. Gives the completion of the erase.
    fn collect(&mut self, domain: usize, victim: u32, issue: Issue) -> FtlResult<Token> {
        self.domains[domain].unseal(victim, &mut self.blocks.infos);
        let moved = self.empty_or_seal(domain, victim, u32::MAX, issue)?;
        self.erase(domain, victim, issue.after(moved))
    }

    /// Erases an emptied block, or gives it up. Gives the completion.
    pub(super) fn erase(&mut self, domain: usize, victim: u32, issue: Issue) -> FtlResult<Token> {
        let info = self.blocks.infos[victim as usize];
        assert_eq!((info.valid, info.state), (0, BlockState::Victim), "block {victim}, to be erased");
        self.stats.gc_runs += u64::from(issue.cause == Cause::Gc);
        match self.device.erase(BlockId(victim), issue) {
            Ok(erased) if self.is_slc(victim) => {
                self.blocks.infos[victim as usize].state = BlockState::Cache;
                self.slc.as_deref_mut().expect("a block of it").release(victim);
                Ok(erased)
            }
            Ok(erased) => {
                let all = self.device.join(self.domains[domain].erases.last(), erased);
                self.domains[domain].erases.submitted(all);
                let count = self.device.erase_count(BlockId(victim));
                self.domains[domain].release(victim, count, &mut self.blocks.infos, self.seq);
                Ok(erased)
            }
            Err(
                FlashError::WornOut { .. } | FlashError::EraseFailed { .. } | FlashError::BadBlock { .. },
            ) => {
                self.retire(domain, victim);
                Ok(issue.after)
            }
            Err(error) => {
                if self.is_slc(victim) {
                    self.keep_cached(victim);
                } else {
                    self.domains[domain].seal(victim, &mut self.blocks.infos, self.seq);
                }
                Err(self.refused(error))
            }
        }
    }

    /// Moves up to `most` valid pages of a block. Gives the completion of all the programs.
    pub(super) fn empty(&mut self, domain: usize, block: u32, most: u32, issue: Issue) -> FtlResult<Token> {
        let log = match issue.cause {
            // What is folded is as young as what the host writes past the cache.
            Cause::Fold => HOST,
            cause => self.domains[domain].target(block, cause == Cause::Wear),
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        let is_chosen =
            matches!(self.blocks.infos[block as usize].state, BlockState::Victim | BlockState::Failed);
        assert!(is_chosen, "block {block} is emptied: {:?}", self.blocks.infos[block as usize]);
        let result = self.move_pages(domain, (block, most), log, &mut buffer, issue);
        self.buffer = buffer;
        result.map_err(|error| self.without_room(error))
    }

    /// Copies first and redirects the map afterwards: in a loop of their own the map's cache misses overlap.
    fn move_pages(
        &mut self,
        domain: usize,
        (block, most): (u32, u32),
        log: usize,
        buffer: &mut [u8],
        issue: Issue,
    ) -> FtlResult<Token> {
        assert!(self.moves.is_empty(), "{} moves are left of the last victim", self.moves.len());
        let mut done = Token::NONE;
        let mut last = Ppn::NONE;
        let mut failed = None;
        let mut pages = self.blocks.valid_pages(block);
        while let Some(page) = self.blocks.next_valid(&mut pages) {
            if !buffer.is_empty()
                && let Some(next) = self.blocks.next_valid(&mut { pages })
            {
                self.device.prepare_read(next);
            }
            let along = if self.rules.units_per_page.divisor() > 1 {
                let left = most - self.moves.len() as u32;
                self.bytes_along_in(page, pages, left)
            } else {
                0
            };
            let copied = match self.copy_page(domain, (page, along), log, buffer, issue) {
                Err(FtlError::Flash(FlashError::Uncorrectable { page: of })) if of == page => {
                    self.copy_or_mark(domain, page, log, buffer, issue)
                }
                copied => copied,
            };
            match copied {
                Ok(programmed) => done = self.device.join(done, programmed),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
            last = page;
            if self.moves.len() as u32 == most {
                break;
            }
        }
        let moved = self.moves.len() as u32;
        if moved > 0 {
            self.blocks.clear_to(block, last, moved);
        }
        if let Some(paged) = &mut self.paged {
            self.moves.iter().for_each(|(lpn, _)| paged.note(*lpn));
        }
        for (lpn, target) in self.moves.drain(..) {
            self.map.redirect(lpn, target);
        }
        self.stats.map_updates += u64::from(moved);
        if issue.cause == Cause::Gc {
            self.stats.gc_moved_pages += u64::from(moved);
        }
        failed.map_or(Ok(done), Err)
    }

    /// Bytes of the pages that are moved after `page` and lie in the same flash page; at most `left` are
    /// moved, `page` among them.
    fn bytes_along_in(&self, page: Ppn, mut rest: ValidPages, left: u32) -> u32 {
        let flash_page = self.rules.units_per_page.quotient(page.0);
        let mut count = 0;
        while count + 1 < left
            && let Some(next) = self.blocks.next_valid(&mut rest)
            && self.rules.units_per_page.quotient(next.0) == flash_page
        {
            count += 1;
        }
        count * self.page_bytes
    }

    /// Copies one page to a log and notes the move. The read brings `along` bytes for the next ones.
    #[inline]
    fn copy_page(
        &mut self,
        domain: usize,
        (page, along): (Ppn, u32),
        log: usize,
        buffer: &mut [u8],
        issue: Issue,
    ) -> FtlResult<Token> {
        let page_bytes = self.page_bytes;
        let stores_data = !buffer.is_empty();
        let asked = Issue { held: along, ..issue };
        let read = self.device.read(page, page_bytes, stores_data.then_some(&mut *buffer), asked)?;
        let lpn = read.oob.lpn;
        debug_assert_eq!(self.map.get(lpn), page, "where {lpn:?} is, by the map");
        let data = stores_data.then_some(&*buffer);
        let log = self.paged.as_ref().map_or(log, |paged| paged.log_of(lpn, log));
        let (target, programmed) =
            self.append(domain, log, lpn, Some(read.oob), page_bytes, data, issue.after(read.done))?;
        self.moves.push((lpn, target));
        Ok(programmed)
    }

    /// A page could not be read: tries again, and then leaves a page that says so in its place. The number of
    /// that is the one of the data, like that of any copy, or if that cannot be read either the one of a
    /// host write.
    #[cold]
    #[inline(never)]
    fn copy_or_mark(
        &mut self,
        domain: usize,
        page: Ppn,
        log: usize,
        buffer: &mut [u8],
        issue: Issue,
    ) -> FtlResult<Token> {
        for _ in 1..READS {
            match self.copy_page(domain, (page, 0), log, buffer, issue) {
                Err(FtlError::Flash(FlashError::Uncorrectable { page: of })) if of == page => {}
                copied => return copied,
            }
        }
        let known = match self.device.read(page, 0, None, issue) {
            Ok(read) => Some(read.oob),
            Err(FlashError::Uncorrectable { .. }) => None,
            Err(error) => return Err(self.refused(error)),
        };
        let (oob, cause) = if let Some(oob) = known {
            (oob, issue.cause)
        } else {
            let lpn = self.map.entries().iter().position(|entry| *entry == page);
            let lpn = Lpn(lpn.expect("a valid page is some logical page's") as u32);
            (Oob { lpn, stream: 0, seq: self.seq }, Cause::Host)
        };
        buffer.fill(0);
        let data = if buffer.is_empty() { None } else { Some(&*buffer) };
        debug_assert_eq!(self.map.get(oob.lpn), page, "where {:?}, which is lost, was", oob.lpn);
        let mark = Oob { stream: LOST, ..oob };
        let issue = Issue { cause, ..issue };
        let (target, programmed) =
            self.append(domain, log, oob.lpn, Some(mark), self.page_bytes, data, issue)?;
        self.moves.push((oob.lpn, target));
        Ok(programmed)
    }

    /// Moves cold data off a little-worn block if the wear policy asks for it.
    fn level_wear(&mut self, domain: usize, at: SimTime) -> FtlResult<()> {
        if !self.rules.levels_wear {
            return Ok(());
        }
        let this = &mut self.domains[domain];
        let base = this.base;
        let blocks = &self.blocks.infos[base as usize..(base + this.blocks) as usize];
        let device = &self.device;
        let Some(local) = this.wear.pick(blocks, &|block| device.erase_count(BlockId(base + block))) else {
            return Ok(());
        };
        let block = base + local;
        // GC must find the block it needs for itself after the move.
        let room = u64::from(self.blocks.infos[block as usize].valid) + u64::from(self.pages_per_block);
        let target = this.target(block, true);
        if this.counts.free_pages > room && this.room(target, false) > room {
            self.collect(domain, block, Issue::new(at, Cause::Wear))?;
        }
        Ok(())
    }

    /// The block at the cursor of a log failed a program.
    pub(super) fn abandon(&mut self, domain: usize, log: usize) {
        let block = self.domains[domain].abandon(log, &mut self.blocks.infos);
        self.note_failed(domain, block);
    }

    /// A block failed a program, and is to be emptied and given up.
    pub(super) fn note_failed(&mut self, domain: usize, block: u32) {
        let failed = &self.trouble.failed;
        assert!(!failed.contains(&(domain, block)), "block {block} failed twice: {failed:?}");
        self.trouble.failed.push((domain, block));
        self.trouble.attention = true;
        self.trouble.has_lost_blocks = true;
    }

    fn has_room_for(&self, domain: usize, block: u32) -> bool {
        let this = &self.domains[domain];
        this.room(this.target(block, false), false) > u64::from(self.blocks.infos[block as usize].valid)
    }

    fn retire(&mut self, domain: usize, block: u32) {
        let count = self.device.erase_count(BlockId(block));
        self.device.mark_bad(BlockId(block));
        self.trouble.has_lost_blocks = true;
        if self.is_slc(block) {
            self.blocks.infos[block as usize].state = BlockState::Bad;
            self.slc.as_deref_mut().expect("a block of it").retire();
            return;
        }
        let this = &mut self.domains[domain];
        assert!(this.owns(block), "block {block} is given up by {this:?}");
        this.retire(block, count, &mut self.blocks.infos, self.seq);
        if this.counts.good_blocks < this.marks.needed_blocks {
            self.trouble.attention = true;
        }
    }

    /// Empties blocks that failed a program, and refuses the write when too few blocks are left.
    #[cold]
    pub(super) fn attend(&mut self, needed: u64, at: SimTime) -> FtlResult<()> {
        self.refuse_if_stopped()?;
        while let Some((domain, block)) = self.trouble.failed.pop() {
            let moved = if self.has_room_for(domain, block) {
                self.empty(domain, block, u32::MAX, Issue::new(at, Cause::Gc))
            } else {
                Err(self.full("a block that failed cannot be emptied", needed))
            };
            if let Err(error) = moved {
                self.trouble.failed.push((domain, block));
                return Err(error);
            }
            let info = self.blocks.infos[block as usize];
            assert_eq!((info.valid, info.state), (0, BlockState::Failed), "block {block}, to be given up");
            self.retire(domain, block);
        }
        if self.lacks_blocks() {
            return Err(self.stop(TOO_FEW_BLOCKS));
        }
        self.trouble.attention = false;
        Ok(())
    }

    /// The layer takes no more writes.
    #[cold]
    pub(super) fn stop(&mut self, reason: &'static str) -> FtlError {
        self.trouble.attention = true;
        FtlError::ReadOnly { reason: self.trouble.stopped.get_or_insert(reason) }
    }

    /// What a refusal of the device means: one that writes nothing any more stops the layer.
    #[cold]
    pub(super) fn refused(&mut self, error: FlashError) -> FtlError {
        match error {
            FlashError::ReadOnly { reason } => self.stop(reason),
            error => error.into(),
        }
    }

    #[inline]
    pub(super) fn refuse_if_stopped(&self) -> FtlResult<()> {
        self.trouble.stopped.map_or(Ok(()), |reason| Err(FtlError::ReadOnly { reason }))
    }

    pub(super) fn lacks_blocks(&self) -> bool {
        self.domains.iter().any(|domain| domain.counts.good_blocks < domain.marks.needed_blocks)
    }

    /// There is no room. Where blocks have failed that is why, and it stays so.
    #[cold]
    pub(super) fn full(&mut self, reason: &'static str, needed_pages: u64) -> FtlError {
        if self.trouble.has_lost_blocks {
            self.stop(TOO_FEW_BLOCKS)
        } else {
            self.device_full(reason, needed_pages)
        }
    }

    /// An error after which no more room is made.
    #[cold]
    pub(super) fn without_room(&mut self, error: FtlError) -> FtlError {
        match error {
            FtlError::DeviceFull { reason, needed_pages, .. } => self.full(reason, needed_pages),
            error => error,
        }
    }

    pub(super) fn device_full(&self, reason: &'static str, needed_pages: u64) -> FtlError {
        let good: u64 = self.domains.iter().map(|domain| u64::from(domain.counts.good_blocks)).sum();
        FtlError::DeviceFull {
            reason,
            needed_pages,
            free_pages: self.domains.iter().map(|domain| domain.counts.free_pages).sum(),
            live_pages: self.map.live,
            total_pages: good * u64::from(self.pages_per_block),
        }
    }
}
