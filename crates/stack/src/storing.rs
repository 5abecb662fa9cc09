//! Stacks that keep bytes: in memory, or in an image file.

use crate::config::{ConfigError, StackConfig, Typed};
use crate::flash::BuildOptions;
use crate::interfaces::{INTERFACES, Place};
use crate::kinds::{BLOCK, ext};
use crate::mapped::{LostPage, lost_pages};
use crate::stacks::{OnDevice, Over, build_in_memory, over, stack_of};
use crate::{caching, memory};
use nandscape_core::{NamespaceError, Oob, OutOfBand, RecoveryReport, SimTime, Subsystem};
use nandscape_disk::Keep;
use nandscape_image::{Contents, Findings, Header, ImageError, ImageFlash, ImageHandle, Snapshot};
use nandscape_object::oftl::ObjectOob;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Where the bytes of a stack are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// In memory, gone with the process.
    #[default]
    Memory,
    /// In an image file, made from the configuration if it is absent.
    Image(PathBuf),
    /// In an image file that is not changed: what is written stays in memory.
    ReadOnlyImage(PathBuf),
}

impl Storage {
    fn image(&self) -> Option<&Path> {
        match self {
            Self::Memory => None,
            Self::Image(path) | Self::ReadOnlyImage(path) => Some(path),
        }
    }
}

/// Why a stack that keeps bytes cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum StorageError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Stack(#[from] NamespaceError),
    #[error("{}: the configuration in the image: {source}", path.display())]
    Stored { path: PathBuf, source: ConfigError },
    #[error("{key} = {asked}: expected {stored}, with which {} was made", path.display())]
    Contradiction { key: String, asked: String, stored: String, path: PathBuf },
}

/// Tables of the configuration that belong to a run, not to a device: an image neither keeps nor contradicts
/// them.
fn of_the_run() -> Vec<&'static str> {
    let served = INTERFACES.iter().filter(|entry| entry.place == Place::Served);
    ["workload", "faults", "host"].into_iter().chain(served.map(|entry| entry.info.name)).collect()
}

/// The configuration that a stack has: what was typed, or, over an image that exists, what it was made with.
///
/// Errors: what [`Typed::check`] refuses; a key that was typed and contradicts the image.
pub fn resolve(typed: &Typed, storage: &Storage) -> Result<StackConfig, StorageError> {
    let Some(path) = storage.image().filter(|path| path.try_exists().unwrap_or(true)) else {
        let asked = typed.check()?;
        refuse_without_bytes(&asked)?;
        return Ok(asked);
    };
    let mut stored = stored(path)?;
    let held = stored.check().map_err(|source| StorageError::Stored { path: path.to_owned(), source })?;
    let asked = of_kinds(typed, &held)?.check()?;
    refuse_without_bytes(&asked)?;
    let of_the_run = of_the_run();
    for key in typed.keys() {
        let is_of_the_run = of_the_run.iter().any(|table| key.split('.').next() == Some(table));
        // The keys of a preset were compared by themselves.
        if is_of_the_run || key == "device.preset" {
            continue;
        }
        let (asked, stored) = (asked.value(&key), held.value(&key));
        if asked != stored {
            // Without a stack it is a block device.
            let none = if key == "stack.kind" { BLOCK.info.name } else { "no value" };
            let or_nothing = |value: Option<String>| value.unwrap_or_else(|| none.to_owned());
            return Err(StorageError::Contradiction {
                key,
                asked: or_nothing(asked),
                stored: or_nothing(stored),
                path: path.to_owned(),
            });
        }
    }
    for table in of_the_run {
        stored.replace_table(typed, table);
    }
    Ok(stored.check()?)
}

/// What was typed, with the stack and the layer of an image where neither was: the other keys are theirs.
fn of_kinds(typed: &Typed, held: &StackConfig) -> Result<Typed, ConfigError> {
    let mut typed = typed.clone();
    let kinds = ["stack.kind", "ftl.kind"];
    if !kinds.iter().any(|key| typed.has(key)) {
        for (key, kind) in kinds.iter().filter_map(|key| Some((key, held.value(key)?))) {
            typed.set(key, &kind)?;
        }
    }
    Ok(typed)
}

/// Refuses stacks that only replays can use.
fn refuse_without_bytes(config: &StackConfig) -> Result<(), ConfigError> {
    let name = config.stack.info.name;
    let reason = if name == ext::ATOMIC.info.name {
        "no server has atomic writes of several pages: expected replay or compare, or --stack oftl, whose writes are atomic"
    } else if config.has_file_system() {
        "f2fs keeps no bytes: expected replay or compare, or --stack zone-files for files on zones"
    } else {
        return Ok(());
    };
    Err(ConfigError::Unsuited(format!("stack.kind = {name}: {reason}")))
}

