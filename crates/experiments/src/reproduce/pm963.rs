//! An article's measurement on a Samsung PM963 [streams-article 3.2.2]: random readers beside
//! four sequential writers that update their quarters at rates 10 : 3 : 2 : 1, with stream ids on a drive
//! without directives, and on one with them, which the source did not have.
//!
//! All runs have the source's six readers and the presets as they are, on one device for each model. The
//! think times of the writers are ours and decide how much they write.
//!
//! The devices are the presets, smaller: fewer pages a block, erased in proportion sooner, and fewer blocks a
//! plane, with all dies and the same share of open blocks. The run is shorter by the same factor, so that
//! every part of the drive is written as often as in the source's two hours.

use super::{Context, Done, Reproduction, Sabotage, Table, experiment};
use crate::Result;
use nandscape_report::{RowKind, Run};
use nandscape_stack::RunOptions;
use nandscape_stack::config::{ConfigError, StackConfig};
use rayon::prelude::*;
use std::fmt::{Display, Write as _};

const ID: &str = "pm963";
const RESULTS: &str = "[streams-article 3.2.3]";
const OUTLOOK: &str = "[streams-article 3.3]";
/// The load of the source. Its think times are ours: the source gives the ratios only.
const JOBS: &str = include_str!("../../../../configs/pm963.fio");
/// Percent of the capacity that the file in [`JOBS`] has.
const SHARE_OF_JOBS: f64 = 90.0;

pub(super) const PM963: Reproduction = Reproduction {
    sabotage: Some(Sabotage {
        what: "the drive without directives has so much spare space that it never copies, but for the runs with stream ids; the \
             drive with streams gets no ids",
        turns: Sabotage::EVERY_RULE,
    }),
    ..experiment(
        ID,
        "readers and four writers on a PM963: stream ids without directives, and with them",
        "[streams-article 3.2.2], [streams-article 3.2.3], [streams-article 3.3]",
        |context, out| rows(&context.scale(FULL, SMALL), context, out),
    )
};

/// Spare space with which nothing is ever copied.
const ENDLESS: u32 = 9;

/// Least change of a rate or of a write amplification that counts.
const MARGIN: f64 = 0.02;

#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Pages of a block, instead of [`PAGES`]. Whole program units of 3.
    pages_per_block: u32,
    /// Blocks of a plane of the 1920 GB model, instead of 1025.
    blocks_1920: u32,
    /// Blocks of a plane of the 480 GB model, instead of 513.
    blocks_480: u32,
}

/// Pages of a block of the drives, and the time of its erase, as in the presets.
const PAGES: u32 = 2046;
const ERASE_NS: u32 = 5_000_000;

/// Scale of the published experiment: 1/124 (1920 GB) and 1/62 (480 GB).
const FULL: Scale = Scale { pages_per_block: 33, blocks_1920: 512, blocks_480: 513 };
/// A quick run that shows the orderings: 1/909 and 1/454.
const SMALL: Scale = Scale { pages_per_block: 9, blocks_1920: 256, blocks_480: 257 };

impl Scale {
    /// Virtual seconds that write the smaller 1920 GB model as often as two hours write the drive.
    fn seconds(&self) -> f64 {
        7200.0 * f64::from(self.pages_per_block * self.blocks_1920) / f64::from(PAGES * 1025)
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    preset: &'static str,
    /// Percent of the capacity that hold the file.
    share: u32,
    ids: bool,
    streams: bool,
    /// Spare space instead of that of the preset.
    op: Option<u32>,
}

const SMALL_DRIVE: &str = "pm963-480g";
const LARGE_DRIVE: &str = "pm963-1920g";
const LARGE: Case = Case { preset: LARGE_DRIVE, share: 90, ids: false, streams: false, op: None };
const SMALL_ONE: Case = Case { preset: SMALL_DRIVE, ..LARGE };
const CASES: [Case; 8] = [
    LARGE,
    Case { ids: true, ..LARGE },
    Case { share: 78, ..LARGE },
    Case { share: 78, ids: true, ..LARGE },
    SMALL_ONE,
    Case { ids: true, streams: true, ..SMALL_ONE },
    Case { share: 78, ..SMALL_ONE },
    Case { share: 78, ids: true, streams: true, ..SMALL_ONE },
];

/// Windows into which a run is divided for the curves.
const WINDOWS: u64 = 36;

impl Case {
    fn in_context(self, context: &Context<'_>) -> Self {
        if context.is_sabotaged { self.spoiled() } else { self }
    }

    /// What a sabotaged run does instead.
    fn spoiled(self) -> Self {
        match (self.preset, self.ids) {
            (LARGE_DRIVE, true) => self,
            (LARGE_DRIVE, false) => Self { op: Some(ENDLESS), ..self },
            _ => Self { ids: false, streams: false, ..self },
        }
    }

