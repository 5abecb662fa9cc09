//! The zoned command set: states of zones, what hosts ask of them, and why they are refused. Offsets and
//! lengths are bytes (NVMe ZNS 1.1).

use crate::ftl::Hint;
use crate::words;

/// State of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ZoneState {
    /// A conventional zone, which is written anywhere and has no write pointer. ZNS has no such zones: type
    /// and state are those of ZBC and ZAC.
    NotWritePointer = 0,
    /// Nothing is written since the last reset.
    Empty = 1,
    /// Opened by a write or an append; the device may close it to open another one.
    ImplicitlyOpen = 2,
    /// Opened by a command.
    ExplicitlyOpen = 3,
    /// Written in part, or with a descriptor extension, and not open.
    Closed = 4,
    /// Readable for good, never writable again.
    ReadOnly = 0xd,
    /// Written to its capacity, or finished.
    Full = 0xe,
    /// Neither readable nor writable for good.
    Offline = 0xf,
}

words!(pub ZoneState: NotWritePointer = "not-write-pointer", Empty = "empty", ImplicitlyOpen = "implicitly-open",
    ExplicitlyOpen = "explicitly-open", Closed = "closed", ReadOnly = "read-only", Full = "full",
    Offline = "offline");

impl ZoneState {
    /// A letter for it, in charts and strips of cells.
    pub const fn letter(self) -> char {
        match self {
            Self::NotWritePointer => 'n',
            Self::Empty => 'e',
            Self::ImplicitlyOpen => 'i',
            Self::ExplicitlyOpen => 'o',
            Self::Closed => 'c',
            Self::Full => 'f',
            Self::ReadOnly => 'r',
            Self::Offline => 'x',
        }
    }

    /// That of a letter.
    pub fn of_letter(letter: char) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.letter() == letter)
    }

    /// Whether it takes one of the open resources.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::ImplicitlyOpen | Self::ExplicitlyOpen)
    }

    /// Whether it takes one of the active resources.
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, Self::Closed)
    }

    /// Whether a write pointer means anything in it.
    pub const fn has_write_pointer(self) -> bool {
        self.is_active() || matches!(self, Self::Empty)
    }
}

/// What Zone Management Send does to a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZoneAction {
    /// To closed, if it is open.
    Close,
    /// To full, wherever the write pointer is.
    Finish,
    /// To explicitly open.
    Open,
    /// To explicitly open, with a random write area from the write pointer on.
    OpenRandom,
    /// To empty; what it held is lost.
    Reset,
    /// From read-only to offline.
    Offline,
}

words!(pub ZoneAction: Close = "close", Finish = "finish", Open = "open", OpenRandom = "open-random",
    Reset = "reset", Offline = "offline");

/// Which zones a report is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ZoneFilter {
    /// All of them.
    #[default]
    All,
    /// Those in a state.
    State(ZoneState),
    /// Those of which the device asks something or changed something: a reset or a finish is recommended, or
    /// the device finished it.
    Attention,
}

/// A command of the zoned command set that no block device has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneCommand {
    /// Writes at the write pointer; the answer says where that was.
    Append {
        /// First byte of the zone.
        zone: u64,
        /// Bytes.
        len: u64,
        /// Stream, handle or lifetime class.
        hint: Hint,
        /// As [`crate::BlockCommand::is_durable`].
        is_durable: bool,
    },
    /// Changes the state of a zone.
    Manage {
        /// How.
        action: ZoneAction,
        /// First byte of the zone; absent: every zone in a state that the action is for.
        zone: Option<u64>,
    },
    /// Moves the write pointer of a zone with a random write area to behind a byte: what is before it can be
    /// written no more.
    FlushRandom {
        /// First byte of the last logical block that goes with it.
        last: u64,
    },
    /// Keeps bytes of the host's with an empty zone, which becomes closed. The payload has them.
    Describe {
        /// First byte of the zone.
        zone: u64,
    },
    /// Describes zones.
    Report {
        /// A byte of the first zone.
        from: u64,
        /// Which of them.
        filter: ZoneFilter,
        /// Most descriptions that the host has room for; what matches is counted beyond it.
        room: u64,
    },
}

