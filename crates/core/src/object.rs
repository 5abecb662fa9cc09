//! The object command set: files named by numbers, with bytes, a size, attributes and a lifetime. The store
//! allocates their space, so hosts see no addresses. Offsets and lengths are bytes.
//!
//! A change is durable once a [`ObjectCommand::Flush`] of its object, or of everything, is complete. After a
//! loss of power an object is as it was flushed, or as a later change left it; a change that concerns two
//! objects ([`ObjectCommand::SetAttributes`] with `replaces`) is there whole or not at all.

use crate::addr::Extent;
use crate::ftl::Hint;
use crate::words;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Number of an object, chosen by the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[repr(transparent)]
pub struct ObjectId(pub u64);

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Most bytes of attributes.
pub const MOST_ATTRIBUTES: usize = 4_000;

/// Lifetime classes of Linux (`F_SET_RW_HINT`) as hints of objects. Larger numbers are classes of the host's
/// own.
impl Hint {
    /// The host has not said anything.
    pub const NOT_SET: Self = Self(0);
    /// The host knows nothing of the lifetime.
    pub const NONE: Self = Self(1);
    /// Logs and temporary files.
    pub const SHORT: Self = Self(2);
    /// Longer than [`Hint::SHORT`].
    pub const MEDIUM: Self = Self(3);
    /// Longer than [`Hint::MEDIUM`].
    pub const LONG: Self = Self(4);
    /// As long as the device lives.
    pub const EXTREME: Self = Self(5);
}

/// A command of the object command set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectCommand {
    /// Makes an object without bytes and without attributes.
    Create {
        /// A number that no object has.
        object: ObjectId,
        /// Lifetime class of its data.
        hint: Hint,
    },
    /// Removes an object.
    Delete {
        /// Which.
        object: ObjectId,
    },
    /// Writes bytes. An object grows as far as needed; bytes between its old end and the first one written
    /// read as zeroes.
    Write {
        /// Which.
        object: ObjectId,
        /// Where.
        extent: Extent,
        /// Lifetime class of these bytes, where it is not that of the object. An object that has none takes
        /// it.
        hint: Option<Hint>,
    },
    /// Reads bytes, up to the end of the object. The answer says how many they are
    /// ([`crate::Reply::Bytes`]); the rest of the payload is left alone.
    Read {
        /// Which.
        object: ObjectId,
        /// Where.
        extent: Extent,
    },
    /// Sets the size. Bytes that are added read as zeroes and take no space.
    Truncate {
        /// Which.
        object: ObjectId,
        /// Its size from now on.
        size: u64,
    },
    /// Makes bytes read as zeroes and frees their space. The size stays.
    Punch {
        /// Which.
        object: ObjectId,
        /// Where; what is behind the end of the object is ignored.
        extent: Extent,
    },
    /// Keeps room for bytes that are not stored: writes to them are not refused for lack of room. They read
    /// as zeroes, and an object grows as far as needed. Not every store can.
    Reserve {
        /// Which.
        object: ObjectId,
        /// Where.
        extent: Extent,
    },
    /// Sets the lifetime class of what is written from now on.
    Hint {
        /// Which.
        object: ObjectId,
        /// Its class.
        hint: Hint,
    },
    /// Makes durable what was answered: bytes, size and attributes of an object, or everything.
    Flush {
        /// Which; absent: all objects, also those that were deleted.
        object: Option<ObjectId>,
    },
    /// Sets the attributes to the bytes of the payload, at most [`MOST_ATTRIBUTES`]; without a payload to
    /// nothing.
    SetAttributes {
        /// Which.
        object: ObjectId,
        /// Another object, which the same change deletes: a file system that keeps names in attributes
        /// renames over an existing file.
        replaces: Option<ObjectId>,
    },
    /// Asks for attributes and status.
    GetAttributes {
        /// Which.
        object: ObjectId,
    },
    /// Asks whether the first byte of an extent is stored, and how far this goes on in it; for no bytes at
    /// and behind the end of the object ([`crate::Reply::Allocation`]).
    Allocation {
        /// Which.
        object: ObjectId,
        /// Where.
        extent: Extent,
    },
    /// Lists the objects in the order of their numbers. One whose metadata cannot be read has no size there.
    List,
    /// Asks how the space is divided.
    Space,
}

