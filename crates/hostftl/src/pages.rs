//! Pages of metadata with a magic number and a hash: bytes 0..4 and 8..16 of each.

use xxhash_rust::xxh3::xxh3_64;

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|bytes| u16::from_le_bytes(bytes.try_into().expect("two bytes")))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}

/// Puts the magic number and the hash into a page whose other fields are written.
pub(crate) fn seal(page: &mut [u8], magic: u32) {
    page[0..4].copy_from_slice(&magic.to_le_bytes());
    page[8..16].fill(0);
    let hash = xxh3_64(page);
    page[8..16].copy_from_slice(&hash.to_le_bytes());
}

/// Whether a page is one with this magic number, and whole. Its hash is zero afterwards.
pub(crate) fn open(page: &mut [u8], magic: u32) -> Option<()> {
    let hash = u64_at(page, 8)?;
    page.get_mut(8..16)?.fill(0);
    (u32_at(page, 0)? == magic && xxh3_64(page) == hash).then_some(())
}

/// The fields of an identity that differ between a layer and what a page says, by their names.
pub(crate) fn difference(payload: &[u8], own: &[u8], names: &[&str]) -> Option<String> {
    for (index, name) in names.iter().enumerate() {
        let (found, expected) = (u32_at(payload, index * 4), u32_at(own, index * 4));
        if found != expected {
            let found = found.map_or_else(|| "nothing".to_owned(), |found| found.to_string());
            let expected = expected.expect("its own fields");
            return Some(format!("{name}: found {found}, expected {expected} by its keys"));
        }
    }
    None
}
