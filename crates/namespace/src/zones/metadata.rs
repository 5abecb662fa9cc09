//! The metadata log: what of the zones the flash pages of their data do not tell.
//!
//! Pages of records, each programmed after the one before it. From time to time a snapshot of everything
//! begins a new run of pages in fresh blocks, after all pages of zones that were programmed so far; once its
//! last page is programmed, the blocks before it are free. A start reads the newest run whose snapshot is
//! complete, up to the first page that is not programmed or begins a snapshot that was cut short
//! (docs/formats/zones.md).

use super::held::HeldPage;
use nandscape_core::{BlockId, Token};

/// Why zones are read-only without a log.
pub(super) const LOG_ENDED: &str = "too few blocks are left for the metadata log of the zones";

/// First bytes of a page of the log.
const MAGIC: [u8; 4] = *b"NZL1";
/// Magic, flags, bytes of records.
pub(super) const HEADER_BYTES: usize = 12;

/// The page belongs to a snapshot.
pub(super) const SNAPSHOT: u32 = 1;
/// It is the first page of one.
pub(super) const FIRST: u32 = 2;
/// It is the last page of one.
pub(super) const LAST: u32 = 4;

/// Something about a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// It was reset: blocks that were bound to it with a lower number are not its own any more, and what the
    /// log said of it before is void.
    Reset { zone: u32, seq: u64 },
    /// It was finished; the host had written so many logical blocks.
    Finished { zone: u32, written: u64 },
    /// Its descriptor extension.
    Extension { zone: u32, bytes: Box<[u8]> },
    /// The medium failed below it: it is read-only, or offline.
    Failed { zone: u32, is_offline: bool },
    /// Its blocks in each die became fewer.
    Shrunk { zone: u32, slots: u32 },
    /// A block failed, and what it held is elsewhere or void: the next start marks it bad.
    Retired { block: u32 },
    /// A piece of a page that was in the controller.
    Held(HeldPiece),
}

/// Bytes of a page that was in the controller. A page is logged in pieces, of which none counts before the
/// last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeldPiece {
    pub zone: u32,
    pub page: u32,
    /// Logical blocks of the page that the host has written.
    pub present: u128,
    /// First byte in the page.
    pub from: u32,
    pub len: u32,
    pub is_last: bool,
    /// Absent where no data is kept.
    pub bytes: Option<Box<[u8]>>,
}

/// Bytes before the variable part of a record: kind, zone, number, bits, length.
const RECORD_BYTES: usize = 40;

impl Record {
    /// Bytes that it takes in a page.
    pub fn len(&self) -> usize {
        RECORD_BYTES
            + match self {
                Self::Extension { bytes, .. } => bytes.len(),
                Self::Held(piece) => piece.len as usize,
                _ => 0,
            }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let (kind, zone, number, bits, bytes): (u32, u32, u64, u128, &[u8]) = match self {
            Self::Reset { zone, seq } => (1, *zone, *seq, 0, &[]),
            Self::Finished { zone, written } => (2, *zone, *written, 0, &[]),
            Self::Extension { zone, bytes } => (3, *zone, 0, 0, bytes),
            Self::Failed { zone, is_offline } => (4, *zone, u64::from(*is_offline), 0, &[]),
            Self::Shrunk { zone, slots } => (5, *zone, u64::from(*slots), 0, &[]),
            Self::Retired { block } => (7, *block, 0, 0, &[]),
            Self::Held(piece) => {
                let number =
                    u64::from(piece.page) << 32 | u64::from(piece.from) << 1 | u64::from(piece.is_last);
                (6, piece.zone, number, piece.present, piece.bytes.as_deref().unwrap_or_default())
            }
        };
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&zone.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&bits.to_le_bytes());
        out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(bytes);
    }

    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(RECORD_BYTES)?;
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let present = u128::from_le_bytes(head[16..32].try_into().expect("sixteen bytes"));
        let (kind, zone, number) = (word(0), word(4), long(8));
        let (taken, rest) = rest.split_at_checked(usize::try_from(long(32)).ok()?)?;
        *bytes = rest;
        Some(match kind {
            1 => Self::Reset { zone, seq: number },
            2 => Self::Finished { zone, written: number },
            3 => Self::Extension { zone, bytes: taken.into() },
            4 => Self::Failed { zone, is_offline: number != 0 },
            5 => Self::Shrunk { zone, slots: u32::try_from(number).ok()? },
            6 => Self::Held(HeldPiece {
                zone,
                page: (number >> 32) as u32,
                present,
                from: number as u32 >> 1,
                len: taken.len() as u32,
                is_last: number & 1 != 0,
                bytes: Some(taken.into()),
            }),
            7 => Self::Retired { block: zone },
            _ => return None,
        })
    }
}

/// What a page of the log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogPage {
    pub flags: u32,
    pub records: Vec<Record>,
}

/// A page of the log as it is programmed.
pub(super) fn encode_page(flags: u32, records: &[Record], page_bytes: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(page_bytes as usize);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    for record in records {
        record.encode(&mut out);
    }
    let records = (out.len() - HEADER_BYTES) as u32;
    out[8..12].copy_from_slice(&records.to_le_bytes());
    assert!(out.len() <= page_bytes as usize, "{} bytes of records in a page of {page_bytes}", out.len());
    out.resize(page_bytes as usize, 0);
    out
}

