//! A subsystem with one namespace as that namespace, for replays.

use nandscape_core::Op;
use nandscape_core::namespace::{HostCounts, Payload};
use nandscape_core::{
    Allocation, CacheReport, Command, Cost, Extent, FlashDevice, FtlStats, LogStatus, Namespace,
    NamespaceError, PlacementReport, SimTime, Subsystem, Token,
};

/// The only namespace of a subsystem. Flash counters are those of its set, and nothing where there is no
/// flash.
#[derive(Debug)]
pub struct Sole<S> {
    subsystem: S,
    /// `None` where there is no flash.
    set: Option<u16>,
    capacity_bytes: u64,
    page_bytes: u32,
}

impl<S: Subsystem> Sole<S> {
    /// Panics unless there is exactly one namespace.
    pub fn new(subsystem: S) -> Self {
        let [info] = subsystem.namespaces() else { panic!("{} namespaces", subsystem.namespaces().len()) };
        let set = (subsystem.sets() > 0).then_some(info.set);
        let (capacity_bytes, page_bytes) = (info.capacity_bytes, info.page_bytes);
        Self { subsystem, set, capacity_bytes, page_bytes }
    }
}

impl<S: Subsystem> Namespace for Sole<S> {
    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    fn prepare(&self, op: Op, extent: Extent) {
        self.subsystem.prepare(0, op, extent);
    }

    fn submit(
        &mut self,
        command: Command,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Result<Token, NamespaceError> {
        self.subsystem.submit(0, command, payload, at)
    }

    nandscape_core::pass_on_time!(subsystem);

    fn idle(&mut self, at: SimTime, until: SimTime) -> Result<(), NamespaceError> {
        self.subsystem.idle(at, until)
    }

    fn shutdown(&mut self, at: SimTime) -> Result<Token, NamespaceError> {
        self.subsystem.shutdown(at)
    }

    fn read_only(&self) -> Option<&'static str> {
        self.set.and_then(|set| self.subsystem.read_only(set))
    }

    fn allocation(&self, extent: Extent) -> Allocation {
        self.subsystem.allocation(0, extent)
    }

    fn host_counts(&self) -> HostCounts {
        self.subsystem.host_counts(0)
    }

    fn ftl_stats(&self) -> FtlStats {
        self.set.map(|set| self.subsystem.ftl_stats(set)).unwrap_or_default()
    }

    fn cost(&self) -> Cost {
        self.set.map(|set| self.subsystem.cost(set)).unwrap_or_default()
    }

    fn cache(&self) -> Option<CacheReport> {
        self.subsystem.cache()
    }

    fn device(&self) -> Option<&dyn FlashDevice> {
        self.set.map(|set| self.subsystem.device(set))
    }

    fn logs(&self) -> u16 {
        self.set.map_or(1, |set| self.subsystem.logs(set))
    }

    fn log_status(&self, log: u16) -> LogStatus {
        self.set.map(|set| self.subsystem.log_status(set, log)).unwrap_or_default()
    }

    fn renew_log(&mut self, log: u16, at: SimTime) -> Result<u64, NamespaceError> {
        self.set.map_or(Ok(0), |set| self.subsystem.renew_log(set, log, at))
    }

    fn placement(&self) -> Option<PlacementReport> {
        self.subsystem.placement()
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.subsystem.reset_counters(at);
    }

    fn check_invariants(&self) {
        self.subsystem.check_invariants();
    }
}
