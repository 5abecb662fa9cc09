//! The memory that data passes through.

/// Reused memory, so that no step allocates once the cache runs.
pub(super) struct Buffers {
    free: Vec<Vec<u8>>,
    /// Without bytes every buffer is empty.
    pub(super) keeps_bytes: bool,
}

impl Buffers {
    pub(super) const fn new(keeps_bytes: bool) -> Self {
        Self { free: Vec::new(), keeps_bytes }
    }

    /// Memory of this length; none where no bytes are kept. Its content is of no meaning.
    pub(super) fn take(&mut self, len: u64) -> Vec<u8> {
        let mut buffer = self.free.pop().unwrap_or_default();
        buffer.resize(if self.keeps_bytes { len as usize } else { 0 }, 0);
        buffer
    }

    pub(super) fn give(&mut self, buffer: Vec<u8>) {
        self.free.push(buffer);
    }
}
