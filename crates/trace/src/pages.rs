//! Sets of touched 4 KiB pages, over any number of volumes, in memory bounded by what is touched.

use std::collections::BTreeMap;

/// Bytes of a page of a [`PageSet`]: the granule of dense remapping.
pub const GRANULE: u64 = 4096;
const CHUNK_PAGES: u64 = 4096;
const WORDS: usize = (CHUNK_PAGES / 64) as usize;
/// Largest chunk number: 2^64 bytes.
const CHUNK_BITS: u32 = 40;

enum Chunk {
    All,
    Some(Box<[u64; WORDS]>),
}

impl Chunk {
    fn count(&self) -> u64 {
        match self {
            Self::All => CHUNK_PAGES,
            Self::Some(words) => words.iter().map(|w| u64::from(w.count_ones())).sum(),
        }
    }
}

/// A set of (volume, page).
#[derive(Default)]
pub struct PageSet {
    chunks: BTreeMap<u128, Chunk>,
    pages: u64,
}

/// Volume above chunk number, so that chunks sort by volume and then by address.
fn key(volume: u32, chunk: u64) -> u128 {
    u128::from(volume) << CHUNK_BITS | u128::from(chunk)
}

/// First and last page that a range touches; `None` for an empty range.
fn page_range(offset: u64, len: u64) -> Option<(u64, u64)> {
    (len > 0).then(|| (offset / GRANULE, (offset + (len - 1)) / GRANULE))
}

impl PageSet {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many pages it holds.
    pub fn len(&self) -> u64 {
        self.pages
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.pages == 0
    }

    /// Adds every page that `len` bytes at `offset` touch; returns how many were new. `offset + len` must not
    /// overflow.
    pub fn insert(&mut self, volume: u32, offset: u64, len: u64) -> u64 {
        let Some((first, last)) = page_range(offset, len) else { return 0 };
        let before = self.pages;
        for chunk in first / CHUNK_PAGES..=last / CHUNK_PAGES {
            let base = chunk * CHUNK_PAGES;
            let low = first.max(base) - base;
            let high = last.min(base + CHUNK_PAGES - 1) - base;
            self.pages += self.insert_in_chunk(key(volume, chunk), low, high);
        }
        self.pages - before
    }

    fn insert_in_chunk(&mut self, key: u128, low: u64, high: u64) -> u64 {
        let whole = low == 0 && high == CHUNK_PAGES - 1;
        let chunk = self.chunks.entry(key).or_insert_with(|| Chunk::Some(Box::new([0; WORDS])));
        let Chunk::Some(words) = chunk else { return 0 };
        if whole {
            let new = CHUNK_PAGES - chunk.count();
            *chunk = Chunk::All;
            return new;
        }
        let mut new = 0;
        for word in low / 64..=high / 64 {
            let from = low.max(word * 64) - word * 64;
            let to = high.min(word * 64 + 63) - word * 64;
            let mask = (u64::MAX << from) & (u64::MAX >> (63 - to));
            let slot = &mut words[word as usize];
            new += u64::from((mask & !*slot).count_ones());
            *slot |= mask;
        }
        new
    }
}

/// Rank of every page of a [`PageSet`], in (volume, page) order: the dense address space.
pub(crate) struct DenseMap {
    keys: Vec<u128>,
    chunks: Vec<Ranked>,
    pages: u64,
}

struct Ranked {
    /// Pages in all chunks before.
    before: u64,
    bits: Option<Box<Words>>,
}

/// A word and the pages in the words before it.
type Words = [(u64, u32); WORDS];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rank {
    pub(crate) before: u64,
    pub(crate) touched: bool,
}

impl DenseMap {
    pub(crate) fn new(set: PageSet) -> Self {
        let mut keys = Vec::with_capacity(set.chunks.len());
        let mut chunks = Vec::with_capacity(set.chunks.len());
        let mut before = 0;
        for (key, chunk) in set.chunks {
            let count = chunk.count();
            let bits = match chunk {
                Chunk::All => None,
                Chunk::Some(words) => {
                    let mut sum = 0;
                    Some(Box::new(words.map(|word| {
                        let pair = (word, sum);
                        sum += word.count_ones();
                        pair
                    })))
                }
            };
            keys.push(key);
            chunks.push(Ranked { before, bits });
            before += count;
        }
        Self { keys, chunks, pages: before }
    }

    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// The rank of one page. `hint` remembers the chunk that was used last and is only a matter of speed.
    pub(crate) fn rank(&self, volume: u32, page: u64, hint: &mut usize) -> Rank {
        let wanted = key(volume, page / CHUNK_PAGES);
        let at = match self.keys.get(*hint) {
            Some(found) if *found == wanted => *hint,
            _ => match self.keys.binary_search(&wanted) {
                Ok(at) => at,
                Err(next) => {
                    let before = self.chunks.get(next).map_or(self.pages, |chunk| chunk.before);
                    return Rank { before, touched: false };
                }
            },
        };
        *hint = at;
        let chunk = &self.chunks[at];
        let inside = page % CHUNK_PAGES;
        match &chunk.bits {
            None => Rank { before: chunk.before + inside, touched: true },
            Some(words) => {
                let (word, sum) = words[(inside / 64) as usize];
                let bit = 1u64 << (inside % 64);
                let below = u64::from(sum + (word & (bit - 1)).count_ones());
                Rank { before: chunk.before + below, touched: word & bit != 0 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn agrees_with_a_plain_set() {
        let mut rng = nandscape_core::rng::seeded(7);
        let mut below = |n| nandscape_core::rng::below(&mut rng, n);
        let (mut set, mut model) = (PageSet::new(), BTreeSet::new());
        for _ in 0..3000 {
            let volume = below(3) as u32;
            let offset = below(200_000) * 1000;
            let len = if below(50) == 0 { below(60 << 20) } else { below(40_000) };
            let mut new = 0;
            if len > 0 {
                for page in offset / GRANULE..=(offset + len - 1) / GRANULE {
                    new += u64::from(model.insert((volume, page)));
                }
            }
            assert_eq!(set.insert(volume, offset, len), new);
        }
        assert_eq!(set.len(), model.len() as u64);
        let map = DenseMap::new(set);
        assert_eq!(map.pages(), model.len() as u64);
        let mut hint = 0;
        for (rank, &(volume, page)) in model.iter().enumerate() {
            assert_eq!(map.rank(volume, page, &mut hint), Rank { before: rank as u64, touched: true });
            if !model.contains(&(volume, page + 1)) {
                assert_eq!(
                    map.rank(volume, page + 1, &mut hint),
                    Rank { before: rank as u64 + 1, touched: false }
                );
            }
        }
        assert_eq!(map.rank(9, 0, &mut hint).before, model.len() as u64);
    }

    #[test]
    fn a_terabyte_request_costs_little_memory() {
        let mut set = PageSet::new();
        assert_eq!(set.insert(0, 0, 1 << 40), 1 << 28);
        assert!(set.chunks.values().all(|chunk| matches!(chunk, Chunk::All)));
        assert_eq!(set.insert(0, u64::MAX - 10, 5), 1);
    }
}
