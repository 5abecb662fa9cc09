//! `nandscape cache advise`.

use super::unit::{BLOCK_BYTES, block, open, size};
use crate::args::AdviseArgs;
use crate::commands::{write, write_report};
use crate::console::{Console, Failure, Result, STOP, stop_on_ctrl_c};
use nandscape_core::units;
use nandscape_experiments::miss_ratio::{AdviseCase, Options, advise};
use nandscape_report::{ReportContext, render_advice_csv, render_advice_text};

pub fn run(args: &AdviseArgs, console: Console) -> Result<()> {
    let unit = if args.unit.objects { None } else { Some(block(&args.unit)?.unwrap_or(BLOCK_BYTES)) };
    let sample = args.sample.as_deref().map(units::parse_share).transpose();
    let rate = sample.map_err(|error| Failure::usage(format!("--sample {error}")))?;
    let case = AdviseCase {
        evictions: args.eviction.clone(),
        block_bytes: unit,
        sizes: args.size.iter().map(|text| size(text, unit)).collect::<Result<_, _>>()?,
        rate: rate.unwrap_or(1.0),
    };
    let reader = open(&args.workload, &args.unit)?;
    stop_on_ctrl_c()?;
    let bar = console.progress("advise");
    let options = Options {
        seed: args.unit.seed,
        jobs: args.jobs.map(usize::from),
        stop: Some(&STOP),
        progress: &|progress| bar.show(progress),
    };
    let advised = advise(&args.workload, reader, &case, &options);
    bar.finish();
    let advised = advised?;
    if let Some(path) = &args.csv {
        write(path, render_advice_csv(&advised.advice, &advised.lru).as_bytes())?;
    }
    if args.json {
        console.json(&advised.advice)?;
    } else {
        console.result(&render_advice_text(&advised.advice, console.width()))?;
    }
    let context = ReportContext {
        title: format!("A cache for {}", args.workload),
        advice: vec![(advised.advice, advised.lru)],
        ..ReportContext::default()
    };
    write_report(args.report.as_deref(), &[], context, console)
}
