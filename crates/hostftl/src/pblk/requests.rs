//! Commands of hosts.

use super::ring::slot_of;
use super::sabotage::Sabotage;
use super::{Kind, Pblk};
use crate::below::lost;
use nandscape_core::addr::PageSpan;
use nandscape_core::command::Payload;
use nandscape_core::vector::{MOST_ADDRESSES, SectorAddress, VectorCommand};
use nandscape_core::{
    BlockCommand, Cause, Extent, FtlError, Issue, Lpn, NamespaceResult, Op, Ppn, SimTime, Subsystem, Token,
};

/// Sectors that one command reads to bytes of a payload that follow each other.
#[derive(Debug, Default)]
struct Run {
    list: Vec<SectorAddress>,
    /// First byte in the payload.
    at: u64,
}

impl<S: Subsystem> Pblk<S> {
    pub(super) fn block(
        &mut self,
        command: BlockCommand,
        payload: Payload<'_>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let BlockCommand { op, extent, is_durable, .. } = command;
        if op != Op::Flush && extent.end() > self.shape.capacity_bytes {
            let capacity_bytes = self.shape.capacity_bytes;
            return Err(FtlError::OutOfRange { extent, capacity_bytes }.into());
        }
        let done = match (op, payload) {
            (Op::Read, Payload::Read(data)) => self.read(extent, Some(data), at),
            (Op::Read, _) => self.read(extent, None, at),
            (Op::Write, Payload::Write(data)) => self.write(extent, Some(data), at),
            (Op::Write, _) => self.write(extent, None, at),
            (Op::Trim, _) => self.trim(extent, at),
            (Op::WriteZeroes, _) => self.write_zeroes(extent, at),
            (Op::Flush, _) => self.flush(at),
        }?;
        self.hosts.count(command, self.shape.identity.page_bytes);
        if !is_durable || op == Op::Flush {
            return Ok(done);
        }
        // A durable command is one with a flush behind it, and counts as both.
        self.hosts.count(BlockCommand::FLUSH, self.shape.identity.page_bytes);
        let flushed = self.flush(at)?;
        Ok(self.below.device.join(done, flushed))
    }

    fn write(&mut self, extent: Extent, data: Option<&[u8]>, at: SimTime) -> NamespaceResult<Token> {
        self.refuse_if_stopped()?;
        let mut done = Token::NONE;
        for span in extent.pages(self.shape.identity.page_bytes) {
            let part = data.map(|data| &data[span.at as usize..][..span.len as usize]);
            let one = self.write_page(span, part, at)?;
            done = self.below.device.join(done, one);
        }
        Ok(done)
    }

    /// Writes a page or a part of it, whose rest is read; it is answered when it is in the ring.
    fn write_page(&mut self, span: PageSpan, data: Option<&[u8]>, at: SimTime) -> NamespaceResult<Token> {
        // Before the page is looked up: collection moves it.
        let admitted = self.admit(at)?;
        let page_bytes = self.shape.identity.page_bytes;
        let lpn = span.lpn;
        let old = self.map.get(lpn);
        let mut page = std::mem::take(&mut self.buffer);
        let mut after = Token::NONE;
        let is_whole = span.len == page_bytes;
        if !is_whole {
            page.fill(0);
            let read = self.read_page(lpn, old, &mut page, at);
            if let Err(error) = read {
                self.buffer = page;
                return Err(error);
            }
            after = read?;
        }
        if !page.is_empty() {
            let part = &mut page[span.start as usize..][..span.len as usize];
            match data {
                Some(data) => part.copy_from_slice(data),
                None => part.fill(0),
            }
        }
        self.lost.remove(&lpn.0);
        let (entry, freed) = self.enter(lpn, Kind::User, (!page.is_empty()).then_some(&page[..]), after);
        self.buffer = page;
        // The entry that made room may have been this page's own.
        let old = self.map.get(lpn);
        self.invalidate_but(old, entry);
        self.map.set(lpn, entry, old);
        self.stats.map_updates += 1;
        self.write_ring(false, at)?;
        let done = self.below.device.join(admitted, freed);
        Ok(self.below.device.join(done, after))
    }

    /// What a map entry pointed to is superfluous, now that a page has another one.
    pub(super) fn invalidate_but(&mut self, old: Ppn, entry: Ppn) {
        assert!(old != entry, "a page that was in the slot {entry:?} was given its place on the flash");
        if old.is_some() {
            self.invalidate(old);
        }
    }

    /// Reads a page for its other bytes to be written again.
    fn read_page(&mut self, lpn: Lpn, entry: Ppn, page: &mut [u8], at: SimTime) -> NamespaceResult<Token> {
        if self.lost.contains(&lpn.0) {
            return Err(lost(lpn));
        }
        if let Some(slot) = slot_of(entry) {
            if !page.is_empty() {
                page.copy_from_slice(self.ring.data(slot));
            }
            return Ok(self.ring.slots[slot].after);
        }
        if !entry.is_some() {
            return Ok(Token::NONE);
        }
        let list = self.sectors_of(entry);
        let issue = Issue::new(at, Cause::Host);
        self.read_sectors(&list, (!page.is_empty()).then_some(page), issue)?.map_err(|_| lost(lpn))
    }