impl ObjectCommand {
    /// What it is called, for messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create object",
            Self::Delete { .. } => "delete object",
            Self::Write { .. } => "write object",
            Self::Read { .. } => "read object",
            Self::Truncate { .. } => "truncate object",
            Self::Punch { .. } => "punch object",
            Self::Reserve { .. } => "reserve space of object",
            Self::Hint { .. } => "hint object",
            Self::Flush { .. } => "flush object",
            Self::SetAttributes { .. } => "set object attributes",
            Self::GetAttributes { .. } => "get object attributes",
            Self::Allocation { .. } => "get object allocation",
            Self::List => "list objects",
            Self::Space => "object space",
        }
    }

    /// Whether it needs neither room nor leave to write.
    pub const fn writes_nothing(&self) -> bool {
        matches!(
            self,
            Self::Read { .. }
                | Self::Flush { .. }
                | Self::GetAttributes { .. }
                | Self::Allocation { .. }
                | Self::List
                | Self::Space
        )
    }
}

/// What is known of an object besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ObjectStatus {
    /// Its number.
    pub object: ObjectId,
    /// Bytes up to its end.
    pub size: u64,
    /// Its lifetime class.
    #[serde(skip)]
    pub hint: Hint,
    /// Bytes of space that it takes.
    pub allocated: u64,
}

/// The answer to [`ObjectCommand::GetAttributes`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectAttributes {
    /// What is known of the object.
    pub status: ObjectStatus,
    /// The bytes of the host.
    pub bytes: Box<[u8]>,
}

/// How the space of a store is divided, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ObjectSpace {
    /// All that objects can take.
    pub capacity: u64,
    /// Taken by bytes that can be read, whole units.
    pub live: u64,
    /// What can be written before the store is full, whole units.
    pub free: u64,
    /// Of what is free, the part that has to be reclaimed first.
    pub reclaimable: u64,
}

/// How a store of objects uses its space, and what it did since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectReport {
    /// Objects.
    pub objects: u64,
    /// Runs of bytes that are stored in one piece.
    pub extents: u64,
    /// Bytes of space that live data takes, whole units.
    pub live_bytes: u64,
    /// Bytes of the containers (zones, segments) that hold data, live or not; of one that is being written,
    /// those that were written.
    pub used_bytes: u64,
    /// Containers emptied.
    pub resets: u64,
    /// Containers that were finished before they were full.
    pub finishes: u64,
    /// Bytes of live data that reclaim has moved.
    pub moved_bytes: u64,
    /// Nanoseconds by which writes were answered later because space had to be reclaimed; of writes whose
    /// completion is known at submission.
    pub waited_ns: u64,
    /// What a store on the device itself did; `None` of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_flash: Option<ObjectFlashReport>,
}

/// What a store that allocates pages itself wrote, since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectFlashReport {
    /// Writes to the flash: pages of one kind that are written together.
    pub writes: u64,
    /// Times that an update window ended or was extended, with all that was written for it.
    pub window_extensions: u64,
}

impl ObjectReport {
    /// Bytes in use over bytes that are live; nothing where no data is live.
    pub fn space_amplification(&self) -> Option<f64> {
        (self.live_bytes > 0).then(|| self.used_bytes as f64 / self.live_bytes as f64)
    }
}

/// Why a store of objects refuses a command, which then has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u8)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ObjectError {
    #[error("expected the number of an object that exists")]
    Unknown = 0x87,
    #[error("expected a number that no object has")]
    Exists = 0x89,
    /// Live data takes all space.
    #[error("expected less data: live data takes the whole capacity")]
    Full = 0x81,
    /// Objects, their extents and attributes fill the metadata.
    #[error("expected fewer objects, extents or attributes: they take the whole room for metadata")]
    TooMany = 0xc0,
    /// An object would reach beyond the last byte that the store has a number for.
    #[error("expected an end below the largest size of an object")]
    TooLarge = 0x85,
}

words!(pub ObjectError: Unknown = "unknown-object", Exists = "object-exists", Full = "objects-full",
    TooMany = "too-many-objects", TooLarge = "object-too-large");

impl ObjectError {
    /// The status field of a completion, type 0: by the Key Value command set, where an object that is
    /// unknown is a key that does not exist.
    pub const fn status(self) -> u16 {
        match self {
            Self::TooMany => Self::Full as u16,
            _ => self as u16,
        }
    }

    /// Whether there is no room.
    pub const fn is_full(self) -> bool {
        matches!(self, Self::Full | Self::TooMany)
    }
}
