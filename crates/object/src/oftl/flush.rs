//! From memory to the flash: data pages, and the metadata of objects with its differences.

use super::Oftl;
use super::diffs::{Compression, Diffs};
use super::format::{leaf_page, object_record};
use super::layout::{Known, LOST, NOWHERE, PLANNED, RESERVED, is_page};
use super::object::Object;
use super::oob::{ObjectOob, PageKind};
use super::patch::Patch;
use super::program::{Page, Write};
use nandscape_core::{
    Cause, FlashDevice, FlashError, FtlError, NamespaceError, NamespaceResult, Ppn, SimTime, Token,
};
use std::cmp::Reverse;
use std::collections::btree_map::Entry;

/// A data page that is to be programmed.
struct Whole {
    page: u32,
    /// Where the page was.
    old: Option<u32>,
    patch: Patch,
    /// It was put together from differences.
    is_merged: bool,
    /// What was read below the patch, and when that is there; nothing if the patch says it all.
    below: Option<(Vec<u8>, Token)>,
}

/// An object on its way to the flash, as it was when this began.
pub(super) struct Flush {
    /// Pages to be programmed, the last one first.
    pages: Vec<Whole>,
    /// Layout pages and pages of metadata, if any is written.
    metadata: Option<(Vec<u32>, u32)>,
    /// Pages that are not programmed yet.
    left: u32,
    write: Write,
    size: u64,
}

impl Flush {
    /// Where pages are that are still to be replaced.
    pub fn replaced(&self) -> impl Iterator<Item = u32> {
        self.pages.iter().filter_map(|whole| whole.old)
    }

    /// Memory in bytes, roughly.
    pub fn bytes(&self) -> u64 {
        self.pages.iter().map(|whole| Object::waiting(&whole.patch)).sum()
    }
}

impl<D: FlashDevice<ObjectOob>> Oftl<D> {
    /// Writes what an object has in memory.
    pub(super) fn flush_object(&mut self, id: u64, at: SimTime) -> NamespaceResult<()> {
        self.end_eviction(at)?;
        self.make_room_for(id, at)?;
        self.write_object(id, false, at)
    }

    /// Makes room for what a flush of an object takes. Whether there is then as much again.
    pub(super) fn make_room_for(&mut self, id: u64, at: SimTime) -> NamespaceResult<bool> {
        let Some(slot) = self.table.slot(id) else { return Ok(true) };
        let object = self.table.get(slot);
        if !object.is_dirty() {
            return Ok(true);
        }
        let data = (object.dirty.len() + object.diffs.len()) as u64;
        let leaves = object.layout.leaves().count() as u64 + object.dirty.len() as u64;
        let metadata = self.sizes.parts(object.record_bytes(&self.sizes)) + leaves + 2;
        self.make_room(data, metadata, at)?;
        Ok(self.has_room(2 * data, 2 * metadata))
    }

    /// Writes what an object has in memory, without looking for room; with `all`, its metadata says
    /// everything afterwards.
    pub(super) fn write_object(&mut self, id: u64, all: bool, at: SimTime) -> NamespaceResult<()> {
        let Some(slot) = self.table.slot(id) else { return Ok(()) };
        let mut object = self.table.take(slot);
        let result = match self.begin_flush(&mut object, all, at) {
            Ok(Some(mut flush)) => self.go_on(&mut object, &mut flush, u32::MAX, at).map(|_| ()),
            other => other.map(|_| ()),
        };
        self.put_back(slot, object, result.is_ok());
        result
    }

    /// Puts an object back: nothing of it waits for a flush any more, or what it has again.
    pub(super) fn put_back(&mut self, slot: u32, mut object: Object, is_taken: bool) {
        let before = object.dirty_bytes;
        if is_taken {
            (object.dirty_bytes, object.dirty_since) = (0, None);
        } else {
            object.dirty_bytes = object.dirty.values().map(Object::waiting).sum();
        }
        self.table.dirty_bytes = self.table.dirty_bytes + object.dirty_bytes - before;
        self.table.put_back(slot, object);
    }

