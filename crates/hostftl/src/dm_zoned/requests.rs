//! Commands of hosts.

use super::format::NONE;
use super::zones::Use;
use super::{Chunk, DmZoned};
use crate::below::{Reading, Run, overlay};
use nandscape_core::command::Payload;
use nandscape_core::{
    BlockCommand, Cause, Extent, FtlError, Issue, NamespaceError, NamespaceResult, Op, SimTime, Subsystem,
    Token,
};

/// Blocks of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    pub chunk: u32,
    pub first: u32,
    pub count: u32,
}

impl<S: Subsystem> DmZoned<S> {
    #[inline]
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
        let reclaimed = self.reclaim_until(at);
        // What cannot be written any more can be read.
        if self.stopped.is_none() {
            reclaimed?;
        }
        self.reclaim.last_request = at;
        let done = match (op, payload) {
            (Op::Read, Payload::Read(data)) => self.read(extent, Some(data), at),
            (Op::Read, _) => self.read(extent, None, at),
            (Op::Write, Payload::Write(data)) => self.write(extent, Some(data), at),
            (Op::Write, _) => self.write(extent, None, at),
            (Op::Trim, _) => self.trim(extent),
            (Op::WriteZeroes, _) => self.write_zeroes(extent, at),
            (Op::Flush, _) => self.flush(at),
        }?;
        self.hosts.count(command, self.shape.page_bytes);
        if !is_durable || op == Op::Flush {
            return Ok(done);
        }
        // A durable command is one with a flush behind it, and counts as both.
        self.hosts.count(BlockCommand::FLUSH, self.shape.page_bytes);
        let flushed = self.flush(at)?;
        Ok(self.below.device.join(done, flushed))
    }

    fn flush(&mut self, at: SimTime) -> NamespaceResult<Token> {
        if self.stopped.is_some() || self.sabotage == super::Sabotage::FlushWithoutCommit {
            let so_far = self.below.device.join(self.written, self.meta.committed);
            return self.below.flush(Issue::new(at, Cause::Host).after(so_far));
        }
        self.commit(at)
    }

    /// The chunk of a byte, and the byte in it.
    #[inline]
    const fn chunk_of(&self, byte: u64) -> (u32, u64) {
        let (chunk, within) = self.shape.by_chunk.split(byte);
        (chunk as u32, within)
    }

    fn write(&mut self, extent: Extent, data: Option<&[u8]>, at: SimTime) -> NamespaceResult<Token> {
        self.refuse_if_stopped()?;
        let block = self.shape.block_bytes;
        let mut done = Token::NONE;
        let mut byte = extent.offset;
        while byte < extent.end() {
            let (chunk, within) = self.chunk_of(byte);
            let (first, start) = self.shape.by_block.split(within);
            let left = (extent.end() - byte).min(self.shape.chunk_bytes - within);
            let part = data.map(|data| &data[(byte - extent.offset) as usize..]);
            let written;
            if start > 0 || left < block {
                let len = (block - start).min(left);
                let place = Blocks { chunk, first: first as u32, count: 1 };
                let part = part.map(|part| &part[..len as usize]);
                written = self.write_part(place, (start as usize, len as usize), part, at)?;
                byte += len;
            } else {
                let count = (left / block) as u32;
                let blocks = Blocks { chunk, first: first as u32, count };
                let count;
                (count, written) = self.write_blocks(blocks, part, Token::NONE, at)?;
                byte += u64::from(count) * block;
            }
            done = self.below.device.join(done, written);
        }
        Ok(done)
    }

    /// Writes whole blocks of a chunk, or as many of them as go to the same zone; how many.
    fn write_blocks(
        &mut self,
        blocks: Blocks,
        data: Option<&[u8]>,
        after: Token,
        at: SimTime,
    ) -> NamespaceResult<(u32, Token)> {
        let Blocks { chunk, first, .. } = blocks;
        self.leave_chunk(chunk);
        self.meta.note_write();
        loop {
            let zones = self.chunks[chunk as usize];
            if zones.data == NONE {
                let data = self.take_random(at)?;
                self.map(chunk, Chunk { data, buffer: NONE });
                continue;
            }
            if self.shape.is_random(zones.data) {
                let done = self.put(zones.data, blocks, data, after, at)?;
                self.mark(zones.data, (first, blocks.count), true);
                self.tidy(chunk);
                return Ok((blocks.count, done));
            }
            let entry = *self.zones.of(zones.data);
            if first != entry.next || entry.next == entry.end {
                return Ok((blocks.count, self.write_buffer(blocks, data, after, at)?));
            }
            let count = blocks.count.min(entry.end - entry.next);
            self.activate(zones.data, at)?;
            match self.put(zones.data, Blocks { count, ..blocks }, data, after, at) {
                Ok(done) => {
                    self.advance(zones.data, count);
                    self.mark(zones.data, (first, count), true);
                    if zones.buffer != NONE {
                        self.mark(zones.buffer, (first, count), false);
                    }
                    self.tidy(chunk);
                    return Ok((count, done));
                }
                Err(error) => self.zone_failed(zones.data, error, at)?,
            }
        }
    }

    /// Writes blocks of a chunk to its buffer.
    fn write_buffer(
        &mut self,
        blocks: Blocks,
        data: Option<&[u8]>,
        after: Token,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let Blocks { chunk, first, count } = blocks;
        let mut zones = self.chunks[chunk as usize];
        if zones.buffer == NONE {
            zones.buffer = self.take_random(at)?;
            self.map(chunk, zones);
        }
        let done = self.put(zones.buffer, blocks, data, after, at)?;
        self.mark(zones.buffer, (first, count), true);
        self.mark(zones.data, (first, count), false);
        self.tidy(chunk);
        Ok(done)
    }

    /// Writes blocks to a zone, for the host.
    fn put(
        &mut self,
        zone: u32,
        blocks: Blocks,
        data: Option<&[u8]>,
        after: Token,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let after = self.below.device.join(after, self.zones.of(zone).ready);
        self.write_zone(zone, (blocks.first, blocks.count), data, Issue::new(at, Cause::Host).after(after))
    }

    /// Writes blocks to a zone.
    pub(super) fn write_zone(
        &mut self,
        zone: u32,
        (first, count): (u32, u32),
        data: Option<&[u8]>,
        issue: Issue,
    ) -> NamespaceResult<Token> {
        let extent = Extent::new(self.shape.offset(zone, first), u64::from(count) * self.shape.block_bytes);
        let done = self.below.write(extent, data.map(|data| &data[..extent.len as usize]), issue);
        let done = done.map_err(|error| match error {
            NamespaceError::Ftl(FtlError::ReadOnly { .. }) => self.stopped_below(),
            error => error,
        })?;
        self.written = self.below.device.join(self.written, done);
        Ok(done)
    }

    /// Writes a part of a block: reads the rest of it, where it holds anything.
    fn write_part(
        &mut self,
        place: Blocks,
        (start, len): (usize, usize),
        data: Option<&[u8]>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.fill(0);
        let block = self.shape.block_bytes;
        let offset = u64::from(place.chunk) * self.shape.chunk_bytes + u64::from(place.first) * block;
        let kept = (!buffer.is_empty()).then_some(&mut *buffer);
        let result = self
            .read(Extent::new(offset, block), kept, at)
            .and_then(|read| self.write_blocks(place, overlay(&mut buffer, start, len, data), read, at));
        self.buffer = buffer;
        Ok(result?.1)
    }

    fn read(&mut self, extent: Extent, mut data: Option<&mut [u8]>, at: SimTime) -> NamespaceResult<Token> {
        let mut reading = Reading::new(at);
        let block = self.shape.block_bytes;
        let mut byte = extent.offset;
        let mut last_chunk = NONE;
        while byte < extent.end() {
            let (chunk, within) = self.chunk_of(byte);
            let (index, start) = self.shape.by_block.split(within);
            let index = index as u32;
            let len = (block - start).min(extent.end() - byte);
            let position = byte - extent.offset;
            byte += len;
            let zones = self.chunks[chunk as usize];
            if chunk != last_chunk {
                self.use_chunk(zones);
                last_chunk = chunk;
            }
            let zone = if self.zones.is_valid(zones.data, index) {
                zones.data
            } else if self.zones.is_valid(zones.buffer, index) {
                zones.buffer
            } else {
                if let Some(data) = data.as_deref_mut() {
                    data[position as usize..][..len as usize].fill(0);
                }
                continue;
            };
            let offset = self.shape.offset(zone, index) + start;
            reading.add(&mut self.below, Run { zone, offset, at: position, len }, data.as_deref_mut())?;
        }
        reading.end(&mut self.below, data)
    }

    /// Drops the blocks that an extent wholly covers.
    fn trim(&mut self, extent: Extent) -> NamespaceResult<Token> {
        self.refuse_if_stopped()?;
        let block = self.shape.block_bytes;
        let (mut byte, end) = (extent.offset.next_multiple_of(block), extent.end() / block * block);
        while byte < end {
            let (chunk, within) = self.chunk_of(byte);
            let len = (end - byte).min(self.shape.chunk_bytes - within);
            byte += len;
            let zones = self.chunks[chunk as usize];
            if zones == Chunk::UNMAPPED {
                continue;
            }
            self.leave_chunk(chunk);
            self.meta.note_write();
            for zone in [zones.data, zones.buffer].into_iter().filter(|zone| *zone != NONE) {
                self.mark(zone, ((within / block) as u32, (len / block) as u32), false);
            }
            self.tidy(chunk);
        }
        Ok(Token::NONE)
    }

    /// Drops whole blocks and writes zeroes over the partly covered ends where they hold data. Timing-only
    /// devices drop whole blocks and are done.
    fn write_zeroes(&mut self, extent: Extent, at: SimTime) -> NamespaceResult<Token> {
        self.refuse_if_stopped()?;
        let block = self.shape.block_bytes as u32;
        let mut done = Token::NONE;
        for end in extent.ragged_ends(block) {
            let (chunk, within) = self.chunk_of(end.offset);
            let (first, start) = self.shape.by_block.split(within);
            let (first, zones) = (first as u32, self.chunks[chunk as usize]);
            let holds = self.zones.is_valid(zones.data, first) || self.zones.is_valid(zones.buffer, first);
            if self.shape.stores_data && holds {
                let place = Blocks { chunk, first, count: 1 };
                let written = self.write_part(place, (start as usize, end.len as usize), None, at)?;
                done = self.below.device.join(done, written);
            }
        }
        self.trim(extent)?;
        Ok(done)
    }

    /// Conventional zones of a chunk count as used now.
    #[inline]
    fn use_chunk(&mut self, zones: Chunk) {
        for zone in [zones.data, zones.buffer] {
            if zone != NONE && self.shape.is_random(zone) {
                self.zones.used.touch(zone);
            }
        }
    }

    /// After a change to a chunk: zones without a valid block are released; a buffer takes the place of a
    /// data zone that has none.
    pub(super) fn tidy(&mut self, chunk: u32) {
        let before = self.chunks[chunk as usize];
        let mut zones = before;
        let is_empty = |this: &Self, zone: u32| zone != NONE && this.zones.of(zone).valid == 0;
        if is_empty(self, zones.buffer) {
            zones.buffer = NONE;
        }
        if is_empty(self, zones.data) {
            self.stats.merges_switch += u64::from(zones.buffer != NONE);
            zones = Chunk { data: zones.buffer, buffer: NONE };
        }
        if zones != before {
            self.map(chunk, zones);
            for zone in [before.data, before.buffer] {
                let is_kept = zone == NONE || zone == zones.data || zone == zones.buffer;
                if !is_kept {
                    debug_assert!(matches!(self.zones.of(zone).purpose, Use::Data | Use::Buffer));
                    self.release(zone);
                }
            }
        }
        self.use_chunk(zones);
    }
}
