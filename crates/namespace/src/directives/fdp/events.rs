//! FDP events: what is logged about reclaim unit handles, and which of it is enabled.

use nandscape_core::{SimTime, state, state_of_enum};
use std::collections::VecDeque;

/// Events that a log keeps of each kind; more push the oldest out.
pub const KEPT: usize = 63;
/// Bytes of an event, and of the header of the log page.
pub const EVENT_BYTES: usize = 64;

/// Event types. Below 80h the host caused it, from there on the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum EventType {
    /// The host moved a handle on before its reclaim unit was full.
    NotFullyWritten = 0x00,
    /// A reclaim unit was open too long. Never raised: the device has no such limit.
    TimeLimitExceeded = 0x01,
    /// A controller reset changed handles. Never raised: handles keep their reclaim units here.
    ResetModifiedHandles = 0x02,
    /// A write named a placement identifier that is not valid.
    InvalidPid = 0x03,
    /// The controller moved data (garbage collection).
    MediaReallocated = 0x80,
    /// The controller moved a handle on by itself. Never raised: handles move on when full or on command.
    ImplicitlyModifiedHandle = 0x81,
}

impl EventType {
    /// Every type, ascending.
    pub const ALL: [Self; 6] = [
        Self::NotFullyWritten,
        Self::TimeLimitExceeded,
        Self::ResetModifiedHandles,
        Self::InvalidPid,
        Self::MediaReallocated,
        Self::ImplicitlyModifiedHandle,
    ];

    /// The type of this number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.code() == code)
    }

    /// Its number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Bit in a [`Filter`].
    const fn bit(self) -> u8 {
        1 << (self.code() & 3 | (self.code() >> 7) << 2)
    }
}

/// Event types that are enabled for a handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter(u8);

impl Filter {
    /// Enables or disables a type.
    pub fn set(&mut self, event: EventType, enable: bool) {
        self.0 = if enable { self.0 | event.bit() } else { self.0 & !event.bit() };
    }

    /// Whether a type is enabled.
    #[inline]
    pub const fn has(self, event: EventType) -> bool {
        self.0 & event.bit() != 0
    }
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub event: EventType,
    /// Virtual time, in the log as milliseconds.
    pub at: SimTime,
    /// Placement identifier, if one is concerned.
    pub pid: Option<u16>,
    /// Namespace id, if one is concerned.
    pub nsid: Option<u32>,
    /// Reclaim group and reclaim unit handle, if they are concerned.
    pub place: Option<(u16, u8)>,
    /// Of [`EventType::MediaReallocated`]: logical blocks that were moved.
    pub moved_blocks: u16,
}

impl Event {
    /// An event that concerns nothing in particular.
    pub const fn new(event: EventType, at: SimTime) -> Self {
        Self { event, at, pid: None, nsid: None, place: None, moved_blocks: 0 }
    }

    /// The event as it stands in the log page.
    pub fn encode(&self) -> [u8; EVENT_BYTES] {
        let mut out = [0; EVENT_BYTES];
        out[0] = self.event.code();
        out[1] = u8::from(self.pid.is_some())
            | u8::from(self.nsid.is_some()) << 1
            | u8::from(self.place.is_some()) << 2;
        out[2..4].copy_from_slice(&self.pid.unwrap_or(0).to_le_bytes());
        let milliseconds = self.at.0 / 1_000_000;
        out[4..10].copy_from_slice(&milliseconds.to_le_bytes()[..6]);
        out[12..16].copy_from_slice(&self.nsid.unwrap_or(0).to_le_bytes());
        // Type specific: flags (no LBA is given), then the number of blocks.
        out[18..20].copy_from_slice(&self.moved_blocks.to_le_bytes());
        let (group, handle) = self.place.unwrap_or((0, 0));
        out[32..34].copy_from_slice(&group.to_le_bytes());
        out[34] = handle;
        out
    }
}

impl Default for Event {
    fn default() -> Self {
        Self::new(EventType::NotFullyWritten, SimTime::ZERO)
    }
}

state!(impl [] Event { saved: event, at, pid, nsid, place, moved_blocks; });

state_of_enum!(EventType:
    NotFullyWritten, TimeLimitExceeded, ResetModifiedHandles, InvalidPid, MediaReallocated, ImplicitlyModifiedHandle
);

/// The events of one kind, oldest first.
#[derive(Debug, Default)]
pub struct EventLog {
    kept: VecDeque<Event>,
    /// Events since the last clear, those pushed out included.
    pub total: u64,
}

state!(impl [] EventLog { saved: kept, total; });

impl EventLog {
    /// Adds an event.
    pub fn push(&mut self, event: Event) {
        self.total += 1;
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(event);
    }

    /// What is kept, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Event> {
        self.kept.iter()
    }

    /// The log page: their number, then the events, oldest first.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; EVENT_BYTES];
        out[..4].copy_from_slice(&(self.kept.len() as u32).to_le_bytes());
        for event in self.iter() {
            out.extend_from_slice(&event.encode());
        }
        out
    }
}
