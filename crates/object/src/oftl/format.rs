//! Bytes of metadata, layout and system pages
//! ([formats/object.md](../../../../docs/formats/object.md)). All numbers are little-endian.

use super::diffs::{DIFF_EXTENT, Diffs};
use super::object::{HEAD, LEAF, Object, Sizes};
use nandscape_core::Hint;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of a system page before its records.
pub(super) const SYSTEM_HEAD: u32 = 16;
/// Bytes of a record of the index.
pub(super) const INDEX_RECORD: u32 = 24;
/// Bytes of a record of a block.
pub(super) const BLOCK_RECORD: u32 = 8;

/// A leaf whose places are on a layout page: its number, the page, and up to which write that tells.
pub(super) type LeafAt = (u32, u32, u64);

const OBJECT_MAGIC: u32 = u32::from_le_bytes(*b"OBJ1");
const LEAF_MAGIC: u32 = u32::from_le_bytes(*b"LAY1");
const SYSTEM_MAGIC: u32 = u32::from_le_bytes(*b"SYS1");
const ROOT_MAGIC: u32 = u32::from_le_bytes(*b"ROO1");

/// Appends numbers.
struct Writer(Vec<u8>);

impl Writer {
    fn half(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn word(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

/// Takes numbers, as far as there are any.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn half(&mut self) -> Option<u32> {
        self.bytes(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    fn word(&mut self) -> Option<u64> {
        self.bytes(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }
}

/// The place of the checksum in a record that begins with one of these heads.
const SUM_AT: usize = 56;

/// Puts the checksum of a record into it.
fn seal(record: &mut [u8]) {
    let sum = xxh3_64(record);
    record[SUM_AT..SUM_AT + 8].copy_from_slice(&sum.to_le_bytes());
}

fn is_sealed(record: &[u8]) -> bool {
    let Some(sum) = record.get(SUM_AT..SUM_AT + 8) else { return false };
    let mut plain = record.to_vec();
    plain[SUM_AT..SUM_AT + 8].fill(0);
    sum == xxh3_64(&plain).to_le_bytes()
}

/// The metadata of an object as of write `tid`, with the places of its parts but the first.
pub(super) fn object_record(object: &Object, tid: u64, parts: &[u32], sizes: &Sizes) -> Vec<u8> {
    let is_inline = object.layout.run_bytes(sizes.inline_bytes).is_some();
    let runs = if is_inline { object.layout.runs() } else { Vec::new() };
    let places = if is_inline { runs.len() } else { object.layout.leaves().count() };
    let diffs = object.diffs.extents();
    let (stored, is_packed) = object.diffs.encode(sizes.compression);
    let mut out = Writer(Vec::new());
    out.half(OBJECT_MAGIC).half(parts.len() as u32 + 1).word(object.id).word(object.size).word(tid);
    out.half(u32::from(object.hint.0) | u32::from(!is_inline) << 16 | u32::from(is_packed) << 17);
    out.half(object.attributes.len() as u32).half(places as u32).half(diffs as u32);
    out.half(object.replaced.len() as u32).half(0).word(0);
    for place in parts {
        out.half(*place);
    }
    out.bytes(&object.attributes);
    for id in &object.replaced {
        out.word(*id);
    }
    for (first, places) in &runs {
        out.half(*first).half(places.len() as u32);
        for place in places {
            out.half(*place);
        }
    }
    if !is_inline {
        for (number, leaf) in object.layout.leaves() {
            out.half(number).half(leaf.page).word(leaf.tid);
        }
    }
    // Where the bytes are: in the record, or in what was compressed.
    let mut at = if is_packed { 0 } else { out.0.len() as u64 + DIFF_EXTENT * diffs as u64 };
    for (page, patch) in object.diffs.iter() {
        let first = u64::from(*page) * u64::from(sizes.page_bytes);
        for (start, end) in patch.ranges() {
            out.word(first + u64::from(*start)).half(end - start).half(at as u32);
            at += u64::from(end - start);
        }
    }
    out.bytes(&stored);
    let len = out.0.len() as u32;
    out.0[SUM_AT - 4..SUM_AT].copy_from_slice(&len.to_le_bytes());
    seal(&mut out.0);
    out.0
}

/// How many parts the metadata has that begins with this page, and where the others are.
pub(super) fn object_parts(first: &[u8]) -> Option<Vec<u32>> {
    let mut head = Reader(first);
    if head.half()? != OBJECT_MAGIC {
        return None;
    }
    let parts = head.half()?;
    let mut places = Reader(first.get(HEAD as usize..)?);
    (1..parts).map(|_| places.half()).collect()
}

/// The object of a record that was put together from its parts, without the places of its leaves, which
/// follow: number, layout page and write.
pub(super) fn object_of(record: &[u8], sizes: &Sizes) -> Option<(Object, Vec<LeafAt>)> {
    let len = Reader(record.get(SUM_AT - 4..)?).half()? as usize;
    let record = record.get(..len)?;
    if !is_sealed(record) {
        return None;
    }
    let mut head = Reader(record);
    let (magic, parts, id, size, tid) =
        (head.half()?, head.half()?, head.word()?, head.word()?, head.word()?);
    let flags = head.half()?;
    let (attributes, places, diffs, replaced) = (head.half()?, head.half()?, head.half()?, head.half()?);
    if magic != OBJECT_MAGIC {
        return None;
    }
    let mut object = Object::new(id, Hint(flags as u16), sizes);
    (object.size, object.meta_tid, object.needs_meta) = (size, tid, false);
    let mut rest = Reader(record.get(HEAD as usize + 4 * (parts as usize - 1)..)?);
    object.attributes = rest.bytes(attributes as usize)?.into();
    object.replaced = (0..replaced).map(|_| rest.word()).collect::<Option<_>>()?;
    let mut leaves = Vec::new();
    for _ in 0..places {
        if flags >> 16 & 1 == 0 {
            let (first, count) = (rest.half()?, rest.half()?);
            for page in 0..count {
                object.layout.set(first.checked_add(page)?, rest.half()?);
            }
        } else {
            leaves.push((rest.half()?, rest.half()?, rest.word()?));
        }
    }
    object.layout.is_inline(|_| {});
    let extents = rest.bytes((diffs as usize).checked_mul(DIFF_EXTENT as usize)?)?;
    let extents = extents.chunks(DIFF_EXTENT as usize);
    let extents: Vec<_> = extents.map(|bytes| extent(bytes, sizes)).collect::<Option<_>>()?;
    let len = extents.iter().map(|extent| (extent.end - extent.start) as usize).sum();
    let stored = Diffs::decode(rest.0, flags >> 17 & 1 == 1, len)?;
    let first = extents.first().map_or(0, |extent| extent.at);
    for DiffExtent { page, start, end, at } in extents {
        let at = at.checked_sub(first)? as usize;
        let data = stored.get(at..at + (end - start) as usize)?;
        object.diffs.change().entry(page).or_insert_with(|| sizes.patch()).write(start, end, Some(data));
    }
    object.touched = touched(&object);
    Some((object, leaves))
}

/// A range of a page that is in the metadata, and where.
struct DiffExtent {
    page: u32,
    start: u32,
    end: u32,
    at: u32,
}

fn extent(bytes: &[u8], sizes: &Sizes) -> Option<DiffExtent> {
    let mut reader = Reader(bytes);
    let (offset, len, at) = (reader.word()?, reader.half()?, reader.half()?);
    let page = u32::try_from(offset / u64::from(sizes.page_bytes)).ok()?;
    let start = (offset % u64::from(sizes.page_bytes)) as u32;
    let end = start.checked_add(len).filter(|end| *end <= sizes.page_bytes)?;
    Some(DiffExtent { page, start, end, at })
}

/// Logical pages of an object with anything in them.
pub(super) fn touched(object: &Object) -> u64 {
    let patched = object.diffs.keys().filter(|page| object.layout.get(**page).is_none()).count();
    let is_new = |page: &&u32| object.layout.get(**page).is_none() && !object.diffs.contains_key(*page);
    object.layout.mapped() + patched as u64 + object.dirty.keys().filter(is_new).count() as u64
}

/// The layout page of a leaf.
pub(super) fn leaf_page(places: &[u32], object: u64, page_bytes: u32) -> Vec<u8> {
    let mut out = Writer(Vec::with_capacity(page_bytes as usize));
    out.half(LEAF_MAGIC).half(places.len() as u32).word(object);
    for place in places {
        out.half(*place);
    }
    out.0.resize(page_bytes as usize, 0);
    out.0
}

/// The places of a layout page.
pub(super) fn leaf_places(page: &[u8], object: u64, sizes: &Sizes) -> Option<Vec<u32>> {
    let mut reader = Reader(page);
    let (magic, count, id) = (reader.half()?, reader.half()?, reader.word()?);
    if magic != LEAF_MAGIC || id != object || count > sizes.leaf_pages {
        return None;
    }
    (0..count).map(|_| reader.half()).collect()
}

/// A change of the object index: where the metadata of an object is, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexRecord {
    pub object: u64,
    /// [`NOWHERE`]: the object was deleted.
    pub place: u32,
    /// Pages that it is charged with.
    pub cost: u64,
}

/// Puts records into system pages: of the index, of blocks, or numbers of deleted objects.
pub(super) fn system_pages(records: &[u8], record: u32, page_bytes: u32) -> Vec<Vec<u8>> {
    let each = ((page_bytes - SYSTEM_HEAD) / record * record) as usize;
    let page = |records: &[u8]| {
        let mut out = Writer(Vec::with_capacity(page_bytes as usize));
        out.half(SYSTEM_MAGIC).half(records.len() as u32 / record).word(0).bytes(records);
        out.0.resize(page_bytes as usize, 0);
        out.0
    };
    records.chunks(each).map(page).collect()
}

/// The records of a system page.
pub(super) fn system_records(page: &[u8], record: u32) -> Option<impl Iterator<Item = &[u8]>> {
    let mut reader = Reader(page);
    let (magic, count, _) = (reader.half()?, reader.half()?, reader.word()?);
    let bytes = reader.bytes(count as usize * record as usize)?;
    (magic == SYSTEM_MAGIC).then(|| bytes.chunks(record as usize))
}

impl IndexRecord {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer(std::mem::take(out));
        writer.word(self.object).word(self.cost).half(self.place).half(0);
        *out = writer.0;
    }

    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let (object, cost, place) = (reader.word()?, reader.word()?, reader.half()?);
        Some(Self { object, place, cost })
    }
}

/// The root: what a start begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Root {
    pub generation: u64,
    /// Page bytes, pages of a block, blocks.
    pub shape: [u32; 3],
    /// Blocks that were good when the store was made: its capacity is of these.
    pub good: u32,
    /// The last write that the index knows.
    pub tid: u64,
    /// Number of the first page of the system log, where it begins in the first of its blocks, and how many
    /// pages it has.
    pub log: [u32; 3],
    /// Blocks of the system log, in order; those behind its end are empty.
    pub blocks: Vec<u32>,
    /// Blocks of the windows: block, its first page that the index may not know, and which window.
    pub windows: Vec<[u32; 3]>,
}

