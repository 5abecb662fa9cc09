//! The mount itself, where this machine has FUSE and lets us mount.

#![expect(clippy::print_stderr, reason = "a skipped test says why")]

use nandscape_engine::{Clock, Engine};
use nandscape_fuse::{Mount, MountError, MountOptions};
use nandscape_stack::{Typed, build_storing};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

pub const OPTIONS: MountOptions = MountOptions {
    is_read_only: false,
    gathers_writes: false,
    quotas: BTreeMap::new(),
    threads: 2,
    memory_bytes: 4 << 20,
};

fn engine(namespaces: u32) -> Arc<Engine> {
    engine_with(namespaces, Clock::free())
}

fn engine_with(namespaces: u32, clock: Clock) -> Arc<Engine> {
    let mut typed = Typed::new();
    typed.merge_preset("generic-tlc").unwrap();
    for pair in [
        "device.channels=2",
        "device.dies_per_channel=1",
        "device.blocks_per_plane=12",
        "device.pages_per_block=32",
    ] {
        typed.set_pair(pair).unwrap();
    }
    typed.set_pair(&format!("namespaces.count={namespaces}")).unwrap();
    Arc::new(Engine::new(build_storing(&typed.check().unwrap()).unwrap(), clock))
}

/// Mounts, or says why the test is skipped.
pub fn mount(engine: &Arc<Engine>, dir: &Path, options: MountOptions) -> Option<Mount> {
    if !Path::new("/dev/fuse").exists() {
        eprintln!("SKIP: /dev/fuse is absent");
        return None;
    }
    match Mount::start(engine, dir, options, Box::new(|_| ()), || ()) {
        Ok(mount) => Some(mount),
        Err(MountError::Mount { error, .. }) if !rustix::process::geteuid().is_root() => {
            eprintln!("SKIP: mounting is not allowed here: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn errno(outcome: io::Result<impl Sized>) -> Option<i32> {
    outcome.err().and_then(|error| error.raw_os_error())
}

#[test]
fn every_namespace_is_a_file_of_fixed_size_that_holds_what_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(2);
    let Some(mut mount) = mount(&engine, dir.path(), OPTIONS) else { return };
    let mut names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["ns1", "ns2"]);
    for (path, info) in mount.files().iter().zip(engine.namespaces()) {
        assert_eq!(fs::metadata(path).unwrap().len(), info.capacity_bytes, "{}", path.display());
    }

    let path = dir.path().join("ns2");
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let data: Vec<u8> = (0..3_000_000u32).map(|i| (i / 7) as u8).collect();
    file.write_all_at(&data, 12345).unwrap();
    file.sync_all().unwrap();
    let synchronous = OpenOptions::new().write(true).custom_flags(libc::O_DSYNC).open(&path).unwrap();
    let flushes = || engine.with(|subsystem, _| subsystem.inspect().host_counts(1).flushes);
    let before = flushes();
    synchronous.write_all_at(b"now", 5).unwrap();
    assert!(flushes() > before, "a synchronous write is flushed");
    let mut back = vec![0; data.len()];
    File::open(&path).unwrap().read_exact_at(&mut back, 12345).unwrap();
    assert!(back == data);

    let size = file.metadata().unwrap().len();
    assert_eq!(errno(file.set_len(size / 2)), Some(libc::EPERM));
    assert_eq!(errno(file.set_len(size)), None, "the size it has is no change");
    assert_eq!(errno(File::create(dir.path().join("other"))), Some(libc::EPERM));
    assert_eq!(errno(fs::remove_file(&path)), Some(libc::EPERM));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);

    // In use it stays and says so; free it goes, and is an empty directory again.
    assert!(matches!(mount.unmount(), Err(MountError::Busy { .. })));
    drop((file, synchronous));
    mount.unmount().unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_read_only_mount_opens_for_reading_only() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(1);
    let options = MountOptions { is_read_only: true, ..OPTIONS };
    let Some(mut mount) = mount(&engine, dir.path(), options) else { return };
    let path = dir.path().join("ns1");
    assert_eq!(errno(OpenOptions::new().write(true).open(&path)), Some(libc::EROFS));
    let mut data = [1; 4096];
    File::open(&path).unwrap().read_exact(&mut data).unwrap();
    assert_eq!(data, [0; 4096]);
    mount.unmount().unwrap();
}

#[test]
fn a_mount_that_another_takes_away_ends_and_a_served_directory_is_not_taken() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine(1);
    if mount(&engine, dir.path(), OPTIONS).is_none() {
        return;
    }
    let (sender, receiver) = channel();
    let ended = move || sender.send(()).unwrap();
    let mut mount = Mount::start(&engine, dir.path(), OPTIONS, Box::new(|_| ()), ended).unwrap();
    assert!(matches!(Mount::prepare(dir.path()), Err(MountError::Served { .. })));
    assert!(receiver.try_recv().is_err(), "it serves");
    nandscape_fuse::leftovers::unmount(dir.path(), false).unwrap();
    receiver.recv_timeout(Duration::from_secs(20)).expect("the end is told");
    mount.unmount().unwrap();
    assert!(Mount::prepare(dir.path()).is_ok());
}

#[test]
fn on_a_paced_clock_answers_come_when_the_device_would_have_given_them() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine_with(1, Clock::Paced);
    let Some(mut mount) = mount(&engine, dir.path(), OPTIONS) else { return };
    let file = OpenOptions::new().read(true).write(true).open(dir.path().join("ns1")).unwrap();
    let start = Instant::now();
    for page in 0..20 {
        file.write_all_at(&[7; 16384], page * 16384).unwrap();
    }
    // One after another, a program of 700 us each; without pacing all of them take a fraction of that.
    assert!(start.elapsed() >= Duration::from_millis(14), "{:?}", start.elapsed());
    let start = Instant::now();
    let mut data = [0; 16384];
    for page in 0..20 {
        file.read_exact_at(&mut data, page * 16384).unwrap();
        assert_eq!(data, [7; 16384]);
    }
    assert!(start.elapsed() >= Duration::from_micros(20 * 60), "{:?}", start.elapsed());
    drop(file);
    mount.unmount().unwrap();
}
