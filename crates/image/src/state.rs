//! The state page: whether the image was closed, and how far syncs have come.

use nandscape_media::checksum::sum;

pub(crate) const BYTES: usize = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// Closed, with everything synced.
    pub is_clean: bool,
    /// Syncs so far, modulo 2^32.
    pub epoch: u32,
    /// How often it was opened.
    pub opens: u32,
    /// The start of the machine under which it was opened last.
    pub boot: [u8; 16],
}

impl State {
    pub fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[4..8].copy_from_slice(&u32::from(self.is_clean).to_le_bytes());
        bytes[8..12].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.opens.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.boot);
        let crc = sum(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The later copy with a right checksum: a failure of the machine may have prevented the other's write.
    pub fn latest(copies: [Option<Self>; 2]) -> Option<Self> {
        let [Some(first), Some(second)] = copies else { return copies[0].or(copies[1]) };
        let age = |state: &Self| {
            let since = (state.opens.wrapping_sub(first.opens), state.epoch.wrapping_sub(first.epoch));
            (since.0.cast_signed(), since.1.cast_signed(), state.is_clean)
        };
        Some(if age(&second) > age(&first) { second } else { first })
    }

    /// `None` where the checksum is wrong.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        (word(0) == sum(&bytes[4..BYTES]) && word(4) <= 1).then(|| Self {
            is_clean: word(4) == 1,
            epoch: word(8),
            opens: word(12),
            boot: bytes[16..32].try_into().expect("16 bytes"),
        })
    }
}

/// Tells starts of the machine apart; zeroes, which equal nothing, where the system does not say.
pub(crate) fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: Vec<u8> = text.bytes().filter_map(|c| (c as char).to_digit(16)).map(|d| d as u8).collect();
    let mut id = [0; 16];
    if digits.len() == 32 {
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
    }
    id
}
