//! One request of a workload, and the contract of those that read them.

use crate::addr::Extent;
use crate::command::{BlockCommand, Command, Op};
use crate::ftl::Hint;
use crate::object::{ObjectCommand, ObjectId};
use crate::origin::Origin;
use crate::time::SimTime;
use crate::zone::{ZoneAction, ZoneCommand};
use serde::Serialize;

/// What a request of a workload does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TraceOp {
    /// `R`
    Read,
    /// `W`
    Write,
    /// `D`: discard (trim).
    Trim,
    /// `Z`: discard that reads as zeroes.
    WriteZeroes,
    /// `F`: flush barrier; offset and length are 0.
    Flush,
    /// `A`: zone append; the offset is the first byte of the zone.
    Append,
    /// `X`: empties a zone. Of this and the other three operations on the state of zones: the offset is the
    /// first byte of the zone and the length 0, or the length is above 0 ([`IoRecord::EVERY_ZONE`]) and the
    /// operation is for every zone in a state that it is for (NVMe Select All), whatever the offset.
    Reset,
    /// `N`: makes a zone full.
    Finish,
    /// `O`: opens a zone explicitly.
    Open,
    /// `C`: closes an open zone.
    Close,
    /// `c`: makes an object. Of this and the following: the object is numbered by the volume.
    ObjectCreate,
    /// `d`: removes an object.
    ObjectDelete,
    /// `w`: writes bytes of an object, which grows as far as needed.
    ObjectWrite,
    /// `r`: reads bytes of an object.
    ObjectRead,
    /// `t`: sets the size of an object to the offset.
    ObjectTruncate,
    /// `p`: frees the space of bytes of an object.
    ObjectPunch,
    /// `f`: makes an object durable, or with a length above 0 all objects.
    ObjectFlush,
}

impl TraceOp {
    /// Every operation, in the order of their numbers.
    pub const ALL: [Self; 17] = [
        Self::Read,
        Self::Write,
        Self::Trim,
        Self::WriteZeroes,
        Self::Flush,
        Self::Append,
        Self::Reset,
        Self::Finish,
        Self::Open,
        Self::Close,
        Self::ObjectCreate,
        Self::ObjectDelete,
        Self::ObjectWrite,
        Self::ObjectRead,
        Self::ObjectTruncate,
        Self::ObjectPunch,
        Self::ObjectFlush,
    ];

    /// The letter of the native CSV.
    pub const fn letter(self) -> char {
        match self {
            Self::Read => 'R',
            Self::Write => 'W',
            Self::Trim => 'D',
            Self::WriteZeroes => 'Z',
            Self::Flush => 'F',
            Self::Append => 'A',
            Self::Reset => 'X',
            Self::Finish => 'N',
            Self::Open => 'O',
            Self::Close => 'C',
            Self::ObjectCreate => 'c',
            Self::ObjectDelete => 'd',
            Self::ObjectWrite => 'w',
            Self::ObjectRead => 'r',
            Self::ObjectTruncate => 't',
            Self::ObjectPunch => 'p',
            Self::ObjectFlush => 'f',
        }
    }

    /// The operation of a letter of the native CSV.
    #[inline]
    pub fn of_letter(letter: u8) -> Option<Self> {
        const OF_LETTER: [Option<TraceOp>; 128] = {
            let mut table = [None; 128];
            let mut n = 0;
            while n < TraceOp::ALL.len() {
                table[TraceOp::ALL[n].letter() as usize] = Some(TraceOp::ALL[n]);
                n += 1;
            }
            table
        };
        OF_LETTER.get(usize::from(letter)).copied().flatten()
    }

    /// The operation of a block device that it is; `None` for operations of zones and objects.
    #[inline]
    pub const fn block_op(self) -> Option<Op> {
        Some(match self {
            Self::Read => Op::Read,
            Self::Write => Op::Write,
            Self::Trim => Op::Trim,
            Self::WriteZeroes => Op::WriteZeroes,
            Self::Flush => Op::Flush,
            _ => return None,
        })
    }

    /// The change of a zone's state that it is.
    #[inline]
    pub const fn zone_action(self) -> Option<ZoneAction> {
        Some(match self {
            Self::Reset => ZoneAction::Reset,
            Self::Finish => ZoneAction::Finish,
            Self::Open => ZoneAction::Open,
            Self::Close => ZoneAction::Close,
            _ => return None,
        })
    }

