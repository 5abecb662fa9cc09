//! Fail, go on, restart: a store fails at any of its operations, service goes on, ends, begins again, and
//! every byte that was flushed is compared.
//!
//! A [`Subject`] is what is tried: a stack over stores, each of which asks [`Faults`] before every operation
//! ([`Medium`] does, for bytes in memory). One run of a [`Case`]:
//!
//! 1. The subject starts and does a seeded load, with the faults of a [`Plan`] in place. An answer is right
//!    or an error; errors are allowed where [`Subject::allows`] says so.
//! 2. It ends: cleanly, by a kill, or by a loss of power.
//! 3. The stores are mended or not, and it starts. Every unit is read: it holds what was flushed, or
//!    something newer, or is an error where that is allowed. Stores that were not mended are mended then, and
//!    it starts again.
//! 4. It goes on with a short load, ends cleanly, and starts once more: again every unit is compared.
//!
//! [`campaign`] tries every operation of every store with every [`Kind`] that fits it, every [`End`], mended
//! and not; then seeded draws of two faults. Failures print the seed and the command that repeats them.

mod drive;
mod faults;
mod load;
mod medium;
mod model;
mod run;
#[cfg(test)]
mod tests;

pub use drive::{Tally, again, campaign, finds};
pub use faults::{Access, Fault, Faults, Kind, Refusal};
pub use load::{Act, acts};
pub use medium::Medium;
pub use model::{Model, UNIT, Version, fill};
pub use run::{Broken, Case, End, Make, Plan};

use crate::shrink::Outcome;
use std::ops::Range;

/// What a documented rule allows with some faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// A command fails while the stores fail.
    pub in_service: bool,
    /// A read fails after all stores were mended, since the data are lost.
    pub after_mend: bool,
    /// A start is refused after all stores were mended, since data would be lost.
    pub refusal: bool,
    /// Volumes of which flushed data may be older after any end that is not clean.
    pub older_after_kill: Vec<usize>,
    /// Volumes of which flushed data may be older after a loss of power.
    pub older_after_power_loss: Vec<usize>,
}

/// What is tried. Units have 512 bytes and begin with [`Version`] 1 everywhere.
pub trait Subject {
    /// Units of each volume.
    fn volumes(&self) -> Vec<usize>;

    /// Starts with what the stores hold; the first time with what it was made with.
    fn start(&mut self) -> Outcome;

    /// Reads units. The bytes count only if it is done.
    fn read(&mut self, volume: usize, units: Range<usize>, bytes: &mut [u8]) -> Outcome;

    /// Writes units, durably where `is_durable`.
    fn write(&mut self, volume: usize, units: Range<usize>, bytes: &[u8], is_durable: bool) -> Outcome;

    /// Discards units, which read as zeroes then.
    fn trim(&mut self, volume: usize, units: Range<usize>) -> Outcome;

    /// Makes a volume durable.
    fn flush(&mut self, volume: usize) -> Outcome;

    /// Does background work. Its errors are told by flushes.
    fn idle(&mut self);

    /// Ends cleanly. If that is done, everything is durable. Afterwards nothing is open in either case.
    fn end(&mut self) -> Outcome;

    /// Is no more: without a word, and without what was not synced if the power is lost.
    fn kill(&mut self, is_power_lost: bool);

    /// Which errors the documented rule allows.
    fn allows(&self, faults: &[Fault]) -> Allowed;
}
