//! From a checked configuration to a running stack. The device is monomorphised here: one copy of each
//! translation layer for each scheduler, chosen once at build time.

use crate::config::{ConfigError, StackConfig, TimingMode};
use crate::directives::DirectiveKind;
use crate::{memory, storing};
use nandscape_core::{AnyDevice, FlashDevice, Ftl, Subsystem, UnitId};
use nandscape_disk::Keep;
use nandscape_ftl::FtlBuildError;
use nandscape_ftl::registry::ftls;
use nandscape_media::{Fifo, Medium, Nand, NandOptions, ReadFirst, Scheduler, Serial, Timed};
use nandscape_namespace::sets::{Part, share};
use nandscape_namespace::{NvmSet, NvmSubsystem, SetFacts, SharedDevice};

/// Choices that do not change what a run counts, only what it keeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildOptions {
    /// Count programs per page, 4 B a page.
    pub count_programs: bool,
}

/// As [`build_subsystem`], of a configuration with one namespace.
pub fn build(config: &StackConfig, options: BuildOptions) -> Result<Box<dyn Subsystem + Send>, ConfigError> {
    let subsystem = with_options(config, options)?;
    one_namespace(subsystem.namespaces().len())?;
    Ok(subsystem)
}

fn one_namespace(namespaces: usize) -> Result<(), ConfigError> {
    if namespaces == 1 {
        return Ok(());
    }
    Err(ConfigError::Unsuited(format!(
        "namespaces: expected one for a trace or generator, but there are {namespaces}; job files address several"
    )))
}

/// Builds all namespaces of a configuration with the sets they lie in, the device wholly erased, and the
/// directives in front.
pub fn build_subsystem(config: &StackConfig) -> Result<Box<dyn Subsystem + Send>, ConfigError> {
    with_options(config, BuildOptions::default())
}

fn with_options(
    config: &StackConfig,
    options: BuildOptions,
) -> Result<Box<dyn Subsystem + Send>, ConfigError> {
    if let Some(cache) = &config.cache {
        return Ok(Box::new(cache.build(config, options, Keep::Nothing)?));
    }
    let subsystem = subsystem(config, options)?;
    if config.directives.kind == DirectiveKind::Direct {
        return Ok(Box::new(subsystem));
    }
    Ok(Box::new(config.directives.wrap(config.below_directives(), subsystem)?))
}

/// As [`build_subsystem`] without directives, for callers that want the commands of NVM sets besides.
pub fn subsystem(config: &StackConfig, options: BuildOptions) -> Result<NvmSubsystem, ConfigError> {
    memory::check(config.seen_geometry())?;
    if !config.faults.is_empty() {
        let device = storing::faulty(config, &nand_options(config, options))?;
        let over = |device: AnyDevice| layer(config, device);
        return divide(config, device, over, |part| over(Box::new(part)));
    }
    match config.mode {
        TimingMode::Serial => divide_plain::<Serial>(config, options),
        TimingMode::Fifo => divide_plain::<Fifo>(config, options),
        TimingMode::ReadFirst => divide_plain::<ReadFirst>(config, options),
    }
}

fn divide_plain<S: Scheduler + Send + 'static>(
    config: &StackConfig,
    options: BuildOptions,
) -> Result<NvmSubsystem, ConfigError> {
    let whole = |device| layer(config, device);
    let part = |part| layer(config, part);
    divide(config, device::<S>(config, options)?, whole, part)
}

/// One layer for each set. A set of all dies has the device for itself, under the layer that `whole` gives;
/// the others share it, each under what `part` gives.
pub(crate) fn divide<D: FlashDevice + Send + 'static>(
    config: &StackConfig,
    device: D,
    whole: impl FnOnce(D) -> Result<Box<dyn Ftl + Send>, ConfigError>,
    part: impl Fn(Part<dyn FlashDevice + Send>) -> Result<Box<dyn Ftl + Send>, ConfigError>,
) -> Result<NvmSubsystem, ConfigError> {
    let partition = &config.partition;
    let page_bytes = config.geometry.page_bytes;
    let capacity = |ftl: &(dyn Ftl + Send)| ftl.logical_pages() * u64::from(page_bytes);
    let subsystem = if partition.layout.is_whole(&config.geometry) && !partition.is_host_side {
        let set = set(config, 0, whole(device)?)?;
        let specs = partition.specs(&[capacity(&*set.ftl)], page_bytes)?;
        NvmSubsystem::whole(set, &specs)
    } else {
        let shared: SharedDevice = share(device);
        let build = |(index, dies): (usize, &Vec<UnitId>)| {
            let dies = Part::new(SharedDevice::clone(&shared), dies);
            set(config, index, part(if partition.is_host_side { dies.host_side() } else { dies })?)
        };
        let dies = partition.layout.sets().iter().enumerate();
        let sets: Vec<NvmSet> = dies.map(build).collect::<Result<_, ConfigError>>()?;
        let capacities: Vec<u64> = sets.iter().map(|set| capacity(&*set.ftl)).collect();
        let specs = partition.specs(&capacities, page_bytes)?;
        NvmSubsystem::divided(shared, sets, &specs)
    };
    subsystem.map_err(|e| ConfigError::Build(format!("namespaces: {e}")))
}

/// A set with what the configuration says about it.
fn set(config: &StackConfig, index: usize, ftl: Box<dyn Ftl + Send>) -> Result<NvmSet, ConfigError> {
    let partition = &config.partition;
    let facts = partition.facts[index];
    if facts.keeps_windows && ftl.quiet_room().is_none() {
        return Err(ConfigError::Unsuited(format!(
            "sets.windows = 'host': expected a translation layer that can put collection off (page-map without streams), not {}",
            config.ftl
        )));
    }
    let page_bytes = config.geometry.page_bytes;
    let moved = if config.nand.capabilities.partial_transfer { page_bytes.min(4096) } else { page_bytes };
    let timing = &config.timing;
    let read_typical_ns = timing.command_ns + timing.read_ns + timing.transfer_ns(moved);
    let facts = SetFacts { read_typical_ns, endurance: config.nand.endurance, ..facts };
    Ok(NvmSet { ftl, endurance_group: partition.endurance_groups[index], facts })
}

fn nand_options(config: &StackConfig, options: BuildOptions) -> NandOptions {
    // Programs of flash pages, which pages as the layer sees them do not have one by one where the device
    // compresses.
    NandOptions { count_programs: options.count_programs && config.packing.is_none(), ..config.nand.clone() }
}

fn device<S: Scheduler>(config: &StackConfig, options: BuildOptions) -> Result<Timed<Nand, S>, ConfigError> {
    let nand = Nand::new(*config.seen_geometry(), &nand_options(config, options))
        .map_err(|e| ConfigError::Build(format!("device.bad_blocks: {e}")))?;
    Ok(timed(config, nand))
}

/// A medium with time.
pub(crate) fn timed<M: Medium, S: Scheduler>(config: &StackConfig, medium: M) -> Timed<M, S> {
    let device =
        Timed::new(medium, S::with_options(&config.geometry, &config.timing, &config.timing_options));
    match config.packing {
        None => device,
        Some((packing, _)) => device.compressing(packing),
    }
}

pub(crate) fn layer<D: FlashDevice + Send + 'static>(
    config: &StackConfig,
    device: D,
) -> Result<Box<dyn Ftl + Send>, ConfigError> {
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
    Ok(ftl)
}
