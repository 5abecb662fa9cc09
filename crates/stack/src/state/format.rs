//! The file that a state is kept in (docs/formats/state.md): a header, a description in JSON, and the state
//! in chunks, each with a checksum that is verified before anything of the chunk is used.

use nandscape_core::state::{Sink, Source};
use nandscape_core::{StateError, StateResult};
use nandscape_media::checksum::sum;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

const MAGIC: [u8; 8] = *b"NANDSCST";
const VERSION: u32 = 1;
/// Bytes of the header.
const HEADER: usize = 40;
/// Most bytes of a description.
const MOST_DESCRIPTION: u32 = 1 << 24;
/// Bytes of a chunk; the last one may be shorter.
const CHUNK: usize = 1 << 20;
/// Before the bytes of a chunk: how many, and their checksum.
const CHUNK_HEADER: usize = 8;

fn wrong(offset: u64, found: impl Into<String>, expected: impl Into<String>) -> StateError {
    StateError::Wrong { offset, found: found.into(), expected: expected.into() }
}

fn failed(what: &str) -> impl Fn(io::Error) -> StateError {
    move |error| StateError::File(format!("{what}: {error}"))
}

/// The checksum of a chunk, bound to its place in the file.
fn sum_of(offset: u64, length: [u8; 4], bytes: &[u8]) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&offset.to_le_bytes());
    place[8..12].copy_from_slice(&length);
    place[12..].copy_from_slice(&sum(bytes).to_le_bytes());
    sum(&place)
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|index| bytes[at + index])
}

/// Whether something at this path may be replaced: nothing, or a file that a state was saved to.
pub(super) fn check_target(path: &Path) -> StateResult {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
            if parent.is_dir() {
                return Ok(());
            }
            return Err(StateError::File(
                "there is no such folder: expected one to save the state in".to_owned(),
            ));
        }
        Err(error) => return Err(failed("look at it")(error)),
    };
    let mut magic = [0; MAGIC.len()];
    let is_state = meta.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok()
        && magic == MAGIC;
    if is_state {
        return Ok(());
    }
    Err(StateError::File("it exists and holds no state: expected another name".to_owned()))
}

/// A file that is being written.
pub(super) struct Writer<'a> {
    file: &'a mut File,
    description: &'a [u8],
    chunk: Vec<u8>,
    /// Where the next chunk goes.
    offset: u64,
}

impl<'a> Writer<'a> {
    /// Leaves room for the header, which comes last.
    pub fn new(file: &'a mut File, description: &'a [u8]) -> Result<Self, StateError> {
        let mut this = Self { file, description, chunk: Vec::with_capacity(CHUNK), offset: 0 };
        this.write(&[0; HEADER])?;
        this.write(description)?;
        Ok(this)
    }

    fn write(&mut self, bytes: &[u8]) -> StateResult {
        self.file.write_all(bytes).map_err(failed("write"))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn end_chunk(&mut self) -> StateResult {
        let chunk = std::mem::take(&mut self.chunk);
        let length = (chunk.len() as u32).to_le_bytes();
        let sum = sum_of(self.offset, length, &chunk).to_le_bytes();
        self.write(&[length, sum].concat())?;
        self.write(&chunk)?;
        self.chunk = chunk;
        self.chunk.clear();
        Ok(())
    }

    /// Writes what is left, and the header.
    pub fn finish(mut self) -> StateResult {
        if !self.chunk.is_empty() {
            self.end_chunk()?;
        }
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..20].copy_from_slice(&self.offset.to_le_bytes());
        header[20..24].copy_from_slice(&(self.description.len() as u32).to_le_bytes());
        header[24..28].copy_from_slice(&sum(self.description).to_le_bytes());
        let own = sum(&header[..HEADER - 4]).to_le_bytes();
        header[HEADER - 4..].copy_from_slice(&own);
        self.file.seek(SeekFrom::Start(0)).map_err(failed("seek"))?;
        self.write(&header)
    }
}

impl Sink for Writer<'_> {
    fn put(&mut self, mut bytes: &[u8]) -> StateResult {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - self.chunk.len()));
            self.chunk.extend_from_slice(now);
            bytes = later;
            if self.chunk.len() == CHUNK {
                self.end_chunk()?;
            }
        }
        Ok(())
    }
}

/// A file that is being read.
pub(super) struct Reader {
    file: File,
    /// Of the whole file.
    length: u64,
    /// Where the next chunk begins.
    next: u64,
    chunk: Vec<u8>,
    /// Bytes of the chunk that were given out.
    used: usize,
}

