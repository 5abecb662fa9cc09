//! A served device that follows the ext4 structures in its writes: an image copied onto it lands in the
//! streams of its kinds.

use nandscape_core::command::Payload;
use nandscape_core::{Allocation, BlockCommand, Extent, Hint, KindReport, Op, SimTime, Subsystem};
use nandscape_stack::{StorageError, Typed, build_storing};
use std::process::Command as Process;

/// 64 MiB, pages of 16 KiB so that one holds four blocks of the file system.
const DEVICE: [(&str, &str); 8] = [
    ("device.channels", "1"),
    ("device.dies_per_channel", "2"),
    ("device.planes_per_die", "1"),
    ("device.blocks_per_plane", "160"),
    ("device.pages_per_block", "16"),
    ("ftl.capacity", "64MiB"),
    ("ftl.streams", "4"),
    ("fs.classify", "ext4"),
];

fn build(more: &[(&str, &str)]) -> Result<Box<dyn Subsystem + Send>, StorageError> {
    let mut typed = Typed::new();
    for (key, value) in DEVICE.iter().chain(more) {
        typed.set(key, value)?;
    }
    build_storing(&typed.check()?)
}

fn submit(device: &mut dyn Subsystem, op: Op, at: u64, payload: Payload<'_>, len: u64) {
    let command = BlockCommand::new(op, Extent::new(at, len), Hint(0));
    device
        .submit(0, command.into(), payload, SimTime::ZERO)
        .unwrap_or_else(|e| panic!("{op:?} at {at}: {e}"));
}

#[expect(clippy::print_stdout, reason = "what is skipped is said")]
fn image() -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let (tree, path) = (folder.path().join("tree"), folder.path().join("image"));
    for number in 0..200 {
        let deep = tree.join(format!("{number}/deep"));
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("file"), vec![9; number * 50]).unwrap();
    }
    let tool = ["mke2fs", "/sbin/mke2fs", "/usr/sbin/mke2fs"]
        .into_iter()
        .find(|tool| Process::new(tool).arg("-V").output().is_ok());
    let Some(tool) = tool else {
        println!("SKIP: mke2fs (package e2fsprogs) is absent");
        return None;
    };
    let mut process = Process::new(tool);
    process
        .args(["-q", "-F", "-t", "ext4", "-b", "4096", "-J", "size=4", "-d"])
        .arg(&tree)
        .arg(&path)
        .arg("48M");
    assert!(process.output().unwrap().status.success());
    Some(std::fs::read(&path).unwrap())
}

fn bytes_of(report: &KindReport, kind: &str) -> u64 {
    report.kinds.iter().find(|count| count.kind == kind).expect("every kind is listed").bytes
}

#[test]
fn an_image_lands_in_the_streams_of_its_kinds_and_reads_back() {
    let Some(image) = image() else { return };
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.csv");
    let mut device = build(&[("fs.record", trace.to_str().unwrap())]).unwrap();
    // The first pass teaches (the superblock comes first, what it describes later), the second shows.
    for pass in 0..2 {
        device.reset_counters(SimTime::ZERO);
        for (number, chunk) in image.chunks(3 << 16).enumerate() {
            submit(
                &mut *device,
                Op::Write,
                number as u64 * (3 << 16),
                Payload::Write(chunk),
                chunk.len() as u64,
            );
        }
        let report = device.inspect().kinds(0).unwrap();
        let total: u64 = report.kinds.iter().map(|count| count.bytes).sum();
        assert_eq!(total, image.len() as u64, "every byte has a kind");
        let host = device.inspect().host_counts(0);
        assert_eq!(host.writes, image.len().div_ceil(3 << 16) as u64, "pieces are no requests");
        assert_eq!((host.reads, host.read_bytes), (0, 0), "what the classifier reads no host asked for");
        assert!(
            report.file_system.as_ref().unwrap().starts_with("ext4, 12288 blocks of 4096 B"),
            "{report:?}"
        );
        assert_eq!(report.read_errors, 0);
        if pass == 1 {
            assert_eq!(bytes_of(&report, "journal"), 4 << 20);
            assert!(bytes_of(&report, "directory") >= 400 * 4096, "{report:?}");
            assert!(bytes_of(&report, "inode-table") > 1 << 20, "{report:?}");
        }
    }
    // A page has one stream, that of most of its bytes: journal and tables are longer than pages, directories
    // are not.
    let report = device.inspect().kinds(0).unwrap();
    for (log, kind, most) in [(1, "journal", 1.1), (2, "inode-table", 1.1), (4, "directory", 4.0)] {
        let share =
            device.inspect().layer(0).log_status(log).host_bytes as f64 / bytes_of(&report, kind) as f64;
        assert!(share > 0.9 && share < most, "stream {log} has {share} of the bytes of kind {kind}");
    }
    // No page was programmed twice for being split.
    let pages: u64 = (0..5).map(|log| device.inspect().layer(0).log_status(log).host_bytes).sum();
    assert_eq!(pages, image.len() as u64);
    let mut back = vec![0; image.len()];
    let len = back.len() as u64;
    submit(&mut *device, Op::Read, 0, Payload::Read(&mut back), len);
    assert!(back == image, "what was written reads back");
    device.shutdown(SimTime::ZERO).unwrap();
    device.check_invariants();
    let text = std::fs::read_to_string(&trace).unwrap();
    let journal: u64 = text
        .lines()
        .filter(|line| line.ends_with(",journal"))
        .map(|line| line.split(',').nth(3).unwrap().parse::<u64>().unwrap())
        .sum();
    assert!(journal >= 4 << 20, "the recording has the journal: {journal} B");
    // Discarded, it is forgotten.
    submit(&mut *device, Op::Trim, 0, Payload::None, 64 << 20);
    assert_eq!(device.inspect().kinds(0).unwrap().file_system, None);
}

