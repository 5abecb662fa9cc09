//! A start from what the flash holds: the newest root, the index, and back pointers of the update windows.

use super::blocks::{BlockEntry, BlockUse};
use super::config::{Config, ROOT_BLOCKS};
use super::format::{
    BLOCK_RECORD, INDEX_RECORD, IndexRecord, LeafAt, Root, leaf_places, object_of, object_parts,
    system_records, touched,
};
use super::layout::NOWHERE;
use super::object::Object;
use super::oob::{ObjectOob, PageKind};
use super::system::shape;
use super::{Oftl, Sabotage};
use crate::error::ObjectStoreError;
use nandscape_core::{
    BlockId, Cause, FlashDevice, FlashError, FtlError, Issue, NamespaceResult, ObjectError, Params, Ppn,
    RecoveryReport, SimTime, Token,
};
use nandscape_ftl::victim::BlockState;
use std::collections::BTreeMap;

/// A page of an update window that the index may not know.
#[derive(Clone, Copy, Debug)]
struct Found {
    place: u32,
    oob: ObjectOob,
}

/// What the windows say of an object.
#[derive(Debug, Default)]
struct News {
    /// Its newest metadata: its write, and the page.
    metadata: Option<(u64, u32)>,
    /// The write that deleted it.
    deleted: Option<u64>,
    /// Data pages in the order of their writes.
    data: Vec<Found>,
}

const START: SimTime = SimTime::ZERO;

impl<D: FlashDevice<ObjectOob>> Oftl<D> {
    /// Begins with what is on the flash, or with nothing.
    pub(super) fn start(&mut self, params: &Params) -> Result<(), ObjectStoreError> {
        for block in (0..self.geometry.blocks()).filter(|block| self.device.is_bad(BlockId(*block))) {
            self.blocks.bad(block);
        }
        for block in self.good_root_blocks() {
            self.blocks.infos[block as usize].state = BlockState::Open;
        }
        let erases =
            (0..self.geometry.blocks()).map(|block| u64::from(self.device.erase_count(BlockId(block))));
        self.blocks.erases = erases.sum();
        let root = if self.sizes.stores_data { self.newest_root()? } else { None };
        let good = root.as_ref().map_or_else(|| self.blocks.good() as u32, |root| root.good);
        self.config = Config::new(params, &self.geometry, good)?;
        match root {
            None => self.make_new()?,
            Some(root) => self.open(root)?,
        }
        // What the start wrote and read is over before the first command.
        self.reading = Token::NONE;
        Ok(())
    }

    /// Blocks for roots that are good.
    fn good_root_blocks(&self) -> Vec<u32> {
        (0..ROOT_BLOCKS.min(self.geometry.blocks()))
            .filter(|block| !self.device.is_bad(BlockId(*block)))
            .collect()
    }

    /// An empty store on an erased device.
    fn make_new(&mut self) -> Result<(), ObjectStoreError> {
        let roots = self.good_root_blocks();
        let &[first, second, ..] = roots.as_slice() else {
            let reason = format!("{} of its first {ROOT_BLOCKS} blocks are good; 2 are needed", roots.len());
            return Err(ObjectStoreError::Device { reason });
        };
        let is_used = |block: &u32| {
            !self.device.is_bad(BlockId(*block)) && self.device.write_pointer(BlockId(*block)) > 0
        };
        // Nothing but a root is written before the first root.
        if let Some(block) = (ROOT_BLOCKS..self.geometry.blocks()).find(is_used) {
            let reason = format!("block {block} holds data, and there is no root: expected an erased device");
            return Err(ObjectStoreError::Damaged { reason });
        }
        self.free_all();
        let fresh = |this: &Self, block: u32| {
            let is_erased = this.device.write_pointer(BlockId(block)) == 0;
            (block, if is_erased { 0 } else { this.blocks.pages })
        };
        self.system.copies = [fresh(self, first), fresh(self, second)];
        self.checkpoint(true, START)?;
        Ok(())
    }

