//! Flash or RAM in front of disks.
//!
//! A cache joins a fast store to one slow store for each volume ([`nandscape_core::Store`]). Policies decide
//! which block leaves, what is worth caching and when dirty blocks go to the disk ([`nandscape_policies`]);
//! [`metadata`] decides what is known of the cached blocks after a loss of power; the engine acts.
//!
//! The engine is [`engine::Cache`]; [`manage`] attaches and detaches volumes while it does not run.

pub mod compose;
pub mod counters;
pub mod dirty;
pub mod engine;
pub mod manage;
pub mod metadata;
pub mod mode;
pub mod presets;
pub mod status;

pub use compose::{ComposeError, Design};
pub use counters::{CacheCounters, Counters, Gauges};
pub use engine::{Cache, CacheError, Setup};
pub use mode::Mode;
