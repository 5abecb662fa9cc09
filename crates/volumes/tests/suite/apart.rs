//! Caches whose blocks are in a file of their own, beside the metadata.

use crate::support::{design, submit};
use nandscape_core::command::Payload;
use nandscape_core::{Op, SimTime};
use nandscape_volumes::{CacheFile, Making, Result, Serving, open_cache};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use tempfile::TempDir;

const BLOCK: u64 = 65_536;
const BLOCKS: u64 = 40;

struct Place {
    dir: TempDir,
}

impl Place {
    /// A disk of zeroes, and no cache.
    fn new() -> Self {
        let this = Self { dir: TempDir::new().unwrap() };
        fs::write(this.path("disk"), vec![0; 4 << 20]).unwrap();
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn create(
        &self,
        first: &str,
        data: &str,
        bytes: Option<u64>,
        preset: &str,
        replace: bool,
    ) -> Result<CacheFile> {
        let path = self.path(data);
        let with = Making { data: Some(&path), replace, ..Making::default() };
        let design = design(&[("preset", preset), ("block", "64KiB"), ("cleaning", "none")]);
        CacheFile::create(&self.path(first), bytes, &design, with).map(|(cache, _)| cache)
    }

    /// `meta` and `data` with room for the label and so many blocks, and the disk behind them.
    fn cached(preset: &str) -> Self {
        let this = Self::new();
        let mut cache = this.create("meta", "data", Some((BLOCKS + 1) * BLOCK), preset, false).unwrap();
        assert_eq!(cache.look().unwrap().0.superblock.shape.slots, BLOCKS as u32);
        cache.attach(&this.path("disk"), "disk", None, false).unwrap();
        this
    }

    fn serve(&self) -> Serving {
        open_cache(&self.path("meta"), &[], false).unwrap()
    }

    fn refused(&self) -> String {
        open_cache(&self.path("meta"), &[], false).map(drop).unwrap_err().to_string()
    }
}

/// Bytes that a block is filled with.
fn bytes(block: u64) -> Vec<u8> {
    [0x5A, 0xC3, block as u8, 0x11].repeat(BLOCK as usize / 4)
}

fn write(serving: &mut Serving, blocks: std::ops::Range<u64>) {
    for block in blocks {
        submit(serving, BLOCK, Op::Write, block, Payload::Write(&bytes(block))).unwrap();
    }
    submit(serving, BLOCK, Op::Flush, 0, Payload::None).unwrap();
}

fn check(serving: &mut Serving, blocks: std::ops::Range<u64>) {
    for block in blocks {
        let mut found = vec![0; BLOCK as usize];
        submit(serving, BLOCK, Op::Read, block, Payload::Read(&mut found)).unwrap();
        assert!(found == bytes(block), "block {block}");
    }
}

fn has(path: &PathBuf, what: &[u8]) -> bool {
    fs::read(path).unwrap().windows(what.len()).any(|window| window == what)
}

#[test]
fn flushed_blocks_survive_a_kill_with_metadata_and_blocks_in_two_files() {
    for preset in ["nandscape", "dm-cache", "bcache", "flashcache"] {
        let place = Place::cached(preset);
        let mut serving = place.serve();
        write(&mut serving, 0..BLOCKS / 2);
        drop(serving);
        // A block goes to a cache of mainline dm-cache when it was wanted more often.
        let is_cached = preset != "dm-cache";
        assert_eq!(has(&place.path("data"), &bytes(3)[..512]), is_cached, "{preset}");
        assert!(!has(&place.path("meta"), &bytes(3)[..512]), "{preset}: no block is beside the metadata");
        assert_eq!(has(&place.path("disk"), &bytes(3)[..512]), !is_cached, "{preset}: nothing was cleaned");
        let mut serving = place.serve();
        check(&mut serving, 0..BLOCKS / 2);
        write(&mut serving, 10..BLOCKS);
        serving.handle.close_next();
        serving.subsystem.shutdown(SimTime(1)).unwrap();
        drop(serving);
        let mut cache = CacheFile::open(&place.path("meta"), false).unwrap();
        cache.clean(None, &[], &mut |_, _| {}).unwrap();
        for block in 0..BLOCKS {
            let mut found = vec![0; BLOCK as usize];
            File::open(place.path("disk")).unwrap().read_exact_at(&mut found, block * BLOCK).unwrap();
            assert!(found == bytes(block), "{preset}: block {block} is on the disk");
        }
        cache.detach("disk", None, &mut |_, _| {}).unwrap();
    }
}

#[test]
fn metadata_and_blocks_take_what_they_are_said_to_at_any_size_of_either() {
    let place = Place::new();
    for preset in ["nandscape", "dm-cache-fiu", "flashcache", "enhanceio", "bcache", "dm-cache"] {
        for (bytes, size) in
            [(4 << 20, ""), ((9 << 20) + 4096, ""), ((70 << 20) - 8192, ""), (8 << 20, "4MiB")]
        {
            let [first, data] = ["meta", "data"].map(|name| place.path(name));
            let with = Making { data: Some(&data), is_sparse: true, ..Making::default() };
            let (mut cache, made) = CacheFile::create(
                &first,
                Some(bytes),
                &design(&[("preset", preset), ("mode", "write-through"), ("size", size)]),
                with,
            )
            .unwrap();
            let slots = u64::from(made.shape.slots) * u64::from(made.shape.block_bytes);
            assert!(
                slots <= bytes && (slots + (1 << 20) > bytes || size == "4MiB" && slots == 4 << 20),
                "{slots}"
            );
            assert_eq!(cache.look().unwrap().0.superblock.shape.slots, made.shape.slots);
            drop(cache);
            assert_eq!(fs::metadata(&first).unwrap().len() + slots, made.watch + 8192, "{preset} {bytes}");
            drop(CacheFile::open(&first, true).unwrap());
            fs::remove_file(first).unwrap();
            fs::remove_file(data).unwrap();
        }
    }
}

#[test]
fn the_blocks_of_another_cache_are_refused_and_so_is_a_file_that_lacks_some() {
    let place = Place::cached("dm-cache");
    drop(place.serve());
    let whole = fs::read(place.path("data")).unwrap();
    let other = Place::cached("dm-cache");
    fs::copy(other.path("data"), place.path("data")).unwrap();
    let expected = format!("expected the blocks of the cache {}", place.path("meta").display());
    assert!(place.refused().contains(&expected), "{}", place.refused());
    fs::write(place.path("data"), &whole[..whole.len() - 4096]).unwrap();
    assert!(place.refused().contains(&expected), "{}", place.refused());
    fs::remove_file(place.path("data")).unwrap();
    assert!(place.refused().contains("/data: open: No such file"), "{}", place.refused());
    fs::write(place.path("data"), &whole).unwrap();
    let named = CacheFile::open(&place.path("data"), false).unwrap_err().to_string();
    assert!(
        named.contains("/data: has the blocks of a cache: expected the file with its metadata"),
        "{named}"
    );
    drop(place.serve());
}

#[test]
fn a_cache_in_two_files_is_made_as_a_whole_and_once() {
    let place = Place::new();
    let failed = |first: &str, data: &str, bytes, preset| {
        place.create(first, data, bytes, preset, false).map(drop).unwrap_err().to_string()
    };
    assert!(failed("one", "one", Some(1 << 20), "nandscape").contains("expected two files"));
    let small = failed("meta", "data", Some(BLOCK), "nandscape");
    assert!(small.contains("/data: ") && small.contains("131072"), "{small}");
    fs::write(place.path("used"), vec![1; 1 << 20]).unwrap();
    assert!(failed("meta", "used", None, "nandscape").contains("/used: not empty"));
    fs::write(place.path("tiny"), vec![0; 8192]).unwrap();
    let small = failed("tiny", "data", Some(1 << 20), "nandscape");
    assert!(small.contains("/tiny: ") && small.contains("8192"), "{small}");
    assert!(failed("tiny", "none", None, "nandscape").contains("/none: open: No such file"));
    for name in ["one", "meta", "data", "none"] {
        assert!(!place.path(name).exists(), "{name}: what cannot be made leaves no file");
    }
    let mut cache = place.create("meta", "used", None, "nandscape", true).unwrap();
    let twice = cache.attach(&place.path("used"), "used", None, false).unwrap_err().to_string();
    assert!(twice.contains("the cache itself"), "{twice}");
    drop(cache);
    assert!(failed("meta", "data", Some(1 << 20), "nandscape").contains("a cache is there already"));
    assert!(!place.path("data").exists());
}

#[test]
fn a_cache_whose_blocks_are_gone_is_given_up_and_its_metadata_say_so() {
    let place = Place::cached("nandscape");
    let mut serving = place.serve();
    write(&mut serving, 0..4);
    File::options().write(true).open(place.path("data")).unwrap().set_len(BLOCK).unwrap();
    let mut found = vec![0; BLOCK as usize];
    submit(&mut serving, BLOCK, Op::Read, 0, Payload::Read(&mut found)).unwrap_err();
    submit(&mut serving, BLOCK, Op::Read, 20, Payload::Read(&mut found)).unwrap();
    submit(&mut serving, BLOCK, Op::Write, 20, Payload::Write(&bytes(20))).unwrap();
    let lost = submit(&mut serving, BLOCK, Op::Flush, 0, Payload::None).unwrap_err();
    assert!(lost.contains("262144 bytes at offset 0 were lost with the cache device"), "{lost}");
    submit(&mut serving, BLOCK, Op::Flush, 0, Payload::None).unwrap();
    assert!(has(&place.path("disk"), &bytes(20)[..512]), "requests go to the disk");
    serving.handle.close_next();
    let _ = serving.subsystem.shutdown(SimTime(1));
    drop(serving);
    let mark = fs::read_to_string(nandscape_volumes::mark_of(&place.path("disk"))).unwrap();
    assert!(mark.contains("given_up"), "{mark}");
    let error = place.refused();
    assert!(error.contains("/data: expected the blocks of the cache"), "{error}");
}
