//! The vector command set: chunks of flash, what hosts ask of them by lists of sector addresses, and why they
//! are refused (Open-Channel SSD specification 2.0). [`mod@format`] has the address formats.

pub mod format;
mod stripes;

use crate::words;
pub use format::{AddressFormat, DeviceFormat, Field, PageAddress, PageShape};
pub use stripes::Stripes;

/// Most addresses of a command.
pub const MOST_ADDRESSES: usize = 64;

/// The address of a sector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectorAddress {
    /// Group: a channel.
    pub group: u16,
    /// Parallel unit in the group: a die.
    pub unit: u16,
    /// Chunk in the parallel unit.
    pub chunk: u32,
    /// Sector in the chunk.
    pub sector: u32,
}

impl SectorAddress {
    /// The same chunk, another sector.
    #[must_use]
    pub const fn at(self, sector: u32) -> Self {
        Self { sector, ..self }
    }

    /// Whether another address is in the same chunk.
    pub const fn is_in_chunk_of(self, other: Self) -> bool {
        self.group == other.group && self.unit == other.unit && self.chunk == other.chunk
    }
}

/// State of a chunk. The numbers are the bits of a chunk descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ChunkState {
    /// Erased: nothing is written since the last reset.
    Free = 1,
    /// Written up to its end, or up to a failure.
    Closed = 2,
    /// Written in part.
    Open = 4,
    /// Neither readable nor writable for good.
    Offline = 8,
}

words!(pub ChunkState: Free = "free", Closed = "closed", Open = "open", Offline = "offline");

/// What a report says of a chunk. Every chunk is to be written sequentially (type 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkDescriptor {
    /// State.
    pub state: ChunkState,
    /// Wear, from 0 (new) to 255 (at its endurance, or unknown beyond it).
    pub wear: u8,
    /// Its first sector.
    pub start: SectorAddress,
    /// Sectors.
    pub sectors: u32,
    /// The sector that is written next, from 0; the number of sectors in a chunk that is full.
    pub write_pointer: u32,
}

/// Times that a device states, in nanoseconds; typical and longest are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct MediaTimes {
    pub read_ns: u32,
    pub write_ns: u32,
    pub reset_ns: u32,
}

/// The shape of a namespace with vector access, and its write rules. Counts of sectors unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorGeometry {
    /// Groups.
    pub groups: u16,
    /// Parallel units of each group.
    pub units: u16,
    /// Chunks of each parallel unit.
    pub chunks: u32,
    /// Sectors of each chunk.
    pub sectors: u32,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// A write is a multiple of these.
    pub write_min: u32,
    /// A write of these uses the medium best.
    pub write_best: u32,
    /// So many sectors below the write pointer of an open chunk cannot be read.
    pub cached: u32,
    /// A free chunk can be reset again.
    pub resets_free: bool,
    /// An open chunk can be reset: no rule of the specification, and a habit of emulators.
    pub resets_open: bool,
    /// Beside each page the device keeps an [`crate::Oob`] of the host's, and nothing of its own.
    pub keeps_host_oob: bool,
    /// Times of the medium.
    pub times: MediaTimes,
    /// Pages and planes below the sectors, for addresses of version 1.2.
    pub pages: PageShape,
}

impl VectorGeometry {
    /// Parallel units of all groups.
    pub const fn all_units(&self) -> u32 {
        self.groups as u32 * self.units as u32
    }

    /// Chunks of all parallel units.
    pub const fn all_chunks(&self) -> u32 {
        self.all_units() * self.chunks
    }

    /// Bytes of a chunk.
    pub const fn chunk_bytes(&self) -> u64 {
        self.sectors as u64 * self.sector_bytes as u64
    }

    /// Whether there is such a sector.
    pub const fn contains(&self, address: SectorAddress) -> bool {
        address.group < self.groups
            && address.unit < self.units
            && address.chunk < self.chunks
            && address.sector < self.sectors
    }

    /// The chunk of a number in a parallel unit, group first: unit `u` is group `u % groups` and unit
    /// `u / groups` there, so that neighbours share no channel.
    pub const fn chunk_in(&self, unit: u32, chunk: u32) -> SectorAddress {
        let groups = self.groups as u32;
        SectorAddress { group: (unit % groups) as u16, unit: (unit / groups) as u16, chunk, sector: 0 }
    }

    /// The number of a chunk among all: by group, then parallel unit, as chunk reports count.
    pub const fn chunk_number(&self, address: SectorAddress) -> u32 {
        (address.group as u32 * self.units as u32 + address.unit as u32) * self.chunks + address.chunk
    }

    /// The first sector of a chunk by its number among all.
    pub const fn chunk_at(&self, number: u32) -> SectorAddress {
        let (unit, chunk) = (number / self.chunks, number % self.chunks);
        let (group, unit) = ((unit / self.units as u32) as u16, (unit % self.units as u32) as u16);
        SectorAddress { group, unit, chunk, sector: 0 }
    }

    /// The address format of version 2.0: as few bits as each part needs.
    pub const fn format(&self) -> AddressFormat {
        AddressFormat::fitting(self.groups, self.units, self.chunks, self.sectors)
    }
}

