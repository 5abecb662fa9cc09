//! The mount, from start to end.

use crate::answers::{Answers, REQUEST_BYTES, Tell};
use crate::block_file::BlockFile;
use crate::client::Client;
use crate::errors::MountError;
use crate::files::Files;
use crate::object_fs::{ObjectFs, Quota, Served};
use crate::{leftovers, table};
use fuser::{Config, Filesystem, MountOption, Session, SessionACL};
use nandscape_core::NamespaceInfo;
use nandscape_engine::Engine;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

/// How to mount.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Refuse writes.
    pub is_read_only: bool,
    /// Of files of a store of objects: the kernel gathers writes before it passes them on.
    pub gathers_writes: bool,
    /// Of files of a store of objects: what those of a user may take together.
    pub quotas: BTreeMap<u32, Quota>,
    /// Threads that take requests from the kernel and run them.
    pub threads: usize,
    /// Bytes for what was read and is answered later, on a paced clock; at least [`LEAST_MEMORY_BYTES`].
    pub memory_bytes: u64,
}

/// The longest read of a file of a store of objects that the kernel asks for at a time.
const READ_BYTES: u32 = 256 << 10;

/// The least memory for answers: the longest one fits.
pub const LEAST_MEMORY_BYTES: u64 = REQUEST_BYTES as u64;

/// A directory in which every namespace of an engine is a file, or the files of its one store of objects are.
/// Dropping it unmounts.
#[derive(Debug)]
pub struct Mount {
    dir: PathBuf,
    files: Vec<PathBuf>,
    notes: Vec<String>,
    session: Option<JoinHandle<io::Result<()>>>,
}

impl Mount {
    /// Mounts at `dir`, which is made if it is missing, and begins to serve. `tell` is called with messages
    /// about failed requests; `ended` once, when the mount has gone, whoever unmounted it.
    pub fn start(
        engine: &Arc<Engine>,
        dir: &Path,
        options: MountOptions,
        tell: Tell,
        ended: impl FnOnce() + Send + 'static,
    ) -> Result<Self, MountError> {
        assert!(options.memory_bytes >= LEAST_MEMORY_BYTES, "the longest answer has no room: {options:?}");
        let failed = |error: io::Error| MountError::Mount { dir: dir.to_owned(), error };
        let answers = Answers::start(engine, tell, options.memory_bytes).map_err(failed)?;
        let mut mount = Self { dir: dir.to_owned(), files: Vec::new(), notes: Vec::new(), session: None };
        let session = match engine.namespaces() {
            [info] if info.objects => {
                let client = Client { engine: Arc::clone(engine), namespace: 0 };
                let (files, notes) = ObjectFs::load(client, options.is_read_only)?;
                let used =
                    files.limit(&options.quotas).map_err(|failed| MountError::Refused(failed.why()))?;
                mount.notes = [notes, used].concat();
                serve(
                    Served::new(files, answers, info.page_bytes, options.gathers_writes),
                    dir,
                    (options, true),
                    ended,
                )
            }
            _ => {
                let files = block_files(engine, options.is_read_only)?;
                mount.files = files.iter().map(|(name, ..)| dir.join(name)).collect();
                serve(Files::new(files, answers), dir, (options, false), ended)
            }
        };
        mount.session = Some(session.map_err(failed)?);
        Ok(mount)
    }

