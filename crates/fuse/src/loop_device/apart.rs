//! A thread that does not keep the server's descriptors open.
//!
//! A thread that waits for an answer of a FUSE server is not woken by a signal once the server has read its
//! question, not even by SIGKILL: the kernel waits for the answer, or for the end of the server, which it
//! sees when `/dev/fuse` is closed for the last time. If the server is the same process, killed, its other
//! threads are gone, and the one that waits keeps the table of descriptors, and so `/dev/fuse`, open. Neither
//! ends, and every user of the mount waits with them. A thread with a table of its own, without those
//! descriptors, does not stand in the way.

use rustix::fd::{AsRawFd, RawFd};
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::{Errno, close};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Standard input, output and error stay: a panic has to be told.
const FIRST: RawFd = 3;

/// Gives this thread a table of descriptors of its own, and closes all in it but the standard ones.
///
/// # Safety
///
/// The thread has opened nothing and was given nothing that is open, and it is given nothing later:
/// afterwards a descriptor of another thread is closed here, or is something else that this thread opened.
/// What this thread opens from now on must be used and dropped in it alone.
#[expect(unsafe_code, reason = "descriptors of other threads are closed in this thread's own table")]
pub unsafe fn from_other_threads() -> Result<(), Errno> {
    // SAFETY: by the contract nothing that is open is shared with other threads from now on.
    unsafe { unshare_unsafe(UnshareFlags::FILES)? };
    let list = rustix::fs::open(
        "/proc/thread-self/fd",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let mut open = Vec::new();
    let own = list.as_raw_fd();
    for entry in Dir::new(list)? {
        let entry = entry?;
        open.extend(entry.file_name().to_str().ok().and_then(|name| name.parse::<RawFd>().ok()));
    }
    for descriptor in open.into_iter().filter(|descriptor| *descriptor >= FIRST && *descriptor != own) {
        // SAFETY: the table is this thread's own, and nothing in it has an owner here but the list, which is
        // left out.
        unsafe { close(descriptor) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn what_a_thread_apart_holds_ends_no_pipe_of_the_others() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: channels have no descriptors, and the file is opened afterwards and stays here.
            #[expect(unsafe_code, reason = "this is what is tested")]
            let outcome = unsafe { from_other_threads() };
            let own = std::fs::File::open("/dev/null").map(|file| file.metadata().is_ok());
            ready.send((outcome, own.unwrap_or(false))).unwrap();
            _ = ends.recv();
        });
        let (outcome, is_open) = is_ready.recv().unwrap();
        match outcome {
            // Some containers do not allow the call.
            Err(Errno::PERM) => return,
            outcome => outcome.unwrap(),
        }
        assert!(is_open, "the thread can open files of its own");
        writer.write_all(b"x").unwrap();
        drop(writer);
        // The thread had the end for writing when it began. If it still had, this would wait for it.
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
        drop(end);
        thread.join().unwrap();
    }
}