    /// Every good block is free.
    fn free_all(&mut self) {
        for block in ROOT_BLOCKS..self.geometry.blocks() {
            if self.blocks.infos[block as usize].state != BlockState::Bad {
                self.blocks.free(block, self.geometry.unit_of(BlockId(block)).0);
            }
        }
    }

    /// The newest root of which all parts can be read.
    fn newest_root(&mut self) -> Result<Option<Root>, ObjectStoreError> {
        let mut newest: Option<(Root, u32)> = None;
        for block in self.good_root_blocks() {
            let mut record = Vec::new();
            for page in 0..self.device.write_pointer(BlockId(block)) {
                let place = block * self.blocks.pages + page;
                let Ok((oob, data, _)) = self.read_page(place, Cause::Meta, START) else {
                    record.clear();
                    continue;
                };
                if oob.kind != PageKind::Root {
                    let reason = format!("block {block} holds something else than roots");
                    return Err(ObjectStoreError::Damaged { reason });
                }
                if oob.offset == 0 {
                    record.clear();
                }
                record.extend(&data[..(oob.len as usize).min(data.len())]);
                if oob.tcnt != oob.offset + 1 {
                    continue;
                }
                if let Some(root) = Root::decode(&record)
                    && newest.as_ref().is_none_or(|(best, _)| root.generation > best.generation)
                {
                    newest = Some((root, block));
                }
            }
        }
        let Some((root, block)) = newest else { return Ok(None) };
        if root.shape != shape(&self.geometry) {
            let [page_bytes, pages, blocks] = root.shape;
            let reason = format!("it was made on {blocks} blocks of {pages} pages of {page_bytes} bytes");
            return Err(ObjectStoreError::Damaged { reason });
        }
        // The copy that may be older is replaced first.
        let others: Vec<u32> = self.good_root_blocks().into_iter().filter(|other| *other != block).collect();
        let used = |block: &u32| self.device.write_pointer(BlockId(*block));
        let other = others.into_iter().max_by_key(used).unwrap_or_else(|| {
            self.stopped = Some("no block for a root is left");
            block
        });
        self.system.copies = [(other, used(&other)), (block, used(&block))];
        Ok(Some(root))
    }

    /// Opens a store.
    fn open(&mut self, root: Root) -> Result<(), ObjectStoreError> {
        self.tid = root.tid;
        self.recovery = RecoveryReport { checkpoint: root.generation, ..RecoveryReport::default() };
        let (entries, is_torn) = self.read_log(&root)?;
        self.recovery.map_entries = self.table.count();
        self.own_blocks(&root, &entries);
        self.system.root = root;
        let found = self.scan_windows()?;
        let events = self.complete_writes(found);
        // Writes that are not complete count, too: those after them would have gaps before them.
        let is_as_left = (self.tid == self.system.root.tid && self.recovery.torn_pages == 0)
            || self.sabotage == Sabotage::LeavesGaps;
        self.recovery.was_clean = events.is_empty() && is_as_left;
        self.replay(events)?;
        self.recovery.live_pages = self.table.charged;
        if (self.recovery.was_clean && !is_torn) || self.stopped.is_some() {
            return Ok(());
        }
        // A store that cannot write any more can be read.
        self.checkpoint(true, START).or_else(|error| self.stopped.map_or(Err(error.into()), |_| Ok(())))
    }

