//! The one definition of the command line: parser, help, man pages and completions come from here.

mod cache;
mod cache_files;
mod names;
mod object;
mod report;
mod serve;
mod sweep;
mod trace;
mod zone;

pub use cache::{AdviseArgs, CacheVerb, SimulateArgs, UnitArgs};
pub use cache_files::{
    CacheAttachArgs, CacheCleanArgs, CacheCreateArgs, CacheDetachArgs, CacheFailArgs, CacheListArgs,
    CacheReplaceArgs, CacheResizeArgs, CacheSalvageArgs, CacheSetArgs, CacheStatusArgs, RamVerb,
    ServeCacheArgs,
};
pub use object::ObjectVerb;
pub use report::ReportArgs;
pub use serve::{ControlAction, ControlArgs, ServeArgs, ServeFuseArgs, ServeNbdArgs, StatArgs};
pub use sweep::SweepArgs;
pub use trace::{FsVerb, SourceArgs, SpaceArgs, TargetArgs, TraceVerb};
pub use zone::{ZoneArgs, ZoneVerbArg};

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use names::name;
use nandscape_stack::StateUse;
use std::path::PathBuf;

const WORKLOAD_HELP: &str = "Trace file (format by content; .gz, .zst, .xz transparently), '-' for standard input, a fio job file \
                             (*.fio), or a generator \
                             such as uniform:span=80%,bs=4k,count=10M ('nandscape list workloads')";

const FAIL_IF_HELP: &str = "End with exit status 3 if this holds for a run, such as 'waf_bytes > 2', 'latency_ns.write.p99 > 5ms' or \
                            'trust > 0': a key of the result document, > >= < <= == or !=, and a number; may be repeated";

/// The device of a stack and every other key of its configuration.
#[derive(Clone, Debug, Args)]
pub struct DeviceArgs {
    /// Configuration file (TOML); flags override its keys.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<String>,
    /// Device preset ('nandscape list devices') or a TOML file; replaces the device of the configuration.
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub device: Option<String>,
    /// Interface of the flash and host software over it ('nandscape list stacks'); of compare a list, each
    /// with keys of its own if wanted, such as block,block:ftl.op=0.28,zone-map [default: block].
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub stack: Option<String>,
    /// A smaller device of the same kind: blocks of each plane divided by N, such as 1/16.
    #[arg(long, value_name = "1/N")]
    pub scale: Option<String>,
    /// Set any configuration key, such as device.channels=16 or ftl.op=0.07; may be repeated. A later one
    /// overrides an earlier one of the same key; keys of device.preset=NAME are below all others.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
}

/// One seed or several.
#[derive(Clone, Debug)]
pub struct Seeds(pub Vec<u64>);

impl std::str::FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        nandscape_stack::seeds(text).map(Self)
    }
}

/// The stack and how the workload is read: what replay and compare have in common.
#[derive(Clone, Debug, Args)]
pub struct StackArgs {
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Seed of generators and preconditioning; of replay and compare also a list or range, such as 1..8: runs
    /// that differ only in their seed are one row, with means and ranges [default: 42].
    #[arg(long, value_name = "N")]
    pub seed: Option<Seeds>,
    /// Requests outstanding; 0 follows the workload's time stamps [default: the stamps if they are real,
    /// else 32].
    #[arg(long, value_name = "N")]
    pub depth: Option<u32>,
    /// Writes before the counted part: fill, fill:80%, fill+uniform:2x.
    #[arg(long, value_name = "SPEC")]
    pub precondition: Option<String>,
    /// steady: the writes of the workload, again and again before the counted part, until write amplification
    /// is steady: five rounds of the capacity within 20 % of each other, and 10 % along the line through
    /// them; at most 25 rounds.
    #[arg(long, value_name = "STATE")]
    pub until: Option<String>,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// The state of the device after the preconditioning.
#[derive(Clone, Debug, Args)]
pub struct StateArgs {
    /// Save the state of the device after the preconditioning, for --load-state of other runs; a folder
    /// (FOLDER/) for several devices or seeds.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath, conflicts_with = "load_state")]
    pub save_state: Option<PathBuf>,
    /// Begin with the state that --save-state saved, instead of preconditioning; of the same device, layers,
    /// seed and preconditioning, which need not be typed again.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub load_state: Option<PathBuf>,
}

impl StateArgs {
    /// What was asked for.
    pub fn used(&self) -> Option<StateUse<'_>> {
        let load = || self.load_state.as_deref().map(StateUse::Load);
        self.save_state.as_deref().map(StateUse::Save).or_else(load)
    }
}

