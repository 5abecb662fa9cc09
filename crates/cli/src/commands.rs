//! One file per verb.

pub mod cache;
pub mod compare;
pub mod control;
pub mod fs;
mod grid;
pub mod image;
pub mod list;
pub mod manual;
pub mod neighbours;
pub mod object;
pub mod replay;
pub mod report;
pub mod reproduce;
pub mod serve;
pub mod stat;
pub mod sweep;
pub mod trace;
pub mod zone;

use crate::args::{DeviceArgs, FitArgs, OutputArgs, ReadingArgs, Remap, StackArgs, StateArgs};
use crate::console::{Console, Failure, Result, STOP};
use nandscape_core::registry::unknown_name;
use nandscape_core::units;
use nandscape_report::{
    Condition, Output, ReportContext, Run, render_fio_json, render_html, render_json, render_json_document,
    write_atomically,
};
use nandscape_sim::Progress;
use nandscape_stack::{RunOptions, Sources, StackConfig, Typed, suits_default_drive};
use nandscape_trace::OpenOptions;
use std::path::{Path, PathBuf};

/// What was typed, merged: device preset, then the file, then flags.
pub(crate) fn typed_device(args: &DeviceArgs, ftl: Option<&str>) -> Result<Typed> {
    Ok(Typed::of(Sources {
        device: args.device.as_deref(),
        config: args.config.as_deref(),
        stack: args.stack.as_deref(),
        ftl,
        scale: args.scale.as_deref(),
        sets: &args.sets,
    })?)
}

fn typed(stack: &StackArgs, ftl: Option<&str>) -> Result<Typed> {
    let mut typed = typed_device(&stack.device, ftl)?;
    let mut set = |key: &str, value: Option<String>| match value {
        Some(value) => typed.set(&format!("workload.{key}"), &value),
        None => Ok(()),
    };
    // Of several the first; verbs that run each set them themselves.
    set("seed", stack.seed.as_ref().map(|seeds| seeds.0[0].to_string()))?;
    set("depth", stack.depth.map(|v| v.to_string()))?;
    set("precondition", stack.precondition.clone())?;
    set("until", stack.until.clone())?;
    for (key, value) in reading_keys(&stack.reading) {
        set(key, value)?;
    }
    Ok(typed)
}

/// The drive that traces are replayed on if nothing is said of the device, the share of it that they fill,
/// and of what they touch the share that a cache holds.
const DRIVE: &str = "dc-tlc-28op";
const FULL: &str = "90%";
const CACHED: &str = "10%";
/// Tables whose keys leave the drive what it is, or change it, but for those that name another one or a size.
const ITS_TABLES: [&str; 5] = ["workload.", "host.", "device.", "ftl.", "namespaces.count"];
/// And of caches.
const TABLES_OF_CACHES: [&str; 2] = ["cache.", "disk."];
const OTHER_DRIVES: [&str; 6] = [
    "device.preset",
    "device.scale",
    "device.blocks_per_plane",
    "device.pages_per_block",
    "ftl.capacity",
    "ftl.kind",
];

/// What is assumed where nothing is said of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DefaultDrive {
    /// Nothing.
    No,
    /// A drive that the workload fills.
    Filled,
    /// A drive for a cache of a part of what the workload touches.
    UnderCache,
}

impl DefaultDrive {
    /// What these flags leave to be assumed: nothing if a device is named, or its size, if a workload cannot
    /// say how large it has to be, or if the drive does not suit a stack. `configs` is asked for those that
    /// are to be run.
    fn of(
        stack: &StackArgs,
        fit: &FitArgs,
        workloads: &[String],
        configs: impl FnOnce() -> Result<Vec<StackConfig>>,
    ) -> Result<Self> {
        let device = &stack.device;
        let names = [&device.config, &device.device, &device.scale, &fit.fit];
        if names.iter().any(|name| name.is_some()) {
            return Ok(Self::No);
        }
        let configs = configs()?;
        let config = configs.iter().find(|config| config.has_cache()).unwrap_or(&configs[0]);
        let is_cached = config.has_cache();
        let has_disk_alone = config.cache.is_some() && !is_cached;
        if has_disk_alone || !configs.iter().all(suits_default_drive) {
            return Ok(Self::No);
        }
        let tables = ITS_TABLES.iter().chain(TABLES_OF_CACHES.iter().filter(|_| is_cached));
        let tables: Vec<&str> = tables.copied().collect();
        let is_its_own = |pair: &String| {
            let key = pair.split('=').next().unwrap_or_default().trim();
            tables.iter().any(|table| key.starts_with(table)) && !OTHER_DRIVES.contains(&key)
        };
        if !device.sets.iter().all(is_its_own) {
            return Ok(Self::No);
        }
        for workload in workloads {
            if !nandscape_stack::has_footprint(config, workload)? {
                return Ok(Self::No);
            }
        }
        Ok(if is_cached { Self::UnderCache } else { Self::Filled })
    }