    /// Takes what is to be written of an object, if anything is.
    pub(super) fn begin_flush(
        &mut self,
        object: &mut Object,
        all: bool,
        at: SimTime,
    ) -> NamespaceResult<Option<Flush>> {
        assert!(self.eviction.is_none(), "object {} between two steps of another one", object.id);
        if !all && !object.is_dirty() {
            return Ok(None);
        }
        let pages = self.plan(object);
        let mut pages = self.read_below(object, pages, at)?;
        let is_eager = !self.config.lazy_index && object.layout.lags();
        let with_metadata = object.needs_meta || all || is_eager;
        let metadata = with_metadata.then(|| self.metadata_pages(object, all || is_eager));
        let of_metadata = metadata.as_ref().map_or(0, |(leaves, parts)| leaves.len() as u32 + parts);
        self.counts.flash.writes += u64::from(!pages.is_empty()) + u64::from(with_metadata);
        pages.reverse();
        let data = pages.len() as u32;
        let write = self.begin(self.together(data, data + of_metadata), at);
        Ok(Some(Flush { pages, metadata, left: data + of_metadata, write, size: object.size }))
    }

    /// Pages of an object that are written together, of so many that are left: where their data is larger
    /// than a window, of a window's size; the last ones with the metadata.
    const fn together(&self, data: u32, left: u32) -> u32 {
        let most = self.config.window * self.blocks.pages;
        if data > 2 * most { most } else { left }
    }

    /// Programs pages of an object, at most so many of its data. Whether that was all; what cannot be written
    /// goes back to it.
    pub(super) fn go_on(
        &mut self,
        object: &mut Object,
        flush: &mut Flush,
        most: u32,
        at: SimTime,
    ) -> NamespaceResult<bool> {
        // What was written since is not part of it.
        let size = std::mem::replace(&mut object.size, flush.size);
        flush.write.at = at;
        let result = self.write_pages(object, flush, most);
        object.size = size;
        if result.is_err() {
            give_back(object, std::mem::take(&mut flush.pages));
        }
        result
    }

    fn write_pages(&mut self, object: &mut Object, flush: &mut Flush, most: u32) -> NamespaceResult<bool> {
        for _ in 0..most {
            let data = flush.pages.len() as u32;
            let Some(page) = flush.pages.last_mut() else { break };
            if flush.write.is_complete() {
                flush.write = self.begin(self.together(data, flush.left), flush.write.at);
            }
            self.write_data(object, page, &mut flush.write)?;
            flush.left -= 1;
            flush.pages.pop();
        }
        if !flush.pages.is_empty() {
            return Ok(false);
        }
        if let Some(metadata) = flush.metadata.take() {
            self.write_metadata(object, metadata, &mut flush.write)?;
        }
        assert!(flush.write.is_complete(), "object {}: {:?}", object.id, flush.write);
        if object.layout.lags() {
            self.table.lags(object.id, object.metadata_pages(&self.sizes));
        } else {
            self.table.caught_up(object.id);
        }
        Ok(true)
    }

    /// Takes what was written since the last flush: whole pages are to be programmed, parts become
    /// differences. Differences that have no room in the metadata become pages again, those first that take
    /// the most.
    fn plan(&self, object: &mut Object) -> Vec<Whole> {
        let page_bytes = self.sizes.page_bytes;
        let mut pages = Vec::new();
        for (page, patch) in std::mem::take(&mut object.dirty) {
            if patch.covers(0, page_bytes) {
                if object.diffs.contains_key(&page) {
                    object.diffs.change().remove(&page);
                    object.needs_meta = true;
                }
                let old = object.layout.set(page, PLANNED);
                pages.push(Whole { page, old, patch, is_merged: false, below: None });
                continue;
            }
            match object.diffs.change().entry(page) {
                Entry::Occupied(mut diff) => diff.get_mut().overlay(&patch),
                Entry::Vacant(place) => drop(place.insert(patch)),
            }
            object.needs_meta = true;
        }
        let mut plain = object.diffs.plain_bytes();
        let mut by_size = Vec::new();
        while plain > 0 {
            let room = self.sizes.diff_room(object.record_bytes(&self.sizes));
            let bytes = match self.sizes.compression {
                Compression::Off => plain,
                packed => object.diffs.stored_bytes(packed),
            };
            if self.config.diffs && bytes <= room {
                break;
            }
            if by_size.is_empty() {
                by_size = pages_by_size(object);
            }
            // To compress what is left after each page would take long: as much goes as should be enough.
            let goal = match self.sizes.compression {
                Compression::Off => (plain - 1).min(page_bytes.into()),
                Compression::Lz4 | Compression::Share(_) => plain * room / bytes.max(room + 1),
            };
            while plain > goal {
                let whole = merged(object, by_size.pop().expect("a page for what is left"));
                plain -= Diffs::plain_bytes_of(&whole.patch);
                pages.push(whole);
            }
        }
        pages
    }

