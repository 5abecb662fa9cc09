//! A namespace with vector access over a flash device.
//!
//! Invariants:
//! * a chunk's write pointer is whole write units, and the flash has programmed every page below it;
//! * nothing above the write pointer is programmed in a chunk that is free or open;
//! * a chunk with a bad block is offline.

use super::chunks::{Chunk, Chunks};
use super::events::Events;
use super::layout::Layout;
use super::setup::{FailedProgram, VectorSetup};
use super::tag::{VectorOob, VectorTag};
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::vector::{
    ChunkDescriptor, ChunkState, MOST_ADDRESSES, MediaFailure, SectorAddress, SectorErrors, VectorCommand,
    VectorCounts, VectorError,
};
use nandscape_core::{
    Answer, Barrier, Cause, Command, FlashDevice, FlashError, FlashResult, FtlError, Issue, NamespaceError,
    NamespaceInfo, NamespaceResult, Oob, Op, RecoveryReport, Reply, SimTime, Submitted, Token, Way,
};

use super::wire::{CHUNK_BYTES, EVENT_BYTES, GEOMETRY_BYTES};

/// A namespace of chunks that hosts write, read, copy and erase by lists of sector addresses.
pub struct VectorNamespace<D, O> {
    pub(super) infos: [NamespaceInfo; 1],
    pub(super) device: D,
    pub(super) layout: Layout,
    pub(super) setup: VectorSetup,
    pub(super) chunks: Chunks,
    pub(super) events: Events,
    pub(super) hosts: HostCounts,
    pub(super) counts: VectorCounts,
    pub(super) stores_data: bool,
    /// Why commands are issued, and what the host waits for before it submits them.
    pub(super) issued: (Cause, Token),
    /// Number of the next program.
    pub(super) next_seq: u64,
    pub(super) recovery: RecoveryReport,
    /// Data of a copy.
    scratch: Vec<u8>,
    oob: std::marker::PhantomData<fn() -> O>,
}

/// A run of addresses of a list whose sectors follow each other on a page.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: usize,
    end: usize,
}

impl<O: VectorOob, D: FlashDevice<O>> VectorNamespace<D, O> {
    /// Chunks over a device, as its flash holds them. The setup was checked. A read of the device that fails
    /// for another reason than its medium ends the start.
    pub fn new(device: D, setup: &VectorSetup) -> FlashResult<Self> {
        let geometry = *device.geometry();
        let capabilities = device.capabilities();
        let vector = setup.check(&geometry, capabilities.program_pages).expect("the setup was checked");
        let info = NamespaceInfo {
            name: setup.name.clone(),
            capacity_bytes: u64::from(vector.all_chunks()) * vector.chunk_bytes(),
            page_bytes: geometry.page_bytes,
            set: 0,
            endurance_group: 0,
            zones: None,
            objects: false,
        };
        let mut this = Self {
            infos: [info],
            device,
            layout: Layout::new(geometry, vector),
            setup: setup.clone(),
            chunks: Chunks::new(vector),
            events: Events::default(),
            hosts: HostCounts::default(),
            counts: VectorCounts::default(),
            stores_data: capabilities.stores_data,
            issued: (Cause::Host, Token::NONE),
            next_seq: 1,
            recovery: RecoveryReport::default(),
            scratch: Vec::new(),
            oob: std::marker::PhantomData,
        };
        this.recovery = this.start()?;
        Ok(this)
    }

    /// What a report says of a chunk, by its number.
    pub fn describe(&self, number: u32) -> ChunkDescriptor {
        let geometry = self.layout.vector();
        let start = geometry.chunk_at(number);
        let Chunk { state, written } = self.chunks.get(start);
        let erases = self.layout.blocks(start).map(|block| self.device.erase_count(block)).max();
        ChunkDescriptor {
            state,
            wear: self.setup.wear(erases.unwrap_or(0)),
            start,
            sectors: geometry.sectors,
            write_pointer: written,
        }
    }

