//! `dm-zoned` over zones of which some are conventional: cuts at every operation of the flash below both,
//! random commands against a plain list of bytes, and what reclaim does when.

use super::chunk_flash::{flash, host_setup};
use super::support::{
    AsFtl, Mixed, TIMING, check, mixed, nand, outlives_failing_zones, params_of, setup, submit,
};
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    AnyDevice, BlockCommand, Capabilities, Cause, Clocked, Command, Extent, FlashLayer, Geometry, Hint,
    Mapping, Op, Params, SimTime, Subsystem,
};
use nandscape_hostftl::dm_zoned::{self, Sabotage};
use nandscape_hostftl::{DmZoned, ZoneMap, chunk_flash};
use nandscape_media::faults::FaultPlan;
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed};
use nandscape_namespace::zones::{FlashRules, ZoneLayout, ZoneSetup};
use nandscape_testkit::crash::{
    Buffer, CrashDevice, Effort, Handle, Setup, campaign, finds, points_from_environment,
};

/// Cuts that all tests of this file try together.
const POINTS: u64 = 16_000;

/// Two dies of 40 blocks of 8 pages.
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

/// 6 conventional zones in 18 blocks of each die, and 16 zones with write pointers in 22; 15 pages each.
fn zones() -> ZoneSetup {
    let rules = FlashRules { erases_at_reset: true, completes_stripe: false, pads: true, is_volatile: true };
    let setup = setup(&GEOMETRY, 2, 15, Some(4));
    let layout = ZoneLayout { conventional: 6, ..setup.layout };
    ZoneSetup { rules, layout, conventional_blocks: 18, spare_blocks: 6, ..setup }
}

fn params(pairs: &[(&str, &str)]) -> Params {
    params_of(&dm_zoned::INFO, pairs)
}

fn case(name: &str, pairs: &[(&str, &str)], sabotage: Sabotage) -> Setup<'static> {
    case_over(name, pairs, sabotage, |device| Ok(Box::new(device)))
}

fn case_over(
    name: &str,
    pairs: &[(&str, &str)],
    sabotage: Sabotage,
    over: fn(CrashDevice) -> Result<AnyDevice, String>,
) -> Setup<'static> {
    let pairs: Vec<_> =
        [("block", "512"), ("idle", "1us")].into_iter().chain(pairs.iter().copied()).collect();
    let (params, zones) = (params(&pairs), zones());
    let open = move |device| Ok(Box::new(AsFtl::open_chunks(over(device)?, &zones, &params, sabotage)?) as _);
    Setup {
        name: name.to_owned(),
        nand: nand(GEOMETRY),
        open: Box::new(open),
        plan: FaultPlan::default(),
        needs_flush: true,
        damage: None,
        effort: Effort { steps: 40, again_every: 200, row_every: 400, ..Effort::default() },
    }
}

fn cases(sabotage: Sabotage) -> [Setup<'static>; 2] {
    [
        case("dm-zoned", &[("reserved", "4")], sabotage),
        case(
            "dm-zoned, full",
            &[("reserved", "2"), ("copy", "1KiB"), ("reclaim_low", "60"), ("reclaim_high", "80")],
            sabotage,
        ),
    ]
}

