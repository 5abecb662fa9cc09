//! Files and block devices as stores.

#![expect(clippy::print_stderr, reason = "says what is skipped")]

use nandscape_core::command::Payload;
use nandscape_core::rng::{below, seeded};
use nandscape_core::{Allocation, BlockCommand, Clocked, Extent, Hint, Op, SimTime, Store, StoreError};
use nandscape_files::{Condition, FileError, FileOptions, FileStore};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command as Process;

const SIZE: u64 = 1 << 20;

fn command(op: Op, offset: u64, len: u64) -> BlockCommand {
    BlockCommand::new(op, Extent::new(offset, len), Hint::default())
}

fn write(store: &mut FileStore, offset: u64, data: &[u8]) -> Result<(), StoreError> {
    store.submit(command(Op::Write, offset, data.len() as u64), Payload::Write(data), SimTime(0)).map(drop)
}

fn read(store: &mut FileStore, offset: u64, len: usize) -> Vec<u8> {
    let mut data = vec![0xA5; len];
    store.submit(command(Op::Read, offset, len as u64), Payload::Read(&mut data), SimTime(0)).unwrap();
    data
}

fn simple(store: &mut FileStore, op: Op, offset: u64, len: u64) -> Result<(), StoreError> {
    store.submit(command(op, offset, len), Payload::None, SimTime(0)).map(drop)
}

/// Random commands against a plain array, then the file by itself against the array.
fn holds_what_was_written(path: &Path, options: FileOptions) {
    let mut store = FileStore::open(path, options).unwrap();
    let (capacity, block) = (store.capacity_bytes(), u64::from(store.block_bytes()));
    let mut model = vec![0; capacity as usize];
    for offset in (0..capacity).step_by(1 << 20) {
        let len = (capacity - offset).min(1 << 20);
        simple(&mut store, Op::WriteZeroes, offset, len).unwrap();
    }
    let mut rng = seeded(3);
    for step in 0..2000 {
        let offset = below(&mut rng, capacity / block) * block;
        let len = ((below(&mut rng, 20) + 1) * block).min(capacity - offset);
        let range = offset as usize..(offset + len) as usize;
        match below(&mut rng, 8) {
            0..=2 => assert_eq!(read(&mut store, offset, len as usize), model[range], "step {step}"),
            3..=5 => {
                let data: Vec<u8> = range.clone().map(|at| (at as u8) ^ (step as u8)).collect();
                write(&mut store, offset, &data).unwrap();
                model[range].copy_from_slice(&data);
            }
            6 => {
                simple(&mut store, Op::WriteZeroes, offset, len).unwrap();
                model[range].fill(0);
            }
            _ => simple(&mut store, Op::Flush, 0, 0).unwrap(),
        }
    }
    store.shutdown(SimTime(0)).unwrap();
    drop(store);
    let mut bytes = vec![0; model.len()];
    std::fs::File::open(path).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    assert!(bytes == model, "{} differs from what was written", path.display());
}

#[test]
fn a_file_holds_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    drop(FileStore::create(&path, SIZE, FileOptions::default()).unwrap());
    holds_what_was_written(&path, FileOptions::default());
}

#[test]
fn direct_transfers_take_memory_of_any_address() {
    // Beside the test itself: file systems in memory may refuse direct transfers.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("disk");
    let options = FileOptions { is_direct: true, ..FileOptions::default() };
    match FileStore::create(&path, SIZE, options) {
        Ok(store) => assert_eq!(store.block_bytes(), 4096),
        Err(error) => {
            eprintln!("skipped: no direct transfers here: {error}");
            return;
        }
    }
    holds_what_was_written(&path, options);
}

#[test]
fn a_trim_gives_space_back_and_leaves_zeroes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let mut store = FileStore::create(&path, SIZE, FileOptions::default()).unwrap();
    let all = Extent::new(0, SIZE);
    assert_eq!(store.allocation(all), Allocation { is_mapped: false, bytes: SIZE });
    write(&mut store, 65_536, &vec![7; 131_072]).unwrap();
    simple(&mut store, Op::Trim, 65_536 + 512, 131_072 - 1024).unwrap();
    let bytes = read(&mut store, 65_536, 131_072);
    assert_eq!(
        (bytes[..512].iter().all(|byte| *byte == 7), bytes[512]),
        (true, 0),
        "only the range is zeroed"
    );
    assert_eq!((bytes[131_071 - 512], bytes[131_072 - 512]), (0, 7));
    if store.allocation(all).is_mapped {
        eprintln!("skipped: no holes in files here");
        return;
    }
    assert_eq!(store.allocation(all).bytes, 65_536);
    assert_eq!(
        store.allocation(Extent::new(65_536, SIZE - 65_536)),
        Allocation { is_mapped: true, bytes: 4096 }
    );
    assert!(!store.allocation(Extent::new(65_536 + 4096, 4096)).is_mapped);
}

