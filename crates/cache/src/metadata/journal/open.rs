//! From table and ring to entries.

use super::super::format::{self, BLOCK, Magic};
use super::super::table::{scan, table_block};
use super::super::{Area, Entry, Found, MetadataError, Opened, Superblock, Write, region, running, written};
use super::replay::{Ring, Window};
use super::{Journal, Sides, is_journal};
use nandscape_policies::BlockKey;

/// Stamps of both copies of each table block; `None` where a copy is damaged.
type Stamps = Vec<[Option<u64>; 2]>;

/// A slot while it is being found out. As large as an entry with its slot, so that the list of all slots
/// becomes that of the entries in the same memory.
#[derive(Clone, Copy)]
struct Slot {
    known: Known,
    /// Without valid sub-blocks where the slot is free.
    entry: Entry,
}

#[derive(Clone, Copy, PartialEq)]
enum Known {
    Nothing,
    /// Its state before the commit of which records are missing.
    BeforeGap,
    /// Its state at that commit or after it; the last one, where none is missing.
    SinceGap,
}

impl Slot {
    const UNKNOWN: Self =
        Self { known: Known::Nothing, entry: Entry { key: BlockKey(0), valid: 0, dirty: 0 } };

    /// As commit `sequence` left it.
    fn at(sequence: u64, entry: Option<Entry>, gap: Option<u64>) -> Self {
        let known = if Some(sequence) >= gap { Known::SinceGap } else { Known::BeforeGap };
        Self { known, entry: entry.unwrap_or(Self::UNKNOWN.entry) }
    }
}

pub fn open(superblock: &Superblock, area: &mut dyn Area, has_dirty: bool) -> Result<Opened, MetadataError> {
    let shape = superblock.shape;
    if !is_journal(&shape, !has_dirty) {
        return Err(MetadataError::Superblock(format!("not the shape of a journal: {shape:?}")));
    }
    let mut found = Found::default();
    let stamps = stamps(superblock, area);
    let ring = Ring::read(superblock, area);
    let last = last_commit(superblock, &stamps, &ring, confirmed(superblock, area), &mut found);
    let mut window = ring.window(superblock, last);
    let (mut slots, based) = base(superblock, area, &stamps, last, window.gap);
    let changed = replay(superblock, area, &ring, &mut window, &mut slots, &based, &mut found);
    judge(superblock, slots, &window, &mut found);
    found.report.damaged_table_blocks = stamps.iter().filter(|both| both.contains(&None)).count() as u32;
    found.report.damaged_record_blocks = window.damaged;
    found.report.commit = last;
    found.report.is_clean =
        superblock.is_clean && superblock.sequence == last && !found.report.has_torn_commit;
    let blocks =
        1 + 3 * u64::from(shape.table_blocks()) + 2 * u64::from(shape.ring) + window.places.len() as u64;
    found.report.read_bytes = blocks * BLOCK as u64;
    if has_dirty && !found.report.is_clean {
        doubt(&ring, last, &mut found);
    }
    found.finish(shape.block_bytes);

    let next = running(superblock, last);
    let (mut repairs, sides) = repairs(&next, &stamps, &ring, last, &changed, &found, window.gap.is_some());
    ring.mend(superblock, area, &window, &mut repairs);
    let blank = |(copy, at)| Write { offset: shape.ring_offset(copy, at), bytes: vec![0; BLOCK] };
    repairs.extend(ring.torn(superblock, &window).map(blank));
    let metadata = Journal {
        superblock: next,
        sequence: last,
        place: window.next,
        visited: window.visited[1],
        sides,
        pending: Vec::new(),
        entries: Vec::new(),
        regions: [found.doubtful; 2],
        has_dirty,
    };
    Ok(Opened { metadata: Box::new(metadata), superblock: None, found, repairs })
}

