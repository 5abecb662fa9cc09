//! Stacks: the interface of the flash, and the host software over it. A stack says which layers stand over
//! the device; the keys of `[ftl]` belong to its translation layer.

mod block;
mod dm_zoned;
mod host_ftl;
mod oftl;
mod pblk;
mod plain;
mod vector;
mod zone;
mod zone_files;
mod zone_map;

use crate::config::cache::CacheConfig;
use crate::config::{ConfigError, Result, StackConfig};
use crate::flash::{BuildOptions, nand, with_faults, with_time};
use crate::interfaces::Place;
use crate::kinds::StackKind;
use crate::memory;
use nandscape_core::command::Payload;
use nandscape_core::{
    Clocked, Command, FlashDevice, Layered, Oob, OutOfBand, Params, SimTime, Submitted, Subsystem,
};
use nandscape_hostftl::HostFtlError;
use nandscape_media::Breakable;
use nandscape_object::oftl::ObjectOob;

type Boxed = Box<dyn Subsystem + Send>;

/// A registered stack.
#[derive(Debug)]
pub struct StackEntry {
    /// Its name, and its keys.
    pub kind: &'static StackKind,
    /// Builds it over a device that keeps no bytes.
    pub(crate) plain: fn(&StackConfig, BuildOptions) -> Result<Boxed>,
    /// Builds it over a device that keeps bytes.
    pub(crate) over: Over,
}

/// Builds a stack over a device whose pages have an OOB of type `O`; the flag says whether it lasts longer
/// than the process.
pub(crate) type OnDevice<O> = fn(&StackConfig, Box<dyn FlashDevice<O> + Send>, bool) -> Result<Boxed>;

/// What a stack needs of a device that keeps bytes.
#[derive(Debug)]
pub(crate) enum Over {
    /// Pages with the OOB of logical pages.
    Pages(OnDevice<Oob>),
    /// Pages with back pointers to objects.
    Objects(OnDevice<ObjectOob>),
}

/// Every stack, in the order of [`crate::kinds::KINDS`].
pub static STACKS: &[StackEntry] = &[
    block::ENTRY,
    block::DATA_JOURNAL,
    block::ATOMIC,
    block::XFS,
    block::STREAMS,
    block::FDP,
    zone::ENTRY,
    zone_map::ENTRY,
    dm_zoned::ENTRY,
    zone_files::ENTRY,
    zone::CACHE,
    block::F2FS,
    zone::F2FS,
    vector::ENTRY,
    pblk::ENTRY,
    host_ftl::ENTRY,
    oftl::ENTRY,
];

/// The stack of a configuration.
pub(crate) fn stack_of(config: &StackConfig) -> &'static StackEntry {
    let is_asked = |entry: &&StackEntry| entry.kind.info.name == config.stack.info.name;
    STACKS.iter().find(is_asked).expect("every kind has a stack")
}

/// A stack over a device that keeps bytes in memory.
pub(crate) fn build_in_memory(config: &StackConfig) -> Result<Boxed> {
    memory::check(config)?;
    let mut config = config.clone();
    config.nand.capabilities.stores_data = true;
    match stack_of(&config).over {
        Over::Pages(build) => over(&config, Box::new(nand(&config, &config.nand)?), build, false),
        Over::Objects(build) => over(&config, Box::new(nand(&config, &config.nand)?), build, false),
    }
}

/// The stack over a medium, which `lasts` longer than the process or not, with the interfaces in front.
pub(crate) fn over<O: OutOfBand>(
    config: &StackConfig,
    medium: Box<dyn Breakable<O> + Send>,
    build: OnDevice<O>,
    lasts: bool,
) -> Result<Boxed> {
    let device = with_time(config, with_faults(config, medium)?);
    in_front(config, build(config, device, lasts)?)
}

/// A stack with the interfaces in front, and before them who chooses streams.
fn in_front(config: &StackConfig, subsystem: Boxed) -> Result<Boxed> {
    let over_flash = config.with_interfaces(Place::Flash, subsystem)?;
    let served = config.with_interfaces(Place::Served, over_flash)?;
    if config.stores_objects() { Ok(served) } else { config.host.in_front(config.policy_setup(0), served) }
}

/// A layer of the host over what lies below it, as a stack, of the keys of `[ftl]`.
fn host_layer<L: Subsystem + Send + 'static>(
    config: &StackConfig,
    below: Boxed,
    build: fn(Lower, &Params) -> std::result::Result<L, HostFtlError>,
) -> Result<Boxed> {
    Ok(Box::new(build(Lower(below), &config.ftl_params).map_err(|error| unsuited(config, error))?))
}

/// Any subsystem below a layer of the host: these are compiled once, not for each device.
struct Lower(Boxed);

nandscape_core::state_of_inner!(impl [] Lower: |this| this.0);

impl Clocked for Lower {
    nandscape_core::delegate_clock!(self, self.0);
}

impl Layered for Lower {
    fn below(&self) -> &dyn Subsystem {
        &*self.0
    }

    fn below_mut(&mut self) -> &mut dyn Subsystem {
        &mut *self.0
    }

    fn submit(&mut self, namespace: u32, command: Command, payload: Payload<'_>, at: SimTime) -> Submitted {
        self.0.submit(namespace, command, payload, at)
    }
}

/// Why a layer of the host cannot be built.
fn unsuited(config: &StackConfig, error: HostFtlError) -> ConfigError {
    match error {
        HostFtlError::Param(error) => ConfigError::Param(error),
        HostFtlError::Namespace(_) | HostFtlError::Start { .. } => {
            ConfigError::Start { stack: config.stack.info.name, message: error.to_string() }
        }
        error => ConfigError::Build(error.to_string()),
    }
}

/// Refuses what only a block device on flash has.
pub(crate) fn refuse_block_only(config: &StackConfig) -> Result<()> {
    let name = config.stack.info.name;
    let is_cached = config.cache.as_ref().is_some_and(CacheConfig::is_over_flash);
    if config.stack.needs_cache() && !is_cached {
        return Err(ConfigError::Unsuited(format!(
            "stack.kind = {name}: expected a cache over it, such as cache.preset = nandscape"
        )));
    }
    if config.stack.is_drive() {
        return Ok(());
    }
    let what = if !config.partition.is_plain() {
        "[sets] and [namespaces]"
    } else if config.packing.is_some() {
        "device.compression"
    } else if config.units.is_some() {
        "ftl.unit smaller than a page"
    } else if config.cache.is_some() && !(is_cached && config.stack.takes_cache()) {
        "[cache]"
    } else if config.has_interfaces_for_blocks() {
        "[directives] and [fs]"
    } else {
        return Ok(());
    };
    Err(ConfigError::Unsuited(format!("{what} with stack.kind = {name}: expected stack.kind = block")))
}