fn survives(test: &str, setups: &[Setup<'_>], share: u64) {
    let points = points_from_environment(POINTS, share);
    let command =
        format!("cargo test -p nandscape-hostftl --test suite dm_zoned::{test} -- --exact --nocapture");
    let tally = campaign(test, setups, points, &command);
    assert!(std::env::var("CRASH_CASE").is_ok() || tally.erases > 0, "{tally}");
}

#[test]
fn chunks_survive_every_cut() {
    survives("chunks_survive_every_cut", &cases(Sabotage::None), 60);
}

#[test]
fn chunks_survive_cuts_while_blocks_fail() {
    let plan = FaultPlan { program: 0.004, erase: 0.02, ..FaultPlan::default() };
    let failing = cases(Sabotage::None).map(|case| Setup { plan: plan.clone(), ..case });
    survives("chunks_survive_cuts_while_blocks_fail", &failing, 40);
}

/// The zones, conventional ones too, are software of the host over vector access.
#[test]
fn chunks_on_open_channel_survive_every_cut() {
    let over = |device| Ok(Box::new(flash(device, &host_setup(), chunk_flash::Sabotage::None)?) as AnyDevice);
    let case = case_over("dm-zoned on chunks", &[("reserved", "4")], Sabotage::None, over);
    survives("chunks_on_open_channel_survive_every_cut", &[case], 20);
}

#[test]
fn every_sabotage_of_chunks_is_found() {
    let few = Effort { scattered: 4, deep_every: 0, again_every: 20, row_every: 0, ..Effort::default() };
    let is_found = |sabotage| {
        cases(sabotage).into_iter().any(|case| finds(&Setup { effort: few, ..case }, 30).0.is_some())
    };
    let unnoticed: Vec<Sabotage> =
        Sabotage::ALL.into_iter().filter(|sabotage| !is_found(*sabotage)).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?} went unnoticed");
}

type Layer = DmZoned<Mixed>;

fn open(nand: Nand, keys: &[(&str, &str)], plan: &FaultPlan) -> (Layer, Handle) {
    let (device, handle) = CrashDevice::new(nand, Buffer::None, plan, false);
    let layer = AsFtl::open_chunks(Box::new(device), &zones(), &params(keys), Sabotage::None);
    (layer.unwrap_or_else(|error| panic!("{error}")).0, handle)
}

#[test]
fn what_was_written_is_read_over_restarts() {
    let all: [&[(&str, &str)]; 3] = [
        &[("block", "512"), ("reserved", "4")],
        &[("block", "512"), ("reserved", "1"), ("idle", "1us"), ("copy", "512")],
        &[("block", "2560"), ("reserved", "3"), ("reclaim_low", "0"), ("reclaim_high", "0")],
    ];
    for (seed, keys) in (1..).zip(all) {
        let mut rng = seeded(seed);
        let (mut layer, mut handle) = open(nand(GEOMETRY), keys, &FaultPlan::default());
        let block = u64::from(Mapping::page_bytes(&layer));
        let capacity = layer.namespaces()[0].capacity_bytes;
        let mut bytes = vec![0u8; capacity as usize];
        let mut last = 0u8;
        let mut starts = 0;
        // Where sequential writes go on.
        let mut next = 0;
        let mut merged = [0; 2];
        for step in 0..5_000 {
            let context = format!("{keys:?}, step {step}");
            let align = [1, 512, block][below(&mut rng, 3) as usize];
            let mut offset = below(&mut rng, capacity) / align * align;
            if below(&mut rng, 3) == 0 {
                offset = next % capacity / align * align;
            }
            let len = (below(&mut rng, 8 * 512) / align * align + align).min(capacity - offset);
            let extent = Extent::new(offset, len);
            let range = offset as usize..(offset + len) as usize;
            last = last % 250 + 1;
            match below(&mut rng, 1_000) {
                0..650 => {
                    let data = vec![last; len as usize];
                    let mut command = BlockCommand::new(Op::Write, extent, Hint(0));
                    command.is_durable = below(&mut rng, 20) == 0;
                    let at = layer.idle_from();
                    layer.submit(0, Command::from(command), Payload::Write(&data), at).unwrap();
                    bytes[range].fill(last);
                    next = offset + len;
                }
                650..700 => {
                    submit(&mut layer, Op::WriteZeroes, extent, Payload::None).unwrap();
                    bytes[range].fill(0);
                }
                700..800 => {
                    let extent = Extent::new(offset, (len * 8).min(capacity - offset));
                    submit(&mut layer, Op::Trim, extent, Payload::None).unwrap();
                    let (first, count) = extent.whole_pages(block as u32);
                    bytes[(first * block) as usize..][..(count * block) as usize].fill(0);
                }
                800..830 => drop(submit(&mut layer, Op::Flush, Extent::new(0, 0), Payload::None).unwrap()),
                830..980 => {
                    let mut found = vec![0xa5; len as usize];
                    submit(&mut layer, Op::Read, extent, Payload::Read(&mut found)).unwrap();
                    assert_eq!(found, bytes[range], "{context}");
                }
                980..990 => {
                    let at = layer.idle_from();
                    layer.idle(at, at + 1_000_000).unwrap();
                }
                kind => {
                    // The power is cut where everything that was submitted is done, or the device shut down.
                    let is_clean = kind >= 996;
                    if is_clean {
                        layer.shutdown(SimTime::ZERO).unwrap();
                    } else {
                        let write = BlockCommand::new(Op::Write, Extent::new(0, block), Hint(0));
                        let data = vec![last; block as usize];
                        layer.submit(0, write.into(), Payload::Write(&data), SimTime::ZERO).unwrap();
                        bytes[..block as usize].fill(last);
                        submit(&mut layer, Op::Flush, Extent::new(0, 0), Payload::None).unwrap();
                    }
                    let stats = Mapping::stats(&layer);
                    merged = [merged[0] + stats.merges_full, merged[1] + stats.merges_switch];
                    drop(layer);
                    (layer, handle) = open(handle.nand(), keys, &FaultPlan::default());
                    assert_eq!(layer.recovery().was_clean, is_clean, "{context}: {:?}", layer.recovery());
                    starts += 1;
                    check(&mut layer, &bytes, &context);
                }
            }
            if step % 100 == 0 {
                Subsystem::check_invariants(&layer);
                check(&mut layer, &bytes, &context);
            }
        }
        Subsystem::check_invariants(&layer);
        assert!(starts > 10, "{starts} starts with {keys:?}");
        assert!(merged[0] > 0, "{merged:?} merges with {keys:?}");
    }
}

