//! A flash device made of the chunks of a namespace with vector access: any translation layer, and zones, can
//! be software of the host.
//!
//! A block is a chunk, a page the smallest write. Pages, their OOB and resets go by vector commands; states
//! and write pointers are those of the chunk reports. Counters and erase counts are what the device shows of
//! itself.
//!
//! Invariants:
//! * the write pointer of a block is that of its chunk; a chunk that closed early counts as programmed to its
//!   end, and what it does not have cannot be read;
//! * the last pages of an open chunk, which the device does not give back yet, are kept here. A start writes
//!   pages without an owner behind them, so that they can be read.

mod device;
mod sabotage;
mod tails;

pub use sabotage::Sabotage;

use crate::below::Below;
use crate::error::HostFtlError;
use nandscape_core::command::Payload;
use nandscape_core::vector::{
    ChunkDescriptor, ChunkState, SectorAddress, SectorErrors, VectorCommand, VectorGeometry,
};
use nandscape_core::{
    BlockId, Capabilities, Cause, FlashError, FlashResult, FtlError, Geometry, Issue, NamespaceError,
    NamespaceResult, Oob, OutOfBand, Ppn, SimTime, Subsystem, Token,
};
use tails::Tails;

const NAME: &str = "flash of chunks";

/// What is known of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    state: ChunkState,
    /// Pages below its write pointer.
    written: u32,
}

/// A flash device over the namespace 0 of a subsystem, which has vector access with an OOB of the host's.
pub struct ChunkFlash<S> {
    below: Below<S>,
    geometry: Geometry,
    vector: VectorGeometry,
    capabilities: Capabilities,
    /// By block.
    chunks: Vec<Chunk>,
    tails: Tails,
    /// A page.
    buffer: Vec<u8>,
    sabotage: Sabotage,
}

impl<S: Subsystem> ChunkFlash<S> {
    /// Blocks that are the chunks as they are.
    ///
    /// # Errors
    ///
    /// A subsystem without vector access, chunks of several planes, and chunks that keep no OOB of a host.
    pub fn new(device: S) -> Result<Self, HostFtlError> {
        Self::with_sabotage(device, Sabotage::None)
    }

    /// A device that breaks one of its promises, for tests of the tests.
    #[doc(hidden)]
    pub fn with_sabotage(device: S, sabotage: Sabotage) -> Result<Self, HostFtlError> {
        let mut below = Below { device };
        let lacks = |reason: &str| HostFtlError::Device { layer: NAME, reason: reason.to_owned() };
        let Some(vector) = below.geometry() else { return Err(lacks("it has no vector access")) };
        if !vector.keeps_host_oob {
            return Err(lacks("it keeps no OOB of the host"));
        }
        if vector.write_min != vector.pages.sectors {
            return Err(lacks("its chunks span several planes, expected one plane each"));
        }
        let (geometry, capabilities) = {
            let inside = below.device.inspect();
            let layer = inside.layers.first().ok_or_else(|| lacks("it has no flash"))?;
            let dram_below = Some(layer.cost().dram_bytes);
            let capabilities = layer.device().capabilities();
            (
                *layer.device().geometry(),
                Capabilities {
                    out_of_order_program: false,
                    lasting_programs: false,
                    dram_below,
                    ..capabilities
                },
            )
        };
        let mut this = Self {
            below,
            chunks: vec![Chunk { state: ChunkState::Free, written: 0 }; geometry.blocks() as usize],
            tails: Tails::new(vector.cached / vector.write_min),
            buffer: vec![0; if capabilities.stores_data { geometry.page_bytes as usize } else { 0 }],
            sabotage,
            capabilities,
            geometry,
            vector,
        };
        this.pad_open()?;
        this.find()?;
        Ok(this)
    }

    /// Finds states and write pointers.
    fn find(&mut self) -> NamespaceResult<()> {
        for found in self.below.chunks()? {
            let block = self.block_of(found.start);
            let written = found.write_pointer / self.vector.write_min;
            self.chunks[block.index()] = Chunk { state: found.state, written };
        }
        Ok(())
    }

