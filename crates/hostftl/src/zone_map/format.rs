//! Bytes of the metadata: pages of a log in zones of its own (docs/formats/zone-map.md).

use crate::pages::{self, u16_at, u32_at, u64_at};
use nandscape_core::{Lpn, Ppn};
use std::ops::Deref;

/// Place of a unit whose data could not be read when it was to be moved.
pub(super) const LOST: Ppn = Ppn(u32::MAX - 1);

const MAGIC: u32 = u32::from_le_bytes(*b"NZM1");
/// Bytes before the payload of a page.
const HEADER: usize = 48;
/// Bytes of a record.
const RECORD: usize = 8;
/// In the place of a record that drops units, whose number is in the record after it.
const DROP: Ppn = Ppn(u32::MAX - 2);

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Kind {
    /// The beginning of a checkpoint: for which layer it is.
    Begin = 1,
    /// A part of the map.
    Map = 2,
    /// The checkpoint is complete.
    End = 3,
    /// The checkpoint is complete, and nothing was written since it began.
    CleanEnd = 4,
    /// Changes to the map.
    Records = 5,
    /// As [`Kind::Begin`], of a checkpoint that a start writes before anything else.
    Restart = 6,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Begin, Self::Map, Self::End, Self::CleanEnd, Self::Records, Self::Restart];
}

/// The header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub kind: Kind,
    /// Number of the page in the log.
    pub seq: u64,
    /// Number of the first page of the last complete checkpoint; 0 if there is none.
    pub checkpoint: u64,
    /// Number of the first page of the checkpoint that the page belongs to; 0 for records.
    pub part_of: u64,
    /// Which part of the map.
    pub part: u32,
    /// Entries or records in the page.
    pub count: u32,
}

/// What a layer must have in common with the one that wrote the zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub unit_bytes: u32,
    pub logical_units: u32,
    pub zones: u32,
    pub zone_units: u32,
    /// The first zones, which hold metadata.
    pub ring: u32,
}

/// A change to the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A unit is at a place now, or lost.
    Placed(Lpn, Ppn),
    /// Units hold nothing any more.
    Dropped(Lpn, u32),
}

/// Records of changes that are not in the log yet, 8 B a slot.
#[derive(Debug)]
pub(super) struct Records {
    pub slots: Vec<(u32, u32)>,
    room: usize,
}

impl Deref for Records {
    type Target = [(u32, u32)];

    fn deref(&self) -> &Self::Target {
        &self.slots
    }
}

impl Records {
    pub fn new(page_bytes: u32) -> Self {
        let room = (page_bytes as usize - HEADER) / RECORD;
        Self { slots: Vec::with_capacity(room), room }
    }

    /// Whether another change may find no room.
    #[inline]
    pub const fn is_full(&self) -> bool {
        self.slots.len() + 1 >= self.room
    }

    #[inline]
    pub fn place(&mut self, lpn: Lpn, place: Ppn) {
        self.slots.push((lpn.0, place.0));
    }

    pub fn drop_units(&mut self, first: Lpn, count: u32) {
        self.slots.push((first.0, DROP.0));
        self.slots.push((count, DROP.0));
    }

    pub fn bytes(&self) -> Vec<u8> {
        let both = self.slots.iter().flat_map(|(unit, place)| [*unit, *place]);
        both.flat_map(u32::to_le_bytes).collect()
    }
}

/// Entries of the map in a page.
pub(super) const fn entries_per_page(page_bytes: u32) -> u32 {
    (page_bytes - HEADER as u32) / 4
}

/// Pages of a whole checkpoint of so many units.
pub(super) const fn checkpoint_pages(units: u32, page_bytes: u32) -> u32 {
    units.div_ceil(entries_per_page(page_bytes)) + 2
}

/// Pages of records after which a new checkpoint begins.
pub(super) const fn interval(units: u32, page_bytes: u32) -> u32 {
    2 * checkpoint_pages(units, page_bytes)
}

/// Zones of the log: room for a checkpoint with a page of records for each of its pages, the records until
/// the next one begins, that one if it is never completed, and the one that a start then writes; a zone for
/// what their ends leave over, and a spare one.
pub(super) fn ring_zones(units: u32, page_bytes: u32, zone_pages: u32) -> u32 {
    let checkpoint = u64::from(checkpoint_pages(units, page_bytes));
    let pages = 4 * checkpoint + u64::from(interval(units, page_bytes));
    pages.div_ceil(zone_pages.into()) as u32 + 2
}

/// A page of the log.
pub(super) fn encode(header: &Header, payload: &[u8], page_bytes: u32) -> Vec<u8> {
    let mut page = vec![0; page_bytes as usize];
    assert!(HEADER + payload.len() <= page.len(), "{header:?} with {} bytes", payload.len());
    page[4..6].copy_from_slice(&(header.kind as u16).to_le_bytes());
    page[16..24].copy_from_slice(&header.seq.to_le_bytes());
    page[24..32].copy_from_slice(&header.checkpoint.to_le_bytes());
    page[32..40].copy_from_slice(&header.part_of.to_le_bytes());
    page[40..44].copy_from_slice(&header.part.to_le_bytes());
    page[44..48].copy_from_slice(&header.count.to_le_bytes());
    page[HEADER..HEADER + payload.len()].copy_from_slice(payload);
    pages::seal(&mut page, MAGIC);
    page
}

