//! Result documents for people and programs.
//!
//! A replay gives one [`Run`], a compare several; every output takes a slice of them and returns bytes, so
//! that the caller decides where they go ([`write_atomically`] for files). One file per output, one line in
//! [`OUTPUTS`]: `text` (tables for a terminal), `json` (the documents), `csv` (one line per run) and `html`
//! (one offline file with charts); `fio_json` is fio's own shape. [`read_documents`] reads documents
//! back and checks them against their schema. The Parquet series is a crate of its own
//! (`nandscape-report-parquet`), since its dependencies take longer to build than everything here.
//!
//! Invariants: nothing that comes from outside (names, paths, error messages) reaches a terminal with control
//! characters in it or an HTML page unescaped; the same runs give the same bytes.

mod advice;
mod cached;
mod condition;
mod contract;
mod csv;
mod document;
mod file;
mod fio_json;
mod html;
mod jobs;
mod json;
mod levels;
mod lines;
mod metrics;
mod notes;
mod number;
mod phases;
mod placement;
mod reproduction;
mod schema;
mod shape;
mod simulation;
mod sweep;
mod table;
mod text;
mod verdict;
mod workload;

use nandscape_core::Info;
use nandscape_policies::simulate::advice::Advice;
use nandscape_policies::simulate::curve::Point;
use nandscape_sim::cached::CachePoint;
use nandscape_sim::metrics::{Sample, Series};
use nandscape_sim::{JobSeries, RunResult};
use nandscape_trace::TraceStats;
use std::path::PathBuf;

pub use advice::{render_advice_csv, render_advice_text};
pub use condition::{Condition, number_at};
pub use csv::render_csv;
pub use document::{DocumentError, Documents, read_documents};
pub use file::{write_atomically, write_atomically_with};
pub use fio_json::render_fio_json;
pub use html::render_html;
pub use json::{pretty, render_json, render_json_document};
pub use levels::{Level, render_levels_text};
pub use lines::broken;
pub use number::grouped;
pub use reproduction::{
    ReproductionRow, RowKind, RowSeeds, RowSeries, Verdict, over_seeds, render_reproduction_csv,
    render_reproduction_markdown, render_reproduction_text,
};
pub use schema::{Fault, RESULT_SCHEMA, faults, is_number};
pub use simulation::render_simulations_text;
pub use sweep::{SweepRow, SweepTable, USABLE_SHARE, render_sweep_text};
pub use text::{render_detail, render_text};
pub use workload::render_workload_text;

/// One run to report on.
#[derive(Clone, Debug)]
pub struct Run {
    /// What tells the run from the others of the same report, usually the name of its translation layer.
    pub label: String,
    /// The result document.
    pub result: RunResult,
    /// The series over time, if it was collected; without it the HTML report has tables and bars but no
    /// curves.
    pub series: Option<Series>,
    /// What the jobs of a job file did over time, if it was collected.
    pub jobs: Option<JobSeries>,
}

impl Run {
    /// The label without the workload (`pm-gcl | WORKLOAD`), for places that name the workload anyway. The
    /// same translation layer has the same name, and so the same colour, under every workload.
    pub fn name(&self) -> &str {
        let workload = self.result.workload.spec.as_str();
        let name = self.label.strip_suffix(workload).and_then(|rest| rest.strip_suffix(" | "));
        name.unwrap_or(&self.label)
    }

    /// Its cache at a point of its series, unless it is a disk alone.
    pub fn cache_at(&self, sample: &Sample) -> Option<CachePoint> {
        sample.cache.filter(|_| self.result.has_cache())
    }

    /// Ran to its end without an error.
    pub const fn is_complete(&self) -> bool {
        self.result.error.is_none() && !self.result.partial
    }

    /// `complete`, `partial` (interrupted) or `failed`.
    pub const fn status(&self) -> &'static str {
        match (self.result.error.is_some(), self.result.partial) {
            (true, _) => "failed",
            (false, true) => "partial",
            (false, false) => "complete",
        }
    }
}

/// What a report says beside the runs themselves.
#[derive(Clone, Debug, Default)]
pub struct ReportContext {
    /// Heading; empty for one made from the runs.
    pub title: String,
    /// The command that gives the same report again, as it would be typed; empty if there is none.
    pub command: String,
    /// Published and measured figures (`reproduce`).
    pub reproduction: Vec<ReproductionRow>,
    /// Statistics of workloads (`trace stats`), each under its name.
    pub workload_stats: Vec<(String, TraceStats)>,
    /// Advice on a cache (`cache advise`), with the LRU curve at every size at which it falls.
    pub advice: Vec<(Advice, Vec<Point>)>,
    /// What a sweep gave (`sweep`).
    pub sweep: Option<SweepTable>,
}

/// A report could not be made or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ReportError {
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file that was to be written.
        path: PathBuf,
        action: &'static str,
        source: std::io::Error,
    },
    #[error("{output}: {message}")]
    Encode { output: &'static str, message: String },
}

/// One form a report can take.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// Registry entry; its name is what is typed, and the usual file extension.
    pub info: Info,
    /// Shows the course of a run, which is then kept.
    pub wants_series: bool,
    /// Has nothing but the course of a run, and so nothing to say of a run that was read from a document.
    pub needs_series: bool,
    /// Shows how often pages were programmed, which is then counted.
    pub wants_programs: bool,
    /// Renders the runs.
    pub render: fn(&[Run], &ReportContext) -> Result<Vec<u8>, ReportError>,
}

impl Output {
    /// An output without parameters, of what runs have at their ends.
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        render: fn(&[Run], &ReportContext) -> Result<Vec<u8>, ReportError>,
    ) -> Self {
        Self {
            info: Info { name, summary, source: "", params: &[] },
            wants_series: false,
            needs_series: false,
            wants_programs: false,
            render,
        }
    }
}

/// Every output of this crate.
pub static OUTPUTS: &[Output] = &[text::OUTPUT, json::OUTPUT, csv::OUTPUT, html::OUTPUT];
