//! Any number of caches over one reading of a workload.

use super::feed::{Feed, Unit};
use super::{Options, bad_value};
use crate::Result;
use nandscape_core::registry::unknown_name;
use nandscape_core::{ParamError, TraceError};
use nandscape_policies::Map;
use nandscape_policies::eviction::{EVICTIONS, EvictionSpec};
use nandscape_policies::simulate::{BELADY, NextUses, Request, Row, Simulation, simulation};
use nandscape_stack::{RunError, pool};
use nandscape_trace::BoxReader;
use rayon::prelude::*;
use std::time::{Duration, Instant};

/// Which block leaves.
#[derive(Clone, Debug)]
pub enum Replacement {
    /// A policy that a running cache can have.
    Policy(EvictionSpec),
    /// The best there can be, which must see the whole workload: 16 B of memory a request.
    Belady,
}

impl Replacement {
    /// Reads `name` or `name:key=value:key=value`.
    pub fn parse(text: &str) -> Result<Self, ParamError> {
        if text.trim() == BELADY.name {
            return Ok(Self::Belady);
        }
        EvictionSpec::parse(text).map(Self::Policy).map_err(|error| match error {
            // The list of what there is has one more here than in a running cache.
            ParamError::UnknownName { name, .. } => {
                let all = EVICTIONS.iter().chain([&BELADY]);
                unknown_name("eviction policy", &name, all)
            }
            error => error,
        })
    }
}

/// One cache to simulate.
#[derive(Clone, Debug)]
pub struct Case {
    /// Which block leaves.
    pub replacement: Replacement,
    /// The same as it was typed.
    pub eviction: String,
    /// The design that it follows.
    pub preset: Option<String>,
    /// Sets and ways.
    pub map: Map,
    /// Bytes of a block, a power of two; `None` counts every request as one object.
    pub block_bytes: Option<u64>,
    /// Blocks of the cache, a multiple of the ways.
    pub slots: u32,
}

impl Case {
    /// A fully associative cache of a policy by itself.
    pub fn of_policy(text: &str, block_bytes: Option<u64>, slots: u32) -> Result<Self, ParamError> {
        Ok(Self {
            replacement: Replacement::parse(text)?,
            eviction: text.trim().to_owned(),
            preset: None,
            map: Map::Full,
            block_bytes,
            slots,
        })
    }

    fn row(&self, workload: &str, seed: u64) -> Row {
        let block = self.block_bytes.unwrap_or(0);
        Row {
            workload: workload.to_owned(),
            eviction: self.eviction.clone(),
            preset: self.preset.clone(),
            map: self.map.name(),
            ways: self.map.ways(self.slots),
            block_bytes: block,
            size_blocks: self.slots,
            size_bytes: u64::from(self.slots) * block,
            seed,
            ..Row::default()
        }
    }
}

struct Run {
    row: Row,
    /// Which of the feed's chunks it takes.
    unit: usize,
    work: Work,
    took: Duration,
}

enum Work {
    Online(Box<dyn Simulation>),
    /// Belady's, from the kept stream of its unit.
    AtTheEnd,
}

impl Run {
    fn feed(&mut self, chunks: &[Vec<Request>]) {
        if let Work::Online(simulation) = &mut self.work {
            let start = Instant::now();
            simulation.feed(&chunks[self.unit]);
            self.took += start.elapsed();
        }
    }

    fn finish(mut self, kept: &[Vec<Request>], reading: Duration, is_partial: bool) -> Row {
        let start = Instant::now();
        let counts = match &self.work {
            Work::Online(simulation) => {
                self.row.memory_bytes = simulation.memory_bytes();
                self.row.policy_writes = Some(simulation.policy_writes());
                simulation.counts()
            }
            Work::AtTheEnd => {
                let requests = &kept[self.unit];
                self.row.memory_bytes = 16 * requests.len() as u64;
                NextUses::of(requests).belady(requests, self.row.size_blocks)
            }
        };
        if matches!(self.work, Work::AtTheEnd) {
            self.took += start.elapsed();
        }
        self.row.requests = counts.accesses.requests();
        self.row.counts = counts;
        self.row.wall_s = self.took.as_secs_f64();
        if self.row.wall_s > 0.0 {
            self.row.requests_per_wall_s = (self.row.requests as f64 / self.row.wall_s).round();
        }
        self.row.reading_wall_s = reading.as_secs_f64();
        self.row.partial = is_partial;
        self.row
    }
}

/// Simulates every case over one reading of the workload; rows come in the order of the cases.
pub fn simulate(
    workload: &str,
    reader: BoxReader,
    cases: &[Case],
    options: &Options<'_>,
) -> Result<Vec<Row>> {
    let mut units: Vec<Unit> = cases.iter().map(|case| case.block_bytes).collect();
    units.sort_unstable();
    units.dedup();
    let runs = cases
        .iter()
        .map(|case| {
            let work = match &case.replacement {
                Replacement::Belady => Work::AtTheEnd,
                Replacement::Policy(spec) => {
                    let made = simulation(spec, case.slots, case.map, options.seed);
                    Work::Online(made.map_err(|expected| bad_value("size", case.slots, expected))?)
                }
            };
            let unit = units.binary_search(&case.block_bytes).expect("it is among them");
            Ok(Run { row: case.row(workload, options.seed), unit, work, took: Duration::ZERO })
        })
        .collect::<Result<Vec<Run>>>()?;
    let keeps: Vec<bool> = (0..units.len())
        .map(|unit| runs.iter().any(|run| run.unit == unit && matches!(run.work, Work::AtTheEnd)))
        .collect();
    let mut feed = Feed::new(reader, workload, &units);
    pool(options.jobs)?.install(|| drive(&mut feed, runs, &keeps, options)).map_err(RunError::Trace)
}

/// Reads a chunk ahead of the one that is simulated.
fn drive(
    feed: &mut Feed,
    mut runs: Vec<Run>,
    keeps: &[bool],
    options: &Options<'_>,
) -> Result<Vec<Row>, TraceError> {
    let mut reading = Duration::ZERO;
    let mut read = |feed: &mut Feed, chunks: &mut [Vec<Request>]| {
        let start = Instant::now();
        let outcome = feed.fill(chunks);
        reading += start.elapsed();
        outcome
    };
    let mut now = vec![Vec::new(); keeps.len()];
    let mut next = now.clone();
    let mut kept: Vec<Vec<Request>> = now.clone();
    read(feed, &mut now)?;
    let mut is_partial = false;
    while now.iter().any(|chunk| !chunk.is_empty()) {
        for ((kept, chunk), keep) in kept.iter_mut().zip(&now).zip(keeps) {
            if *keep {
                kept.extend_from_slice(chunk);
            }
        }
        let (outcome, ()) =
            rayon::join(|| read(feed, &mut next), || runs.par_iter_mut().for_each(|run| run.feed(&now)));
        outcome?;
        std::mem::swap(&mut now, &mut next);
        (options.progress)(feed.progress());
        if options.is_stopped() {
            is_partial = true;
            break;
        }
    }
    Ok(runs.into_par_iter().map(|run| run.finish(&kept, reading, is_partial)).collect())
}
