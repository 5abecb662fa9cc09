//! Streams by death times that are known: an upper bound for the others.
//!
//! The workload is read once before. For every write the time at which its data dies is found, in bytes
//! written: when its pages are overwritten or trimmed; of a write whose pages die apart, the middle one
//! counts. Three ways to make streams of that can be chosen:
//!
//! * `lifetimes` (default): classes of remaining life, with equal shares of what is written and dies.
//! * `log-lifetimes`: classes of remaining life by powers of two up from the unit.
//! * `windows`: time is cut into windows of one unit. What dies in the same window lies together, so that its
//!   blocks empty together; windows take the ids in turn, and later deaths lie with what never dies.
//!
//! What outlives the workload is kept apart from the rest in the last stream, if there is more than one. On
//! recorded loads (docs/stream-policies.md) classes by equal shares serve greedy collection best or nearly
//! so; windows fail where lives are longer than all of them together. None is an optimum: a smaller write
//! amplification with the same streams is possible.

use super::{PolicyEntry, StreamPolicy, WriteFacts};
use crate::table::Table;
use nandscape_core::{Info, IoRecord, TraceOp, keys, words};

keys! { PARAMS:
    SCHEME: Scheme = word() or "lifetimes", "how streams are made of death times";
    UNIT: Option<u64> = size(4096, 1 << 50),
        "length of a window, or shortest life of log-lifetimes, in bytes written; absent: a sixty-fourth of \
         the capacity";
}

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    info: Info {
        name: "oracle",
        summary: "knows when the data of each write dies: an upper bound; reads the workload twice",
        source: "nandscape; cf. FK of SepBIT, FAST 2022",
        params: PARAMS,
    },
    needs_future: true,
    build: |params, setup| {
        let unit = params.get(UNIT).unwrap_or(setup.capacity_bytes / 64);
        Ok(Box::new(Oracle::new(params.get(SCHEME), (unit / GRANULE).max(1), setup.streams)))
    },
};

/// Death is known for pieces of 4 KiB.
const GRANULE: u64 = 4096;
/// Outlives the workload.
const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Windows,
    Lifetimes,
    LogLifetimes,
}

words!(Scheme: Lifetimes = "lifetimes", LogLifetimes = "log-lifetimes", Windows = "windows");

/// A write that was foreseen.
#[derive(Clone, Copy, Debug)]
struct Life {
    /// Granules written before it.
    birth: u64,
    /// When the granule died that was the middle one so far to die.
    death: u64,
    granules: u32,
    dead: u32,
}

#[derive(Debug)]
struct Oracle {
    scheme: Scheme,
    /// In granules.
    unit: u64,
    streams: u16,
    clock: u64,
    /// By granule: one more than the number of the write that it holds.
    holders: Table<u32>,
    lives: Vec<Life>,
    /// Streams of the writes to come, and the next of them.
    answers: Vec<u16>,
    next: usize,
    /// Writes that were not foreseen.
    unforeseen: u64,
}

impl Oracle {
    fn new(scheme: Scheme, unit: u64, streams: u16) -> Self {
        Self {
            scheme,
            unit,
            streams,
            clock: 0,
            holders: Table::default(),
            lives: Vec::new(),
            answers: Vec::new(),
            next: 0,
            unforeseen: 0,
        }
    }

    /// One granule of a write is dead.
    fn die(&mut self, granule: u64, holder: u32) {
        let Some(entry) = self.holders.entry(granule) else { return };
        let was = std::mem::replace(entry, holder);
        if was > 0 {
            let life = &mut self.lives[was as usize - 1];
            life.dead += 1;
            if life.dead == life.granules.div_ceil(2) {
                life.death = self.clock;
            }
        }
    }

    fn stream(&self, life: &Life, borders: &[u64]) -> u16 {
        if self.streams < 2 || life.death == NEVER {
            return self.streams;
        }
        let left = life.death - life.birth;
        let classes = self.streams - 1;
        match self.scheme {
            Scheme::Lifetimes => borders.partition_point(|border| *border < left) as u16 + 1,
            Scheme::LogLifetimes => (left / self.unit + 1).ilog2().min(u32::from(classes) - 1) as u16 + 1,
            Scheme::Windows => {
                // The window that holds the death, if it is one of those that have ids.
                let (birth, death, classes) =
                    (life.birth / self.unit, life.death / self.unit, classes.into());
                if death - birth < classes { (death % classes) as u16 + 1 } else { self.streams }
            }
        }
    }

