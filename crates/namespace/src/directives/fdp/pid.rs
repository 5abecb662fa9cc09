//! Placement identifiers: reclaim group in the upper RGIF bits, placement handle in the rest.

/// How placement identifiers of an endurance group are divided: RGIF of its configuration, from 0 to 15.
///
/// The same width is used both ways. QEMU builds identifiers by a shift of 16 - RGIF and takes them apart
/// with a mask of 15 - RGIF bits, which loses the highest bit of the handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PidFormat {
    rgif: u8,
}

impl PidFormat {
    /// A format with so many bits of reclaim group; `None` above 15.
    pub const fn new(rgif: u8) -> Option<Self> {
        if rgif <= 15 { Some(Self { rgif }) } else { None }
    }

    /// Bits of reclaim group.
    pub const fn rgif(self) -> u8 {
        self.rgif
    }

    /// Handles that can be named.
    pub const fn handles(self) -> u32 {
        1 << (16 - self.rgif)
    }

    /// Reclaim groups that can be named; 1 if identifiers do not name them.
    pub const fn groups(self) -> u32 {
        1 << self.rgif
    }

    /// The identifier of a group and handle; `None` if one of them cannot be named.
    pub const fn encode(self, group: u16, handle: u16) -> Option<u16> {
        if group as u32 >= self.groups() || handle as u32 >= self.handles() {
            return None;
        }
        Some(((group as u32) << (16 - self.rgif)) as u16 | handle)
    }

    /// Group and handle of an identifier.
    #[inline]
    pub const fn decode(self, pid: u16) -> (u16, u16) {
        let pid = pid as u32;
        let shift = 16 - self.rgif as u32;
        ((pid >> shift) as u16, (pid & ((1 << shift) - 1)) as u16)
    }
}
