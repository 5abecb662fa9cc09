//! Log files that the jobs of a file ask for, as fio writes them.

mod requests;
mod samples;

use crate::error::RunError;
use nandscape_jobs::JobFile;
use nandscape_sim::{Logged, RequestLog, Sample};
use requests::IoLogs;
use samples::SampleLogs;
use std::fs::File;
use std::io::{self, BufWriter, Write};

/// The logs of a run. Each run begins its files anew.
#[derive(Debug)]
pub(crate) struct JobLogs {
    requests: Option<IoLogs>,
    samples: Option<SampleLogs>,
}

impl JobLogs {
    /// `None` if there are none.
    pub fn create(file: &JobFile) -> Result<Option<Self>, RunError> {
        let this = Self { requests: IoLogs::create(file)?, samples: SampleLogs::create(file)? };
        Ok((this.requests.is_some() || this.samples.is_some()).then_some(this))
    }

    /// Closes the files; the first error of any.
    pub fn finish(self) -> Result<(), RunError> {
        self.requests.map_or(Ok(()), IoLogs::finish)?;
        self.samples.map_or(Ok(()), SampleLogs::finish)
    }
}

impl RequestLog for JobLogs {
    fn request(&self, request: Logged<'_>) {
        if let Some(logs) = &self.requests {
            logs.request(request);
        }
    }

    fn sample(&self, sample: Sample) {
        if let Some(logs) = &self.samples {
            logs.sample(sample);
        }
    }
}

/// A file that an option of a job names.
#[derive(Debug)]
struct LogFile {
    option: &'static str,
    path: String,
    out: BufWriter<File>,
    error: Option<io::Error>,
}

impl LogFile {
    fn create(option: &'static str, path: &str) -> Result<Self, RunError> {
        let file = File::create(path).map_err(|error| failed(option, path, &error))?;
        Ok(Self { option, path: path.to_owned(), out: BufWriter::new(file), error: None })
    }

    /// Writes, and keeps the first error for the end.
    fn keep(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        if self.error.is_none() {
            self.error = write(&mut self.out).err();
        }
    }

    fn finish(mut self) -> Result<(), RunError> {
        self.keep(Write::flush);
        self.error.map_or(Ok(()), |error| Err(failed(self.option, &self.path, &error)))
    }
}

fn failed(option: &str, path: &str, error: &io::Error) -> RunError {
    RunError::Jobs(format!("{option}={path}: {error}"))
}
