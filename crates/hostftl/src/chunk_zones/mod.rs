//! Zones made of the chunks of a namespace with vector access: a zone is a virtual block, a chunk of each of
//! some parallel units. The host keeps the states, as a zoned device would.
//!
//! Invariants:
//! * the sectors below the write pointer of a zone are written, in stripes over its chunks, and no others of
//!   an active zone are;
//! * what a start cannot go on with (chunks that do not end in one stripe, or that closed early) is a full
//!   zone, of the capacity up to the first sector that is missing, whose reset is recommended;
//! * a zone with an offline chunk is offline.
//!
//! An open chunk cannot be reset, and has no mark for the end of its data: the rest of a zone is padded when
//! it is finished, and where the device asks for it when it is reset.

mod start;
mod tails;

use crate::below::Below;
use crate::error::HostFtlError;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::divide::Splitter;
use nandscape_core::vector::{
    MOST_ADDRESSES, SectorAddress, Stripes, VectorCommand, VectorError, VectorGeometry,
};
use nandscape_core::zone::{
    Zone, ZoneAttributes, ZoneCommand, ZoneContents, ZoneCounts, ZoneError, ZoneShape, ZoneState,
};
use nandscape_core::{
    Allocation, Answer, BlockCommand, Cause, Clocked, Command, Control, Extent, FlashError, FtlError,
    HostReports, Inspect, Issue, IssueControl, NamespaceError, NamespaceInfo, NamespaceResult, Op, Ppn,
    Reply, SimTime, Submitted, Subsystem, Token, ZoneReports,
};
use nandscape_namespace::zones::{Change, ZoneLayout, ZoneTable};
use std::collections::BTreeMap;
use tails::Tails;

const NAME: &str = "zones of chunks";

/// A zoned namespace over the namespace 0 of a subsystem, which has vector access.
pub struct ChunkZones<S> {
    below: Below<S>,
    infos: [NamespaceInfo; 1],
    geometry: VectorGeometry,
    stripes: Stripes,
    by_block: Splitter,
    by_zone: Splitter,
    table: ZoneTable,
    /// Zones that ended early, and the bytes that can be read there.
    ended: BTreeMap<u32, u64>,
    /// Data that the device does not give back yet.
    tails: Tails,
    stores_data: bool,
    hosts: HostCounts,
    counts: ZoneCounts,
    /// Completes when what was written so far is.
    writes: Token,
    /// Completes when what the start erased and padded is. A write waits for it: stale sectors of another
    /// chunk of its zone must not outlive it.
    started: Token,
    issued: (Cause, Token),
}

impl<S: Subsystem> ChunkZones<S> {
    /// Zones of a chunk of each of `width` parallel units, as the chunks hold them.
    ///
    /// # Errors
    ///
    /// A subsystem without vector access; a width that does not divide the parallel units.
    pub fn new(device: S, width: u32) -> Result<Self, HostFtlError> {
        let mut below = Below { device };
        let lacks = |reason: String| HostFtlError::Device { layer: NAME, reason };
        let Some(geometry) = below.geometry() else {
            return Err(lacks("it has no vector access".to_owned()));
        };
        if width == 0 || !geometry.all_units().is_multiple_of(width) {
            let units = geometry.all_units();
            return Err(lacks(format!(
                "zones over {width} parallel units: expected a width that divides the {units} that there are"
            )));
        }
        let info = below.device.namespaces()[0].clone();
        let stores_data = below.flash().capabilities().stores_data;
        let stripes = Stripes::new(&geometry, width);
        let unit = geometry.write_min;
        let capacity = stripes.all() / u64::from(unit);
        let zones = geometry.all_units() / width * geometry.chunks;
        let block_bytes = unit * geometry.sector_bytes;
        let layout = ZoneLayout {
            zones,
            conventional: 0,
            size: capacity,
            capacity,
            block_bytes,
            max_active: None,
            max_open: None,
            extension_bytes: 0,
            random: None,
            reads_across: false,
        };
        let size = capacity * u64::from(block_bytes);
        let shape = ZoneShape {
            zones,
            conventional: 0,
            size,
            capacity: size,
            block: block_bytes,
            max_active: None,
            max_open: None,
            durable_pages: false,
        };
        let info = NamespaceInfo {
            capacity_bytes: size * u64::from(zones),
            page_bytes: block_bytes,
            zones: Some(shape),
            ..info
        };
        let mut this = Self {
            below,
            infos: [info],
            tails: Tails::new(&geometry, width, stores_data),
            geometry,
            stripes,
            by_block: Splitter::new(u64::from(block_bytes)),
            by_zone: Splitter::new(size),
            table: ZoneTable::new(layout),
            ended: BTreeMap::new(),
            stores_data,
            hosts: HostCounts::default(),
            counts: ZoneCounts::default(),
            writes: Token::NONE,
            started: Token::NONE,
            issued: (Cause::Host, Token::NONE),
        };
        this.start()?;
        Ok(this)
    }

