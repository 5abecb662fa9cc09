//! Arguments of `cache`.

use super::{
    CacheAttachArgs, CacheCleanArgs, CacheCreateArgs, CacheDetachArgs, CacheFailArgs, CacheListArgs,
    CacheReplaceArgs, CacheResizeArgs, CacheSalvageArgs, CacheSetArgs, CacheStatusArgs, RamVerb, ReadingArgs,
    WORKLOAD_HELP, name,
};
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// The verbs of `cache`.
#[derive(Clone, Debug, Subcommand)]
pub enum CacheVerb {
    /// Make an empty cache on a file or block device.
    Create(CacheCreateArgs),
    /// Put a disk behind a cache, as a volume; what is on the disk stays.
    Attach(CacheAttachArgs),
    /// Take a volume off: what only the cache has goes to the disk, which is then complete by itself.
    Detach(CacheDetachArgs),
    /// The caches that servers of this user serve now, in files and in memory.
    List(CacheListArgs),
    /// A cache in memory, by the commands and units of RapidDisk.
    #[command(subcommand)]
    Ram(RamVerb),
    /// What a cache holds and has done, on the page of its design; served or not.
    Status(CacheStatusArgs),
    /// How a cache is configured, on the page of its design.
    Table(CacheStatusArgs),
    /// Write what only the cache has to the disks. It stays cached.
    Clean(CacheCleanArgs),
    /// Change settings, such as the mode.
    Set(CacheSetArgs),
    /// Take the new size of a disk that grew or shrank.
    Resize(CacheResizeArgs),
    /// Go on without a member of a mirror, such as a device that is gone.
    Fail(CacheFailArgs),
    /// Put another file or device in place of a member of a mirror, with all that the others have.
    Replace(CacheReplaceArgs),
    /// List what only the cache has of a disk that was used without it, and write it somewhere.
    Salvage(CacheSalvageArgs),
    /// Hits and misses of caches of any policy and size, in one reading of a workload.
    Simulate(SimulateArgs),
    /// Miss-ratio curves of every policy, the knee, and which size and policy a workload asks for.
    Advise(AdviseArgs),
}

/// How a workload becomes requests for blocks of a cache.
#[derive(Clone, Debug, Args)]
pub struct UnitArgs {
    /// Block of the cache, a power of two; requests are split into such blocks [default: the preset's, or
    /// 4k].
    #[arg(long, value_name = "SIZE")]
    pub block: Option<String>,
    /// One unit a request, named by its first byte, as simulators of object caches read block traces; sizes
    /// are then counts such as 10000b.
    #[arg(long, conflicts_with = "block")]
    pub objects: bool,
    /// Logical capacity that generators fill a share of.
    #[arg(long, default_value = "1GiB", value_name = "SIZE")]
    pub capacity: String,
    /// Seed of generators, and of policies that draw.
    #[arg(long, default_value_t = 42, value_name = "N")]
    pub seed: u64,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// Arguments of `cache simulate`.
#[derive(Clone, Debug, Args)]
pub struct SimulateArgs {
    #[arg(help = WORKLOAD_HELP)]
    pub workload: String,
    /// Eviction policies of fully associative caches, such as lru,s3-fifo:small=20%,belady ('nandscape list
    /// evictions').
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = name)]
    pub eviction: Vec<String>,
    /// Designs ('nandscape list caches'), whose map, ways, block and policy are simulated [default:
    /// nandscape].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = name,
          conflicts_with_all = ["eviction", "objects"])]
    pub preset: Vec<String>,
    /// Sizes of the cache in bytes (64MiB), in blocks (10000b), or as shares of the blocks that the workload
    /// reads and writes (10%).
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
    pub size: Vec<String>,
    #[command(flatten)]
    pub unit: UnitArgs,
    /// Caches simulated at the same time; 1 for undisturbed times [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Print JSON: an array with one object a cache.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `cache advise`.
#[derive(Clone, Debug, Args)]
pub struct AdviseArgs {
    #[arg(help = WORKLOAD_HELP)]
    pub workload: String,
    /// Eviction policies ('nandscape list evictions') [default: all].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = name)]
    pub eviction: Vec<String>,
    /// Sizes of the cache in bytes (64MiB), in blocks (10000b), or as shares of the blocks that the workload
    /// reads and writes (10%) [default: powers of two that fit the workload, finer for the largest].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub size: Vec<String>,
    /// Estimate from a sample: this share of the blocks, such as 0.01 or 1%, with all of their requests.
    #[arg(long, value_name = "SHARE")]
    pub sample: Option<String>,
    #[command(flatten)]
    pub unit: UnitArgs,
    /// Simulations at the same time [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Write every point as CSV; the LRU curve at every size at which it falls.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,
    /// Write an HTML report with the chart, one offline file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
}
