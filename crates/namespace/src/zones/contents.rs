//! How far each zone is written, and what the controller holds of it.

use super::body::Body;
use super::held::Held;
use super::tag::ZoneOob;
use nandscape_core::{FlashDevice, Ppn};

impl<O: ZoneOob, D: FlashDevice<O>> Body<D, O> {
    pub fn zones(&self) -> u32 {
        self.contents.len() as u32
    }

    /// Pages of a zone on flash.
    pub fn programmed(&self, zone: u32) -> u32 {
        self.contents[zone as usize].programmed
    }

    /// So many pages of a zone are on flash, the first of them with data of the host.
    pub fn set_programmed(&mut self, zone: u32, pages: u32, host_pages: u32) {
        let content = &mut self.contents[zone as usize];
        (content.programmed, content.host_pages, content.next) = (pages, host_pages, Ppn::NONE);
    }

    /// Logical blocks of the pages from the first to the last with data of the host.
    pub fn host_blocks(&self, zone: u32) -> u64 {
        self.blocks_of(self.contents[zone as usize].host_pages).max(self.held_end(zone))
    }

    /// One behind the last logical block of a zone that the controller holds; 0 where it holds none.
    pub fn held_end(&self, zone: u32) -> u64 {
        let held = self.held(zone).and_then(Held::last);
        held.map_or(0, |(ahead, blocks)| self.blocks_of(self.programmed(zone) + ahead) + u64::from(blocks))
    }

    pub fn held(&self, zone: u32) -> Option<&Held> {
        self.contents[zone as usize].held.as_deref()
    }

    pub fn held_mut(&mut self, zone: u32) -> &mut Held {
        let held = &mut self.contents[zone as usize].held;
        if held.is_none() {
            self.held_zones.push(zone);
        }
        held.get_or_insert_default()
    }

    /// Zones that hold something, in ascending order.
    pub fn holding(&mut self) -> Vec<u32> {
        let mut zones = std::mem::take(&mut self.held_zones);
        zones.sort_unstable();
        zones.dedup();
        zones.retain(|zone| self.held(*zone).is_some());
        self.held_zones.clone_from(&zones);
        zones.retain(|zone| self.held(*zone).is_some_and(|held| held.pages() > 0));
        zones
    }

    pub fn drop_held(&mut self, zone: u32) {
        self.contents[zone as usize].held = None;
    }

    /// Bytes of the pages that are held.
    pub fn held_bytes(&self) -> u64 {
        let held = self.contents.iter().filter_map(|content| content.held.as_deref());
        held.map(|held| held.pages() as u64).sum::<u64>() * u64::from(self.page_bytes)
    }

    pub fn slots(&self, zone: u32) -> u32 {
        self.contents[zone as usize].slots
    }

    /// A zone has fewer blocks in each die from now on; it has none bound there.
    pub fn shrink(&mut self, zone: u32, slots: u32) {
        let fewer = std::mem::replace(&mut self.contents[zone as usize].slots, slots) - slots;
        for die in 0..self.striping.dies() {
            self.pool.settle(self.striping.unit(zone, die), fewer);
        }
    }
}