    pub(super) fn submit_command(
        &mut self,
        command: Command,
        payload: Payload<'_>,
        at: SimTime,
    ) -> Submitted {
        match command {
            Command::Vector(command) => self.vector(&command, payload, at),
            Command::Block(command) if command.op == Op::Flush => {
                self.hosts.count(command, self.infos[0].page_bytes);
                Ok(self.flush(at)?.into())
            }
            command => Err(NamespaceError::NotSupported { command: command.name() }),
        }
    }

    /// Makes durable what was answered.
    pub(super) fn flush(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let durable = self.device.barrier(Barrier::Durable, at).map_err(FtlError::from)?;
        Ok(self.device.join(self.issued.1, durable))
    }

    /// What flash operations of a command are issued with.
    const fn issue(&self, at: SimTime) -> Issue {
        let (cause, after) = self.issued;
        Issue::new(at, cause).after(after).by_host()
    }

    fn vector(&mut self, command: &VectorCommand, payload: Payload<'_>, at: SimTime) -> Submitted {
        match command {
            VectorCommand::Read(addresses) => match payload {
                Payload::Read(data) => self.read(addresses, Some(data), &mut [], at),
                Payload::ReadOob(data, oob) => self.read(addresses, data, oob, at),
                _ => self.read(addresses, None, &mut [], at),
            },
            VectorCommand::Write(addresses) => match payload {
                Payload::Write(data) => self.write(addresses, Some(data), &[], at),
                Payload::WriteOob(data, oob) => self.write(addresses, data, oob, at),
                _ => self.write(addresses, None, &[], at),
            },
            VectorCommand::Copy { .. } if self.setup.host_oob => {
                Err(NamespaceError::NotSupported { command: command.name() })
            }
            VectorCommand::Copy { sources, targets } => self.copy(sources, targets, at),
            VectorCommand::Reset(addresses) => self.reset(addresses, at),
            VectorCommand::Geometry => {
                let reply = Reply::Geometry(Box::new(*self.layout.vector()));
                Ok(self.told(GEOMETRY_BYTES, reply, at))
            }
            VectorCommand::ChunkReport { from, room } => {
                let all = self.layout.vector().all_chunks();
                if *from >= all {
                    return Err(VectorError::OutOfRange.into());
                }
                let end = from.saturating_add(*room).min(all);
                let chunks: Box<[_]> = (*from..end).map(|number| self.describe(number)).collect();
                Ok(self.told(chunks.len() * CHUNK_BYTES, Reply::Chunks(chunks), at))
            }
            VectorCommand::MediaEvents { after, room } => {
                let events = self.events.after(*after, *room);
                Ok(self.told(events.len() * EVENT_BYTES, Reply::MediaEvents(events), at))
            }
        }
    }

    /// The answer to a command that asks for what the controller knows.
    fn told(&mut self, bytes: usize, reply: Reply, at: SimTime) -> Answer {
        let done = self.device.pass(Way::Out, bytes as u32, at, Token::NONE);
        Answer { done, reply }
    }

    /// Whether a list, and the payload that comes with it, are what a command can have.
    fn check_list(&self, addresses: &[SectorAddress], payload: Option<usize>) -> Result<(), VectorError> {
        let geometry = self.layout.vector();
        let bytes = addresses.len() * geometry.sector_bytes as usize;
        if addresses.is_empty()
            || addresses.len() > MOST_ADDRESSES
            || payload.is_some_and(|payload| payload != bytes)
        {
            return Err(VectorError::InvalidField);
        }
        let is_there = |address: &SectorAddress| geometry.contains(*address);
        if addresses.iter().all(is_there) { Ok(()) } else { Err(VectorError::OutOfRange) }
    }

    /// The run of a list that begins at an index: readable sectors that follow each other on a page, within
    /// `most` addresses. Sectors that cannot be read are noted, and are no run.
    fn run(
        &self,
        addresses: &[SectorAddress],
        first: usize,
        most: usize,
        errors: &mut SectorErrors,
    ) -> Option<Run> {
        if let Err(error) = self.chunks.check_read(addresses[first]) {
            errors.0.push((first as u8, error));
            return None;
        }
        let spot = self.layout.spot(addresses[first]);
        let end = addresses.len().min(first + most);
        let follows = |index: &usize| {
            let address = addresses[*index];
            let next = self.layout.spot(address);
            next.page == spot.page
                && next.sector == spot.sector + (*index - first) as u32
                && self.chunks.check_read(address).is_ok()
        };
        let end = first + 1 + (first + 1..end).take_while(follows).count();
        Some(Run { first, end })
    }

