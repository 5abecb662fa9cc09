//! What the thesis strategies have in common: the device, range checks, page assembly for partial requests,
//! moves of live pages, and the numbers of a full device.
//!
//! Invariant: payload buffers have a size only if the device stores data; otherwise no byte is touched.
#![expect(clippy::inline_always, reason = "measured: the path of every page that is moved")]

use crate::error::FtlBuildError;
use crate::parts::background;
use crate::parts::order::Order;
use nandscape_core::journal::{drop_pages, is_grown_bad};
use nandscape_core::{
    BlockId, Cause, Cost, Extent, FlashDevice, FlashError, FlashResult, FtlError, FtlResult, FtlStats,
    Geometry, Info, Issue, Lpn, Oob, Params, Ppn, SimTime, Token, addr::PageSpan, keys, state,
};

keys! {
    pub(crate) RMW: bool = flag() or "true",
        "read a mapped page before programming a part of it anew (false only without payload)";
    pub(crate) UNMAPPED_READ: String = choice(&["none"]) or "none",
        "what a read of an unmapped page costs: none is no flash operation";
}

/// Bit of [`Oob::stream`]: the page stands for data that could not be read any more when it was to be moved.
/// Reading it is an error until it is written anew.
pub(crate) const LOST: u16 = 1 << 15;

/// Low bits of [`Oob::seq`] in which a journal counts how often the data was copied.
const COPY_BITS: u32 = 16;

/// How often a page is read before it counts as lost.
pub(crate) const READS: u32 = 3;

/// Why there is no room on a device that has lost blocks.
pub(crate) const WORN: &str = "too many blocks are worn out or failed";

/// The shared part of a strategy.
pub(crate) struct Base<D> {
    pub(crate) device: D,
    pub(crate) geometry: Geometry,
    pub(crate) stats: FtlStats,
    pub(crate) logical_pages: u64,
    pub(crate) good_blocks: u64,
    pub(crate) order: Order,
    /// Erased pages at which background collection stops; `None` if it is off.
    pub(crate) background_pages: Option<u64>,
    /// Erases that were refused for good, and blocks that failed in other ways.
    refused_erases: u64,
    /// Why nothing is written any more.
    pub(crate) read_only: Option<&'static str>,
    rmw: bool,
    stores_data: bool,
    seq: u64,
    /// Pages that wait in memory to be programmed; the first also for what is written or tried one by one.
    slots: Box<[u8]>,
    /// OOB of what was read into the slots.
    slot_oobs: Box<[Oob]>,
}

// Slots are used within a request.
state!(impl [D: FlashDevice] Base<D> {
    saved: device, stats, refused_erases, read_only, seq;
    fixed: geometry, logical_pages, good_blocks, order, background_pages, rmw, stores_data, slots, slot_oobs;
});

#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) page: Ppn,
    /// [`Oob::stream`].
    pub(crate) stream: u16,
    /// Not before this completes.
    pub(crate) after: Token,
}

impl Target {
    /// A page of the only log, at once.
    pub(crate) const fn at(page: Ppn) -> Self {
        Self { page, stream: 0, after: Token::NONE }
    }
}

