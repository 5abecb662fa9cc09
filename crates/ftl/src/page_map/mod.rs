//! `page-map`: the conventional SSD. One map entry for each page, an append-only log with over-provisioning,
//! garbage collection.
//!
//! Invariants:
//! * a page is valid exactly when the map points to it; `valid` of a block is the number of its valid pages;
//! * victims are sealed blocks only; an open block becomes one when its last page is programmed;
//! * after each host write the domain can still program more pages than a block holds, so GC always has room
//!   for a victim;
//! * GC runs while the *pages* that can be programmed, in free and open blocks together, are fewer than those
//!   of `open + gc_low` blocks (less half a block, the mean error of counting in whole blocks). Programmed
//!   pages are therefore constant in steady state however many blocks happen to be open, and
//!   `Cost::reserve_blocks = open + gc_low` gives the effective spare factor of the closed forms exactly.
//!
//! A page here is a mapping unit (`ftl.unit`). Where it is smaller than a flash page, the device below
//! gathers units into pages; the layer only says which reads one array read can serve.
//!
//! Memory: 4 B a logical page for the map and one bit a physical page, a bit a sector where pages have
//! several, and some 30 B a block. The inverse map is the medium's OOB, read with each page that is moved.
#![expect(clippy::inline_always, reason = "measured: the path of every page, a third fewer instructions")]

mod adopt;
mod blocks;
mod build;
mod candidates;
mod check;
mod collect;
mod config;
mod domain;
mod erases;
mod groups;
mod logs;
mod map;
mod map_memory;
mod marks;
mod paged;
mod partial;
mod pieces;
mod pool;
mod reports;
mod slc;
mod split;
mod streams;

pub use blocks::{Blocks, ValidPages};
pub use config::{GC_ISOLATION, INFO, SLC_BLOCKS, UNIT, open_by_rule, reclaim_groups, streams, unit_bytes};
pub use map::{Ahead, Map};

use crate::error::{BuildResult, FtlBuildError};
use crate::parts::base::LOST;
use crate::placement::{Placement, Stripe};
use crate::victim::BlockState;
use config::Config;
use domain::Domain;
use groups::Groups;
use map::Sectors;
use nandscape_core::addr::PageSpan;
use nandscape_core::journal::{drop_pages, is_grown_bad};
use nandscape_core::{
    Barrier, BlockId, Cause, Divider, Extent, FlashDevice, FlashError, FlashState, Ftl, FtlError, FtlResult,
    FtlStats, Hint, Issue, Lpn, Oob, Params, Ppn, SimTime, Token, state,
};
use paged::PagedMap;
use slc::Slc;
use streams::HostBytes;

/// The page-mapped translation layer over a device.
#[derive(Debug)]
pub struct PageMap<D> {
    device: D,
    map: Map,
    sectors: Sectors,
    blocks: Blocks,
    domains: Vec<Domain>,
    placement: Placement,
    page_bytes: u32,
    /// log2 of the page's bytes; 64 if they are no power of two.
    page_shift: u32,
    pages_per_block: u32,
    capacity_bytes: u64,
    /// Pages programmed so far: sequence number of the next and clock of the policies.
    seq: u64,
    stats: FtlStats,
    rules: Rules,
    /// Blocks that take host writes first, if there are any.
    slc: Option<Box<Slc>>,
    /// What each reclaim group holds, if there are several.
    groups: Option<Box<Groups>>,
    /// What of the map is in memory, unless all of it is.
    paged: Option<Box<PagedMap>>,
    trouble: Trouble,
    host_bytes: HostBytes,
    /// Where the pages of the present victim went; at most a block of them.
    moves: Vec<(Lpn, Ppn)>,
    /// One page; empty where the device stores no data.
    buffer: Vec<u8>,
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "options, each its own")]
struct Rules {
    levels_wear: bool,
    background_gc: bool,
    /// Pages of a victim that are moved for each page written; 0 for all at once.
    gc_step: u32,
    /// Collection is put off ([`Deferral::defer_collection`]).
    deferred: bool,
    rmw: bool,
    /// Striping for the static place of unmapped pages, if their reads cost anything.
    unmapped_stripe: Option<Stripe>,
    /// Divides by the pages that lie in one flash page.
    units_per_page: Divider,
}

