//! What a layer above sees: a flash device whose erases wait, and that knows where the newest data is.

use super::error::Sabotage;
use super::records::Record;
use super::scan::read_oob;
use super::{Journal, RETIRED, SEQ_STEP};
use nandscape_core::recovery::RecoveryReport;
use nandscape_core::{
    Barrier, BlockId, BlockState, Clocked, FlashDevice, FlashError, FlashResult, FlashState, Issue,
    JournalRefusal, Lpn, MapJournal, Oob, Ppn, ReadResult, SimTime, SlcBlocks, Token,
};

impl<D: FlashDevice> BlockState for Journal<D> {
    nandscape_core::delegate_blocks!(self, self.device; geometry, is_programmed, write_pointer, erase_count);

    /// The journal's own blocks are bad for the layer above.
    fn is_bad(&self, block: BlockId) -> bool {
        self.flags[block.index()] != 0 || self.device.is_bad(block)
    }
}

nandscape_core::no_state!(impl [D: FlashDevice] Journal<D>: "a journal");

impl<D: FlashDevice> FlashState for Journal<D> {
    nandscape_core::delegate_state!(self, self.device; capabilities, join, pass, counters, tally, reset_counters);

    fn barrier(&mut self, reach: Barrier, at: SimTime) -> FlashResult<Token> {
        if self.options.sabotage != Sabotage::FlushWithoutJournal && !self.meta.records.is_empty() {
            self.refuse_if_stopped()?;
            self.write_records(at).inspect_err(|error| self.stop(*error))?;
        }
        let durable = self.device.barrier(reach, at)?;
        Ok(self.device.join(durable, self.meta.records_done))
    }

    /// Not if the journal is in one of the blocks.
    fn use_slc(&mut self, blocks: SlcBlocks) -> bool {
        !self.meta.pool.iter().any(|block| blocks.contains(*block)) && self.device.use_slc(blocks)
    }

    fn journal(&self) -> Option<&dyn MapJournal> {
        Some(self)
    }

    fn journal_mut(&mut self) -> Option<&mut dyn MapJournal> {
        Some(self)
    }

    fn reset_time(&mut self, at: SimTime) {
        self.device.reset_time(at);
        self.programmed = Token::NONE;
        self.born = Token::NONE;
        self.erased = Token::NONE;
        self.meta.chain = Token::NONE;
        self.meta.records_done = Token::NONE;
    }
}

impl<D: FlashDevice> FlashDevice for Journal<D> {
    #[inline]
    fn read(&mut self, page: Ppn, transfer: u32, data: Option<&mut [u8]>, issue: Issue) -> ReadResult {
        self.device.read(page, transfer, data, issue).map_err(unreadable)
    }

    #[inline]
    fn read_part(&mut self, page: Ppn, start: u32, data: &mut [u8], issue: Issue) -> ReadResult {
        self.device.read_part(page, start, data, issue).map_err(unreadable)
    }

    #[inline]
    fn prepare_read(&self, page: Ppn) {
        self.device.prepare_read(page);
    }