    /// Reads the sectors of a run, and what the host keeps beside its page. An error of the medium is noted
    /// for each; gives `None` then.
    fn read_run(
        &mut self,
        addresses: &[SectorAddress],
        run: Run,
        (data, oob): (Option<&mut [u8]>, Option<&mut Oob>),
        issue: Issue,
        errors: &mut SectorErrors,
    ) -> NamespaceResult<Option<Token>> {
        let spot = self.layout.spot(addresses[run.first]);
        let sector_bytes = self.layout.vector().sector_bytes;
        let transfer = (run.end - run.first) as u32 * sector_bytes;
        let read = match data.filter(|_| self.stores_data) {
            Some(data) => self.device.read_part(spot.page, spot.sector * sector_bytes, data, issue),
            None => self.device.read(spot.page, transfer, None, issue),
        };
        let error = match read {
            Ok(read) if self.setup.host_oob => {
                if let Some(oob) = oob {
                    *oob = read.oob.host();
                }
                return Ok(Some(read.done));
            }
            Ok(read) if read.oob.tag().is_none_or(|tag| tag.page == spot.page) => return Ok(Some(read.done)),
            Ok(_) | Err(FlashError::Uncorrectable { .. } | FlashError::Damaged { .. }) => {
                VectorError::Unrecovered
            }
            Err(error) => return Err(FtlError::from(error).into()),
        };
        self.events.note(MediaFailure::Read, addresses[run.first], (run.end - run.first) as u32);
        errors.0.extend((run.first..run.end).map(|index| (index as u8, error)));
        Ok(None)
    }

    fn read(
        &mut self,
        addresses: &[SectorAddress],
        mut data: Option<&mut [u8]>,
        oob: &mut [Oob],
        at: SimTime,
    ) -> Submitted {
        self.check_list(addresses, data.as_deref().map(<[u8]>::len))?;
        let mut oob = oob.iter_mut();
        let sector_bytes = self.layout.vector().sector_bytes as usize;
        let mut errors = SectorErrors::default();
        let (mut done, mut pages) = (Token::NONE, 0);
        let mut first = 0;
        while first < addresses.len() {
            let beside = oob.next();
            let Some(run) = self.run(addresses, first, MOST_ADDRESSES, &mut errors) else {
                first += 1;
                continue;
            };
            first = run.end;
            let range = run.first * sector_bytes..run.end * sector_bytes;
            let part = data.as_deref_mut().map(|data| &mut data[range]);
            let issue = self.issue(at);
            pages += 1;
            if let Some(read) = self.read_run(addresses, run, (part, beside), issue, &mut errors)? {
                done = self.device.join(done, read);
            }
        }
        self.hosts.reads += 1;
        self.hosts.read_bytes += (addresses.len() * sector_bytes) as u64;
        self.hosts.read_pages += pages;
        if errors.0.len() == addresses.len() {
            done = self.device.pass(Way::Out, 0, at, done);
        }
        Ok(answer(done, errors))
    }

    /// Writes sectors. With an OOB of the host there is one for each page, or none at all.
    fn write(
        &mut self,
        addresses: &[SectorAddress],
        data: Option<&[u8]>,
        oob: &[Oob],
        at: SimTime,
    ) -> Submitted {
        self.check_list(addresses, data.map(<[u8]>::len))?;
        let geometry = self.layout.vector();
        let pages = addresses.len() / geometry.pages.sectors as usize;
        if self.setup.host_oob && self.stores_data && oob.len() != pages {
            return Err(VectorError::InvalidField.into());
        }
        self.chunks.check_write(addresses)?;
        self.hosts.writes += 1;
        self.hosts.write_bytes += addresses.len() as u64 * u64::from(geometry.sector_bytes);
        self.hosts.write_pages += addresses.len() as u64 / u64::from(geometry.pages.sectors);
        let (done, errors) = self.program(addresses, (data, oob), self.issue(at), &[])?;
        Ok(answer(done, errors))
    }