    /// Writes on in open chunks, so that what a loss of power left there can be read.
    fn pad_open(&mut self) -> NamespaceResult<()> {
        if self.vector.cached == 0 || self.sabotage == Sabotage::LeaveTailsHidden {
            return Ok(());
        }
        for found in self.below.chunks()? {
            let ChunkDescriptor { state, start, write_pointer, .. } = found;
            if state != ChunkState::Open {
                continue;
            }
            let end = (write_pointer + self.vector.cached).min(self.vector.sectors);
            let issue = Issue::new(SimTime::ZERO, Cause::Finish);
            match self.below.pad_chunk(start, (write_pointer, end), &self.vector, issue) {
                // What there is can be read, but for these.
                Err(NamespaceError::Ftl(
                    FtlError::ReadOnly { .. } | FtlError::Flash(FlashError::ReadOnly { .. }),
                )) => return Ok(()),
                padded => padded?,
            };
            for _ in 0..(end - write_pointer) / self.vector.write_min {
                self.tails.push(self.block_of(start), Oob::TORN, Some(&self.buffer));
            }
        }
        Ok(())
    }

    /// The first sector of the chunk of a block.
    const fn chunk_of(&self, block: BlockId) -> SectorAddress {
        let unit = self.geometry.unit_of(block);
        SectorAddress {
            group: self.geometry.channel_of(unit) as u16,
            unit: self.geometry.lun_of(unit) as u16,
            chunk: self.geometry.block_in_unit(block),
            sector: 0,
        }
    }

    const fn block_of(&self, chunk: SectorAddress) -> BlockId {
        let unit = self.geometry.unit(chunk.group as u32, chunk.unit as u32);
        self.geometry.block(unit, chunk.chunk)
    }

    /// So many sectors of a page, from one on.
    fn sectors(&self, page: Ppn, from: u32, count: u32) -> Box<[SectorAddress]> {
        let chunk = self.chunk_of(self.geometry.block_of(page));
        let first = self.geometry.page_in_block(page) * self.vector.write_min + from;
        (first..first + count).map(|sector| chunk.at(sector)).collect()
    }

    /// A command at sectors of a page: it fails as the device says, or as flash does.
    fn vector(
        &mut self,
        command: VectorCommand,
        payload: Payload<'_>,
        issue: Issue,
    ) -> FlashResult<(Token, SectorErrors)> {
        self.below.vector(command, payload, issue).map_err(flash_error)
    }

    /// Whether there is something to read in a page, for its data or to find out whose it is; an error says
    /// why not. What a chunk that closed early does not have is a page without an owner.
    fn check_read(&self, page: Ppn, cause: Cause) -> FlashResult<()> {
        let pages = self.geometry.pages();
        if page.0 >= pages {
            return Err(FlashError::OutOfRange { address: page.0.into(), limit: pages.into() });
        }
        let block = self.geometry.block_of(page);
        let chunk = self.chunks[block.index()];
        match chunk.state {
            ChunkState::Offline => Err(FlashError::BadBlock { block }),
            _ if self.geometry.page_in_block(page) < chunk.written => Ok(()),
            ChunkState::Closed if cause == Cause::Meta => Ok(()),
            ChunkState::Closed => Err(FlashError::Uncorrectable { page }),
            ChunkState::Free | ChunkState::Open => Err(FlashError::Erased { page }),
        }
    }

    /// Pages of an open chunk from this one on are in the tails.
    fn tail_from(&self, block: BlockId) -> u32 {
        let chunk = self.chunks[block.index()];
        match chunk.state {
            ChunkState::Open => chunk.written.saturating_sub(self.tails.pages()),
            _ => chunk.written,
        }
    }
}

/// What flash says where a command failed as a whole.
fn flash_error(error: NamespaceError) -> FlashError {
    match error {
        NamespaceError::Ftl(FtlError::Flash(error)) => error,
        NamespaceError::Ftl(FtlError::ReadOnly { reason }) => FlashError::ReadOnly { reason },
        error => unreachable!("a vector command that was checked: {error}"),
    }
}
