//! A device whose type is known only at run time, so that what stands over it is compiled once for all of
//! them.

use crate::addr::{BlockId, Lpn, Ppn};
use crate::cause::{CauseTable, OpCounts};
use crate::clock::{Clocked, Token};
use crate::device::{Capabilities, FlashDevice, FlashError, Issue, MediumHealth, Oob, PageRead};
use crate::geometry::Geometry;
use crate::recovery::RecoveryReport;
use crate::time::SimTime;

/// A flash device of any type. Every method is passed on; one that is added to the trait with a default must
/// be added here too.
pub type AnyDevice = Box<dyn FlashDevice + Send>;

impl FlashDevice for AnyDevice {
    fn geometry(&self) -> &Geometry {
        (**self).geometry()
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn read(
        &mut self,
        page: Ppn,
        transfer: u32,
        data: Option<&mut [u8]>,
        issue: Issue,
    ) -> Result<PageRead, FlashError> {
        (**self).read(page, transfer, data, issue)
    }

    fn read_part(
        &mut self,
        page: Ppn,
        start: u32,
        data: &mut [u8],
        issue: Issue,
    ) -> Result<PageRead, FlashError> {
        (**self).read_part(page, start, data, issue)
    }

    fn prepare_read(&self, page: Ppn) {
        (**self).prepare_read(page);
    }

    fn program(
        &mut self,
        page: Ppn,
        oob: Oob,
        transfer: u32,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> Result<Token, FlashError> {
        (**self).program(page, oob, transfer, data, issue)
    }

    fn erase(&mut self, block: BlockId, issue: Issue) -> Result<Token, FlashError> {
        (**self).erase(block, issue)
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        (**self).join(a, b)
    }

    fn barrier(&mut self, at: SimTime) -> Result<Token, FlashError> {
        (**self).barrier(at)
    }

    fn order(&mut self, at: SimTime) -> Result<Token, FlashError> {
        (**self).order(at)
    }

    fn drop_pages(&mut self, first: Lpn, count: u32, at: SimTime) -> Result<(), FlashError> {
        (**self).drop_pages(first, count, at)
    }

    fn newest(&self, lpn: Lpn) -> Option<Ppn> {
        (**self).newest(lpn)
    }

    fn prefer(&mut self, lpn: Lpn, page: Ppn) -> Result<(), FlashError> {
        (**self).prefer(lpn, page)
    }

    fn allow_loss(&mut self) {
        (**self).allow_loss();
    }

    fn is_grown_bad(&self, block: BlockId) -> bool {
        (**self).is_grown_bad(block)
    }

    fn recovery(&self) -> Option<&RecoveryReport> {
        (**self).recovery()
    }

    fn checkpoint(&mut self, at: SimTime) -> Result<Token, FlashError> {
        (**self).checkpoint(at)
    }

    fn mark_bad(&mut self, block: BlockId) {
        (**self).mark_bad(block);
    }

    fn read_unmapped(&mut self, page: Ppn, transfer: u32, issue: Issue) -> Result<Token, FlashError> {
        (**self).read_unmapped(page, transfer, issue)
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        (**self).is_programmed(page)
    }

    fn write_pointer(&self, block: BlockId) -> u32 {
        (**self).write_pointer(block)
    }

    fn erase_count(&self, block: BlockId) -> u32 {
        (**self).erase_count(block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        (**self).is_bad(block)
    }

    fn health(&self) -> MediumHealth {
        (**self).health()
    }

    fn counters(&self) -> &CauseTable {
        (**self).counters()
    }

    fn medium_totals(&self) -> OpCounts {
        (**self).medium_totals()
    }

    fn reset_counters(&mut self) {
        (**self).reset_counters();
    }

    fn reset_time(&mut self, at: SimTime) {
        (**self).reset_time(at);
    }

    fn program_counts(&self) -> Option<&[u32]> {
        (**self).program_counts()
    }
}

impl Clocked for AnyDevice {
    crate::delegate_clock!(self, (**self));
}
