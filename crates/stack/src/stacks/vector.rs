//! Vector access, and zones that the host makes of chunks.

use super::plain::{Base, plain};
use super::{Boxed, Over, StackEntry, refuse_block_only, unsuited};
use crate::config::{ConfigError, Result, StackConfig};
use crate::kinds::vector::{
    CACHED_UNITS, FAILED_PROGRAM, KIND, RESETS_FREE, RESETS_OPEN, SPANS_PLANES, WIDTH,
};
use nandscape_core::vector::MediaTimes;
use nandscape_core::{FlashDevice, VectorReports};
use nandscape_hostftl::ChunkZones;
use nandscape_namespace::vector::{FailedProgram, VectorNamespace, VectorOob, VectorSetup};
use nandscape_namespace::zones::ZoneOob;

pub const ENTRY: StackEntry =
    StackEntry { kind: &KIND, plain: plain::<Chunks>, over: Over::Pages(Chunks::on_any) };

/// Zones of chunks.
pub(super) struct Chunks;

impl Base for Chunks {
    fn on<D: FlashDevice<O> + Send + 'static, O: ZoneOob + VectorOob>(
        config: &StackConfig,
        device: D,
    ) -> Result<Boxed> {
        let namespace = namespace(config, device, false)?;
        let units = namespace.geometry(0).all_units();
        // Below a translation layer, zones as wide as the device.
        let default = if config.ftl == KIND.info.name { 1 } else { units };
        let width = config.vector.get(WIDTH).unwrap_or(default);
        if !units.is_multiple_of(width) {
            let expected = format!("a width that divides the {units} dies");
            return Err(config.vector.error(WIDTH, expected).into());
        }
        Ok(Box::new(ChunkZones::new(namespace, width).map_err(|error| unsuited(config, error))?))
    }
}

/// Vector access to a device, with or without an OOB of the host's beside each page.
pub(super) fn namespace<D: FlashDevice<O> + Send + 'static, O: VectorOob>(
    config: &StackConfig,
    device: D,
    host_oob: bool,
) -> Result<VectorNamespace<D, O>> {
    refuse_block_only(config)?;
    let (keys, timing) = (&config.vector, &config.timing);
    let nanos = |ns: u64| u32::try_from(ns).unwrap_or(u32::MAX);
    let setup = VectorSetup {
        name: "ns1".to_owned(),
        spans_planes: keys.get(SPANS_PLANES),
        cached_units: keys.get(CACHED_UNITS),
        resets_free: keys.get(RESETS_FREE),
        resets_open: keys.get(RESETS_OPEN),
        host_oob,
        failed_program: match keys.get(FAILED_PROGRAM) {
            "skips" => FailedProgram::SkipsUnit,
            _ => FailedProgram::ClosesChunk,
        },
        endurance: config.nand.endurance,
        times: MediaTimes {
            read_ns: nanos(timing.read_ns),
            write_ns: nanos(timing.program_ns),
            reset_ns: nanos(timing.erase_ns),
        },
    };
    setup.check(&config.geometry, config.timing_options.program_pages)?;
    VectorNamespace::new(device, &setup).map_err(|error| ConfigError::Build(error.to_string()))
}
