//! One configuration with several seeds, as one run.

use crate::config::StackConfig;
use crate::error::RunError;
use nandscape_report::Run;
use nandscape_sim::result::SeedsResult;

/// Each configuration with each seed, the seeds of a configuration beside each other.
pub(crate) fn seeded(configs: &[&StackConfig], seeds: &[u64]) -> Result<Vec<StackConfig>, RunError> {
    let each = |config: &&StackConfig| seeds.iter().map(|seed| config.with_seed(*seed)).collect::<Vec<_>>();
    Ok(configs.iter().flat_map(each).collect::<Result<_, _>>()?)
}

/// Makes one run of so many neighbours each.
pub(crate) fn joined(runs: Vec<Run>, seeds: usize) -> Vec<Run> {
    let mut runs = runs.into_iter();
    let next = || Some(runs.by_ref().take(seeds).collect::<Vec<_>>()).filter(|own| !own.is_empty());
    std::iter::from_fn(next).map(with_spread).collect()
}

/// The run with the median write amplification of runs that differ in their seed, with the spread of all. If
/// one failed or was interrupted it is that one, without a spread.
pub(crate) fn with_spread(mut runs: Vec<Run>) -> Run {
    assert!(!runs.is_empty(), "a configuration has a seed");
    if runs.len() == 1 {
        return runs.swap_remove(0);
    }
    if let Some(at) = runs.iter().position(|run| !run.is_complete()) {
        let count = runs.len();
        let mut run = runs.swap_remove(at);
        run.result.notes.push(format!("this is seed {}, one of {count} that were run", run.result.run.seed));
        return run;
    }
    let seeds = SeedsResult::new(&runs.iter().map(|run| &run.result).collect::<Vec<_>>());
    let count = runs.len();
    let requests = |run: &Run| run.result.run.workload_hash.clone();
    let are_one = runs.iter().all(|run| requests(run) == requests(&runs[0]))
        && seeds.spread.values().all(|spread| spread.min.to_bits() == spread.max.to_bits());
    let key = |run: &Run| (run.result.waf.bytes.unwrap_or(0.0), run.result.speed.time.simulated_ns);
    runs.sort_by(|a, b| key(a).partial_cmp(&key(b)).expect("figures are numbers"));
    let mut run = runs.swap_remove((runs.len() - 1) / 2);
    run.result.run.seeds = Some(seeds);
    if are_one {
        run.result.notes.push(format!(
            "all {count} seeds gave the same figures: nothing of this run is drawn, so ranges over seeds say nothing"
        ));
    }
    run
}
