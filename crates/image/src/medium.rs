//! Flash in a file: what others have of it.

use crate::error::ImageError;
use crate::file::FileStore;
use crate::flash::Flash;
use crate::header::Header;
use crate::snapshot::ImageHandle;
use nandscape_core::{BlockId, Capabilities, FlashError, Geometry, MediumHealth, Oob, OpCounts, Ppn};
use nandscape_media::{Medium, NandOptions};
use std::path::Path;
use std::sync::Arc;

/// Flash in a file. One process at a time has it.
///
/// Dropping it closes it cleanly; after anything else the next start looks at what was open.
#[derive(Debug)]
pub struct ImageMedium {
    pub(crate) inner: Flash<FileStore>,
}

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
        Ok(Self { inner: crate::start::create(path, geometry, options, config)? })
    }

    /// Opens an image for this process alone. What the last process left open is looked at first; after a
    /// failure of the machine that is every record.
    ///
    /// Errors name file and offset: not an image, a newer version, in use, whatever stands in header or block
    /// table and cannot be.
    pub fn open(path: &Path) -> Result<Self, ImageError> {
        Ok(Self { inner: crate::start::open(path)? })
    }

    /// Opens an image to look at it: whatever is written to the medium stays in memory, and the file is not
    /// changed. Refused while a server has it.
    pub fn open_aside(path: &Path) -> Result<Self, ImageError> {
        Ok(Self { inner: crate::start::open_aside(path)? })
    }

    /// What snapshots are made with.
    pub fn handle(&self, path: &Path) -> ImageHandle {
        ImageHandle {
            file: Arc::downgrade(&self.inner.store.file),
            hold: Arc::clone(&self.inner.store.hold),
            header: self.inner.header.clone(),
            path: path.to_owned(),
        }
    }

    /// What the image is.
    pub fn header(&self) -> &Header {
        &self.inner.header
    }

    /// Counts programs per page from now on (4 B a page).
    pub fn count_programs(&mut self) {
        self.inner.program_counts = Some(vec![0; self.inner.layout.geometry.pages() as usize]);
    }
}

impl Medium for ImageMedium {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn read(&mut self, page: Ppn, data: Option<&mut [u8]>) -> Result<Oob, FlashError> {
        self.inner.read(page, data)
    }

    fn read_part(&mut self, page: Ppn, start: u32, data: &mut [u8]) -> Result<Oob, FlashError> {
        self.inner.read_part(page, start, data)
    }

    fn note_unmapped_read(&mut self) {
        self.inner.note_unmapped_read();
    }

    fn program(&mut self, page: Ppn, oob: Oob, data: Option<&[u8]>) -> Result<(), FlashError> {
        self.inner.program(page, oob, data)
    }

    fn erase(&mut self, block: BlockId) -> Result<(), FlashError> {
        self.inner.erase(block)
    }

    fn sync(&mut self) -> Result<(), FlashError> {
        self.inner.sync()
    }

    fn mark_bad(&mut self, block: BlockId) {
        self.inner.mark_bad(block);
    }

    fn tear_program(&mut self, page: Ppn) -> Result<(), FlashError> {
        self.inner.tear_program(page)
    }

    fn tear_erase(&mut self, block: BlockId) {
        self.inner.tear_erase(block);
    }

    fn rot(&mut self, page: Ppn, bit: u64) -> bool {
        self.inner.rot(page, bit)
    }

    fn health(&self) -> MediumHealth {
        self.inner.health()
    }

    fn is_programmed(&self, page: Ppn) -> bool {
        self.inner.is_programmed(page)
    }

    fn write_pointer(&self, block: BlockId) -> u32 {
        self.inner.write_pointer(block)
    }

    fn erase_count(&self, block: BlockId) -> u32 {
        self.inner.erase_count(block)
    }

    fn is_bad(&self, block: BlockId) -> bool {
        self.inner.is_bad(block)
    }

    fn totals(&self) -> OpCounts {
        self.inner.totals()
    }

    fn reset_totals(&mut self) {
        self.inner.reset_totals();
    }

    fn program_counts(&self) -> Option<&[u32]> {
        self.inner.program_counts()
    }
}