    /// Reads sectors; `Err` within is the number of the first that cannot be read.
    pub(super) fn read_sectors(
        &mut self,
        list: &[SectorAddress],
        data: Option<&mut [u8]>,
        issue: Issue,
    ) -> NamespaceResult<Result<Token, usize>> {
        let mut done = Token::NONE;
        let mut data = data;
        let sector = self.shape.geometry.sector_bytes as usize;
        for (part, list) in list.chunks(MOST_ADDRESSES).enumerate() {
            let start = part * MOST_ADDRESSES * sector;
            let payload = match data.as_deref_mut() {
                Some(data) => Payload::Read(&mut data[start..start + list.len() * sector]),
                None => Payload::None,
            };
            let (read, errors) = self.below.vector(VectorCommand::Read(list.into()), payload, issue)?;
            if let Some(index) = errors.0.iter().map(|(index, _)| usize::from(*index)).min() {
                return Ok(Err(part * MOST_ADDRESSES + index));
            }
            done = self.below.device.join(done, read);
        }
        Ok(Ok(done))
    }

    fn read(&mut self, extent: Extent, mut data: Option<&mut [u8]>, at: SimTime) -> NamespaceResult<Token> {
        let sector = self.shape.geometry.sector_bytes;
        let (mut done, mut run) = (Token::NONE, Run::default());
        for span in extent.pages(self.shape.identity.page_bytes) {
            let entry = self.map.get(span.lpn);
            if self.lost.contains(&span.lpn.0) {
                return Err(lost(span.lpn));
            }
            let is_aligned = span.start.is_multiple_of(sector) && span.len.is_multiple_of(sector);
            if entry.is_some() && slot_of(entry).is_none() && is_aligned {
                let sectors = span.len / sector;
                if run.list.len() + sectors as usize > MOST_ADDRESSES {
                    let read = self.read_run(extent, &mut run, data.as_deref_mut(), at)?;
                    done = self.below.device.join(done, read);
                }
                if run.list.is_empty() {
                    run.at = span.at;
                }
                let first = self.address(entry);
                let from = first.sector + span.start / sector;
                run.list.extend((from..from + sectors).map(|sector| first.at(sector)));
                continue;
            }
            let read = self.read_run(extent, &mut run, data.as_deref_mut(), at)?;
            done = self.below.device.join(done, read);
            let mut page = std::mem::take(&mut self.buffer);
            page.fill(0);
            let read = self.read_page(span.lpn, entry, &mut page, at);
            if let Some(data) = data.as_deref_mut() {
                let part = &mut data[span.at as usize..][..span.len as usize];
                match page.get(span.start as usize..(span.start + span.len) as usize) {
                    Some(found) => part.copy_from_slice(found),
                    None => part.fill(0),
                }
            }
            self.buffer = page;
            done = self.below.device.join(done, read?);
        }
        let read = self.read_run(extent, &mut run, data, at)?;
        Ok(self.below.device.join(done, read))
    }

    fn read_run(
        &mut self,
        extent: Extent,
        run: &mut Run,
        data: Option<&mut [u8]>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        if run.list.is_empty() {
            return Ok(Token::NONE);
        }
        let bytes = run.list.len() * self.shape.geometry.sector_bytes as usize;
        let part = data.map(|data| &mut data[run.at as usize..][..bytes]);
        let read = self.read_sectors(&run.list, part, Issue::new(at, Cause::Host))?;
        run.list.clear();
        read.map_err(|index| {
            let byte = extent.offset + run.at + index as u64 * u64::from(self.shape.geometry.sector_bytes);
            lost(Lpn((byte / u64::from(self.shape.identity.page_bytes)) as u32))
        })
    }

    /// Makes durable what hosts were answered: the ring is written, filled up to the smallest write.
    pub(super) fn flush(&mut self, at: SimTime) -> NamespaceResult<Token> {
        if self.stopped.is_none() {
            if self.sabotage != Sabotage::FlushWithoutDrops {
                self.queue_drops(at)?;
            }
            if self.sabotage != Sabotage::FlushWithoutRing {
                self.write_ring(true, at)?;
            }
        } else if self.ring.waiting() > 0 || !self.drops.pending.is_empty() {
            // What was answered and is in memory alone will never be durable.
            self.refuse_if_stopped()?;
        }
        self.below.flush(Issue::new(at, Cause::Host).after(self.lines.done))
    }

    /// Drops the pages that an extent wholly covers.
    fn trim(&mut self, extent: Extent, at: SimTime) -> NamespaceResult<Token> {
        self.refuse_if_stopped()?;
        let (first, count) = extent.whole_pages(self.shape.identity.page_bytes);
        let (first, end) = (first as u32, (first + count) as u32);
        let mut next = first;
        let mut is_any = false;
        while let Some(lpn) = self.map.next_mapped(next, end) {
            let old = self.map.unset(lpn);
            self.invalidate(old);
            self.lost.remove(&lpn.0);
            (is_any, next) = (true, lpn.0 + 1);
        }
        if is_any {
            self.drop_pages(first, end - first, at)?;
        }
        Ok(Token::NONE)
    }

    /// Drops whole pages and writes zeroes over the partly covered ends where they hold data. Timing-only
    /// devices drop whole pages and are done.
    fn write_zeroes(&mut self, extent: Extent, at: SimTime) -> NamespaceResult<Token> {
        self.refuse_if_stopped()?;
        let page = self.shape.identity.page_bytes;
        let mut done = Token::NONE;
        for span in extent.ragged_ends(page).filter_map(|end| end.pages(page).next()) {
            if self.shape.stores_data && self.map.get(span.lpn).is_some() {
                let written = self.write_page(span, None, at)?;
                done = self.below.device.join(done, written);
            }
        }
        self.trim(extent, at)?;
        Ok(done)
    }
}
