//! Pages that hosts dropped, as long as copies of them may lie on the flash.

use super::format::{self, Drop, Header};
use super::ring::Slot;
use super::{Kind, Pblk};
use nandscape_core::{Lpn, NamespaceResult, Ppn, SimTime, Subsystem, Token};
use std::collections::{BTreeMap, VecDeque};

/// Drops in memory.
#[derive(Debug, Default)]
pub(super) struct Drops {
    /// In no page yet.
    pub pending: Vec<Drop>,
    /// In pages of the ring that are not written, by their number.
    pub queued: VecDeque<(u64, Vec<Drop>)>,
    /// In pages on the flash, by place.
    pub kept: BTreeMap<u32, Vec<Drop>>,
}

impl<S: Subsystem> Pblk<S> {
    /// Pages hold nothing from now on.
    pub(super) fn drop_pages(&mut self, first: u32, count: u32, at: SimTime) -> NamespaceResult<()> {
        self.drops.pending.push(Drop { first, count, origin: Drop::HERE });
        if self.drops.pending.len() >= format::drops_per_page(self.shape.identity.page_bytes) {
            self.queue_drops(at)?;
        }
        Ok(())
    }

    /// Puts pending drops into the ring, without the pages that were written since.
    pub(super) fn queue_drops(&mut self, at: SimTime) -> NamespaceResult<()> {
        let pending = std::mem::take(&mut self.drops.pending);
        let mut left: Vec<Drop> = pending.iter().flat_map(|drop| self.unmapped(drop)).collect();
        let room = format::drops_per_page(self.shape.identity.page_bytes);
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(room));
            let drops = std::mem::replace(&mut left, rest);
            let mut page = std::mem::take(&mut self.buffer);
            if !page.is_empty() {
                let count = drops.len() as u32;
                let header = Header { kind: Kind::Drops, line: 0, seq: 0, part: 0, count };
                let numbers = format::drop_numbers(&drops);
                format::encode(&self.shape.identity, &header, &numbers, &mut page);
            }
            self.drops.queued.push_back((self.ring.head, drops));
            let data = (!page.is_empty()).then_some(&page[..]);
            self.enter(Lpn::META, Kind::Drops, data, Token::NONE);
            self.buffer = page;
            self.write_ring(false, at)?;
        }
        Ok(())
    }

    /// The parts of a drop that hold nothing now.
    fn unmapped(&self, drop: &Drop) -> Vec<Drop> {
        let end = drop.first + drop.count;
        let mut parts = Vec::new();
        let mut first = drop.first;
        while first < end {
            let mapped = self.map.next_mapped(first, end).map_or(end, |lpn| lpn.0);
            if mapped > first {
                parts.push(Drop { first, count: mapped - first, origin: drop.origin });
            }
            first = mapped + 1;
        }
        parts
    }

    /// A page of drops lies in a line that is collected: those are written again that other lines may have
    /// copies of.
    pub(super) fn move_drops(&mut self, place: Ppn) {
        let line = self.blocks.block_of(place);
        let drops = self.drops.kept.remove(&place.0).expect("drops of a page of drops");
        let others = (0..).zip(&self.lines.seqs).filter(|(other, seq)| *other != line && **seq > 0);
        let oldest = others.map(|(_, seq)| *seq).min().unwrap_or(u32::MAX);
        self.drops.pending.extend(drops.into_iter().filter(|drop| drop.origin >= oldest));
        self.clear(place);
    }

    /// A page of a ring slot was written to a place: notes the drops in it.
    pub(super) fn drops_written(&mut self, position: u64, place: Ppn) {
        let (queued, drops) = self.drops.queued.pop_front().expect("drops of a page of drops");
        assert_eq!(queued, position, "number of a page of drops");
        self.keep_drops(drops, place);
    }

    /// A page of drops is at a place.
    pub(super) fn keep_drops(&mut self, mut drops: Vec<Drop>, place: Ppn) {
        let line = self.blocks.block_of(place);
        for drop in drops.iter_mut().filter(|drop| drop.origin == Drop::HERE) {
            drop.origin = self.lines.seqs[line as usize];
        }
        self.drops.kept.insert(place.0, drops);
        self.owners[place.index()] = Lpn::META;
        self.blocks.set(place, line);
    }

    /// Takes a slot of the ring; what it held before is found on the flash from now on.
    pub(super) fn enter(&mut self, lpn: Lpn, kind: Kind, data: Option<&[u8]>, after: Token) -> (Ppn, Token) {
        let index = self.ring.index(self.ring.head);
        let before = self.ring.slots[index];
        let entry = super::ring::Ring::entry(index);
        if before.place.is_some()
            && before.lpn.0 < self.shape.identity.logical_pages
            && self.map.get(before.lpn) == entry
        {
            self.map.redirect(before.lpn, before.place);
        }
        self.ring.push(Slot { lpn, kind, place: Ppn::NONE, after, done: Token::NONE }, data);
        (entry, before.done)
    }
}