impl Root {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer(Vec::new());
        out.half(ROOT_MAGIC).half(1).word(self.generation).word(self.tid);
        for value in self.shape.into_iter().chain(self.log) {
            out.half(value);
        }
        // Length and checksum.
        out.half(self.blocks.len() as u32).half(0).word(0).half(self.windows.len() as u32).half(self.good);
        for value in self.blocks.iter().chain(self.windows.iter().flatten()) {
            out.half(*value);
        }
        let len = out.0.len() as u32;
        out.0[SUM_AT - 4..SUM_AT].copy_from_slice(&len.to_le_bytes());
        seal(&mut out.0);
        out.0
    }

    pub fn decode(record: &[u8]) -> Option<Self> {
        let len = Reader(record.get(SUM_AT - 4..)?).half()? as usize;
        let record = record.get(..len)?;
        if !is_sealed(record) {
            return None;
        }
        let mut reader = Reader(record);
        let (magic, version, generation, tid) =
            (reader.half()?, reader.half()?, reader.word()?, reader.word()?);
        if (magic, version) != (ROOT_MAGIC, 1) {
            return None;
        }
        let mut three = || Some([reader.half()?, reader.half()?, reader.half()?]);
        let (shape, log) = (three()?, three()?);
        let blocks = reader.half()?;
        let _ = (reader.half()?, reader.word()?);
        let (windows, good) = (reader.half()?, reader.half()?);
        let blocks = (0..blocks).map(|_| reader.half()).collect::<Option<_>>()?;
        let mut three = || Some([reader.half()?, reader.half()?, reader.half()?]);
        let windows = (0..windows).map(|_| three()).collect::<Option<_>>()?;
        Some(Self { generation, shape, good, tid, log, blocks, windows })
    }
}