fn stamps(superblock: &Superblock, area: &mut dyn Area) -> Stamps {
    let shape = &superblock.shape;
    let mut stamps: Stamps = vec![[None; 2]; shape.table_blocks() as usize];
    for copy in 0..2 {
        scan(area, shape.table_offset(copy, 0), shape.table_blocks(), shape.unit, |block, bytes| {
            let header = bytes.and_then(|bytes| format::unseal(bytes, Magic::Table, superblock.tag(), block));
            stamps[block as usize][copy as usize] = header.map(|header| header.sequence);
        });
    }
    stamps
}

// The newest commit that is known to have been durable; 0 if there is none.
fn confirmed(superblock: &Superblock, area: &mut dyn Area) -> u64 {
    let mut bytes = vec![0; BLOCK];
    if area.read(superblock.shape.confirmation_offset(), &mut bytes).is_err() {
        return 0;
    }
    format::unseal(&bytes, Magic::Confirmation, superblock.tag(), 0).map_or(0, |header| header.sequence)
}

// A commit counts if all its records are there, or if anything of a later one is: that one began only when it
// was durable.
fn last_commit(
    superblock: &Superblock,
    stamps: &Stamps,
    ring: &Ring,
    confirmed: u64,
    found: &mut Found,
) -> u64 {
    let (newest, is_whole) = ring.newest();
    let stamped = stamps.iter().flatten().flatten().copied().max().unwrap_or(0);
    let last = match newest {
        _ if stamped > newest => stamped - 1,
        _ if is_whole => newest,
        _ => newest - 1,
    };
    let begun = newest.max(stamped);
    // The superblock names a commit that was durable when it was written, or was written with it.
    let last = if superblock.is_clean { last } else { last.max(superblock.sequence) }.max(confirmed);
    found.report.has_torn_commit = begun > last;
    last
}

// The newest copy of each table block that counts, and its stamp; `None` where there is none.
fn base(
    superblock: &Superblock,
    area: &mut dyn Area,
    stamps: &Stamps,
    last: u64,
    gap: Option<u64>,
) -> (Vec<Slot>, Vec<Option<u64>>) {
    let shape = &superblock.shape;
    let mut slots = vec![Slot::UNKNOWN; shape.slots as usize];
    let mut based = vec![None; stamps.len()];
    for copy in 0..2 {
        scan(area, shape.table_offset(copy, 0), shape.table_blocks(), shape.unit, |block, bytes| {
            let both = stamps[block as usize];
            let Some(stamp) =
                both[copy as usize].filter(|stamp| newest(&both, last) == Some((copy as u8, *stamp)))
            else {
                return;
            };
            let header = bytes.and_then(|bytes| format::unseal(bytes, Magic::Table, superblock.tag(), block));
            let (Some(bytes), Some(_)) = (bytes, header) else { return };
            based[block as usize] = Some(stamp);
            for (at, slot) in shape.slots_of(block).enumerate() {
                slots[slot as usize] = Slot::at(stamp, format::entry_at(bytes, at), gap);
            }
        });
    }
    (slots, based)
}

// Which copy of a table block to use, and its stamp.
fn newest(both: &[Option<u64>; 2], last: u64) -> Option<(u8, u64)> {
    let counts = |copy: u8| Some((copy, both[usize::from(copy)].filter(|stamp| *stamp <= last)?));
    // The first of equals.
    [counts(1), counts(0)].into_iter().flatten().max_by_key(|(_, stamp)| *stamp)
}

// Applies the window's records, oldest first, to what the table blocks have of older commits; returns the
// last change of each table block.
fn replay(
    superblock: &Superblock,
    area: &mut dyn Area,
    ring: &Ring,
    window: &mut Window,
    slots: &mut [Slot],
    based: &[Option<u64>],
    found: &mut Found,
) -> Vec<u64> {
    let shape = &superblock.shape;
    let mut changed = vec![0; shape.table_blocks() as usize];
    for index in 0..window.places.len() {
        let at = window.places[index];
        let Some((sequence, records)) = ring.records(superblock, area, at) else {
            // Readable a moment ago. What was known before is as of before this gap.
            if window.lose(ring.header(at)) {
                let known = slots.iter_mut().filter(|slot| slot.known == Known::SinceGap);
                known.for_each(|slot| slot.known = Known::BeforeGap);
            }
            continue;
        };
        found.report.record_blocks += 1;
        for (slot, entry) in records {
            let Some(held) = slots.get_mut(slot as usize) else { continue };
            found.report.records += 1;
            let block = (slot / shape.per_block()) as usize;
            changed[block] = sequence;
            if based[block].is_none_or(|stamp| sequence > stamp) {
                *held = Slot::at(sequence, entry, window.gap);
            }
        }
    }
    changed
}

