//! Directives over a page map: what stands in the erase blocks, and what the statistics say.

use nandscape_core::command::Payload;
use nandscape_core::{
    BlockCommand, Capabilities, Extent, FlashState, Ftl, Geometry, Hint, Lpn, NamespaceInfo, Op, Params, Ppn,
    SimTime, Subsystem,
};
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed, Timing};
use nandscape_namespace::NvmSubsystem;
use nandscape_namespace::directives::fdp::{Fdp, FdpConfiguration, Isolation, PidFormat, Tail};
use nandscape_namespace::directives::streams::StreamsConfig;
use nandscape_namespace::directives::{
    ControllerId, DirectedSubsystem, DirectiveCommand, Directives, DirectivesConfig, HintMeaning, HostId,
    IoManagement, STREAMS, WriteDirective,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const PAGE: u32 = 4096;

fn geometry() -> Geometry {
    Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 40,
        pages_per_block: 16,
        page_bytes: PAGE,
        sector_bytes: PAGE,
        oob_bytes: 16,
    }
    .checked()
    .unwrap()
}

pub fn page_map(keys: &[(&str, &str)]) -> Box<dyn Ftl + Send> {
    let options = NandOptions {
        endurance: None,
        capabilities: Capabilities { partial_transfer: false, ..Capabilities::default() },
        ..NandOptions::default()
    };
    let nand = Nand::new(geometry(), &options).unwrap();
    let timing = Timing {
        read_ns: 60_000,
        program_ns: 700_000,
        erase_ns: 3_000_000,
        channel_bytes_per_s: 800_000_000,
        command_ns: 0,
    };
    let device = Timed::new(nand, Fifo::new(&geometry(), &timing));
    let entry = nandscape_ftl::find("page-map").unwrap();
    let typed = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    (entry.build)(Box::new(device), &Params::check(entry.info, "ftl.", &typed).unwrap()).unwrap()
}

fn directives(streams: u16) -> (Directives, ControllerId) {
    let config = StreamsConfig { msl: streams, sws: 1, sgs: 16, shared_ids: false, needs_host_id: false };
    let mut directives = Directives::new(DirectivesConfig {
        namespaces: 2,
        hosts: 1,
        block_bytes: PAGE,
        sets: vec![0],
        streams: Some(config),
        groups: vec![None],
    });
    let controller = directives.connect(HostId(1)).unwrap();
    for nsid in 1..=2 {
        assert_eq!(directives.create_namespace(0, &[]), Ok(nsid));
        directives.send(controller, &DirectiveCommand::enable(nsid, STREAMS, true)).unwrap();
    }
    (directives, controller)
}