const _: () = assert!(LEAF == 16 && HEAD as usize == SUM_AT + 8);

#[cfg(test)]
mod tests {
    use super::super::diffs::Compression;
    use super::*;

    #[test]
    fn an_object_is_read_as_it_was_written() {
        is_read_as_written(Compression::Off, 0);
        // The differences are 120 bytes of two values.
        is_read_as_written(Compression::Lz4, 80);
    }

    /// With compression that saves so many bytes at least.
    fn is_read_as_written(compression: Compression, saved: usize) {
        let sizes = Sizes::new(512, true, compression);
        let mut object = Object::new(77, Hint(3), &sizes);
        object.size = 5_000;
        object.attributes = b"name".to_vec().into();
        object.replaced = vec![5, 9];
        for (page, place) in [(0, 30), (1, 31), (7, 2)] {
            object.layout.set(page, place);
        }
        for (page, start, end) in [(1, 10, 20), (1, 30, 40), (9, 0, 100)] {
            let patch = object.diffs.change().entry(page).or_insert_with(|| sizes.patch());
            patch.write(start, end, Some(&vec![page as u8 + 1; (end - start) as usize]));
        }
        let parts = [100, 200];
        let record = object_record(&object, 1234, &parts, &sizes);
        assert_eq!(record.len() as u64, object.metadata_bytes(&sizes) + 8);
        let plain = object.record_bytes(&sizes) + object.diffs.plain_bytes() + 8;
        assert!(record.len() + saved <= plain as usize, "{} of {plain} bytes", record.len());
        assert_eq!(object_parts(&record), Some(parts.to_vec()));
        let (read, leaves) = object_of(&record, &sizes).unwrap();
        assert!(leaves.is_empty());
        assert_eq!((read.id, read.size, read.hint, read.meta_tid), (77, 5_000, Hint(3), 1234));
        assert_eq!((&read.attributes, &read.replaced), (&object.attributes, &object.replaced));
        assert_eq!((&*read.diffs, read.touched), (&*object.diffs, 4));
        assert_eq!(read.layout.iter().collect::<Vec<_>>(), object.layout.iter().collect::<Vec<_>>());
        for at in 0..record.len() {
            let mut wrong = record.clone();
            wrong[at] ^= 1;
            assert!(object_of(&wrong, &sizes).is_none(), "byte {at}");
        }
        for len in 0..record.len() {
            assert!(object_of(&record[..len], &sizes).is_none(), "{len} bytes");
        }
    }

