//! Bytes that have arrived and are not used up.

use super::transport::Transport;
use std::io;

/// Room that a connection keeps; single requests may need more for a while.
const KEPT_BYTES: usize = 1 << 20;

/// A buffer that bytes are received into and requests are parsed in.
#[derive(Debug)]
pub(super) struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// Room for `bytes`.
    pub fn new(bytes: usize) -> Self {
        Self { buffer: vec![0; bytes], start: 0, end: 0 }
    }

    /// What has arrived.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Uses up bytes from the front.
    pub fn consume(&mut self, bytes: usize) {
        assert!(bytes <= self.end - self.start, "{bytes} bytes used of {}", self.end - self.start);
        self.start += bytes;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Receives more, with room for `needed` bytes from the first unused one. `false` at the end.
    pub fn receive(&mut self, transport: &dyn Transport, needed: usize) -> io::Result<bool> {
        self.make_room(needed);
        let received = transport.recv(&mut self.buffer[self.end..])?;
        self.end += received;
        Ok(received > 0)
    }

    fn make_room(&mut self, needed: usize) {
        let held = self.end - self.start;
        let is_oversized = self.buffer.len() > KEPT_BYTES && needed <= KEPT_BYTES;
        if needed > self.buffer.len() || (is_oversized && held <= needed) {
            // New room is cleared by the system when it is touched, so what is announced and never comes costs nothing.
            let mut buffer = vec![0; needed.next_power_of_two().max(KEPT_BYTES)];
            buffer[..held].copy_from_slice(self.bytes());
            (self.buffer, self.start, self.end) = (buffer, 0, held);
        } else if needed > self.buffer.len() - self.start || self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, held);
        }
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