    /// Whether only a zoned device has it.
    #[inline]
    pub const fn is_zone_op(self) -> bool {
        matches!(self, Self::Append) || self.zone_action().is_some()
    }

    /// Whether only a store of objects has it.
    #[inline]
    pub const fn is_object_op(self) -> bool {
        self as u8 >= Self::ObjectCreate as u8
    }

    /// Whether it transfers data to the device.
    #[inline]
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::Append | Self::ObjectWrite)
    }

    /// Whether it transfers data from the device.
    #[inline]
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::ObjectRead)
    }

    /// Whether the length of its record is not a number of bytes.
    #[inline]
    pub const fn has_no_bytes(self) -> bool {
        self.zone_action().is_some() || matches!(self, Self::ObjectFlush)
    }
}

impl From<Op> for TraceOp {
    fn from(op: Op) -> Self {
        match op {
            Op::Read => Self::Read,
            Op::Write => Self::Write,
            Op::Trim => Self::Trim,
            Op::WriteZeroes => Self::WriteZeroes,
            Op::Flush => Self::Flush,
        }
    }
}

/// One request of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRecord {
    /// Arrival, relative to the first request of the workload's own clock (which need not be 0).
    pub at: SimTime,
    /// First byte, inside `volume`; of an operation on a zone, its first byte.
    pub offset: u64,
    /// Bytes; of an operation on the state of zones and of a flush of objects, 0 for one and more for all.
    pub len: u64,
    /// Volume, disk or LUN the request addresses; 0 where the format has none. Readers that know several
    /// volumes leave them apart; the workload layer lays them side by side or filters them. Of an operation
    /// on an object, its number, which the workload layer leaves alone.
    pub volume: u32,
    /// Write-lifetime hint or stream id, 0 where there is none.
    pub hint: u16,
    /// What it does.
    pub op: TraceOp,
}

impl IoRecord {
    /// Length of an operation on the state of every zone, where the workload has none of its own.
    pub const EVERY_ZONE: u64 = 1;

    /// Length of a flush of every object.
    pub const EVERY_OBJECT: u64 = 1;

    /// Whether it changes the state of every zone.
    #[inline]
    pub const fn is_for_every_zone(&self) -> bool {
        self.len > 0 && self.op.zone_action().is_some()
    }

    /// One past the last byte that it names: what a device must have for it. Saturates. 0 for objects, whose
    /// store finds the space.
    #[inline]
    pub const fn end(&self) -> u64 {
        if self.op.is_object_op() {
            0
        } else if self.op.zone_action().is_some() {
            self.offset
        } else {
            self.offset.saturating_add(self.len)
        }
    }

    /// The record of a command at `at`, without its [`BlockCommand::is_durable`]; `None` for a command that
    /// traces do not have: a report, a descriptor extension, random write areas, taking a zone offline,
    /// vector access, attributes, room and lists of objects, objects with numbers from 2^32 on.
    pub fn of(command: &Command, at: SimTime, volume: u32) -> Option<Self> {
        let (op, offset, len, hint) = match command {
            Command::Block(BlockCommand { op: Op::Flush, .. }) => (TraceOp::Flush, 0, 0, Hint(0)),
            Command::Block(BlockCommand { op, extent, hint, .. }) => {
                ((*op).into(), extent.offset, extent.len, *hint)
            }
            Command::Zone(ZoneCommand::Append { zone, len, hint, .. }) => {
                (TraceOp::Append, *zone, *len, *hint)
            }
            Command::Zone(ZoneCommand::Manage { action, zone }) => {
                let op = TraceOp::ALL.into_iter().find(|op| op.zone_action() == Some(*action))?;
                let len = if zone.is_some() { 0 } else { Self::EVERY_ZONE };
                (op, zone.unwrap_or(0), len, Hint(0))
            }
            Command::Object(command) => return Self::of_object(command, at),
            Command::Zone(_) | Command::Vector(_) => return None,
        };
        Some(Self { at, offset, len, volume, hint: hint.0, op })
    }

