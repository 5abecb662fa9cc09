//! Runs whose differences are too small to choose by.

use nandscape_report::Run;
use nandscape_sim::RunResult;
use nandscape_sim::result::TrustNote;
use nandscape_sim::trust::ALIKE;

/// Figures that differ by less than this share are alike.
const SHARE: f64 = 0.005;

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
    let is_close = |(a, b): (f64, f64)| (a - b).abs() <= SHARE * a.abs().max(b.abs());
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
            SHARE * 100.0
        );
        for index in alike {
            told[index] = true;
            let check = ALIKE.name.to_owned();
            runs[index].result.trust.push(TrustNote { check, message: message.clone() });
        }
    }
}
