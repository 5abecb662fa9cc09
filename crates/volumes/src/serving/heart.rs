//! Signs of life of a server, and a look at its files.

use super::giving_up::Teller;
use crate::Place;
use nandscape_cache::manage::Disk as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a server shows that it is alive.
const BEAT: Duration = Duration::from_secs(1);

/// The disks that are there.
pub(super) type Hearts = Arc<Mutex<Vec<Place>>>;

/// A thread that shows that the server is alive, and looks whether its files are still there and whole, until
/// it is dropped.
#[derive(Debug)]
pub(super) struct Heart {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heart {
    pub(super) fn start(fast: Option<Place>, disks: Hearts, teller: Teller) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let at_start = fast.as_ref().map(Place::mirror).unwrap_or_default();
        let beat = move || {
            while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                // The cache finds out by itself: its next command fails, or it looks when it is idle.
                let _ = fast.as_ref().map(|fast| fast.look_over(true));
                // What was said at the start is not said again.
                let failed = fast.iter().flat_map(Place::mirror).filter(|member| member.failed.is_some());
                for member in failed.filter(|member| !at_start.contains(member)) {
                    teller.say(format!("{member}; the cache goes on with the other members of its mirror"));
                }
                for disk in &mut *disks.lock().expect("nobody panicked with the disks in hand") {
                    if let Some(error) = disk.look_over(false) {
                        teller.say(format!("a disk cannot be used any more: {error}"));
                        continue;
                    }
                    // Without a sign of life the next start after a kill may be more careful than it has to
                    // be.
                    let _ = disk.sign_of_life();
                }
            }
        };
        let thread = std::thread::Builder::new().name("cache-heart".into()).spawn(beat)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
