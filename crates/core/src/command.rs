//! What hosts ask of a namespace, and how it is counted.

use crate::addr::Extent;
use crate::clock::Token;
use crate::device::Oob;
use crate::error::{NamespaceError, NamespaceResult};
use crate::ftl::{Allocation, Hint};
use crate::object::{MOST_ATTRIBUTES, ObjectAttributes, ObjectCommand, ObjectId, ObjectSpace, ObjectStatus};
use crate::vector::{ChunkDescriptor, MediaEvent, SectorErrors, VectorCommand, VectorGeometry};
use crate::zone::{ZoneCommand, ZoneReport};
use serde::{Deserialize, Serialize};

/// What a host asks of a namespace, without payload: a command of one of the command sets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// Bytes at an address of the host's.
    Block(BlockCommand),
    /// What only zones are asked for.
    Zone(ZoneCommand),
    /// Sectors and chunks of the flash, by lists of addresses.
    Vector(VectorCommand),
    /// Files of a store that allocates their space.
    Object(ObjectCommand),
}

impl Command {
    /// A flush.
    pub const FLUSH: Self = Self::Block(BlockCommand::FLUSH);

    /// What it is called, for messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Block(command) => command.op.name(),
            Self::Zone(command) => command.name(),
            Self::Vector(command) => command.name(),
            Self::Object(command) => command.name(),
        }
    }

    /// The block command that it is; of any other an error, for a namespace that has no other.
    #[inline]
    pub fn into_block(self) -> NamespaceResult<BlockCommand> {
        match self {
            Self::Block(command) => Ok(command),
            other => Err(NamespaceError::NotSupported { command: other.name() }),
        }
    }

    /// Whether it asks for data.
    pub const fn is_read(&self) -> bool {
        matches!(
            self,
            Self::Block(BlockCommand { op: Op::Read, .. })
                | Self::Vector(VectorCommand::Read(_))
                | Self::Object(ObjectCommand::Read { .. })
        )
    }

    /// Whether it needs neither room nor leave to write.
    pub const fn writes_nothing(&self) -> bool {
        match self {
            Self::Block(command) => matches!(command.op, Op::Read | Op::Flush),
            Self::Zone(command) => matches!(command, ZoneCommand::Report { .. }),
            Self::Vector(command) => command.writes_nothing(),
            Self::Object(command) => command.writes_nothing(),
        }
    }
}

impl From<ObjectCommand> for Command {
    #[inline]
    fn from(command: ObjectCommand) -> Self {
        Self::Object(command)
    }
}

impl From<BlockCommand> for Command {
    #[inline]
    fn from(command: BlockCommand) -> Self {
        Self::Block(command)
    }
}

/// What a command that was accepted is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Completes when the host may be answered.
    pub done: Token,
    /// What the answer says besides success.
    pub reply: Reply,
}

/// What an answer says besides success; data that was read is in the command's [`Payload`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// Nothing: every block command.
    #[default]
    Nothing,
    /// An append: the first byte that was written.
    Appended(u64),
    /// A report of zones.
    Zones(Box<ZoneReport>),
    /// A vector command that failed at some of its addresses.
    Failed(Box<SectorErrors>),
    /// The shape of a namespace with vector access.
    Geometry(Box<VectorGeometry>),
    /// A report of chunks, by number.
    Chunks(Box<[ChunkDescriptor]>),
    /// Events of the medium, by number.
    MediaEvents(Box<[MediaEvent]>),
    /// A read of an object: bytes that it had from the first one on, in the payload.
    Bytes(u64),
    /// Objects in the order of their numbers.
    Objects(Box<[ObjectStatus]>),
    /// Attributes and status of an object.
    Attributes(Box<ObjectAttributes>),
    /// Whether bytes of an object are stored, and how far this goes on.
    Allocation(Allocation),
    /// How the space of a store of objects is divided.
    Space(Box<ObjectSpace>),
}

impl Answer {
    /// The token alone.
    #[inline]
    pub fn into_done(self) -> Token {
        match self.reply {
            // The compiler does not see that a block command leaves nothing to drop: saves it a call.
            Reply::Nothing => std::mem::forget(self.reply),
            reply => drop(reply),
        }
        self.done
    }
}

impl From<Token> for Answer {
    #[inline]
    fn from(done: Token) -> Self {
        Self { done, reply: Reply::Nothing }
    }
}

/// What a block command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Reads bytes.
    Read,
    /// Writes bytes.
    Write,
    /// Says that bytes are needed no more (discard, deallocate). They read as zeroes where the layer below
    /// promises it.
    Trim,
    /// Makes bytes read as zeroes.
    WriteZeroes,
    /// Makes every write that was answered durable; has no extent.
    Flush,
}

impl Op {
    /// What it is called, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
            Self::WriteZeroes => "write zeroes",
            Self::Flush => "flush",
        }
    }
}

/// A block command without its payload; what a [`crate::Store`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCommand {
    /// What to do.
    pub op: Op,
    /// Where.
    pub extent: Extent,
    /// Stream, handle or lifetime class.
    pub hint: Hint,
    /// It is answered only when what it wrote survives a loss of power (forced unit access). Of meaning at a
    /// [`crate::Subsystem`]; what lies below makes things durable by flushes.
    pub is_durable: bool,
}

impl BlockCommand {
    /// A command that need not be durable.
    pub const fn new(op: Op, extent: Extent, hint: Hint) -> Self {
        Self { op, extent, hint, is_durable: false }
    }

    /// A flush.
    pub const FLUSH: Self = Self::new(Op::Flush, Extent::new(0, 0), Hint(0));
}

