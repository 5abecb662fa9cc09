//! What never changes of a zoned namespace.

use nandscape_core::ParamError;

/// Zones of a namespace. Sizes are in logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneLayout {
    /// Zones.
    pub zones: u32,
    /// The first of them, which are conventional.
    pub conventional: u32,
    /// From the first block of a zone to that of the next.
    pub size: u64,
    /// Blocks of a zone that can be written, from the first on.
    pub capacity: u64,
    /// Bytes of a logical block.
    pub block_bytes: u32,
    /// Most zones that are open or closed; absent: no limit.
    pub max_active: Option<u32>,
    /// Most zones that are open; absent: no limit.
    pub max_open: Option<u32>,
    /// Bytes of a descriptor extension; 0 without.
    pub extension_bytes: u32,
    /// Random write areas, if there are any.
    pub random: Option<RandomAreas>,
    /// A read may cross the end of a zone.
    pub reads_across: bool,
}

/// Random write areas (ZRWA): the blocks behind the write pointer, which are written in any order and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomAreas {
    /// Blocks of an area.
    pub size: u64,
    /// Blocks by which a write pointer moves.
    pub granularity: u64,
    /// Most zones that have one; absent: no limit.
    pub count: Option<u32>,
}

/// Bytes of the unit of descriptor extensions.
const EXTENSION_UNIT: u32 = 64;

impl ZoneLayout {
    /// Checks that it describes a namespace. The error names the key below `zone.`.
    pub fn check(&self) -> Result<(), ParamError> {
        let error = |key: &str, value: String, expected: &str| {
            Err(ParamError::bad(format!("zone.{key}"), value, expected))
        };
        if self.zones == 0 || self.size == 0 || self.size.checked_mul(u64::from(self.zones)).is_none() {
            return error("size", self.size.to_string(), "at least one zone of at least one block");
        }
        if self.conventional >= self.zones {
            let expected = format!("fewer than the {} zones of the namespace", self.zones);
            return error("conventional", self.conventional.to_string(), &expected);
        }
        if self.capacity == 0 || self.capacity > self.size {
            let expected = format!("from 1 to the {} blocks of zone.size", self.size);
            return error("capacity", self.capacity.to_string(), &expected);
        }
        if self.max_active == Some(0) {
            return error("max_active", "0".to_owned(), "at least 1");
        }
        if self.max_open == Some(0) || self.open_limit() > self.active_limit() {
            let expected = format!("from 1 to the {} zones of zone.max_active", self.active_limit());
            return error("max_open", self.open_limit().to_string(), &expected);
        }
        if !self.extension_bytes.is_multiple_of(EXTENSION_UNIT) || self.extension_bytes / EXTENSION_UNIT > 255
        {
            let bytes = self.extension_bytes.to_string();
            return error("descriptor_bytes", bytes, "a multiple of 64 bytes, up to 16320");
        }
        if let Some(RandomAreas { size, granularity, count }) = self.random {
            if granularity == 0 || !self.capacity.is_multiple_of(granularity) {
                let expected = format!("whole parts of the {} blocks of zone.capacity", self.capacity);
                return error("zrwa_granularity", granularity.to_string(), &expected);
            }
            let most = self.capacity.min(u64::from(u16::MAX));
            if size == 0 || !size.is_multiple_of(granularity) || size > most {
                let expected =
                    format!("multiples of the {granularity} blocks of zone.zrwa_granularity, up to {most}");
                return error("zrwa_size", size.to_string(), &expected);
            }
            if count == Some(0) {
                return error("zrwa_count", "0".to_owned(), "at least 1");
            }
        }
        Ok(())
    }

    /// Blocks of all zones.
    pub const fn blocks(&self) -> u64 {
        self.size * self.zones as u64
    }

    /// Most active zones.
    pub(super) fn active_limit(&self) -> u32 {
        self.max_active.unwrap_or(u32::MAX)
    }

    /// Most open zones.
    pub(super) fn open_limit(&self) -> u32 {
        self.max_open.unwrap_or_else(|| self.active_limit())
    }
}