    /// Reads what lies below differences that become pages. Where that is lost they stay differences, which
    /// can be read.
    fn read_below(
        &mut self,
        object: &mut Object,
        pages: Vec<Whole>,
        at: SimTime,
    ) -> NamespaceResult<Vec<Whole>> {
        let mut readable = Vec::with_capacity(pages.len());
        let mut error = None;
        for mut whole in pages {
            let len = object.page_len(whole.page, &self.sizes);
            let is_needed = |old: &u32| *old != RESERVED && whole.is_merged && !whole.patch.covers(0, len);
            let needed = whole.old.filter(is_needed);
            let read = match needed {
                None => Ok(None),
                Some(LOST) => Err(FlashError::Uncorrectable { page: Ppn(LOST) }),
                Some(place) => {
                    self.read_page(place, Cause::Merge, at).map(|(_, data, done)| Some((data, done)))
                }
            };
            match read {
                Ok(below) => {
                    whole.below = below;
                    readable.push(whole);
                }
                Err(FlashError::Uncorrectable { .. } | FlashError::Damaged { .. }) => {
                    self.lose_page(object, whole.page, whole.old);
                    object.diffs.change().insert(whole.page, whole.patch);
                }
                Err(failed) => {
                    error = Some(self.failed(failed));
                    readable.push(whole);
                }
            }
        }
        match error {
            None => Ok(readable),
            Some(error) => {
                give_back(object, readable);
                Err(error)
            }
        }
    }

    /// The data of a page is lost; only metadata can say so.
    pub(super) fn lose_page(&mut self, object: &mut Object, page: u32, old: Option<u32>) {
        object.layout.set(page, LOST);
        if let Some(leaf) = object.layout.leaf_mut(page / self.sizes.leaf_pages) {
            leaf.known = Known::Stale;
        }
        object.needs_meta = true;
        if let Some(old) = old {
            self.blocks.invalidate(old);
        }
    }

    /// Programs a data page of an object.
    fn write_data(
        &mut self,
        object: &mut Object,
        whole: &mut Whole,
        write: &mut Write,
    ) -> NamespaceResult<()> {
        let page_bytes = self.sizes.page_bytes;
        let (mut buffer, after) = whole.below.take().unwrap_or((Vec::new(), Token::NONE));
        let is_whole = whole.patch.covers(0, page_bytes);
        if self.sizes.stores_data && !is_whole {
            buffer.resize(page_bytes as usize, 0);
            whole.patch.apply(0, &mut buffer);
        }
        let data = if is_whole { whole.patch.part(0, page_bytes) } else { &buffer };
        let page = Page {
            kind: PageKind::Data,
            object: object.id,
            offset: whole.page,
            len: object.page_len(whole.page, &self.sizes),
            version: write.tid,
            data: self.sizes.stores_data.then_some(data),
            after,
            cause: if whole.is_merged { Cause::Merge } else { Cause::Host },
        };
        let place = self.program(write, &page)?;
        object.layout.set(whole.page, place);
        if let Some(old) = whole.old {
            self.blocks.invalidate(old);
        }
        if is_whole {
            self.spare.put(std::mem::take(&mut whole.patch).into_buffer());
        }
        Ok(())
    }

    /// Leaves that have to be written with the metadata, and pages of the metadata itself.
    fn metadata_pages(&mut self, object: &mut Object, all: bool) -> (Vec<u32>, u32) {
        let blocks = &mut self.blocks;
        object.layout.drop_empty(|place| blocks.invalidate(place));
        let mut leaves = Vec::new();
        if object.layout.run_bytes(self.sizes.inline_bytes).is_some() {
            object.layout.is_inline(|place| blocks.invalidate(place));
        } else {
            let is_due = |leaf: &super::layout::Leaf| {
                leaf.page == NOWHERE || leaf.known == Known::Stale || (all && leaf.known == Known::Lags)
            };
            leaves.extend(object.layout.leaves().filter(|(_, leaf)| is_due(leaf)).map(|(number, _)| number));
        }
        (leaves, self.sizes.parts(object.metadata_bytes(&self.sizes)) as u32)
    }

