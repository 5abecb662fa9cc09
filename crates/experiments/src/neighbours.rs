//! The noisy-neighbour harness [sets-article test 1]: what one job (the victim) feels of others (the
//! aggressors), for each way to divide the device.
//!
//! A [`Site`] is one division of a device, filled once; runs of jobs follow each other on it.
//! [`noisy_neighbour`] runs the victim alone, the aggressors alone and both together on a site for each
//! layout; [`render_cases`] prints what came out.

use crate::Result;
use nandscape_core::{Subsystem, units};
use nandscape_jobs::{Amount, Job, JobFile};
use nandscape_sim::result::{DirectionResult, JobResult};
use nandscape_sim::{JobOptions, JobsOutcome, Precondition, Snapshot, run_jobs};
use nandscape_stack::build::build_subsystem;
use nandscape_stack::config::{ConfigError, StackConfig, Typed};
use nandscape_stack::{HostRecordings, RunError};
use serde::Serialize;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

/// A device with its sets and namespaces, filled.
pub struct Site {
    config: StackConfig,
    subsystem: Box<dyn Subsystem + Send>,
}

/// How to run jobs on a [`Site`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SiteOptions<'a> {
    /// Interval of the series in nanoseconds; `None` for no series.
    pub interval_ns: Option<u64>,
    /// Set from outside to stop early; the run then fails with [`RunError::Interrupted`].
    pub stop: Option<&'a AtomicBool>,
}

impl Site {
    /// Builds the device and fills every namespace once.
    pub fn new(config: &StackConfig, options: SiteOptions<'_>) -> Result<Self> {
        let mut site = Self { config: config.clone(), subsystem: build_subsystem(config)? };
        let names: Vec<String> = site.subsystem.namespaces().iter().map(|ns| ns.name.clone()).collect();
        // A read of each namespace, so that all are preconditioned; it is not counted anywhere.
        let text =
            format!("[fill]\nfilename={}\nrw=read\nbs=4k\nnumber_ios={}\n", names.join(":"), names.len());
        let fill = Precondition::parse("fill").map_err(ConfigError::from)?;
        site.run_after(&fill, &JobFile::parse("fill", &text)?, options)?;
        Ok(site)
    }

    /// The device.
    pub fn subsystem(&self) -> &dyn Subsystem {
        &*self.subsystem
    }

    /// Writes with `job` until its set has no space left that was never written, so that from now on every
    /// write needs an erase.
    pub fn wear_in(&mut self, job: &Job, options: SiteOptions<'_>) -> Result<()> {
        let name = job.filenames.first();
        let namespace = self.subsystem.namespaces().iter().find(|ns| Some(&ns.name) == name);
        let set = namespace.map_or(0, |ns| ns.set);
        let spare_bytes = self.subsystem.inspect().device(set).geometry().capacity_bytes()
            - self.subsystem.inspect().layer(set).cost().usable_bytes;
        let mut job = job.clone();
        job.io_size = Amount::Bytes(spare_bytes * 21 / 20 / job.smallest_block() * job.smallest_block());
        (job.is_time_based, job.runtime_ns) = (false, None);
        if job.recording_file().is_some() {
            (job.loops, job.recording.never_stalls) = (u64::MAX, true);
        }
        self.run(&only(&[job]), options)?;
        Ok(())
    }

    /// Runs jobs. Space and wear stay as the run before left them; counters and time begin anew.
    pub fn run(&mut self, file: &JobFile, options: SiteOptions<'_>) -> Result<JobsOutcome> {
        self.run_after(&Precondition::default(), file, options)
    }

    fn run_after(
        &mut self,
        precondition: &Precondition,
        file: &JobFile,
        options: SiteOptions<'_>,
    ) -> Result<JobsOutcome> {
        let recordings = HostRecordings::new(&self.config);
        let job_options = JobOptions {
            snapshot: Snapshot::Unused,
            precondition,
            seed: self.config.seed,
            with_series: options.interval_ns.is_some(),
            interval_ns: options.interval_ns,
            with_detail: false,
            stop: options.stop,
            log: None,
            recordings: Some(&recordings),
        };
        let outcome =
            run_jobs(&mut *self.subsystem, file, &file.name, &job_options, &mut || {}, &mut |_| {})?;
        if outcome.result.partial {
            return Err(RunError::Interrupted);
        }
        if let Some(error) = &outcome.result.error {
            return Err(RunError::Failed { label: file.name.clone(), message: error.message.clone() });
        }
        Ok(outcome)
    }
}