    const fn issued_at(&self, at: SimTime) -> Issue {
        let (cause, after) = self.issued;
        Issue::new(at, cause).after(after)
    }

    const fn shape(&self) -> &ZoneShape {
        self.infos[0].zones.as_ref().expect("it has zones")
    }

    /// A chunk of a zone, by its number there: neighbouring zones share no parallel unit.
    fn chunk(&self, zone: u32, number: u32) -> SectorAddress {
        let sets = self.geometry.all_units() / self.stripes.chunks;
        self.geometry.chunk_in(zone % sets * self.stripes.chunks + number, zone / sets)
    }

    /// The addresses of sectors of a zone.
    fn addresses(&self, zone: u32, from: u64, count: u64) -> Box<[SectorAddress]> {
        let address = |sector| {
            let (chunk, sector) = self.stripes.place(sector);
            self.chunk(zone, chunk).at(sector)
        };
        (from..from + count).map(address).collect()
    }

    /// The whole logical blocks of an extent: the first, and how many.
    fn blocks(&self, extent: Extent) -> NamespaceResult<(u64, u64)> {
        let (first, before) = self.by_block.split(extent.offset);
        let (blocks, rest) = self.by_block.split(extent.len);
        if before > 0 || rest > 0 {
            let expected = format!("whole write units of {} bytes", self.by_block.divisor());
            return Err(NamespaceError::Refused { extent, expected });
        }
        Ok((first, blocks))
    }

    fn block(&mut self, command: BlockCommand, payload: Payload<'_>, at: SimTime) -> NamespaceResult<Token> {
        let BlockCommand { op, extent, is_durable, .. } = command;
        let done = match (op, payload) {
            (Op::Read, Payload::Read(data)) => self.read(extent, Some(data), at),
            (Op::Read, _) => self.read(extent, None, at),
            (Op::Write | Op::WriteZeroes, payload) => {
                let (first, blocks) = self.blocks(extent)?;
                let written = self.table.write(first, blocks)?;
                self.put(written.zone, (written.from, blocks), &payload, at)
            }
            // What a host deallocates in a zone stays until the zone is reset.
            (Op::Trim, _) => {
                let (first, blocks) = self.blocks(extent)?;
                self.table.check_read(first, blocks)?;
                Ok(Token::NONE)
            }
            (Op::Flush, _) => self.flush(at),
        }?;
        self.hosts.count(command, self.infos[0].page_bytes);
        if is_durable && op != Op::Flush { self.durable(done, at) } else { Ok(done) }
    }

    fn durable(&mut self, done: Token, at: SimTime) -> NamespaceResult<Token> {
        self.hosts.count(BlockCommand::FLUSH, self.infos[0].page_bytes);
        let flushed = self.flush(at)?;
        Ok(self.below.device.join(done, flushed))
    }

    /// Answered data may lie behind sectors of its zone that are under way on other parallel units.
    fn flush(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let issue = self.issued_at(at);
        let after = self.below.device.join(issue.after, self.writes);
        self.below.flush(issue.after(after))
    }

