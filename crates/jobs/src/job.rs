//! A job as it is read: what one process of fio would do. Nothing here depends on a device.

use crate::error::Place;
use nandscape_core::words;

/// fio's own limit of zones that it follows as open.
pub const MAX_OPEN_ZONES: u32 = 4096;

/// Kind of a request; the index of per-direction values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Reads, index 0.
    Read = 0,
    /// Writes, index 1.
    Write = 1,
    /// Discards, index 2.
    Trim = 2,
}

words!(pub Direction: Read = "read", Write = "write", Trim = "trim");

/// An amount of bytes, possibly as a share of what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Amount {
    /// Not given.
    #[default]
    None,
    /// Bytes.
    Bytes(u64),
    /// Percent of the namespace (0 to 100).
    Percent(f64),
    /// Zones of the namespace or file.
    Zones(u32),
}

/// What a job does, in which order (`rw`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "three directions and two independent properties")]
#[expect(missing_docs, reason = "the names say it")]
pub struct Pattern {
    pub reads: bool,
    pub writes: bool,
    pub trims: bool,
    pub is_random: bool,
    /// Every block is discarded and then written (`trimwrite`, `randtrimwrite`).
    pub trim_then_write: bool,
}

/// Sizes of the requests of one direction (`bs`, `bsrange`, `bssplit`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockSize {
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
    /// Sizes with their share in percent, adding up to 100; empty where all sizes from `min` to `max` are
    /// equally likely.
    pub split: Vec<(u64, f64)>,
}

impl BlockSize {
    /// One size.
    pub const fn fixed(bytes: u64) -> Self {
        Self { min: bytes, max: bytes, split: Vec::new() }
    }

    /// Whether there is only one.
    pub const fn is_fixed(&self) -> bool {
        self.min == self.max
    }
}

/// A zone of `random_distribution=zoned`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZoneShare {
    /// Percent of the requests.
    pub accesses: f64,
    /// Part of the region they go to.
    pub size: Amount,
}

/// Where random requests go (`random_distribution`).
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Every block alike.
    #[default]
    Uniform,
    /// The block of rank k with a probability proportional to k^-theta; ranks are scattered over the region,
    /// or lie around a centre where one is given.
    Zipf {
        /// Skew, above 0.
        theta: f64,
        /// Share of the region, 0 to 1.
        centre: Option<f64>,
    },
    /// Self-similar: a share `h` of the blocks gets a share `1 - h` of the requests, and again inside.
    Pareto {
        /// Between 0 and 1.
        h: f64,
        /// Share of the region, 0 to 1.
        centre: Option<f64>,
    },
    /// Normal around a centre.
    Normal {
        /// Standard deviation in percent of the region.
        deviation: f64,
        /// Share of the region, 0 to 1; the middle where it is not given.
        centre: Option<f64>,
    },
    /// Zones of the region, each with its share of the requests.
    Zoned(Vec<ZoneShare>),
}

/// Rate limit of a job's direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// Bytes a second; 0 for none.
    pub bytes_per_s: u64,
    /// Requests a second; 0 for none.
    pub iops: u64,
}

/// How rate-limited requests are spread (`rate_process`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateProcess {
    /// At equal distances.
    #[default]
    Linear,
    /// As a Poisson process.
    Poisson,
}

/// What sequential requests do after `rw_sequencer`'s number of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequencer {
    /// Go on behind the last.
    #[default]
    Sequential,
    /// Stay at the same place.
    Identical,
}

/// How a job sees zones (`zonemode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZoneMode {
    /// It sees none.
    #[default]
    None,
    /// It transfers an amount in one part of its region, then goes on in the next part.
    Strided,
    /// Each zone is written from its first byte on, and reset before it is written again.
    Zbd,
}

