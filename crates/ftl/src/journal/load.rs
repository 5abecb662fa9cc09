//! Reads what the journal's own blocks hold: the newest checkpoint, or what there is instead of one that is
//! damaged.
//!
//! Three ways, the first that works:
//! 1. The newest checkpoint and its records.
//! 2. The one before and its records; then what the newest says was dropped before it began, and its records.
//! 3. No checkpoint, so that the OOB of every page is read; what the newest checkpoint says was dropped, and
//!    its records.

use super::draft::Region;
use super::error::{JournalError, Result, Sabotage};
use super::format::{HEADER_BYTES, Kind, PageHead, from_oob, page_of, u32_at};
use super::held;
use super::newest::Newest;
use super::open::Opening;
use super::records::Record;
use super::scan::read_oob;
use super::shape::{Header, Table};
use nandscape_core::recovery::RecoverySource;
use nandscape_core::{BlockId, FlashDevice, FlashResult, Geometry, Lpn, Ppn};
use std::collections::{BTreeMap, BTreeSet};

/// A page of the journal, as its OOB tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MetaPage {
    generation: u64,
    index: u32,
    page: Ppn,
    kind: Kind,
}

/// What a start goes on from.
pub(super) struct Loaded {
    pub checkpoint: Checkpoint,
    /// In the order in which they are to be applied.
    pub records: Vec<Record>,
    /// How many of them are records of drops that the journal wrote.
    pub drop_records: u64,
    /// Where the journal goes on.
    pub region: Region,
    /// Highest generation with a page on flash.
    pub used: u64,
    /// No page of the journal has a larger sequence number.
    pub seq: u64,
    /// Pages of records that only one page tells any more, with their numbers.
    pub single: Vec<(u32, Vec<u8>)>,
    pub source: RecoverySource,
    /// Why it is not the newest checkpoint.
    pub damage: Option<String>,
    /// Something of the newest checkpoint that is to be there twice is there once.
    pub is_thin: bool,
}

pub(super) struct Checkpoint {
    /// 0 for none.
    pub generation: u64,
    /// The first sequence number after it began.
    pub start_seq: u64,
    pub table: Table,
    pub newest: Newest,
    pub map_entries: u64,
    /// Pages of the map that the device does not have.
    pub missing: BTreeMap<Ppn, Lpn>,
}

impl Checkpoint {
    fn new(generation: u64, start_seq: u64, table: Table, geometry: &Geometry) -> Self {
        let newest = Newest::new(geometry);
        Self { generation, start_seq, table, newest, map_entries: 0, missing: BTreeMap::new() }
    }
}

/// The pages of records of one generation, by number.
struct Records {
    list: Vec<Record>,
    parts: u32,
    single: Vec<(u32, Vec<u8>)>,
}

/// Readable pages of one kind: payloads by part, and a page that could not be read.
struct Parts {
    payloads: BTreeMap<u32, Vec<u8>>,
    /// Readable pages of each part.
    copies: BTreeMap<u32, u32>,
    /// The last index with a readable page.
    last: Option<u32>,
    /// Indices and places of pages that cannot be read.
    bad: Vec<(u32, Ppn)>,
}

impl Parts {
    /// The payloads end to end, if none is missing before the last one that is there.
    fn joined(&self) -> Option<Vec<u8>> {
        let is_whole = self.payloads.keys().copied().eq(0..self.payloads.len() as u32);
        is_whole.then(|| self.payloads.values().flatten().copied().collect())
    }
}

/// Pages of the map, and of records before the last page; `None` in checkpoints of the first kind.
type Counts = Option<(u32, u32)>;

fn damaged(generation: u64, parts: &Parts, found: &'static str) -> JournalError {
    let page = parts.bad.first().map_or(u64::from(parts.last.unwrap_or(0)), |(_, page)| u64::from(page.0));
    let found = if parts.bad.is_empty() { found } else { "a page that cannot be read" };
    JournalError::Damaged { generation, page, found }
}

/// The journal's own pages, and how far their sequence numbers go.
struct Pages {
    all: Vec<MetaPage>,
    seq: u64,
}

