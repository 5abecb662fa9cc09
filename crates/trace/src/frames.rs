//! The frames of a compressed recording; see [`crate::recording`].

use std::io::{Error, ErrorKind, Read, Result};

const MAGIC: [u8; 12] = *b"\x5e\x2a\x4d\x18\x0c\0\0\0nsr1";
const HEADER_BYTES: usize = 20;
/// Neither a frame nor its text may be longer: what a reader allocates.
const FRAME_MAX: usize = 16 << 20;
const LEVEL: i32 = 3;

pub(crate) fn frame(text: &[u8]) -> Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    compressor.include_checksum(true)?;
    let packed = compressor.compress(text)?;
    let mut out = Vec::with_capacity(HEADER_BYTES + packed.len());
    out.extend_from_slice(&MAGIC);
    for length in [packed.len(), text.len()] {
        out.extend_from_slice(&u32::try_from(length).map_err(Error::other)?.to_le_bytes());
    }
    out.extend_from_slice(&packed);
    Ok(out)
}

pub(crate) fn is_framed(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// Reads the frames of a recording, up to a last one that was cut off.
pub(crate) struct Frames<R> {
    source: R,
    text: Vec<u8>,
    read: usize,
    position: u64,
}

impl<R: Read> Frames<R> {
    pub fn new(source: R) -> Self {
        Self { source, text: Vec::new(), read: 0, position: 0 }
    }

    /// The next frame's text; `false` at the end.
    fn next(&mut self) -> Result<bool> {
        let mut header = [0; HEADER_BYTES];
        if !fill(&mut self.source, &mut header)? {
            return Ok(false);
        }
        let length =
            |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes")) as usize;
        let (packed, text) = (length(12), length(16));
        if header[..12] != MAGIC || packed > FRAME_MAX || text > FRAME_MAX {
            return Err(self.damaged("expected the header of a frame"));
        }
        let mut bytes = vec![0; packed];
        if !fill(&mut self.source, &mut bytes)? {
            return Ok(false);
        }
        self.text = zstd::bulk::decompress(&bytes, text).map_err(|error| self.damaged(&error.to_string()))?;
        self.read = 0;
        self.position += (HEADER_BYTES + packed) as u64;
        Ok(true)
    }

    fn damaged(&self, what: &str) -> Error {
        Error::new(
            ErrorKind::InvalidData,
            format!("the recording is damaged at offset {}: {what}", self.position),
        )
    }
}

/// Fills a buffer; `false` if the source ends before.
fn fill(source: &mut impl Read, buffer: &mut [u8]) -> Result<bool> {
    match source.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        while self.read == self.text.len() {
            if !self.next()? {
                return Ok(0);
            }
        }
        let rest = &self.text[self.read..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.read += count;
        Ok(count)
    }
}
