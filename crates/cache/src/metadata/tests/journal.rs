//! The journal.

use super::*;

/// A bug that the suite has to see.
#[derive(Clone, Copy, PartialEq)]
enum Sabotage {
    None,
    /// What a cut commit left is not undone.
    NoRepairs,
    /// Both copies of the table are one.
    OneTable,
    /// Records are written once.
    OneRecord,
    /// The table does not follow.
    NoTable,
    /// A commit writes its records only.
    NoRecords,
}

struct Run {
    area: Bytes,
    metadata: Box<dyn Metadata + Send>,
    shape: Shape,
    slots: Slots,
    sabotage: Sabotage,
    rng: Xoshiro256PlusPlus,
}

impl Run {
    fn new(blocks: u32, seed: u64, sabotage: Sabotage) -> Self {
        let (area, opened) = Bytes::create("journal", blocks);
        let shape = opened.superblock.unwrap().shape;
        let mut area = area;
        area.apply(&opened.repairs);
        let slots = Slots(vec![None; shape.slots as usize]);
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        Self { area, metadata: opened.metadata, shape, slots, sabotage, rng }
    }

    fn commit(&mut self) -> Vec<Write> {
        let mut writes = Vec::new();
        self.metadata.commit(&self.slots, &mut writes);
        let shape = self.shape;
        let ring = shape.ring_offset(0, 0)..shape.ring_offset(2, 0);
        let second = shape.ring_offset(1, 0);
        match self.sabotage {
            Sabotage::OneRecord => writes.retain(|write| !(second..ring.end).contains(&write.offset)),
            Sabotage::NoRecords => writes.retain(|write| !ring.contains(&write.offset)),
            Sabotage::NoTable => writes.retain(|write| ring.contains(&write.offset)),
            Sabotage::OneTable => {
                let copy = shape.table_offset(1, 0) - shape.table_offset(0, 0);
                for write in writes.iter_mut().filter(|write| write.offset < ring.start) {
                    write.offset = if write.offset >= shape.table_offset(1, 0) {
                        write.offset - copy
                    } else {
                        write.offset
                    };
                }
            }
            Sabotage::None | Sabotage::NoRepairs => {}
        }
        writes
    }

    /// Opens what a cut left, twice if the first is cut in its repairs; it must hold `old` or `new`.
    fn reopen(
        &mut self,
        mut area: Bytes,
        old: &Slots,
        new: &Slots,
        whole: bool,
    ) -> Result<(Bytes, Opened), String> {
        for _ in 0..2 {
            let opened = open(&mut area).map_err(|error| error.to_string())?;
            let is = Slots::of(&opened.found, self.shape.slots);
            if is != *new && (whole || is != *old) {
                return Err(format!("neither before nor after: {}", opened.found.report));
            }
            if self.sabotage != Sabotage::NoRepairs {
                let at = below(&mut self.rng, opened.repairs.len() as u64) as usize;
                area = area.cut(&opened.repairs, at, &mut self.rng);
            }
        }
        let opened = open(&mut area).map_err(|error| error.to_string())?;
        if self.sabotage != Sabotage::NoRepairs {
            area.apply(&opened.repairs);
        }
        Ok((area, opened))
    }

    /// One damaged block costs nothing, two of the same record are seen.
    fn damage(&mut self) -> Result<(), String> {
        let mut area = self.area.clone();
        let blocks = self.shape.data_offset() / 4096;
        area.damage(below(&mut self.rng, blocks) * 4096, &mut self.rng);
        let opened = open(&mut area).map_err(|error| error.to_string())?;
        if Slots::of(&opened.found, self.shape.slots) != self.slots || !opened.found.report.lost.is_empty() {
            return Err(format!("one damaged block: {}", opened.found.report));
        }
        Ok(())
    }

    fn steps(&mut self, commits: u32, changes: u64) -> Result<(), String> {
        for nth in 0..commits {
            let old = self.slots.clone();
            let count = 1 + below(&mut self.rng, changes);
            change(&mut *self.metadata, &mut self.slots, count, &mut self.rng);
            let new = self.slots.clone();
            let writes = self.commit();
            let at = |error: String| format!("commit {nth}: {error}");
            let mut left = None;
            for whole in 0..=writes.len() {
                let area = self.area.cut(&writes, whole, &mut self.rng);
                let (area, opened) = self.reopen(area, &old, &new, whole == writes.len()).map_err(at)?;
                if whole < writes.len() && below(&mut self.rng, 4 * writes.len() as u64) == 0 {
                    left = Some((area, opened));
                }
            }
            // Sometimes the cut is real, and life goes on with what it left.
            if let Some((area, opened)) = left {
                self.slots = Slots::of(&opened.found, self.shape.slots);
                (self.area, self.metadata) = (area, opened.metadata);
            } else {
                self.area.apply(&writes);
                self.metadata.committed();
            }
            self.damage().map_err(at)?;
        }
        Ok(())
    }
}

