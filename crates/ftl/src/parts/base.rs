//! What the thesis strategies have in common: the device, range checks, page assembly for partial requests, moves of live
//! pages, and the numbers of a full device.
//!
//! Invariant: payload buffers have a size only if the device stores data; otherwise no byte is touched.

use crate::error::FtlBuildError;
use nandscape_core::{
    BlockId, Cause, Cost, Extent, FlashDevice, FlashError, FtlError, FtlStats, Geometry, Info, Issue, Lpn,
    Oob, Param, ParamKind, Params, Ppn, SimTime, Token, addr::PageSpan,
};

/// `rmw`: thesis.md decision 9.
pub(crate) const RMW: Param = Param {
    name: "rmw",
    summary: "read a mapped page before programming a part of it anew (false only without payload)",
    kind: ParamKind::Bool,
    default: "true",
};

/// `unmapped_read`: thesis.md decision 25.
pub(crate) const UNMAPPED_READ: Param = Param {
    name: "unmapped_read",
    summary: "what a read of an unmapped page costs: none is no flash operation",
    kind: ParamKind::Choice { of: &["none"] },
    default: "none",
};

/// Why there is no room on a device that has lost blocks.
const WORN: &str = "too many blocks are worn out or failed";

/// The shared part of a strategy.
pub(crate) struct Base<D> {
    pub(crate) device: D,
    pub(crate) geometry: Geometry,
    pub(crate) stats: FtlStats,
    pub(crate) logical_pages: u64,
    pub(crate) good_blocks: u64,
    /// Erases that were refused for good.
    refused_erases: u64,
    rmw: bool,
    stores_data: bool,
    seq: u64,
    /// One page: partial reads, read-modify-write, copies.
    page: Box<[u8]>,
    /// Pages that wait in memory between an erase and their rewriting.
    slots: Box<[u8]>,
}

impl<D: FlashDevice> Base<D> {
    /// Takes over a wholly erased device. `slots` is how many pages an erase-first collection must hold in memory.
    pub(crate) fn new(device: D, info: &Info, params: &Params, slots: usize) -> Result<Self, FtlBuildError> {
        let geometry = *device.geometry();
        let stores_data = device.capabilities().stores_data;
        let rmw = params.flag("rmw");
        if stores_data && !rmw {
            let expected = "true on a device that stores data, where the rest of the page would be lost";
            return Err(params.error("rmw", expected).into());
        }
        let good = (0..geometry.blocks()).map(BlockId).filter(|block| !device.is_bad(*block));
        let mut good_blocks = 0;
        for block in good {
            good_blocks += 1;
            if device.write_pointer(block) != 0 {
                let reason = format!(
                    "block {} is not erased, and the layer keeps no map on flash to recover",
                    block.0
                );
                return Err(FtlBuildError::Device { ftl: info.name, reason });
            }
        }
        let bytes = if stores_data { geometry.page_bytes as usize } else { 0 };
        Ok(Self {
            device,
            geometry,
            stats: FtlStats::default(),
            logical_pages: good_blocks * u64::from(geometry.pages_per_block),
            good_blocks,
            refused_erases: 0,
            rmw,
            stores_data,
            seq: 0,
            page: vec![0; bytes].into(),
            slots: vec![0; bytes * slots].into(),
        })
    }

    /// How many pages must wait in memory, where that is known only after [`Self::new`].
    pub(crate) fn set_slots(&mut self, slots: usize) {
        self.slots = vec![0; self.page.len() * slots].into();
    }