/// The OOB of a page alone; `None` where it is erased, cannot be read, or is in a bad block.
pub(crate) fn read_oob<D: FlashDevice>(device: &mut D, page: Ppn) -> FlashResult<Option<Oob>> {
    match device.read(page, 0, None, Issue::new(SimTime::ZERO, Cause::Meta)) {
        Ok(read) => Ok(Some(read.oob)),
        Err(FlashError::Uncorrectable { .. } | FlashError::Erased { .. } | FlashError::BadBlock { .. }) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The OOB of the first page of a block that can be read.
pub(crate) fn first_oob<D: FlashDevice>(device: &mut D, block: BlockId) -> FlashResult<Option<Oob>> {
    for index in 0..device.write_pointer(block) {
        let page = device.geometry().page(block, index);
        if let Some(oob) = read_oob(device, page)? {
            return Ok(Some(oob));
        }
    }
    Ok(None)
}

/// The OOB of a slot that nothing was read into.
const NOTHING: Oob = Oob { lpn: Lpn::NONE, stream: 0, seq: 0 };

impl<D: FlashDevice> Base<D> {
    /// Takes over a device: wholly erased, or one whose journal tells where everything is, where copies come
    /// first. `slots` is how many pages a collection must hold in memory.
    pub(crate) fn new(
        mut device: D,
        info: &Info,
        params: &Params,
        slots: usize,
    ) -> Result<Self, FtlBuildError> {
        let order = Order::of(&mut device, params)?;
        let can_adopt = order == Order::CopyFirst && device.journal().is_some();
        let geometry = *device.geometry();
        let stores_data = device.capabilities().stores_data;
        let rmw = params.get(RMW);
        if stores_data && !rmw {
            let expected = "true on a device that stores data, where the rest of the page would be lost";
            return Err(params.error(RMW, expected).into());
        }
        let good = (0..geometry.blocks()).map(BlockId).filter(|block| !device.is_bad(*block));
        let mut good_blocks = 0;
        for block in good {
            good_blocks += 1;
            if device.write_pointer(block) != 0 && !can_adopt {
                let reason = format!(
                    "block {} is not erased, and a map is rebuilt only from a journal and under gc_order = copy-first",
                    block.0
                );
                return Err(FtlBuildError::Device { ftl: info.name, reason });
            }
        }
        let mut base = Self {
            device,
            geometry,
            stats: FtlStats::default(),
            logical_pages: good_blocks * u64::from(geometry.pages_per_block),
            good_blocks,
            order,
            background_pages: background::wanted_pages(params, good_blocks, geometry.pages_per_block)?,
            refused_erases: 0,
            read_only: None,
            rmw,
            stores_data,
            seq: 0,
            slots: Box::default(),
            slot_oobs: Box::default(),
        };
        base.set_slots(slots);
        Ok(base)
    }

    /// How many pages must wait in memory, where that is known only after [`Self::new`].
    pub(crate) fn set_slots(&mut self, slots: usize) {
        self.slots = vec![0; self.slot_range(slots).start].into();
        self.slot_oobs = vec![NOTHING; slots].into();
    }

    /// Refuses a request past the logical capacity.
    pub(crate) fn check(&self, extent: Extent) -> FtlResult<()> {
        let capacity_bytes = self.logical_pages * u64::from(self.geometry.page_bytes);
        if extent.end() > capacity_bytes {
            return Err(FtlError::OutOfRange { extent, capacity_bytes });
        }
        Ok(())
    }

    /// The page of a request's first byte.
    pub(crate) fn lpn_of(&self, extent: Extent) -> Lpn {
        Lpn((extent.offset / u64::from(self.geometry.page_bytes)) as u32)
    }

    pub(crate) fn spans(&self, extent: Extent) -> nandscape_core::addr::PageSpans {
        extent.pages(self.geometry.page_bytes)
    }

    /// The logical pages a request covers wholly.
    pub(crate) fn whole_pages(&self, extent: Extent) -> impl Iterator<Item = Lpn> + Clone + use<D> {
        let (first, count) = extent.whole_pages(self.geometry.page_bytes);
        (first..first + count).map(|lpn| Lpn(lpn as u32))
    }

    /// As [`Extent::ragged_ends`], where bytes are kept; elsewhere zeroes at the ends change nothing that is
    /// counted.
    pub(crate) fn ragged_ends(&self, extent: Extent) -> impl Iterator<Item = Extent> + use<D> {
        let stores_data = self.stores_data;
        extent.ragged_ends(self.geometry.page_bytes).filter(move |_| stores_data)
    }

    /// Reads the part of a page that a request covers; zeroes if the page is not mapped.
    #[inline]
    pub(crate) fn read_span(
        &mut self,
        page: Option<Ppn>,
        span: &PageSpan,
        data: Option<&mut [u8]>,
        at: SimTime,
    ) -> FtlResult<Token> {
        let part =
            data.filter(|_| self.stores_data).map(|data| &mut data[span.at as usize..][..span.len as usize]);
        let Some(page) = page else {
            if let Some(part) = part {
                part.fill(0);
            }
            return Ok(Token::NONE);
        };
        let issue = Issue::new(at, Cause::Host);
        let read = match part {
            None => self.device.read(page, span.len, None, issue)?,
            Some(part) if span.is_whole(self.geometry.page_bytes) => {
                self.device.read(page, span.len, Some(part), issue)?
            }
            Some(part) => self.device.read_part(page, span.start, part, issue)?,
        };
        if read.oob.stream & LOST != 0 {
            return Err(FlashError::Uncorrectable { page }.into());
        }
        Ok(read.done)
    }

    /// Programs the page of a request at `target`. A partly covered one is completed by a host read of `old`.
    #[inline]
    pub(crate) fn write_span(
        &mut self,
        old: Option<Ppn>,
        target: Target,
        span: &PageSpan,
        data: Option<&[u8]>,
        at: SimTime,
    ) -> FtlResult<Token> {
        let issue = Issue::new(at, Cause::Host);
        if span.is_whole(self.geometry.page_bytes) {
            let payload =
                data.filter(|_| self.stores_data).map(|data| &data[span.at as usize..][..span.len as usize]);
            let oob = self.host_oob(span.lpn, target.stream);
            let issue = issue.after(target.after);
            return Ok(self.device.program(target.page, oob, self.geometry.page_bytes, payload, issue)?);
        }
        let after = self.fill_slot(0, old, span, data, at)?;
        let after = self.both(after, target.after);
        self.program_slot(0, Target { after, ..target }, span.lpn, issue)
    }

    /// Completes when both have; no operation of its own where one has from the beginning.
    #[inline]
    pub(crate) fn both(&mut self, a: Token, b: Token) -> Token {
        match (a, b) {
            (done, Token::NONE) | (Token::NONE, done) => done,
            _ => self.device.join(a, b),
        }
    }

    /// The OOB of data that the host writes.
    #[inline]
    fn host_oob(&mut self, lpn: Lpn, stream: u16) -> Oob {
        self.seq += 1;
        Oob { lpn, stream, seq: self.seq }
    }

    /// Bytes of a slot; none where the device stores no data.
    fn slot_range(&self, slot: usize) -> std::ops::Range<usize> {
        let bytes = if self.stores_data { self.geometry.page_bytes as usize } else { 0 };
        slot * bytes..(slot + 1) * bytes
    }

    /// Reads a live page into a slot in memory.
    #[inline(always)]
    pub(crate) fn read_slot(&mut self, slot: usize, page: Ppn, issue: Issue) -> FtlResult<Token> {
        assert!(slot < self.slot_oobs.len(), "{page:?} goes to slot {slot} of {}", self.slot_oobs.len());
        let range = self.slot_range(slot);
        let buffer = if self.stores_data { Some(&mut self.slots[range]) } else { None };
        let read = self.device.read(page, self.geometry.page_bytes, buffer, issue)?;
        self.slot_oobs[slot] = read.oob;
        Ok(read.done)
    }

    /// Reads a live page that is to be moved into a slot. Under copy-first one that cannot be read any more
    /// becomes a page that says so; else that is an error.
    #[inline(always)]
    pub(crate) fn read_to_move(&mut self, slot: usize, page: Ppn, issue: Issue) -> FtlResult<Token> {
        match self.order {
            Order::CopyFirst => self.read_slot_or_mark(slot, page, issue),
            Order::EraseFirst => self.read_slot(slot, page, issue),
        }
    }

    /// As [`Self::read_slot`], several times if need be; what cannot be read any more leaves a page that says
    /// so. Its number is that of the data, like that of any copy, or if that cannot be read either the
    /// one of a host write.
    #[inline(never)]
    fn read_slot_or_mark(&mut self, slot: usize, page: Ppn, issue: Issue) -> FtlResult<Token> {
        assert_eq!(self.order, Order::CopyFirst, "{page:?} may be marked as lost");
        for _ in 0..READS {
            match self.read_slot(slot, page, issue) {
                Err(FtlError::Flash(FlashError::Uncorrectable { .. })) => {}
                other => return other,
            }
        }
        let range = self.slot_range(slot);
        self.slots[range].fill(0);
        let known = self.oob(page)?.unwrap_or(NOTHING);
        self.slot_oobs[slot] = Oob { stream: LOST, ..known };
        Ok(Token::NONE)
    }

    /// As [`read_oob`].
    pub(crate) fn oob(&mut self, page: Ppn) -> FlashResult<Option<Oob>> {
        read_oob(&mut self.device, page)
    }

    /// Whether the data of a page can be read.
    pub(crate) fn is_readable(&mut self, page: Ppn) -> bool {
        let read = self.read_slot(0, page, Issue::new(SimTime::ZERO, Cause::Meta));
        read.is_ok() && self.slot_oobs[0].stream & LOST == 0
    }

    /// Puts the page of a request into a slot in memory, completed from `old` if it is covered partly.
    pub(crate) fn fill_slot(
        &mut self,
        slot: usize,
        old: Option<Ppn>,
        span: &PageSpan,
        data: Option<&[u8]>,
        at: SimTime,
    ) -> FtlResult<Token> {
        let page_bytes = self.geometry.page_bytes;
        assert!(span.start + span.len <= page_bytes, "{span:?} of a page of {page_bytes} bytes");
        let mut after = Token::NONE;
        if let Some(old) = old.filter(|_| self.rmw && !span.is_whole(self.geometry.page_bytes)) {
            after = self.read_slot(slot, old, Issue::new(at, Cause::Host))?;
            if self.slot_oobs[slot].stream & LOST != 0 {
                return Err(FlashError::Uncorrectable { page: old }.into());
            }
        } else {
            let range = self.slot_range(slot);
            self.slots[range].fill(0);
        }
        self.slot_oobs[slot] = NOTHING;
        if self.stores_data {
            let start = self.slot_range(slot).start + span.start as usize;
            let part = &mut self.slots[start..][..span.len as usize];
            match data {
                Some(data) => part.copy_from_slice(&data[span.at as usize..][..span.len as usize]),
                None => part.fill(0),
            }
        }
        Ok(after)
    }

    /// Copies a live page, read as by [`Self::read_to_move`].
    pub(crate) fn copy(&mut self, from: Ppn, to: Target, lpn: Lpn, issue: Issue) -> FtlResult<Token> {
        let read = self.read_to_move(0, from, issue)?;
        let after = self.both(read, to.after);
        self.program_slot(0, Target { after, ..to }, lpn, issue)
    }

    /// Programs a page from its slot once the target may be. A copy passes on the number of its data.
    #[inline(always)]
    pub(crate) fn program_slot(
        &mut self,
        slot: usize,
        target: Target,
        lpn: Lpn,
        issue: Issue,
    ) -> FtlResult<Token> {
        let source = self.slot_oobs[slot];
        let is_its_own = source.lpn == lpn || source.lpn == Lpn::NONE;
        debug_assert!(is_its_own, "{lpn:?} is programmed from slot {slot} with {source:?}");
        let lost = source.stream & LOST;
        let mut issue = issue.after(target.after);
        // A mark that was just made has no number yet.
        let is_new = issue.cause == Cause::Host || lost != 0 && source.lpn == Lpn::NONE;
        let oob = if is_new {
            issue.cause = Cause::Host;
            self.host_oob(lpn, target.stream | lost)
        } else {
            Oob { lpn, stream: target.stream | lost, seq: source.seq }
        };
        let range = self.slot_range(slot);
        let payload = if self.stores_data { Some(&self.slots[range]) } else { None };
        Ok(self.device.program(target.page, oob, self.geometry.page_bytes, payload, issue)?)
    }

    /// Erases a block. `Ok(None)`: it refused for good (worn out or failed) and keeps what it held.
    pub(crate) fn erase(&mut self, block: BlockId, issue: Issue) -> FtlResult<Option<Token>> {
        debug_assert!(!self.device.is_bad(block), "{block:?}, which is bad, is to be erased");
        match self.device.erase(block, issue) {
            Ok(done) => Ok(Some(done)),
            Err(FlashError::WornOut { .. } | FlashError::EraseFailed { .. }) => {
                self.refused_erases += 1;
                if self.order == Order::CopyFirst {
                    self.device.mark_bad(block);
                }
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Notes a failure other than of an erase.
    pub(crate) const fn count_failure(&mut self) {
        self.refused_erases += 1;
    }

    /// Notes the blocks that had gone bad before the start.
    pub(crate) fn count_grown_bad(&mut self) {
        let blocks = (0..self.geometry.blocks()).map(BlockId);
        self.refused_erases += blocks.filter(|block| is_grown_bad(&self.device, *block)).count() as u64;
    }

    pub(crate) const fn has_failed(&self) -> bool {
        self.refused_erases > 0
    }

    /// Where the journal found each logical page. Data past the capacity means another reserve: an error.
    pub(crate) fn each_newest(
        &self,
        info: &'static Info,
        mut take: impl FnMut(Lpn, Ppn),
    ) -> Result<(), FtlBuildError> {
        let Some(journal) = self.device.journal() else { return Ok(()) };
        for lpn in (0..self.geometry.pages()).map(Lpn) {
            let Some(page) = journal.newest(lpn) else { continue };
            if u64::from(lpn.0) >= self.logical_pages {
                let reason = format!(
                    "logical page {} holds data, but there are {} logical pages: expected the configuration it was written with",
                    lpn.0, self.logical_pages
                );
                return Err(FtlBuildError::Device { ftl: info.name, reason });
            }
            take(lpn, page);
        }
        Ok(())
    }

    /// Gives a block up that failed while it was written and holds nothing any more.
    pub(crate) fn give_up(&mut self, block: BlockId) {
        self.refused_erases += 1;
        self.device.mark_bad(block);
    }

    /// Whether two OOBs are of the same version of a page: one is a copy of the other, or both of a third.
    pub(crate) const fn is_same_version(one: &Oob, other: &Oob) -> bool {
        one.lpn.0 == other.lpn.0 && one.seq >> COPY_BITS == other.seq >> COPY_BITS
    }

    /// Blocks that are good, or were when the device was made: what the capacity is reckoned from.
    pub(crate) fn is_nominal(&self, block: BlockId) -> bool {
        !self.device.is_bad(block) || is_grown_bad(&self.device, block)
    }

    /// Refuses what changes anything once too much has failed.
    pub(crate) fn check_writable(&self) -> FtlResult<()> {
        match self.read_only {
            None => Ok(()),
            Some(reason) => Err(FtlError::ReadOnly { reason }),
        }
    }

    /// No room though there should be: from now on nothing is written. The first reason stays.
    #[cold]
    pub(crate) fn turn_read_only(&mut self, reason: &'static str) -> FtlError {
        let reason = *self.read_only.get_or_insert(reason);
        FtlError::ReadOnly { reason }
    }

    /// Remembers a device that has turned read-only.
    #[inline]
    pub(crate) fn note<T>(&mut self, result: FtlResult<T>) -> FtlResult<T> {
        result.map_err(|error| match error {
            FtlError::Flash(FlashError::ReadOnly { reason }) => self.turn_read_only(reason),
            error => error,
        })
    }

    /// Tells the device that these pages hold nothing any more, in runs.
    pub(crate) fn drop_runs(&mut self, dropped: &[Lpn], at: SimTime) -> FtlResult<()> {
        for run in dropped.chunk_by(|a, b| a.0 + 1 == b.0) {
            drop_pages(&mut self.device, run[0], run.len() as u32, at)?;
        }
        Ok(())
    }

    /// The error of a device without room, with its numbers.
    fn full(&self, reason: &'static str, needed_pages: u64, free_pages: u64) -> FtlError {
        // What the strategy looked for is not what is missing once blocks have been lost.
        let reason = if self.refused_erases > 0 { WORN } else { reason };
        FtlError::DeviceFull {
            reason,
            needed_pages,
            free_pages,
            live_pages: self.stats.live_pages,
            total_pages: self.good_blocks * u64::from(self.geometry.pages_per_block),
        }
    }

    /// As [`Self::full`]; where copies come first, a device that has lost blocks is read-only from now on.
    pub(crate) fn no_room(&mut self, reason: &'static str, needed_pages: u64, free_pages: u64) -> FtlError {
        match self.full(reason, needed_pages, free_pages) {
            FtlError::DeviceFull { reason: WORN, .. } if self.order == Order::CopyFirst => {
                self.turn_read_only(WORN)
            }
            error => error,
        }
    }

    /// The cost fields that are the same for all; the maps are the strategy's own.
    pub(crate) fn cost(&self, reserve_blocks: u64) -> Cost {
        Cost {
            map_table_bytes: 0,
            dram_bytes: 0,
            host_dram_bytes: 0,
            usable_bytes: self.logical_pages * u64::from(self.geometry.page_bytes),
            total_blocks: self.good_blocks,
            reserve_blocks,
            pages_per_block: u64::from(self.geometry.pages_per_block),
            logical_pages: self.logical_pages,
        }
    }
}
