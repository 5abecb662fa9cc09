//! Bytes of the journal: pages in zones of its own, with a stream of records in them
//! (docs/formats/zone-files.md).

use super::files::{File, OBJECT, PIECE, Piece};
use crate::pages::{self, u16_at, u32_at, u64_at};
use nandscape_core::{Hint, ObjectId};

const MAGIC: u32 = u32::from_le_bytes(*b"NZF1");
/// Bytes before the payload of a page.
const HEADER: usize = 40;
const DELETED: u64 = 16;

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Kind {
    /// The beginning of a generation: for which layer it is.
    Begin = 1,
    /// A part of the snapshot.
    Snapshot = 2,
    /// The snapshot is complete.
    End = 3,
    /// The snapshot is complete, and the layer was shut down.
    CleanEnd = 4,
    /// Changes since the snapshot.
    Records = 5,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Begin, Self::Snapshot, Self::End, Self::CleanEnd, Self::Records];
}

/// The header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub kind: Kind,
    /// Number of the page.
    pub seq: u64,
    /// Number of the first page of its generation.
    pub generation: u64,
    /// Bytes of the payload.
    pub len: u32,
}

/// What a layer must have in common with the one that wrote the zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub unit_bytes: u32,
    pub zones: u32,
    pub zone_units: u32,
    /// The first zones, which hold metadata.
    pub ring: u32,
}

impl Identity {
    const VERSION: u32 = 1;

    pub fn bytes(&self) -> Vec<u8> {
        let Self { unit_bytes, zones, zone_units, ring } = *self;
        let fields = [Self::VERSION, unit_bytes, zones, zone_units, ring];
        fields.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    /// What differs between this and what a page says.
    pub fn difference(&self, payload: &[u8]) -> Option<String> {
        let names = ["version", "unit", "zones", "units of a zone", "zones of metadata"];
        pages::difference(payload, &self.bytes(), &names)
    }
}

/// Bytes of the stream of records in a page.
pub(super) const fn payload_bytes(page_bytes: u32) -> u64 {
    page_bytes as u64 - HEADER as u64
}

/// Appends a page of the journal.
pub(super) fn encode(header: &Header, payload: &[u8], page_bytes: u32, out: &mut Vec<u8>) {
    assert!(HEADER + payload.len() <= page_bytes as usize, "{header:?} with {} bytes", payload.len());
    let start = out.len();
    out.resize(start + page_bytes as usize, 0);
    let page = &mut out[start..];
    page[4..6].copy_from_slice(&(header.kind as u16).to_le_bytes());
    page[16..24].copy_from_slice(&header.seq.to_le_bytes());
    page[24..32].copy_from_slice(&header.generation.to_le_bytes());
    page[32..36].copy_from_slice(&header.len.to_le_bytes());
    page[HEADER..HEADER + payload.len()].copy_from_slice(payload);
    pages::seal(page, MAGIC);
}

/// The header of a page of the journal and its payload, unless it is damaged or something else.
pub(super) fn decode(page: &mut [u8]) -> Option<(Header, &[u8])> {
    pages::open(page, MAGIC)?;
    let kind = u16_at(page, 4)?;
    let kind = Kind::ALL.into_iter().find(|known| *known as u16 == kind)?;
    let (seq, generation, len) = (u64_at(page, 16)?, u64_at(page, 24)?, u32_at(page, 32)?);
    let payload = page.get(HEADER..HEADER + usize::try_from(len).ok()?)?;
    Some((Header { kind, seq, generation, len }, payload))
}

/// Records that are in no page yet. Where no bytes are kept, only their number.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub bytes: Vec<u8>,
    pub len: u64,
    keeps: bool,
}

impl Records {
    pub const fn new(keeps: bool) -> Self {
        Self { bytes: Vec::new(), len: 0, keeps }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        if self.keeps {
            self.bytes.extend_from_slice(bytes);
        }
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.len = 0;
    }