impl ZoneCommand {
    /// What it is called, for messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Append { .. } => "zone append",
            Self::Manage { action, .. } => match action {
                ZoneAction::Close => "close zone",
                ZoneAction::Finish => "finish zone",
                ZoneAction::Open => "open zone",
                ZoneAction::OpenRandom => "open zone with a random write area",
                ZoneAction::Reset => "reset zone",
                ZoneAction::Offline => "offline zone",
            },
            Self::FlushRandom { .. } => "flush random write area",
            Self::Describe { .. } => "set zone descriptor extension",
            Self::Report { .. } => "report zones",
        }
    }
}

/// What a report says of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// First byte.
    pub start: u64,
    /// Bytes that can be written, from the first on; at most the distance to the next zone.
    pub capacity: u64,
    /// Where the next byte goes, if the state has such a place.
    pub write_pointer: Option<u64>,
    /// State.
    pub state: ZoneState,
    /// What else is to be known.
    pub attributes: ZoneAttributes,
    /// The host's bytes, if it set any since the last reset.
    pub extension: Option<Box<[u8]>>,
}

impl Zone {
    /// Bytes below its write pointer; its capacity if it is full, also if it was finished, and 0 where
    /// neither means anything.
    pub const fn written_bytes(&self) -> u64 {
        match (self.write_pointer, self.state) {
            (Some(pointer), _) => pointer - self.start,
            (None, ZoneState::Full) => self.capacity,
            (None, _) => 0,
        }
    }
}

/// Attributes of a zone, each a bit of its descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ZoneAttributes(pub u8);

impl ZoneAttributes {
    /// The device finished it.
    pub const FINISHED_BY_DEVICE: Self = Self(1 << 0);
    /// The device recommends to finish it.
    pub const FINISH_RECOMMENDED: Self = Self(1 << 1);
    /// The device recommends to reset it.
    pub const RESET_RECOMMENDED: Self = Self(1 << 2);
    /// It has a random write area.
    pub const RANDOM_AREA: Self = Self(1 << 3);
    /// It has a descriptor extension.
    pub const EXTENSION: Self = Self(1 << 7);

    /// Those of [`ZoneFilter::Attention`].
    pub const ATTENTION: Self = Self(0b111);

    /// Whether it has one of others.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These and others.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These without others.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// What never changes of the zones of a namespace. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ZoneShape {
    /// Number of zones.
    pub zones: u32,
    /// The first of them, which are conventional: written anywhere, never reset.
    #[serde(skip_serializing_if = "is_zero")]
    pub conventional: u32,
    /// From the first byte of a zone to that of the next.
    pub size: u64,
    /// Bytes of a zone that can be written, from the first on, unless the medium has lost blocks since.
    pub capacity: u64,
    /// Logical block: the unit of write pointers.
    pub block: u32,
    /// Most zones that are open or closed; absent: no limit.
    pub max_active: Option<u32>,
    /// Most zones that are open; absent: no limit.
    pub max_open: Option<u32>,
    /// Whole device pages survive a loss of power without a flush, once their write and those before it in
    /// the zone are complete.
    #[serde(skip)]
    pub durable_pages: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Whose data a zone has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneOwner {
    /// Metadata of the layer over the zones.
    Metadata,
    /// One file.
    File,
    /// Several files.
    Files,
    /// Files, by a file system that keeps them apart from its nodes and not from each other.
    Data,
    /// Nodes of a file system: where the blocks of files are.
    Nodes,
    /// What was moved here to empty other zones.
    Moved,
}

words!(pub ZoneOwner: Metadata = "metadata", File = "one file", Files = "several files", Data = "data",
    Nodes = "nodes", Moved = "moved data");

impl ZoneOwner {
    /// A letter for it, in charts.
    pub const fn letter(self) -> char {
        match self {
            Self::Metadata => 'm',
            Self::File => 'o',
            Self::Files => 's',
            Self::Data => 'd',
            Self::Nodes => 'n',
            Self::Moved => 'g',
        }
    }
}

/// How long data of a zone is expected to live: write hints of Linux by their numbers, and all others.
pub const LIFETIMES: [&str; 7] = ["not set", "none", "short", "medium", "long", "extreme", "other"];

/// What a layer of the host knows of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneContents {
    /// Bytes that hold what hosts can still read.
    pub valid_bytes: Option<u64>,
    /// Whose data it has; `None` of an empty zone, too.
    pub owner: Option<ZoneOwner>,
    /// Place in [`LIFETIMES`] of the data that the zone was opened for.
    pub lifetime: Option<u8>,
}

