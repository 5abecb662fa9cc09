//! Disks that come to a cache in memory and leave it while it is served.

use crate::support::design;
use nandscape_core::command::Payload;
use nandscape_core::{BlockCommand, CacheControl, Extent, Hint, Op, SimTime};
use nandscape_volumes::{CacheFile, Making, Serving, cache_in_memory};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const BLOCK: u64 = 4096;

fn disk(dir: &TempDir, name: &str, blocks: u64) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, vec![name.as_bytes()[0]; (blocks * BLOCK) as usize]).unwrap();
    path
}

fn control(serving: &mut Serving) -> &mut dyn CacheControl {
    serving.subsystem.control().cache.unwrap()
}

fn submit(
    serving: &mut Serving,
    namespace: u32,
    op: Op,
    block: u64,
    payload: Payload<'_>,
) -> Result<(), String> {
    let command = BlockCommand::new(op, Extent::new(block * BLOCK, BLOCK), Hint::default());
    let done = serving.subsystem.submit(namespace, command.into(), payload, SimTime::ZERO);
    done.map(drop).map_err(|error| error.to_string())
}

fn byte(serving: &mut Serving, namespace: u32, block: u64) -> u8 {
    let mut found = vec![0; BLOCK as usize];
    submit(serving, namespace, Op::Read, block, Payload::Read(&mut found)).unwrap();
    found[7]
}

fn stat(serving: &Serving) -> nandscape_volumes::CacheStat {
    let report = serving.subsystem.inspect().cache().unwrap();
    serving.handle.stat(&report)
}

#[test]
fn disks_come_and_go_and_leave_nothing_of_theirs_to_the_next_one() {
    let dir = TempDir::new().unwrap();
    let (a, b, c) = (disk(&dir, "a", 100), disk(&dir, "b", 50), disk(&dir, "c", 25));
    let mut serving = cache_in_memory(1 << 20, &design(&[("preset", "rapidcache")]), &[], false).unwrap();
    assert_eq!(control(&mut serving).attach(&a, "a").unwrap(), 0);
    assert_eq!(control(&mut serving).attach(&b, "b").unwrap(), 1);
    for block in 0..20 {
        assert_eq!((byte(&mut serving, 0, block), byte(&mut serving, 1, block)), (b'a', b'b'));
    }
    submit(&mut serving, 0, Op::Write, 3, Payload::Write(&[9; BLOCK as usize])).unwrap();
    let seen = stat(&serving);
    assert_eq!(seen.volumes.iter().map(|volume| volume.blocks).collect::<Vec<_>>(), [20, 20]);
    control(&mut serving).detach("a", SimTime(1)).unwrap();
    assert_eq!(fs::read(&a).unwrap()[(3 * BLOCK) as usize], 9);
    assert_eq!(serving.subsystem.namespaces()[0].capacity_bytes, 0);
    for op in [Op::Read, Op::Write, Op::Trim] {
        let gone = submit(&mut serving, 0, op, 3, Payload::None).unwrap_err();
        assert!(gone.contains("a volume that is still attached"), "{gone}");
    }
    assert!(!serving.subsystem.allocation(0, Extent::new(0, BLOCK)).is_mapped);
    assert_eq!(byte(&mut serving, 1, 7), b'b');
    let seen = stat(&serving);
    assert_eq!(
        seen.volumes.iter().map(|volume| (&*volume.name, volume.blocks)).collect::<Vec<_>>(),
        [("b", 20)]
    );
    assert_eq!((seen.gauges.used, seen.settings.is_empty()), (20, false));
    // Its number goes to the next one, which has nothing of its blocks.
    assert_eq!(control(&mut serving).attach(&c, "a").unwrap(), 0);
    assert_eq!(serving.subsystem.namespaces()[0].capacity_bytes, 25 * BLOCK);
    assert_eq!((0..25).map(|block| byte(&mut serving, 0, block)).collect::<Vec<_>>(), [b'c'; 25]);
    let beyond = submit(&mut serving, 0, Op::Read, 25, Payload::Read(&mut [0; BLOCK as usize])).unwrap_err();
    assert!(beyond.contains("expected"), "{beyond}");
    serving.subsystem.check_invariants();
    serving.handle.close_next();
    serving.subsystem.shutdown(SimTime(2)).unwrap();
    drop(serving);
    assert!(fs::read_dir(dir.path()).unwrap().count() == 3, "no stamp is left beside a disk");
}

#[test]
fn what_cannot_come_or_go_is_refused_and_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let (a, b) = (disk(&dir, "a", 100), disk(&dir, "b", 50));
    let mut serving = cache_in_memory(1 << 20, &design(&[("preset", "rapidcache")]), &[], false).unwrap();
    let names = |serving: &Serving| stat(serving).volumes.len();
    control(&mut serving).attach(&a, "a").unwrap();
    for (path, name, expected) in [
        (&*b, "a", "one that no other volume has"),
        (&*b, "-x", "1 to 32 letters"),
        (&*a, "other", "in use by another process"),
        (Path::new("/absent"), "b", "/absent: open: No such file"),
        (dir.path(), "b", "expected a file or a block device"),
    ] {
        let error = control(&mut serving).attach(path, name).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let error = control(&mut serving).detach("b", SimTime::ZERO).unwrap_err();
    assert!(error.contains("no volume 'b': expected one of a"), "{error}");
    assert_eq!((names(&serving), byte(&mut serving, 0, 9)), (1, b'a'));
    // A disk with a cache of its own, and a cache that keeps what it knows of its disks.
    let fast = dir.path().join("fast");
    let (mut cache, _) = CacheFile::create(&fast, Some(1 << 20), &design(&[]), Making::default()).unwrap();
    cache.attach(&b, "b", None, false).unwrap();
    drop(cache);
    let error = control(&mut serving).attach(&b, "b").unwrap_err();
    assert!(error.contains("the disk has a cache already"), "{error}");
    let mut other = nandscape_volumes::open_cache(&fast, &[], false).unwrap();
    for error in [
        control(&mut other).attach(&a, "a").unwrap_err(),
        control(&mut other).detach("b", SimTime::ZERO).unwrap_err(),
    ] {
        assert!(error.contains("/fast: a cache in a file: expected it not served"), "{error}");
    }
}