/// A device that fits the workload.
#[derive(Clone, Debug, Args)]
pub struct FitArgs {
    /// A device that the trace fills to so much of its logical capacity, such as 90%: the device given with
    /// fewer and shorter blocks, filled and overwritten once before the counted part; none: as large as it
    /// is. Of several stacks, all have that room; where one is a store of files, nothing is written before.
    /// Of caches: the cache holds that share of what the trace touches, unless cache.size is set, on
    /// flash as small as that allows [default: none; of traces with no device or size named, dc-tlc-28op with
    /// 90%, and with 10% under a cache].
    #[arg(long, value_name = "SHARE", conflicts_with = "scale")]
    pub fit: Option<String>,
}

impl StackArgs {
    /// Whether writes before the counted part were asked for, or none of them.
    pub fn says_precondition(&self) -> bool {
        let is_it = |pair: &String| pair.trim_start().starts_with("workload.precondition");
        self.precondition.is_some() || self.device.sets.iter().any(is_it)
    }

    /// Seeds, where there are several.
    pub fn several_seeds(&self) -> &[u64] {
        self.seed.as_ref().map(|seeds| &seeds.0[..]).filter(|all| all.len() > 1).unwrap_or_default()
    }
}

impl FitArgs {
    /// The share that was typed, unless that is none.
    pub fn share(&self) -> Option<&str> {
        self.fit.as_deref().filter(|share| *share != "none")
    }
}

