//! `nandscape report`.

use super::{conditions, deliver, sweep, wanted};
use crate::args::{OutputArgs, ReportArgs};
use crate::console::{Console, Failure, Result};
use nandscape_experiments::sweep::Folder;
use nandscape_report::{DocumentError, Documents, read_documents, render_detail, render_text};
use nandscape_stack::{Past, past_runs};
use std::fs::File;
use std::path::Path;

pub fn run(args: &ReportArgs, console: Console) -> Result<()> {
    refuse_outputs_of_runs(&args.output)?;
    conditions(&args.output)?;
    if args.files.iter().filter(|file| *file == "-").count() > 1 {
        return Err(Failure::usage("standard input ('-') is given twice: expected it once"));
    }
    if args.files.iter().any(|path| Folder::is_one(Path::new(path))) {
        return sweep::report(&args.files, &args.output, console);
    }
    let mut documents = Vec::new();
    let mut is_list = args.files.len() > 1;
    for path in &args.files {
        let file = if path == "-" { "standard input".to_owned() } else { path.clone() };
        let read = read(path).map_err(|error| Failure::run(format!("{file}: {error}")))?;
        is_list |= read.is_list;
        documents.extend(read.results.into_iter().map(|result| Past { file: file.clone(), result }));
    }
    let runs = past_runs(documents);
    let text = || match &runs[..] {
        [run] => render_detail(run, console.width()),
        runs => render_text(runs, console.width()),
    };
    deliver(&runs, &args.output, is_list, text, console)
}

fn read(path: &str) -> Result<Documents, DocumentError> {
    let packed = if path == "-" {
        nandscape_trace::unpacked(std::io::stdin())
    } else {
        File::open(path).and_then(nandscape_trace::unpacked)
    };
    read_documents(packed.map_err(DocumentError::Io)?)
}

/// Refuses, before anything is read or written, what only a run can give.
fn refuse_outputs_of_runs(output: &OutputArgs) -> Result<()> {
    let of_runs = [("--detail", output.detail), ("--interval", output.interval.is_some())];
    if let Some((flag, _)) = of_runs.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::usage(format!("{flag} belongs to a run: expected it at replay or compare")));
    }
    let needs_series = |form: &nandscape_report::Output| form.needs_series;
    match wanted(output)?.into_iter().find(|(form, _)| needs_series(form)) {
        None => Ok(()),
        Some((form, path)) => Err(Failure::usage(format!(
            "{} ({}) holds the series over time, which result documents do not have: expected --series at replay or \
             compare",
            form.info.name,
            path.display()
        ))),
    }
}
