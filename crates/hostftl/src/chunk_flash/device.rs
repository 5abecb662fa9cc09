//! The contract of a flash device.

use super::{Chunk, ChunkFlash, Sabotage};
use nandscape_core::command::Payload;
use nandscape_core::vector::{ChunkState, VectorCommand, VectorError};
use nandscape_core::{
    Barrier, BlockId, BlockState, Capabilities, Cause, Clocked, FlashDevice, FlashError, FlashResult,
    FlashState, Geometry, Issue, Oob, OutOfBand, PageRead, Ppn, ReadResult, SimTime, Subsystem, Token, Way,
};

impl<S: Subsystem> ChunkFlash<S> {
    /// Reads sectors of a page into bytes, or for their time alone.
    fn read_sectors(
        &mut self,
        page: Ppn,
        (from, count): (u32, u32),
        data: Option<&mut [u8]>,
        issue: Issue,
    ) -> ReadResult {
        let mut oob = [Oob::TORN];
        let list = self.sectors(page, from, count);
        let payload = Payload::ReadOob(data, &mut oob);
        let (done, errors) = self.vector(VectorCommand::Read(list), payload, issue)?;
        match errors.first() {
            None => Ok(PageRead { oob: oob[0], done }),
            // Pages whose program was cut short are above the write pointer of a chunk. Those that a device
            // hides are read from here, unless it took no padding at the start.
            Some(VectorError::Unrecovered | VectorError::Unwritten) if issue.cause == Cause::Meta => {
                Err(FlashError::Damaged { page })
            }
            Some(VectorError::Unrecovered | VectorError::Unwritten) => {
                Err(FlashError::Uncorrectable { page })
            }
            Some(VectorError::Offline) => Err(FlashError::BadBlock { block: self.geometry.block_of(page) }),
            Some(error) => unreachable!("a read of page {}, which was checked: {error}", page.0),
        }
    }

    /// The bytes of a page of the tails from one on, or a page that its chunk does not have; `None` if the
    /// device has to be asked.
    fn read_tail(&self, page: Ppn, start: u32, data: Option<&mut [u8]>, issue: Issue) -> Option<PageRead> {
        let (block, index) = (self.geometry.block_of(page), self.geometry.page_in_block(page));
        let written = self.chunks[block.index()].written;
        if index >= written {
            if let Some(data) = data {
                data.fill(0);
            }
            return Some(PageRead { oob: Oob::TORN, done: issue.after });
        }
        if index < self.tail_from(block) {
            return None;
        }
        let (oob, bytes) = self.tails.get(block, written - 1 - index)?;
        if let Some(data) = data.filter(|_| !bytes.is_empty()) {
            data.copy_from_slice(&bytes[start as usize..][..data.len()]);
        }
        Some(PageRead { oob, done: issue.after })
    }

    const fn whole_page(&self) -> (u32, u32) {
        (0, self.vector.write_min)
    }

    /// The sectors of a page that hold so many bytes from one on; at least one.
    const fn part(&self, start: u32, bytes: u32) -> (u32, u32) {
        let sector = self.vector.sector_bytes;
        let from = start / sector;
        let end = (start + bytes).div_ceil(sector);
        (from, if end > from { end - from } else { 1 })
    }
}

impl<S: Subsystem> FlashDevice for ChunkFlash<S> {
    fn read(&mut self, page: Ppn, transfer: u32, data: Option<&mut [u8]>, issue: Issue) -> ReadResult {
        self.check_read(page, issue.cause)?;
        let mut data = data.filter(|_| self.capabilities.stores_data);
        if let Some(read) = self.read_tail(page, 0, data.as_deref_mut(), issue) {
            return Ok(read);
        }
        let sectors = if data.is_some() { self.whole_page() } else { self.part(0, transfer) };
        self.read_sectors(page, sectors, data, issue)
    }

    fn read_part(&mut self, page: Ppn, start: u32, data: &mut [u8], issue: Issue) -> ReadResult {
        self.check_read(page, issue.cause)?;
        if let Some(read) = self.read_tail(page, start, Some(data), issue) {
            return Ok(read);
        }
        let (from, count) = self.part(start, data.len() as u32);
        if !self.capabilities.stores_data {
            return self.read_sectors(page, (from, count), None, issue);
        }
        let sector = self.vector.sector_bytes;
        let mut buffer = std::mem::take(&mut self.buffer);
        let bytes = &mut buffer[..(count * sector) as usize];
        let read = self.read_sectors(page, (from, count), Some(bytes), issue);
        data.copy_from_slice(&bytes[(start - from * sector) as usize..][..data.len()]);
        self.buffer = buffer;
        read
    }