    /// Writes blocks of a zone that the table has allowed.
    fn put(
        &mut self,
        zone: u32,
        (from, blocks): (u64, u64),
        payload: &Payload<'_>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let unit = u64::from(self.geometry.write_min);
        let sector_bytes = self.geometry.sector_bytes as usize;
        let most = MOST_ADDRESSES as u64 / unit * unit;
        let zeroes;
        let data = match payload {
            Payload::Write(data) if data.len() as u64 == blocks * u64::from(self.shape().block) => {
                Some(*data)
            }
            Payload::Write(_) => return Err(ZoneError::InvalidField.into()),
            _ if self.stores_data => {
                zeroes = vec![0; (blocks * unit) as usize * sector_bytes];
                Some(&zeroes[..])
            }
            _ => None,
        };
        self.counts.opens += u64::from(from == 0);
        let mut done = Token::NONE;
        let (mut sector, end) = (from * unit, (from + blocks) * unit);
        while sector < end {
            let count = most.min(end - sector);
            let list = self.addresses(zone, sector, count);
            let start = (sector - from * unit) as usize * sector_bytes;
            let part = data.map(|data| &data[start..start + count as usize * sector_bytes]);
            let issue = self.issued_at(at);
            let issue = issue.after(self.below.device.join(issue.after, self.started));
            let payload = part.map_or(Payload::None, Payload::Write);
            let (written, errors) = self.below.vector(VectorCommand::Write(list), payload, issue)?;
            done = self.below.device.join(done, written);
            if let Some(failed) = errors.0.iter().map(|(index, _)| u64::from(*index)).min() {
                return Err(self.end_early(zone, sector + failed));
            }
            self.tails.push(zone, part);
            sector += count;
        }
        if self.table.state(zone) == ZoneState::Full {
            self.tails.drop_zone(zone);
        }
        self.writes = self.below.device.join(self.writes, done);
        Ok(done)
    }

    /// A zone ends before a sector that could not be written.
    #[cold]
    fn end_early(&mut self, zone: u32, sector: u64) -> NamespaceError {
        self.table.finish_by_device(zone);
        self.table.recommend(zone, ZoneAttributes::RESET_RECOMMENDED);
        self.ended.insert(zone, sector * u64::from(self.geometry.sector_bytes));
        ZoneError::Full.into()
    }

    /// Bytes of a zone that hold data of the host.
    fn readable(&self, zone: u32) -> u64 {
        let written = self.table.written(zone) * u64::from(self.shape().block);
        self.ended.get(&zone).map_or(written, |end| written.min(*end))
    }

    fn read(&mut self, extent: Extent, mut data: Option<&mut [u8]>, at: SimTime) -> NamespaceResult<Token> {
        let sector = u64::from(self.geometry.sector_bytes);
        let block = u64::from(self.shape().block);
        let first = extent.offset / block;
        self.table.check_read(first, extent.end().div_ceil(block) - first)?;
        let (zone, from) = self.by_zone.split(extent.offset);
        let zone = zone as u32;
        if let Some(data) = data.as_deref_mut() {
            data.fill(0);
        }
        let end = (from + extent.len).min(self.readable(zone));
        if from >= end {
            return Ok(Token::NONE);
        }
        let on_flash = match self.table.state(zone) {
            ZoneState::Full => end,
            _ => end.min(self.tails.first_of(self.readable(zone))),
        };
        let mut done = Token::NONE;
        if from < on_flash {
            let (low, high) = (from / sector, on_flash.div_ceil(sector));
            let mut whole = vec![0; if data.is_some() { ((high - low) * sector) as usize } else { 0 }];
            let part = data.is_some().then_some(&mut whole[..]);
            done = self.read_sectors(zone, low, high, part, at)?;
            if let Some(data) = data.as_deref_mut() {
                let start = (from - low * sector) as usize;
                let len = (on_flash - from) as usize;
                data[..len].copy_from_slice(&whole[start..start + len]);
            }
        }
        if let Some(data) = data
            && end > on_flash
        {
            let begin = from.max(on_flash);
            self.tails.copy(
                zone,
                self.readable(zone),
                begin,
                &mut data[(begin - from) as usize..(end - from) as usize],
            );
        }
        Ok(done)
    }

    fn read_sectors(
        &mut self,
        zone: u32,
        from: u64,
        end: u64,
        mut data: Option<&mut [u8]>,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let sector = self.geometry.sector_bytes as usize;
        let mut done = Token::NONE;
        for first in (from..end).step_by(MOST_ADDRESSES) {
            let count = (end - first).min(MOST_ADDRESSES as u64);
            let list = self.addresses(zone, first, count);
            let start = (first - from) as usize * sector;
            let part = data.as_deref_mut().map(|data| &mut data[start..start + count as usize * sector]);
            let issue = self.issued_at(at);
            let payload = part.map_or(Payload::None, Payload::Read);
            let (read, errors) = self.below.vector(VectorCommand::Read(list), payload, issue)?;
            if !errors.0.is_empty() {
                let page = Ppn((first / u64::from(self.geometry.pages.sectors)) as u32);
                return Err(FtlError::Flash(FlashError::Uncorrectable { page }).into());
            }
            done = self.below.device.join(done, read);
        }
        Ok(done)
    }

