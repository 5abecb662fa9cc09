//! Commands of hosts.

use super::config::DEFAULT_LOG;
use super::format::LOST;
use super::{Shape, ZoneMap};
use crate::below::{Reading, Run, lost, overlay};
use nandscape_core::addr::PageSpan;
use nandscape_core::command::Payload;
use nandscape_core::{
    BlockCommand, Cause, Extent, FtlError, Hint, Issue, Lpn, NamespaceResult, Op, Ppn, SimTime, Subsystem,
    Token,
};

impl Shape {
    /// The whole unit that an extent is, if it is one.
    #[inline]
    fn single_unit(&self, extent: Extent) -> Option<Lpn> {
        let lpn = extent.offset.checked_shr(self.unit_shift)?;
        let is_single = extent.len == u64::from(self.unit_bytes) && lpn << self.unit_shift == extent.offset;
        is_single.then_some(Lpn(lpn as u32))
    }
}

impl<S: Subsystem> ZoneMap<S> {
    /// The first byte of a place in the zoned namespace.
    #[inline]
    pub(super) fn offset(&self, place: Ppn) -> u64 {
        let zone = self.zones.block_of(place);
        let index = place.0 - zone * self.space.zone_units;
        self.shape.start(zone) + u64::from(index) * u64::from(self.shape.unit_bytes)
    }

    #[inline]
    pub(super) fn block(
        &mut self,
        command: BlockCommand,
        payload: Payload<'_>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let BlockCommand { op, extent, hint, is_durable } = command;
        if op != Op::Flush && extent.end() > self.shape.capacity_bytes {
            let capacity_bytes = self.shape.capacity_bytes;
            return Err(FtlError::OutOfRange { extent, capacity_bytes }.into());
        }
        let done = match (op, payload) {
            (Op::Read, Payload::Read(data)) => self.read(extent, Some(data), at),
            (Op::Read, _) => self.read(extent, None, at),
            (Op::Write, Payload::Write(data)) => self.write(extent, Some(data), hint, at),
            (Op::Write, _) => self.write(extent, None, hint, at),
            (Op::Trim, _) => self.trim(extent, at),
            (Op::WriteZeroes, _) => self.write_zeroes(extent, at),
            (Op::Flush, _) => self.flush_records(at),
        }?;
        self.hosts.count(command, self.shape.page_bytes);
        if !is_durable || op == Op::Flush {
            return Ok(done);
        }
        // A durable command is one with a flush behind it, and counts as both.
        self.hosts.count(BlockCommand::FLUSH, self.shape.page_bytes);
        let flushed = self.flush_records(at)?;
        Ok(self.below.device.join(done, flushed))
    }

    #[inline]
    fn write(
        &mut self,
        extent: Extent,
        data: Option<&[u8]>,
        hint: Hint,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let log = usize::from(hint.0);
        let log = if log < self.space.host_logs { log } else { DEFAULT_LOG };
        if self.stopped.is_some() || !self.collector.failed.is_empty() {
            self.refuse_if_stopped()?;
            self.evacuate(at)?;
        }
        if let Some(lpn) = self.shape.single_unit(extent) {
            return Ok(self.write_units(lpn, 1, data, log, at)?.1);
        }
        let unit = u64::from(self.shape.unit_bytes);
        let mut done = Token::NONE;
        let mut byte = extent.offset;
        while byte < extent.end() {
            let (lpn, start) = (Lpn((byte / unit) as u32), byte % unit);
            let left = extent.end() - byte;
            let part = data.map(|data| &data[(byte - extent.offset) as usize..]);
            let written;
            if start > 0 || left < unit {
                let len = (unit - start).min(left);
                let span = PageSpan { lpn, start: start as u32, len: len as u32, at: byte - extent.offset };
                written = self.write_part(span, part.map(|part| &part[..len as usize]), log, at)?;
                byte += len;
            } else {
                let units;
                (units, written) = self.write_units(lpn, (left / unit) as u32, part, log, at)?;
                byte += u64::from(units) * unit;
            }
            done = self.below.device.join(done, written);
        }
        Ok(done)
    }

