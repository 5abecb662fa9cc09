//! Flash in a file: what others have of it.

use crate::error::ImageError;
use crate::file::FileStore;
use crate::flash::Flash;
use crate::header::Header;
use crate::snapshot::ImageHandle;
use nandscape_core::Geometry;
use nandscape_media::NandOptions;
use std::path::Path;
use std::sync::Arc;

/// Flash in a file. One process at a time has it.
///
/// Dropping it closes it cleanly; after anything else the next start looks at what was open.
pub type ImageMedium = Flash<FileStore>;

impl ImageMedium {
    /// Makes an image in a new file, wholly erased; `config` is kept in it as text.
    ///
    /// Errors: the file exists or cannot be made or locked, a bad block outside the device, a configuration
    /// above 56 KiB.
    pub fn create(
        path: &Path,
        geometry: &Geometry,
        options: &NandOptions,
        config: &str,
    ) -> Result<Self, ImageError> {
        crate::start::create(path, geometry, options, config)
    }

    /// Opens an image for this process alone. What the last process left open is looked at first; after a
    /// failure of the machine that is every record.
    ///
    /// Errors name file and offset: not an image, a newer version, in use, whatever stands in header or block
    /// table and cannot be.
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        crate::start::open(path)
    }

    /// Opens an image to look at it: whatever is written to the medium stays in memory, and the file is not
    /// changed. Refused while a server has it.
    pub fn open_aside(path: &Path) -> Result<Self, ImageError> {
        crate::start::open_aside(path)
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

    /// What the image is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Counts programs per page from now on (4 B a page).
    pub fn count_programs(&mut self) {
        self.program_counts = Some(vec![0; self.layout.geometry.pages() as usize]);
    }
}