    /// The directory as the system knows it: absolute, made if it is missing, without links, cleared of what
    /// a killed server left in it. Gives it with notes on what was cleared.
    pub fn prepare(dir: &Path) -> Result<(PathBuf, Vec<String>), MountError> {
        let failed = |error: io::Error| MountError::Refused(format!("--mount {}: {error}", dir.display()));
        // The directory itself cannot be looked at while a dead mount covers it.
        let full = std::path::absolute(dir).map_err(failed)?;
        let full = match (full.parent(), full.file_name()) {
            (Some(parent), Some(name)) => {
                std::fs::create_dir_all(parent).map_err(failed)?;
                parent.canonicalize().map_err(failed)?.join(name)
            }
            _ => full,
        };
        let notes = leftovers::clear(&full)?;
        if full.exists() && !full.is_dir() {
            return Err(failed(io::Error::from(io::ErrorKind::NotADirectory)));
        }
        std::fs::create_dir_all(&full).map_err(failed)?;
        let full = full.canonicalize().map_err(failed)?;
        Ok((full, notes))
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What was put in order in a store of objects.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The files, in the order of the namespaces; none where the files are the clients' own.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Unmounts and waits for the last request. A mount in use stays, and the error names its users.
    pub fn unmount(&mut self) -> Result<(), MountError> {
        self.take_down(false)
    }

    /// Takes the mount out of sight; whoever still uses it gets errors once this process has ended.
    pub fn abandon(&mut self) -> Result<(), MountError> {
        self.take_down(true)
    }

    fn take_down(&mut self, lazily: bool) -> Result<(), MountError> {
        let Some(session) = &self.session else { return Ok(()) };
        if !session.is_finished() {
            match leftovers::unmount(&self.dir, lazily) {
                // Somebody else has unmounted it.
                Ok(()) | Err(Errno::INVAL | Errno::NOENT) => {}
                Err(Errno::BUSY) => {
                    let users = table::users_of_mount(&self.dir);
                    return Err(MountError::Busy { dir: self.dir.clone(), users });
                }
                Err(error) => return Err(MountError::unmount(&self.dir, io::Error::from(error))),
            }
        }
        let session = self.session.take().expect("it was there above");
        if lazily && !session.is_finished() {
            // It ends with its last user, who may outlive this process.
            return Ok(());
        }
        match session.join() {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(MountError::unmount(&self.dir, error)),
            Err(_) => Err(MountError::unmount(&self.dir, "a thread that served requests panicked")),
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Whoever wants to know unmounts before.
        if self.unmount().is_err() {
            let _ = self.abandon();
        }
    }
}

/// Mounts a file system and serves it on a thread of its own.
fn serve<F: Filesystem>(
    files: F,
    dir: &Path,
    (options, has_programs): (MountOptions, bool),
    ended: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<io::Result<()>>> {
    let session = Session::new(files, dir, &configuration(&options, has_programs))?;
    let run = move || {
        let outcome = session.run();
        ended();
        outcome
    };
    std::thread::Builder::new().name("fuse".to_owned()).spawn(run)
}

/// Every namespace with its name and the bytes of its pages.
fn block_files(
    engine: &Arc<Engine>,
    is_read_only: bool,
) -> Result<Vec<(String, u32, BlockFile)>, MountError> {
    let file = |(index, info): (usize, &NamespaceInfo)| {
        let name = info.name.clone();
        if info.objects {
            return Err(MountError::Refused(format!(
                "namespace '{name}' stores files: expected it alone, not beside others"
            )));
        }
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
            return Err(MountError::Refused(format!(
                "namespace '{name}' cannot be a file: expected a name without '/' that is neither empty, '.' nor '..'"
            )));
        }
        let file = BlockFile::new(Arc::clone(engine), index as u32, is_read_only);
        Ok((name, info.page_bytes, file))
    };
    engine.namespaces().iter().enumerate().map(file).collect()
}

fn configuration(options: &MountOptions, has_programs: bool) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(table::NAME.to_owned()),
        MountOption::Subtype(table::NAME.to_owned()),
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoAtime,
        MountOption::DefaultPermissions,
    ];
    if has_programs {
        // Parts of a long read are read by one thread while another passes them to the kernel.
        config.mount_options.push(MountOption::CUSTOM(format!("max_read={READ_BYTES}")));
    } else {
        config.mount_options.push(MountOption::NoExec);
    }
    if options.is_read_only {
        config.mount_options.push(MountOption::RO);
    }
    // Who may do what is a matter of the files' owner and mode, which the kernel checks. Ordinary users may
    // not open their mounts to others unless /etc/fuse.conf says so.
    config.acl = if rustix::process::geteuid().is_root() { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(options.threads.max(1));
    config.clone_fd = options.threads > 1;
    config
}
