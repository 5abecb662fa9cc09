//! Zones made of chunks: random commands against a plain model over restarts, failing media, and a block
//! device over such zones whose power is cut at every operation.

use super::support::{AsFtl, nand, params};
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::zone::{ZoneAction, ZoneCommand, ZoneError, ZoneState};
use nandscape_core::{
    BlockCommand, Cause, Command, Extent, Geometry, Hint, NamespaceError, Oob, Op, Reply, SimTime, Subsystem,
    ZoneReports,
};
use nandscape_hostftl::zone_map::Sabotage;
use nandscape_hostftl::{ChunkZones, ZoneMap};
use nandscape_media::Nand;
use nandscape_media::faults::FaultPlan;
use nandscape_namespace::vector::{VectorNamespace, VectorSetup};
use nandscape_testkit::crash::{
    Buffer, CrashDevice, Effort, Handle, Setup, campaign, finds, points_from_environment,
};

/// Cuts that all tests of this file try together.
const POINTS: u64 = 12_000;

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 24,
    pages_per_block: 8,
    page_bytes: 512,
    sector_bytes: 512,
    oob_bytes: 16,
};

type Zones = ChunkZones<VectorNamespace<CrashDevice, Oob>>;

fn zones(device: CrashDevice, setup: &VectorSetup, width: u32) -> Result<Zones, String> {
    let vectored = VectorNamespace::new(device, setup).map_err(|error| error.to_string())?;
    ChunkZones::new(vectored, width).map_err(|error| error.to_string())
}

fn open(nand: Nand, setup: &VectorSetup, width: u32, plan: &FaultPlan) -> (Zones, Handle) {
    let (device, handle) = CrashDevice::new(nand, Buffer::None, plan, false);
    (zones(device, setup, width).unwrap(), handle)
}

fn block(op: Op, offset: u64, len: u64) -> Command {
    BlockCommand::new(op, Extent::new(offset, len), Hint(0)).into()
}

fn manage(action: ZoneAction, zone: u64) -> Command {
    Command::Zone(ZoneCommand::Manage { action, zone: Some(zone) })
}

/// What a host knows of a zone.
#[derive(Clone, Default)]
struct Model {
    bytes: Vec<u8>,
    is_full: bool,
}

fn check(zones: &mut Zones, model: &[Model], size: u64, context: &str) {
    for (number, zone) in (0..).zip(model) {
        let described = zones.zone(0, number);
        let is_full = zone.is_full || zone.bytes.len() as u64 == size;
        assert_eq!(described.state == ZoneState::Full, is_full, "zone {number}: {context}");
        if !is_full {
            let pointer = described.start + zone.bytes.len() as u64;
            assert_eq!(described.write_pointer, Some(pointer), "zone {number}: {context}");
        }
        let mut found = vec![0xa5; size as usize];
        let read = block(Op::Read, u64::from(number) * size, size);
        zones.submit(0, read, Payload::Read(&mut found), SimTime::ZERO).unwrap();
        let mut expected = zone.bytes.clone();
        expected.resize(size as usize, 0);
        assert!(found == expected, "zone {number}: {context}");
    }
    zones.check_invariants();
}

