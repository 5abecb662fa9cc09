//! What a namespace with vector access is to hosts and reports.

use super::namespace::VectorNamespace;
use super::tag::VectorOob;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::vector::{ChunkDescriptor, ChunkState, VectorCounts, VectorGeometry};
use nandscape_core::{
    Allocation, BlockId, Cause, Clocked, Command, Control, Cost, Extent, FlashDevice, FlashLayer, FlashState,
    FtlStats, HostReports, Inspect, IssueControl, Layers, Logs, Lpn, Mapping, NamespaceInfo, NamespaceResult,
    Op, Ppn, RecoveryReport, SimTime, Submitted, Subsystem, Token, VectorReports,
};

/// Bytes that a controller keeps of each chunk: state and write pointer.
const CHUNK_ENTRY_BYTES: u64 = 8;

nandscape_core::no_state!(impl [O: VectorOob, D: FlashDevice<O>] VectorNamespace<D, O>: "vector access");

impl<O: VectorOob, D: FlashDevice<O> + Send> Subsystem for VectorNamespace<D, O> {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }

    fn prepare(&self, _: u32, _: Op, _: Extent) {}

    fn submit(&mut self, _: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        self.submit_command(command, payload, at)
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        self.device.join(a, b)
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
        Inspect { layers: Layers::One(self), hosts: Some(self), vectors: Some(self), ..Inspect::default() }
    }

    fn control(&mut self) -> Control<'_> {
        Control { issue: Some(self), ..Control::default() }
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.hosts = HostCounts::default();
        self.counts = VectorCounts::default();
        self.device.reset_counters();
        self.device.reset_time(at);
    }

    fn check_invariants(&self) {
        Mapping::check_invariants(self);
        assert_eq!(self.device.counters().total(), self.device.tally().totals, "causes of vector access");
    }
}

impl<O: VectorOob, D: FlashDevice<O> + Send> Clocked for VectorNamespace<D, O> {
    nandscape_core::delegate_clock!(self, self.device);
}

impl<O: VectorOob, D: FlashDevice<O>> IssueControl for VectorNamespace<D, O> {
    #[inline]
    fn issue(&mut self, cause: Cause, after: Token) {
        self.issued = (cause, after);
    }
}

impl<O: VectorOob, D: FlashDevice<O>> HostReports for VectorNamespace<D, O> {
    fn host_counts(&self, _: u32) -> HostCounts {
        self.hosts
    }
}

impl<O: VectorOob, D: FlashDevice<O>> VectorReports for VectorNamespace<D, O> {
    fn geometry(&self, _: u32) -> VectorGeometry {
        *self.layout.vector()
    }

    fn chunk(&self, _: u32, chunk: u32) -> ChunkDescriptor {
        self.describe(chunk)
    }

    fn vector_counts(&self, _: u32) -> VectorCounts {
        self.counts
    }
}

impl<O: VectorOob, D: FlashDevice<O>> FlashLayer for VectorNamespace<D, O> {
    fn device(&self) -> &dyn FlashState {
        &self.device
    }

    fn recovery(&self) -> Option<&RecoveryReport> {
        self.stores_data.then_some(&self.recovery)
    }
}

/// Logical pages are the pages of the flash: hosts address it as it is.
impl<O: VectorOob, D: FlashDevice<O>> Mapping for VectorNamespace<D, O> {
    fn logical_pages(&self) -> u64 {
        u64::from(self.layout.flash().pages())
    }

    fn page_bytes(&self) -> u32 {
        self.layout.flash().page_bytes
    }

    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        if lpn.0 >= self.layout.flash().pages() {
            return None;
        }
        let address = self.layout.address(Ppn(lpn.0));
        (address.sector < self.chunks.get(address).written).then_some(Ppn(lpn.0))
    }

    fn stats(&self) -> FtlStats {
        let sectors: u64 = self.chunks.all().iter().map(|chunk| u64::from(chunk.written)).sum();
        let live_pages = sectors / u64::from(self.layout.vector().pages.sectors);
        FtlStats { live_pages, ..FtlStats::default() }
    }

    fn reset_stats(&mut self) {
        self.counts = VectorCounts::default();
    }

    fn cost(&self) -> Cost {
        let geometry = self.layout.flash();
        let good = (0..geometry.blocks()).filter(|block| !self.device.is_bad(BlockId(*block))).count() as u64;
        let online =
            self.chunks.all().iter().filter(|chunk| chunk.state != ChunkState::Offline).count() as u64;
        Cost {
            map_table_bytes: 0,
            dram_bytes: self.chunks.all().len() as u64 * CHUNK_ENTRY_BYTES,
            host_dram_bytes: 0,
            usable_bytes: online * self.layout.vector().chunk_bytes(),
            total_blocks: good,
            reserve_blocks: 0,
            pages_per_block: u64::from(geometry.pages_per_block),
            logical_pages: self.logical_pages(),
        }
    }

    fn check_invariants(&self) {
        let geometry = self.layout.vector();
        for (number, chunk) in (0..).zip(self.chunks.all()) {
            let start = geometry.chunk_at(number);
            let context = format!("chunk {number}: {chunk:?}");
            assert!(chunk.written.is_multiple_of(geometry.write_min), "{context}");
            let is_bad = self.layout.blocks(start).any(|block| self.device.is_bad(block));
            assert_eq!(is_bad, chunk.state == ChunkState::Offline, "{context}");
            if is_bad {
                continue;
            }
            let rows = chunk.written / geometry.write_min;
            for block in self.layout.blocks(start) {
                let programmed = self.device.write_pointer(block);
                match chunk.state {
                    ChunkState::Free => assert_eq!((rows, programmed), (0, 0), "{context}"),
                    ChunkState::Open => {
                        assert_eq!(programmed, rows, "{context}");
                        assert!(rows > 0 && chunk.written < geometry.sectors, "{context}");
                    }
                    ChunkState::Closed => assert!(programmed >= rows, "{context}"),
                    ChunkState::Offline => unreachable!(),
                }
            }
        }
    }
}

impl<O: VectorOob, D: FlashDevice<O>> Logs for VectorNamespace<D, O> {}
