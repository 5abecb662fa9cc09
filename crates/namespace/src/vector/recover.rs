//! What a start makes of what the flash holds.
//!
//! The write pointers of the blocks are those of the chunks. Where bytes are kept, a chunk ends before the
//! pages at its end that cannot be read: their program failed, or it or an erase was cut short. Such a chunk
//! is closed, and so is one whose planes differ: the host resets it. With [`FailedProgram::SkipsUnit`] a
//! write unit that failed counts as written, so that its chunk stays open.
//!
//! Planes of a chunk are erased each by itself. Where some of them were written again and others still have
//! what they had before the reset, the sequence numbers of the first pages are not consecutive; nothing of
//! such a chunk counts as written.

use super::chunks::Chunk;
use super::namespace::VectorNamespace;
use super::setup::FailedProgram;
use super::tag::VectorOob;
use nandscape_core::recovery::RecoverySource;
use nandscape_core::vector::{ChunkState, SectorAddress};
use nandscape_core::{BlockId, Cause, FlashDevice, FlashError, FlashResult, Issue, RecoveryReport, SimTime};

impl<O: VectorOob, D: FlashDevice<O>> VectorNamespace<D, O> {
    pub(super) fn start(&mut self) -> FlashResult<RecoveryReport> {
        let mut report = RecoveryReport { source: RecoverySource::Scan, ..RecoveryReport::default() };
        let geometry = *self.layout.vector();
        for number in 0..geometry.all_chunks() {
            let start = geometry.chunk_at(number);
            let chunk = self.find(start, &mut report)?;
            report.live_pages += u64::from(chunk.written / geometry.pages.sectors);
            self.chunks.set(start, chunk);
        }
        Ok(report)
    }

    fn find(&mut self, start: SectorAddress, report: &mut RecoveryReport) -> FlashResult<Chunk> {
        let unit = self.layout.vector().write_min;
        let (mut whole, mut most) = (u32::MAX, 0);
        for block in self.layout.blocks(start) {
            if self.device.is_bad(block) {
                return Ok(Chunk::OFFLINE);
            }
            let rows = self.device.write_pointer(block);
            (whole, most) = (whole.min(rows), most.max(rows));
        }
        if most == 0 {
            return Ok(Chunk::FREE);
        }
        let mut is_cut = whole < most;
        if self.stores_data {
            for block in self.layout.blocks(start) {
                report.scanned_blocks += 1;
                let readable = self.readable(block, whole, report)?;
                if self.setup.failed_program == FailedProgram::ClosesChunk {
                    is_cut |= readable < whole;
                    whole = whole.min(readable);
                }
            }
        }
        if whole > 0 && !self.is_of_one_reset(start)? {
            (whole, is_cut) = (0, true);
        }
        let written = whole * unit;
        let is_full = written == self.layout.vector().sectors;
        let state = if is_cut || is_full { ChunkState::Closed } else { ChunkState::Open };
        Ok(Chunk { state, written })
    }

    /// Whether the planes of a chunk were written since the same reset, as far as their first pages can be
    /// read.
    fn is_of_one_reset(&mut self, start: SectorAddress) -> FlashResult<bool> {
        if !self.stores_data || self.setup.host_oob || self.layout.vector().pages.chunk_planes() == 1 {
            return Ok(true);
        }
        let mut first = None;
        for (plane, block) in (0..).zip(self.layout.blocks(start)) {
            let page = self.layout.flash().page(block, 0);
            match self.device.read_part(page, 0, &mut [0], Issue::new(SimTime::ZERO, Cause::Meta)) {
                Ok(read) => {
                    let seq = read.oob.tag().map(|tag| tag.seq.wrapping_sub(plane));
                    if *first.get_or_insert(seq) != seq {
                        return Ok(false);
                    }
                }
                Err(FlashError::Uncorrectable { .. } | FlashError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Pages of a block up to the last that can be read, of so many; programs go on with higher numbers.
    fn readable(&mut self, block: BlockId, pages: u32, report: &mut RecoveryReport) -> FlashResult<u32> {
        for index in (0..pages).rev() {
            let page = self.layout.flash().page(block, index);
            report.scanned_pages += 1;
            match self.device.read_part(page, 0, &mut [0], Issue::new(SimTime::ZERO, Cause::Meta)) {
                Ok(_) if self.setup.host_oob => return Ok(index + 1),
                Ok(read) => match read.oob.tag() {
                    Some(tag) if tag.page == page => {
                        self.next_seq = self.next_seq.max(tag.seq + 1);
                        return Ok(index + 1);
                    }
                    _ => report.torn_pages += 1,
                },
                Err(FlashError::Uncorrectable { .. } | FlashError::Damaged { .. }) => report.torn_pages += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(0)
    }
}
