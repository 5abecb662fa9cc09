//! Files of a store of objects through a mount: what any other file system would answer.

use crate::mount::{OPTIONS, mount};
use nandscape_core::Subsystem;
use nandscape_core::rng::{Rng, below, seeded};
use nandscape_engine::{Clock, Engine};
use nandscape_fuse::{MountOptions, Quota};
use nandscape_stack::{Typed, build_storing};
use rustix::fs::{CWD, FallocateFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

fn engine() -> Arc<Engine> {
    engine_of("zone-files")
}

fn engine_of(stack: &str) -> Arc<Engine> {
    Arc::new(Engine::new(store_of(stack, &[]), Clock::free()))
}

/// A stack that stores objects, on a small device, with more keys.
pub fn store_of(stack: &str, more: &[&str]) -> Box<dyn Subsystem + Send> {
    let mut typed = Typed::new();
    typed.merge_preset("generic-tlc").unwrap();
    typed.set_stack(stack).unwrap();
    let device = [
        "device.channels=2",
        "device.dies_per_channel=1",
        "device.blocks_per_plane=48",
        "device.pages_per_block=32",
    ];
    for pair in device.iter().chain(more) {
        typed.set_pair(pair).unwrap();
    }
    build_storing(&typed.check().unwrap()).unwrap()
}

/// Extended attributes of a file that users can set.
fn extended(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut names = [0; 4096];
    let Ok(len) = rustix::fs::llistxattr(path, &mut names[..]) else { return BTreeMap::new() };
    let names = names[..len].split(|byte| *byte == 0).map(|name| String::from_utf8_lossy(name).into_owned());
    let of_users = names.filter(|name| name.starts_with("user."));
    of_users
        .map(|name| {
            let mut value = [0; 4096];
            let len = rustix::fs::lgetxattr(path, &*name, &mut value[..]).unwrap();
            (name, value[..len].to_vec())
        })
        .collect()
}

/// What a file is: mode, owner, links (of files), bytes or target, extended attributes.
type Found = (u32, u32, u64, Vec<u8>, BTreeMap<String, Vec<u8>>);

/// What is below a directory, by path.
fn all(root: &Path) -> BTreeMap<PathBuf, Found> {
    let (mut found, mut dirs) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let (links, bytes) = if meta.is_dir() {
                dirs.push(path.clone());
                (0, Vec::new())
            } else if meta.is_symlink() {
                (meta.nlink(), fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes())
            } else {
                let bytes = fs::read(&path).unwrap();
                assert_eq!(meta.len(), bytes.len() as u64, "{}", path.display());
                (meta.nlink(), bytes)
            };
            let file = (meta.mode(), meta.uid(), links, bytes, extended(&path));
            found.insert(path.strip_prefix(root).unwrap().to_owned(), file);
        }
    }
    found
}

/// A call that both file systems get.
#[derive(Debug)]
enum Call {
    Create(PathBuf),
    Mkdir(PathBuf),
    Unlink(PathBuf),
    Rmdir(PathBuf),
    Rename(PathBuf, PathBuf),
    Exchange(PathBuf, PathBuf),
    Link(PathBuf, PathBuf),
    Symlink(PathBuf, PathBuf),
    Write(PathBuf, u64, Vec<u8>),
    Truncate(PathBuf, u64),
    Chmod(PathBuf, u32),
    Chown(PathBuf, u32),
    /// With the flags of setxattr(2).
    SetExtended(PathBuf, String, Vec<u8>, u32),
    RemoveExtended(PathBuf, String),
    /// Opened, unlinked, written, read and closed.
    Orphan(PathBuf, Vec<u8>),
}

fn random(rng: &mut impl Rng) -> Call {
    let mut path = || {
        let mut path = PathBuf::new();
        for _ in 0..=below(rng, 3) {
            path.push(["a", "b", "c", "d"][below(rng, 4) as usize]);
        }
        path
    };
    let (one, other) = (path(), path());
    let (offset, len) = (below(rng, 40_000), 1 + below(rng, 30_000));
    let mut data = vec![0; len as usize];
    rng.fill_bytes(&mut data);
    let extended = format!("user.{}", below(rng, 3));
    match below(rng, 19) {
        0 | 1 => Call::Create(one),
        2 | 3 => Call::Mkdir(one),
        4 => Call::Unlink(one),
        5 => Call::Rmdir(one),
        6 | 7 => Call::Rename(one, other),
        8 => Call::Link(one, other),
        9 => Call::Symlink(one, other),
        10 => Call::Truncate(one, offset),
        11 => Call::Chmod(one, 0o600 | (offset as u32 & 0o6077)),
        12 => Call::Orphan(one, data),
        13 | 14 => Call::Exchange(one, other),
        15 => Call::SetExtended(one, extended, data[..data.len().min(300)].to_vec(), offset as u32 % 3),
        16 => Call::RemoveExtended(one, extended),
        17 => Call::Chown(one, offset as u32 % 3),
        _ => Call::Write(one, offset, data),
    }
}