    /// Programs whole write units that were checked, each not before its token of `after`, if there are any.
    fn program(
        &mut self,
        addresses: &[SectorAddress],
        (data, oob): (Option<&[u8]>, &[Oob]),
        issue: Issue,
        after: &[Token],
    ) -> NamespaceResult<(Token, SectorErrors)> {
        let unit = self.layout.vector().write_min as usize;
        let unit_bytes = unit * self.layout.vector().sector_bytes as usize;
        let planes = self.layout.vector().pages.chunk_planes() as usize;
        let mut errors = SectorErrors::default();
        let mut done = Token::NONE;
        for (index, sectors) in addresses.chunks_exact(unit).enumerate() {
            let first = sectors[0];
            let failure = if self.chunks.get(first).state == ChunkState::Closed {
                Some(VectorError::EarlyClose)
            } else {
                let part = data.map(|data| &data[index * unit_bytes..(index + 1) * unit_bytes]);
                let issue = after.get(index).map_or(issue, |after| issue.after(*after));
                let beside = oob.get(index * planes..(index + 1) * planes).unwrap_or_default();
                let (token, failure) = self.program_unit(first, (part, beside), issue)?;
                done = self.device.join(done, token);
                failure
            };
            if let Some(error) = failure {
                let range = index * unit..(index + 1) * unit;
                errors.0.extend(range.map(|index| (index as u8, error)));
            }
        }
        if done == Token::NONE {
            done = self.device.pass(Way::In, 0, issue.at, done);
        }
        Ok((done, errors))
    }

    /// Programs a page in each plane of a chunk, from its write pointer on.
    fn program_unit(
        &mut self,
        first: SectorAddress,
        (data, oob): (Option<&[u8]>, &[Oob]),
        issue: Issue,
    ) -> NamespaceResult<(Token, Option<VectorError>)> {
        let page_bytes = self.layout.flash().page_bytes;
        let shape = self.layout.vector().pages;
        let mut done = Token::NONE;
        let mut is_failed = false;
        for plane in 0..shape.chunk_planes() {
            let page = self.layout.spot(first.at(first.sector + plane * shape.sectors)).page;
            let oob = match oob.get(plane as usize) {
                Some(oob) if self.setup.host_oob => O::of_host(*oob),
                _ => O::of(VectorTag { page, seq: self.next_seq }),
            };
            self.next_seq += 1;
            let start = (plane * page_bytes) as usize;
            let part = data.map(|data| &data[start..start + page_bytes as usize]);
            match self.device.program(page, oob, page_bytes, part, issue) {
                Ok(token) => done = self.device.join(done, token),
                Err(FlashError::ProgramFailed { .. }) => is_failed = true,
                Err(error) => return Err(FtlError::from(error).into()),
            }
        }
        if is_failed {
            return Ok((done, Some(self.program_failed(first))));
        }
        self.chunks.advance(first);
        Ok((done, None))
    }

    /// A program of a write unit failed.
    #[cold]
    fn program_failed(&mut self, first: SectorAddress) -> VectorError {
        let unit = self.layout.vector().write_min;
        self.events.note(MediaFailure::Program, first, unit);
        let row = first.sector / unit;
        let is_counted = self.layout.blocks(first).all(|block| self.device.write_pointer(block) > row);
        if self.setup.failed_program == FailedProgram::SkipsUnit && is_counted {
            self.chunks.advance(first);
            return VectorError::WriteNextUnit;
        }
        self.counts.early_closes += 1;
        self.chunks.set(first, Chunk { state: ChunkState::Closed, written: first.sector });
        VectorError::EarlyClose
    }

