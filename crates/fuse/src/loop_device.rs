//! Loop devices: block devices over the files of the mount.

mod control;

use crate::table;
use control::{Config, Control};
use rustix::fs::{FileType, Mode, OFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

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
#[non_exhaustive]
pub enum LoopError {
    /// A system call failed.
    #[error("loop device for {}: {call}: {error}{}", file.display(), hint(error))]
    Call {
        /// The file it was for.
        file: PathBuf,
        /// Which call.
        call: String,
        /// What the system says.
        error: io::Error,
    },
    /// Others were always faster.
    #[error("loop device for {}: expected a free one, but others took each of {ATTEMPTS}", file.display())]
    Contended {
        /// The file it was for.
        file: PathBuf,
    },
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
/// The kernel takes it away when its last user goes, this process included: a server that is killed leaves no device behind, unless a file
/// system is still mounted on it, and then only until that is unmounted.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    /// Held open for reading only: some kernels refuse to mount a device that another has open for writing.
    hold: Option<OwnedFd>,
}

impl LoopDevice {
    /// Takes a free loop device and puts it over `file`.
    pub fn attach(file: &Path, options: LoopOptions) -> Result<Self, LoopError> {
        let failed = |call: &str, error: rustix::io::Errno| LoopError::Call {
            file: file.to_owned(),
            call: call.to_owned(),
            error: error.into(),
        };
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
            return Ok(Self { path, hold: Some(hold) });
        }
        Err(LoopError::Contended { file: file.to_owned() })
    }

    /// Its path, `/dev/loopN`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the device up. It goes at once if nobody else uses it, else with its last user; who that is, is told.
    pub fn detach(&mut self) -> Vec<String> {
        self.hold = None;
        table::users_of_device(&self.path)
    }
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
