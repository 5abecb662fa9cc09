//! Caches over files and block devices: made, changed, looked at and served.

mod create;
mod joined;
mod making;
mod mapped;
mod mark;
mod mirror;
mod place;
mod serving;
mod settings;
mod shares;
mod stat;

pub use making::Making;
pub use mapped::Mapping;
pub use mark::{MARK_SUFFIX, mark_of};
pub use mirror::{MEMBERS_MAX, MirrorMember, Replacement};
pub use place::Place;
pub use serving::{CachedFiles, Handle, Serving, cache_in_memory, open_cache};
pub use settings::{NAME_EXPECTED, Named, Settings, is_name};
pub use stat::{CacheStat, LostRange, VolumeStat};

use nandscape_cache::Mode;
use nandscape_cache::compose::Typed;
use nandscape_cache::manage::{self, Attach, GivenUp, Held, ManageError, Progress, Verdict};
use nandscape_cache::metadata::{Area as _, Lost, Superblock};
use nandscape_core::ParamError;
pub use nandscape_files::FileError;
use nandscape_files::{FileOptions, FileStore};
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

/// Why something cannot be done to a cache over files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum CacheFileError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Param(#[from] ParamError),
    #[error("{}: {}{source}", path.display(), name.as_ref().map_or_else(String::new, |name| format!("{name}: ")))]
    Manage {
        path: PathBuf,
        name: Option<String>,
        #[source]
        source: ManageError,
    },
    /// A name, mode, kind of metadata or key that cannot be, with what would do.
    #[error("{0}")]
    Usage(String),
    #[error("{}: expected no disk of a cache, and beside it is the stamp file {}", path.display(), mark_of(path).display())]
    IsDisk { path: PathBuf },
    /// Not with this cache or this disk as they are, or the operating system refused: with the path and why.
    #[error("{0}")]
    Refused(String),
}

/// What a cache in files gives, or why not.
pub type Result<T, E = CacheFileError> = std::result::Result<T, E>;

/// A cache that is not served, over its fast file or device.
#[derive(Debug)]
pub struct CacheFile {
    fast: Place,
}

/// Keys of a design that only say what is done with blocks, not where they lie.
const CHANGEABLE: &[&str] =
    &["mode", "eviction", "admission", "cleaning", "flushing", "partial", "victims", "seed"];
/// Keys that say where blocks lie.
const FIXED: &[&str] = &["preset", "block", "size", "map", "ways", "cluster", "metadata"];

/// Keys that say where blocks lie are refused.
fn check_changeable(changes: &Typed, blocks: u64) -> Result<()> {
    match changes.keys().find(|key| FIXED.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let allowed = CHANGEABLE.join(", ") + ", limit, quota.VOLUME and the parameters of policies";
            Err(CacheFileError::Usage(format!(
                "cache.{key} cannot change while the cache holds blocks ({blocks} now): expected one of {allowed}"
            )))
        }
    }
}

impl CacheFileError {
    fn refused(path: &Path, detail: impl Display) -> Self {
        Self::Refused(format!("{}: {detail}", path.display()))
    }

    fn name(name: &str, expected: &str) -> Self {
        Self::Usage(format!("volume name '{name}': expected {expected}"))
    }

    /// Dirty blocks of a cache in memory.
    fn volatile(mode: Mode) -> Self {
        Self::Usage(format!(
            "mode {} in memory: expected write-through, write-around or pass-through, since what is dirty would be lost with the process",
            mode.name()
        ))
    }
}

/// How the fast files of a cache are opened.
const FAST: FileOptions =
    FileOptions { is_direct: false, is_read_only: false, expected_bytes: None, keeps_space: true };

