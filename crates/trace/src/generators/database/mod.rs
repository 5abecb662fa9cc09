//! The areas of a database that suit flash: transaction log, rollback segments, temporary tables.
//!
//! Lee, Moon, Park, Kim and Kim [DB-SIGMOD08] move three areas of a database server from a disk to a flash
//! drive, since sequential writes and random reads prevail in them. From the paper:
//!
//! * The log is only appended to. Nothing in it is written at random or in place.
//! * Before images of updated tuples are appended to several rollback segments, a sequential stream in each.
//!   Reads of old versions are random.
//! * A sort writes runs sequentially, and then reads them at random while it merges them.
//!
//! Textbooks have a hash join as the reverse of a sort: writes go from partition to partition, and each
//! partition is read sequentially (`operator=hash`). Park and Lee [DB-ICCSIT10] see sequential writes and
//! random reads in the hash joins of a commercial database; `operator=hash-append` writes so.
//!
//! Ours are all sizes and shares, and these rules:
//!
//! * The log is a ring of files. A commit is rounded up to blocks and ends with a flush. The first write to a
//!   file that was used before frees the file first, as a checkpoint allows.
//! * A segment is a ring of extents. When it begins one too many, it frees its oldest. A read is of any block
//!   that a segment keeps, with equal chance.
//! * The area of a sort has two halves: the runs of a level lie in one, and the merge writes to the other. A
//!   merge holds one block of each run. The next block is one of any run that is not at its end, with equal
//!   chance; then a block of the result is written.
//! * Each write of a hash join goes to any partition that is not complete, with equal chance. Both inputs of
//!   the join count as one table.
//!
//! With `zones`, files, extents, runs and partitions are whole zones, so that freeing one resets its zones.
//! At most one zone of each segment or partition is written in part, and one of a log or a sort: no zone has
//! to be finished.

mod hash;
mod log;
mod rollback;
mod sort;
mod space;

use super::common::{GAP, OFFSET, SEED, SPAN, check_gap, extent, info_of, refuse, rng};
use super::zones::{self, ACTIVE, APPEND, CAPACITY, ZONES, Zones};
use super::{Context, Generator};
use crate::error::Result;
use nandscape_core::rng::Xoshiro256PlusPlus;
use nandscape_core::{
    Info, IoRecord, Param, ParamError, Params, SimTime, TraceReader, WorkloadInfo, keys, words,
};
use space::Space;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Log,
    Rollback,
    Temp,
}

words!(pub Part: Log = "log", Rollback = "rollback", Temp = "temp");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Sort,
    Hash,
    HashAppend,
}

words!(Operator: Sort = "sort", Hash = "hash", HashAppend = "hash-append");

keys! { PARAMS:
    PART: Part = word() or "log", "area: transaction log, rollback segments or temporary tables";
    COMMIT: Option<u64> = size(1, 1 << 30), "log: bytes of one transaction, rounded up to bs with the others of its commit; 6k if absent";
    GROUP: Option<f64> = share(), "log: share of commits of several transactions; 20% if absent";
    MEMBERS: Option<u64> = int(2, 1 << 16), "log: most transactions of one commit; 8 if absent";
    FILES: Option<u64> = int(1, 1 << 20), "log: files that are written in turn; 4 if absent";
    SEGMENTS: Option<u64> = int(1, 1 << 16), "rollback: segments, of which each transaction takes the next; 8 if absent, or active if that is less";
    EXTENT: Option<u64> = size(512, 1 << 40), "rollback: bytes that a segment takes and frees at a time; 1m if absent, or a zone";
    UNDO: Option<u64> = int(1, 1 << 20), "rollback: blocks of undo of a transaction, on average; 4 if absent";
    READS: Option<f64> = share(), "rollback: share of consistent reads; 30% if absent";
    RETAIN: Option<f64> = share(), "rollback: share of its extents that a segment keeps; 75% if absent";
    OPERATOR: Option<Operator> = word(), "temp: external sort, hash join, or hash join whose partitions are appended as one; sort if absent";
    TABLE: Option<u64> = size(512, 1 << 49), "temp: bytes that an operator writes first; the span if absent, of a sort half of it";
    MEMORY: Option<u64> = size(1, 1 << 40), "sort: bytes of a first run, and of the blocks that a merge holds; 16m if absent";
    FANIN: Option<u64> = int(2, 1 << 20), "sort: most runs of a merge; as many as memory has blocks for if absent";
    PARTITIONS: Option<u64> = int(1, 1 << 16), "hash: partitions; 16 if absent, or active if that is less";
    DISCARD: Option<bool> = flag(), "block device: discard what is freed; true of temp, else false if absent";
    ZONES; CAPACITY; ACTIVE; APPEND;
    BS: Option<u64> = size(1, 1 << 30), "bytes of a block; 4k of log, 8k of rollback, 64k of temp if absent";
    COUNT: Option<u64> = count(), "commits of a log, else reads and writes; one pass or operator if neither count nor size is given";
    SIZE: Option<u64> = size(1, 1 << 60), "bytes read and written at least, instead of count";
    SPAN; OFFSET; GAP; SEED;
}

pub const ENTRY: Generator = Generator {
    info: Info {
        name: "database",
        summary: "transaction log, rollback segments or temporary tables, on block devices or on zones",
        source: "[DB-SIGMOD08], [DB-ICCSIT10]; the sizes are ours",
        params: PARAMS,
    },
    build: |params, context| Ok(Box::new(build(params, context)?)),
};

