//! What keeps a server below a block device from waiting for itself.
//!
//! When memory is short the kernel writes dirty pages back to make room. If those pages belong to a file
//! system on a device that a process serves, and that process itself needs memory to do so, both wait for
//! ever. Two things help: memory of the server that is not taken away, and the kernel's knowing that this
//! process must not wait for its own writeback.

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, Rlimit, configure_io_flusher_behavior, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, disable_transparent_huge_pages};

/// Keeps this process's memory resident and marks it, and the threads it starts from now on, as part of the
/// I/O path. Says what could not be done.
pub fn stand_below_block_device() -> Vec<String> {
    let mut notes = Vec::new();
    if let Err(error) = lock_memory() {
        notes.push(format!(
            "memory is not locked ({error}): when it is short, a file system on this device may wait for ever; \
             expected CAP_IPC_LOCK, or no limit (ulimit -l unlimited)"
        ));
    }
    if let Err(error) = configure_io_flusher_behavior(true) {
        // For a huge page the kernel moves others about, and waits for those that are being written to this
        // device. What was taken before is not changed.
        let _ = disable_transparent_huge_pages(true);
        notes.push(format!(
            "the kernel does not know this process as part of the I/O path (PR_SET_IO_FLUSHER: {error}): \
             when memory is short, a file system on this device may wait for ever; expected CAP_SYS_RESOURCE"
        ));
    }
    notes
}

/// Locks what is there and what will be touched. Not under a limit: above it, every later allocation would
/// fail.
fn lock_memory() -> rustix::io::Result<()> {
    let may_lock = capabilities(None)?.effective.contains(CapabilitySet::IPC_LOCK);
    if !may_lock && getrlimit(Resource::Memlock).current.is_some() {
        setrlimit(Resource::Memlock, Rlimit { current: None, maximum: None })?;
    }
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)
}