impl CacheFile {
    /// Opens a cache that is there, for this process alone unless nothing is to be changed.
    pub fn open(path: &Path, is_read_only: bool) -> Result<Self> {
        let options = FileOptions { is_read_only, ..FAST };
        let mut fast = Place::over(mirror::open(path, options, None)?, path);
        match Superblock::read_alone(&mut fast) {
            Ok(superblock) => {
                // What is wrong with the settings is said by those who use them.
                if let Ok(Settings { data: Some(data), .. }) = Settings::parse(path, &superblock.settings) {
                    let file = joined::open_data(&data, &superblock, options, path)?;
                    let extent = joined::data_of(&superblock);
                    fast.store.get().put_apart(extent, file, superblock.shape.block_bytes);
                }
            }
            // So is what is wrong with the metadata, unless they are elsewhere.
            Err(_) => fast.store.get().files().try_for_each(joined::check_metadata)?,
        }
        Ok(Self { fast })
    }

    fn failed(&self, source: ManageError) -> CacheFileError {
        let name = source.volume().and_then(|id| {
            let (superblock, _) = Superblock::read(&mut self.fast.clone()).ok()?;
            let settings = Settings::parse(self.fast.path(), &superblock.settings).ok()?;
            Some(settings.volumes.get(&id)?.name.clone())
        });
        CacheFileError::Manage { path: self.fast.path().to_owned(), name, source }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.fast.path()
    }

    /// What is in it, and how it is to be used.
    pub fn look(&mut self) -> Result<(Held, Settings)> {
        let held = manage::look(&mut self.fast).map_err(|source| self.failed(source))?;
        let settings = Settings::parse(self.fast.path(), &held.superblock.settings)?;
        Ok((held, settings))
    }

    /// Opens the disk of a volume, where it was or at `path`.
    pub fn disk(&self, settings: &Settings, id: u16, path: Option<&Path>) -> Result<Place> {
        let path = path.or_else(|| Some(&settings.volumes.get(&id)?.path));
        let path = path.ok_or_else(|| {
            let detail = format!("volume {id} has no path: expected --disk NAME=PATH");
            Settings::wrong(self.fast.path(), &detail)
        })?;
        Place::open_disk(path, FileOptions::default())
    }

    /// Puts a disk behind the cache, under a name, with a quota if there is to be one. Gives its size.
    pub fn attach(&mut self, disk: &Path, name: &str, quota: Option<&str>, replace: bool) -> Result<u64> {
        let (held, mut settings) = self.look()?;
        if !is_name(name) {
            return Err(CacheFileError::name(name, NAME_EXPECTED));
        }
        if settings.id(name).is_ok() {
            return Err(CacheFileError::name(name, "one that no volume has"));
        }
        let path = std::fs::canonicalize(disk).map_err(refused(disk, "open"))?;
        self.check_alone(&settings, &path)?;
        let mut place = Place::open_disk(&path, FileOptions::default())?;
        let id = manage::free_id(&held.superblock);
        settings.volumes.insert(id, Named { name: name.to_owned(), path, quota: quota.map(str::to_owned) });
        settings.shares(&settings.design()?, held.superblock.shape.slots)?;
        let uuid = draw_uuid(self.fast.path())?;
        let with = Attach { id, uuid, settings: settings.text(), replace };
        manage::attach(&mut self.fast, &mut place, &with).map_err(|source| self.failed(source))?;
        Ok(place.capacity_bytes())
    }

    /// A file may have several names.
    fn check_alone(&self, settings: &Settings, disk: &Path) -> Result<()> {
        let Ok(own) = std::fs::metadata(disk) else { return Ok(()) };
        let is_it = |path: &Path| std::fs::metadata(path).is_ok_and(|other| is_same_file(&own, &other));
        let twice = |what: &str| {
            let detail = format!("{what}: expected a disk of its own for each volume");
            Err(CacheFileError::refused(disk, detail))
        };
        let members = self.fast.mirror();
        let is_member = members.iter().any(|member| is_it(&member.path));
        if is_it(self.path()) || is_member || settings.data.as_deref().is_some_and(is_it) {
            return twice("the cache itself");
        }
        match settings.volumes.values().find(|volume| is_it(&volume.path)) {
            Some(volume) => twice(&format!("the disk of volume {}", volume.name)),
            None => Ok(()),
        }
    }

