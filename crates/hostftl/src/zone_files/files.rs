//! Files, and where their units are.

use nandscape_core::{Allocation, Extent, Hint, ObjectError, ObjectId, Token};
use std::collections::BTreeMap;

/// Bytes of a record of an object before its lists.
pub(super) const OBJECT: u64 = 40;
/// Bytes of a piece in a record.
pub(super) const PIECE: u64 = 12;
/// Place of a unit whose data could not be read when it was to be moved.
pub(super) const LOST: u32 = u32::MAX - 1;
/// Place of nothing: a hole, in records.
pub(super) const HOLE: u32 = u32::MAX;

/// Units of a file that are next to each other in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Place of the first of them (`space::Space::first_of`), [`LOST`], or [`HOLE`].
    pub place: u32,
    pub units: u32,
}

impl Piece {
    pub const fn is_stored(self) -> bool {
        self.place < LOST
    }

    /// The part from a unit on.
    const fn skip(self, units: u32) -> Self {
        let place = if self.is_stored() { self.place + units } else { self.place };
        Self { place, units: self.units - units }
    }

    const fn is_next(self, other: Self) -> bool {
        let end = self.skip(self.units).place;
        end == other.place && self.is_stored() == other.is_stored()
    }
}

/// Where the units of a file are: pieces by their first unit, none of them next to each other in file and
/// zone.
#[derive(Clone, Debug, Default)]
pub(super) struct Extents(BTreeMap<u32, Piece>);

impl Extents {
    /// Bytes of all pieces in a record.
    pub fn record_bytes(&self) -> u64 {
        PIECE * self.0.len() as u64
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, Piece)> + Clone {
        self.0.iter().map(|(at, piece)| (*at, *piece))
    }

    /// The place of a unit, if anything is there.
    pub fn place(&self, unit: u32) -> Option<u32> {
        let (at, piece) = self.0.range(..=unit).next_back()?;
        (unit - at < piece.units).then(|| piece.skip(unit - at).place)
    }

    /// The parts of pieces in `from..to`.
    pub fn within(&self, from: u32, to: u32) -> impl Iterator<Item = (u32, Piece)> + Clone {
        let before = self.0.range(..from).next_back();
        let first = before.map_or(from, |(at, piece)| if at + piece.units > from { *at } else { from });
        self.0.range(first..to.max(first)).map(move |(at, piece)| {
            let skipped = from.saturating_sub(*at);
            let rest = piece.skip(skipped);
            let start = at + skipped;
            (start, Piece { units: rest.units.min(to - start), ..rest })
        })
    }

    /// The same, with the holes.
    pub fn with_holes(&self, from: u32, to: u32) -> impl Iterator<Item = (u32, Piece)> + Clone {
        let end = std::iter::once((to, Piece { place: HOLE, units: 0 }));
        let mut next = from;
        self.within(from, to).chain(end).flat_map(move |(at, piece)| {
            let hole = (next, Piece { place: HOLE, units: at - next });
            next = at + piece.units;
            [hole, (at, piece)].into_iter().filter(|(_, piece)| piece.units > 0)
        })
    }

    /// Units in `from..to` where anything is.
    pub fn mapped(&self, from: u32, to: u32) -> u64 {
        if self.end() <= from {
            return 0;
        }
        self.within(from, to).map(|(_, piece)| u64::from(piece.units)).sum()
    }

    /// Behind the last unit.
    #[inline]
    pub fn end(&self) -> u32 {
        self.0.last_key_value().map_or(0, |(at, piece)| at + piece.units)
    }

    /// Puts a piece where nothing is.
    #[inline]
    fn put(&mut self, at: u32, piece: Piece) {
        if let Some(mut last) = self.0.last_entry() {
            let end = *last.key() + last.get().units;
            if end == at && last.get().is_next(piece) {
                last.get_mut().units += piece.units;
                return;
            }
            if end > at {
                return self.put_between(at, piece);
            }
        }
        self.0.insert(at, piece);
    }

    fn put_between(&mut self, mut at: u32, mut piece: Piece) {
        if let Some((next, after)) = self.0.range(at..).next().map(|(at, piece)| (*at, *piece)) {
            assert!(at + piece.units <= next, "{piece:?} at {at} overlaps {after:?} at {next}");
            if next == at + piece.units && piece.is_next(after) {
                self.0.remove(&next);
                piece.units += after.units;
            }
        }
        if let Some((before, last)) = self.0.range(..at).next_back().map(|(at, piece)| (*at, *piece)) {
            assert!(before + last.units <= at, "{piece:?} at {at} overlaps {last:?} at {before}");
            if before + last.units == at && last.is_next(piece) {
                (at, piece) = (before, Piece { place: last.place, units: last.units + piece.units });
            }
        }
        self.0.insert(at, piece);
    }

