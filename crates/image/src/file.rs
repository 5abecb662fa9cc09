//! A store in a file. Its beginning is mapped, which needs space that is there for certain: a write to a mapped page for which the file
//! system has no room ends the process. So the tables are allocated when the image is made.

use crate::error::ImageError;
use crate::hold::Hold;
use crate::layout::Layout;
use crate::store::Store;
use memmap2::{MmapMut, MmapOptions};
use nandscape_core::BlockId;
use nandscape_files::os::{self, Locked};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// A store in a file.
#[derive(Debug)]
pub(crate) struct FileStore {
    pub file: Arc<File>,
    pub hold: Arc<Hold>,
    tables: MmapMut,
    /// Bytes by offset that are kept here instead of in the file, of a store that must not change it.
    aside: Option<BTreeMap<u64, Vec<u8>>>,
}

impl FileStore {
    /// Makes a file of `length` bytes with room for its first `tables`, which begin with `head` and are zeroes after it. A file that is
    /// there is refused.
    pub fn create(path: &Path, length: u64, tables: u64, head: &[u8]) -> Result<Self, ImageError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(ImageError::io(path, "create"))?;
        let fill = |file: &File| -> Result<Self, ImageError> {
            lock(file, path)?;
            file.set_len(length).map_err(ImageError::io(path, "make the file as long as the device"))?;
            os::allocate(file, 0, tables).map_err(ImageError::io(path, "allocate the tables"))?;
            let file = file.try_clone().map_err(ImageError::io(path, "open"))?;
            let mut this = Self::map(file, tables, path)?;
            this.tables[..head.len()].copy_from_slice(head);
            Ok(this)
        };
        fill(&file).inspect_err(|_| drop(std::fs::remove_file(path)))
    }

    /// Opens a file for this process alone.
    pub fn open(path: &Path) -> Result<File, ImageError> {
        let file =
            OpenOptions::new().read(true).write(true).open(path).map_err(ImageError::io(path, "open"))?;
        lock(&file, path)?;
        Ok(file)
    }

    /// Opens a file to look at it only.
    pub fn open_to_read(path: &Path) -> Result<File, ImageError> {
        let file = File::open(path).map_err(ImageError::io(path, "open"))?;
        taken(os::lock(&file, true), path)?;
        Ok(file)
    }

    /// As [`FileStore::map`], but whatever is written stays in memory.
    #[expect(unsafe_code, reason = "a mapped file")]
    pub fn map_aside(file: File, tables: u64, path: &Path) -> Result<Self, ImageError> {
        let length = fitting(tables, path)?;
        // SAFETY: as in `map`.
        let tables = unsafe { MmapOptions::new().len(length).map_copy(&file) }
            .map_err(ImageError::io(path, "map the tables"))?;
        let aside = Some(BTreeMap::new());
        Ok(Self { file: Arc::new(file), hold: Arc::default(), tables, aside })
    }

    /// Maps the first `tables` bytes of a file, which has as many.
    #[expect(unsafe_code, reason = "a mapped file")]
    pub fn map(file: File, tables: u64, path: &Path) -> Result<Self, ImageError> {
        let length = fitting(tables, path)?;
        // SAFETY: the mapping is of a file that this process has locked. Others that keep to the lock do not change it; one that does not
        // can make bytes change under us, which are read as plain bytes and verified by their checksums.
        let tables = unsafe { MmapOptions::new().len(length).map_mut(&file) }
            .map_err(ImageError::io(path, "map the tables"))?;
        Ok(Self { file: Arc::new(file), hold: Arc::default(), tables, aside: None })
    }
}

fn fitting(tables: u64, path: &Path) -> Result<usize, ImageError> {
    usize::try_from(tables).map_err(|_| ImageError::Unsuited {
        path: path.to_owned(),
        what: format!("tables of {tables} bytes do not fit into the address space"),
    })
}

/// Takes a file for this process alone.
pub(crate) fn lock(file: &File, path: &Path) -> Result<(), ImageError> {
    taken(os::lock(file, false), path)
}

fn taken(outcome: io::Result<Locked>, path: &Path) -> Result<(), ImageError> {
    match outcome.map_err(ImageError::io(path, "lock"))? {
        Locked::Ours => Ok(()),
        Locked::Taken => Err(ImageError::Locked { path: path.to_owned() }),
    }
}

impl Store for FileStore {
    fn tables(&self) -> &[u8] {
        &self.tables
    }

    fn tables_mut(&mut self) -> &mut [u8] {
        &mut self.tables
    }

    fn read_at(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        if let Some(aside) = &self.aside
            && let Some((start, bytes)) = aside.range(..=offset).next_back()
            && let Some(bytes) = bytes.get((offset - start) as usize..)
            && bytes.len() >= data.len()
        {
            data.copy_from_slice(&bytes[..data.len()]);
            return Ok(());
        }
        self.file.read_exact_at(data, offset)
    }

    fn write_at(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        if let Some(aside) = &mut self.aside {
            aside.insert(offset, data.to_vec());
            return Ok(());
        }
        self.file.write_all_at(data, offset)
    }

    fn before_overwrite(&mut self, block: BlockId, layout: &Layout) {
        // A snapshot that could not have the block has noted why; the medium goes on.
        if self.hold.is_active() {
            self.hold.copy(&self.file, layout, block);
        }
    }

    fn punch(&mut self, offset: u64, len: u64) -> io::Result<()> {
        if self.aside.is_some() {
            return Ok(());
        }
        os::punch(&self.file, offset, len).map(drop)
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.aside.is_some() {
            return Ok(());
        }
        // On Linux this writes mapped pages too: a page is noted as dirty when it is first written through the mapping.
        self.file.sync_data()
    }
}