#[derive(Debug)]
struct Trouble {
    /// Something is wrong: see [`PageMap::attend`].
    attention: bool,
    /// Blocks have failed since the device was new.
    has_lost_blocks: bool,
    /// Why nothing is written any more.
    stopped: Option<&'static str>,
    /// Blocks that failed a program and still hold data.
    failed: Vec<(usize, u32)>,
}

state!(impl [D: FlashDevice] PageMap<D> {
    saved: device, map, sectors, blocks, seq, stats, rules, trouble, host_bytes;
    tables: domains;
    parts: slc, groups, paged;
    fixed: placement, page_bytes, page_shift, pages_per_block, capacity_bytes, moves, buffer;
});

state!(impl [] Rules {
    saved: deferred;
    fixed: levels_wear, background_gc, gc_step, rmw, unmapped_stripe, units_per_page;
});

state!(impl [] Trouble { saved: attention, has_lost_blocks, stopped, failed; });

impl<D: FlashDevice> PageMap<D> {
    /// A layer over an erased device, or over one with a journal that holds what an earlier layer wrote.
    ///
    /// Errors name the key: a capacity that leaves too few spare blocks for the open blocks and the
    /// watermark, watermarks out of order, `rmw = false` on a device that stores data.
    pub fn new(mut device: D, params: &Params) -> Result<Self, FtlBuildError> {
        let geometry = *device.geometry();
        let slc = config::slc(params, &mut device)?;
        // Blocks that failed since the device was new count, so that its capacity stays.
        let is_slc = |block| slc.is_some_and(|slc| slc.contains(block));
        let counts = |block| (!device.is_bad(block) || is_grown_bad(&device, block)) && !is_slc(block);
        let good_blocks = (0..geometry.blocks()).filter(|block| counts(BlockId(*block))).count() as u64;
        let config = Config::new(params, &geometry, good_blocks)?;
        let stores_data = device.capabilities().stores_data;
        if stores_data && !config.rmw {
            return Err(params.error(config::RMW, "true on a device that stores data").into());
        }
        let domains = build::domains(&device, params, &config, slc.as_ref())?;
        let levels_wear = domains.iter().any(|domain| domain.wear.migrates());
        let mut this = Self {
            map: Map::new(config.mapped_pages()),
            sectors: Sectors::new(config.mapped_pages(), geometry.sectors_per_page()),
            blocks: Blocks::new(geometry.blocks(), geometry.pages_per_block),
            host_bytes: HostBytes::new(config.host_logs()),
            groups: (config.groups > 1).then(|| Box::new(Groups::new(&config, &domains))),
            paged: config.map.as_ref().map(|map| {
                let log = config.persistent.is_empty().then_some(logs::MAP);
                Box::new(PagedMap::new(config.logical_pages, map, log))
            }),
            domains,
            placement: config.placement,
            page_bytes: geometry.page_bytes,
            page_shift: if geometry.page_bytes.is_power_of_two() {
                geometry.page_bytes.trailing_zeros()
            } else {
                64
            },
            pages_per_block: geometry.pages_per_block,
            capacity_bytes: u64::from(config.logical_pages) * u64::from(geometry.page_bytes),
            seq: 0,
            stats: FtlStats::default(),
            rules: Rules {
                levels_wear,
                background_gc: config.background_gc,
                gc_step: config.gc_step,
                deferred: false,
                rmw: config.rmw,
                unmapped_stripe: config.unmapped_stripe,
                units_per_page: Divider::new(device.capabilities().units_per_page),
            },
            trouble: Trouble {
                attention: false,
                has_lost_blocks: (0..geometry.blocks()).any(|block| is_grown_bad(&device, BlockId(block))),
                stopped: None,
                failed: Vec::new(),
            },
            moves: Vec::with_capacity(geometry.pages_per_block as usize),
            buffer: if stores_data { vec![0; geometry.page_bytes as usize] } else { Vec::new() },
            slc: slc.map(|slc| Box::new(Slc::new(&device, slc, params.get(config::SLC_FOLD_AFTER)))),
            device,
        };
        let mut is_erased = true;
        for block in 0..geometry.blocks() {
            if this.device.is_bad(BlockId(block)) {
                this.blocks.infos[block as usize].state = BlockState::Bad;
            } else {
                is_erased &= this.device.write_pointer(BlockId(block)) == 0;
                if this.is_slc(block) {
                    this.blocks.infos[block as usize].state = BlockState::Cache;
                }
            }
        }
        if !is_erased {
            this.adopt(params)?;
        }
        Ok(this)
    }

