//! A job that issues the requests of a recording (`read_iolog`): their order, places and, unless it never
//! stalls, their times.

use super::hints::Hints;
use super::planned::Region;
use super::request::Request;
use crate::trust::{Arrivals, Stamped};
use nandscape_core::rng::{Xoshiro256PlusPlus, seeded};
use nandscape_core::units::format_bytes;
use nandscape_core::{Extent, IoRecord, Op, TraceError, TraceReader};
use nandscape_jobs::{Direction, Job};
use std::fmt::Debug;

/// Where the requests of a recording go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that there are for them; their first is byte 0 of the recording.
    pub bytes: u64,
    /// Page size of the namespace.
    pub page_bytes: u32,
}

/// Opens the recordings of jobs.
pub trait Recordings: Debug {
    /// Bytes that the recording of a job needs, from byte 0 on. A generator takes its share of the room.
    fn span(&self, job: &Job, room: Room) -> Result<u64, TraceError>;

    /// The recording that a job names, as often as its `loops` say.
    fn open(&self, job: &Job, room: Room) -> Result<Box<dyn TraceReader>, TraceError>;
}

/// Why a recording cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Unreadable(TraceError),
    /// A request that the job cannot issue, and why.
    Unfit(String),
}

/// What a recording asks for next.
pub(crate) enum Turn {
    Request(Request),
    Flush,
    /// Nothing before this time.
    Wait(u64),
    End,
    Broken(Broken),
}

/// Requests under way where neither times nor `iodepth` say how many: those of a replay.
const DEPTH: u32 = 32;

pub(crate) struct Recorded {
    reader: Box<dyn TraceReader>,
    region: Region,
    /// The next request.
    ahead: Option<IoRecord>,
    /// Virtual time of the first request and its time stamp; `None` where times do not count.
    origin: Option<(u64, u64)>,
    follows_times: bool,
    job: Job,
    hints: Hints,
    rng: Xoshiro256PlusPlus,
    arrivals: Arrivals,
}

impl Recorded {
    pub fn new(reader: Box<dyn TraceReader>, job: &Job, region: Region, seed: u64) -> Self {
        Self {
            // Stamps that a reader made up are known as such from the start.
            follows_times: !job.recording.never_stalls && reader.info().has_real_times,
            reader,
            region,
            ahead: None,
            origin: None,
            job: job.clone(),
            hints: Hints::new(job),
            rng: seeded(seed ^ 0x7265_636f_7264 ^ u64::from(job.number) << 32),
            arrivals: Arrivals::default(),
        }
    }

    /// Requests that may be under way: without `iodepth` as many as arrive, or as in a replay without times.
    pub fn depth(&self) -> u32 {
        match self.job.depth {
            0 if self.follows_times => u32::MAX,
            0 => DEPTH,
            depth => depth,
        }
    }

    /// How its requests arrived, where they follow their times.
    pub fn stamped(&self) -> Option<Stamped> {
        self.follows_times.then(|| Stamped {
            job: Some((self.job.name.clone(), self.job.depth)),
            arrivals: self.arrivals.clone(),
            spreads_seconds: self.reader.info().spreads_seconds,
        })
    }

    /// With so many requests under way.
    pub fn next(&mut self, now: u64, inflight: u32) -> Turn {
        let record = match self.ahead.take().map(Ok).or_else(|| self.read()) {
            Some(Ok(record)) => record,
            Some(Err(error)) => return Turn::Broken(Broken::Unreadable(error)),
            None => return Turn::End,
        };
        let due = self.due(&record, now);
        if due > now {
            self.ahead = Some(record);
            return Turn::Wait(due);
        }
        if let Some((begin, _)) = self.origin {
            self.arrivals.arrive(due - begin, inflight as usize);
            self.arrivals.issue(now - due);
        }
        match self.request(&record) {
            Ok(Some(request)) => Turn::Request(request),
            Ok(None) => Turn::Flush,
            Err(message) => Turn::Broken(Broken::Unfit(message)),
        }
    }

    /// When a request is due, at the earliest `now` where its time does not count.
    fn due(&mut self, record: &IoRecord, now: u64) -> u64 {
        if !self.follows_times {
            return now;
        }
        let (begin, first) = *self.origin.get_or_insert((now, record.at.0));
        let after = record.at.0.saturating_sub(first);
        let after = match self.job.recording.rate_percent {
            100 => after,
            percent => u64::try_from(u128::from(after) * 100 / u128::from(percent)).unwrap_or(u64::MAX),
        };
        begin.saturating_add(after)
    }

    /// The next record that is not left out.
    fn read(&mut self) -> Option<Result<IoRecord, TraceError>> {
        let recording = &self.job.recording;
        self.reader.by_ref().find(|record| {
            let Ok(record) = record else { return true };
            match record.op.block_op() {
                Some(Op::Flush) => !recording.skips_flushes,
                Some(op) => !recording.skips[direction(op) as usize],
                None => true,
            }
        })
    }

    /// The request of a record; `None` for a flush.
    fn request(&mut self, record: &IoRecord) -> Result<Option<Request>, String> {
        let Some(op) = record.op.block_op() else {
            return Err(
                "operations on zones and objects: expected reads, writes, trims and flushes in a recording that a job \
                 issues; nandscape replay takes the recording by itself"
                    .to_owned(),
            );
        };
        if op == Op::Flush {
            return Ok(None);
        }
        let (Region { namespace, start, len: room }, recording) = (self.region, &self.job.recording);
        let offset = recording.place(record.offset);
        if offset.checked_add(record.len).is_none_or(|end| end > room) {
            return Err(format!(
                "it reaches beyond the {room} bytes ({}) that the job has: expected a larger namespace or file, \
                 replay_scale, or --remap dense",
                format_bytes(room)
            ));
        }
        let direction = direction(op);
        let own = if direction == Direction::Write { self.hints.next(&mut self.rng) } else { 0 };
        let hint = if own == 0 { record.hint } else { own };
        let extent = Extent::new(start + offset, record.len);
        let zeroes = op == Op::WriteZeroes;
        Ok(Some(Request { namespace, direction, extent, hint, zeroes, zone: None }))
    }
}

const fn direction(op: Op) -> Direction {
    match op {
        Op::Read => Direction::Read,
        Op::Write | Op::Flush => Direction::Write,
        Op::Trim | Op::WriteZeroes => Direction::Trim,
    }
}