/// What a page of the log holds, if it is one.
pub(super) fn decode_page(page: &[u8]) -> Option<LogPage> {
    let (head, rest) = page.split_at_checked(HEADER_BYTES)?;
    if head[..4] != MAGIC {
        return None;
    }
    let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let mut rest = rest.get(..word(8) as usize)?;
    let mut records = Vec::new();
    while !rest.is_empty() {
        records.push(Record::decode(&mut rest)?);
    }
    Some(LogPage { flags: word(4), records })
}

/// Divides records into pages.
pub(super) fn pages_of(records: &[Record], page_bytes: u32) -> Vec<&[Record]> {
    let room = page_bytes as usize - HEADER_BYTES;
    let (mut pages, mut rest) = (Vec::new(), records);
    while !rest.is_empty() {
        let mut used = 0;
        let fit = rest.iter().take_while(|record| {
            used += record.len();
            used <= room
        });
        let (page, left) = rest.split_at(fit.count());
        assert!(!page.is_empty(), "a record of {} bytes in pages of {page_bytes}", rest[0].len());
        pages.push(page);
        rest = left;
    }
    pages
}

/// The records of a held page, of logical blocks of `block` bytes.
pub(super) fn held_records(
    zone: u32,
    page: u32,
    held: &HeldPage,
    block: u32,
    page_bytes: u32,
    out: &mut Vec<Record>,
) {
    let first = held.present.trailing_zeros() * block;
    let end = (u128::BITS - held.present.leading_zeros()) * block;
    let most = page_bytes - (HEADER_BYTES + RECORD_BYTES) as u32;
    let mut from = first;
    while from < end {
        let len = most.min(end - from);
        let bytes = held.data.as_ref().map(|data| data[from as usize..(from + len) as usize].into());
        let is_last = from + len == end;
        out.push(Record::Held(HeldPiece { zone, page, present: held.present, from, len, is_last, bytes }));
        from += len;
    }
}

/// Where the log is, and how far.
#[derive(Clone, Debug)]
pub(super) struct Log {
    /// Blocks of the newest run of pages, in the order they are written.
    pub blocks: Vec<BlockId>,
    /// Blocks of the run before it, while its snapshot is being written.
    pub old: Vec<BlockId>,
    /// Those of them in which a program failed.
    pub failed: Vec<BlockId>,
    /// Pages used of the last block.
    pub used: u32,
    /// Number of the next page.
    pub seq: u64,
    /// Pages of the run, and of the snapshot that it begins with.
    pub pages: u64,
    pub snapshot_pages: u64,
    /// The last page that was programmed; what it allows comes after it.
    pub done: Token,
    /// A start found no block for a snapshot: nothing can be logged, and the run that was read stays.
    pub is_ended: bool,
    /// Records that are not programmed yet, on a device whose controller loses nothing.
    pub pending: Vec<Record>,
    /// By zone: blocks that were bound with a lower number are no longer its own.
    pub reset_seqs: Vec<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            blocks: Vec::new(),
            old: Vec::new(),
            failed: Vec::new(),
            used: 0,
            seq: 1,
            pages: 0,
            snapshot_pages: 0,
            done: Token::NONE,
            is_ended: false,
            pending: Vec::new(),
            reset_seqs: Vec::new(),
        }
    }
}

impl Log {
    /// Its blocks.
    pub fn blocks(&self) -> impl Iterator<Item = BlockId> {
        self.blocks.iter().chain(&self.old).copied()
    }

    /// A start found these blocks of an earlier run; they are free after the next snapshot.
    pub fn adopt(&mut self, blocks: Vec<BlockId>, seq: u64) {
        (self.old, self.seq) = (blocks, seq);
    }

    /// Whether there is no run yet, or it is more than twice as long as its snapshot and fills a block.
    pub fn is_snapshot_due(&self, pages_per_block: u32) -> bool {
        let is_long = self.pages > 2 * self.snapshot_pages && self.pages >= u64::from(pages_per_block);
        is_long || self.blocks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_records_are_read_as_they_were_written() {
        let records = [
            Record::Reset { zone: 3, seq: u64::MAX - 1 },
            Record::Finished { zone: 4, written: 17 },
            Record::Extension { zone: 5, bytes: Box::from([7; 64]) },
            Record::Failed { zone: 6, is_offline: true },
            Record::Shrunk { zone: 7, slots: 2 },
            Record::Retired { block: 11 },
            Record::Held(HeldPiece {
                zone: 8,
                page: 9,
                present: 1 << 100,
                from: 4096,
                len: 512,
                is_last: true,
                bytes: Some(Box::from([1; 512])),
            }),
        ];
        let page = encode_page(SNAPSHOT | LAST, &records, 1024);
        let read = decode_page(&page).unwrap();
        assert_eq!((read.flags, &read.records[..]), (SNAPSHOT | LAST, &records[..]));
        assert_eq!(decode_page(&[0; 1024]), None);
        for end in 0..page.len().min(900) {
            let _ = decode_page(&page[..end]);
        }
    }

    #[test]
    fn records_are_divided_into_pages_in_order() {
        let records: Vec<Record> = (0..100).map(|zone| Record::Reset { zone, seq: 1 }).collect();
        let pages = pages_of(&records, 512);
        assert_eq!(
            pages.iter().map(|page| page.len()).collect::<Vec<_>>(),
            [12, 12, 12, 12, 12, 12, 12, 12, 4]
        );
        assert_eq!(pages.concat(), records);
    }
}
