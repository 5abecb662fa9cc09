//! How zones stand, and stood over the course of a run: a row for each zone, or for neighbours where there
//! are many, and a column for each moment.
//!
//! Memory is bounded by [`MOST_ROWS`] and [`MOST_COLUMNS`]. A look takes time in proportion to the zones; in
//! a run there are at most some hundred looks whenever the run gets twice as long.

use nandscape_core::Subsystem;
use nandscape_core::zone::{LIFETIMES, Zone, ZoneContents, ZoneOwner, ZoneState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most rows of a [`ZoneColumn`] of a run.
pub const MOST_ROWS: u32 = 128;
/// Most columns of a [`ZoneHistory`]; when there would be more, every second is dropped.
pub const MOST_COLUMNS: usize = 256;
/// First interval between two columns.
const FIRST_NS: u64 = 100_000;

/// How the zones of a namespace stood at some moments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneHistory {
    /// Zones of a row; the last row may have fewer.
    pub zones_per_row: u32,
    /// Least time between two columns; the first is the begin of the run, the last its end.
    pub interval_ns: u64,
    /// When each column was taken, in virtual time. A zone changes when a command is submitted.
    pub time_ns: Vec<u64>,
    /// The zones at these times.
    pub columns: Vec<ZoneColumn>,
}

/// The zones of a namespace at one moment. Neighbours share a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneColumn {
    /// A letter for each row, see [`ZoneState::letter`]. Of several zones that of an open one if there is
    /// any, else of a closed one, else the most frequent state.
    pub states: String,
    /// Percent of the capacity of each row below write pointers; a full zone counts as written.
    pub written: Vec<u8>,
    /// Percent of the capacity of each row that hold what hosts can still read; null in rows of which nothing
    /// is known. Empty where no layer knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub valid: Vec<Option<u8>>,
    /// Whose data each row has, as the letter of a [`ZoneOwner`]: of several zones the most frequent of those
    /// that are known; '-' where none is. Empty where no layer knows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owners: String,
    /// How long the data of each row is expected to live, in the same way: a digit, the place in
    /// [`LIFETIMES`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lifetimes: String,
}

impl ZoneColumn {
    /// The same with two rows in one, of which the last may be one alone. Zones of a row count alike.
    #[must_use]
    pub fn halved(&self) -> Self {
        let mean = |percents: &[u8]| {
            percents.iter().map(|percent| u32::from(*percent)).sum::<u32>().div_ceil(percents.len() as u32)
                as u8
        };
        let states: Vec<ZoneState> = self.states.chars().filter_map(ZoneState::of_letter).collect();
        let weight = |state: &&ZoneState| (state.is_open(), state.is_active());
        let state =
            |two: &[ZoneState]| two.iter().rev().max_by_key(weight).map_or('?', |state| state.letter());
        let valid = |two: &[Option<u8>]| {
            let known: Vec<u8> = two.iter().copied().flatten().collect();
            (!known.is_empty()).then(|| mean(&known))
        };
        Self {
            states: states.chunks(2).map(state).collect(),
            written: self.written.chunks(2).map(mean).collect(),
            valid: self.valid.chunks(2).map(valid).collect(),
            owners: first_known(&self.owners),
            lifetimes: first_known(&self.lifetimes),
        }
    }
}

/// Of each two letters the first that is known.
fn first_known(letters: &str) -> String {
    let letters: Vec<char> = letters.chars().collect();
    let known = |two: &[char]| two.iter().copied().find(|letter| *letter != UNKNOWN).unwrap_or(UNKNOWN);
    letters.chunks(2).map(known).collect()
}

/// The letter of what is not known.
const UNKNOWN: char = '-';

/// The most frequent of some, and nothing where nothing was counted.
fn most_frequent(counts: &[u32]) -> Option<usize> {
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    counts.iter().position(|count| *count == most)
}

/// Looks at the zones of a namespace one after another.
#[derive(Clone, Debug)]
pub struct ZoneScan {
    zones_per_row: u32,
    row: Row,
    column: ZoneColumn,
    states: [u32; ZoneState::ALL.len()],
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    zones: u32,
    states: [u32; ZoneState::ALL.len()],
    capacity: u64,
    written: u64,
    /// Capacity of those zones whose valid bytes are known, and these.
    known: u64,
    valid: u64,
    owners: [u32; ZoneOwner::ALL.len()],
    lifetimes: [u32; LIFETIMES.len()],
}