impl ZoneContents {
    /// The lifetime of data with a write hint of Linux.
    pub const fn lifetime_of(hint: crate::Hint) -> u8 {
        let last = LIFETIMES.len() as u8 - 1;
        if hint.0 < last as u16 { hint.0 as u8 } else { last }
    }
}

/// What happened to zones since the last reset of counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ZoneCounts {
    /// Appends.
    pub appends: u64,
    /// Zones opened, by commands and by writes.
    pub opens: u64,
    /// Open zones closed by commands.
    pub closes: u64,
    /// Open zones closed by the device to open others.
    pub implicit_closes: u64,
    /// Zones finished.
    pub finishes: u64,
    /// Zones reset.
    pub resets: u64,
}

/// The answer to a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneReport {
    /// Zones that match, from the asked one to the last.
    pub matching: u64,
    /// The first of them, at most as many as there is room for.
    pub zones: Vec<Zone>,
}

/// Why a zoned namespace refuses a command, by the names of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u8)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ZoneError {
    /// A random write area where the device or the zone has none, or an append to a zone with one.
    #[error("Invalid Zone Operation Request")]
    InvalidOperation = 0xb6,
    #[error("Zone Random Write Area Resources Unavailable")]
    RandomAreas = 0xb7,
    /// The extent crosses the end of a zone or of what can be written there.
    #[error("Zone Boundary Error")]
    Boundary = 0xb8,
    #[error("Zone Is Full")]
    Full = 0xb9,
    #[error("Zone Is Read Only")]
    ReadOnly = 0xba,
    #[error("Zone Is Offline")]
    Offline = 0xbb,
    /// The write does not begin at the write pointer.
    #[error("Zone Invalid Write")]
    InvalidWrite = 0xbc,
    #[error("Too Many Active Zones")]
    TooManyActive = 0xbd,
    #[error("Too Many Open Zones")]
    TooManyOpen = 0xbe,
    #[error("Invalid Zone State Transition")]
    Transition = 0xbf,
    /// A field that no state of a zone could make right: a conventional zone, an offset that is no zone's
    /// first byte, an extension where there is room for none, a part of a random write area that is not whole
    /// units.
    #[error("Invalid Field in Command")]
    InvalidField = 0x02,
    /// Beyond the last zone.
    #[error("LBA Out of Range")]
    OutOfRange = 0x80,
}

words!(pub ZoneError: InvalidOperation = "invalid-operation", RandomAreas = "random-areas",
    Boundary = "boundary", Full = "full", ReadOnly = "read-only", Offline = "offline",
    InvalidWrite = "invalid-write", TooManyActive = "too-many-active", TooManyOpen = "too-many-open",
    Transition = "transition", InvalidField = "invalid-field", OutOfRange = "out-of-range");

/// What a zoned namespace gives, or why it refuses.
pub type ZoneResult<T> = Result<T, ZoneError>;

impl ZoneError {
    /// The status field of a completion: the code, and from bit 8 on its type, 1 for those of a command set.
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidField | Self::OutOfRange => self as u16,
            _ => 0x100 | self as u16,
        }
    }
}
