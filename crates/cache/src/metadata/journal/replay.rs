//! The ring: where it ends, what of it is needed, and where it has gaps.

use super::super::format::{self, BLOCK, Header, Magic};
use super::super::table::scan;
use super::super::{Area, Entry, Superblock, Write};
use super::parts_most;
use std::collections::BTreeMap;

/// A place of the ring.
#[derive(Clone, Copy)]
struct Place {
    header: Header,
    copy: u32,
    /// Whether both copies are there.
    is_double: bool,
}

/// The ring as it was found.
pub struct Ring {
    places: Vec<Option<Place>>,
    /// Of each place, which copies hold neither a record block nor zeroes.
    is_garbage: Vec<[bool; 2]>,
}

/// What is needed of the ring.
pub struct Window {
    /// Place of the next commit.
    pub next: u32,
    /// Places, oldest first.
    pub places: Vec<u32>,
    /// The newest commit of which records are missing, or may be.
    pub gap: Option<u64>,
    /// Places of which both copies are damaged.
    pub damaged: u32,
    /// Visits of table blocks after the gap's commit, and after the last one.
    pub visited: [u64; 2],
}

impl Window {
    /// Records of this place cannot be read any more. Whether what was known before now counts as older than
    /// what is missing.
    pub fn lose(&mut self, header: Option<Header>) -> bool {
        self.damaged += 1;
        let Some(header) = header.filter(|header| Some(header.sequence) > self.gap) else { return false };
        self.gap = Some(header.sequence);
        self.visited[0] = header.visited;
        true
    }
}

impl Ring {
    /// Reads all of it.
    pub fn read(superblock: &Superblock, area: &mut dyn Area) -> Self {
        let shape = &superblock.shape;
        let mut places: Vec<Option<Place>> = vec![None; shape.ring as usize];
        let mut is_garbage = vec![[false; 2]; shape.ring as usize];
        for copy in 0..2 {
            scan(area, shape.ring_offset(copy, 0), shape.ring, BLOCK as u32, |at, bytes| {
                let header =
                    bytes.and_then(|bytes| format::unseal(bytes, Magic::Records, superblock.tag(), at));
                let is_blank =
                    bytes.is_some_and(|bytes| bytes.as_chunks::<8>().0.iter().all(|word| *word == [0; 8]));
                is_garbage[at as usize][copy as usize] = header.is_none() && !is_blank;
                let held = &mut places[at as usize];
                // A commit that was cut short may have reached one copy only.
                match (header, held) {
                    (Some(header), Some(held)) if held.header == header => held.is_double = true,
                    (Some(header), held)
                        if held.is_none_or(|held| held.header.sequence < header.sequence) =>
                    {
                        *held = Some(Place { header, copy, is_double: false });
                    }
                    _ => {}
                }
            });
        }
        Self { places, is_garbage }
    }