impl Pages {
    fn of(&self, generation: u64, kind: Kind) -> Vec<MetaPage> {
        let pages = self.all.iter().copied();
        pages.filter(|page| page.generation == generation && page.kind == kind).collect()
    }

    /// Whether there is a page of each number up to the last one of a checkpoint.
    fn has_every(&self, generation: u64) -> bool {
        let of_this = self.all.iter().filter(|page| page.generation == generation);
        let indices: BTreeSet<u32> = of_this.map(|page| page.index).collect();
        let end = self.of(generation, Kind::End).first().map_or(0, |page| page.index);
        (0..=end).all(|index| indices.contains(&index))
    }

    fn region(&self, generation: u64, parts: u32, pool: &[BlockId], geometry: &Geometry) -> Region {
        let mut region = Region { generation, parts, ..Region::default() };
        for meta in self.all.iter().filter(|page| page.generation == generation) {
            let block = geometry.block_of(meta.page);
            let place = pool.iter().position(|own| *own == block);
            if let Some(place) = place.filter(|place| !region.blocks.contains(place)) {
                region.blocks.push(place);
            }
            region.index = meta.index + 1;
        }
        region
    }
}

impl<D: FlashDevice> Opening<D> {
    /// What to go on from; `None` if no checkpoint was ever completed.
    pub fn load(&mut self, pool: &[BlockId]) -> Result<Option<Loaded>> {
        let mut pages = self.meta_pages(pool)?;
        let Some(used) = pages.all.last().map(|page| page.generation) else { return Ok(None) };
        // That the last page was programmed is enough, whether or not it can be read.
        let complete: BTreeSet<u64> =
            pages.all.iter().filter(|page| page.kind == Kind::End).map(|page| page.generation).collect();
        let Some(newest) = complete.last().copied() else { return Ok(None) };
        let (counts, ends) = self.counts(&mut pages, newest)?;
        let own = self.records_of(&mut pages, newest, counts)?;
        let mut records = Vec::new();
        let (checkpoint, source, damage) = match self.checkpoint(&mut pages, newest, counts) {
            Ok(checkpoint) => (checkpoint, RecoverySource::Checkpoint, None),
            Err(error @ JournalError::Damaged { .. }) => {
                let held = self.held_of(&mut pages, newest)?;
                let older = complete.iter().rev().skip(1).copied();
                let older = self.older(&mut pages, older, &mut records)?;
                if self.sabotage() != Sabotage::IgnoreHeld {
                    records.extend(held);
                }
                let source =
                    if older.is_some() { RecoverySource::OlderCheckpoint } else { RecoverySource::Scan };
                (older.unwrap_or_else(|| self.nothing()), source, Some(error.to_string()))
            }
            Err(error) => return Err(error),
        };
        let is_fallback = damage.is_some();
        let is_thin = !is_fallback && counts.is_some() && (ends < 2 || self.is_thin(&mut pages, newest)?);
        if !is_fallback || self.sabotage() != Sabotage::IgnoreLater {
            records.extend(own.list.iter().copied());
        }
        let drops = own.list.iter().filter(|record| matches!(record, Record::Drop { .. }));
        Ok(Some(Loaded {
            drop_records: drops.count() as u64,
            checkpoint,
            records,
            region: pages.region(newest, own.parts, pool, &self.geometry),
            used,
            seq: pages.seq,
            single: own.single,
            source,
            damage,
            is_thin,
        }))
    }

    /// Every page whose OOB can be read, in the order in which they were written.
    fn meta_pages(&mut self, pool: &[BlockId]) -> FlashResult<Pages> {
        let mut all = Vec::new();
        for block in pool.iter().filter(|block| block.0 < self.geometry.blocks()) {
            if self.device.is_bad(*block) {
                continue;
            }
            for index in 0..self.device.write_pointer(*block) {
                let page = self.geometry.page(*block, index);
                if !self.device.is_programmed(page) {
                    continue;
                }
                self.report.metadata_pages += 1;
                let found = read_oob(&mut self.device, page, None)?;
                if let Some((generation, index, kind)) = found.and_then(|oob| from_oob(&oob)) {
                    all.push(MetaPage { generation, index, page, kind });
                }
            }
        }
        let (found, read) = (all.len() as u64, self.report.metadata_pages);
        assert!(found <= read, "{found} pages of the journal among {read} that were read");
        all.sort_unstable();
        Ok(Pages { all, seq: 0 })
    }

