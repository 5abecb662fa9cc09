//! What a killed server left behind: a mount that nobody answers, and loop devices over its files.

use crate::errors::MountError;
use crate::table;
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use std::path::Path;
use std::process::Command;

/// Clears `dir` of what an earlier server left there, and says what that was. A directory that is served, or
/// a device that is still in use, is an error.
pub fn clear(dir: &Path) -> Result<Vec<String>, MountError> {
    let mut notes = Vec::new();
    // The table is asked, since a look at the directory itself fails.
    let is_ours = |mount: &table::MountEntry| mount.point == dir && mount.is_ours();
    while table::mounts().iter().any(is_ours) {
        if !is_dead(dir) {
            return Err(MountError::Served { dir: dir.to_owned() });
        }
        for (device, _) in table::loop_devices(dir) {
            let users = table::users_of_device(&device);
            if !users.is_empty() {
                return Err(MountError::Refused(format!(
                    "{} of an earlier server on {} is still in use by {}: unmount that first",
                    device.display(),
                    dir.display(),
                    users.join(", ")
                )));
            }
        }
        unmount(dir, true).map_err(|error| MountError::unmount(dir, std::io::Error::from(error)))?;
        notes.push(format!("cleared {}, which a server that was killed had left mounted", dir.display()));
    }
    Ok(notes)
}

/// Whether nobody answers at a mount. The kernel may remember attributes, but how much room there is it
/// always asks.
fn is_dead(dir: &Path) -> bool {
    matches!(rustix::fs::statfs(dir), Err(Errno::NOTCONN | Errno::CONNABORTED))
}

/// Unmounts; `lazily` takes it out of sight even where it is in use. Falls back on `fusermount3` where the
/// caller may not unmount.
pub fn unmount(dir: &Path, lazily: bool) -> rustix::io::Result<()> {
    let flags = if lazily { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match rustix::mount::unmount(dir, flags) {
        Err(Errno::PERM) => {
            let mut arguments = vec!["-u", "-q"];
            arguments.extend(lazily.then_some("-z"));
            let run = |program: &str| Command::new(program).args(&arguments).arg("--").arg(dir).status();
            match run("fusermount3").or_else(|_| run("fusermount")) {
                Ok(status) if status.success() => Ok(()),
                Ok(_) => Err(Errno::BUSY),
                Err(_) => Err(Errno::PERM),
            }
        }
        outcome => outcome,
    }
}
