//! What a start makes of what the chunks hold.

use super::ChunkZones;
use crate::error::HostFtlError;
use nandscape_core::vector::{ChunkDescriptor, ChunkState, SectorAddress};
use nandscape_core::zone::{ZoneAttributes, ZoneState};
use nandscape_core::{SimTime, Subsystem};
use nandscape_namespace::zones::Restored;

/// Sectors of a chunk that an erase finds: all of one that is closed, since it takes no more.
pub(super) fn programmed(chunk: &ChunkDescriptor) -> u32 {
    if chunk.state == ChunkState::Closed { chunk.sectors } else { chunk.write_pointer }
}

impl<S: Subsystem> ChunkZones<S> {
    pub(super) fn start(&mut self) -> Result<(), HostFtlError> {
        let reports = self.below.chunks()?;
        for zone in 0..self.shape().zones {
            let chunks: Vec<SectorAddress> =
                (0..self.stripes.chunks).map(|number| self.chunk(zone, number)).collect();
            let found: Vec<ChunkDescriptor> =
                chunks.iter().map(|chunk| reports[self.geometry.chunk_number(*chunk) as usize]).collect();
            self.adopt(zone, &chunks, &found)?;
        }
        self.writes = self.started;
        Ok(())
    }

    fn adopt(
        &mut self,
        zone: u32,
        chunks: &[SectorAddress],
        found: &[ChunkDescriptor],
    ) -> Result<(), HostFtlError> {
        if found.iter().any(|chunk| chunk.state == ChunkState::Offline) {
            self.table.fail(zone);
            return Ok(());
        }
        let written: u64 = found.iter().map(|chunk| u64::from(chunk.write_pointer)).sum();
        let firsts = (0..).zip(found).map(|(number, chunk)| self.stripes.index(number, chunk.write_pointer));
        let whole = firsts.min().expect("a zone has chunks");
        let ended = |chunk: &ChunkDescriptor| {
            chunk.state == ChunkState::Closed && chunk.write_pointer < chunk.sectors
        };
        // Sectors of an open chunk that cannot be read are lost with the power of the host.
        let is_hidden = self.geometry.cached > 0 && whole > 0 && whole < self.stripes.all();
        let unit = u64::from(self.geometry.write_min);
        if written == whole && !is_hidden && !found.iter().any(ended) {
            let state = match whole {
                0 => return Ok(()),
                whole if whole == self.stripes.all() => ZoneState::Full,
                _ => ZoneState::Closed,
            };
            self.table.restore(zone, Restored { state, written: whole / unit, extension: None });
            return Ok(());
        }
        if whole == 0 {
            let written: Vec<u32> = found.iter().map(programmed).collect();
            match self.erase(chunks, &written, SimTime::ZERO)? {
                Ok(erased) => self.started = self.below.device.join(self.started, erased),
                Err(_) => drop(self.table.fail(zone)),
            }
            return Ok(());
        }
        // Padding makes the sectors readable that a flush has covered.
        for (chunk, found) in chunks.iter().zip(found) {
            let end = (found.write_pointer + self.geometry.cached).min(found.sectors);
            if is_hidden && found.state == ChunkState::Open {
                let issue = self.issued_at(SimTime::ZERO);
                let range = (found.write_pointer, end);
                let padded = self.below.pad_chunk(*chunk, range, &self.geometry, issue)?;
                self.started = self.below.device.join(self.started, padded);
            }
        }
        self.table.set_capacity(zone, whole / unit);
        let full = Restored { state: ZoneState::Full, written: whole / unit, extension: None };
        self.table.restore(zone, full);
        self.table.recommend(zone, ZoneAttributes::RESET_RECOMMENDED);
        self.ended.insert(zone, whole * u64::from(self.geometry.sector_bytes));
        Ok(())
    }

    /// Checks that active zones and their chunks agree; panics with the values.
    pub(super) fn check_chunks(&self) {
        let vectors = self.below.device.inspect().vectors.expect("it has vector access");
        for zone in 0..self.shape().zones {
            let state = self.table.state(zone);
            for number in 0..self.stripes.chunks {
                let chunk = vectors.chunk(0, self.geometry.chunk_number(self.chunk(zone, number)));
                if state.has_write_pointer() {
                    let written = self.table.written(zone) * u64::from(self.geometry.write_min);
                    let expected = self.written_of(number, written);
                    assert_eq!(chunk.write_pointer, expected, "zone {zone}, chunk {number}: {chunk:?}");
                } else if state == ZoneState::Full {
                    assert!(chunk.state != ChunkState::Offline, "zone {zone}, chunk {number}: {chunk:?}");
                }
            }
        }
    }
}