impl Reader {
    /// Opens a file; gives the description as well.
    pub fn open(path: &Path) -> Result<(Self, Vec<u8>), StateError> {
        let mut file = File::open(path).map_err(failed("open"))?;
        let meta = file.metadata().map_err(failed("look at it"))?;
        if !meta.is_file() {
            return Err(StateError::File(
                "it is no regular file: expected one that --save-state wrote".to_owned(),
            ));
        }
        let length = meta.len();
        let mut header = [0; HEADER];
        let there = length.min(HEADER as u64) as usize;
        file.read_exact(&mut header[..there]).map_err(failed("read"))?;
        let magic: [u8; 8] = number(&header, 0);
        if magic != MAGIC {
            let found = format!("'{}'", magic.escape_ascii());
            return Err(wrong(0, found, format!("'{}', with which a state begins", MAGIC.escape_ascii())));
        }
        let version = u32::from_le_bytes(number(&header, 8));
        if there >= 12 && version != VERSION {
            let expected = format!("{VERSION}, the one that this version of nandscape knows");
            return Err(wrong(8, format!("format version {version}"), expected));
        }
        if there < HEADER {
            return Err(wrong(length, "the end of the file", format!("a header of {HEADER} bytes")));
        }
        let own = u32::from_le_bytes(number(&header, HEADER - 4));
        check_sum(HEADER as u64 - 4, own, sum(&header[..HEADER - 4]), "the header")?;
        let stated = u64::from_le_bytes(number(&header, 12));
        if stated != length {
            let expected = format!("{stated} bytes, as it was saved");
            return Err(wrong(length.min(stated), format!("a file of {length} bytes"), expected));
        }
        let size = u32::from_le_bytes(number(&header, 20));
        if size > MOST_DESCRIPTION || u64::from(size) > length - HEADER as u64 {
            return Err(wrong(20, format!("a description of {size} bytes"), "one that fits the file"));
        }
        let mut description = vec![0; size as usize];
        file.read_exact(&mut description).map_err(failed("read"))?;
        let stored = u32::from_le_bytes(number(&header, 24));
        check_sum(HEADER as u64, stored, sum(&description), "the description")?;
        let next = HEADER as u64 + u64::from(size);
        Ok((Self { file, length, next, chunk: Vec::new(), used: 0 }, description))
    }

    /// Reads the next chunk and verifies it.
    fn next_chunk(&mut self) -> StateResult {
        let offset = self.next;
        let left = self.length - offset;
        if left < CHUNK_HEADER as u64 {
            return Err(wrong(offset, "the end of the file", "more of the state"));
        }
        let mut header = [0; CHUNK_HEADER];
        self.file.read_exact(&mut header).map_err(failed("read"))?;
        let length: [u8; 4] = number(&header, 0);
        let size = u32::from_le_bytes(length);
        if size == 0 || size as usize > CHUNK || u64::from(size) > left - CHUNK_HEADER as u64 {
            return Err(wrong(
                offset,
                format!("a chunk of {size} bytes"),
                format!("1 to {CHUNK}, in the file"),
            ));
        }
        self.chunk.resize(size as usize, 0);
        self.file.read_exact(&mut self.chunk).map_err(failed("read"))?;
        let stored = u32::from_le_bytes(number(&header, 4));
        check_sum(offset, stored, sum_of(offset, length, &self.chunk), "the chunk")?;
        self.used = 0;
        self.next = offset + (CHUNK_HEADER + self.chunk.len()) as u64;
        Ok(())
    }

    /// Refuses what is left over when all has been read.
    pub fn finish(&self) -> StateResult {
        if self.used == self.chunk.len() && self.next == self.length {
            return Ok(());
        }
        Err(wrong(self.offset(), "more bytes", "the end of the state"))
    }
}

fn check_sum(offset: u64, stored: u32, sum: u32, what: &str) -> StateResult {
    if stored == sum {
        return Ok(());
    }
    let expected = format!("{stored:08x}, as it was saved; the file is damaged");
    Err(wrong(offset, format!("checksum {sum:08x} of {what} here"), expected))
}

impl Source for Reader {
    fn take(&mut self, mut bytes: &mut [u8]) -> StateResult {
        while !bytes.is_empty() {
            if self.used == self.chunk.len() {
                self.next_chunk()?;
            }
            let there = &self.chunk[self.used..];
            let (now, later) = bytes.split_at_mut(bytes.len().min(there.len()));
            now.copy_from_slice(&there[..now.len()]);
            self.used += now.len();
            bytes = later;
        }
        Ok(())
    }

    fn offset(&self) -> u64 {
        self.next - (self.chunk.len() - self.used) as u64
    }

    fn left(&self) -> u64 {
        self.length - self.offset()
    }
}