    /// Puts a piece; what was there before is passed to `freed`.
    #[inline]
    pub fn insert(&mut self, at: u32, piece: Piece, freed: impl FnMut(Piece)) {
        assert!(piece.units > 0 && piece.place != HOLE, "{piece:?} at {at}");
        if self.end() > at {
            self.remove(at, at + piece.units, freed);
        }
        self.put(at, piece);
    }

    /// Removes what is in `from..to`, and passes it to `freed`.
    pub fn remove(&mut self, from: u32, to: u32, mut freed: impl FnMut(Piece)) {
        while let Some((at, piece)) = self.0.range(..to).next_back().map(|(at, piece)| (*at, *piece)) {
            let end = at + piece.units;
            if end <= from {
                break;
            }
            self.0.remove(&at);
            let start = at.max(from);
            if end > to {
                self.0.insert(to, piece.skip(to - at));
            }
            freed(Piece { units: end.min(to) - start, ..piece.skip(start - at) });
            if at < from {
                self.0.insert(at, Piece { units: from - at, ..piece });
                break;
            }
        }
    }
}

/// A unit of a file that is kept in memory: as a rule the last one, which is not full.
#[derive(Debug)]
pub(super) struct Tail {
    pub unit: u32,
    /// Empty where no bytes are kept.
    pub bytes: Vec<u8>,
    /// It is not written as it is.
    pub is_dirty: bool,
    /// Completes when what it was read from is read.
    pub read: Token,
}

/// A file.
#[derive(Debug)]
pub(super) struct File {
    pub id: ObjectId,
    pub size: u64,
    pub hint: Hint,
    pub extents: Extents,
    /// Units that it has in zones.
    pub stored: u64,
    pub tail: Option<Box<Tail>>,
    pub attributes: Box<[u8]>,
    /// Objects in the journal that this one has replaced since it was recorded.
    pub replaced: Vec<ObjectId>,
    /// Units whose places are not as in the journal.
    pub changed: Vec<(u32, u32)>,
    /// Completes when its data is written, and whatever lies before it in the same zones.
    pub done: Token,
    /// Units written by the layer when it was created.
    pub born: u64,
    /// The open zone that took its last data, and the number of its frontier.
    pub frontier: (u16, u32),
    pub frontier_hint: Hint,
    /// The journal has it.
    pub is_logged: bool,
    /// It is in the list of files that are not as in the journal.
    pub is_dirty: bool,
    pub has_new_attributes: bool,
}

impl File {
    /// Whether the first byte of an extent is stored, and how far this goes on in it.
    pub fn allocation(&self, extent: Extent, unit: u64) -> Allocation {
        let end = extent.end().min(self.size).div_ceil(unit) as u32;
        let from = (extent.offset / unit).min(end.into()) as u32;
        // What waits in memory, in a hole.
        let kept = self.tail.as_deref().map(|tail| tail.unit).filter(|unit| (from..end).contains(unit));
        let kept = kept.filter(|unit| self.extents.place(*unit).is_none());
        let mut stored = self.extents.within(from, end).map(|(at, piece)| (at, piece.units)).peekable();
        let mut kept = kept.map(|unit| (unit, 1)).into_iter().peekable();
        let runs = std::iter::from_fn(|| match (stored.peek(), kept.peek()) {
            (Some(one), Some(other)) if other.0 < one.0 => kept.next(),
            (Some(_), _) => stored.next(),
            (None, _) => kept.next(),
        });
        Allocation::of_runs(extent, self.size, unit, runs)
    }

    pub fn new(id: ObjectId, hint: Hint, born: u64) -> Self {
        Self {
            id,
            size: 0,
            hint,
            extents: Extents::default(),
            stored: 0,
            tail: None,
            attributes: Box::default(),
            replaced: Vec::new(),
            changed: Vec::new(),
            done: Token::NONE,
            born,
            // No data is in zone 0.
            frontier: (0, 0),
            frontier_hint: hint,
            is_logged: false,
            is_dirty: false,
            has_new_attributes: false,
        }
    }

    /// Whether it needs a unit for what it keeps in memory.
    #[inline]
    pub fn owes(&self) -> bool {
        self.tail.as_ref().is_some_and(|tail| tail.is_dirty && self.extents.place(tail.unit).is_none())
    }