/// The configuration in an image, as if it had been typed.
fn stored(path: &Path) -> Result<Typed, StorageError> {
    let header = Header::read(path)?;
    let wrong = |source| StorageError::Stored { path: path.to_owned(), source };
    let mut stored = Typed::new();
    stored.merge_text(&path.display().to_string(), &header.config).map_err(wrong)?;
    Ok(stored)
}

/// A stack that keeps bytes.
pub struct Stored {
    /// Its namespaces.
    pub subsystem: Box<dyn Subsystem + Send>,
    /// What makes snapshots of its image, if it has one: see [`snapshot`].
    pub image: Option<ImageHandle>,
}

/// As [`build_stored`] in memory: the bytes are gone with the process.
pub fn build_storing(config: &StackConfig) -> Result<Box<dyn Subsystem + Send>, StorageError> {
    Ok(build_stored(config, &Storage::Memory)?.subsystem)
}

/// Builds all namespaces of a configuration over a device that keeps bytes, for servers.
///
/// Errors: as [`crate::build_subsystem`]; an image that cannot be made or opened, or whose shape is not that
/// of the configuration.
pub fn build_stored(config: &StackConfig, storage: &Storage) -> Result<Stored, StorageError> {
    if let Some(cache) = &config.cache {
        if *storage != Storage::Memory {
            return Err(cache_in_image().into());
        }
        let cache = caching::build(cache, config, BuildOptions::default(), Keep::Bytes)?;
        return Ok(Stored {
            subsystem: config.with_interfaces(Place::Served, Box::new(cache))?,
            image: None,
        });
    }
    let Some(path) = storage.image() else {
        return Ok(Stored { subsystem: build_in_memory(config)?, image: None });
    };
    memory::check(config)?;
    let mut config = config.clone();
    config.nand.capabilities.stores_data = true;
    let is_read_only = matches!(storage, Storage::ReadOnlyImage(_));
    match stack_of(&config).over {
        Over::Pages(build) => build_on(&config, path, is_read_only, build),
        Over::Objects(build) => build_on(&config, path, is_read_only, build),
    }
}

fn build_on<O: OutOfBand>(
    config: &StackConfig,
    path: &Path,
    is_read_only: bool,
    build: OnDevice<O>,
) -> Result<Stored, StorageError> {
    let medium = if is_read_only {
        fitting(config, ImageFlash::open_aside(path)?, path)?
    } else if path.try_exists().unwrap_or(true) {
        fitting(config, ImageFlash::open(path)?, path)?
    } else {
        create_on::<O>(config, path)?
    };
    // A snapshot copies the file, which does not have what the start wrote to memory.
    let image = (!is_read_only).then(|| medium.handle(path));
    Ok(Stored { subsystem: over(config, Box::new(medium), build, true)?, image })
}

/// Why there is no image of the flash of a cache.
fn cache_in_image() -> ConfigError {
    ConfigError::Unsuited(
        "[cache] and [disk] with an image: the disk of a configuration is gone with the process, so the flash of its cache would have nothing behind it; \
         expected no image (serve it from memory), no [cache] and [disk] (the flash alone), or a cache over files that lasts: \
         nandscape cache create FAST, cache attach FAST DISK, and serve --cache FAST"
            .to_owned(),
    )
}

/// An image whose header says what the configuration in it says. A program that wrote both wrote the same.
fn fitting<O: OutOfBand>(
    config: &StackConfig,
    image: ImageFlash<O>,
    path: &Path,
) -> Result<ImageFlash<O>, StorageError> {
    let (header, geometry) = (image.header(), config.seen_geometry());
    if header.geometry == *geometry && header.capabilities == config.nand.capabilities {
        return Ok(image);
    }
    let source = ConfigError::Unsuited(format!(
        "it describes {geometry:?} with {:?}, the header {:?} with {:?}",
        config.nand.capabilities, header.geometry, header.capabilities
    ));
    Err(StorageError::Stored { path: path.to_owned(), source })
}

