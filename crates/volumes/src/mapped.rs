//! A cache from the table line of FIU's dm-cache, which names the cache device and the disk.

use super::{CacheFile, CacheFileError, CacheStat, Making, Place, Result};
use nandscape_cache::Mode;
use nandscape_cache::compose::{Design, Typed};
use nandscape_cache::manage::ManageError;
use nandscape_cache::metadata::{MetadataError, Superblock};
use nandscape_cache::status::{TableField, TableLine};
use nandscape_core::ParamError;
use nandscape_files::FileOptions;
use std::path::Path;

/// How a cache is made from a line.
#[derive(Clone, Copy, Debug)]
pub struct Mapping<'a> {
    /// Name of the volume.
    pub name: &'a str,
    /// Size of a cache file that is to be made.
    pub bytes: Option<u64>,
    /// Keys beside those that the line means.
    pub keys: &'a Typed,
    /// What else.
    pub making: Making<'a>,
}

/// An error of the file that a field names.
fn of_file(field: TableField) -> impl Fn(CacheFileError) -> CacheFileError {
    move |error| match error {
        CacheFileError::File(_) | CacheFileError::Refused(_) => {
            CacheFileError::Refused(format!("{field}: {error}"))
        }
        // A number of blocks for which there is no room.
        CacheFileError::Manage { source: ManageError::Metadata(MetadataError::TooSmall { .. }), .. } => {
            CacheFileError::Refused(format!("{}: {error}", TableField::Blocks))
        }
        error => error,
    }
}

/// The sectors of the disk are those of the line.
fn check_sectors(line: &TableLine, bytes: u64) -> Result<(), ParamError> {
    if line.sectors * 512 == bytes {
        return Ok(());
    }
    let expected = format!("{}, the size of {} ({bytes} bytes)", bytes / 512, line.origin);
    Err(TableField::Sectors.wrong(line.sectors, expected))
}

impl CacheFile {
    /// Makes the empty cache that a line means, and attaches its disk.
    pub fn create_mapped(line: &TableLine, with: &Mapping<'_>) -> Result<(Self, Superblock, Design)> {
        let mut typed = line.typed();
        if let Some(key) = with.keys.keys().find(|key| typed.contains_key(*key)) {
            let detail =
                format!("cache.{key} beside a table line: expected no key that the line gives a value");
            return Err(CacheFileError::Usage(detail));
        }
        typed.extend(with.keys.clone());
        let design = Design::parse("cache.", &typed)?;
        let (origin, path) = (Path::new(&line.origin), Path::new(&line.cache));
        let options = FileOptions { is_read_only: true, ..FileOptions::default() };
        let bytes =
            Place::open(origin, options).map_err(of_file(TableField::Origin))?.store().capacity_bytes();
        check_sectors(line, bytes)?;
        let is_new = !path.try_exists().unwrap_or(true);
        let made = Self::create(path, with.bytes, &design, with.making);
        let (mut cache, superblock) = made.map_err(of_file(TableField::CacheDevice))?;
        if let Err(error) = cache.attach(origin, with.name, None, with.making.replace) {
            if is_new {
                // It was made for this.
                let _ = std::fs::remove_file(path);
            }
            return Err(of_file(TableField::Origin)(error));
        }
        Ok((cache, superblock, design))
    }

    /// The cache that a line means and that is there already, how it stands, and which of its volumes is on
    /// the disk of the line. Nothing is changed.
    ///
    /// The original does not look at the fields behind the persist flag; here they are those of the cache, or
    /// left out.
    pub fn open_mapped(line: &TableLine) -> Result<(CacheStat, usize)> {
        use TableField::{BlockSectors, Blocks, CacheDevice, Origin, Ways, WriteBack};
        let path = Path::new(&line.cache);
        let mut cache = Self::open(path, true).map_err(of_file(CacheDevice))?;
        let stat = cache.stat()?;
        if stat.preset != "dm-cache-fiu" {
            let expected = format!("a cache of preset dm-cache-fiu, and this one has {}", stat.preset);
            return Err(CacheDevice.wrong(&line.cache, expected).into());
        }
        let disk = std::fs::canonicalize(&line.origin);
        let found =
            stat.volumes.iter().position(|volume| disk.as_ref().is_ok_and(|disk| *disk == volume.disk));
        let Some(volume) = found else {
            let disks: Vec<_> = stat.volumes.iter().map(|volume| volume.disk.display().to_string()).collect();
            let expected = if disks.is_empty() {
                "persist 0, or the disk of a volume, of which this cache has none".to_owned()
            } else {
                format!("the disk of a volume of this cache: {}", disks.join(", "))
            };
            return Err(Origin.wrong(&line.origin, expected).into());
        };
        check_sectors(line, stat.volumes[volume].bytes)?;
        let (slots, ways) = (stat.gauges.slots, u64::from(stat.ways).min(stat.gauges.slots));
        for (field, given, of_cache) in [
            (BlockSectors, line.block_sectors.map(u64::from), u64::from(stat.block_bytes) / 512),
            (Blocks, line.blocks.map(u64::from), slots),
            (Ways, line.ways.map(u64::from), ways),
            (WriteBack, line.is_write_back.map(u64::from), u64::from(stat.mode == Mode::WriteBack)),
        ] {
            if let Some(given) = given.filter(|given| *given != of_cache) {
                return Err(field.wrong(given, format!("{of_cache} as the cache has it, or nothing")).into());
            }
        }
        Ok((stat, volume))
    }
}
