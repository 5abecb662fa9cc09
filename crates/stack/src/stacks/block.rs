//! The block device: a translation layer on the device.

use super::StackEntry;
use crate::flash::{divided, subsystem};
use nandscape_core::Info;

pub const ENTRY: StackEntry = StackEntry {
    info: Info {
        name: "block",
        summary: "a block device: a translation layer on the device, as most drives have it",
        source: "",
        params: &[],
    },
    layer: None,
    plain: |config, options| Ok(Box::new(subsystem(config, options)?)),
    over: |config, device, lasts| Ok(Box::new(divided(config, device, lasts)?)),
};
