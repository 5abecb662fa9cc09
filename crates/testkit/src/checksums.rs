//! Checksums that are made right again after damage: as if nothing in them were ever compared.

use xxhash_rust::xxh3::xxh3_64;

const BLOCK: usize = 4096;

fn put(bytes: &mut [u8], at: usize, range: std::ops::Range<usize>) {
    let sum = xxh3_64(&bytes[range]);
    bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
}

/// Of superblocks, tables, records and places on the fast store of a cache (docs/formats/cache.md); a block
/// of its tables has `unit` bytes.
pub fn reseal_cache(bytes: &mut [u8], unit: usize) {
    for at in [0, BLOCK] {
        put(bytes, at + 116, at + 8..at + 116);
        put(bytes, at, at + 8..at + BLOCK);
    }
    for at in (2 * BLOCK..=bytes.len() - BLOCK).step_by(512) {
        match &bytes[at + 8..at + 12] {
            b"nsT1" => put(bytes, at, at + 8..at + unit),
            b"nsR1" | b"nsC1" | b"nsW1" => put(bytes, at, at + 8..at + BLOCK),
            _ => {}
        }
    }
}
