//! `nandscape sweep`, and `report` of its folders.

use super::write_report;
use crate::args::{OutputArgs, SweepArgs};
use crate::console::{Console, Failure, Result, STOP, stop_on_ctrl_c};
use nandscape_experiments::sweep::{Folder, Plan, SweepError, SweepOptions};
use nandscape_report::{ReportContext, SweepTable, pretty, render_sweep_text};
use nandscape_report_parquet::render_sweep_parquet;
use std::path::Path;

/// The table of a sweep in its folder.
const PARQUET: &str = "sweep.parquet";

pub fn run(args: &SweepArgs, console: Console) -> Result<()> {
    let mut plan = Plan::read(&args.plan)?;
    plan.check()?;
    let from: Vec<Folder> =
        args.from.iter().map(|path| Folder::of_plan(path, &plan)).collect::<Result<_, _>>()?;
    let folder = Folder::create(&args.out, &plan, args.resume)?;
    stop_on_ctrl_c()?;
    let bar = console.progress("sweep");
    let options = SweepOptions {
        jobs: args.jobs,
        shard: args.shard,
        from: &from,
        stop: &STOP,
        progress: &|done, all| bar.show_runs(done as u64, all as u64),
    };
    let stopped = nandscape_experiments::sweep::run(&plan, &folder, &options);
    bar.finish();
    let stopped = stopped?;
    let table = Folder::table(std::slice::from_ref(&folder), &plan)?;
    let parquet = folder.write(PARQUET, &render_sweep_parquet(&table).map_err(Failure::run)?)?;
    console.note(&format!("table: {}", parquet.display()));
    let delivered = deliver(&table, args.report.as_deref(), args.json, console);
    if stopped > 0 {
        return Err(Failure::Interrupted(format!("{stopped} runs have no result yet; --resume runs them")));
    }
    delivered
}

/// The folders of one sweep, such as those of its shards, as `report` gets them.
pub(super) fn report(paths: &[String], output: &OutputArgs, console: Console) -> Result<()> {
    let others = [
        ("--csv", output.csv.is_some()),
        ("--fio-json", output.fio_json.is_some()),
        ("--write", !output.write.is_empty()),
        ("--fail-if", !output.fail_if.is_empty()),
    ];
    if let Some((flag, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::usage(format!(
            "{flag} takes result documents: expected points/*.json of the folder of a sweep"
        )));
    }
    let mut folders = Vec::new();
    let mut plan = None;
    for path in paths.iter().map(Path::new) {
        let (folder, own) = match &plan {
            None => Folder::open(path).map(|(folder, plan)| (folder, Some(plan)))?,
            Some(plan) => (Folder::of_plan(path, plan)?, None),
        };
        folders.push(folder);
        plan = plan.or(own);
    }
    let plan = plan.expect("at least one path is given");
    deliver(&Folder::table(&folders, &plan)?, output.report.as_deref(), output.json, console)
}

/// Prints a sweep and writes its report. Fails if a run failed.
fn deliver(table: &SweepTable, report: Option<&Path>, json: bool, console: Console) -> Result<()> {
    let context = ReportContext { sweep: Some(table.clone()), ..ReportContext::default() };
    write_report(report, &[], context, console)?;
    console.result(&if json { pretty(&table.to_json()) } else { render_sweep_text(table) })?;
    match table.failed().count() {
        0 => Ok(()),
        failed => Err(Failure::run(format!("{failed} of {} runs failed", table.rows.len()))),
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Run(error) => error.into(),
            SweepError::Io { .. } | SweepError::Write(_) => Self::run(error),
            error => Self::usage(error),
        }
    }
}
