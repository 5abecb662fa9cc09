//! What a zoned namespace is to hosts and reports.
#![expect(clippy::inline_always, reason = "measured: the path of every command")]

use super::namespace::ZonedNamespace;
use super::tag::ZoneOob;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::zone::{Zone, ZoneCounts};
use nandscape_core::{
    Allocation, BlockId, Cause, Clocked, Command, Control, Cost, Extent, FlashDevice, FlashLayer, FlashState,
    FtlStats, HostReports, Inspect, IssueControl, Layers, Logs, Lpn, Mapping, NamespaceInfo, NamespaceResult,
    Op, Ppn, RecoveryReport, SimTime, Submitted, Subsystem, Token, ZoneReports,
};

impl<O: ZoneOob, D: FlashDevice<O> + Send> Subsystem for ZonedNamespace<D, O> {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }

    fn prepare(&self, _: u32, _: Op, _: Extent) {}

    #[inline(always)]
    fn submit(&mut self, _: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        self.submit_command(command, payload, at)
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        self.body.device.join(a, b)
    }

    fn idle(&mut self, _: SimTime, _: SimTime) -> NamespaceResult<()> {
        Ok(())
    }

    fn shutdown(&mut self, at: SimTime) -> NamespaceResult<Token> {
        self.flush(at)
    }

    fn allocation(&self, _: u32, extent: Extent) -> Allocation {
        Mapping::allocation(self, extent)
    }

    fn inspect(&self) -> Inspect<'_> {
        Inspect { layers: Layers::One(self), hosts: Some(self), zones: Some(self), ..Inspect::default() }
    }

    fn control(&mut self) -> Control<'_> {
        Control { issue: Some(self), ..Control::default() }
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.hosts = HostCounts::default();
        self.counts = ZoneCounts::default();
        self.body.device.reset_counters();
        self.reset_time(at);
    }

    fn check_invariants(&self) {
        Mapping::check_invariants(self);
        let device = &self.body.device;
        assert_eq!(device.counters().total(), device.tally().totals, "causes of a zoned namespace");
    }
}

impl<O: ZoneOob, D: FlashDevice<O> + Send> Clocked for ZonedNamespace<D, O> {
    nandscape_core::delegate_clock!(self, self.body.device);
}

impl<O: ZoneOob, D: FlashDevice<O>> IssueControl for ZonedNamespace<D, O> {
    #[inline]
    fn issue(&mut self, cause: Cause, after: Token) {
        self.issued = (cause, after);
    }
}

impl<O: ZoneOob, D: FlashDevice<O>> HostReports for ZonedNamespace<D, O> {
    fn host_counts(&self, _: u32) -> HostCounts {
        self.hosts
    }
}

impl<O: ZoneOob, D: FlashDevice<O>> ZoneReports for ZonedNamespace<D, O> {
    fn zone_count(&self, _: u32) -> u32 {
        self.table.layout().zones
    }

    fn zone(&self, _: u32, zone: u32) -> Zone {
        self.table.describe_zone(zone)
    }

    fn zone_counts(&self, _: u32) -> ZoneCounts {
        self.counts
    }
}

impl<O: ZoneOob, D: FlashDevice<O>> FlashLayer for ZonedNamespace<D, O> {
    fn device(&self) -> &dyn FlashState {
        &self.body.device
    }

    fn read_only(&self) -> Option<&'static str> {
        self.read_only
    }

    fn recovery(&self) -> Option<&RecoveryReport> {
        self.body.stores_data.then_some(&self.recovery)
    }
}

impl<O: ZoneOob, D: FlashDevice<O>> Mapping for ZonedNamespace<D, O> {
    /// The pages that can be written, of all zones.
    fn logical_pages(&self) -> u64 {
        u64::from(self.table.layout().zones) * u64::from(self.body.zone_pages)
    }

    fn page_bytes(&self) -> u32 {
        self.body.page_bytes
    }

    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        let (zone, index) = (lpn.0 / self.body.zone_pages, lpn.0 % self.body.zone_pages);
        let is_there = zone < self.table.layout().zones && index < self.body.programmed(zone);
        is_there.then(|| self.body.flash_page(zone, index)).flatten()
    }

    fn allocation(&self, extent: Extent) -> Allocation {
        let block = u64::from(self.table.layout().block_bytes);
        let zone = extent.offset / self.size_bytes();
        if zone >= u64::from(self.table.layout().zones) {
            return Allocation { is_mapped: false, bytes: extent.len };
        }
        let start = zone * self.size_bytes();
        let end = start + self.table.written(zone as u32) * block;
        let is_mapped = extent.offset < end;
        let until = if is_mapped { end } else { start + self.size_bytes() };
        Allocation { is_mapped, bytes: (until - extent.offset).min(extent.len) }
    }

    fn stats(&self) -> FtlStats {
        let live = (0..self.body.zones()).map(|zone| u64::from(self.body.programmed(zone))).sum();
        FtlStats { live_pages: live, ..FtlStats::default() }
    }

    fn reset_stats(&mut self) {
        self.counts = ZoneCounts::default();
    }

    fn cost(&self) -> Cost {
        let device = &self.body.device;
        let geometry = device.geometry();
        let good = (0..geometry.blocks()).filter(|block| !device.is_bad(BlockId(*block))).count() as u64;
        let zones = u64::from(self.body.zones());
        let map_table_bytes = self.body.table_bytes();
        let usable = (0..self.body.zones()).map(|zone| self.table.capacity(zone)).sum::<u64>();
        Cost {
            map_table_bytes,
            dram_bytes: map_table_bytes + zones * size_of::<Zone>() as u64 + self.body.held_bytes(),
            usable_bytes: usable * u64::from(self.table.layout().block_bytes),
            total_blocks: good,
            reserve_blocks: u64::from(self.spare_blocks) * u64::from(geometry.units()),
            pages_per_block: u64::from(geometry.pages_per_block),
            logical_pages: self.logical_pages(),
        }
    }

    fn check_invariants(&self) {
        self.table.check_invariants();
        self.body.check_invariants();
    }
}

impl<O: ZoneOob, D: FlashDevice<O>> Logs for ZonedNamespace<D, O> {}

impl<O: ZoneOob, D: FlashDevice<O>> ZonedNamespace<D, O> {
    /// Bytes from one zone to the next.
    fn size_bytes(&self) -> u64 {
        self.table.layout().size * u64::from(self.table.layout().block_bytes)
    }
}
