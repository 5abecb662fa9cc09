//! What the exploration needs of a host and of the layer that it uses.

use super::device::{Buffer, Handle};
use super::order::OpSet;
use crate::shrink::Outcome;
use nandscape_core::{Oob, OutOfBand};
use std::fmt::Debug;

/// Where a layer runs.
#[derive(Clone, Debug)]
pub struct Site<O: OutOfBand = Oob> {
    /// The device below the layer.
    pub handle: Handle<O>,
    /// The buffer between a program and the flash whose promises the layer's answers give.
    pub buffer: Buffer,
    /// Blocks fail, so that there may be too few of them one day.
    pub may_end_read_only: bool,
}

/// What a host may find after a loss of power.
pub trait Promises: Clone {
    /// What a host knows that starts after a cut before operation `cut`, without having read anything.
    #[must_use]
    fn after_cut(&self, cut: usize) -> Self;
}

/// With so many operations submitted, these were on the flash for sure.
pub type Sure = Vec<(usize, OpSet)>;

/// A host on a layer: does requests, notes what it was promised, and knows what must be on the flash for
/// that.
pub trait Subject: Sized {
    /// What the layer keeps beside the data of a page.
    type Oob: OutOfBand;
    /// What is built on a device.
    type Layer;
    /// A request.
    type Step: Clone + Debug;
    /// What was promised.
    type Promises: Promises;

    /// A host on a layer that was started; without promises, on a device that was never used.
    fn new(layer: Self::Layer, site: Site<Self::Oob>, promises: Option<Self::Promises>) -> Self;

    /// Random requests.
    fn steps(seed: u64, count: usize, page_bytes: u32) -> Vec<Self::Step>;

    /// Requests that write the whole device once, with a flush at the end.
    fn fill(&self, seed: u64) -> Vec<Self::Step>;

    /// Does one request.
    fn step(&mut self, step: &Self::Step) -> Outcome;

    /// Reads everything, which must be as promised for a cut before operation `cut`, and takes it as known
    /// from now on.
    fn observe(&mut self, cut: usize) -> Outcome;

    /// Reads everything, which must be as it was left, without a cut in between.
    fn verify(&mut self) -> Outcome;

    /// Checks the layer's own state; panics with the values.
    fn check_invariants(&self);

    /// The layer has started after a clean shutdown: whether it knows that.
    fn check_clean_start(&self) -> Outcome;

    /// Whether the layer takes no writes any more.
    fn is_read_only(&self) -> bool;

    /// Shuts the layer down properly; `false` where it is read-only and cannot.
    fn shutdown(&mut self) -> Outcome<bool>;

    /// What was promised so far.
    fn promises(&self) -> &Self::Promises;

    /// Drops the layer.
    fn into_promises(self) -> (Self::Promises, Sure);
}