    /// Writes it into the flags.
    fn take(self, stack: &mut StackArgs, fit: &mut FitArgs) {
        if let Some(share) = self.share() {
            stack.device.device = Some(DRIVE.to_owned());
            fit.fit = Some(share.to_owned());
        }
    }

    /// What a result says of it.
    fn note(self) -> String {
        self.share().map_or_else(String::new, |share| {
            format!("; the default is {DRIVE} with --fit {share}, which --device and --fit change")
        })
    }

    const fn share(self) -> Option<&'static str> {
        match self {
            Self::No => None,
            Self::Filled => Some(FULL),
            Self::UnderCache => Some(CACHED),
        }
    }
}

/// The share of `--fit`.
fn share_of(text: &str) -> Result<f64> {
    units::parse_share(text).map_err(|error| Failure::usage(format!("--fit: {error}")))
}

/// The `workload` keys of the reading flags.
fn reading_keys(reading: &ReadingArgs) -> [(&'static str, Option<String>); 7] {
    [
        ("format", reading.format.clone()),
        ("columns", reading.columns.clone()),
        ("volumes", reading.volumes.clone()),
        ("remap", reading.remap.map(|r| if r == Remap::Dense { "dense" } else { "none" }.to_owned())),
        ("repeat", reading.repeat.map(|v| v.to_string())),
        ("time_scale", reading.time_scale.map(|v| v.to_string())),
        ("limit", reading.limit.clone()),
    ]
}

/// How a workload is read that no stack is built for.
pub(crate) fn open_options(reading: &ReadingArgs, seed: u64) -> Result<OpenOptions> {
    let volumes = |list: &str| list.split(';').map(|volume| volume.trim().to_owned()).collect();
    Ok(OpenOptions {
        format: reading.format.clone(),
        columns: reading.columns.clone(),
        volumes: reading.volumes.as_deref().map(volumes).unwrap_or_default(),
        remap_dense: reading.remap == Some(Remap::Dense),
        repeat: reading.repeat.unwrap_or(1),
        time_scale: reading.time_scale.unwrap_or(1.0),
        limit: reading.limit.as_deref().map(units::parse_count).transpose().map_err(Failure::usage)?,
        seed,
        ..OpenOptions::default()
    })
}

/// Every output that results can be written in.
pub(crate) fn outputs() -> impl Iterator<Item = &'static Output> {
    nandscape_report::OUTPUTS.iter().chain([&nandscape_report_parquet::OUTPUT])
}

fn wanted(args: &OutputArgs) -> Result<Vec<(&'static Output, PathBuf)>> {
    let named = [("html", &args.report), ("csv", &args.csv), ("parquet", &args.series)];
    let named = named.into_iter().filter_map(|(name, path)| Some((name.to_owned(), path.as_ref()?.clone())));
    let typed = args.write.iter().map(|text| match text.split_once('=') {
        Some((name, path)) if !path.is_empty() => Ok((name.to_ascii_lowercase(), PathBuf::from(path))),
        _ => Err(Failure::usage(format!("--write {text}: expected OUTPUT=FILE such as csv=runs.csv"))),
    });
    let all: Vec<_> = named.map(Ok).chain(typed).collect::<Result<_, _>>()?;
    let find = |(name, path): (String, PathBuf)| match outputs().find(|output| output.info.name == name) {
        Some(output) => Ok((output, path)),
        None => Err(Failure::usage(unknown_name("output", &name, outputs().map(|output| &output.info)))),
    };
    all.into_iter().map(find).collect()
}

