//! What `table` and `status` print, in the wording of each published design.
//!
//! A printer fills a [`Page`] from [`Facts`]: text in the order and wording of the original, and the same
//! fields by name. A field whose original says less or something else than one would take it for has the true
//! value beside it.

mod bcache;
mod dm_cache;
mod dm_cache_fiu;
mod enhanceio;
mod flashcache;
mod nandscape;
mod page;
mod rapidcache;
mod table_line;

pub use flashcache::created as flashcache_created;
pub use page::{Field, Page, Truth, Value};
pub use table_line::{TableField, TableLine};

use crate::counters::{Counters, Gauges};
use crate::mode::Mode;
use nandscape_core::{Info, ParamError, registry, words};
use serde::Serialize;

/// How well the cache device does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Health {
    /// Everything works.
    #[default]
    Normal,
    /// The fast store has failed; requests go to the disk.
    Degraded,
    /// Dirty data cannot be reached.
    Failed,
}

words!(pub Health: Normal = "normal", Degraded = "degraded", Failed = "failed");

/// What printers may print.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Name of the fast store.
    pub fast_name: &'a str,
    /// Name of the disk.
    pub disk_name: &'a str,
    /// Capacity of the cached volume in bytes.
    pub volume_bytes: u64,
    /// Dirty slots of all volumes of the cache, of which [`Facts::gauges`] has those of this one.
    pub dirty_of_all: u64,
    /// Cache block in bytes.
    pub block_bytes: u32,
    /// Slots of a set; 0 where any block may lie in any slot.
    pub ways: u32,
    /// Bytes of neighbouring blocks that share a set, where a hash selects it; 0 otherwise.
    pub cluster_bytes: u64,
    /// Unit of metadata writes in bytes; 0 without metadata.
    pub metadata_block_bytes: u32,
    /// Bytes of a sequential stream from which it goes past the cache; 0: never.
    pub skip_sequential_bytes: u64,
    /// Mode.
    pub mode: Mode,
    /// Name of the eviction policy.
    pub eviction: &'a str,
    /// Name of the admission policy.
    pub admission: &'a str,
    /// Name of the cleaning policy.
    pub cleaning: &'a str,
    /// Name of the kind of metadata.
    pub metadata: &'a str,
    /// How the fast store does.
    pub health: Health,
    /// How the cache stands.
    pub gauges: Gauges,
    /// What was counted: of the volume, or of the whole cache.
    pub counters: &'a Counters,
}

impl Facts<'_> {
    /// Sets of slots.
    pub fn sets(&self) -> u64 {
        if self.ways == 0 { 1 } else { self.gauges.slots / u64::from(self.ways) }
    }

    /// Bytes of cached data that fit.
    pub fn capacity_bytes(&self) -> u64 {
        self.gauges.slots * u64::from(self.block_bytes)
    }

    /// The device mapper's beginning of a line: first sector, sectors, target.
    fn mapped(&self, target: &str) -> String {
        format!("0 {} {target} ", self.volume_bytes / 512)
    }
}

/// The printers of a design.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    /// Name of the design, as of its preset.
    pub info: Info,
    /// How the cache is configured.
    pub table: fn(&Facts<'_>) -> Page,
    /// What it has done.
    pub status: fn(&Facts<'_>) -> Page,
}

/// Every design's printers.
pub static PRINTERS: &[Printer] = &[
    nandscape::PRINTER,
    dm_cache_fiu::PRINTER,
    flashcache::PRINTER,
    enhanceio::PRINTER,
    rapidcache::PRINTER,
    bcache::PRINTER,
    dm_cache::PRINTER,
];

/// The printers of the design of that name, or an error with the names there are.
pub fn find(name: &str) -> Result<&'static Printer, ParamError> {
    registry::find("preset", name, PRINTERS, |printer| &printer.info)
}

/// Whole percent, cut as integer division does; 0 of nothing.
const fn percent(part: u64, whole: u64) -> u64 {
    if whole == 0 { 0 } else { (part as u128 * 100 / whole as u128) as u64 }
}

/// Percent with two decimals, rounded, or `none` of nothing.
#[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
fn exact_percent(part: u64, whole: u64) -> String {
    if whole == 0 { "none".to_owned() } else { format!("{:.2} %", part as f64 * 100.0 / whole as f64) }
}

#[cfg(test)]
mod tests;
