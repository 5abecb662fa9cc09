//! What the layer is to hosts and reports.

use super::format::LOST;
use super::{Lpn, ZoneMap};
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::zone::{Zone, ZoneContents, ZoneCounts, ZoneOwner, ZoneShape};
use nandscape_core::{
    Allocation, Clocked, Command, Control, Cost, Extent, FlashLayer, FlashState, FtlStats, HostReports,
    Inspect, Layers, LogStatus, Logs, Mapping, NamespaceInfo, NamespaceResult, Op, Ppn, RecoveryReport,
    SimTime, Submitted, Subsystem, Token, ZoneReports,
};
use nandscape_ftl::victim::BlockState;

nandscape_core::no_state!(impl [S: Subsystem] ZoneMap<S>: "zone-map");

impl<S: Subsystem + Send> Subsystem for ZoneMap<S> {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }

    #[inline]
    fn prepare(&self, _: u32, op: Op, extent: Extent) {
        let Some(lpn) = extent.offset.checked_shr(self.shape.unit_shift) else { return };
        self.map.prefetch(lpn);
        if op == Op::Write {
            let before = self.ahead.note(lpn);
            if let Some(place) = self.map.entries().get(before.index()).filter(|place| place.0 < LOST.0) {
                self.zones.prefetch(*place);
            }
        }
    }

    #[inline]
    fn submit(&mut self, _: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        Ok(self.block(command.into_block()?, payload, at)?.into())
    }

    #[inline]
    fn join(&mut self, a: Token, b: Token) -> Token {
        self.below.device.join(a, b)
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        if self.stopped.is_none() {
            self.evacuate(at)?;
            self.collect_in_background(at, until)?;
        }
        self.below.device.idle(at, until)
    }

    fn shutdown(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let done = if self.stopped.is_none() { self.close(at)? } else { Token::NONE };
        let below = self.below.device.shutdown(at)?;
        Ok(self.below.device.join(done, below))
    }

    fn allocation(&self, _: u32, extent: Extent) -> Allocation {
        Mapping::allocation(self, extent)
    }

    fn inspect(&self) -> Inspect<'_> {
        Inspect {
            layers: Layers::One(self),
            has_logs: self.space.host_logs > 1,
            hosts: Some(self),
            zones: Some(self),
            vectors: self.below.device.inspect().vectors,
            ..Inspect::default()
        }
    }

    fn control(&mut self) -> Control<'_> {
        Control::default()
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.below.device.reset_counters(at);
        self.hosts = HostCounts::default();
        self.reset_stats();
        // Tokens from before mean nothing once time starts anew.
        (self.committed, self.log.done, self.log.gate) = (Token::NONE, Token::NONE, Token::NONE);
        (self.collector.read, self.space.resetting) = (Token::NONE, Token::NONE);
        let zones = self
            .space
            .free
            .iter_mut()
            .chain(&mut self.space.collected)
            .chain(&mut self.log.free)
            .chain(&mut self.log.stale);
        zones.for_each(|(_, ready)| *ready = Token::NONE);
        for frontier in &mut self.space.frontiers {
            frontier.after = Token::NONE;
            frontier.forget_writes();
        }
    }

    fn check_invariants(&self) {
        self.check();
        self.below.device.check_invariants();
    }
}

impl<S: Subsystem> Clocked for ZoneMap<S> {
    nandscape_core::delegate_clock!(self, self.below.device);
}

impl<S: Subsystem> HostReports for ZoneMap<S> {
    fn host_counts(&self, _: u32) -> HostCounts {
        self.hosts
    }
}

impl<S: Subsystem> ZoneMap<S> {
    fn zones_below(&self) -> &dyn ZoneReports {
        self.below.device.inspect().zones.expect("it lies on zones")
    }
}

impl<S: Subsystem> ZoneReports for ZoneMap<S> {
    fn zone_shape(&self, _: u32) -> ZoneShape {
        self.zones_below().zone_shape(0)
    }

    fn zone(&self, _: u32, zone: u32) -> Zone {
        self.zones_below().zone(0, zone)
    }

