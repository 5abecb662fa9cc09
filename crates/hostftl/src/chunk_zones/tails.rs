//! The last sectors of zones that are being written, which the device does not give back yet
//! ([`VectorGeometry::cached`]).

use nandscape_core::vector::VectorGeometry;
use std::collections::BTreeMap;

/// Data of the last sectors of each active zone.
#[derive(Debug)]
pub(super) struct Tails {
    /// Bytes below the write pointer that may not be read: those of each chunk, and the stripes that some
    /// chunks are behind others.
    bytes: u64,
    data: Option<BTreeMap<u32, Vec<u8>>>,
}

impl Tails {
    pub fn new(geometry: &VectorGeometry, width: u32, stores_data: bool) -> Self {
        let behind = if geometry.cached == 0 { 0 } else { geometry.cached + geometry.write_best };
        let bytes = u64::from(behind) * u64::from(width) * u64::from(geometry.sector_bytes);
        Self { bytes, data: (stores_data && bytes > 0).then(BTreeMap::new) }
    }

    /// Memory of it.
    pub fn memory(&self) -> u64 {
        self.data.as_ref().map_or(0, |tails| tails.values().map(|tail| tail.capacity() as u64).sum())
    }

    /// Of a zone with so many bytes, the first that may not be read.
    pub const fn first_of(&self, written: u64) -> u64 {
        written.saturating_sub(self.bytes)
    }

    /// Data was written to a zone.
    pub fn push(&mut self, zone: u32, data: Option<&[u8]>) {
        let (Some(tails), Some(data)) = (&mut self.data, data) else { return };
        let tail = tails.entry(zone).or_default();
        tail.extend_from_slice(data);
        // Moved seldom, so that a byte is moved about once.
        let most = self.bytes as usize;
        if tail.len() > 2 * most {
            tail.drain(..tail.len() - most);
        }
    }

    pub fn drop_zone(&mut self, zone: u32) {
        if let Some(tails) = &mut self.data {
            tails.remove(&zone);
        }
    }

    /// The bytes of a zone from one on, which all are in its tail; the zone has `written` bytes.
    pub fn copy(&self, zone: u32, written: u64, from: u64, out: &mut [u8]) {
        let Some(tail) = self.data.as_ref().and_then(|tails| tails.get(&zone)) else { return };
        let start = tail.len() - (written - from) as usize;
        out.copy_from_slice(&tail[start..start + out.len()]);
    }
}
