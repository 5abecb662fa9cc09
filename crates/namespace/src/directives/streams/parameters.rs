//! Structures of the Streams directive.

/// Bytes of the Return Parameters structure.
pub const BYTES: usize = 32;

/// Return Parameters of the Streams directive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamsParameters {
    /// Streams that can be open in the subsystem at a time.
    pub msl: u16,
    /// Stream resources of the subsystem that no namespace holds exclusively.
    pub nssa: u16,
    /// Open streams of the subsystem that use those.
    pub nsso: u16,
    /// Bit 0: all hosts of a namespace share ids; bit 1: a host needs a Host Identifier to enable streams.
    pub nssc: u8,
    /// Best size of a write, in logical blocks.
    pub sws: u32,
    /// Stream granularity, in units of `sws`: allocated at a time, and best deallocated together.
    pub sgs: u16,
    /// Streams allocated exclusively to this namespace and host.
    pub nsa: u16,
    /// Streams open in this namespace for this host.
    pub nso: u16,
}

impl StreamsParameters {
    /// The structure, little endian; reserved bytes are 0.
    pub fn encode(&self) -> [u8; BYTES] {
        let mut out = [0; BYTES];
        out[0..2].copy_from_slice(&self.msl.to_le_bytes());
        out[2..4].copy_from_slice(&self.nssa.to_le_bytes());
        out[4..6].copy_from_slice(&self.nsso.to_le_bytes());
        out[6] = self.nssc;
        out[16..20].copy_from_slice(&self.sws.to_le_bytes());
        out[20..22].copy_from_slice(&self.sgs.to_le_bytes());
        out[22..24].copy_from_slice(&self.nsa.to_le_bytes());
        out[24..26].copy_from_slice(&self.nso.to_le_bytes());
        out
    }

    /// Reads the structure back; `None` if there are fewer than 26 bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        Some(Self {
            msl: word(0)?,
            nssa: word(2)?,
            nsso: word(4)?,
            nssc: *bytes.get(6)?,
            sws: u32::from_le_bytes(bytes.get(16..20)?.try_into().ok()?),
            sgs: word(20)?,
            nsa: word(22)?,
            nso: word(24)?,
        })
    }
}

/// Get Status: the number of open streams, then their ids, at most 65,535: at most 131,072 bytes.
pub fn encode_status(ids: &[u16]) -> Vec<u8> {
    let count = ids.len().min(usize::from(u16::MAX));
    let mut out = Vec::with_capacity(2 + 2 * count);
    out.extend_from_slice(&(count as u16).to_le_bytes());
    for id in &ids[..count] {
        out.extend_from_slice(&id.to_le_bytes());
    }
    out
}

/// Ids of a Get Status structure, as many as were transferred.
pub fn decode_status(bytes: &[u8]) -> Vec<u16> {
    let mut words = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let count = words.next().unwrap_or(0);
    words.take(usize::from(count)).collect()
}