    #[test]
    fn a_root_is_read_as_it_was_written() {
        let root = Root {
            generation: 5,
            shape: [4096, 64, 1024],
            good: 1000,
            tid: 99,
            log: [7, 3, 20],
            blocks: vec![4, 5, 90],
            windows: vec![[10, 3, 0], [11, 0, 1]],
        };
        let record = root.encode();
        assert_eq!(Root::decode(&record), Some(root));
        for at in 0..record.len() {
            let mut wrong = record.clone();
            wrong[at] ^= 1;
            assert!(Root::decode(&wrong).is_none(), "byte {at}");
        }
    }

    #[test]
    fn records_fill_pages() {
        let mut bytes = Vec::new();
        let records: Vec<IndexRecord> =
            (0..50).map(|id| IndexRecord { object: id, place: id as u32 + 7, cost: 3 * id }).collect();
        for record in &records {
            record.encode(&mut bytes);
        }
        let pages = system_pages(&bytes, INDEX_RECORD, 512);
        assert_eq!(pages.len(), 3);
        let read = pages.iter().flat_map(|page| system_records(page, INDEX_RECORD).unwrap());
        assert_eq!(read.map(|bytes| IndexRecord::decode(bytes).unwrap()).collect::<Vec<_>>(), records);
    }
}