    fn of_object(command: &ObjectCommand, at: SimTime) -> Option<Self> {
        let none = Hint(0);
        let (op, object, offset, len, hint) = match *command {
            ObjectCommand::Create { object, hint } => (TraceOp::ObjectCreate, object, 0, 0, hint),
            ObjectCommand::Delete { object } => (TraceOp::ObjectDelete, object, 0, 0, none),
            ObjectCommand::Write { object, extent: Extent { offset, len }, hint } => {
                (TraceOp::ObjectWrite, object, offset, len, hint.unwrap_or(none))
            }
            ObjectCommand::Read { object, extent: Extent { offset, len } } => {
                (TraceOp::ObjectRead, object, offset, len, none)
            }
            ObjectCommand::Truncate { object, size } => (TraceOp::ObjectTruncate, object, size, 0, none),
            ObjectCommand::Punch { object, extent: Extent { offset, len } } => {
                (TraceOp::ObjectPunch, object, offset, len, none)
            }
            ObjectCommand::Flush { object } => {
                let len = if object.is_some() { 0 } else { Self::EVERY_OBJECT };
                (TraceOp::ObjectFlush, object.unwrap_or(ObjectId(0)), 0, len, none)
            }
            ObjectCommand::SetAttributes { replaces: Some(object), .. } => {
                (TraceOp::ObjectDelete, object, 0, 0, none)
            }
            ObjectCommand::Hint { .. }
            | ObjectCommand::Reserve { .. }
            | ObjectCommand::SetAttributes { replaces: None, .. }
            | ObjectCommand::GetAttributes { .. }
            | ObjectCommand::Allocation { .. }
            | ObjectCommand::List
            | ObjectCommand::Space => return None,
        };
        Some(Self { at, offset, len, volume: u32::try_from(object.0).ok()?, hint: hint.0, op })
    }

    /// The command of an operation on an object.
    const fn object_command(&self) -> Option<ObjectCommand> {
        let object = ObjectId(self.volume as u64);
        let extent = Extent::new(self.offset, self.len);
        let hint = Hint(self.hint);
        Some(match self.op {
            TraceOp::ObjectCreate => ObjectCommand::Create { object, hint },
            TraceOp::ObjectDelete => ObjectCommand::Delete { object },
            TraceOp::ObjectWrite => {
                ObjectCommand::Write { object, extent, hint: if self.hint == 0 { None } else { Some(hint) } }
            }
            TraceOp::ObjectRead => ObjectCommand::Read { object, extent },
            TraceOp::ObjectTruncate => ObjectCommand::Truncate { object, size: self.offset },
            TraceOp::ObjectPunch => ObjectCommand::Punch { object, extent },
            TraceOp::ObjectFlush => {
                ObjectCommand::Flush { object: if self.len == 0 { Some(object) } else { None } }
            }
            _ => return None,
        })
    }
}

impl From<&IoRecord> for Command {
    #[inline]
    fn from(record: &IoRecord) -> Self {
        let &IoRecord { offset, len, hint, op, .. } = record;
        if let Some(op) = op.block_op() {
            return BlockCommand::new(op, Extent::new(offset, len), Hint(hint)).into();
        }
        if let Some(command) = record.object_command() {
            return Self::Object(command);
        }
        Self::Zone(match op.zone_action() {
            Some(action) => {
                ZoneCommand::Manage { action, zone: (!record.is_for_every_zone()).then_some(offset) }
            }
            None => ZoneCommand::Append { zone: offset, len, hint: Hint(hint), is_durable: false },
        })
    }
}

/// What a reader knows about its workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkloadInfo {
    /// Format or generator name, as in its registry.
    pub format: String,
    /// Whether the time stamps are real, so that an open-loop replay makes sense.
    pub has_real_times: bool,
    /// Requests read so far.
    pub records: u64,
    /// Requests whose time stamp went back and was clamped or sorted (formats whose public files do that).
    pub time_reversals: u64,
    /// Lines or records skipped because they are not I/O (plug lines, summaries, non-data SCSI commands).
    pub skipped: u64,
    /// Total requests, where it is known before reading (binary formats, generators).
    pub expected_records: Option<u64>,
    /// Time stamps were whole seconds; the requests of a second were spread evenly over it.
    pub spreads_seconds: bool,
}

