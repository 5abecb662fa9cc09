//! Random commands against a plain map, with restarts in between.

use super::support::{AsFtl, check, nand, outlives_failing_zones, params, setup, submit};
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockCommand, Clocked, Command, Extent, Geometry, Hint, Op, SimTime, Subsystem};
use nandscape_hostftl::ZoneMap;
use nandscape_hostftl::zone_map::Sabotage;
use nandscape_media::Nand;
use nandscape_media::faults::FaultPlan;
use nandscape_namespace::zones::{FlashRules, ZoneSetup};
use nandscape_testkit::crash::{Buffer, CrashDevice, Handle};

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 1,
    blocks_per_plane: 36,
    pages_per_block: 8,
    page_bytes: 2048,
    sector_bytes: 512,
    oob_bytes: 64,
};

fn zones() -> ZoneSetup {
    let rules = FlashRules { erases_at_reset: false, completes_stripe: true, pads: false, is_volatile: true };
    ZoneSetup { rules, spare_blocks: 4, ..setup(&GEOMETRY, 2, 16, Some(5)) }
}

type Map = ZoneMap<super::support::Crashing>;

fn open(nand: Nand, keys: &[(&str, &str)], plan: &FaultPlan) -> (Map, Handle) {
    let (device, handle) = CrashDevice::new(nand, Buffer::None, plan, false);
    let map = AsFtl::open(device, &zones(), &params(keys), Sabotage::None);
    (map.unwrap_or_else(|error| panic!("{error}")).0, handle)
}

#[test]
fn what_was_written_is_read_over_restarts_whatever_the_keys() {
    let all: [&[(&str, &str)]; 5] = [
        &[("op", "0.4")],
        &[("op", "0.5"), ("unit", "512"), ("gc_frontier", "shared"), ("streams", "3")],
        &[("op", "0.6"), ("unit", "1024"), ("victim", "fifo"), ("gc_step", "1"), ("background_gc", "true")],
        &[("capacity", "1MiB"), ("victim", "cost-benefit"), ("gc_low", "1"), ("streams", "9")],
        &[("op", "0.7"), ("victim", "d-choices"), ("d", "3"), ("gc_low", "4")],
    ];
    for (seed, keys) in (1..).zip(all) {
        let mut rng = seeded(seed);
        let (mut map, mut handle) = open(nand(GEOMETRY), keys, &FaultPlan::default());
        let capacity = map.namespaces()[0].capacity_bytes;
        let mut bytes = vec![0u8; capacity as usize];
        let mut last = 0u8;
        let mut starts = 0;
        for step in 0..6_000 {
            let context = format!("{keys:?}, step {step}");
            let align = [1, 512, 2048][below(&mut rng, 3) as usize];
            let offset = below(&mut rng, capacity) / align * align;
            let len = (below(&mut rng, 8 * 2048) / align * align + align).min(capacity - offset);
            let extent = Extent::new(offset, len);
            let range = offset as usize..(offset + len) as usize;
            last = last % 250 + 1;
            match below(&mut rng, 1_000) {
                0..700 => {
                    let data = vec![last; len as usize];
                    let mut command = BlockCommand::new(Op::Write, extent, Hint(below(&mut rng, 5) as u16));
                    command.is_durable = below(&mut rng, 20) == 0;
                    map.submit(0, Command::from(command), Payload::Write(&data), SimTime::ZERO).unwrap();
                    bytes[range].fill(last);
                }
                700..760 => {
                    submit(&mut map, Op::WriteZeroes, extent, Payload::None).unwrap();
                    bytes[range].fill(0);
                }
                760..820 => {
                    submit(&mut map, Op::Trim, extent, Payload::None).unwrap();
                    let unit = nandscape_core::Mapping::page_bytes(&map);
                    let (first, count) = extent.whole_pages(unit);
                    let first = first as usize * unit as usize;
                    bytes[first..first + count as usize * unit as usize].fill(0);
                }
                820..850 => drop(submit(&mut map, Op::Flush, Extent::new(0, 0), Payload::None).unwrap()),
                850..990 => {
                    let mut found = vec![0xa5; len as usize];
                    submit(&mut map, Op::Read, extent, Payload::Read(&mut found)).unwrap();
                    assert_eq!(found, bytes[range], "{context}");
                }
                990..995 => {
                    let at = map.idle_from();
                    map.idle(at, at + 10_000).unwrap();
                }
                kind => {
                    // The power is cut where everything that was submitted is done, or the device shut down.
                    let is_clean = kind >= 998;
                    if is_clean {
                        map.shutdown(SimTime::ZERO).unwrap();
                    } else {
                        submit(&mut map, Op::Flush, Extent::new(0, 0), Payload::None).unwrap();
                    }
                    drop(map);
                    (map, handle) = open(handle.nand(), keys, &FaultPlan::default());
                    assert_eq!(map.recovery().was_clean, is_clean, "{context}: {:?}", map.recovery());
                    starts += 1;
                    check(&mut map, &bytes, &context);
                }
            }
            if step % 100 == 0 {
                map.check_invariants();
                check(&mut map, &bytes, &context);
            }
        }
        map.check_invariants();
        assert!(starts > 10, "{starts} starts with {keys:?}");
    }
}

#[test]
fn data_outlives_zones_that_fail_until_too_few_are_left() {
    let plan = FaultPlan { program: 0.004, erase: 0.004, ..FaultPlan::default() };
    let reopen = |nand, plan: &FaultPlan| open(nand, &[("op", "1.5"), ("streams", "1")], plan);
    outlives_failing_zones(reopen, (&plan, &nand(GEOMETRY)), 8, (12_000, 3_000), 2048);
}
