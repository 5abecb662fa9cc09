//! Flash in a file: what others have of it.

use crate::error::{ImageError, Result};
use crate::file::FileStore;
use crate::flash::Flash;
use crate::header::Header;
use crate::layout::OOB_MOST;
use crate::locked::{self, open_regular};
use crate::session::session_of;
use crate::snapshot::ImageHandle;
use crate::start;
use nandscape_core::{Geometry, Oob, OutOfBand};
use nandscape_files::os;
use nandscape_files::os::LockedFile;
use nandscape_media::NandOptions;
use std::path::Path;
use std::sync::Arc;

/// Flash in a file. One process at a time has it.
///
/// Dropping it closes it cleanly; after anything else the next start looks at what was open.
pub type ImageFlash<O> = Flash<FileStore, O>;

/// Flash in a file for layers that map logical pages.
pub type ImageMedium = ImageFlash<Oob>;

impl<O: OutOfBand> ImageFlash<O> {
    /// Makes an image in a new file, wholly erased; `config` is kept in it as text.
    ///
    /// Errors: the file exists or cannot be made or locked, a wrong bad block, a configuration above 56 KiB.
    pub fn create(path: &Path, geometry: &Geometry, options: &NandOptions, config: &str) -> Result<Self> {
        const { assert!(O::BYTES <= OOB_MOST, "a record has no room for this OOB") }
        let header = start::header(path, geometry, options, O::BYTES as u32, config)?;
        let layout = header.layout();
        let bad = options.bad_blocks.of(geometry.blocks());
        let bad = bad.map_err(|error| ImageError::unsuited(path, error.to_string()))?;
        let head = start::head(&header);
        let store = FileStore::create(path, layout.file_bytes, layout.data, &head)?;
        let session = session_of(&store.file);
        let flash = start::format(store, header, session, &bad, options)
            .and_then(|flash| os::sync_directory_of(path).map(|()| flash));
        // Half an image would only be in the way of the next attempt.
        flash.map_err(|error| {
            drop(std::fs::remove_file(path));
            ImageError::io(path, "sync")(error)
        })
    }

    /// Opens an image for this process alone. What the last process left open is looked at first; after a
    /// failure of the machine that is every record.
    ///
    /// Errors name file and offset: not an image, a newer version, in use, a bad header or block table.
    pub fn open(path: &Path) -> Result<Self> {
        let file = locked::take(open_regular(path, true)?, false, path)?;
        Self::start(path, file, FileStore::map)
    }

    /// Opens an image to look at it: writes stay in memory. Refused while a server has it.
    pub fn open_aside(path: &Path) -> Result<Self> {
        let file = locked::take(open_regular(path, false)?, true, path)?;
        Self::start(path, file, FileStore::map_aside)
    }

    fn start(
        path: &Path,
        file: LockedFile,
        map: fn(LockedFile, u64, &Path) -> Result<FileStore>,
    ) -> Result<Self> {
        let header = Header::read_from(&file, path)?;
        if header.oob_bytes != (O::BYTES as u32).max(Oob::BYTES as u32) {
            let what = "bytes of the OOB";
            return Err(ImageError::corrupt(path, 160, what, header.oob_bytes, O::BYTES));
        }
        let store = map(file, header.layout().data, path)?;
        let session = session_of(&store.file);
        start::load(store, header, session, path)
    }

    /// What snapshots are made with.
    pub fn handle(&self, path: &Path) -> ImageHandle {
        ImageHandle {
            file: Arc::downgrade(&self.store.file),
            hold: Arc::clone(&self.store.hold),
            header: self.header.clone(),
            path: path.to_owned(),
        }
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Counts programs per page from now on (4 B a page).
    pub fn count_programs(&mut self) {
        self.program_counts = Some(vec![0; self.layout.geometry.pages() as usize]);
    }
}
