//! Roots, the system log, and the update windows, which end and begin with them.

use super::blocks::{BlockEntry, BlockUse, Which};
use super::format::{BLOCK_RECORD, INDEX_RECORD, IndexRecord, Root, SYSTEM_HEAD, system_pages};
use super::layout::NOWHERE;
use super::oob::{ObjectOob, PageKind};
use super::{Oftl, Sabotage};
use crate::oftl::config::{ROOT_BLOCKS, SPARE};
use nandscape_core::{
    BlockId, Cause, FlashDevice, FlashError, Geometry, Issue, NamespaceResult, Ppn, SimTime, Token,
};
use nandscape_ftl::victim::BlockState;

/// What is known of roots and the system log.
#[derive(Debug)]
pub(super) struct System {
    /// The newest root, as it is on the flash.
    pub root: Root,
    /// Completes when it is durable.
    pub committed: Token,
    /// Blocks for its two copies, and their next pages.
    pub copies: [(u32, u32); 2],
    /// Blocks of the log, in order.
    pub blocks: Vec<u32>,
    /// Pages before the log in the first block, pages up to its end in all, and pages of it.
    pub begin: u32,
    pub end: u32,
    pub pages: u32,
    /// Number of the next page.
    pub next: u32,
    /// Blocks of it whose entries say that they are free.
    new: Vec<u32>,
    /// Blocks that the next root gives up.
    dropped: Vec<u32>,
}

impl System {
    pub fn new() -> Self {
        Self {
            root: Root::default(),
            committed: Token::NONE,
            copies: [(0, 0), (0, 0)],
            blocks: Vec::new(),
            begin: 0,
            end: 0,
            pages: 0,
            next: 0,
            new: Vec::new(),
            dropped: Vec::new(),
        }
    }

    /// Pages that can be programmed to blocks that the newest root has, of so many pages each.
    fn room(&self, block_pages: u32) -> u32 {
        let known = self.blocks.iter().take_while(|block| self.root.blocks.contains(block)).count() as u32;
        (known * block_pages).saturating_sub(self.end)
    }

    pub fn bytes(&self) -> u64 {
        4 * self.blocks.len() as u64
    }
}

impl<D: FlashDevice<ObjectOob>> Oftl<D> {
    /// Both windows have room for so many pages of data and metadata, beside the metadata of objects that
    /// lag.
    #[inline]
    pub(super) fn make_room(&mut self, data: u64, metadata: u64, at: SimTime) -> NamespaceResult<()> {
        if self.has_room(data, metadata) {
            return Ok(());
        }
        let pages = data + metadata + self.table.lag_pages;
        let wanted = pages.div_ceil(self.blocks.pages.into()) + 2 * u64::from(self.config.window) + SPARE;
        self.collect(wanted, at)?;
        self.checkpoint(false, at)?;
        for (which, needed) in [(Which::Data, data), (Which::Metadata, metadata)] {
            while self.blocks.windows[which as usize].room < needed {
                self.extend(which, at)?;
            }
        }
        Ok(())
    }

    /// Whether both windows have room for so many pages, beside the metadata of objects that lag.
    #[inline]
    pub(super) fn has_room(&self, data: u64, metadata: u64) -> bool {
        let [of_data, of_metadata] = self.blocks.windows.each_ref().map(|window| window.room);
        of_data >= data && of_metadata >= metadata + self.table.lag_pages
    }

    /// A window gets one more block, without a checkpoint.
    #[cold]
    pub(super) fn extend(&mut self, which: Which, at: SimTime) -> NamespaceResult<()> {
        let Some(block) = self.blocks.take_free(&self.device) else {
            return Err(self.stop("no erased block is left"));
        };
        self.counts.flash.window_extensions += 1;
        self.blocks.windows[which as usize].add(block, 0, self.blocks.pages);
        let after = self.ordered(at)?;
        self.persist(&[block], after, at)
    }

