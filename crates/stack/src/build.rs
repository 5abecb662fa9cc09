//! From a checked configuration to a running stack. The device is monomorphised here: one copy of each translation layer
//! for each scheduler, chosen once at build time.

use crate::config::{ConfigError, StackConfig, TimingMode};
use crate::memory;
use nandscape_core::{FlashDevice, Namespace};
use nandscape_ftl::FtlBuildError;
use nandscape_ftl::registry::ftls;
use nandscape_media::{Fifo, Nand, ReadFirst, Scheduler, Serial, Timed};
use nandscape_namespace::BlockNamespace;

/// Choices that do not change what a run counts, only what it keeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildOptions {
    /// Count programs per page, 4 B a page.
    pub count_programs: bool,
}

/// Builds the namespace of a configuration, its device wholly erased.
pub fn build(config: &StackConfig, options: BuildOptions) -> Result<Box<dyn Namespace + Send>, ConfigError> {
    memory::check(&config.geometry)?;
    match config.mode {
        TimingMode::Serial => build_with::<Serial>(config, options),
        TimingMode::Fifo => build_with::<Fifo>(config, options),
        TimingMode::ReadFirst => build_with::<ReadFirst>(config, options),
    }
}

fn build_with<S: Scheduler + Send + 'static>(
    config: &StackConfig,
    options: BuildOptions,
) -> Result<Box<dyn Namespace + Send>, ConfigError> {
    let mut nand_options = config.nand.clone();
    nand_options.count_programs = options.count_programs;
    let nand = Nand::new(config.geometry, &nand_options)
        .map_err(|e| ConfigError::Build(format!("device.bad_blocks: {e}")))?;
    build_over(config, Timed::new(nand, S::new(&config.geometry, &config.timing)))
}

fn build_over<D: FlashDevice + Send + 'static>(
    config: &StackConfig,
    device: D,
) -> Result<Box<dyn Namespace + Send>, ConfigError> {
    let entry = ftls::<D>()
        .into_iter()
        .find(|entry| entry.info.name == config.ftl)
        .expect("the configuration was checked against the same registry");
    let ftl = (entry.build)(device, &config.ftl_params).map_err(|e| match e {
        FtlBuildError::Device { .. } => ConfigError::Unsuited(e.to_string()),
        e => ConfigError::Build(e.to_string()),
    })?;
    if ftl.logical_pages() == 0 {
        return Err(ConfigError::Unsuited(format!(
            "{} has no room on this device: expected at least one usable block after device.bad_blocks",
            config.ftl
        )));
    }
    Ok(Box::new(BlockNamespace::new(ftl)))
}