    /// Takes a volume off, with its dirty blocks on the disk, and gives the disk's path.
    pub fn detach(&mut self, name: &str, disk: Option<&Path>, progress: Progress<'_>) -> Result<PathBuf> {
        let (_, mut settings) = self.look()?;
        let id = settings.id(name)?;
        let mut place = self.disk(&settings, id, disk)?;
        settings.volumes.remove(&id);
        let done = manage::detach(&mut self.fast, &mut place, id, &settings.text(), progress);
        done.map_err(|source| self.failed(source))?;
        Ok(place.path().to_owned())
    }

    /// Takes a volume off and throws away what its disk does not have. Gives the bytes lost.
    pub fn discard(&mut self, name: &str) -> Result<u64> {
        let (held, mut settings) = self.look()?;
        let id = settings.id(name)?;
        let lost = held.usage(Some(id)).dirty_bytes;
        let volume = settings.volumes.remove(&id);
        manage::remove(&mut self.fast, id, &settings.text()).map_err(|source| self.failed(source))?;
        // The disk may be gone; its stamp goes, unless it is that of another cache by now.
        let uuid = held.superblock.volumes.iter().find(|volume| volume.id == id).map(|volume| volume.uuid);
        if let Some((volume, uuid)) = volume.zip(uuid) {
            mark::remove_mark(&volume.path, &uuid).map_err(refused(&mark_of(&volume.path), "remove"))?;
        }
        Ok(lost)
    }

    /// Goes on without what a session that was cut short has lost of a volume, or of all; gives the names of
    /// those concerned.
    pub fn discard_lost(&mut self, name: Option<&str>) -> Result<Vec<String>> {
        let (_, settings) = self.look()?;
        let only = name.map(|name| settings.id(name)).transpose()?;
        let mut names = Vec::new();
        for (id, volume) in settings.volumes.iter().filter(|(id, _)| only.is_none_or(|only| only == **id)) {
            let done = manage::discard_lost(&mut self.fast, *id);
            if done.map_err(|source| self.failed(source))? {
                names.push(volume.name.clone());
            }
        }
        Ok(names)
    }

    /// Writes the dirty blocks of all volumes, or of one, to their disks.
    pub fn clean(
        &mut self,
        name: Option<&str>,
        disks: &[(String, PathBuf)],
        progress: Progress<'_>,
    ) -> Result<()> {
        let (held, settings) = self.look()?;
        for (name, _) in disks {
            settings.id(name)?;
        }
        let only = name.map(|name| settings.id(name)).transpose()?;
        let mut places = Vec::new();
        for volume in held.superblock.volumes.iter().filter(|volume| only.is_none_or(|id| id == volume.id)) {
            manage::check_lost(&held, volume.id).map_err(|source| self.failed(source))?;
            if held.usage(Some(volume.id)).dirty_blocks != 0 {
                let path = chosen(&settings, volume.id, disks);
                places.push((volume.id, self.disk(&settings, volume.id, path)?));
            }
        }
        let mut places: Vec<(u16, &mut dyn manage::Disk)> =
            places.iter_mut().map(|(id, place)| (*id, place as &mut dyn manage::Disk)).collect();
        manage::clean(&mut self.fast, &mut places, progress).map_err(|source| self.failed(source))
    }

    /// Other settings: keys of the design, `limit` and `quota.VOLUME`; an empty value takes back what was
    /// set.
    pub fn set(&mut self, changes: &Typed) -> Result<()> {
        let (held, mut settings) = self.look()?;
        settings.change(changes, held.usage(None).blocks)?;
        manage::set(&mut self.fast, &settings.text()).map_err(|source| self.failed(source))
    }

    /// Takes the size that a volume's disk has now. Gives the old and the new one.
    pub fn resize(&mut self, name: &str, disk: Option<&Path>) -> Result<(u64, u64)> {
        let (_, settings) = self.look()?;
        let id = settings.id(name)?;
        let mut place = self.disk(&settings, id, disk)?;
        manage::resize(&mut self.fast, &mut place, id).map_err(|source| self.failed(source))
    }

    /// Whether the disk of a volume is as the cache left it.
    pub fn verdict(&mut self, id: u16, disk: Option<&Path>) -> Result<Verdict> {
        let (held, settings) = self.look()?;
        let path = disk.or_else(|| Some(&settings.volumes.get(&id)?.path));
        let options = FileOptions { is_read_only: true, ..FileOptions::default() };
        let mut place = Place::open_disk(path.unwrap_or(Path::new("")), options)?;
        manage::check(&held, &mut place, id).map_err(|source| self.failed(source))
    }