/// A command of the vector command set. Lists have 1 to [`MOST_ADDRESSES`] addresses; payloads have the bytes
/// of their sectors in the order of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VectorCommand {
    /// Reads sectors, in any order.
    Read(Box<[SectorAddress]>),
    /// Writes sectors, each chunk from its write pointer on, [`VectorGeometry::write_min`] after one another.
    Write(Box<[SectorAddress]>),
    /// Copies sectors inside the device: any sources, targets as of a write.
    Copy {
        /// Sectors to be read.
        sources: Box<[SectorAddress]>,
        /// Sectors to be written, as many.
        targets: Box<[SectorAddress]>,
    },
    /// Erases chunks, each named by any of its sectors.
    Reset(Box<[SectorAddress]>),
    /// Asks for the [`VectorGeometry`].
    Geometry,
    /// Describes chunks.
    ChunkReport {
        /// Number of the first, see [`VectorGeometry::chunk_number`].
        from: u32,
        /// Most descriptors that the host has room for.
        room: u32,
    },
    /// Asks for what happened to the medium.
    MediaEvents {
        /// Number of the last event that the host knows; 0: it knows none.
        after: u64,
        /// Most events that the host has room for.
        room: u32,
    },
}

impl VectorCommand {
    /// What it is called, for messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Read(_) => "vector read",
            Self::Write(_) => "vector write",
            Self::Copy { .. } => "vector copy",
            Self::Reset(_) => "vector reset",
            Self::Geometry => "report geometry",
            Self::ChunkReport { .. } => "report chunks",
            Self::MediaEvents { .. } => "report media events",
        }
    }

    /// Whether it needs neither room nor leave to write.
    pub const fn writes_nothing(&self) -> bool {
        !matches!(self, Self::Write(_) | Self::Copy { .. } | Self::Reset(_))
    }
}

/// Addresses of a command at which it failed; the others were done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectorErrors(pub Vec<(u8, VectorError)>);

impl SectorErrors {
    /// A bit for each address that failed, as in a completion.
    pub fn bitmap(&self) -> u64 {
        self.0.iter().fold(0, |bits, (index, _)| bits | 1 << index)
    }

    /// The error of an address, by its index in the list of the command.
    pub fn of(&self, index: usize) -> Option<VectorError> {
        self.0.iter().find(|(at, _)| usize::from(*at) == index).map(|(_, error)| *error)
    }

    /// The status of the completion: that of the first address that failed.
    pub fn first(&self) -> Option<VectorError> {
        self.0.iter().min_by_key(|(at, _)| *at).map(|(_, error)| *error)
    }
}

/// What happened to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaFailure {
    /// A program failed: the sectors from the address on were not written.
    Program,
    /// An erase failed: the chunk went offline.
    Erase,
    /// The chunk reached its endurance and went offline.
    WornOut,
    /// Sectors cannot be read any more.
    Read,
}

words!(pub MediaFailure: Program = "program", Erase = "erase", WornOut = "worn-out", Read = "read");

/// An event of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaEvent {
    /// Its number, from 1 on.
    pub number: u64,
    /// What happened.
    pub failure: MediaFailure,
    /// Where: the first sector.
    pub address: SectorAddress,
    /// Sectors from there on; 0: the whole chunk.
    pub sectors: u32,
}

/// What happened to chunks since the last reset of counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct VectorCounts {
    /// Sectors copied inside the device.
    pub copied_sectors: u64,
    /// Chunks reset.
    pub resets: u64,
    /// Chunks closed before their end, by failed programs.
    pub early_closes: u64,
    /// Chunks that went offline.
    pub offline_chunks: u64,
}

/// Why a command, or a sector of one, is refused or fails, by the names of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u16)]
pub enum VectorError {
    /// A list that is empty or too long, a write that is not whole write units, a payload of another length.
    #[error("Invalid Field in Command")]
    InvalidField = 0x002,
    /// No such sector or chunk.
    #[error("LBA Out of Range")]
    OutOfRange = 0x080,
    /// The sector was written, and cannot be read any more.
    #[error("Unrecovered Read Error")]
    Unrecovered = 0x281,
    /// The sector is not written, or so close below the write pointer that it cannot be read yet.
    #[error("Deallocated or Unwritten Logical Block")]
    Unwritten = 0x287,
    /// The chunk is offline, or went offline by this reset.
    #[error("Offline Chunk")]
    Offline = 0x2c0,
    /// The chunk is open, or it is free and cannot be reset again.
    #[error("Invalid Reset")]
    InvalidReset = 0x2c1,
    /// The program failed; the chunk stays open behind the unit that failed.
    #[error("Write Next Unit")]
    WriteNextUnit = 0x2f0,
    /// The program failed and the chunk is closed; it can be read up to its write pointer.
    #[error("Chunk Early Close")]
    EarlyClose = 0x2f1,
    /// Not at the write pointer, or in a chunk that is closed or offline.
    #[error("Out of Order Write")]
    OutOfOrder = 0x2f2,
}

words!(pub VectorError: InvalidField = "invalid-field", OutOfRange = "out-of-range",
    Unrecovered = "unrecovered", Unwritten = "unwritten", Offline = "offline",
    InvalidReset = "invalid-reset", WriteNextUnit = "write-next-unit", EarlyClose = "early-close",
    OutOfOrder = "out-of-order");

impl VectorError {
    /// The status field of a completion: the code, and from bit 8 on its type.
    pub const fn status(self) -> u16 {
        self as u16
    }

    /// Whether the medium failed, and not the host.
    pub const fn is_of_medium(self) -> bool {
        matches!(self, Self::Unrecovered | Self::Offline | Self::WriteNextUnit | Self::EarlyClose)
    }
}
