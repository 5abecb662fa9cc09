//! `PM_GCL`: page map, greedy lazy collection [thesis 3.2.1].
//!
//! Every write takes the next page of an active block, walking round the units from a rotor that collection
//! shares. Before a request that touches more pages than are free, full blocks are collected, fewest live
//! pages first; old versions of the pages about to be overwritten still count as live.
//!
//! The page log does the work (`page_log/`), with a group for each block.

use crate::error::BuildResult;
use crate::page_log::{self, Collection, PageLog};
use crate::parts::layer::Layer;
use nandscape_core::{FlashDevice, Info, Params};

/// What the registry says.
pub static INFO: Info = Info {
    name: "pm-gcl",
    summary: "page map, greedy lazy collection of full blocks",
    source: "[thesis 3.2.1] (PM_GCL)",
    params: page_log::PARAMS,
};

/// Builds the strategy for the registry.
pub fn build<D: FlashDevice + Send + 'static>(device: D, params: &Params) -> BuildResult {
    Ok(Box::new(Layer(PageLog::new(device, &INFO, params, Collection::Blocks)?)))
}
