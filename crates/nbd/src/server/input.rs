//! Bytes that have arrived and are not used up.

use super::transport::Transport;
use memmap2::MmapMut;
use nandscape_engine::budget::{Budget, Evict, NoMemory, Room};
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// Room of a connection: several requests, or one write of 1 MiB. More draws on the memory of all.
const OWN_BYTES: usize = (1 << 20) + (64 << 10);

/// Why nothing was received.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReceiveError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Memory(#[from] NoMemory),
}

/// A buffer that bytes are received into and requests are parsed in.
pub(super) struct Input {
    /// Mapped: received into the heap, writes of 128 KiB ran at 0.90 of the rate before (median of 9 pairs).
    own: MmapMut,
    /// In place of `own`, for one request that does not fit there.
    long: Option<Room>,
    start: usize,
    end: usize,
}

impl Input {
    /// Nothing has arrived.
    pub fn new() -> io::Result<Self> {
        Ok(Self { own: MmapMut::map_anon(OWN_BYTES)?, long: None, start: 0, end: 0 })
    }

    /// What has arrived.
    pub fn bytes(&self) -> &[u8] {
        &self.long.as_deref().unwrap_or(&self.own)[self.start..self.end]
    }

    /// Uses up bytes from the front.
    pub fn consume(&mut self, bytes: usize) {
        assert!(bytes <= self.end - self.start, "{bytes} bytes used of {}", self.end - self.start);
        self.start += bytes;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            // Never held while the memory for a reply is waited for.
            self.long = None;
        }
    }

    /// Receives more, with room for `needed` bytes from the first unused one. `false` at the end.
    pub fn receive(&mut self, transport: &dyn Transport, needed: usize) -> io::Result<bool> {
        assert!(needed <= OWN_BYTES, "{needed} bytes are received with `receive_long`");
        assert!(self.long.is_none(), "the long request in front is used up first");
        if needed > self.own.len() - self.start || self.end == self.own.len() {
            self.own.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let received = transport.recv(&mut self.own[self.end..])?;
        self.end += received;
        Ok(received > 0)
    }

    /// Receives more of a request of `needed` bytes; a long one waits for memory of the budget.
    pub fn receive_long(
        &mut self,
        transport: &dyn Transport,
        needed: usize,
        budget: &Arc<Budget>,
        evict: &Evict,
    ) -> Result<bool, ReceiveError> {
        if needed <= OWN_BYTES {
            return Ok(self.receive(transport, needed)?);
        }
        if self.long.is_none() {
            // The system clears room when it is touched: what is announced and never comes costs nothing.
            let mut room = budget.room(needed, Some(evict))?;
            let held = self.end - self.start;
            room[..held].copy_from_slice(self.bytes());
            room.grant().client_is_due(Instant::now(), needed as u64);
            (self.long, self.start, self.end) = (Some(room), 0, held);
        }
        let room = self.long.as_mut().expect("it was taken above");
        assert_eq!(room.len(), needed, "one request is in it");
        // No byte of the next request comes in, so that it is given back with this one.
        let received = transport.recv(&mut room[self.end..])?;
        self.end += received;
        if self.end == needed {
            room.grant().client_is_done();
        }
        Ok(received > 0)
    }

    /// Throws away `bytes`, those that have arrived and those to come. `false` at the end.
    pub fn skip(&mut self, transport: &dyn Transport, mut bytes: u64) -> io::Result<bool> {
        loop {
            let here = bytes.min((self.end - self.start) as u64);
            self.consume(here as usize);
            bytes -= here;
            if bytes == 0 {
                return Ok(true);
            }
            if !self.receive(transport, 1)? {
                return Ok(false);
            }
        }
    }
}