/// A job file of these jobs only.
pub fn only(jobs: &[Job]) -> JobFile {
    let name = jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>().join(" and ");
    let mut jobs = jobs.to_vec();
    for (number, job) in jobs.iter_mut().enumerate() {
        job.number = number as u32;
    }
    JobFile { name, jobs, ..JobFile::default() }
}

/// What a victim and its neighbours reached in one layout.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// Value of `sets.layout`.
    pub layout: String,
    /// The victim by itself.
    pub victim_alone: JobResult,
    /// The victim beside the others.
    pub victim: JobResult,
    /// The others by themselves, in the order of the file.
    pub aggressors_alone: Vec<JobResult>,
    /// The others beside the victim.
    pub aggressors: Vec<JobResult>,
}

/// Runs the victim alone, the other jobs of the file alone for `alone_ns` of virtual time (recordings to
/// their end), and all together, for each layout. The others end with the victim, which must end by itself
/// (`size`, `io_size`, `runtime` or the end of its recording).
pub fn noisy_neighbour(
    typed: &Typed,
    file: &JobFile,
    victim: &str,
    layouts: &[&str],
    alone_ns: u64,
    options: SiteOptions<'_>,
) -> Result<Vec<Case>> {
    let mut jobs = file.jobs.clone();
    for job in jobs.iter_mut().filter(|job| job.name == victim) {
        job.ends_all = true;
    }
    let (victims, others): (Vec<Job>, Vec<Job>) = jobs.iter().cloned().partition(|job| job.name == victim);
    let [job] = &victims[..] else {
        return Err(ConfigError::Unsuited(format!(
            "{}: expected one job called '{victim}', the victim, but there are {}",
            file.name,
            victims.len()
        ))
        .into());
    };
    layouts
        .iter()
        .map(|layout| {
            let mut typed = typed.clone();
            typed.set("sets.layout", layout)?;
            let mut site = Site::new(&typed.check()?, options)?;
            for other in others.iter().filter(|other| other.pattern.writes) {
                site.wear_in(other, options)?;
            }
            let mut limited = others.clone();
            // A recording ends by itself.
            for other in limited.iter_mut().filter(|other| other.recording_file().is_none()) {
                (other.is_time_based, other.runtime_ns) = (true, Some(alone_ns));
            }
            let aggressors_alone =
                if limited.is_empty() { Vec::new() } else { site.run(&only(&limited), options)?.result.jobs };
            let mut alone = site.run(&only(std::slice::from_ref(job)), options)?.result.jobs;
            let all = site.run(&only(&jobs), options)?.result.jobs;
            let (mut victim, aggressors): (Vec<JobResult>, Vec<JobResult>) =
                all.into_iter().partition(|result| result.name == job.name);
            Ok(Case {
                layout: (*layout).to_owned(),
                victim_alone: alone.remove(0),
                victim: victim.remove(0),
                aggressors_alone,
                aggressors,
            })
        })
        .collect()
}

/// A table for people: percentiles and rates of all, reads and writes apart.
pub fn render_cases(cases: &[Case]) -> String {
    let mut out = String::from(
        "layout       job             op    with       mean us     p50     p99   p99.9  p99.99 p99.999 p99.9999     max     kIOPS        rate\n",
    );
    let mut rows = |layout: &str, alone: &JobResult, together: &JobResult| {
        type Of = fn(&JobResult) -> &DirectionResult;
        let ops: [(&str, Of); 2] = [("read", |job| &job.read), ("write", |job| &job.write)];
        for (op, of) in ops.into_iter().filter(|(_, of)| of(alone).requests > 0 || of(together).requests > 0)
        {
            for (job, with) in [(alone, "alone"), (together, "together")] {
                let it = of(job);
                let l = &it.latency_ns;
                let us = |ns: u64| ns as f64 / 1e3;
                let _ = writeln!(
                    out,
                    "{layout:12} {:15} {op:5} {with:8} {:9.2} {:7.0} {:7.0} {:7.0} {:7.0} {:7.0} {:8.0} {:7.0} {:9.1} {:>9}/s",
                    job.name,
                    l.mean / 1e3,
                    us(l.p50),
                    us(l.p99),
                    us(l.p99_9),
                    us(l.p99_99),
                    us(l.p99_999),
                    us(l.p99_9999),
                    us(l.max),
                    it.iops / 1e3,
                    units::format_bytes(it.bytes_per_s as u64),
                );
            }
        }
    };
    for case in cases {
        rows(&case.layout, &case.victim_alone, &case.victim);
        for (alone, together) in case.aggressors_alone.iter().zip(&case.aggressors) {
            rows(&case.layout, alone, together);
        }
    }
    out
}