    fn copy(&mut self, sources: &[SectorAddress], targets: &[SectorAddress], at: SimTime) -> Submitted {
        self.check_list(sources, None)?;
        self.check_list(targets, None)?;
        if sources.len() != targets.len() {
            return Err(VectorError::InvalidField.into());
        }
        self.chunks.check_write(targets)?;
        let mut scratch = std::mem::take(&mut self.scratch);
        let copied = self.copy_through(sources, targets, &mut scratch, at);
        self.scratch = scratch;
        let (done, errors) = copied?;
        let done = self.device.pass(Way::In, 0, at, done);
        Ok(answer(done, errors))
    }

    /// Copies by way of the controller's memory. When a source cannot be read, nothing is written.
    fn copy_through(
        &mut self,
        sources: &[SectorAddress],
        targets: &[SectorAddress],
        scratch: &mut Vec<u8>,
        at: SimTime,
    ) -> NamespaceResult<(Token, SectorErrors)> {
        let unit = self.layout.vector().write_min as usize;
        let sector_bytes = self.layout.vector().sector_bytes as usize;
        let issue = Issue::new(at, Cause::Gc);
        let mut errors = SectorErrors::default();
        let mut after = [Token::NONE; MOST_ADDRESSES];
        if self.stores_data {
            scratch.resize(sources.len() * sector_bytes, 0);
        }
        let mut first = 0;
        while first < sources.len() {
            // A run ends with the write unit that it goes to, so that the unit waits for its own data alone.
            let Some(run) = self.run(sources, first, unit - first % unit, &mut errors) else {
                first += 1;
                continue;
            };
            first = run.end;
            let range = run.first * sector_bytes..run.end * sector_bytes;
            let part = self.stores_data.then(|| &mut scratch[range]);
            if let Some(read) = self.read_run(sources, run, (part, None), issue, &mut errors)? {
                let place = &mut after[run.first / unit];
                *place = self.device.join(*place, read);
            }
        }
        if !errors.0.is_empty() {
            return Ok((after.into_iter().fold(Token::NONE, |a, b| self.device.join(a, b)), errors));
        }
        let data = self.stores_data.then_some(&scratch[..]);
        let (done, errors) = self.program(targets, (data, &[]), issue, &after)?;
        self.counts.copied_sectors += (targets.len() - errors.0.len()) as u64;
        Ok((done, errors))
    }

    fn reset(&mut self, addresses: &[SectorAddress], at: SimTime) -> Submitted {
        self.check_list(addresses, None)?;
        let mut errors = SectorErrors::default();
        let mut done = Token::NONE;
        for (index, address) in (0..).zip(addresses) {
            let reset = match self.chunks.check_reset(*address) {
                Ok(()) => self.reset_chunk(address.at(0), self.issue(at))?,
                Err(error) => Err(error),
            };
            match reset {
                Ok(token) => done = self.device.join(done, token),
                Err(error) => errors.0.push((index, error)),
            }
        }
        let done = self.device.pass(Way::In, 0, at, done);
        Ok(answer(done, errors))
    }

    /// Erases the blocks of a chunk; one that cannot be erased takes the chunk offline.
    fn reset_chunk(
        &mut self,
        chunk: SectorAddress,
        issue: Issue,
    ) -> NamespaceResult<Result<Token, VectorError>> {
        let mut done = Token::NONE;
        for block in self.layout.blocks(chunk) {
            let failure = match self.device.erase(block, issue) {
                Ok(token) => {
                    done = self.device.join(done, token);
                    continue;
                }
                Err(FlashError::WornOut { .. }) => MediaFailure::WornOut,
                Err(FlashError::EraseFailed { .. }) => MediaFailure::Erase,
                Err(error) => return Err(FtlError::from(error).into()),
            };
            self.device.mark_bad(block);
            self.chunks.set(chunk, Chunk::OFFLINE);
            self.counts.offline_chunks += 1;
            self.events.note(failure, chunk, 0);
            return Ok(Err(VectorError::Offline));
        }
        self.counts.resets += 1;
        self.chunks.set(chunk, Chunk::FREE);
        Ok(Ok(done))
    }
}

fn answer(done: Token, errors: SectorErrors) -> Answer {
    let reply = if errors.0.is_empty() { Reply::Nothing } else { Reply::Failed(Box::new(errors)) };
    Answer { done, reply }
}
