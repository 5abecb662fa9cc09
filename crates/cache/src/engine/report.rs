//! What a cache tells of itself, for result documents and servers.

use super::Cache;
use crate::counters::{Counters, Gauges};
use nandscape_core::{BypassCount, CacheReport};
use nandscape_policies::admission::Bypass;
use nandscape_policies::eviction::Eviction;

impl<E: Eviction> Cache<E> {
    /// The counters by name, how the cache stands, and what went to either side, over all volumes.
    pub fn report(&self) -> CacheReport {
        self.report_of(&self.gauges(), &self.counters().total())
    }

    /// The same, of gauges and counters that have just been looked at.
    pub fn report_of(&self, gauges: &Gauges, total: &Counters) -> CacheReport {
        let bypass = Bypass::ALL.iter().filter_map(|why| {
            let (index, bypass) = (why.index(), &total.bypass);
            let count = BypassCount {
                read_pieces: bypass.read_pieces[index],
                write_pieces: bypass.write_pieces[index],
                bytes: bypass.bytes[index],
            };
            (count != BypassCount::default()).then(|| (why.name().to_owned(), count))
        });
        CacheReport {
            mode: self.mode().name().to_owned(),
            block_bytes: self.directory.shape.block_bytes().into(),
            slots: gauges.slots,
            used: gauges.used,
            dirty: gauges.dirty,
            dirty_bytes: gauges.dirty_bytes,
            memory_bytes: gauges.memory_bytes,
            bypass: bypass.collect(),
            counters: total.counts,
            fast: self.fast_counts(),
            disks: (0..self.volumes.len() as u16).map(|volume| self.disk_counts(volume)).collect(),
        }
    }
}