    /// The job file with this case's share, ids and run time.
    fn jobs(&self, seconds: f64) -> String {
        let mut text = String::new();
        for line in JOBS.lines() {
            let value = |text: &str| text.split(';').next().unwrap_or_default().trim().to_owned();
            match line.split_once('=').map(|(key, rest)| (key.trim(), value(rest))) {
                Some(("runtime", _)) => _ = writeln!(text, "runtime={}us", (seconds * 1e6) as u64),
                Some(("fadvise_stream", _)) if !self.ids => {}
                Some((key @ ("size" | "offset"), value)) if value.ends_with('%') => {
                    let percent: f64 = value.trim_end_matches('%').parse().expect("a percentage");
                    let percent = percent * f64::from(self.share) / SHARE_OF_JOBS;
                    _ = writeln!(text, "{key}={percent}%");
                }
                _ => _ = writeln!(text, "{line}"),
            }
        }
        text
    }

    fn config(&self, scale: &Scale, context: &Context<'_>) -> Result<StackConfig, ConfigError> {
        let blocks = if self.preset == LARGE_DRIVE { scale.blocks_1920 } else { scale.blocks_480 };
        let (fill, directives) =
            (format!("fill:{}%", self.share), if self.streams { "streams" } else { "none" });
        let erase =
            format!("{}ns", u64::from(ERASE_NS) * u64::from(scale.pages_per_block) / u64::from(PAGES));
        let mut keys: Vec<(&str, &dyn Display)> = vec![
            ("device.timing.erase", &erase),
            ("device.pages_per_block", &scale.pages_per_block),
            ("device.blocks_per_plane", &blocks),
            ("workload.precondition", &fill),
            ("directives.kind", &directives),
        ];
        if let Some(op) = &self.op {
            keys.push(("ftl.op", op));
        }
        if self.streams {
            keys.push(("ftl.streams", &4));
        }
        context.config(Some(self.preset), &keys)
    }

    fn run(&self, scale: &Scale, context: &Context<'_>) -> Result<Measured> {
        let seconds = scale.seconds();
        let interval_ns = Some((seconds * 1e9) as u64 / WINDOWS + 1);
        let options = RunOptions { interval_ns, with_series: true, ..RunOptions::default() };
        let run = context.run_jobs(&self.config(scale, context)?, ID, &self.jobs(seconds), options)?;
        Ok(Measured::new(&run))
    }
}

#[derive(Clone, Debug)]
struct Measured {
    write_mb: f64,
    read_iops: f64,
    read_us: f64,
    /// Bytes of each writer.
    writers: [f64; 4],
    waf: f64,
    /// Write rate of each window, MB/s.
    curve: Vec<f64>,
    /// Write amplification of each window.
    wafs: Vec<f64>,
}

impl Measured {
    fn new(run: &Run) -> Self {
        let result = &run.result;
        let readers = &result.jobs[0].read;
        let (mut curve, mut wafs) = (Vec::new(), Vec::new());
        let windows = run.jobs.as_ref().map_or(&[][..], |series| &series.windows);
        let mut last = (0, 0, 0);
        for window in windows.iter().take(WINDOWS as usize) {
            let bytes: u64 = window.rows.iter().map(|row| row[1].bytes).sum();
            curve.push(bytes as f64 * 1e3 / (window.end_ns - last.0).max(1) as f64);
            let set = window.sets[0];
            wafs.push((set.programs - last.1) as f64 / (set.host_pages - last.2).max(1) as f64);
            last = (window.end_ns, set.programs, set.host_pages);
        }
        Self {
            write_mb: result.speed.throughput.write_bytes_per_s / 1e6,
            read_iops: readers.iops,
            read_us: readers.latency_ns.mean / 1e3,
            writers: std::array::from_fn(|writer| result.jobs[1 + writer].write.bytes as f64),
            waf: result.waf.pages.unwrap_or(0.0),
            curve,
            wafs,
        }
    }

    /// Mean write rate before the first window that collected anything, and the number of that window.
    fn peak(&self) -> (f64, usize) {
        let first = self.wafs.iter().position(|waf| *waf > 1.02).unwrap_or(self.wafs.len()).max(1);
        (mean(&self.curve[..first]), first)
    }

