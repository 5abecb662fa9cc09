//! Addresses. Every number that names a place has its own type, so that a logical page cannot be passed for a
//! physical one.

use std::fmt;

/// Logical page number: host address in device pages.
///
/// 32 bits: a device has at most 2^32 - 3 pages, so that maps cost 4 B an entry. The three highest values are
/// reserved as marks ([`Lpn::NONE`], [`Lpn::PADDING`], [`Lpn::META`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Lpn(pub u32);

/// [`Lpn::NONE`].
impl Default for Lpn {
    fn default() -> Self {
        Self::NONE
    }
}

impl Lpn {
    /// No logical page: what the OOB of an erased page says.
    pub const NONE: Self = Self(u32::MAX);
    /// A programmed page that holds no host data (padding or FTL metadata).
    pub const PADDING: Self = Self(u32::MAX - 1);
    /// A programmed page of a device's own journal or checkpoint.
    pub const META: Self = Self(u32::MAX - 2);
    /// The largest number that names a real page.
    pub const MAX: Self = Self(u32::MAX - 3);

    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Physical page number, block-major: `block * pages_per_block + page`. See [`crate::Geometry`] for the
/// parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Ppn(pub u32);

/// [`Ppn::NONE`].
impl Default for Ppn {
    fn default() -> Self {
        Self::NONE
    }
}

impl Ppn {
    /// No physical page: what a map says of an unmapped logical page.
    pub const NONE: Self = Self(u32::MAX);

    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Whether this names a page at all.
    pub const fn is_some(self) -> bool {
        self.0 != u32::MAX
    }
}

/// Physical block, unit-major: `unit * blocks_per_unit + block in unit`, where `unit = lun * channels +
/// channel` and the block in the unit is `plane * blocks_per_plane + block in plane`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct BlockId(pub u32);

/// [`BlockId::NONE`].
impl Default for BlockId {
    fn default() -> Self {
        Self::NONE
    }
}

impl BlockId {
    /// No block.
    pub const NONE: Self = Self(u32::MAX);

    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Parallel unit: one die of one channel, `unit = lun * channels + channel`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct UnitId(pub u32);

impl UnitId {
    /// The number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A run of host bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Extent {
    /// A run of `len` bytes from `offset`.
    pub const fn new(offset: u64, len: u64) -> Self {
        Self { offset, len }
    }

    /// One past the last byte. Saturates, so that a range check against a capacity always catches an absurd
    /// extent.
    pub const fn end(self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// The device pages this run touches, with the bytes it covers in each.
    pub fn pages(self, page_bytes: u32) -> PageSpans {
        PageSpans { origin: self.offset, at: self.offset, end: self.end(), page_bytes: u64::from(page_bytes) }
    }

    /// How many device pages this run touches; a partly covered page counts as 1, an empty run as 0.
    #[inline]
    pub fn page_count(self, page_bytes: u32) -> u64 {
        if self.len == 0 {
            return 0;
        }
        let page = u64::from(page_bytes);
        page_at(self.end() - 1, page) - page_at(self.offset, page) + 1
    }

    /// The parts that cover a page partly, as runs of their own: at most two.
    pub fn ragged_ends(self, page_bytes: u32) -> impl Iterator<Item = Self> {
        let page_bytes = u64::from(page_bytes);
        let first_end = self.end().min((self.offset / page_bytes + 1) * page_bytes);
        let last = self.end().saturating_sub(1) / page_bytes * page_bytes;
        let ends = [(self.offset, first_end), (last.max(first_end), self.end())];
        let ends = ends.into_iter().map(|(start, end)| Self::new(start, end - start));
        ends.filter(move |end| end.len > 0 && end.len < page_bytes)
    }

    /// The pages this run covers from their first to their last byte: `(first, count)`.
    pub fn whole_pages(self, page_bytes: u32) -> (u64, u64) {
        let page = u64::from(page_bytes);
        let first = self.offset.div_ceil(page);
        let end = self.end() / page;
        (first, end.saturating_sub(first))
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.offset, self.len)
    }
}

/// The part of one page that an [`Extent`] covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSpan {
    /// Logical page.
    pub lpn: Lpn,
    /// First covered byte inside the page.
    pub start: u32,
    /// Covered bytes.
    pub len: u32,
    /// Offset of the first covered byte inside the request, for slicing its payload.
    pub at: u64,
}

impl PageSpan {
    /// Whether every byte of the page is covered.
    pub const fn is_whole(&self, page_bytes: u32) -> bool {
        self.len == page_bytes
    }
}

/// The page of a byte. Nearly all pages are powers of two, and a division takes longer than to find out.
#[inline]
const fn page_at(byte: u64, page_bytes: u64) -> u64 {
    if page_bytes.is_power_of_two() { byte >> page_bytes.trailing_zeros() } else { byte / page_bytes }
}

/// Iterator over the pages of an [`Extent`]. The extent must lie below `Lpn::MAX` pages, which the range
/// check against the logical capacity has established.
#[derive(Clone, Debug)]
pub struct PageSpans {
    origin: u64,
    at: u64,
    end: u64,
    page_bytes: u64,
}

impl Iterator for PageSpans {
    type Item = PageSpan;

    #[inline]
    fn next(&mut self) -> Option<PageSpan> {
        if self.at >= self.end {
            return None;
        }
        let lpn = page_at(self.at, self.page_bytes);
        let start = self.at - lpn * self.page_bytes;
        let len = (self.page_bytes - start).min(self.end - self.at);
        let span = PageSpan {
            lpn: Lpn(lpn as u32),
            start: start as u32,
            len: len as u32,
            at: self.at - self.origin,
        };
        self.at += len;
        Some(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unaligned_extent_touches_both_end_pages() {
        let extent = Extent::new(4000, 5000);
        let spans: Vec<_> = extent.pages(4096).collect();
        assert_eq!(spans.len() as u64, extent.page_count(4096));
        assert_eq!((spans[0].lpn, spans[0].start, spans[0].len), (Lpn(0), 4000, 96));
        assert!(spans[1].is_whole(4096));
        assert_eq!((spans[2].lpn, spans[2].start, spans[2].len), (Lpn(2), 0, 808));
        assert_eq!(extent.whole_pages(4096), (1, 1));
    }

    #[test]
    fn an_empty_extent_touches_nothing() {
        assert_eq!(Extent::new(4096, 0).page_count(4096), 0);
        assert_eq!(Extent::new(4096, 0).pages(4096).count(), 0);
        assert_eq!(Extent::new(100, 50).whole_pages(4096).1, 0);
    }

    #[test]
    fn an_absurd_extent_saturates() {
        assert_eq!(Extent::new(u64::MAX, 10).end(), u64::MAX);
    }
}
