//! A copy of an image while it is served. Programmed pages do not change until their block is erased, so what
//! must be still for a moment are the tables only; the bytes are copied beside the running server, and a
//! block that is about to be overwritten is copied first.
//!
//! Until everything in it is durable a snapshot has a temporary name and an own header: see [`Unfinished`].

use crate::error::{ImageError, Result};
use crate::header::Header;
use crate::hold::{Copy, Hold, copy_range};
use crate::layout::{BLOCK_BYTES, Layout, STATE};
use crate::record::BlockWord;
use crate::unfinished::Unfinished;
use nandscape_core::BlockId;
use nandscape_files::os;
use nandscape_files::os::LockedFile;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// Makes snapshots of an image as long as it is open. Obtained before the medium goes into a stack.
#[derive(Clone, Debug)]
pub struct ImageHandle {
    /// Weak, so that the image is closed, and free for others, when its medium is dropped.
    pub(crate) file: Weak<LockedFile>,
    pub(crate) hold: Arc<Hold>,
    pub(crate) header: Header,
    pub(crate) path: PathBuf,
}

/// A snapshot whose bytes are still to be copied, by [`Snapshot::finish`]. Dropping it gives it up.
#[derive(Debug)]
pub struct Snapshot {
    handle: ImageHandle,
    source: Arc<LockedFile>,
    target: Unfinished,
    blocks: Vec<BlockId>,
    is_shared: bool,
    /// The medium is copying blocks for this snapshot.
    is_held: bool,
}

impl ImageHandle {
    /// The file of the image.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes what the image holds at this moment. No operation of the medium may run meanwhile, and it should
    /// have been synced ([`nandscape_media::MediumState::sync`]): hold the lock under which the stack runs.
    ///
    /// Errors: the target exists or cannot be made, another snapshot of this image is on its way.
    pub fn snapshot(&self, target: &Path) -> Result<Snapshot> {
        if self.hold.is_active() {
            return Err(ImageError::unsuited(target, "another snapshot of the same image is being copied"));
        }
        let closed = || ImageError::unsuited(&self.path, "the image has been closed");
        let source = self.file.upgrade().ok_or_else(closed)?;
        let unfinished = Unfinished::create(target)?;
        let begun = self.begin(&source, &unfinished).map_err(ImageError::io(target, "copy the tables"));
        let (blocks, is_shared) = begun?;
        Ok(Snapshot { handle: self.clone(), source, target: unfinished, blocks, is_shared, is_held: true })
    }

    /// Copies the tables, or shares everything where the file system can.
    fn begin(&self, source: &File, target: &Unfinished) -> io::Result<(Vec<BlockId>, bool)> {
        let layout = self.header.layout();
        // All but the header, so that the copy is at no moment an image.
        let is_shared = os::clone_from(source, &target.file, STATE)?;
        let blocks = if is_shared { Vec::new() } else { self.copy_tables(source, &target.file, &layout)? };
        let header = Header { uuid: os::draw_uuid()?, ..self.header.clone() };
        target.put_head(&header)?;
        let mut pending = vec![false; self.header.geometry.blocks() as usize];
        for block in &blocks {
            pending[block.index()] = true;
        }
        self.hold.begin(Copy { target: target.file.try_clone()?, pending, failed: None });
        Ok((blocks, is_shared))
    }

    /// Gives the blocks that hold something.
    fn copy_tables(&self, source: &File, target: &File, layout: &Layout) -> io::Result<Vec<BlockId>> {
        target.set_len(layout.file_bytes)?;
        let mut table = vec![0; self.header.geometry.blocks() as usize * BLOCK_BYTES as usize];
        source.read_exact_at(&mut table, layout.block_table)?;
        target.write_all_at(&table, layout.block_table)?;
        copy_range(source, target, layout.block_table + layout.to_second_block, table.len() as u64)?;
        let records = u64::from(self.header.geometry.pages_per_block) * u64::from(layout.record_bytes);
        let mut blocks = Vec::new();
        for (block, entry) in (0..).map(BlockId).zip(table.chunks_exact(BLOCK_BYTES as usize)) {
            // A word that cannot be read is not ours to judge: its block is copied as it is.
            if BlockWord::decode(&entry[8..], block, 1).is_none_or(|word| word.is_open) {
                let first = layout.record(self.header.geometry.page(block, 0));
                copy_range(source, target, first, records)?;
                copy_range(source, target, first + layout.to_second_record, records)?;
                blocks.push(block);
            }
        }
        Ok(blocks)
    }
}

impl Snapshot {
    /// Copies the bytes, beside the running server, makes the snapshot durable and gives it its name. It is
    /// an image like any other, cleanly closed.
    pub fn finish(mut self) -> Result<()> {
        let layout = self.handle.header.layout();
        for block in &self.blocks {
            if !self.handle.hold.copy(&self.source, &layout, *block) {
                break;
            }
        }
        let copy = self.handle.hold.end().expect("begun by this snapshot");
        self.is_held = false;
        if let Some(error) = copy.failed {
            return Err(ImageError::io(&self.target.path, "copy")(error));
        }
        drop(copy.target);
        self.target.finish(&layout)?;
        if self.is_shared {
            // A write to a shared table needs room; without it the image fails at that write, not here.
            let _ = os::reserve(&self.source, 0, layout.data);
        }
        Ok(())
    }

    /// Whether the file system shares the bytes, so that nothing is left to copy.
    pub const fn is_shared(&self) -> bool {
        self.is_shared
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if self.is_held {
            self.handle.hold.end();
        }
    }
}
