//! Sweeps: one workload at many points of a space of configurations, each point with several seeds.
//!
//! * [`Plan`]: what is run, read from a TOML file.
//! * [`Folder`]: where results are kept. Each run has a file of its own, which appears whole or not at all,
//!   so that a sweep that was ended in the middle goes on where it was.
//! * [`fn@run`]: what is still to be done, several runs at a time.
//!
//! A run is what `replay` gives with the settings of its point. Runs do not depend on each other, so any
//! split of them over processes and machines gives the same results.

mod axes;
mod error;
mod folder;
mod plan;
mod run;

pub use error::SweepError;
pub use folder::Folder;
pub use plan::{Plan, RunId};
pub use run::{Shard, SweepOptions, run};
