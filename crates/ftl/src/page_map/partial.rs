//! Reads, and writes of parts of a page.

use super::PageMap;
use crate::parts::base::LOST;
use nandscape_core::addr::PageSpan;
use nandscape_core::{
    Cause, Extent, FlashDevice, FlashError, FlashResult, FtlResult, Hint, Issue, Lpn, PageRead, Ppn, SimTime,
    Token,
};

impl<D: FlashDevice> PageMap<D> {
    /// Reads every page the extent touches; unmapped ones read as zeroes.
    pub(super) fn read_spans(
        &mut self,
        extent: Extent,
        mut data: Option<&mut [u8]>,
        at: SimTime,
    ) -> FtlResult<Token> {
        let mut issue = Issue::new(at, Cause::Host).after(self.find_entries(extent, at)?);
        let mut done = Token::NONE;
        // The last page: while one before it is read the next is on its way. 0 where no bytes are read.
        let moves_data = data.is_some() && !self.buffer.is_empty();
        let last = if moves_data { extent.end().saturating_sub(1) / u64::from(self.page_bytes) } else { 0 };
        for span in extent.pages(self.page_bytes) {
            let page = self.map.get(span.lpn);
            if u64::from(span.lpn.0) < last {
                self.device.prepare_read(self.map.get(Lpn(span.lpn.0 + 1)));
            }
            let part = data.as_deref_mut().map(|data| &mut data[span.at as usize..][..span.len as usize]);
            let read = if page.is_some() {
                if self.rules.units_per_page.divisor() > 1 {
                    issue.held = self.bytes_along(span, page, extent);
                }
                let read = match part {
                    Some(part) if !self.buffer.is_empty() && !span.is_whole(self.page_bytes) => {
                        self.device.read_part(page, span.start, part, issue)?
                    }
                    Some(part) if !self.buffer.is_empty() => {
                        self.device.read(page, span.len, Some(part), issue)?
                    }
                    _ => self.device.read(page, span.len, None, issue)?,
                };
                unless_lost(page, read)?
            } else {
                if let Some(part) = part {
                    part.fill(0);
                }
                match &self.rules.unmapped_stripe {
                    Some(stripe) => {
                        let place = self.static_place(stripe, span.lpn);
                        self.device.read_unmapped(place, span.len, Issue { held: 0, ..issue })?
                    }
                    None => Token::NONE,
                }
            };
            done = self.device.join(done, read);
        }
        Ok(done)
    }

    /// Bytes of the extent that follow a page and lie in the same flash page.
    #[inline(never)]
    fn bytes_along(&self, span: PageSpan, page: Ppn, extent: Extent) -> u32 {
        let flash_page = self.rules.units_per_page.quotient(page.0);
        let rest = Extent { offset: extent.offset + span.at + u64::from(span.len), len: 0 };
        let rest = Extent { len: extent.end() - rest.offset, ..rest };
        let is_along = |next: &PageSpan| {
            let place = self.map.get(next.lpn);
            place.is_some() && self.rules.units_per_page.quotient(place.0) == flash_page
        };
        rest.pages(self.page_bytes).take_while(is_along).map(|next| next.len).sum()
    }

    /// Writes a part of a page, for which there is room, after a read if a sector keeps some of its data.
    #[inline(never)]
    pub(super) fn write_partial(
        &mut self,
        domain: usize,
        span: PageSpan,
        log: usize,
        data: Option<&[u8]>,
        at: SimTime,
    ) -> FtlResult<Token> {
        assert!(span.start + span.len <= self.page_bytes, "{span:?} of a page of {}", self.page_bytes);
        let merge = |this: &mut Self| {
            let mut buffer = std::mem::take(&mut this.buffer);
            let result = this.write_merged(domain, span, log, data, &mut buffer, at);
            this.buffer = buffer;
            result
        };
        merge(self).or_else(|error| {
            // Collection needs the buffer as well.
            self.make_room_after(error, domain, log, at)?;
            merge(self).map_err(|error| self.without_room(error))
        })
    }