    /// Reads the system log: the index, and entries of blocks; and whether pages behind its end are
    /// programmed, of a log that no root has.
    fn read_log(&mut self, root: &Root) -> Result<(BTreeMap<u32, u32>, bool), ObjectStoreError> {
        let [mut next, begin, mut pages] = root.log;
        let mut entries = BTreeMap::new();
        let damaged = |place, what| ObjectStoreError::Unreadable { page: Ppn(place), what };
        let mut position = begin;
        while pages > 0 {
            let Some(block) = root.blocks.get((position / self.blocks.pages) as usize).copied() else {
                let reason = format!("its index ends {pages} pages early");
                return Err(ObjectStoreError::Damaged { reason });
            };
            let place = block * self.blocks.pages + position % self.blocks.pages;
            position += 1;
            let (oob, data, _) = match self.read_page(place, Cause::Meta, START) {
                Ok(read) => read,
                // Of a program that failed; its content is on the next page. If not, numbers do not match.
                Err(
                    FlashError::Uncorrectable { .. } | FlashError::Damaged { .. } | FlashError::Erased { .. },
                ) => {
                    continue;
                }
                Err(error) => return Err(self.failed(error).into()),
            };
            if oob.offset != next {
                let reason = format!("page {place} of its index has number {}, expected {next}", oob.offset);
                return Err(ObjectStoreError::Damaged { reason });
            }
            (next, pages) = (next + 1, pages - 1);
            self.recovery.metadata_pages += 1;
            match oob.kind {
                PageKind::Index => {
                    let records =
                        system_records(&data, INDEX_RECORD).ok_or_else(|| damaged(place, "index"))?;
                    for record in records.filter_map(IndexRecord::decode) {
                        if record.place == NOWHERE {
                            self.table.forget(record.object);
                        } else {
                            self.table.learn(record.object, record.place, record.cost);
                        }
                    }
                }
                PageKind::Blocks => {
                    let records =
                        system_records(&data, BLOCK_RECORD).ok_or_else(|| damaged(place, "blocks"))?;
                    for record in records {
                        let half = |at: usize| {
                            u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"))
                        };
                        entries.insert(half(0), half(4));
                    }
                }
                _ => return Err(damaged(place, "index")),
            }
        }
        self.system.next = next;
        self.system.begin = begin;
        self.system.end = position.max(begin);
        self.system.pages = root.log[2];
        self.system.blocks.clone_from(&root.blocks);
        // Pages behind the end belong to a log that no root has: the next page is behind them.
        for (index, block) in (0..).zip(&root.blocks) {
            let programmed = self.device.write_pointer(BlockId(*block));
            if programmed > 0 {
                self.system.end = self.system.end.max(index * self.blocks.pages + programmed);
            }
        }
        Ok((entries, self.system.end > position))
    }

    /// Blocks have the owners that the root and the log say.
    fn own_blocks(&mut self, root: &Root, entries: &BTreeMap<u32, u32>) {
        let mut owned = vec![false; self.geometry.blocks() as usize];
        for block in root.blocks.iter().chain(root.windows.iter().map(|window| &window[0])) {
            owned[*block as usize] = true;
        }
        let pages = self.blocks.pages;
        for block in 0..self.geometry.blocks() {
            let word = entries.get(&block).copied().unwrap_or_default();
            self.blocks.persisted[block as usize] = word;
            let entry = BlockEntry::decode(word);
            if self.blocks.infos[block as usize].state == BlockState::Bad || block < ROOT_BLOCKS {
                continue;
            }
            let programmed = self.device.write_pointer(BlockId(block));
            if owned[block as usize] {
                self.blocks.infos[block as usize].state = BlockState::Open;
            } else if programmed > 0 {
                // Of the system log, which had given it up, nothing is valid.
                let is_used = entry.state == BlockUse::Used;
                let valid = if is_used { pages - entry.invalid } else { 0 };
                self.blocks.set_valid(block, valid, !is_used);
                self.blocks.seal(block);
            } else {
                self.blocks.free(block, self.geometry.unit_of(BlockId(block)).0);
            }
        }
        for [block, _, which] in &root.windows {
            if self.blocks.infos[*block as usize].state == BlockState::Bad {
                continue;
            }
            let programmed = self.device.write_pointer(BlockId(*block));
            self.blocks.windows[*which as usize & 1].add(*block, programmed, pages);
            // As long as nothing else is known, every page may be valid.
            self.blocks.set_valid(*block, programmed, false);
        }
    }

