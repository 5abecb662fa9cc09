//! Opening a journal: the first one on an erased device, or what the flash holds after a shutdown or a loss of power.

use super::error::{JournalError, JournalOptions, Sabotage};
use super::format::{HEADER_BYTES, Header, Kind, PageHead, Record, Table, decode, from_oob, page_of, u32_at};
use super::layout::{Layout, choose, order};
use super::newest::Newest;
use super::scan::Scan;
use super::writer::{Meta, Region};
use super::{Journal, RESERVED, RETIRED, SEQ_STEP};
use nandscape_core::recovery::RecoveryReport;
use nandscape_core::{
    BlockId, Cause, FlashDevice, FlashError, Geometry, Issue, Lpn, Oob, Ppn, SimTime, Token,
};

/// Programs between two checkpoints at most, unless asked for.
const LONGEST_INTERVAL: u64 = 400_000;

/// What a page read during a start gives: its OOB, or `None` if it is torn.
pub(super) fn read_oob<D: FlashDevice>(
    device: &mut D,
    page: Ppn,
    data: Option<&mut [u8]>,
) -> Result<Option<Oob>, FlashError> {
    let transfer = data.as_ref().map_or(0, |data| data.len() as u32);
    match device.read(page, transfer, data, Issue::new(SimTime::ZERO, Cause::Meta)) {
        Ok(read) => Ok(Some(read.oob)),
        Err(FlashError::Uncorrectable { .. } | FlashError::BadBlock { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A page of the journal, as its OOB tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MetaPage {
    generation: u64,
    index: u32,
    page: Ppn,
    is_end: bool,
}

/// A complete checkpoint and the records after it.
struct Loaded {
    header: Header,
    table: Table,
    region: Region,
    /// Highest generation with a page on flash.
    used: u64,
    records: Vec<Record>,
    seq: u64,
    newest: Newest,
    map_entries: u64,
}

impl<D: FlashDevice> Journal<D> {
    /// Opens the journal of a device. A wholly erased device gets one; any other must have one, and is recovered.
    ///
    /// Whatever the start programs is issued at time 0, under [`Cause::Meta`], as are its reads.
    pub fn open(device: D, options: JournalOptions) -> Result<Self, JournalError> {
        if !device.capabilities().stores_data {
            return Err(JournalError::NoBytes);
        }
        let mut opening = Opening::new(device, options);
        match opening.find_pool()? {
            None => opening.format(),
            Some(pool) => opening.recover(pool),
        }
    }
}

impl<D: FlashDevice> Journal<D> {
    /// Applies to a checkpoint what happened since.
    fn take_over(&mut self, loaded: Loaded) -> Result<(), JournalError> {
        let Loaded { header, table, region, used, records, seq, newest, map_entries } = loaded;
        self.report.checkpoint = region.generation;
        self.report.map_entries = map_entries;
        self.meta.resume(region, used);
        self.newest = newest;
        for block in (0..self.device.geometry().blocks()).map(BlockId) {
            if !table.get(block).is_retired {
                continue;
            }
            if self.is_reserved(block) {
                self.meta.remember_failed(block);
            } else {
                self.flags[block.index()] |= RETIRED;
            }
        }
        let mut scan = Scan::new(header.start_seq, self.options.sabotage);
        for record in &records {
            if let Record::Retire { block } = *record {
                let flags = self.flags.get_mut(block as usize);
                *flags.ok_or(JournalError::Foreign {
                    what: "a retired block",
                    found: u64::from(block),
                    expected: u64::from(header.blocks) - 1,
                })? |= RETIRED;
                self.newest.leave_block(block);
            }
            scan.add_record(record);
        }
        self.report.drop_records = scan.drops();
        if self.options.sabotage != Sabotage::IgnoreScan {
            scan.read_blocks(&mut self.device, &table, &self.flags, &mut self.report)?;
        }
        scan.read_places(&mut self.device, &self.flags, &mut self.report)?;
        let last = scan.apply(&mut self.device, &mut self.newest)?;
        self.seq = (seq.max(header.start_seq).max(last) | (SEQ_STEP - 1)) + 1;
        self.report.live_pages = self.newest.live();
        let report = &self.report;
        self.report.was_clean = report.scanned_blocks == 0 && records.is_empty();
        self.is_touched = !self.report.was_clean;
        // The interval counts from the checkpoint, however often power is lost.
        self.due = self.meta.interval().saturating_sub(self.report.scanned_pages).max(1);
        for block in (0..self.device.geometry().blocks()).map(BlockId) {
            if self.flags[block.index()] & RETIRED != 0 && !self.device.is_bad(block) {
                self.device.mark_bad(block);
            }
        }
        Ok(())
    }
}

/// What there is before there is a journal.
struct Opening<D> {
    device: D,
    options: JournalOptions,
    geometry: Geometry,
    layout: Layout,
    page: Vec<u8>,
    report: RecoveryReport,
}

impl<D: FlashDevice> Opening<D> {
    fn new(device: D, options: JournalOptions) -> Self {
        let geometry = *device.geometry();
        let has_bits = device.capabilities().out_of_order_program;
        let layout = Layout::new(&geometry, has_bits, options.record_pages);
        let page = vec![0; geometry.page_bytes as usize];
        Self { device, options, geometry, layout, page, report: RecoveryReport::default() }
    }

    fn interval(&self) -> u64 {
        let default = (u64::from(self.geometry.pages()) / 4).clamp(8, LONGEST_INTERVAL);
        self.options.interval.unwrap_or(default).max(1)
    }

    fn read_meta(&mut self, page: Ppn) -> Result<Option<(PageHead, &[u8])>, FlashError> {
        self.report.metadata_pages += 1;
        let oob = read_oob(&mut self.device, page, Some(&mut self.page))?;
        Ok(oob.and_then(|_| decode(&self.page)))
    }

    /// The journal's own blocks, from the first header that is found; `None` on a device without data.
    fn find_pool(&mut self) -> Result<Option<Vec<BlockId>>, JournalError> {
        let mut first_with_data = None;
        let planned = choose(&self.device, self.layout.pool_blocks);
        for block in order(&self.geometry) {
            if self.device.is_bad(block) || self.device.write_pointer(block) == 0 {
                continue;
            }
            if let Some(pool) = self.pool_in(block)? {
                return Ok(Some(pool));
            }
            if !planned.contains(&block) {
                first_with_data.get_or_insert(block);
            }
        }
        // A loss of power while the first checkpoint was written leaves pages in the journal's blocks and nowhere else.
        first_with_data.map_or(Ok(None), |block| Err(JournalError::NoCheckpoint { block: block.0 }))
    }

    /// The reserved blocks that a header in this block tells. A block that begins with a readable page of something else has none.
    fn pool_in(&mut self, block: BlockId) -> Result<Option<Vec<BlockId>>, JournalError> {
        let mut bytes = Vec::new();
        let mut expected: Option<PageHead> = None;
        for index in 0..self.device.write_pointer(block) {
            let page = self.geometry.page(block, index);
            if !self.device.is_programmed(page) {
                continue;
            }
            let Some(oob) = read_oob(&mut self.device, page, None)? else { continue };
            if !from_oob(&oob).is_some_and(|(_, _, kind)| kind == Kind::Header) {
                return Ok(None);
            }
            let Some((head, payload)) = self.read_meta(page)? else { continue };
            let is_next = match &expected {
                None => head.part == 0,
                Some(last) => head.part == last.part + 1 && head.generation == last.generation,
            };
            if !is_next {
                return Ok(None);
            }
            bytes.extend_from_slice(payload);
            expected = Some(head);
            if let Some(header) = Header::from_bytes(&bytes) {
                self.check(&header)?;
                return Ok(Some(header.pool));
            }
        }
        Ok(None)
    }

    fn check(&self, header: &Header) -> Result<(), JournalError> {
        let geometry = &self.geometry;
        for (what, found, expected) in [
            ("blocks", header.blocks, geometry.blocks()),
            ("pages of a block", header.pages_per_block, geometry.pages_per_block),
            ("bytes of a page", header.page_bytes, geometry.page_bytes),
            ("programs in any order", u32::from(header.has_bits), u32::from(self.layout.has_bits)),
        ] {
            if found != expected {
                let (found, expected) = (u64::from(found), u64::from(expected));
                return Err(JournalError::Foreign { what, found, expected });
            }
        }
        match header.pool.iter().find(|block| block.0 >= geometry.blocks()) {
            None => Ok(()),
            Some(block) => Err(JournalError::Foreign {
                what: "a reserved block",
                found: u64::from(block.0),
                expected: u64::from(geometry.blocks()) - 1,
            }),
        }
    }

    /// The journal with these blocks, and nothing in it.
    fn journal(self, pool: Vec<BlockId>) -> Journal<D> {
        let mut flags = vec![0; self.geometry.blocks() as usize];
        for block in &pool {
            flags[block.index()] |= RESERVED;
        }
        let dead = pool.iter().map(|block| self.device.is_bad(*block)).collect();
        let interval = self.interval();
        Journal {
            newest: Newest::new(&self.geometry),
            seq: SEQ_STEP,
            doubtful: Vec::new(),
            allows_loss: false,
            born: Token::NONE,
            programmed: Token::NONE,
            erased: Token::NONE,
            programs: 0,
            due: interval,
            is_touched: false,
            stopped: None,
            flags,
            meta: Meta::new(self.layout, pool, dead, interval, self.geometry.page_bytes),
            options: self.options,
            report: self.report,
            device: self.device,
        }
    }

    /// The first journal of a device, with an empty checkpoint.
    fn format(self) -> Result<Journal<D>, JournalError> {
        let good =
            (0..self.geometry.blocks()).filter(|block| !self.device.is_bad(BlockId(*block))).count() as u32;
        let needed = self.layout.pool_blocks;
        let pool = choose(&self.device, needed);
        if good <= needed {
            return Err(JournalError::TooSmall { needed, good });
        }
        let mut journal = self.journal(pool);
        journal.checkpoint_now(SimTime::ZERO)?;
        journal.born = journal.meta.records_done;
        journal.report = RecoveryReport { was_clean: true, ..RecoveryReport::default() };
        Ok(journal)
    }

    fn recover(mut self, pool: Vec<BlockId>) -> Result<Journal<D>, JournalError> {
        let Some(loaded) = self.load(&pool)? else {
            // The first checkpoint was never completed.
            let planned = |block: &BlockId| pool.contains(block);
            let other = (0..self.geometry.blocks()).map(BlockId).find(|block| {
                !planned(block) && !self.device.is_bad(*block) && self.device.write_pointer(*block) > 0
            });
            return match other {
                Some(block) => Err(JournalError::NoCheckpoint { block: block.0 }),
                None => self.format(),
            };
        };
        self.check(&loaded.header)?;
        let mut journal = self.journal(pool);
        journal.take_over(loaded)?;
        Ok(journal)
    }

    /// The newest complete checkpoint; `None` if there is none.
    fn load(&mut self, pool: &[BlockId]) -> Result<Option<Loaded>, JournalError> {
        let mut pages = Vec::new();
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
                let Some((generation, index, kind)) = found.and_then(|oob| from_oob(&oob)) else {
                    continue;
                };
                pages.push(MetaPage { generation, index, page, is_end: kind == Kind::End });
            }
        }
        pages.sort_unstable();
        let Some(used) = pages.last().map(|page| page.generation) else { return Ok(None) };
        let mut ends = Vec::new();
        for page in pages.iter().filter(|page| page.is_end) {
            if self.read_meta(page.page)?.is_some() {
                ends.push(*page);
            }
        }
        let Some(end) = ends.last().copied() else { return Ok(None) };
        pages.retain(|page| page.generation == end.generation);
        // A page whose program was reported as failed may be there twice.
        pages.dedup_by_key(|page| page.index);
        self.load_generation(&pages, end, pool, used).map(Some)
    }

    fn load_generation(
        &mut self,
        pages: &[MetaPage],
        end: MetaPage,
        pool: &[BlockId],
        used: u64,
    ) -> Result<Loaded, JournalError> {
        let generation = end.generation;
        let mut parts = Parts::new(generation, &self.geometry);
        for (number, meta) in (0..).zip(pages) {
            if meta.index < end.index && meta.index != number {
                return Err(parts.damaged(u64::from(number), "no page of that number in the checkpoint"));
            }
            let place = u64::from(meta.page.0);
            self.report.metadata_pages += 1;
            let read = read_oob(&mut self.device, meta.page, Some(&mut self.page))?;
            let Some((head, payload)) = read.and_then(|_| decode(&self.page)) else {
                if number as usize + 1 == pages.len() && meta.index > end.index {
                    // The last page may be torn.
                    continue;
                }
                return Err(parts.damaged(place, "a page that cannot be read"));
            };
            if (head.generation, head.index) != (generation, meta.index) {
                return Err(parts.damaged(place, "a page of another checkpoint"));
            }
            parts.add(&self.device, &head, payload, place)?;
        }
        let mut loaded = parts.finish(used)?;
        self.check(&loaded.header)?;
        for meta in pages {
            let block = self.geometry.block_of(meta.page);
            let place = pool.iter().position(|own| *own == block);
            if let Some(place) = place.filter(|place| !loaded.region.blocks.contains(place)) {
                loaded.region.blocks.push(place);
            }
            loaded.region.index = meta.index + 1;
        }
        Ok(loaded)
    }
}

/// The parts of a checkpoint as they are read, in the order in which they were written.
struct Parts {
    generation: u64,
    geometry: Geometry,
    header: Vec<u8>,
    table_bytes: Vec<u8>,
    /// Header and table, once the first page of the map comes.
    heads: Option<(Header, Table)>,
    newest: Newest,
    map_entries: u64,
    records: Vec<Record>,
    seq: u64,
}

impl Parts {
    fn new(generation: u64, geometry: &Geometry) -> Self {
        Self {
            generation,
            geometry: *geometry,
            header: Vec::new(),
            table_bytes: Vec::new(),
            heads: None,
            newest: Newest::new(geometry),
            map_entries: 0,
            records: Vec::new(),
            seq: 0,
        }
    }

    const fn damaged(&self, page: u64, found: &'static str) -> JournalError {
        JournalError::Damaged { generation: self.generation, page, found }
    }

    /// Header and table are complete.
    fn close_heads(&mut self) -> Result<(), JournalError> {
        if self.heads.is_none() {
            let header = Header::from_bytes(&self.header);
            let header = header.ok_or(self.damaged(0, "a header that is cut short"))?;
            let bytes = std::mem::take(&mut self.table_bytes);
            let table = Table::from_bytes(bytes, &self.geometry, header.has_bits);
            let table = table.ok_or(self.damaged(0, "a table of another length"))?;
            self.heads = Some((header, table));
        }
        Ok(())
    }

    fn add<D: FlashDevice>(
        &mut self,
        device: &D,
        head: &PageHead,
        payload: &[u8],
        place: u64,
    ) -> Result<(), JournalError> {
        self.seq = self.seq.max(head.seq);
        match head.kind {
            Kind::Header => self.header.extend_from_slice(payload),
            Kind::Table => self.table_bytes.extend_from_slice(payload),
            Kind::Map => {
                self.close_heads()?;
                self.add_slice(device, head.part, payload, place)?;
            }
            Kind::Records => {
                let records = Record::read_all(payload).ok_or(self.damaged(place, "an unknown record"))?;
                self.records.extend(records);
            }
            Kind::End => {}
        }
        Ok(())
    }

    /// Takes over the entries whose page was there when the checkpoint began and has not been erased since. All others are found where the
    /// blocks are scanned.
    fn add_slice<D: FlashDevice>(
        &mut self,
        device: &D,
        slice: u32,
        payload: &[u8],
        place: u64,
    ) -> Result<(), JournalError> {
        let Some((_, table)) = &self.heads else { return Ok(()) };
        let first =
            u64::from(slice) * (u64::from(self.geometry.page_bytes) - HEADER_BYTES as u64).div_euclid(4);
        for (lpn, bytes) in (first..).zip(payload.chunks_exact(4)) {
            let Some(page) = page_of(u32_at(bytes, 0)) else { continue };
            if lpn >= u64::from(self.geometry.pages()) || page.0 >= self.geometry.pages() {
                return Err(self.damaged(place, "a map entry outside the device"));
            }
            self.map_entries += 1;
            let block = self.geometry.block_of(page);
            let record = table.get(block);
            if record.erase_count == device.erase_count(block)
                && record.is_programmed(self.geometry.page_in_block(page))
            {
                self.newest.set(Lpn(lpn as u32), page);
            }
        }
        Ok(())
    }

    fn finish(mut self, used: u64) -> Result<Loaded, JournalError> {
        self.close_heads()?;
        let region = Region { generation: self.generation, ..Region::default() };
        let (map_entries, records, seq, newest) = (self.map_entries, self.records, self.seq, self.newest);
        match self.heads {
            Some((header, table)) => {
                Ok(Loaded { header, table, region, used, records, seq, newest, map_entries })
            }
            None => Err(JournalError::Damaged { generation: self.generation, page: 0, found: "no header" }),
        }
    }
}
