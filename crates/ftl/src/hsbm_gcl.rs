//! `HSBM_GCL`: page-mapped log superblocks over a superblock map, collection of superblocks without live
//! pages [thesis 3.2.4].
//!
//! Every write goes to the next page of its superblock's log. A log is merged with the data superblock when
//! the table is full and another superblock needs a log, or lazily when a full log is written again. A log in
//! which every page is at its own place becomes the data superblock without a copy (switch); any other is
//! copied with what it does not hold into a new one (full).
//!
//! Invariants: the data superblock keeps its pages live until the merge, though the log may shadow them; an
//! open log and a mapped data superblock each have a live page.

use crate::error::{BuildResult, FtlBuildError};
use crate::parts::adopt::{LOG, adopt, next_of_log};
use crate::parts::background::{BACKGROUND_GC, BACKGROUND_WATERMARK};
use crate::parts::base::{Base, RMW, UNMAPPED_READ};
use crate::parts::layer::{Layer, Strategy};
use crate::parts::logs::{Log, LogTable};
use crate::parts::order::{GC_ORDER, Order, UNSAFE_ORDER};
use crate::parts::superblocks::{BN, MODEL_ENTRY_BYTES, NONE, PN, RESERVE, Superblocks};
use nandscape_core::journal::newest;
use nandscape_core::{
    Cause, Cost, Extent, FlashDevice, FlashError, FtlError, FtlResult, Info, Issue, Lpn, Params, Ppn,
    SimTime, Token, addr::PageSpan, keys, state,
};

keys! { PARAMS:
    PN; BN;
    LOGS: u32 = int(1, 1 << 16) or "8", "log superblocks";
    LOG_VICTIM: String = choice(&["fifo", "lru"]) or "fifo",
        "entry merged when the log table is full: the oldest, or the one not written for longest";
    IDENTITY: String = choice(&["strict", "covering"]) or "strict",
        "a log becomes the data superblock if all its pages are in place (strict), or if those it has are \
         and nothing is live outside it (covering)";
    GC_ORDER; UNSAFE_ORDER; RESERVE; BACKGROUND_GC; BACKGROUND_WATERMARK;
    BACKGROUND_LOGS: Option<u32> = int(0, 1 << 16),
        "log superblocks that background GC keeps free, by merging the next victims; full logs are merged in \
         any case; default: an eighth of logs";
    RMW; UNMAPPED_READ;
}

/// What the registry says.
pub static INFO: Info = Info {
    name: "hsbm-gcl",
    summary: "log superblocks over a superblock map, switch and full merges",
    source: "[thesis 3.2.4] (HSBM_GCL)",
    params: PARAMS,
};

/// Cost model of the thesis: bytes of a page's entry in a log's map, of a log-table entry without its map.
const MODEL_PAGE_BYTES: u64 = 2;
const MODEL_LOG_BYTES: u64 = 16;

const FULL: &str = "no superblock for log or merge";

/// The strategy over a device.
struct HsbmGcl<D> {
    base: Base<D>,
    pool: Superblocks,
    /// Logical superblock to data superblock.
    map: Vec<u32>,
    logs: LogTable,
    slots: u32,
    is_lru: bool,
    is_strict: bool,
    /// Slots of the log table that background collection keeps free.
    background_logs: u32,
}

state!(impl [D: FlashDevice] HsbmGcl<D> {
    saved: base, pool, logs;
    tables: map;
    fixed: slots, is_lru, is_strict, background_logs;
});

/// Builds the strategy for the registry.
pub fn build<D: FlashDevice + Send + 'static>(device: D, params: &Params) -> BuildResult {
    Ok(Box::new(Layer(HsbmGcl::new(device, params)?)))
}