    #[inline]
    fn program(
        &mut self,
        page: Ppn,
        mut oob: Oob,
        transfer: u32,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> FlashResult<Token> {
        let is_mapped = self.check_program(page, oob.lpn, issue.cause)?;
        assert_eq!(self.seq % SEQ_STEP, 0, "the next number of host data, {}", self.seq);
        if issue.cause.writes_anew() {
            oob.seq = self.seq;
        } else if oob.seq % SEQ_STEP < SEQ_STEP - 1 {
            oob.seq += 1;
        }
        let after = self.device.join(issue.after, self.born);
        let done = match self.device.program(page, oob, transfer, data, issue.after(after)) {
            Ok(done) => done,
            Err(error) => return Err(self.failed(page, error)),
        };
        if issue.cause.writes_anew() {
            self.seq += SEQ_STEP;
        }
        if is_mapped {
            self.newest.set(oob.lpn, page);
        }
        self.programmed = self.device.join(self.programmed, done);
        self.is_touched = true;
        self.programs += 1;
        if self.programs >= self.due {
            self.tick(issue.at);
        }
        Ok(done)
    }

    fn erase(&mut self, block: BlockId, issue: Issue) -> FlashResult<Token> {
        self.refuse_if_stopped()?;
        if self.is_reserved(block) {
            return Err(FlashError::BadBlock { block });
        }
        if block.index() < self.flags.len() && !self.allows_loss {
            let pages = self.newest.in_block(block.0);
            if pages > 0 {
                return Err(JournalRefusal::HoldsData { block, pages }.into());
            }
        }
        if self.options.sabotage != Sabotage::EraseBeforeJournal {
            self.write_records(issue.at).inspect_err(|error| self.stop(*error))?;
            let waiting = &self.meta.records;
            assert!(waiting.is_empty(), "{waiting:?} are not written before {block:?} is erased");
        }
        let mut after = issue.after;
        if self.options.sabotage != Sabotage::EraseWithoutWait {
            let durable = self.device.barrier(Barrier::Order, issue.at)?;
            for token in [durable, self.programmed, self.meta.records_done] {
                after = self.device.join(after, token);
            }
        }
        self.is_touched = true;
        let done = self.device.erase(block, issue.after(after))?;
        if !self.doubtful.is_empty() {
            let geometry = *self.device.geometry();
            self.doubtful.retain(|page| geometry.block_of(*page) != block);
        }
        self.erased = self.device.join(self.erased, done);
        Ok(done)
    }

    fn mark_bad(&mut self, block: BlockId) {
        assert_eq!(self.newest.in_block(block.0), 0, "block {} is given up with data", block.0);
        // The device itself hears of it at the next start: until then the copies of what the block held may
        // not be durable, and a bad block cannot be read.
        self.flags[block.index()] |= RETIRED;
        self.is_touched = true;
        self.meta.records.push(Record::Retire { block: block.0 });
    }

    fn read_unmapped(&mut self, page: Ppn, transfer: u32, issue: Issue) -> FlashResult<Token> {
        self.device.read_unmapped(page, transfer, issue)
    }
}

impl<D: FlashDevice> MapJournal for Journal<D> {
    fn drop_pages(&mut self, first: Lpn, count: u32, at: SimTime) -> FlashResult<()> {
        self.refuse_if_stopped()?;
        let Some((first, end)) = self.newest.unset_range(first.0, count) else { return Ok(()) };
        let known = self.newest.end;
        assert!(first < end && end <= known, "pages {first} to {end} are dropped, of {known}");
        self.is_touched = true;
        self.meta.note_drop(first, end, &mut self.seq);
        if self.meta.records.len() >= self.meta.layout.records() {
            self.write_records(at).inspect_err(|error| self.stop(*error))?;
        }
        Ok(())
    }

    fn newest(&self, lpn: Lpn) -> Option<Ppn> {
        self.newest.get(lpn)
    }

    fn prefer(&mut self, lpn: Lpn, page: Ppn) -> FlashResult<()> {
        self.refuse_if_stopped()?;
        let no_copy = FlashError::from(JournalRefusal::NoCopy { lpn, page });
        let known = self.newest.get(lpn).ok_or(no_copy)?;
        if known == page {
            return Ok(());
        }
        let mut version = |page| match read_oob(&mut self.device, page, None) {
            Ok(Some(oob)) if oob.lpn == lpn => Some(oob.seq / SEQ_STEP),
            _ => None,
        };
        if version(page).is_none_or(|found| version(known).is_some_and(|known| known != found)) {
            return Err(no_copy);
        }
        let block = self.device.geometry().block_of(page);
        assert!(!self.is_reserved(block), "{lpn:?} goes to {page:?} of the journal's own {block:?}");
        self.newest.set(lpn, page);
        self.is_touched = true;
        self.meta.records.push(Record::Place { page: page.0 });
        Ok(())
    }

    fn allow_loss(&mut self) {
        self.allows_loss = true;
    }

    fn is_grown_bad(&self, block: BlockId) -> bool {
        self.flags[block.index()] & RETIRED != 0
    }

    fn recovery(&self) -> &RecoveryReport {
        &self.report
    }

    fn checkpoint(&mut self, at: SimTime) -> FlashResult<Token> {
        self.refuse_if_stopped()?;
        if self.is_touched {
            // One under way tells of the time when it began.
            self.meta.draft = None;
            // Nothing is under way at a shutdown.
            self.doubtful.clear();
            self.checkpoint_now(at).inspect_err(|error| self.stop(*error))?;
            assert!(self.meta.records.is_empty(), "{:?} are left at a shutdown", self.meta.records);
            self.is_touched = false;
        }
        self.barrier(Barrier::Durable, at)
    }
}

impl<D: FlashDevice> Clocked for Journal<D> {
    nandscape_core::delegate_clock!(self, self.device);
}

/// To a layer, a mapped page whose OOB is damaged or gone is a page that cannot be read.
#[cold]
const fn unreadable(error: FlashError) -> FlashError {
    match error {
        FlashError::Damaged { page } | FlashError::Erased { page } => FlashError::Uncorrectable { page },
        error => error,
    }
}
