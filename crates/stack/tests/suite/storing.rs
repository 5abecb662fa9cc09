//! Stacks over image files: what was written is there after a restart, keys of the image win, checks name
//! what is wrong, snapshots start.

use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, Extent, Hint, Op, SimTime, Subsystem};
use nandscape_stack::storing::{self, Storage};
use nandscape_stack::{Typed, build_stored};
use std::os::unix::fs::FileExt;
use std::path::Path;

const SMALL: &str = "
[device]
channels = 2
dies_per_channel = 1
planes_per_die = 1
blocks_per_plane = 40
pages_per_block = 16
page = '4KiB'
out_of_order_program = true
";

fn typed(ftl: &str) -> Typed {
    let mut typed = Typed::new();
    typed.merge_text("small", SMALL).unwrap();
    typed.set_ftl(ftl).unwrap();
    typed
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn bytes(page: u64, round: u64) -> Vec<u8> {
    (0..4096).map(|i| (i ^ (page * 7) ^ (round * 13)) as u8).collect()
}

fn submit(stack: &mut dyn Subsystem, op: Op, page: u64, payload: Payload<'_>) {
    let extent = if op == Op::Flush { Extent::new(0, 0) } else { Extent::new(page * 4096, 4096) };
    stack.submit(0, BlockCommand::new(op, extent, Hint::default()).into(), payload, SimTime::ZERO).unwrap();
}

fn write_all(stack: &mut dyn Subsystem, pages: u64, round: u64) {
    for page in 0..pages {
        submit(stack, Op::Write, page, Payload::Write(&bytes(page, round)));
    }
    submit(stack, Op::Flush, 0, Payload::None);
}

fn assert_all(stack: &mut dyn Subsystem, pages: u64, round: u64, label: &str) {
    let mut data = vec![0; 4096];
    for page in 0..pages {
        submit(stack, Op::Read, page, Payload::Read(&mut data));
        assert!(data == bytes(page, round), "{label}: page {page}");
    }
}

#[test]
fn every_layer_starts_from_its_image_and_from_a_snapshot_of_it() {
    for info in nandscape_ftl::registry::infos() {
        let dir = scratch();
        let path = dir.path().join("flash.img");
        let storage = Storage::Image(path.clone());
        let typed = typed(info.name);
        let config = storing::resolve(&typed, &storage).unwrap();
        let mut stored = build_stored(&config, &storage).unwrap();
        let pages = stored.subsystem.namespaces()[0].capacity_bytes / 4096 / 2;
        for round in 0..4 {
            write_all(&mut *stored.subsystem, pages, round);
        }
        // As if the process had been killed: nobody shuts the layer down.
        drop(stored);
        let config = storing::resolve(&typed, &storage).unwrap();
        let mut stored = build_stored(&config, &storage).unwrap();
        assert_all(&mut *stored.subsystem, pages, 3, info.name);
        stored.subsystem.check_invariants();

        let target = dir.path().join("copy.img");
        let image = stored.image.clone().unwrap();
        let snapshot = storing::snapshot(&mut *stored.subsystem, SimTime::ZERO, &image, &target).unwrap();
        write_all(&mut *stored.subsystem, pages, 9);
        snapshot.finish().unwrap();
        let mut copy = build_stored(&config, &Storage::Image(target)).unwrap();
        assert_all(&mut *copy.subsystem, pages, 3, info.name);
        let report = copy.subsystem.inspect().device(0).journal().unwrap().recovery();
        assert!(report.was_clean, "{}: {report:?}", info.name);
        assert_all(&mut *stored.subsystem, pages, 9, info.name);
        drop(stored);
        let checked = storing::check(&path, &mut |_, _| {}).unwrap();
        assert_eq!((checked.findings.problem_count, checked.start_error), (0, None), "{}", info.name);
    }
}

#[test]
fn the_configuration_of_an_image_wins_and_a_contradiction_is_named() {
    let dir = scratch();
    let path = dir.path().join("flash.img");
    let storage = Storage::Image(path.clone());
    storing::create(&typed("page-map").check().unwrap(), &path).unwrap();
    // Nothing typed, or what is in the image anyway.
    for typed in [Typed::new(), typed("page-map")] {
        let config = storing::resolve(&typed, &storage).unwrap();
        assert_eq!((config.geometry.channels, config.geometry.blocks_per_plane), (2, 40));
        drop(build_stored(&config, &storage).unwrap());
    }
    let refused = |pair: &str| {
        let mut typed = Typed::new();
        typed.set_pair(pair).unwrap();
        storing::resolve(&typed, &storage).unwrap_err().to_string()
    };
    let file = path.display();
    assert_eq!(
        refused("device.channels=4"),
        format!("device.channels = 4: expected 2, with which {file} was made")
    );
    assert_eq!(
        refused("ftl.kind=pm-gcl"),
        format!("ftl.kind = pm-gcl: expected page-map, with which {file} was made")
    );
    assert!(refused("ftl.victim=fifo").starts_with("ftl.victim = fifo: expected greedy"));
    // Keys are those of the layer in the image, whichever it is.
    let of_objects = dir.path().join("objects.img");
    let mut typed = typed("page-map");
    typed.set_stack("oftl").unwrap();
    storing::create(&typed.check().unwrap(), &of_objects).unwrap();
    let objects = Storage::Image(of_objects);
    for (pair, expected) in [
        ("ftl.resident=100", "ftl.resident = 100: expected 65536, with which"),
        ("ftl.resident=65536", ""),
        ("ftl.frontiers=2", "unknown key 'ftl.frontiers' for oftl"),
    ] {
        let mut typed = Typed::new();
        typed.set_pair(pair).unwrap();
        let outcome = storing::resolve(&typed, &objects).map_err(|error| error.to_string());
        let error = outcome.err().unwrap_or_default();
        assert!(error.starts_with(expected) && error.is_empty() == expected.is_empty(), "{pair}: {error}");
    }
    // What belongs to a run contradicts nothing.
    let mut typed = Typed::new();
    typed.set_pair("workload.seed=9").unwrap();
    assert_eq!(storing::resolve(&typed, &storage).unwrap().seed, 9);
}

#[test]
fn a_check_names_the_page_that_is_wrong_and_changes_nothing() {
    let dir = scratch();
    let path = dir.path().join("flash.img");
    let storage = Storage::Image(path.clone());
    let config = typed("page-map").check().unwrap();
    let mut stored = build_stored(&config, &storage).unwrap();
    write_all(&mut *stored.subsystem, 50, 1);
    drop(stored);
    let good = std::fs::read(&path).unwrap();
    let checked = storing::check(&path, &mut |_, _| {}).unwrap();
    assert_eq!(checked.findings.problem_count, 0);
    assert_eq!(checked.recovery[0].live_pages, 50);
    assert!(std::fs::read(&path).unwrap() == good, "the check changed the image");
    // The bytes of page 7 of the namespace, wherever they are.
    let at = good.windows(4096).step_by(512).position(|window| window == bytes(7, 1)).unwrap() as u64 * 512;
    std::fs::File::options().write(true).open(&path).unwrap().write_all_at(&[0xee], at + 99).unwrap();
    let checked = storing::check(&path, &mut |_, _| {}).unwrap();
    assert_eq!(checked.findings.problem_count, 1);
    let problem = &checked.findings.problems[0];
    assert_eq!((problem.offset, problem.block), (at, problem.page.map(|page| page / 16)));
    assert_read_fails(&config, &path);
}

fn assert_read_fails(config: &nandscape_stack::StackConfig, path: &Path) {
    let mut stored = build_stored(config, &Storage::Image(path.to_owned())).unwrap();
    let mut data = vec![0; 4096];
    for page in 0..50 {
        let command = BlockCommand::new(Op::Read, Extent::new(page * 4096, 4096), Hint::default());
        let read = stored.subsystem.submit(0, command.into(), Payload::Read(&mut data), SimTime::ZERO);
        assert_eq!(read.is_err(), page == 7, "page {page}: {read:?}");
        assert!(read.is_err() || data == bytes(page, 1), "page {page}");
    }
    assert_eq!(stored.subsystem.inspect().device(0).tally().health.checksum_errors, 1);
}

#[test]
fn a_check_does_not_pass_mapped_pages_that_cannot_be_read() {
    let dir = scratch();
    let path = dir.path().join("flash.img");
    let config = typed("page-map").check().unwrap();
    let mut stored = build_stored(&config, &Storage::Image(path.clone())).unwrap();
    write_all(&mut *stored.subsystem, 50, 1);
    storing::snapshot(
        &mut *stored.subsystem,
        SimTime::ZERO,
        &stored.image.unwrap(),
        &dir.path().join("copy.img"),
    )
    .unwrap();
    drop(stored.subsystem);
    assert!(storing::check(&path, &mut |_, _| {}).unwrap().is_good());
    // What a copy leaves that was cut short: tables, and none of the data; and no state that says whether the
    // last process closed it.
    let whole = std::fs::read(&path).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[0; 4096], 4096).unwrap();
    for page in 0..50 {
        let at = whole.chunks(4096).position(|chunk| chunk == bytes(page, 1)).unwrap() as u64 * 4096;
        file.write_all_at(&[0; 4096], at).unwrap();
    }
    let checked = storing::check(&path, &mut |_, _| {}).unwrap();
    assert!(!checked.is_good(), "{} cut short, {checked:?}", checked.findings.contents.torn_pages);
    assert_eq!(checked.start_error, None);
    assert_eq!((checked.lost_pages, checked.lost.len()), (50, 50));
    assert_eq!((checked.lost[7].namespace.as_str(), checked.lost[7].offset), ("ns1", 7 * 4096));
    assert!(checked.lost[7].error.contains("uncorrectable read of page"), "{}", checked.lost[7].error);
}