    /// An object was deleted.
    pub fn deleted(&mut self, object: ObjectId) {
        let mut record = [0; DELETED as usize];
        record[0..4].copy_from_slice(&(DELETED as u32).to_le_bytes());
        record[4] = Tag::Deleted as u8;
        record[8..16].copy_from_slice(&object.0.to_le_bytes());
        self.put(&record);
    }

    /// The clock of the layer, and the mean lifetimes that it learned, by class.
    pub fn learned(&mut self, now: u64, means: &[u64]) {
        let len = 16 + 8 * means.len();
        let mut record = [0; 16];
        record[0..4].copy_from_slice(&(len as u32).to_le_bytes());
        record[4] = Tag::Learned as u8;
        record[8..16].copy_from_slice(&now.to_le_bytes());
        self.put(&record);
        for mean in means {
            self.put(&mean.to_le_bytes());
        }
    }

    /// What an object is now: all of it, or what has changed. `pieces` are those of all its units, or of the
    /// changed ones, holes among them.
    pub fn object(
        &mut self,
        file: &File,
        is_whole: bool,
        pieces: impl Iterator<Item = (u32, Piece)> + Clone,
    ) {
        let attributes = is_whole || file.has_new_attributes;
        let attributes: &[u8] = if attributes { &file.attributes } else { &[] };
        let replaced: &[ObjectId] = if is_whole && file.is_logged { &[] } else { &file.replaced };
        let count = pieces.clone().count();
        let len = OBJECT + attributes.len() as u64 + 8 * replaced.len() as u64 + PIECE * count as u64;
        let flags = u8::from(is_whole) | u8::from(file.has_new_attributes || is_whole) << 1;
        let mut record = [0; OBJECT as usize];
        record[0..4].copy_from_slice(&(len as u32).to_le_bytes());
        record[4] = Tag::Object as u8;
        record[5] = flags;
        record[6..8].copy_from_slice(&file.hint.0.to_le_bytes());
        record[8..16].copy_from_slice(&file.id.0.to_le_bytes());
        record[16..24].copy_from_slice(&file.size.to_le_bytes());
        record[24..32].copy_from_slice(&file.born.to_le_bytes());
        record[32..34].copy_from_slice(&(attributes.len() as u16).to_le_bytes());
        record[34..36].copy_from_slice(&(replaced.len() as u16).to_le_bytes());
        record[36..40].copy_from_slice(&(count as u32).to_le_bytes());
        self.put(&record);
        self.put(attributes);
        for id in replaced {
            self.put(&id.0.to_le_bytes());
        }
        for (at, piece) in pieces {
            let mut bytes = [0; PIECE as usize];
            bytes[0..4].copy_from_slice(&at.to_le_bytes());
            bytes[4..8].copy_from_slice(&piece.units.to_le_bytes());
            bytes[8..12].copy_from_slice(&piece.place.to_le_bytes());
            self.put(&bytes);
        }
    }
}

#[repr(u8)]
enum Tag {
    Object = 1,
    Deleted = 2,
    Learned = 3,
}

/// A record of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record<'a> {
    Object {
        id: ObjectId,
        size: u64,
        hint: Hint,
        born: u64,
        /// It replaces whatever is known of the object.
        is_whole: bool,
        attributes: Option<&'a [u8]>,
        replaced: &'a [u8],
        pieces: &'a [u8],
    },
    Deleted(ObjectId),
    Learned {
        now: u64,
        means: &'a [u8],
    },
}

/// Numbers of 8 B.
pub(super) fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks_exact(8).map(|bytes| u64_at(bytes, 0).expect("eight bytes"))
}

/// The pieces of a record.
pub(super) fn pieces(bytes: &[u8]) -> impl Iterator<Item = (u32, Piece)> {
    bytes.chunks_exact(PIECE as usize).map(|bytes| {
        let field = |at| u32_at(bytes, at).expect("twelve bytes");
        (field(0), Piece { units: field(4), place: field(8) })
    })
}