    fn write_merged(
        &mut self,
        domain: usize,
        span: PageSpan,
        log: usize,
        data: Option<&[u8]>,
        buffer: &mut [u8],
        at: SimTime,
    ) -> FtlResult<Token> {
        let sector_bytes = self.device.geometry().sector_bytes;
        let old = self.map.get(span.lpn);
        let held = self.sectors.get(span.lpn, old.is_some());
        let (touched, covered) = sector_masks(span, sector_bytes);
        let kept = held & !covered;
        let mut transfer = span.len;
        let mut issue = Issue::new(at, Cause::Host);
        let stores_data = !buffer.is_empty();
        if kept != 0 && self.rules.rmw {
            let kept_bytes = kept.count_ones() * sector_bytes;
            let page = Extent::new(u64::from(span.lpn.0) * u64::from(self.page_bytes), 1);
            issue = issue.after(self.find_entries(page, at)?);
            let read = self.device.read(old, kept_bytes, stores_data.then_some(&mut *buffer), issue)?;
            issue = issue.after(unless_lost(old, read)?);
            transfer = (transfer + kept_bytes).min(self.page_bytes);
        } else {
            buffer.fill(0);
        }
        if stores_data {
            let part = &mut buffer[span.start as usize..][..span.len as usize];
            match data {
                Some(data) => part.copy_from_slice(data),
                None => part.fill(0),
            }
        }
        let data = stores_data.then_some(&*buffer);
        let (page, done) = self.append_host(domain, log, span.lpn, transfer, data, issue)?;
        self.sectors.set(span.lpn, held | touched);
        self.remap(domain, span.lpn, page, old);
        Ok(done)
    }

    /// Writes zeroes over the partly covered ends of an extent where they hold data.
    pub(super) fn zero_ends(&mut self, extent: Extent, at: SimTime) -> FtlResult<Token> {
        let mut done = Token::NONE;
        let page_bytes = self.page_bytes;
        for span in extent.ragged_ends(page_bytes).filter_map(|end| end.pages(page_bytes).next()) {
            if self.map.get(span.lpn).is_some() {
                if self.trouble.attention {
                    self.attend(1, at)?;
                }
                let log = self.log_of(Hint::default());
                let written = self.write_span(span, None, log, 1, at)?;
                done = self.device.join(done, written);
            }
        }
        Ok(done)
    }
}

/// When a read is done; an error if the page only says that its data was lost.
#[inline]
const fn unless_lost(page: Ppn, read: PageRead) -> FlashResult<Token> {
    if read.oob.stream & LOST == 0 { Ok(read.done) } else { Err(FlashError::Uncorrectable { page }) }
}

/// The sectors a span touches, and those it covers from end to end.
fn sector_masks(span: PageSpan, sector_bytes: u32) -> (u64, u64) {
    let end = span.start + span.len;
    let mask = |first: u32, end: u32| {
        if first >= end { 0 } else { (u64::MAX >> (64 - (end - first))) << first }
    };
    let touched = mask(span.start / sector_bytes, end.div_ceil(sector_bytes));
    let covered = mask(span.start.div_ceil(sector_bytes), end / sector_bytes);
    (touched, covered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::Lpn;

    #[test]
    fn masks_tell_touched_from_covered_sectors() {
        let span = |start, len| PageSpan { lpn: Lpn(0), start, len, at: 0 };
        assert_eq!(sector_masks(span(0, 4096), 512), (0xff, 0xff));
        assert_eq!(sector_masks(span(100, 512), 512), (0b11, 0));
        assert_eq!(sector_masks(span(512, 1000), 512), (0b110, 0b10));
        assert_eq!(sector_masks(span(0, 100), 4096), (1, 0));
        assert_eq!(sector_masks(span(0, 32768), 512), (u64::MAX, u64::MAX));
    }
}