impl<D: FlashDevice> HsbmGcl<D> {
    /// The strategy over a device with any program order: erased, or with data that its journal knows.
    fn new(device: D, params: &Params) -> Result<Self, FtlBuildError> {
        let mut base = Base::new(device, &INFO, params, 1)?;
        let slots = params.get(LOGS);
        let background_logs = params.get(BACKGROUND_LOGS).unwrap_or(slots / 8);
        if background_logs > slots {
            return Err(params.error(BACKGROUND_LOGS, format!("up to {slots}, the value of logs")).into());
        }
        let mut pool = Superblocks::new(&mut base, &INFO, params, slots)?;
        // A superblock has at most one log, so more slots than superblocks cannot be told from as many.
        let used_slots = slots.min(pool.logical.max(1));
        let places = adopt(&mut pool, &mut base, &INFO, used_slots)?;
        let mut logs = LogTable::new(used_slots, pool.logical, pool.pages);
        for (logical, place) in places.iter().enumerate().filter(|(_, place)| place.log != NONE) {
            let slot = logs.reopen(logical as u32, place.log, next_of_log(&pool, &base, place.log));
            let first = logical as u32 * pool.pages;
            for index in 0..pool.pages {
                let found = newest(&base.device, Lpn(first + index)).map(|page| pool.layout.locate(page));
                if let Some((superblock, page)) = found.filter(|(superblock, _)| *superblock == place.log) {
                    debug_assert!(pool.is_live(superblock, page), "page {page} of log {superblock}");
                    logs.set(slot, index, page);
                }
            }
        }
        Ok(Self {
            map: places.iter().map(|place| place.data).collect(),
            logs,
            slots,
            is_lru: params.get(LOG_VICTIM) == "lru",
            is_strict: params.get(IDENTITY) == "strict",
            background_logs,
            pool,
            base,
        })
    }

    /// Superblock and page in it that hold the newest version of a page.
    #[inline]
    fn place(&self, logical: u32, index: u32) -> Option<(u32, u32)> {
        if let Some(slot) = self.logs.find(logical)
            && let Some(page) = self.logs.page(slot, index)
        {
            return Some((self.logs.get(slot).superblock, page));
        }
        let data = self.map[logical as usize];
        (data != NONE && self.pool.is_live(data, index)).then_some((data, index))
    }

    /// The log entry is of no more use for writing: a program failed in it.
    fn end_log(&mut self, slot: u32, page: Ppn) {
        self.pool.note_failure(&mut self.base, page);
        if self.pool.live_pages(self.logs.get(slot).superblock) == 0 {
            self.pool.drop_all(self.logs.get(slot).superblock);
            self.logs.close(slot);
        } else {
            self.logs.end(slot);
        }
    }

    /// Writes a page; tries elsewhere what fails to be programmed, where copies come first.
    fn write_page(&mut self, span: &PageSpan, data: Option<&[u8]>, at: SimTime) -> FtlResult<Token> {
        loop {
            match self.try_page(span, data, at) {
                Err(FtlError::Flash(FlashError::ProgramFailed { page }))
                    if self.base.order == Order::CopyFirst =>
                {
                    let (logical, _) = self.pool.split(span.lpn);
                    match self.logs.find(logical) {
                        Some(slot) if self.pool.layout.locate(page).0 == self.logs.get(slot).superblock => {
                            self.end_log(slot, page);
                        }
                        // In a merge target, which was dropped.
                        _ => self.pool.note_failure(&mut self.base, page),
                    }
                }
                result => {
                    if result.is_ok() {
                        self.pool.release_abandoned();
                    }
                    return result;
                }
            }
        }
    }

    fn try_page(&mut self, span: &PageSpan, data: Option<&[u8]>, at: SimTime) -> FtlResult<Token> {
        let (logical, index) = self.pool.split(span.lpn);
        let (slot, prepared) = self.log_with_room(logical, at)?;
        let Log { superblock, next, .. } = self.logs.get(slot);
        assert!(next < self.pool.pages, "log {superblock} of {logical} is full: {next}");
        let old = self.find(span.lpn);
        let target = self.pool.target(superblock, next, LOG);
        let written = self.base.write_span(old, target, span, data, at);
        let has_failed = matches!(written, Err(FtlError::Flash(FlashError::ProgramFailed { .. })));
        if written.is_err() && !has_failed && self.pool.live_pages(superblock) == 0 {
            self.logs.close(slot);
            self.pool.drop_all(superblock);
        }
        let written = written?;
        self.pool.set_live(superblock, next);
        if let Some(stale) = self.logs.append(slot, index) {
            self.pool.set_dead(superblock, stale);
        }
        if self.is_lru {
            self.logs.touch(slot);
        }
        if old.is_none() {
            self.base.stats.live_pages += 1;
        }
        self.base.stats.map_updates += 1;
        self.base.stats.map_update_bytes += MODEL_PAGE_BYTES;
        Ok(self.base.device.join(prepared, written))
    }

