//! What the host does to the file of an image: modes, wrong kinds of file, truncation and full file systems
//! below the mapped tables, snapshots that were cut short.

use nandscape_core::{BlockId, BlockState, Capabilities, FlashError, Geometry, Lpn, Oob, Ppn};
use nandscape_image::{Header, ImageMedium};
use nandscape_media::{Medium, MediumState, NandOptions};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

const PAGE: usize = 4096;
const BLOCK_PAGES: u32 = 64;

fn geometry() -> Geometry {
    Geometry {
        channels: 1,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: 32,
        pages_per_block: BLOCK_PAGES,
        page_bytes: PAGE as u32,
        sector_bytes: 512,
        oob_bytes: 16,
    }
    .checked()
    .unwrap()
}

fn create(path: &Path) -> ImageMedium {
    let options = NandOptions {
        capabilities: Capabilities { stores_data: true, ..Capabilities::default() },
        ..NandOptions::default()
    };
    ImageMedium::create(path, &geometry(), &options, "").unwrap()
}

fn content(page: u32) -> Vec<u8> {
    (0..PAGE).map(|i| (i as u32).wrapping_mul(page | 1) as u8 | 1).collect()
}

const fn oob(page: u32) -> Oob {
    Oob { lpn: Lpn(page), stream: 0, seq: page as u64 }
}

fn program(image: &mut ImageMedium, page: u32) -> Result<(), FlashError> {
    image.program(Ppn(page), oob(page), Some(&content(page)))
}

fn skip(what: &str, why: &str) {
    // Printing macros are captured in tests that pass.
    let _ = writeln!(std::io::stderr(), "SKIP: {what}: {why}");
}

#[test]
fn an_image_and_its_snapshot_are_readable_by_their_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (path, target) = (dir.path().join("flash.img"), dir.path().join("copy.img"));
    let image = create(&path);
    image.handle(&path).snapshot(&target).unwrap().finish().unwrap();
    for file in [&path, &target] {
        let mode = fs::metadata(file).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode, 0o600, "{}: mode {mode:o}", file.display());
    }
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let socket = dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let cases = [
        (pipe, "a pipe"),
        (socket, "a socket"),
        (dir.path().to_owned(), "a directory"),
        (PathBuf::from("/dev/null"), "a character device"),
    ];
    for (path, kind) in cases {
        let expected = format!("{}: {kind}: expected an image file", path.display());
        let openers: [fn(&Path) -> Option<String>; 3] = [
            |path| ImageMedium::open(path).err().map(|error| error.to_string()),
            |path| ImageMedium::open_aside(path).err().map(|error| error.to_string()),
            |path| Header::read(path).err().map(|error| error.to_string()),
        ];
        for (number, open) in openers.into_iter().enumerate() {
            // A thread of its own, since an open that waits for the other end of the pipe does so for ever.
            let (answer, answered) = mpsc::channel();
            let path = path.clone();
            std::thread::spawn(move || answer.send(open(&path)));
            let error = answered.recv_timeout(Duration::from_secs(20));
            assert_eq!(error, Ok(Some(expected.clone())), "opener {number}");
        }
    }
}

#[test]
fn an_image_truncated_into_its_tables_gives_errors_and_no_signal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flash.img");
    let mut image = create(&path);
    for page in 0..BLOCK_PAGES {
        program(&mut image, page).unwrap();
    }
    image.sync().unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(64 << 10).unwrap();
    for page in 0..BLOCK_PAGES {
        let read = image.read(Ppn(page), Some(&mut vec![0; PAGE]));
        assert_eq!(read, Err(FlashError::Damaged { page: Ppn(page) }));
    }
    let program = program(&mut image, BLOCK_PAGES);
    assert!(matches!(program, Err(FlashError::ReadOnly { .. })), "{program:?}");
    let erase = image.erase(BlockId(0));
    assert!(matches!(erase, Err(FlashError::ReadOnly { .. })), "{erase:?}");
    let sync = image.sync();
    assert!(matches!(sync, Err(FlashError::ReadOnly { .. })), "{sync:?}");
    drop(image);
    assert!(ImageMedium::open(&path).is_err());
}

