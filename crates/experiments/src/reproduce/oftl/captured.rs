//! Recorded loads of programs on the layer, and on file systems over blocks and zones of the same flash.
//!
//! The rule is the one of the source: its loads are not public, and these are what programs of today do. The
//! file systems are the models of the stacks; what a program writes and deletes again before it goes to the
//! flash costs nothing, so that an amplification may be below 1.

use super::super::recordings;
use super::super::{Context, Done, Reproduction, Sabotage, Table, experiment};
use crate::Result;
use nandscape_core::TraceOp;
use nandscape_report::{RowKind, Run};
use nandscape_stack::RunOptions;
use nandscape_trace::{OpenOptions, Target, Workload};
use rayon::prelude::*;
use std::fmt::Display;
use std::path::Path;

const LOADS: [&str; 5] = ["git", "lammps", "pgbench", "sqlite", "rocksdb"];

/// Stacks as the rows name them. The first four are in the rule.
const SYSTEMS: [(&str, &str); 6] = [
    ("oftl", "oftl"),
    ("ext4 model, data in the journal", "data-journal"),
    ("ext4 model", "block"),
    ("ext4 model on atomic writes", "atomic"),
    ("f2fs model", "f2fs"),
    ("files on zones", "zone-files"),
];
const COMPARED: usize = 4;

const LARGE: &str =
    "nearly all of it are large files, written once, so that the systems differ by their metadata alone";
const WHOLE: &str = "the program writes whole pages of 8 KiB, so that there is nothing to save but a journal";

pub(in crate::reproduce) const CAPTURED: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: "parts of pages are merged at once, and the index is written with every flush",
        turns: &["lowest of four, sqlite", "lowest of all, git", "lowest of all, sqlite"],
    }),
    ..experiment(
        "oftl-captured",
        "write amplification of OFTL and of file systems on recorded loads (folder in NANDSCAPE_TRACES)",
        "[OFTL table 3]; the recordings are ours",
        rows,
    )
};

fn rows(context: &Context<'_>, out: &mut Table) -> Done {
    let found = LOADS.map(|load| recordings::find(&format!("captured/{load}.ops.csv.zst")));
    if found.iter().any(Result::is_ok) {
        out.row("", "device")
            .kind(RowKind::Input)
            .note("oftl-fast13: 16 GiB of new flash in pages of 4 KiB, so that nothing has to be collected");
    }
    for (load, found) in LOADS.iter().zip(found) {
        context.check_stop()?;
        match found {
            Ok(path) => rows_of(context, load, &path, out)?,
            // A number that is none is null.
            Err(why) => out.row("", *load).figure("", f64::NAN).note(why),
        }
    }
    Ok(())
}

fn rows_of(context: &Context<'_>, load: &str, path: &Path, out: &mut Table) -> Done {
    let path = path.display().to_string();
    let written = written_bytes(&path)?;
    out.row("", format!("{load}: written by the program"))
        .figure("MB", written as f64 / 1e6)
        .kind(RowKind::Input)
        .note("of the recording");
    let run = |(_, stack): &(&str, &str)| {
        let wrong = context.is_sabotaged && *stack == "oftl";
        let keys: [(&str, &dyn Display); 3] =
            [("stack.kind", stack), ("ftl.diffs", &false), ("ftl.lazy_index", &false)];
        let config = context.config(Some("oftl-fast13"), if wrong { &keys } else { &keys[..1] })?;
        context.replay(&config, &path, format!("{load}, {stack}"), RunOptions::default())
    };
    let runs: Vec<Run> = SYSTEMS.par_iter().map(run).collect::<Result<_>>()?;
    let page = 4096.0;
    let sizes: Vec<f64> =
        runs.iter().map(|run| run.result.flash.programs as f64 * page / written as f64).collect();
    for (((name, _), run), size) in SYSTEMS.iter().zip(&runs).zip(&sizes) {
        let causes = run.result.flash.by_cause.iter().filter(|(_, counts)| counts.programs > 0);
        let causes: Vec<String> = causes
            .map(|(cause, counts)| format!("{cause} {:.3}", counts.programs as f64 * page / written as f64))
            .collect();
        out.row("", format!("size, {load}, {name}")).figure("", *size).note(causes.join(", "));
    }
    for (source, name, systems, says) in [
        ("[OFTL table 3]", "four", &sizes[1..COMPARED], "lower than with the file systems on blocks"),
        ("", "all", &sizes[1..], "ours: lower than with every other"),
    ] {
        let others = systems.iter().copied().fold(f64::INFINITY, f64::min);
        out.row(source, format!("lowest of {name}, {load}"))
            .says(says, sizes[0] < others)
            .unless(match load {
                "pgbench" => WHOLE,
                "rocksdb" => LARGE,
                _ => "",
            })
            .found(format!("{:.4}, the lowest of the others {others:.4}", sizes[0]));
    }
    Ok(())
}

/// Bytes that the program wrote.
fn written_bytes(path: &str) -> Result<u64> {
    let options = OpenOptions { format: Some("ops:level=file".to_owned()), ..OpenOptions::default() };
    let reader = Workload::new(path, &options, Target::NONE)?.open()?;
    let mut written = 0;
    for record in reader {
        let record = record?;
        written += if record.op == TraceOp::Write { record.len } else { 0 };
    }
    Ok(written)
}
