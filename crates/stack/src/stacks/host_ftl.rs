//! The translation layers of the device as software of the host, over vector access.

use super::vector::namespace;
use super::{Boxed, Over, StackEntry, unsuited};
use crate::config::{Result, StackConfig};
use crate::flash::{divided, faulty, nand_options};
use crate::kinds::host_ftl::KIND;
use crate::kinds::vector::FAILED_PROGRAM;
use crate::memory;
use nandscape_core::{AnyDevice, Oob};
use nandscape_hostftl::ChunkFlash;

pub const ENTRY: StackEntry = StackEntry {
    kind: &KIND,
    plain: |config, options| {
        memory::check(config)?;
        over(config, faulty(config, &nand_options(config, options))?, false)
    },
    over: Over::Pages(over),
};

fn over(config: &StackConfig, device: AnyDevice, lasts: bool) -> Result<Boxed> {
    Ok(Box::new(divided(config, flash(config, device)?, lasts)?))
}

/// A flash device of the chunks of another one.
pub(super) fn flash(config: &StackConfig, device: AnyDevice) -> Result<AnyDevice> {
    if config.vector.get(FAILED_PROGRAM) != "closes" {
        let expected = "closes, below a translation layer that could not tell such a page from a damaged one";
        return Err(config.vector.error(FAILED_PROGRAM, expected).into());
    }
    Ok(Box::new(
        ChunkFlash::new(namespace::<_, Oob>(config, device, true)?)
            .map_err(|error| unsuited(config, error))?,
    ))
}