#[derive(Clone, Debug)]
enum Action {
    /// Namespace, stream id, page, pages.
    Write(u32, u16, u32, u32),
    Release(u32, u16),
    Allocate(u32, u16),
    GiveBack(u32),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        60 => (0u32..2, 0u16..6, any::<u32>(), 1u32..24).prop_map(|(n, i, p, c)| Action::Write(n, i, p, c)),
        2 => (0u32..2, 1u16..6).prop_map(|(n, i)| Action::Release(n, i)),
        1 => (0u32..2, 1u16..3).prop_map(|(n, c)| Action::Allocate(n, c)),
        1 => (0u32..2).prop_map(Action::GiveBack),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A stream ends when its id is released, by whom ever: what is written to the id afterwards is another
    /// stream.
    #[test]
    fn no_erase_block_holds_host_pages_of_two_streams(
        actions in prop::collection::vec(action(), 300..600),
        victim in prop::sample::select(vec!["greedy", "fifo", "random"]),
        isolation in prop::sample::select(vec!["initially", "persistently"]),
        granularity in prop::sample::select(vec!["64KiB", "256KiB"]),
    ) {
        let mut ftl = page_map(&[
            ("op", "0.6"), ("streams", "3"), ("victim", victim), ("gc_isolation", isolation),
            ("stream_granularity", granularity), ("frontiers", "1"),
        ]);
        let (mut directives, controller) = directives(3);
        let pages = ftl.logical_pages() as u32;
        let half = pages / 2;
        // Of every logical page: where the host wrote it, and the stream.
        let mut places: BTreeMap<u32, (Ppn, (u32, u16, u64))> = BTreeMap::new();
        let mut generation = 0;
        let mut open: BTreeMap<(u32, u16), u64> = BTreeMap::new();
        let block = |page: Ppn| page.0 / geometry().pages_per_block;
        for action in actions {
            match action {
                Action::Write(namespace, id, page, count) => {
                    let first = namespace * half + page % half;
                    let count = count.min((namespace + 1) * half - first);
                    let bytes = u64::from(count) * u64::from(PAGE);
                    let directive = WriteDirective::stream(id);
                    let route = directives.route(controller, namespace, directive, bytes, SimTime(0));
                    if route.renew {
                        ftl.renew_log(route.log, SimTime(0)).unwrap();
                    }
                    // Streams that the controller released have ended.
                    let streams = directives.streams().unwrap();
                    open.retain(|(of, id), _| streams.open_ids(Some((*of, 0))).contains(id));
                    let stream = if route.log == 0 { (2, 0, 0) } else {
                        let next = generation + 1;
                        let number = *open.entry((namespace, id)).or_insert(next);
                        generation = generation.max(number);
                        (namespace, id, number)
                    };
                    let extent = Extent::new(u64::from(first) * u64::from(PAGE), bytes);
                    ftl.write(extent, None, Hint(route.log), SimTime(0)).unwrap();
                    for lpn in first..first + count {
                        places.insert(lpn, (ftl.lookup(Lpn(lpn)).unwrap(), stream));
                    }
                }
                Action::Release(namespace, id) => {
                    directives.send(controller, &DirectiveCommand::release_id(namespace + 1, id)).unwrap();
                }
                Action::Allocate(namespace, count) => {
                    let allocate = DirectiveCommand::allocate(namespace + 1, count);
                    let _ = directives.receive(controller, &allocate, &mut []);
                }
                Action::GiveBack(namespace) => {
                    directives.send(controller, &DirectiveCommand::release_resources(namespace + 1)).unwrap();
                }
            }
            let streams = directives.streams().unwrap();
            open.retain(|(of, id), _| streams.open_ids(Some((*of, 0))).contains(id));
        }
        directives.check_invariants();
        ftl.check_invariants();
        let mut owners: BTreeMap<u32, (u32, u16, u64)> = BTreeMap::new();
        for (lpn, (page, stream)) in places {
            // What collection has moved is no longer as the host wrote it.
            if ftl.lookup(Lpn(lpn)) == Some(page) {
                let owner = *owners.entry(block(page)).or_insert(stream);
                prop_assert_eq!(owner, stream, "block {} of page {}", block(page), lpn);
            }
        }
        prop_assert!(ftl.stats().gc_runs > 0, "the load is long enough for collections");
    }
}

/// Four sequential writers at rates 10 : 3 : 2 : 1, each over an equal part of the namespace, with hints 1 to
/// 4.
fn four_writers(device: &mut dyn Subsystem, rounds: u64) {
    const CHUNK: u64 = PAGE as u64;
    let part = device.namespaces()[0].capacity_bytes / 4 / CHUNK;
    let mut at = [0u64; 4];
    for _ in 0..rounds {
        for (writer, rate) in [10, 3, 2, 1].into_iter().enumerate() {
            for _ in 0..rate {
                let offset = (writer as u64 * part + at[writer] % part) * CHUNK;
                at[writer] += 1;
                let command =
                    BlockCommand::new(Op::Write, Extent::new(offset, CHUNK), Hint(writer as u16 + 1));
                device.submit(0, command.into(), Payload::None, SimTime(0)).unwrap();
            }
        }
    }
}

fn single(ftl: Box<dyn Ftl + Send>) -> Box<dyn Subsystem + Send> {
    Box::new(NvmSubsystem::plain(ftl))
}