    fn parts(&mut self, pages: &mut Pages, generation: u64, kind: Kind) -> FlashResult<Parts> {
        let mut parts =
            Parts { payloads: BTreeMap::new(), copies: BTreeMap::new(), last: None, bad: Vec::new() };
        for meta in pages.of(generation, kind) {
            let is_this =
                |head: &PageHead| (head.generation, head.index, head.kind) == (generation, meta.index, kind);
            match self.read_meta(meta.page)? {
                Some((head, payload)) if is_this(&head) => {
                    pages.seq = pages.seq.max(head.seq);
                    // Pages of records of the first kind have no numbers.
                    let part = if kind == Kind::Records && head.part == 0 {
                        parts.payloads.len() as u32 | FIRST_KIND
                    } else {
                        head.part
                    };
                    parts.last = Some(meta.index);
                    *parts.copies.entry(part).or_default() += 1;
                    parts.payloads.entry(part).or_insert_with(|| payload.to_vec());
                }
                _ => parts.bad.push((meta.index, meta.page)),
            }
        }
        let (parts_found, counted) = (parts.payloads.len(), parts.copies.len());
        assert_eq!(parts_found, counted, "parts of {kind:?} of checkpoint {generation}");
        Ok(parts)
    }

    /// What the last page of a checkpoint says, and how many such pages can be read.
    fn counts(&mut self, pages: &mut Pages, generation: u64) -> FlashResult<(Counts, u32)> {
        let ends = self.parts(pages, generation, Kind::End)?;
        let payload = ends.payloads.values().next().filter(|payload| payload.len() >= 8);
        let counts = payload.map(|payload| (u32_at(payload, 0), u32_at(payload, 4)));
        Ok((counts, ends.copies.values().sum()))
    }

    /// The records of a generation, of which none may be missing: nothing else tells what they say.
    fn records_of(&mut self, pages: &mut Pages, generation: u64, counts: Counts) -> Result<Records> {
        let parts = self.parts(pages, generation, Kind::Records)?;
        let (first_kind, numbered): (Vec<_>, Vec<_>) =
            parts.payloads.iter().partition(|(part, _)| **part & FIRST_KIND != 0);
        let count = numbered.len() as u32;
        let is_whole = numbered.iter().map(|(part, _)| **part).eq(1..=count)
            && counts.is_none_or(|(_, before)| before <= count);
        // Whoever was told that records are there was told so after the second page of them.
        let after = parts.bad.iter().filter(|(index, _)| parts.last.is_none_or(|last| *index > last)).count();
        let is_lost = !is_whole || after > 1 || (!first_kind.is_empty() && parts.bad.len() > after);
        if is_lost {
            return Err(damaged(generation, &parts, "no page of records of a number before the last"));
        }
        let mut list = Vec::new();
        for (_, payload) in first_kind.into_iter().chain(numbered) {
            let records = Record::read_all(payload);
            list.extend(records.ok_or_else(|| damaged(generation, &parts, "an unknown record"))?);
        }
        let is_single = |part: &u32| part & FIRST_KIND == 0 && parts.copies[part] == 1;
        let single = parts.payloads.iter().filter(|(part, _)| is_single(part));
        let single = single.map(|(part, payload)| (*part, payload.clone())).collect();
        Ok(Records { list, parts: count, single })
    }

    /// What was dropped before a generation began.
    fn held_of(&mut self, pages: &mut Pages, generation: u64) -> Result<Vec<Record>> {
        let parts = self.parts(pages, generation, Kind::Held)?;
        let (room, logical) = (self.layout.payload, self.geometry.pages());
        let mut dropped = Vec::new();
        for part in 0..logical.div_ceil(held::pages_of(room)) {
            let payload = parts.payloads.get(&part).filter(|p| held::is_whole(p, part, room, logical));
            let payload = payload.ok_or_else(|| {
                damaged(generation, &parts, "no page that tells which logical pages hold something")
            })?;
            held::drops(payload, part, room, logical, &mut dropped);
        }
        Ok(dropped)
    }