    /// The log of a superblock with a free page: merges and opens as needed.
    fn log_with_room(&mut self, logical: u32, at: SimTime) -> FtlResult<(u32, Token)> {
        let mut done = Token::NONE;
        if let Some(slot) = self.logs.find(logical) {
            if self.logs.get(slot).next < self.pool.pages {
                return Ok((slot, done));
            }
            done = self.merge(slot, at)?;
        } else if self.logs.is_full() {
            let victim = self.logs.victim().expect("a full table has an oldest entry");
            done = self.merge(victim, at)?;
            self.base.stats.merges_evicted += 1;
        }
        assert!(!self.logs.is_full(), "no slot is free for a log of superblock {logical}");
        let (superblock, collected) = self.allocate(at)?;
        self.base.stats.log_table_updates += 1;
        let slot = self.logs.open(logical, superblock);
        Ok((slot, self.base.device.join(done, collected)))
    }

    fn allocate(&mut self, at: SimTime) -> FtlResult<(u32, Token)> {
        let (superblock, collected) = self.pool.allocate(&mut self.base, at)?;
        match superblock {
            Some(superblock) => Ok((superblock, collected)),
            None => Err(self.base.no_room(FULL, 1, self.pool.free_pages())),
        }
    }

    /// The log that idle time is best used to merge: one that is full, which no write goes to any more, or if
    /// too few slots are free the next victim.
    fn background_victim(&self) -> Option<u32> {
        let is_full = |slot: &u32| self.logs.get(*slot).next == self.pool.pages;
        let full = self.logs.open_slots().find(is_full);
        full.or_else(|| self.logs.victim().filter(|_| self.logs.free_slots() < self.background_logs))
    }

    /// Merges a log while the host is idle; tries again elsewhere what fails to be programmed, as
    /// [`Self::write_page`] does.
    fn merge_in_background(&mut self, slot: u32, at: SimTime) -> FtlResult<Token> {
        let (is_full, free) = (self.logs.get(slot).next == self.pool.pages, self.logs.free_slots());
        let merged = loop {
            match self.merge(slot, at) {
                Err(FtlError::Flash(FlashError::ProgramFailed { page }))
                    if self.base.order == Order::CopyFirst =>
                {
                    self.pool.note_failure(&mut self.base, page);
                }
                merged => break merged?,
            }
        };
        assert_eq!(self.logs.free_slots(), free + 1, "free entries after the log of slot {slot} was merged");
        self.pool.release_abandoned();
        self.base.stats.merges_evicted += u64::from(!is_full);
        Ok(merged)
    }

    fn merge(&mut self, slot: u32, at: SimTime) -> FtlResult<Token> {
        let log = self.logs.get(slot);
        let data = self.map[log.logical as usize];
        let (target, done) = if self.can_switch(slot, data) {
            self.base.stats.merges_switch += 1;
            (log.superblock, Token::NONE)
        } else {
            let (target, collected) = self.allocate(at)?;
            let copied = self.copy_merged(slot, target, at);
            self.pool.keep_or_drop(target, &copied);
            let copied = copied?;
            self.pool.drop_all(log.superblock);
            self.base.stats.merges_full += 1;
            (target, self.base.device.join(collected, copied))
        };
        assert_ne!(target, data, "what {log:?} is merged into");
        if data != NONE {
            self.pool.drop_all(data);
        }
        self.logs.close(slot);
        self.map[log.logical as usize] = target;
        self.base.stats.map_updates += 1;
        self.base.stats.map_update_bytes += MODEL_ENTRY_BYTES;
        Ok(done)
    }

    /// Whether the log can take the data superblock's place as it is.
    fn can_switch(&self, slot: u32, data: u32) -> bool {
        if self.pool.has_failed(self.logs.get(slot).superblock) {
            return false;
        }
        (0..self.pool.pages).all(|index| match self.logs.page(slot, index) {
            Some(page) => page == index,
            None => !self.is_strict && (data == NONE || !self.pool.is_live(data, index)),
        })
    }

    /// Copies the newest version of every page of a superblock to its own place in `target`.
    fn copy_merged(&mut self, slot: u32, target: u32, at: SimTime) -> FtlResult<Token> {
        let logical = self.logs.get(slot).logical;
        let mut done = Token::NONE;
        for index in 0..self.pool.pages {
            let Some((superblock, page)) = self.place(logical, index) else { continue };
            let lpn = Lpn(logical * self.pool.pages + index);
            let (from, to) = (self.pool.page(superblock, page), self.pool.target(target, index, 0));
            let copied = self.base.copy(from, to, lpn, Issue::new(at, Cause::Merge))?;
            self.pool.set_live(target, index);
            done = self.base.device.join(done, copied);
        }
        Ok(done)
    }
}