/// The first record of a stream and its length. `Ok(None)`: the stream ends before the record does. An error
/// for bytes that no layer writes.
pub(super) fn record(stream: &[u8]) -> Result<Option<(Record<'_>, usize)>, ()> {
    let Some(len) = u32_at(stream, 0) else { return Ok(None) };
    if len < DELETED as u32 {
        return Err(());
    }
    let Some(bytes) = stream.get(..len as usize) else { return Ok(None) };
    let parsed = match bytes[4] {
        tag if tag == Tag::Object as u8 => object(bytes),
        tag if tag == Tag::Deleted as u8 => u64_at(bytes, 8).map(|id| Record::Deleted(ObjectId(id))),
        tag if tag == Tag::Learned as u8 => {
            u64_at(bytes, 8).map(|now| Record::Learned { now, means: &bytes[16..] })
        }
        _ => None,
    };
    parsed.map(|record| Some((record, bytes.len()))).ok_or(())
}

fn object(bytes: &[u8]) -> Option<Record<'_>> {
    let attributes = OBJECT as usize + usize::from(u16_at(bytes, 32)?);
    let replaced = attributes + 8 * usize::from(u16_at(bytes, 34)?);
    let end = replaced.checked_add(usize::try_from(u32_at(bytes, 36)?).ok()?.checked_mul(PIECE as usize)?)?;
    if end != bytes.len() {
        return None;
    }
    let flags = bytes[5];
    Some(Record::Object {
        id: ObjectId(u64_at(bytes, 8)?),
        size: u64_at(bytes, 16)?,
        hint: Hint(u16_at(bytes, 6)?),
        born: u64_at(bytes, 24)?,
        is_whole: flags & 1 != 0,
        attributes: (flags & 2 != 0).then(|| &bytes[OBJECT as usize..attributes]),
        replaced: &bytes[attributes..replaced],
        pieces: &bytes[replaced..],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{Rng, below, seeded};

    #[test]
    fn records_come_back_and_cut_ones_are_told_from_wrong_ones() {
        let mut file = File::new(ObjectId(7), Hint::SHORT, 5);
        file.size = 99;
        file.attributes = vec![1, 2, 3].into();
        file.replaced.push(ObjectId(8));
        let all = [(0, Piece { place: 40, units: 2 }), (9, Piece { place: 50, units: 1 })];
        let mut records = Records::new(true);
        records.object(&file, true, all.into_iter());
        records.deleted(ObjectId(3));
        records.learned(77, &[1, 2]);
        assert_eq!(records.len, records.bytes.len() as u64);
        let (first, len) = record(&records.bytes).unwrap().unwrap();
        let Record::Object { id, size, attributes, replaced, pieces: found, is_whole: true, .. } = first
        else {
            panic!("{first:?}");
        };
        assert_eq!((id, size, attributes), (ObjectId(7), 99, Some(&[1, 2, 3][..])));
        assert_eq!(numbers(replaced).collect::<Vec<_>>(), [8]);
        assert_eq!(pieces(found).collect::<Vec<_>>(), all);
        for cut in 0..len {
            assert_eq!(record(&records.bytes[..cut]), Ok(None), "cut at {cut}");
        }
        let rest = &records.bytes[len..];
        let (second, len) = record(rest).unwrap().unwrap();
        assert_eq!(second, Record::Deleted(ObjectId(3)));
        let (third, _) = record(&rest[len..]).unwrap().unwrap();
        let Record::Learned { now: 77, means } = third else { panic!("{third:?}") };
        assert_eq!(numbers(means).collect::<Vec<_>>(), [1, 2]);
        let mut rng = seeded(5);
        for _ in 0..20_000 {
            let mut wrong = records.bytes.clone();
            for _ in 0..3 {
                let at = below(&mut rng, wrong.len() as u64) as usize;
                wrong[at] = rng.next_u64() as u8;
            }
            let _ = record(&wrong);
        }
    }

    #[test]
    fn pages_come_back_and_no_flipped_bit_goes_unnoticed() {
        let header = Header { kind: Kind::Records, seq: 9, generation: 4, len: 5 };
        let mut page = Vec::new();
        encode(&header, &[1, 2, 3, 4, 5], 512, &mut page);
        assert_eq!(decode(&mut page.clone()), Some((header, &[1, 2, 3, 4, 5][..])));
        let mut rng = seeded(3);
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
}
