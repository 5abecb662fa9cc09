//! What the two sets of metadata hold, and the commit that writes them.

use super::DmZoned;
use super::format::{self, Chunk, ENTRY, MetaLayout, Superblock};
use super::sabotage::Sabotage;
use nandscape_core::{
    Cause, Extent, FtlError, Issue, NamespaceError, NamespaceResult, SimTime, Subsystem, Token,
};

/// Most blocks of metadata in one write.
const RUN: u32 = 64;

/// Which blocks of a set differ from those on flash.
#[derive(Debug)]
pub(super) struct Metadata {
    pub layout: MetaLayout,
    /// A bit for each block of a set.
    dirty: Vec<u64>,
    is_dirty: bool,
    pub superblock: Superblock,
    /// Completes when the last commit is.
    pub committed: Token,
}

impl Metadata {
    pub fn new(layout: MetaLayout) -> Self {
        Self {
            layout,
            dirty: vec![0; layout.blocks.div_ceil(64) as usize],
            is_dirty: false,
            superblock: Superblock { generation: 0, is_clean: false },
            committed: Token::NONE,
        }
    }

    fn set_dirty(&mut self, block: u32) {
        self.dirty[block as usize / 64] |= 1 << (block % 64);
        self.is_dirty = true;
    }

    /// The bits of words changed.
    pub fn bits_changed(&mut self, first: usize, last: usize, block_bytes: u64) {
        let block = |word: usize| (word as u64 * 8 / block_bytes) as u32 + 1 + self.layout.map;
        for block in block(first)..=block(last) {
            self.set_dirty(block);
        }
    }

    pub fn chunk_changed(&mut self, chunk: u32, block_bytes: u64) {
        self.set_dirty((u64::from(chunk) * ENTRY / block_bytes) as u32 + 1);
    }

    /// The next commit writes every block.
    pub fn all_changed(&mut self) {
        (1..self.layout.blocks).for_each(|block| self.set_dirty(block));
    }

    /// The next commit is the last one before a shutdown.
    pub const fn close(&mut self) {
        (self.is_dirty, self.superblock.is_clean) = (true, true);
    }

    /// The host writes: a layer that was shut down is no longer.
    #[inline]
    pub const fn note_write(&mut self) {
        self.is_dirty |= self.superblock.is_clean;
        self.superblock.is_clean = false;
    }

    /// Runs of blocks that changed, which count as written from now on.
    fn take_dirty(&mut self) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for (word, dirty) in (0..).zip(&mut self.dirty) {
            let mut left = std::mem::take(dirty);
            while left != 0 {
                let block = word * 64 + left.trailing_zeros();
                left &= left - 1;
                match runs.last_mut().filter(|(first, count)| first + *count == block && *count < RUN) {
                    Some((_, count)) => *count += 1,
                    None => runs.push((block, 1)),
                }
            }
        }
        self.is_dirty = false;
        runs
    }

    pub fn bytes(&self) -> u64 {
        self.dirty.len() as u64 * 8
    }
}

impl<S: Subsystem> DmZoned<S> {
    /// Makes everything durable that was written so far, and what is mapped and valid; released zones are
    /// free from then on. Writes nothing but data where no metadata changed.
    pub(super) fn commit(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let committed = self.meta.committed;
        let so_far = self.below.device.join(self.written, committed);
        if !self.meta.is_dirty && self.zones.released.is_empty() {
            return self.below.flush(Issue::new(at, Cause::Host).after(so_far));
        }
        let done = self.write_sets(committed, at);
        done.map_err(|error| match error {
            NamespaceError::Ftl(FtlError::ReadOnly { .. }) => self.stopped_below(),
            error => error,
        })
    }