#[test]
fn a_commit_cut_at_any_write_is_there_or_not_and_one_damaged_block_costs_nothing() {
    for seed in 0..3 {
        for (blocks, commits, changes) in [(200, 90, 20), (1200, 160, 600)] {
            let result = Run::new(blocks, seed, Sabotage::None).steps(commits, changes);
            assert_eq!(result, Ok(()), "seed {seed}, {blocks} blocks, {changes} changes");
        }
    }
}

#[test]
fn every_sabotage_is_seen() {
    use Sabotage::{NoRecords, NoRepairs, NoTable, OneRecord, OneTable};
    for (nth, sabotage) in [NoRepairs, OneTable, OneRecord, NoTable, NoRecords].into_iter().enumerate() {
        let seen = (0..4).any(|seed| Run::new(1200, seed, sabotage).steps(160, 600).is_err());
        assert!(seen, "sabotage {nth} passed");
    }
}

#[test]
fn the_ring_goes_round_where_it_is_as_long_as_the_table() {
    let mut run = Run::new(40_000, 1, Sabotage::None);
    assert!(run.shape.ring > 100 && run.shape.ring == run.shape.table_blocks());
    for nth in 0..60 {
        let room = u64::from(run.metadata.room());
        let count = if nth % 3 == 0 { 1 + below(&mut run.rng, room) } else { 1 + below(&mut run.rng, 300) };
        change(&mut *run.metadata, &mut run.slots, count, &mut run.rng);
        let writes = run.commit();
        run.area.apply(&writes);
        run.metadata.committed();
        run.damage().unwrap();
    }
}

#[test]
fn both_copies_of_the_newest_commit_damaged_are_no_commit_that_was_cut_short_once_it_was_confirmed() {
    for (is_confirmed, parts) in [(false, 1_u64), (true, 1), (true, 2)] {
        let mut run = Run::new(1200, 6, Sabotage::None);
        for _ in 0..50 {
            change(&mut *run.metadata, &mut run.slots, 40, &mut run.rng);
            let mut writes = run.commit();
            run.area.apply(&writes);
            run.metadata.committed();
            writes.clear();
            run.metadata.confirm(&mut writes);
            run.area.apply(&writes);
        }
        let before = run.slots.clone();
        change(&mut *run.metadata, &mut run.slots, parts * 252, &mut run.rng);
        let mut writes = run.commit();
        let tables: Vec<u64> = writes.iter().map(|write| write.offset).collect();
        run.area.apply(&writes);
        run.metadata.committed();
        writes.clear();
        run.metadata.confirm(&mut writes);
        if is_confirmed {
            run.area.apply(&writes);
        }
        for copy in 0..2 {
            let (first, end) = (run.shape.ring_offset(copy, 50), run.shape.ring_offset(copy, 64));
            tables
                .iter()
                .filter(|at| (first..end).contains(at))
                .for_each(|at| run.area.damage(*at, &mut run.rng));
        }
        let opened = open(&mut run.area).unwrap();
        let Found { entries, uncertain, report, .. } = &opened.found;
        if !is_confirmed {
            assert!(Slots::of(&opened.found, run.shape.slots) == before && report.damaged_record_blocks == 0);
            continue;
        }
        assert!(!report.has_torn_commit && report.damaged_record_blocks > 0, "{report}");
        // What the lost commit said of regions is lost too, so all counts as dirty.
        let all_dirty = |entry: Entry| Entry { dirty: entry.valid, ..entry };
        let is_true = |(slot, entry): &(u32, Entry)| {
            run.slots.0[*slot as usize].map(all_dirty) == Some(all_dirty(*entry))
        };
        let old: Vec<_> = entries.iter().filter(|entry| !is_true(entry)).collect();
        assert!(old.is_empty(), "nothing is served that may be old: {old:?}; {parts} parts; {report}");
        assert!(uncertain.iter().any(|entry| !is_true(entry)) && !report.lost.is_empty(), "{report}");
        // Later starts see it too, after commits of which the records are there.
        let dropped = uncertain.clone();
        run.area.apply(&opened.repairs);
        run.metadata = opened.metadata;
        run.slots = Slots::of(&opened.found, run.shape.slots);
        for _ in 0..3 {
            change(&mut *run.metadata, &mut run.slots, 10, &mut run.rng);
            let writes = run.commit();
            run.area.apply(&writes);
            run.metadata.committed();
        }
        let again = open(&mut run.area).unwrap().found;
        let held = Slots::of(&again, run.shape.slots).map(|entry| Some(all_dirty(entry)));
        for (slot, entry) in held.0.iter().enumerate().filter(|(_, entry)| entry.is_some()) {
            assert_eq!(*entry, run.slots.0[slot].map(all_dirty), "slot {slot}");
        }
        let is_dropped = |slot: u32| dropped.iter().any(|(other, _)| *other == slot);
        let back = again
            .entries
            .iter()
            .find(|(slot, entry)| is_dropped(*slot) && dropped.contains(&(*slot, *entry)));
        assert_eq!(back, None, "what was dropped stays so");
    }
}

