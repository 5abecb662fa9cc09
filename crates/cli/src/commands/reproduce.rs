//! `nandscape reproduce`.

use super::{write, write_report};
use crate::args::ReproduceArgs;
use crate::console::{Console, Failure, Result, STOP, stop_on_ctrl_c};
use nandscape_core::registry;
use nandscape_experiments::reproduce::{Context, LIVE, REPRODUCTIONS, Reproduction, run_all};
use nandscape_report::{
    ReportContext, over_seeds, render_reproduction_csv, render_reproduction_markdown,
    render_reproduction_text,
};
use std::sync::atomic::Ordering;

/// Where no seed is given.
const SEED: u64 = 42;

pub fn run(args: &ReproduceArgs, console: Console) -> Result<()> {
    if args.list {
        return console.result(&super::list::reproductions());
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
    let spoiled = |one: &Reproduction| one.sabotage.filter(|_| args.how.sabotage);
    let begins = |one: &Reproduction| {
        let how = spoiled(one).map_or_else(String::new, |sabotage| format!(" spoiled: {}", sabotage.what));
        console.note(&format!("{}{how} ...", one.info.name));
    };
    for (reproduction, runs) in wanted.iter().zip(run_all(&wanted, &contexts, begins)?) {
        let run = over_seeds(&runs)
            .map_err(|error| Failure::run(format!("{}: {error}", reproduction.info.name)))?;
        survivors.extend(spoiled(reproduction).iter().flat_map(|sabotage| sabotage.survivors(&run)));
        rows.extend(run);
    }
    if STOP.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted(String::new()));
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
    if let Some(path) = &args.markdown {
        let page = format!("{}{}", head(args, seeds), render_reproduction_markdown(&rows));
        write(path, format!("{}\n", page.trim_end()).as_bytes())?;
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

/// What a page begins with: what the figures are, and how they were made.
fn head(args: &ReproduceArgs, seeds: &[u64]) -> String {
    let names = match args.ids.as_slice() {
        [] => String::new(),
        few if few.len() <= 4 => format!(" {}", few.join(" ")),
        _ => " NAME ...".to_owned(),
    };
    let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
    let scale = if args.how.quick { " --quick" } else { "" };
    let spoiled = if args.how.sabotage { " --sabotage" } else { "" };
    format!(
        "# Published experiments, repeated\n\n\
         Written by `nandscape reproduce{names} --seed {}{scale}{spoiled} --markdown FILE` (version {}).\n\n\
         `measured` is the mean over these seeds, `min` and `max` their range; without a range the seed changes \
         nothing.\n\
         Measured over published is in brackets where the figure follows from the model. `kind`: it does \
         (measured),\na parameter was set so that it comes out (calibrated), or the published value was put in \
         (input).\n`nandscape reproduce NAME` has the note of each row.\n\n",
        seeds.join(","),
        env!("CARGO_PKG_VERSION"),
    )
}

fn find(id: &str) -> Result<&'static Reproduction> {
    if let Some(live) = LIVE.iter().find(|live| live.info.name == id) {
        let what = "is run by a command of its own";
        return Err(Failure::usage(format!("{id} {what}, in a checkout of the sources: {}", live.command)));
    }
    registry::find("reproduction", id, &REPRODUCTIONS[..], |r| &r.info).map_err(Failure::usage)
}