    /// Bytes of its record in a snapshot.
    pub fn record_bytes(&self) -> u64 {
        OBJECT + self.attributes.len() as u64 + self.extents.record_bytes()
    }

    /// Notes that the places of units have changed.
    #[inline]
    pub fn change(&mut self, at: u32, units: u32) {
        if let Some((from, count)) = self.changed.last_mut()
            && *from <= at
            && at <= *from + *count
        {
            *count = (*count).max(at + units - *from);
            return;
        }
        self.changed.push((at, units));
    }

    /// Pieces of the units that changed since the journal has it.
    pub fn changes(&self) -> impl Iterator<Item = (u32, Piece)> + Clone {
        self.changed.iter().flat_map(|(at, units)| self.extents.with_holes(*at, at + units))
    }
}

/// All files.
#[derive(Debug, Default)]
pub(super) struct Files {
    slots: Vec<Option<File>>,
    free: Vec<u32>,
    by_id: BTreeMap<ObjectId, u32>,
    /// Files that are not as in the journal.
    pub dirty: Vec<u32>,
    /// Files with a unit in memory, oldest first.
    pub tails: Vec<u32>,
    /// Objects that are to be replaced by the next record of a file, which is in this slot.
    pub replaced: BTreeMap<ObjectId, u32>,
    /// Bytes of a snapshot, and pieces in it.
    pub record_bytes: u64,
    /// Files that need a unit for what they keep in memory.
    pub owed: u64,
    /// Changes of places since all files were as in the journal.
    pub changes: u64,
}

impl Files {
    pub fn count(&self) -> u64 {
        self.by_id.len() as u64
    }

    pub fn find(&self, id: ObjectId) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    #[inline]
    pub fn slot(&self, id: ObjectId) -> Result<u32, ObjectError> {
        self.find(id).ok_or(ObjectError::Unknown)
    }

    #[inline]
    pub fn get(&self, slot: u32) -> &File {
        self.slots[slot as usize].as_ref().expect("a file")
    }

    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut File {
        self.slots[slot as usize].as_mut().expect("a file")
    }

