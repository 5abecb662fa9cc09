//! The nine micro-patterns of uFLIP: one family, each with its own parameter.
//!
//! The keys that all loads share have the paper's parameters: `bs` is `IOSize`, `span` is `TargetSize`,
//! `offset` is `TargetOffset`, `count` is `IOCount`. Slots are places of `bs` bytes. With i the number of a
//! request, its slot is i mod slots (sequential), random (random), incr x i mod slots (order), or that of
//! partition i mod partitions (partitioning). Departures from the paper: a run has one value of the parameter
//! that the paper varies; times are arrivals, so a pause begins with an arrival and not with a completion,
//! and `gap` stands for the response time; both patterns of a mix use the whole span.
//!
//! Parallelism: request i belongs to process i mod degree, and the processes share the span evenly. Those of
//! one round arrive together; a closed loop needs a depth of at least `degree`.
//!
//! With `zones`, writes are legal on a zoned device that is empty at first. A slot then names a zone, and the
//! write goes to its write pointer: sequential patterns stay what they are, random writes go to random zones
//! and one behind the other inside. A zone that is full is reset before it is written again. If `active`
//! zones are written in part, random writes go to these until one is full; any other write that begins a zone
//! first finishes the one that was written least recently. A shift is made by the first write of a zone,
//! which is longer by it; the last one is shorter.

use super::Context;
use super::Generator;
use super::common::{
    BS, COUNT, GAP, OFFSET, SEED, SIZE, SPAN, check_gap, extent, info_of, refuse, requests, rng,
};
use super::zones::{self, ACTIVE, APPEND, CAPACITY, ZONES, Zones};
use crate::error::Result;
use nandscape_core::rng::{Xoshiro256PlusPlus, below};
use nandscape_core::{
    Info, IoRecord, Key, ParamError, Params, SimTime, TraceOp, TraceReader, WorkloadInfo, keys, words,
};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Granularity,
    Alignment,
    Locality,
    Partitioning,
    Order,
    Parallelism,
    Mix,
    Pause,
    Bursts,
}

words!(pub Kind: Granularity = "granularity", Alignment = "alignment", Locality = "locality",
    Partitioning = "partitioning", Order = "order", Parallelism = "parallelism", Mix = "mix",
    Pause = "pause", Bursts = "bursts");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    SequentialRead,
    RandomRead,
    SequentialWrite,
    RandomWrite,
}

words!(Base: SequentialRead = "sr", RandomRead = "rr", SequentialWrite = "sw", RandomWrite = "rw");

impl Base {
    const fn is_write(self) -> bool {
        matches!(self, Self::SequentialWrite | Self::RandomWrite)
    }

    const fn is_random(self) -> bool {
        matches!(self, Self::RandomRead | Self::RandomWrite)
    }
}

keys! { PARAMS:
    PATTERN: Kind = word() or "granularity",
        "micro-pattern; granularity varies bs and locality span, the others have a key of their own";
    BASE: Base = word() or "sw", "base pattern: sequential or random, reads or writes";
    SHIFT: Option<u64> = size(1, 1 << 30), "alignment: bytes that each start lies behind a multiple of bs (IOShift); 512 if absent";
    PARTITIONS: Option<u64> = int(1, 1 << 20), "partitioning: parts of the span that take turns; 4 if absent";
    INCR: Option<String> = text(), "order: slots from one request to the next, negative for backwards, 0 for in place; -1 if absent";
    DEGREE: Option<u64> = int(1, 1 << 16), "parallelism: processes (ParallelDegree); 4 if absent";
    WITH: Option<Base> = word(), "mix: the second base pattern; rr if absent";
    RATIO: Option<u64> = int(1, 1 << 20), "mix: requests of the first pattern for one of the second; 1 if absent";
    PAUSE: Option<u64> = time(), "pause: after each request, 100us if absent; bursts: after each burst, 100ms if absent";
    BURST: Option<u64> = int(1, 1 << 32), "bursts: requests of a burst; 10 if absent";
    ZONES; CAPACITY; ACTIVE; APPEND;
    SPAN; BS; COUNT; SIZE; OFFSET; GAP; SEED;
}

