//! A medium and a scheduler joined to a flash device, with the counters by cause.
#![expect(clippy::inline_always, reason = "measured: the path of every page, a third fewer instructions")]

use crate::units::UnitPages;
use crate::{Medium, MediumState, Packing, Scheduler, TimedOp};
use nandscape_core::{
    Archive, Barrier, BlockId, BlockState, Capabilities, CauseTable, Clocked, FlashDevice, FlashError,
    FlashResult, FlashState, Issue, MediumTally, OpCounts, OutOfBand, PageRead, Ppn, ReadResult, Sender,
    SimTime, SlcBlocks, State, StateResult, Stripe, Striped, Token, Way, program_each, state,
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
    /// Blocks with one bit a cell, if there are any.
    slc: Option<SlcBlocks>,
    /// Where pages as a layer sees them are no flash pages.
    layout: Option<Box<Layout>>,
}

/// How pages as a layer sees them lie in flash pages.
#[derive(Clone, Debug)]
enum Layout {
    Packed(Packed),
    Units(UnitPages),
}

/// Compression, and the flash operations that it left, counted apart from the causes.
#[derive(Clone, Copy, Debug)]
struct Packed {
    packing: Packing,
    totals: OpCounts,
}

state!(impl [M: MediumState, S: Scheduler] Timed<M, S> {
    saved: medium, scheduler, causes, unmapped_reads;
    parts: layout;
    fixed: capabilities, page_bytes, slc;
});

impl State for Layout {
    fn state(&mut self, archive: &mut Archive<'_>) -> StateResult {
        match self {
            Self::Packed(packed) => packed.state(archive),
            Self::Units(units) => units.state(archive),
        }
    }
}

state!(impl [] Packed { saved: totals; fixed: packing; });

impl<M: MediumState, S: Scheduler> Timed<M, S> {
    /// Joins a medium and a scheduler for the same geometry.
    pub fn new(medium: M, scheduler: S) -> Self {
        let capabilities = medium.capabilities();
        let page_bytes = medium.geometry().page_bytes;
        let causes = CauseTable::default();
        Self {
            medium,
            scheduler,
            causes,
            capabilities,
            page_bytes,
            unmapped_reads: 0,
            slc: None,
            layout: None,
        }
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
        let packed = Packed { packing, totals: OpCounts::default() };
        Self { layout: Some(Box::new(Layout::Packed(packed))), ..self }
    }

    /// A device whose flash pages hold `units` pages as a layer sees them: the medium has the shape that
    /// [`crate::unit_geometry`] gave, the scheduler that of the flash.
    #[must_use]
    pub fn with_units(mut self, units: u32) -> Self {
        assert!(!self.capabilities.out_of_order_program, "the pages of a block are filled in order");
        self.capabilities.program_pages *= units;
        self.capabilities.units_per_page = units;
        let units = UnitPages::new(self.medium.geometry(), units);
        Self { layout: Some(Box::new(Layout::Units(units))), ..self }
    }

    /// The medium below.
    pub const fn medium(&self) -> &M {
        &self.medium
    }

    /// Reads a page as the layer sees it, where that is no flash page.
    #[inline(never)]
    fn read_laid_out(&mut self, page: Ppn, transfer: u32, is_mapped: bool, issue: Issue) -> Token {
        let transfer = self.transfer(transfer);
        match self.layout.as_deref_mut() {
            Some(Layout::Units(units)) => {
                self.causes.row(issue.cause).reads += 1;
                if let Some(done) = units.take(units.page(page), transfer, &issue) {
                    return done;
                }
                self.read_unit(page, transfer, is_mapped, issue)
            }
            Some(Layout::Packed(packed)) => {
                let packed = *packed;
                self.read_packed(packed, page, is_mapped, issue)
            }
            None => unreachable!("asked only with a layout"),
        }
    }

    /// Reads a unit and those that the issue says follow it, from the controller while their page is open.
    fn read_unit(&mut self, unit: Ppn, transfer: u32, is_mapped: bool, issue: Issue) -> Token {
        let Some(Layout::Units(units)) = self.layout.as_deref_mut() else { return issue.after };
        let (block, index) = units.per_block.split(unit.0);
        if is_mapped && !units.is_full_page(index, self.medium.write_pointer(BlockId(block))) {
            let after = self.scheduler.join(issue.after, *units.arrivals(block));
            return if issue.sender == Sender::Device {
                after
            } else {
                self.scheduler.pass(Way::Out, transfer, issue.at, after)
            };
        }
        let page = units.page(unit);
        let op = TimedOp::Read { page, transfer: transfer + issue.held };
        let done = self.submit(op, unit, issue);
        if issue.held > 0
            && let Some(Layout::Units(units)) = self.layout.as_deref_mut()
        {
            units.brings(page, &issue, done);
        }
        done
    }

