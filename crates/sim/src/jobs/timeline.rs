//! What happened when: for each interval of virtual time what each job (or report group) and each NVM set
//! did, and how the cache stood. For charts over time.

use crate::cached::CachePoint;
use crate::histogram::LogHistogram;
use crate::zones::{ZoneHistory, ZoneRecorder};
use nandscape_core::{Cause, Subsystem};
use nandscape_jobs::Direction;

/// Windows kept of a run; when there would be more, every second is merged into its successor.
pub const MAX_WINDOWS: usize = 1024;
/// First interval where none was asked for.
const FIRST_NS: u64 = 100_000;

/// Requests of one direction that completed in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Cell {
    pub requests: u64,
    pub bytes: u64,
    /// Sum of their latencies.
    pub latency_sum_ns: u64,
    pub latency_max_ns: u64,
    /// Latencies as [`LogHistogram::sparse`] gives them.
    pub buckets: Box<[(u16, u32)]>,
}

impl Cell {
    /// Latency that a share `q` (0 to 1) does not exceed, from a sixteenth below up to it; `None` without
    /// requests.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let mut histogram = LogHistogram::default();
        histogram.add_sparse(&self.buckets);
        (self.requests > 0).then(|| histogram.quantile(q))
    }

    fn merge(&mut self, before: &Self) {
        let mut histogram = LogHistogram::default();
        histogram.add_sparse(&before.buckets);
        histogram.add_sparse(&self.buckets);
        self.add_sums(before);
        self.buckets = histogram.sparse();
    }

    fn add_sums(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.latency_sum_ns += other.latency_sum_ns;
        self.latency_max_ns = self.latency_max_ns.max(other.latency_max_ns);
    }
}

/// Counters of one NVM set at the end of a window, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetPoint {
    /// Device pages that hosts wrote.
    pub host_pages: u64,
    /// Pages programmed.
    pub programs: u64,
    /// Of those for garbage collection and merges.
    pub moved: u64,
    /// Blocks erased.
    pub erases: u64,
}

/// One interval.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// Its end, from the beginning of the run.
    pub end_ns: u64,
    /// Reads and writes of each row.
    pub rows: Vec<[Cell; 2]>,
    /// Every set at its end.
    pub sets: Vec<SetPoint>,
    /// The cache at its end, where there is one.
    pub cache: Option<CachePoint>,
}

/// All intervals of a run.
#[derive(Clone, Debug, Default)]
pub struct JobSeries {
    /// Length of an interval; the last may be shorter.
    pub interval_ns: u64,
    /// Names of the rows, as in the result's `jobs`.
    pub rows: Vec<String>,
    /// In order of time.
    pub windows: Vec<Window>,
}

/// The window that is open: its sums, and the latencies that become their buckets.
#[derive(Clone, Debug, Default)]
struct Open {
    sums: Cell,
    histogram: Option<LogHistogram>,
}

impl Open {
    #[inline]
    fn record(&mut self, bytes: u64, latency_ns: u64) {
        self.sums.requests += 1;
        self.sums.bytes += bytes;
        self.sums.latency_sum_ns += latency_ns;
        self.sums.latency_max_ns = self.sums.latency_max_ns.max(latency_ns);
        self.histogram.get_or_insert_default().record(latency_ns);
    }

    fn close(&mut self) -> Cell {
        let mut cell = std::mem::take(&mut self.sums);
        if let Some(histogram) = &mut self.histogram {
            cell.buckets = histogram.sparse();
            histogram.clear();
        }
        cell
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    series: JobSeries,
    row_of: Vec<u32>,
    open: Vec<[Open; 2]>,
    due: u64,
    max_windows: usize,
    zones: Option<ZoneRecorder>,
}

impl Timeline {
    /// For jobs that belong to these rows. `interval_ns` where one was asked for.
    pub fn new(
        rows: Vec<String>,
        row_of: Vec<u32>,
        interval_ns: Option<u64>,
        subsystem: &dyn Subsystem,
    ) -> Self {
        // A quarter million cells at most, whatever the number of rows.
        let max_windows = ((1 << 18) / rows.len().max(1)).clamp(16, MAX_WINDOWS);
        let interval_ns = interval_ns.unwrap_or(FIRST_NS).max(1);
        Self {
            open: vec![<[Open; 2]>::default(); rows.len()],
            series: JobSeries { interval_ns, rows, windows: Vec::new() },
            row_of,
            due: interval_ns,
            max_windows,
            zones: ZoneRecorder::new(subsystem),
        }
    }

