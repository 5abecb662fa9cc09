//! `nandscape trace`: look at, convert and make workloads.

use super::{open_options, write_report};
use crate::args::{ReadingArgs, SourceArgs, SpaceArgs, TargetArgs, TraceVerb};
use crate::console::{Console, Failure, Result, STOP, stop_on_ctrl_c};
use nandscape_core::units;
use nandscape_report::{
    Level, ReportContext, ReportError, grouped, render_levels_text, render_workload_text,
    write_atomically_with,
};
use nandscape_trace::{
    BoxReader, Converted, OpenOptions, StatsOptions, Target, TraceStats, formats, generators, write,
};
use serde_json::json;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

pub fn run(verb: TraceVerb, console: Console) -> Result<()> {
    match verb {
        TraceVerb::Stats { source, block, more, levels, json, report } => {
            let report = report.as_deref();
            let options = stats_options(&source.space, &block)?;
            if more.is_empty() && !levels {
                return statistics(&source, options, json, report, console);
            }
            beside(&source, &more, options, json, report, console)
        }
        TraceVerb::Convert { source, target } => convert(open(&source)?, &target, console),
        TraceVerb::Generate { generator, space, target, limit } => {
            let options = OpenOptions {
                seed: space.seed,
                limit: limit.as_deref().map(units::parse_count).transpose().map_err(Failure::usage)?,
                ..OpenOptions::default()
            };
            let name = generator.split(':').next().unwrap_or_default().trim();
            generators::find(name).map_err(Failure::usage)?;
            let reader = nandscape_trace::open(&generator, &options, target_of(&space)?)?;
            convert(reader, &target, console)
        }
        TraceVerb::Head { workload, n, reading, space } => {
            let reading = ReadingArgs { limit: Some(n.to_string()), ..reading };
            to_stdout(open(&SourceArgs { workload, reading, space })?, "csv").map(|_| ())
        }
    }
}

fn target_of(space: &SpaceArgs) -> Result<Target> {
    let capacity_bytes = units::parse_size(&space.capacity).map_err(Failure::usage)?;
    Ok(Target { capacity_bytes, volume_bytes: capacity_bytes, page_bytes: page_of(space)?, ..Target::NONE })
}

fn page_of(space: &SpaceArgs) -> Result<u64> {
    above_0("page", &space.page)
}

fn above_0(flag: &str, text: &str) -> Result<u64> {
    match units::parse_size(text).map_err(Failure::usage)? {
        0 => Err(Failure::usage(format!("--{flag} 0: expected a size of at least 1 byte"))),
        bytes => Ok(bytes),
    }
}

fn open(source: &SourceArgs) -> Result<BoxReader> {
    let options = open_options(&source.reading, source.space.seed)?;
    Ok(nandscape_trace::open(&source.workload, &options, target_of(&source.space)?)?)
}

fn convert(reader: BoxReader, target: &TargetArgs, console: Console) -> Result<()> {
    let format = format_of(target)?;
    if target.output.as_os_str() == "-" {
        return to_stdout(reader, &format).map(|converted| say_volumes(&converted, console));
    }
    // The file that is under way is then removed.
    stop_on_ctrl_c()?;
    let mut converted = Converted::default();
    let mut failure = None;
    let written = write_atomically_with(&target.output, |file| {
        let refused = |source| ReportError::Io { path: target.output.clone(), action: "write", source };
        let outcome = compressed(file, extension(&target.output), |out| {
            let mut out = Watched { out, failure: None };
            let outcome = write::convert(reader, &format, &mut out);
            out.failure.map_or(Ok(outcome), |kind| Err(std::io::Error::from(kind)))
        })
        .and_then(|outcome| outcome)
        .map_err(refused)?;
        outcome.map(|done| converted = done).map_err(|error| {
            failure = Some(error);
            refused(std::io::Error::other("the workload could not be converted"))
        })
    });
    if written.is_err() && STOP.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted(format!("{} is not written", target.output.display())));
    }
    if let Some(error) = failure {
        return Err(error.into());
    }
    written.map_err(Failure::run)?;
    say_volumes(&converted, console);
    console.note(&format!("{} requests written to {}", grouped(converted.written), target.output.display()));
    Ok(())
}

fn say_volumes(converted: &Converted, console: Console) {
    if converted.has_volumes {
        console.note("several volumes were written as one, side by side; --volume writes one alone");
    }
}

/// Writes to standard output as it reads, whatever the length. That nobody reads on is not a failure.
fn to_stdout(reader: BoxReader, format: &str) -> Result<Converted> {
    let mut out = Watched { out: std::io::stdout().lock(), failure: None };
    let outcome = write::convert(reader, format, &mut out);
    match out.failure {
        Some(std::io::ErrorKind::BrokenPipe) => Err(Failure::BrokenPipe),
        Some(kind) => Err(Failure::run(format!("stdout: {}", std::io::Error::from(kind)))),
        None => Ok(outcome?),
    }
}