/// The parts that have a key of their own.
const OWN: [(&str, Part); 11] = [
    (COMMIT.param.name, Part::Log),
    (GROUP.param.name, Part::Log),
    (MEMBERS.param.name, Part::Log),
    (FILES.param.name, Part::Log),
    (SEGMENTS.param.name, Part::Rollback),
    (EXTENT.param.name, Part::Rollback),
    (UNDO.param.name, Part::Rollback),
    (READS.param.name, Part::Rollback),
    (RETAIN.param.name, Part::Rollback),
    (OPERATOR.param.name, Part::Temp),
    (TABLE.param.name, Part::Temp),
];

/// Refuses keys that would do nothing.
fn check_keys(params: &Params, part: Part, operator: Operator) -> Result<(), ParamError> {
    for (name, own) in OWN {
        if own != part {
            refuse(params, name, &format!("with part={}", own.name()))?;
        }
    }
    let is_sort = part == Part::Temp && operator == Operator::Sort;
    if !is_sort {
        for name in [MEMORY.param.name, FANIN.param.name] {
            refuse(params, name, "with part=temp,operator=sort")?;
        }
    }
    if is_sort || part != Part::Temp {
        refuse(params, PARTITIONS.param.name, "with part=temp,operator=hash or hash-append")?;
    }
    if params.get(ZONES).is_some() {
        refuse(params, DISCARD.param.name, "without zones")?;
        refuse(params, EXTENT.param.name, "without zones, where an extent is a zone")?;
    }
    zones::check_keys(params)
}

/// The key that an error is about: this one if it was given, else another.
fn given(params: &Params, key: impl Into<Param>, other: impl Into<Param>) -> Param {
    let key = key.into();
    if params.text(key).is_empty() { other.into() } else { key }
}

/// The load of one area.
trait Load: Send {
    /// One commit of a log, or one read or write. Whether a pass over the area, or an operator, ended.
    fn step(&mut self, space: &mut Space, rng: &mut Xoshiro256PlusPlus) -> bool;
}

/// Where a load ends.
#[derive(Clone, Copy)]
enum Limit {
    Steps(u64),
    Bytes(u64),
    Pass,
}

fn build(params: &Params, context: Context) -> Result<Database, ParamError> {
    let part = params.get(PART);
    let operator = params.get(OPERATOR).unwrap_or(Operator::Sort);
    check_keys(params, part, operator)?;
    let bs = params.get(BS).unwrap_or(match part {
        Part::Log => 4 << 10,
        Part::Rollback => 8 << 10,
        Part::Temp => 64 << 10,
    });
    let (origin, span) = extent(params, context, bs)?;
    let zones = params.get(ZONES).map(|size| Zones::new(params, size, origin, span, bs)).transpose()?;
    if let Some(size) = params.get(ZONES).filter(|size| *size > span) {
        return Err(params.error(SPAN, format!("at least one zone, {size} B")));
    }
    let space = Space::new(origin, span, bs, zones, params.get(DISCARD).unwrap_or(part == Part::Temp));
    let load: Box<dyn Load> = match (part, operator) {
        (Part::Log, _) => Box::new(log::Log::new(params, &space)?),
        (Part::Rollback, _) => Box::new(rollback::Rollback::new(params, &space)?),
        (Part::Temp, Operator::Sort) => Box::new(sort::Sort::new(params, &space)?),
        (Part::Temp, Operator::Hash) => Box::new(hash::Hash::new(params, &space)?),
        (Part::Temp, Operator::HashAppend) => Box::new(hash::HashAppend::new(params, &space)?),
    };
    let limit = match (params.get(COUNT), params.get(SIZE)) {
        (Some(_), Some(_)) => return Err(params.error(SIZE, "either count or size, not both")),
        (Some(0), None) => return Err(params.error(COUNT, "1 request or more")),
        (Some(count), None) => Limit::Steps(count),
        (None, Some(size)) => Limit::Bytes(size),
        (None, None) => Limit::Pass,
    };
    let gap = params.get(GAP);
    let steps = match limit {
        Limit::Steps(count) => count,
        Limit::Bytes(size) => size.div_ceil(bs),
        // More than any pass has: a merge tree has at most 20 levels, each of which reads and writes all.
        Limit::Pass => {
            let reads = params.get(READS).unwrap_or(rollback::READS_DEFAULT);
            ((space.usable / bs * 64) as f64 / (1.0 - reads)) as u64
        }
    };
    check_gap(params, gap.unwrap_or(0), steps, 0)?;
    let info = WorkloadInfo { expected_records: None, ..info_of("database", 0, gap.is_some()) };
    let (rng, gap_ns) = (rng(params, context), gap.unwrap_or(0));
    Ok(Database { load, space, rng, limit, gap_ns, now_ns: 0, steps: 0, is_complete: false, info })
}

struct Database {
    load: Box<dyn Load>,
    space: Space,
    rng: Xoshiro256PlusPlus,
    limit: Limit,
    gap_ns: u64,
    now_ns: u64,
    steps: u64,
    is_complete: bool,
    info: WorkloadInfo,
}

impl Database {
    /// Makes the operations of the next step ready.
    fn prepare(&mut self) {
        self.space.out.at = SimTime(self.now_ns);
        let is_pass = self.load.step(&mut self.space, &mut self.rng);
        self.steps += 1;
        self.now_ns += self.gap_ns;
        self.is_complete = match self.limit {
            Limit::Steps(count) => self.steps == count,
            Limit::Bytes(size) => self.space.out.bytes >= size,
            Limit::Pass => is_pass,
        };
    }
}

impl Iterator for Database {
    type Item = Result<IoRecord>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.space.out.ready.is_empty() && !self.is_complete {
            self.prepare();
        }
        let record = self.space.out.ready.pop_front()?;
        self.info.records += 1;
        Some(Ok(record))
    }
}

impl TraceReader for Database {
    fn info(&self) -> WorkloadInfo {
        self.info.clone()
    }
}
