//! What a cache is made of, and whether the parts fit.

use super::directory::{Log, SPACE, SPACES, STEP, Shape};
use super::timeline::Side;
use super::{CacheError, Result};
use crate::metadata::{Metadata, MetadataError, Survives};
use crate::mode::Mode;
use nandscape_core::Store;
use nandscape_policies::Map;

/// Regions that a cache needs: one that is written, one that leaves, and one with blocks.
const REGIONS_LEAST: u32 = 3;

/// The choices that the engine needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Cache block in bytes: a power of two from 512 B to 1 MiB.
    pub block_bytes: u32,
    /// Mode to begin with.
    pub mode: Mode,
    /// How blocks are spread over sets.
    pub map: Map,
    /// Seed of what the eviction policies draw.
    pub seed: u64,
}

fn wrong(what: &'static str, value: u64, expected: impl Into<String>) -> CacheError {
    CacheError::Setup { what, value, expected: expected.into() }
}

impl Setup {
    pub(super) fn shape(&self, fast: &dyn Store) -> Result<Shape> {
        let block = self.block_bytes;
        if !block.is_power_of_two() || !(512..=1 << 20).contains(&block) {
            return Err(wrong("cache block", u64::from(block), "a power of two from 512 B to 1 MiB"));
        }
        let shape = Shape::new(block);
        check_unit("block of the cache device", fast.block_bytes(), shape)?;
        Ok(shape)
    }

    /// Sets and ways for so many slots; what does not fill a set is left out.
    pub(super) fn sets(&self, slots: u32) -> Result<(u32, u32)> {
        if slots == 0 || slots > u32::MAX / 2 {
            return Err(wrong("slots of the cache", u64::from(slots), "1 to 2147483647"));
        }
        match self.map {
            Map::Linear { ways: 0 } | Map::ClusterHashed { ways: 0, .. } => {
                Err(wrong("ways", 0, "1 or more"))
            }
            Map::ClusterHashed { cluster: 0, .. } => Err(wrong("cluster", 0, "1 block or more")),
            map => {
                let ways = map.ways(slots);
                Ok((slots / ways, ways))
            }
        }
    }

    /// Slots of this metadata lie on this store, one behind the other.
    pub(super) fn check_room(
        metadata: &dyn Metadata,
        count: u32,
        shape: Shape,
        fast: &dyn Store,
    ) -> Result<()> {
        let first = metadata.data_offset(0);
        for slot in [0, count - 1] {
            let start = metadata.data_offset(slot);
            assert_eq!(start, first + shape.offset(slot.into()), "slots lie one behind the other");
            let end = start + u64::from(shape.block_bytes());
            if end > fast.capacity_bytes() {
                let expected = format!("room for the {count} slots of the metadata, which end at {end}");
                return Err(wrong("capacity of the cache device", fast.capacity_bytes(), expected));
            }
        }
        Ok(())
    }

    /// The regions of a store that is written in order, for as many slots of the metadata as fill whole ones.
    pub(super) fn regions(&self, fast: &dyn Store, metadata: &dyn Metadata) -> Result<Option<Log>> {
        let Some(regions) = fast.regions() else { return Ok(None) };
        let refused = |key: &str, expected: &str| {
            let message =
                format!("cache.{key}: expected {expected}, on a cache device that is written in order");
            Err(MetadataError::Refused(message).into())
        };
        if self.map != Map::Full {
            return refused("map", "full");
        }
        if metadata.is_in_place() && metadata.survives() != Survives::Nothing {
            return refused("metadata", "journal, at-removal or none");
        }
        let end = metadata.data_offset(0);
        if end > regions.first {
            let expected = format!("{end} or more, for the metadata (zone.conventional)");
            return Err(wrong(
                "bytes of the cache device that are written anywhere",
                regions.first,
                expected,
            ));
        }
        let per = (regions.bytes / u64::from(self.block_bytes)).min(u64::from(u32::MAX / 4)) as u32;
        let count = metadata.slots().checked_div(per).unwrap_or(0).min(regions.count);
        if count < REGIONS_LEAST {
            let expected =
                format!("{REGIONS_LEAST} or more, each of {} bytes, within the size", regions.bytes);
            return Err(wrong("regions of the cache device", count.into(), expected));
        }
        Ok(Some(Log::new(regions, per, count * per)))
    }

    pub(super) fn too_many_blocks(capacity: u64) -> CacheError {
        let expected =
            format!("at most {SPACE} cache blocks, all volumes together, each rounded up to {STEP}");
        wrong("capacity of the disk", capacity, expected)
    }

    pub(super) fn check_disk(disk: &dyn Store, shape: Shape, fast: &Side, volumes: usize) -> Result<()> {
        let capacity = disk.capacity_bytes();
        check_unit("block of the disk", disk.block_bytes(), shape)?;
        let unit = disk.block_bytes().max(fast.unit);
        if capacity == 0 || !capacity.is_multiple_of(u64::from(unit)) {
            return Err(wrong("capacity of the disk", capacity, format!("a multiple of {unit} bytes")));
        }
        if volumes as u64 >= SPACES {
            return Err(wrong("volumes", volumes as u64 + 1, format!("at most {SPACES}")));
        }
        if disk.stores_bytes() != fast.store.stores_bytes() {
            return Err(wrong(
                "disk that keeps bytes",
                u64::from(disk.stores_bytes()),
                "the same of the cache device",
            ));
        }
        Ok(())
    }
}

/// Requests are whole units of both stores, so sub-blocks smaller than a unit always come in whole units.
fn check_unit(what: &'static str, unit: u32, shape: Shape) -> Result<()> {
    if !unit.is_power_of_two() || unit > shape.block_bytes() {
        let expected = format!("a power of two up to the cache block of {} bytes", shape.block_bytes());
        return Err(wrong(what, u64::from(unit), expected));
    }
    Ok(())
}