/// What the file of an image has, and when it was last changed.
fn look_at(path: &Path) -> (Vec<u8>, std::time::SystemTime) {
    (std::fs::read(path).unwrap(), std::fs::metadata(path).unwrap().modified().unwrap())
}

#[test]
fn an_image_that_is_served_read_only_does_not_change() {
    for (ftl, is_closed) in [("page-map", true), ("page-map", false), ("sbm-gcl", false)] {
        let dir = scratch();
        let path = dir.path().join("flash.img");
        let config = typed(ftl).check().unwrap();
        let mut stored = build_stored(&config, &Storage::Image(path.clone())).unwrap();
        for round in 0..3 {
            write_all(&mut *stored.subsystem, 50, round);
        }
        if is_closed {
            stored.subsystem.shutdown(SimTime::ZERO).unwrap();
        }
        drop(stored);
        let before = look_at(&path);
        let storage = Storage::ReadOnlyImage(path.clone());
        let config = storing::resolve(&typed(ftl), &storage).unwrap();
        // Two at once, on a mount that takes no writes where that can be had.
        let _bound = ReadOnlyMount::new(dir.path());
        let mut first = build_stored(&config, &storage).unwrap();
        let mut second = build_stored(&config, &storage).unwrap();
        assert!(first.image.is_none(), "a snapshot would not have what the start wrote to memory");
        for stored in [&mut first, &mut second] {
            assert_all(&mut *stored.subsystem, 50, 2, ftl);
            submit(&mut *stored.subsystem, Op::Flush, 0, Payload::None);
            stored.subsystem.shutdown(SimTime::ZERO).unwrap();
        }
        let refused = build_stored(&config, &Storage::Image(path.clone())).err().unwrap().to_string();
        assert!(refused.contains("in use by another process") || refused.contains("Read-only"), "{refused}");
        drop((first, second));
        assert!(look_at(&path) == before, "{ftl}: the image has changed");
    }
    let absent = Storage::ReadOnlyImage(Path::new("/nowhere/flash.img").to_owned());
    let config = storing::resolve(&typed("page-map"), &absent).unwrap();
    let error = build_stored(&config, &absent).err().unwrap().to_string();
    assert_eq!(error, "/nowhere/flash.img: open: No such file or directory (os error 2)");
}

/// A directory on which nothing can be written, for root neither. Does nothing where it cannot be mounted.
struct ReadOnlyMount<'a> {
    at: Option<&'a Path>,
}

impl<'a> ReadOnlyMount<'a> {
    fn new(at: &'a Path) -> Self {
        let mount = |words: &[&str]| {
            let outcome = std::process::Command::new("mount").args(words).arg(at).output();
            outcome.is_ok_and(|output| output.status.success())
        };
        let is_bound = mount(&["--bind", at.to_str().unwrap()]);
        let this = Self { at: is_bound.then_some(at) };
        assert!(!is_bound || mount(&["-o", "remount,ro,bind"]), "{}", at.display());
        this
    }
}

impl Drop for ReadOnlyMount<'_> {
    fn drop(&mut self) {
        if let Some(at) = self.at {
            let _ = std::process::Command::new("umount").arg(at).status();
        }
    }
}
