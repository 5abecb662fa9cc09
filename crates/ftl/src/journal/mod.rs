//! A journal between a translation layer and a flash device that keeps bytes: what a start after a loss of power needs.
//!
//! The device below keeps with each page whose data it is and how new that data is ([`Oob::seq`]). That alone would give every map back, by
//! reading the OOB of every page, but for pages that the host dropped, which leave no trace on flash. [`Journal`] adds what is missing: records
//! of dropped pages, and from time to time a checkpoint of where the newest data of each logical page is, so that a start reads only the
//! OOB of what was programmed since. It keeps some blocks for itself, which it reports as bad to the layer above.
//!
//! Invariants, each the reason why a start finds what was promised:
//! * the newest version of a logical page is the one with the largest sequence number that no later drop covers; copies carry the number
//!   of what they copy, a little increased, so that they are newer than it and older than what the host wrote next;
//! * an erase waits until everything programmed so far cannot be lost any more, and until the records of drops are written: whatever made
//!   a page of the block superfluous is durable before the page is gone;
//! * a block that still holds the newest version of a logical page is not erased: that would be a bug of the layer;
//! * pages of the journal are programmed one after the other, so that a durable one implies those before it. The last page of a
//!   checkpoint also waits for every program and erase before it, of which its map and its table tell; a checkpoint without its last page does not exist;
//! * blocks of a checkpoint are erased only when the next one is complete;
//! * what no other page tells is written twice: records, the pages that hold something, the last page of a checkpoint. So whatever page of the
//!   journal is lost, an older checkpoint or the OOB of all pages gives the rest.
//!
//! Byte layout: `docs/formats/journal.md`.

mod checkpoint;
mod error;
mod format;
mod held;
mod layout;
mod load;
mod newest;
mod open;
mod pool;
mod records;
mod recover;
mod scan;
mod shape;
mod writer;

pub use error::{JournalError, JournalOptions, Sabotage};

use nandscape_core::recovery::RecoveryReport;
use nandscape_core::{
    BlockId, Capabilities, Cause, CauseTable, Completion, FlashDevice, FlashError, Geometry, Issue, Lpn,
    MediumHealth, Oob, OpCounts, PageRead, Ppn, SimTime, Token,
};
use newest::Newest;
use pool::Meta;
use records::Record;
use scan::read_oob;

/// Sequence numbers of host writes and drops go in steps of this; in between a number counts how often the data was copied, so that the
/// copy made last is the newest one.
const SEQ_STEP: u64 = 1 << 16;

/// The block belongs to the journal.
const RESERVED: u8 = 1;
/// The block failed and was given up.
const RETIRED: u8 = 2;

/// A device with a journal. See the module's documentation.
#[derive(Debug)]
pub struct Journal<D> {
    device: D,
    newest: Newest,
    /// Of the next host write or drop.
    seq: u64,
    /// Completes when the first checkpoint of a new device is durable, before which no data may be there.
    born: Token,
    /// Completes when every program of the layer so far has.
    programmed: Token,
    /// Completes when every erase of the layer so far has. A checkpoint waits for it: a block that it knows as erased, and that was not, would
    /// bring back what was dropped before.
    erased: Token,
    /// Programs of the layer since this start.
    programs: u64,
    /// The checkpoint goes on, or a new one begins, when there were so many programs.
    due: u64,
    /// Something changed since the last complete checkpoint.
    is_touched: bool,
    /// Why nothing is programmed and erased any more.
    stopped: Option<&'static str>,
    /// [`RESERVED`] and [`RETIRED`], for each block.
    flags: Vec<u8>,
    /// Pages whose program failed since the last erase of their block. Whether such a page counts as programmed after a loss of power is not
    /// certain, so a checkpoint does not say so, and the next start reads it.
    doubtful: Vec<Ppn>,
    /// See [`FlashDevice::allow_loss`].
    allows_loss: bool,
    meta: Meta,
    options: JournalOptions,
    report: RecoveryReport,
}

impl<D: FlashDevice> Journal<D> {
    /// What the start found and did.
    pub const fn report(&self) -> &RecoveryReport {
        &self.report
    }

    /// The device below.
    pub const fn inner(&self) -> &D {
        &self.device
    }

