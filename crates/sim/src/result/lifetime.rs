//! How much a host may write until the flash is worn out [streams-article 1.1], from what a run measured.

use super::RunResult;
use serde::{Deserialize, Serialize};

const DAYS_PER_YEAR: f64 = 365.25;

/// An estimate that takes the run as typical of all that the device will ever do. Null fields cannot be
/// known: endless endurance, no writes, no erases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LifetimeResult {
    /// Erases that a block lasts; null where it is endless.
    pub endurance: Option<u32>,
    /// Bytes the host writes until all good blocks have spent their endurance, worn evenly: endurance x
    /// flash bytes / `waf_bytes`, where the endurance is what is left of it at the start.
    pub host_bytes_until_worn: Option<f64>,
    /// The same divided by the unevenness of this run, most over mean erases of a block: when the first
    /// block is spent. Short runs overstate it.
    pub host_bytes_until_first_block_worn: Option<f64>,
    /// `host_bytes_until_worn` over the usable capacity.
    pub drive_writes: Option<f64>,
    /// Years at one drive write a day; at n a day it is an n-th of that.
    pub years_at_1_dwpd: Option<f64>,
}

impl LifetimeResult {
    /// From a result whose blocks last so many erases, had so many behind them in the mean before anything
    /// was written, and have pages of so many bytes.
    pub fn estimate(result: &RunResult, endurance: Option<u32>, age: f64, page_bytes: u32) -> Self {
        let cost = &result.cost;
        let flash_bytes = (cost.total_blocks * cost.pages_per_block) as f64 * f64::from(page_bytes);
        // A run in which nothing was erased says nothing of wear.
        let waf = result.waf.bytes.filter(|waf| *waf > 0.0 && result.flash.erases > 0);
        let until =
            endurance.zip(waf).map(|(endurance, waf)| (f64::from(endurance) - age) * flash_bytes / waf);
        let wear = &result.wear;
        let evenness = (wear.erases_max > 0).then(|| wear.erases_mean / wear.erases_max as f64);
        let drive_writes =
            until.filter(|_| cost.usable_bytes > 0).map(|bytes| bytes / cost.usable_bytes as f64);
        Self {
            endurance,
            host_bytes_until_worn: until,
            host_bytes_until_first_block_worn: until.zip(evenness).map(|(bytes, evenness)| bytes * evenness),
            drive_writes,
            years_at_1_dwpd: drive_writes.map(|writes| writes / DAYS_PER_YEAR),
        }
    }
}
