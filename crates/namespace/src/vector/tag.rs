//! What vector access keeps beside the data of a page.

use crate::zones::ImpliedOob;
use nandscape_core::{Lpn, Oob, OutOfBand, Ppn};

/// The place of a page, so that a page that another layer wrote, or that is in the wrong place, is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorTag {
    /// The flash page: with it the address of its first sector.
    pub page: Ppn,
    /// Number of the program, which grows with every page.
    pub seq: u64,
}

/// An OOB that can hold a [`VectorTag`].
pub trait VectorOob: OutOfBand {
    /// The OOB of a tag.
    fn of(tag: VectorTag) -> Self;

    /// The tag again; `None` for a type that keeps nothing.
    fn tag(&self) -> Option<VectorTag>;

    /// That of a host, as far as the type keeps it.
    fn of_host(oob: Oob) -> Self;

    /// The host's again; what marks a torn page for a type that keeps nothing.
    fn host(&self) -> Oob;
}

impl VectorOob for Oob {
    #[inline]
    fn of(tag: VectorTag) -> Self {
        Self { lpn: Lpn(tag.page.0), stream: 0, seq: tag.seq }
    }

    fn tag(&self) -> Option<VectorTag> {
        Some(VectorTag { page: Ppn(self.lpn.0), seq: self.seq })
    }

    #[inline]
    fn of_host(oob: Oob) -> Self {
        oob
    }

    fn host(&self) -> Oob {
        *self
    }
}

impl VectorOob for ImpliedOob {
    #[inline]
    fn of(_: VectorTag) -> Self {
        Self
    }

    fn tag(&self) -> Option<VectorTag> {
        None
    }

    #[inline]
    fn of_host(_: Oob) -> Self {
        Self
    }

    fn host(&self) -> Oob {
        Oob::TORN
    }
}
