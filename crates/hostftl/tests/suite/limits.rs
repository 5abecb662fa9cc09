//! Limits of open and active zones, and what the layer says of itself.

use super::support::{TIMING, params, setup, timed};
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    BlockCommand, Cause, Command, Extent, FlashLayer, Geometry, Hint, Logs, Mapping, Op, SimTime, Subsystem,
};
use nandscape_hostftl::{HostFtlError, ZoneMap};

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 66,
    pages_per_block: 16,
    page_bytes: 4096,
    sector_bytes: 4096,
    oob_bytes: 0,
};
fn write(map: &mut dyn Subsystem, page: u64, hint: u16) {
    let command = BlockCommand::new(Op::Write, Extent::new(page * 4096, 4096), Hint(hint));
    map.submit(0, Command::Block(command), Payload::None, SimTime::ZERO).unwrap();
}

#[test]
fn never_more_zones_are_active_than_the_device_allows() {
    for (limit, frontier, streams, logs) in [
        (2, "shared", "0", 1),
        (2, "shared", "3", 1),
        (3, "separate", "3", 1),
        (5, "separate", "1", 2),
        (7, "separate", "3", 4),
        (9, "separate", "3", 4),
    ] {
        let keys = [("op", "0.5"), ("gc_frontier", frontier), ("streams", streams)];
        let mut map =
            ZoneMap::new(timed(GEOMETRY, &setup(&GEOMETRY, 2, 32, Some(limit)), &TIMING), &params(&keys))
                .unwrap();
        assert_eq!(map.logs(), logs, "{keys:?} with {limit}");
        let mut rng = seeded(limit.into());
        let pages = map.logical_pages();
        for step in 0..6 * pages {
            write(&mut map, below(&mut rng, pages), below(&mut rng, 5) as u16);
            let active = map.below().table().active();
            assert!(active <= limit, "{active} zones are active after write {step} of {keys:?}");
        }
        let counts = map.inspect().zones.map(|zones| zones.zone_counts(0)).unwrap();
        assert_eq!(counts.implicit_closes, 0, "the device closed zones for {keys:?} with {limit}");
        assert!(counts.resets > 0);
        Subsystem::check_invariants(&map);
    }
}

#[test]
fn traffic_of_the_layer_is_counted_by_cause_and_hosts_by_what_they_asked_for() {
    let zones = timed(GEOMETRY, &setup(&GEOMETRY, 2, 32, Some(8)), &TIMING);
    let mut map = ZoneMap::new(zones, &params(&[("op", "0.5"), ("streams", "1")])).unwrap();
    let pages = map.logical_pages();
    let mut rng = seeded(3);
    map.reset_counters(SimTime::ZERO);
    for _ in 0..5 * pages {
        write(&mut map, below(&mut rng, pages), 1);
    }
    let (stats, causes) = (map.stats(), *map.device().counters());
    assert_eq!(causes.get(Cause::Host).programs, 5 * pages);
    assert_eq!(causes.get(Cause::Gc).programs, stats.gc_moved_pages);
    assert!(causes.get(Cause::Gc).reads >= stats.gc_moved_pages, "{causes:?}");
    assert!(causes.get(Cause::Gc).erases > 0 && causes.get(Cause::Meta).programs > 0, "{causes:?}");
    assert_eq!(causes.get(Cause::Host).erases, 0, "{causes:?}");
    assert_eq!(stats.map_updates, 5 * pages + stats.gc_moved_pages);
    let hosts = map.inspect().host_counts(0);
    assert_eq!(
        (hosts.writes, hosts.write_pages, hosts.write_bytes),
        (5 * pages, 5 * pages, 5 * pages * 4096)
    );
    assert_eq!(map.log_status(1).host_bytes, 5 * pages * 4096);
    let cost = map.cost();
    assert_eq!(cost.map_table_bytes, pages * 4);
    assert!(cost.host_dram_bytes >= pages * 8, "map and owners: {cost:?}");
    let zones = map.below().inspect().layers.first().unwrap().cost();
    assert_eq!((cost.dram_bytes, zones.host_dram_bytes), (zones.dram_bytes, 0), "the table of the zones");
    assert_eq!(map.namespaces()[0].zones, None);
}

#[test]
fn only_a_zoned_namespace_with_room_is_taken() {
    let zones = timed(GEOMETRY, &setup(&GEOMETRY, 2, 32, None), &TIMING);
    let block = ZoneMap::new(zones, &params(&[("op", "0.5")])).unwrap();
    let Err(error) = ZoneMap::new(block, &params(&[("op", "0.5")])) else { panic!("no zones") };
    assert!(matches!(error, HostFtlError::Device { .. }), "{error}");
    assert!(error.to_string().contains("no causes and no order of commands"), "{error}");
    let zones = timed(GEOMETRY, &setup(&GEOMETRY, 2, 32, None), &TIMING);
    let Err(error) = ZoneMap::new(zones, &params(&[("op", "0.01")])) else { panic!("no room") };
    assert!(error.to_string().starts_with("host.op = '0.01': expected a capacity that needs"), "{error}");
}
