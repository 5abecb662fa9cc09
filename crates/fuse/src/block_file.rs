//! A namespace as a file of fixed size.

use crate::client::{Client, Done, Failed};
use nandscape_core::{Extent, Op};
use nandscape_engine::{Due, Engine, Request};
use std::sync::Arc;

/// The most bytes that one command zeroes, so that a discard of the whole device lets others in between.
const ZERO_BYTES: u64 = 256 << 20;

/// What a file of fixed size makes of the calls of a client. Errors are error numbers.
///
/// Offsets are bytes, of any alignment. As with a block device, reads end at the end of the file, and a write
/// beyond it has no space.
#[derive(Clone, Debug)]
pub struct BlockFile {
    client: Client,
    capacity_bytes: u64,
    is_read_only: bool,
}

impl BlockFile {
    /// The file of namespace number `namespace` of the engine.
    pub fn new(engine: Arc<Engine>, namespace: u32, is_read_only: bool) -> Self {
        let capacity_bytes = engine.namespaces()[namespace as usize].capacity_bytes;
        Self { client: Client { engine, namespace }, capacity_bytes, is_read_only }
    }

    /// Size, which never changes.
    pub const fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Whether writes are refused.
    pub const fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// How many of `len` bytes from `offset` on are in the file.
    const fn inside(&self, offset: u64, len: u64) -> u64 {
        let left = self.capacity_bytes.saturating_sub(offset);
        if len < left { len } else { left }
    }

    /// Fills `data`, as far as the file goes.
    pub fn read(&self, offset: u64, data: &mut [u8]) -> Result<Done, Failed> {
        let len = self.inside(offset, data.len() as u64) as usize;
        if len == 0 {
            return Ok(Done::default());
        }
        let (_, due) = self.client.run(Request::read(self.client.namespace, offset, &mut data[..len]))?;
        Ok(Done { len, due })
    }

    /// Writes `data`, as far as the file goes. With `is_durable` it is answered when it survives a loss of
    /// power.
    pub fn write(&self, offset: u64, data: &[u8], is_durable: bool) -> Result<Done, Failed> {
        self.check_writable()?;
        let len = self.inside(offset, data.len() as u64) as usize;
        if len == 0 {
            return if data.is_empty() { Ok(Done::default()) } else { Err(Failed::number(libc::ENOSPC)) };
        }
        let (_, due) = self
            .client
            .run(Request::write(self.client.namespace, offset, &data[..len]).durable(is_durable))?;
        Ok(Done { len, due })
    }

    /// Allocates, punches or zeroes a range, by the mode bits of fallocate(2).
    ///
    /// A punched hole is a trim that reads as zeroes: whole pages are dropped, the ends of partly covered
    /// ones are written. Space is there from the beginning, so to allocate is to do nothing. What would
    /// change the size is refused.
    pub fn allocate(&self, offset: u64, len: u64, mode: i32) -> Result<Done, Failed> {
        const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        const ZERO_KEEP: i32 = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;
        self.check_writable()?;
        let grows = offset.checked_add(len).is_none_or(|end| end > self.capacity_bytes);
        match mode {
            PUNCH | ZERO_KEEP => self.zero(offset, len),
            libc::FALLOC_FL_ZERO_RANGE if !grows => self.zero(offset, len),
            0 if !grows => Ok(Done::default()),
            libc::FALLOC_FL_KEEP_SIZE => Ok(Done::default()),
            0 | libc::FALLOC_FL_ZERO_RANGE => Err(Failed::number(libc::EPERM)),
            _ => Err(Failed::number(libc::EOPNOTSUPP)),
        }
    }

    fn zero(&self, offset: u64, len: u64) -> Result<Done, Failed> {
        let end = offset + self.inside(offset, len);
        let (mut at, mut due) = (offset, None);
        while at < end {
            // Pieces end at multiples of their size, so that no page is cut in two.
            let piece_end = (at / ZERO_BYTES + 1).saturating_mul(ZERO_BYTES).min(end);
            let extent = Extent::new(at, piece_end - at);
            let (_, of_piece) =
                self.client.run(Request::plain(self.client.namespace, Op::WriteZeroes, extent))?;
            due = Due::last_of(due, of_piece);
            at = piece_end;
        }
        Ok(Done { len: 0, due })
    }

    /// Everything answered so far survives a loss of power when this returns.
    pub fn sync(&self) -> Result<Done, Failed> {
        if self.is_read_only {
            return Ok(Done::default());
        }
        let (_, due) =
            self.client.run(Request::plain(self.client.namespace, Op::Flush, Extent::new(0, 0)))?;
        Ok(Done { len: 0, due })
    }

    fn check_writable(&self) -> Result<(), Failed> {
        if self.is_read_only { Err(Failed::number(libc::EROFS)) } else { Ok(()) }
    }
}
