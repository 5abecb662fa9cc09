//! Replies as they are sent.

use crate::errno::Refusal;
use crate::wire::{Put, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk};
use nandscape_engine::Due;
use nandscape_engine::budget::{Budget, Evict, NoMemory, Room};
use std::sync::Arc;
use std::time::Instant;

/// Bytes of a simple reply without data.
pub(super) const SIMPLE_BYTES: usize = 16;

/// Bytes of a chunk in front of what it holds.
pub(super) const CHUNK_BYTES: usize = 20;

/// Bytes of a chunk that tells of a hole.
pub(super) const HOLE_BYTES: usize = CHUNK_BYTES + size_of::<u64>() + size_of::<u32>();

/// The most words of an error that are sent.
const MESSAGE_BYTES: usize = 400;

/// Bytes in front of the data of a read.
pub(super) const fn read_header_bytes(is_structured: bool) -> usize {
    if is_structured { CHUNK_BYTES + size_of::<u64>() } else { SIMPLE_BYTES }
}

/// Room of a connection for replies: a batch, or one read of 1 MiB. More draws on the memory of all.
const OWN_BYTES: usize = (1 << 20) + (64 << 10);

/// Replies of one batch, one after the other.
pub struct Replies {
    budget: Arc<Budget>,
    evict: Evict,
    /// Room for them. Only grows, so that no byte is cleared twice.
    own: Vec<u8>,
    /// In its place, for a batch that does not fit there.
    long: Option<Room>,
    len: usize,
    /// Where each reply ends, and on a paced clock when it is due; `None` means now.
    pub due: Vec<(usize, Option<Due>)>,
}

impl Replies {
    /// None yet. Long ones draw on `budget`; `evict` ends the client if it keeps others waiting.
    pub fn new(budget: Arc<Budget>, evict: Evict) -> Self {
        Self { budget, evict, own: Vec::new(), long: None, len: 0, due: Vec::new() }
    }

    /// What is to be sent.
    pub fn bytes(&self) -> &[u8] {
        &self.long.as_deref().unwrap_or(&self.own)[..self.len]
    }

    /// Room for so many bytes of replies, whatever it held before; waits for it. An error leaves no replies.
    pub(super) fn prepare(&mut self, bytes: usize) -> Result<(), NoMemory> {
        self.len = 0;
        self.due.clear();
        self.long = None;
        if bytes > OWN_BYTES {
            self.long = Some(self.budget.room(bytes, Some(&self.evict))?);
        } else if bytes > self.own.len() {
            let room = bytes.next_power_of_two().min(OWN_BYTES);
            // To grow the old room would copy it.
            self.own = Vec::new();
            let refused =
                |_| NoMemory::System { bytes: room as u64, error: std::io::ErrorKind::OutOfMemory.into() };
            self.own.try_reserve_exact(room).map_err(refused)?;
            self.own.resize(room, 0);
        }
        self.len = bytes;
        Ok(())
    }

    /// All of it, to be filled in, or moved together before [`Replies::cut`] says where they end.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let room = match &mut self.long {
            Some(room) => &mut room[..],
            None => &mut self.own,
        };
        &mut room[..self.len]
    }

    /// Ends the replies after so many bytes.
    pub(super) fn cut(&mut self, bytes: usize) {
        self.len = self.len.min(bytes);
    }

    /// Puts other bytes in place of what is there.
    pub(super) fn replace(&mut self, bytes: Vec<u8>) {
        self.len = bytes.len();
        self.long = None;
        match self.own.get_mut(..bytes.len()) {
            Some(room) => room.copy_from_slice(&bytes),
            None => self.own = bytes,
        }
    }

    /// The replies are about to be sent: from now on it is the client for which others wait.
    pub fn client_is_due(&self) {
        if let Some(room) = &self.long {
            room.grant().client_is_due(Instant::now(), self.len as u64);
        }
    }

    /// Gives back what only a long batch needed.
    pub fn release(&mut self) {
        self.long = None;
        self.len = 0;
    }

    /// A long batch with its memory, of which so many bytes are to be sent.
    pub fn take_long(&mut self) -> Option<(Room, usize)> {
        Some((self.long.take()?, std::mem::take(&mut self.len)))
    }
}

/// Fills in a simple reply of success.
pub(super) fn write_simple(at: &mut [u8], cookie: u64) {
    at[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    at[4..8].fill(0);
    at[8..16].copy_from_slice(&cookie.to_be_bytes());
}

/// Fills in what stands in front of the data of a read.
pub(super) fn write_read_header(at: &mut [u8], is_structured: bool, cookie: u64, offset: u64, len: u32) {
    if !is_structured {
        return write_simple(at, cookie);
    }
    write_data_header(at, true, cookie, offset, len);
}

/// Fills in what stands in front of a chunk of data.
pub(super) fn write_data_header(at: &mut [u8], is_last: bool, cookie: u64, offset: u64, len: u32) {
    let header = chunk_header(chunk::OFFSET_DATA, is_last, cookie, len + size_of::<u64>() as u32);
    at[..CHUNK_BYTES].copy_from_slice(&header);
    at[CHUNK_BYTES..][..8].copy_from_slice(&offset.to_be_bytes());
}

/// Fills in a chunk that tells of a hole.
pub(super) fn write_hole(at: &mut [u8], is_last: bool, cookie: u64, offset: u64, len: u32) {
    let content = (HOLE_BYTES - CHUNK_BYTES) as u32;
    at[..CHUNK_BYTES].copy_from_slice(&chunk_header(chunk::OFFSET_HOLE, is_last, cookie, content));
    at[CHUNK_BYTES..][..8].copy_from_slice(&offset.to_be_bytes());
    at[CHUNK_BYTES + 8..][..4].copy_from_slice(&len.to_be_bytes());
}

/// What stands in front of every chunk of a reply.
fn chunk_header(kind: u16, is_last: bool, cookie: u64, len: u32) -> [u8; CHUNK_BYTES] {
    let flags = if is_last { chunk::FLAG_DONE } else { 0 };
    let mut header = [0; CHUNK_BYTES];
    header[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    header[4..6].copy_from_slice(&flags.to_be_bytes());
    header[6..8].copy_from_slice(&kind.to_be_bytes());
    header[8..16].copy_from_slice(&cookie.to_be_bytes());
    header[16..].copy_from_slice(&len.to_be_bytes());
    header
}

pub(super) fn put_error(out: &mut Vec<u8>, is_structured: bool, cookie: u64, refusal: &Refusal) {
    if !is_structured {
        out.put_u32(SIMPLE_REPLY_MAGIC);
        out.put_u32(refusal.errno as u32);
        out.put_u64(cookie);
        return;
    }
    let mut end = refusal.message.len().min(MESSAGE_BYTES);
    while !refusal.message.is_char_boundary(end) {
        end -= 1;
    }
    let message = &refusal.message.as_bytes()[..end];
    out.put(&chunk_header(chunk::ERROR, true, cookie, 6 + message.len() as u32));
    out.put_u32(refusal.errno as u32);
    out.put_u16(message.len() as u16);
    out.put(message);
}

/// Appends the extents of a block status: length and flags of each.
pub(super) fn put_status(out: &mut Vec<u8>, cookie: u64, context: u32, extents: &[(u32, u32)]) {
    out.put(&chunk_header(chunk::BLOCK_STATUS, true, cookie, 4 + 8 * extents.len() as u32));
    out.put_u32(context);
    for (len, flags) in extents {
        out.put_u32(*len);
        out.put_u32(*flags);
    }
}
