//! Checks that need more than a run: its configuration, or other runs whose differences from it are too small
//! to choose by.

use crate::StackConfig;
use nandscape_ftl::page_map;
use nandscape_report::Run;
use nandscape_sim::RunResult;
use nandscape_sim::result::TrustNote;
use nandscape_sim::trust::{ALIKE, ALIKE_SHARE, FEW_BLOCKS, OTHER_REQUESTS, WORN};

/// Spare blocks of a plane below which a scaled device is slower than the one it stands for: the blocks that
/// are open and those that wait to be erased are then most of them.
const FEWEST_SPARE: f64 = 8.0;

/// Says that a run, with what came before it, spends the device.
pub fn tell_worn(config: &StackConfig, result: &mut RunResult) {
    let wear = |set: usize| result.sets.get(set).map_or(&result.wear, |set| &set.wear);
    let ages = config.partition.ages.iter().enumerate();
    let worst = ages.map(|(set, age)| (u64::from(*age) + wear(set).erases_max, *age, wear(set).erases_mean));
    let Some((most, age, mean)) = worst.max_by_key(|(most, ..)| *most) else { return };
    let Some(endurance) = result.lifetime.endurance.map(u64::from).filter(|endurance| most * 2 >= *endurance)
    else {
        return;
    };
    let before = if age == 0 { String::new() } else { format!(" ({age} before the run: sets.age)") };
    let message = format!(
        "a block was erased {most} times{before}, {:.0} in the mean, and lasts {endurance}: this run wears the device out; when \
         blocks are spent, room and then writes fail",
        f64::from(age) + mean
    );
    result.trust.push(TrustNote { check: WORN.name.to_owned(), message });
}

/// Says of a scaled device that it has too few blocks to stand for the whole one.
pub fn tell_few_blocks(config: &StackConfig, result: &mut RunResult) {
    let cost = &result.cost;
    let is_scaled = config.value("device.scale").is_some_and(|scale| scale.trim() != "1/1");
    if !is_scaled || result.host.writes == 0 || cost.op_ratio <= 0.0 || cost.logical_pages == 0 {
        return;
    }
    let share = cost.op_ratio / (1.0 + cost.op_ratio);
    if let Some(message) = few_spare(config, result, share).or_else(|| few_open(config, share)) {
        result.trust.push(TrustNote { check: FEW_BLOCKS.name.to_owned(), message });
    }
}

/// Of a device on which writes wait for blocks, a share of which is spare.
fn few_spare(config: &StackConfig, result: &RunResult, share: f64) -> Option<String> {
    let blocks = config.seen_geometry().blocks_per_plane;
    let spare = share * f64::from(blocks);
    // Behind an SLC cache writes are slower before anything is erased.
    let is_past_cache = result.layer.slc.is_some_and(|slc| slc.host_pages < result.host.write_pages);
    let is_strained = result.flash.erases > 0 || is_past_cache;
    (is_strained && spare < FEWEST_SPARE).then(|| {
        format!(
            "--scale left {blocks} blocks a plane, {spare:.1} of them spare: too few to be open and erased in time, so that \
             writes are slower and write amplification is higher than on the whole device; {MORE}"
        )
    })
}

/// Of a device whose writes go to fewer dies than it has, since few blocks are open.
fn few_open(config: &StackConfig, share: f64) -> Option<String> {
    if config.ftl != page_map::INFO.name {
        return None;
    }
    let geometry = config.seen_geometry();
    let (spare, dies) = ((share * f64::from(geometry.blocks())) as u64, u64::from(geometry.units()));
    let open = page_map::open_by_rule(&config.ftl_params, spare, dies)?;
    (open < dies).then(|| {
        format!(
            "--scale left {spare} spare blocks, and a sixteenth of them is open at once: a log of the layer writes to {open} of \
             {dies} dies, so that writes are slower than on the whole device; {MORE}"
        )
    })
}

/// How a scaled device has more blocks.
const MORE: &str =
    "--fit of a trace, or fewer pages a block (device.pages_per_block) with a larger scale, keep more";

/// Says of a comparison of block devices with stores of files that a limit cuts their requests apart.
pub fn tell_limit(configs: &[&StackConfig], runs: &mut [Run]) {
    let stores = configs.iter().filter(|config| config.stores_objects()).count();
    let Some(limit) = configs.first().and_then(|config| config.value("workload.limit")) else { return };
    if stores == 0 || stores == configs.len() {
        return;
    }
    let message = format!(
        "--limit {limit} counts requests of block devices here and those of stores of files there, of which a recording has \
         other numbers: these runs are not of the same part of it, and their figures cannot be compared"
    );
    for run in runs {
        run.result.trust.push(TrustNote { check: OTHER_REQUESTS.name.to_owned(), message: message.clone() });
    }
}

/// What runs are compared by.
fn figures(result: &RunResult) -> [f64; 5] {
    [
        result.waf.bytes.unwrap_or(0.0),
        result.flash.erases as f64,
        result.speed.time.simulated_ns as f64,
        result.latency_ns.read.p99 as f64,
        result.latency_ns.write.p99 as f64,
    ]
}

fn are_alike(a: &RunResult, b: &RunResult) -> bool {
    let is_close = |(a, b): (f64, f64)| (a - b).abs() <= ALIKE_SHARE * a.abs().max(b.abs());
    figures(a).into_iter().zip(figures(b)).all(is_close)
}

/// Says of runs of one workload which others they cannot be told from.
pub fn tell_alike(runs: &mut [Run]) {
    let mut told = vec![false; runs.len()];
    for first in 0..runs.len() {
        if told[first] || !runs[first].is_complete() {
            continue;
        }
        let is_like_first = |other: &usize| {
            let (a, b) = (&runs[first].result, &runs[*other].result);
            runs[*other].is_complete() && a.workload.spec == b.workload.spec && are_alike(a, b)
        };
        let alike: Vec<usize> = (first..runs.len()).filter(is_like_first).collect();
        if alike.len() < 2 {
            continue;
        }
        let names: Vec<&str> = alike.iter().map(|index| runs[*index].name()).collect();
        let message = format!(
            "{} differ by less than {} % in write amplification, erases, time and 99th percentiles: this workload on \
             this device does not tell them apart",
            names.join(", "),
            ALIKE_SHARE * 100.0
        );
        for index in alike {
            told[index] = true;
            let check = ALIKE.name.to_owned();
            runs[index].result.trust.push(TrustNote { check, message: message.clone() });
        }
    }
}
