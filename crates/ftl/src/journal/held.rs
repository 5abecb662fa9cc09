//! Which logical pages hold something: a bit each in every checkpoint, written twice. Where the map of a
//! checkpoint is lost, the flash still tells the newest data of each page; but what was dropped before leaves
//! no trace there, and would be back.
//!
//! Payload of a page: the first sequence number after the checkpoint began (8 B), then a bit for each logical
//! page. A bit may tell of any moment between the beginning of the checkpoint and its end: what was dropped
//! or written in between is told by records and by younger pages.

use super::format::u64_at;
use super::newest::Newest;
use super::records::Record;

/// Bytes before the bits.
const HEAD: usize = 8;

/// Logical pages that a page of the journal tells of.
pub(super) const fn pages_of(payload: usize) -> u32 {
    (payload - HEAD) as u32 * 8
}

pub(super) fn write(newest: &Newest, part: u32, start_seq: u64, payload: usize, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&start_seq.to_le_bytes());
    let first = part * pages_of(payload);
    let entries = newest.slice(first, pages_of(payload));
    out.extend(entries.chunks(8).map(|eight| {
        let bits = eight.iter().enumerate().map(|(bit, entry)| u8::from(*entry != 0) << bit);
        bits.sum::<u8>()
    }));
}

/// Whether a part is as long as it should be, on a device of so many pages.
pub(super) fn is_whole(payload: &[u8], part: u32, room: usize, pages: u32) -> bool {
    let first = u64::from(part) * u64::from(pages_of(room));
    let bits = u64::from(pages).saturating_sub(first).min(u64::from(pages_of(room)));
    payload.len() as u64 == HEAD as u64 + bits.div_ceil(8)
}

/// What a part says was dropped, as records of the moment at which its checkpoint began.
pub(super) fn drops(payload: &[u8], part: u32, room: usize, pages: u32, out: &mut Vec<Record>) {
    let seq = u64_at(payload, 0);
    let first = part * pages_of(room);
    let end = pages.min(first.saturating_add(pages_of(room)));
    let is_held = |lpn: u32| {
        let bit = (lpn - first) as usize;
        payload[HEAD + bit / 8] >> (bit % 8) & 1 == 1
    };
    let dropped: Vec<u32> = (first..end).filter(|lpn| !is_held(*lpn)).collect();
    let runs = dropped.chunk_by(|a, b| a + 1 == *b);
    out.extend(runs.map(|run| Record::Drop { first: run[0], count: run.len() as u32, seq }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::{Geometry, Lpn, Ppn};

    #[test]
    fn parts_tell_what_was_dropped_and_nothing_else() {
        let geometry = Geometry {
            channels: 1,
            dies_per_channel: 1,
            planes_per_die: 1,
            blocks_per_plane: 30,
            pages_per_block: 10,
            page_bytes: 512,
            sector_bytes: 512,
            oob_bytes: 16,
        };
        let mut newest = Newest::new(&geometry);
        for lpn in (0..300).filter(|lpn| lpn % 7 != 0 && !(90..110).contains(lpn)) {
            newest.set(Lpn(lpn), Ppn(lpn));
        }
        // 96 logical pages a part.
        let room = 20;
        let mut found = Vec::new();
        for part in 0..300u32.div_ceil(pages_of(room)) {
            let mut payload = Vec::new();
            write(&newest, part, 1 << 33, room, &mut payload);
            assert!(payload.len() <= room && is_whole(&payload, part, room, 300));
            assert!(!is_whole(&payload[1..], part, room, 300));
            drops(&payload, part, room, 300, &mut found);
        }
        let mut dropped = vec![false; 300];
        for record in found {
            let Record::Drop { first, count, seq } = record else { panic!("{record:?}") };
            assert_eq!(seq, 1 << 33);
            dropped[first as usize..(first + count) as usize].fill(true);
        }
        for (lpn, dropped) in (0..).zip(dropped) {
            assert_eq!(dropped, newest.get(Lpn(lpn)).is_none(), "logical page {lpn}");
        }
    }
}
