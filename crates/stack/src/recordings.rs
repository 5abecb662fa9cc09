//! Recordings of the jobs of a job file (`read_iolog`): each is read as a trace is, with a stream policy of
//! its own, so that several hosts share one device.

use crate::config::StackConfig;
use crate::error::RunError;
use crate::host::HostReader;
use crate::options::{open_options, target};
use nandscape_core::{IoRecord, TraceError, TraceReader, WorkloadInfo};
use nandscape_jobs::Job;
use nandscape_sim::result::PolicyResult;
use nandscape_sim::{Recordings, Room};
use nandscape_trace::{OpenOptions, Workload};
use std::sync::{Arc, Mutex, PoisonError};

/// What the host of a job did, and what a user should know of it.
#[derive(Debug)]
pub(crate) struct HostOutcome {
    /// Number of the job.
    pub job: u32,
    pub policy: PolicyResult,
    pub notes: Vec<String>,
}

/// Opens recordings by the reading keys of a configuration.
#[derive(Debug)]
pub struct HostRecordings<'a> {
    config: &'a StackConfig,
    /// Of hosts that are done.
    outcomes: Arc<Mutex<Vec<HostOutcome>>>,
}

impl<'a> HostRecordings<'a> {
    /// With the `[workload]` and `[host]` keys of this configuration.
    pub fn new(config: &'a StackConfig) -> Self {
        Self { config, outcomes: Arc::default() }
    }

    /// What all hosts did, in the order of their jobs, once their runs are over.
    pub(crate) fn into_outcomes(self) -> Vec<HostOutcome> {
        let mut outcomes = std::mem::take(&mut *self.outcomes.lock().unwrap_or_else(PoisonError::into_inner));
        outcomes.sort_by_key(|outcome| outcome.job);
        outcomes
    }
}

impl Recordings for HostRecordings<'_> {
    fn span(&self, job: &Job, room: Room) -> Result<u64, TraceError> {
        span(self.config, job, room, open_options(self.config).remap_dense)
    }

    fn open(&self, job: &Job, room: Room) -> Result<Box<dyn TraceReader>, TraceError> {
        let repeat = if job.is_time_based { u64::MAX } else { job.loops };
        if repeat == u64::MAX && self.config.host.needs_future() {
            let message = format!(
                "host.policy = {} reads all of it first: expected loops instead of time_based in job '{}'",
                self.config.host.policy(),
                job.name
            );
            return Err(TraceError::Spec {
                spec: job.recording_file().unwrap_or_default().to_owned(),
                message,
            });
        }
        let source = source(self.config, job, room, |options| OpenOptions { repeat, ..options })?;
        let setup = self.config.policy_setup(room.bytes);
        let reader = match self.config.host.wrap(setup, &mut || source.open()) {
            Ok(reader) => reader,
            Err(RunError::Trace(error)) => return Err(error),
            Err(error) => {
                let spec = source.name().to_owned();
                return Err(TraceError::Spec { spec, message: error.to_string() });
            }
        };
        let (name, outcomes) = (job.name.clone(), Arc::clone(&self.outcomes));
        Ok(Box::new(Host { job: job.number, name, reader, outcomes }))
    }
}

/// Bytes that the recording of a job needs, with its touched pages moved together if it is to be `dense`.
pub(crate) fn span(config: &StackConfig, job: &Job, room: Room, dense: bool) -> Result<u64, TraceError> {
    let source = source(config, job, room, |options| OpenOptions { remap_dense: dense, ..options })?;
    if job.recording.scale == 1 && job.recording.align == 1 {
        return source.span_bytes();
    }
    let end = |record: IoRecord| job.recording.place(record.offset).saturating_add(record.len);
    source.open()?.try_fold(0, |span, record| Ok(end(record?).max(span)))
}

/// The recording of a job, read by the keys of a configuration but for what `change` says.
pub(crate) fn source(
    config: &StackConfig,
    job: &Job,
    room: Room,
    change: impl FnOnce(OpenOptions) -> OpenOptions,
) -> Result<Workload, TraceError> {
    let target = target(config, room.bytes, room.page_bytes);
    let options = open_options(config);
    // Generators of several jobs differ.
    let seed = options.seed.wrapping_add(u64::from(job.number));
    let options = OpenOptions { format: None, seed, ..options };
    Workload::new(job.recording_file().unwrap_or_default(), &change(options), target)
}

/// A recording that says what its policy did when it is closed.
struct Host {
    job: u32,
    name: String,
    reader: HostReader,
    outcomes: Arc<Mutex<Vec<HostOutcome>>>,
}

impl Drop for Host {
    fn drop(&mut self) {
        let Some((policy, notes)) = self.reader.outcome() else { return };
        let notes = notes.into_iter().map(|note| format!("job '{}': {note}", self.name)).collect();
        let outcome = HostOutcome { job: self.job, policy, notes };
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
    }
}

impl Iterator for Host {
    type Item = Result<IoRecord, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.reader.next()
    }
}

impl TraceReader for Host {
    fn info(&self) -> WorkloadInfo {
        self.reader.info()
    }
}
