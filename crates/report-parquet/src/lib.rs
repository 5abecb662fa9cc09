//! The series over time as Parquet: one row per run and interval, for data frames.
//!
//! A crate of its own, because its dependencies take longer to build than the rest of the reports.
//!
//! Counts (`host_*`, `programs_*`, `reads_*`, `erases_*`, `map_*`, `gc_*`) are those of the interval, so that they can be summed;
//! what ends in `_so_far` is from the start of the counted part to the end of the interval. Quantiles are of the requests that
//! completed in the interval, at most 6.25 % below the true value. Of a cache (`cache_*`), slots, used, dirty and dirty bytes are those
//! at the end of the interval, the rest counts of it. Null: there was nothing to divide by or to order, or the run has no cache.

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use nandscape_core::Cause;
use nandscape_report::{Output, ReportError, Run};
use nandscape_sim::cached::CachePoint;
use nandscape_sim::histogram::LogHistogram;
use nandscape_sim::metrics::Sample;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

/// Registry entry.
pub const OUTPUT: Output = Output {
    name: "parquet",
    summary: "the series over time, a row per run and interval",
    render: |runs, _| render_parquet(runs),
};

/// One row: the end of an interval and, if it is not the first, the end of the one before.
struct Row<'a> {
    run: &'a Run,
    interval: u32,
    now: &'a Sample,
    before: Option<&'a Sample>,
}

/// Columns of a cache: how it stands, then what it did in the interval.
type OfCache = (&'static str, fn(&CachePoint) -> u64);
const CACHE: [OfCache; 13] = [
    ("cache_slots", |p| p.slots),
    ("cache_used", |p| p.used),
    ("cache_dirty", |p| p.dirty),
    ("cache_dirty_bytes", |p| p.dirty_bytes),
    ("cache_reads", |p| p.reads),
    ("cache_read_hits", |p| p.read_hits),
    ("cache_writes", |p| p.writes),
    ("cache_write_hits", |p| p.write_hits),
    ("cache_cleaned", |p| p.cleaned),
    ("cache_fast_read_bytes", |p| p.fast_read_bytes),
    ("cache_fast_write_bytes", |p| p.fast_write_bytes),
    ("cache_disk_read_bytes", |p| p.disk_read_bytes),
    ("cache_disk_write_bytes", |p| p.disk_write_bytes),
];

impl Row<'_> {
    /// The cache since the start.
    fn cache(&self) -> Option<CachePoint> {
        self.run.cache_at(self.now)
    }

    /// The cache in the interval.
    fn cache_grown(&self) -> Option<CachePoint> {
        let before = self.before.and_then(|before| self.run.cache_at(before)).unwrap_or_default();
        self.cache().map(|now| now.since(&before))
    }

    /// What a counter grew by in the interval.
    fn grown(&self, of: impl Fn(&Sample) -> u64) -> u64 {
        of(self.now) - self.before.map_or(0, of)
    }
}

fn ratio(numerator: u64, denominator: u64) -> Option<f64> {
    (denominator > 0).then(|| numerator as f64 / denominator as f64)
}

fn per_second(bytes: u64, ns: u64) -> Option<f64> {
    ratio(bytes, ns).map(|per_ns| per_ns * 1e9)
}

fn host_bytes(sample: &Sample) -> u64 {
    sample.host.read_bytes + sample.host.write_bytes
}

fn programs(sample: &Sample) -> u64 {
    sample.causes.total().programs
}