pub fn with_data_placement(ftl: Box<dyn Ftl + Send>, tail: Tail) -> DirectedSubsystem {
    let logs = ftl.logs();
    let configuration = FdpConfiguration {
        format: PidFormat::new(0).unwrap(),
        groups: 1,
        handles: vec![Isolation::Persistently; usize::from(logs)],
        placement_handles: logs,
        namespaces: 1,
        unit_bytes: ftl.log_status(0).piece_bytes.max(u64::from(PAGE)),
        volatile_cache: false,
    };
    let mut directives = Directives::new(DirectivesConfig {
        namespaces: 1,
        hosts: 1,
        block_bytes: PAGE,
        sets: vec![0],
        streams: None,
        groups: vec![Some(Fdp::new(vec![configuration], tail))],
    });
    let controller = directives.connect(HostId(1)).unwrap();
    let logs_of_nothing = crate::directives::bench::FakeLogs::default();
    directives.set_fdp_feature(1, 1, &logs_of_nothing).unwrap();
    directives.create_namespace(0, &(0..logs).collect::<Vec<_>>()).unwrap();
    DirectedSubsystem::new(single(ftl), directives, controller, HintMeaning::Placement)
}

fn waf(device: &dyn Subsystem) -> f64 {
    let pages = device.inspect().host_counts(0).write_pages;
    device.inspect().device(0).tally().totals.programs as f64 / pages as f64
}

