//! `PM_GCC`: page map, whole-device collection of a contiguous region [thesis 3.2.2].
//!
//! Pages are given out in the interleaved order of [thesis fig 3.2] (unit, then page, then block), as in a
//! log-structured file system. When a request touches more pages than are left, the tail is abandoned and
//! everything written is collected row by row (one block of every unit). A row of memory is what that takes.
//!
//! The page log does the work (`page_log/`), with a group for each row.

use crate::error::BuildResult;
use crate::page_log::{self, Collection, PageLog};
use crate::parts::layer::Layer;
use nandscape_core::{FlashDevice, Info, Params};

/// What the registry says.
pub static INFO: Info = Info {
    name: "pm-gcc",
    summary: "page map, one log over the whole device, collected as a whole",
    source: "[thesis 3.2.2] (PM_GCC)",
    params: page_log::PARAMS,
};

/// Builds the strategy for the registry.
pub fn build<D: FlashDevice + Send + 'static>(device: D, params: &Params) -> BuildResult {
    Ok(Box::new(Layer(PageLog::new(device, &INFO, params, Collection::Everything)?)))
}