#[test]
fn a_flush_of_an_image_that_became_shorter_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flash.img");
    let mut image = create(&path);
    program(&mut image, 0).unwrap();
    // The tables are whole, the data of the last blocks is not.
    let length = fs::metadata(&path).unwrap().len();
    fs::File::options().write(true).open(&path).unwrap().set_len(length - 4096).unwrap();
    let sync = image.sync();
    assert!(matches!(sync, Err(FlashError::ReadOnly { .. })), "{sync:?}");
}

/// A file system of its own, unmounted when it is dropped.
struct Mounted {
    dir: tempfile::TempDir,
}

impl Mounted {
    fn at(&self) -> PathBuf {
        self.dir.path().join("mounted")
    }

    fn run(command: &mut Command) -> Result<(), String> {
        match command.output() {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim())),
            Err(error) => Err(format!("{command:?}: {error}")),
        }
    }

    fn begin() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can mount".to_owned());
        }
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        fs::create_dir(dir.path().join("mounted")).map_err(|error| error.to_string())?;
        Ok(Self { dir })
    }

    fn tmpfs(mib: u32) -> Result<Self, String> {
        let this = Self::begin()?;
        let size = format!("size={mib}m");
        Self::run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(this.at()))?;
        Ok(this)
    }

    fn xfs(mib: u64) -> Result<Self, String> {
        let this = Self::begin()?;
        let file = this.dir.path().join("disk");
        let disk = fs::File::create(&file).map_err(|error| error.to_string())?;
        disk.set_len(mib << 20).map_err(|error| error.to_string())?;
        Self::run(Command::new("mkfs.xfs").args(["-q", "-m", "reflink=1"]).arg(&file))?;
        Self::run(Command::new("mount").args(["-o", "loop"]).arg(&file).arg(this.at()))?;
        Ok(this)
    }

    /// Takes all the room there is.
    fn fill(&self) {
        let mut file = fs::File::create(self.at().join("ballast")).unwrap();
        for chunk in [1 << 20, 4096] {
            while file.write_all(&vec![0xAA; chunk]).and_then(|()| file.sync_data()).is_ok() {}
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.at()).status();
    }
}

/// Programs blank pages, which take no room in the data, until something is refused.
fn use_tables(image: &mut ImageMedium) -> Result<(), FlashError> {
    for page in 0..geometry().pages() {
        if !image.is_programmed(Ppn(page)) {
            image.program(Ppn(page), oob(page), None)?;
        }
    }
    image.sync()
}

