//! A medium and a scheduler joined to a flash device, with the counters by cause.
#![expect(clippy::inline_always, reason = "measured: the path of every page, a third fewer instructions")]

use crate::{Medium, MediumState, Packing, Scheduler, TimedOp};
use nandscape_core::{
    Barrier, BlockId, BlockState, Capabilities, CauseTable, Clocked, FlashDevice, FlashError, FlashResult,
    FlashState, Issue, MediumTally, OpCounts, OutOfBand, PageRead, Ppn, ReadResult, Sender, SimTime, Token,
    Way,
};

/// A [`FlashDevice`] made of state and time.
#[derive(Clone, Debug)]
pub struct Timed<M, S> {
    medium: M,
    scheduler: S,
    causes: CauseTable,
    capabilities: Capabilities,
    page_bytes: u32,
    /// Reads of places that hold nothing, which the medium does not see.
    unmapped_reads: u64,
    packed: Option<Packed>,
}

/// Compression, and the flash operations that it left, counted apart from the causes.
#[derive(Clone, Copy, Debug)]
struct Packed {
    packing: Packing,
    totals: OpCounts,
}

impl<M: MediumState, S: Scheduler> Timed<M, S> {
    /// Joins a medium and a scheduler for the same geometry.
    pub fn new(medium: M, scheduler: S) -> Self {
        let capabilities = medium.capabilities();
        let page_bytes = medium.geometry().page_bytes;
        let causes = CauseTable::default();
        Self { medium, scheduler, causes, capabilities, page_bytes, unmapped_reads: 0, packed: None }
    }

    /// A device that answers programs from a buffer, which a loss of power empties.
    #[must_use]
    pub fn with_volatile_buffer(mut self) -> Self {
        self.capabilities.lasting_programs = false;
        self
    }

    /// A device that compresses: the medium has the shape that [`Packing::new`] gave, the scheduler that of
    /// the flash.
    #[must_use]
    pub fn compressing(self, packing: Packing) -> Self {
        Self { packed: Some(Packed { packing, totals: OpCounts::default() }), ..self }
    }

    /// The medium below.
    pub const fn medium(&self) -> &M {
        &self.medium
    }

    /// Reads the flash pages in which a compressed page lies. What is not programmed yet is still in the
    /// controller.
    #[cold]
    fn read_packed(&mut self, mut packed: Packed, page: Ppn, is_mapped: bool, issue: Issue) -> Token {
        let packing = packed.packing;
        let (block, slot) = packing.place(page);
        let programmed =
            if is_mapped { packing.programmed(self.medium.write_pointer(BlockId(block))) } else { u32::MAX };
        let mut done = issue.after;
        for page in packing.pages_of(slot).take_while(|page| *page < programmed) {
            packed.totals.reads += 1;
            self.causes.row(issue.cause).reads += 1;
            let transfer = self.transfer(packing.bytes_in(slot, page));
            let op = TimedOp::Read { page: packing.flash_page(block, page), transfer };
            let read = self.scheduler.submit_as(op, issue.sender, issue.at, issue.after);
            done = self.scheduler.join(done, read);
        }
        self.packed = Some(packed);
        done
    }

    /// Programs the flash pages that a compressed page fills.
    #[cold]
    fn program_packed(&mut self, mut packed: Packed, page: Ppn, issue: Issue) -> Token {
        let packing = packed.packing;
        let (block, slot) = packing.place(page);
        let mut done = issue.after;
        for page in packing.programmed(slot)..packing.programmed(slot + 1) {
            packed.totals.programs += 1;
            self.causes.row(issue.cause).programs += 1;
            let op = TimedOp::Program {
                page: packing.flash_page(block, page),
                transfer: self.page_bytes,
                held: 0,
            };
            let program = self.scheduler.submit_as(op, issue.sender, issue.at, issue.after);
            done = self.scheduler.join(done, program);
        }
        self.packed = Some(packed);
        done
    }

    /// Counts a read that the medium has done or refused, and gives it to the scheduler.
    #[inline(always)]
    fn time_read<O>(
        &mut self,
        read: FlashResult<O>,
        page: Ppn,
        transfer: u32,
        issue: Issue,
    ) -> ReadResult<O> {
        let oob = match read {
            Ok(oob) => oob,
            Err(error) => return Err(self.failed(error, issue)),
        };
        if let Some(packed) = self.packed {
            return Ok(PageRead { oob, done: self.read_packed(packed, page, true, issue) });
        }
        self.causes.row(issue.cause).reads += 1;
        let op = TimedOp::Read { page, transfer: self.transfer(transfer) };
        Ok(PageRead { oob, done: self.submit(op, issue) })
    }

    /// Gives an operation to the scheduler.
    #[inline(always)]
    fn submit(&mut self, op: TimedOp, issue: Issue) -> Token {
        let factor = self.medium.slow_factor(op.page());
        if factor > 1 {
            self.drag(op, factor, issue);
        }
        self.scheduler.submit_as(op, issue.sender, issue.at, issue.after)
    }

    /// Keeps a slow die busy, `factor` times as long together with the operation itself.
    #[cold]
    fn drag(&mut self, op: TimedOp, factor: u32, issue: Issue) {
        let idle = match op {
            TimedOp::Read { page, .. } => TimedOp::Read { page, transfer: 0 },
            TimedOp::Program { page, .. } => TimedOp::Program { page, transfer: 0, held: 0 },
            TimedOp::Erase { .. } => op,
        };
        for _ in 1..factor {
            // Not the host's: it neither crosses the link nor takes room in the buffer.
            self.scheduler.submit_as(idle, Sender::Device, issue.at, issue.after);
        }
    }

