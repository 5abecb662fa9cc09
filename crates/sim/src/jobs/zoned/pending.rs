//! A request that looks for its place: how far it is.

use super::offsets::Place;
use nandscape_jobs::Direction;

/// A request that has no place yet. Offsets count from the beginning of its file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub file: usize,
    pub direction: Direction,
    /// Where it would go without zones.
    pub first_offset: u64,
    pub offset: u64,
    pub len: u64,
    /// The random map marks it.
    pub is_marked: bool,
    /// The zone that it keeps other jobs out of.
    pub zone: Option<u32>,
    pub stage: Stage,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    New,
    /// Its zone may not be opened: it goes to an open one.
    Convert,
    /// An open zone is full: open another one behind `zone`, once nothing is under way if `quiesces`.
    Search {
        zone: u32,
        quiesces: bool,
        again: bool,
    },
    /// The zone may be written.
    Opened(u32),
    /// The zone is reset if it must be.
    Checked(u32),
    /// The device resets the zone.
    Resetting(u32),
    /// The request goes to the write pointer.
    Ready(u32),
}

/// What became of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Adjusted {
    Accepted,
    Reset {
        namespace: u32,
        zone: u64,
    },
    Wait,
    /// The file has no place for it.
    Nowhere,
}

impl Pending {
    pub const fn new(file: usize, direction: Direction, place: Place, len: u64) -> Self {
        Self {
            file,
            direction,
            first_offset: place.offset,
            offset: place.offset,
            len,
            is_marked: place.is_marked,
            zone: None,
            stage: Stage::New,
        }
    }
}