#[test]
fn two_cannot_use_a_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let first = FileStore::create(&path, SIZE, FileOptions::default()).unwrap();
    let reader = FileOptions { is_read_only: true, ..FileOptions::default() };
    for options in [FileOptions::default(), reader] {
        let error = FileStore::open(&path, options).unwrap_err();
        assert_eq!(error.to_string(), format!("{}: in use by another process", path.display()));
    }
    drop(first);
    let readers = [FileStore::open(&path, reader).unwrap(), FileStore::open(&path, reader).unwrap()];
    let error = FileStore::open(&path, FileOptions::default()).unwrap_err();
    assert!(matches!(error, FileError::InUse { .. }), "{error}");
    drop(readers);
    FileStore::open(&path, FileOptions::default()).unwrap();
}

#[test]
fn what_is_no_store_is_refused_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path, options| FileStore::open(path, options).unwrap_err().to_string();
    let plain = FileOptions::default();
    let path = folder.path();
    assert_eq!(
        refused(path, plain),
        format!("{}: a directory: expected a file or a block device", path.display())
    );
    assert!(refused(Path::new("/dev/null"), plain).starts_with("/dev/null: a character device: expected"));
    let absent = path.join("absent");
    assert!(refused(&absent, plain).starts_with(&format!("{}: open: No such file", absent.display())));
    let odd = path.join("odd");
    std::fs::write(&odd, [0; 1000]).unwrap();
    assert_eq!(
        refused(&odd, plain),
        format!("{}: 1000 bytes: expected one or more blocks of 512 bytes", odd.display())
    );
    std::fs::write(&odd, []).unwrap();
    assert!(refused(&odd, plain).contains("0 bytes: expected one or more blocks"));
    std::fs::write(&odd, [0; 1024]).unwrap();
    assert!(FileStore::create(&odd, SIZE, plain).unwrap_err().to_string().contains("create: File exists"));
    let expecting = FileOptions { expected_bytes: Some(2048), ..plain };
    assert_eq!(refused(&odd, expecting), format!("{}: 1024 bytes: expected 2048 bytes", odd.display()));
}

#[test]
fn errors_of_commands_name_path_and_offset() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let mut store = FileStore::create(&path, SIZE, FileOptions::default()).unwrap();
    assert_eq!(
        write(&mut store, SIZE - 512, &[0; 1024]),
        Err(StoreError::OutOfRange { offset: SIZE - 512, len: 1024, capacity: SIZE })
    );
    assert_eq!(
        write(&mut store, 100, &[0; 512]),
        Err(StoreError::Unaligned { offset: 100, len: 512, block: 512 })
    );
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
    let mut data = vec![0; 8192];
    let error = store
        .submit(command(Op::Read, 0, 8192), Payload::Read(&mut data), SimTime(0))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("the device is gone") && error.contains("4096 bytes, expected"), "{error}");
    assert!(error.contains(&*path.to_string_lossy()), "{error}");
    drop(store);
    let options = FileOptions { is_read_only: true, ..FileOptions::default() };
    let mut store = FileStore::open(&path, options).unwrap();
    let error = write(&mut store, 0, &[0; 512]).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }) && error.to_string().contains("disk"), "{error}");
}