pub const ENTRY: Generator = Generator {
    info: Info {
        name: "uflip",
        summary: "the nine micro-patterns of uFLIP, on block devices or on zones",
        source: "Bouganim, Jonsson and Bonnet, CIDR 2009, section 3",
        params: PARAMS,
    },
    build: |params, context| Ok(Box::new(build(params, context)?)),
};

/// The patterns that have a key of their own.
const OWN: [(&str, &[Kind]); 8] = [
    (SHIFT.param.name, &[Kind::Alignment]),
    (PARTITIONS.param.name, &[Kind::Partitioning]),
    (INCR.param.name, &[Kind::Order]),
    (DEGREE.param.name, &[Kind::Parallelism]),
    (WITH.param.name, &[Kind::Mix]),
    (RATIO.param.name, &[Kind::Mix]),
    (PAUSE.param.name, &[Kind::Pause, Kind::Bursts]),
    (BURST.param.name, &[Kind::Bursts]),
];

/// Refuses keys that would do nothing.
fn check_keys(params: &Params, kind: Kind) -> Result<(), ParamError> {
    for (name, kinds) in OWN {
        if !kinds.contains(&kind) {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            refuse(params, name, &format!("with pattern={}", names.join(" or ")))?;
        }
    }
    zones::check_keys(params)
}

fn build(params: &Params, context: Context) -> Result<Uflip, ParamError> {
    let kind = params.get(PATTERN);
    check_keys(params, kind)?;
    let (base, bs) = (params.get(BASE), params.get(BS));
    if matches!(kind, Kind::Partitioning | Kind::Order) && base.is_random() {
        return Err(params.error(BASE, format!("sr or sw with pattern={}", kind.name())));
    }
    let (origin, span) = extent(params, context, bs)?;
    let shift = if kind == Kind::Alignment { params.get(SHIFT).unwrap_or(512) } else { 0 };
    if shift >= bs {
        return Err(params.error(SHIFT, format!("less than bs, {bs} B")));
    }
    let zones = params.get(ZONES).map(|size| Zones::new(params, size, origin, span, bs)).transpose()?;
    // What a process or a partition gets is whole zones.
    let unit = zones.as_ref().map_or(1, |zones| zones.capacity / bs);
    let slots = match &zones {
        Some(zones) => zones.count() * unit,
        None => (span - shift) / bs,
    };
    if slots == 0 {
        return Err(params.error(SPAN, format!("room for a request of {bs} B shifted by {shift} B")));
    }
    let part = |key: Key<Option<u64>>, parts: u64| match slots / unit / parts {
        0 if unit > 1 => Err(params.error(key, format!("at most the {} zones of the span", slots / unit))),
        0 => Err(params.error(key, format!("at most the {slots} requests that fit the span"))),
        units => Ok(units * unit),
    };
    let order = match kind {
        Kind::Partitioning => {
            let parts = params.get(PARTITIONS).unwrap_or(4);
            Order::Partitioned { parts, slots: part(PARTITIONS, parts)? }
        }
        Kind::Order => {
            let text = params.get(INCR).unwrap_or("-1");
            let incr = text.parse().map_err(|_| params.error(INCR, "a whole number such as -1, 0 or 16"))?;
            Order::Strided(incr)
        }
        _ => Order::Plain,
    };
    let whole = Stream { base, first: 0, slots, next: 0 };
    let (streams, turns): (Vec<Stream>, u64) = match kind {
        Kind::Parallelism => {
            let degree = params.get(DEGREE).unwrap_or(4);
            let slots = part(DEGREE, degree)?;
            ((0..degree).map(|process| Stream { first: process * slots, slots, ..whole }).collect(), 1)
        }
        Kind::Mix => {
            let with = params.get(WITH).unwrap_or(Base::RandomRead);
            if with == base {
                return Err(params.error(WITH, "another pattern than base"));
            }
            (vec![whole, Stream { base: with, ..whole }], params.get(RATIO).unwrap_or(1))
        }
        _ => (vec![whole], 1),
    };
    let (pause_ns, burst) = match kind {
        Kind::Pause => (params.get(PAUSE).unwrap_or(100_000), 1),
        Kind::Bursts => (params.get(PAUSE).unwrap_or(100_000_000), params.get(BURST).unwrap_or(10)),
        _ => (0, 1),
    };
    let gap = params.get(GAP);
    let count = requests(params, slots * bs)?;
    check_gap(params, gap.unwrap_or(0).saturating_add(pause_ns), count, 0)?;
    let info = WorkloadInfo {
        // Resets and finishes come on top.
        expected_records: zones.is_none().then_some(count),
        ..info_of("uflip", count, gap.is_some() || pause_ns > 0)
    };
    Ok(Uflip {
        order,
        together: if kind == Kind::Parallelism { streams.len() as u64 } else { 1 },
        streams,
        turns,
        bs,
        shift,
        origin,
        zones,
        gap_ns: gap.unwrap_or(0),
        pause_ns,
        burst,
        rng: rng(params, context),
        now_ns: 0,
        done: 0,
        count,
        ready: VecDeque::new(),
        info,
    })
}

