//! `write_bw_log`, `write_iops_log` and `write_lat_log`: what completed when, in fio's five columns
//! (milliseconds, value, direction, bytes of the request, priority), for its plotting scripts.

use super::LogFile;
use crate::error::RunError;
use nandscape_jobs::JobFile;
use nandscape_jobs::job::Logs;
use nandscape_sim::Sample;
use std::cell::RefCell;
use std::io::Write;

const MS: u64 = 1_000_000;
const SECOND: u128 = 1_000_000_000;

/// What the second column of a file has.
#[derive(Clone, Copy, Debug)]
enum Value {
    /// kB/s of a request, KiB/s of a window.
    Bandwidth,
    /// 1 of a request, requests a second of a window.
    Iops,
    /// Nanoseconds, of a window their mean.
    Latency,
    /// Submission, which takes no virtual time.
    Nothing,
}

/// The option, what the file is called after its prefix, and what it has.
type Column = (fn(&Logs) -> &Option<String>, &'static str, &'static str, Value);

const COLUMNS: [Column; 5] = [
    (|logs| &logs.bandwidth, "write_bw_log", "bw", Value::Bandwidth),
    (|logs| &logs.iops, "write_iops_log", "iops", Value::Iops),
    (|logs| &logs.latency, "write_lat_log", "lat", Value::Latency),
    (|logs| &logs.latency, "write_lat_log", "clat", Value::Latency),
    (|logs| &logs.latency, "write_lat_log", "slat", Value::Nothing),
];

fn line(file: &mut LogFile, ms: u64, value: u64, direction: usize, bytes: u64) {
    file.keep(|out| writeln!(out, "{ms}, {value}, {direction}, {bytes}, 0"));
}

/// Requests of one direction that completed in a window.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    requests: u64,
    bytes: u64,
    latency_ns: u128,
}

#[derive(Debug, Default)]
struct JobLog {
    files: Vec<(Value, usize)>,
    /// Length of a window; 0: every request has a line.
    average_ns: u64,
    window: u64,
    last_ns: u64,
    sums: [Sum; 3],
}

impl JobLog {
    fn sample(&mut self, sample: Sample, files: &mut [LogFile]) {
        let Sample { at_ns, direction, bytes, latency_ns, .. } = sample;
        if self.average_ns == 0 {
            for (value, file) in &self.files {
                let value = match value {
                    Value::Bandwidth => (bytes * MS).checked_div(latency_ns).unwrap_or(0),
                    Value::Iops => 1,
                    Value::Latency => latency_ns,
                    Value::Nothing => continue,
                };
                line(&mut files[*file], at_ns / MS, value, direction as usize, bytes);
            }
            return;
        }
        if at_ns / self.average_ns > self.window {
            self.close((self.window + 1) * self.average_ns, files);
            self.window = at_ns / self.average_ns;
        }
        self.last_ns = at_ns;
        let sum = &mut self.sums[direction as usize];
        sum.requests += 1;
        sum.bytes += bytes;
        sum.latency_ns += u128::from(latency_ns);
    }

    /// Ends a window here. What had no request in it has no line.
    fn close(&mut self, end_ns: u64, files: &mut [LogFile]) {
        let length_ns = u128::from(end_ns - self.window * self.average_ns).max(1);
        for (direction, sum) in self.sums.iter_mut().enumerate().filter(|(_, sum)| sum.requests > 0) {
            let sum = std::mem::take(sum);
            for (value, file) in &self.files {
                let value = match value {
                    Value::Bandwidth => u128::from(sum.bytes) * SECOND / length_ns / 1024,
                    Value::Iops => u128::from(sum.requests) * SECOND / length_ns,
                    Value::Latency => sum.latency_ns / u128::from(sum.requests),
                    Value::Nothing => continue,
                };
                line(&mut files[*file], end_ns / MS, value as u64, direction, 0);
            }
        }
    }
}

/// The files, and what each job writes to them. Jobs whose files have one name share it.
#[derive(Debug)]
pub(super) struct SampleLogs(RefCell<(Vec<JobLog>, Vec<LogFile>)>);

impl SampleLogs {
    /// `None` if no job asks for any.
    pub fn create(file: &JobFile) -> Result<Option<Self>, RunError> {
        let (mut jobs, mut files) = (Vec::new(), Vec::<LogFile>::new());
        for (number, job) in (1..).zip(&file.jobs) {
            let mut log = JobLog { average_ns: job.logs.average_ns, ..JobLog::default() };
            for (prefix, option, kind, value) in COLUMNS {
                let Some(prefix) = prefix(&job.logs) else { continue };
                let prefix = if prefix.is_empty() { &job.name } else { prefix };
                let number = if job.logs.per_job { format!(".{number}") } else { String::new() };
                let path = format!("{prefix}_{kind}{number}.log");
                let known = files.iter().position(|file| file.path == path);
                if known.is_none() {
                    files.push(LogFile::create(option, &path)?);
                }
                log.files.push((value, known.unwrap_or(files.len() - 1)));
            }
            jobs.push(log);
        }
        Ok((!files.is_empty()).then_some(Self(RefCell::new((jobs, files)))))
    }

    pub fn sample(&self, sample: Sample) {
        let (jobs, files) = &mut *self.0.borrow_mut();
        jobs[sample.job as usize].sample(sample, files);
    }

    /// Ends the last windows where their last request completed, and closes the files; the first error of
    /// any.
    pub fn finish(self) -> Result<(), RunError> {
        let (jobs, mut files) = self.0.into_inner();
        for mut job in jobs {
            job.close(job.last_ns, &mut files);
        }
        files.into_iter().try_for_each(LogFile::finish)
    }
}
