//! The native packed binary; `docs/formats/trace-binary.md` has the byte layout.

use super::{Confidence, Format, Input};
use crate::binary::{RecordFormat, u16_at, u32_at, u64_at};
use crate::error::shown;
use crate::gate::{Clock, Parsed};
use crate::options::BoxReader;
use crate::writer::RecordWriter;
use nandscape_core::{Info, IoRecord, Params, SimTime, TraceOp};
use std::io::{Read, Write};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

pub const ENTRY: Format = Format {
    info: Info {
        name: "nst",
        summary: "native packed binary: 32 B records, check sums",
        source: "nandscape, docs/formats/trace-binary.md",
        params: &[],
    },
    extensions: &["nst"],
    many_volumes: true,
    detect: |head| Confidence::Certain.if_passed(head.bytes.starts_with(MAGIC)),
    read: open,
    write: Some(|out, _| Box::new(Writer { out, hash: Xxh3Default::new(), count: 0, buffer: Vec::new() })),
};

const MAGIC: &[u8; 8] = b"nstrace\0";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 64;
const RECORD_BYTES: usize = 32;
const FLAG_NO_TIMES: u32 = 1;
/// Value of the operation byte in the closing record.
const END: u8 = 0xff;

fn open(mut input: Input, _: &Params) -> Result<BoxReader, String> {
    let mut header = [0; HEADER_BYTES];
    input
        .bytes
        .read_exact(&mut header)
        .map_err(|error| format!("offset 0: the header of {HEADER_BYTES} B is cut off: {error}"))?;
    if header[..8] != *MAGIC {
        return Err(format!("offset 0: {}: expected the signature 'nstrace'", shown(&header[..8])));
    }
    let sum = xxh3_64(&header[..HEADER_BYTES - 8]);
    if u64_at(&header, HEADER_BYTES - 8) != sum {
        return Err(format!(
            "offset {}: the header's check sum does not match: expected {sum:#018x}",
            HEADER_BYTES - 8
        ));
    }
    let (version, record_bytes, flags) = (u32_at(&header, 8), u32_at(&header, 12), u32_at(&header, 16));
    if version != VERSION || record_bytes as usize != RECORD_BYTES || flags & !FLAG_NO_TIMES != 0 {
        return Err(format!(
            "offset 8: version {version}, records of {record_bytes} B, flags {flags:#x}: expected version {VERSION}, {RECORD_BYTES} B"
        ));
    }
    let expected = Some(u64_at(&header, 24)).filter(|count| *count != u64::MAX);
    let format = Nst { hash: Xxh3Default::new(), count: 0 };
    let reader = input
        .records("nst", Clock::Strict, format)
        .starting_at(HEADER_BYTES as u64, expected)
        .with_real_times(flags & FLAG_NO_TIMES == 0);
    Ok(Box::new(reader))
}

struct Nst {
    hash: Xxh3Default,
    count: u64,
}

impl RecordFormat for Nst {
    fn record_bytes(&self) -> usize {
        RECORD_BYTES
    }

    #[inline]
    fn parse(&mut self, record: &[u8]) -> Result<Parsed, String> {
        let op = match record[30] {
            END => return self.close(record),
            number => *TraceOp::ALL
                .get(usize::from(number))
                .ok_or_else(|| format!("operation {number}: expected 0 to {}", TraceOp::ALL.len() - 1))?,
        };
        self.count += 1;
        Ok(Parsed::Io(IoRecord {
            at: SimTime(u64_at(record, 0)),
            offset: u64_at(record, 8),
            len: u64_at(record, 16),
            volume: u32_at(record, 24),
            hint: u16_at(record, 28),
            op,
        }))
    }

    fn saw(&mut self, records: &[u8]) {
        // Bytes come once each, in order. Nothing follows the closing record, so it can only be the last one
        // here; it is not part of the sum.
        let data = records.len() - RECORD_BYTES;
        let is_closing = records[data + 30] == END;
        self.hash.update(&records[..if is_closing { data } else { records.len() }]);
    }

    fn at_end(&mut self) -> Result<(), String> {
        Err(format!("the file ends after {} records without its closing record: it is cut off", self.count))
    }
}

impl Nst {
    fn close(&self, record: &[u8]) -> Result<Parsed, String> {
        let (count, sum) = (u64_at(record, 0), u64_at(record, 8));
        if count != self.count {
            return Err(format!("the closing record says {count} records: expected {}", self.count));
        }
        if sum != self.hash.digest() {
            return Err(format!(
                "the check sum of the records is {:#018x}: expected {sum:#018x}",
                self.hash.digest()
            ));
        }
        Ok(Parsed::End)
    }
}

struct Writer<'a> {
    out: Box<dyn Write + 'a>,
    hash: Xxh3Default,
    count: u64,
    buffer: Vec<u8>,
}

impl Writer<'_> {
    fn header(&mut self) -> std::io::Result<()> {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&(RECORD_BYTES as u32).to_le_bytes());
        header[24..32].copy_from_slice(&u64::MAX.to_le_bytes());
        let sum = xxh3_64(&header[..HEADER_BYTES - 8]);
        header[HEADER_BYTES - 8..].copy_from_slice(&sum.to_le_bytes());
        self.out.write_all(&header)
    }
}

impl RecordWriter for Writer<'_> {
    fn write(&mut self, record: &IoRecord) -> std::io::Result<()> {
        if self.count == 0 {
            self.header()?;
        }
        self.count += 1;
        self.buffer.clear();
        self.buffer.extend_from_slice(&record.at.as_ns().to_le_bytes());
        self.buffer.extend_from_slice(&record.offset.to_le_bytes());
        self.buffer.extend_from_slice(&record.len.to_le_bytes());
        self.buffer.extend_from_slice(&record.volume.to_le_bytes());
        self.buffer.extend_from_slice(&record.hint.to_le_bytes());
        self.buffer.extend_from_slice(&[record.op as u8, 0]);
        self.hash.update(&self.buffer);
        self.out.write_all(&self.buffer)
    }

    fn finish(&mut self) -> std::io::Result<()> {
        if self.count == 0 {
            self.header()?;
        }
        let mut end = [0; RECORD_BYTES];
        end[..8].copy_from_slice(&self.count.to_le_bytes());
        end[8..16].copy_from_slice(&self.hash.digest().to_le_bytes());
        end[30] = END;
        self.out.write_all(&end)?;
        self.out.flush()
    }
}
