//! Simulated flash media: state and rules in [`Nand`], time in a [`Scheduler`], both joined to a
//! [`nandscape_core::FlashDevice`] by [`Timed`].
//!
//! A layer may see other pages than the flash has: the device compresses ([`Packing`]), or maps units smaller
//! than a page ([`unit_geometry`]). The medium then keeps the pages of the layer; only time knows those of
//! the flash.
//!
//! State changes at submission, time passes in the scheduler. Decorators (faults, recording) hold another
//! [`Medium`], so a medium with bytes and one without share them.

pub mod checksum;
pub mod faults;
mod nand;
mod packing;
mod payload;
pub mod scheduler;
mod timed;
mod units;

pub use nand::{BadBlocks, Nand, NandOptions};
pub use packing::Packing;
pub use scheduler::fifo::Fifo;
pub use scheduler::read_first::ReadFirst;
pub use scheduler::serial::Serial;
pub use scheduler::{
    BlockTimes, GcOrder, HostLink, Intake, Options, Scheduler, SlcTiming, Suspension, TimedOp, Timing,
    WriteBuffer,
};
pub use timed::Timed;
pub use units::unit_geometry;

use nandscape_core::{
    BlockId, BlockState, Capabilities, FlashResult, MediumTally, Oob, OutOfBand, Ppn, State, Stripe,
};

/// What a flash medium is, whatever its pages hold. Knows no time.
#[auto_impl::auto_impl(Box)]
pub trait MediumState: BlockState + State {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Makes what was programmed and erased so far safe from a failure of the machine that the medium is kept
    /// on: a medium in a file writes it through, one in memory has nothing to do. An error is for ever.
    fn sync(&mut self) -> FlashResult<()> {
        Ok(())
    }

    /// How many times as long as usual an operation on this page takes; 1 but for slow dies ([`faults`]).
    #[inline]
    fn slow_factor(&self, page: Ppn) -> u32 {
        let _ = page;
        1
    }

    /// What it counts.
    fn tally(&self) -> MediumTally<'_>;

    /// Starts counting anew. Wear stays, and so does what it noticed of its decay.
    fn reset_tally(&mut self);
}

/// The state of a flash medium: rules, OOB, wear, and payload where it is kept.
///
/// The rules are those of [`nandscape_core::device`]; an operation that fails changes nothing.
#[auto_impl::auto_impl(Box)]
pub trait Medium<O: OutOfBand = Oob>: MediumState {
    /// Reads a programmed page. After an error `data` may hold anything.
    fn read(&mut self, page: Ppn, data: Option<&mut [u8]>) -> FlashResult<O>;

    /// Reads some bytes of a programmed page, from `start` on; see
    /// [`nandscape_core::FlashDevice::read_part`].
    fn read_part(&mut self, page: Ppn, start: u32, data: &mut [u8]) -> FlashResult<O> {
        let mut whole = vec![0; self.geometry().page_bytes as usize];
        let oob = self.read(page, Some(&mut whole))?;
        data.copy_from_slice(&whole[start as usize..][..data.len()]);
        Ok(oob)
    }

    /// See [`nandscape_core::FlashDevice::prepare_read`].
    fn prepare_read(&self, page: Ppn) {
        let _ = page;
    }

    /// Programs an erased page.
    fn program(&mut self, page: Ppn, oob: O, data: Option<&[u8]>) -> FlashResult<()>;

    /// Programs the first blocks of a stripe where that works in one go, as a program of each page would,
    /// and gives how many pages these are. `oobs` has one for each page of the stripe. A medium that keeps
    /// more than OOBs, or that may fail or have slow dies, does none.
    #[inline]
    fn program_head(&mut self, stripe: Stripe<'_>, oobs: &[O]) -> u32 {
        let _ = (stripe, oobs);
        0
    }

    /// Erases a block.
    fn erase(&mut self, block: BlockId) -> FlashResult<()>;

    /// See [`nandscape_core::FlashDevice::mark_bad`].
    fn mark_bad(&mut self, block: BlockId);
}

/// A medium whose pages can be damaged, for [`faults`].
#[auto_impl::auto_impl(Box)]
pub trait Breakable<O: OutOfBand = Oob>: Medium<O> {
    /// What a loss of power in the middle of a program leaves: the page is neither erased nor readable. The
    /// page must be the next of its block, or any erased one where order does not matter.
    fn tear_program(&mut self, page: Ppn) -> FlashResult<()>;

    /// What a loss of power in the middle of an erase leaves: no page of the block is erased or readable.
    fn tear_erase(&mut self, block: BlockId);

    /// Flips a stored bit of a programmed page: of its data, or of its OOB as it is stored, from bit
    /// `8 * page_bytes` on. `false` where nothing is stored there. The
    /// next read that touches the bit must find out.
    fn rot(&mut self, page: Ppn, bit: u64) -> bool;
}