    fn check_range(&self, extent: Extent) -> FtlResult<()> {
        if extent.end() > self.capacity_bytes {
            return Err(FtlError::OutOfRange { extent, capacity_bytes: self.capacity_bytes });
        }
        Ok(())
    }

    /// The most common request, one whole page, without a division.
    #[inline]
    fn single_page(&self, extent: Extent) -> Option<PageSpan> {
        let lpn = extent.offset.checked_shr(self.page_shift)?;
        let is_single = extent.len == u64::from(self.page_bytes) && lpn << self.page_shift == extent.offset;
        is_single.then_some(PageSpan { lpn: Lpn(lpn as u32), start: 0, len: self.page_bytes, at: 0 })
    }

    #[inline]
    fn write_span(
        &mut self,
        span: PageSpan,
        data: Option<&[u8]>,
        log: usize,
        needed: u64,
        at: SimTime,
    ) -> FtlResult<Token> {
        let (domain, log) = match &self.groups {
            None => (self.placement.domain(span.lpn), log),
            Some(_) => self.place_in_group(span, log),
        };
        if self.domains[domain].counts.free_pages < self.domains[domain].marks.trigger_pages {
            self.make_room(domain, log, needed, at)?;
        }
        if !span.is_whole(self.page_bytes) {
            return self.write_partial(domain, span, log, data, at);
        }
        let issue = Issue::new(at, Cause::Host);
        // Likely a cache miss: asked for now, the entry arrives while the program is submitted.
        let old = self.map.get(span.lpn);
        let (page, done) = match self.append_host(domain, log, span.lpn, self.page_bytes, data, issue) {
            Ok(written) => written,
            Err(error) => {
                self.make_room_after(error, domain, log, at)?;
                self.append_after(domain, log, span.lpn, data, issue)?
            }
        };
        self.sectors.set(span.lpn, self.sectors.whole());
        self.remap(domain, span.lpn, page, old);
        Ok(done)
    }

    /// Points a logical page to a new place and drops the old one, if there is one.
    #[inline]
    fn remap(&mut self, domain: usize, lpn: Lpn, page: Ppn, old: Ppn) {
        self.map.set(lpn, page, old);
        debug_assert!(
            self.blocks.is_valid(page),
            "{lpn:?} goes from {old:?} to {page:?}, which is not valid"
        );
        self.stats.map_updates += 1;
        if let Some(paged) = &mut self.paged {
            paged.note(lpn);
        }
        let domain = match &mut self.groups {
            None => domain,
            Some(groups) => groups.moved(old, domain),
        };
        if old.is_some() {
            self.invalidate(domain, old);
        }
    }

