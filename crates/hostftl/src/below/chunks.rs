//! Commands of vector access.

use super::Below;
use nandscape_core::command::Payload;
use nandscape_core::vector::{
    ChunkDescriptor, MOST_ADDRESSES, SectorAddress, SectorErrors, VectorCommand, VectorError, VectorGeometry,
};
use nandscape_core::{
    Answer, Cause, Command, Issue, NamespaceError, NamespaceResult, Oob, OutOfBand, Reply, SimTime,
    Subsystem, Token,
};

impl<S: Subsystem> Below<S> {
    /// The shape of the chunks; `None` where there is no vector access, or no cause and order of commands.
    pub fn geometry(&mut self) -> Option<VectorGeometry> {
        self.device.control().issue?;
        let ask = Command::Vector(VectorCommand::Geometry);
        match self.device.submit(0, ask, Payload::None, SimTime::ZERO).ok()?.reply {
            Reply::Geometry(geometry) => Some(*geometry),
            _ => None,
        }
    }

    /// Describes all chunks, by number.
    pub fn chunks(&mut self) -> NamespaceResult<Box<[ChunkDescriptor]>> {
        let ask = Command::Vector(VectorCommand::ChunkReport { from: 0, room: u32::MAX });
        match self.device.submit(0, ask, Payload::None, SimTime::ZERO)?.reply {
            Reply::Chunks(chunks) => Ok(chunks),
            _ => Err(NamespaceError::NotSupported { command: "report chunks" }),
        }
    }

    /// A vector command with lists of addresses. Its failures at some of them come with the token.
    pub fn vector(
        &mut self,
        command: VectorCommand,
        payload: Payload<'_>,
        issue: Issue,
    ) -> NamespaceResult<(Token, SectorErrors)> {
        let Answer { done, reply } = self.ask(Command::Vector(command), payload, issue)?;
        Ok((done, if let Reply::Failed(errors) = reply { *errors } else { SectorErrors::default() }))
    }

    /// Erases a chunk; an open one is written to its end first, with zeroes, where the device asks for that.
    /// A free one is left alone. `Err` within: the chunk is offline.
    pub fn erase_chunk(
        &mut self,
        chunk: SectorAddress,
        written: u32,
        geometry: &VectorGeometry,
        issue: Issue,
    ) -> NamespaceResult<Result<Token, VectorError>> {
        if written == 0 && !geometry.resets_free {
            return Ok(Ok(issue.after));
        }
        let mut issue = issue;
        if written > 0 && !geometry.resets_open {
            issue.after = self.pad_chunk(chunk, (written, geometry.sectors), geometry, issue)?;
        }
        let reset = VectorCommand::Reset([chunk.at(0)].into());
        let (done, errors) = self.vector(reset, Payload::None, issue)?;
        Ok(errors.first().map_or(Ok(done), Err))
    }

    /// Writes zeroes to sectors of a chunk, from its write pointer on; a failure ends it, and closes the
    /// chunk as well.
    pub fn pad_chunk(
        &mut self,
        chunk: SectorAddress,
        (written, end): (u32, u32),
        geometry: &VectorGeometry,
        issue: Issue,
    ) -> NamespaceResult<Token> {
        let most = MOST_ADDRESSES as u32 / geometry.write_min * geometry.write_min;
        let zeroes = vec![0; most as usize * geometry.sector_bytes as usize];
        let pages = vec![Oob::TORN; (most / geometry.pages.sectors) as usize];
        let mut done = issue.after;
        let mut from = written;
        while from < end {
            let count = most.min(end - from);
            let list = (from..from + count).map(|sector| chunk.at(sector)).collect();
            let data = &zeroes[..count as usize * geometry.sector_bytes as usize];
            let payload = if geometry.keeps_host_oob {
                Payload::WriteOob(Some(data), &pages[..(count / geometry.pages.sectors) as usize])
            } else {
                Payload::Write(data)
            };
            let issue = Issue { cause: Cause::Finish, ..issue };
            let (written, errors) = self.vector(VectorCommand::Write(list), payload, issue)?;
            done = self.device.join(done, written);
            if !errors.0.is_empty() {
                break;
            }
            from += count;
        }
        Ok(done)
    }
}