    /// Programs a page as the layer sees it, where that is no flash page.
    #[inline(never)]
    fn program_laid_out(&mut self, page: Ppn, transfer: u32, issue: Issue) -> Token {
        match self.layout.as_deref() {
            Some(Layout::Packed(packed)) => {
                let packed = *packed;
                self.program_packed(packed, page, issue)
            }
            _ => self.program_unit(page, transfer, issue),
        }
    }

    /// Takes a unit into the open page of its block; the last one of a page programs it. The program waits
    /// for the units that come from flash; those of the host cross the link in their order.
    fn program_unit(&mut self, unit: Ppn, transfer: u32, issue: Issue) -> Token {
        self.causes.row(issue.cause).programs += 1;
        let transfer = self.transfer(transfer);
        let Some(Layout::Units(units)) = self.layout.as_deref_mut() else { return issue.after };
        let (page, place) = units.per_page.split(unit.0);
        let (block, _) = units.per_block.split(unit.0);
        let earlier = if place == 0 { Token::NONE } else { *units.arrivals(block) };
        let after = self.scheduler.join(earlier, issue.after);
        let others = units.per_page.divisor() - 1;
        if place < others {
            *units.arrivals(block) = after;
            return match issue.sender {
                Sender::Device => issue.after,
                // The rest of a sector may still be on its way from flash; what the host sent is safe.
                Sender::Host => self.scheduler.pass(Way::In, transfer, issue.at, Token::NONE),
                Sender::HostLater => self.scheduler.pass(Way::In, transfer, issue.at, issue.after),
            };
        }
        let held = others * units.unit_bytes + units.unit_bytes.saturating_sub(transfer);
        let op = TimedOp::Program { page: Ppn(page), transfer, held };
        self.submit(op, unit, issue.after(after))
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
        self.keep(packed);
        done
    }

    fn keep(&mut self, counted: Packed) {
        if let Some(Layout::Packed(packed)) = self.layout.as_deref_mut() {
            *packed = counted;
        }
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
        self.keep(packed);
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
        if self.layout.is_some() {
            return Ok(PageRead { oob, done: self.read_laid_out(page, transfer, true, issue) });
        }
        self.causes.row(issue.cause).reads += 1;
        let op = TimedOp::Read { page, transfer: self.transfer(transfer) };
        Ok(PageRead { oob, done: self.submit(op, page, issue) })
    }

    /// Gives programs of the first pages of a stripe to the scheduler.
    #[inline(never)]
    fn time_head(&mut self, stripe: Stripe<'_>, pages: u32, issue: Issue) -> Token {
        let Issue { at, after, sender, .. } = issue;
        let pages_per_block = self.medium.geometry().pages_per_block;
        let blocks = &stripe.blocks[..(pages / stripe.each) as usize];
        let firsts = blocks.iter().map(|block| Ppn(block.0 * pages_per_block + stripe.first));
        if stripe.each == 1 {
            return self.scheduler.submit_programs(firsts, self.page_bytes, sender, at, after);
        }
        let all = firsts.flat_map(|first| (first.0..first.0 + stripe.each).map(Ppn));
        self.scheduler.submit_programs(all, self.page_bytes, sender, at, after)
    }

    /// Gives an operation to the scheduler. `page` is what the medium knows its place by.
    #[inline(always)]
    fn submit(&mut self, op: TimedOp, page: Ppn, issue: Issue) -> Token {
        let factor = self.medium.slow_factor(page);
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
        let flash_page = |page: Ppn| match self.layout.as_deref() {
            None => Some(page),
            Some(Layout::Units(units)) => Some(units.page(page)),
            Some(Layout::Packed(_)) => None,
        };
        let row = self.causes.row(issue.cause);
        let (op, place) = match error {
            FlashError::Uncorrectable { page } | FlashError::Damaged { page } => {
                let Some(place) = flash_page(page) else { return error };
                row.reads += 1;
                (TimedOp::Read { page: place, transfer: self.page_bytes }, page)
            }
            FlashError::ProgramFailed { page } => {
                let Some(place) = flash_page(page) else { return error };
                row.programs += 1;
                (TimedOp::Program { page: place, transfer: self.page_bytes, held: 0 }, page)
            }
            FlashError::EraseFailed { block } => {
                let page = self.medium.geometry().page(block, 0);
                let Some(place) = flash_page(page) else { return error };
                row.erases += 1;
                (TimedOp::Erase { page: place, pages: 0 }, page)
            }
            _ => return error,
        };
        self.submit(op, place, issue);
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

    /// Not where pages are compressed, which lie in a block as its size allows.
    fn use_slc(&mut self, blocks: SlcBlocks) -> bool {
        let can = !matches!(self.layout.as_deref(), Some(Layout::Packed(_)));
        if can {
            self.slc = Some(blocks);
            self.scheduler.use_slc(blocks);
        }
        can
    }

    fn counters(&self) -> &CauseTable {
        &self.causes
    }

    fn tally(&self) -> MediumTally<'_> {
        let mut tally = self.medium.tally();
        match self.layout.as_deref() {
            Some(Layout::Packed(packed)) => {
                tally.totals = OpCounts { erases: tally.totals.erases, ..packed.totals };
            }
            _ => tally.totals.reads += self.unmapped_reads,
        }
        tally
    }

