//! What each member of a mirror begins with: which members there are, which of them are current, and where
//! they may differ.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes before those of the cache: two copies of the label, and room that is never used, so that what
/// follows is aligned as a partition is.
pub(super) const AREA: u64 = 1 << 20;
/// Bytes of a copy.
pub(super) const COPY: usize = 4096;
/// Members that a mirror can have.
pub const MEMBERS_MAX: usize = 8;

const MAGIC: &[u8; 8] = b"nandsMIR";
const VERSION: u32 = 1;
const REGIONS: usize = 4096;
const REGIONS_AT: usize = 64;
const LIST_AT: usize = REGIONS_AT + REGIONS / 8;
const SUM_AT: usize = COPY - 8;
/// Bytes that are kept of why a member failed.
const WHY_MAX: usize = 160;
/// Bytes of a listed member beside its path and why it failed.
const LISTED: usize = 16 + 2 + 2;
/// Length of why a current member failed.
const CURRENT: u16 = u16::MAX;

/// A set of the equal parts of a cache, at most 4096.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Regions([u64; REGIONS / 64]);

impl Regions {
    pub(super) const NONE: Self = Self([0; REGIONS / 64]);

    /// Puts a region in, and says whether it is new.
    pub(super) const fn insert(&mut self, region: u64) -> bool {
        let (word, bit) = ((region / 64) as usize, 1 << (region % 64));
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        (0..REGIONS as u64).filter(|region| self.0[(region / 64) as usize] >> (region % 64) & 1 == 1)
    }
}

/// A member as the others know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub uuid: [u8; 16],
    pub path: PathBuf,
    /// Why it is used no more; `None` if it is current.
    pub failed: Option<String>,
}

fn shortened(why: &str) -> &str {
    let end = (0..=why.len().min(WHY_MAX)).rev().find(|end| why.is_char_boundary(*end));
    &why[..end.unwrap_or(0)]
}

/// What the members know of each other. Of two labels the one with the higher generation is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Label {
    /// Of the mirror.
    pub uuid: [u8; 16],
    pub generation: u64,
    /// The last one before it that all current members had: who has an older one is an older copy.
    pub settled: u64,
    /// Bytes of the cache.
    pub bytes: u64,
    pub members: Vec<Listed>,
    /// Where something may have been written since all members were equal.
    pub unsettled: Regions,
}

impl Label {
    /// Bytes of a region.
    pub(super) fn region_bytes(&self) -> u64 {
        self.bytes.div_ceil(REGIONS as u64).next_power_of_two().max(1 << 20)
    }

    /// Whether there is room for these members, whatever becomes of them.
    pub(super) fn fits(&self) -> bool {
        let bytes = |member: &Listed| LISTED + WHY_MAX + member.path.as_os_str().len();
        self.members.len() <= MEMBERS_MAX && self.members.iter().map(bytes).sum::<usize>() <= SUM_AT - LIST_AT
    }

    /// The member with a number of its own.
    pub(super) fn place_of(&self, uuid: &[u8; 16]) -> Option<usize> {
        self.members.iter().position(|member| member.uuid == *uuid)
    }

    /// How many members are current.
    pub(super) fn current(&self) -> usize {
        self.members.iter().filter(|member| member.failed.is_none()).count()
    }

