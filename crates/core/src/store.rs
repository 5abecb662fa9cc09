//! What a cache joins two of: a range of bytes behind a device of any kind, in virtual time or for real.
//!
//! A store is less than a [`Subsystem`]: it need not have flash below. A namespace, a disk model, a
//! RAM disk and a file are stores.
//!
//! State and time are apart: [`Store::apply`] does to the bytes what a command asks for, in the order of
//! these calls; [`Store::start`] lets the command take its time, and its token says when it completes. Who
//! has several steps to do of which one waits for another (a cache) applies all of them at once, in an order
//! in which the bytes come out right, and starts each when the one before it has completed. [`Store::submit`]
//! does both. A store that keeps a queue and reorders it (a disk) does not know the completion when a command
//! starts, and reports it through [`Clocked::advance`].

use crate::addr::Extent;
use crate::clock::{Clocked, Token};
use crate::command::{BlockCommand, HostCounts, Op, Payload};
use crate::error::StoreResult;
use crate::ftl::Allocation;
use crate::subsystem::Subsystem;
use crate::time::SimTime;

/// Goes with a command from [`Store::apply`] to [`Store::start`]; of meaning to the store alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied(pub u64);

/// What never changes of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreShape {
    /// See [`Store::capacity_bytes`].
    pub capacity_bytes: u64,
    /// See [`Store::block_bytes`].
    pub block_bytes: u32,
    /// See [`Store::stores_bytes`].
    pub stores_bytes: bool,
    /// Bytes at the end that are written in order; `None` where all may be written anywhere.
    pub regions: Option<Regions>,
}

/// Regions of a store, one behind the other. Each is written from its first byte to its last; a trim of all
/// of it empties it, and one of less does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regions {
    /// First byte of the first one. What lies before may be written anywhere.
    pub first: u64,
    /// Bytes of each.
    pub bytes: u64,
    /// How many there are.
    pub count: u32,
}

impl Regions {
    /// All bytes of one.
    pub const fn extent(&self, region: u32) -> Extent {
        Extent { offset: self.first + region as u64 * self.bytes, len: self.bytes }
    }
}

/// A range of bytes behind a device.
///
/// Commands are started in nondecreasing time, each that was applied once, and not always in the order in
/// which they were applied. Reads of bytes never written give zeroes. A write is volatile until a later
/// [`crate::Op::Flush`] completes; of a write cut short by a loss of power, each block of
/// [`Store::block_bytes`] is old or new.
pub trait Store: Clocked {
    /// What never changes of it.
    fn shape(&self) -> StoreShape;

    /// Capacity in bytes, a multiple of [`Store::block_bytes`].
    fn capacity_bytes(&self) -> u64 {
        self.shape().capacity_bytes
    }

    /// The unit of offsets and lengths, which is also what survives a loss of power whole.
    fn block_bytes(&self) -> u32 {
        self.shape().block_bytes
    }

    /// See [`StoreShape::regions`].
    fn regions(&self) -> Option<Regions> {
        self.shape().regions
    }

    /// Whether bytes are kept. One that keeps none (replay) takes [`Payload::None`].
    fn stores_bytes(&self) -> bool {
        self.shape().stores_bytes
    }

    /// A command on this extent will come soon: what it will need may come nearer in the meantime. Nothing
    /// else changes.
    fn prepare(&self, op: Op, extent: Extent) {
        let _ = (op, extent);
    }

    /// Does to the bytes what a command asks for, and counts it. It takes no time before [`Store::start`].
    ///
    /// A store below which state and time cannot be told apart, such as flash, may do here only what needs
    /// the payload, and refuse the command when it is started.
    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<Applied>;

    /// Lets a command that was applied take its time, from `at` on. The token completes when it is answered.
    fn start(&mut self, command: BlockCommand, applied: Applied, at: SimTime) -> StoreResult<Token>;

    /// Applies a command and starts it at `at`.
    fn submit(&mut self, command: BlockCommand, payload: Payload<'_>, at: SimTime) -> StoreResult<Token> {
        let applied = self.apply(command, payload)?;
        self.start(command, applied, at)
    }

    /// See [`crate::Mapping::allocation`]. By default everything is mapped, which is never wrong.
    fn allocation(&self, extent: Extent) -> Allocation {
        Allocation { is_mapped: true, bytes: extent.len }
    }

    /// What was asked of it since the last reset.
    fn counts(&self) -> HostCounts;

    /// The flash below, if it is flash.
    fn flash(&self) -> Option<&dyn Subsystem> {
        None
    }

    /// Nobody has anything to do from `at` until `until`.
    fn idle(&mut self, at: SimTime, until: SimTime) -> StoreResult<()> {
        let _ = (at, until);
        Ok(())
    }

    /// Leaves it in a state that opens at once.
    fn shutdown(&mut self, at: SimTime) -> StoreResult<Token>;

    /// Counters start anew, and every resource is free at `at`.
    fn reset_counters(&mut self, at: SimTime);
}