    fn zone_command(&mut self, command: &ZoneCommand, payload: &Payload<'_>, at: SimTime) -> Submitted {
        let block = u64::from(self.shape().block);
        match *command {
            ZoneCommand::Append { zone, len, hint, is_durable } => {
                let extent = Extent::new(zone, len);
                let (start, blocks) = self.blocks(extent)?;
                let written = self.table.append(start, blocks)?;
                let mut done = self.put(written.zone, (written.from, blocks), payload, at)?;
                self.counts.appends += 1;
                self.hosts.count(BlockCommand::new(Op::Write, extent, hint), self.infos[0].page_bytes);
                if is_durable {
                    done = self.durable(done, at)?;
                }
                Ok(Answer { done, reply: Reply::Appended(zone + written.from * block) })
            }
            ZoneCommand::Manage { action, zone } => {
                if zone.is_some_and(|zone| !zone.is_multiple_of(block)) {
                    return Err(ZoneError::InvalidField.into());
                }
                let mut changes = Vec::new();
                let managed = self.table.manage(action, zone.map(|zone| zone / block), &mut changes);
                let done = self.changed(&changes, at)?;
                managed?;
                Ok(done.into())
            }
            ZoneCommand::Report { from, filter, room } => {
                let report = self.table.report(from / block, filter, room)?;
                Ok(Answer { done: Token::NONE, reply: Reply::Zones(Box::new(report)) })
            }
            ZoneCommand::FlushRandom { .. } | ZoneCommand::Describe { .. } => {
                Err(NamespaceError::NotSupported { command: command.name() })
            }
        }
    }

    /// Does to the chunks what changes of zones ask for.
    fn changed(&mut self, changes: &[Change], at: SimTime) -> NamespaceResult<Token> {
        let mut done = self.issued.1;
        for change in changes {
            let one = match change.to {
                ZoneState::Empty => {
                    self.counts.resets += 1;
                    self.reset(change, at)?
                }
                ZoneState::Full => {
                    self.counts.finishes += 1;
                    self.finish(change, at)?
                }
                ZoneState::ExplicitlyOpen => {
                    self.counts.opens += u64::from(change.from == ZoneState::Empty);
                    continue;
                }
                ZoneState::Closed => {
                    self.counts.closes += 1;
                    continue;
                }
                _ => continue,
            };
            done = self.below.device.join(done, one);
        }
        Ok(done)
    }

    fn reset(&mut self, change: &Change, at: SimTime) -> NamespaceResult<Token> {
        let zone = change.zone;
        self.tails.drop_zone(zone);
        let capacity = self.table.layout().capacity;
        let erased = if change.from == ZoneState::Full {
            // Its chunks are what the device says they are: some ended early.
            let chunks: Vec<SectorAddress> =
                (0..self.stripes.chunks).map(|number| self.chunk(zone, number)).collect();
            let reports = self.below.chunks()?;
            let written: Vec<u32> = chunks
                .iter()
                .map(|chunk| {
                    let found = &reports[self.geometry.chunk_number(*chunk) as usize];
                    start::programmed(found)
                })
                .collect();
            self.erase(&chunks, &written, at)?
        } else {
            let written = change.written * u64::from(self.geometry.write_min);
            let (chunks, written): (Vec<_>, Vec<_>) = (0..self.stripes.chunks)
                .map(|number| (self.chunk(zone, number), self.written_of(number, written)))
                .unzip();
            self.erase(&chunks, &written, at)?
        };
        if self.ended.remove(&zone).is_some() && erased.is_ok() {
            self.table.set_capacity(zone, capacity);
        }
        erased.map_err(|_| {
            self.table.fail(zone);
            ZoneError::Offline.into()
        })
    }

