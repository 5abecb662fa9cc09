//! What zones keep beside the data of a page.

use nandscape_core::{Lpn, Oob, OutOfBand};

/// The page of a zone that a flash page holds, as a start finds it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneTag {
    /// Number of the page among those of all zones, or [`Lpn::META`] for a page of the metadata log.
    pub page: Lpn,
    /// Pages of the block that were copied from the block whose place it took.
    pub copied: u16,
    /// Number of the block's binding to its zone, which grows with every binding; of a page of the metadata
    /// log its number there.
    pub seq: u64,
}

/// An OOB that can hold a [`ZoneTag`].
pub trait ZoneOob: OutOfBand {
    /// The OOB of a tag.
    fn of(tag: ZoneTag) -> Self;

    /// The tag again; meaningless for a type that keeps nothing.
    fn tag(&self) -> ZoneTag;
}

impl ZoneOob for Oob {
    #[inline]
    fn of(tag: ZoneTag) -> Self {
        Self { lpn: tag.page, stream: tag.copied, seq: tag.seq }
    }

    fn tag(&self) -> ZoneTag {
        ZoneTag { page: self.lpn, copied: self.stream, seq: self.seq }
    }
}

/// The OOB of zones or chunks over a medium without data: it follows from the write pointers, so none is
/// kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImpliedOob;

impl OutOfBand for ImpliedOob {
    type Page = ();
    type Block = ();

    const BYTES: usize = 0;
    const ERASED: () = ();
    const TORN: Self = Self;

    #[inline]
    fn is_erased((): &()) -> bool {
        false
    }

    #[inline]
    fn split(&self) -> ((), ()) {
        ((), ())
    }

    #[inline]
    fn joined((): (), (): ()) -> Self {
        Self
    }

    fn encode(&self, _: &mut [u8]) {}

    fn decode(_: &[u8]) -> Self {
        Self
    }
}

impl ZoneOob for ImpliedOob {
    #[inline]
    fn of(_: ZoneTag) -> Self {
        Self
    }

    fn tag(&self) -> ZoneTag {
        ZoneTag { page: Lpn::NONE, copied: 0, seq: 0 }
    }
}
