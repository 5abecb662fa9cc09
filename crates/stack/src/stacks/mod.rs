//! Stacks: the interface of the flash, and the host software over it. A stack says which layers stand over
//! the device; the keys of `[ftl]` belong to its translation layer.

mod block;
mod zone;

pub use zone::ZONE;

use crate::config::{ConfigError, Result, StackConfig};
use crate::flash::BuildOptions;
use nandscape_core::{AnyDevice, Info, Params, Subsystem, keys};

type Boxed = Box<dyn Subsystem + Send>;

/// A registered stack.
#[derive(Debug)]
pub struct StackEntry {
    /// Its name and so on.
    pub info: Info,
    /// Its own layer, whose name is `ftl.kind` and whose keys those of `[ftl]`; absent: any of the registered
    /// translation layers.
    pub layer: Option<&'static Info>,
    /// Builds it over a device that keeps no bytes.
    pub(crate) plain: fn(&StackConfig, BuildOptions) -> Result<Boxed>,
    /// Builds it over a device of any type; the flag says whether the device lasts longer than the process.
    pub(crate) over: fn(&StackConfig, AnyDevice, bool) -> Result<Boxed>,
}

/// Every stack, the default first.
pub static STACKS: &[StackEntry] = &[block::ENTRY, zone::ENTRY];

const NAMES: &[&str] = &[block::ENTRY.info.name, zone::ENTRY.info.name];

keys! { PARAMS:
    pub(crate) KIND: String = choice(NAMES) or "block",
        "interface of the flash and host software over it ('nandscape list stacks')";
}

/// Keys of `[stack]`.
pub static STACK: Info = Info {
    name: "stack",
    summary: "which interface the flash has, and what the host makes of it",
    source: "nandscape",
    params: PARAMS,
};

/// The stack of a configuration.
pub(crate) fn stack_of(params: &Params) -> &'static StackEntry {
    let name = params.get(KIND);
    STACKS.iter().find(|entry| entry.info.name == name).expect("the values were checked against the registry")
}

/// The layers that stacks have of their own.
pub fn layers() -> impl Iterator<Item = &'static Info> {
    STACKS.iter().filter_map(|entry| entry.layer)
}

/// Refuses what only a block device on flash has.
fn refuse_block_only(config: &StackConfig) -> Result<()> {
    let name = config.stack.info.name;
    let what = if !config.partition.is_plain() {
        "[sets] and [namespaces]"
    } else if config.packing.is_some() {
        "device.compression"
    } else if config.cache.is_some() {
        "[cache]"
    } else if config.has_interfaces() {
        "[directives] and [fs]"
    } else {
        return Ok(());
    };
    Err(ConfigError::Unsuited(format!("{what} with stack.kind = {name}: expected stack.kind = block")))
}