/// The header of a page of the log and its payload, unless it is damaged or something else.
pub(super) fn decode(page: &mut [u8]) -> Option<(Header, &[u8])> {
    pages::open(page, MAGIC)?;
    let kind = u16_at(page, 4)?;
    let kind = Kind::ALL.into_iter().find(|known| *known as u16 == kind)?;
    let header = Header {
        kind,
        seq: u64_at(page, 16)?,
        checkpoint: u64_at(page, 24)?,
        part_of: u64_at(page, 32)?,
        part: u32_at(page, 40)?,
        count: u32_at(page, 44)?,
    };
    let bytes = match kind {
        Kind::Map => 4,
        Kind::Records => RECORD as u64,
        _ => 1,
    } * u64::from(header.count);
    let payload = page.get(HEADER..HEADER + usize::try_from(bytes).ok()?)?;
    Some((header, payload))
}

/// The entries of a part of the map.
pub(super) fn entries(payload: &[u8]) -> impl Iterator<Item = Ppn> {
    payload.chunks_exact(4).map(|bytes| Ppn(u32_at(bytes, 0).expect("four bytes")))
}

/// The bytes of entries.
pub(super) fn entry_bytes(entries: &[Ppn]) -> Vec<u8> {
    entries.iter().flat_map(|place| place.0.to_le_bytes()).collect()
}

/// The changes of a page of records; `None` for one that no layer writes.
pub(super) fn changes(payload: &[u8]) -> Option<Vec<Change>> {
    let pair = |bytes: &[u8]| Some((u32_at(bytes, 0)?, Ppn(u32_at(bytes, 4)?)));
    let mut changes = Vec::new();
    let mut slots = payload.chunks_exact(RECORD);
    while let Some(slot) = slots.next() {
        let (unit, place) = pair(slot)?;
        changes.push(if place == DROP {
            let (count, mark) = pair(slots.next()?)?;
            if mark != DROP {
                return None;
            }
            Change::Dropped(Lpn(unit), count)
        } else {
            Change::Placed(Lpn(unit), place)
        });
    }
    Some(changes)
}

impl Identity {
    const VERSION: u32 = 1;

    pub fn bytes(&self) -> Vec<u8> {
        let Self { unit_bytes, logical_units, zones, zone_units, ring } = *self;
        let fields = [Self::VERSION, unit_bytes, logical_units, zones, zone_units, ring];
        fields.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    /// What differs between this and what a page says.
    pub fn difference(&self, payload: &[u8]) -> Option<String> {
        let names = ["version", "unit", "logical units", "zones", "units of a zone", "zones of metadata"];
        pages::difference(payload, &self.bytes(), &names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{Rng, below, seeded};

    #[test]
    fn pages_come_back_and_no_flipped_bit_goes_unnoticed() {
        let mut rng = seeded(3);
        let mut records = Records::new(512);
        while !records.is_full() {
            if below(&mut rng, 3) == 0 {
                records.drop_units(Lpn(rng.next_u64() as u32), 7);
            } else {
                records.place(Lpn(rng.next_u64() as u32), Ppn(rng.next_u64() as u32 / 2));
            }
        }
        let count = records.len() as u32;
        let header = Header { kind: Kind::Records, seq: 9, checkpoint: 4, part_of: 0, part: 0, count };
        let page = encode(&header, &records.bytes(), 512);
        let (found, payload) = decode(&mut page.clone()).map(|(h, p)| (h, p.to_vec())).unwrap();
        assert_eq!((found, payload.as_slice()), (header, records.bytes().as_slice()));
        let changes = changes(&payload).unwrap();
        assert!(changes.iter().any(|change| matches!(change, Change::Dropped(_, 7))));
        for _ in 0..2_000 {
            let mut damaged = page.clone();
            let bit = below(&mut rng, 512 * 8) as usize;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&mut damaged).is_none(), "bit {bit}");
        }
        for len in 0..60 {
            assert!(decode(&mut page[..len].to_vec()).is_none());
        }
    }

    #[test]
    fn another_layout_is_named() {
        let identity = Identity { unit_bytes: 4096, logical_units: 9, zones: 3, zone_units: 4, ring: 2 };
        assert_eq!(identity.difference(&identity.bytes()), None);
        let other = Identity { logical_units: 8, ..identity };
        let difference = identity.difference(&other.bytes()).unwrap();
        assert_eq!(difference, "logical units: found 8, expected 9 by its keys");
        assert!(identity.difference(&[]).unwrap().contains("version: found nothing"));
    }
}
