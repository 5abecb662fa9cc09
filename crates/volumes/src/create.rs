//! Empty caches: in one file, or with their blocks in another.

use super::joined;
use super::making::{Files, Making, check_blank};
use super::mirror::{MEMBERS_MAX, Mirror};
use super::{CacheFile, CacheFileError, Place, Result, Settings, draw_uuid, refused};
use nandscape_cache::compose::Design;
use nandscape_cache::manage::{self, ManageError};
use nandscape_cache::metadata::{Area as _, MetadataError, Setup, Superblock, WATCH_BYTES};
use nandscape_core::{Extent, Store as _};
use nandscape_files::FileStore;
use std::path::{Path, PathBuf};

fn refused_by(path: &Path, source: MetadataError) -> CacheFileError {
    CacheFileError::Manage { path: path.to_owned(), name: None, source: source.into() }
}

/// Bytes that a cache needs and a file does not have.
fn too_small(path: &Path, capacity: u64, needed: u64) -> CacheFileError {
    refused_by(path, MetadataError::TooSmall { capacity, needed })
}

impl CacheFile {
    /// Makes an empty cache. A file that is not there is made with `bytes`; of one that is there, or a block
    /// device, `bytes` are used, or all. With its blocks in a file of their own, `bytes` are that file's.
    pub fn create(
        path: &Path,
        bytes: Option<u64>,
        design: &Design,
        with: Making<'_>,
    ) -> Result<(Self, Superblock)> {
        let mut files = Files::new(with);
        let made = match with.data {
            Some(data) => Self::in_two(path, data, bytes, design, &mut files),
            None if !with.mirror.is_empty() => Self::in_mirror(path, bytes, design, &mut files),
            None => Self::in_one(path, bytes, design, &mut files),
        };
        files.keep_if(made)
    }

    fn in_one(
        path: &Path,
        bytes: Option<u64>,
        design: &Design,
        files: &mut Files<'_>,
    ) -> Result<(Self, Superblock)> {
        let mut cache = Self { fast: Place::new(files.open(path, bytes)?, path) };
        let capacity = cache.fast.capacity_bytes();
        let bytes = bytes.unwrap_or(capacity);
        if bytes > capacity {
            return Err(too_small(path, capacity, bytes));
        }
        let superblock = cache.format(bytes, design, files.with.replace, Settings::default())?;
        Ok((cache, superblock))
    }

    /// `bytes` are those of each member.
    fn in_mirror(
        path: &Path,
        bytes: Option<u64>,
        design: &Design,
        files: &mut Files<'_>,
    ) -> Result<(Self, Superblock)> {
        let all = 1 + files.with.mirror.len();
        if all > MEMBERS_MAX {
            return Err(CacheFileError::Usage(format!("{all} members: expected at most {MEMBERS_MAX}")));
        }
        let paths = std::iter::once(path).chain(files.with.mirror.iter().map(PathBuf::as_path));
        let members = paths.map(|path| files.open(path, bytes)).collect::<Result<Vec<_>>>()?;
        if let Some((file, bytes)) =
            bytes.and_then(|bytes| Some((members.iter().find(|file| file.capacity_bytes() < bytes)?, bytes)))
        {
            return Err(too_small(file.path(), file.capacity_bytes(), bytes));
        }
        let mirror = Mirror::create(members, bytes, files.with.replace)?;
        let mut cache = Self { fast: Place::over(mirror, path) };
        let room = cache.fast.capacity_bytes();
        let superblock = cache.format(room, design, true, Settings::default())?;
        Ok((cache, superblock))
    }

    fn in_two(
        path: &Path,
        data: &Path,
        bytes: Option<u64>,
        design: &Design,
        files: &mut Files<'_>,
    ) -> Result<(Self, Superblock)> {
        let absolute = |path: &Path| std::path::absolute(path).map_err(refused(path, "find"));
        let settings = Settings { data: Some(absolute(data)?), ..Settings::default() };
        if settings.data == Some(absolute(path)?) {
            let detail = "for the metadata and for the blocks: expected two files".to_owned();
            return Err(CacheFileError::refused(path, detail));
        }
        let mut file = files.open(data, bytes)?;
        if !files.with.replace {
            check_blank(&mut file, 4096, "the blocks")?;
        }
        let first = path.try_exists().unwrap_or(true).then(|| files.open(path, None)).transpose()?;
        let unit = first.as_ref().map_or(0, FileStore::block_bytes).max(file.block_bytes()).min(4096);
        let (capacity, label) = (file.capacity_bytes(), joined::label_bytes(design.block_bytes));
        let bytes = bytes.unwrap_or(capacity);
        let slots = bytes.saturating_sub(label) / 4096 * 4096 / u64::from(design.block_bytes);
        if bytes > capacity || slots == 0 {
            return Err(too_small(data, capacity, bytes.max(label + u64::from(design.block_bytes))));
        }
        let slots = u32::try_from(slots).unwrap_or(u32::MAX - 1);
        let sizes = design.metadata_bytes(slots, unit);
        let (slots, metadata) = sizes.map_err(|source| refused_by(path, source))?;
        let first = first.map_or_else(|| files.open(path, Some(metadata + WATCH_BYTES)), Ok)?;
        let extent =
            Extent::new(metadata, (u64::from(slots) * u64::from(design.block_bytes)).next_multiple_of(4096));
        let capacity = first.capacity_bytes();
        if capacity < metadata + WATCH_BYTES {
            return Err(too_small(path, capacity, metadata + WATCH_BYTES));
        }
        let mut cache = Self { fast: Place::new(first, path) };
        cache.fast.store.get().put_apart(extent, file, design.block_bytes);
        let superblock = cache.format(extent.end() + WATCH_BYTES, design, files.with.replace, settings)?;
        assert_eq!(joined::data_of(&superblock), extent, "the metadata take as much as they were said to");
        cache.fast.store.get().apart().map_or(Ok(()), |file| joined::write_label(file, &superblock))?;
        Ok((cache, superblock))
    }

    fn format(
        &mut self,
        bytes: u64,
        design: &Design,
        replace: bool,
        settings: Settings,
    ) -> Result<Superblock> {
        if design.metadata == "none" {
            return Err(CacheFileError::Usage(
                "metadata 'none' keeps nothing: expected another kind, or 'serve --cache ram:SIZE' for a cache in memory"
                    .to_owned(),
            ));
        }
        let unit = self.fast.store.block_bytes().min(4096);
        // What is kept of the disks lies after everything else.
        let room = (bytes / 4096 * 4096).saturating_sub(WATCH_BYTES);
        let setup = design.metadata_setup(room, unit, draw_uuid(self.fast.path())?, Vec::new());
        // What is needed is said of all of it.
        let whole = |source| match source {
            ManageError::Metadata(MetadataError::TooSmall { needed, .. }) => {
                MetadataError::TooSmall { capacity: bytes, needed: needed + WATCH_BYTES }.into()
            }
            source => source,
        };
        let setup = setup.map_err(|source| self.failed(whole(source.into())))?;
        let settings = Settings { design: design.typed().clone(), ..settings }.text();
        let setup = Setup { settings, ..setup };
        let made = manage::create(&mut self.fast, design.metadata, &setup, replace);
        made.map_err(|source| self.failed(whole(source)))
    }
}