    /// The device below, without the journal, which must not be used any more.
    pub fn into_inner(self) -> D {
        self.device
    }

    /// Blocks that the journal keeps for itself.
    pub fn reserved_blocks(&self) -> u32 {
        self.meta.pool_len() as u32
    }

    fn is_reserved(&self, block: BlockId) -> bool {
        self.flags.get(block.index()).is_some_and(|flags| flags & RESERVED != 0)
    }

    #[cold]
    fn stop(&mut self, error: FlashError) {
        if self.stopped.is_none() {
            self.stopped = Some(match error {
                FlashError::ReadOnly { reason } => reason,
                _ => "the journal could not be written",
            });
        }
    }

    /// A program failed.
    #[cold]
    fn failed(&mut self, page: Ppn, error: FlashError) -> FlashError {
        if matches!(error, FlashError::ProgramFailed { .. }) && !self.doubtful.contains(&page) {
            self.doubtful.push(page);
        }
        error
    }

    fn refuse_if_stopped(&self) -> Result<(), FlashError> {
        self.stopped.map_or(Ok(()), |reason| Err(FlashError::ReadOnly { reason }))
    }

    /// Refuses what only a bug of the layer asks for. `Ok` with whether the page is one of the host's.
    #[inline]
    fn check_program(&self, page: Ppn, lpn: Lpn, cause: Cause) -> Result<bool, FlashError> {
        self.refuse_if_stopped()?;
        let block = self.device.geometry().block_of(page);
        if self.is_reserved(block) {
            return Err(FlashError::BadBlock { block });
        }
        if lpn == Lpn::PADDING {
            return Ok(false);
        }
        if !self.newest.has(lpn) {
            let limit = u64::from(self.device.geometry().pages());
            return Err(FlashError::OutOfRange { address: u64::from(lpn.0), limit });
        }
        if cause != Cause::Host && self.newest.get(lpn).is_none() {
            return Err(FlashError::NoCopy { lpn, page });
        }
        Ok(true)
    }
}

impl<D: FlashDevice> FlashDevice for Journal<D> {
    fn geometry(&self) -> &Geometry {
        self.device.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.device.capabilities()
    }

    #[inline]
    fn read(
        &mut self,
        page: Ppn,
        transfer: u32,
        data: Option<&mut [u8]>,
        issue: Issue,
    ) -> Result<PageRead, FlashError> {
        self.device.read(page, transfer, data, issue)
    }

    #[inline]
    fn read_part(
        &mut self,
        page: Ppn,
        start: u32,
        data: &mut [u8],
        issue: Issue,
    ) -> Result<PageRead, FlashError> {
        self.device.read_part(page, start, data, issue)
    }