    #[inline(always)]
    fn invalidate(&mut self, domain: usize, page: Ppn) {
        let block = self.blocks.block_of(page);
        let info = self.blocks.clear(page, block);
        debug_assert!(self.domains[domain].owns(block), "{page:?} of {:?}", self.domains[domain]);
        if info.state == BlockState::Sealed {
            self.domains[domain].invalidated(block, info.valid, self.seq);
        } else if info.valid == 0 && info.state == BlockState::Victim {
            self.domains[domain].emptied(block);
        }
    }

    /// Programs the next page of a log; a copy keeps the sequence number and mark. The caller maps it.
    #[inline(always)]
    #[expect(
        clippy::too_many_arguments,
        reason = "one path for every page; most of them are those of a program"
    )]
    fn append(
        &mut self,
        domain: usize,
        log: usize,
        lpn: Lpn,
        copy_of: Option<Oob>,
        transfer: u32,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> FtlResult<(Ppn, Token)> {
        let lost = copy_of.map_or(0, |oob| oob.stream & LOST);
        loop {
            let this = &mut self.domains[domain];
            let mut log = log;
            let mut issue = issue;
            let (page, block) = if let Some(place) = this.frontier(log) {
                place
            } else {
                let is_host = issue.cause.writes_anew();
                let Some(with_room) = this.find_frontier(log, is_host, &mut self.blocks.infos) else {
                    return Err(self.device_full("no block that the log may write has room", 1));
                };
                log = with_room;
                // The block may have been free before erases that a loss of power would undo.
                issue.after = self.device.join(issue.after, this.erases.gate());
                this.frontier(log).expect("it has room")
            };
            match self.device.program(
                page,
                Oob { lpn, stream: log as u16 | lost, seq: copy_of.map_or(self.seq, |oob| oob.seq) },
                transfer,
                data,
                issue,
            ) {
                Ok(done) => {
                    self.seq += 1;
                    debug_assert_eq!(self.blocks.block_of(page), block, "the block of {page:?} of log {log}");
                    self.blocks.set(page, block);
                    this.programmed(log, &mut self.blocks.infos, self.seq);
                    return Ok((page, done));
                }
                Err(FlashError::ProgramFailed { .. } | FlashError::BadBlock { .. }) => {
                    self.abandon(domain, log);
                }
                Err(error) => return Err(self.refused(error)),
            }
        }
    }

    /// Programs a page that the host writes, in the SLC cache if there is one with room.
    #[inline(always)]
    fn append_host(
        &mut self,
        domain: usize,
        log: usize,
        lpn: Lpn,
        transfer: u32,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> FtlResult<(Ppn, Token)> {
        if self.slc.is_some()
            && let Some(written) = self.append_cached(lpn, transfer, data, issue)?
        {
            return Ok(written);
        }
        self.append(domain, log, lpn, None, transfer, data, issue)
    }

    /// As [`Self::append`] of a whole host page, out of line.
    #[cold]
    #[inline(never)]
    fn append_after(
        &mut self,
        domain: usize,
        log: usize,
        lpn: Lpn,
        data: Option<&[u8]>,
        issue: Issue,
    ) -> FtlResult<(Ppn, Token)> {
        let written = self.append(domain, log, lpn, None, self.page_bytes, data, issue);
        written.map_err(|error| self.without_room(error))
    }

    /// Unmaps pages. Unmapped stretches are skipped a chunk at a time.
    fn unmap(&mut self, first: u32, count: u32, at: SimTime) -> FtlResult<()> {
        drop_pages(&mut self.device, Lpn(first), count, at).map_err(|error| self.refused(error))?;
        let end = first + count;
        let mut next = first;
        while let Some(lpn) = self.map.next_mapped(next, end) {
            self.unmap_page(lpn);
            if let Some(paged) = &mut self.paged {
                paged.note_unmapped(lpn, first..end);
            }
            next = lpn.0 + 1;
        }
        self.drop_translation_pages(first..end, at)
    }

    /// Unmaps a page that is mapped.
    fn unmap_page(&mut self, lpn: Lpn) {
        let old = self.map.unset(lpn);
        self.sectors.set(lpn, 0);
        let domain = match &mut self.groups {
            None => self.placement.domain(lpn),
            Some(groups) => groups.dropped(old),
        };
        self.invalidate(domain, old);
    }

    /// The place that static striping gives an unmapped page, for the time its read takes.
    fn static_place(&self, stripe: &Stripe, lpn: Lpn) -> Ppn {
        let geometry = self.device.geometry();
        let pages_per_plane = geometry.blocks_per_plane * geometry.pages_per_block;
        Ppn(stripe.plane(lpn) * pages_per_plane + lpn.0 / geometry.planes() % pages_per_plane)
    }
}

/// Registry function.
pub fn build<D: FlashDevice + Send + 'static>(device: D, params: &Params) -> BuildResult {
    Ok(Box::new(PageMap::new(device, params)?))
}

