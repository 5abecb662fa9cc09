//! The Identify directive's parameters: which directives exist, are enabled, and survive a controller reset.

use super::wire::{DATA_PLACEMENT, IDENTIFY, STREAMS};

/// Bytes of the structure.
pub const BYTES: usize = 4096;

/// What Return Parameters of the Identify directive says about one namespace and host. The Identify directive
/// itself is always supported and enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "bits of a structure of the standard")]
pub struct IdentifyParameters {
    /// Streams can be enabled.
    pub streams_supported: bool,
    /// Streams are enabled for this namespace and host. Never kept over a controller reset.
    pub streams_enabled: bool,
    /// Flexible data placement is on in the endurance group. Always kept over a controller reset.
    pub placement_supported: bool,
    /// Data placement is enabled for this namespace.
    pub placement_enabled: bool,
}

impl IdentifyParameters {
    /// Three bitmaps of 32 bytes (supported, enabled, persistent), the rest reserved.
    pub fn encode(&self) -> [u8; BYTES] {
        let mut out = [0; BYTES];
        let mut set = |map: usize, dtype: u8, value: bool| {
            out[map * 32 + usize::from(dtype / 8)] |= u8::from(value) << (dtype % 8);
        };
        set(0, IDENTIFY, true);
        set(1, IDENTIFY, true);
        set(0, STREAMS, self.streams_supported);
        set(1, STREAMS, self.streams_enabled);
        set(0, DATA_PLACEMENT, self.placement_supported);
        set(1, DATA_PLACEMENT, self.placement_enabled);
        set(2, DATA_PLACEMENT, self.placement_supported);
        out
    }

    /// Reads the bitmaps back; `None` if there are fewer than 96 bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bit = |map: usize, dtype: u8| {
            bytes.get(map * 32 + usize::from(dtype / 8)).map(|byte| byte >> (dtype % 8) & 1 == 1)
        };
        bytes.get(95)?;
        Some(Self {
            streams_supported: bit(0, STREAMS)?,
            streams_enabled: bit(1, STREAMS)?,
            placement_supported: bit(0, DATA_PLACEMENT)?,
            placement_enabled: bit(1, DATA_PLACEMENT)?,
        })
    }
}
