//! What every host sees, be it a replay, a job file or a server: namespaces over one clock.

use crate::addr::Extent;
use crate::clock::{Clocked, Token};
use crate::command::{Answer, Command, Op, Payload};
use crate::error::NamespaceResult;
use crate::ftl::Allocation;
use crate::inspect::{Control, Inspect};
use crate::state::State;
use crate::time::SimTime;
use crate::zone::ZoneShape;
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
    /// Its zones, where it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zones: Option<ZoneShape>,
    /// Whether it is a store of objects: it takes [`crate::ObjectCommand`]s, and of block commands only a
    /// flush of everything.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub objects: bool,
}

/// The answer to a command, or why it was refused.
pub type Submitted = NamespaceResult<Answer>;

/// Namespaces that share a flash device. Namespaces and sets are numbered from 0; commands of all namespaces
/// are submitted in nondecreasing time, and one stream of completions serves them all.
///
/// A set has a translation layer of its own over its own dies; several namespaces may lie in one set, where
/// they share that layer and its garbage collection.
pub trait Subsystem: Clocked + State {
    /// What there is.
    fn namespaces(&self) -> &[NamespaceInfo];

    /// See [`crate::Ftl::prepare`].
    fn prepare(&self, namespace: u32, op: Op, extent: Extent);

    /// Executes a command on a namespace, offsets counted from its first byte. A command set that the
    /// namespace does not have is refused as [`crate::NamespaceError::NotSupported`].
    fn submit(&mut self, namespace: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted;

    /// See [`crate::FlashState::join`].
    fn join(&mut self, a: Token, b: Token) -> Token;

    /// No host has anything to do from `at` until `until`.
    fn idle(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()>;

    /// Leaves every set in a state that opens at once, see [`crate::Ftl::shutdown`].
    fn shutdown(&mut self, at: SimTime) -> NamespaceResult<Token>;

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

/// A subsystem in front of another one, which has something to say of commands and reports and leaves
/// everything else to the one below.
pub trait Layered: Clocked + State {
    /// The subsystem below.
    fn below(&self) -> &dyn Subsystem;

    /// The subsystem below, to be changed.
    fn below_mut(&mut self) -> &mut dyn Subsystem;

    /// See [`Subsystem::submit`].
    fn submit(&mut self, namespace: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted;

    /// See [`Subsystem::inspect`].
    fn inspect(&self) -> Inspect<'_> {
        self.below().inspect()
    }

    /// See [`Subsystem::control`].
    fn control(&mut self) -> Control<'_> {
        self.below_mut().control()
    }

    /// Counters start anew; those below have.
    fn counters_were_reset(&mut self) {}

    /// The subsystem below is about to be shut down.
    fn before_shutdown(&mut self) {}

    /// Checks its own invariants; panics with the values. For tests.
    fn check_own_invariants(&self) {}
}

impl<T: Layered> Subsystem for T {
    fn namespaces(&self) -> &[NamespaceInfo] {
        self.below().namespaces()
    }

    fn prepare(&self, namespace: u32, op: Op, extent: Extent) {
        self.below().prepare(namespace, op, extent);
    }

    fn submit(&mut self, namespace: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        Layered::submit(self, namespace, command, payload, at)
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        self.below_mut().join(a, b)
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        self.below_mut().idle(at, until)
    }

    fn shutdown(&mut self, at: SimTime) -> NamespaceResult<Token> {
        self.before_shutdown();
        self.below_mut().shutdown(at)
    }

    fn allocation(&self, namespace: u32, extent: Extent) -> Allocation {
        self.below().allocation(namespace, extent)
    }

    fn inspect(&self) -> Inspect<'_> {
        Layered::inspect(self)
    }

    fn control(&mut self) -> Control<'_> {
        Layered::control(self)
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.below_mut().reset_counters(at);
        self.counters_were_reset();
    }

    fn check_invariants(&self) {
        self.below().check_invariants();
        self.check_own_invariants();
    }
}
