//! `nandscape reproduce`.

use super::{write, write_report};
use crate::args::ReproduceArgs;
use crate::console::{Console, Failure, STOP, stop_on_ctrl_c};
use nandscape_core::registry::unknown_name;
use nandscape_experiments::reproduce::{Context, REPRODUCTIONS, Reproduction};
use nandscape_report::{ReportContext, render_reproduction_csv, render_reproduction_text};
use std::sync::atomic::Ordering;

/// Repeats published experiments.
pub fn run(args: &ReproduceArgs, console: Console) -> Result<(), Failure> {
    if args.list {
        let lines: Vec<String> =
            REPRODUCTIONS.iter().map(|r| format!("{:18} {}", r.info.name, r.info.summary)).collect();
        return console.result(&lines.join("\n"));
    }
    let wanted: Vec<&Reproduction> = if args.ids.is_empty() {
        REPRODUCTIONS.iter().collect()
    } else {
        args.ids.iter().map(|id| find(id)).collect::<Result<_, _>>()?
    };
    stop_on_ctrl_c()?;
    let mut context = Context::new(42, Some(&STOP));
    context.is_quick = args.quick;
    let mut rows = Vec::new();
    for reproduction in wanted {
        console.note(&format!("{} ...", reproduction.info.name));
        rows.extend(reproduction.run(&context)?);
        if STOP.load(Ordering::Relaxed) {
            return Err(Failure::run("interrupted"));
        }
    }
    if args.quick {
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
    if args.json { console.json(&rows) } else { console.result(&render_reproduction_text(&rows)) }
}

fn find(id: &str) -> Result<&'static Reproduction, Failure> {
    REPRODUCTIONS.iter().find(|r| r.info.name == id).ok_or_else(|| {
        Failure::usage(unknown_name("reproduction", id, REPRODUCTIONS.iter().map(|r| &r.info)))
    })
}
