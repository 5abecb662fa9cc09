//! Images made by mke2fs: the map that grows from writes is that of the whole image, and damaged images do no
//! harm.
//!
//! Where mke2fs is absent the tests say so and end. `tests/fstream/check_classify.py` compares the map itself
//! with dumpe2fs and debugfs.

use nandscape_extfs::{ExtError, FileSystemMap, Kind, LiveMap, classify};
use proptest::prelude::Rng as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng};
use std::path::Path;
use std::process::Command;

/// Arguments of mke2fs and size in MiB.
const SHAPES: [(&str, &[&str], u32); 4] = [
    ("ext4", &["-t", "ext4", "-b", "4096", "-J", "size=4"], 24),
    ("ext3", &["-t", "ext3", "-b", "1024", "-J", "size=1"], 16),
    ("ext2", &["-t", "ext2", "-b", "2048"], 16),
    (
        "odd",
        &[
            "-t",
            "ext4",
            "-b",
            "1024",
            "-g",
            "2048",
            "-N",
            "2048",
            "-O",
            "meta_bg,^resize_inode,^flex_bg,inline_data,mmp,quota,^has_journal",
        ],
        16,
    ),
];

#[expect(clippy::print_stdout, reason = "what is skipped is said")]
fn mke2fs() -> Option<&'static str> {
    let found = ["mke2fs", "/sbin/mke2fs", "/usr/sbin/mke2fs"]
        .into_iter()
        .find(|path| Command::new(path).arg("-V").output().is_ok());
    if found.is_none() {
        println!("SKIP: mke2fs (package e2fsprogs) is absent");
    }
    found
}

/// A tree with directories and a file whose extents or indirect blocks need more than one level.
fn tree(root: &Path) {
    for number in 0..40 {
        let folder = root.join(format!("d{}/s{number}", number % 5));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("file"), vec![1; number * 100]).unwrap();
    }
    let big = root.join("big");
    std::fs::create_dir(&big).unwrap();
    for number in 0..300 {
        std::fs::write(big.join(format!("a-name-that-takes-room-{number:04}")), "").unwrap();
    }
    let holes = std::fs::File::create(root.join("holes")).unwrap();
    for number in 0..700 {
        std::os::unix::fs::FileExt::write_all_at(&holes, &[7; 2048], number * 8192).unwrap();
    }
}

fn image(mke2fs: &str, arguments: &[&str], mebibytes: u32) -> Vec<u8> {
    let scratch = tempfile::tempdir().unwrap();
    let (root, path) = (scratch.path().join("tree"), scratch.path().join("image"));
    std::fs::create_dir(&root).unwrap();
    tree(&root);
    let size = format!("{mebibytes}M");
    let mut command = Command::new(mke2fs);
    command.args(["-q", "-F", "-d"]).arg(&root).args(arguments).arg(&path).arg(size);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    std::fs::read(&path).unwrap()
}

fn map_of(image: &[u8]) -> Result<FileSystemMap, ExtError> {
    classify(image.len() as u64, &mut |at, out| from(image, at, out))
}

fn from(image: &[u8], at: u64, out: &mut [u8]) -> Result<(), String> {
    let found = usize::try_from(at).ok().and_then(|at| image.get(at..at.checked_add(out.len())?));
    out.copy_from_slice(found.ok_or("beyond the end")?);
    Ok(())
}

fn random(seed: u8) -> TestRng {
    TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32])
}

/// What the live map should say where the static one says this.
fn as_written(kind: Kind) -> Kind {
    match kind {
        Kind::Free | Kind::Unknown => Kind::Data,
        kind => kind,
    }
}

fn assert_alike(live: &LiveMap, map: &FileSystemMap, name: &str) {
    let bytes = u64::from(map.superblock.block_bytes);
    for run in &map.runs {
        let mut at = run.block * bytes;
        live.segments(at, run.count * bytes, |len, kind| {
            assert!((kind as usize) < Kind::WRITTEN, "{name}: a write cannot be of {kind}");
            assert_eq!(kind, as_written(run.kind), "{name}: {len} bytes from block {}", at / bytes);
            at += len;
        });
        assert_eq!(at, (run.block + run.count) * bytes, "{name}: the parts cover the range");
    }
}