// Which entries can be relied on.
fn judge(superblock: &Superblock, slots: Vec<Slot>, window: &Window, found: &mut Found) {
    let shape = &superblock.shape;
    let blocks = u64::from(shape.table_blocks());
    let [from, to] = window.visited;
    // Visited since the gap, and either written then, or passed over since it had not changed.
    let is_visited = |block: u64| (block + blocks - from % blocks) % blocks < to - from;
    let Found { uncertain, report, .. } = found;
    let sure = |(Slot { known, entry }, slot): (Slot, u32)| {
        let is_sure = || window.gap.is_none() || is_visited((slot / shape.per_block()).into());
        match known {
            Known::Nothing => report.unknown_slots += 1,
            _ if entry.valid == 0 => {}
            Known::BeforeGap if !is_sure() => uncertain.push((slot, entry)),
            Known::BeforeGap | Known::SinceGap => return Some((slot, entry)),
        }
        None
    };
    // In the memory of `slots`.
    found.entries = slots.into_iter().zip(0..).filter_map(sure).collect();
    drop_doubles(found);
}

// What was clean, where the disk may have got something newer after the last commit.
fn doubt(ring: &Ring, last: u64, found: &mut Found) {
    found.doubtful = ring.regions(last);
    for (slot, entry) in &mut found.entries {
        if entry.dirty != entry.valid && region(entry.key) & found.doubtful != 0 {
            entry.dirty = entry.valid;
            found.doubted.push(*slot);
        }
    }
}

// One block in two slots: only after damage, and nobody can say which is right.
fn drop_doubles(found: &mut Found) {
    let mut keys: Vec<_> = found.entries.iter().map(|(_, entry)| entry.key).collect();
    keys.sort_unstable();
    let doubles: Vec<_> = keys.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    if !doubles.is_empty() {
        let is_double = |(_, entry): &(u32, Entry)| doubles.binary_search(&entry.key).is_ok();
        found.uncertain.extend(found.entries.extract_if(.., |held| is_double(held)));
    }
}

// Undoes what was begun after the last commit, so that its number can be used again, and renews damaged
// blocks.
fn repairs(
    superblock: &Superblock,
    stamps: &Stamps,
    ring: &Ring,
    last: u64,
    changed: &[u64],
    found: &Found,
    has_gap: bool,
) -> (Vec<Write>, Vec<Sides>) {
    let shape = &superblock.shape;
    let mut out = Vec::new();
    for at in ring.after(last) {
        let blank = |copy| Write { offset: shape.ring_offset(copy, at), bytes: vec![0; BLOCK] };
        out.extend([blank(0), blank(1)]);
    }
    let entries = |block: u32| {
        let slots = shape.slots_of(block);
        let place = |slot| found.entries.partition_point(|(other, _)| *other < slot);
        &found.entries[place(slots.start)..place(slots.end)]
    };
    let mut sides = Vec::with_capacity(stamps.len());
    for ((block, both), changed) in (0..).zip(stamps).zip(changed) {
        let mut side =
            Sides { newest: newest(both, last).map_or(0, |(copy, _)| copy), is_stale: [has_gap; 2] };
        for (copy, stamp) in (0..).zip(both) {
            if let Some(stamp) = stamp.filter(|stamp| *stamp <= last) {
                side.is_stale[usize::from(copy)] |= stamp < *changed;
            } else {
                out.push(table_block(superblock, copy.into(), block, last, entries(block)));
                side.newest = copy;
            }
        }
        sides.push(side);
    }
    out.push(written(superblock));
    (out, sides)
}
