//! A few places of a disk, which tell whether it was used.

use crate::metadata::Area;
use nandscape_core::{Extent, StoreResult};
use nandscape_policies::hash::mix;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const PIECE: u64 = 4096;
/// Bytes at the beginning, where file systems and partition tables keep what changes with every use: ext4 and
/// xfs in the first block, btrfs at 64 KiB.
const FIRST: u64 = 128 << 10;
/// Bytes at the end, where GPT has its copy.
const LAST: u64 = 64 << 10;
/// Places between, spread by the volume's uuid.
const BETWEEN: u64 = 64;
/// Places at most: the end of a disk may be no multiple of one.
pub(super) const PLACES_MAX: usize = ((FIRST + LAST) / PIECE + BETWEEN + 1) as usize;

/// The places of a disk of so many bytes, by offset: all of the first 128 KiB and of the last 64 KiB, and 64
/// of 4 KiB between that `uuid` chooses.
pub(super) fn places(capacity: u64, uuid: &[u8; 16]) -> Vec<Extent> {
    let last = FIRST.max(capacity.saturating_sub(LAST) / PIECE * PIECE);
    let pieces = |start: u64, end: u64| (start..end.min(capacity)).step_by(PIECE as usize);
    let between = capacity.saturating_sub(FIRST + LAST) / PIECE;
    let [high, low] =
        [&uuid[..8], &uuid[8..]].map(|half| u64::from_le_bytes(half.try_into().expect("half of 16")));
    let chosen = (0..BETWEEN.min(between)).map(|place| {
        let share = u128::from(mix(high ^ mix(low.wrapping_add(place)))) * u128::from(between);
        FIRST + (share >> 64) as u64 * PIECE
    });
    let mut starts: Vec<u64> = pieces(0, FIRST).chain(chosen).chain(pieces(last, capacity)).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.into_iter().map(|start| Extent::new(start, PIECE.min(capacity - start))).collect()
}

/// XXH3-64 of what a disk has at such a place.
pub(super) fn sum(disk: &mut dyn Area, place: Extent) -> StoreResult<u64> {
    let mut bytes = vec![0; place.len as usize];
    disk.read(place.offset, &mut bytes)?;
    Ok(xxh3_64(&bytes))
}

/// The first byte that is not zero, of those at its places.
pub(super) fn first_byte(disk: &mut dyn Area) -> StoreResult<Option<u64>> {
    let mut bytes = Vec::new();
    for place in places(disk.capacity_bytes(), &[0; 16]) {
        bytes.resize(place.len as usize, 0);
        disk.read(place.offset, &mut bytes)?;
        if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
            return Ok(Some(place.offset + at as u64));
        }
    }
    Ok(None)
}

/// XXH3-64 of what a disk has at its places. A write elsewhere does not show in it.
pub fn fingerprint(disk: &mut dyn Area, uuid: &[u8; 16]) -> StoreResult<u64> {
    let mut all = Xxh3::new();
    for place in places(disk.capacity_bytes(), uuid) {
        all.update(&sum(disk, place)?.to_le_bytes());
    }
    Ok(all.digest())
}