#[test]
fn data_outlives_zones_that_fail_until_too_few_are_left() {
    let plan = FaultPlan { program: 0.004, erase: 0.006, ..FaultPlan::default() };
    let reopen = |nand, plan: &FaultPlan| open(nand, &[("block", "512"), ("reserved", "6")], plan);
    outlives_failing_zones(reopen, (&plan, &nand(GEOMETRY)), 6, (8_000, 2_000), 512);
}

/// A device without bytes: 12 conventional zones of 32 pages of 4 KiB, 40 with write pointers.
fn timed() -> Mixed {
    let geometry = Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 60,
        pages_per_block: 16,
        page_bytes: 4096,
        sector_bytes: 4096,
        oob_bytes: 16,
    };
    let capabilities = Capabilities { partial_transfer: true, ..Capabilities::default() };
    let options = NandOptions { capabilities, ..NandOptions::default() };
    let nand = Nand::new(geometry.checked().unwrap(), &options).unwrap();
    let setup = setup(&geometry, 2, 32, Some(6));
    let layout = ZoneLayout { conventional: 12, ..setup.layout };
    let setup = ZoneSetup { layout, conventional_blocks: 18, ..setup };
    let device: AnyDevice = Box::new(Timed::new(nand, Fifo::new(&geometry, &TIMING)));
    mixed(device, &setup).unwrap()
}

fn write(layer: &mut Layer, page: u64, at: SimTime) -> SimTime {
    let command = BlockCommand::new(Op::Write, Extent::new(page * 4096, 4096), Hint(0));
    let done = layer.submit(0, Command::Block(command), Payload::None, at).unwrap().done;
    layer.completion(done).unwrap()
}

