//! What a layer asks of the journal of a device, which may have none.

use crate::addr::{BlockId, Lpn, Ppn};
use crate::clock::Token;
use crate::device::{Barrier, FlashResult, FlashState};
use crate::time::SimTime;

/// Leaves a device in a state that opens at once: everything durable, and a checkpoint where it has a
/// journal.
pub fn checkpoint<D: FlashState + ?Sized>(device: &mut D, at: SimTime) -> FlashResult<Token> {
    match device.journal_mut() {
        Some(journal) => journal.checkpoint(at),
        None => device.barrier(Barrier::Durable, at),
    }
}

/// Whether a block went bad since the device was made, as far as it can tell.
pub fn is_grown_bad<D: FlashState + ?Sized>(device: &D, block: BlockId) -> bool {
    device.journal().is_some_and(|journal| journal.is_grown_bad(block))
}

/// Notes that logical pages hold nothing from now on, where there is a journal to note it in.
#[inline]
pub fn drop_pages<D: FlashState + ?Sized>(
    device: &mut D,
    first: Lpn,
    count: u32,
    at: SimTime,
) -> FlashResult<()> {
    device.journal_mut().map_or(Ok(()), |journal| journal.drop_pages(first, count, at))
}

/// Where the newest data of a logical page is, as far as the device knows.
pub fn newest<D: FlashState + ?Sized>(device: &D, lpn: Lpn) -> Option<Ppn> {
    device.journal().and_then(|journal| journal.newest(lpn))
}

/// See [`crate::MapJournal::prefer`].
pub fn prefer<D: FlashState + ?Sized>(device: &mut D, lpn: Lpn, page: Ppn) -> FlashResult<()> {
    device.journal_mut().map_or(Ok(()), |journal| journal.prefer(lpn, page))
}
