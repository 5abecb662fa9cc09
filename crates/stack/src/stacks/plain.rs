//! Namespaces over the flash that need no OOB: what hosts see, or what the layers of a host lie on.

use super::Boxed;
use crate::config::{ConfigError, Result, StackConfig};
use crate::flash::{BuildOptions, faulty, nand_options, timed};
use crate::memory;
use nandscape_core::{AnyDevice, FlashDevice, Oob};
use nandscape_media::scheduler::WithScheduler;
use nandscape_media::{Nand, Scheduler};
use nandscape_namespace::vector::VectorOob;
use nandscape_namespace::zones::{ImpliedOob, ZoneOob};
use std::marker::PhantomData;

/// A namespace over the flash that needs no OOB where no bytes are kept: blocks are programmed in order.
pub(super) trait Base {
    /// Makes it over a device.
    fn on<D: FlashDevice<O> + Send + 'static, O: ZoneOob + VectorOob>(
        config: &StackConfig,
        device: D,
    ) -> Result<Boxed>;

    /// Whether a part of it finds pages by their OOB, also where no bytes are kept.
    fn needs_oob(_: &StackConfig) -> bool {
        false
    }

    /// Makes it over a device of any type, which lasts longer than the process or not.
    fn on_any(config: &StackConfig, device: AnyDevice, _lasts: bool) -> Result<Boxed> {
        Self::on::<AnyDevice, Oob>(config, device)
    }
}

/// Makes one over a device that keeps no bytes.
pub(super) fn plain<B: Base>(config: &StackConfig, options: BuildOptions) -> Result<Boxed> {
    memory::check(config)?;
    if config.faults.plan.is_empty() && !B::needs_oob(config) {
        return config.scheduler.with(Plain::<B> { config, options, base: PhantomData });
    }
    B::on_any(config, faulty(config, &nand_options(config, options))?, false)
}

/// A namespace over a device that keeps no bytes, compiled for its scheduler.
struct Plain<'a, B> {
    config: &'a StackConfig,
    options: BuildOptions,
    base: PhantomData<B>,
}

impl<B: Base> WithScheduler for Plain<'_, B> {
    type Out = Result<Boxed>;

    fn with<S: Scheduler + Send + 'static>(self) -> Self::Out {
        let mut options = nand_options(self.config, self.options);
        // Blocks are programmed in order, on every device.
        options.capabilities.out_of_order_program = false;
        let nand = Nand::<ImpliedOob>::with_oob(self.config.geometry, &options)
            .map_err(|error| ConfigError::Build(format!("device.bad_blocks: {error}")))?;
        let device = timed::<_, S, ImpliedOob>(self.config, nand);
        B::on::<_, ImpliedOob>(self.config, device)
    }
}
