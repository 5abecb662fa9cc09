//! `zone-files`: a store of files on zones.

mod crash;
mod placement;
mod random;
mod space;

use super::support::{params_of, setup};
use nandscape_core::command::Payload;
use nandscape_core::{
    Extent, Geometry, Hint, NamespaceResult, ObjectCommand, ObjectId, ObjectReport, Oob, Params, Reply,
    SimTime, Subsystem,
};
use nandscape_hostftl::ZoneFiles;
use nandscape_hostftl::zone_files::{INFO, Sabotage};
use nandscape_media::Nand;
use nandscape_media::faults::FaultPlan;
use nandscape_namespace::zones::{FlashRules, ZoneSetup, ZonedNamespace};
use nandscape_testkit::crash::{Buffer, CrashDevice, Handle};
use nandscape_testkit::objects::crash::{is_full, space};

type Crashing = ZoneFiles<ZonedNamespace<CrashDevice, Oob>>;

/// Two dies of 40 blocks of 8 pages: zones of 16 pages, 15 of which can be written.
const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 40,
    pages_per_block: 8,
    page_bytes: 512,
    sector_bytes: 512,
    oob_bytes: 16,
};

fn zones() -> ZoneSetup {
    let rules = FlashRules { erases_at_reset: true, completes_stripe: false, pads: true, is_volatile: true };
    ZoneSetup { rules, spare_blocks: 6, ..setup(&GEOMETRY, 2, 15, Some(6)) }
}

fn params(pairs: &[(&str, &str)]) -> Params {
    params_of(&INFO, pairs)
}

fn open(device: CrashDevice, params: &Params, sabotage: Sabotage) -> Result<Crashing, String> {
    let zoned = ZonedNamespace::new(device, &zones()).map_err(|error| format!("zones: {error}"))?;
    ZoneFiles::with_sabotage(zoned, params, sabotage).map_err(|error| error.to_string())
}

fn open_nand(nand: Nand, pairs: &[(&str, &str)], plan: &FaultPlan) -> (Crashing, Handle) {
    let (device, handle) = CrashDevice::new(nand, Buffer::None, plan, false);
    let layer = open(device, &params(pairs), Sabotage::None);
    (layer.unwrap_or_else(|error| panic!("{error}")), handle)
}

fn submit<S: Subsystem>(
    files: &mut S,
    command: ObjectCommand,
    payload: Payload<'_>,
    at: SimTime,
) -> NamespaceResult<Reply> {
    files.submit(0, command.into(), payload, at).map(|answer| answer.reply)
}

fn write<S: Subsystem>(
    files: &mut S,
    object: u64,
    offset: u64,
    len: u64,
    at: SimTime,
) -> NamespaceResult<Reply> {
    let extent = Extent::new(offset, len);
    submit(files, ObjectCommand::Write { object: ObjectId(object), extent, hint: None }, Payload::None, at)
}

fn create<S: Subsystem>(files: &mut S, object: u64, hint: Hint) {
    let create = ObjectCommand::Create { object: ObjectId(object), hint };
    submit(files, create, Payload::None, SimTime::ZERO).unwrap();
}

fn report<S: Subsystem>(files: &S) -> ObjectReport {
    files.inspect().objects().expect("a store of objects")
}