#[test]
fn zones_hold_what_was_written_over_restarts_whatever_their_width() {
    let setups = [
        (1, VectorSetup::default()),
        (2, VectorSetup { resets_open: true, resets_free: true, ..VectorSetup::default() }),
        (1, VectorSetup { cached_units: Some(2), ..VectorSetup::default() }),
        (2, VectorSetup { cached_units: Some(1), host_oob: true, ..VectorSetup::default() }),
    ];
    for (seed, (width, mut setup)) in (1..).zip(setups) {
        // Chunks without host OOB are what zones need; with it the device has to be given some.
        setup.host_oob = false;
        let (mut zones, mut handle) = open(nand(GEOMETRY), &setup, width, &FaultPlan::default());
        let shape = zones.namespaces()[0].zones.unwrap();
        assert_eq!((shape.zones * width, shape.size), (48, u64::from(width) * 8 * 512));
        let (size, unit) = (shape.size, u64::from(shape.block));
        let mut model = vec![Model::default(); shape.zones as usize];
        let (mut rng, mut last) = (seeded(seed), 0u8);
        for step in 0..3_000 {
            let context = format!("width {width}, {setup:?}, step {step}");
            let number = below(&mut rng, 12);
            let (start, zone) = (number * size, &mut model[number as usize]);
            let written = zone.bytes.len() as u64;
            let is_full = zone.is_full || written == size;
            last = last % 250 + 1;
            match below(&mut rng, 100) {
                0..70 => {
                    if written == size {
                        continue;
                    }
                    let len = (below(&mut rng, 6) + 1) * unit;
                    let data = vec![last; len as usize];
                    let write = block(Op::Write, start + written, len);
                    let got = zones.submit(0, write, Payload::Write(&data), SimTime::ZERO);
                    if is_full {
                        assert!(got.is_err(), "{context}");
                    } else if written + len > size {
                        assert_eq!(got.unwrap_err(), ZoneError::Boundary.into(), "{context}");
                    } else {
                        got.unwrap_or_else(|error| panic!("{error}: {context}"));
                        zone.bytes.extend_from_slice(&data);
                    }
                }
                70..78 if !is_full => {
                    let data = vec![last; unit as usize];
                    let append =
                        ZoneCommand::Append { zone: start, len: unit, hint: Hint(0), is_durable: true };
                    let got = zones.submit(0, Command::Zone(append), Payload::Write(&data), SimTime::ZERO);
                    assert_eq!(got.unwrap().reply, Reply::Appended(start + written), "{context}");
                    zone.bytes.extend_from_slice(&data);
                }
                78..84 => {
                    zones.submit(0, manage(ZoneAction::Finish, start), Payload::None, SimTime::ZERO).unwrap();
                    zone.is_full = true;
                }
                84..97 => {
                    zones.submit(0, manage(ZoneAction::Reset, start), Payload::None, SimTime::ZERO).unwrap();
                    *zone = Model::default();
                }
                97..99 => check(&mut zones, &model, size, &context),
                _ => {
                    zones.submit(0, Command::FLUSH, Payload::None, SimTime::ZERO).unwrap();
                    drop(zones);
                    (zones, handle) = open(handle.nand(), &setup, width, &FaultPlan::default());
                    for zone in &mut model {
                        // The host's own copy of what the device hides is gone, so the zone ended there.
                        let is_hidden = setup.cached_units.is_some() && !zone.bytes.is_empty();
                        zone.is_full |= is_hidden;
                    }
                    check(&mut zones, &model, size, &context);
                }
            }
        }
    }
}

#[test]
fn a_zone_that_cannot_be_written_ends_and_one_that_cannot_be_erased_goes_offline() {
    let plan = FaultPlan { program: 0.02, erase: 0.02, seed: 5, ..FaultPlan::default() };
    for width in [1, 2] {
        let (mut zones, handle) = open(nand(GEOMETRY), &VectorSetup::default(), width, &plan);
        let shape = zones.namespaces()[0].zones.unwrap();
        let mut bytes: Vec<Vec<u8>> = vec![Vec::new(); shape.zones as usize];
        let (mut ended, mut offline) = (0, 0);
        for step in 0..6_000_u32 {
            let zone = step % shape.zones;
            let start = u64::from(zone) * shape.size;
            let data = vec![step as u8 | 1; 512];
            let described = zones.zone(0, zone);
            let Some(pointer) = described.write_pointer else {
                let reset = zones.submit(0, manage(ZoneAction::Reset, start), Payload::None, SimTime::ZERO);
                match reset {
                    Ok(_) => bytes[zone as usize].clear(),
                    Err(error) => {
                        let is_known =
                            matches!(error, NamespaceError::Zone(ZoneError::Offline | ZoneError::Transition));
                        assert!(is_known, "{error}");
                        assert_eq!(zones.zone(0, zone).state, ZoneState::Offline);
                        offline += u32::from(described.state != ZoneState::Offline);
                    }
                }
                continue;
            };
            match zones.submit(0, block(Op::Write, pointer, 512), Payload::Write(&data), SimTime::ZERO) {
                Ok(_) => bytes[zone as usize].extend_from_slice(&data),
                Err(error) => {
                    assert_eq!(error, ZoneError::Full.into());
                    assert_eq!(zones.zone(0, zone).state, ZoneState::Full);
                    ended += 1;
                }
            }
            if step % 50 == 0 && zones.zone(0, zone).state != ZoneState::Offline {
                let mut found = vec![0; bytes[zone as usize].len()];
                let read = block(Op::Read, start, found.len() as u64);
                if !found.is_empty() {
                    zones.submit(0, read, Payload::Read(&mut found), SimTime::ZERO).unwrap();
                }
                assert_eq!(found, bytes[zone as usize], "zone {zone}, step {step}");
            }
        }
        assert!(ended > 10 && offline > 3, "{ended} ended, {offline} offline");
        zones.check_invariants();
        zones.submit(0, Command::FLUSH, Payload::None, SimTime::ZERO).unwrap();
        // A restart finds the same bytes.
        let (mut zones, _) = open(handle.nand(), &VectorSetup::default(), width, &FaultPlan::default());
        for (zone, bytes) in (0..).zip(&bytes) {
            if zones.zone(0, zone).state != ZoneState::Offline && !bytes.is_empty() {
                let mut found = vec![0; bytes.len()];
                let read = block(Op::Read, u64::from(zone) * shape.size, bytes.len() as u64);
                zones.submit(0, read, Payload::Read(&mut found), SimTime::ZERO).unwrap();
                assert!(found == *bytes, "zone {zone} after a restart");
            }
        }
    }
}

