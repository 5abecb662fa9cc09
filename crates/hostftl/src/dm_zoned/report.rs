//! What the layer is to hosts and reports.

use super::DmZoned;
use super::format::{self, Chunk};
use super::zones::Use;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Allocation, Clocked, Command, Control, Cost, Extent, FlashLayer, FlashState, FtlStats, HostReports,
    Inspect, Layers, Logs, Lpn, Mapping, NamespaceInfo, NamespaceResult, Op, Ppn, RecoveryReport, SimTime,
    Submitted, Subsystem, Token,
};

nandscape_core::no_state!(impl [S: Subsystem] DmZoned<S>: "dm-zoned");

impl<S: Subsystem + Send> Subsystem for DmZoned<S> {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }

    fn prepare(&self, _: u32, _: Op, _: Extent) {}

    #[inline]
    fn submit(&mut self, _: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        Ok(self.block(command.into_block()?, payload, at)?.into())
    }

    #[inline]
    fn join(&mut self, a: Token, b: Token) -> Token {
        self.below.device.join(a, b)
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        let reclaimed = self.reclaim_until(until);
        if self.stopped.is_none() {
            reclaimed?;
        }
        self.below.device.idle(at, until)
    }

    fn shutdown(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let mut done = Token::NONE;
        if self.stopped.is_none() {
            self.give_up();
            self.meta.close();
            done = self.commit(at)?;
        }
        let below = self.below.device.shutdown(at)?;
        Ok(self.below.device.join(done, below))
    }

    fn allocation(&self, _: u32, extent: Extent) -> Allocation {
        Mapping::allocation(self, extent)
    }

    fn inspect(&self) -> Inspect<'_> {
        let below = self.below.device.inspect();
        Inspect { layers: Layers::One(self), hosts: Some(self), zones: below.zones, ..Inspect::default() }
    }

    fn control(&mut self) -> Control<'_> {
        Control::default()
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.below.device.reset_counters(at);
        self.hosts = HostCounts::default();
        self.reset_stats();
        // Tokens from before mean nothing once time starts anew.
        (self.written, self.meta.committed) = (Token::NONE, Token::NONE);
        self.zones.all.iter_mut().for_each(|zone| zone.ready = Token::NONE);
        self.reclaim.reset_time(at);
    }

    fn check_invariants(&self) {
        Mapping::check_invariants(self);
        self.below.device.check_invariants();
    }
}

impl<S: Subsystem> Clocked for DmZoned<S> {
    nandscape_core::delegate_clock!(self, self.below.device);
}

impl<S: Subsystem> HostReports for DmZoned<S> {
    fn host_counts(&self, _: u32) -> HostCounts {
        self.hosts
    }
}

impl<S: Subsystem> FlashLayer for DmZoned<S> {
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

/// Pages are blocks here.
impl<S: Subsystem> Mapping for DmZoned<S> {
    fn logical_pages(&self) -> u64 {
        self.shape.capacity_bytes / self.shape.block_bytes
    }

    fn page_bytes(&self) -> u32 {
        self.shape.identity.block_bytes
    }

    /// The number of the block among those of all zones.
    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        let identity = &self.shape.identity;
        let block = lpn.0 % identity.zone_blocks;
        let Chunk { data, buffer } = *self.chunks.get((lpn.0 / identity.zone_blocks) as usize)?;
        let zone = [data, buffer].into_iter().find(|zone| self.zones.is_valid(*zone, block))?;
        format::place(identity, zone, block)
    }

    fn stats(&self) -> FtlStats {
        FtlStats {
            map_update_bytes: self.stats.map_updates * 8,
            // Counted in blocks.
            gc_moved_pages: self.stats.gc_moved_pages * self.shape.block_bytes
                / u64::from(self.shape.page_bytes),
            live_pages: self.zones.valid_blocks(),
            ..self.stats
        }
    }

    fn reset_stats(&mut self) {
        self.stats = FtlStats::default();
    }

    fn cost(&self) -> Cost {
        let identity = &self.shape.identity;
        let good = self.zones.all.iter().filter(|zone| zone.purpose != Use::Bad).count() as u64;
        let map_table_bytes = self.chunks.len() as u64 * format::ENTRY;
        Cost {
            map_table_bytes,
            dram_bytes: self.below.dram_bytes(),
            host_dram_bytes: map_table_bytes + self.zones.bytes() + self.meta.bytes() + self.reclaim.bytes(),
            usable_bytes: self.shape.capacity_bytes,
            total_blocks: good,
            reserve_blocks: u64::from(identity.zones - identity.chunks),
            pages_per_block: identity.zone_blocks.into(),
            logical_pages: self.logical_pages(),
        }
    }

    fn check_invariants(&self) {
        self.check_chunks();
        self.check_each_zone();
    }
}

impl<S: Subsystem> Logs for DmZoned<S> {}
