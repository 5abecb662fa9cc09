//! `write_iolog`: the requests of a job file one by one, in fio's iolog version 3.

use super::LogFile;
use crate::error::RunError;
use nandscape_core::Op;
use nandscape_jobs::JobFile;
use nandscape_sim::Logged;
use std::cell::RefCell;
use std::io::Write;

/// The log files of a run. Jobs that name one file share it, in the order of their requests. Each run begins
/// its files anew.
#[derive(Debug)]
pub(super) struct IoLogs {
    files: RefCell<Vec<RequestFile>>,
    /// Index of the file of each job.
    of_job: Vec<Option<usize>>,
}

#[derive(Debug)]
struct RequestFile {
    file: LogFile,
    /// Files and namespaces that were named.
    opened: Vec<String>,
    last_us: u64,
}

impl RequestFile {
    fn create(path: &str) -> Result<Self, RunError> {
        let mut file = LogFile::create("write_iolog", path)?;
        file.keep(|out| writeln!(out, "fio version 3 iolog"));
        Ok(Self { file, opened: Vec::new(), last_us: 0 })
    }

    fn request(&mut self, request: Logged<'_>) {
        let us = request.at.0 / 1000;
        self.last_us = us;
        let Logged { file, offset, len, .. } = request;
        if !self.opened.iter().any(|opened| opened == file) {
            self.opened.push(file.to_owned());
            self.file.keep(|out| writeln!(out, "{us} {file} add\n{us} {file} open"));
        }
        let action = match request.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim | Op::WriteZeroes => "trim",
            Op::Flush => "sync",
        };
        self.file.keep(|out| writeln!(out, "{us} {file} {action} {offset} {len}"));
    }

    fn finish(mut self) -> Result<(), RunError> {
        let us = self.last_us;
        for file in std::mem::take(&mut self.opened) {
            self.file.keep(|out| writeln!(out, "{us} {file} close"));
        }
        self.file.finish()
    }
}

impl IoLogs {
    /// The logs that the jobs of a file ask for; `None` if there are none.
    pub fn create(file: &JobFile) -> Result<Option<Self>, RunError> {
        let mut files: Vec<RequestFile> = Vec::new();
        let mut of_job = Vec::with_capacity(file.jobs.len());
        for job in &file.jobs {
            let Some(path) = job.logs.requests.as_deref() else {
                of_job.push(None);
                continue;
            };
            let known = files.iter().position(|log| log.file.path == path);
            if known.is_none() {
                files.push(RequestFile::create(path)?);
            }
            of_job.push(Some(known.unwrap_or(files.len() - 1)));
        }
        Ok((!files.is_empty()).then_some(Self { files: RefCell::new(files), of_job }))
    }

    /// Closes the files; the first error of any.
    pub fn finish(self) -> Result<(), RunError> {
        self.files.into_inner().into_iter().try_for_each(RequestFile::finish)
    }

    pub fn request(&self, request: Logged<'_>) {
        if let Some(file) = self.of_job[request.job as usize] {
            self.files.borrow_mut()[file].request(request);
        }
    }
}