#[test]
fn padding_is_counted_as_that_and_other_commands_are_refused_by_name() {
    let (mut zones, _) = open(nand(GEOMETRY), &VectorSetup::default(), 2, &FaultPlan::default());
    let write = block(Op::Write, 0, 5 * 512);
    zones.submit(0, write, Payload::Write(&[7; 5 * 512]), SimTime::ZERO).unwrap();
    zones.submit(0, manage(ZoneAction::Reset, 0), Payload::None, SimTime::ZERO).unwrap();
    let causes = *zones.inspect().layer(0).device().counters();
    assert_eq!((causes.get(Cause::Host).programs, causes.get(Cause::Finish).programs), (5, 11));
    assert_eq!(causes.get(Cause::Host).erases, 2);
    let describe = Command::Zone(ZoneCommand::Describe { zone: 0 });
    let error = zones.submit(0, describe, Payload::None, SimTime::ZERO).unwrap_err();
    assert_eq!(error, NamespaceError::NotSupported { command: "set zone descriptor extension" });
    let (device, _) = CrashDevice::new(nand(GEOMETRY), Buffer::None, &FaultPlan::default(), false);
    let Err(error) = super::chunk_zones::zones(device, &VectorSetup::default(), 3) else {
        panic!("3 divides 2")
    };
    assert!(error.contains("a width that divides the 2"), "{error}");
}

fn case(
    name: &str,
    width: u32,
    setup: VectorSetup,
    pairs: &[(&str, &str)],
    sabotage: Sabotage,
) -> Setup<'static> {
    let params = params(pairs);
    let open = move |device| {
        let zones = zones(device, &setup, width)?;
        let map = ZoneMap::with_sabotage(zones, &params, sabotage).map_err(|error| error.to_string())?;
        Ok(Box::new(AsFtl(map)) as _)
    };
    Setup {
        name: name.to_owned(),
        nand: nand(GEOMETRY),
        open: Box::new(open),
        plan: FaultPlan::default(),
        needs_flush: true,
        damage: None,
        effort: Effort::default(),
    }
}

/// Wide zones lose much of their room with a failed program: these have more of it.
fn cases(sabotage: Sabotage, wide_op: &str) -> [Setup<'static>; 3] {
    let cached = VectorSetup { cached_units: Some(1), ..VectorSetup::default() };
    let eager = VectorSetup { resets_open: true, resets_free: true, ..VectorSetup::default() };
    [
        case("chunks", 1, VectorSetup::default(), &[("op", "0.9")], sabotage),
        case("chunks, wide", 2, eager, &[("op", wide_op), ("streams", "2"), ("victim", "fifo")], sabotage),
        case("chunks, cached", 1, cached, &[("op", "0.9"), ("gc_frontier", "shared")], sabotage),
    ]
}

#[test]
fn a_block_device_on_zones_of_chunks_survives_every_cut() {
    let points = points_from_environment(POINTS, 70);
    let command = "cargo test -p nandscape-hostftl --test suite chunk_zones::a_block_device_on_zones_of_chunks_survives_every_cut -- --exact --nocapture";
    let tally = campaign("zone-map on chunks", &cases(Sabotage::None, "1.5"), points, command);
    let is_limited = std::env::var("CRASH_CASE").is_ok();
    assert!(is_limited || (tally.erases > 0 && tally.rows > 0), "{tally}");
}

#[test]
fn a_block_device_on_zones_of_chunks_survives_cuts_while_blocks_fail() {
    let points = points_from_environment(POINTS, 30);
    let command = "cargo test -p nandscape-hostftl --test suite chunk_zones::a_block_device_on_zones_of_chunks_survives_cuts_while_blocks_fail -- --exact --nocapture";
    let plan = FaultPlan { program: 0.01, erase: 0.03, ..FaultPlan::default() };
    let failing = cases(Sabotage::None, "3").map(|case| Setup { plan: plan.clone(), ..case });
    campaign("zone-map on failing chunks", &failing, points, command);
}

#[test]
fn sabotages_of_the_map_are_found_on_chunks_as_well() {
    let effort = Effort { scattered: 4, deep_every: 0, again_every: 40, row_every: 0, ..Effort::default() };
    for sabotage in [Sabotage::ResetWithoutWait, Sabotage::FlushWithoutRecords, Sabotage::BelieveAllRecords] {
        let is_found =
            cases(sabotage, "1.5").into_iter().any(|case| finds(&Setup { effort, ..case }, 30).0.is_some());
        assert!(is_found, "{sabotage:?} went unnoticed");
    }
}