    fn program(
        &mut self,
        page: Ppn,
        oob: Oob,
        _transfer: u32,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> FlashResult<Token> {
        let pages = self.geometry.pages();
        if page.0 >= pages {
            return Err(FlashError::OutOfRange { address: page.0.into(), limit: pages.into() });
        }
        let (block, index) = (self.geometry.block_of(page), self.geometry.page_in_block(page));
        let Chunk { state, written } = self.chunks[block.index()];
        match state {
            ChunkState::Offline => return Err(FlashError::BadBlock { block }),
            ChunkState::Closed => return Err(FlashError::NotErased { page }),
            _ if index < written => return Err(FlashError::NotErased { page }),
            _ if index > written => return Err(FlashError::OutOfOrder { page, expected: written }),
            _ => {}
        }
        let (from, count) = self.whole_page();
        let list = self.sectors(page, from, count);
        let data = data.filter(|_| self.capabilities.stores_data);
        let oob = [oob];
        let (done, errors) = self.vector(VectorCommand::Write(list), Payload::WriteOob(data, &oob), issue)?;
        let chunk = &mut self.chunks[block.index()];
        match errors.first() {
            None => {
                let is_full = written + 1 == self.geometry.pages_per_block;
                *chunk = Chunk {
                    state: if is_full { ChunkState::Closed } else { ChunkState::Open },
                    written: written + 1,
                };
                if is_full {
                    self.tails.drop_block(block);
                } else {
                    self.tails.push(block, oob[0], data);
                }
                Ok(done)
            }
            Some(error) => {
                *chunk = match error {
                    VectorError::WriteNextUnit if written + 1 < self.geometry.pages_per_block => {
                        Chunk { state: ChunkState::Open, written: written + 1 }
                    }
                    VectorError::Offline => Chunk { state: ChunkState::Offline, written },
                    _ => Chunk { state: ChunkState::Closed, written },
                };
                if chunk.state == ChunkState::Open {
                    self.tails.push(block, Oob::TORN, data);
                } else {
                    self.tails.drop_block(block);
                }
                Err(FlashError::ProgramFailed { page })
            }
        }
    }

    fn erase(&mut self, block: BlockId, issue: Issue) -> FlashResult<Token> {
        let blocks = self.geometry.blocks();
        if block.0 >= blocks {
            return Err(FlashError::OutOfRange { address: block.0.into(), limit: blocks.into() });
        }
        let Chunk { state, written } = self.chunks[block.index()];
        let sectors = match state {
            ChunkState::Offline => return Err(FlashError::BadBlock { block }),
            ChunkState::Closed => self.vector.sectors,
            ChunkState::Free | ChunkState::Open => written * self.vector.write_min,
        };
        let address = self.chunk_of(block);
        let erased =
            self.below.erase_chunk(address, sectors, &self.vector, issue).map_err(super::flash_error)?;
        self.tails.drop_block(block);
        let state = if erased.is_ok() { ChunkState::Free } else { ChunkState::Offline };
        self.chunks[block.index()] = Chunk { state, written: 0 };
        erased.map_err(|_| FlashError::EraseFailed { block })
    }

    /// The chunk is reset if it is kept for another start, which does not know that it was given up: nothing
    /// of what it held comes back.
    fn mark_bad(&mut self, block: BlockId) {
        if self.capabilities.stores_data && self.chunks[block.index()].state != ChunkState::Offline {
            let at = self.below.device.idle_from();
            // A chunk that cannot be reset is offline, and one of a device that takes no more writes stays.
            let _ = self.erase(block, Issue::new(at, Cause::Gc));
        }
        self.chunks[block.index()].state = ChunkState::Offline;
    }

    /// The host knows without the device that there is nothing.
    fn read_unmapped(&mut self, _: Ppn, _: u32, issue: Issue) -> FlashResult<Token> {
        Ok(issue.after)
    }
}

impl<S: Subsystem> BlockState for ChunkFlash<S> {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        self.geometry.page_in_block(page) < self.write_pointer(self.geometry.block_of(page))
    }

    fn write_pointer(&self, block: BlockId) -> u32 {
        let Chunk { state, written } = self.chunks[block.index()];
        if state == ChunkState::Offline {
            return self.below.flash().write_pointer(block);
        }
        let is_whole = state == ChunkState::Closed && self.sabotage != Sabotage::ForgetEarlyClose;
        if is_whole { self.geometry.pages_per_block } else { written }
    }

    nandscape_core::delegate_blocks!(self, self.below.flash(); erase_count);

    fn is_bad(&self, block: BlockId) -> bool {
        self.chunks[block.index()].state == ChunkState::Offline
    }
}

impl<S: Subsystem> Clocked for ChunkFlash<S> {
    nandscape_core::delegate_clock!(self, self.below.device);
}

nandscape_core::no_state!(impl [S: Subsystem] ChunkFlash<S>: "a flash device made of chunks");

impl<S: Subsystem> FlashState for ChunkFlash<S> {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    nandscape_core::delegate_state!(self, self.below.device; join);

    /// What no flash operation moves the host has already.
    fn pass(&mut self, _: Way, _: u32, _: SimTime, after: Token) -> Token {
        after
    }

    fn barrier(&mut self, _: Barrier, at: SimTime) -> FlashResult<Token> {
        self.below.flush(Issue::new(at, Cause::Host)).map_err(super::flash_error)
    }

    nandscape_core::delegate_state!(self, self.below.flash(); counters, tally);

    /// With [`FlashState::reset_time`], which is called after it.
    fn reset_counters(&mut self) {}

    fn reset_time(&mut self, at: SimTime) {
        self.below.device.reset_counters(at);
    }
}
