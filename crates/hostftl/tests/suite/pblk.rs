//! `pblk` over chunks: random commands against a plain map over restarts, failing media, and the power cut at
//! every operation.

use super::support::{AsFtl, TIMING, is_read_only, nand, params_of, submit};
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    BlockCommand, Capabilities, Cause, Clocked, Command, Extent, FlashError, FlashLayer, FtlError, Geometry,
    Hint, Mapping, NamespaceError, Oob, Op, SimTime, Subsystem,
};
use nandscape_hostftl::pblk::{self, Sabotage};
use nandscape_hostftl::{HostFtlError, Pblk};
use nandscape_media::faults::FaultPlan;
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed};
use nandscape_namespace::vector::{VectorNamespace, VectorSetup};
use nandscape_namespace::zones::ImpliedOob;
use nandscape_testkit::crash::{
    Buffer, CrashDevice, Effort, Handle, Setup, campaign, finds, points_from_environment,
};

/// Cuts that all tests of this file try together.
const POINTS: u64 = 25_000;

const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 16,
    pages_per_block: 12,
    page_bytes: 512,
    sector_bytes: 512,
    oob_bytes: 16,
};

type Keys = &'static [(&'static str, &'static str)];

type Layer = Pblk<VectorNamespace<CrashDevice, Oob>>;

fn host_setup() -> VectorSetup {
    VectorSetup { host_oob: true, ..VectorSetup::default() }
}

fn layer(
    device: CrashDevice,
    setup: &VectorSetup,
    keys: &[(&str, &str)],
    sabotage: Sabotage,
) -> Result<Layer, String> {
    let vectored = VectorNamespace::new(device, setup).map_err(|error| error.to_string())?;
    let params = params_of(&pblk::INFO, keys);
    Pblk::with_sabotage(vectored, &params, sabotage).map_err(|error| error.to_string())
}

fn open(nand: Nand, setup: &VectorSetup, keys: &[(&str, &str)], plan: &FaultPlan) -> (Layer, Handle) {
    let (device, handle) = CrashDevice::new(nand, Buffer::None, plan, false);
    (layer(device, setup, keys, Sabotage::None).unwrap_or_else(|error| panic!("{error}")), handle)
}

/// Every byte as it must be.
fn check(map: &mut Layer, bytes: &[u8], context: &str) {
    let mut found = vec![0xa5; bytes.len()];
    submit(map, Op::Read, Extent::new(0, bytes.len() as u64), Payload::Read(&mut found)).unwrap();
    let wrong = found.iter().zip(bytes).position(|(found, expected)| found != expected);
    assert_eq!(wrong.map(|at| (at, found[at], bytes[at])), None, "byte, found, expected; {context}");
    Subsystem::check_invariants(map);
}

const WIDE: Geometry =
    Geometry { channels: 2, dies_per_channel: 2, planes_per_die: 2, page_bytes: 2048, ..GEOMETRY };