    /// Mean write rate and write amplification of the last third.
    fn plateau(&self) -> (f64, f64) {
        let from = self.curve.len() - self.curve.len() / 3;
        (mean(&self.curve[from..]), mean(&self.wafs[from..]))
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn rows(scale: &Scale, context: &Context<'_>, out: &mut Table) -> Done {
    let measured: Vec<Measured> = CASES
        .par_iter()
        .map(|case| case.in_context(context).run(scale, context))
        .collect::<Result<_, _>>()?;
    let [off_90, on_90, off_78, on_78, without_90, with_90, without_78, with_78] = &measured[..] else {
        unreachable!("one result a case")
    };
    published(out, [off_90, off_78]);
    for (share, off, on) in [(90, off_90, on_90), (78, off_78, on_78)] {
        no_effect(out, share, off, on);
        curve(out, share, off);
    }
    for (share, without, with) in [(90, without_90, with_90), (78, without_78, with_78)] {
        streams(out, share, without, with);
    }
    Ok(())
}

/// Figures of the table [streams-article 3.2.3].
fn published(out: &mut Table, off: [&Measured; 2]) {
    for (share, run) in [90, 78].into_iter().zip(off) {
        let note = format!(
            "the think times were chosen near 617 MB/s in all, as the source has only their ratios; mean over as many drive writes as \
             in the source's 2 hours; {:.0} before the cliff, {:.0} in the last third at a write amplification of {:.2}; the source does \
             not say how full its file system was",
            run.peak().0,
            run.plateau().0,
            run.plateau().1
        );
        out.row(RESULTS, format!("writes, {share} % full"))
            .number("MB/s", 617.0, run.write_mb)
            .kind(RowKind::Calibrated)
            .note(note);
        for (writer, published) in [10.0, 3.0, 2.0].into_iter().enumerate() {
            out.row(
                RESULTS,
                format!("writes of writer {} over those of writer 4, {share} % full", writer + 1),
            )
            .number("", published, run.writers[writer] / run.writers[3])
            .kind(RowKind::Calibrated)
            .note(
                "by the think times, for requests of 100 us; longer ones bring the writers closer together",
            );
        }
    }
    let note = "the published pair belongs to one job of depth 64 (64 / 772 us = 82.9 K a second): six such jobs have 384 requests under \
         way, so 82.9 K in all would take 4.6 ms each, and 82.9 K a job would be 497 K in all, above the data sheet's 430 K; no drive has \
         all three";
    for (share, run) in [90, 78].into_iter().zip(off) {
        for (what, unit, published, measured) in [
            ("random reads, the six jobs together", "IOPS", 82_900.0, run.read_iops),
            ("random reads of each job", "IOPS", 82_900.0, run.read_iops / 6.0),
            ("mean read latency", "us", 772.0, run.read_us),
        ] {
            out.row(RESULTS, format!("{what}, {share} % full"))
                .number(unit, published, measured)
                .near()
                .note(note);
        }
    }
}

/// Forced ids on a drive without directives [streams-article 3.3].
fn no_effect(out: &mut Table, share: u32, off: &Measured, on: &Measured) {
    let change = (on.write_mb - off.write_mb).abs() / off.write_mb * 100.0;
    let note = "the source's 0.2 % is its noise: here both runs are the same, request by request";
    out.row(RESULTS, format!("change of writes by stream ids, {share} % full"))
        .number("%", 0.2, change)
        .within(0.0..=0.5)
        .note(note);
    let name = format!("stream ids without directives, {share} % full");
    let is_same = on.curve == off.curve && (on.read_us - off.read_us).abs() < 1e-9;
    let note =
        format!("{change:.3} %, every window of the curve {}", if is_same { "equal" } else { "differs" });
    out.row(RESULTS, name)
        .says("no effect: less than 0.5 % (and here every window the same)", change < 0.5 && is_same)
        .found(note);
}

/// The curve over time [streams-article 3.2.3].
fn curve(out: &mut Table, share: u32, run: &Measured) {
    let ((peak, cliff), (plateau, waf)) = (run.peak(), run.plateau());
    let third = run.curve.len() / 3;
    let before = mean(&run.curve[run.curve.len() - 2 * third..run.curve.len() - third]);
    let drift = (plateau / before - 1.0) * 100.0;
    let has_cliff = cliff < run.curve.len() && plateau < 0.8 * peak && drift.abs() < 15.0;
    let curve: Vec<String> = run.curve.iter().map(|rate| format!("{rate:.0}")).collect();
    let note = format!(
        "{peak:.0} MB/s until {:.0} % of the run; {plateau:.0} in the last third ({drift:+.0} % from the third before), write \
         amplification {waf:.2}; MB/s: {}",
        100.0 * cliff as f64 / run.curve.len() as f64,
        curve.join(" ")
    );
    let name = format!("writes over time, {share} % full");
    let text = "a peak while free blocks last, a cliff (below 0.8 of it), a steady state (last third within 15 % of the middle one)";
    out.row(RESULTS, name).says(text, has_cliff).found(note);
}

/// The same load on a drive with streams, which the source could not measure [streams-article 3.3].
fn streams(out: &mut Table, share: u32, without: &Measured, with: &Measured) {
    let name = format!("write amplification with streams, {share} % full");
    let note = format!("{:.3} with streams, {:.3} without", with.waf, without.waf);
    let holds = (with.waf - 1.0).abs() <= 0.05 && with.waf <= (1.0 - MARGIN) * without.waf;
    out.row(OUTLOOK, name)
        .says("improves (taken as by 2 % or more), to within 5 % of 1.0", holds)
        .found(note);
    let name = format!("writes with streams, {share} % full");
    let ((plateau, _), (base, _)) = (with.plateau(), without.plateau());
    let note = format!(
        "{:.0} MB/s with streams and {:.0} without, {plateau:.0} and {base:.0} in the last third",
        with.write_mb, without.write_mb
    );
    let is_more = |one: f64, other: f64| one >= (1.0 + MARGIN) * other;
    let holds = is_more(with.write_mb, without.write_mb) && is_more(plateau, base);
    out.row(OUTLOOK, name)
        .says("improves (taken as by 2 % or more, and in the last third too)", holds)
        .found(note);
}