fn run_options<'a>(
    output: &OutputArgs,
    state: &'a StateArgs,
    progress: &'a (dyn Fn(&str, Progress) + Sync),
) -> Result<RunOptions<'a>> {
    let wanted = wanted(output)?;
    conditions(output)?;
    Ok(RunOptions {
        stop: Some(&STOP),
        marks: &[],
        with_series: wanted.iter().any(|(output, _)| output.wants_series),
        interval_ns: interval_ns(output)?,
        with_detail: output.detail,
        count_programs: wanted.iter().any(|(output, _)| output.wants_programs),
        state: state.used(),
        progress,
    })
}

fn interval_ns(output: &OutputArgs) -> Result<Option<u64>> {
    let parse = |text: &String| units::parse_time_ns(text).map_err(Failure::usage);
    let interval = output.interval.as_ref().map(parse).transpose()?;
    if interval == Some(0) {
        Err(Failure::usage("--interval 0: expected a time above 0 such as 100ms"))
    } else {
        Ok(interval)
    }
}

/// Writes a file whole, or not at all.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomically(path, bytes).map_err(Failure::run)
}

/// Writes the HTML report, if one was asked for, and says so.
fn write_report(path: Option<&Path>, runs: &[Run], context: ReportContext, console: Console) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let context = ReportContext { command: command_line(), ..context };
    write(path, render_html(runs, &context).as_bytes())?;
    console.note(&format!("report: {}", path.display()));
    Ok(())
}

/// Prints and writes what a replay or compare gave. `text` renders the table for people.
fn deliver(
    runs: &[Run],
    output: &OutputArgs,
    as_array: bool,
    text: impl FnOnce() -> String,
    console: Console,
) -> Result<()> {
    let context = ReportContext { command: command_line(), ..ReportContext::default() };
    for (form, path) in wanted(output)? {
        write(&path, &(form.render)(runs, &context).map_err(Failure::run)?)?;
        console.note(&format!("report: {}", path.display()));
    }
    let mut prints_table = true;
    if let Some(path) = &output.fio_json {
        let [run] = runs else {
            return Err(Failure::usage(
                "--fio-json takes one run: expected one workload and one translation layer",
            ));
        };
        if run.result.jobs.is_empty() {
            return Err(Failure::usage("--fio-json: expected a fio job file (*.fio) as the workload"));
        }
        let document = render_fio_json(run);
        if path.as_os_str() == "-" {
            console.result(&document)?;
            prints_table = false;
        } else {
            write(path, document.as_bytes())?;
        }
    }
    if output.json {
        let document = match runs {
            [run] if !as_array => render_json_document(&run.result),
            runs => render_json(runs),
        };
        console.result(&document)?;
    } else if prints_table {
        console.result(&text())?;
    }
    let errors = runs.iter().filter_map(|run| run.result.error.as_ref().map(|e| (&run.label, e)));
    let mut failed = false;
    for (label, error) in errors {
        console.error(&format!("{label}: {}", error.message));
        failed = true;
    }
    if runs.iter().any(|run| run.result.partial) {
        return Err(Failure::Interrupted("the result is partial and marked so".to_owned()));
    }
    if failed { Err(Failure::Reported) } else { judge(runs, &conditions(output)?, console) }
}

fn conditions(output: &OutputArgs) -> Result<Vec<Condition>> {
    output.fail_if.iter().map(|text| Condition::parse(text).map_err(Failure::usage)).collect()
}

/// Says which conditions hold for which runs.
fn judge(runs: &[Run], conditions: &[Condition], console: Console) -> Result<()> {
    let mut any = false;
    for (condition, run) in
        conditions.iter().flat_map(|condition| runs.iter().map(move |run| (condition, run)))
    {
        if let Some(value) = condition.holds(run).map_err(Failure::run)? {
            console.error(&format!("{}: {condition}: it is {value}", run.label));
            any = true;
        }
    }
    if any { Err(Failure::Condition) } else { Ok(()) }
}

fn command_line() -> String {
    let quoted = |word: String| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+%@".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|w| quoted(w.to_string_lossy().into_owned())).collect();
    format!("nandscape {}", words.join(" "))
}