/// Columns in the order of the file.
struct Columns<'a> {
    rows: &'a [Row<'a>],
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns<'_> {
    fn push(&mut self, name: &str, kind: DataType, can_be_null: bool, array: ArrayRef) {
        self.fields.push(Field::new(name, kind, can_be_null));
        self.arrays.push(array);
    }

    fn text(&mut self, name: &str, of: impl Fn(&Row<'_>) -> String) {
        let array = StringArray::from_iter_values(self.rows.iter().map(of));
        self.push(name, DataType::Utf8, false, Arc::new(array));
    }

    fn count(&mut self, name: &str, of: impl Fn(&Row<'_>) -> u64) {
        let array = UInt64Array::from_iter_values(self.rows.iter().map(of));
        self.push(name, DataType::UInt64, false, Arc::new(array));
    }

    fn real(&mut self, name: &str, of: impl Fn(&Row<'_>) -> Option<f64>) {
        let array: Float64Array = self.rows.iter().map(of).collect();
        self.push(name, DataType::Float64, true, Arc::new(array));
    }

    fn optional_count(&mut self, name: &str, of: impl Fn(&Row<'_>) -> Option<u64>) {
        let array: UInt64Array = self.rows.iter().map(of).collect();
        self.push(name, DataType::UInt64, true, Arc::new(array));
    }

    fn quantile(&mut self, name: &str, q: f64, of: impl Fn(&Sample) -> &LogHistogram) {
        self.optional_count(name, |row| {
            let histogram = of(row.now);
            (histogram.total() > 0).then(|| histogram.quantile(q))
        });
    }
}

/// The series of every run that has one, as a Parquet file in memory.
pub fn render_parquet(runs: &[Run]) -> Result<Vec<u8>, ReportError> {
    let mut rows = Vec::new();
    for run in runs {
        let samples = run.series.as_ref().map_or(&[][..], |series| &series.samples);
        let befores = std::iter::once(None).chain(samples.iter().map(Some));
        for (interval, (now, before)) in samples.iter().zip(befores).enumerate() {
            rows.push(Row { run, interval: interval as u32, now, before });
        }
    }
    let batch = batch(&rows).map_err(|error| failure(&error))?;
    let version = runs.first().map(|run| run.result.version.clone());
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![
            KeyValue::new("nandscape.series".to_owned(), "1".to_owned()),
            KeyValue::new("nandscape.version".to_owned(), version),
        ]))
        .build();
    let mut out = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut out, batch.schema(), Some(properties)).map_err(|error| failure(&error))?;
    writer.write(&batch).map_err(|error| failure(&error))?;
    writer.close().map_err(|error| failure(&error))?;
    Ok(out)
}

fn failure(error: &dyn std::error::Error) -> ReportError {
    ReportError::Encode { output: "parquet", message: error.to_string() }
}

fn batch(rows: &[Row<'_>]) -> Result<RecordBatch, arrow_schema::ArrowError> {
    let mut columns = Columns { rows, fields: Vec::new(), arrays: Vec::new() };
    columns.text("run", |row| row.run.label.clone());
    columns.text("workload", |row| row.run.result.workload.spec.clone());
    let numbers = UInt32Array::from_iter_values(rows.iter().map(|row| row.interval));
    columns.push("interval", DataType::UInt32, false, Arc::new(numbers));
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
        columns.quantile(&format!("read_{name}_ns"), q, |s| &s.read_latency);
        columns.quantile(&format!("write_{name}_ns"), q, |s| &s.write_latency);
    }
    cache(&mut columns);
    RecordBatch::try_new(Arc::new(Schema::new(columns.fields)), columns.arrays)
}

fn host(columns: &mut Columns<'_>) {
    columns.count("host_reads", |row| row.grown(|s| s.host.reads));
    columns.count("host_writes", |row| row.grown(|s| s.host.writes));
    columns.count("host_trims", |row| row.grown(|s| s.host.trims));
    columns.count("host_flushes", |row| row.grown(|s| s.host.flushes));
    columns.count("host_read_bytes", |row| row.grown(|s| s.host.read_bytes));
    columns.count("host_write_bytes", |row| row.grown(|s| s.host.write_bytes));
    columns.count("host_read_pages", |row| row.grown(|s| s.host.read_pages));
    columns.count("host_write_pages", |row| row.grown(|s| s.host.write_pages));
}

fn flash(columns: &mut Columns<'_>) {
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

fn cache(columns: &mut Columns<'_>) {
    for (name, of) in CACHE {
        columns.optional_count(name, |row| row.cache_grown().as_ref().map(of));
    }
    columns.real("cache_read_hit_ratio", |row| row.cache_grown()?.read_hit_ratio());
    columns.real("cache_write_hit_ratio", |row| row.cache_grown()?.write_hit_ratio());
    columns.real("cache_read_hit_ratio_so_far", |row| row.cache()?.read_hit_ratio());
    columns.real("cache_write_hit_ratio_so_far", |row| row.cache()?.write_hit_ratio());
}
