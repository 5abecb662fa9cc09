//! Signs of life of a server.

use crate::caches::DiskPlace;
use nandscape_cache::manage::Disk as _;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a server shows that it is alive.
const BEAT: Duration = Duration::from_secs(1);

/// A thread that shows that the server is alive, until it is dropped.
#[derive(Debug)]
pub(super) struct Heart {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heart {
    pub(super) fn start(mut disks: Vec<DiskPlace>) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let beat = move || {
            while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
                for disk in &mut disks {
                    // Without a sign of life the next start after a kill may be more careful than it has to be.
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
