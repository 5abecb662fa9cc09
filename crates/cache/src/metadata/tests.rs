//! Metadata alone against a model: random changes and commits, cut at every write with writes lost, reordered
//! and torn, and with damaged blocks. A seed repeats a failure. Sabotaged variants show that the suite sees
//! what it is for.

use super::*;
use nandscape_core::rng::{Rng, SeedableRng, Xoshiro256PlusPlus, below};

mod journal;
mod kinds;

const BLOCK: u32 = 4096;

/// Bytes of the metadata; the data is not looked at.
#[derive(Clone)]
struct Bytes {
    bytes: Vec<u8>,
    capacity: u64,
}

impl Area for Bytes {
    fn capacity_bytes(&self) -> u64 {
        self.capacity
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), StoreError> {
        bytes.copy_from_slice(&self.bytes[offset as usize..][..bytes.len()]);
        Ok(())
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.bytes[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Bytes {
    /// A device of `blocks` blocks with garbage where metadata goes, and a cache on it.
    fn create(kind: &str, blocks: u32) -> (Self, Opened) {
        let capacity = u64::from(blocks) * u64::from(BLOCK);
        let setup = setup(capacity);
        let shape = (find(kind).unwrap().shape)(&setup).unwrap();
        let mut area = Self { bytes: vec![0xA5; shape.data_offset() as usize], capacity };
        let opened = create(kind, &setup, &mut area).unwrap();
        (area, opened)
    }

    /// As after a cut: of the writes, in any order, the first `whole` are there, and of the next one some
    /// sectors.
    fn cut(&self, writes: &[Write], whole: usize, rng: &mut Xoshiro256PlusPlus) -> Self {
        let mut cut = self.clone();
        let mut order: Vec<usize> = (0..writes.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, below(rng, at as u64 + 1) as usize);
        }
        for (nth, at) in order.into_iter().take(whole + 1).enumerate() {
            let Write { offset, bytes } = &writes[at];
            for (sector, part) in bytes.chunks(512).enumerate() {
                if nth < whole || rng.next_u64() & 1 == 1 {
                    cut.write(offset + sector as u64 * 512, part).unwrap();
                }
            }
        }
        cut
    }

    fn apply(&mut self, writes: &[Write]) {
        apply(self, writes).unwrap();
    }

    fn damage(&mut self, offset: u64, rng: &mut Xoshiro256PlusPlus) {
        self.bytes[offset as usize + below(rng, 4096) as usize] ^= 1 << below(rng, 8);
    }
}

fn setup(capacity_bytes: u64) -> Setup {
    let volumes = vec![Volume { id: 0, uuid: [9; 16], bytes: 1 << 30, stamp: [1; 16] }];
    let settings = "mode = \"write-back\"".to_owned();
    Setup { capacity_bytes, store_block: 512, block_bytes: BLOCK, uuid: [7; 16], settings, volumes }
}

/// What the engine has.
#[derive(Clone, PartialEq)]
struct Slots(Vec<Option<Entry>>);

impl Table for Slots {
    fn entry(&self, slot: u32) -> Option<Entry> {
        self.0[slot as usize]
    }
}

impl Slots {
    fn of(found: &Found, slots: u32) -> Self {
        let mut all = vec![None; slots as usize];
        found.entries.iter().for_each(|(slot, entry)| all[*slot as usize] = Some(*entry));
        Self(all)
    }

    fn map(&self, each: impl Fn(Entry) -> Option<Entry>) -> Self {
        Self(self.0.iter().map(|entry| entry.and_then(&each)).collect())
    }
}

fn random_entry(slot: u32, rng: &mut Xoshiro256PlusPlus) -> Entry {
    // A key of its own for each slot and use, as after a copy to a free slot.
    let valid = (rng.next_u64() as u16).max(1);
    Entry {
        key: BlockKey::new(0, u64::from(slot) << 20 | below(rng, 1 << 20)),
        valid,
        dirty: rng.next_u64() as u16 & valid,
    }
}

/// Changes `count` slots.
fn change(metadata: &mut dyn Metadata, slots: &mut Slots, count: u64, rng: &mut Xoshiro256PlusPlus) {
    for _ in 0..count {
        let slot = below(rng, slots.0.len() as u64) as u32;
        let entry = (below(rng, 4) != 0).then(|| random_entry(slot, rng));
        slots.0[slot as usize] = entry;
        metadata.note(slot, entry);
    }
}
