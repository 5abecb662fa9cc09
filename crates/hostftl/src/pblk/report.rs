//! What the layer is to hosts and reports.

use super::{Lpn, Pblk};
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Allocation, Clocked, Command, Control, Cost, Extent, FlashLayer, FlashState, FtlStats, HostReports,
    Inspect, Layers, Logs, Mapping, NamespaceInfo, NamespaceResult, Op, Ppn, RecoveryReport, SimTime,
    Submitted, Subsystem, Token,
};
use nandscape_ftl::victim::BlockState;

nandscape_core::no_state!(impl [S: Subsystem] Pblk<S>: "pblk");

impl<S: Subsystem + Send> Subsystem for Pblk<S> {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }

    fn prepare(&self, _: u32, _: Op, extent: Extent) {
        self.map.prefetch(extent.offset / u64::from(self.shape.identity.page_bytes));
    }

    fn submit(&mut self, _: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        Ok(self.block(command.into_block()?, payload, at)?.into())
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        self.below.device.join(a, b)
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        if self.stopped.is_none() {
            self.work_in_background(at, until)?;
        }
        self.below.device.idle(at, until)
    }

    fn shutdown(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let done = self.flush(at)?;
        let below = self.below.device.shutdown(at)?;
        Ok(self.below.device.join(done, below))
    }

    fn allocation(&self, _: u32, extent: Extent) -> Allocation {
        Mapping::allocation(self, extent)
    }

    fn inspect(&self) -> Inspect<'_> {
        let vectors = self.below.device.inspect().vectors;
        Inspect { layers: Layers::One(self), hosts: Some(self), vectors, ..Inspect::default() }
    }

    fn control(&mut self) -> Control<'_> {
        Control::default()
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.below.device.reset_counters(at);
        self.hosts = HostCounts::default();
        self.reset_stats();
        // Tokens from before mean nothing once time starts anew.
        self.ring.forget_tokens();
        let lines = &mut self.lines;
        (lines.done, lines.erasing) = (Token::NONE, Token::NONE);
        lines.durable = lines.durable.map(|_| Token::NONE);
        lines.free.iter_mut().for_each(|(_, ready)| *ready = Token::NONE);
        if let Some(open) = &mut lines.open {
            (open.after, open.done) = (Token::NONE, Token::NONE);
        }
    }

    fn check_invariants(&self) {
        Mapping::check_invariants(self);
        self.below.device.check_invariants();
    }
}

impl<S: Subsystem> Clocked for Pblk<S> {
    nandscape_core::delegate_clock!(self, self.below.device);
}

impl<S: Subsystem> HostReports for Pblk<S> {
    fn host_counts(&self, _: u32) -> HostCounts {
        self.hosts
    }
}

impl<S: Subsystem> FlashLayer for Pblk<S> {
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

impl<S: Subsystem> Mapping for Pblk<S> {
    fn logical_pages(&self) -> u64 {
        self.shape.identity.logical_pages.into()
    }

    fn page_bytes(&self) -> u32 {
        self.shape.identity.page_bytes
    }

    /// The number of the place among those of all lines; nothing for a page that is in the ring alone.
    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        let entry = self.map.entries().get(lpn.index()).copied().filter(|entry| entry.is_some())?;
        self.place_of(entry)
    }

    fn allocation(&self, extent: Extent) -> Allocation {
        self.map.mapped_at(extent, self.shape.identity.page_bytes, self.shape.capacity_bytes)
    }

    fn stats(&self) -> FtlStats {
        FtlStats { map_update_bytes: self.stats.map_updates * 8, live_pages: self.map.live, ..self.stats }
    }

    fn reset_stats(&mut self) {
        self.stats = FtlStats::default();
    }

    fn cost(&self) -> Cost {
        let identity = self.shape.identity;
        let good = self.blocks.infos.iter().filter(|info| info.state != BlockState::Bad).count() as u64;
        let map_table_bytes = u64::from(identity.logical_pages) * size_of::<Ppn>() as u64;
        let owners = self.owners.len() as u64 * size_of::<Lpn>() as u64;
        // Lists of the victim policy.
        let policy_bytes = self.blocks.infos.len() as u64 * 8;
        Cost {
            map_table_bytes,
            dram_bytes: self.below.dram_bytes(),
            host_dram_bytes: self.map.bytes()
                + owners
                + self.blocks.bytes()
                + self.lines.bytes()
                + policy_bytes
                + self.ring.bytes(),
            usable_bytes: self.shape.capacity_bytes,
            total_blocks: good,
            reserve_blocks: u64::from(self.lines.low) + 1,
            pages_per_block: identity.line_pages.into(),
            logical_pages: identity.logical_pages.into(),
        }
    }

    fn check_invariants(&self) {
        let mut live = 0;
        let mut placed = 0;
        for (lpn, entry) in (0..).map(Lpn).zip(self.map.entries()) {
            live += u64::from(entry.is_some());
            if entry.is_some()
                && let Some(place) = self.place_of(*entry)
            {
                placed += 1;
                assert_eq!(self.owners[place.index()], lpn, "owner of {place:?}");
                assert!(self.blocks.is_valid(place), "{lpn:?} is at {place:?}, which is not valid");
            }
        }
        assert_eq!(live, self.map.live, "mapped pages");
        let valid: u64 = self.blocks.infos.iter().map(|info| u64::from(info.valid)).sum();
        assert_eq!(valid, placed + self.drops.kept.len() as u64, "valid places");
        for (slot, held) in self.ring.slots.iter().enumerate() {
            let is_page = held.lpn.0 < self.shape.identity.logical_pages;
            assert!(!is_page || !self.is_current(slot, held.lpn) || self.map.get(held.lpn).is_some());
        }
        for (line, info) in (0..).zip(&self.blocks.infos) {
            assert_eq!(self.blocks.count_bits(line), info.valid, "valid places of line {line}");
            let is_free = self.lines.free.iter().any(|(free, _)| *free == line);
            let is_open = self.lines.open.as_ref().is_some_and(|open| open.line == line);
            assert_eq!(info.state == BlockState::Free, is_free, "line {line} is {info:?}, free: {is_free}");
            assert_eq!(info.state == BlockState::Open, is_open, "line {line} is {info:?}, open: {is_open}");
        }
    }
}

impl<S: Subsystem> Logs for Pblk<S> {}
