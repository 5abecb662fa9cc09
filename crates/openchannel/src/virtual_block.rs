//! A chunk from each of some parallel units, as one range of bytes.

use crate::{Host, HostError, HostResult};
use nandscape_core::SimTime;
use nandscape_core::vector::{ChunkState, SectorAddress, Stripes, VectorGeometry};

/// A virtual block: a chunk from each of some parallel units. Bytes go to the chunks in stripes of
/// [`VectorGeometry::write_best`] sectors, so that a long write uses all parallel units at once.
///
/// It keeps where the next write goes. After a write that failed, or one by other ways, it is to be opened
/// anew, which fails where the chunks do not end in one stripe.
#[derive(Clone, Debug)]
pub struct VirtualBlock {
    geometry: VectorGeometry,
    chunks: Vec<SectorAddress>,
    /// Sectors written, from the first on.
    written: u64,
}

impl VirtualBlock {
    /// The chunk of a number from each parallel unit of a range, see [`VectorGeometry::chunk_in`].
    pub fn over(
        host: &mut Host<'_>,
        units: std::ops::Range<u32>,
        chunk: u32,
        at: SimTime,
    ) -> HostResult<Self> {
        let geometry = *host.geometry();
        let address = |unit| geometry.chunk_in(unit, chunk);
        Self::of(host, units.map(address).collect(), at)
    }

    /// A virtual block of these chunks, in this order, none of them twice. Its write pointer is found in the
    /// chunk report. Offline chunks are refused, and chunks with write pointers that no write by virtual
    /// block leaves.
    pub fn of(host: &mut Host<'_>, chunks: Vec<SectorAddress>, at: SimTime) -> HostResult<Self> {
        let geometry = *host.geometry();
        let mut pointers = Vec::with_capacity(chunks.len());
        for chunk in &chunks {
            let found = host.chunk(*chunk, at)?;
            if found.state == ChunkState::Offline {
                let (chunk, state) = (*chunk, found.state);
                return Err(HostError::Chunk { chunk, state, expected: "an online one" });
            }
            pointers.push(found.write_pointer);
        }
        let written = pointers.iter().map(|pointer| u64::from(*pointer)).sum();
        let this = Self { geometry, chunks, written };
        let mut expected = vec![0; pointers.len()];
        for sector in (0..written).step_by(geometry.write_min as usize) {
            expected[this.place(sector).0] += geometry.write_min;
        }
        if this.chunks.is_empty() || expected != pointers {
            return Err(range(0, written, "chunks that were written in stripes"));
        }
        Ok(this)
    }

    /// Its chunks.
    pub fn chunks(&self) -> &[SectorAddress] {
        &self.chunks
    }

    /// Bytes that it holds when it is full.
    pub const fn bytes(&self) -> u64 {
        self.sectors() * self.geometry.sector_bytes as u64
    }

    /// Where the next write goes, in bytes.
    pub const fn write_pointer(&self) -> u64 {
        self.written * self.geometry.sector_bytes as u64
    }

    const fn sectors(&self) -> u64 {
        self.geometry.sectors as u64 * self.chunks.len() as u64
    }

    /// The chunk, and the sector there, of a sector of the virtual block.
    fn place(&self, sector: u64) -> (usize, u32) {
        let (chunk, sector) = Stripes::new(&self.geometry, self.chunks.len() as u32).place(sector);
        (chunk as usize, sector)
    }

    fn addresses(&self, from: u64, count: u64) -> Vec<SectorAddress> {
        let address = |sector| {
            let (chunk, sector) = self.place(sector);
            self.chunks[chunk].at(sector)
        };
        (from..from + count).map(address).collect()
    }

    /// The sectors of a range of bytes, in multiples of `unit` sectors and below `end`.
    fn range(&self, offset: u64, len: u64, unit: u32, end: u64) -> HostResult<(u64, u64)> {
        let bytes = u64::from(unit) * u64::from(self.geometry.sector_bytes);
        let sector = u64::from(self.geometry.sector_bytes);
        let is_inside = offset.checked_add(len).is_some_and(|last| last <= end * sector);
        if !offset.is_multiple_of(bytes) || !len.is_multiple_of(bytes) || !is_inside {
            let expected = format!("multiples of {bytes} bytes, up to {}", end * sector);
            return Err(range(offset, len, &expected));
        }
        Ok((offset / sector, len / sector))
    }

    /// Reads whole sectors from a byte on, as many as `len` bytes have; `data`, if given, is so long.
    pub fn read(
        &self,
        host: &mut Host<'_>,
        offset: u64,
        len: u64,
        data: Option<&mut [u8]>,
        at: SimTime,
    ) -> HostResult<SimTime> {
        let (from, count) = self.range(offset, len, 1, self.sectors())?;
        host.read(&self.addresses(from, count), data, at)
    }

    /// Writes whole write units at the write pointer, as many as `len` bytes have.
    pub fn write(
        &mut self,
        host: &mut Host<'_>,
        len: u64,
        data: Option<&[u8]>,
        at: SimTime,
    ) -> HostResult<SimTime> {
        let (from, count) = self.range(self.write_pointer(), len, self.geometry.write_min, self.sectors())?;
        let done = host.write(&self.addresses(from, count), data, at)?;
        self.written += count;
        Ok(done)
    }

    /// Writes zeroes from the write pointer to the end.
    pub fn pad(&mut self, host: &mut Host<'_>, at: SimTime) -> HostResult<SimTime> {
        let len = self.bytes() - self.write_pointer();
        // A device without data takes them, too.
        let zeroes = vec![0; len as usize];
        self.write(host, len, Some(&zeroes), at)
    }

    /// Erases its chunks. Only full chunks can be erased, and free ones where the device resets them again:
    /// chunks that are partly written are to be padded first.
    pub fn erase(&mut self, host: &mut Host<'_>, at: SimTime) -> HostResult<SimTime> {
        let done = host.reset(&self.chunks, at)?;
        self.written = 0;
        Ok(done)
    }
}

fn range(offset: u64, len: u64, expected: &str) -> HostError {
    HostError::Range { offset, len, expected: expected.to_owned() }
}
