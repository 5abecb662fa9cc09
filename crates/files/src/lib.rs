//! Real bytes: a file or a block device as a side of a cache ([`FileStore`]), and what that and the image ask
//! of the operating system ([`os`]).
//!
//! Invariants of a [`FileStore`]:
//! * no other process that asks as politely uses the same file or device at the same time;
//! * a flush that failed is never followed by one that succeeds, since the system may have dropped what it
//!   could not write;
//! * every error names the path and the place.

mod aligned;
mod error;
pub mod os;
mod store;

pub use error::FileError;
pub use store::{Condition, FileOptions, FileStore};
