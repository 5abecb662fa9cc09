//! What a zoned namespace is to hosts and reports.
#![expect(clippy::inline_always, reason = "measured: the path of every command")]

use super::namespace::ZonedNamespace;
use super::tag::ZoneOob;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::zone::{Zone, ZoneContents, ZoneCounts, ZoneShape};
use nandscape_core::{
    Allocation, BlockId, Cause, Clocked, Command, Control, Cost, Extent, FlashDevice, FlashLayer, FlashState,
    FtlStats, HostReports, Inspect, IssueControl, Layers, Logs, Lpn, Mapping, NamespaceInfo, NamespaceResult,
    Op, Ppn, RecoveryReport, SimTime, Submitted, Subsystem, Token, ZoneReports,
};

/// Of what no host asked for.
const NOT_ASKED: (Cause, Token) = (Cause::Host, Token::NONE);

nandscape_core::no_state!(impl [O: ZoneOob, D: FlashDevice<O>] ZonedNamespace<D, O>: "a zoned namespace");

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

    fn idle(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        if let Some(conventional) = &mut self.conventional {
            conventional.layer(NOT_ASKED).idle(at, until)?;
        }
        self.show_counters();
        Ok(())
    }

    fn shutdown(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let mut done = self.flush(at)?;
        if let Some(conventional) = &mut self.conventional {
            let closed = conventional.layer(NOT_ASKED).shutdown(at)?;
            done = self.body.device.join(done, closed);
        }
        self.show_counters();
        Ok(done)
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
        if let Some(conventional) = &mut self.conventional {
            conventional.reset_counters(at);
        }
        self.reset_time(at);
        self.show_counters();
    }

    fn check_invariants(&self) {
        Mapping::check_invariants(self);
        let device = FlashLayer::device(self);
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
    fn zone_shape(&self, _: u32) -> ZoneShape {
        self.infos[0].zones.expect("it has zones")
    }

    fn zone(&self, _: u32, zone: u32) -> Zone {
        self.table.describe_zone(zone)
    }

    fn contents(&self, _: u32, _: u32) -> ZoneContents {
        ZoneContents::default()
    }

    fn zone_counts(&self, _: u32) -> ZoneCounts {
        self.counts
    }
}

impl<O: ZoneOob, D: FlashDevice<O>> FlashLayer for ZonedNamespace<D, O> {
    fn device(&self) -> &dyn FlashState {
        match &self.conventional {
            Some(conventional) => &conventional.whole,
            None => &self.body.device,
        }
    }

    fn read_only(&self) -> Option<&'static str> {
        self.read_only.or_else(|| self.conventional.as_ref()?.ftl.read_only())
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

    /// The flash page, as the part of the device with its kind of zones numbers them.
    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        let (zone, index) = (lpn.0 / self.body.zone_pages, lpn.0 % self.body.zone_pages);
        if self.table.is_conventional(zone) {
            return self.conventional.as_ref()?.ftl.lookup(lpn);
        }
        let is_there = zone < self.table.layout().zones && index < self.body.programmed(zone);
        is_there.then(|| self.body.flash_page(zone, index)).flatten()
    }

    fn allocation(&self, extent: Extent) -> Allocation {
        let block = u64::from(self.table.layout().block_bytes);
        let zone = self.by_zone.quotient(extent.offset);
        if zone >= u64::from(self.table.layout().zones) {
            return Allocation { is_mapped: false, bytes: extent.len };
        }
        let start = zone * self.by_zone.divisor();
        if let Some(conventional) = self.conventional.as_ref().filter(|_| self.is_conventional(extent)) {
            let len = extent.len.min(start + self.by_zone.divisor() - extent.offset);
            let inside = conventional.inside(zone as u32, extent.offset - start, len);
            return if inside.len == 0 {
                Allocation { is_mapped: false, bytes: len }
            } else {
                conventional.ftl.allocation(inside)
            };
        }
        let end = start + self.table.written(zone as u32) * block;
        let is_mapped = extent.offset < end;
        let until = if is_mapped { end } else { start + self.by_zone.divisor() };
        Allocation { is_mapped, bytes: (until - extent.offset).min(extent.len) }
    }

    fn stats(&self) -> FtlStats {
        let live: u64 = (0..self.body.zones()).map(|zone| u64::from(self.body.programmed(zone))).sum();
        let own = self.conventional.as_ref().map(|conventional| conventional.ftl.stats()).unwrap_or_default();
        FtlStats { live_pages: live + own.live_pages, ..own }
    }

    fn reset_stats(&mut self) {
        self.counts = ZoneCounts::default();
        if let Some(conventional) = &mut self.conventional {
            conventional.ftl.reset_stats();
        }
    }

    fn cost(&self) -> Cost {
        let device = &self.body.device;
        let geometry = device.geometry();
        let good = (0..geometry.blocks()).filter(|block| !device.is_bad(BlockId(*block))).count() as u64;
        let zones = u64::from(self.body.zones());
        let map_table_bytes = self.body.table_bytes();
        let usable = (0..self.body.zones()).map(|zone| self.table.capacity(zone)).sum::<u64>();
        let own = Cost {
            map_table_bytes,
            dram_bytes: map_table_bytes + zones * size_of::<Zone>() as u64 + self.body.held_bytes(),
            host_dram_bytes: 0,
            usable_bytes: usable * u64::from(self.table.layout().block_bytes),
            total_blocks: good,
            reserve_blocks: u64::from(self.spare_blocks) * u64::from(geometry.units()),
            pages_per_block: u64::from(geometry.pages_per_block),
            logical_pages: self.logical_pages(),
        };
        self.conventional.as_ref().map_or(own, |conventional| conventional.cost(own))
    }

    fn check_invariants(&self) {
        self.table.check_invariants();
        self.body.check_invariants();
        if let Some(conventional) = &self.conventional {
            conventional.ftl.check_invariants();
        }
    }
}

impl<O: ZoneOob, D: FlashDevice<O>> Logs for ZonedNamespace<D, O> {}