    /// Reads the OOB of pages in the windows that the index may not know.
    fn scan_windows(&mut self) -> Result<Vec<Found>, ObjectStoreError> {
        let mut found = Vec::new();
        for [block, first, _] in self.system.root.windows.clone() {
            let programmed = self.device.write_pointer(BlockId(block));
            self.recovery.scanned_blocks += u64::from(programmed > first);
            for page in first..programmed {
                let place = block * self.blocks.pages + page;
                self.recovery.scanned_pages += 1;
                let issue = Issue::new(START, Cause::Meta).by_device(Cause::Meta);
                match self.device.read(Ppn(place), self.sizes.page_bytes, None, issue) {
                    Ok(read) => found.push(Found { place, oob: read.oob }),
                    Err(FlashError::Uncorrectable { .. }) => self.recovery.torn_pages += 1,
                    // It may be of any object, and newer than what the index says.
                    Err(FlashError::Damaged { .. }) => {
                        let reason = format!("page {place}, written last, has lost its back pointer");
                        return Err(ObjectStoreError::Damaged { reason });
                    }
                    // A page behind a failed one that the medium left out.
                    Err(FlashError::Erased { .. }) => {}
                    Err(error) => return Err(self.failed(error).into()),
                }
            }
        }
        Ok(found)
    }

    /// The pages of complete writes, in order, up to the first that is not complete.
    fn complete_writes(&mut self, mut found: Vec<Found>) -> Vec<Found> {
        let checkpoint = self.tid;
        let highest = found.iter().map(|found| found.oob.tid).max().unwrap_or(0);
        if self.sabotage == Sabotage::NoReplay {
            found.clear();
        }
        found
            .retain(|found| found.oob.tid > checkpoint || (found.oob.is_copy && found.oob.tid == checkpoint));
        found.sort_by_key(|found| (found.oob.tid, found.oob.is_copy));
        let mut last = checkpoint;
        let mut accepted = Vec::new();
        for pages in found.chunk_by(|a, b| a.oob.tid == b.oob.tid) {
            let own = pages.iter().filter(|found| !found.oob.is_copy);
            let programmed = own.clone().count() as u32;
            let expected = own.map(|found| found.oob.tcnt).max().unwrap_or(0);
            let tid = pages[0].oob.tid;
            // Pages that were moved after a write say nothing of it.
            let is_complete = expected > 0 && programmed == expected;
            let is_next = tid == last || (tid == last + 1 && is_complete);
            if !is_next && self.sabotage != Sabotage::PartialWrites {
                break;
            }
            last = tid;
            accepted.extend_from_slice(pages);
        }
        // Numbers that were given to incomplete writes are not given again.
        self.tid = highest.max(checkpoint);
        accepted
    }

