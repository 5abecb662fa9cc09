//! Several namespaces over one flash device and one clock: what job files and servers of more than one
//! namespace see.

use crate::addr::Extent;
use crate::cached::{CacheControl, CacheReport};
use crate::device::{Completion, FlashDevice, Token};
use crate::ftl::{Allocation, Cost, FtlStats, Hint, LogStatus};
use crate::kinds::KindReport;
use crate::namespace::{Command, HostCounts, Namespace, NamespaceError, Payload};
use crate::placement::PlacementReport;
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
pub trait Subsystem {
    /// What there is.
    fn namespaces(&self) -> &[NamespaceInfo];

    /// NVM sets; 1 where the device is not divided, 0 where there is no flash (a cache of memory in front of
    /// a disk).
    fn sets(&self) -> u16;

    /// See [`crate::Ftl::prepare`].
    fn prepare(&self, namespace: u32, op: Op, extent: Extent) {
        let _ = (namespace, op, extent);
    }

    /// Executes a command on a namespace, offsets counted from its first byte. The token completes when the
    /// host may be answered.
    fn submit(
        &mut self,
        namespace: u32,
        command: Command,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Result<Token, NamespaceError>;

    /// As [`Subsystem::submit`], and answered only when what the command wrote survives a loss of power
    /// (forced unit access). By default with a flush of the namespace behind it, which is more than was
    /// asked for and never less.
    fn submit_durable(
        &mut self,
        namespace: u32,
        command: Command,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Result<Token, NamespaceError> {
        let written = self.submit(namespace, command, payload, at)?;
        let flush = Command { op: Op::Flush, extent: Extent::new(0, 0), hint: Hint(0) };
        let flushed = self.submit(namespace, flush, Payload::None, at)?;
        Ok(self.join(written, flushed))
    }

    /// See [`FlashDevice::completion`]. A time before the submission means at once.
    fn completion(&self, token: Token) -> Option<SimTime>;

    /// See [`FlashDevice::join`].
    fn join(&mut self, a: Token, b: Token) -> Token;

    /// See [`FlashDevice::watch`].
    fn watch(&mut self, token: Token, tag: u64);

    /// See [`FlashDevice::advance`].
    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>);

    /// See [`FlashDevice::next_event`].
    fn next_event(&self) -> Option<SimTime>;

    /// From when on nothing submitted is still running, as far as it is known now.
    fn idle_from(&self) -> SimTime;

    /// No host has anything to do from `at` until `until`.
    fn idle(&mut self, at: SimTime, until: SimTime) -> Result<(), NamespaceError>;

    /// Leaves every set in a state that opens at once, see [`crate::Ftl::shutdown`].
    fn shutdown(&mut self, at: SimTime) -> Result<Token, NamespaceError>;

    /// Why a set takes no more writes, see [`crate::Ftl::read_only`].
    fn read_only(&self, set: u16) -> Option<&'static str>;

    /// See [`crate::Ftl::allocation`], offsets counted from the namespace's first byte. By default everything
    /// is mapped, which is never wrong.
    fn allocation(&self, namespace: u32, extent: Extent) -> Allocation {
        let _ = namespace;
        Allocation { is_mapped: true, bytes: extent.len }
    }

    /// What hosts asked of a namespace since the last reset.
    fn host_counts(&self, namespace: u32) -> HostCounts;

    /// Counters of a set's translation layer.
    fn ftl_stats(&self, set: u16) -> FtlStats;

    /// Cost of a set's translation layer.
    fn cost(&self, set: u16) -> Cost;

    /// Logs of a set's translation layer, see [`crate::Ftl::logs`].
    fn logs(&self, set: u16) -> u16 {
        let _ = set;
        1
    }

    /// See [`crate::Ftl::log_status`].
    fn log_status(&self, set: u16, log: u16) -> LogStatus {
        let _ = (set, log);
        LogStatus::default()
    }

    /// See [`crate::Ftl::renew_log`].
    fn renew_log(&mut self, set: u16, log: u16, at: SimTime) -> Result<u64, NamespaceError> {
        let _ = (set, log, at);
        Ok(0)
    }

    /// What a directive (streams, data placement) counted since the last reset, where there is one.
    fn placement(&self) -> Option<PlacementReport> {
        None
    }

    /// Writes to a namespace by what the blocks hold, where something in front looks at that.
    fn kinds(&self, namespace: u32) -> Option<KindReport> {
        let _ = namespace;
        None
    }

    /// What a cache counted since the last reset, where there is one.
    fn cache(&self) -> Option<CacheReport> {
        None
    }

    /// A cache that can be told to do something, where there is one.
    fn cache_control(&mut self) -> Option<&mut dyn CacheControl> {
        None
    }

    /// The flash of a set, with that set's own geometry, counters and wear.
    fn device(&self, set: u16) -> &dyn FlashDevice;

    /// Ends preconditioning: counters start anew and every resource is free at `at`.
    fn reset_counters(&mut self, at: SimTime);

    /// Checks the invariants of everything below; panics with the values. For tests.
    fn check_invariants(&self);
}

/// What a [`Subsystem`] or [`crate::Namespace`] that holds another one says of time and tokens: what the one
/// in the field says.
#[macro_export]
macro_rules! pass_on_time {
    ($field:ident) => {
        fn completion(&self, token: $crate::Token) -> Option<$crate::SimTime> {
            self.$field.completion(token)
        }
        fn join(&mut self, a: $crate::Token, b: $crate::Token) -> $crate::Token {
            self.$field.join(a, b)
        }
        fn watch(&mut self, token: $crate::Token, tag: u64) {
            self.$field.watch(token, tag);
        }
        fn advance(&mut self, until: $crate::SimTime, out: &mut Vec<$crate::Completion>) {
            self.$field.advance(until, out);
        }
        fn next_event(&self) -> Option<$crate::SimTime> {
            self.$field.next_event()
        }
        fn idle_from(&self) -> $crate::SimTime {
            self.$field.idle_from()
        }
    };
}

/// A single namespace as a subsystem.
pub struct Single {
    info: [NamespaceInfo; 1],
    namespace: Box<dyn Namespace + Send>,
}

impl Single {
    /// A subsystem whose only namespace has this name.
    pub fn new(name: &str, namespace: Box<dyn Namespace + Send>) -> Self {
        let info = [NamespaceInfo {
            name: name.to_owned(),
            capacity_bytes: namespace.capacity_bytes(),
            page_bytes: namespace.page_bytes(),
            set: 0,
            endurance_group: 0,
        }];
        Self { info, namespace }
    }
}

impl Subsystem for Single {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.info
    }