/// A workload could not be read. The message names the file, the line or byte offset, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum TraceError {
    #[error("{source_name}: {place}: {message}")]
    Record {
        source_name: String,
        place: String,
        /// What is wrong, with the value and what was expected.
        message: String,
    },
    #[error("{source_name}: {message}")]
    Io { source_name: String, message: String },
    #[error("workload '{spec}': {message}")]
    Spec {
        spec: String,
        /// What is wrong, with the key, the value and what was expected.
        message: String,
    },
}

/// Reads a workload record by record.
///
/// Errors carry the line or offset. After an error the reader is finished and yields `None`.
pub trait TraceReader: Iterator<Item = Result<IoRecord, TraceError>> {
    /// What is known so far; final after the last record.
    fn info(&self) -> WorkloadInfo;

    /// Who issued the record that was returned last. Formats that know nothing say so.
    fn origin(&self) -> Origin<'_> {
        Origin::default()
    }
}

impl<R: TraceReader + ?Sized> TraceReader for Box<R> {
    fn info(&self) -> WorkloadInfo {
        (**self).info()
    }

    fn origin(&self) -> Origin<'_> {
        (**self).origin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_numbered_in_order_and_have_letters_of_their_own() {
        let mut letters: Vec<char> = TraceOp::ALL.iter().map(|op| op.letter()).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), TraceOp::ALL.len());
        for (number, op) in TraceOp::ALL.into_iter().enumerate() {
            assert_eq!(op as usize, number);
            let kinds = [op.block_op().is_some(), op.is_zone_op(), op.is_object_op()];
            assert_eq!(kinds.into_iter().filter(|is| *is).count(), 1, "{op:?}");
            assert_eq!(TraceOp::of_letter(op.letter() as u8), Some(op));
        }
    }

    #[test]
    fn a_command_of_a_record_gives_the_record_back() {
        for op in TraceOp::ALL {
            for len in [0, 4096, IoRecord::EVERY_ZONE] {
                let (offset, hint) = if op == TraceOp::Flush { (0, 0) } else { (8192, 3) };
                let len = if op == TraceOp::Flush { 0 } else { len };
                let record = IoRecord { at: SimTime(7), offset, len, volume: 2, hint, op };
                let got = IoRecord::of(&Command::from(&record), SimTime(7), 2).unwrap();
                let expected = match op {
                    TraceOp::ObjectCreate => IoRecord { offset: 0, len: 0, ..record },
                    TraceOp::ObjectDelete => IoRecord { offset: 0, len: 0, hint: 0, ..record },
                    TraceOp::ObjectTruncate => IoRecord { len: 0, hint: 0, ..record },
                    TraceOp::ObjectRead | TraceOp::ObjectPunch => IoRecord { hint: 0, ..record },
                    // All objects have no number.
                    TraceOp::ObjectFlush if len > 0 => {
                        IoRecord { offset: 0, len: IoRecord::EVERY_OBJECT, volume: 0, hint: 0, ..record }
                    }
                    TraceOp::ObjectFlush => IoRecord { offset: 0, hint: 0, ..record },
                    // Zones are managed without a hint, and all of them have no first byte.
                    _ if op.zone_action().is_some() && len > 0 => {
                        IoRecord { offset: 0, len: IoRecord::EVERY_ZONE, hint: 0, ..record }
                    }
                    _ if op.zone_action().is_some() => IoRecord { hint: 0, ..record },
                    _ => record,
                };
                assert_eq!(got, expected, "{op:?} of {len} B");
            }
        }
        let report = ZoneCommand::Report { from: 0, filter: crate::zone::ZoneFilter::All, room: 1 };
        for command in [report, ZoneCommand::Manage { action: ZoneAction::Offline, zone: Some(0) }] {
            assert_eq!(IoRecord::of(&Command::Zone(command), SimTime(0), 0), None);
        }
    }

    #[test]
    fn a_block_layer_refuses_zone_operations_by_name() {
        for (op, name) in [(TraceOp::Append, "zone append"), (TraceOp::Reset, "reset zone")] {
            let record = IoRecord { at: SimTime(0), offset: 0, len: 4096, volume: 0, hint: 0, op };
            let error = Command::from(&record).into_block().unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
