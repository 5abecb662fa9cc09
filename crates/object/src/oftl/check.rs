//! Invariants, for tests: what the layer believes of blocks, objects and its own counts agrees.

use super::Oftl;
use super::blocks::{BlockEntry, BlockUse};
use super::format::touched;
use super::layout::{NOWHERE, is_page};
use super::object::Object;
use super::oob::ObjectOob;
use nandscape_core::{BlockId, FlashDevice};
use nandscape_ftl::victim::BlockState;
use std::collections::BTreeMap;

impl<D: FlashDevice<ObjectOob>> Oftl<D> {
    /// Panics with the values where something does not agree.
    pub(super) fn check(&self) {
        self.check_objects();
        let valid = self.places();
        for (block, info) in (0..).zip(&self.blocks.infos) {
            let programmed = self.device.write_pointer(BlockId(block));
            let context = format!("block {block}: {info:?}, {programmed} pages programmed");
            let found = valid.get(&block).copied().unwrap_or(0);
            match info.state {
                BlockState::Bad => assert_eq!(found, 0, "{context}"),
                _ if self.blocks.is_exact(block) && self.is_all_loaded() => {
                    assert_eq!(info.valid, found, "{context}");
                }
                _ => assert!(info.valid >= found, "{context}, {found} are valid"),
            }
            self.check_entry(block, found, programmed);
        }
        let mut free = 0;
        for info in &self.blocks.infos {
            free += u64::from(info.state == BlockState::Free);
        }
        assert_eq!(free, self.blocks.free_count, "free blocks");
        for window in &self.blocks.windows {
            let room: u64 = window.open.iter().map(|open| u64::from(self.blocks.pages - open.next)).sum();
            assert_eq!(room, window.room, "room of a window");
        }
    }

    fn is_all_loaded(&self) -> bool {
        self.table.loaded().count() as u64 == self.table.count()
    }

    /// What the flash says of a block is never better than it is: what it calls free is free once it is
    /// erased, and there are at least as many invalid pages as it counts.
    fn check_entry(&self, block: u32, valid: u32, programmed: u32) {
        let BlockEntry { invalid, state, .. } = BlockEntry::decode(self.blocks.persisted[block as usize]);
        let root = &self.system.root;
        let is_owned = root.blocks.contains(&block) || root.windows.iter().any(|window| window[0] == block);
        if state == BlockUse::Free && block >= super::config::ROOT_BLOCKS && !is_owned {
            assert_eq!((valid, programmed), (0, 0), "block {block} is free, as the flash says");
        }
        // A block that was collected and taken anew since has no pages that the entry is about.
        let is_same = self.blocks.infos[block as usize].state == BlockState::Sealed && !is_owned;
        if state == BlockUse::Used && is_same {
            assert!(
                self.blocks.pages - valid >= invalid,
                "block {block}: {invalid} pages are invalid, as the flash says"
            );
        }
    }

    fn check_objects(&self) {
        let mut dirty_bytes = 0;
        for object in self.table.loaded() {
            let id = object.id;
            let entry = self.table.entry(id).expect("an object in memory is in the index");
            assert_eq!(object.place(), entry.place, "place of object {id}");
            assert_eq!(object.touched, touched(object), "touched pages of object {id}");
            let bytes: u64 = object.dirty.values().map(Object::waiting).sum();
            assert_eq!(object.dirty_bytes, bytes, "bytes of object {id} that are not flushed");
            dirty_bytes += bytes;
            assert!(object.dirty.is_empty() || object.dirty_since.is_some(), "object {id} will be flushed");
            let end = object.size.div_ceil(self.sizes.page_bytes.into());
            let cost = object.cost(object.touched, end, object.attributes.len() as u64, &self.sizes);
            assert!(cost <= entry.cost, "object {id} is charged with {} pages of {cost}", entry.cost);
            let pages = object.layout.mapped()
                + object.parts.len() as u64
                + object.layout.leaves().filter(|(_, leaf)| leaf.page != NOWHERE).count() as u64;
            assert!(pages <= entry.cost + 1, "object {id} has {pages} pages, charged are {}", entry.cost);
            // Of one whose metadata is on its way, that is about to end.
            let is_evicted = self.eviction.as_ref().is_some_and(|eviction| eviction.is_of(id));
            let lags = object.layout.lags() || object.needs_meta || is_evicted;
            assert!(lags || !self.table.lagging.contains_key(&id), "object {id} lags");
        }
        for id in self.table.lagging.keys().chain(&self.table.removals) {
            assert!(
                self.table.slot(*id).is_some(),
                "object {id}, of which the flash knows less, is in memory"
            );
        }
        assert_eq!(dirty_bytes, self.table.dirty_bytes, "bytes that are not flushed");
        let charged: u64 = self.table.entries().map(|(_, entry)| entry.cost).sum();
        assert_eq!(charged, self.table.charged, "charged pages");
        assert_eq!(
            self.table.lagging.values().sum::<u64>(),
            self.table.lag_pages,
            "pages of metadata that lags"
        );
    }

    /// Pages of blocks that objects in memory have, and first metadata pages of the others.
    fn places(&self) -> BTreeMap<u32, u32> {
        let mut valid = BTreeMap::new();
        let mut add = |place: u32| {
            if is_page(place) {
                *valid.entry(place / self.blocks.pages).or_default() += 1;
            }
        };
        for object in self.table.loaded() {
            object.layout.iter().for_each(|(_, place)| add(place));
            object.parts.iter().for_each(|place| add(*place));
            object.layout.leaves().for_each(|(_, leaf)| add(leaf.page));
        }
        if let Some(eviction) = &self.eviction {
            eviction.flush().replaced().for_each(&mut add);
        }
        for (id, entry) in self.table.entries() {
            if self.table.slot(id).is_none() {
                add(entry.place);
            }
        }
        valid
    }
}