    /// In the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &File)> {
        self.by_id.values().map(|slot| (*slot, self.get(*slot)))
    }

    pub fn add(&mut self, file: File) -> u32 {
        assert!(!self.by_id.contains_key(&file.id), "object {} exists", file.id);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        });
        self.by_id.insert(file.id, slot);
        self.record_bytes += file.record_bytes();
        self.slots[slot as usize] = Some(file);
        slot
    }

    /// Removes a file; its extents are the caller's to free.
    pub fn remove(&mut self, slot: u32) -> File {
        let file = self.slots[slot as usize].take().expect("a file");
        self.by_id.remove(&file.id);
        self.free.push(slot);
        self.record_bytes -= file.record_bytes();
        self.owed -= u64::from(file.owes());
        if file.tail.is_some() {
            self.tails.retain(|with| *with != slot);
        }
        if file.is_dirty {
            self.dirty.retain(|dirty| *dirty != slot);
        }
        for id in &file.replaced {
            self.replaced.remove(id);
        }
        file
    }

    /// Units of a file are in a piece from now on; where they were before is passed to `freed`.
    #[inline]
    pub fn place(&mut self, slot: u32, at: u32, piece: Piece, mut freed: impl FnMut(Piece)) {
        let file = self.slots[slot as usize].as_mut().expect("a file");
        let before = file.extents.record_bytes();
        let owed = file.owes();
        let mut gone = 0;
        file.extents.insert(at, piece, |piece| {
            if piece.is_stored() {
                gone += u64::from(piece.units);
                freed(piece);
            }
        });
        let new = if piece.is_stored() { u64::from(piece.units) } else { 0 };
        file.stored = file.stored + new - gone;
        self.record_bytes = self.record_bytes + file.extents.record_bytes() - before;
        file.change(at, piece.units);
        // What it keeps in memory may have a unit now.
        self.owed = self.owed + u64::from(file.owes()) - u64::from(owed);
        self.changes += 1;
        self.touch(slot);
    }

    /// Units of a file are nowhere from now on; where they were is passed to `freed`.
    pub fn unmap(&mut self, slot: u32, from: u32, to: u32, mut freed: impl FnMut(Piece)) {
        let file = self.slots[slot as usize].as_mut().expect("a file");
        if from >= to || file.extents.end() <= from {
            return;
        }
        let before = file.extents.record_bytes();
        let mut gone = 0;
        let end = to.min(file.extents.end());
        file.extents.remove(from, end, |piece| {
            if piece.is_stored() {
                gone += u64::from(piece.units);
                freed(piece);
            }
        });
        file.stored -= gone;
        self.record_bytes = self.record_bytes + file.extents.record_bytes() - before;
        file.change(from, end - from);
        self.changes += 1;
        self.touch(slot);
    }

    /// The file is not as in the journal from now on.
    #[inline]
    pub fn touch(&mut self, slot: u32) {
        if !self.get(slot).is_dirty {
            self.get_mut(slot).is_dirty = true;
            self.dirty.push(slot);
        }
    }

    /// The file is as in the journal from now on.
    pub fn recorded(&mut self, slot: u32) {
        let file = self.slots[slot as usize].as_mut().expect("a file");
        for id in file.replaced.drain(..) {
            self.replaced.remove(&id);
        }
        file.changed.clear();
        file.done = Token::NONE;
        (file.is_logged, file.is_dirty, file.has_new_attributes) = (true, false, false);
    }

    /// Nothing that was submitted so far has to be waited for.
    pub fn forget_tokens(&mut self) {
        for file in self.slots.iter_mut().flatten() {
            file.done = Token::NONE;
            if let Some(tail) = &mut file.tail {
                tail.read = Token::NONE;
            }
        }
    }

    /// Memory, roughly: of a leaf of pieces nine tenths of a node are theirs.
    pub fn bytes(&self) -> u64 {
        self.slots.len() as u64 * size_of::<Option<File>>() as u64 + self.record_bytes * 3 / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::rng::{below, seeded};

    #[test]
    fn pieces_are_what_a_plain_list_of_units_says() {
        let mut rng = seeded(1);
        let mut extents = Extents::default();
        let mut plain = vec![None; 120];
        let mut next_place = 0;
        for step in 0..20_000 {
            let from = below(&mut rng, 100) as u32;
            let units = 1 + below(&mut rng, 20) as u32;
            let range = from as usize..(from + units) as usize;
            let mut freed = Vec::new();
            let mut note = |piece: Piece| {
                freed.extend((0..piece.units).map(|unit| piece.skip(unit).place));
            };
            match below(&mut rng, 4) {
                0 => extents.remove(from, from + units, &mut note),
                kind => {
                    let place = if kind == 1 { LOST } else { next_place };
                    next_place += units;
                    extents.insert(from, Piece { place, units }, &mut note);
                }
            }
            let mut expected: Vec<u32> = plain[range.clone()].iter().flatten().copied().collect();
            freed.sort_unstable();
            expected.sort_unstable();
            assert_eq!(freed, expected, "step {step}");
            for unit in range {
                plain[unit] = None;
            }
            for (at, piece) in extents.within(from, from + units) {
                for unit in 0..piece.units {
                    plain[(at + unit) as usize] = Some(piece.skip(unit).place);
                }
            }
            let found: Vec<Option<u32>> = (0..120).map(|unit| extents.place(unit)).collect();
            assert_eq!(found, plain, "step {step}");
            let (a, b) = (below(&mut rng, 60) as u32, 60 + below(&mut rng, 60) as u32);
            let holes: u32 = extents.with_holes(a, b).map(|(_, piece)| piece.units).sum();
            assert_eq!(holes, b - a);
            assert_eq!(extents.mapped(a, b), plain[a as usize..b as usize].iter().flatten().count() as u64);
            let pieces: Vec<_> = extents.iter().collect();
            for pair in pieces.windows(2) {
                let ((at, piece), (next, after)) = (pair[0], pair[1]);
                let is_whole = at + piece.units == next && piece.is_next(after);
                assert!(!is_whole, "{pair:?} are one piece");
            }
        }
    }

    #[test]
    fn appends_are_one_piece_and_one_change() {
        let mut file = File::new(ObjectId(1), Hint::NONE, 0);
        for unit in 0..1_000 {
            file.extents.insert(unit, Piece { place: 70 + unit, units: 1 }, |_| panic!("nothing is freed"));
            file.change(unit, 1);
        }
        assert_eq!((file.extents.iter().count(), file.changed.as_slice()), (1, &[(0, 1_000)][..]));
        assert_eq!(file.changes().collect::<Vec<_>>(), [(0, Piece { place: 70, units: 1_000 })]);
        assert_eq!(file.record_bytes(), OBJECT + PIECE);
    }
}
