//! What the layer is to hosts and reports.

use super::ZoneFiles;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::zone::{Zone, ZoneContents, ZoneCounts, ZoneShape};
use nandscape_core::{
    Allocation, BlockCommand, Clocked, Command, Control, Cost, Extent, FlashLayer, FlashState, FtlStats,
    HostReports, Inspect, Layers, Logs, Lpn, Mapping, NamespaceError, NamespaceInfo, NamespaceResult,
    ObjectFlashReport, ObjectReport, ObjectReports, Op, Ppn, RecoveryReport, SimTime, Submitted, Subsystem,
    Token, ZoneReports,
};
use nandscape_ftl::victim::BlockState;

nandscape_core::no_state!(impl [S: Subsystem] ZoneFiles<S>: "zone-files");

impl<S: Subsystem + Send> Subsystem for ZoneFiles<S> {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }

    /// Objects have no addresses that could be looked up ahead.
    fn prepare(&self, _: u32, _: Op, _: Extent) {}

    #[inline]
    fn submit(&mut self, _: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        match command {
            Command::Object(command) => self.object(command, payload, at),
            Command::Block(BlockCommand { op: Op::Flush, .. }) => Ok(self.flush(None, at)?.into()),
            command => Err(NamespaceError::NotSupported { command: command.name() }),
        }
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

    /// Objects have no addresses of which something could be known.
    fn allocation(&self, _: u32, extent: Extent) -> Allocation {
        Allocation { is_mapped: true, bytes: extent.len }
    }

    fn inspect(&self) -> Inspect<'_> {
        Inspect {
            layers: Layers::One(self),
            hosts: Some(self),
            zones: Some(self),
            objects: Some(self),
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
        (self.committed, self.pace) = (Token::NONE, Token::NONE);
        self.collector.forget_tokens();
        self.space.forget_tokens();
        self.log.forget_tokens();
        self.files.forget_tokens();
    }

    fn check_invariants(&self) {
        self.check();
        self.below.device.check_invariants();
    }
}

impl<S: Subsystem> Clocked for ZoneFiles<S> {
    nandscape_core::delegate_clock!(self, self.below.device);
}

impl<S: Subsystem> HostReports for ZoneFiles<S> {
    fn host_counts(&self, _: u32) -> HostCounts {
        self.hosts
    }
}

impl<S: Subsystem> ObjectReports for ZoneFiles<S> {
    fn on_flash(&self) -> Option<ObjectFlashReport> {
        None
    }

    fn objects(&self) -> ObjectReport {
        ObjectReport {
            objects: self.files.count(),
            extents: self.files.iter().map(|(_, file)| file.extents.iter().count() as u64).sum(),
            live_bytes: self.space.live * self.shape.unit,
            used_bytes: self.space.used() * self.shape.unit,
            ..self.stats
        }
    }
}

impl<S: Subsystem> ZoneFiles<S> {
    fn zones_below(&self) -> &dyn ZoneReports {
        self.below.device.inspect().zones.expect("it lies on zones")
    }
}

impl<S: Subsystem> ZoneReports for ZoneFiles<S> {
    fn zone_shape(&self, _: u32) -> ZoneShape {
        self.zones_below().zone_shape(0)
    }

    fn zone(&self, _: u32, zone: u32) -> Zone {
        self.zones_below().zone(0, zone)
    }

    fn contents(&self, _: u32, zone: u32) -> ZoneContents {
        self.space.contents(zone, self.shape.unit)
    }

    fn zone_counts(&self, _: u32) -> ZoneCounts {
        self.zones_below().zone_counts(0)
    }
}

impl<S: Subsystem> FlashLayer for ZoneFiles<S> {
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

/// Pages are units here; they have no addresses.
impl<S: Subsystem> Mapping for ZoneFiles<S> {
    fn logical_pages(&self) -> u64 {
        self.capacity
    }

    fn page_bytes(&self) -> u32 {
        self.shape.config.identity.unit_bytes
    }

    fn lookup(&self, _: Lpn) -> Option<Ppn> {
        None
    }

    fn stats(&self) -> FtlStats {
        FtlStats {
            gc_runs: self.stats.resets,
            gc_moved_pages: self.stats.moved_bytes / self.shape.unit,
            live_pages: self.space.live,
            ..FtlStats::default()
        }
    }

    fn reset_stats(&mut self) {
        self.stats = ObjectReport::default();
    }

    fn cost(&self) -> Cost {
        let identity = self.shape.config.identity;
        let good = self.space.infos.iter().filter(|info| info.state != BlockState::Bad).count() as u64;
        // Lists of the victim policy.
        let policy_bytes = self.space.infos.len() as u64 * 8;
        Cost {
            map_table_bytes: self.files.record_bytes,
            dram_bytes: self.below.dram_bytes(),
            host_dram_bytes: self.below.device.inspect().host_bytes
                + self.files.bytes()
                + self.space.bytes()
                + policy_bytes
                + self.collector.bytes()
                + self.log.bytes(),
            usable_bytes: self.capacity * self.shape.unit,
            total_blocks: good,
            reserve_blocks: u64::from(identity.ring)
                + self.shape.config.reserve_units / u64::from(identity.zone_units),
            pages_per_block: identity.zone_units.into(),
            logical_pages: self.capacity,
        }
    }

    fn check_invariants(&self) {
        self.check();
    }
}

impl<S: Subsystem> Logs for ZoneFiles<S> {}