    /// The index on the flash says everything; the windows begin anew. With `whole`, so does the system log.
    pub(super) fn checkpoint(&mut self, whole: bool, at: SimTime) -> NamespaceResult<()> {
        self.counts.flash.window_extensions += 1;
        while let Some(id) = self.table.removals.first().copied() {
            self.write_object(id, false, at)?;
            self.table.removals.remove(&id);
        }
        while let Some(id) = self.table.replacing.first_key_value().map(|(_, by)| *by) {
            self.write_object(id, false, at)?;
        }
        while let Some(id) = self.table.lagging.first_key_value().map(|(id, _)| *id) {
            self.write_object(id, true, at)?;
        }
        let mut changed = Vec::new();
        let mut leaving: Vec<u32> = Vec::new();
        for which in [Which::Data, Which::Metadata] {
            leaving.append(&mut self.blocks.windows[which as usize].full);
            let wanted = self.config.window as usize;
            while self.blocks.windows[which as usize].len() < wanted && self.blocks.free_count > 1 {
                let Some(block) = self.blocks.take_free(&self.device) else { break };
                self.blocks.windows[which as usize].add(block, 0, self.blocks.pages);
                changed.push(block);
            }
        }
        leaving.sort_unstable();
        changed.extend(&leaving);
        self.set_most_erases();
        // What the log calls free is erased.
        let after = self.ordered(at)?;
        let after = self.device.join(after, self.erased);
        self.counts.flash.writes += 1;
        let after = self.write_log(&changed, &leaving, whole, after, at)?;
        self.system.root.tid = self.tid;
        self.system.root.windows.clear();
        for (which, window) in (0..).zip(&self.blocks.windows) {
            let known = window.open.iter().map(|open| [open.block, open.next, which]);
            self.system.root.windows.extend(known);
        }
        self.table.deleted.clear();
        let entering = &changed[..changed.len() - leaving.len()];
        self.persist(entering, after, at)?;
        for block in leaving {
            self.blocks.seal(block);
        }
        Ok(())
    }

    /// Blocks with more erases than the mean and some are spared.
    fn set_most_erases(&mut self) {
        let mean = self.blocks.erases / u64::from(self.geometry.blocks());
        self.blocks.most_erases = u32::try_from(mean).unwrap_or(u32::MAX).saturating_add(self.config.wear);
    }

    /// Appends what has changed to the system log: records of the index and entries of blocks, or all of
    /// them. Completes when that is on the flash.
    fn write_log(
        &mut self,
        changed: &[u32],
        leaving: &[u32],
        whole: bool,
        after: Token,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let page_bytes = self.sizes.page_bytes;
        let pages_of = |records: u64, record: u32| {
            records.div_ceil(u64::from((page_bytes - SYSTEM_HEAD) / record)) as u32
        };
        let all = pages_of(self.table.count(), INDEX_RECORD)
            + pages_of(self.blocks.infos.len() as u64, BLOCK_RECORD);
        let more = pages_of(self.table.moved.len() as u64, INDEX_RECORD)
            + pages_of(changed.len() as u64, BLOCK_RECORD)
            + 1;
        let is_whole = whole || self.system.pages + more > 2 * all + self.blocks.pages;
        self.reserve_log(if is_whole { all } else { more }, at)?;
        let begin = self.system.end;
        let old_pages = self.system.pages;
        let mut records = Vec::new();
        let ids: Vec<u64> = if is_whole {
            self.table.entries().map(|(id, _)| id).collect()
        } else {
            self.table.moved.iter().copied().collect()
        };
        for id in ids {
            let entry = self.table.entry(id);
            let (place, cost) = entry.map_or((NOWHERE, 0), |entry| (entry.place, entry.flash_cost));
            // An object that was never flushed is not there.
            if !is_whole || place != NOWHERE {
                IndexRecord { object: id, place, cost }.encode(&mut records);
            }
        }
        self.table.moved.clear();
        let mut done = after;
        for data in system_pages(&records, INDEX_RECORD, page_bytes) {
            let token = self.log_page(PageKind::Index, &data, after, at)?;
            done = self.device.join(done, token);
        }
        records.clear();
        let new = std::mem::take(&mut self.system.new);
        let every: Vec<u32> = if is_whole {
            (0..self.blocks.infos.len() as u32).collect()
        } else {
            changed.iter().copied().chain(new).collect()
        };
        for block in every {
            let entry = self.entry_of(block, leaving.binary_search(&block).is_ok());
            self.blocks.persisted[block as usize] = entry.encode();
            records.extend(block.to_le_bytes());
            records.extend(entry.encode().to_le_bytes());
        }
        for data in system_pages(&records, BLOCK_RECORD, page_bytes) {
            let token = self.log_page(PageKind::Blocks, &data, after, at)?;
            done = self.device.join(done, token);
        }
        if is_whole {
            // The log begins here; blocks before are given up.
            let gone = begin / self.blocks.pages;
            self.system.dropped.extend(self.system.blocks.drain(..gone as usize));
            self.system.begin = begin - gone * self.blocks.pages;
            self.system.end -= gone * self.blocks.pages;
            self.system.pages -= old_pages;
        }
        Ok(done)
    }

