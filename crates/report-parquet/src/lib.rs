//! The series over time as Parquet: one row per run and interval, for data frames. Of job files one row per
//! run, interval, job and direction. A sweep is a table of its own ([`render_sweep_parquet`]).
//!
//! A crate of its own, because its dependencies take longer to build than the rest of the reports.
//!
//! Counts (`host_*`, `programs_*`, `reads_*`, `erases_*`, `map_*`, `gc_*`) are those of the interval, so that
//! they can be summed; what ends in `_so_far` is from the start of the counted part to the end of the
//! interval. Quantiles are of the requests that completed in the interval, at most 6.25 % below the true
//! value. Of a cache (`cache_*`), slots, used, dirty and dirty bytes are those at the end of the interval,
//! the rest counts of it. Null: there was nothing to divide by or to order, or the run has no cache.

mod columns;
mod jobs;
mod sweep;

pub use sweep::render_sweep_parquet;

use columns::{Columns, OfCache};
use nandscape_core::Cause;
use nandscape_report::{Output, ReportError, Run};
use nandscape_sim::cached::CachePoint;
use nandscape_sim::histogram::LogHistogram;
use nandscape_sim::metrics::Sample;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

/// Registry entry.
pub static OUTPUT: Output = Output {
    wants_series: true,
    needs_series: true,
    ..Output::new("parquet", "the series over time, a row per run and interval", |runs, _| {
        render_parquet(runs)
    })
};

/// One row: the end of an interval and, if it is not the first, the end of the one before.
struct Row<'a> {
    run: &'a Run,
    interval: u32,
    now: &'a Sample,
    before: Option<&'a Sample>,
}

impl OfCache for Row<'_> {
    fn cache(&self) -> Option<CachePoint> {
        self.run.cache_at(self.now)
    }

    fn cache_before(&self) -> Option<CachePoint> {
        self.run.cache_at(self.before?)
    }
}

impl Row<'_> {
    fn grown(&self, of: impl Fn(&Sample) -> u64) -> u64 {
        of(self.now) - self.before.map_or(0, of)
    }
}

fn ratio(numerator: u64, denominator: u64) -> Option<f64> {
    (denominator > 0).then(|| numerator as f64 / denominator as f64)
}

fn per_second(count: u64, ns: u64) -> Option<f64> {
    ratio(count, ns).map(|per_ns| per_ns * 1e9)
}

fn host_bytes(sample: &Sample) -> u64 {
    sample.host.read_bytes + sample.host.write_bytes
}

fn programs(sample: &Sample) -> u64 {
    sample.causes.total().programs
}

/// The series of every run that has one, as a Parquet file in memory. Runs of job files and others are not in
/// one file.
///
/// # Errors
///
/// What the encoder refuses.
pub fn render_parquet(runs: &[Run]) -> Result<Vec<u8>, ReportError> {
    if runs.iter().any(|run| run.jobs.is_some()) {
        return jobs::file(runs);
    }
    file(columns(&rows(runs)), "nandscape.series", "1", version(runs))
}

/// The version that made the runs.
fn version(runs: &[Run]) -> Option<String> {
    runs.first().map(|run| run.result.run.version.clone())
}

/// The file of a table. `kind` and `version` tell readers what its columns mean; `made_by` is the version
/// that made the runs.
fn file<R>(
    columns: Columns<'_, R>,
    kind: &str,
    version: &str,
    made_by: Option<String>,
) -> Result<Vec<u8>, ReportError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![
            KeyValue::new(kind.to_owned(), version.to_owned()),
            KeyValue::new("nandscape.version".to_owned(), made_by),
        ]))
        .build();
    columns
        .file(properties)
        .map_err(|error| ReportError::Encode { output: "parquet", message: error.to_string() })
}

fn rows(runs: &[Run]) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for run in runs {
        let samples = run.series.as_ref().map_or(&[][..], |series| &series.samples);
        let befores = std::iter::once(None).chain(samples.iter().map(Some));
        for (interval, (now, before)) in samples.iter().zip(befores).enumerate() {
            rows.push(Row { run, interval: interval as u32, now, before });
        }
    }
    rows
}

fn columns<'a>(rows: &'a [Row<'a>]) -> Columns<'a, Row<'a>> {
    let mut columns = Columns::of(rows);
    columns.text("run", |row| row.run.label.clone());
    columns.text("workload", |row| row.run.result.workload.spec.clone());
    columns.number("interval", |row| row.interval);
    columns.count("requests_so_far", |row| row.now.requests);
    columns.count("simulated_ns_so_far", |row| row.now.simulated_ns);
    columns.count("host_read_bytes_so_far", |row| row.now.host.read_bytes);
    columns.count("host_write_bytes_so_far", |row| row.now.host.write_bytes);
    host(&mut columns);
    flash(&mut columns);
    columns.real("waf", |row| ratio(row.grown(programs), row.grown(|s| s.host.write_pages)));
    columns.real("waf_so_far", |row| ratio(programs(row.now), row.now.host.write_pages));
    columns.real("host_bytes_per_s", |row| per_second(row.grown(host_bytes), row.grown(|s| s.simulated_ns)));
    columns.real("host_bytes_per_s_so_far", |row| per_second(host_bytes(row.now), row.now.simulated_ns));
    for (name, q) in [("p50", 0.5), ("p99", 0.99), ("p99_9", 0.999)] {
        columns.optional_count(&format!("read_{name}_ns"), |row| quantile(&row.now.read_latency, q));
        columns.optional_count(&format!("write_{name}_ns"), |row| quantile(&row.now.write_latency, q));
    }
    columns.cache();
    columns
}

fn quantile(latencies: &LogHistogram, q: f64) -> Option<u64> {
    (latencies.total() > 0).then(|| latencies.quantile(q))
}

fn host(columns: &mut Columns<'_, Row<'_>>) {
    columns.count("host_reads", |row| row.grown(|s| s.host.reads));
    columns.count("host_writes", |row| row.grown(|s| s.host.writes));
    columns.count("host_trims", |row| row.grown(|s| s.host.trims));
    columns.count("host_flushes", |row| row.grown(|s| s.host.flushes));
    columns.count("host_read_bytes", |row| row.grown(|s| s.host.read_bytes));
    columns.count("host_write_bytes", |row| row.grown(|s| s.host.write_bytes));
    columns.count("host_read_pages", |row| row.grown(|s| s.host.read_pages));
    columns.count("host_write_pages", |row| row.grown(|s| s.host.write_pages));
}

fn flash(columns: &mut Columns<'_, Row<'_>>) {
    for cause in Cause::ALL {
        let name = cause.name();
        columns.count(&format!("programs_{name}"), |row| row.grown(|s| s.causes.get(cause).programs));
        columns.count(&format!("reads_{name}"), |row| row.grown(|s| s.causes.get(cause).reads));
        columns.count(&format!("erases_{name}"), |row| row.grown(|s| s.causes.get(cause).erases));
    }
    columns.count("map_updates", |row| row.grown(|s| s.ftl.map_updates));
    columns.count("map_update_bytes", |row| row.grown(|s| s.ftl.map_update_bytes));
    columns.count("gc_runs", |row| row.grown(|s| s.ftl.gc_runs));
    columns.count("gc_moved_pages", |row| row.grown(|s| s.ftl.gc_moved_pages));
}
