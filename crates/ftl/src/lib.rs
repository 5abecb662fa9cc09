//! Flash translation layers, one file each, generic over the [`nandscape_core::FlashDevice`] below them.
//!
//! [`registry`] lists them; a layer that is not in the list is dead code, and one that is in it is tested by
//! the conformance suite.

mod error;
mod parts;

pub mod hsbm_gcl;
pub mod journal;
mod page_log;
pub mod page_map;
pub mod placement;
pub mod pm_gcc;
pub mod pm_gcl;
pub mod registry;
pub mod sbm_gcl;
pub mod victim;
pub mod wear;

pub use error::{BuildResult, FtlBuildError};
pub use journal::{Journal, JournalError, JournalOptions};
pub use page_map::PageMap;
pub use registry::{FtlEntry, boxed_ftls, find, ftls, infos};
