//! Arguments of `trace` and `fs`.

use super::{ReadingArgs, WORKLOAD_HELP, name};
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

/// A workload, and how it is read.
#[derive(Clone, Debug, Args)]
pub struct SourceArgs {
    #[arg(help = WORKLOAD_HELP)]
    pub workload: String,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub space: SpaceArgs,
}

/// The verbs of `trace`.
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// What a workload looks like: mix, sizes, alignment, overwrites, working set.
    Stats {
        #[command(flatten)]
        source: SourceArgs,
        /// Erase block of alignment figures.
        #[arg(long, default_value = "1MiB", value_name = "SIZE")]
        block: String,
        /// Further recordings of the same run at other levels: all stand beside each other in one table of
        /// the kinds of load.
        more: Vec<String>,
        /// The same table for a single workload. A recording of file operations stands in it twice: as
        /// programs asked, and below a file system model.
        #[arg(long)]
        levels: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// Write an HTML report, one offline file.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        report: Option<PathBuf>,
    },
    /// Write a workload in another format.
    Convert {
        #[command(flatten)]
        source: SourceArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Write what a generator makes.
    Generate {
        /// Generator, such as zipf:theta=0.99,bs=4k,count=1M ('nandscape list workloads').
        generator: String,
        #[command(flatten)]
        space: SpaceArgs,
        #[command(flatten)]
        target: TargetArgs,
        /// Only the first so many requests (decimal k/M/G).
        #[arg(long, value_name = "N")]
        limit: Option<String>,
    },
    /// Print the first requests in the native CSV.
    Head {
        #[arg(help = WORKLOAD_HELP)]
        workload: String,
        /// How many.
        #[arg(short, default_value_t = 10)]
        n: u64,
        #[command(flatten)]
        reading: ReadingArgs,
        #[command(flatten)]
        space: SpaceArgs,
    },
}

/// The verbs of `fs`.
#[derive(Debug, Subcommand)]
pub enum FsVerb {
    /// What each block of an ext2, ext3 or ext4 file system holds: superblock, descriptors, bitmaps, inode
    /// tables, directories, journal ...
    Classify {
        /// Image file or block device.
        #[arg(value_hint = ValueHint::FilePath)]
        image: PathBuf,
        /// Byte at which the file system begins, such as 1MiB for a first partition.
        #[arg(long, default_value = "0", value_name = "SIZE")]
        offset: String,
        /// Print every run of blocks of one kind, not only the totals.
        #[arg(long, conflicts_with = "json")]
        ranges: bool,
        /// Print JSON, with every run.
        #[arg(long)]
        json: bool,
    },
}

/// The address space that generators and statistics assume.
#[derive(Clone, Debug, Args)]
pub struct SpaceArgs {
    /// Logical capacity that generators fill a share of.
    #[arg(long, default_value = "1GiB", value_name = "SIZE")]
    pub capacity: String,
    /// Page of generators, and of alignment figures.
    #[arg(long, default_value = "4KiB", value_name = "SIZE")]
    pub page: String,
    /// Seed of generators.
    #[arg(long, default_value_t = 42, value_name = "N")]
    pub seed: u64,
}

/// What is written where.
#[derive(Clone, Debug, Args)]
pub struct TargetArgs {
    /// Format to write ('nandscape list formats'); by default from the name of the output.
    #[arg(long, value_name = "FORMAT", value_parser = name)]
    pub to: Option<String>,
    /// Output file; '-' for stdout. A name ending in .gz or .zst is compressed.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
}