#[test]
fn a_map_learned_from_writes_in_any_order_is_that_of_the_image() {
    let Some(mke2fs) = mke2fs() else { return };
    for (name, arguments, mebibytes) in SHAPES {
        let image = image(mke2fs, arguments, mebibytes);
        let map = map_of(&image).unwrap();
        let count = |kind: Kind| map.totals[kind as usize].blocks;
        assert!(
            count(Kind::Directory) > 5 && count(Kind::Mapping) > 0 && count(Kind::InodeTable) > 0,
            "{name}"
        );
        for seed in 0..6 {
            let mut rng = random(seed);
            // Pieces of different sizes, 512 bytes and up as a kernel may send them, in random order.
            let piece = [512, 1024, 4096, 65536, 1 << 20, 4096][usize::from(seed)];
            let mut order: Vec<usize> = (0..image.len().div_ceil(piece)).collect();
            if seed > 0 {
                for at in (1..order.len()).rev() {
                    order.swap(at, rng.next_u64() as usize % (at + 1));
                }
                // What the descriptors find when they come are the inodes that the bitmaps then have.
                let block = map.superblock.block_bytes as usize;
                let bitmaps = map.runs.iter().filter(|run| run.kind == Kind::InodeBitmap);
                let bitmaps: Vec<usize> = bitmaps
                    .flat_map(|run| {
                        let (start, end) =
                            (run.block as usize * block, (run.block + run.count) as usize * block);
                        start / piece..end.div_ceil(piece)
                    })
                    .collect();
                order.sort_by_key(|piece| !bitmaps.contains(piece));
            }
            let mut device = vec![0; image.len()];
            let mut live = LiveMap::new(image.len() as u64);
            for at in order {
                let (start, end) = (at * piece, ((at + 1) * piece).min(image.len()));
                live.wrote(start as u64, &image[start..end], &mut |at, out| from(&device, at, out));
                device[start..end].copy_from_slice(&image[start..end]);
            }
            if piece >= map.superblock.block_bytes as usize {
                assert_alike(&live, &map, &format!("{name}, pieces of {piece}"));
            }
            let mut attached = LiveMap::new(image.len() as u64);
            attached.attach(&mut |at, out| from(&image, at, out));
            assert_alike(&attached, &map, &format!("{name}, attached"));
            // A discarded device holds nothing.
            attached.discarded(0, image.len() as u64);
            attached.segments(0, image.len() as u64, |len, kind| {
                assert_eq!((len, kind), (image.len() as u64, Kind::Data));
            });
        }
    }
}

#[test]
fn damaged_images_do_no_harm() {
    let Some(mke2fs) = mke2fs() else { return };
    let cases = Config::default().cases.min(256);
    for (name, arguments, mebibytes) in SHAPES {
        let image = image(mke2fs, arguments, mebibytes);
        let map = map_of(&image).unwrap();
        let block = map.superblock.block_bytes as usize;
        // Damage where structures are: spread over the image it would hit file data.
        let places: Vec<usize> = map
            .runs
            .iter()
            .filter(|run| !matches!(run.kind, Kind::Free | Kind::Data | Kind::Boot))
            .flat_map(|run| (run.block..run.block + run.count.min(4)).map(|b| b as usize * block))
            .collect();
        let mut rng = random(9);
        let mut refused = 0;
        for case in 0..cases {
            let mut damaged = image.clone();
            for _ in 0..=rng.next_u32() % 12 {
                // Every fourth hit goes to the fields of the superblock.
                let at = if rng.next_u32().is_multiple_of(4) {
                    1024 + rng.next_u32() as usize % 0x280
                } else {
                    places[rng.next_u32() as usize % places.len()] + rng.next_u32() as usize % block
                };
                let wild = [0, 0xff, 0x7f, 0x80, rng.next_u32() as u8][rng.next_u32() as usize % 5];
                let len = 1 << (rng.next_u32() % 4);
                let end = damaged.len().min(at + len);
                damaged[at..end].fill(wild);
            }
            match map_of(&damaged) {
                Ok(map) => {
                    assert_eq!(map.runs.iter().map(|run| run.count).sum::<u64>(), map.superblock.blocks);
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty(), "{name} {case}");
                    refused += 1;
                }
            }
            let mut live = LiveMap::new(image.len() as u64);
            live.attach(&mut |at, out| from(&damaged, at, out));
            // Damage that passes as writes over a sound image.
            let mut sound = LiveMap::new(image.len() as u64);
            sound.attach(&mut |at, out| from(&image, at, out));
            for start in (0..image.len()).step_by(64 << 10) {
                let end = image.len().min(start + (64 << 10));
                if damaged[start..end] != image[start..end] {
                    sound.wrote(start as u64, &damaged[start..end], &mut |at, out| from(&image, at, out));
                }
            }
            for live in [&live, &sound] {
                let mut sum = 0;
                live.segments(0, image.len() as u64, |len, _| sum += len);
                assert_eq!(sum, image.len() as u64, "{name} {case}");
            }
        }
        assert!(refused > 0, "{name}: some damage is to the superblock");
    }
}

#[test]
fn what_is_no_file_system_is_named_with_place_value_and_what_was_expected() {
    let nothing = vec![0; 1 << 20];
    let error = map_of(&nothing).unwrap_err().to_string();
    assert!(error.contains("byte 1080") && error.contains("0x0000") && error.contains("0xef53"), "{error}");
    assert!(map_of(&[0; 100]).unwrap_err().to_string().contains("at least 2048 bytes"));
    let Some(mke2fs) = mke2fs() else { return };
    let image = image(mke2fs, SHAPES[2].1, SHAPES[2].2);
    let error = map_of(&image[..image.len() / 2]).unwrap_err().to_string();
    assert!(error.contains("number of blocks is 8192") && error.contains("1 to 4096"), "{error}");
}
