//! Reads without holes: in structured replies, a range that holds no data is told by its length.
//!
//! A read is done as ever. If some page of what it gave begins with zeroes, the device is asked which of its
//! pages hold data, and the zeroes of the others are left out. So a read of data costs a look at eight bytes
//! a page, and what is told to be a hole reads as zeroes for sure.

use super::plan::Entry;
use super::replies::{CHUNK_BYTES, HOLE_BYTES, read_header_bytes, write_data_header, write_hole};
use crate::wire::command_flag;
use nandscape_core::{Extent, Subsystem};

/// A shorter range is sent as zeroes. More than two headers of chunks, so that a reply never grows.
const LEAST_BYTES: usize = 4096;

const _: () = assert!(LEAST_BYTES > HOLE_BYTES + CHUNK_BYTES + size_of::<u64>());

/// Bytes of a read that go in one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    bytes: usize,
    is_hole: bool,
}

/// Whether a read may have a hole: some page of what it gave begins with zeroes.
pub(super) fn may_be_in(offset: u64, data: &[u8]) -> bool {
    let step = LEAST_BYTES as u64;
    let first_page = (offset.next_multiple_of(step) - offset) as usize;
    std::iter::once(0)
        .chain((first_page..data.len()).step_by(LEAST_BYTES))
        .any(|at| data.len() - at >= LEAST_BYTES && data[at..at + 8] == [0; 8])
}

/// The parts of a read, in order.
pub(super) fn parts(
    subsystem: &dyn Subsystem,
    namespace: u32,
    offset: u64,
    data: &[u8],
    out: &mut Vec<Part>,
) {
    out.clear();
    let mut left = Extent::new(offset, data.len() as u64);
    while left.len > 0 {
        let run = subsystem.allocation(namespace, left);
        let (bytes, is_hole) = (run.bytes as usize, !run.is_mapped);
        match out.last_mut() {
            Some(last) if last.is_hole == is_hole => last.bytes += bytes,
            _ => out.push(Part { bytes, is_hole }),
        }
        left = Extent::new(left.offset + run.bytes, left.len - run.bytes);
    }
    // The map may have changed since the read: what was data then is data.
    let (mut at, mut kept) = (0, 0);
    for index in 0..out.len() {
        let Part { bytes, is_hole } = out[index];
        let is_hole = is_hole && bytes >= LEAST_BYTES && is_zero(&data[at..at + bytes]);
        at += bytes;
        if kept > 0 && out[kept - 1].is_hole == is_hole {
            out[kept - 1].bytes += bytes;
        } else {
            out[kept] = Part { bytes, is_hole };
            kept += 1;
        }
    }
    out.truncate(kept);
}

fn is_zero(data: &[u8]) -> bool {
    // A comparison of slices is the C library's, which takes many bytes at a time in every build.
    static ZEROES: [u8; LEAST_BYTES] = [0; LEAST_BYTES];
    data.chunks(LEAST_BYTES).all(|chunk| *chunk == ZEROES[..chunk.len()])
}

/// Whether a reply can be cut into these parts: a client may have asked for one chunk.
pub(super) fn can_be_cut(entry: &Entry, parts: &[Part]) -> bool {
    parts.iter().any(|part| part.is_hole) && (parts.len() == 1 || entry.header.flags & command_flag::DF == 0)
}

