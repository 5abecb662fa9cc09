//! From a checked configuration to a running stack.

use crate::caching;
use crate::config::{ConfigError, Result, StackConfig};
pub use crate::flash::{BuildOptions, subsystem};
use crate::interfaces::Place;
use crate::stacks::stack_of;
use nandscape_core::Subsystem;
use nandscape_disk::Keep;

/// As [`build_subsystem`], of a configuration with one namespace.
pub fn build(config: &StackConfig, options: BuildOptions) -> Result<Box<dyn Subsystem + Send>> {
    let subsystem = with_options(config, options)?;
    match subsystem.namespaces().len() {
        1 => Ok(subsystem),
        namespaces => Err(ConfigError::Unsuited(format!(
            "namespaces: expected one for a trace or generator, but there are {namespaces}; job files address several"
        ))),
    }
}

/// Builds all namespaces of a configuration with the sets they lie in, the device wholly erased, and the
/// host interfaces in front.
pub fn build_subsystem(config: &StackConfig) -> Result<Box<dyn Subsystem + Send>> {
    with_options(config, BuildOptions::default())
}

fn with_options(config: &StackConfig, options: BuildOptions) -> Result<Box<dyn Subsystem + Send>> {
    match &config.cache {
        Some(cache) => Ok(Box::new(caching::build(cache, config, options, Keep::Nothing)?)),
        None => config.with_interfaces(Place::Flash, (stack_of(config).plain)(config, options)?),
    }
}