impl Call {
    fn apply(&self, root: &Path) -> io::Result<()> {
        match self {
            Self::Create(path) => {
                OpenOptions::new().create_new(true).write(true).open(root.join(path)).map(drop)
            }
            Self::Mkdir(path) => fs::create_dir(root.join(path)),
            Self::Unlink(path) => fs::remove_file(root.join(path)),
            Self::Rmdir(path) => fs::remove_dir(root.join(path)),
            Self::Rename(path, to) => fs::rename(root.join(path), root.join(to)),
            Self::Exchange(path, to) => {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                Ok(rustix::fs::renameat_with(CWD, root.join(path), CWD, root.join(to), flags)?)
            }
            Self::Link(path, to) => fs::hard_link(root.join(path), root.join(to)),
            Self::Symlink(path, to) => symlink(path, root.join(to)),
            Self::Write(path, offset, data) => {
                OpenOptions::new().write(true).open(root.join(path))?.write_all_at(data, *offset)
            }
            Self::Truncate(path, size) => {
                OpenOptions::new().write(true).open(root.join(path))?.set_len(*size)
            }
            Self::Chmod(path, mode) => {
                fs::set_permissions(root.join(path), fs::Permissions::from_mode(*mode))
            }
            Self::Chown(path, uid) => std::os::unix::fs::chown(root.join(path), Some(*uid), None),
            Self::SetExtended(path, name, value, flags) => {
                let flags = rustix::fs::XattrFlags::from_bits_retain(*flags);
                Ok(rustix::fs::setxattr(root.join(path), name, value, flags)?)
            }
            Self::RemoveExtended(path, name) => Ok(rustix::fs::removexattr(root.join(path), name)?),
            Self::Orphan(path, data) => {
                let file = OpenOptions::new().read(true).write(true).open(root.join(path))?;
                fs::remove_file(root.join(path))?;
                file.write_all_at(data, 100)?;
                let mut back = vec![0; data.len()];
                file.read_exact_at(&mut back, 100)?;
                assert_eq!(back, *data);
                Ok(())
            }
        }
    }
}

#[test]
fn random_calls_answer_and_leave_what_they_do_on_another_file_system() {
    let (served, plain) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (served, plain) = (served.path(), plain.path());
    let engine = engine();
    let keeps_extended = rustix::fs::setxattr(plain, "user.a", b"1", rustix::fs::XattrFlags::empty()).is_ok();
    let mut rng = seeded(3);
    for round in 0..6 {
        let options = MountOptions { gathers_writes: round % 2 == 1, ..OPTIONS };
        let Some(mut mount) = mount(&engine, served, options) else { return };
        assert_eq!(mount.notes(), [] as [String; 0], "nothing is in disorder after an unmount");
        for step in 0..500 {
            let call = random(&mut rng);
            // Of /tmp, on some machines.
            if !keeps_extended && matches!(call, Call::SetExtended(..) | Call::RemoveExtended(..)) {
                continue;
            }
            let [ours, theirs] = [served, plain].map(|root| call.apply(root).map_err(|e| e.raw_os_error()));
            assert_eq!(ours, theirs, "round {round}, step {step}: {call:?}");
        }
        assert_eq!(all(served), all(plain), "round {round}");
        mount.unmount().unwrap();
    }
    let read_only = MountOptions { is_read_only: true, ..OPTIONS };
    let Some(_mount) = mount(&engine, served, read_only) else { return };
    assert_eq!(all(served), all(plain));
    let refused = File::create(served.join("new")).map(drop).map_err(|error| error.raw_os_error());
    assert_eq!(refused, Err(Some(libc::EROFS)));
}