/// Options of `zonemode`. Sizes are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Zoning {
    /// `zonemode`.
    pub mode: ZoneMode,
    /// `zonesize`: size of a zone, or with [`ZoneMode::Strided`] bytes to transfer in it; 0 where not given.
    pub size: u64,
    /// `zonecapacity`; 0 where not given, which is the size.
    pub capacity: u64,
    /// `zonerange`: size of a zone with [`ZoneMode::Strided`]; 0 where not given, which is `zonesize`.
    pub range: u64,
    /// `zoneskip`: what a sequential job leaves out between two zones.
    pub skip: Amount,
    /// `max_open_zones`: limit of all jobs on one namespace or file; 0 for none.
    pub max_open: u32,
    /// `job_max_open_zones`: limit of this job; 0 for none.
    pub job_max_open: u32,
    /// The limits of the namespace do not count (`ignore_zone_limits`).
    pub ignores_limits: bool,
    /// `zone_reset_threshold`: share of the region with data from which on zones are reset early.
    pub reset_threshold: f64,
    /// `zone_reset_frequency`: resets for each write beyond the threshold; 0 for none.
    pub reset_frequency: f64,
    /// Reads need not stay below write pointers (`read_beyond_wp`).
    pub reads_beyond: bool,
}

impl Zoning {
    /// Writes between two early resets.
    pub fn writes_until_reset(&self) -> u32 {
        if self.reset_frequency > 0.0 {
            (1.0 / self.reset_frequency).min(f64::from(u32::MAX)) as u32
        } else {
            u32::MAX
        }
    }
}

/// Which random numbers a job with a `zonemode` draws (`random_generator`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RandomGenerator {
    /// Tausworthe's, 32 bits.
    #[default]
    Tausworthe,
    /// Tausworthe's, 64 bits.
    Tausworthe64,
    /// A shift register that visits each block once.
    Lfsr,
}

/// Random numbers of a job with a `zonemode`, which are those of fio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Randomness {
    /// `random_generator`.
    pub generator: RandomGenerator,
    /// `randrepeat=0`: seeds come from the seed of the run.
    pub is_unrepeatable: bool,
    /// `allrandrepeat`.
    pub repeats_all: bool,
}

/// What `sync` asks of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncWrites {
    /// Nothing.
    #[default]
    None,
    /// Each write is durable before it completes.
    Each,
}

/// How a job takes turns among its files (`file_service_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileService {
    /// In turn.
    #[default]
    RoundRobin,
    /// At random.
    Random,
    /// One after the other is finished.
    Sequential,
}

/// How a write chooses among placement ids (`plid_select`, `fdp_pli_select`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlacementSelect {
    /// In turn.
    #[default]
    RoundRobin,
    /// At random.
    Random,
}

/// Which interface carries the placement id (`dataplacement`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataPlacement {
    /// None.
    #[default]
    None,
    /// Placement handles (flexible data placement).
    Fdp,
    /// Streams.
    Streams,
}

/// What counts as a block for think time (`thinktime_blocks_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkBlocks {
    /// Completed requests.
    #[default]
    Complete,
    /// Issued requests.
    Issue,
}

/// `read_iolog` and what belongs to it: the job issues the requests of a recording instead of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// `read_iolog`, split at ':'; copies of a section take one after the other. Empty where not given.
    pub files: Vec<String>,
    /// Requests are issued as soon as there is room in `iodepth`, whatever their times (`replay_no_stall`).
    pub never_stalls: bool,
    /// Percent of the recorded rate (`replay_time_scale`).
    pub rate_percent: u64,
    /// Where its requests go, instead of `filename` (`replay_redirect`).
    pub redirect: Option<String>,
    /// Offsets are divided by it (`replay_scale`).
    pub scale: u64,
    /// Offsets are rounded down to multiples of it, a power of two (`replay_align`).
    pub align: u64,
    /// Directions that are left out (`replay_skip`).
    pub skips: [bool; 3],
    /// Flushes are left out (`replay_skip`).
    pub skips_flushes: bool,
}

impl Default for Recording {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            never_stalls: false,
            rate_percent: 100,
            redirect: None,
            scale: 1,
            align: 1,
            skips: [false; 3],
            skips_flushes: false,
        }
    }
}

impl Recording {
    /// Where a request at an offset of the recording goes.
    pub const fn place(&self, offset: u64) -> u64 {
        (offset / self.scale) & !(self.align - 1)
    }
}