    /// Borders of classes that each get an equal share of what is written and dies.
    fn borders(&self) -> Vec<u64> {
        let mut lives: Vec<(u64, u32)> = self
            .lives
            .iter()
            .filter(|life| life.death != NEVER)
            .map(|life| (life.death - life.birth, life.granules))
            .collect();
        lives.sort_unstable();
        let total: u64 = lives.iter().map(|(_, granules)| u64::from(*granules)).sum();
        let classes = u64::from(self.streams.max(2)) - 1;
        let (mut borders, mut sum) = (Vec::new(), 0);
        for (left, granules) in lives {
            sum += u64::from(granules);
            while (borders.len() as u64) + 1 < classes && sum * classes >= (borders.len() as u64 + 1) * total
            {
                borders.push(left);
            }
        }
        borders
    }
}

impl StreamPolicy for Oracle {
    fn foresee(&mut self, record: &IoRecord) {
        let (first, end) =
            (record.offset / GRANULE, record.offset.saturating_add(record.len).div_ceil(GRANULE));
        match record.op {
            TraceOp::Write if record.len > 0 => {
                let holder = self.lives.len() as u32 + 1;
                let granules = (end - first).min(u64::from(u32::MAX)) as u32;
                self.lives.push(Life { birth: self.clock, death: NEVER, granules, dead: 0 });
                for granule in first..end {
                    self.die(granule, holder);
                }
                self.clock += end - first;
            }
            // Where an append goes, and so when its data dies, is not in the record.
            TraceOp::Write | TraceOp::Append => {
                self.lives.push(Life { birth: self.clock, death: NEVER, granules: 0, dead: 0 });
            }
            TraceOp::Trim | TraceOp::WriteZeroes => {
                // A trim leaves alone what it covers only in part.
                for granule in record.offset.div_ceil(GRANULE)..(record.offset + record.len) / GRANULE {
                    if self.holders.get(granule).is_some() {
                        self.die(granule, 0);
                    }
                }
            }
            _ => {}
        }
    }

    fn foreseen(&mut self) {
        let borders = if self.scheme == Scheme::Lifetimes { self.borders() } else { Vec::new() };
        self.answers = self.lives.iter().map(|life| self.stream(life, &borders)).collect();
        self.lives = Vec::new();
        self.holders = Table::default();
    }

    fn assign(&mut self, _: &WriteFacts<'_>) -> u16 {
        let Some(&stream) = self.answers.get(self.next) else {
            self.unforeseen += 1;
            return 0;
        };
        self.next += 1;
        stream
    }

    fn warnings(&self) -> Vec<String> {
        let warn = || format!("{} writes were not foreseen and have no stream", self.unforeseen);
        (self.unforeseen > 0).then(warn).into_iter().collect()
    }

    fn memory_bytes(&self) -> u64 {
        let lives = self.lives.capacity() * size_of::<Life>();
        self.holders.memory_bytes() + (lives + self.answers.capacity() * 2) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{build, facts};
    use super::*;
    use crate::assign::testing::io;

    fn streams_of(typed: &[(&str, &str)], streams: u16, records: &[IoRecord]) -> Vec<u16> {
        let mut policy = build("oracle", typed, streams);
        for record in records {
            policy.foresee(record);
        }
        policy.foreseen();
        records.iter().filter(|r| r.op == TraceOp::Write).map(|r| policy.assign(&facts(r.offset))).collect()
    }

    fn write(page: u64) -> IoRecord {
        io(0, TraceOp::Write, page * 4096, 4096)
    }

    #[test]
    fn what_dies_together_lies_together_and_what_never_dies_apart() {
        // Page 9 stays; 0 and 1 are rewritten at once, 2 and 3 much later.
        let mut records: Vec<_> = [9, 0, 2, 1, 3, 0, 1].map(write).into();
        records.extend((100..160).map(write));
        records.extend([2, 3].map(write));
        for scheme in ["windows", "lifetimes", "log-lifetimes"] {
            let got = streams_of(&[("scheme", scheme), ("unit", "64KiB")], 9, &records);
            assert!(got[0] == 9 && got[1] != got[2] && got[2] != 9, "{scheme}: {got:?}");
            // 0 and 1 die one write apart, which an equal share of lives may divide.
            if scheme != "lifetimes" {
                assert_eq!((got[1], got[2]), (got[3], got[4]), "{scheme}: {got:?}");
            }
        }
    }

    #[test]
    fn a_trim_is_a_death_and_the_middle_page_counts() {
        let records =
            [io(0, TraceOp::Write, 0, 3 * 4096), write(10), io(0, TraceOp::Trim, 4096, 2 * 4096), write(0)];
        let mut oracle = Oracle::new(Scheme::Lifetimes, 1, 4);
        for record in &records {
            oracle.foresee(record);
        }
        assert_eq!(oracle.lives[0].death, 4);
        assert_eq!(oracle.lives[1].death, NEVER);
    }

    #[test]
    fn more_writes_than_were_foreseen_have_no_stream_and_are_counted() {
        let mut policy = build("oracle", &[], 4);
        policy.foreseen();
        assert_eq!(policy.assign(&facts(0)), 0);
        assert!(policy.warnings()[0].starts_with("1 writes"));
    }
}
