//! `nandscape reproduce`.

use super::{write, write_report};
use crate::args::ReproduceArgs;
use crate::console::{Console, Failure, Result, STOP, stop_on_ctrl_c};
use nandscape_core::registry;
use nandscape_experiments::reproduce::{Context, REPRODUCTIONS, Reproduction};
use nandscape_report::{ReportContext, over_seeds, render_reproduction_csv, render_reproduction_text};
use std::sync::atomic::Ordering;

/// Where no seed is given.
const SEED: u64 = 42;

pub fn run(args: &ReproduceArgs, console: Console) -> Result<()> {
    if args.list {
        let lines: Vec<String> =
            REPRODUCTIONS.iter().map(|r| format!("{:18} {}", r.info.name, r.info.summary)).collect();
        return console.result(&lines.join("\n"));
    }
    let mut wanted: Vec<&Reproduction> = if args.ids.is_empty() {
        REPRODUCTIONS.iter().collect()
    } else {
        args.ids.iter().map(|id| find(id)).collect::<Result<_, _>>()?
    };
    stop_on_ctrl_c()?;
    let seeds = args.how.seed.as_ref().map_or(&[SEED][..], |seeds| &seeds.0);
    let contexts: Vec<Context<'_>> = seeds
        .iter()
        .map(|seed| {
            let mut context = Context::new(*seed, Some(&STOP));
            (context.is_quick, context.is_sabotaged) = (args.how.quick, args.how.sabotage);
            context
        })
        .collect();
    if args.how.sabotage {
        if seeds.len() > 1 {
            return Err(Failure::usage("--sabotage with several seeds: expected one"));
        }
        if let Some(other) = wanted.iter().find(|other| !args.ids.is_empty() && other.sabotage.is_none()) {
            return Err(Failure::usage(format!("{}: there is no way to spoil it yet", other.info.name)));
        }
        wanted.retain(|reproduction| reproduction.sabotage.is_some());
    }
    let mut rows = Vec::new();
    let mut survivors = Vec::new();
    for reproduction in wanted {
        let spoiled = reproduction.sabotage.filter(|_| args.how.sabotage);
        let how = spoiled.map_or_else(String::new, |sabotage| format!(" spoiled: {}", sabotage.what));
        console.note(&format!("{}{how} ...", reproduction.info.name));
        let mut runs = Vec::new();
        for context in &contexts {
            if seeds.len() > 1 {
                console.note(&format!("  seed {} ...", context.seed));
            }
            runs.push((context.seed, reproduction.run(context)?));
        }
        let run = over_seeds(&runs)
            .map_err(|error| Failure::run(format!("{}: {error}", reproduction.info.name)))?;
        survivors.extend(spoiled.iter().flat_map(|sabotage| sabotage.survivors(&run)));
        rows.extend(run);
        if STOP.load(Ordering::Relaxed) {
            return Err(Failure::Interrupted(String::new()));
        }
    }
    if args.how.quick {
        console.note("--quick: figures of smaller devices and shorter loads");
    }
    let context = ReportContext {
        title: "Published experiments, repeated".to_owned(),
        reproduction: rows.clone(),
        ..ReportContext::default()
    };
    write_report(args.report.as_deref(), &[], context, console)?;
    if let Some(path) = &args.csv {
        write(path, render_reproduction_csv(&rows).as_bytes())?;
    }
    if args.json {
        console.json(&rows)
    } else {
        console.result(&render_reproduction_text(&rows, console.width()))
    }?;
    if survivors.is_empty() {
        return Ok(());
    }
    Err(Failure::run(format!("spoiled, and kept all the same: {}", survivors.join("; "))))
}

fn find(id: &str) -> Result<&'static Reproduction> {
    registry::find("reproduction", id, &REPRODUCTIONS[..], |r| &r.info).map_err(Failure::usage)
}
