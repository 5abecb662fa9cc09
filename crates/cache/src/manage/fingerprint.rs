//! A few places of a disk in one number.

use crate::hash::mix;
use crate::metadata::Area;
use nandscape_core::StoreError;
use xxhash_rust::xxh3::Xxh3;

/// Bytes read at each place.
const PIECE: u64 = 4096;
/// Bytes at the beginning, where file systems and partition tables keep what changes with every use: ext4 and xfs in the first block, btrfs at 64 KiB.
const FIRST: u64 = 128 << 10;
/// Bytes at the end, where GPT has its copy.
const LAST: u64 = 64 << 10;
/// Places between, spread by the volume's uuid.
const PLACES: u64 = 64;

/// XXH3-64 of the first 128 KiB of a disk, the last 64 KiB, and 64 places of 4 KiB between that `uuid` chooses. A write elsewhere does not show in it.
pub fn fingerprint(disk: &mut dyn Area, uuid: &[u8; 16]) -> Result<u64, StoreError> {
    let capacity = disk.capacity_bytes();
    let mut sum = Xxh3::new();
    let mut bytes = Vec::new();
    let mut read = |start: u64, end: u64| -> Result<(), StoreError> {
        let end = end.min(capacity);
        if start < end {
            bytes.resize((end - start) as usize, 0);
            disk.read(start, &mut bytes)?;
            sum.update(&bytes);
        }
        Ok(())
    };
    read(0, FIRST)?;
    read(FIRST.max(capacity.saturating_sub(LAST) / PIECE * PIECE), capacity)?;
    let between = capacity.saturating_sub(FIRST + LAST) / PIECE;
    let [high, low] =
        [&uuid[..8], &uuid[8..]].map(|half| u64::from_le_bytes(half.try_into().expect("half of 16")));
    for place in 0..PLACES.min(between) {
        let share = u128::from(mix(high ^ mix(low.wrapping_add(place)))) * u128::from(between);
        let start = FIRST + (share >> 64) as u64 * PIECE;
        read(start, start + PIECE)?;
    }
    Ok(sum.digest())
}