    fn sets(&self) -> u16 {
        u16::from(self.namespace.device().is_some())
    }

    fn prepare(&self, _: u32, op: Op, extent: Extent) {
        self.namespace.prepare(op, extent);
    }

    fn submit(
        &mut self,
        _: u32,
        command: Command,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Result<Token, NamespaceError> {
        self.namespace.submit(command, payload, at)
    }

    crate::pass_on_time!(namespace);

    fn idle(&mut self, at: SimTime, until: SimTime) -> Result<(), NamespaceError> {
        self.namespace.idle(at, until)
    }

    fn shutdown(&mut self, at: SimTime) -> Result<Token, NamespaceError> {
        self.namespace.shutdown(at)
    }

    fn read_only(&self, _: u16) -> Option<&'static str> {
        self.namespace.read_only()
    }

    fn allocation(&self, _: u32, extent: Extent) -> Allocation {
        self.namespace.allocation(extent)
    }

    fn host_counts(&self, _: u32) -> HostCounts {
        self.namespace.host_counts()
    }

    fn ftl_stats(&self, _: u16) -> FtlStats {
        self.namespace.ftl_stats()
    }

    fn cost(&self, _: u16) -> Cost {
        self.namespace.cost()
    }

    fn logs(&self, _: u16) -> u16 {
        self.namespace.logs()
    }

    fn log_status(&self, _: u16, log: u16) -> LogStatus {
        self.namespace.log_status(log)
    }

    fn renew_log(&mut self, _: u16, log: u16, at: SimTime) -> Result<u64, NamespaceError> {
        self.namespace.renew_log(log, at)
    }

    fn placement(&self) -> Option<PlacementReport> {
        self.namespace.placement()
    }

    fn cache(&self) -> Option<CacheReport> {
        self.namespace.cache()
    }

    fn device(&self, _: u16) -> &dyn FlashDevice {
        self.namespace.device().expect("a set is flash")
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.namespace.reset_counters(at);
    }

    fn check_invariants(&self) {
        self.namespace.check_invariants();
    }
}

impl std::fmt::Debug for Single {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Single").field("info", &self.info).finish_non_exhaustive()
    }
}