/// Payload of a command.
#[derive(Debug, Default)]
pub enum Payload<'a> {
    /// None: replay, or a command that has none.
    #[default]
    None,
    /// Data to write, `extent.len` bytes.
    Write(&'a [u8]),
    /// Where to put what is read, `extent.len` bytes.
    Read(&'a mut [u8]),
    /// Of a vector write: data as above, if there is any, and what the host keeps beside each page
    /// ([`VectorGeometry::keeps_host_oob`]), in the order of the list.
    WriteOob(Option<&'a [u8]>, &'a [Oob]),
    /// Of a vector read: the same, one for each run of sectors on a page that follow each other in the list.
    /// A sector that cannot be read is a run by itself, and changes nothing.
    ReadOob(Option<&'a mut [u8]>, &'a mut [Oob]),
}

/// Refuses a payload that is not as long as its extent.
pub fn check_payload(extent: Extent, len: Option<usize>) -> NamespaceResult<()> {
    match len {
        Some(len) if len as u64 != extent.len => {
            let expected = format!("a payload of {} bytes, not {len}", extent.len);
            Err(NamespaceError::Refused { extent, expected })
        }
        _ => Ok(()),
    }
}

/// Which bytes of an object are stored, by a store that `ask` asks.
pub fn stored_runs<E>(
    object: ObjectId,
    mut ask: impl FnMut(ObjectCommand) -> Result<Reply, E>,
) -> Result<Vec<Extent>, E> {
    let (mut runs, mut offset) = (Vec::new(), 0);
    loop {
        let extent = Extent::new(offset, u64::MAX - offset);
        let found = match ask(ObjectCommand::Allocation { object, extent })? {
            Reply::Allocation(found) => found,
            other => panic!("a question for the allocation of object {object} is answered with {other:?}"),
        };
        if found.bytes == 0 {
            return Ok(runs);
        }
        if found.is_mapped {
            runs.push(Extent::new(offset, found.bytes));
        }
        offset += found.bytes;
    }
}

/// Refuses attributes that are too long, and an object that is to replace itself.
pub fn check_attributes(
    object: ObjectId,
    replaces: Option<ObjectId>,
    attributes: &[u8],
) -> NamespaceResult<()> {
    let expected = if attributes.len() > MOST_ATTRIBUTES {
        format!("at most {MOST_ATTRIBUTES} bytes of attributes")
    } else if replaces == Some(object) {
        format!("another object to replace than {object} itself")
    } else {
        return Ok(());
    };
    Err(NamespaceError::Refused { extent: Extent::new(0, attributes.len() as u64), expected })
}

/// What hosts asked for, since the last reset, but for what was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct HostCounts {
    /// Read requests.
    pub reads: u64,
    pub writes: u64,
    /// Discard and write-zeroes requests.
    pub trims: u64,
    pub flushes: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// Bytes discarded or zeroed.
    pub trim_bytes: u64,
    /// Device pages touched by read requests.
    pub read_pages: u64,
    /// Device pages touched by write requests; a partly written page counts as 1.
    pub write_pages: u64,
}

crate::state!(impl [] HostCounts {
    saved: reads, writes, trims, flushes, read_bytes, write_bytes, trim_bytes, read_pages, write_pages;
});

impl HostCounts {
    /// Counts a command as asked for.
    #[inline]
    pub fn count(&mut self, command: BlockCommand, page_bytes: u32) {
        let extent = command.extent;
        match command.op {
            Op::Read => {
                self.reads += 1;
                self.read_bytes += extent.len;
                self.read_pages += extent.page_count(page_bytes);
            }
            Op::Write => {
                self.writes += 1;
                self.write_bytes += extent.len;
                self.write_pages += extent.page_count(page_bytes);
            }
            Op::Trim | Op::WriteZeroes => {
                self.trims += 1;
                self.trim_bytes += extent.len;
            }
            Op::Flush => self.flushes += 1,
        }
    }

    /// Counts bytes of an object that were written. Small writes fill pages together, wherever they begin:
    /// pages are counted by bytes.
    #[inline]
    pub fn wrote_object(&mut self, bytes: u64, page_bytes: u32) {
        self.writes += 1;
        self.write_bytes += bytes;
        self.write_pages = self.write_bytes.div_ceil(page_bytes.into());
    }

    /// Counts bytes of an object that were read.
    #[inline]
    pub fn read_object(&mut self, bytes: u64, page_bytes: u32) {
        self.reads += 1;
        self.read_bytes += bytes;
        self.read_pages = self.read_bytes.div_ceil(page_bytes.into());
    }

    /// Counts bytes of an object that were deleted, punched or cut off.
    #[inline]
    pub const fn trimmed_object(&mut self, bytes: u64) {
        self.trims += 1;
        self.trim_bytes += bytes;
    }

    /// Adds other counts to these.
    pub const fn add(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.trims += other.trims;
        self.flushes += other.flushes;
        self.read_bytes += other.read_bytes;
        self.write_bytes += other.write_bytes;
        self.trim_bytes += other.trim_bytes;
        self.read_pages += other.read_pages;
        self.write_pages += other.write_pages;
    }

    /// What these have grown by since `before`.
    #[must_use]
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(before.reads),
            writes: self.writes.saturating_sub(before.writes),
            trims: self.trims.saturating_sub(before.trims),
            flushes: self.flushes.saturating_sub(before.flushes),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            write_bytes: self.write_bytes.saturating_sub(before.write_bytes),
            trim_bytes: self.trim_bytes.saturating_sub(before.trim_bytes),
            read_pages: self.read_pages.saturating_sub(before.read_pages),
            write_pages: self.write_pages.saturating_sub(before.write_pages),
        }
    }
}
