//! Files of a store of objects through a mount: what any other file system would answer.

use crate::mount::{OPTIONS, mount};
use nandscape_core::rng::{Rng, below, seeded};
use nandscape_engine::{Clock, Engine};
use nandscape_fuse::MountOptions;
use nandscape_stack::{Typed, build_storing};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn engine() -> Arc<Engine> {
    let mut typed = Typed::new();
    typed.merge_preset("generic-tlc").unwrap();
    typed.set_stack("zone-files").unwrap();
    for pair in [
        "device.channels=2",
        "device.dies_per_channel=1",
        "device.blocks_per_plane=48",
        "device.pages_per_block=32",
    ] {
        typed.set_pair(pair).unwrap();
    }
    Arc::new(Engine::new(build_storing(&typed.check().unwrap()).unwrap(), Clock::free()))
}

/// What is below a directory, by path: kind, mode, links (of files), size, bytes or target.
fn all(root: &Path) -> BTreeMap<PathBuf, (u32, u64, Vec<u8>)> {
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
            found.insert(path.strip_prefix(root).unwrap().to_owned(), (meta.mode(), links, bytes));
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
    Link(PathBuf, PathBuf),
    Symlink(PathBuf, PathBuf),
    Write(PathBuf, u64, Vec<u8>),
    Truncate(PathBuf, u64),
    Chmod(PathBuf, u32),
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
    match below(rng, 14) {
        0 | 1 => Call::Create(one),
        2 | 3 => Call::Mkdir(one),
        4 => Call::Unlink(one),
        5 => Call::Rmdir(one),
        6 | 7 => Call::Rename(one, other),
        8 => Call::Link(one, other),
        9 => Call::Symlink(one, other),
        10 => Call::Truncate(one, offset),
        11 => Call::Chmod(one, 0o600 + (offset as u32 & 0o77)),
        12 => Call::Orphan(one, data),
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
    let mut rng = seeded(3);
    for round in 0..6 {
        let options = MountOptions { gathers_writes: round % 2 == 1, ..OPTIONS };
        let Some(mut mount) = mount(&engine, served, options) else { return };
        assert_eq!(mount.notes(), [] as [String; 0], "nothing is in disorder after an unmount");
        for step in 0..500 {
            let call = random(&mut rng);
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
