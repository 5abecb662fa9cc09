//! The flash stack of a configuration: media, scheduler, faults, translation layers, sets and interfaces.
//! The device is monomorphised here: one copy of each translation layer for each scheduler, chosen once at
//! build time. What stands over a medium that keeps bytes is compiled once for all of them.

use crate::config::{ConfigError, Result, StackConfig};
use crate::memory;
use nandscape_core::{AnyDevice, FlashDevice, FlashState, Ftl, Oob, OutOfBand, SimTime, UnitId};
use nandscape_ftl::registry::ftls;
use nandscape_ftl::{FtlBuildError, Journal};
use nandscape_media::faults::Faults;
use nandscape_media::scheduler::WithScheduler;
use nandscape_media::{Breakable, Medium, Nand, NandOptions, Scheduler, Timed};
use nandscape_namespace::sets::{Order, Part, Processor, share};
use nandscape_namespace::{NvmSet, NvmSubsystem, SetFacts, SharedDevice};

/// Choices that do not change what a run counts, only what it keeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildOptions {
    /// Count programs per page, 4 B a page.
    pub count_programs: bool,
}

/// As [`crate::build_subsystem`] without host interfaces, for callers that want the commands of NVM sets
/// besides.
pub fn subsystem(config: &StackConfig, options: BuildOptions) -> Result<NvmSubsystem> {
    memory::check(config)?;
    if !config.faults.plan.is_empty() {
        let device = faulty(config, &nand_options(config, options))?;
        let over = |device: AnyDevice| layer(config, device);
        return divide(config, device, over, |part| over(Box::new(part)));
    }
    config.scheduler.with(Plain { config, options })
}

/// Layers over a device that keeps no bytes, each compiled for its scheduler.
struct Plain<'a> {
    config: &'a StackConfig,
    options: BuildOptions,
}

impl WithScheduler for Plain<'_> {
    type Out = Result<NvmSubsystem>;

    fn with<S: Scheduler + Send + 'static>(self) -> Self::Out {
        let Self { config, options } = self;
        let nand = nand::<Oob>(config, &nand_options(config, options))?;
        let whole = |device| layer(config, device);
        let part = |part| layer(config, part);
        divide(config, timed::<_, S, Oob>(config, nand), whole, part)
    }
}

/// One layer for each set. A set of all dies has the device for itself, under the layer that `whole` gives;
/// the others share it, each under what `part` gives.
fn divide<D: FlashDevice + Send + 'static>(
    config: &StackConfig,
    device: D,
    whole: impl FnOnce(D) -> Result<Box<dyn Ftl + Send>>,
    part: impl Fn(Part<dyn FlashDevice + Send>) -> Result<Box<dyn Ftl + Send>>,
) -> Result<NvmSubsystem> {
    let partition = &config.partition;
    let page_bytes = config.seen_geometry().page_bytes;
    let capacity = |ftl: &(dyn Ftl + Send)| ftl.logical_pages() * u64::from(page_bytes);
    let order = config.has_file_system().then(Order::default);
    let processor = || Processor::new(partition.processor_ns);
    let is_alone = partition.layout.is_whole(&config.geometry) && !partition.has_part();
    let subsystem = if is_alone && order.is_none() {
        let set = set(config, 0, whole(device)?)?;
        let specs = partition.specs(&[capacity(&*set.ftl)], page_bytes)?;
        NvmSubsystem::whole(set, &specs)
    } else {
        let shared: SharedDevice = share(device);
        let of_device = processor();
        let build = |(index, dies): (usize, &Vec<UnitId>)| {
            let own = partition.is_host_side.then(processor);
            let mut dies =
                Part::new(SharedDevice::clone(&shared), dies).run_by(own.as_ref().unwrap_or(&of_device));
            if let Some(order) = &order {
                dies = dies.ordered(order);
            }
            set(config, index, part(if partition.is_host_side { dies.host_side() } else { dies })?)
        };
        let dies = partition.layout.sets().iter().enumerate();
        let sets: Vec<NvmSet> = dies.map(build).collect::<Result<_>>()?;
        let capacities: Vec<u64> = sets.iter().map(|set| capacity(&*set.ftl)).collect();
        let specs = partition.specs(&capacities, page_bytes)?;
        NvmSubsystem::divided(shared, sets, &specs)
    };
    let subsystem = subsystem.map_err(|e| ConfigError::Build(format!("namespaces: {e}")))?;
    Ok(match order {
        None => subsystem,
        Some(order) => subsystem.ordered(order),
    })
}