#[test]
fn dlwa_is_what_the_medium_counted() {
    let mut device = with_data_placement(page_map(&[("op", "0.2"), ("streams", "3")]), Tail::Unwritten);
    four_writers(&mut device, 800);
    device.reset_counters(SimTime(0));
    four_writers(&mut device, 3200);
    let report = device.inspect().placement().unwrap();
    let fdp = report.fdp.unwrap();
    let host = device.inspect().host_counts(0);
    let totals = device.inspect().device(0).tally().totals;
    let stats = device.inspect().layer(0).stats();
    assert_eq!(fdp.hbmw, host.write_bytes);
    assert_eq!(fdp.mbmw, totals.programs * u64::from(PAGE));
    assert_eq!(fdp.mbmw, fdp.hbmw + stats.gc_moved_pages * u64::from(PAGE), "host and GC are all there is");
    assert_eq!(fdp.mbe, totals.erases * u64::from(PAGE * geometry().pages_per_block));
    assert!((fdp.dlwa.unwrap() - waf(&device)).abs() < 1e-12);
    let by_handle: u64 = report.streams.iter().map(|stream| stream.host_bytes).sum();
    assert_eq!(by_handle, fdp.hbmw);
    assert_eq!(report.streams.iter().map(|stream| stream.id).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn four_sequential_writers_amplify_nothing_with_a_stream_each() {
    let run = |streams: &str, meaning: HintMeaning| {
        let ftl = page_map(&[("op", "0.25"), ("streams", streams), ("frontiers", "1")]);
        let mut config = DirectivesConfig {
            namespaces: 1,
            hosts: 1,
            block_bytes: PAGE,
            sets: vec![0],
            streams: None,
            groups: vec![None],
        };
        if meaning == HintMeaning::Stream {
            let msl = ftl.logs() - 1;
            config.streams =
                Some(StreamsConfig { msl, sws: 1, sgs: 16, shared_ids: false, needs_host_id: false });
        }
        let mut directives = Directives::new(config);
        let controller = directives.connect(HostId(1)).unwrap();
        directives.create_namespace(0, &[]).unwrap();
        let _ = directives.send(controller, &DirectiveCommand::enable(1, STREAMS, true));
        let mut device = DirectedSubsystem::new(single(ftl), directives, controller, meaning);
        four_writers(&mut device, 800);
        device.reset_counters(SimTime(0));
        four_writers(&mut device, 3200);
        device.check_invariants();
        (waf(&device), device.inspect().placement())
    };
    let (without, none) = run("0", HintMeaning::Nothing);
    let (with, report) = run("4", HintMeaning::Stream);
    assert!(none.is_none(), "a device without directives has nothing to report");
    let report = report.unwrap();
    assert!(with < 1.05 && without > 1.1, "WAF {without} without, {with} with");
    let bytes: Vec<u64> = report.streams.iter().map(|stream| stream.host_bytes).collect();
    let unit = bytes[3];
    assert_eq!(bytes, [10 * unit, 3 * unit, 2 * unit, unit]);
    assert_eq!(
        (report.opened, report.evicted, report.unplaced_bytes),
        (0, 0, 0),
        "opened before the counting"
    );
    // The same without directives, but on the device that could tell logs apart: forced ids change nothing.
    let (forced, _) = run("4", HintMeaning::Nothing);
    assert!((forced - without).abs() < 0.05, "WAF {forced} with forced ids, {without} without");
}

#[test]
fn an_update_leaves_the_rest_of_a_reclaim_unit() {
    for tail in [Tail::Unwritten, Tail::AsMedia] {
        let mut device = with_data_placement(
            page_map(&[
                ("op", "0.3"),
                ("streams", "3"),
                ("stream_granularity", "256KiB"),
                ("frontiers", "1"),
            ]),
            tail,
        );
        let write = |device: &mut DirectedSubsystem, pages: u64| {
            let extent = Extent::new(0, pages * u64::from(PAGE));
            device
                .submit(0, BlockCommand::new(Op::Write, extent, Hint(2)).into(), Payload::None, SimTime(0))
                .unwrap();
        };
        let room = |device: &mut DirectedSubsystem| {
            device.command(SimTime(0), |directives, logs| {
                let mut buffer = [0; 16 + 4 * 32];
                let command = IoManagement::status(1, buffer.len() as u32);
                directives.io_management_receive(&command, &mut buffer, logs).unwrap();
                buffer[16..]
                    .chunks(32)
                    .map(|unit| u64::from_le_bytes(unit[8..16].try_into().unwrap()))
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(room(&mut device), [64, 64, 64, 64], "whole units");
        write(&mut device, 10);
        assert_eq!(room(&mut device), [64, 54, 64, 64]);
        let update = |device: &mut DirectedSubsystem| {
            device.command(SimTime(0), |directives, logs| {
                directives.set_fdp_events_feature(1, 1 | 1 << 16, 1, &[0]).unwrap();
                directives
                    .io_management_send(&IoManagement::update(1, 1), &[1, 0], logs, SimTime(0))
                    .unwrap();
            });
        };
        update(&mut device);
        assert_eq!(room(&mut device), [64, 64, 64, 64], "a fresh unit");
        update(&mut device);
        let report = device.inspect().placement().unwrap();
        let fdp = report.fdp.unwrap();
        let tail_bytes = 54 * u64::from(PAGE);
        assert_eq!(
            (report.left_bytes, fdp.host_events),
            (tail_bytes, 1),
            "a unit that was not begun is not left"
        );
        let extra = if tail == Tail::AsMedia { tail_bytes } else { 0 };
        assert_eq!(fdp.mbmw, 10 * u64::from(PAGE) + extra, "{tail:?}");
        device.check_invariants();
    }
}

#[test]
fn moved_data_is_an_event_where_somebody_asked_for_it() {
    let mut device = with_data_placement(page_map(&[("op", "0.2"), ("streams", "1")]), Tail::Unwritten);
    device.command(SimTime(0), |directives, _| {
        directives.set_fdp_events_feature(1, 1 << 16, 1, &[0x80]).unwrap();
    });
    four_writers(&mut device, 3200);
    let report = device.inspect().placement().unwrap();
    let fdp = report.fdp.unwrap();
    assert!(fdp.controller_events > 0 && fdp.host_events == 0, "{fdp:?}");
    let moved: u64 = device.command(SimTime(0), |directives, logs| {
        let page = directives.fdp_log_page(0x23, 1, false, logs).unwrap();
        page[64..].chunks(64).map(|event| u64::from(u16::from_le_bytes([event[18], event[19]]))).sum()
    });
    assert!(moved > 0, "blocks moved by the events that are kept");
    let info: &NamespaceInfo = &device.namespaces()[0];
    assert_eq!(info.endurance_group, 0);
    let _: &dyn FlashState = device.inspect().device(0);
}