    #[inline]
    fn program(
        &mut self,
        page: Ppn,
        mut oob: Oob,
        transfer: u32,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> Result<Token, FlashError> {
        let is_mapped = self.check_program(page, oob.lpn, issue.cause)?;
        if issue.cause == Cause::Host {
            oob.seq = self.seq;
        } else if oob.seq % SEQ_STEP < SEQ_STEP - 1 {
            oob.seq += 1;
        }
        let after = self.device.join(issue.after, self.born);
        let done = match self.device.program(page, oob, transfer, data, issue.after(after)) {
            Ok(done) => done,
            Err(error) => return Err(self.failed(page, error)),
        };
        if issue.cause == Cause::Host {
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

    fn erase(&mut self, block: BlockId, issue: Issue) -> Result<Token, FlashError> {
        self.refuse_if_stopped()?;
        if self.is_reserved(block) {
            return Err(FlashError::BadBlock { block });
        }
        if block.index() < self.flags.len() && !self.allows_loss {
            let pages = self.newest.in_block(block.0);
            if pages > 0 {
                return Err(FlashError::HoldsData { block, pages });
            }
        }
        if self.options.sabotage != Sabotage::EraseBeforeJournal {
            self.write_records(issue.at).inspect_err(|error| self.stop(*error))?;
        }
        let mut after = issue.after;
        if self.options.sabotage != Sabotage::EraseWithoutWait {
            let durable = self.device.order(issue.at)?;
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

    #[inline]
    fn join(&mut self, a: Token, b: Token) -> Token {
        self.device.join(a, b)
    }

    fn barrier(&mut self, at: SimTime) -> Result<Token, FlashError> {
        if self.options.sabotage != Sabotage::FlushWithoutJournal && self.meta.has_records() {
            self.refuse_if_stopped()?;
            self.write_records(at).inspect_err(|error| self.stop(*error))?;
        }
        let durable = self.device.barrier(at)?;
        Ok(self.device.join(durable, self.meta.records_done))
    }

    fn drop_pages(&mut self, first: Lpn, count: u32, at: SimTime) -> Result<(), FlashError> {
        self.refuse_if_stopped()?;
        let Some((first, end)) = self.newest.unset_range(first.0, count) else { return Ok(()) };
        self.is_touched = true;
        self.meta.note_drop(first, end, &mut self.seq);
        if self.meta.fills_page() {
            self.write_records(at).inspect_err(|error| self.stop(*error))?;
        }
        Ok(())
    }

    fn newest(&self, lpn: Lpn) -> Option<Ppn> {
        self.newest.get(lpn)
    }

    fn prefer(&mut self, lpn: Lpn, page: Ppn) -> Result<(), FlashError> {
        self.refuse_if_stopped()?;
        let no_copy = FlashError::NoCopy { lpn, page };
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
        self.newest.set(lpn, page);
        self.is_touched = true;
        self.meta.note(Record::Place { page: page.0 });
        Ok(())
    }

    fn allow_loss(&mut self) {
        self.allows_loss = true;
    }

    fn recovery(&self) -> Option<&RecoveryReport> {
        Some(&self.report)
    }

    fn checkpoint(&mut self, at: SimTime) -> Result<Token, FlashError> {
        self.refuse_if_stopped()?;
        if self.is_touched {
            // One under way tells of the time when it began.
            self.meta.abandon_draft();
            // Nothing is under way at a shutdown.
            self.doubtful.clear();
            self.checkpoint_now(at).inspect_err(|error| self.stop(*error))?;
            self.is_touched = false;
        }
        self.barrier(at)
    }

    fn mark_bad(&mut self, block: BlockId) {
        debug_assert_eq!(self.newest.in_block(block.0), 0, "block {} is given up with data", block.0);
        // The device itself hears of it at the next start: until then the copies of what the block held may not be durable, and a bad block
        // cannot be read.
        self.flags[block.index()] |= RETIRED;
        self.is_touched = true;
        self.meta.note(Record::Retire { block: block.0 });
    }

    fn read_unmapped(&mut self, page: Ppn, transfer: u32, issue: Issue) -> Result<Token, FlashError> {
        self.device.read_unmapped(page, transfer, issue)
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        self.device.is_programmed(page)
    }

    fn write_pointer(&self, block: BlockId) -> u32 {
        self.device.write_pointer(block)
    }

    fn erase_count(&self, block: BlockId) -> u32 {
        self.device.erase_count(block)
    }

    /// The journal's own blocks are bad for the layer above.
    fn is_bad(&self, block: BlockId) -> bool {
        self.flags[block.index()] != 0 || self.device.is_bad(block)
    }

    fn is_grown_bad(&self, block: BlockId) -> bool {
        self.flags[block.index()] & RETIRED != 0 || self.device.is_grown_bad(block)
    }

    fn completion(&self, token: Token) -> Option<SimTime> {
        self.device.completion(token)
    }

    fn watch(&mut self, token: Token, tag: u64) {
        self.device.watch(token, tag);
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        self.device.advance(until, out);
    }

    fn next_event(&self) -> Option<SimTime> {
        self.device.next_event()
    }

    fn idle_from(&self) -> SimTime {
        self.device.idle_from()
    }

    fn health(&self) -> MediumHealth {
        self.device.health()
    }

    fn counters(&self) -> &CauseTable {
        self.device.counters()
    }

    fn medium_totals(&self) -> OpCounts {
        self.device.medium_totals()
    }

    fn reset_counters(&mut self) {
        self.device.reset_counters();
    }

    fn reset_time(&mut self, at: SimTime) {
        self.device.reset_time(at);
        self.programmed = Token::NONE;
        self.born = Token::NONE;
        self.erased = Token::NONE;
        self.meta.forget_time();
    }

    fn program_counts(&self) -> Option<&[u32]> {
        self.device.program_counts()
    }
}
