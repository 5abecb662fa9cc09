//! Job files: what each job (or report group) did in each interval of virtual time, reads and writes in rows
//! of their own.
//!
//! Everything is of the requests that completed in the interval; `cache_*` is of the whole device, and the
//! same in all rows of an interval.

use super::columns::{Columns, OfCache};
use super::{per_second, ratio};
use nandscape_report::{ReportError, Run};
use nandscape_sim::cached::CachePoint;
use nandscape_sim::jobs::timeline::{Cell, Window};

struct Row<'a> {
    run: &'a Run,
    job: &'a str,
    direction: &'static str,
    cell: &'a Cell,
    interval: u32,
    now: &'a Window,
    before: Option<&'a Window>,
}

impl Row<'_> {
    fn start_ns(&self) -> u64 {
        self.before.map_or(0, |before| before.end_ns)
    }

    fn per_second(&self, count: u64) -> Option<f64> {
        per_second(count, self.now.end_ns - self.start_ns())
    }

    fn cache_of(&self, window: &Window) -> Option<CachePoint> {
        window.cache.filter(|_| self.run.result.has_cache())
    }
}

impl OfCache for Row<'_> {
    fn cache(&self) -> Option<CachePoint> {
        self.cache_of(self.now)
    }

    fn cache_before(&self) -> Option<CachePoint> {
        self.cache_of(self.before?)
    }
}

pub fn file(runs: &[Run]) -> Result<Vec<u8>, ReportError> {
    let mut rows = Vec::new();
    for run in runs {
        let Some(series) = &run.jobs else { continue };
        let befores = std::iter::once(None).chain(series.windows.iter().map(Some));
        for (interval, (now, before)) in series.windows.iter().zip(befores).enumerate() {
            for (job, cells) in series.rows.iter().zip(&now.rows) {
                for (direction, cell) in ["read", "write"].into_iter().zip(cells) {
                    rows.push(Row { run, job, direction, cell, interval: interval as u32, now, before });
                }
            }
        }
    }
    let mut columns = Columns::of(&rows);
    columns.text("run", |row| row.run.label.clone());
    columns.text("workload", |row| row.run.result.workload.spec.clone());
    columns.text("job", |row| row.job.to_owned());
    columns.text("direction", |row| row.direction.to_owned());
    columns.number("interval", |row| row.interval);
    columns.count("start_ns", Row::start_ns);
    columns.count("end_ns", |row| row.now.end_ns);
    columns.count("requests", |row| row.cell.requests);
    columns.count("bytes", |row| row.cell.bytes);
    columns.real("requests_per_s", |row| row.per_second(row.cell.requests));
    columns.real("bytes_per_s", |row| row.per_second(row.cell.bytes));
    columns.real("latency_mean_ns", |row| ratio(row.cell.latency_sum_ns, row.cell.requests));
    for (name, q) in [("p50", 0.5), ("p99", 0.99), ("p99_9", 0.999)] {
        columns.optional_count(&format!("latency_{name}_ns"), |row| row.cell.quantile(q));
    }
    columns
        .optional_count("latency_max_ns", |row| (row.cell.requests > 0).then_some(row.cell.latency_max_ns));
    columns.cache();
    super::file(columns, "nandscape.series", "jobs 1", super::version(runs))
}