    /// The entry of a block; one that leaves a window is used from now on.
    fn entry_of(&self, block: u32, leaves: bool) -> BlockEntry {
        let entry = self.blocks.entry(block, self.device.erase_count(BlockId(block)));
        if leaves {
            let invalid = self.blocks.pages - self.blocks.infos[block as usize].valid;
            return BlockEntry { state: BlockUse::Used, invalid, ..entry };
        }
        entry
    }

    /// The system log has room for so many pages and two failures, in blocks that a root has.
    fn reserve_log(&mut self, pages: u32, at: SimTime) -> NamespaceResult<()> {
        let wanted = pages + 2 * self.blocks.pages;
        if self.system.room(self.blocks.pages) >= wanted {
            return Ok(());
        }
        let mut new = Vec::new();
        while (self.system.blocks.len() as u32 * self.blocks.pages).saturating_sub(self.system.end) < wanted {
            let Some(block) = self.blocks.take_free(&self.device) else {
                return Err(self.stop("no erased block is left for the index"));
            };
            self.system.blocks.push(block);
            self.system.new.push(block);
            new.push(block);
        }
        let after = self.ordered(at)?;
        self.persist(&new, after, at)
    }

    /// Programs a page of the system log.
    fn log_page(&mut self, kind: PageKind, data: &[u8], after: Token, at: SimTime) -> NamespaceResult<Token> {
        loop {
            let (index, page) = (self.system.end / self.blocks.pages, self.system.end % self.blocks.pages);
            let Some(block) = self.system.blocks.get(index as usize).copied() else {
                return Err(self.stop("programs of the index fail"));
            };
            let after = self.device.join(after, self.blocks.after[block as usize]);
            let oob = ObjectOob {
                kind,
                offset: self.system.next,
                len: data.len() as u32,
                version: self.system.root.generation,
                ..ObjectOob::default()
            };
            let data = self.sizes.stores_data.then_some(data);
            let issue = Issue { after, ..Issue::new(at, Cause::Meta) };
            let ppn = Ppn(block * self.blocks.pages + page);
            match self.device.program(ppn, oob, self.sizes.page_bytes, data, issue) {
                Ok(token) => {
                    self.system.end += 1;
                    self.system.next += 1;
                    self.system.pages += 1;
                    return Ok(token);
                }
                Err(FlashError::ProgramFailed { .. }) => {
                    self.system.end = (index + 1) * self.blocks.pages;
                    self.blocks.infos[block as usize].state = BlockState::Failed;
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    /// Writes a root with the windows and the log as they are; blocks that are new in them can be programmed
    /// once it is durable.
    pub(super) fn persist(&mut self, new: &[u32], after: Token, at: SimTime) -> NamespaceResult<()> {
        let mut root = std::mem::take(&mut self.system.root);
        root.generation += 1;
        root.shape = shape(&self.geometry);
        root.good = self.config.good;
        root.log = [self.system.next - self.system.pages, self.system.begin, self.system.pages];
        root.blocks.clone_from(&self.system.blocks);
        for (which, window) in (0..).zip(&self.blocks.windows) {
            for block in window.blocks() {
                if !root.windows.iter().any(|known| known[0] == block) {
                    root.windows.push([block, 0, which]);
                }
            }
        }
        let record = root.encode();
        self.system.root = root;
        let after = self.ordered_after(after, at)?;
        self.counts.flash.writes += 2;
        let first = self.write_copy(0, &record, after, at)?;
        let between = self.ordered_after(first, at)?;
        let second = self.write_copy(1, &record, between, at)?;
        self.system.committed = self.ordered_after(second, at)?;
        self.written = self.device.join(self.written, self.system.committed);
        let after = if self.sabotage == Sabotage::EarlyProgram { Token::NONE } else { self.system.committed };
        for block in new {
            let before = self.blocks.after[*block as usize];
            self.blocks.after[*block as usize] = self.device.join(before, after);
        }
        for block in std::mem::take(&mut self.system.dropped) {
            self.erase(block, Cause::Meta, self.system.committed, at)?;
        }
        Ok(())
    }

    fn ordered_after(&mut self, token: Token, at: SimTime) -> NamespaceResult<Token> {
        let ordered = self.ordered(at)?;
        Ok(self.device.join(ordered, token))
    }

    /// Writes one of the two copies of the root. The other one stays what it is meanwhile.
    fn write_copy(
        &mut self,
        copy: usize,
        record: &[u8],
        after: Token,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let page_bytes = self.sizes.page_bytes as usize;
        let parts = record.len().div_ceil(page_bytes) as u32;
        let mut after = after;
        'anew: loop {
            let (block, next) = self.system.copies[copy];
            if next + parts > self.blocks.pages {
                let issue = Issue { after, ..Issue::new(at, Cause::Meta) };
                match self.device.erase(BlockId(block), issue) {
                    Ok(token) => {
                        self.blocks.erases += 1;
                        after = self.device.join(after, token);
                        self.system.copies[copy] = (block, 0);
                    }
                    Err(
                        FlashError::EraseFailed { .. }
                        | FlashError::WornOut { .. }
                        | FlashError::BadBlock { .. },
                    ) => self.replace_root(copy, at)?,
                    Err(error) => return Err(self.failed(error)),
                }
                continue;
            }
            let mut done = after;
            for part in 0..parts {
                let at_byte = part as usize * page_bytes;
                let bytes = &record[at_byte..record.len().min(at_byte + page_bytes)];
                let mut data = bytes.to_vec();
                data.resize(page_bytes, 0);
                let oob = ObjectOob {
                    kind: PageKind::Root,
                    tcnt: if part + 1 == parts { parts } else { 0 },
                    offset: part,
                    len: bytes.len() as u32,
                    tid: self.system.root.generation,
                    ..ObjectOob::default()
                };
                let page = Ppn(block * self.blocks.pages + next + part);
                let data = self.sizes.stores_data.then_some(data.as_slice());
                let issue = Issue { after, ..Issue::new(at, Cause::Meta) };
                match self.device.program(page, oob, self.sizes.page_bytes, data, issue) {
                    Ok(token) => done = self.device.join(done, token),
                    Err(FlashError::ProgramFailed { .. }) => {
                        self.replace_root(copy, at)?;
                        continue 'anew;
                    }
                    Err(error) => return Err(self.failed(error)),
                }
            }
            self.system.copies[copy] = (block, next + parts);
            return Ok(done);
        }
    }

    /// A block for roots has failed: another one takes its place.
    #[cold]
    fn replace_root(&mut self, copy: usize, at: SimTime) -> NamespaceResult<()> {
        let failed = self.system.copies[copy].0;
        self.blocks.infos[failed as usize].state = BlockState::Failed;
        let after = self.ordered_after(self.system.committed, at)?;
        self.erase(failed, Cause::Meta, after, at)?;
        let other = self.system.copies[1 - copy].0;
        let is_spare = |block: &u32| *block != other && !self.device.is_bad(BlockId(*block));
        let Some(block) = (0..ROOT_BLOCKS).find(is_spare) else {
            return Err(self.stop("no block for a root is left"));
        };
        // Erased before it is used, whatever it holds.
        self.system.copies[copy] =
            (block, if self.device.write_pointer(BlockId(block)) == 0 { 0 } else { self.blocks.pages });
        Ok(())
    }
}

/// What a root says of the device.
pub(super) const fn shape(geometry: &Geometry) -> [u32; 3] {
    [geometry.page_bytes, geometry.pages_per_block, geometry.blocks()]
}
