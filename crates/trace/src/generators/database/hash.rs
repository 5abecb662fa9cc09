//! A hash join: the inputs are written in partitions, which are then read one by one.

use super::super::common::SPAN;
use super::space::Space;
use super::{Load, PARTITIONS, TABLE, given};
use nandscape_core::rng::{Xoshiro256PlusPlus, below};
use nandscape_core::{ParamError, Params};

/// Most blocks whose partitions are kept.
const BLOCKS_MAX: u64 = 1 << 24;

fn table(params: &Params, space: &Space) -> Result<u64, ParamError> {
    let whole = space.whole(space.usable);
    match params.get(TABLE) {
        Some(table) if table > whole => Err(params.error(TABLE, format!("at most the area, {whole} B"))),
        Some(table) => Ok(space.whole(table)),
        None => Ok(whole),
    }
}

/// Every partition has a place of its own: writes go from one to another, and reads are sequential.
pub(super) struct Hash {
    /// Bytes of a partition.
    partition: u64,
    /// Bytes written of each.
    written: Vec<u64>,
    /// Partitions that are not complete.
    alive: Vec<u32>,
    /// Bytes read of all partitions.
    read: u64,
}

impl Hash {
    pub(super) fn new(params: &Params, space: &Space) -> Result<Self, ParamError> {
        let active = space.most_active();
        let partitions = params.get(PARTITIONS).unwrap_or(16.min(active.unwrap_or(16)));
        if let Some(active) = active.filter(|active| partitions > *active) {
            return Err(params
                .error(PARTITIONS, format!("at most active, {active}: a zone of each is written in part")));
        }
        let table = table(params, space)?;
        let partition = space.whole(table / partitions);
        if partition == 0 {
            let expected = format!("room for {} B in each of {partitions} partitions", space.grain);
            return Err(params.error(given(params, PARTITIONS, SPAN), expected));
        }
        let partitions = partitions as usize;
        let mut hash = Self { partition, written: vec![0; partitions], alive: Vec::new(), read: 0 };
        hash.begin();
        Ok(hash)
    }

    fn begin(&mut self) {
        self.written.fill(0);
        self.alive.extend(0..self.written.len() as u32);
        self.read = 0;
    }
}

impl Load for Hash {
    fn step(&mut self, space: &mut Space, rng: &mut Xoshiro256PlusPlus) -> bool {
        if !self.alive.is_empty() {
            let drawn = below(rng, self.alive.len() as u64) as usize;
            let partition = self.alive[drawn];
            let written = &mut self.written[partition as usize];
            space.write(u64::from(partition) * self.partition + *written, space.bs);
            *written += space.bs;
            if *written == self.partition {
                self.alive.swap_remove(drawn);
            }
            return false;
        }
        space.read(self.read);
        self.read += space.bs;
        if self.read.is_multiple_of(self.partition) {
            space.free(self.read - self.partition, self.partition);
        }
        let is_last = self.read == self.partition * self.written.len() as u64;
        if is_last {
            self.begin();
        }
        is_last
    }
}

/// Blocks of all partitions lie one behind the other as they were filled: writes are sequential, and the
/// blocks of a partition are apart.
pub(super) struct HashAppend {
    table: u64,
    partitions: u64,
    /// The partition of each block that was written.
    owners: Vec<u16>,
    /// All blocks by partition, in the order of writing.
    order: Vec<u32>,
    /// Blocks that were read.
    read: usize,
}

impl HashAppend {
    pub(super) fn new(params: &Params, space: &Space) -> Result<Self, ParamError> {
        let table = table(params, space)?;
        let blocks = table / space.bs;
        if blocks == 0 || blocks > BLOCKS_MAX {
            let expected = format!("a table of 1 to {BLOCKS_MAX} blocks of {} B (it has {blocks})", space.bs);
            return Err(params.error(given(params, TABLE, SPAN), expected));
        }
        let partitions = params.get(PARTITIONS).unwrap_or(16);
        Ok(Self { table, partitions, owners: Vec::new(), order: Vec::new(), read: 0 })
    }

    /// Sorts the blocks by partition.
    fn sort(&mut self) {
        let mut next = vec![0u32; self.partitions as usize + 1];
        for owner in &self.owners {
            next[usize::from(*owner) + 1] += 1;
        }
        for partition in 1..next.len() {
            next[partition] += next[partition - 1];
        }
        self.order.clear();
        self.order.resize(self.owners.len(), 0);
        for (block, owner) in self.owners.iter().enumerate() {
            let place = &mut next[usize::from(*owner)];
            self.order[*place as usize] = block as u32;
            *place += 1;
        }
        self.read = 0;
    }
}

impl Load for HashAppend {
    fn step(&mut self, space: &mut Space, rng: &mut Xoshiro256PlusPlus) -> bool {
        let written = self.owners.len() as u64 * space.bs;
        if written < self.table {
            self.owners.push(below(rng, self.partitions) as u16);
            space.write(written, space.bs);
            if written + space.bs == self.table {
                self.sort();
            }
            return false;
        }
        space.read(u64::from(self.order[self.read]) * space.bs);
        self.read += 1;
        let is_last = self.read == self.order.len();
        if is_last {
            space.free(0, self.table);
            self.owners.clear();
        }
        is_last
    }
}
