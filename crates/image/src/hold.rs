//! A snapshot that is being copied: no block is overwritten before the snapshot has its copy.

use crate::layout::Layout;
use nandscape_core::BlockId;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

const CHUNK_BYTES: usize = 256 << 10;

/// A snapshot on its way, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    /// Looked at without the lock by a medium that is about to overwrite a block.
    is_active: AtomicBool,
    copy: Mutex<Option<Copy>>,
}

#[derive(Debug)]
pub(crate) struct Copy {
    pub target: File,
    /// By block.
    pub pending: Vec<bool>,
    /// A block could not be copied before it was overwritten: the snapshot is worth nothing.
    pub failed: Option<io::Error>,
}

impl Hold {
    pub fn begin(&self, copy: Copy) {
        *self.lock() = Some(copy);
        self.is_active.store(true, Ordering::Release);
    }

    /// Ends the snapshot and gives what is left of it.
    pub fn end(&self) -> Option<Copy> {
        self.is_active.store(false, Ordering::Release);
        self.lock().take()
    }

    pub fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Acquire)
    }

    /// Copies a block unless that was done. Gives whether the snapshot goes on.
    pub fn copy(&self, source: &File, layout: &Layout, block: BlockId) -> bool {
        let mut lock = self.lock();
        let Some(copy) = lock.as_mut().filter(|copy| copy.failed.is_none()) else { return false };
        if std::mem::replace(&mut copy.pending[block.index()], false) {
            let bytes = layout.geometry.block_bytes();
            copy.failed = copy_range(source, &copy.target, layout.block_data(block), bytes).err();
        }
        copy.failed.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Copy>> {
        self.copy.lock().expect("no thread panicked while it copied")
    }
}

/// Copies a range of a file to the same place in another. Zeroes stay holes.
pub(crate) fn copy_range(source: &File, target: &File, offset: u64, len: u64) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES.min(len as usize)];
    let mut done = 0;
    while done < len {
        let chunk = &mut buffer[..(len - done).min(CHUNK_BYTES as u64) as usize];
        source.read_exact_at(chunk, offset + done)?;
        if !crate::flash::is_zero(chunk) {
            target.write_all_at(chunk, offset + done)?;
        }
        done += chunk.len() as u64;
    }
    Ok(())
}
