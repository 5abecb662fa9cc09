//! The block device: a translation layer on the device.

use super::StackEntry;
use crate::flash::{divided, subsystem};
use crate::kinds::BLOCK;

pub const ENTRY: StackEntry = StackEntry {
    kind: &BLOCK,
    plain: |config, options| Ok(Box::new(subsystem(config, options)?)),
    over: |config, device, lasts| Ok(Box::new(divided(config, device, lasts)?)),
};