    /// Brings index and objects to the state after the last complete write.
    fn replay(&mut self, events: Vec<Found>) -> Result<(), ObjectStoreError> {
        let mut news: BTreeMap<u64, News> = BTreeMap::new();
        for found in events {
            let Found { place, oob } = found;
            match oob.kind {
                PageKind::Data => news.entry(oob.object).or_default().data.push(found),
                PageKind::Object if oob.offset == 0 => {
                    let of = news.entry(oob.object).or_default();
                    (of.metadata, of.deleted) = (Some((oob.tid, place)), None);
                    let (object, _) = self.read_object(place, START)?;
                    for id in object.replaced {
                        let of = news.entry(id).or_default();
                        (of.metadata, of.deleted) = (None, Some(oob.tid));
                    }
                }
                PageKind::Deletions => {
                    let data = self.read_sure(place, START)?;
                    let unreadable = ObjectStoreError::Unreadable { page: Ppn(place), what: "deletions" };
                    let ids = system_records(&data, 8).ok_or(unreadable)?;
                    for id in ids.map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes"))) {
                        self.recovery.drop_records += 1;
                        let of = news.entry(id).or_default();
                        (of.metadata, of.deleted) = (None, Some(oob.tid));
                    }
                }
                _ => {}
            }
        }
        for (id, news) in news {
            if news.deleted.is_some() {
                self.table.forget(id);
                self.table.moved.insert(id);
                continue;
            }
            if let Some((_, place)) = news.metadata {
                let cost = self.table.entry(id).map_or(0, |entry| entry.cost);
                self.table.learn(id, place, cost);
                self.table.moved.insert(id);
            } else if self.table.entry(id).is_none() {
                // Of an object that was deleted before.
                continue;
            }
            self.apply(id, &news)?;
        }
        Ok(())
    }

    /// Data pages of an object that its metadata does not know.
    fn apply(&mut self, id: u64, news: &News) -> Result<(), ObjectStoreError> {
        let slot = self.load(id, START)?;
        let sizes = self.sizes;
        let object = self.table.get_mut(slot);
        for Found { place, oob } in &news.data {
            let leaf = object.layout.leaf(oob.offset / sizes.leaf_pages);
            let known = leaf.filter(|leaf| leaf.page != NOWHERE).map_or(object.meta_tid, |leaf| leaf.tid);
            // A copy has the number of the write before it.
            if oob.tid < known || (oob.tid == known && !oob.is_copy) {
                continue;
            }
            object.layout.set(oob.offset, *place);
            if !oob.is_copy && oob.tid > object.meta_tid {
                object.needs_meta |= object.diffs.change().remove(&oob.offset).is_some();
                let end = u64::from(oob.offset) * u64::from(sizes.page_bytes) + u64::from(oob.len);
                object.size = object.size.max(end);
            }
        }
        object.touched = touched(object);
        let end = object.size.div_ceil(sizes.page_bytes.into());
        let cost = object.cost(object.touched, end, object.attributes.len() as u64, &sizes);
        let lags = object.layout.lags() || object.needs_meta;
        let pages = object.metadata_pages(&sizes);
        self.table.charge_known(id, cost);
        if lags {
            self.table.lags(id, pages);
        }
        Ok(())
    }

    /// Reads the metadata of an object, without the places of its leaves.
    fn read_object(&mut self, place: u32, at: SimTime) -> NamespaceResult<(Object, Vec<LeafAt>)> {
        let unreadable = || FtlError::Flash(FlashError::Damaged { page: Ppn(place) });
        let mut record = self.read_sure(place, at)?;
        let others = object_parts(&record).ok_or_else(unreadable)?;
        let mut parts = vec![place];
        for other in others {
            record.extend(self.read_sure(other, at)?);
            parts.push(other);
        }
        let (mut object, leaves) = object_of(&record, &self.sizes).ok_or_else(unreadable)?;
        object.parts = parts;
        Ok((object, leaves))
    }

    /// Reads an object into memory.
    #[cold]
    pub(super) fn load(&mut self, id: u64, at: SimTime) -> NamespaceResult<u32> {
        let entry = self.table.entry(id).ok_or(ObjectError::Unknown)?;
        let (mut object, leaves) = self.read_object(entry.place, at)?;
        if object.id != id {
            return Err(FtlError::Flash(FlashError::Damaged { page: Ppn(entry.place) }).into());
        }
        for (number, page, tid) in leaves {
            let data = self.read_sure(page, at)?;
            let places = leaf_places(&data, id, &self.sizes)
                .ok_or(FtlError::Flash(FlashError::Damaged { page: Ppn(page) }))?;
            object.layout.put_leaf(number, places, page, tid);
        }
        object.touched = touched(&object);
        // What it has replaced, the index does not have any more.
        object.replaced.clear();
        Ok(self.table.add(object))
    }
}
