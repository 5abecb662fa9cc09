//! Bytes that were lost with the fast store.

use nandscape_core::Extent;
use nandscape_core::ranges::Ranges;
use std::collections::BTreeMap;

/// Ranges of volumes, none of which touch.
#[derive(Clone, Debug, Default)]
pub(super) struct LostExtents(BTreeMap<u16, Ranges<()>>);

impl LostExtents {
    pub(super) fn is_empty(&self) -> bool {
        self.0.values().all(Ranges::is_empty)
    }

    pub(super) fn insert(&mut self, volume: u16, extent: Extent) {
        self.0.entry(volume).or_default().set(extent.offset, extent.end(), ());
    }

    /// These bytes were written anew.
    pub(super) fn remove(&mut self, volume: u16, extent: Extent) {
        self.0.entry(volume).or_default().remove(extent.offset, extent.end(), |()| true);
    }

    pub(super) fn first_in(&self, volume: u16, extent: Extent) -> Option<Extent> {
        let (start, end, ()) = self.0.get(&volume)?.within(extent.offset, extent.end()).next()?;
        Some(Extent::new(start, end - start))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, Extent)> + '_ {
        self.0.iter().flat_map(|(volume, ranges)| {
            let lost = ranges.within(0, u64::MAX);
            lost.map(|(start, end, ())| (*volume, Extent::new(start, end - start)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{below, seeded};

    #[test]
    fn ranges_are_as_a_plain_array_of_bytes_has_them() {
        let mut rng = seeded(1);
        let (mut lost, mut plain) = (LostExtents::default(), [[false; 64]; 2]);
        for _ in 0..5000 {
            let volume = below(&mut rng, 2) as u16;
            let start = below(&mut rng, 64);
            let extent = Extent::new(start, 1 + below(&mut rng, 64 - start));
            let bytes = &mut plain[usize::from(volume)][start as usize..extent.end() as usize];
            match below(&mut rng, 3) {
                0 => {
                    bytes.fill(true);
                    lost.insert(volume, extent);
                }
                1 => {
                    bytes.fill(false);
                    lost.remove(volume, extent);
                }
                _ => {
                    let first = bytes.iter().position(|is_lost| *is_lost).map(|at| {
                        let len = bytes[at..].iter().take_while(|is_lost| **is_lost).count();
                        Extent::new(start + at as u64, len as u64)
                    });
                    assert_eq!(lost.first_in(volume, extent), first, "{extent:?} of {lost:?}");
                }
            }
            let mut listed = [[false; 64]; 2];
            let mut last = None;
            for (volume, extent) in lost.iter() {
                assert!(
                    last.is_none_or(|last| last < (volume, extent.offset)),
                    "they do not touch: {lost:?}"
                );
                last = Some((volume, extent.end()));
                listed[usize::from(volume)][extent.offset as usize..extent.end() as usize].fill(true);
            }
            assert_eq!(listed, plain);
        }
    }
}
