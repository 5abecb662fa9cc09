//! A journal between a translation layer and a flash device that keeps bytes: what a start after a loss of
//! power needs.
//!
//! The device below keeps with each page whose data it is and how new that data is
//! ([`nandscape_core::Oob::seq`]). That alone would give every map back, by reading the OOB of every page,
//! but for pages that the host dropped, which leave no trace on flash. [`Journal`] adds what is missing:
//! records of dropped pages, and from time to time a checkpoint of where the newest data of each logical page
//! is, so that a start reads only the OOB of what was programmed since. It keeps some blocks for itself,
//! which it reports as bad to the layer above.
//!
//! Invariants, each the reason why a start finds what was promised:
//! * the newest version of a logical page is the one with the largest sequence number that no later drop
//!   covers; copies carry the number of what they copy, a little increased, so that they are newer than it
//!   and older than what the host wrote next;
//! * an erase waits until everything programmed so far cannot be lost any more, and until the records of
//!   drops are written: whatever made a page of the block superfluous is durable before the page is gone;
//! * a block that still holds the newest version of a logical page is not erased: that would be a bug of the
//!   layer;
//! * pages of the journal are programmed one after the other, so that a durable one implies those before it.
//!   The last page of a checkpoint also waits for every program and erase before it, of which its map and its
//!   table tell; a checkpoint without its last page does not exist;
//! * blocks of a checkpoint are erased only when the next one is complete;
//! * what no other page tells is written twice: records, the pages that hold something, the last page of a
//!   checkpoint. So whatever page of the journal is lost, an older checkpoint or the OOB of all pages gives
//!   the rest.
//!
//! Byte layout: `docs/formats/journal.md`.

mod checkpoint;
mod device;
mod draft;
mod error;
mod format;
mod held;
mod layout;
mod load;
mod missing;
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
use nandscape_core::{BlockId, Cause, FlashDevice, FlashError, FlashResult, JournalRefusal, Lpn, Ppn, Token};
use newest::Newest;
use pool::Meta;

/// Sequence numbers of host writes and drops go in steps of this; in between a number counts how often the
/// data was copied, so that the copy made last is the newest one.
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
    /// Completes when every erase of the layer so far has. A checkpoint waits for it: a block that it knows
    /// as erased, and that was not, would bring back what was dropped before.
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
    /// Pages whose program failed since the last erase of their block. Whether such a page counts as
    /// programmed after a loss of power is not certain, so a checkpoint does not say so, and the next
    /// start reads it.
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

    fn is_reserved(&self, block: BlockId) -> bool {
        self.flags.get(block.index()).is_some_and(|flags| flags & RESERVED != 0)
    }

    #[cold]
    fn stop(&mut self, error: FlashError) {
        self.stopped.get_or_insert(match error {
            FlashError::ReadOnly { reason } => reason,
            _ => "the journal could not be written",
        });
    }

    #[cold]
    fn failed(&mut self, page: Ppn, error: FlashError) -> FlashError {
        let block = self.device.geometry().block_of(page);
        assert!(!self.is_reserved(block), "{page:?} of the journal's own {block:?}: {error}");
        if matches!(error, FlashError::ProgramFailed { .. }) && !self.doubtful.contains(&page) {
            self.doubtful.push(page);
        }
        error
    }

    fn refuse_if_stopped(&self) -> FlashResult<()> {
        self.stopped.map_or(Ok(()), |reason| Err(FlashError::ReadOnly { reason }))
    }

    /// Refuses what only a bug of the layer asks for. `Ok` with whether the page is one of the host's.
    #[inline]
    fn check_program(&self, page: Ppn, lpn: Lpn, cause: Cause) -> FlashResult<bool> {
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
        if !cause.writes_anew() && self.newest.get(lpn).is_none() {
            return Err(JournalRefusal::NoCopy { lpn, page }.into());
        }
        Ok(true)
    }
}