/// A set with what the configuration says about it.
fn set(config: &StackConfig, index: usize, ftl: Box<dyn Ftl + Send>) -> Result<NvmSet> {
    let partition = &config.partition;
    let facts = partition.facts[index];
    if facts.keeps_windows && ftl.quiet_room().is_none() {
        return Err(ConfigError::Unsuited(format!(
            "sets.windows = 'host': expected a translation layer that can put collection off (page-map without streams), not {}",
            config.ftl
        )));
    }
    let page_bytes = config.seen_geometry().page_bytes;
    let moved = if config.nand.capabilities.partial_transfer { page_bytes.min(4096) } else { page_bytes };
    let timing = &config.timing;
    let read_typical_ns = timing.command_ns + timing.read_ns + timing.transfer_ns(moved);
    let facts = SetFacts { read_typical_ns, endurance: config.nand.endurance, ..facts };
    Ok(NvmSet { ftl, endurance_group: partition.endurance_groups[index], facts })
}

pub(crate) fn nand_options(config: &StackConfig, options: BuildOptions) -> NandOptions {
    // Programs of flash pages, which pages as the layer sees them do not have one by one where the device
    // compresses.
    NandOptions { count_programs: options.count_programs && config.packing.is_none(), ..config.nand.clone() }
}

pub(crate) fn timed<M: Medium<O>, S: Scheduler, O: OutOfBand>(
    config: &StackConfig,
    medium: M,
) -> Timed<M, S> {
    let (timing, options) = (&config.timing, &config.timing_options);
    let mut device = Timed::new(medium, S::with_options(&config.geometry, timing, options));
    if options.buffer.bytes > 0 && options.buffer.is_volatile {
        device = device.with_volatile_buffer();
    }
    match (config.packing, config.units) {
        (Some((packing, _)), _) => device.compressing(packing),
        (None, Some((units, _))) => device.with_units(units),
        (None, None) => device,
    }
}

fn layer<D: FlashDevice + Send + 'static>(config: &StackConfig, device: D) -> Result<Box<dyn Ftl + Send>> {
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

/// Layers over a device of any type, with a journal if it `lasts` longer than the process.
pub(crate) fn divided(config: &StackConfig, device: AnyDevice, lasts: bool) -> Result<NvmSubsystem> {
    let over = |device: AnyDevice| if lasts { with_journal(config, device) } else { layer(config, device) };
    divide(config, device, over, |part| over(Box::new(part)))
}

/// The device of a run that keeps no bytes and in which something goes wrong.
pub(crate) fn faulty<O: OutOfBand>(
    config: &StackConfig,
    options: &NandOptions,
) -> Result<Box<dyn FlashDevice<O> + Send>> {
    let medium = nand(config, options)?;
    Ok(with_time(config, with_faults(config, Box::new(medium))?))
}

pub(crate) fn with_time<O: OutOfBand>(
    config: &StackConfig,
    medium: Box<dyn Medium<O> + Send>,
) -> Box<dyn FlashDevice<O> + Send> {
    config.scheduler.with(Any { config, medium })
}

/// A device of any type over a medium of any type.
struct Any<'a, O: OutOfBand> {
    config: &'a StackConfig,
    medium: Box<dyn Medium<O> + Send>,
}

impl<O: OutOfBand> WithScheduler for Any<'_, O> {
    type Out = Box<dyn FlashDevice<O> + Send>;

    fn with<S: Scheduler + Send + 'static>(self) -> Self::Out {
        Box::new(timed::<_, S, O>(self.config, self.medium))
    }
}

pub(crate) fn with_faults<O: OutOfBand>(
    config: &StackConfig,
    medium: Box<dyn Breakable<O> + Send>,
) -> Result<Box<dyn Medium<O> + Send>> {
    if config.faults.plan.is_empty() {
        return Ok(medium);
    }
    let faults = Faults::new(medium, config.faults.plan.clone());
    Ok(Box::new(faults.map_err(|e| ConfigError::Unsuited(format!("faults: {e}")))?))
}

pub(crate) fn nand<O: OutOfBand>(config: &StackConfig, options: &NandOptions) -> Result<Nand<O>> {
    Nand::with_oob(*config.seen_geometry(), options)
        .map_err(|error| ConfigError::Build(format!("device.bad_blocks: {error}")))
}

/// A layer that starts from what the flash holds.
fn with_journal(config: &StackConfig, device: AnyDevice) -> Result<Box<dyn Ftl + Send>> {
    let mut journal =
        Journal::open(device, config.journal.options()).map_err(|e| ConfigError::Build(e.to_string()))?;
    // What the start read and wrote is over before the first request.
    journal.reset_time(SimTime::ZERO);
    layer(config, journal)
}
