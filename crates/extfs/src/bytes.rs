//! Little- and big-endian numbers in byte slices. What lies outside the slice reads as 0.

fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    if let Some(found) = at.checked_add(N).and_then(|end| bytes.get(at..end)) {
        out.copy_from_slice(found);
    }
    out
}

/// Little-endian, 16 bits.
pub(crate) fn le16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(take(bytes, at))
}

/// Little-endian, 32 bits.
pub(crate) fn le32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(take(bytes, at))
}

/// Little-endian, 64 bits.
pub(crate) fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(take(bytes, at))
}

/// Big-endian, 16 bits.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(take(bytes, at))
}

/// Big-endian, 32 bits.
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(take(bytes, at))
}
