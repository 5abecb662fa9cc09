//! A block device that the host makes of chunks.

use super::plain::{Base, plain};
use super::vector::namespace;
use super::{Boxed, Over, StackEntry, host_layer};
use crate::config::{Result, StackConfig};
use crate::kinds::pblk::KIND;
use nandscape_core::FlashDevice;
use nandscape_hostftl::Pblk;
use nandscape_namespace::vector::VectorOob;
use nandscape_namespace::zones::ZoneOob;

pub const ENTRY: StackEntry = StackEntry {
    kind: &KIND,
    plain: |config, options| on(config, plain::<Chunks>(config, options)?),
    over: Over::Pages(|config, device, lasts| on(config, Chunks::on_any(config, device, lasts)?)),
};

/// Vector access with an OOB of the host's.
struct Chunks;

impl Base for Chunks {
    fn on<D: FlashDevice<O> + Send + 'static, O: ZoneOob + VectorOob>(
        config: &StackConfig,
        device: D,
    ) -> Result<Boxed> {
        Ok(Box::new(namespace(config, device, true)?))
    }
}

/// The translation layer over it.
fn on(config: &StackConfig, chunks: Boxed) -> Result<Boxed> {
    host_layer(config, chunks, Pblk::new)
}