    fn reset_counters(&mut self) {
        self.causes = CauseTable::default();
        self.medium.reset_tally();
        self.unmapped_reads = 0;
        if let Some(Layout::Packed(packed)) = self.layout.as_deref_mut() {
            packed.totals = OpCounts::default();
        }
    }

    fn reset_time(&mut self, at: SimTime) {
        if let Some(Layout::Units(units)) = self.layout.as_deref_mut() {
            units.reset();
        }
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
        if let Some(slc) = self.slc.filter(|slc| slc.lacks(page)) {
            return Err(FlashError::OutOfOrder { page, expected: slc.pages() });
        }
        if let Err(error) = self.medium.program(page, oob, data) {
            return Err(self.failed(error, issue));
        }
        if self.layout.is_some() {
            return Ok(self.program_laid_out(page, transfer, issue));
        }
        self.causes.row(issue.cause).programs += 1;
        // A device that moves whole pages moves what is held with them.
        let held = if self.capabilities.partial_transfer { issue.held } else { 0 };
        let op = TimedOp::Program { page, transfer: self.transfer(transfer), held };
        Ok(self.submit(op, page, issue))
    }

    #[inline(always)]
    fn program_stripe(
        &mut self,
        stripe: Stripe<'_>,
        oobs: &[O],
        data: Option<&[u8]>,
        issue: Issue,
    ) -> Striped {
        let mut striped = Striped::default();
        if self.slc.is_none() && self.layout.is_none() {
            striped.pages = self.medium.program_head(stripe, oobs);
            striped.done = self.time_head(stripe, striped.pages, issue);
            self.causes.row(issue.cause).programs += u64::from(striped.pages);
        }
        program_each(self, stripe, striped, oobs, data, issue)
    }

    #[inline(always)]
    fn erase(&mut self, block: BlockId, issue: Issue) -> FlashResult<Token> {
        let pages = if issue.held > 0 { issue.held } else { self.medium.write_pointer(block) };
        if let Err(error) = self.medium.erase(block) {
            return Err(self.failed(error, issue));
        }
        self.causes.row(issue.cause).erases += 1;
        let first = self.medium.geometry().page(block, 0);
        let (page, pages) = match self.layout.as_deref() {
            None => (first, pages),
            Some(Layout::Packed(packed)) => (packed.packing.flash_page(block.0, 0), pages),
            // Of a page that is not full nothing is on flash.
            Some(Layout::Units(units)) => (units.page(first), units.per_page.quotient(pages)),
        };
        Ok(self.submit(TimedOp::Erase { page, pages }, first, issue))
    }

    fn mark_bad(&mut self, block: BlockId) {
        self.medium.mark_bad(block);
    }

    fn read_unmapped(&mut self, page: Ppn, transfer: u32, issue: Issue) -> FlashResult<Token> {
        if matches!(self.layout.as_deref(), Some(Layout::Packed(_))) {
            return Ok(self.read_laid_out(page, transfer, false, issue));
        }
        self.unmapped_reads += 1;
        if self.layout.is_some() {
            return Ok(self.read_laid_out(page, transfer, false, issue));
        }
        self.causes.row(issue.cause).reads += 1;
        let op = TimedOp::Read { page, transfer: self.transfer(transfer) };
        Ok(self.submit(op, page, issue))
    }
}

impl<M: MediumState, S: Scheduler> BlockState for Timed<M, S> {
    nandscape_core::delegate_blocks!(self, self.medium);
}

impl<M: MediumState, S: Scheduler> Clocked for Timed<M, S> {
    nandscape_core::delegate_clock!(self, self.scheduler);
}
