//! `nandscape cache simulate`.

use super::unit::{BLOCK_BYTES, block, open, size};
use crate::args::SimulateArgs;
use crate::console::{Console, Failure, Result, STOP, stop_on_ctrl_c};
use nandscape_cache::Design;
use nandscape_cache::presets::PRESETS;
use nandscape_core::{ParamError, registry};
use nandscape_experiments::miss_ratio::{CacheSize, Case, Options, Replacement, footprint, simulate};
use nandscape_report::render_simulations_text;
use std::collections::BTreeMap;

pub fn run(args: &SimulateArgs, console: Console) -> Result<()> {
    stop_on_ctrl_c()?;
    let bar = console.progress("simulate");
    let options = Options {
        seed: args.unit.seed,
        jobs: args.jobs.map(usize::from),
        stop: Some(&STOP),
        progress: &|progress| bar.show(progress),
    };
    let cases = cases(args, &options, console)?;
    let reader = open(&args.workload, &args.unit)?;
    let rows = simulate(&args.workload, reader, &cases, &options);
    bar.finish();
    let rows = rows?;
    if args.json {
        console.json(&rows)?;
    } else {
        console.result(&render_simulations_text(&rows, console.width()))?;
    }
    if rows.iter().any(|row| row.partial) {
        return Err(Failure::Interrupted("the result is that of the requests read until then".to_owned()));
    }
    Ok(())
}

/// Policies in the order that was typed, each with all sizes.
fn cases(args: &SimulateArgs, options: &Options<'_>, console: Console) -> Result<Vec<Case>> {
    let typed = block(&args.unit)?;
    let mut footprints = BTreeMap::new();
    let mut slots = |text: &String, block: Option<u64>| -> Result<u32> {
        let size = size(text, block)?;
        if let CacheSize::Share(_) = size
            && !footprints.contains_key(&block)
        {
            if args.workload == "-" {
                return Err(Failure::usage(format!(
                    "--size {text}: standard input can be read only once: expected bytes such as 64MiB or blocks such \
                     as 10000b"
                )));
            }
            let reader = open(&args.workload, &args.unit)?;
            footprints.insert(block, footprint(&args.workload, reader, block, options)?);
        }
        Ok(size.blocks(footprints.get(&block).copied().unwrap_or(0)))
    };
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
    let default = [PRESETS[0].info.name.to_owned()];
    let presets = if args.preset.is_empty() { &default[..] } else { &args.preset };
    for name in presets {
        let design = design(name.trim(), typed).map_err(Failure::usage)?;
        let block_bytes = Some(design.block_bytes.into());
        for size in &args.size {
            let wanted = slots(size, block_bytes)?;
            // What does not fill a set is left out, as the designs do.
            let slots = wanted - wanted % design.map.ways(wanted).max(1);
            if slots != wanted {
                let ways = design.map.ways(slots);
                console.note(&format!(
                    "{name}: {wanted} blocks are no whole sets of {ways} ways: {slots} are used"
                ));
            }
            cases.push(Case {
                eviction: design.eviction.info().name.to_owned(),
                replacement: Replacement::Policy(design.eviction.clone()),
                preset: Some(design.preset.info.name.to_owned()),
                map: design.map,
                block_bytes,
                slots,
            });
        }
    }
    Ok(cases)
}

fn design(name: &str, block_bytes: Option<u64>) -> Result<Design, ParamError> {
    let preset = registry::find("cache preset", name, PRESETS, |preset| &preset.info)?;
    let (min, max) = preset.block_range;
    let block_bytes = block_bytes.unwrap_or(preset.block_bytes.into());
    if !(u64::from(min)..=u64::from(max)).contains(&block_bytes) {
        let expected = format!("a power of two from {min} to {max} for preset {name}");
        return Err(ParamError::bad("block", block_bytes, expected));
    }
    let keys = [("preset", name.to_owned()), ("block", block_bytes.to_string())];
    Design::parse("", &keys.map(|(key, value)| (key.to_owned(), value)).into())
}
