//! Flash or RAM in front of disks.
//!
//! A cache joins a fast store to one slow store for each volume ([`nandscape_core::Store`]). Four kinds of
//! policy decide, the engine acts:
//! * [`eviction`]: which block leaves;
//! * [`admission`]: what is not worth caching;
//! * [`cleaning`]: when dirty blocks go to the disk, and which;
//! * [`metadata`]: what is known of the cached blocks after a loss of power.
//!
//! The engine is [`engine::Cache`]; [`manage`] attaches and detaches volumes while it does not run.
//! [`simulate`] runs eviction policies alone over a stream of requests, which tells hits and misses and
//! nothing else.

pub mod admission;
pub mod cleaning;
pub mod compose;
pub mod counters;
pub mod dirty;
pub mod engine;
pub mod eviction;
mod hash;
pub mod key;
pub mod manage;
mod map;
pub mod metadata;
pub mod mode;
pub mod presets;
pub mod simulate;
pub mod status;

pub use compose::{ComposeError, Design};
pub use counters::{CacheCounters, Counters, Gauges};
pub use engine::{Cache, CacheError, Setup};
pub use key::BlockKey;
pub use map::Map;
pub use mode::Mode;