    /// Whether the open window has ended at `now`.
    #[inline]
    pub const fn is_due(&self, now: u64) -> bool {
        now >= self.due
    }

    #[inline]
    pub fn complete(&mut self, job: u32, direction: Direction, bytes: u64, latency_ns: u64) {
        let row = &mut self.open[self.row_of[job as usize] as usize];
        match direction {
            Direction::Read => row[0].record(bytes, latency_ns),
            Direction::Write => row[1].record(bytes, latency_ns),
            Direction::Trim => {}
        }
    }

    /// Ends windows up to `now`.
    pub fn close(&mut self, now: u64, subsystem: &dyn Subsystem) {
        while now >= self.due {
            // A long silence is not worth a window for each interval: the interval grows first.
            while (now - self.due) / self.series.interval_ns >= self.max_windows as u64 {
                self.double();
            }
            let end = self.due;
            self.push(end, subsystem);
            self.due = (end + 1).next_multiple_of(self.series.interval_ns);
        }
        if let Some(zones) = self.zones.as_mut().filter(|zones| now >= zones.due_ns) {
            zones.look(now, subsystem);
        }
    }

    /// The series, with a last window that ends at `end`, and how zones stood, where there are any.
    pub fn finish(mut self, end: u64, subsystem: &dyn Subsystem) -> (JobSeries, Option<ZoneHistory>) {
        self.close(end, subsystem);
        if self.open.iter().flatten().any(|open| open.sums.requests > 0) {
            self.push(end.max(1), subsystem);
        }
        (self.series, self.zones.map(|zones| zones.finish(end, subsystem)))
    }

    fn push(&mut self, end: u64, subsystem: &dyn Subsystem) {
        let rows = self.open.iter_mut().map(|row| [row[0].close(), row[1].close()]).collect();
        let cache = subsystem.inspect().cache().as_ref().map(CachePoint::of);
        self.series.windows.push(Window { end_ns: end, rows, sets: set_points(subsystem), cache });
        if self.series.windows.len() >= self.max_windows {
            self.double();
        }
    }

    /// Merges every window into its successor and doubles the interval.
    fn double(&mut self) {
        self.series.interval_ns *= 2;
        let interval = self.series.interval_ns;
        let windows = std::mem::take(&mut self.series.windows);
        let mut carried: Option<Window> = None;
        for mut window in windows {
            if let Some(before) = carried.take() {
                for (mine, theirs) in window.rows.iter_mut().flatten().zip(before.rows.iter().flatten()) {
                    mine.merge(theirs);
                }
            }
            if window.end_ns.is_multiple_of(interval) {
                self.series.windows.push(window);
            } else {
                carried = Some(window);
            }
        }
        // The half window left over goes back into the open one.
        if let Some(half) = carried {
            for (open, cell) in self.open.iter_mut().flatten().zip(half.rows.iter().flatten()) {
                open.sums.add_sums(cell);
                if cell.requests > 0 {
                    open.histogram.get_or_insert_default().add_sparse(&cell.buckets);
                }
            }
        }
        self.due = self.due.next_multiple_of(interval);
    }
}

fn set_points(subsystem: &dyn Subsystem) -> Vec<SetPoint> {
    let mut points = vec![SetPoint::default(); usize::from(subsystem.inspect().sets())];
    for (index, info) in subsystem.namespaces().iter().enumerate() {
        let Some(point) = points.get_mut(usize::from(info.set)) else { continue };
        point.host_pages += subsystem.inspect().host_counts(index as u32).write_pages;
    }
    for (set, point) in points.iter_mut().enumerate() {
        let counters = subsystem.inspect().device(set as u16).counters();
        let total = counters.total();
        point.programs = total.programs;
        point.erases = total.erases;
        point.moved = counters.get(Cause::Gc).programs + counters.get(Cause::Merge).programs;
    }
    points
}
