//! Chunks as plain lists of what was written to them.

use nandscape_core::vector::{ChunkState, SectorAddress, VectorError, VectorGeometry};

#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// A byte for each sector that was written; `None` where it cannot be read.
    pub sectors: Vec<Option<u8>>,
    pub is_closed: bool,
    pub is_offline: bool,
}

pub struct Model {
    pub geometry: VectorGeometry,
    pub chunks: Vec<Chunk>,
}

/// What a command gives: refused as a whole, or an error for some of its addresses.
pub type Outcome = Result<Vec<Option<VectorError>>, VectorError>;

impl Model {
    pub fn new(geometry: VectorGeometry) -> Self {
        let chunk = Chunk { sectors: Vec::new(), is_closed: false, is_offline: false };
        Self { geometry, chunks: vec![chunk; geometry.all_chunks() as usize] }
    }

    pub fn index(&self, address: SectorAddress) -> usize {
        self.geometry.chunk_number(address) as usize
    }

    pub fn chunk(&mut self, address: SectorAddress) -> &mut Chunk {
        let index = self.index(address);
        &mut self.chunks[index]
    }

    pub fn state(&self, index: usize) -> ChunkState {
        let chunk = &self.chunks[index];
        match () {
            () if chunk.is_offline => ChunkState::Offline,
            () if chunk.is_closed => ChunkState::Closed,
            () if chunk.sectors.is_empty() => ChunkState::Free,
            () => ChunkState::Open,
        }
    }

    fn check_list(&self, addresses: &[SectorAddress]) -> Result<(), VectorError> {
        if !(1..=64).contains(&addresses.len()) {
            return Err(VectorError::InvalidField);
        }
        for address in addresses {
            let geometry = &self.geometry;
            if address.group >= geometry.groups
                || address.unit >= geometry.units
                || address.chunk >= geometry.chunks
                || address.sector >= geometry.sectors
            {
                return Err(VectorError::OutOfRange);
            }
        }
        Ok(())
    }

    /// The byte of each sector, or why it cannot be read.
    pub fn read(&self, addresses: &[SectorAddress]) -> Result<Vec<Result<u8, VectorError>>, VectorError> {
        self.check_list(addresses)?;
        let one = |address: &SectorAddress| {
            let index = self.index(*address);
            let chunk = &self.chunks[index];
            if chunk.is_offline {
                return Err(VectorError::Offline);
            }
            let hidden = if chunk.is_closed { 0 } else { self.geometry.cached as usize };
            if address.sector as usize + hidden >= chunk.sectors.len() {
                return Err(VectorError::Unwritten);
            }
            chunk.sectors[address.sector as usize].ok_or(VectorError::Unrecovered)
        };
        Ok(addresses.iter().map(one).collect())
    }

    pub fn write(&mut self, addresses: &[SectorAddress], bytes: &[u8]) -> Outcome {
        self.check_list(addresses)?;
        let unit = self.geometry.write_min as usize;
        if !addresses.len().is_multiple_of(unit) {
            return Err(VectorError::InvalidField);
        }
        let mut chunks = self.chunks.clone();
        for (at, address) in addresses.iter().enumerate() {
            let first = addresses[at - at % unit];
            let chunk = &mut chunks[self.geometry.chunk_number(*address) as usize];
            if chunk.is_closed
                || chunk.is_offline
                || self.index(first) != self.index(*address)
                || chunk.sectors.len() != address.sector as usize
            {
                return Err(VectorError::OutOfOrder);
            }
            chunk.sectors.push(Some(bytes[at]));
            chunk.is_closed = chunk.sectors.len() == self.geometry.sectors as usize;
        }
        self.chunks = chunks;
        Ok(vec![None; addresses.len()])
    }

    pub fn copy(&mut self, sources: &[SectorAddress], targets: &[SectorAddress]) -> Outcome {
        self.check_list(sources)?;
        self.check_list(targets)?;
        if sources.len() != targets.len() {
            return Err(VectorError::InvalidField);
        }
        let read = self.read(sources)?;
        let bytes: Vec<u8> = read.iter().map(|one| one.unwrap_or(0)).collect();
        let before = self.chunks.clone();
        let outcome = self.write(targets, &bytes)?;
        if read.iter().any(Result::is_err) {
            self.chunks = before;
            return Ok(read.iter().map(|one| one.err()).collect());
        }
        Ok(outcome)
    }

    pub fn reset(&mut self, addresses: &[SectorAddress]) -> Outcome {
        self.check_list(addresses)?;
        let one = |address: &SectorAddress| {
            let state = self.state(self.index(*address));
            let resets_free = self.geometry.resets_free;
            match state {
                ChunkState::Offline => Some(VectorError::Offline),
                ChunkState::Open => Some(VectorError::InvalidReset),
                ChunkState::Free if !resets_free => Some(VectorError::InvalidReset),
                _ => {
                    let chunk = self.chunk(*address);
                    chunk.sectors.clear();
                    chunk.is_closed = false;
                    None
                }
            }
        };
        Ok(addresses.iter().map(one).collect())
    }
}