#[test]
fn both_copies_of_a_record_damaged_serve_nothing_wrong_and_name_what_may_be_lost() {
    let mut run = Run::new(1200, 5, Sabotage::None);
    let mut dropped = 0;
    for nth in 0..120 {
        change(&mut *run.metadata, &mut run.slots, 40, &mut run.rng);
        let writes = run.commit();
        run.area.apply(&writes);
        run.metadata.committed();
        if nth < 2 {
            continue;
        }
        // The newest commit, which is not confirmed here, cannot be told from one that was cut.
        let mut area = run.area.clone();
        let place = (nth + 64 - 1 - below(&mut run.rng, 2) as u32) % run.shape.ring;
        for copy in 0..2 {
            area.damage(run.shape.ring_offset(copy, place), &mut run.rng);
        }
        let opened = open(&mut area).unwrap();
        let Found { entries, uncertain, report, .. } = &opened.found;
        assert!(
            entries.iter().all(|(slot, entry)| run.slots.0[*slot as usize] == Some(*entry)),
            "commit {nth}"
        );
        assert_eq!(report.damaged_record_blocks, 1, "commit {nth}");
        // What is missing was uncertain, or changed in the damaged records.
        let held = Slots::of(&opened.found, run.shape.slots);
        let is_named = |slot: usize| uncertain.iter().any(|(at, _)| *at as usize == slot);
        let missing =
            (0..held.0.len()).filter(|slot| held.0[*slot] != run.slots.0[*slot] && !is_named(*slot)).count();
        assert!(missing <= 40, "commit {nth}: {missing} slots missing without a word");
        dropped += uncertain.len();
        assert!(uncertain.iter().all(|(_, entry)| entry.dirty == 0) || !report.lost.is_empty());
    }
    assert!(dropped > 0);
}

/// Bytes of which some blocks can be read along with their neighbours, and not by themselves.
struct Fading {
    bytes: Bytes,
    blocks: Vec<u64>,
}

impl Area for Fading {
    fn capacity_bytes(&self) -> u64 {
        self.bytes.capacity
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), StoreError> {
        if self.blocks.contains(&offset) && bytes.len() == 4096 {
            return Err(StoreError::Io { offset, len: 4096, detail: "faded".to_owned() });
        }
        self.bytes.read(offset, bytes)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), StoreError> {
        self.bytes.write(offset, bytes)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn one_copy_of_a_record_that_fades_while_it_is_replayed_loses_nothing() {
    for copy in 0..2 {
        let mut run = Run::new(1200, 7, Sabotage::None);
        for _ in 0..60 {
            change(&mut *run.metadata, &mut run.slots, 40, &mut run.rng);
            let writes = run.commit();
            run.area.apply(&writes);
            run.metadata.committed();
        }
        let blocks = (0..run.shape.ring).map(|at| run.shape.ring_offset(copy, at)).collect();
        let found = open(&mut Fading { bytes: run.area, blocks }).unwrap().found;
        assert!(Slots::of(&found, run.shape.slots) == run.slots, "copy {copy}: {}", found.report);
        assert_eq!((found.report.damaged_record_blocks, found.uncertain.len()), (0, 0), "copy {copy}");
    }
}

#[test]
fn records_that_fade_while_they_are_replayed_serve_nothing_that_may_be_old() {
    let mut named = 0;
    for lost in 20..60 {
        let mut run = Run::new(16_000, 7, Sabotage::None);
        let mut before = run.slots.clone();
        for nth in 0..60 {
            if nth == lost {
                before = run.slots.clone();
            }
            change(&mut *run.metadata, &mut run.slots, 40, &mut run.rng);
            let writes = run.commit();
            run.area.apply(&writes);
            run.metadata.committed();
        }
        let blocks = vec![run.shape.ring_offset(0, lost), run.shape.ring_offset(1, lost)];
        let opened = open(&mut Fading { bytes: run.area, blocks }).unwrap();
        let Found { entries, uncertain, report, .. } = &opened.found;
        assert_eq!(report.damaged_record_blocks, 1, "commit {lost}");
        for (slot, entry) in entries {
            assert_eq!(run.slots.0[*slot as usize], Some(*entry), "commit {lost}, slot {slot}");
        }
        // What was changed later is known all the same.
        let held = Slots::of(&opened.found, run.shape.slots);
        assert!(held.0.iter().flatten().count() >= 20 * (59 - lost as usize), "commit {lost}");
        named += uncertain.iter().filter(|(slot, entry)| before.0[*slot as usize] == Some(*entry)).count();
    }
    assert!(named > 0, "some are named as uncertain");
}
