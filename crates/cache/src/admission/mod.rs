//! What is not worth caching.

use crate::key::BlockKey;
use nandscape_core::{Extent, Hint, Op, SimTime};
use serde::Serialize;

/// A request, as admission sees it.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Volume it addresses.
    pub volume: u16,
    /// Read or write.
    pub op: Op,
    /// Bytes on the volume.
    pub extent: Extent,
    /// Stream or tag that the client gave it.
    pub hint: Hint,
    /// When it came.
    pub at: SimTime,
}

/// Why a request or a block went past the cache. Every one is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Bypass {
    /// Part of a sequential stream longer than the threshold.
    Sequential,
    /// Not asked for often enough yet.
    TooFewHits,
    /// Its client tag is ruled out.
    Tag,
    /// The mode does not cache such requests.
    Mode,
    /// The design does not cache requests of this shape (not whole blocks).
    Shape,
    /// Every slot that it could take is busy or dirty.
    NoRoom,
    /// The volume has used up its quota.
    Quota,
    /// The fast device has failed.
    Failed,
}

impl Bypass {
    /// How many reasons there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Every reason, in the order of [`Bypass::index`].
    pub const ALL: [Self; 8] = [
        Self::Sequential,
        Self::TooFewHits,
        Self::Tag,
        Self::Mode,
        Self::Shape,
        Self::NoRoom,
        Self::Quota,
        Self::Failed,
    ];

    /// Its place in arrays that count by reason.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::TooFewHits => "too-few-hits",
            Self::Tag => "tag",
            Self::Mode => "mode",
            Self::Shape => "shape",
            Self::NoRoom => "no-room",
            Self::Quota => "quota",
            Self::Failed => "failed",
        }
    }
}

/// Decides what is cached.
pub trait Admission {
    /// Whether a request may enter the cache at all; asked once for each read or write, in order of arrival. Blocks of it that are cached already are
    /// served from there regardless.
    fn request(&mut self, ask: &Ask) -> Result<(), Bypass>;

    /// Whether a block that is not cached may be inserted; asked for each of them, after [`Admission::request`] had let the request pass. `fill` is the share of
    /// slots in use, from 0 to 1.
    fn block(&mut self, key: BlockKey, op: Op, fill: f32) -> Result<(), Bypass>;
}
