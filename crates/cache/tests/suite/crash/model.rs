//! What a host may find: of every unit one of its versions, from the last durable one on; and of a block that
//! is written only through a journalled cache, one of its states as a whole.

use crate::crash::tape::UNIT;

const NEVER: usize = usize::MAX;
/// What was trimmed.
pub const ZERO: u32 = 0;

/// Content of a unit: its number all over, so that a mix or a misplaced unit shows.
pub fn fill(id: u32, volume: usize, unit: usize, out: &mut [u8]) {
    let word = if id == ZERO { 0 } else { u64::from(id) << 32 | (volume as u64) << 24 | unit as u64 };
    out.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&word.to_le_bytes()));
}

/// Which version a unit holds.
pub fn read(volume: usize, unit: usize, bytes: &[u8]) -> Result<u32, String> {
    let word = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    if bytes.chunks_exact(8).any(|chunk| chunk != word.to_le_bytes()) {
        return Err(format!("unit {unit} of volume {volume} is a mix"));
    }
    let place = (volume as u64) << 24 | unit as u64;
    if word != 0 && word & 0xffff_ffff != place {
        return Err(format!("unit {unit} of volume {volume} holds what belongs elsewhere: {word:#x}"));
    }
    Ok((word >> 32) as u32)
}

#[derive(Clone, Copy, Debug)]
struct Version {
    id: u32,
    /// Operations before the command that makes it.
    from: usize,
    /// Operations before a flush had it durable; or, with a design that loses dirty data, on the disk.
    durable: usize,
    /// Operations before a flush of it was answered.
    flushed: usize,
}

/// The state of a block as a whole.
#[derive(Clone, Debug)]
struct State {
    ids: Vec<u32>,
    from: usize,
    durable: usize,
    /// Was made by something that is not one write to the cache.
    is_loose: bool,
}

/// One volume.
#[derive(Clone, Debug)]
pub struct Volume {
    number: usize,
    units: Vec<Vec<Version>>,
    blocks: Vec<Vec<State>>,
    per_block: usize,
}

impl Volume {
    pub fn new(number: usize, units: usize, per_block: usize, id: u32) -> Self {
        let version = Version { id, from: 0, durable: 0, flushed: 0 };
        let state = |len: usize| vec![State { ids: vec![id; len], from: 0, durable: 0, is_loose: false }];
        let blocks = (0..units).step_by(per_block).map(|first| state(per_block.min(units - first))).collect();
        Self { number, units: vec![vec![version]; units], blocks, per_block }
    }

    pub fn len(&self) -> usize {
        self.units.len()
    }

    pub fn latest(&self, unit: usize) -> u32 {
        self.units[unit].last().unwrap().id
    }

    /// A command gives units a version.
    pub fn set(&mut self, units: std::ops::Range<usize>, id: u32, now: usize, is_loose: bool) {
        for unit in units.clone() {
            self.units[unit].push(Version { id, from: now, durable: NEVER, flushed: NEVER });
        }
        for block in units.start / self.per_block..units.end.div_ceil(self.per_block) {
            let first = block * self.per_block;
            let mut ids = self.blocks[block].last().unwrap().ids.clone();
            for unit in units.start.max(first)..units.end.min(first + ids.len()) {
                ids[unit - first] = id;
            }
            self.blocks[block].push(State { ids, from: now, durable: NEVER, is_loose });
        }
    }

    /// A flush of these units was answered. `is_kept` of units that the design brings back.
    pub fn flushed(&mut self, now: usize, units: std::ops::Range<usize>, is_kept: impl Fn(usize) -> bool) {
        for unit in units.clone() {
            let last = self.units[unit].last_mut().unwrap();
            last.flushed = last.flushed.min(now);
            if is_kept(unit) {
                last.durable = last.durable.min(now);
            }
        }
        // Of a block of which a part was flushed, more is not promised.
        for (block, states) in self.blocks.iter_mut().enumerate() {
            let first = block * self.per_block;
            let last = states.last_mut().unwrap();
            if units.start <= first && first + last.ids.len() <= units.end {
                last.durable = last.durable.min(now);
            }
        }
    }

    /// Checks a unit after a cut before operation `cut`. Gives whether a flushed version is gone.
    pub fn check(&self, unit: usize, cut: usize, id: u32) -> Result<bool, String> {
        let versions = &self.units[unit];
        let first = versions.iter().rposition(|version| version.durable <= cut).unwrap_or(0);
        let end = versions.iter().rposition(|version| version.from <= cut).unwrap_or(0).max(first);
        if !versions[first..=end].iter().any(|version| version.id == id) {
            return Err(format!(
                "unit {unit} of volume {} holds {id}, expected one of {:?}",
                self.number,
                &versions[first..=end]
            ));
        }
        let flushed = versions.iter().rposition(|version| version.flushed <= cut).unwrap_or(0);
        Ok(!versions[flushed.min(end)..=end].iter().any(|version| version.id == id))
    }

    /// Checks a block as a whole.
    pub fn check_block(&self, block: usize, cut: usize, ids: &[u32]) -> Result<(), String> {
        let states = &self.blocks[block];
        let first = states.iter().rposition(|state| state.durable <= cut).unwrap_or(0);
        let end = states.iter().rposition(|state| state.from <= cut).unwrap_or(0).max(first);
        let states = &states[first..=end];
        if states.iter().any(|state| state.is_loose || state.ids == ids) {
            return Ok(());
        }
        Err(format!("block {block} of volume {} is torn: {ids:?}, expected one of {states:?}", self.number))
    }

    /// What a host knows after a cut before operation `cut`, before it has read anything.
    pub fn after(&self, cut: usize) -> Self {
        let units = self.units.iter().map(|versions| {
            let first = versions.iter().rposition(|version| version.durable <= cut).unwrap_or(0);
            let end = versions.iter().rposition(|version| version.from <= cut).unwrap_or(0).max(first);
            let versions = versions[first..=end].iter().enumerate().map(|(nth, version)| {
                let durable = if nth == 0 { 0 } else { NEVER };
                Version { id: version.id, from: 0, durable, flushed: durable }
            });
            versions.collect()
        });
        let blocks = self.blocks.iter().map(|states| {
            let first = states.iter().rposition(|state| state.durable <= cut).unwrap_or(0);
            let end = states.iter().rposition(|state| state.from <= cut).unwrap_or(0).max(first);
            let states = states[first..=end].iter().enumerate();
            let states = states.map(|(nth, state)| State {
                from: 0,
                durable: if nth == 0 { 0 } else { NEVER },
                ..state.clone()
            });
            states.collect()
        });
        Self { units: units.collect(), blocks: blocks.collect(), ..*self }
    }

    /// The host has read all of it: this is what it holds, and goes on to hold after any cut.
    pub fn observe(&mut self, ids: &[u32], now: usize) {
        for (versions, id) in self.units.iter_mut().zip(ids) {
            versions.push(Version { id: *id, from: now, durable: now, flushed: now });
        }
        for (states, ids) in self.blocks.iter_mut().zip(ids.chunks(self.per_block)) {
            states.push(State { ids: ids.to_vec(), from: now, durable: now, is_loose: false });
        }
    }
}

/// The versions of all units that were read.
pub fn read_all(volume: usize, bytes: &[u8]) -> Result<Vec<u32>, String> {
    bytes.chunks_exact(UNIT).enumerate().map(|(unit, bytes)| read(volume, unit, bytes)).collect()
}
