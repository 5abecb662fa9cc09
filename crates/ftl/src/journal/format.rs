//! Pages of the journal and its checkpoints as they lie on flash. Layout: `docs/formats/journal.md`. Numbers
//! are little-endian.

use nandscape_core::{Lpn, Oob, Ppn};
use xxhash_rust::xxh3::Xxh3;

/// First bytes of every page.
const MAGIC: [u8; 8] = *b"NANDSJRN";
/// Version that is written, and the only one that is read.
const VERSION: u16 = 1;
pub(super) const HEADER_BYTES: usize = 48;
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub(super) enum Kind {
    /// What the checkpoint is of: shape, reserved blocks, first sequence number.
    Header = 1,
    /// Erase count and programmed pages of each block when the checkpoint began.
    Table = 2,
    Map = 3,
    End = 4,
    /// Records of what happened since.
    Records = 5,
    /// Which logical pages held something, should the map be lost.
    Held = 6,
}

impl Kind {
    fn of(number: u16) -> Option<Self> {
        [Self::Header, Self::Table, Self::Map, Self::End, Self::Records, Self::Held]
            .into_iter()
            .find(|kind| *kind as u16 == number)
    }
}

/// The fields before the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHead {
    pub kind: Kind,
    /// Which checkpoint the page belongs to.
    pub generation: u64,
    /// Its number among the pages of this generation, from 0.
    pub index: u32,
    /// Its number among the pages of its kind; pages of records count from 1 in each generation.
    pub part: u32,
    /// The sequence number that comes next when the page is written.
    pub seq: u64,
}

impl PageHead {
    /// The OOB of the page, from which it is recognised without its data.
    pub fn oob(&self) -> Oob {
        Oob { lpn: Lpn::META, stream: self.kind as u16, seq: self.generation << 32 | u64::from(self.index) }
    }
}

/// What the OOB of a page says of it; `None` for pages that are not the journal's.
pub(super) fn from_oob(oob: &Oob) -> Option<(u64, u32, Kind)> {
    let kind = Kind::of(oob.stream).filter(|_| oob.lpn == Lpn::META)?;
    Some((oob.seq >> 32, oob.seq as u32, kind))
}

/// Lays a page out in `page`, which is wholly overwritten.
pub(super) fn encode(head: &PageHead, payload: &[u8], page: &mut [u8]) {
    page[..8].copy_from_slice(&MAGIC);
    page[8..10].copy_from_slice(&VERSION.to_le_bytes());
    page[10..12].copy_from_slice(&(head.kind as u16).to_le_bytes());
    page[12..16].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    page[16..24].copy_from_slice(&head.generation.to_le_bytes());
    page[24..28].copy_from_slice(&head.index.to_le_bytes());
    page[28..32].copy_from_slice(&head.part.to_le_bytes());
    page[32..40].copy_from_slice(&head.seq.to_le_bytes());
    let (body, rest) = page[HEADER_BYTES..].split_at_mut(payload.len());
    body.copy_from_slice(payload);
    rest.fill(0);
    let sum = checksum(page, payload.len());
    page[40..48].copy_from_slice(&sum.to_le_bytes());
}

/// Takes a page apart; `None` if it is not one of the journal, or damaged.
pub(super) fn decode(page: &[u8]) -> Option<(PageHead, &[u8])> {
    let length = u32_at(page, 12) as usize;
    if page[..8] != MAGIC || u16_at(page, 8) != VERSION || length > page.len() - HEADER_BYTES {
        return None;
    }
    if checksum(page, length) != u64_at(page, 40) {
        return None;
    }
    let head = PageHead {
        kind: Kind::of(u16_at(page, 10))?,
        generation: u64_at(page, 16),
        index: u32_at(page, 24),
        part: u32_at(page, 28),
        seq: u64_at(page, 32),
    };
    Some((head, &page[HEADER_BYTES..HEADER_BYTES + length]))
}

/// Over everything but the checksum itself.
fn checksum(page: &[u8], length: usize) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&page[..40]);
    hash.update(&page[HEADER_BYTES..HEADER_BYTES + length]);
    hash.digest()
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// What a program and the map call a page: 0 is none, so that a map without pages is a map of zeroes.
pub(super) const fn entry_of(page: Ppn) -> u32 {
    page.0 + 1
}

pub(super) const fn page_of(entry: u32) -> Option<Ppn> {
    if entry == 0 { None } else { Some(Ppn(entry - 1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_back_and_every_flipped_bit_is_noticed() {
        let head = PageHead { kind: Kind::Map, generation: 7, index: 3, part: 2, seq: 99 };
        let payload: Vec<u8> = (0..100).collect();
        let mut page = vec![0xAA; 512];
        encode(&head, &payload, &mut page);
        assert_eq!(decode(&page), Some((head, payload.as_slice())));
        assert_eq!(from_oob(&head.oob()), Some((7, 3, Kind::Map)));
        for bit in 0..(HEADER_BYTES + 100) * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&page), None, "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