    /// The first of these generations that is whole, its records added to the others.
    fn older(
        &mut self,
        pages: &mut Pages,
        generations: impl Iterator<Item = u64>,
        records: &mut Vec<Record>,
    ) -> Result<Option<Checkpoint>> {
        for generation in generations {
            let (counts, _) = self.counts(pages, generation)?;
            let own = self.records_of(pages, generation, counts);
            match own.and_then(|own| Ok((own, self.checkpoint(pages, generation, counts)?))) {
                Ok((own, checkpoint)) => {
                    records.extend(own.list);
                    return Ok(Some(checkpoint));
                }
                Err(JournalError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Whether a page of the header, or of what tells which pages hold something, is there once.
    fn is_thin(&mut self, pages: &mut Pages, generation: u64) -> FlashResult<bool> {
        let heads = self.parts(pages, generation, Kind::Header)?;
        let held = self.parts(pages, generation, Kind::Held)?;
        let parts = self.geometry.pages().div_ceil(held::pages_of(self.layout.payload));
        let copies = heads.copies.values().chain(held.copies.values());
        Ok(held.payloads.len() as u32 != parts || copies.copied().min() == Some(1))
    }

    /// As if there were a checkpoint of the new device.
    fn nothing(&self) -> Checkpoint {
        let mut table = Table::new(&self.geometry, self.layout.has_bits);
        for _ in 0..self.geometry.blocks() {
            table.push(0, 0, false, |_| false);
        }
        Checkpoint::new(0, 0, table, &self.geometry)
    }

    /// Header, table and map of a generation.
    fn checkpoint(&mut self, pages: &mut Pages, generation: u64, counts: Counts) -> Result<Checkpoint> {
        let heads = self.parts(pages, generation, Kind::Header)?;
        let header = heads.joined().and_then(|bytes| Header::from_bytes(&bytes));
        let header = header.ok_or_else(|| damaged(generation, &heads, "a header that is cut short"))?;
        self.check(&header)?;
        let tables = self.parts(pages, generation, Kind::Table)?;
        let bytes = tables.joined().unwrap_or_default();
        let table = Table::from_bytes(bytes, &self.geometry, header.has_bits);
        let table = table.ok_or_else(|| damaged(generation, &tables, "a table of another length"))?;
        let maps = self.parts(pages, generation, Kind::Map)?;
        let is_whole = match counts {
            Some((slices, _)) => maps.payloads.len() as u32 == slices,
            None => maps.bad.is_empty() && pages.has_every(generation),
        };
        if !is_whole {
            return Err(damaged(generation, &maps, "fewer pages of the map than there were"));
        }
        let mut found = Checkpoint::new(generation, header.start_seq, table, &self.geometry);
        for (slice, payload) in &maps.payloads {
            self.add_slice(&mut found, *slice, payload)
                .ok_or_else(|| damaged(generation, &maps, "a map entry outside the device"))?;
        }
        Ok(found)
    }

    /// Takes over the entries whose page was there when the checkpoint began and has not been erased since.
    /// All others are found where the blocks are scanned.
    fn add_slice(&self, found: &mut Checkpoint, slice: u32, payload: &[u8]) -> Option<()> {
        let per_page = (u64::from(self.geometry.page_bytes) - HEADER_BYTES as u64) / 4;
        for (lpn, bytes) in (u64::from(slice) * per_page..).zip(payload.chunks_exact(4)) {
            let Some(page) = page_of(u32_at(bytes, 0)) else { continue };
            if lpn >= u64::from(self.geometry.pages()) || page.0 >= self.geometry.pages() {
                return None;
            }
            found.map_entries += 1;
            let block = self.geometry.block_of(page);
            let record = found.table.get(block);
            if record.erase_count == self.device.erase_count(block)
                && record.is_programmed(self.geometry.page_in_block(page))
            {
                found.newest.set(Lpn(lpn as u32), page);
                if !self.device.is_programmed(page) {
                    found.missing.insert(page, Lpn(lpn as u32));
                }
            }
        }
        Some(())
    }
}

/// Marks the numbers that are given here to pages of records without one.
const FIRST_KIND: u32 = 1 << 31;