#[test]
fn a_full_store_refuses_writes_whole_and_space_comes_back() {
    let served = tempfile::tempdir().unwrap();
    let engine = engine();
    let Some(_mount) = mount(&engine, served.path(), OPTIONS) else { return };
    let room = || {
        let stat = rustix::fs::statvfs(served.path()).unwrap();
        stat.f_bavail * stat.f_frsize
    };
    let (whole, chunk) = (room(), vec![7; 100_000]);
    let mut written = 0;
    for round in 0..3 {
        let path = served.path().join(format!("file{round}"));
        let file = File::create(&path).unwrap();
        let mut len = 0;
        let error = loop {
            match file.write_at(&chunk, len) {
                Ok(more) => len += more as u64,
                Err(error) => break error,
            }
        };
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
        assert!(len >= whole - whole / 50, "round {round}: {len} bytes of {whole} that were free");
        assert_eq!(path.metadata().unwrap().len(), len);
        let mut back = Vec::new();
        File::open(&path).unwrap().read_to_end(&mut back).unwrap();
        assert!(back.len() as u64 == len && back.iter().all(|byte| *byte == 7));
        written += len;
        fs::remove_file(&path).unwrap();
        drop(file);
        // What was closed last is deleted a moment later.
        for _ in 0..1000 {
            if room() >= whole - (1 << 16) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(room() >= whole - (1 << 16), "round {round}: {} free of {whole}", room());
    }
    assert!(written > 2 * whole);
}

#[test]
fn a_removed_directory_that_is_open_is_empty_and_has_no_links() {
    let served = tempfile::tempdir().unwrap();
    let Some(_mount) = mount(&engine(), served.path(), OPTIONS) else { return };
    let (gone, other) = (served.path().join("gone"), served.path().join("other"));
    for is_replaced in [false, true] {
        fs::create_dir(&gone).unwrap();
        let dir = File::open(&gone).unwrap();
        assert_eq!(dir.metadata().unwrap().nlink(), 2);
        if is_replaced {
            fs::create_dir(&other).unwrap();
            fs::rename(&other, &gone).unwrap();
        } else {
            fs::remove_dir(&gone).unwrap();
        }
        // By its descriptor, as `ls .` of whoever is in it.
        let entries = rustix::fs::Dir::read_from(&dir).unwrap();
        let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().to_owned()).collect();
        assert!(names.is_empty(), "replaced {is_replaced}: {names:?}");
        let stat = dir.metadata().unwrap();
        assert!(stat.is_dir() && stat.nlink() == 0, "{stat:?}");
        dir.sync_all().unwrap();
        let inside = rustix::fs::openat(&dir, "x", rustix::fs::OFlags::CREATE, 0o600.into()).map(drop);
        assert_eq!(inside, Err(Errno::NOENT));
    }
}

#[test]
fn times_before_1970_are_kept_with_their_nanoseconds() {
    let served = tempfile::tempdir().unwrap();
    let Some(_mount) = mount(&engine(), served.path(), OPTIONS) else { return };
    let file = File::create(served.path().join("old")).unwrap();
    for nanoseconds in [0, 1, 250_000_000, 1_000_000_000, 1_500_000_000, 86_400_999_999_999] {
        let time = UNIX_EPOCH - Duration::from_nanos(nanoseconds);
        file.set_times(FileTimes::new().set_modified(time).set_accessed(time)).unwrap();
        let found = file.metadata().unwrap();
        assert_eq!((found.modified().unwrap(), found.accessed().unwrap()), (time, time), "{nanoseconds}");
    }
}

#[test]
fn what_lies_beyond_the_largest_file_is_too_large_and_not_out_of_room() {
    let served = tempfile::tempdir().unwrap();
    for stack in ["zone-files", "oftl"] {
        let Some(_mount) = mount(&engine_of(stack), served.path(), OPTIONS) else { return };
        let file = File::create(served.path().join("file")).unwrap();
        let end = 1 << 50;
        let number = |done: io::Result<usize>| done.unwrap_err().raw_os_error();
        assert_eq!(number(file.write_at(b"x", end)), Some(libc::EFBIG), "{stack}");
        assert_eq!(number(file.set_len(end).map(|()| 0)), Some(libc::EFBIG), "{stack}");
        let reserved = rustix::fs::fallocate(&file, FallocateFlags::empty(), end, 1);
        assert!(matches!(reserved, Err(Errno::FBIG | Errno::OPNOTSUPP)), "{stack}: {reserved:?}");
        assert_eq!(file.metadata().unwrap().len(), 0);
    }
}

