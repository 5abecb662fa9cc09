//! Where the blocks of one file are.

use nandscape_core::ranges::Ranges;

/// A piece of a range of file blocks: all mapped in one run, or all not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Blocks.
    pub(crate) len: u64,
    /// First block on the volume, if mapped.
    pub(crate) disk: Option<u64>,
}

/// File block -> how much higher the block on the volume is, of each run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extents(Ranges<u64>);

impl Extents {
    /// The piece that begins at a block, not past `end`.
    pub(crate) fn piece(&self, block: u64, end: u64) -> Piece {
        match self.0.within(block, end).next() {
            Some((start, stop, shift)) if start == block => {
                Piece { len: stop - block, disk: Some(block.wrapping_add(shift)) }
            }
            next => Piece { len: next.map_or(end, |(start, ..)| start) - block, disk: None },
        }
    }

    /// The block on the volume behind the one that holds the block before: where the file would best go on.
    pub(crate) fn goal(&self, block: u64) -> Option<u64> {
        let before = block.checked_sub(1)?;
        self.piece(before, block).disk.map(|disk| disk + 1)
    }

    /// Maps a run that was not mapped.
    pub(crate) fn insert(&mut self, block: u64, disk: u64, len: u64) {
        self.0.set(block, block + len, disk.wrapping_sub(block));
    }

    /// Unmaps a range and hands out the runs that were mapped there.
    pub(crate) fn remove(&mut self, from: u64, end: u64, mut freed: impl FnMut(u64, u64)) {
        for (start, stop, shift) in self.0.within(from, end) {
            freed(start.wrapping_add(shift), stop - start);
        }
        self.0.remove(from, end, |_| true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{below, seeded};

    #[test]
    fn extents_agree_with_a_plain_array() {
        let (mut rng, mut extents) = (seeded(5), Extents::default());
        let mut model = [None; 300];
        let mut next_disk = 1000;
        for _ in 0..3000 {
            let from = below(&mut rng, 300);
            let end = (from + 1 + below(&mut rng, 30)).min(300);
            if below(&mut rng, 3) > 0 {
                let mut block = from;
                while block < end {
                    let piece = extents.piece(block, end);
                    if piece.disk.is_none() {
                        extents.insert(block, next_disk, piece.len);
                        for at in block..block + piece.len {
                            model[at as usize] = Some(next_disk + at - block);
                        }
                        next_disk += piece.len + below(&mut rng, 2);
                    }
                    block += piece.len;
                }
            } else {
                let mut freed = Vec::new();
                extents.remove(from, end, |disk, len| freed.extend(disk..disk + len));
                let want: Vec<_> =
                    model[from as usize..end as usize].iter_mut().filter_map(Option::take).collect();
                assert_eq!(freed, want);
            }
            for (block, disk) in model.iter().enumerate() {
                assert_eq!(extents.piece(block as u64, 300).disk, *disk);
            }
        }
    }
}
