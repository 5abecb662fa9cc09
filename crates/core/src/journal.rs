//! The contract of a journal: it keeps which flash page holds the newest data of a logical page.

use crate::addr::{BlockId, Lpn, Ppn};
use crate::clock::Token;
use crate::device::{Barrier, FlashDevice, FlashError};
use crate::recovery::RecoveryReport;
use crate::time::SimTime;

/// What a journal on the device offers a layer above ([`FlashDevice::journal`]).
pub trait MapJournal {
    /// Notes that logical pages hold nothing from now on (a trim). Durable with the next
    /// [`FlashDevice::barrier`]. A layer calls this for every page it unmaps at the host's wish.
    fn drop_pages(&mut self, first: Lpn, count: u32, at: SimTime) -> Result<(), FlashError>;

    /// Where the newest data of a logical page is, after a start from what the flash holds; `None` where
    /// nothing is. A layer that finds programmed blocks when it is built makes its maps from this.
    fn newest(&self, lpn: Lpn) -> Option<Ppn>;

    /// From now on `page` counts as the place of the newest data of `lpn`. It must hold a copy equal to the
    /// one that [`MapJournal::newest`] gives, with the same [`crate::Oob::seq`] but for the count of copies
    /// in it: after a loss of power both ends of a copy may be there and either may have been taken, and a
    /// layer that wants to erase the one that was has to say that it holds to the other. Refused if there is
    /// no such copy at `page`.
    fn prefer(&mut self, lpn: Lpn, page: Ppn) -> Result<(), FlashError>;

    /// The layer erases blocks before it has rewritten what they hold, and was told that this is wanted: such
    /// an erase is no longer refused.
    fn allow_loss(&mut self);

    /// Whether the block went bad since the device was made ([`FlashDevice::mark_bad`]). The capacity of a
    /// layer counts such blocks, so that it stays what it was.
    fn is_grown_bad(&self, block: BlockId) -> bool;

    /// What the last start found and did.
    fn recovery(&self) -> &RecoveryReport;

    /// Writes down whatever makes the next start quick; for a clean shutdown. Includes a durable
    /// [`FlashDevice::barrier`].
    fn checkpoint(&mut self, at: SimTime) -> Result<Token, FlashError>;
}

/// Leaves a device in a state that opens at once: everything durable, and a checkpoint where it has a
/// journal.
pub fn checkpoint<D: FlashDevice + ?Sized>(device: &mut D, at: SimTime) -> Result<Token, FlashError> {
    match device.journal_mut() {
        Some(journal) => journal.checkpoint(at),
        None => device.barrier(Barrier::Durable, at),
    }
}

/// Whether a block went bad since the device was made, as far as it can tell.
pub fn is_grown_bad<D: FlashDevice + ?Sized>(device: &D, block: BlockId) -> bool {
    device.journal().is_some_and(|journal| journal.is_grown_bad(block))
}

/// Notes that logical pages hold nothing from now on, where there is a journal to note it in.
#[inline]
pub fn drop_pages<D: FlashDevice + ?Sized>(
    device: &mut D,
    first: Lpn,
    count: u32,
    at: SimTime,
) -> Result<(), FlashError> {
    device.journal_mut().map_or(Ok(()), |journal| journal.drop_pages(first, count, at))
}

/// Where the newest data of a logical page is, as far as the device knows.
pub fn newest<D: FlashDevice + ?Sized>(device: &D, lpn: Lpn) -> Option<Ppn> {
    device.journal().and_then(|journal| journal.newest(lpn))
}

/// See [`MapJournal::prefer`].
pub fn prefer<D: FlashDevice + ?Sized>(device: &mut D, lpn: Lpn, page: Ppn) -> Result<(), FlashError> {
    device.journal_mut().map_or(Ok(()), |journal| journal.prefer(lpn, page))
}