enum Order {
    Plain,
    Strided(i64),
    /// Parts and slots of each.
    Partitioned {
        parts: u64,
        slots: u64,
    },
}

/// One base pattern, or one process.
#[derive(Clone, Copy)]
struct Stream {
    base: Base,
    first: u64,
    slots: u64,
    /// Number of its next request.
    next: u64,
}

impl Stream {
    fn slot(&mut self, order: &Order, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let i = self.next;
        self.next += 1;
        self.first
            + match *order {
                _ if self.base.is_random() => below(rng, self.slots),
                Order::Plain => i % self.slots,
                Order::Strided(incr) => {
                    (i128::from(incr) * i128::from(i)).rem_euclid(i128::from(self.slots)) as u64
                }
                Order::Partitioned { parts, slots } => i % parts * slots + i / parts % slots,
            }
    }
}

struct Uflip {
    order: Order,
    streams: Vec<Stream>,
    /// Requests of the first stream in a row where there are two that are mixed.
    turns: u64,
    /// Requests that arrive at one time.
    together: u64,
    bs: u64,
    shift: u64,
    origin: u64,
    zones: Option<Zones>,
    gap_ns: u64,
    pause_ns: u64,
    burst: u64,
    rng: Xoshiro256PlusPlus,
    now_ns: u64,
    /// Reads and writes so far.
    done: u64,
    count: u64,
    ready: VecDeque<IoRecord>,
    info: WorkloadInfo,
}

impl Uflip {
    /// Makes the next read or write ready, behind what a zone needs before it.
    fn prepare(&mut self) {
        // With streams a, b and turns t: t times a, then b; processes have one turn each.
        let round = self.turns + self.streams.len() as u64 - 1;
        let turn = (self.done % round).saturating_sub(self.turns - 1);
        let stream = &mut self.streams[turn as usize];
        let slot = stream.slot(&self.order, &mut self.rng);
        let (at, origin, bs, shift) = (SimTime(self.now_ns), self.origin, self.bs, self.shift);
        let ready = &mut self.ready;
        let mut give = |op, offset: u64, len| {
            ready.push_back(IoRecord { at, offset: origin + offset, len, volume: 0, hint: 0, op });
        };
        let op = if stream.base.is_write() { TraceOp::Write } else { TraceOp::Read };
        match &mut self.zones {
            None => give(op, slot * bs + shift, bs),
            Some(zones) => {
                let slots = zones.capacity / bs;
                let (zone, inside) = (slot / slots, slot % slots * bs + shift);
                if op == TraceOp::Write {
                    let zone = if stream.base.is_random() {
                        let own = stream.first / slots..(stream.first + stream.slots) / slots;
                        zones.writable(zone, &own, &mut self.rng)
                    } else {
                        zone
                    };
                    zones.write(zone, bs, shift, give);
                } else {
                    // Reads end where the zone does.
                    give(op, zone * zones.size + inside, bs.min(zones.capacity - inside));
                }
            }
        }
        self.done += 1;
        if self.done.is_multiple_of(self.together) {
            self.now_ns += self.gap_ns;
        }
        if self.done.is_multiple_of(self.burst) {
            self.now_ns += self.pause_ns;
        }
    }
}

impl Iterator for Uflip {
    type Item = Result<IoRecord>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() && self.done < self.count {
            self.prepare();
        }
        let record = self.ready.pop_front()?;
        self.info.records += 1;
        Some(Ok(record))
    }
}

impl TraceReader for Uflip {
    fn info(&self) -> WorkloadInfo {
        self.info.clone()
    }
}
