//! Loop devices: block devices over the files of the mount.

mod apart;
mod control;

use crate::table;
use control::{Config, Control};
use rustix::fs::{FileType, Mode, OFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Logical sector sizes that a loop device can have, in bytes.
pub const SECTORS: [u32; 4] = [512, 1024, 2048, 4096];

/// Others may take the free device before we do; so often we ask again.
const ATTEMPTS: u32 = 64;

/// How a loop device is set up.
#[derive(Clone, Copy, Debug)]
pub struct LoopOptions {
    /// Logical sector in bytes, one of [`SECTORS`].
    pub sector: u32,
    /// Refuse writes.
    pub is_read_only: bool,
}

/// A loop device that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("loop device for {}: {message}", file.display())]
pub struct LoopError {
    /// The file it was for.
    pub file: PathBuf,
    /// The call that failed and what the system says, or that others took each free device.
    pub message: String,
}

impl LoopError {
    fn call(file: &Path, call: &str, error: &io::Error) -> Self {
        Self { file: file.to_owned(), message: format!("{call}: {error}{}", hint(error)) }
    }
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => " (loop devices need root)",
        io::ErrorKind::NotFound => " (is the kernel module 'loop' loaded?)",
        _ => "",
    }
}

/// A block device over a file, with direct I/O, so that requests come to the server as they were made.
///
/// The kernel takes it away when its last user goes, this process included: a server that is killed leaves no
/// device behind, unless a file system is still mounted on it, and then only until that is unmounted.
///
/// A thread of its own opens the file, sets the device up and holds it, apart from the server's descriptors:
/// these calls wait for requests that the same process answers, and would wait for ever if it were killed
/// meanwhile.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    /// Dropped when the device is to be given up.
    hold: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LoopDevice {
    /// Takes a free loop device and puts it over `file`.
    pub fn attach(file: &Path, options: LoopOptions) -> Result<Self, LoopError> {
        let (hold, given_up) = channel();
        let (tell, told) = channel();
        let path = file.to_owned();
        let hold_it = move || hold_device(&path, options, &tell, &given_up);
        let thread = std::thread::Builder::new()
            .name("loop".to_owned())
            .spawn(hold_it)
            .map_err(|error| LoopError::call(file, "thread", &error))?;
        let path = told.recv().expect("the thread tells how it went")?;
        Ok(Self { path, hold: Some(hold), thread: Some(thread) })
    }

    /// Its path, `/dev/loopN`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the device up. It goes at once if nobody else uses it, else with its last user; who that is, is
    /// told.
    pub fn detach(&mut self) -> Vec<String> {
        self.let_go();
        table::users_of_device(&self.path)
    }

    fn let_go(&mut self) {
        self.hold = None;
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the thread that holds a loop device does not panic");
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// The thread: sets a device up, tells its path, and holds it until it is given up.
fn hold_device(
    file: &Path,
    options: LoopOptions,
    tell: &Sender<Result<PathBuf, LoopError>>,
    given_up: &Receiver<()>,
) {
    // SAFETY: the thread begins here, with a path, options and channels, none of which is a descriptor; what
    // it opens stays in this function.
    #[expect(unsafe_code, reason = "descriptors of other threads are closed for this one")]
    let is_apart = unsafe { apart::from_other_threads() };
    let is_apart = is_apart.map_err(|error| LoopError::call(file, "unshare", &error.into()));
    match is_apart.and_then(|()| take(file, options)) {
        Err(error) => _ = tell.send(Err(error)),
        Ok((path, hold)) => {
            if tell.send(Ok(path)).is_ok() {
                // An error: the sender was dropped, which is what is waited for.
                _ = given_up.recv();
            }
            drop(hold);
        }
    }
}

/// Takes a free loop device and puts it over `file`. Gives its path, and a descriptor that keeps it.
///
/// The descriptor is for reading only: some kernels refuse to mount a device that another has open for
/// writing.
fn take(file: &Path, options: LoopOptions) -> Result<(PathBuf, OwnedFd), LoopError> {
    let failed = |call: &str, error: rustix::io::Errno| LoopError::call(file, call, &error.into());
    let access = if options.is_read_only { OFlags::RDONLY } else { OFlags::RDWR };
    let backing = rustix::fs::open(file, access | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty())
        .map_err(|e| failed("open", e))?;
    let control = Control::open().map_err(|e| failed("/dev/loop-control", e))?;
    for _ in 0..ATTEMPTS {
        let number = control.free().map_err(|e| failed("LOOP_CTL_GET_FREE", e))?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = open_node(&path, number).map_err(|e| failed(&path.to_string_lossy(), e))?;
        let config = Config::new(&backing, file, options);
        match config.apply(&device) {
            Err(rustix::io::Errno::BUSY) => continue,
            outcome => outcome.map_err(|e| failed("LOOP_CONFIGURE", e))?,
        }
        let hold = rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|e| failed(&path.to_string_lossy(), e))?;
        // Only now: with nobody else there, closing it would take the device away again.
        drop(device);
        return Ok((path, hold));
    }
    let message = format!("expected a free one, but others took each of {ATTEMPTS}");
    Err(LoopError { file: file.to_owned(), message })
}

/// Opens `/dev/loopN`, which is made if it is missing, as in containers whose /dev is not the kernel's.
fn open_node(path: &Path, number: u32) -> rustix::io::Result<OwnedFd> {
    const LOOP_MAJOR: u32 = 7;
    let open = || rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    match open() {
        Err(rustix::io::Errno::NOENT) => {
            let device = rustix::fs::makedev(LOOP_MAJOR, number);
            let mode = Mode::RUSR | Mode::WUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path, FileType::BlockDevice, mode, device)?;
            open()
        }
        outcome => outcome,
    }
}