#[test]
fn wrong_keys_are_named_with_what_was_expected() {
    for (key, value, expected) in [
        ("fs.streams", "journal=9", "streams up to 4"),
        ("fs.streams", "jurnal=1", "group-descriptors"),
        ("fs.streams", "journal=many", "kind=stream"),
        ("fs.streams", "free=1", "'free=1' is none"),
        ("fs.record", "/nonexistent/trace.csv", "/nonexistent/trace.csv"),
        ("fs.classify", "xfs", "off"),
    ] {
        let error =
            build(&[(key, value)]).err().unwrap_or_else(|| panic!("{key}={value} was taken")).to_string();
        assert!(error.contains(expected), "{key}={value}: {error}");
    }
    let error = build(&[("ftl.streams", "0")]).err().unwrap().to_string();
    assert!(error.contains("fs.streams") && error.contains("streams up to 0"), "{error}");
    assert!(build(&[("ftl.streams", "0"), ("fs.streams", "none")]).is_ok());
}

#[test]
fn what_was_never_written_is_not_allocated_behind_a_classifier() {
    let mut device = build(&[]).unwrap();
    let all = Extent::new(0, 64 << 20);
    let empty = Allocation { is_mapped: false, bytes: 64 << 20 };
    assert_eq!(device.allocation(0, all), empty);
    submit(&mut *device, Op::Write, 0, Payload::Write(&vec![1; 65536]), 65536);
    assert_eq!(device.allocation(0, all), Allocation { is_mapped: true, bytes: 65536 });
    submit(&mut *device, Op::Trim, 0, Payload::None, 65536);
    assert_eq!(device.allocation(0, all), empty);
}

/// A write that is split is one command to the host, and what is asked for durably is durable in all pieces.
#[test]
fn a_durable_write_that_is_split_counts_as_one_write_with_one_flush() {
    let Some(image) = image() else { return };
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.csv");
    let mut device = build(&[("fs.record", trace.to_str().unwrap())]).unwrap();
    for (number, chunk) in image.chunks(1 << 20).enumerate() {
        submit(&mut *device, Op::Write, (number << 20) as u64, Payload::Write(chunk), chunk.len() as u64);
    }
    let before = device.inspect().host_counts(0);
    // All kinds are known now.
    let whole = Extent::new(0, image.len() as u64);
    let command = BlockCommand { is_durable: true, ..BlockCommand::new(Op::Write, whole, Hint(0)) };
    device.submit(0, command.into(), Payload::Write(&image), SimTime::ZERO).unwrap();
    let counts = device.inspect().host_counts(0).since(&before);
    assert_eq!((counts.writes, counts.flushes, counts.write_bytes), (1, 1, whole.len));
    device.shutdown(SimTime::ZERO).unwrap();
    let text = std::fs::read_to_string(&trace).unwrap();
    let flushes = text.lines().filter(|line| line.split(',').any(|field| field == "F")).count();
    assert_eq!(flushes, 1, "the recording has the flush");
}
