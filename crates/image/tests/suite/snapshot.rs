//! A snapshot taken while the medium is written: what it holds is what the image held at that moment,
//! whatever came afterwards.

use nandscape_core::rng::{below, seeded};
use nandscape_core::{BlockId, BlockState, Capabilities, Geometry, Lpn, Oob, Ppn};
use nandscape_image::ImageMedium;
use nandscape_media::{Medium, MediumState, NandOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

fn geometry() -> Geometry {
    Geometry {
        channels: 2,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 24,
        pages_per_block: 16,
        page_bytes: 16384,
        sector_bytes: 4096,
        oob_bytes: 16,
    }
    .checked()
    .unwrap()
}

fn options() -> NandOptions {
    NandOptions {
        capabilities: Capabilities { stores_data: true, ..Capabilities::default() },
        ..NandOptions::default()
    }
}

/// Every page as it is read.
fn observe(image: &mut ImageMedium) -> Vec<String> {
    let mut data = vec![0; 16384];
    let pages = geometry().pages();
    let mut seen: Vec<String> = (0..pages)
        .map(|page| {
            let read = image.read(Ppn(page), Some(&mut data));
            let sum = read.is_ok().then(|| nandscape_media::checksum::sum(&data));
            format!("{page}: {read:?} {sum:?}")
        })
        .collect();
    seen.extend(
        (0..geometry().blocks()).map(|block| format!("{block}: {}", image.erase_count(BlockId(block)))),
    );
    seen
}

/// A step of a load that fills and erases blocks.
fn step(image: &mut ImageMedium, rng: &mut nandscape_core::rng::Xoshiro256PlusPlus, content: u32) {
    let block = BlockId(below(rng, u64::from(geometry().blocks())) as u32);
    let index = image.write_pointer(block);
    if index == 16 {
        image.erase(block).unwrap();
    } else {
        let oob = Oob { lpn: Lpn(content), stream: 0, seq: u64::from(content) };
        let data: Vec<u8> = (0..16384u32).map(|i| (i.wrapping_mul(content | 1) >> 7) as u8).collect();
        image.program(geometry().page(block, index), oob, Some(&data)).unwrap();
    }
}

/// Takes a snapshot under load in a directory; gives whether the file system shared the bytes.
fn snapshot_under_load(dir: &Path, seed: u64) -> bool {
    let path = dir.join("flash.img");
    let mut image = ImageMedium::create(&path, &geometry(), &options(), "[device]\n").unwrap();
    let handle = image.handle(&path);
    let mut rng = seeded(seed);
    for content in 0..1500 {
        step(&mut image, &mut rng, content);
    }
    let target = dir.join("copy.img");
    image.sync().unwrap();
    let expected = observe(&mut image);
    let snapshot = handle.snapshot(&target).unwrap();
    let is_shared = snapshot.is_shared();
    let second = handle.snapshot(&dir.join("other.img")).unwrap_err().to_string();
    assert!(second.contains("another snapshot"), "{second}");
    // Some of the load comes before the first byte is copied, some beside the copying.
    for content in 1500..2600 {
        step(&mut image, &mut rng, content);
    }
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let copier = scope.spawn(|| {
            let result = snapshot.finish();
            is_done.store(true, Ordering::Release);
            result
        });
        let mut content = 2600;
        while !is_done.load(Ordering::Acquire) || content < 2700 {
            step(&mut image, &mut rng, content);
            content += 1;
        }
        copier.join().unwrap().unwrap();
    });
    assert_ne!(observe(&mut image), expected, "the load did nothing");
    let mut copy = ImageMedium::open(&target).unwrap();
    assert_eq!(observe(&mut copy), expected, "in {}", dir.display());
    assert_ne!(copy.header().uuid, image.header().uuid);
    assert_eq!(copy.header().config, "[device]\n");
    let findings = copy.check(&target, &mut |_, _| {}).unwrap();
    assert_eq!((findings.problem_count, findings.contents.is_clean), (0, true));
    // The copy is an image like any other.
    for content in 0..500 {
        step(&mut copy, &mut rng, content);
    }
    is_shared
}

#[test]
fn a_snapshot_under_load_holds_what_was_there_when_it_was_taken() {
    for (round, place) in (0..).zip(["/dev/shm", "/tmp", "."]) {
        let Ok(dir) = tempfile::tempdir_in(place) else { continue };
        snapshot_under_load(dir.path(), round);
    }
}

/// A file system of its own on a loop device, unmounted when it is dropped.
struct Mounted {
    dir: tempfile::TempDir,
}

impl Mounted {
    /// `Err` says why there is none.
    fn new(kind: &str, options: &[&str]) -> Result<Self, String> {
        let run = |command: &mut Command| match command.output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())),
            Err(error) => Err(format!("{command:?}: {error}")),
        };
        if !rustix::process::geteuid().is_root() {
            return Err("only root can mount".to_owned());
        }
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (file, at) = (dir.path().join("disk"), dir.path().join("mounted"));
        let disk = std::fs::File::create(&file).map_err(|error| error.to_string())?;
        disk.set_len(512 << 20).map_err(|error| error.to_string())?;
        std::fs::create_dir(&at).map_err(|error| error.to_string())?;
        run(Command::new(format!("mkfs.{kind}")).arg("-q").args(options).arg(&file))?;
        run(Command::new("mount").args(["-o", "loop"]).arg(&file).arg(&at))?;
        Ok(Self { dir })
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("mounted")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

fn is_shared_on(kind: &str, options: &[&str]) {
    match Mounted::new(kind, options) {
        Ok(mounted) => {
            assert!(
                snapshot_under_load(&mounted.path(), 7),
                "{kind} shares blocks, and the snapshot copied them"
            );
        }
        // Printing macros are captured in tests that pass.
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "SKIP: no snapshot that shares blocks on {kind}: {why}");
        }
    }
}

#[test]
fn a_snapshot_on_xfs_shares_blocks() {
    is_shared_on("xfs", &["-m", "reflink=1"]);
}

#[test]
fn a_snapshot_on_btrfs_shares_blocks() {
    is_shared_on("btrfs", &[]);
}

#[test]
fn a_snapshot_that_is_given_up_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flash.img");
    let image = ImageMedium::create(&path, &geometry(), &options(), "").unwrap();
    let target = dir.path().join("copy.img");
    drop(image.handle(&path).snapshot(&target).unwrap());
    assert!(!target.exists());
    std::fs::write(&target, "mine").unwrap();
    let message = image.handle(&path).snapshot(&target).unwrap_err().to_string();
    assert!(message.ends_with("copy.img: create: File exists (os error 17)"), "{message}");
    assert_eq!(std::fs::read(&target).unwrap(), b"mine");
}
