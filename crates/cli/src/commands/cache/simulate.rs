//! `nandscape cache simulate`.

use super::unit::{BLOCK_BYTES, block, open, slots};
use crate::args::SimulateArgs;
use crate::console::{Console, Failure, STOP, stop_on_ctrl_c};
use nandscape_experiments::miss_ratio::{Case, SimulateOptions, simulate};
use nandscape_report::render_simulations_text;

/// Simulates every policy or design at every size.
pub fn run(args: &SimulateArgs, console: Console) -> Result<(), Failure> {
    let cases = cases(args, console)?;
    let reader = open(&args.workload, &args.unit)?;
    stop_on_ctrl_c()?;
    let bar = console.progress("simulate");
    let options = SimulateOptions {
        seed: args.unit.seed,
        jobs: args.jobs.map(usize::from),
        stop: Some(&STOP),
        progress: &|progress| bar.show(progress),
    };
    let rows = simulate(&args.workload, reader, &cases, &options);
    bar.finish();
    let rows = rows?;
    if args.json {
        console.result(&serde_json::to_string_pretty(&rows).expect("plain data"))?;
    } else {
        console.result(&render_simulations_text(&rows))?;
    }
    if rows.iter().any(|row| row.partial) {
        console.error("interrupted: the result is partial and marked so");
        return Err(Failure::Reported);
    }
    Ok(())
}

/// Policies in the order that was typed, each with all sizes.
fn cases(args: &SimulateArgs, console: Console) -> Result<Vec<Case>, Failure> {
    let typed = block(&args.unit)?;
    let mut cases = Vec::new();
    for text in &args.eviction {
        let unit = if args.unit.objects { None } else { Some(typed.unwrap_or(BLOCK_BYTES)) };
        for size in &args.size {
            cases.push(Case::of_policy(text, unit, slots(size, unit)?).map_err(Failure::usage)?);
        }
    }
    if !args.eviction.is_empty() {
        return Ok(cases);
    }
    if args.unit.objects {
        return Err(Failure::usage("--objects: expected --eviction, since designs cache blocks"));
    }
    let default = [nandscape_cache::presets::PRESETS[0].info.name.to_owned()];
    let presets = if args.preset.is_empty() { &default[..] } else { &args.preset };
    for name in presets {
        let unit = typed.map_or_else(|| Case::preset_block(name), Ok).map_err(Failure::usage)?;
        for size in &args.size {
            let wanted = slots(size, Some(unit))?;
            let case = Case::of_preset(name, unit, wanted).map_err(Failure::usage)?;
            if case.slots != wanted {
                let ways = case.map.ways(case.slots);
                console.note(&format!(
                    "{name}: {wanted} blocks are no whole sets of {ways} ways: {} are used",
                    case.slots
                ));
            }
            cases.push(case);
        }
    }
    Ok(cases)
}
