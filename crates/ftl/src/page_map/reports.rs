//! What the layer tells: its map, its cost, its counters, and how long collection can be put off.

use super::domain::Domain;
use super::streams::HostBytes;
use super::{PageMap, logs, paged::PagedMap};
use nandscape_core::{
    Allocation, Cost, Deferral, Extent, FlashDevice, FlashLayer, FlashState, FtlResult, FtlStats, Lpn,
    MapCacheStats, Mapping, Ppn, QuietRoom, SimTime, SlcStatus,
};

impl<D: FlashDevice> FlashLayer for PageMap<D> {
    fn read_only(&self) -> Option<&'static str> {
        self.trouble.stopped
    }

    fn device(&self) -> &dyn FlashState {
        &self.device
    }
}

impl<D: FlashDevice> Mapping for PageMap<D> {
    fn logical_pages(&self) -> u64 {
        self.capacity_bytes / u64::from(self.page_bytes)
    }

    fn page_bytes(&self) -> u32 {
        self.page_bytes
    }

    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        self.map.entries().get(lpn.index()).copied().filter(|page| page.is_some())
    }

    fn allocation(&self, extent: Extent) -> Allocation {
        self.map.mapped_at(extent, self.page_bytes, self.capacity_bytes)
    }

    fn stats(&self) -> FtlStats {
        let of_map = self.paged.as_ref().map_or(0, |paged| paged.written);
        FtlStats {
            map_update_bytes: self.stats.map_updates * 8,
            live_pages: self.map.live - of_map,
            ..self.stats
        }
    }

    fn reset_stats(&mut self) {
        self.stats = FtlStats::default();
        self.domains.iter_mut().for_each(|domain| domain.erases.forget());
        let HostBytes { all, before } = &mut self.host_bytes;
        assert_eq!(before.len(), all.len(), "logs of the host");
        before.copy_from_slice(all);
        if let Some(slc) = &mut self.slc {
            slc.host_pages = 0;
        }
        if let Some(groups) = &mut self.groups {
            groups.reset_counts();
        }
        if let Some(paged) = &mut self.paged {
            paged.reset_stats();
        }
    }

    fn slc(&self) -> Option<SlcStatus> {
        self.slc.as_ref().map(|slc| slc.status(self.page_bytes))
    }

    fn map_cache(&self) -> Option<MapCacheStats> {
        self.paged.as_deref().map(PagedMap::stats)
    }

    fn cost(&self) -> Cost {
        let good: u64 = self.domains.iter().map(|domain| u64::from(domain.counts.good_blocks)).sum();
        let map_table_bytes = self.logical_pages() * size_of::<Ppn>() as u64;
        let translation_pages = self.map.entries().len() as u64 - self.logical_pages();
        // Bucket lists of the victim policy and free pools.
        let policy_bytes = self.blocks.infos.len() as u64 * 12;
        let log_bytes: u64 = self.domains.iter().map(Domain::log_bytes).sum();
        Cost {
            map_table_bytes,
            dram_bytes: self.paged.as_ref().map_or(self.map.bytes(), |paged| paged.bytes())
                + self.sectors.bytes()
                + self.blocks.bytes()
                + policy_bytes
                + log_bytes
                + self.slc.as_ref().map_or(0, |slc| slc.bytes()),
            host_dram_bytes: 0,
            usable_bytes: self.capacity_bytes,
            total_blocks: good,
            reserve_blocks: self.domains.iter().map(Domain::reserve_blocks).sum::<u64>()
                + translation_pages.div_ceil(self.pages_per_block.into()),
            pages_per_block: u64::from(self.pages_per_block),
            logical_pages: self.logical_pages(),
        }
    }

    fn check_invariants(&self) {
        self.check();
    }
}

impl<D: FlashDevice> Deferral for PageMap<D> {
    /// The room of the fullest plane with static allocation, as if every write went there; none where
    /// translation pages are written besides.
    fn quiet_room(&self) -> Option<QuietRoom> {
        if self.paged.is_some() {
            return None;
        }
        let least = |a: QuietRoom, b: QuietRoom| QuietRoom {
            now_pages: a.now_pages.min(b.now_pages),
            least_pages: a.least_pages.min(b.least_pages),
        };
        let mut rooms = self.domains.iter().map(Domain::quiet_room);
        let first = rooms.next()??;
        rooms.try_fold(first, |sum, room| room.map(|room| least(sum, room)))
    }

    fn defer_collection(&mut self, deferred: bool, at: SimTime) -> FtlResult<()> {
        self.rules.deferred = deferred;
        for domain in 0..self.domains.len() {
            self.domains[domain].defer(deferred);
            let marks = &self.domains[domain].marks;
            assert!(marks.trigger_pages >= marks.floor_pages(false), "deferred {deferred}: {marks:?}");
            if self.domains[domain].counts.free_pages < self.domains[domain].marks.trigger_pages {
                self.reclaim(domain, logs::HOST, 0, at)?;
            }
        }
        Ok(())
    }
}
