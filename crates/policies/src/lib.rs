//! Cache policies without a cache: no store, no metadata, no data path.
//!
//! * [`eviction`]: which block leaves;
//! * [`admission`]: what is not worth caching;
//! * [`cleaning`]: when dirty blocks go to the disk, and which;
//! * [`simulate`]: eviction policies alone over a stream of requests, which tells hits and misses and nothing
//!   else.
//!
//! A policy sees numbers and answers with a choice; `nandscape-cache` acts on it.

pub mod admission;
pub mod cleaning;
pub mod eviction;
pub mod hash;
pub mod key;
pub mod map;
pub mod simulate;

pub use key::BlockKey;
pub use map::Map;