#[test]
fn a_file_passes_the_suite_for_stores() {
    let folder = tempfile::tempdir().unwrap();
    for (name, options) in [
        ("buffered", FileOptions::default()),
        ("of a given size", FileOptions { expected_bytes: Some(SIZE), ..FileOptions::default() }),
    ] {
        let make = || -> Box<dyn Store + Send> {
            let path = folder.path().join("conforming");
            std::fs::remove_file(&path).ok();
            Box::new(FileStore::create(&path, SIZE, options).unwrap())
        };
        for seed in 0..3 {
            nandscape_testkit::store::run(&make, seed, 500).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn a_command_completes_when_it_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = FileStore::create(&folder.path().join("disk"), SIZE, FileOptions::default()).unwrap();
    let write = command(Op::Write, 0, 512);
    let applied = store.apply(write, Payload::Write(&[1; 512])).unwrap();
    assert_eq!(read(&mut store, 0, 1024)[511..513], [1, 0], "the bytes are there before the start");
    let token = store.start(write, applied, SimTime(77)).unwrap();
    assert_eq!((store.completion(token), store.idle_from()), (Some(SimTime(77)), SimTime(77)));
    assert_eq!((store.counts().writes, store.counts().read_bytes), (1, 1024));
    store.reset_counters(SimTime(100));
    assert_eq!((store.counts().writes, store.idle_from()), (0, SimTime(100)));
}

/// A loop device over a file, detached when it goes.
struct Loop(String);

impl Loop {
    fn new(file: &Path) -> Result<Self, String> {
        let out = Process::new("losetup")
            .args(["--find", "--show"])
            .arg(file)
            .output()
            .map_err(|e| e.to_string())?;
        if !out.status.success() {
            return Err(String::from_utf8_lossy(&out.stderr).trim().to_owned());
        }
        Ok(Self(String::from_utf8_lossy(&out.stdout).trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        Process::new("losetup").args(["--detach", &self.0]).status().ok();
    }
}

#[test]
fn a_block_device_is_a_store_too() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = folder.path().join("below");
    drop(FileStore::create(&file, 4 * SIZE, FileOptions::default()).unwrap());
    let device = match Loop::new(&file) {
        Ok(device) => device,
        Err(why) => {
            eprintln!("skipped: no loop device: {why}");
            return;
        }
    };
    let path = Path::new(&device.0);
    for is_direct in [false, true] {
        holds_what_was_written(path, FileOptions { is_direct, ..FileOptions::default() });
    }
    let mut store = FileStore::open(path, FileOptions::default()).unwrap();
    assert_eq!((store.is_block_device(), store.capacity_bytes()), (true, 4 * SIZE));
    write(&mut store, 0, &vec![7; 65_536]).unwrap();
    simple(&mut store, Op::Trim, 0, 65_536).unwrap();
    assert_eq!(read(&mut store, 0, 65_536), vec![0; 65_536], "a loop device zeroes what it discards");
    let error = FileStore::open(path, FileOptions::default()).unwrap_err();
    assert!(
        matches!(error, FileError::InUse { by: "the kernel (mounted, or part of another device)", .. }),
        "{error}"
    );
    assert!(
        nandscape_files::os::discard(&std::fs::File::options().write(true).open(path).unwrap(), 0, 4096)
            .unwrap()
    );
}

/// What a store said, without its path.
fn is_gone(outcome: &Result<(), StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Gone { .. }))
}

#[test]
fn what_was_cut_off_a_file_in_use_is_an_error_and_never_zeroes() {
    for first in [Op::Read, Op::Write, Op::Flush, Op::Trim, Op::WriteZeroes] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let mut store = FileStore::create(&path, SIZE, FileOptions::default()).unwrap();
        write(&mut store, 0, &vec![7; SIZE as usize]).unwrap();
        assert_eq!(store.condition().unwrap(), Condition::Whole);
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(4096).unwrap();
        assert_eq!(store.condition().unwrap(), Condition::Shorter(4096));
        let mut data = vec![0; 4096];
        let payload = match first {
            Op::Read => Payload::Read(&mut data),
            Op::Write => Payload::Write(&[1; 4096]),
            _ => Payload::None,
        };
        // Behind the hole that a write would leave.
        let done = store.submit(command(first, SIZE - 4096, 4096), payload, SimTime(0)).map(drop);
        assert!(is_gone(&done), "{first:?}: {done:?}");
        // It stays so, whatever becomes of the file.
        file.set_len(SIZE).unwrap();
        for op in [Op::Read, Op::Write, Op::Flush] {
            let mut data = vec![0; 512];
            let payload = match op {
                Op::Read => Payload::Read(&mut data),
                Op::Write => Payload::Write(&[1; 512]),
                _ => Payload::None,
            };
            let done = store.submit(command(op, 8192, 512), payload, SimTime(0)).map(drop);
            assert!(is_gone(&done), "{first:?}, then {op:?}: {done:?}");
        }
    }
}

#[test]
fn a_hole_that_a_write_left_behind_is_an_error_for_the_next_read_and_flush() {
    for second in [Op::Read, Op::Flush] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let mut store = FileStore::create(&path, SIZE, FileOptions::default()).unwrap();
        write(&mut store, 0, &vec![7; SIZE as usize]).unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
        let _ = write(&mut store, SIZE / 2, &[1; 4096]);
        let mut data = vec![0; 4096];
        let payload = if second == Op::Read { Payload::Read(&mut data) } else { Payload::None };
        let done = store.submit(command(second, SIZE / 4, 4096), payload, SimTime(0)).map(drop);
        assert!(is_gone(&done), "{second:?}: {done:?}");
    }
}

#[test]
fn a_file_that_keeps_its_space_has_all_of_it_and_is_for_its_owner_alone() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fast");
    let options = FileOptions { keeps_space: true, ..FileOptions::default() };
    let mut store = FileStore::create(&path, SIZE, options).unwrap();
    let found = std::fs::metadata(&path).unwrap();
    assert_eq!((found.mode() & 0o777, found.blocks() * 512 >= SIZE), (0o600, true));
    write(&mut store, 0, &[7; 8192]).unwrap();
    simple(&mut store, Op::Trim, 0, 8192).unwrap();
    simple(&mut store, Op::WriteZeroes, 4096, 4096).unwrap();
    assert!(std::fs::metadata(&path).unwrap().blocks() * 512 >= SIZE, "a trim gave space back");
    let bytes = read(&mut store, 0, 8192);
    assert!(bytes[4096..].iter().all(|byte| *byte == 0), "zeroes that were asked for");
    assert_eq!(store.condition().unwrap(), Condition::Whole);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(store.condition().unwrap(), Condition::Deleted);
}