#[test]
fn what_was_written_is_read_over_restarts_whatever_the_keys() {
    let spans = VectorSetup { spans_planes: true, resets_open: true, ..host_setup() };
    let cached = VectorSetup { cached_units: Some(2), resets_free: true, ..host_setup() };
    let all: [(Geometry, VectorSetup, Keys); 5] = [
        (GEOMETRY, host_setup(), &[("op", "0.9")]),
        (GEOMETRY, cached.clone(), &[("op", "1.2"), ("victim", "fifo"), ("gc_step", "1")]),
        (WIDE, host_setup(), &[("op", "2"), ("background_gc", "true"), ("victim", "cost-benefit")]),
        (WIDE, spans, &[("capacity", "400KiB"), ("gc_low", "1"), ("ring", "100")]),
        (WIDE, cached, &[("op", "3"), ("victim", "d-choices"), ("d", "3")]),
    ];
    for (seed, (geometry, setup, keys)) in (1..).zip(all) {
        let mut rng = seeded(seed);
        let (mut map, mut handle) = open(nand(geometry), &setup, keys, &FaultPlan::default());
        let capacity = map.namespaces()[0].capacity_bytes;
        let page = u64::from(geometry.page_bytes);
        let mut bytes = vec![0u8; capacity as usize];
        let (mut last, mut starts) = (0u8, 0);
        for step in 0..5_000 {
            let context = format!("{keys:?}, step {step}");
            let align = [1, 512, page][below(&mut rng, 3) as usize];
            let offset = below(&mut rng, capacity) / align * align;
            let len = (below(&mut rng, 8 * page) / align * align + align).min(capacity - offset);
            let extent = Extent::new(offset, len);
            let range = offset as usize..(offset + len) as usize;
            last = last % 250 + 1;
            match below(&mut rng, 1_000) {
                0..700 => {
                    let data = vec![last; len as usize];
                    let mut command = BlockCommand::new(Op::Write, extent, Hint(0));
                    command.is_durable = below(&mut rng, 20) == 0;
                    map.submit(0, Command::from(command), Payload::Write(&data), SimTime::ZERO)
                        .unwrap_or_else(|error| panic!("{error}: {context}"));
                    bytes[range].fill(last);
                }
                700..760 => {
                    submit(&mut map, Op::WriteZeroes, extent, Payload::None).unwrap();
                    bytes[range].fill(0);
                }
                760..820 => {
                    submit(&mut map, Op::Trim, extent, Payload::None).unwrap();
                    let (first, count) = extent.whole_pages(geometry.page_bytes);
                    let first = first as usize * page as usize;
                    bytes[first..first + count as usize * page as usize].fill(0);
                }
                820..850 => drop(submit(&mut map, Op::Flush, Extent::new(0, 0), Payload::None).unwrap()),
                850..990 => {
                    let mut found = vec![0xa5; len as usize];
                    submit(&mut map, Op::Read, extent, Payload::Read(&mut found)).unwrap();
                    assert_eq!(found, bytes[range], "{context}");
                }
                990..995 => {
                    let at = map.idle_from();
                    map.idle(at, at + [10_000, 2_000_000_000][below(&mut rng, 2) as usize]).unwrap();
                }
                kind => {
                    if kind >= 998 {
                        map.shutdown(SimTime::ZERO).unwrap();
                    } else {
                        submit(&mut map, Op::Flush, Extent::new(0, 0), Payload::None).unwrap();
                    }
                    drop(map);
                    (map, handle) = open(handle.nand(), &setup, keys, &FaultPlan::default());
                    starts += 1;
                    check(&mut map, &bytes, &context);
                }
            }
            if step % 100 == 0 {
                check(&mut map, &bytes, &context);
            }
        }
        assert!(starts > 10, "{starts} starts with {keys:?}");
        assert!(map.stats().gc_runs > 0, "{keys:?}: {:?}", map.stats());
    }
}

#[test]
fn data_outlives_chunks_that_fail_until_too_few_are_left() {
    let mut ended = 0;
    for seed in 0..6 {
        let plan = FaultPlan { program: 0.004, erase: 0.01, seed, ..FaultPlan::default() };
        let keys = [("op", "2")];
        let (mut map, mut handle) = open(nand(WIDE), &host_setup(), &keys, &plan);
        let mut rng = seeded(seed);
        let capacity = map.namespaces()[0].capacity_bytes;
        let mut bytes = vec![0u8; capacity as usize];
        for step in 0..20_000 {
            let context = format!("seed {seed}, step {step}");
            let page = below(&mut rng, capacity / 2048);
            let range = page as usize * 2048..(page as usize + 1) * 2048;
            let data = vec![step as u8 | 1; 2048];
            match submit(&mut map, Op::Write, Extent::new(page * 2048, 2048), Payload::Write(&data)) {
                Ok(_) => bytes[range].copy_from_slice(&data),
                Err(error) => {
                    assert!(is_read_only(&error), "{error}: {context}");
                    // The page may have reached the ring before.
                    let mut found = vec![0; 2048];
                    let extent = Extent::new(page * 2048, 2048);
                    submit(&mut map, Op::Read, extent, Payload::Read(&mut found)).unwrap();
                    assert!(found == data || found == bytes[range.clone()], "{context}");
                    bytes[range].copy_from_slice(&found);
                    ended += 1;
                    break;
                }
            }
            if step % 500 == 499 {
                check(&mut map, &bytes, &context);
            }
            if step % 3_000 == 2_999 {
                submit(&mut map, Op::Flush, Extent::new(0, 0), Payload::None).unwrap();
                drop(map);
                let plan = FaultPlan { seed: seed ^ (step << 8), ..plan.clone() };
                (map, handle) = open(handle.nand(), &host_setup(), &keys, &plan);
                check(&mut map, &bytes, &context);
            }
        }
        check(&mut map, &bytes, "at the end");
    }
    assert!(ended > 0, "no device ended");
}