    /// An operation that was done and failed takes its time and counts, as the medium's own totals do.
    #[cold]
    fn failed(&mut self, error: FlashError, issue: Issue) -> FlashError {
        if self.packed.is_some() {
            return error;
        }
        let row = self.causes.row(issue.cause);
        let op = match error {
            FlashError::Uncorrectable { page } | FlashError::Damaged { page } => {
                row.reads += 1;
                TimedOp::Read { page, transfer: self.page_bytes }
            }
            FlashError::ProgramFailed { page } => {
                row.programs += 1;
                TimedOp::Program { page, transfer: self.page_bytes, held: 0 }
            }
            FlashError::EraseFailed { block } => {
                row.erases += 1;
                TimedOp::Erase { page: self.medium.geometry().page(block, 0), pages: 0 }
            }
            _ => return error,
        };
        self.submit(op, issue);
        error
    }

    #[inline(always)]
    const fn transfer(&self, asked: u32) -> u32 {
        if self.capabilities.partial_transfer { asked } else { self.page_bytes }
    }
}

impl<M: MediumState, S: Scheduler> FlashState for Timed<M, S> {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    #[inline(always)]
    fn join(&mut self, a: Token, b: Token) -> Token {
        self.scheduler.join(a, b)
    }

    fn pass(&mut self, way: Way, bytes: u32, at: SimTime, after: Token) -> Token {
        self.scheduler.pass(way, bytes, at, after)
    }

    fn barrier(&mut self, reach: Barrier, at: SimTime) -> FlashResult<Token> {
        if reach == Barrier::Durable {
            self.medium.sync()?;
        }
        Ok(self.scheduler.barrier(at))
    }

    fn counters(&self) -> &CauseTable {
        &self.causes
    }

    fn tally(&self) -> MediumTally<'_> {
        let mut tally = self.medium.tally();
        match &self.packed {
            None => tally.totals.reads += self.unmapped_reads,
            Some(packed) => tally.totals = OpCounts { erases: tally.totals.erases, ..packed.totals },
        }
        tally
    }

    fn reset_counters(&mut self) {
        self.causes = CauseTable::default();
        self.medium.reset_tally();
        self.unmapped_reads = 0;
        if let Some(packed) = &mut self.packed {
            packed.totals = OpCounts::default();
        }
    }

    fn reset_time(&mut self, at: SimTime) {
        self.scheduler.reset(at);
    }
}

impl<O: OutOfBand, M: Medium<O>, S: Scheduler> FlashDevice<O> for Timed<M, S> {
    #[inline(always)]
    fn read(&mut self, page: Ppn, transfer: u32, data: Option<&mut [u8]>, issue: Issue) -> ReadResult<O> {
        let read = self.medium.read(page, data);
        self.time_read(read, page, transfer, issue)
    }

    fn read_part(&mut self, page: Ppn, start: u32, data: &mut [u8], issue: Issue) -> ReadResult<O> {
        let transfer = data.len() as u32;
        let read = self.medium.read_part(page, start, data);
        self.time_read(read, page, transfer, issue)
    }

    #[inline]
    fn prepare_read(&self, page: Ppn) {
        self.medium.prepare_read(page);
    }

    #[inline(always)]
    fn program(
        &mut self,
        page: Ppn,
        oob: O,
        transfer: u32,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> FlashResult<Token> {
        if let Err(error) = self.medium.program(page, oob, data) {
            return Err(self.failed(error, issue));
        }
        if let Some(packed) = self.packed {
            return Ok(self.program_packed(packed, page, issue));
        }
        self.causes.row(issue.cause).programs += 1;
        // A device that moves whole pages moves what is held with them.
        let held = if self.capabilities.partial_transfer { issue.held } else { 0 };
        let op = TimedOp::Program { page, transfer: self.transfer(transfer), held };
        Ok(self.submit(op, issue))
    }

    #[inline(always)]
    fn erase(&mut self, block: BlockId, issue: Issue) -> FlashResult<Token> {
        let pages = if issue.held > 0 { issue.held } else { self.medium.write_pointer(block) };
        if let Err(error) = self.medium.erase(block) {
            return Err(self.failed(error, issue));
        }
        self.causes.row(issue.cause).erases += 1;
        let page = match &self.packed {
            None => self.medium.geometry().page(block, 0),
            Some(packed) => packed.packing.flash_page(block.0, 0),
        };
        let op = TimedOp::Erase { page, pages };
        Ok(self.submit(op, issue))
    }

    fn mark_bad(&mut self, block: BlockId) {
        self.medium.mark_bad(block);
    }

    fn read_unmapped(&mut self, page: Ppn, transfer: u32, issue: Issue) -> FlashResult<Token> {
        if let Some(packed) = self.packed {
            return Ok(self.read_packed(packed, page, false, issue));
        }
        self.unmapped_reads += 1;
        self.causes.row(issue.cause).reads += 1;
        let op = TimedOp::Read { page, transfer: self.transfer(transfer) };
        Ok(self.submit(op, issue))
    }
}

impl<M: MediumState, S: Scheduler> BlockState for Timed<M, S> {
    nandscape_core::delegate_blocks!(self, self.medium);
}

impl<M: MediumState, S: Scheduler> Clocked for Timed<M, S> {
    nandscape_core::delegate_clock!(self, self.scheduler);
}