    /// As the member at `place` has it.
    pub(super) fn encode(&self, place: usize) -> [u8; COPY] {
        let mut bytes = [0; COPY];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12] = place as u8;
        bytes[13] = self.members.len() as u8;
        bytes[16..32].copy_from_slice(&self.uuid);
        bytes[32..40].copy_from_slice(&self.generation.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.settled.to_le_bytes());
        for (part, word) in bytes[REGIONS_AT..LIST_AT].chunks_exact_mut(8).zip(self.unsettled.0) {
            part.copy_from_slice(&word.to_le_bytes());
        }
        let mut list = Vec::new();
        for member in &self.members {
            let path = member.path.as_os_str().as_bytes();
            let why = member.failed.as_deref().map(shortened);
            list.extend(member.uuid);
            list.extend((path.len() as u16).to_le_bytes());
            list.extend(why.map_or(CURRENT, |why| why.len() as u16).to_le_bytes());
            list.extend(path);
            list.extend(why.unwrap_or("").as_bytes());
        }
        assert!(LIST_AT + list.len() <= SUM_AT, "who puts a member in looks whether there is room for it");
        bytes[LIST_AT..LIST_AT + list.len()].copy_from_slice(&list);
        let sum = xxh3_64(&bytes[..SUM_AT]);
        bytes[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The label that a copy is, and the place of the member that has it. `None` if it is none, or was
    /// written in part.
    pub(super) fn decode(bytes: &[u8; COPY]) -> Option<(usize, Self)> {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        if bytes[..8] != *MAGIC
            || bytes[8..12] != VERSION.to_le_bytes()
            || number(SUM_AT) != xxh3_64(&bytes[..SUM_AT])
        {
            return None;
        }
        let mut unsettled = Regions::NONE;
        for (at, word) in unsettled.0.iter_mut().enumerate() {
            *word = number(REGIONS_AT + at * 8);
        }
        let mut rest = &bytes[LIST_AT..SUM_AT];
        let mut members = Vec::new();
        for _ in 0..bytes[13] {
            let uuid = rest.split_off(..16)?.try_into().ok()?;
            let length = |bytes: &[u8]| u16::from_le_bytes([bytes[0], bytes[1]]);
            let (path, why) = (length(rest.split_off(..2)?), length(rest.split_off(..2)?));
            let path = OsString::from_vec(rest.split_off(..usize::from(path))?.to_vec()).into();
            let failed = match why {
                CURRENT => None,
                why => Some(String::from_utf8_lossy(rest.split_off(..usize::from(why))?).into_owned()),
            };
            members.push(Listed { uuid, path, failed });
        }
        let place = usize::from(bytes[12]);
        let uuid = bytes[16..32].try_into().ok()?;
        let (generation, bytes, settled) = (number(32), number(40), number(48));
        let is_possible = bytes < 1 << 60 && generation < 1 << 60 && place < members.len();
        is_possible.then_some((place, Self { uuid, generation, settled, bytes, members, unsettled }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{below, seeded};

    fn label() -> Label {
        let listed = |path: &str, failed: Option<&str>| Listed {
            uuid: [path.len() as u8; 16],
            path: path.into(),
            failed: failed.map(str::to_owned),
        };
        let mut unsettled = Regions::NONE;
        for region in [0, 63, 64, 4095] {
            assert!(unsettled.insert(region));
        }
        Label {
            uuid: [9; 16],
            generation: 7,
            settled: 5,
            bytes: 5 << 40,
            members: vec![
                listed("/a", None),
                listed("/srv/b c", Some("")),
                listed("/x/ü", Some("no space left")),
            ],
            unsettled,
        }
    }

    #[test]
    fn a_label_comes_back_as_it_was_written_and_a_changed_byte_makes_it_none() {
        let label = label();
        let bytes = label.encode(2);
        assert_eq!(Label::decode(&bytes), Some((2, label.clone())));
        assert_eq!(label.unsettled.iter().collect::<Vec<_>>(), [0, 63, 64, 4095]);
        for at in [0, 9, 12, 40, 70, 600, 4095] {
            let mut wrong = bytes;
            wrong[at] ^= 1;
            assert_eq!(Label::decode(&wrong), None, "{at}");
        }
        assert_eq!(Label::decode(&[0; COPY]), None);
    }

    #[test]
    fn bytes_that_are_no_label_are_none_whatever_their_checksum() {
        let mut chance = seeded(1);
        let (mut bytes, mut labels) = (label().encode(1), 0);
        for _ in 0..20_000 {
            let before = bytes;
            for _ in 0..=below(&mut chance, 3) {
                let at = [12 + below(&mut chance, 52), 576 + below(&mut chance, 100)]
                    [below(&mut chance, 2) as usize];
                bytes[at as usize] =
                    [0, 1, 255, below(&mut chance, 256) as u8][below(&mut chance, 4) as usize];
            }
            let sum = xxh3_64(&bytes[..SUM_AT]);
            bytes[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
            if let Some((place, label)) = Label::decode(&bytes) {
                assert!(place < label.members.len());
                labels += 1;
            }
            bytes = before;
        }
        assert!((100..19_000).contains(&labels), "{labels}");
    }

    #[test]
    fn regions_cover_any_cache_and_long_paths_are_no_panic() {
        let mut label = label();
        for (bytes, region) in
            [(1 << 20, 1 << 20), (1 << 32, 1 << 20), ((1 << 32) + 4096, 2 << 20), (1 << 40, 256 << 20)]
        {
            label.bytes = bytes;
            assert_eq!(label.region_bytes(), region);
            assert!((bytes - 1) / region < REGIONS as u64);
        }
        label.members[1].failed = Some("ü".repeat(500));
        let (_, found) = Label::decode(&label.encode(0)).unwrap();
        assert_eq!(found.members[1].failed.as_ref().map(String::len), Some(WHY_MAX));
        assert!(label.fits());
        label.members[0].path = "x".repeat(3000).into();
        assert!(!label.fits());
    }
}
