//! Virtual-time replay: a workload, a namespace and a pacing rule in; a [`RunResult`] out.
//!
//! * [`mod@replay`]: the loops (closed with a queue depth, open by time stamps), for schedulers that fix
//!   completions at submission and for event-driven ones alike.
//! * [`jobs`]: fio job files: many jobs on the namespaces of one subsystem.
//! * [`precondition`]: writes that put a device into a known state and are not counted.
//! * [`metrics`]: latency histograms, the series over time and the sample of single requests; [`cached`]: a
//!   cache in that series.
//! * [`zones`]: zones at a moment, and over a run.
//! * [`trust`]: checks of how far a result can be trusted.
//! * [`result`]: the result document (schema 1); [`sums`]: counters of a subsystem, added up.
//!
//! A run is a function of configuration, workload and seed. Nothing here reads a clock; who calls fills in
//! wall time.

pub mod cached;
pub mod histogram;
pub mod jobs;
mod lookahead;
pub mod metrics;
pub mod precondition;
pub mod replay;
pub mod result;
mod steady;
pub mod sums;
pub mod trust;
pub mod zones;

pub use jobs::{
    JobOptions, JobSeries, JobsError, JobsOutcome, Logged, Recordings, RequestLog, Room, Sample, run_jobs,
};
pub use precondition::{Precondition, Snapshot};
pub use replay::{Pacing, Progress, ReplayError, ReplayOptions, replay};
pub use result::{LifetimeResult, RunResult};
pub use steady::UntilSteady;
