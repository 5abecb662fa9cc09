//! An object store on the device.

use super::{Boxed, Over, StackEntry, refuse_block_only};
use crate::config::{ConfigError, Result, StackConfig};
use crate::flash::{BuildOptions, faulty, nand, nand_options, timed};
use crate::kinds::oftl::KIND;
use crate::memory;
use nandscape_core::FlashDevice;
use nandscape_media::scheduler::WithScheduler;
use nandscape_media::{NandOptions, Scheduler};
use nandscape_object::oftl::ObjectOob;
use nandscape_object::{ObjectStoreError, Oftl};

pub const ENTRY: StackEntry = StackEntry {
    kind: &KIND,
    plain: |config, options: BuildOptions| {
        memory::check(config)?;
        let options = nand_options(config, options);
        if config.faults.plan.is_empty() {
            return config.scheduler.with(Store { config, options });
        }
        on(config, faulty(config, &options)?)
    },
    over: Over::Objects(|config, device, _| on(config, device)),
};

/// The store over a device that keeps no bytes, compiled for its scheduler.
struct Store<'a> {
    config: &'a StackConfig,
    options: NandOptions,
}

impl WithScheduler for Store<'_> {
    type Out = Result<Boxed>;

    fn with<S: Scheduler + Send + 'static>(self) -> Self::Out {
        let Self { config, options } = self;
        on(config, timed::<_, S, ObjectOob>(config, nand::<ObjectOob>(config, &options)?))
    }
}

fn on<D: FlashDevice<ObjectOob> + Send + 'static>(config: &StackConfig, device: D) -> Result<Boxed> {
    refuse_block_only(config)?;
    let store = Oftl::new(device, &config.ftl_params).map_err(|error| match error {
        ObjectStoreError::Param(error) => ConfigError::Param(error),
        ObjectStoreError::Device { .. } => ConfigError::Build(error.to_string()),
        error => ConfigError::Start { stack: KIND.info.name, message: error.to_string() },
    })?;
    Ok(Box::new(store))
}