/// Takes what the device holds at `at` into a new image; [`Snapshot::finish`] then copies the bytes beside
/// the running stack. To be called between two commands of `subsystem`, which stands over `image`.
pub fn snapshot(
    subsystem: &mut dyn Subsystem,
    at: SimTime,
    image: &ImageHandle,
    target: &Path,
) -> Result<Snapshot, StorageError> {
    // Everything durable and a checkpoint written; the stack goes on after it.
    subsystem.shutdown(at)?;
    Ok(image.snapshot(target)?)
}

/// What a check of an image found.
#[derive(Debug, Serialize)]
pub struct Checked {
    /// Tables and bytes.
    #[serde(flatten)]
    pub findings: Findings,
    /// What the start of each set found.
    pub recovery: Vec<RecoveryReport>,
    /// Why the stack does not start from the image, if it does not.
    pub start_error: Option<String>,
    /// How many pages are mapped and cannot be read.
    pub lost_pages: u64,
    /// The first ten thousand of them.
    pub lost: Vec<LostPage>,
}

impl Checked {
    /// Whether nothing is wrong.
    pub const fn is_good(&self) -> bool {
        self.findings.problem_count == 0 && self.start_error.is_none() && self.lost_pages == 0
    }
}

/// What an image holds.
pub struct Held {
    /// The configuration in it.
    pub config: StackConfig,
    /// What it is.
    pub header: Header,
    /// What its tables say.
    pub contents: Contents,
}

/// Looks at an image without changing it.
pub fn look(path: &Path) -> Result<Held, StorageError> {
    let config = held_config(path)?;
    let (header, contents) = match stack_of(&config).over {
        Over::Pages(_) => look_on::<Oob>(path)?,
        Over::Objects(_) => look_on::<ObjectOob>(path)?,
    };
    Ok(Held { config, header, contents })
}

fn look_on<O: OutOfBand>(path: &Path) -> Result<(Header, Contents), StorageError> {
    let image = ImageFlash::<O>::open_aside(path)?;
    Ok((image.header().clone(), image.contents(path)?))
}

fn held_config(path: &Path) -> Result<StackConfig, StorageError> {
    stored(path)?.check().map_err(|source| StorageError::Stored { path: path.to_owned(), source })
}

/// Reads everything in an image, starts the stack from it and reads all that the stack has mapped, without
/// changing the image.
pub fn check(path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Checked, StorageError> {
    check_and_keep(path, progress).map(|(checked, _)| checked)
}

/// As [`check`]; gives the stack, too, if it starts.
pub fn check_and_keep(
    path: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Checked, Option<Box<dyn Subsystem + Send>>), StorageError> {
    let mut config = held_config(path)?;
    config.nand.capabilities.stores_data = true;
    match stack_of(&config).over {
        Over::Pages(build) => check_on(&config, path, build, progress),
        Over::Objects(build) => check_on(&config, path, build, progress),
    }
}

fn check_on<O: OutOfBand>(
    config: &StackConfig,
    path: &Path,
    build: OnDevice<O>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(Checked, Option<Box<dyn Subsystem + Send>>), StorageError> {
    let mut image = ImageFlash::open_aside(path)?;
    let findings = image.check(path, progress)?;
    let started =
        fitting(config, image, path).and_then(|image| Ok(over(config, Box::new(image), build, true)?));
    let mut subsystem = match started {
        Err(error) => {
            let start_error = Some(error.to_string());
            let (recovery, lost) = (Vec::new(), Vec::new());
            return Ok((Checked { findings, recovery, start_error, lost_pages: 0, lost }, None));
        }
        Ok(subsystem) => subsystem,
    };
    let layers = subsystem.inspect().layers;
    let recovery = layers.iter().filter_map(|layer| layer.recovery().cloned()).collect();
    let (lost_pages, lost) = lost_pages(&mut *subsystem);
    Ok((Checked { findings, recovery, start_error: None, lost_pages, lost }, Some(subsystem)))
}

/// Makes an image for a configuration, wholly erased.
pub fn create(config: &StackConfig, path: &Path) -> Result<(), StorageError> {
    match stack_of(config).over {
        Over::Pages(_) => create_on::<Oob>(config, path).map(drop),
        Over::Objects(_) => create_on::<ObjectOob>(config, path).map(drop),
    }
}

fn create_on<O: OutOfBand>(config: &StackConfig, path: &Path) -> Result<ImageFlash<O>, StorageError> {
    if config.cache.is_some() {
        return Err(cache_in_image().into());
    }
    refuse_without_bytes(config)?;
    Ok(ImageFlash::create(
        path,
        config.seen_geometry(),
        &config.nand,
        &config.to_toml_without(&of_the_run()),
    )?)
}