#[test]
fn reclaim_waits_for_idle_time_or_for_few_free_zones_and_stops_at_the_upper_mark() {
    let mut layer = DmZoned::new(timed(), &params(&[])).unwrap();
    let gc = |layer: &Layer| FlashLayer::device(layer).counters().get(Cause::Gc).programs;
    // 11 conventional zones without metadata: seven chunks leave 36 % of them.
    let mut at = SimTime::ZERO;
    for chunk in 0..7 {
        at = write(&mut layer, chunk * 32 + 31, at);
    }
    assert_eq!((gc(&layer), layer.stats().gc_runs), (0, 0), "36 % are free");
    // 27 % are free: copies begin, and go on until 54 % are.
    at = write(&mut layer, 7 * 32 + 31, at);
    for _ in 0..2_000 {
        at = write(&mut layer, 7 * 32 + 31, at);
    }
    assert_eq!(layer.stats().gc_runs, 3, "from 27 % to 54 %");
    // A copy of a block at the end of its chunk writes all that is before it.
    assert_eq!(layer.stats().gc_moved_pages, 3);
    assert_eq!(gc(&layer), 3 * 32);
    // Nothing happens before ten seconds have passed without a request, and then everything.
    layer.idle(at, at + 9_000_000_000).unwrap();
    assert_eq!(layer.stats().gc_runs, 3);
    layer.idle(at, at + 11_000_000_000).unwrap();
    assert_eq!(layer.stats().gc_runs, 8);
    assert_eq!(Mapping::cost(&layer).usable_bytes, layer.namespaces()[0].capacity_bytes);
    Subsystem::check_invariants(&layer);
}

#[test]
fn no_more_zones_are_active_than_the_device_allows_and_buffers_are_appended_or_merged() {
    let mut layer = DmZoned::new(timed(), &params(&[("idle", "1ms")])).unwrap();
    let pages = Mapping::logical_pages(&layer);
    let mut rng = seeded(3);
    let mut at = SimTime::ZERO;
    layer.reset_counters(at);
    for step in 0..6 * pages {
        let page = if step % 3 == 0 { below(&mut rng, pages) } else { step % pages };
        at = write(&mut layer, page, at);
        if step % 500 == 0 {
            layer.idle(at, at + 20_000_000).unwrap();
            at += 20_000_000;
        }
        let active = layer.below().table().active();
        assert!(active <= 6, "{active} zones are active after write {step}");
    }
    Subsystem::check_invariants(&layer);
    let (stats, causes) = (layer.stats(), *FlashLayer::device(&layer).counters());
    assert!(stats.merges_full > 0 && stats.gc_runs > stats.merges_full, "{stats:?}");
    assert!(causes.get(Cause::Host).programs >= 6 * pages, "{causes:?}");
    assert!(causes.get(Cause::Gc).programs >= stats.gc_moved_pages, "{causes:?}");
    assert!(causes.get(Cause::Meta).programs > 0, "{causes:?}");
    let cost = Mapping::cost(&layer);
    assert_eq!(cost.map_table_bytes, pages / 32 * 8);
    assert!(cost.dram_bytes > 0 && cost.reserve_blocks == 52 - pages / 32, "{cost:?}");
    assert_eq!(layer.namespaces()[0].zones, None);
    assert_eq!(layer.inspect().host_counts(0).write_pages, 6 * pages);
}

#[test]
fn layers_refuse_zones_that_are_not_theirs() {
    let Err(error) = ZoneMap::new(timed(), &super::support::params(&[])) else {
        panic!("conventional zones")
    };
    assert!(error.to_string().contains("12 of its zones are conventional"), "{error}");
    let Err(error) = DmZoned::new(timed(), &params(&[("reserved", "52")])) else { panic!("no room") };
    assert!(error.to_string().contains("host.reserved = '52': expected fewer zones"), "{error}");
    let Err(error) = DmZoned::new(timed(), &params(&[("block", "6KiB")])) else { panic!("odd blocks") };
    assert!(error.to_string().contains("host.block"), "{error}");
    let geometry = Geometry { blocks_per_plane: 20, ..GEOMETRY };
    let zones = super::support::timed(geometry, &setup(&geometry, 2, 15, None), &TIMING);
    let Err(error) = DmZoned::new(zones, &params(&[])) else { panic!("no conventional zones") };
    assert!(error.to_string().contains("none of its zones is conventional"), "{error}");
}