    /// Valid bytes are unknown of zones with metadata, of which nothing is counted.
    fn contents(&self, _: u32, zone: u32) -> ZoneContents {
        let Some(info) = self.zones.infos.get(zone as usize) else { return ZoneContents::default() };
        if zone < self.shape.identity.ring {
            return ZoneContents { owner: Some(ZoneOwner::Metadata), ..ZoneContents::default() };
        }
        let owner = match self.space.opened_for[zone as usize] {
            _ if info.state == BlockState::Free => None,
            log if usize::from(log) < self.space.host_logs => Some(ZoneOwner::Data),
            _ => Some(ZoneOwner::Moved),
        };
        let valid_bytes = Some(u64::from(info.valid) * u64::from(self.shape.unit_bytes));
        ZoneContents { valid_bytes, owner, lifetime: None }
    }

    fn zone_counts(&self, _: u32) -> ZoneCounts {
        self.zones_below().zone_counts(0)
    }
}

impl<S: Subsystem> FlashLayer for ZoneMap<S> {
    fn device(&self) -> &dyn FlashState {
        self.below.flash()
    }

    fn read_only(&self) -> Option<&'static str> {
        self.stopped.or_else(|| self.below.read_only())
    }

    fn recovery(&self) -> Option<&RecoveryReport> {
        self.shape.stores_data.then_some(&self.recovery)
    }
}

/// Pages are units here.
impl<S: Subsystem> Mapping for ZoneMap<S> {
    fn logical_pages(&self) -> u64 {
        self.shape.identity.logical_units.into()
    }

    #[expect(clippy::misnamed_getters, reason = "its pages are units")]
    fn page_bytes(&self) -> u32 {
        self.shape.unit_bytes
    }

    /// The number of the place among those of all zones.
    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        self.map.entries().get(lpn.index()).copied().filter(|place| place.0 < LOST.0)
    }

    fn allocation(&self, extent: Extent) -> Allocation {
        self.map.mapped_at(extent, self.shape.unit_bytes, self.shape.capacity_bytes)
    }

    fn stats(&self) -> FtlStats {
        FtlStats { map_update_bytes: self.stats.map_updates * 8, live_pages: self.map.live, ..self.stats }
    }

    fn reset_stats(&mut self) {
        self.stats = FtlStats::default();
        self.space.host_units.iter_mut().for_each(|units| units[1] = units[0]);
    }

    fn cost(&self) -> Cost {
        let identity = self.shape.identity;
        let good = self.zones.infos.iter().filter(|info| info.state != BlockState::Bad).count() as u64;
        let map_table_bytes = u64::from(identity.logical_units) * size_of::<Ppn>() as u64;
        let owners = self.owners.len() as u64 * size_of::<Lpn>() as u64;
        // Lists of the victim policy.
        let policy_bytes = self.zones.infos.len() as u64 * 8;
        Cost {
            map_table_bytes,
            dram_bytes: self.below.dram_bytes(),
            host_dram_bytes: self.below.device.inspect().host_bytes
                + self.map.bytes()
                + owners
                + self.zones.bytes()
                + self.space.bytes()
                + policy_bytes
                + self.collector.bytes()
                + self.log.bytes(),
            usable_bytes: self.shape.capacity_bytes,
            total_blocks: good,
            reserve_blocks: u64::from(identity.ring) + self.space.reserve_zones(),
            pages_per_block: identity.zone_units.into(),
            logical_pages: identity.logical_units.into(),
        }
    }

    fn check_invariants(&self) {
        self.check();
    }
}

impl<S: Subsystem> Logs for ZoneMap<S> {
    fn logs(&self) -> u16 {
        self.space.host_logs as u16
    }

    fn log_status(&self, log: u16) -> LogStatus {
        let Some([now, before]) = self.space.host_units.get(usize::from(log)) else {
            return LogStatus::default();
        };
        let unit = u64::from(self.shape.unit_bytes);
        let frontier = self.space.frontiers[usize::from(log)];
        LogStatus {
            piece_bytes: u64::from(self.space.zone_units) * unit,
            room_bytes: u64::from(frontier.room()) * unit,
            pieces: u64::from(frontier.room() > 0),
            host_bytes: (now - before) * unit,
            spilled_bytes: 0,
        }
    }
}
