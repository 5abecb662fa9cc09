//! Bytes of the metadata of lines, and what is kept beside each page (docs/formats/pblk.md).

use super::Kind;
use nandscape_core::{Lpn, Oob};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: u32 = u32::from_le_bytes(*b"NPB1");
const VERSION: u32 = 1;
/// Bytes before the payload of a page.
pub(super) const HEADER: usize = 64;
/// Bytes of a drop.
const DROP_BYTES: usize = 12;

/// In the list of a line: a page that holds nothing of a host.
const NOTHING: u32 = u32::MAX;
/// A page of drops.
const DROPS: u32 = u32::MAX - 1;
/// The page is lost: bit beside its number.
const LOST: u32 = 1 << 31;

/// What a layer must have in common with the one that wrote the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub page_bytes: u32,
    pub logical_pages: u32,
    pub lines: u32,
    pub line_pages: u32,
}

/// What a page of metadata says of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub kind: Kind,
    pub line: u32,
    /// Number of the line's use.
    pub seq: u32,
    /// Which page of the end metadata.
    pub part: u32,
    /// Entries in the page.
    pub count: u32,
}

/// Pages that hold nothing from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Drop {
    pub first: u32,
    pub count: u32,
    /// Only lines up to this use have copies of them; [`Drop::HERE`]: the line of the page.
    pub origin: u32,
}

impl Drop {
    /// The use of the line that the page of the drop is in.
    pub const HERE: u32 = u32::MAX;
}

/// What is kept beside a page of a line: `index` pages of it were written before.
pub(super) fn oob(kind: Kind, lpn: Lpn, seq: u32, index: u32) -> Oob {
    Oob { lpn, stream: kind as u16, seq: u64::from(seq) << 32 | u64::from(index) }
}

/// The kind of a page, its line's use and its number there; `None` for padding.
pub(super) fn place_of(oob: &Oob) -> Option<(Kind, u32, u32)> {
    if oob.lpn == Lpn::PADDING && oob.seq == 0 {
        return None;
    }
    Some((Kind::of(oob.stream)?, (oob.seq >> 32) as u32, oob.seq as u32))
}

/// Entries of the list of a line in a page.
pub(super) const fn entries_per_page(page_bytes: u32) -> u32 {
    (page_bytes - HEADER as u32) / 4
}

/// Drops in a page.
pub(super) const fn drops_per_page(page_bytes: u32) -> usize {
    (page_bytes as usize - HEADER) / DROP_BYTES
}

/// The entry of a page in the list of its line.
pub(super) fn entry(kind: Kind, lpn: Lpn) -> u32 {
    match kind {
        Kind::User | Kind::Gc => lpn.0,
        Kind::Lost => lpn.0 | LOST,
        Kind::Drops => DROPS,
        Kind::Pad | Kind::Start | Kind::End => NOTHING,
    }
}

/// What an entry stands for; `None` for nothing.
pub(super) fn entry_of(entry: u32) -> Option<(Kind, Lpn)> {
    match entry {
        NOTHING => None,
        DROPS => Some((Kind::Drops, Lpn::META)),
        lpn if lpn & LOST != 0 => Some((Kind::Lost, Lpn(lpn & !LOST))),
        lpn => Some((Kind::User, Lpn(lpn))),
    }
}

/// A page of metadata; its payload are numbers of 4 B.
pub(super) fn encode(identity: &Identity, header: &Header, payload: &[u32], page: &mut [u8]) {
    page.fill(0);
    let Identity { page_bytes, logical_pages, lines, line_pages } = *identity;
    let Header { kind, line, seq, part, count } = *header;
    let fields = [MAGIC, VERSION, 0, 0, page_bytes, logical_pages, lines, line_pages];
    let fields = fields.into_iter().chain([kind as u32, line, seq, part, count]);
    for (bytes, field) in page.chunks_exact_mut(4).zip(fields) {
        bytes.copy_from_slice(&field.to_le_bytes());
    }
    for (bytes, number) in page[HEADER..].chunks_exact_mut(4).zip(payload) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    let hash = xxh3_64(page);
    page[8..16].copy_from_slice(&hash.to_le_bytes());
}

