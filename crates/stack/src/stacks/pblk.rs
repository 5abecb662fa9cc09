//! A block device that the host makes of chunks.

use super::plain::{Base, Top, plain};
use super::vector::namespace;
use super::{Boxed, Over, StackEntry, host_layer};
use crate::config::{Result, StackConfig};
use crate::kinds::pblk::KIND;
use nandscape_core::{FlashDevice, Subsystem};
use nandscape_hostftl::Pblk;
use nandscape_namespace::vector::VectorOob;
use nandscape_namespace::zones::ZoneOob;

pub const ENTRY: StackEntry =
    StackEntry { kind: &KIND, plain: plain::<Chunks, Lines>, over: Over::Pages(Chunks::on_any::<Lines>) };

/// Vector access with an OOB of the host's.
struct Chunks;

impl Base for Chunks {
    fn on<T: Top, D: FlashDevice<O> + Send + 'static, O: ZoneOob + VectorOob>(
        config: &StackConfig,
        device: D,
    ) -> Result<Boxed> {
        T::over(config, namespace(config, device, true)?)
    }
}

/// The translation layer over it.
struct Lines;

impl Top for Lines {
    fn over<S: Subsystem + Send + 'static>(config: &StackConfig, chunks: S) -> Result<Boxed> {
        host_layer(config, |params| Pblk::new(chunks, params))
    }
}
