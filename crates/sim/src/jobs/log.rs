//! Requests one by one as jobs issue them (`write_iolog`), and as they complete (`write_lat_log` and others).

use super::planned::Area;
use nandscape_core::{Extent, Op, SimTime};
use nandscape_jobs::{Direction, Job};
use std::fmt::Debug;

/// A request as a job issues it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged<'a> {
    /// Number of the job among all jobs of the file.
    pub job: u32,
    /// When, from the beginning of the counted part.
    pub at: SimTime,
    /// Read, write, trim or flush.
    pub op: Op,
    /// The file or namespace, as the job names it.
    pub file: &'a str,
    /// First byte in it.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// A request that has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Number of the job among all jobs of the file.
    pub job: u32,
    /// When, in nanoseconds from where the job's counted part began: after its `ramp_time`.
    pub at_ns: u64,
    /// Read, write or trim.
    pub direction: Direction,
    /// Bytes.
    pub bytes: u64,
    /// From its issue to its completion.
    pub latency_ns: u64,
}

/// Hears of the requests of jobs that have a log.
pub trait RequestLog: Debug {
    /// A request of a job with `write_iolog` is issued; in the order of issue.
    fn request(&self, request: Logged<'_>);

    /// A request of a job with another log has completed, and is counted; in the order of completion.
    fn sample(&self, sample: Sample) {
        let _ = sample;
    }
}

/// A log, and where the files of the jobs lie.
pub(crate) struct Log<'a> {
    to: &'a dyn RequestLog,
    /// By job; empty for those that are not logged.
    areas: Vec<&'a [Area]>,
    /// By job.
    has_samples: Vec<bool>,
}

impl<'a> Log<'a> {
    pub fn new(to: &'a dyn RequestLog, jobs: &[Job], areas: &'a [Vec<Area>]) -> Self {
        let logged = |(job, areas): (&Job, &'a Vec<Area>)| {
            if job.logs.requests.is_some() { areas.as_slice() } else { &[] }
        };
        let areas = jobs.iter().zip(areas).map(logged).collect();
        Self { to, areas, has_samples: jobs.iter().map(|job| job.logs.has_samples()).collect() }
    }

    pub fn sample(&self, sample: Sample) {
        if self.has_samples[sample.job as usize] {
            self.to.sample(sample);
        }
    }

    pub fn request(&self, job: u32, at: SimTime, op: Op, namespace: u32, extent: Extent) {
        let has = |area: &&Area| {
            area.namespace == namespace && (area.start..area.start + area.len).contains(&extent.offset)
        };
        let areas = self.areas[job as usize];
        let area = if op == Op::Flush { areas.first() } else { areas.iter().find(has) };
        let Some(area) = area else { return };
        let offset = extent.offset.saturating_sub(area.start);
        self.to.request(Logged { job, at, op, file: &area.name, offset, len: extent.len });
    }
}
