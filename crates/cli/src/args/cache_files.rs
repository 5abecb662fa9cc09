//! Arguments of the verbs of `cache` that are about files and block devices.

use super::name;
use clap::{Args, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `cache create`.
#[derive(Clone, Debug, Args)]
pub struct CacheCreateArgs {
    /// File or block device that is to hold cached blocks, such as a file on an SSD; a file that is not
    /// there is made.
    #[arg(value_hint = ValueHint::FilePath, required_unless_present = "table")]
    pub fast: Option<PathBuf>,
    /// Table line of FIU's dm-cache: '0 SECTORS cache ORIGIN CACHE PERSIST BLOCKSIZE BLOCKS WAYS WRITEBACK',
    /// SECTORS and BLOCKSIZE in sectors; what is behind CACHE may be left out. Makes the cache and attaches
    /// the disk; with PERSIST 1 it checks the line against the cache that is there.
    #[arg(long, value_name = "LINE", conflicts_with_all = ["fast", "preset", "block", "mode"])]
    pub table: Option<String>,
    /// Name of the volume of --table [default: that of the file].
    #[arg(long, value_name = "NAME", requires = "table")]
    pub name: Option<String>,
    /// File or block device for the blocks; FAST then has only the metadata, and names the cache to all other
    /// commands. --size is that of this file.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with = "table")]
    pub data: Option<PathBuf>,
    /// Further file or device with the same bytes, so that the cache outlives either; may be repeated.
    /// --size is that of each, and any of them names the cache.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath, conflicts_with_all = ["table", "data"])]
    pub mirror: Vec<PathBuf>,
    /// Bytes to use of it, and size of a file that is to be made [default: all of what is there].
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Design ('nandscape list caches') [default: nandscape].
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub preset: Option<String>,
    /// Block of the cache, a power of two [default: the preset's].
    #[arg(long, value_name = "SIZE")]
    pub block: Option<String>,
    /// Mode: write-back, write-through, write-around, write-only or pass-through [default: the preset's].
    #[arg(long, value_name = "MODE", value_parser = name)]
    pub mode: Option<String>,
    /// Any other key of the cache, such as small=20% or cache.eviction=lru; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Replace a cache that is there, with all that only it has.
    #[arg(long)]
    pub force: bool,
    /// Do not reserve space for a file that is made. When its file system is full, the cache is then given
    /// up.
    #[arg(long)]
    pub sparse: bool,
}

/// Arguments of `cache attach`.
#[derive(Clone, Debug, Args)]
pub struct CacheAttachArgs {
    /// The cache; 'ram' is one in memory that is served over NBD, where the disk is an export at once.
    #[arg(value_hint = ValueHint::FilePath)]
    pub fast: PathBuf,
    /// File or block device to put behind it. What is on it stays, and is what the volume holds.
    #[arg(value_hint = ValueHint::FilePath)]
    pub disk: PathBuf,
    /// Name of the volume, under which it is served [default: that of the file].
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// What the volume may hold of the cache at most, such as 64MiB, 10000b or 25%.
    #[arg(long, value_name = "SIZE")]
    pub quota: Option<String>,
    /// Even if the disk has the stamp of another cache, which may have newer data.
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `cache detach`.
#[derive(Clone, Debug, Args)]
pub struct CacheDetachArgs {
    /// The cache; 'ram' is one in memory that is served over NBD, whose clients must have left the volume.
    #[arg(value_hint = ValueHint::FilePath)]
    pub fast: PathBuf,
    /// Name of the volume.
    pub volume: String,
    /// Where its disk is, if not where it was.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub disk: Option<PathBuf>,
    /// Throw away what the disk does not have, instead of writing it there; the disk need not be there.
    #[arg(long, conflicts_with = "disk")]
    pub discard: bool,
    /// Go on although a session was cut short whose dirty blocks nothing has any more (metadata at-removal).
    #[arg(long)]
    pub discard_lost: bool,
}

/// Arguments of `cache list`.
#[derive(Clone, Debug, Args)]
pub struct CacheListArgs {
    /// Print JSON: for each cache the control socket of its server, and all of `cache status --json`.
    #[arg(long)]
    pub json: bool,
}

/// The verbs of `cache ram`.
#[derive(Clone, Debug, Subcommand)]
pub enum RamVerb {
    /// Serve an empty cache in memory over NBD until a signal: 'serve nbd --cache ram:SIZE'. Memory is taken
    /// as blocks are cached.
    Create {
        /// Size in MB of 1,048,576 bytes, or with a unit, such as 1GiB.
        size: String,
        /// Options of 'serve nbd', such as --disk data=/dev/sda3 or --socket /path.
        #[arg(value_name = "OPTION", trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<OsString>,
    },
    /// Put a disk behind the cache in memory, as an export: 'cache attach ram'.
    Attach {
        /// File or block device. What is on it stays, and is what the volume holds.
        #[arg(value_hint = ValueHint::FilePath)]
        disk: PathBuf,
        /// Name of the export [default: that of the file].
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Take an export off that no client has: 'cache detach ram'.
    Detach {
        /// Name of the export.
        volume: String,
    },
    /// The caches in memory that servers of this user serve now, with their disks.
    List(CacheListArgs),
}

/// Arguments of `cache status` and `cache table`.
#[derive(Clone, Debug, Args)]
pub struct CacheStatusArgs {
    /// The cache, served or not; 'ram' is one in memory that is served.
    #[arg(value_hint = ValueHint::FilePath)]
    pub fast: PathBuf,
    /// One volume [default: all].
    pub volume: Option<String>,
    /// Print what another design would print ('nandscape list caches') [default: the cache's own].
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub preset: Option<String>,
    /// Print JSON: everything, with the page of the design for each volume.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `cache clean`.
#[derive(Clone, Debug, Args)]
pub struct CacheCleanArgs {
    /// The cache, served or not.
    #[arg(value_hint = ValueHint::FilePath)]
    pub fast: PathBuf,
    /// One volume [default: all].
    pub volume: Option<String>,
    /// Where the disk of a volume is, if not where it was; may be repeated.
    #[arg(long = "disk", value_name = "NAME=PATH")]
    pub disks: Vec<String>,
    /// Go on although a session was cut short whose dirty blocks nothing has any more (metadata at-removal).
    #[arg(long)]
    pub discard_lost: bool,
}

/// Arguments of `cache set`.
#[derive(Clone, Debug, Args)]
pub struct CacheSetArgs {
    /// The cache, served or not. What is set is durable when this returns, and a server follows it at once.
    #[arg(value_hint = ValueHint::FilePath)]
    pub fast: PathBuf,
    /// Keys, such as mode=write-through, eviction=lru or small=20%; limit=SIZE and quota.VOLUME=SIZE (64MiB,
    /// 10000b, 25% or none) bound what the cache and a volume hold. Nothing after the '=' takes a key
    /// back.
    #[arg(required = true, value_name = "KEY=VALUE")]
    pub pairs: Vec<String>,
}

/// Arguments of `cache resize`.
#[derive(Clone, Debug, Args)]
pub struct CacheResizeArgs {
    /// The cache.
    #[arg(value_hint = ValueHint::FilePath)]
    pub fast: PathBuf,
    /// Name of the volume whose disk grew or shrank, and was not used otherwise.
    pub volume: String,
    /// Where its disk is, if not where it was.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub disk: Option<PathBuf>,
}

/// Arguments of `cache fail`.
#[derive(Clone, Debug, Args)]
pub struct CacheFailArgs {
    /// The cache, by a member of its mirror that is there.
    #[arg(value_hint = ValueHint::FilePath)]
    pub fast: PathBuf,
    /// The member to go on without.
    #[arg(value_hint = ValueHint::FilePath)]
    pub member: PathBuf,
}

/// Arguments of `cache replace`.
#[derive(Clone, Debug, Args)]
pub struct CacheReplaceArgs {
    /// The cache, by a member of its mirror that is there.
    #[arg(value_hint = ValueHint::FilePath)]
    pub fast: PathBuf,
    /// The member to replace, there or not.
    #[arg(value_hint = ValueHint::FilePath)]
    pub member: PathBuf,
    /// File or block device that takes its place; a file that is not there is made.
    #[arg(value_hint = ValueHint::FilePath)]
    pub new: PathBuf,
    /// Overwrite whatever the new file or device holds.
    #[arg(long)]
    pub force: bool,
    /// Do not reserve space for a file that is made.
    #[arg(long)]
    pub sparse: bool,
}

/// Arguments of `cache salvage`.
#[derive(Clone, Debug, Args)]
pub struct CacheSalvageArgs {
    /// The cache.
    #[arg(value_hint = ValueHint::FilePath)]
    pub fast: PathBuf,
    /// Name of the volume.
    pub volume: String,
    /// Write the data to the same offsets of this new file, which has holes elsewhere. Nothing else changes.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub to: Option<PathBuf>,
    /// Write the data onto the disk, over whatever is there now; then the volume can be used again. A file
    /// system on it wants a check.
    #[arg(long, conflicts_with = "to")]
    pub onto_disk: bool,
    /// Where its disk is, if not where it was.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub disk: Option<PathBuf>,
    /// Print JSON: the ranges.
    #[arg(long)]
    pub json: bool,
}

/// A cache that is served instead of a flash device.
#[derive(Clone, Debug, Args)]
pub struct ServeCacheArgs {
    /// Serve the volumes of this cache ('nandscape cache create'), or of one in memory: ram:SIZE.
    #[arg(long, value_name = "FAST", value_hint = ValueHint::FilePath,
          conflicts_with_all = ["device", "config", "scale", "ftl", "image"])]
    pub cache: Option<PathBuf>,
    /// The disk of a volume, if it is not where it was; with ram:SIZE the disks at the start. May be
    /// repeated.
    #[arg(long = "disk", value_name = "NAME=PATH", requires = "cache")]
    pub disks: Vec<String>,
    /// Design of a cache in memory ('nandscape list caches') [default: rapidcache].
    #[arg(long = "cache-preset", value_name = "NAME", value_parser = name, requires = "cache")]
    pub cache_preset: Option<String>,
    /// The disks were not used without the cache, whatever their stamps say, such as after a copy.
    #[arg(long, requires = "cache")]
    pub trust_disks: bool,
    /// Start although a session was cut short whose dirty blocks nothing has any more (metadata at-removal).
    #[arg(long, requires = "cache")]
    pub discard_lost: bool,
}
