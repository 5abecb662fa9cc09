//! Bytes that were lost with the fast store.

use nandscape_core::Extent;
use std::collections::BTreeMap;

/// Ranges of volumes, none of which touch: by volume and first byte, where they end.
#[derive(Clone, Debug, Default)]
pub(super) struct LostExtents(BTreeMap<(u16, u64), u64>);

impl LostExtents {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn insert(&mut self, volume: u16, extent: Extent) {
        let (mut start, mut end) = (extent.offset, extent.end());
        let touching: Vec<(u64, u64)> = self
            .0
            .range((volume, 0)..=(volume, end))
            .filter(|(_, other)| **other >= start)
            .map(|((_, first), end)| (*first, *end))
            .collect();
        for (first, last) in touching {
            self.0.remove(&(volume, first));
            (start, end) = (start.min(first), end.max(last));
        }
        self.0.insert((volume, start), end);
    }

    /// These bytes were written anew.
    pub(super) fn remove(&mut self, volume: u16, extent: Extent) {
        while let Some(part) = self.first_in(volume, extent) {
            let (&(_, start), &end) =
                self.0.range(..=(volume, part.offset)).next_back().expect("it was found");
            self.0.remove(&(volume, start));
            if start < part.offset {
                self.0.insert((volume, start), part.offset);
            }
            if end > part.end() {
                self.0.insert((volume, part.end()), end);
            }
        }
    }

    pub(super) fn first_in(&self, volume: u16, extent: Extent) -> Option<Extent> {
        let before = self.0.range(..=(volume, extent.offset)).next_back();
        let before = before.filter(|((other, _), end)| *other == volume && **end > extent.offset);
        let ((_, start), end) =
            before.or_else(|| self.0.range((volume, extent.offset)..(volume, extent.end())).next())?;
        let start = extent.offset.max(*start);
        Some(Extent::new(start, extent.end().min(*end) - start))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, Extent)> + '_ {
        self.0.iter().map(|((volume, start), end)| (*volume, Extent::new(*start, end - start)))
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
