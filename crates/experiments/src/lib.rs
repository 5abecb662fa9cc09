//! Experiments over stacks: several configurations, run and set beside each other or beside what was
//! published.
//!
//! * [`reproduce`]: published experiments, row by row.
//! * [`neighbours`]: what jobs cost each other, for each layout of sets.
//! * [`miss_ratio`]: how often caches of a policy and size miss.
//! * [`sweep`]: one workload at many points of a space of configurations.

pub mod miss_ratio;
pub mod neighbours;
pub mod reproduce;
pub mod sweep;

/// What an experiment gives, or why not.
pub(crate) type Result<T, E = nandscape_stack::RunError> = std::result::Result<T, E>;