/// Remembers why the output failed, which the error of a conversion says in words only.
struct Watched<W> {
    out: W,
    failure: Option<std::io::ErrorKind>,
}

impl<W: Write> Write for Watched<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let is_stopped = STOP.load(Ordering::Relaxed);
        let written =
            if is_stopped { Err(std::io::Error::other("interrupted")) } else { self.out.write(bytes) };
        written.inspect_err(|e| self.failure = Some(e.kind()))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush().inspect_err(|e| self.failure = Some(e.kind()))
    }
}

/// Lets `fill` write through the compression that an extension asks for.
fn compressed<T>(
    file: &mut File,
    extension: &str,
    fill: impl FnOnce(&mut dyn Write) -> T,
) -> std::io::Result<T> {
    match extension {
        "gz" => {
            let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::default());
            let outcome = fill(&mut encoder);
            encoder.finish()?;
            Ok(outcome)
        }
        "zst" => {
            let mut encoder = zstd::stream::write::Encoder::new(file, 0)?;
            let outcome = fill(&mut encoder);
            encoder.finish()?;
            Ok(outcome)
        }
        _ => Ok(fill(file)),
    }
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|e| e.to_str()).unwrap_or_default()
}

/// The format that was asked for, or that the output's name says.
fn format_of(target: &TargetArgs) -> Result<String> {
    if let Some(format) = &target.to {
        return Ok(format.clone());
    }
    let bare = match extension(&target.output) {
        "gz" | "zst" => target.output.with_extension(""),
        _ => target.output.clone(),
    };
    let format = match extension(&bare) {
        "csv" => "csv",
        "nst" => "nst",
        "trace" | "ascii" => "mqsim",
        "spc" => "spc",
        "iolog" | "log" => "fio",
        _ => {
            return Err(Failure::usage(format!(
                "{}: the name says no format (.csv, .nst, .trace, .spc, .iolog, each perhaps with .gz or .zst); \
                 name one with --to ('nandscape list formats')",
                target.output.display()
            )));
        }
    };
    Ok(format.to_owned())
}

fn stats_options(space: &SpaceArgs, block: &str) -> Result<StatsOptions> {
    Ok(StatsOptions {
        page_bytes: page_of(space)?,
        block_bytes: above_0("block", block)?,
        ..StatsOptions::default()
    })
}

fn statistics(
    source: &SourceArgs,
    options: StatsOptions,
    json: bool,
    report: Option<&Path>,
    console: Console,
) -> Result<()> {
    let workload = &source.workload;
    let stats = TraceStats::of(open(source)?, options)?;
    let context = ReportContext {
        title: format!("Workload {workload}"),
        workload_stats: vec![(workload.clone(), stats.clone())],
        ..ReportContext::default()
    };
    write_report(report, &[], context, console)?;
    if json { console.json(&stats) } else { console.result(&render_workload_text(workload, &stats)) }
}

/// Workloads beside each other, each at the level at which it was recorded. File operations are there twice.
fn beside(
    first: &SourceArgs,
    more: &[String],
    options: StatsOptions,
    json: bool,
    report: Option<&Path>,
    console: Console,
) -> Result<()> {
    let mut levels = Vec::new();
    for workload in [&first.workload].into_iter().chain(more) {
        let source = SourceArgs { workload: workload.clone(), ..first.clone() };
        let reader = open(&source)?;
        let format = reader.info().format;
        let mut add = |level, reader: BoxReader| -> Result<()> {
            let stats = TraceStats::of(reader, options)?;
            levels.push(Level { workload: workload.clone(), level, stats });
            Ok(())
        };
        match formats::level(&format) {
            formats::Level::FileSystem => {
                let typed = source.reading.format.as_deref().unwrap_or(&format);
                let mark = if typed.contains(':') { ',' } else { ':' };
                let format = Some(format!("{typed}{mark}level=file"));
                let reading = ReadingArgs { format, ..source.reading.clone() };
                add("files", open(&SourceArgs { reading, ..source })?)?;
                add("blocks below a file system model", reader)?;
            }
            formats::Level::Files => add("files", reader)?,
            formats::Level::Device => add("blocks", reader)?,
        }
    }
    let context = ReportContext {
        title: "One run at several levels".to_owned(),
        workload_stats: levels
            .iter()
            .map(|level| (format!("{}: {}", level.workload, level.level), level.stats.clone()))
            .collect(),
        ..ReportContext::default()
    };
    write_report(report, &[], context, console)?;
    if !json {
        return console.result(&render_levels_text(&levels, console.width()));
    }
    let document = |level: &Level| {
        let Level { workload, level, stats } = level;
        json!({ "workload": workload, "level": level, "mix": stats.mix, "patterns": stats.patterns })
    };
    console.json(&levels.iter().map(document).collect::<Vec<_>>())
}
