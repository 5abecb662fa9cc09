//! Sectors of several chunks as one sequence.

use super::VectorGeometry;

/// Sectors of chunks of one size, a stripe of one chunk after that of another. The last stripe of each chunk
/// is narrower where the size of a chunk is no multiple of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripes {
    /// Chunks.
    pub chunks: u32,
    /// Sectors of each.
    pub sectors: u32,
    /// Sectors of a chunk before the next one's turn comes.
    pub stripe: u32,
}

impl Stripes {
    /// So many chunks in stripes of the best write.
    pub fn new(geometry: &VectorGeometry, chunks: u32) -> Self {
        Self { chunks, sectors: geometry.sectors, stripe: geometry.write_best.min(geometry.sectors) }
    }

    /// Sectors of all chunks.
    pub const fn all(&self) -> u64 {
        self.chunks as u64 * self.sectors as u64
    }

    /// Sectors of each chunk in stripes of full width.
    const fn whole(&self) -> u32 {
        self.sectors / self.stripe * self.stripe
    }

    /// The chunk of a sector of the sequence, and the sector there.
    pub const fn place(&self, sector: u64) -> (u32, u32) {
        let whole = self.whole();
        let wide = whole as u64 * self.chunks as u64;
        let (base, stripe, rest) = if sector < wide {
            (0, self.stripe as u64, sector)
        } else {
            (whole, (self.sectors - whole) as u64, sector - wide)
        };
        let row = stripe * self.chunks as u64;
        let within = rest % row;
        ((within / stripe) as u32, base + (rest / row * stripe + within % stripe) as u32)
    }

    /// The inverse: where a sector of a chunk is in the sequence; behind the last sector of a chunk the end.
    pub const fn index(&self, chunk: u32, sector: u32) -> u64 {
        if sector >= self.sectors {
            return self.all();
        }
        let whole = self.whole();
        let (base, stripe, rest) = if sector < whole {
            (0, self.stripe as u64, sector as u64)
        } else {
            (whole as u64 * self.chunks as u64, (self.sectors - whole) as u64, (sector - whole) as u64)
        };
        base + (rest / stripe * self.chunks as u64 + chunk as u64) * stripe + rest % stripe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sector_has_one_place_and_comes_back_from_it() {
        for (chunks, sectors, stripe) in [(1, 12, 4), (3, 12, 4), (4, 10, 4), (2, 6, 6), (5, 7, 1)] {
            let stripes = Stripes { chunks, sectors, stripe };
            let mut next = vec![0; chunks as usize];
            for sector in 0..stripes.all() {
                let (chunk, at) = stripes.place(sector);
                assert_eq!(at, next[chunk as usize], "{stripes:?}: chunks are written in order");
                next[chunk as usize] += 1;
                assert_eq!(stripes.index(chunk, at), sector, "{stripes:?}");
            }
            assert!(next.iter().all(|written| *written == sectors));
            assert_eq!(stripes.index(0, sectors), stripes.all());
        }
    }
}