#[test]
fn files_of_a_user_take_no_more_than_the_quota() {
    const LIMIT: u64 = 1 << 20;
    let served = tempfile::tempdir().unwrap();
    let engine = engine();
    let uid = rustix::process::geteuid().as_raw();
    // The root directory is a file of this user, too.
    let quotas = BTreeMap::from([(uid, Quota { bytes: Some(LIMIT), files: Some(4) })]);
    let options = MountOptions { quotas, ..OPTIONS };
    let path = |name: &str| served.path().join(name);
    let code = |outcome: io::Result<()>| outcome.map_err(|error| error.raw_os_error().unwrap());
    for round in 0..2 {
        let Some(mut mount) = mount(&engine, served.path(), options.clone()) else { return };
        let note = &mount.notes()[0];
        let known = if round == 0 { "of 1 MiB and 1 of 4 files" } else { "of 1 MiB and 4 of 4 files" };
        assert!(note.starts_with(&format!("user {uid} has ")) && note.ends_with(known), "{note}");
        if round == 0 {
            let [a, b] = ["a", "b"].map(|name| File::create(path(name)).unwrap());
            let mut len = 0;
            while b.write_all_at(&vec![7; 5_000], len).is_ok() {
                len += 5_000;
            }
            assert!((LIMIT * 9 / 10..LIMIT).contains(&len), "{len} bytes");
            assert_eq!(code(a.write_all_at(&vec![7; 40_000], 0)), Err(libc::EDQUOT));
            assert_eq!(path("a").metadata().unwrap().len(), 0, "nothing of it is written");
            // What is there can be written again, and what is given up comes back.
            b.write_all_at(&vec![8; 100_000], 3).unwrap();
            b.set_len(len - 400_000).unwrap();
            a.write_all_at(&vec![7; 300_000], 0).unwrap();
            fs::create_dir(path("c")).unwrap();
            assert_eq!(code(File::create(path("d")).map(drop)), Err(libc::EDQUOT));
            assert_eq!(code(fs::create_dir(path("d"))), Err(libc::EDQUOT));
        } else {
            // Another user has no limit, and what is given to one is not counted.
            let file = OpenOptions::new().write(true).open(path("a")).unwrap();
            assert_eq!(code(file.write_all_at(&vec![7; 400_000], 300_000)), Err(libc::EDQUOT));
            if uid == 0 {
                std::os::unix::fs::chown(path("a"), Some(1), None).unwrap();
                file.write_all_at(&vec![7; 900_000], 300_000).unwrap();
                let back = std::os::unix::fs::chown(path("a"), Some(0), None);
                assert_eq!(code(back), Err(libc::EDQUOT));
                assert_eq!(path("a").metadata().unwrap().uid(), 1);
            }
            fs::remove_file(path("b")).unwrap();
            if uid == 0 {
                std::os::unix::fs::chown(path("a"), Some(0), None).unwrap_err();
                file.set_len(500_000).unwrap();
                std::os::unix::fs::chown(path("a"), Some(0), None).unwrap();
            }
        }
        mount.unmount().unwrap();
    }
}

#[test]
fn what_is_allocated_can_be_written_whatever_else_is() {
    let served = tempfile::tempdir().unwrap();
    let path = |name: &str| served.path().join(name);
    let allocate =
        |file: &File, flags, offset, len| rustix::fs::fallocate(file, flags, offset, len).map(drop);
    let (plain, keep) = (FallocateFlags::empty(), FallocateFlags::KEEP_SIZE);
    for stack in ["oftl", "zone-files"] {
        let engine = engine_of(stack);
        let Some(_mount) = mount(&engine, served.path(), OPTIONS) else { return };
        let [a, b] = ["a", "b"].map(|name| File::create(path(name)).unwrap());
        let len = 3_000_000;
        if stack == "zone-files" {
            assert_eq!(allocate(&a, plain, 0, len), Err(Errno::OPNOTSUPP));
            assert_eq!(path("a").metadata().unwrap().len(), 0);
            continue;
        }
        allocate(&a, plain, 0, len).unwrap();
        assert_eq!(allocate(&a, plain, 0, 1 << 40), Err(Errno::NOSPC));
        assert_eq!(allocate(&a, keep, len, 1000), Err(Errno::OPNOTSUPP));
        let found = path("a").metadata().unwrap();
        assert!(found.len() == len && found.blocks() * 512 >= len, "{} of {len}", found.blocks() * 512);
        let chunk = vec![7; 100_000];
        let mut filled = 0;
        while b.write_all_at(&chunk, filled).is_ok() {
            filled += chunk.len() as u64;
        }
        assert_eq!(fs::read(path("a")).unwrap(), vec![0; len as usize]);
        for at in (0..len).step_by(chunk.len()) {
            a.write_all_at(&chunk, at).unwrap();
        }
        assert_eq!(fs::read(path("a")).unwrap(), vec![7; len as usize]);
        allocate(&a, keep, 0, len).unwrap();
    }
}
