//! The verbs of the command line.

use crate::args::{
    CacheVerb, CompareArgs, ControlArgs, FsVerb, ImageVerb, ListArgs, NeighboursArgs, ObjectVerb, ReplayArgs,
    ReportArgs, ReproduceArgs, StatArgs, SweepArgs, TraceVerb, ZoneArgs,
};
use crate::commands::serve::ServeVerb;
use clap::{Parser, Subcommand, ValueHint};
use std::path::PathBuf;

/// One emulated flash device, every host interface: replay workloads through flash translation layers and
/// compare them.
#[derive(Debug, Parser)]
#[command(name = "nandscape", version, propagate_version = true, max_term_width = 110)]
#[command(
    after_help = "Sizes: bare k/M/G and KiB/MiB/GiB are powers of two, kB/MB/GB powers of ten. Times: ns, us, ms, s.\n\
                        Exit status: 0 done, 1 failed, 2 bad usage, 3 a condition of --fail-if holds, 130 interrupted. Results go to stdout, messages to stderr."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
    /// No progress and no notes on stderr; errors only.
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Replay a workload through one translation layer in virtual time.
    Replay(ReplayArgs),
    /// Replay workloads through several translation layers and compare them.
    Compare(CompareArgs),
    /// Replay a workload at many points of a space of configurations: every combination of values, points
    /// drawn at random or a list of points; in parts and over several processes if wanted.
    Sweep(SweepArgs),
    /// Print results of earlier runs again, compare them and write reports of them.
    Report(ReportArgs),
    /// What one job of a job file feels of the others, for each way to divide the device into NVM sets.
    #[command(visible_alias = "neighbors")]
    Neighbours(NeighboursArgs),
    /// Repeat published experiments: published, measured, ratio.
    Reproduce(ReproduceArgs),
    /// Look at, convert and make workloads.
    #[command(subcommand)]
    Trace(TraceVerb),
    /// Make, look at and check image files, in which a served device keeps its bytes.
    #[command(subcommand)]
    Image(ImageVerb),
    /// Serve the device to real clients, with real bytes.
    #[command(subcommand)]
    Serve(ServeVerb),
    /// Caches of flash or memory in front of disks: made and changed, and what they would do for a workload.
    #[command(subcommand)]
    Cache(CacheVerb),
    /// Look into file systems: what each block holds.
    #[command(subcommand)]
    Fs(FsVerb),
    /// What a running server counts and measures: write amplification, wear, latencies, free space ...
    Stat(StatArgs),
    /// Tell a running server to do something.
    Control(ControlArgs),
    /// Report, open, close, finish and reset zones of an image or of a running server.
    Zone(ZoneArgs),
    /// Look at and check the objects and files of an image of a store of objects.
    #[command(subcommand)]
    Object(ObjectVerb),
    /// List what there is: devices, ftls, victims, workloads, formats ...
    ///
    /// Tags in brackets, such as [thesis 3.2], name a place in a source: docs/sources.md.
    List(ListArgs),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        #[arg(value_enum, ignore_case = true)]
        shell: clap_complete::Shell,
    },
    /// Write the man pages, one per verb.
    Man {
        /// Directory to write into; made if absent.
        #[arg(long, value_hint = ValueHint::DirPath)]
        out: PathBuf,
    },
}