    /// Writes some of the whole units from `lpn` on; how many.
    #[inline(always)]
    fn write_units(
        &mut self,
        lpn: Lpn,
        units: u32,
        data: Option<&[u8]>,
        log: usize,
        at: SimTime,
    ) -> NamespaceResult<(u32, Token)> {
        let units = self.make_room(units, at)?;
        // Likely cache misses: asked for now, they arrive while the write is submitted.
        let old = self.map.get(lpn);
        if old.0 < LOST.0 {
            self.zones.prefetch(old);
        }
        let (place, units, done) = self.append(log, units, data, Issue::new(at, Cause::Host))?;
        self.remap(lpn, place, old, at)?;
        for index in 1..units {
            let lpn = Lpn(lpn.0 + index);
            self.remap(lpn, Ppn(place.0 + index), self.map.get(lpn), at)?;
        }
        self.space.host_units[log][0] += u64::from(units);
        Ok((units, done))
    }

    /// Writes a part of a unit: reads the rest of it, where it holds anything.
    fn write_part(
        &mut self,
        span: PageSpan,
        data: Option<&[u8]>,
        log: usize,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        // Before the unit is looked up: collection moves it.
        self.make_room(1, at)?;
        let old = self.map.get(span.lpn);
        let mut issue = Issue::new(at, Cause::Host);
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.fill(0);
        let result = self.read_unit(span.lpn, old, &mut buffer, issue).and_then(|read| {
            issue.after = read;
            let unit = overlay(&mut buffer, span.start as usize, span.len as usize, data);
            self.append(log, 1, unit, issue)
        });
        self.buffer = buffer;
        let (place, _, done) = result?;
        self.remap(span.lpn, place, old, at)?;
        self.space.host_units[log][0] += 1;
        Ok(done)
    }

    /// Reads a unit for its other bytes to be written again.
    fn read_unit(&mut self, lpn: Lpn, place: Ppn, buffer: &mut [u8], issue: Issue) -> NamespaceResult<Token> {
        match place {
            Ppn::NONE => Ok(Token::NONE),
            LOST => Err(lost(lpn)),
            place => {
                let extent = Extent::new(self.offset(place), self.shape.unit_bytes.into());
                self.below.read(extent, (!buffer.is_empty()).then_some(buffer), issue)
            }
        }
    }

    fn read(&mut self, extent: Extent, mut data: Option<&mut [u8]>, at: SimTime) -> NamespaceResult<Token> {
        let mut reading = Reading::new(at);
        for span in extent.pages(self.shape.unit_bytes) {
            let place = self.map.get(span.lpn);
            if place == LOST {
                return Err(lost(span.lpn));
            }
            let len = u64::from(span.len);
            if !place.is_some() {
                if let Some(data) = data.as_deref_mut() {
                    data[span.at as usize..][..len as usize].fill(0);
                }
                continue;
            }
            let offset = self.offset(place) + u64::from(span.start);
            let run = Run { zone: self.zones.block_of(place), offset, at: span.at, len };
            reading.add(&mut self.below, run, data.as_deref_mut())?;
        }
        reading.end(&mut self.below, data)
    }

    /// Drops the units that an extent wholly covers.
    fn trim(&mut self, extent: Extent, at: SimTime) -> NamespaceResult<Token> {
        self.refuse_if_stopped()?;
        let (first, count) = extent.whole_pages(self.shape.unit_bytes);
        let (first, end) = (first as u32, (first + count) as u32);
        let mut next = first;
        while let Some(lpn) = self.map.next_mapped(next, end) {
            if next == first {
                self.record_drop(Lpn(first), count as u32, at)?;
            }
            let old = self.map.unset(lpn);
            if old.0 < LOST.0 {
                self.invalidate(old);
            }
            next = lpn.0 + 1;
        }
        Ok(Token::NONE)
    }

    /// Drops whole units and writes zeroes over the partly covered ends where they hold data. Timing-only
    /// devices drop whole units and are done.
    fn write_zeroes(&mut self, extent: Extent, at: SimTime) -> NamespaceResult<Token> {
        self.refuse_if_stopped()?;
        let unit = self.shape.unit_bytes;
        let mut done = Token::NONE;
        for span in extent.ragged_ends(unit).filter_map(|end| end.pages(unit).next()) {
            if self.shape.stores_data && self.map.get(span.lpn).is_some() {
                self.evacuate(at)?;
                let written = self.write_part(span, None, DEFAULT_LOG, at)?;
                done = self.below.device.join(done, written);
            }
        }
        self.trim(extent, at)?;
        Ok(done)
    }
}
