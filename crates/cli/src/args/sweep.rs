//! Arguments of `sweep`.

use clap::{Args, ValueHint};
use nandscape_experiments::sweep::Shard;
use std::path::PathBuf;

/// Arguments of `sweep`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "A plan, op.toml:\n  workload = \"zipf:span=50MiB,bs=16k,count=20k\"\n  device = \"thesis\"\n  \
                        ftl = \"page-map\"\n  seeds = \"1..3\"\n  [grid]\n  ftl.op = \"0.1..0.4:4\"\n  ftl.victim = [\"greedy\", \"fifo\"]\n\n\
                        DIR then has sweep.parquet with a row for each point and seed, and the result document of each in points/. \
                        docs/sweeps.md explains every key. Exit status 1 if a run failed."
)]
pub struct SweepArgs {
    /// What to run (TOML): workload, configuration, axes, seeds, metrics.
    #[arg(value_name = "SWEEP.toml", value_hint = ValueHint::FilePath)]
    pub plan: String,
    /// Folder of the results; made if absent.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Runs at the same time [default: one per core].
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Only the points whose number divided by N leaves K, such as 0/4; all shards together are the sweep.
    #[arg(long, value_name = "K/N", default_value_t = Shard::ALL, hide_default_value = true)]
    pub shard: Shard,
    /// Go on where a sweep into DIR ended: runs that have a complete result are not run again.
    #[arg(long)]
    pub resume: bool,
    /// Take results from another folder of the same sweep, such as that of a shard, instead of running them;
    /// may be repeated.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub from: Vec<PathBuf>,
    /// Write an HTML report, one offline file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Print a list with a table for each run instead of the text.
    #[arg(long)]
    pub json: bool,
}