    fn write_sets(&mut self, committed: Token, at: SimTime) -> NamespaceResult<Token> {
        let runs = self.meta.take_dirty();
        self.meta.superblock.generation += 1;
        let together = self.sabotage == Sabotage::CommitsTogether;
        let before = if together { Token::NONE } else { committed };
        let logged = self.write_runs(1, &runs, before, at)?;
        let all = self.below.device.join(logged, self.written);
        let mut ready = self.flush_after(all, at)?;
        if self.sabotage == Sabotage::SuperblockWithoutWait {
            ready = before;
        }
        let point = self.write_superblock(1, ready, at)?;
        let mut point = self.flush_after(point, at)?;
        if self.sabotage == Sabotage::SetsTogether {
            point = before;
        }
        let written = self.write_runs(0, &runs, point, at)?;
        let written = self.flush_after(written, at)?;
        let last = self.write_superblock(0, written, at)?;
        let last = self.flush_after(last, at)?;
        (self.written, self.meta.committed) = (Token::NONE, last);
        self.free_released(point, at)?;
        Ok(last)
    }

    fn flush_after(&mut self, after: Token, at: SimTime) -> NamespaceResult<Token> {
        self.below.flush(Issue::new(at, Cause::Meta).after(after))
    }

    /// Writes blocks of a set.
    pub(super) fn write_runs(
        &mut self,
        set: u32,
        runs: &[(u32, u32)],
        after: Token,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let mut done = after;
        for (first, count) in runs.iter().copied() {
            let data = if self.shape.stores_data {
                (first..first + count).flat_map(|block| self.block_of_set(block)).collect()
            } else {
                Vec::new()
            };
            let written = self.write_set(set, first, count, &data, after, at)?;
            done = self.below.device.join(done, written);
        }
        Ok(done)
    }

    pub(super) fn write_superblock(&mut self, set: u32, after: Token, at: SimTime) -> NamespaceResult<Token> {
        let data = self.meta.superblock.encode(&self.shape.identity);
        self.write_set(set, 0, 1, if self.shape.stores_data { &data } else { &[] }, after, at)
    }

    /// Writes blocks of a set, in parts where they lie in two zones.
    fn write_set(
        &mut self,
        set: u32,
        first: u32,
        count: u32,
        data: &[u8],
        after: Token,
        at: SimTime,
    ) -> NamespaceResult<Token> {
        let issue = Issue::new(at, Cause::Meta).after(after);
        let mut done = Token::NONE;
        let mut from = 0;
        for extent in self.extents_of_set(set, first, count) {
            let part = (!data.is_empty()).then(|| &data[from..from + extent.len as usize]);
            from += extent.len as usize;
            let written = self.below.write(extent, part, issue)?;
            done = self.below.device.join(done, written);
        }
        Ok(done)
    }

    /// Where blocks of a set lie: in one conventional zone or in two.
    pub(super) fn extents_of_set(&self, set: u32, first: u32, count: u32) -> Vec<Extent> {
        let (block, zone) = (self.shape.block_bytes, self.shape.chunk_bytes);
        let mut byte = u64::from(set) * self.meta.layout.stride_bytes + u64::from(first) * block;
        let end = byte + u64::from(count) * block;
        let mut extents = Vec::with_capacity(1);
        while byte < end {
            let len = (zone - byte % zone).min(end - byte);
            extents.push(Extent::new(byte / zone * self.shape.zone_bytes + byte % zone, len));
            byte += len;
        }
        extents
    }

    /// A block of a set, but for the superblock.
    pub(super) fn block_of_set(&self, block: u32) -> Vec<u8> {
        let bytes = self.shape.block_bytes as usize;
        let mut data = vec![0; bytes];
        let index = block as usize - 1;
        if let Some(index) = index.checked_sub(self.meta.layout.map as usize) {
            let words = &self.zones.bits[(index * bytes / 8).min(self.zones.bits.len())..];
            format::put_words(words.iter().copied(), &mut data);
        } else {
            let chunks = &self.chunks[(index * bytes / ENTRY as usize).min(self.chunks.len())..];
            format::put_words(chunks.iter().map(|chunk| Chunk::encode(*chunk)), &mut data);
        }
        data
    }
}