impl<D: FlashDevice> Ftl for PageMap<D> {
    fn read(&mut self, extent: Extent, data: Option<&mut [u8]>, at: SimTime) -> FtlResult<Token> {
        self.check_range(extent)?;
        if let Some(slc) = &mut self.slc {
            slc.note_command(at);
        }
        self.read_spans(extent, data, at)
    }

    #[inline]
    fn prepare(&self, extent: Extent) {
        if let Some(lpn) = extent.offset.checked_shr(self.page_shift) {
            self.map.prefetch(lpn);
        }
    }

    #[inline]
    fn write(&mut self, extent: Extent, data: Option<&[u8]>, hint: Hint, at: SimTime) -> FtlResult<Token> {
        self.check_range(extent)?;
        let bytes = data.map_or(extent.len, |data| data.len() as u64);
        debug_assert_eq!(bytes, extent.len, "bytes that come with {extent:?}");
        let log = self.log_of(hint);
        if let Some(span) = self.single_page(extent)
            && !self.trouble.attention
        {
            let done = self.write_span(span, data, log, 1, at)?;
            self.host_bytes.all[log] += u64::from(self.page_bytes);
            self.settle_changes(1, at)?;
            return Ok(done);
        }
        let needed = extent.page_count(self.page_bytes);
        if self.trouble.attention && needed > 0 {
            self.attend(needed, at)?;
        }
        let mut done = Token::NONE;
        for span in extent.pages(self.page_bytes) {
            let part = data.map(|data| &data[span.at as usize..][..span.len as usize]);
            let written = self.write_span(span, part, log, needed, at)?;
            self.host_bytes.all[log] += u64::from(span.len);
            done = self.device.join(done, written);
        }
        self.settle_changes(needed, at)?;
        Ok(done)
    }

    fn trim(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token> {
        self.check_range(extent)?;
        self.refuse_if_stopped()?;
        let (first, count) = extent.whole_pages(self.page_bytes);
        if count > 0 {
            self.unmap(first as u32, count as u32, at)?;
            self.settle_changes(count.min(2), at)?;
        }
        Ok(Token::NONE)
    }

    fn write_zeroes(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token> {
        self.check_range(extent)?;
        self.refuse_if_stopped()?;
        let done = if self.buffer.is_empty() { Token::NONE } else { self.zero_ends(extent, at)? };
        self.trim(extent, at)?;
        Ok(done)
    }

    fn flush(&mut self, at: SimTime) -> FtlResult<Token> {
        // Nothing is held back here: every acknowledged write has been programmed, and its OOB with it,
        // unless the device buffers it.
        self.device.barrier(Barrier::Durable, at).map_err(|error| self.refused(error))
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> FtlResult<()> {
        if self.rules.deferred {
            return Ok(());
        }
        self.fold_while_idle(at, until)?;
        if self.rules.background_gc { self.collect_in_background(at, until) } else { Ok(()) }
    }

    fn device_mut(&mut self) -> &mut dyn FlashState {
        &mut self.device
    }
}
