//! Vector I/O of any length on a namespace.

use nandscape_core::command::Payload;
use nandscape_core::vector::{
    ChunkDescriptor, ChunkState, MOST_ADDRESSES, MediaEvent, SectorAddress, SectorErrors, VectorCommand,
    VectorError, VectorGeometry,
};
use nandscape_core::{Answer, Command, NamespaceError, Reply, SimTime, Subsystem, Token, wait};

/// Why the library could not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The namespace refused a command. Commands before it were done.
    #[error(transparent)]
    Refused(#[from] NamespaceError),
    /// Sectors could not be read or written, or chunks not reset. What the error does not name was done, up
    /// to the end of the command that failed.
    #[error("{}: {error}, and {} more", place(.address), .others)]
    Failed {
        /// The first address that failed.
        address: SectorAddress,
        /// Why.
        error: VectorError,
        /// Other addresses of the command that failed.
        others: usize,
    },
    /// A range of bytes that is not whole write units, or is outside the virtual block.
    #[error("{len} bytes at offset {offset}: expected {expected}")]
    Range {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
        /// What can be had.
        expected: String,
    },
    /// A chunk that cannot be used for what is asked.
    #[error("group {}, unit {}, chunk {}: it is {}, expected {expected}", .chunk.group, .chunk.unit, .chunk.chunk, .state.name())]
    Chunk {
        /// Its address.
        chunk: SectorAddress,
        /// Its state.
        state: ChunkState,
        /// What can be used.
        expected: &'static str,
    },
    /// Software of the host found no room.
    #[error("no chunk is free: expected room for {expected}")]
    NoChunk {
        /// What it is for.
        expected: &'static str,
    },
    /// The reply is none of the vector command set.
    #[error("the namespace has no vector access")]
    NoVector,
}

fn place(address: &SectorAddress) -> String {
    let SectorAddress { group, unit, chunk, sector } = address;
    format!("group {group}, unit {unit}, chunk {chunk}, sector {sector}")
}

/// What the library gives, or why it could not.
pub type HostResult<T> = Result<T, HostError>;

/// A namespace with vector access, in virtual time: every call takes the time at which it begins, and gives
/// that at which it is over. The commands of a call are all submitted at its beginning; calls begin in
/// nondecreasing time. Data may be absent on both ways, for a device that keeps none.
pub struct Host<'a> {
    subsystem: &'a mut (dyn Subsystem + 'a),
    namespace: u32,
    geometry: VectorGeometry,
}