    /// Sectors of a chunk of a zone below the zone's write pointer.
    fn written_of(&self, chunk: u32, written: u64) -> u32 {
        let (mut low, mut high) = (0, self.stripes.sectors);
        // The first sector whose place is not below.
        while low < high {
            let middle = u32::midpoint(low, high);
            if self.stripes.index(chunk, middle) < written { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Erases chunks with so many sectors each; `Err` within: one of them is offline now.
    fn erase(
        &mut self,
        chunks: &[SectorAddress],
        written: &[u32],
        at: SimTime,
    ) -> NamespaceResult<Result<Token, VectorError>> {
        let mut done = Token::NONE;
        for (chunk, written) in chunks.iter().zip(written) {
            let issue = self.issued_at(at);
            match self.below.erase_chunk(*chunk, *written, &self.geometry, issue)? {
                Ok(one) => done = self.below.device.join(done, one),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(done))
    }

    /// Pads the rest of a zone.
    fn finish(&mut self, change: &Change, at: SimTime) -> NamespaceResult<Token> {
        let zone = change.zone;
        self.tails.drop_zone(zone);
        let written = change.written * u64::from(self.geometry.write_min);
        let mut done = Token::NONE;
        for number in 0..self.stripes.chunks {
            let from = self.written_of(number, written);
            let issue = self.issued_at(at);
            let chunk = self.chunk(zone, number);
            let one = self.below.pad_chunk(chunk, (from, self.stripes.sectors), &self.geometry, issue)?;
            done = self.below.device.join(done, one);
        }
        self.writes = self.below.device.join(self.writes, done);
        Ok(done)
    }
}

nandscape_core::no_state!(impl [S: Subsystem] ChunkZones<S>: "zones over chunks");

impl<S: Subsystem + Send> Subsystem for ChunkZones<S> {
    fn namespaces(&self) -> &[NamespaceInfo] {
        &self.infos
    }

    fn prepare(&self, _: u32, _: Op, _: Extent) {}

    fn submit(&mut self, _: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        match command {
            Command::Block(command) => Ok(self.block(command, payload, at)?.into()),
            Command::Zone(command) => self.zone_command(&command, &payload, at),
            Command::Vector(command) if command.writes_nothing() => {
                self.below.device.submit(0, Command::Vector(command), payload, at)
            }
            command => Err(NamespaceError::NotSupported { command: command.name() }),
        }
    }

    fn join(&mut self, a: Token, b: Token) -> Token {
        self.below.device.join(a, b)
    }

    fn idle(&mut self, at: SimTime, until: SimTime) -> NamespaceResult<()> {
        self.below.device.idle(at, until)
    }

    fn shutdown(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let flushed = self.flush(at)?;
        let below = self.below.device.shutdown(at)?;
        Ok(self.below.device.join(flushed, below))
    }

    fn allocation(&self, _: u32, extent: Extent) -> Allocation {
        let (zone, from) = self.by_zone.split(extent.offset);
        let readable = if zone < u64::from(self.shape().zones) { self.readable(zone as u32) } else { 0 };
        let is_mapped = from < readable;
        let end = if is_mapped { readable } else { self.shape().size };
        Allocation { is_mapped, bytes: (end - from).min(extent.len) }
    }

    fn inspect(&self) -> Inspect<'_> {
        let host_bytes = self.table.bytes() + self.tails.memory();
        Inspect { hosts: Some(self), zones: Some(self), host_bytes, ..self.below.device.inspect() }
    }

    fn control(&mut self) -> Control<'_> {
        Control { issue: Some(self), ..Control::default() }
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.below.device.reset_counters(at);
        self.hosts = HostCounts::default();
        self.counts = ZoneCounts::default();
        (self.writes, self.started) = (Token::NONE, Token::NONE);
    }

    fn check_invariants(&self) {
        self.below.device.check_invariants();
        self.table.check_invariants();
        self.check_chunks();
    }
}

impl<S: Subsystem> Clocked for ChunkZones<S> {
    nandscape_core::delegate_clock!(self, self.below.device);
}

impl<S: Subsystem> IssueControl for ChunkZones<S> {
    fn issue(&mut self, cause: Cause, after: Token) {
        self.issued = (cause, after);
    }
}

impl<S: Subsystem> HostReports for ChunkZones<S> {
    fn host_counts(&self, _: u32) -> HostCounts {
        self.hosts
    }
}

impl<S: Subsystem> ZoneReports for ChunkZones<S> {
    fn zone_shape(&self, _: u32) -> ZoneShape {
        *self.shape()
    }

    fn zone(&self, _: u32, zone: u32) -> Zone {
        self.table.describe_zone(zone)
    }

    fn contents(&self, _: u32, _: u32) -> ZoneContents {
        ZoneContents::default()
    }

    fn zone_counts(&self, _: u32) -> ZoneCounts {
        self.counts
    }
}