/// Place of a state in arrays.
fn place(state: ZoneState) -> usize {
    ZoneState::ALL.iter().position(|other| *other == state).expect("all of them are there")
}

impl Row {
    fn state(&self) -> ZoneState {
        let count = |state: &ZoneState| self.states[place(*state)];
        let open = [ZoneState::ImplicitlyOpen, ZoneState::ExplicitlyOpen];
        let of_open = open.into_iter().max_by_key(count).filter(|state| count(state) > 0);
        let active = of_open.or((count(&ZoneState::Closed) > 0).then_some(ZoneState::Closed));
        active.or_else(|| ZoneState::ALL.into_iter().max_by_key(count)).expect("there are states")
    }
}

fn percent(part: u64, whole: u64) -> u8 {
    if whole == 0 { 0 } else { (part as f64 * 100.0 / whole as f64).round() as u8 }
}

impl ZoneScan {
    /// Of so many zones, which become at most `most_rows` rows.
    pub fn new(zones: u32, most_rows: u32) -> Self {
        Self {
            zones_per_row: zones.div_ceil(most_rows).max(1),
            row: Row::default(),
            column: ZoneColumn::default(),
            states: [0; ZoneState::ALL.len()],
        }
    }

    /// Zones of a row.
    pub const fn zones_per_row(&self) -> u32 {
        self.zones_per_row
    }

    /// The next zone, and what is known of what it holds.
    pub fn add(&mut self, zone: &Zone, contents: ZoneContents) {
        let row = &mut self.row;
        row.zones += 1;
        row.states[place(zone.state)] += 1;
        row.capacity += zone.capacity;
        row.written += zone.written_bytes();
        if let Some(valid) = contents.valid_bytes {
            row.known += zone.capacity;
            row.valid += valid;
        }
        if let Some(place) = ZoneOwner::ALL.iter().position(|owner| Some(*owner) == contents.owner) {
            row.owners[place] += 1;
        }
        if let Some(lifetime) = contents.lifetime {
            row.lifetimes[usize::from(lifetime).min(LIFETIMES.len() - 1)] += 1;
        }
        if row.zones == self.zones_per_row {
            self.end_row();
        }
    }

    fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        let column = &mut self.column;
        column.states.push(row.state().letter());
        column.written.push(percent(row.written, row.capacity));
        column.valid.push((row.known > 0).then(|| percent(row.valid, row.known)));
        let owner = most_frequent(&row.owners).map_or(UNKNOWN, |place| ZoneOwner::ALL[place].letter());
        column.owners.push(owner);
        let lifetime = most_frequent(&row.lifetimes).and_then(|place| char::from_digit(place as u32, 10));
        column.lifetimes.push(lifetime.unwrap_or(UNKNOWN));
        for (sum, count) in self.states.iter_mut().zip(row.states) {
            *sum += count;
        }
    }

    /// Zones in each state that occurs, and the rows.
    pub fn finish(mut self) -> (BTreeMap<String, u32>, ZoneColumn) {
        if self.row.zones > 0 {
            self.end_row();
        }
        if self.column.valid.iter().all(Option::is_none) {
            self.column.valid = Vec::new();
        }
        for letters in [&mut self.column.owners, &mut self.column.lifetimes] {
            if letters.chars().all(|letter| letter == UNKNOWN) {
                letters.clear();
            }
        }
        let states = ZoneState::ALL.into_iter().zip(self.states).filter(|(_, count)| *count > 0);
        (states.map(|(state, count)| (state.name().to_owned(), count)).collect(), self.column)
    }
}

/// Takes columns while a workload runs.
#[derive(Clone, Debug)]
pub(crate) struct ZoneRecorder {
    history: ZoneHistory,
    /// When the next column is due, from the begin of the run.
    pub due_ns: u64,
}

impl ZoneRecorder {
    /// With a first column at the begin of the run; `None` without zones.
    pub fn new(subsystem: &dyn Subsystem) -> Option<Self> {
        subsystem.inspect().zones?;
        let history = ZoneHistory { interval_ns: FIRST_NS, ..ZoneHistory::default() };
        let mut this = Self { history, due_ns: 0 };
        this.look(0, subsystem);
        Some(this)
    }

