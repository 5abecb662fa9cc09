//! Flash with an object interface: hosts name objects and bytes in them, and the device allocates pages.
//!
//! [`oftl`] is a translation layer that knows objects instead of logical blocks.

mod error;
pub mod oftl;

pub use error::ObjectStoreError;
pub use oftl::Oftl;
