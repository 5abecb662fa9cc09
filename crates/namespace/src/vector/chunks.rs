//! States and write pointers of chunks, and what they allow.

use nandscape_core::vector::{ChunkState, SectorAddress, VectorError, VectorGeometry};

/// State and write pointer of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub state: ChunkState,
    /// Sectors from the first on that were written.
    pub written: u32,
}

impl Chunk {
    pub const FREE: Self = Self { state: ChunkState::Free, written: 0 };
    pub const OFFLINE: Self = Self { state: ChunkState::Offline, written: 0 };
}

/// The chunks of a namespace, by number.
#[derive(Clone, Debug)]
pub(super) struct Chunks {
    geometry: VectorGeometry,
    chunks: Vec<Chunk>,
}

impl Chunks {
    pub fn new(geometry: VectorGeometry) -> Self {
        Self { geometry, chunks: vec![Chunk::FREE; geometry.all_chunks() as usize] }
    }

    pub fn get(&self, address: SectorAddress) -> Chunk {
        self.chunks[self.geometry.chunk_number(address) as usize]
    }

    pub fn set(&mut self, address: SectorAddress, chunk: Chunk) {
        assert!(chunk.written <= self.geometry.sectors, "{chunk:?} at {address:?}");
        self.chunks[self.geometry.chunk_number(address) as usize] = chunk;
    }

    pub fn all(&self) -> &[Chunk] {
        &self.chunks
    }

    /// Whether a sector can be read.
    pub fn check_read(&self, address: SectorAddress) -> Result<(), VectorError> {
        let chunk = self.get(address);
        let readable = match chunk.state {
            ChunkState::Offline => return Err(VectorError::Offline),
            ChunkState::Open => chunk.written.saturating_sub(self.geometry.cached),
            ChunkState::Free | ChunkState::Closed => chunk.written,
        };
        if address.sector < readable { Ok(()) } else { Err(VectorError::Unwritten) }
    }

    /// Whether a list of sectors can be written: whole write units, each at the write pointer that the units
    /// before it leave.
    pub fn check_write(&self, addresses: &[SectorAddress]) -> Result<(), VectorError> {
        let unit = self.geometry.write_min as usize;
        if !addresses.len().is_multiple_of(unit) {
            return Err(VectorError::InvalidField);
        }
        for (index, sectors) in addresses.chunks_exact(unit).enumerate() {
            let first = sectors[0];
            let chunk = self.get(first);
            if matches!(chunk.state, ChunkState::Closed | ChunkState::Offline) {
                return Err(VectorError::OutOfOrder);
            }
            // At most 64 sectors, so that looking back is quick.
            let before = addresses[..index * unit].iter().step_by(unit);
            let ahead = before.filter(|before| before.is_in_chunk_of(first)).count() as u32;
            let expected = first.at(chunk.written + ahead * self.geometry.write_min);
            let is_next = |(at, sector): (u32, &SectorAddress)| *sector == expected.at(expected.sector + at);
            if !(0..).zip(sectors).all(is_next) {
                return Err(VectorError::OutOfOrder);
            }
        }
        Ok(())
    }

    /// Whether a chunk can be reset.
    pub fn check_reset(&self, address: SectorAddress) -> Result<(), VectorError> {
        match self.get(address).state {
            ChunkState::Offline => Err(VectorError::Offline),
            ChunkState::Open if !self.geometry.resets_open => Err(VectorError::InvalidReset),
            ChunkState::Free if !self.geometry.resets_free => Err(VectorError::InvalidReset),
            ChunkState::Free | ChunkState::Open | ChunkState::Closed => Ok(()),
        }
    }

    /// A write unit of a chunk is written.
    pub fn advance(&mut self, address: SectorAddress) {
        let written = address.sector + self.geometry.write_min;
        let state = if written == self.geometry.sectors { ChunkState::Closed } else { ChunkState::Open };
        self.set(address, Chunk { state, written });
    }
}