    /// Takes a column.
    #[cold]
    pub fn look(&mut self, now_ns: u64, subsystem: &dyn Subsystem) {
        let history = &mut self.history;
        if history.columns.len() == MOST_COLUMNS {
            drop_every_second(&mut history.columns);
            drop_every_second(&mut history.time_ns);
            history.interval_ns *= 2;
        }
        let zones = subsystem.inspect().zones.expect("it had zones");
        let count = zones.zone_shape(0).zones;
        let mut scan = ZoneScan::new(count, MOST_ROWS);
        for zone in 0..count {
            scan.add(&zones.zone(0, zone), zones.contents(0, zone));
        }
        history.zones_per_row = scan.zones_per_row();
        history.time_ns.push(now_ns);
        history.columns.push(scan.finish().1);
        self.due_ns = now_ns + history.interval_ns;
    }

    /// All columns, the last at the end of the run.
    pub fn finish(mut self, end_ns: u64, subsystem: &dyn Subsystem) -> ZoneHistory {
        if self.history.time_ns.last() == Some(&end_ns) {
            self.history.time_ns.pop();
            self.history.columns.pop();
        }
        self.look(end_ns, subsystem);
        self.history
    }
}

fn drop_every_second<T>(list: &mut Vec<T>) {
    let mut place = 0;
    list.retain(|_| {
        place += 1;
        place % 2 == 1
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::zone::ZoneAttributes;

    fn zone(state: ZoneState, written: u64) -> Zone {
        let write_pointer = state.has_write_pointer().then_some(written);
        Zone { start: 0, capacity: 100, write_pointer, state, attributes: ZoneAttributes(0), extension: None }
    }

    fn scanned(letters: &str, most_rows: u32) -> ZoneColumn {
        let mut scan = ZoneScan::new(letters.len() as u32, most_rows);
        for letter in letters.chars() {
            scan.add(&zone(ZoneState::of_letter(letter).unwrap(), 30), ZoneContents::default());
        }
        scan.finish().1
    }

    #[test]
    fn a_row_of_several_zones_shows_an_open_one_then_a_closed_one_then_the_most_frequent() {
        for (zones, row) in [
            ("fffi", "i"),
            ("ooif", "o"),
            ("fcff", "c"),
            ("fcif", "i"),
            ("eeff", "f"),
            ("eeef", "e"),
            ("xfrr", "r"),
        ] {
            assert_eq!(scanned(zones, 1).states, row, "{zones}");
        }
        // Five zones in at most two rows: three and two.
        assert_eq!(scanned("eeefi", 2).states, "ei");
        assert_eq!(scanned("eiocfrx", 100).states, "eiocfrx");
    }

    #[test]
    fn shares_are_of_the_capacity_and_unknown_ones_do_not_count() {
        let known = ZoneContents { valid_bytes: Some(40), owner: Some(ZoneOwner::File), lifetime: Some(2) };
        let mut scan = ZoneScan::new(4, 2);
        scan.add(&zone(ZoneState::Closed, 50), ZoneContents::default());
        scan.add(&zone(ZoneState::Full, 0), known);
        scan.add(&zone(ZoneState::Empty, 0), ZoneContents::default());
        scan.add(&zone(ZoneState::Offline, 0), ZoneContents::default());
        let (states, column) = scan.finish();
        assert_eq!(column.written, [75, 0]);
        assert_eq!(column.valid, [Some(40), None], "of the full zone alone");
        assert_eq!((column.owners.as_str(), column.lifetimes.as_str()), ("o-", "2-"));
        assert_eq!(states.values().sum::<u32>(), 4);
        assert_eq!(scanned("fffe", 2).valid, [], "nobody knows");
        assert_eq!(column.halved().owners, "o");
        assert_eq!((column.halved().written, column.halved().valid), (vec![38], vec![Some(40)]));
    }

    #[test]
    fn two_rows_in_one_are_what_a_scan_of_larger_rows_finds() {
        for zones in ["eeii", "ffci", "ccff", "eeeeoo"] {
            assert_eq!(
                scanned(zones, 99).halved().states,
                scanned(zones, zones.len() as u32 / 2).states,
                "{zones}"
            );
        }
    }
}