    fn headers(&self) -> impl Iterator<Item = (u32, Header)> + '_ {
        (0..).zip(&self.places).filter_map(|(at, place)| Some((at, (*place)?.header)))
    }

    /// What the block at a place says of itself.
    pub fn header(&self, at: u32) -> Option<Header> {
        Some(self.places[at as usize]?.header)
    }

    /// The newest commit of which something is there, and whether all of it is. 0 if there is none.
    pub fn newest(&self) -> (u64, bool) {
        let mut counts: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
        for (_, header) in self.headers() {
            counts.entry(header.sequence).or_insert((0, header.parts)).0 += 1;
        }
        counts.last_key_value().map_or((0, true), |(sequence, (count, parts))| (*sequence, count == parts))
    }

    /// What a commit says of regions; all, where it cannot be read any more.
    pub fn regions(&self, sequence: u64) -> u64 {
        let said =
            self.headers().find(|(_, header)| header.sequence == sequence).map(|(_, header)| header.regions);
        said.unwrap_or(if sequence == 0 { 0 } else { u64::MAX })
    }

    /// Places with parts of commits after `last`, which are to be undone.
    pub fn after(&self, last: u64) -> impl Iterator<Item = u32> + '_ {
        self.headers().filter(move |(_, header)| header.sequence > last).map(|(at, _)| at)
    }

    /// Copies of places that the next commit may write, with what cannot be told from parts of one that was
    /// cut short. Those of its sectors that are there would make a whole block, could sectors of another
    /// commit at the same place stand for the rest.
    pub fn torn<'a>(
        &'a self,
        superblock: &Superblock,
        window: &Window,
    ) -> impl Iterator<Item = (u32, u32)> + 'a {
        let (next, ring) = (window.next, superblock.shape.ring);
        let places = (0..parts_most(&superblock.shape)).map(move |ahead| (next + ahead) % ring);
        let copies = places.flat_map(|at| [(0, at), (1, at)]);
        copies.filter(|(copy, at)| self.is_garbage[*at as usize][*copy as usize])
    }

    /// What is needed where `last` is the last commit that counts.
    pub fn window(&self, superblock: &Superblock, last: u64) -> Window {
        let (shape, ring) = (&superblock.shape, superblock.shape.ring);
        let mut window = Window { next: 0, places: Vec::new(), gap: None, damaged: 0, visited: [0; 2] };
        let Some(next) = self.end(last, ring) else {
            window.gap = (last > 0).then_some(last);
            return window;
        };
        window.next = next;
        if last == 0 {
            return window;
        }
        let mut newer = last + 1;
        // Before the first round is through, nothing was ever written behind `next`.
        let is_round = self.headers().any(|(at, header)| at >= next && header.sequence <= last);
        let needed = ring - parts_most(shape);
        for back in 1..=if is_round { needed } else { needed.min(next) } {
            let at = (next + ring - back) % ring;
            let is_needed = |place: &Place| place.header.sequence <= newer.min(last);
            let Some(Place { header, .. }) = self.places[at as usize].filter(is_needed) else {
                window.damaged += 1;
                window.gap = window.gap.or(Some(newer.min(last)));
                continue;
            };
            newer = header.sequence;
            window.places.push(at);
            window.visited[1] = window.visited[1].max(header.visited);
            if window.gap.is_none() {
                window.visited[0] = header.visited;
            }
            if header.sequence == 1 && header.part == 0 {
                break;
            }
        }
        // Without an intact block at or after the gap nothing is known to have been visited since.
        if window.places.is_empty() || window.gap == Some(last) {
            window.visited[0] = window.visited[1];
        }
        window.places.reverse();
        window
    }

    // The place after commit `last`.
    fn end(&self, last: u64, ring: u32) -> Option<u32> {
        let first = |at: u32, header: &Header| (at + ring - header.part % ring) % ring;
        let of = |sequence| self.headers().find(move |(_, header)| header.sequence == sequence);
        if let Some((at, header)) = of(last) {
            return Some((first(at, &header) + header.parts % ring) % ring);
        }
        of(last + 1).map(|(at, header)| first(at, &header)).or_else(|| {
            // Both are gone: behind the newest that is there. A place of those that are gone stays, so that
            // later starts see it too.
            let (at, header) = self.headers().max_by_key(|(_, header)| (header.sequence, header.part))?;
            let lost = u32::from(header.sequence < last);
            Some((first(at, &header) + header.parts % ring + lost) % ring)
        })
    }

    /// Appends the writes after which every place of the window is there twice again: a commit that was cut
    /// short may count with one copy, and must not hang on it.
    pub fn mend(&self, superblock: &Superblock, area: &mut dyn Area, window: &Window, out: &mut Vec<Write>) {
        for at in &window.places {
            let Some(Place { header, copy, is_double: false }) = self.places[*at as usize] else { continue };
            let mut bytes = vec![0; BLOCK];
            let is_read = area.read(superblock.shape.ring_offset(copy, *at), &mut bytes).is_ok();
            if is_read && format::unseal(&bytes, Magic::Records, superblock.tag(), *at) == Some(header) {
                out.push(Write { offset: superblock.shape.ring_offset(1 - copy, *at), bytes });
            }
        }
    }

    /// The records at a place, with the commit's number, from either copy. `None` if none can be read any
    /// more.
    pub fn records(&self, superblock: &Superblock, area: &mut dyn Area, at: u32) -> Option<(u64, Records)> {
        let Place { header, copy, is_double } = self.places[at as usize]?;
        let mut bytes = vec![0; BLOCK];
        let mut is_there = |copy: u32| {
            let is_read = area.read(superblock.shape.ring_offset(copy, at), &mut bytes).is_ok();
            is_read && format::unseal(&bytes, Magic::Records, superblock.tag(), at) == Some(header)
        };
        let has_one = is_there(copy) || is_double && is_there(1 - copy);
        if !has_one {
            return None;
        }
        let records = (0..header.count as usize).map(|item| format::record_at(&bytes, item)).collect();
        Some((header.sequence, records))
    }
}

/// Slots and what they hold from then on.
pub type Records = Vec<(u32, Option<Entry>)>;
