//! `nandscape neighbours`.

use super::typed;
use crate::args::NeighboursArgs;
use crate::console::{Console, Failure, Result, STOP, stop_on_ctrl_c};
use nandscape_core::units;
use nandscape_experiments::neighbours::{SiteOptions, noisy_neighbour, render_cases};
use nandscape_jobs::JobFile;
use nandscape_stack::RunError;

pub fn run(args: &NeighboursArgs, console: Console) -> Result<()> {
    if args.stack.precondition.is_some() {
        return Err(Failure::usage(
            "--precondition: expected none, since every namespace is filled and the writers wear the device in",
        ));
    }
    if !args.stack.several_seeds().is_empty() {
        return Err(Failure::usage("--seed: expected one seed; several are for replay and compare"));
    }
    let alone_ns = units::parse_time_ns(&args.alone)
        .ok()
        .filter(|ns| *ns > 0)
        .ok_or_else(|| Failure::usage(format!("--alone '{}': expected a time such as 500ms", args.alone)))?;
    let mut typed = typed(&args.stack, args.ftl.as_deref())?;
    let file = JobFile::read(&args.jobs).map_err(RunError::from)?;
    // A traditional layout has one set, so its namespaces must be said.
    if !["count", "sizes", "sets"].iter().any(|key| typed.has(&format!("namespaces.{key}"))) {
        typed.set("namespaces.count", "2")?;
    }
    stop_on_ctrl_c()?;
    let layouts: Vec<&str> = args.layouts.iter().map(String::as_str).collect();
    let options = SiteOptions { stop: Some(&STOP), ..SiteOptions::default() };
    let cases = noisy_neighbour(&typed, &file, &args.victim, &layouts, alone_ns, options)?;
    if args.json { console.json(&cases) } else { console.result(&render_cases(&cases)) }
}
