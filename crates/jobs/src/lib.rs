//! fio job files as workloads.
//!
//! A job file is read ([`JobFile::read`], [`JobFile::parse`]) into one [`Job`] per process that fio would
//! start: sections, `[global]`, `include`, environment variables, `numjobs` copies and their order are
//! resolved here; what depends on the device (percentages, file names) stays symbolic and is resolved where
//! the jobs run.
//!
//! * [`options`]: every option fio 3.x knows, in one registry: read, ignored with a reason, or refused with a
//!   reason. An option that fio does not know is refused by name.
//! * `values`: fio's units and value syntax.
//! * [`job`]: what a job is once it is read.
//!
//! The semantics follow fio's own documentation (HOWTO, fio 3.33) and, where that is silent, the behaviour of
//! fio 3.33 itself.
//!
//! ```
//! use nandscape_jobs::JobFile;
//!
//! let file = JobFile::parse("example.fio", "[global]\nbs=4k\n[load]\nrw=randread\nnumjobs=2\n")?;
//! assert_eq!(file.jobs.len(), 2);
//! assert_eq!(file.jobs[1].block_size[0].max, 4096);
//! # Ok::<(), nandscape_jobs::JobError>(())
//! ```

mod error;
mod expand;
pub mod job;
pub mod options;
mod sections;
mod values;

pub use error::{JobError, Place};
pub use expand::JobFile;
pub use job::{Amount, Direction, Distribution, Job};