    /// Programs layout pages and metadata of an object.
    fn write_metadata(
        &mut self,
        object: &mut Object,
        (leaves, parts): (Vec<u32>, u32),
        write: &mut Write,
    ) -> NamespaceResult<()> {
        let page_bytes = self.sizes.page_bytes as usize;
        let stores_data = self.sizes.stores_data;
        let plain = Page {
            kind: PageKind::Layout,
            object: object.id,
            offset: 0,
            len: page_bytes as u32,
            version: write.tid,
            data: None,
            after: Token::NONE,
            cause: Cause::Meta,
        };
        for number in leaves {
            let leaf = object.layout.leaf(number).expect("it is due");
            let data = stores_data.then(|| leaf_page(leaf.places(), object.id, page_bytes as u32));
            let page = Page { offset: number, data: data.as_deref(), ..plain };
            let place = self.program(write, &page)?;
            let leaf = object.layout.leaf_mut(number).expect("it is due");
            let old = std::mem::replace(&mut leaf.page, place);
            (leaf.tid, leaf.known) = (write.tid, Known::Whole);
            self.blocks.invalidate(old);
        }
        let mut places = vec![NOWHERE; parts as usize];
        let mut record = Vec::new();
        // The first part is last: it has the places of the others.
        for part in (0..parts).rev() {
            if stores_data && (part == 0 || record.is_empty()) {
                record = object_record(object, write.tid, &places[1..], &self.sizes);
                record.resize(parts as usize * page_bytes, 0);
            }
            let data = record.get(part as usize * page_bytes..(part as usize + 1) * page_bytes);
            let page = Page { kind: PageKind::Object, offset: part, data, ..plain };
            places[part as usize] = self.program(write, &page)?;
        }
        for old in std::mem::replace(&mut object.parts, places) {
            self.blocks.invalidate(old);
        }
        // With the places of the pages that were programmed before it.
        object.layout.is_said_inline();
        for id in object.replaced.drain(..) {
            self.table.replacing.remove(&id);
        }
        (object.meta_tid, object.needs_meta) = (write.tid, false);
        let end = object.size.div_ceil(page_bytes as u64);
        let cost = object.cost(object.touched, end, object.attributes.len() as u64, &self.sizes);
        self.table.moved_to(object.id, object.place(), cost);
        self.table.removals.remove(&object.id);
        Ok(())
    }
}

/// Pages with differences, those with the most bytes last.
fn pages_by_size(object: &Object) -> Vec<u32> {
    let mut pages: Vec<_> =
        object.diffs.iter().map(|(page, patch)| (patch.covered(), Reverse(*page))).collect();
    pages.sort_unstable();
    pages.into_iter().map(|(_, Reverse(page))| page).collect()
}

/// A page with differences, which is to be programmed.
fn merged(object: &mut Object, page: u32) -> Whole {
    let patch = object.diffs.change().remove(&page).expect("it has differences");
    let old = object.layout.set(page, PLANNED);
    Whole { page, old, patch, is_merged: true, below: None }
}

/// Pages that were not programmed go back to where they came from.
fn give_back(object: &mut Object, pages: Vec<Whole>) {
    for whole in pages {
        match whole.old {
            Some(old) => drop(object.layout.set(whole.page, old)),
            None => object.layout.remove(whole.page, whole.page + 1, |_| {}),
        }
        let patches = if whole.is_merged { object.diffs.change() } else { &mut object.dirty };
        if let Some(newer) = patches.insert(whole.page, whole.patch) {
            patches.entry(whole.page).and_modify(|patch| patch.overlay(&newer));
        }
    }
    object.needs_meta = true;
}

/// A read of a page whose data is lost; the error has its number in the object.
pub(super) fn lost(page: u32) -> NamespaceError {
    FtlError::Flash(FlashError::Uncorrectable { page: Ppn(page) }).into()
}

const _: () = assert!(!is_page(PLANNED) && !is_page(LOST) && !is_page(RESERVED));