/// One process of fio. [`Job::new`] has fio's defaults.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of fio's")]
pub struct Job {
    /// `name`, or the section.
    pub name: String,
    /// `description`.
    pub description: String,
    /// The section.
    pub place: Place,
    /// Number among all jobs, from 0.
    pub number: u32,
    /// Number among the copies of its section (`numjobs`), from 0.
    pub copy: u32,
    /// Reporting group: `stonewall` and `new_group` begin a new one.
    pub group: u32,
    /// Starts when all jobs before it have ended (`stonewall`).
    pub waits_for_previous: bool,
    /// Starts when all jobs of this name have ended (`wait_for`).
    pub wait_for: Option<String>,
    /// The options of the section itself as typed, for reports.
    pub options: Vec<(String, String)>,

    /// `rw`.
    pub pattern: Pattern,
    /// Requests after which a random job jumps (`rw=randread:N`); 1 normally.
    pub jump_every: u32,
    /// Bytes a sequential job skips after each request (`rw=write:4k`), negative for backwards.
    pub skip_bytes: i64,
    /// `rw_sequencer`.
    pub sequencer: Sequencer,
    /// Percent of reads in a mix (`rwmixread`).
    pub read_percent: u32,
    /// Request sizes by direction.
    pub block_size: [BlockSize; 3],
    /// Sizes of a range need not be multiples of the smallest (`bs_unaligned`).
    pub is_unaligned: bool,
    /// Random places are multiples of this by direction (`blockalign`); the smallest block where not given.
    pub block_align: [Option<u64>; 3],
    /// Region (`size`).
    pub size: Amount,
    /// How much is transferred (`io_size`); the region's size where not given.
    pub io_size: Amount,
    /// Where the region begins (`offset`).
    pub offset: Amount,
    /// By how much the region of each copy lies further (`offset_increment`).
    pub offset_increment: Amount,
    /// Beginnings of regions are rounded up to this (`offset_align`); 0 for none.
    pub offset_align: u64,
    /// `filename`, split at ':'; empty where not given.
    pub filenames: Vec<String>,
    /// `file_service_type`.
    pub file_service: FileService,
    /// Requests to one file before the next one's turn.
    pub file_service_turn: u32,

    /// `runtime`.
    pub runtime_ns: Option<u64>,
    /// `time_based`.
    pub is_time_based: bool,
    /// `ramp_time`.
    pub ramp_ns: u64,
    /// `startdelay`, a range.
    pub start_delay_ns: (u64, u64),
    /// `number_ios`.
    pub number_ios: Option<u64>,
    /// `loops`.
    pub loops: u64,
    /// Ends all other jobs when it ends (`exitall`).
    pub ends_all: bool,

    /// `iodepth`; 0 in a job with a recording that does not say: as many as its times ask for.
    pub depth: u32,
    /// `ioengine` has one request under way at a time; so has fio's default.
    pub is_synchronous: bool,
    /// `thinktime`.
    pub think_ns: u64,
    /// `thinktime_blocks`.
    pub think_blocks: u64,
    /// `thinktime_blocks_type`.
    pub think_blocks_type: ThinkBlocks,
    /// `thinktime_iotime`: think after so long a time of requests instead.
    pub think_io_ns: u64,
    /// `rate` and `rate_iops` by direction.
    pub rate: [Rate; 3],
    /// `rate_process`.
    pub rate_process: RateProcess,
    /// Think time is not caught up (`rate_ignore_thinktime`).
    pub rate_ignores_think: bool,

    /// `random_distribution` by direction.
    pub distribution: [Distribution; 3],
    /// Percent of a random job's requests that are random (`percentage_random`).
    pub percent_random: [u32; 3],
    /// Blocks may be hit twice before each is hit once (`norandommap`).
    pub no_random_map: bool,
    /// `randseed`.
    pub seed: Option<u64>,
    /// `random_generator`, `randrepeat`, `allrandrepeat`.
    pub random: Randomness,
    /// `zonemode` and what belongs to it.
    pub zoning: Zoning,
    /// `read_iolog` and what belongs to it.
    pub recording: Recording,

