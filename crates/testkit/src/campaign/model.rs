//! What each unit of a volume may hold.

use crate::shrink::Outcome;
use std::collections::BTreeSet;

/// A version of a unit; 0 is zeroes.
pub type Version = u32;

/// Bytes of a unit.
pub const UNIT: usize = 512;

#[derive(Clone, Debug)]
struct Unit {
    /// What a read may return: one version, unless a write failed.
    possible: BTreeSet<Version>,
    /// What may come back instead at a start, since no flush was answered after it was replaced.
    unflushed: BTreeSet<Version>,
    /// A flush failed since it was written: no later flush promises it.
    is_doubted: bool,
    /// It may hold any version after a start.
    is_any: bool,
}

/// The units of one volume.
#[derive(Clone, Debug)]
pub struct Model {
    volume: usize,
    units: Vec<Unit>,
}

/// The bytes of a version of a unit.
pub fn fill(volume: usize, unit: usize, version: Version, bytes: &mut [u8]) {
    if version == 0 {
        bytes.fill(0);
        return;
    }
    let word = u64::from(version) << 32 | (volume as u64) << 24 | unit as u64;
    bytes.as_chunks_mut::<8>().0.fill(word.to_le_bytes());
}

/// The version that a unit holds; an error if it holds nothing that was ever written there.
fn version(volume: usize, unit: usize, bytes: &[u8]) -> Outcome<Version> {
    let words = bytes.as_chunks::<8>().0;
    let word = u64::from_le_bytes(words[0]);
    let version = (word >> 32) as Version;
    if words.iter().any(|other| *other != words[0]) {
        return Err(format!("unit {unit} of volume {volume} is a mix: {:x?}", &bytes[..16]));
    }
    let is_its = word as u32 == ((volume as u32) << 24 | unit as u32);
    if word != 0 && !is_its {
        return Err(format!(
            "unit {unit} of volume {volume} holds data of unit {} of volume {}",
            word & 0x00FF_FFFF,
            word >> 24 & 0xFF
        ));
    }
    Ok(version)
}

impl Model {
    /// Units that all hold this version, which is durable.
    pub fn new(volume: usize, units: usize, version: Version) -> Self {
        let unit =
            Unit { possible: [version].into(), unflushed: BTreeSet::new(), is_doubted: false, is_any: false };
        Self { volume, units: vec![unit; units] }
    }

    /// Units.
    #[expect(clippy::len_without_is_empty, reason = "none is empty")]
    pub fn len(&self) -> usize {
        self.units.len()
    }

    /// A write was answered, or failed, which leaves the old or the new version.
    pub fn written(&mut self, units: std::ops::Range<usize>, version: Version, is_done: bool) {
        for unit in &mut self.units[units] {
            if is_done {
                unit.unflushed.append(&mut unit.possible);
                unit.is_doubted = false;
            }
            unit.possible.insert(version);
        }
    }

    /// A flush of these units, or of all, was answered, or failed.
    pub fn flushed(&mut self, units: Option<&std::ops::Range<usize>>, is_done: bool) {
        let all = 0..self.units.len();
        for unit in &mut self.units[units.unwrap_or(&all).clone()] {
            if !is_done {
                unit.is_doubted |= !unit.unflushed.is_empty();
            } else if !unit.is_doubted {
                unit.unflushed.clear();
            }
        }
    }

    /// A start may bring back any version of any unit.
    pub fn doubt(&mut self) {
        self.units.iter_mut().for_each(|unit| unit.is_any = true);
    }

    /// What was read in service is what was written last.
    pub fn check(&self, first: usize, bytes: &[u8]) -> Outcome {
        for (number, bytes) in (first..).zip(bytes.chunks_exact(UNIT)) {
            let (unit, found) = (&self.units[number], version(self.volume, number, bytes)?);
            if !unit.possible.contains(&found) {
                let Unit { possible, .. } = unit;
                let volume = self.volume;
                return Err(format!(
                    "unit {number} of volume {volume} reads as version {found}, and {possible:?} was written last"
                ));
            }
        }
        Ok(())
    }

    /// What was read after a start is nothing older than what was flushed. From then on it stays.
    pub fn observe(&mut self, first: usize, bytes: &[u8]) -> Outcome {
        for (number, bytes) in (first..).zip(bytes.chunks_exact(UNIT)) {
            let (unit, found) = (&mut self.units[number], version(self.volume, number, bytes)?);
            let is_current = unit.possible.contains(&found);
            if std::mem::take(&mut unit.is_any) {
                (unit.possible, unit.unflushed) = ([found].into(), BTreeSet::new());
                continue;
            }
            if !is_current && !unit.unflushed.contains(&found) {
                let Unit { possible, unflushed, is_doubted, .. } = unit;
                let volume = self.volume;
                return Err(format!(
                    "unit {number} of volume {volume} holds version {found} after a start; flushed or written last: \
                     {possible:?}, not flushed: {unflushed:?}, doubted: {is_doubted}"
                ));
            }
            // After a write that failed, cache and disk may hold both versions, and either may be read.
            if !is_current || unit.possible.len() == 1 {
                unit.unflushed.append(&mut unit.possible);
                unit.unflushed.remove(&found);
                unit.possible.insert(found);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(version: Version) -> Vec<u8> {
        let mut bytes = vec![0; UNIT];
        fill(3, 0, version, &mut bytes);
        bytes
    }

    #[test]
    fn what_was_flushed_does_not_get_older() {
        let mut model = Model::new(3, 1, 1);
        model.written(0..1, 2, true);
        assert!(model.check(0, &read(1)).is_err() && model.check(0, &read(2)).is_ok());
        assert!(model.clone().observe(0, &read(1)).is_ok(), "it was not flushed");
        model.flushed(None, true);
        assert!(model.clone().observe(0, &read(1)).is_err() && model.observe(0, &read(2)).is_ok());
    }

    #[test]
    fn a_failed_write_leaves_both_versions_and_a_failed_flush_no_promise() {
        let mut model = Model::new(3, 1, 1);
        model.written(0..1, 2, false);
        model.flushed(None, true);
        assert!(model.check(0, &read(1)).is_ok() && model.check(0, &read(2)).is_ok());
        model.written(0..1, 3, true);
        model.flushed(None, false);
        model.flushed(None, true);
        assert!(model.clone().observe(0, &read(1)).is_ok(), "no flush covers it");
        model.written(0..1, 4, true);
        model.flushed(None, true);
        for old in 0..4 {
            assert!(model.clone().observe(0, &read(old)).is_err(), "version {old}");
        }
    }

    #[test]
    fn what_a_start_has_shown_stays() {
        let mut model = Model::new(3, 1, 1);
        model.written(0..1, 2, true);
        model.observe(0, &read(1)).unwrap();
        assert!(model.check(0, &read(2)).is_err());
    }

    #[test]
    fn data_of_another_place_is_no_version() {
        let model = Model::new(2, 1, 1);
        assert!(model.check(0, &read(1)).is_err());
        let mut mix = vec![0; UNIT];
        fill(2, 0, 1, &mut mix);
        mix[256] ^= 1;
        assert!(model.check(0, &mix).is_err());
    }
}
