//! What a namespace with vector access is made with.

use nandscape_core::vector::{MOST_ADDRESSES, MediaTimes, PageShape, VectorGeometry};
use nandscape_core::{Geometry, Oob, OutOfBand, ParamError};

/// What becomes of a chunk in which a program fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailedProgram {
    /// It is closed where the failed write unit begins or ends, as the flash counts it (status 2F1h).
    #[default]
    ClosesChunk,
    /// It stays open behind the failed write unit (status 2F0h), unless the flash does not count the unit as
    /// programmed.
    SkipsUnit,
}

/// What a namespace with vector access is made with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of the device by itself")]
pub struct VectorSetup {
    /// Its name, by which job files address it.
    pub name: String,
    /// A chunk is a block of each plane of a die, and a write fills a page in each of them; else a chunk is a
    /// block of one plane.
    pub spans_planes: bool,
    /// Write units below the write pointer of an open chunk that cannot be read; absent: those of a program
    /// unit of several pages, else none.
    pub cached_units: Option<u32>,
    /// A free chunk can be reset again.
    pub resets_free: bool,
    /// An open chunk can be reset.
    pub resets_open: bool,
    /// The out-of-band data of each page is the host's: 14 B, which writes bring along and reads give back.
    /// The device then keeps no tags there. It cannot copy, and it does not notice where a page is in the
    /// wrong place, or where planes of a chunk were written after different resets: a host waits for a reset
    /// before it writes.
    pub host_oob: bool,
    /// What a failed program does to its chunk.
    pub failed_program: FailedProgram,
    /// Erases at which a chunk's wear index is 255; absent: the index is the number of erases, up to 255.
    pub endurance: Option<u32>,
    /// Times that the geometry states.
    pub times: MediaTimes,
}

impl VectorSetup {
    /// The geometry of the namespace over a device that programs so many pages at a time. The errors name the
    /// keys below `vector.`.
    pub fn check(&self, geometry: &Geometry, program_pages: u32) -> Result<VectorGeometry, ParamError> {
        let error = |key: &str, value: u32, expected: String| {
            Err(ParamError::bad(key.to_owned(), value.to_string(), &expected))
        };
        let pages = PageShape {
            sectors: geometry.sectors_per_page(),
            planes: geometry.planes_per_die,
            blocks: geometry.blocks_per_plane,
            spans_planes: self.spans_planes,
        };
        let write_min = pages.row_sectors();
        let most = MOST_ADDRESSES as u32;
        if write_min > most {
            let expected = format!("pages of the planes of a chunk with at most {most} sectors together");
            return error("device.sector", geometry.sector_bytes, expected);
        }
        if geometry.channels > u32::from(u16::MAX) || geometry.dies_per_channel > u32::from(u16::MAX) {
            return error("device.channels", geometry.channels, "at most 65535".to_owned());
        }
        let programmed = if program_pages > 1 { program_pages } else { 0 };
        let cached_units = self.cached_units.unwrap_or(programmed);
        if cached_units >= geometry.pages_per_block {
            let expected = format!("less than the {} pages of a block", geometry.pages_per_block);
            return error("vector.cached_units", cached_units, expected);
        }
        if self.host_oob && (geometry.oob_bytes as usize) < Oob::BYTES {
            let expected = format!("at least {} bytes of the host's beside each page", Oob::BYTES);
            return error("device.oob", geometry.oob_bytes, expected);
        }
        if self.endurance == Some(0) {
            return error("vector.endurance", 0, "at least 1".to_owned());
        }
        Ok(VectorGeometry {
            groups: geometry.channels as u16,
            units: geometry.dies_per_channel as u16,
            chunks: geometry.blocks_per_unit() / pages.chunk_planes(),
            sectors: geometry.pages_per_block * write_min,
            sector_bytes: geometry.sector_bytes,
            write_min,
            write_best: write_min * program_pages,
            cached: cached_units * write_min,
            resets_free: self.resets_free,
            resets_open: self.resets_open,
            keeps_host_oob: self.host_oob,
            times: self.times,
            pages,
        })
    }

    /// The wear index of a chunk whose most erased block was erased so often.
    pub(super) fn wear(&self, erases: u32) -> u8 {
        let index = match self.endurance {
            Some(endurance) => u64::from(erases) * 255 / u64::from(endurance),
            None => u64::from(erases),
        };
        u8::try_from(index).unwrap_or(u8::MAX)
    }
}
