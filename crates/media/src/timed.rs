//! A medium and a scheduler joined to a flash device, with the counters by cause.
#![expect(clippy::inline_always, reason = "measured: the path of every page, a third fewer instructions")]

use crate::{Medium, Scheduler, TimedOp};
use nandscape_core::{
    BlockId, Capabilities, CauseTable, Completion, FlashDevice, FlashError, Geometry, Issue, Oob, OpCounts,
    PageRead, Ppn, SimTime, Token,
};

/// A [`FlashDevice`] made of state and time.
#[derive(Clone, Debug)]
pub struct Timed<M, S> {
    medium: M,
    scheduler: S,
    causes: CauseTable,
    capabilities: Capabilities,
    page_bytes: u32,
}

impl<M: Medium, S: Scheduler> Timed<M, S> {
    /// Joins a medium and a scheduler for the same geometry.
    pub fn new(medium: M, scheduler: S) -> Self {
        let capabilities = medium.capabilities();
        let page_bytes = medium.geometry().page_bytes;
        Self { medium, scheduler, causes: CauseTable::default(), capabilities, page_bytes }
    }

    /// The medium below.
    pub const fn medium(&self) -> &M {
        &self.medium
    }

    #[inline(always)]
    const fn transfer(&self, asked: u32) -> u32 {
        if self.capabilities.partial_transfer { asked } else { self.page_bytes }
    }
}

impl<M: Medium, S: Scheduler> FlashDevice for Timed<M, S> {
    fn geometry(&self) -> &Geometry {
        self.medium.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    #[inline(always)]
    fn read(
        &mut self,
        page: Ppn,
        transfer: u32,
        data: Option<&mut [u8]>,
        issue: Issue,
    ) -> Result<PageRead, FlashError> {
        let oob = self.medium.read(page, data)?;
        self.causes.row(issue.cause).reads += 1;
        let op = TimedOp::Read { page, transfer: self.transfer(transfer) };
        Ok(PageRead { oob, done: self.scheduler.submit_as(op, issue.cause, issue.at, issue.after) })
    }

    #[inline(always)]
    fn program(
        &mut self,
        page: Ppn,
        oob: Oob,
        transfer: u32,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> Result<Token, FlashError> {
        self.medium.program(page, oob, data)?;
        self.causes.row(issue.cause).programs += 1;
        let op = TimedOp::Program { page, transfer: self.transfer(transfer) };
        Ok(self.scheduler.submit_as(op, issue.cause, issue.at, issue.after))
    }

    #[inline(always)]
    fn erase(&mut self, block: BlockId, issue: Issue) -> Result<Token, FlashError> {
        self.medium.erase(block)?;
        self.causes.row(issue.cause).erases += 1;
        let op = TimedOp::Erase { page: self.medium.geometry().page(block, 0) };
        Ok(self.scheduler.submit_as(op, issue.cause, issue.at, issue.after))
    }

    #[inline(always)]
    fn join(&mut self, a: Token, b: Token) -> Token {
        self.scheduler.join(a, b)
    }

    fn barrier(&mut self, at: SimTime) -> Token {
        self.scheduler.barrier(at)
    }

    fn read_unmapped(&mut self, page: Ppn, transfer: u32, issue: Issue) -> Result<Token, FlashError> {
        self.medium.note_unmapped_read();
        self.causes.row(issue.cause).reads += 1;
        let op = TimedOp::Read { page, transfer: self.transfer(transfer) };
        Ok(self.scheduler.submit_as(op, issue.cause, issue.at, issue.after))
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        self.medium.is_programmed(page)
    }

    fn write_pointer(&self, block: BlockId) -> u32 {
        self.medium.write_pointer(block)
    }

    fn erase_count(&self, block: BlockId) -> u32 {
        self.medium.erase_count(block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.medium.is_bad(block)
    }

    fn completion(&self, token: Token) -> Option<SimTime> {
        self.scheduler.completion(token)
    }

    fn watch(&mut self, token: Token, tag: u64) {
        self.scheduler.watch(token, tag);
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        self.scheduler.advance(until, out);
    }

    fn next_event(&self) -> Option<SimTime> {
        self.scheduler.next_event()
    }

    fn idle_from(&self) -> SimTime {
        self.scheduler.idle_from()
    }

    fn counters(&self) -> &CauseTable {
        &self.causes
    }

    fn medium_totals(&self) -> OpCounts {
        self.medium.totals()
    }

    fn reset_counters(&mut self) {
        self.causes = CauseTable::default();
        self.medium.reset_totals();
    }

    fn reset_time(&mut self, at: SimTime) {
        self.scheduler.reset(at);
    }

    fn program_counts(&self) -> Option<&[u32]> {
        self.medium.program_counts()
    }
}
