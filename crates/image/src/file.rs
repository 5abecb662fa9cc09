//! A store in a file. Its beginning is mapped: the tables. They are allocated when the image is made and
//! again when it is opened, since a copy may have holes there. A page of the tables that the file system
//! cannot provide all the same makes the store fail ([`Store::is_lost`]).

use crate::error::{ImageError, Result};
use crate::hold::Hold;
use crate::layout::Layout;
use crate::locked;
use crate::mapping::{Mapping, Writes};
use crate::store::Store;
use nandscape_core::BlockId;
use nandscape_files::os;
use nandscape_files::os::LockedFile;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug)]
pub struct FileStore {
    pub(crate) file: Arc<LockedFile>,
    pub(crate) hold: Arc<Hold>,
    tables: Mapping,
    /// Bytes that the file had when it was opened.
    length: u64,
    /// Bytes by offset that are kept here instead of in the file, of a store that must not change it.
    aside: Option<BTreeMap<u64, Vec<u8>>>,
}

impl FileStore {
    /// Makes a file of `length` bytes with room for its first `tables`, which begin with `head` and are
    /// zeroes after it. A file that is there is refused.
    pub(crate) fn create(path: &Path, length: u64, tables: u64, head: &[u8]) -> Result<Self> {
        let file = locked::create(path)?;
        let fill = |file: LockedFile| -> Result<Self> {
            file.set_len(length).map_err(ImageError::io(path, "make the file as long as the device"))?;
            os::allocate(&file, 0, tables).map_err(ImageError::io(path, "allocate the tables"))?;
            let mut this = Self::map(file, tables, path)?;
            this.tables[..head.len()].copy_from_slice(head);
            Ok(this)
        };
        fill(file).inspect_err(|_| drop(std::fs::remove_file(path)))
    }

    /// As [`FileStore::map`], but whatever is written stays in memory.
    pub(crate) fn map_aside(file: LockedFile, tables: u64, path: &Path) -> Result<Self> {
        let this = Self::map_with(file, tables, path, Writes::Private)?;
        Ok(Self { aside: Some(BTreeMap::new()), ..this })
    }

    /// Maps the first `tables` bytes of a file, which has as many.
    pub(crate) fn map(file: LockedFile, tables: u64, path: &Path) -> Result<Self> {
        // Has space for them, also where they have become holes or are shared with another file.
        os::reserve(&file, 0, tables).map_err(ImageError::io(path, "allocate the tables"))?;
        Self::map_with(file, tables, path, Writes::Shared)
    }

    fn map_with(file: LockedFile, tables: u64, path: &Path, writes: Writes) -> Result<Self> {
        let what = || format!("tables of {tables} bytes do not fit into the address space");
        let bytes = usize::try_from(tables).map_err(|_| ImageError::unsuited(path, what()))?;
        let length = file.metadata().map_err(ImageError::io(path, "stat"))?.len();
        let file = Arc::new(file);
        let tables = Mapping::new(&file, bytes, writes).map_err(ImageError::io(path, "map the tables"))?;
        Ok(Self { file, hold: Arc::default(), tables, length, aside: None })
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
        // On Linux this writes mapped pages too: the first write through the mapping dirties a page.
        self.file.sync_data()?;
        // What lay beyond the new end is gone, though no write to it failed.
        let length = self.file.metadata()?.len();
        if length < self.length {
            let what = format!("the file has {length} bytes: expected {}", self.length);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
        Ok(())
    }

    #[inline]
    fn is_lost(&self) -> bool {
        self.tables.is_lost()
    }
}