    /// Writes after which one flush is issued (`fsync`); 0 for none.
    pub fsync: u64,
    /// The same for `fdatasync`.
    pub fdatasync: u64,
    /// `sync`.
    pub sync: SyncWrites,
    /// A flush at the end of a job that writes (`end_fsync`, `fsync_on_close`).
    pub end_fsync: bool,

    /// `write_hint`: 0 none or not set, then short 1, medium 2, long 3, extreme 4.
    pub write_hint: u16,
    /// `dataplacement`; `fdp=1` is [`DataPlacement::Fdp`].
    pub placement: DataPlacement,
    /// Placement ids writes may use (`plids`, `fdp_pli`); empty for none.
    pub placement_ids: Vec<u16>,
    /// `plid_select`.
    pub placement_select: PlacementSelect,
    /// `fadvise_stream`: the stream of all writes.
    pub stream: Option<u16>,

    /// Reports of one group are added up (`group_reporting`).
    pub group_reporting: bool,
    /// `percentile_list`.
    pub percentiles: Vec<f64>,
    /// Percentiles of completion latency are reported (`clat_percentiles`).
    pub clat_percentiles: bool,
    /// Percentiles of total latency are reported (`lat_percentiles`).
    pub lat_percentiles: bool,
    /// Logs that are written.
    pub logs: Logs,
}

/// Which logs a job asks for. Of prefixes an empty one stands for the job's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logs {
    /// `write_bw_log`.
    pub bandwidth: Option<String>,
    /// `write_iops_log`.
    pub iops: Option<String>,
    /// `write_lat_log`.
    pub latency: Option<String>,
    /// `write_iolog`: the file that the requests are written to.
    pub requests: Option<String>,
    /// `log_avg_msec` in nanoseconds; 0 logs every request.
    pub average_ns: u64,
    /// Files have the number of the job in their names, from 1 (`per_job_logs`).
    pub per_job: bool,
}

impl Default for Logs {
    fn default() -> Self {
        Self { bandwidth: None, iops: None, latency: None, requests: None, average_ns: 0, per_job: true }
    }
}

impl Logs {
    /// Whether completions are logged.
    pub const fn has_samples(&self) -> bool {
        self.bandwidth.is_some() || self.iops.is_some() || self.latency.is_some()
    }
}

/// The percentiles that fio reports where a job does not say.
pub const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

impl Job {
    /// A job with fio's defaults.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            pattern: Pattern { reads: true, ..Pattern::default() },
            jump_every: 1,
            read_percent: 50,
            block_size: [const { BlockSize::fixed(4096) }; 3],
            file_service_turn: 1,
            loops: 1,
            depth: 1,
            think_blocks: 1,
            percent_random: [100; 3],
            percentiles: PERCENTILES.to_vec(),
            clat_percentiles: true,
            ..Self::default()
        }
    }

    /// The recording whose requests it issues, if it has one.
    pub fn recording_file(&self) -> Option<&str> {
        let files = &self.recording.files;
        files.get(self.copy as usize % files.len().max(1)).map(String::as_str)
    }

    /// Whether it issues a recording in a file that is as large as that needs: one of its own, or of a name
    /// of which `is_file` holds.
    pub fn has_file_for_recording(&self, is_file: impl Fn(&str) -> bool) -> bool {
        let is_sized = self.recording_file().is_none() || self.size != Amount::None;
        !is_sized && self.filenames.first().is_none_or(|name| is_file(name))
    }

    /// Whether it issues requests of this direction.
    pub const fn does(&self, direction: Direction) -> bool {
        match direction {
            Direction::Read => self.pattern.reads,
            Direction::Write => self.pattern.writes,
            Direction::Trim => self.pattern.trims,
        }
    }

    /// Its smallest block over the directions it uses.
    pub fn smallest_block(&self) -> u64 {
        Direction::ALL
            .into_iter()
            .filter(|d| self.does(*d))
            .map(|d| self.block_size[d as usize].min)
            .min()
            .unwrap_or(1)
    }
}