/// The header of a page of metadata and its payload; `None` for a page that is damaged or something else.
/// `Err` within: what differs from what the layer expects.
pub(super) fn decode(identity: &Identity, page: &mut [u8]) -> Option<Result<(Header, Vec<u32>), String>> {
    if page.len() < HEADER {
        return None;
    }
    let hash = u64::from_le_bytes(page[8..16].try_into().expect("eight bytes"));
    page[8..16].fill(0);
    let numbers: Vec<u32> =
        page.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().expect("four bytes"))).collect();
    if numbers[0] != MAGIC || xxh3_64(page) != hash {
        return None;
    }
    let expected =
        [VERSION, identity.page_bytes, identity.logical_pages, identity.lines, identity.line_pages];
    let found = [numbers[1], numbers[4], numbers[5], numbers[6], numbers[7]];
    let names = ["version", "bytes of a page", "logical pages", "lines", "pages of a line"];
    for ((name, found), expected) in names.into_iter().zip(found).zip(expected) {
        if found != expected {
            return Some(Err(format!("{name}: found {found}, expected {expected} by its keys")));
        }
    }
    let header = Header {
        kind: Kind::of(u16::try_from(numbers[8]).ok()?)?,
        line: numbers[9],
        seq: numbers[10],
        part: numbers[11],
        count: numbers[12],
    };
    Some(Ok((header, numbers[HEADER / 4..].to_vec())))
}

/// The numbers of drops.
pub(super) fn drop_numbers(drops: &[Drop]) -> Vec<u32> {
    drops.iter().flat_map(|drop| [drop.first, drop.count, drop.origin]).collect()
}

/// Drops of numbers.
pub(super) fn drops_of(numbers: &[u32], count: u32) -> Vec<Drop> {
    let drops = numbers.chunks_exact(3).take(count as usize);
    drops.map(|three| Drop { first: three[0], count: three[1], origin: three[2] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{below, seeded};

    const IDENTITY: Identity = Identity { page_bytes: 512, logical_pages: 99, lines: 8, line_pages: 32 };

    #[test]
    fn pages_come_back_and_no_flipped_bit_goes_unnoticed() {
        let header = Header { kind: Kind::Drops, line: 3, seq: 9, part: 0, count: 2 };
        let drops = [Drop { first: 7, count: 2, origin: 1 }, Drop { first: 50, count: 9, origin: 8 }];
        let mut page = vec![0xa5; 512];
        encode(&IDENTITY, &header, &drop_numbers(&drops), &mut page);
        let (found, numbers) = decode(&IDENTITY, &mut page.clone()).unwrap().unwrap();
        assert_eq!((found, drops_of(&numbers, found.count)), (header, drops.to_vec()));
        let mut rng = seeded(4);
        for _ in 0..2_000 {
            let mut damaged = page.clone();
            let bit = below(&mut rng, 512 * 8) as usize;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&IDENTITY, &mut damaged).is_none(), "bit {bit}");
        }
        for len in 0..64 {
            assert!(decode(&IDENTITY, &mut page[..len].to_vec()).is_none());
        }
        let other = Identity { lines: 9, ..IDENTITY };
        let difference = decode(&other, &mut page).unwrap().unwrap_err();
        assert_eq!(difference, "lines: found 8, expected 9 by its keys");
    }

    #[test]
    fn entries_of_lists_and_of_pages_say_what_a_page_holds() {
        for (kind, lpn, found) in [
            (Kind::User, Lpn(5), Some((Kind::User, Lpn(5)))),
            (Kind::Gc, Lpn(0), Some((Kind::User, Lpn(0)))),
            (Kind::Lost, Lpn(6), Some((Kind::Lost, Lpn(6)))),
            (Kind::Drops, Lpn::META, Some((Kind::Drops, Lpn::META))),
            (Kind::Pad, Lpn::PADDING, None),
        ] {
            assert_eq!(entry_of(entry(kind, lpn)), found);
            assert_eq!(place_of(&oob(kind, lpn, 3, 8)), Some((kind, 3, 8)));
        }
        let padding = <Oob as nandscape_core::OutOfBand>::TORN;
        assert_eq!(place_of(&padding), None);
    }
}