/// The verbs of `image`.
#[derive(Clone, Debug, Subcommand)]
pub enum ImageVerb {
    /// Make an image, wholly erased; 'serve --image' does so too where the file is absent.
    Create {
        /// Image file, which must not exist.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        #[command(flatten)]
        device: DeviceArgs,
        /// Translation layer ('nandscape list ftls') [default: page-map].
        #[arg(long, value_name = "NAME", value_parser = name)]
        ftl: Option<String>,
    },
    /// What an image is and holds. Changes nothing.
    Info {
        /// Image file.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Verify every checksum of an image, its tables, that the stack starts from it, and that every mapped
    /// page can be read. Changes nothing; exit status 1 if something is wrong.
    Check {
        /// Image file.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// How a workload is read.
#[derive(Clone, Debug, Args)]
pub struct ReadingArgs {
    /// Trace format, instead of detection ('nandscape list formats').
    #[arg(long, value_name = "FORMAT", value_parser = name)]
    pub format: Option<String>,
    /// Column map of an odd CSV, such as time=0:us,op=3,offset=4:sectors,len=5.
    #[arg(long, value_name = "MAP")]
    pub columns: Option<String>,
    /// Only these volumes (disks, LUNs), separated by ';', such as '0;3' or 'prxy'.
    #[arg(long, value_name = "LIST")]
    pub volumes: Option<String>,
    /// Move touched 4 KiB pages together, in address order.
    #[arg(long, value_enum, ignore_case = true, value_name = "HOW")]
    pub remap: Option<Remap>,
    /// Replay the workload so many times.
    #[arg(long, value_name = "N")]
    pub repeat: Option<u64>,
    /// Multiply the gaps between requests.
    #[arg(long, value_name = "X")]
    pub time_scale: Option<f64>,
    /// Only the first so many requests (decimal k/M/G).
    #[arg(long, value_name = "N")]
    pub limit: Option<String>,
}

/// How addresses are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Remap {
    /// Addresses stay.
    None,
    /// Touched 4 KiB pages are moved together in address order.
    Dense,
}

/// Where results go.
#[derive(Clone, Debug, Args)]
pub struct OutputArgs {
    /// Print the result document (JSON, schema 1) instead of the table.
    #[arg(long)]
    pub json: bool,
    /// Give the erase count of every block.
    #[arg(long)]
    pub detail: bool,
    /// Write an HTML report, one offline file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Write the series over time as Parquet; of a job file, a row for each job, direction and interval.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub series: Option<PathBuf>,
    /// Write the results of a job file in fio's own JSON shape; '-' prints it instead of the table.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "json")]
    pub fio_json: Option<PathBuf>,
    /// Interval of the series of a job file, such as 100ms [default: grows with the run].
    #[arg(long, value_name = "TIME")]
    pub interval: Option<String>,
    /// Write the results as CSV, one row a run.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,
    /// Write the results in any output of 'nandscape list outputs', such as text=runs.txt; may be repeated.
    #[arg(long, value_name = "OUTPUT=FILE")]
    pub write: Vec<String>,
    #[arg(long, value_name = "CONDITION", help = FAIL_IF_HELP)]
    pub fail_if: Vec<String>,
}

/// Arguments of `replay`.
#[derive(Clone, Debug, Args)]
pub struct ReplayArgs {
    #[arg(help = WORKLOAD_HELP, required_unless_present = "print_config")]
    pub workload: Option<String>,
    /// Translation layer ('nandscape list ftls') [default: page-map].
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub ftl: Option<String>,
    #[command(flatten)]
    pub fit: FitArgs,
    #[command(flatten)]
    pub stack: StackArgs,
    #[command(flatten)]
    pub state: StateArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Print the whole configuration as TOML and do nothing else.
    #[arg(long)]
    pub print_config: bool,
}

/// Arguments of `compare`.
#[derive(Clone, Debug, Args)]
pub struct CompareArgs {
    #[arg(help = WORKLOAD_HELP, required = true)]
    pub workloads: Vec<String>,
    /// Translation layers, such as pm-gcl,hsbm-gcl,page-map, or all that can run on the device [default: all;
    /// of stacks (--stack) page-map; with --fit, page-map with 7 and with 28 % over-provisioning; of traces
    /// with nothing said of the device, these two of dc-tlc-28op with --fit 90%, and with 8 streams if writes
    /// have hints or files].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = name)]
    pub ftl: Vec<String>,
    #[command(flatten)]
    pub fit: FitArgs,
    /// Caches in front of the disk, such as nandscape,bcache,none ('nandscape list caches'; none is the disk
    /// alone). --ftl is then that of their flash [default: page-map].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = name)]
    pub cache: Vec<String>,
    #[command(flatten)]
    pub stack: StackArgs,
    #[command(flatten)]
    pub state: StateArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Runs at the same time [default: one per core].
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
}

/// Arguments of `neighbours`.
#[derive(Clone, Debug, Args)]
pub struct NeighboursArgs {
    /// fio job file. Jobs name their namespaces: filename=ns1, ns2 ...
    #[arg(value_hint = ValueHint::FilePath)]
    pub jobs: String,
    /// The job whose latency matters; the others end when it does.
    #[arg(long, value_name = "JOB")]
    pub victim: String,
    /// Layouts of the sets, one run each.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = name,
        default_value = "traditional,vertical,horizontal"
    )]
    pub layouts: Vec<String>,
    /// Virtual time for which the others run by themselves; recordings run to their end.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub alone: String,
    /// Translation layer ('nandscape list ftls') [default: page-map].
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub ftl: Option<String>,
    #[command(flatten)]
    pub stack: StackArgs,
    /// Print JSON: for each layout the results of every job, alone and together.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `reproduce`.
#[derive(Clone, Debug, Args)]
pub struct ReproduceArgs {
    /// Which experiments ('--list' names them) [default: all].
    #[arg(value_parser = name)]
    pub ids: Vec<String>,
    /// List the experiments.
    #[arg(long)]
    pub list: bool,
    /// How they are run.
    #[command(flatten)]
    pub how: ReproduceHow,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Write an HTML report, one offline file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,
    /// Write the figures as CSV, one row each, and those over time again for each time.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,
    /// Write the figures as a Markdown page, a table for each experiment.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,
}

/// How `reproduce` runs what it is asked for.
#[derive(Clone, Debug, Args)]
pub struct ReproduceHow {
    /// Seed of the generators; also a list or range, such as 1..8: rows of seeded experiments then have the
    /// mean, the range, and with how many seeds a statement holds [default: 42].
    #[arg(long, value_name = "N")]
    pub seed: Option<Seeds>,
    /// Smaller devices and shorter loads for drives, pm963, nvm-sets, cache-article and cache-cleaning: a
    /// first look, whose figures are not those published.
    #[arg(long)]
    pub quick: bool,
    /// Spoil the experiments that have a way to (a note says how): exit code 1 if a rule that must fail then
    /// does not.
    #[arg(long)]
    pub sabotage: bool,
}

/// Arguments of `list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// What to list; nothing lists everything.
    #[arg(value_enum, ignore_case = true)]
    pub what: Option<Listing>,
    /// With every parameter, its range and default.
    #[arg(long)]
    pub detail: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The registries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    /// Device presets.
    Devices,
    /// Translation layers.
    Ftls,
    /// GC victim policies.
    Victims,
    /// Stream policies of the host.
    Policies,
    /// Designs of caches.
    Caches,
    /// Eviction policies of caches.
    Evictions,
    /// Admission policies of caches.
    Admissions,
    /// Cleaning policies of caches.
    Cleanings,
    /// Kinds of metadata of caches.
    Metadata,
    /// Disks and other stores in virtual time, and presets of them.
    Disks,
    /// Workload generators.
    Workloads,
    /// Trace formats.
    Formats,
    /// Configuration keys outside the translation layers.
    Keys,
    /// Experiments that 'reproduce' knows.
    Reproductions,
    /// Outputs that '--write' takes.
    Outputs,
    /// Schedulers of flash operations.
    Schedulers,
    /// Stacks: interfaces of the flash, and host software over them.
    Stacks,
    /// Host interfaces, each a table of the configuration.
    Interfaces,
    /// Front ends that 'serve' has.
    FrontEnds,
    /// Checks of how far a result can be trusted.
    Checks,
}
