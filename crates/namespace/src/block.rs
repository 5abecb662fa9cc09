//! Plain block commands over any translation layer.

use nandscape_core::namespace::{HostCounts, Payload};
use nandscape_core::{
    Allocation, Command, Completion, Cost, Extent, FlashDevice, Ftl, FtlError, FtlStats, LogStatus,
    Namespace, NamespaceError, Op, SimTime, Token,
};

/// A namespace of plain block commands that covers a whole translation layer.
#[derive(Debug)]
pub struct BlockNamespace<F: ?Sized> {
    counts: HostCounts,
    page_bytes: u32,
    ftl: Box<F>,
}

impl<F: Ftl + ?Sized> BlockNamespace<F> {
    /// Covers the whole of `ftl`.
    pub fn new(ftl: Box<F>) -> Self {
        let page_bytes = ftl.device().geometry().page_bytes;
        Self { counts: HostCounts::default(), page_bytes, ftl }
    }

    /// The translation layer below.
    pub fn ftl(&self) -> &F {
        &self.ftl
    }
}

/// Does a command on a translation layer.
#[inline]
pub(crate) fn execute<F: Ftl + ?Sized>(
    ftl: &mut F,
    command: Command,
    payload: Payload<'_>,
    at: SimTime,
) -> Result<Token, FtlError> {
    let Command { op, extent, hint } = command;
    match (op, payload) {
        (Op::Read, Payload::Read(data)) => ftl.read(extent, Some(data), at),
        (Op::Read, _) => ftl.read(extent, None, at),
        (Op::Write, Payload::Write(data)) => ftl.write(extent, Some(data), hint, at),
        (Op::Write, _) => ftl.write(extent, None, hint, at),
        (Op::Trim, _) => ftl.trim(extent, at),
        (Op::WriteZeroes, _) => ftl.write_zeroes(extent, at),
        (Op::Flush, _) => ftl.flush(at),
    }
}

impl<F: Ftl + ?Sized> Namespace for BlockNamespace<F> {
    fn capacity_bytes(&self) -> u64 {
        self.ftl.logical_pages() * u64::from(self.page_bytes)
    }

    fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    #[inline]
    fn prepare(&self, _: Op, extent: Extent) {
        self.ftl.prepare(extent);
    }

    fn submit(
        &mut self,
        command: Command,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Result<Token, NamespaceError> {
        self.counts.count(command, self.page_bytes);
        Ok(execute(&mut *self.ftl, command, payload, at)?)
    }

    fn completion(&self, token: Token) -> Option<SimTime> {
        self.ftl.device().completion(token)
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        self.ftl.device_mut().join(a, b)
    }

    fn watch(&mut self, token: Token, tag: u64) {
        self.ftl.device_mut().watch(token, tag);
    }

    fn advance(&mut self, until: SimTime, out: &mut Vec<Completion>) {
        self.ftl.device_mut().advance(until, out);
    }

    fn next_event(&self) -> Option<SimTime> {
        self.ftl.device().next_event()
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> Result<(), NamespaceError> {
        Ok(self.ftl.idle(at, until)?)
    }

    fn shutdown(&mut self, at: SimTime) -> Result<Token, NamespaceError> {
        Ok(self.ftl.shutdown(at)?)
    }

    fn read_only(&self) -> Option<&'static str> {
        self.ftl.read_only()
    }

    fn allocation(&self, extent: Extent) -> Allocation {
        self.ftl.allocation(extent)
    }

    fn host_counts(&self) -> HostCounts {
        self.counts
    }

    fn ftl_stats(&self) -> FtlStats {
        self.ftl.stats()
    }

    fn cost(&self) -> Cost {
        self.ftl.cost()
    }

    fn logs(&self) -> u16 {
        self.ftl.logs()
    }

    fn log_status(&self, log: u16) -> LogStatus {
        self.ftl.log_status(log)
    }

    fn renew_log(&mut self, log: u16, at: SimTime) -> Result<u64, NamespaceError> {
        Ok(self.ftl.renew_log(log, at)?)
    }

    fn device(&self) -> Option<&dyn FlashDevice> {
        Some(self.ftl.device())
    }

    fn idle_from(&self) -> SimTime {
        self.ftl.device().idle_from()
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.counts = HostCounts::default();
        self.ftl.reset_stats();
        let device = self.ftl.device_mut();
        device.reset_counters();
        device.reset_time(at);
    }

    fn check_invariants(&self) {
        self.ftl.check_invariants();
    }
}