    /// What the disk of a volume does not have, and how the cache was given up if it was. The disk need not
    /// be there.
    pub fn dirty(&mut self, name: &str, disk: Option<&Path>) -> Result<(Vec<Lost>, Option<GivenUp>)> {
        let (mut held, settings) = self.look()?;
        let id = settings.id(name)?;
        let given_up = self.given_up(&held, &settings, id, disk)?;
        if let Some(given_up) = &given_up {
            held.count_only(id, &given_up.counts);
        }
        Ok((held.dirty(id), given_up))
    }

    fn given_up(
        &self,
        held: &Held,
        settings: &Settings,
        id: u16,
        disk: Option<&Path>,
    ) -> Result<Option<GivenUp>> {
        let path = disk.or_else(|| Some(&settings.volumes.get(&id)?.path));
        let options = FileOptions { is_read_only: true, ..FileOptions::default() };
        let mut place = path.and_then(|path| Place::open_disk(path, options).ok());
        let place = place.as_mut().map(|place| place as &mut dyn manage::Disk);
        manage::given_up(held, place, id).map_err(|source| self.failed(source))
    }

    /// Writes what the disk of a volume does not have over what it has now.
    pub fn salvage(&mut self, name: &str, disk: Option<&Path>, progress: Progress<'_>) -> Result<()> {
        let (_, settings) = self.look()?;
        let id = settings.id(name)?;
        let mut place = self.disk(&settings, id, disk)?;
        manage::salvage(&mut self.fast, &mut place, id, progress).map_err(|source| self.failed(source))
    }

    /// Writes what the disk of a volume does not have to the same offsets of a new file, which is sparse
    /// elsewhere.
    pub fn salvage_to(
        &mut self,
        name: &str,
        disk: Option<&Path>,
        target: &Path,
        progress: Progress<'_>,
    ) -> Result<()> {
        let (held, settings) = self.look()?;
        let id = settings.id(name)?;
        let given_up = self.given_up(&held, &settings, id, disk)?;
        let volume = held.superblock.volumes.iter().find(|volume| volume.id == id);
        let bytes = volume.map_or(0, |volume| volume.bytes);
        if target.symlink_metadata().is_ok() {
            return Err(refused(target, "create")(io::ErrorKind::AlreadyExists.into()));
        }
        // It has its name once it is whole.
        let mut part = target.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let _ = std::fs::remove_file(&part);
        let store = FileStore::create(&part, bytes, FileOptions::default())?;
        let mut place = Place::new(store, &part);
        let done = manage::copy_dirty(&mut self.fast, &mut place, id, given_up.as_ref(), progress);
        let done = done.map_err(|source| self.failed(source));
        let done = done.and_then(|()| std::fs::rename(&part, target).map_err(refused(target, "rename")));
        done.inspect_err(|_| drop(std::fs::remove_file(&part)))
    }
}

/// A file by its number, a block device by its own.
fn is_same_file(a: &std::fs::Metadata, b: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    let is_device = a.file_type().is_block_device() && b.file_type().is_block_device();
    if is_device { a.rdev() == b.rdev() } else { (a.dev(), a.ino()) == (b.dev(), b.ino()) }
}

/// The path that was given for a volume.
fn chosen<'a>(settings: &Settings, id: u16, disks: &'a [(String, PathBuf)]) -> Option<&'a Path> {
    let name = &settings.volumes.get(&id)?.name;
    disks.iter().find(|(given, _)| given == name).map(|(_, path)| path.as_path())
}

fn draw_uuid(path: &Path) -> Result<[u8; 16]> {
    nandscape_files::os::draw_uuid().map_err(refused(path, "draw a number for the cache"))
}

/// The operating system's answer to something that was tried on a path.
fn refused(path: &Path, what: &'static str) -> impl FnOnce(io::Error) -> CacheFileError {
    move |error| CacheFileError::refused(path, format!("{what}: {error}"))
}
