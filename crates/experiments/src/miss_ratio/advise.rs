//! Miss-ratio curves of many policies over one reading of a workload.

use super::feed::Feed;
use super::simulate::Replacement;
use super::{CacheSize, Options, bad_value};
use crate::Result;
use nandscape_policies::Map;
use nandscape_policies::eviction::EVICTIONS;
use nandscape_policies::simulate::advice::{Advice, Sample, advise as suggest, sizes as default_sizes};
use nandscape_policies::simulate::curve::{Curve, Point};
use nandscape_policies::simulate::{
    Accesses, BELADY, NextUses, Request, Sampler, StackDistances, simulation,
};
use nandscape_sim::Progress;
use nandscape_stack::{ConfigError, RunError, pool};
use nandscape_trace::BoxReader;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Blocks of a simulated cache over a sample below which an estimate says little.
const SAMPLE_SLOTS_MIN: f64 = 64.0;

/// What to find out.
#[derive(Clone, Debug)]
pub struct AdviseCase {
    /// Policies by name, with parameters where wanted; empty for all that there are.
    pub evictions: Vec<String>,
    /// Bytes of a block, a power of two; `None` counts every request as one object.
    pub block_bytes: Option<u64>,
    /// Sizes; empty for a choice that fits the workload.
    pub sizes: Vec<CacheSize>,
    /// Share of the blocks that is looked at; 1 for exact counts.
    pub rate: f64,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Advised {
    /// The document.
    pub advice: Advice,
    /// The LRU curve at every size at which it falls.
    pub lru: Vec<Point>,
}

/// The stream, or the sample of it, and its LRU curve.
struct Stream {
    requests: Vec<Request>,
    distances: StackDistances,
    /// Every read and write, as a miss.
    all: Accesses,
    duration_s: Option<f64>,
}

/// Reads the workload, then simulates every policy at every size. Memory: 8 B a request of the sample, 16 B
/// with Belady's policy.
pub fn advise(
    workload: &str,
    reader: BoxReader,
    case: &AdviseCase,
    options: &Options<'_>,
) -> Result<Advised> {
    let start = Instant::now();
    let names: Vec<String> = if case.evictions.is_empty() {
        EVICTIONS.iter().chain([&BELADY]).map(|info| info.name.to_owned()).collect()
    } else {
        case.evictions.iter().map(|name| name.trim().to_owned()).collect()
    };
    let policies: Vec<Replacement> = names
        .iter()
        .map(|name| Replacement::parse(name))
        .collect::<Result<_, _>>()
        .map_err(ConfigError::from)?;
    let sampler =
        Sampler::new(case.rate, options.seed).map_err(|expected| bad_value("sample", case.rate, expected))?;
    let pool = pool(options.jobs)?;
    let stream = read(workload, reader, case, sampler, options)?;
    let block = case.block_bytes.unwrap_or(0);
    let lru_size = (stream.distances.size_max() as f64 / case.rate).round() as u64;
    let sizes: Vec<u64> = if case.sizes.is_empty() {
        let smallest = if case.rate < 1.0 { (SAMPLE_SLOTS_MIN / case.rate) as u64 } else { 1 };
        default_sizes(lru_size.min(1 << 30), smallest)
    } else {
        let footprint = (stream.distances.blocks() as f64 / case.rate).round() as u64;
        let mut sizes: Vec<u64> = case.sizes.iter().map(|size| size.blocks(footprint).into()).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    let curves = pool.install(|| curves(&stream, &names, &policies, &sizes, sampler, block, options))?;
    let mut base = Advice::of_accesses(workload, block, stream.all);
    let up = |n: u64| (n as f64 / case.rate).round() as u64;
    base.blocks = up(stream.distances.blocks());
    base.duration_s = stream.duration_s;
    base.first_misses = up(stream.distances.first_uses());
    base.sample = (case.rate < 1.0).then(|| Sample {
        rate: case.rate,
        seed: options.seed,
        requests: stream.requests.len() as u64,
        blocks: stream.distances.blocks(),
    });
    base.curves = curves;
    let lru = lru_steps(&stream, sampler, block);
    let mut advice = suggest(base, &lru);
    advice.wall_s = start.elapsed().as_secs_f64();
    Ok(Advised { advice, lru })
}

fn read(
    workload: &str,
    reader: BoxReader,
    case: &AdviseCase,
    sampler: Sampler,
    options: &Options<'_>,
) -> Result<Stream> {
    let mut feed = Feed::new(reader, workload, &[case.block_bytes]);
    let mut stream = Stream {
        requests: Vec::new(),
        distances: StackDistances::new(),
        all: Accesses::default(),
        duration_s: None,
    };
    let mut chunk = vec![Vec::new()];
    loop {
        feed.fill(&mut chunk).map_err(RunError::Trace)?;
        if chunk[0].is_empty() {
            stream.duration_s = feed.duration_s();
            return Ok(stream);
        }
        for request in &chunk[0] {
            stream.all.miss(*request);
        }
        chunk[0].retain(|request| sampler.takes(*request));
        stream.distances.feed(&chunk[0]);
        stream.requests.extend_from_slice(&chunk[0]);
        (options.progress)(feed.progress());
        if options.is_stopped() {
            return Err(RunError::Interrupted);
        }
    }
}

fn curves(
    stream: &Stream,
    names: &[String],
    policies: &[Replacement],
    sizes: &[u64],
    sampler: Sampler,
    block: u64,
    options: &Options<'_>,
) -> Result<Vec<Curve>> {
    let scaled: Vec<u32> = sizes
        .iter()
        .map(|size| {
            sampler.scaled(*size).ok_or_else(|| {
                let rate = sampler.rate();
                let least = (1.0 / rate).ceil();
                bad_value("size", size, format!("at least {least} blocks with a sample of {rate}"))
            })
        })
        .collect::<Result<_, _>>()?;
    let next = policies
        .iter()
        .any(|policy| matches!(policy, Replacement::Belady))
        .then(|| NextUses::of(&stream.requests));
    let lru = stream.distances.at(&scaled.iter().map(|slots| u64::from(*slots)).collect::<Vec<_>>());
    let tasks: Vec<(usize, usize)> =
        (0..policies.len()).flat_map(|policy| (0..sizes.len()).map(move |size| (policy, size))).collect();
    let done = AtomicU64::new(0);
    let run = |&(policy, size): &(usize, usize)| -> Result<Point> {
        if options.is_stopped() {
            return Err(RunError::Interrupted);
        }
        let counts = match &policies[policy] {
            Replacement::Belady => next.as_ref().expect("made for it").belady(&stream.requests, scaled[size]),
            Replacement::Policy(spec) if spec.info().name == "lru" => lru[size],
            Replacement::Policy(spec) => {
                let mut cache = simulation(spec, scaled[size], Map::Full, options.seed)
                    .map_err(|expected| bad_value("size", scaled[size], expected))?;
                cache.feed(&stream.requests);
                cache.counts()
            }
        };
        let all = tasks.len() as u64 * stream.requests.len() as u64;
        let requests = (done.fetch_add(1, Ordering::Relaxed) + 1) * stream.requests.len() as u64;
        (options.progress)(Progress { preconditioning: false, requests, expected: Some(all) });
        Ok(Point::new(sizes[size], block, sampler.corrected(counts.accesses, stream.all)))
    };
    let points: Vec<Point> = tasks.par_iter().map(run).collect::<Result<_, _>>()?;
    let curve = |(name, points): (&String, &[Point])| Curve {
        eviction: name.clone(),
        points: points.to_vec(),
        knee: None,
    };
    Ok(names.iter().zip(points.chunks(sizes.len())).map(curve).collect())
}

/// The LRU curve at every size at which it falls; of a sample, at the sizes that its steps stand for.
fn lru_steps(stream: &Stream, sampler: Sampler, block: u64) -> Vec<Point> {
    let steps = stream.distances.steps();
    let size = |step: u64| (step as f64 / sampler.rate()).round() as u64;
    stream
        .distances
        .at(&steps)
        .iter()
        .zip(&steps)
        .map(|(counts, step)| Point::new(size(*step), block, sampler.corrected(counts.accesses, stream.all)))
        .collect()
}
