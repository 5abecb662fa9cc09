//! What a plan says of a job: regions, zones, and why one does not fit.

use nandscape_core::TraceError;
use nandscape_jobs::Job;

/// A job that does not fit the device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: job '{job}': {message}")]
pub struct PlanError {
    /// File and line of its section.
    pub place: String,
    /// Its name.
    pub job: String,
    /// What does not fit, with the numbers.
    pub message: String,
}

/// The region of one file or namespace that a job works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub namespace: u32,
    pub start: u64,
    pub len: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobPlan {
    pub regions: Vec<Region>,
    /// Bytes to transfer, all loops together; without meaning for a job that ends by time.
    pub total_bytes: u64,
    /// It goes on at the beginning when it reaches the end of its regions.
    pub wraps: bool,
    /// With a `zonemode`: how it walks through its files.
    pub walk: Option<WalkPlan>,
}

/// A namespace or file that a job works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub namespace: u32,
    /// First byte in the namespace.
    pub start: u64,
    pub len: u64,
    pub name: String,
}

/// What a plan says of a file of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePlan {
    pub namespace: u32,
    /// First byte of the file in the namespace.
    pub base: u64,
    /// Length of the file.
    pub real_len: u64,
    /// Where the region begins by the options.
    pub start: u64,
    /// Where it begins in whole zones.
    pub offset: u64,
    /// Length of the region in whole zones.
    pub len: u64,
    /// Index of its zones; `None` with `zonemode=strided`.
    pub set: Option<u32>,
}

/// What a plan says of a job with a `zonemode`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WalkPlan {
    pub files: Vec<FilePlan>,
    /// Bytes of a round.
    pub size: u64,
    /// Bytes of all rounds by `io_size`; 0 where it is not given.
    pub io_size: u64,
    /// Bytes in a zone before the next one's turn.
    pub zone_size: u64,
    /// Bytes of a zone with `zonemode=strided`.
    pub zone_range: u64,
    pub zone_skip: u64,
}

/// What a plan says of the zones of a namespace or file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZonesPlan {
    pub namespace: u32,
    /// First byte of the first zone in the namespace.
    pub start: u64,
    pub count: u32,
    pub size: u64,
    pub capacity: u64,
    /// Limit of open zones, all jobs together; 0 for none.
    pub max_open: u32,
    /// The namespace has these zones; others exist only for the jobs.
    pub is_device: bool,
}

pub(crate) fn error(job: &Job, message: String) -> PlanError {
    PlanError { place: job.place.to_string(), job: job.name.clone(), message }
}

/// The recording of a job cannot be read.
pub fn unreadable(job: &Job, cause: &TraceError) -> PlanError {
    error(job, format!("read_iolog={}: {cause}", job.recording_file().unwrap_or_default()))
}

pub(crate) fn share(of: u64, percent: f64) -> u64 {
    (of as f64 * percent / 100.0) as u64
}