    /// Refuses a request past the logical capacity.
    pub(crate) fn check(&self, extent: Extent) -> Result<(), FtlError> {
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
    pub(crate) fn whole_pages(&self, extent: Extent) -> impl Iterator<Item = Lpn> + use<D> {
        let (first, count) = extent.whole_pages(self.geometry.page_bytes);
        (first..first + count).map(|lpn| Lpn(lpn as u32))
    }

    /// The parts of a request that cover a page partly, as requests of their own: at most two. Only where bytes are kept;
    /// elsewhere zeroes at the ends change nothing that is counted.
    pub(crate) fn ragged_ends(&self, extent: Extent) -> impl Iterator<Item = Extent> + use<D> {
        let page_bytes = u64::from(self.geometry.page_bytes);
        let mut ends = [None, None];
        if self.stores_data && extent.len > 0 {
            let first = extent.offset / page_bytes;
            let last = (extent.end() - 1) / page_bytes;
            for (end, page) in ends.iter_mut().zip([first, last]) {
                let start = extent.offset.max(page * page_bytes);
                let stop = extent.end().min((page + 1) * page_bytes);
                if stop - start < page_bytes {
                    *end = Some(Extent::new(start, stop - start));
                }
            }
            if first == last {
                ends[1] = None;
            }
        }
        ends.into_iter().flatten()
    }

    /// Reads the part of a page that a request covers; zeroes if the page is not mapped.
    #[inline]
    pub(crate) fn read_span(
        &mut self,
        page: Option<Ppn>,
        span: &PageSpan,
        data: Option<&mut [u8]>,
        at: SimTime,
    ) -> Result<Token, FtlError> {
        let part =
            data.filter(|_| self.stores_data).map(|data| &mut data[span.at as usize..][..span.len as usize]);
        let Some(page) = page else {
            if let Some(part) = part {
                part.fill(0);
            }
            return Ok(Token::NONE);
        };
        let issue = Issue::new(at, Cause::Host);
        let done = match part {
            None => self.device.read(page, span.len, None, issue)?.done,
            Some(part) if span.is_whole(self.geometry.page_bytes) => {
                self.device.read(page, span.len, Some(part), issue)?.done
            }
            Some(part) => self.device.read_part(page, span.start, part, issue)?.done,
        };
        Ok(done)
    }

    /// Programs the page of a request at `target`. A partly covered page is completed from `old`, where it is now, at the
    /// price of one host read.
    #[inline]
    pub(crate) fn write_span(
        &mut self,
        old: Option<Ppn>,
        target: Ppn,
        span: &PageSpan,
        data: Option<&[u8]>,
        at: SimTime,
    ) -> Result<Token, FtlError> {
        let issue = Issue::new(at, Cause::Host);
        if span.is_whole(self.geometry.page_bytes) {
            let payload =
                data.filter(|_| self.stores_data).map(|data| &data[span.at as usize..][..span.len as usize]);
            return self.program(target, span.lpn, payload, issue);
        }
        let after = Self::complete(
            &mut self.device,
            old.filter(|_| self.rmw),
            span,
            data,
            &mut self.page,
            self.geometry.page_bytes,
            issue,
        )?;
        let payload = self.stores_data.then_some(&*self.page);
        self.seq += 1;
        let oob = Oob { lpn: span.lpn, stream: 0, seq: self.seq };
        Ok(self.device.program(target, oob, self.geometry.page_bytes, payload, issue.after(after))?)
    }

    /// Fills `page` with what it holds at `old` and lays the request's bytes over it.
    fn complete(
        device: &mut D,
        old: Option<Ppn>,
        span: &PageSpan,
        data: Option<&[u8]>,
        page: &mut [u8],
        page_bytes: u32,
        issue: Issue,
    ) -> Result<Token, FtlError> {
        let stores_data = !page.is_empty();
        let after = if let Some(old) = old {
            device.read(old, page_bytes, stores_data.then_some(&mut *page), issue)?.done
        } else {
            page.fill(0);
            Token::NONE
        };
        if stores_data {
            let part = &mut page[span.start as usize..][..span.len as usize];
            match data {
                Some(data) => part.copy_from_slice(&data[span.at as usize..][..span.len as usize]),
                None => part.fill(0),
            }
        }
        Ok(after)
    }

    #[inline]
    fn program(
        &mut self,
        target: Ppn,
        lpn: Lpn,
        payload: Option<&[u8]>,
        issue: Issue,
    ) -> Result<Token, FtlError> {
        self.seq += 1;
        let oob = Oob { lpn, stream: 0, seq: self.seq };
        Ok(self.device.program(target, oob, self.geometry.page_bytes, payload, issue)?)
    }

    fn slot_range(&self, slot: usize) -> std::ops::Range<usize> {
        let bytes = self.geometry.page_bytes as usize;
        slot * bytes..(slot + 1) * bytes
    }

    /// Reads a live page into a slot in memory.
    #[inline]
    pub(crate) fn read_slot(
        &mut self,
        slot: usize,
        page: Ppn,
        cause: Cause,
        at: SimTime,
    ) -> Result<Token, FtlError> {
        let range = self.slot_range(slot);
        let buffer = if self.stores_data { Some(&mut self.slots[range]) } else { None };
        Ok(self.device.read(page, self.geometry.page_bytes, buffer, Issue::new(at, cause))?.done)
    }

    /// Puts the page of a request into a slot in memory, completed from `old` if it is covered partly.
    pub(crate) fn fill_slot(
        &mut self,
        slot: usize,
        old: Option<Ppn>,
        span: &PageSpan,
        data: Option<&[u8]>,
        at: SimTime,
    ) -> Result<Token, FtlError> {
        let page_bytes = self.geometry.page_bytes;
        let old = old.filter(|_| self.rmw && !span.is_whole(page_bytes));
        let range = if self.stores_data { self.slot_range(slot) } else { 0..0 };
        let page = &mut self.slots[range];
        Self::complete(&mut self.device, old, span, data, page, page_bytes, Issue::new(at, Cause::Host))
    }

    /// Copies a live page.
    pub(crate) fn copy(
        &mut self,
        from: Ppn,
        to: Ppn,
        lpn: Lpn,
        cause: Cause,
        at: SimTime,
    ) -> Result<Token, FtlError> {
        let page_bytes = self.geometry.page_bytes;
        let buffer = if self.stores_data { Some(&mut *self.page) } else { None };
        let read = self.device.read(from, page_bytes, buffer, Issue::new(at, cause))?.done;
        self.seq += 1;
        let oob = Oob { lpn, stream: 0, seq: self.seq };
        let payload = self.stores_data.then_some(&*self.page);
        Ok(self.device.program(to, oob, page_bytes, payload, Issue::new(at, cause).after(read))?)
    }

    /// Programs a page from its slot, not before `after`.
    #[inline]
    pub(crate) fn program_slot(
        &mut self,
        slot: usize,
        target: Ppn,
        lpn: Lpn,
        cause: Cause,
        at: SimTime,
        after: Token,
    ) -> Result<Token, FtlError> {
        self.seq += 1;
        let oob = Oob { lpn, stream: 0, seq: self.seq };
        let range = self.slot_range(slot);
        let payload = if self.stores_data { Some(&self.slots[range]) } else { None };
        let issue = Issue::new(at, cause).after(after);
        Ok(self.device.program(target, oob, self.geometry.page_bytes, payload, issue)?)
    }

    /// Erases a block once `after` completes. `Ok(None)`: the block refused for good (worn out or failed) and keeps what it held.
    pub(crate) fn erase(
        &mut self,
        block: BlockId,
        cause: Cause,
        at: SimTime,
        after: Token,
    ) -> Result<Option<Token>, FtlError> {
        match self.device.erase(block, Issue::new(at, cause).after(after)) {
            Ok(done) => Ok(Some(done)),
            Err(FlashError::WornOut { .. } | FlashError::EraseFailed { .. }) => {
                self.refused_erases += 1;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The error of a device without room, with its numbers.
    pub(crate) fn full(&self, reason: &'static str, needed_pages: u64, free_pages: u64) -> FtlError {
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

    /// The cost fields that are the same for all; the maps are the strategy's own.
    pub(crate) fn cost(&self, reserve_blocks: u64) -> Cost {
        Cost {
            map_table_bytes: 0,
            dram_bytes: 0,
            usable_bytes: self.logical_pages * u64::from(self.geometry.page_bytes),
            total_blocks: self.good_blocks,
            reserve_blocks,
            pages_per_block: u64::from(self.geometry.pages_per_block),
            logical_pages: self.logical_pages,
        }
    }

    /// Starts the counters anew; what is live stays.
    pub(crate) fn reset_stats(&mut self) {
        self.stats = FtlStats { live_pages: self.stats.live_pages, ..FtlStats::default() };
    }
}
