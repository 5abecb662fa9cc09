//! How much of the gap between no streams and the oracle the policy `death-time` closes.

use super::super::recordings;
use super::load::{Load, OTHERS, RECORDINGS, Recording};
use super::measure::{FINE, STREAMS, Shape, measure};
use super::{Context, Done, Table};
use crate::Result;
use rayon::prelude::*;

const OWN: &str = "death-time";
const OCCUPANCIES: [f64; 2] = [0.7, 0.9];
const FEW: u16 = 4;
/// Where the oracle gains less over no streams, a share of that says nothing.
const LEAST_GAP: f64 = 0.03;

/// Shares of one recording, and the greatest loss against no streams.
struct Outcome {
    shares: Vec<f64>,
    loss: f64,
}

pub(super) fn rows(context: &Context<'_>, out: &mut Table) -> Done {
    let mut outcomes = Vec::new();
    for recording in RECORDINGS.iter().chain(&OTHERS) {
        context.check_stop()?;
        if let Ok(path) = recordings::find(recording.file) {
            let mut all = Outcome { shares: Vec::new(), loss: 0.0 };
            for (mount, format) in recording.mounts() {
                compare(&Load::read(&path, *format)?, recording, mount, &mut all, out)?;
            }
            outcomes.push(all);
        }
    }
    let means: Vec<f64> = outcomes
        .iter()
        .filter(|all| !all.shares.is_empty())
        .map(|all| all.shares.iter().sum::<f64>() / all.shares.len() as f64)
        .collect();
    if means.is_empty() {
        return Ok(());
    }
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let loss = outcomes.iter().map(|all| all.loss).fold(0.0, f64::max);
    out.row("", format!("{OWN}: mean share of the gap over recordings"))
        .figure("%", mean * 100.0)
        .note(format!("of {} recordings with a gap of 3 % or more", means.len()));
    out.row("", format!("{OWN}: greatest loss against no streams")).figure("%", loss * 100.0).note("");
    Ok(())
}

fn compare(
    load: &Load,
    recording: &Recording,
    mount: &str,
    all: &mut Outcome,
    out: &mut Table,
) -> Result<()> {
    for occupancy in OCCUPANCIES {
        let runs = [("none", STREAMS), (OWN, FEW), ("oracle", FEW), (OWN, STREAMS), ("oracle", STREAMS)];
        let wafs = runs
            .into_par_iter()
            .map(
                |(policy, streams)| Ok(measure(load, Shape { streams, ..FINE }, occupancy, policy, &[])?.waf),
            )
            .collect::<Result<Vec<f64>>>()?;
        let none = wafs[0];
        for (streams, pair) in [FEW, STREAMS].into_iter().zip(wafs[1..].chunks(2)) {
            let (own, oracle) = (pair[0], pair[1]);
            all.loss = all.loss.max(own / none - 1.0);
            let name = format!("{} {:.0} %{mount}, {streams} streams", recording.name, occupancy * 100.0);
            let note = format!("none {none:.3}, {OWN} {own:.3}, oracle {oracle:.3}");
            let has_gap = (none - oracle) / none >= LEAST_GAP;
            let share = if has_gap { (none - own) / (none - oracle) } else { f64::NAN };
            if has_gap {
                all.shares.push(share);
            }
            out.row("", format!("{name}: share of the gap closed by {OWN}"))
                .figure("%", share * 100.0)
                .note(note);
        }
    }
    Ok(())
}