#[test]
fn a_read_that_fails_names_the_page_that_cannot_be_read() {
    let setup = host_setup();
    let mut failed = 0;
    for seed in 0..6 {
        let plan = FaultPlan { unreadable: 0.05, seed, ..FaultPlan::default() };
        let (mut map, _handle) = open(nand(WIDE), &setup, &[("op", "2"), ("ring", "64")], &plan);
        // So many that the first are no longer in the ring.
        let data = vec![7; 300 * 2048];
        submit(&mut map, Op::Write, Extent::new(0, data.len() as u64), Payload::Write(&data)).unwrap();
        let mut read = |page: u64, pages: u64| {
            let mut found = vec![0; pages as usize * 2048];
            let extent = Extent::new(page * 2048, pages * 2048);
            let error = submit(&mut map, Op::Read, extent, Payload::Read(&mut found)).err()?;
            match error {
                NamespaceError::Ftl(FtlError::Flash(FlashError::Uncorrectable { page })) => Some(page.0),
                error => panic!("{error}"),
            }
        };
        let singly: Vec<u32> = (0..40).filter_map(|page| read(page, 1)).collect();
        assert_eq!(read(0, 40), singly.first().copied(), "seed {seed}: {singly:?}");
        failed += singly.len();
    }
    assert!(failed > 0, "every page could be read");
}

#[test]
fn writes_are_answered_from_the_ring_until_it_is_full_and_counted_by_cause() {
    let geometry = Geometry { oob_bytes: 64, ..WIDE };
    let nand = Nand::<ImpliedOob>::with_oob(
        geometry,
        &NandOptions { capabilities: Capabilities::default(), ..NandOptions::default() },
    );
    let device = Timed::new(nand.unwrap(), Fifo::new(&geometry, &TIMING));
    let vectored = VectorNamespace::<_, ImpliedOob>::new(device, &host_setup()).unwrap();
    let mut map = Pblk::new(vectored, &params_of(&pblk::INFO, &[("op", "1"), ("ring", "64")])).unwrap();
    let write = |map: &mut dyn Subsystem, page: u64| {
        let command = BlockCommand::new(Op::Write, Extent::new(page * 2048, 2048), Hint(0));
        let done = map.submit(0, Command::Block(command), Payload::None, SimTime::ZERO).unwrap().done;
        map.completion(done).unwrap()
    };
    for page in 0..64 {
        assert_eq!(write(&mut map, page), SimTime::ZERO, "page {page} has room in the ring");
    }
    assert!(write(&mut map, 64) > SimTime::ZERO, "a page that waits for another one to be written");
    let pages = map.logical_pages();
    map.reset_counters(SimTime::ZERO);
    let mut rng = seeded(7);
    for _ in 0..6 * pages {
        write(&mut map, below(&mut rng, pages));
    }
    let (stats, causes) = (map.stats(), *map.device().counters());
    let (host, gc, meta) = (causes.get(Cause::Host), causes.get(Cause::Gc), causes.get(Cause::Meta));
    // A turn of a chunk counts for the host where a page of a user is in it; what waits in the ring is not
    // written yet.
    let all = host.programs + gc.programs;
    let expected = 6 * pages + stats.gc_moved_pages;
    assert!(all.abs_diff(expected) < 64, "{all} pages for {expected}: {causes:?}");
    assert!(gc.reads > 0 && gc.erases > 0 && meta.programs > 0 && host.erases == 0, "{causes:?}");
    let hosts = map.inspect().host_counts(0);
    assert_eq!((hosts.writes, hosts.write_pages), (6 * pages, 6 * pages));
    assert_eq!(map.cost().map_table_bytes, pages * 4);
    Subsystem::check_invariants(&map);
}