/// Writes the reply to a read at `to` of `room`, in the parts that it has; its data stand whole behind the
/// header at `from`, no earlier than `to`. Gives where it ends.
pub(super) fn write(room: &mut [u8], from: usize, to: usize, entry: &Entry, parts: &[Part]) -> usize {
    let (mut source, mut target) = (from + read_header_bytes(true), to);
    let mut offset = entry.header.offset;
    for (number, part) in (1..).zip(parts) {
        let is_last = number == parts.len();
        if part.is_hole {
            write_hole(&mut room[target..], is_last, entry.header.cookie, offset, part.bytes as u32);
            target += HOLE_BYTES;
        } else {
            // First the data, which the header of a chunk behind a hole may come to lie upon.
            let data = target + read_header_bytes(true);
            room.copy_within(source..source + part.bytes, data);
            write_data_header(&mut room[target..], is_last, entry.header.cookie, offset, part.bytes as u32);
            target = data + part.bytes;
        }
        source += part.bytes;
        offset += part.bytes as u64;
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transmission::{Action, Header};
    use crate::wire::command;

    /// What a client makes of the chunks of a reply: kinds and lengths, and the bytes.
    fn read_back(mut reply: &[u8], offset: u64, len: usize) -> (Vec<(u16, usize)>, Vec<u8>) {
        let (mut chunks, mut data) = (Vec::new(), vec![0xEE; len]);
        loop {
            let flags = u16::from_be_bytes(reply[4..6].try_into().unwrap());
            let kind = u16::from_be_bytes(reply[6..8].try_into().unwrap());
            let length = u32::from_be_bytes(reply[16..20].try_into().unwrap()) as usize;
            let at = (u64::from_be_bytes(reply[20..28].try_into().unwrap()) - offset) as usize;
            if kind == 1 {
                data[at..at + length - 8].copy_from_slice(&reply[28..20 + length]);
                chunks.push((kind, length - 8));
            } else {
                assert_eq!((kind, length), (2, 12));
                let bytes = u32::from_be_bytes(reply[28..32].try_into().unwrap()) as usize;
                data[at..at + bytes].fill(0);
                chunks.push((kind, bytes));
            }
            reply = &reply[20 + length..];
            if flags == 1 {
                assert!(reply.is_empty(), "something follows the last chunk");
                return (chunks, data);
            }
            assert_eq!(flags, 0);
        }
    }

    #[test]
    fn any_parts_of_a_read_are_put_together_again_from_any_place() {
        let offset = 1 << 20;
        for pattern in 1..256_u32 {
            let parts: Vec<Part> = (0..8)
                .scan(None, |last: &mut Option<bool>, bit| {
                    let is_hole = pattern >> bit & 1 == 1;
                    let is_new = *last != Some(is_hole);
                    *last = Some(is_hole);
                    Some(is_new.then_some(Part {
                        bytes: if is_hole { LEAST_BYTES + bit } else { 700 + bit },
                        is_hole,
                    }))
                })
                .flatten()
                .collect();
            let len: usize = parts.iter().map(|part| part.bytes).sum();
            let mut data = Vec::new();
            for (number, part) in parts.iter().enumerate() {
                data.resize(data.len() + part.bytes, if part.is_hole { 0 } else { number as u8 + 1 });
            }
            let header = Header { flags: 0, kind: command::READ, cookie: 7, offset, len: len as u32 };
            let entry = Entry { header, action: Ok(Action::Read), payload: 0, reply_bytes: 0 };
            for (from, to) in [(0, 0), (16, 0), (5000, 100)] {
                let mut room = vec![0xAA; from + 28 + len];
                room[from + 28..].copy_from_slice(&data);
                let end = write(&mut room, from, to, &entry, &parts);
                let (chunks, back) = read_back(&room[to..end], offset, len);
                assert!(back == data, "{parts:?} from {from} to {to}");
                let wanted = parts.iter().map(|part| (1 + u16::from(part.is_hole), part.bytes));
                assert!(chunks.into_iter().eq(wanted), "{parts:?}");
            }
        }
    }

    #[test]
    fn only_whole_pages_that_begin_with_zeroes_are_looked_into() {
        let mut data = vec![1; 3 * 4096];
        assert!(!may_be_in(0, &data));
        data[4096..4104].fill(0);
        assert!(may_be_in(0, &data));
        assert!(may_be_in(8192, &data));
        assert!(!may_be_in(100, &data), "the zeroes are inside a page");
        assert!(!may_be_in(0, &data[..8000]), "less than a page is sent");
        data[0..8].fill(0);
        assert!(may_be_in(100, &data), "the front of a read");
        assert!(!may_be_in(0, &[0; 4095]) && may_be_in(0, &[0; 4096]) && !may_be_in(7, &[]));
    }
}
