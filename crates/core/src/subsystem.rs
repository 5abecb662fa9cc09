//! What every host sees, be it a replay, a job file or a server: namespaces over one clock.

use crate::addr::Extent;
use crate::clock::{Clocked, Token};
use crate::command::{Command, Payload};
use crate::error::NamespaceError;
use crate::ftl::Allocation;
use crate::inspect::{Control, Inspect};
use crate::record::Op;
use crate::time::SimTime;
use serde::Serialize;

/// One namespace as a host identifies it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamespaceInfo {
    /// Name by which job files address it, such as `ns1`.
    pub name: String,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Device page in bytes.
    pub page_bytes: u32,
    /// Index of the NVM set that holds it; 0 where the device has no sets.
    pub set: u16,
    /// Index of the endurance group of that set.
    pub endurance_group: u16,
}

/// Namespaces that share a flash device. Namespaces and sets are numbered from 0; commands of all namespaces
/// are submitted in nondecreasing time, and one stream of completions serves them all.
///
/// A set has a translation layer of its own over its own dies; several namespaces may lie in one set, where
/// they share that layer and its garbage collection.
pub trait Subsystem: Clocked {
    /// What there is.
    fn namespaces(&self) -> &[NamespaceInfo];

    /// See [`crate::Ftl::prepare`].
    fn prepare(&self, namespace: u32, op: Op, extent: Extent);

    /// Executes a command on a namespace, offsets counted from its first byte. The token completes when the
    /// host may be answered.
    fn submit(
        &mut self,
        namespace: u32,
        command: Command,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Result<Token, NamespaceError>;

    /// See [`crate::FlashDevice::join`].
    fn join(&mut self, a: Token, b: Token) -> Token;

    /// No host has anything to do from `at` until `until`.
    fn idle(&mut self, at: SimTime, until: SimTime) -> Result<(), NamespaceError>;

    /// Leaves every set in a state that opens at once, see [`crate::Ftl::shutdown`].
    fn shutdown(&mut self, at: SimTime) -> Result<Token, NamespaceError>;

    /// See [`crate::Mapping::allocation`], offsets counted from the namespace's first byte.
    fn allocation(&self, namespace: u32, extent: Extent) -> Allocation;

    /// What it shows.
    fn inspect(&self) -> Inspect<'_>;

    /// What can be asked of it besides commands.
    fn control(&mut self) -> Control<'_>;

    /// Ends preconditioning: counters start anew and every resource is free at `at`.
    fn reset_counters(&mut self, at: SimTime);

    /// Checks the invariants of everything below; panics with the values. For tests.
    fn check_invariants(&self);
}
