//! `f2fs` over a page map and over zones: random commands with its invariants, what a sync and a checkpoint
//! write, cleaning, holes, streams, and rules that are broken on purpose.

use super::support::{TIMING, mixed, params_of, setup};
use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    Capabilities, Cause, CauseTable, Extent, FlashState, Geometry, Hint, NamespaceError, NamespaceResult,
    ObjectCommand, ObjectError, ObjectId, ObjectReport, ObjectSpace, Reply, SimTime, Subsystem, UnitId,
};
use nandscape_ftl::{PageMap, page_map};
use nandscape_hostftl::F2fs;
use nandscape_hostftl::f2fs::{self, Sabotage};
use nandscape_media::{Fifo, Nand, NandOptions, Scheduler, Timed};
use nandscape_namespace::sets::{Order, Part, share};
use nandscape_namespace::zones::{ZoneLayout, ZoneSetup};
use nandscape_namespace::{NamespaceSpec, NvmSet, NvmSubsystem, SetFacts, SharedDevice};
use std::collections::BTreeMap;

const PAGE: u64 = 4096;
/// Blocks of a segment, as the keys below have it.
const SEGMENT: u64 = 16;

/// 4 dies of 96 blocks of 32 pages: 48 MiB.
const GEOMETRY: Geometry = Geometry {
    channels: 2,
    dies_per_channel: 2,
    planes_per_die: 1,
    blocks_per_plane: 96,
    pages_per_block: 32,
    page_bytes: 4096,
    sector_bytes: 4096,
    oob_bytes: 64,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum On {
    Blocks,
    Zones,
}

/// A device without bytes.
fn device() -> Timed<Nand, Fifo> {
    let capabilities = Capabilities { partial_transfer: true, ..Capabilities::default() };
    let options = NandOptions { capabilities, ..NandOptions::default() };
    let nand: Nand = Nand::new(GEOMETRY.checked().unwrap(), &options).unwrap();
    Timed::new(nand, Fifo::new(&GEOMETRY, &TIMING))
}

/// One namespace over a page map, whose commands have cause and order.
fn blocks(streams: &str) -> Box<dyn Subsystem + Send> {
    let (shared, order): (SharedDevice, _) = (share(device()), Order::default());
    let dies: Vec<UnitId> = (0..GEOMETRY.units()).map(UnitId).collect();
    let part = Part::new(SharedDevice::clone(&shared), &dies).ordered(&order);
    let params = params_of(&page_map::INFO, &[("op", "0.15"), ("streams", streams)]);
    let ftl = PageMap::new(part, &params).unwrap();
    let capacity_bytes = nandscape_core::Mapping::logical_pages(&ftl) * PAGE;
    let spec = NamespaceSpec { name: "ns1".to_owned(), set: 0, offset_bytes: 0, capacity_bytes };
    let set = NvmSet { ftl: Box::new(ftl), endurance_group: 0, facts: SetFacts::default() };
    Box::new(NvmSubsystem::divided(shared, vec![set], &[spec]).unwrap().ordered(order))
}

/// Zones of 128 pages, 8 of them conventional; at most 8 active.
fn zones() -> Box<dyn Subsystem + Send> {
    let setup = setup(&GEOMETRY, 4, 128, Some(8));
    let layout = ZoneLayout { conventional: 8, ..setup.layout };
    let setup = ZoneSetup { layout, conventional_blocks: 14, ..setup };
    Box::new(mixed(Box::new(device()), &setup).unwrap())
}

fn open(on: On, keys: &[(&str, &str)], sabotage: Sabotage) -> F2fs {
    let mode = if on == On::Zones { "lfs" } else { "adaptive" };
    let keys: Vec<_> =
        [("mode", mode), ("segment", "64KiB")].into_iter().chain(keys.iter().copied()).collect();
    let below = if on == On::Zones { zones() } else { blocks("8") };
    let params = params_of(&f2fs::INFO, &keys);
    F2fs::with_sabotage(below, &params, sabotage).unwrap_or_else(|error| panic!("{error}"))
}

fn ask(files: &mut F2fs, command: ObjectCommand, at: u64) -> NamespaceResult<Reply> {
    Ok(files.submit(0, command.into(), Payload::None, SimTime(at))?.reply)
}

fn write(object: u64, page: u64, pages: u64) -> ObjectCommand {
    ObjectCommand::Write {
        object: ObjectId(object),
        extent: Extent::new(page * PAGE, pages * PAGE),
        hint: None,
    }
}

fn create(object: u64, hint: Hint) -> ObjectCommand {
    ObjectCommand::Create { object: ObjectId(object), hint }
}

fn flush(object: Option<u64>) -> ObjectCommand {
    ObjectCommand::Flush { object: object.map(ObjectId) }
}

fn space(files: &mut F2fs) -> ObjectSpace {
    match ask(files, ObjectCommand::Space, 0).unwrap() {
        Reply::Space(space) => *space,
        other => panic!("{other:?}"),
    }
}

fn report(files: &F2fs) -> ObjectReport {
    files.inspect().objects().expect("a store of objects")
}

fn causes(files: &F2fs) -> CauseTable {
    *FlashState::counters(files.inspect().device(0))
}

/// What a file of the same commands has: its size, and which pages are stored.
#[derive(Default)]
struct Plain {
    size: u64,
    pages: std::collections::BTreeSet<u64>,
}

/// Random commands on some files beside a plain list of what is stored; sizes and space must agree.
fn random(on: On, keys: &[(&str, &str)], seed: u64, steps: u64) -> F2fs {
    let mut files = open(on, keys, Sabotage::None);
    let (mut rng, mut plain, mut refused) = (seeded(seed), BTreeMap::<u64, Plain>::new(), 0);
    for step in 0..steps {
        let object = 1 + below(&mut rng, 40);
        let id = ObjectId(object);
        let (page, pages) = (below(&mut rng, 1200), 1 + below(&mut rng, 60));
        let ragged = if below(&mut rng, 3) == 0 { 700 } else { 0 };
        let extent = Extent::new(page * PAGE + ragged, pages * PAGE - ragged - ragged / 7);
        let command = match (plain.contains_key(&object), below(&mut rng, 20)) {
            (false, _) => create(object, Hint(below(&mut rng, 6) as u16)),
            (_, 0) => ObjectCommand::Delete { object: id },
            (_, 1) => ObjectCommand::Truncate { object: id, size: extent.offset },
            (_, 2) => ObjectCommand::Punch { object: id, extent },
            (_, 3 | 4) => flush(Some(object)),
            (_, 5) => flush(None),
            (_, 6) => ObjectCommand::Read { object: id, extent },
            _ => ObjectCommand::Write { object: id, extent, hint: None },
        };
        let context = format!("{on:?}, seed {seed}, step {step}, {command:?}");
        match ask(&mut files, command, step * 1000) {
            Ok(_) => follow(&mut plain, &command),
            Err(NamespaceError::Object(ObjectError::Full)) => refused += 1,
            Err(error) => panic!("{error}; {context}"),
        }
        if step % 64 == 0 {
            files.check_invariants();
            let stored: u64 = plain.values().map(|file| file.pages.len() as u64).sum();
            ask(&mut files, flush(None), step * 1000).unwrap();
            assert_eq!(report(&files).live_bytes, stored * PAGE, "{context}");
        }
    }
    let Ok(Reply::Objects(list)) = ask(&mut files, ObjectCommand::List, steps * 1000) else { panic!() };
    let found: Vec<_> = list.iter().map(|status| (status.object.0, status.size)).collect();
    assert_eq!(found, plain.iter().map(|(id, file)| (*id, file.size)).collect::<Vec<_>>());
    files.shutdown(SimTime(steps * 1000)).unwrap();
    files.check_invariants();
    assert!(refused < steps / 4, "{refused} of {steps} were refused: nothing was tried");
    files
}

fn follow(plain: &mut BTreeMap<u64, Plain>, command: &ObjectCommand) {
    match *command {
        ObjectCommand::Create { object, .. } => drop(plain.insert(object.0, Plain::default())),
        ObjectCommand::Delete { object } => drop(plain.remove(&object.0)),
        ObjectCommand::Write { object, extent, .. } => {
            let file = plain.get_mut(&object.0).unwrap();
            file.size = file.size.max(extent.end());
            file.pages.extend(extent.offset / PAGE..extent.end().div_ceil(PAGE));
        }
        ObjectCommand::Truncate { object, size } => {
            let file = plain.get_mut(&object.0).unwrap();
            file.pages.retain(|page| *page < size.div_ceil(PAGE));
            file.size = size;
        }
        ObjectCommand::Punch { object, extent } => {
            let file = plain.get_mut(&object.0).unwrap();
            let end = extent.end().min(file.size);
            // The last page, if it is not whole, may wait in memory: f2fs zeroes it there.
            file.pages.retain(|page| !(extent.offset.div_ceil(PAGE)..end / PAGE).contains(page));
        }
        _ => {}
    }
}

#[test]
fn random_commands_keep_its_invariants() {
    for seed in 0..6 {
        random(On::Blocks, &[], seed, 4000);
        let files = random(On::Blocks, &[("mode", "lfs")], seed, 4000);
        assert!(causes(&files).get(Cause::Clean).programs > 0, "seed {seed}: nothing was cleaned");
        let files = random(On::Zones, &[], seed, 4000);
        assert!(causes(&files).get(Cause::Clean).programs > 0, "seed {seed}: nothing was cleaned");
    }
    random(On::Blocks, &[("mode", "lfs"), ("logs", "2"), ("discard", "false")], 9, 4000);
    random(On::Zones, &[("logs", "4"), ("op", "15")], 9, 4000);
}

/// Every page that hosts wrote is programmed as theirs once, and what else is programmed has its own cause.
#[test]
fn every_page_has_a_cause() {
    for on in [On::Blocks, On::Zones] {
        let mut files = open(on, &[], Sabotage::None);
        ask(&mut files, create(1, Hint::NOT_SET), 0).unwrap();
        ask(&mut files, write(1, 0, 100), 0).unwrap();
        assert_eq!(causes(&files).get(Cause::Host).programs, 100, "{on:?}");
        let before = causes(&files).get(Cause::Meta).programs;
        // Seven segments were begun and six filled, each with its block of summaries.
        assert_eq!(before, 100 / SEGMENT, "{on:?}");
        ask(&mut files, flush(Some(1)), 0).unwrap();
        assert_eq!(causes(&files).get(Cause::Meta).programs - before, 1, "{on:?}: the inode");
        ask(&mut files, flush(Some(1)), 0).unwrap();
        assert_eq!(causes(&files).get(Cause::Meta).programs - before, 1, "{on:?}: nothing changed");
        ask(&mut files, flush(None), 0).unwrap();
        // A block of names with its inode, five blocks of the checkpoint; the tables fit into it, but where
        // more than six sections changed.
        let tables = u64::from(on == On::Blocks);
        assert_eq!(causes(&files).get(Cause::Meta).programs - before, 1 + 2 + 5 + tables, "{on:?}");
        assert_eq!(causes(&files).get(Cause::Host).programs, 100, "{on:?}");
    }
}

/// What overwrites of two files cost, which take `long` and `short` tenths of the capacity, where so many of
/// ten go to the short-lived one: (blocks moved for each block written, programs for each).
fn churn(
    on: On,
    keys: &[(&str, &str)],
    (long, short, of_ten): (u64, u64, u64),
    sabotage: Sabotage,
) -> (f64, f64) {
    let mut files = open(on, keys, sabotage);
    let mut rng = seeded(5);
    let capacity = space(&mut files).capacity / PAGE;
    let (long, short) = (capacity * long / 10, capacity * short / 10);
    for (object, pages, hint) in [(1, long, Hint::LONG), (2, short, Hint::SHORT)] {
        ask(&mut files, create(object, hint), 0).unwrap();
        for page in (0..pages).step_by(10) {
            ask(&mut files, write(object, page, 10), 0).unwrap();
        }
    }
    let mut written = 0;
    let turn = |files: &mut F2fs, rng: &mut nandscape_core::rng::Xoshiro256PlusPlus, at: u64| {
        let (object, pages) = if below(rng, 10) < of_ten { (2, short) } else { (1, long) };
        let page = below(rng, pages / 10) * 10;
        ask(files, write(object, page, 10), at).unwrap();
    };
    for at in 0..3000 {
        turn(&mut files, &mut rng, at * 1000);
    }
    files.reset_counters(SimTime(3_000_000));
    for at in 0..6000 {
        turn(&mut files, &mut rng, 3_000_000 + at * 1000);
        written += 10;
    }
    files.check_invariants();
    let causes = causes(&files);
    let per = |count: u64| count as f64 / f64::from(written);
    (per(causes.get(Cause::Clean).programs), per(causes.total().programs))
}

const EVEN: (u64, u64, u64) = (7, 1, 1);
const HOT: (u64, u64, u64) = (6, 1, 9);

#[test]
fn cleaning_takes_sections_with_few_valid_blocks_and_logs_keep_lifetimes_apart() {
    let keys = [("mode", "lfs")];
    for on in [On::Blocks, On::Zones] {
        let (moved, _) = churn(on, &keys, EVEN, Sabotage::None);
        let (any, _) = churn(on, &keys, EVEN, Sabotage::AnyVictim);
        let (apart, _) = churn(on, &keys, HOT, Sabotage::None);
        let (one_log, _) = churn(on, &keys, HOT, Sabotage::OneLog);
        assert!(moved > 0.0 && any > 1.2 * moved, "{on:?}: {moved:.3}; with any victim {any:.3}");
        assert!(one_log > 1.1 * apart, "{on:?}: {apart:.3}; with one log {one_log:.3}");
    }
}

#[test]
fn holes_are_filled_when_sections_are_short_and_the_device_pays() {
    let (lfs_moved, _) = churn(On::Blocks, &[("mode", "lfs")], HOT, Sabotage::None);
    let (moved, _) = churn(On::Blocks, &[("mode", "adaptive")], HOT, Sabotage::None);
    assert!(moved < lfs_moved / 2.0, "cleaning {moved:.3} with holes, {lfs_moved:.3} without");
}

#[test]
fn streams_of_logs_lower_what_the_device_moves() {
    let (_, plain) = churn(On::Blocks, &[("mode", "lfs")], HOT, Sabotage::None);
    let (_, apart) = churn(On::Blocks, &[("mode", "lfs"), ("streams", "true")], HOT, Sabotage::None);
    assert!(apart < plain, "programs for each page written: {apart:.3} with streams, {plain:.3} without");
}

#[test]
fn it_is_full_at_its_capacity_and_not_before() {
    for on in [On::Blocks, On::Zones] {
        let mut files = open(on, &[], Sabotage::None);
        ask(&mut files, create(1, Hint::NOT_SET), 0).unwrap();
        let mut page = 0;
        while ask(&mut files, write(1, page, 1), page).is_ok() {
            page += 1;
        }
        let all = space(&mut files);
        assert!(all.free < 4 * PAGE, "{on:?}: {all:?}");
        // The whole of it can be overwritten again and again; writers wait, and none is refused.
        let mut rng = seeded(1);
        for step in 0..3 * page {
            let at = below(&mut rng, page);
            ask(&mut files, write(1, at, 1), 1_000_000 + step)
                .unwrap_or_else(|error| panic!("{on:?}: {error}"));
        }
        files.check_invariants();
        assert!(
            causes(&files).get(Cause::Clean).programs > 0 || on == On::Blocks,
            "{on:?}: nothing was cleaned"
        );
    }
}

#[test]
fn idle_time_cleans_and_writes_checkpoints() {
    let mut files = open(On::Zones, &[("gc_interval", "1ms"), ("checkpoint", "10ms")], Sabotage::None);
    ask(&mut files, create(1, Hint::NOT_SET), 0).unwrap();
    ask(&mut files, write(1, 0, 400), 0).unwrap();
    for page in 0..40 {
        ask(&mut files, write(1, page * 10, 3), 0).unwrap();
    }
    let free = space(&mut files).reclaimable;
    files.idle(SimTime(1_000_000), SimTime(80_000_000)).unwrap();
    files.check_invariants();
    assert!(causes(&files).get(Cause::Clean).programs > 0 && report(&files).resets > 0);
    assert!(space(&mut files).reclaimable <= free);
}

#[test]
fn devices_and_keys_that_do_not_fit_are_refused() {
    let error = |below, keys: &[(&str, &str)]| {
        let params = params_of(&f2fs::INFO, keys);
        F2fs::new(below, &params).err().map(|error| error.to_string()).expect("it is refused")
    };
    assert!(error(zones(), &[("mode", "adaptive")]).contains("lfs, since zones are written in order"));
    assert!(
        error(zones(), &[("mode", "lfs"), ("section", "2")]).contains("on zones, which are the sections")
    );
    assert!(error(blocks("0"), &[("mode", "lfs"), ("logs", "3")]).contains("expected 2, 4 or 6"));
    assert!(
        error(blocks("0"), &[("mode", "lfs"), ("segment", "6000")]).contains("whole blocks of 4096 bytes")
    );
    assert!(error(blocks("0"), &[("mode", "lfs"), ("segment", "1GiB")]).contains("far smaller than"));
    assert!(
        error(blocks("0"), &[("mode", "lfs"), ("segment", "64KiB"), ("op", "0.01")])
            .contains("are reserved for cleaning")
    );
}