impl<'a> Host<'a> {
    /// Opens a namespace: asks for its geometry.
    pub fn open(subsystem: &'a mut (dyn Subsystem + 'a), namespace: u32, at: SimTime) -> HostResult<Self> {
        let geometry = Command::Vector(VectorCommand::Geometry);
        match subsystem.submit(namespace, geometry, Payload::None, at)?.reply {
            Reply::Geometry(geometry) => Ok(Self { subsystem, namespace, geometry: *geometry }),
            _ => Err(HostError::NoVector),
        }
    }

    /// The shape of the namespace.
    pub const fn geometry(&self) -> &VectorGeometry {
        &self.geometry
    }

    /// The subsystem that has the namespace.
    pub fn subsystem(&mut self) -> &mut dyn Subsystem {
        self.subsystem
    }

    pub(crate) fn submit(
        &mut self,
        command: VectorCommand,
        payload: Payload<'_>,
        at: SimTime,
    ) -> HostResult<Answer> {
        Ok(self.subsystem.submit(self.namespace, Command::Vector(command), payload, at)?)
    }

    /// The token of an answer; the failure of some of its addresses is an error.
    fn checked(answer: Answer, addresses: &[SectorAddress]) -> HostResult<Token> {
        match answer.reply {
            Reply::Failed(errors) => Err(failure(&errors, addresses)),
            _ => Ok(answer.done),
        }
    }

    /// Describes chunks by number, see [`VectorGeometry::chunk_number`].
    pub fn chunks(&mut self, from: u32, count: u32, at: SimTime) -> HostResult<Box<[ChunkDescriptor]>> {
        let report = VectorCommand::ChunkReport { from, room: count };
        match self.submit(report, Payload::None, at)?.reply {
            Reply::Chunks(chunks) => Ok(chunks),
            _ => Err(HostError::NoVector),
        }
    }

    /// Describes the chunk of an address.
    pub fn chunk(&mut self, address: SectorAddress, at: SimTime) -> HostResult<ChunkDescriptor> {
        Ok(self.chunks(self.geometry.chunk_number(address), 1, at)?[0])
    }

    /// Events of the medium behind one, by number; 0: from the oldest that is kept.
    pub fn media_events(&mut self, after: u64, at: SimTime) -> HostResult<Box<[MediaEvent]>> {
        match self.submit(VectorCommand::MediaEvents { after, room: u32::MAX }, Payload::None, at)?.reply {
            Reply::MediaEvents(events) => Ok(events),
            _ => Err(HostError::NoVector),
        }
    }

    /// Reads sectors; `data` has room for all of them, in the order of the list.
    pub fn read(
        &mut self,
        addresses: &[SectorAddress],
        mut data: Option<&mut [u8]>,
        at: SimTime,
    ) -> HostResult<SimTime> {
        let bytes = MOST_ADDRESSES * self.geometry.sector_bytes as usize;
        let mut done = Token::NONE;
        for (index, list) in addresses.chunks(MOST_ADDRESSES).enumerate() {
            let payload = match data.as_deref_mut() {
                Some(data) => Payload::Read(part(data, index * bytes, bytes)?),
                None => Payload::None,
            };
            let answer = self.submit(VectorCommand::Read(list.into()), payload, at)?;
            let one = Self::checked(answer, list)?;
            done = self.subsystem.join(done, one);
        }
        Ok(wait(self.subsystem, done, at))
    }

    /// Writes sectors, each chunk from its write pointer on and in whole write units; `data` has all of them.
    pub fn write(
        &mut self,
        addresses: &[SectorAddress],
        data: Option<&[u8]>,
        at: SimTime,
    ) -> HostResult<SimTime> {
        let most = self.most_written();
        let bytes = most * self.geometry.sector_bytes as usize;
        let mut done = Token::NONE;
        for (index, list) in addresses.chunks(most).enumerate() {
            let payload = match data {
                Some(data) => Payload::Write(
                    data.get(index * bytes..data.len().min((index + 1) * bytes)).unwrap_or_default(),
                ),
                None => Payload::None,
            };
            let answer = self.submit(VectorCommand::Write(list.into()), payload, at)?;
            let one = Self::checked(answer, list)?;
            done = self.subsystem.join(done, one);
        }
        Ok(wait(self.subsystem, done, at))
    }

    /// Copies sectors inside the device, as many sources as targets; targets as of a write.
    pub fn copy(
        &mut self,
        sources: &[SectorAddress],
        targets: &[SectorAddress],
        at: SimTime,
    ) -> HostResult<SimTime> {
        if sources.len() != targets.len() {
            return Err(NamespaceError::from(VectorError::InvalidField).into());
        }
        let most = self.most_written();
        let mut done = Token::NONE;
        for (sources, targets) in sources.chunks(most).zip(targets.chunks(most)) {
            let copy = VectorCommand::Copy { sources: sources.into(), targets: targets.into() };
            let answer = self.submit(copy, Payload::None, at)?;
            let one = Self::checked(answer, targets)?;
            done = self.subsystem.join(done, one);
        }
        Ok(wait(self.subsystem, done, at))
    }

    /// Erases chunks.
    pub fn reset(&mut self, chunks: &[SectorAddress], at: SimTime) -> HostResult<SimTime> {
        let mut done = Token::NONE;
        for list in chunks.chunks(MOST_ADDRESSES) {
            let answer = self.submit(VectorCommand::Reset(list.into()), Payload::None, at)?;
            let one = Self::checked(answer, list)?;
            done = self.subsystem.join(done, one);
        }
        Ok(wait(self.subsystem, done, at))
    }

    /// Most sectors of a write: whole write units.
    const fn most_written(&self) -> usize {
        MOST_ADDRESSES - MOST_ADDRESSES % self.geometry.write_min as usize
    }
}

fn part(data: &mut [u8], from: usize, most: usize) -> HostResult<&mut [u8]> {
    let end = data.len().min(from + most);
    data.get_mut(from..end).ok_or_else(|| NamespaceError::from(VectorError::InvalidField).into())
}

pub(crate) fn failure(errors: &SectorErrors, addresses: &[SectorAddress]) -> HostError {
    let (index, error) = errors.0.iter().min_by_key(|(index, _)| *index).expect("a failure has an address");
    HostError::Failed { address: addresses[usize::from(*index)], error: *error, others: errors.0.len() - 1 }
}