#[test]
fn devices_and_keys_that_do_not_do_are_refused_by_name() {
    let build = |setup: &VectorSetup, keys: &[(&str, &str)]| {
        let (device, _) = CrashDevice::new(nand(GEOMETRY), Buffer::None, &FaultPlan::default(), false);
        layer(device, setup, keys, Sabotage::None).err().expect("refused")
    };
    assert!(
        build(&VectorSetup::default(), &[("op", "1")]).contains("nothing of the host's beside its pages")
    );
    assert!(build(&host_setup(), &[("op", "0.01")]).starts_with("host.op = '0.01': expected a capacity"));
    let cached = VectorSetup { cached_units: Some(4), ..host_setup() };
    assert!(
        build(&cached, &[("op", "2"), ("ring", "8")]).contains("host.ring = '8': expected more than the")
    );
    // A layer over lines of another one says what differs.
    let (mut map, handle) = open(nand(GEOMETRY), &host_setup(), &[("op", "1")], &FaultPlan::default());
    submit(&mut map, Op::Write, Extent::new(0, 512), Payload::Write(&[1; 512])).unwrap();
    submit(&mut map, Op::Flush, Extent::new(0, 0), Payload::None).unwrap();
    let (device, _) = CrashDevice::new(handle.nand(), Buffer::None, &FaultPlan::default(), false);
    let vectored = VectorNamespace::new(device, &host_setup()).unwrap();
    let Err(error) = Pblk::new(vectored, &params_of(&pblk::INFO, &[("op", "2")])) else { panic!("taken") };
    assert!(matches!(error, HostFtlError::Start { .. }), "{error}");
    assert!(error.to_string().contains("logical pages: found 192, expected 128 by its keys"), "{error}");
}

fn case(name: &str, setup: VectorSetup, keys: &'static [(&str, &str)], sabotage: Sabotage) -> Setup<'static> {
    let open = move |device| Ok(Box::new(AsFtl(layer(device, &setup, keys, sabotage)?)) as _);
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

fn cases(sabotage: Sabotage) -> [Setup<'static>; 3] {
    let cached = VectorSetup { cached_units: Some(1), ..host_setup() };
    let eager = VectorSetup { resets_open: true, resets_free: true, ..host_setup() };
    [
        case("pblk", host_setup(), &[("op", "1.2")], sabotage),
        case("pblk, eager", eager, &[("op", "0.9"), ("victim", "fifo"), ("gc_step", "3")], sabotage),
        case("pblk, cached", cached, &[("op", "1.2"), ("background_gc", "true")], sabotage),
    ]
}

#[test]
fn a_block_device_on_chunks_survives_every_cut() {
    let points = points_from_environment(POINTS, 60);
    let command = "cargo test -p nandscape-hostftl --test suite pblk::a_block_device_on_chunks_survives_every_cut -- --exact --nocapture";
    let tally = campaign("pblk", &cases(Sabotage::None), points, command);
    let is_limited = std::env::var("CRASH_CASE").is_ok();
    assert!(is_limited || (tally.erases > 0 && tally.rows > 0), "{tally}");
}

#[test]
fn a_block_device_on_chunks_survives_cuts_while_blocks_fail() {
    let points = points_from_environment(POINTS, 30);
    let command = "cargo test -p nandscape-hostftl --test suite pblk::a_block_device_on_chunks_survives_cuts_while_blocks_fail -- --exact --nocapture";
    let plan = FaultPlan { program: 0.01, erase: 0.03, ..FaultPlan::default() };
    let failing = cases(Sabotage::None).map(|case| Setup { plan: plan.clone(), ..case });
    campaign("pblk failing", &failing, points, command);
}

#[test]
fn every_sabotage_of_pblk_is_found() {
    let few = Effort { scattered: 4, deep_every: 0, again_every: 40, row_every: 0, ..Effort::default() };
    // A line is erased and written again in longer runs alone.
    let long = Effort { steps: 160, again_every: 0, ..few };
    let is_found = |sabotage| {
        [few, long].into_iter().any(|effort| {
            cases(sabotage).into_iter().any(|case| finds(&Setup { effort, ..case }, 12).0.is_some())
        })
    };
    let unnoticed: Vec<Sabotage> =
        Sabotage::ALL.into_iter().filter(|sabotage| !is_found(*sabotage)).collect();
    assert!(unnoticed.is_empty(), "{unnoticed:?} went unnoticed");
}
