//! Memory that begins at an address the kernel accepts for direct transfers.

/// Alignment of memory for direct transfers: enough for every device there is.
pub(crate) const ALIGN: usize = 4096;

/// Memory whose beginning is a multiple of [`ALIGN`].
#[derive(Debug, Default)]
pub(crate) struct Aligned {
    bytes: Vec<u8>,
}

impl Aligned {
    /// So many bytes, of unknown content.
    pub fn get(&mut self, len: usize) -> &mut [u8] {
        if self.bytes.len() < len + ALIGN {
            self.bytes.resize(len + ALIGN, 0);
        }
        let start = self.bytes.as_ptr().align_offset(ALIGN);
        &mut self.bytes[start..start + len]
    }
}

/// Whether the kernel accepts this memory for direct transfers.
pub(crate) fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().addr().is_multiple_of(ALIGN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_at_any_length() {
        let mut memory = Aligned::default();
        for len in [1, 512, 4096, 100_000, 512] {
            let bytes = memory.get(len);
            assert_eq!((bytes.len(), is_aligned(bytes)), (len, true));
        }
    }
}