impl<D: FlashDevice> Strategy for HsbmGcl<D> {
    type Device = D;

    fn base(&self) -> &Base<D> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<D> {
        &mut self.base
    }

    fn forget_tokens(&mut self) {
        self.pool.open_gates();
    }

    fn find(&self, lpn: Lpn) -> Option<Ppn> {
        let (logical, index) = self.pool.split(lpn);
        let place = self.place(logical, index).map(|(superblock, page)| self.pool.page(superblock, page));
        place.or_else(|| self.pool.stranded(lpn))
    }

    fn write_pages(&mut self, extent: Extent, data: Option<&[u8]>, at: SimTime) -> FtlResult<Token> {
        let mut done = Token::NONE;
        for span in self.base.spans(extent) {
            let written = self.write_page(&span, data, at)?;
            done = self.base.device.join(done, written);
        }
        Ok(done)
    }

    fn unmap(&mut self, lpn: Lpn) {
        let (logical, index) = self.pool.split(lpn);
        let mut was_live = false;
        if let Some(slot) = self.logs.find(logical)
            && let Some(page) = self.logs.forget(slot, index)
        {
            was_live = true;
            let superblock = self.logs.get(slot).superblock;
            self.pool.set_dead(superblock, page);
            if self.pool.live_pages(superblock) == 0 {
                self.logs.close(slot);
            }
        }
        let data = self.map[logical as usize];
        if data != NONE && self.pool.is_live(data, index) {
            was_live = true;
            self.pool.set_dead(data, index);
            if self.pool.live_pages(data) == 0 {
                self.map[logical as usize] = NONE;
            }
        }
        let live = &mut self.base.stats.live_pages;
        assert!(*live >= u64::from(was_live), "{lpn:?} was live, of {live}");
        *live -= u64::from(was_live);
    }

    fn step_in_background(&mut self, wanted_pages: u64, at: SimTime) -> FtlResult<Option<Token>> {
        if let Some(erased) = self.pool.collect_in_background(&mut self.base, wanted_pages, at)? {
            return Ok(Some(erased));
        }
        // Without an erased superblock beyond what stays erased a merge might find no room.
        match self.background_victim().filter(|_| self.pool.takeable(&self.base) > 0) {
            Some(slot) => self.merge_in_background(slot, at).map(Some),
            None => Ok(None),
        }
    }

    fn costs(&self) -> Cost {
        let log_bytes = MODEL_LOG_BYTES + MODEL_PAGE_BYTES * u64::from(self.pool.pages);
        // The logs and one merge target never run out of live pages all at once.
        let reserve = (u64::from(self.slots) + 1) * u64::from(self.pool.layout.blocks_per_superblock())
            + self.pool.reserve_blocks(&self.base);
        Cost {
            map_table_bytes: self.map.len() as u64 * MODEL_ENTRY_BYTES + u64::from(self.slots) * log_bytes,
            dram_bytes: 4 * self.map.len() as u64 + self.pool.dram_bytes() + self.logs.dram_bytes(),
            ..self.base.cost(reserve.min(self.base.good_blocks))
        }
    }

    fn check(&self) {
        self.pool.check(&self.base);
        self.logs.check();
        let logs: Vec<u32> = self.logs.open_slots().map(|slot| self.logs.get(slot).superblock).collect();
        self.pool.check_mapped(self.map.iter().chain(&logs));
        for slot in self.logs.open_slots() {
            let superblock = self.logs.get(slot).superblock;
            let pages = (0..self.pool.pages).filter_map(|index| self.logs.page(slot, index));
            let mut mapped = 0;
            for page in pages {
                assert!(
                    self.pool.is_live(superblock, page),
                    "page {page} of log {superblock} is mapped and dead"
                );
                mapped += 1;
            }
            assert_eq!(mapped, self.pool.live_pages(superblock), "mapped pages of log {superblock}");
        }
        let pages = (0..self.base.logical_pages).filter(|lpn| self.find(Lpn(*lpn as u32)).is_some());
        assert_eq!(pages.count() as u64, self.base.stats.live_pages, "live pages");
    }
}