#[test]
fn tables_that_the_file_system_has_no_room_for_give_errors_and_no_signal() {
    let mounted = match Mounted::tmpfs(12) {
        Ok(mounted) => mounted,
        Err(why) => return skip("no full file system below an image", &why),
    };
    let path = mounted.at().join("flash.img");
    let mut image = create(&path);
    for page in 0..BLOCK_PAGES {
        program(&mut image, page).unwrap();
    }
    image.sync().unwrap();
    // What a file system that copies on write does to allocated tables: a write to them needs room.
    let table = (64 << 10) + 4096;
    assert!(
        Command::new("fallocate")
            .args(["--punch-hole", "--offset", &(table + 4096).to_string(), "--length", "65536"])
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    mounted.fill();
    let refused = use_tables(&mut image);
    assert!(matches!(refused, Err(FlashError::ReadOnly { .. })), "{refused:?}");
    assert!(matches!(image.sync(), Err(FlashError::ReadOnly { .. })));
    // What the file still has is read.
    assert_eq!(image.read(Ppn(3), Some(&mut vec![0; PAGE])), Ok(oob(3)));
}

#[test]
fn holes_in_the_tables_are_filled_when_an_image_is_opened() {
    let mounted = match Mounted::tmpfs(12) {
        Ok(mounted) => mounted,
        Err(why) => return skip("no full file system below an image", &why),
    };
    let (path, copied) = (mounted.at().join("flash.img"), mounted.at().join("sparse.img"));
    drop(create(&path));
    Mounted::run(Command::new("cp").arg("--sparse=always").arg(&path).arg(&copied)).unwrap();
    fs::remove_file(&path).unwrap();
    let mut image = ImageMedium::open(&copied).unwrap();
    mounted.fill();
    use_tables(&mut image).unwrap();
    drop(image);
    let aside = ImageMedium::open_aside(&copied).unwrap();
    assert!(aside.is_programmed(Ppn(geometry().pages() - 1)));
}

#[test]
fn an_image_goes_on_when_its_file_system_fills_after_a_snapshot_that_shares_blocks() {
    let mounted = match Mounted::xfs(320) {
        Ok(mounted) => mounted,
        Err(why) => return skip("no snapshot that shares blocks on a full xfs", &why),
    };
    let (path, target) = (mounted.at().join("flash.img"), mounted.at().join("copy.img"));
    let mut image = create(&path);
    for page in 0..BLOCK_PAGES {
        program(&mut image, page).unwrap();
    }
    image.sync().unwrap();
    let snapshot = image.handle(&path).snapshot(&target).unwrap();
    assert!(snapshot.is_shared());
    snapshot.finish().unwrap();
    mounted.fill();
    use_tables(&mut image).unwrap();
    drop(image);
    assert_eq!(ImageMedium::open_aside(&path).unwrap().read(Ppn(3), Some(&mut vec![0; PAGE])), Ok(oob(3)));
    assert_eq!(ImageMedium::open_aside(&target).unwrap().read(Ppn(3), Some(&mut vec![0; PAGE])), Ok(oob(3)));
}

/// Takes a snapshot, says so, and waits to be killed: what
/// [`a_snapshot_that_was_killed_does_not_pass_for_a_finished_one`] starts.
#[test]
fn snapshot_taker() {
    let Some(dir) = std::env::var_os("SNAPSHOT_TAKER") else { return };
    let dir = PathBuf::from(dir);
    let path = dir.join("flash.img");
    let mut image = ImageMedium::open(&path).unwrap();
    image.sync().unwrap();
    let _snapshot = image.handle(&path).snapshot(&dir.join("copy.img")).unwrap();
    fs::File::options().write(true).open("/dev/fd/3").unwrap().write_all(b".").unwrap();
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_snapshot_that_was_killed_does_not_pass_for_a_finished_one() {
    for (place, name) in [("/dev/shm", "tmpfs"), ("/tmp", "the file system of /tmp")] {
        let Ok(dir) = tempfile::tempdir_in(place) else { continue };
        let (path, target) = (dir.path().join("flash.img"), dir.path().join("copy.img"));
        let mut image = create(&path);
        for page in 0..BLOCK_PAGES * 4 {
            program(&mut image, page).unwrap();
        }
        drop(image);
        let mut taker = Command::new("sh")
            .args(["-c", "exec \"$0\" --exact host_file::snapshot_taker --nocapture 3>&1 >/dev/null 2>&1"])
            .arg(std::env::current_exe().unwrap())
            .env("SNAPSHOT_TAKER", dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        taker.stdout.take().unwrap().read_exact(&mut [0]).expect("the snapshot has begun");
        taker.kill().unwrap();
        taker.wait().unwrap();

        assert!(!target.exists(), "{name}: a snapshot that was killed has its final name");
        let leftover = dir.path().join("copy.img.partial");
        for open in [|path: &Path| ImageMedium::open(path), |path: &Path| ImageMedium::open_aside(path)] {
            let error = open(&leftover).expect_err(name).to_string();
            let expected = "an unfinished snapshot: expected a finished one; delete this file";
            assert_eq!(error, format!("{}: {expected}", leftover.display()));
        }
        // It is in nobody's way.
        let mut image = ImageMedium::open(&path).unwrap();
        image.sync().unwrap();
        image.handle(&path).snapshot(&target).unwrap().finish().unwrap();
        assert!(!leftover.exists());
        let mut copy = ImageMedium::open(&target).unwrap();
        for page in 0..BLOCK_PAGES * 4 {
            assert_eq!(copy.read(Ppn(page), Some(&mut vec![0; PAGE])), Ok(oob(page)), "{name}");
        }
    }
}

/// Every page of a snapshot for which there is no room, also of those that are copied since their block is
/// about to be programmed again.
#[test]
fn a_snapshot_without_room_leaves_no_file_and_the_image_as_it_was() {
    let mounted = match Mounted::tmpfs(8) {
        Ok(mounted) => mounted,
        Err(why) => return skip("no snapshot to a full file system", &why),
    };
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let (path, target) = (dir.path().join("flash.img"), mounted.at().join("copy.img"));
    let mut image = create(&path);
    for page in 0..BLOCK_PAGES * 2 {
        program(&mut image, page).unwrap();
    }
    mounted.fill();
    let ballast = fs::File::options().write(true).open(mounted.at().join("ballast")).unwrap();
    let (mut refused, mut length) = (0, ballast.metadata().unwrap().len());
    loop {
        image.sync().unwrap();
        let taken = image.handle(&path).snapshot(&target).and_then(|snapshot| {
            // The first block is erased and programmed before the snapshot has copied it.
            image.erase(BlockId(0)).unwrap();
            for page in 0..BLOCK_PAGES {
                program(&mut image, page).unwrap();
            }
            snapshot.finish()
        });
        for page in 0..BLOCK_PAGES * 2 {
            assert_eq!(
                image.read(Ppn(page), Some(&mut vec![0; PAGE])),
                Ok(oob(page)),
                "after {refused} refused"
            );
        }
        let files = fs::read_dir(mounted.at()).unwrap().count();
        let Err(error) = taken else {
            assert_eq!(files, 2, "ballast and snapshot");
            break;
        };
        refused += 1;
        assert!(error.to_string().ends_with("No space left on device (os error 28)"), "{error}");
        assert_eq!(files, 1, "{error}: a file is left");
        length = length.checked_sub(4096).expect("room for a snapshot in the end");
        ballast.set_len(length).unwrap();
    }
    assert!(refused > BLOCK_PAGES * 2, "the data of the snapshot alone has more pages than {refused}");
    // The holes in its tables need room to be opened for writing.
    let mut copy = ImageMedium::open_aside(&target).unwrap();
    for page in 0..BLOCK_PAGES * 2 {
        assert_eq!(copy.read(Ppn(page), Some(&mut vec![0; PAGE])), Ok(oob(page)));
    }
}

#[test]
fn a_snapshot_replaces_no_file_of_somebody_else() {
    let dir = tempfile::tempdir().unwrap();
    let (path, target) = (dir.path().join("flash.img"), dir.path().join("copy.img"));
    let image = create(&path);
    let handle = image.handle(&path);
    // One that has the temporary name already.
    let partial = dir.path().join("copy.img.partial");
    fs::write(&partial, "mine").unwrap();
    let error = handle.snapshot(&target).unwrap_err().to_string();
    assert!(error.ends_with("copy.img.partial: create: File exists (os error 17)"), "{error}");
    assert_eq!(fs::read(&partial).unwrap(), b"mine");
    fs::remove_file(&partial).unwrap();
    // One that takes the final name while the bytes are copied.
    let snapshot = handle.snapshot(&target).unwrap();
    fs::write(&target, "mine").unwrap();
    let error = snapshot.finish().unwrap_err().to_string();
    assert!(error.ends_with("copy.img: rename: File exists (os error 17)"), "{error}");
    assert_eq!(fs::read(&target).unwrap(), b"mine");
    assert!(!partial.exists());
}
