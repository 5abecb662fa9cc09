//! What the layer is to hosts and reports.

use super::Oftl;
use super::config::ROOT_BLOCKS;
use super::oob::ObjectOob;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Allocation, BlockCommand, Clocked, Command, Control, Cost, Extent, FlashDevice, FlashLayer, FlashState,
    FtlStats, HostReports, Inspect, Layers, Logs, Lpn, Mapping, NamespaceError, NamespaceInfo,
    NamespaceResult, ObjectFlashReport, ObjectReport, ObjectReports, Op, Ppn, RecoveryReport, SimTime,
    Submitted, Subsystem, Token,
};

/// What was done since the last reset.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Blocks that were collected.
    pub collected: u64,
    /// Pages of them that were moved.
    pub moved_pages: u64,
    /// Writes to the flash, of any number of pages, and ends of update windows.
    pub flash: ObjectFlashReport,
}

nandscape_core::no_state!(impl [D: FlashDevice<ObjectOob>] Oftl<D>: "a store of objects (oftl)");

impl<D: FlashDevice<ObjectOob> + Send> Subsystem for Oftl<D> {
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

    fn join(&mut self, a: Token, b: Token) -> Token {
        self.device.join(a, b)
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        if self.stopped.is_some() {
            return Ok(());
        }
        self.end_eviction(at)?;
        while let Some((id, since)) = self.table.oldest() {
            let due = SimTime(since.0.saturating_add(self.config.flush_after)).max(at);
            if due > until {
                break;
            }
            self.flush_object(id, due)?;
        }
        Ok(())
    }

    fn shutdown(&mut self, at: SimTime) -> NamespaceResult<Token> {
        self.flush_all(at)?;
        if self.stopped.is_none() {
            self.checkpoint(true, at)?;
        }
        self.durable(at)
    }

    /// Objects have no addresses of which something could be known.
    fn allocation(&self, _: u32, extent: Extent) -> Allocation {
        Allocation { is_mapped: true, bytes: extent.len }
    }

    fn inspect(&self) -> Inspect<'_> {
        Inspect { layers: Layers::One(self), hosts: Some(self), objects: Some(self), ..Inspect::default() }
    }

    fn control(&mut self) -> Control<'_> {
        Control { chores: Some(self), ..Control::default() }
    }

    fn reset_counters(&mut self, at: SimTime) {
        // Who writes next is told if that fails.
        let _ = self.end_eviction(at);
        self.device.reset_counters();
        self.device.reset_time(at);
        self.hosts = HostCounts::default();
        self.reset_stats();
        // Tokens from before mean nothing once time starts anew.
        (self.written, self.erased, self.reading) = (Token::NONE, Token::NONE, Token::NONE);
        self.system.committed = Token::NONE;
        self.blocks.after.fill(Token::NONE);
    }

    fn check_invariants(&self) {
        self.check();
        assert_eq!(self.device.counters().total(), self.device.tally().totals, "causes of oftl");
    }
}

impl<D: FlashDevice<ObjectOob>> Clocked for Oftl<D> {
    nandscape_core::delegate_clock!(self, self.device);
}

impl<D: FlashDevice<ObjectOob>> HostReports for Oftl<D> {
    fn host_counts(&self, _: u32) -> HostCounts {
        self.hosts
    }
}

impl<D: FlashDevice<ObjectOob>> ObjectReports for Oftl<D> {
    fn objects(&self) -> ObjectReport {
        let page = u64::from(self.sizes.page_bytes);
        let in_use = self.blocks.good() - self.blocks.free_count;
        let rooms: u64 = self.blocks.windows.iter().map(|window| window.room).sum();
        ObjectReport {
            objects: self.table.count(),
            extents: self.table.loaded().map(|object| object.layout.runs().len() as u64).sum(),
            live_bytes: self.table.charged * page,
            used_bytes: (in_use * u64::from(self.blocks.pages) - rooms) * page,
            resets: self.counts.collected,
            moved_bytes: self.counts.moved_pages * page,
            on_flash: self.on_flash(),
            ..ObjectReport::default()
        }
    }

    fn on_flash(&self) -> Option<ObjectFlashReport> {
        Some(self.counts.flash)
    }
}

impl<D: FlashDevice<ObjectOob>> FlashLayer for Oftl<D> {
    fn device(&self) -> &dyn FlashState {
        &self.device
    }

    fn read_only(&self) -> Option<&'static str> {
        self.stopped
    }

    fn recovery(&self) -> Option<&RecoveryReport> {
        self.sizes.stores_data.then_some(&self.recovery)
    }
}

/// Pages have no addresses of hosts.
impl<D: FlashDevice<ObjectOob>> Mapping for Oftl<D> {
    fn logical_pages(&self) -> u64 {
        self.config.capacity
    }

    fn page_bytes(&self) -> u32 {
        self.sizes.page_bytes
    }

    fn lookup(&self, _: Lpn) -> Option<Ppn> {
        None
    }

    fn stats(&self) -> FtlStats {
        FtlStats {
            gc_runs: self.counts.collected,
            gc_moved_pages: self.counts.moved_pages,
            live_pages: self.table.charged,
            ..FtlStats::default()
        }
    }

    fn reset_stats(&mut self) {
        self.counts = Counts::default();
    }

    fn cost(&self) -> Cost {
        let layouts: u64 = self.table.loaded().map(|object| object.layout.bytes()).sum();
        let windows = 2 * u64::from(self.config.window);
        let evicted = self.eviction.as_ref().map_or(0, |eviction| eviction.flush().bytes());
        Cost {
            map_table_bytes: layouts,
            dram_bytes: self.table.bytes()
                + evicted
                + self.spare.bytes()
                + self.blocks.bytes()
                + self.system.bytes(),
            host_dram_bytes: 0,
            usable_bytes: self.config.capacity * u64::from(self.sizes.page_bytes),
            total_blocks: self.blocks.good(),
            reserve_blocks: u64::from(ROOT_BLOCKS) + windows + self.system.blocks.len() as u64,
            pages_per_block: self.blocks.pages.into(),
            logical_pages: self.config.capacity,
        }
    }

    fn check_invariants(&self) {
        self.check();
    }
}

impl<D: FlashDevice<ObjectOob>> Logs for Oftl<D> {}
