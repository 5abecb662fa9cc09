//! Stacks that keep bytes: in memory, or in an image file. What stands over the medium is compiled once for all of them.

use crate::build::{divide, layer, timed};
use crate::config::{ConfigError, StackConfig, TimingMode, Typed};
use crate::directives::DirectiveKind;
use crate::memory;
use nandscape_core::{AnyDevice, Subsystem};
use nandscape_image::{Header, ImageError, ImageMedium};
use nandscape_media::{AnyMedium, Fifo, Nand, ReadFirst, Serial};
use std::path::{Path, PathBuf};

/// Where the bytes of a stack are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// In memory, gone with the process.
    #[default]
    Memory,
    /// In an image file, made from the configuration if it is absent.
    Image(PathBuf),
}

/// Why a stack that keeps bytes cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The configuration in the image.
    #[error("{}: the configuration in the image: {source}", path.display())]
    Stored {
        /// Image.
        path: PathBuf,
        /// What is wrong with it.
        source: ConfigError,
    },
    /// What was asked for is not what the image was made with.
    #[error("{key} = {asked}: expected {stored}, with which {} was made", path.display())]
    Contradiction {
        /// Dotted key.
        key: String,
        /// Value that was asked for.
        asked: String,
        /// Value in the image.
        stored: String,
        /// Image.
        path: PathBuf,
    },
}

/// Tables of the configuration that belong to a run, not to a device: an image neither keeps nor contradicts them.
const OF_THE_RUN: &[&str] = &["workload", "faults", "fs"];

/// The configuration that a stack has: what was typed, or, over an image that exists, what it was made with.
///
/// Errors: what [`Typed::check`] refuses; a key that was typed and contradicts the image.
pub fn resolve(typed: &Typed, storage: &Storage) -> Result<StackConfig, StorageError> {
    let asked = typed.check()?;
    let Storage::Image(path) = storage else { return Ok(asked) };
    if !path.try_exists().unwrap_or(true) {
        return Ok(asked);
    }
    let mut stored = stored(path)?;
    let held = stored.check().map_err(|source| StorageError::Stored { path: path.clone(), source })?;
    for key in typed.keys() {
        let is_of_the_run = OF_THE_RUN.iter().any(|table| key.split('.').next() == Some(table));
        // The keys of a preset were compared by themselves.
        if is_of_the_run || key == "device.preset" {
            continue;
        }
        let (asked, stored) = (asked.value(&key), held.value(&key));
        if asked != stored {
            let or_nothing = |value: Option<String>| value.unwrap_or_else(|| "nothing".to_owned());
            return Err(StorageError::Contradiction {
                key,
                asked: or_nothing(asked),
                stored: or_nothing(stored),
                path: path.clone(),
            });
        }
    }
    for table in OF_THE_RUN {
        stored.replace_table(typed, table);
    }
    Ok(stored.check()?)
}

/// The configuration in an image, as if it had been typed.
fn stored(path: &Path) -> Result<Typed, StorageError> {
    let header = Header::read(path)?;
    let wrong = |source| StorageError::Stored { path: path.to_owned(), source };
    let mut stored = Typed::new();
    stored.merge_text(&path.display().to_string(), &header.config).map_err(wrong)?;
    Ok(stored)
}

/// As [`build_stored`] in memory: the bytes are gone with the process.
pub fn build_storing(config: &StackConfig) -> Result<Box<dyn Subsystem + Send>, StorageError> {
    build_stored(config, &Storage::Memory)
}

/// Builds all namespaces of a configuration over a device that keeps bytes, for servers.
///
/// Errors: as [`crate::build_subsystem`]; an image that cannot be made or opened, or whose shape is not that of the configuration.
pub fn build_stored(
    config: &StackConfig,
    storage: &Storage,
) -> Result<Box<dyn Subsystem + Send>, StorageError> {
    let mut config = config.clone();
    config.nand.capabilities.stores_data = true;
    let device = device(&config, storage)?;
    let over = |device: AnyDevice| layer(&config, device);
    let subsystem = divide(&config, device, over, |part| over(Box::new(part)))?;
    let subsystem: Box<dyn Subsystem + Send> = if config.directives.kind == DirectiveKind::Direct {
        Box::new(subsystem)
    } else {
        Box::new(config.directives.wrap(config.below_directives(), subsystem)?)
    };
    Ok(config.fs.wrap(&config, subsystem)?)
}

fn device(config: &StackConfig, storage: &Storage) -> Result<AnyDevice, StorageError> {
    memory::check(config.seen_geometry())?;
    let medium = medium(config, storage)?;
    Ok(match config.mode {
        TimingMode::Serial => Box::new(timed::<_, Serial>(config, medium)),
        TimingMode::Fifo => Box::new(timed::<_, Fifo>(config, medium)),
        TimingMode::ReadFirst => Box::new(timed::<_, ReadFirst>(config, medium)),
    })
}

fn medium(config: &StackConfig, storage: &Storage) -> Result<AnyMedium, StorageError> {
    let geometry = config.seen_geometry();
    let Storage::Image(path) = storage else {
        let nand = Nand::new(*geometry, &config.nand);
        return Ok(Box::new(nand.map_err(|e| ConfigError::Build(format!("device.bad_blocks: {e}")))?));
    };
    if !path.try_exists().unwrap_or(true) {
        return Ok(Box::new(create(config, path)?));
    }
    let image = ImageMedium::open(path)?;
    let header = image.header();
    // The tables follow from the header, not from the text; a program that wrote both wrote the same.
    if header.geometry != *geometry || header.capabilities != config.nand.capabilities {
        return Err(StorageError::Stored {
            path: path.clone(),
            source: ConfigError::Unsuited(format!(
                "it describes {geometry:?} with {:?}, the header {:?} with {:?}",
                config.nand.capabilities, header.geometry, header.capabilities
            )),
        });
    }
    Ok(Box::new(image))
}

/// Makes an image for a configuration, wholly erased.
pub fn create(config: &StackConfig, path: &Path) -> Result<ImageMedium, StorageError> {
    Ok(ImageMedium::create(path, config.seen_geometry(), &config.nand, &config.to_toml_without(OF_THE_RUN))?)
}
