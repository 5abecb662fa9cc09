//! A drive cut into two NVM sets, without a translation layer: one job writes 32 KiB requests in sequence at
//! depth 4, another reads 4 KiB at random at a given depth. Units of pages go to the dies of the writer's set
//! in rotation; an erase stands before the first program of each block, so that all dies of a set erase at
//! the same time.

use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded};
use nandscape_core::{Clocked, Completion, Geometry, Ppn, Sender, SimTime, Token};
use nandscape_media::{HostLink, Options, ReadFirst, Scheduler, Suspension, TimedOp, Timing, WriteBuffer};

/// 16 channels of 8 dies; blocks of 512 units of 3 pages. The first half of the blocks of a die is written,
/// the other half read.
pub const GEOMETRY: Geometry = Geometry {
    channels: 16,
    dies_per_channel: 8,
    planes_per_die: 1,
    blocks_per_plane: 8,
    pages_per_block: 1536,
    page_bytes: 16384,
    sector_bytes: 4096,
    oob_bytes: 128,
};

/// As in the preset `pblaze5-916`.
pub fn timing() -> Timing {
    Timing {
        read_ns: 53_000,
        program_ns: 1_850_000,
        erase_ns: 5_500_000,
        channel_bytes_per_s: 476_000_000,
        command_ns: 400,
    }
}

/// As in the preset `pblaze5-916`.
pub fn options() -> Options {
    Options {
        reads_ns: vec![46_000, 53_000, 60_000],
        program_spread: 0.05,
        program_jitter: 0.02,
        program_pages: 3,
        core_ns: 16_000,
        decode_ns: 6_000,
        data_out_ns: 500,
        burst_bytes: 1024,
        hold_off_ns: 200_000,
        suspension: Suspension {
            programs: true,
            erases: false,
            stop_ns: 110_000,
            erase_stop_ns: 110_000,
            resume_ns: 50_000,
            run_ns: 300_000,
            tail_ns: 100_000,
            most: 10,
            erase_most: 10,
        },
        host: HostLink {
            bytes_per_s: 5_000_000_000,
            read_front_ns: 6_000,
            write_front_ns: 5_000,
            completion_ns: 2_000,
        },
        buffer: WriteBuffer { bytes: 16 << 20, ..WriteBuffer::default() },
        ..Options::default()
    }
}

/// Which dies belong to which job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All dies to both.
    Traditional,
    /// Eight whole channels each.
    Vertical,
    /// Four dies of each channel each.
    Horizontal,
}

impl Layout {
    fn dies(self, writer: bool) -> Vec<u32> {
        let is_first = |unit: u32| match self {
            Self::Traditional => writer,
            Self::Vertical => unit % GEOMETRY.channels < GEOMETRY.channels / 2,
            Self::Horizontal => unit / GEOMETRY.channels < GEOMETRY.dies_per_channel / 2,
        };
        (0..GEOMETRY.units()).filter(|unit| is_first(*unit) == writer || self == Self::Traditional).collect()
    }
}

/// What a run measured.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Of each read, ascending.
    pub latencies_ns: Vec<u64>,
    pub read_iops: f64,
    pub write_bytes_per_s: f64,
}

impl Outcome {
    pub fn mean_us(&self) -> f64 {
        self.latencies_ns.iter().sum::<u64>() as f64 / self.latencies_ns.len().max(1) as f64 / 1000.0
    }

    pub fn percentile_us(&self, share: f64) -> f64 {
        let rank = (self.latencies_ns.len() as f64 * share).ceil() as usize;
        self.latencies_ns[rank.clamp(1, self.latencies_ns.len()) - 1] as f64 / 1000.0
    }
}

/// CPU time that the one thread of a job spends on a request, in nanoseconds.
const CPU_NS: [u64; 2] = [2_000, 3_000];
const WRITE_DEPTH: u64 = 4;
const PAGES_PER_WRITE: u32 = 2;
const WARM_NS: u64 = 100_000_000;

struct Writer {
    dies: Vec<u32>,
    /// Pages written so far.
    next: u64,
}

impl Writer {
    fn write(&mut self, scheduler: &mut ReadFirst, at: SimTime) -> Token {
        let width = u64::from(options().program_pages);
        let blocks = u64::from(GEOMETRY.blocks_per_plane / 2);
        let mut done = Token::NONE;
        for _ in 0..PAGES_PER_WRITE {
            let (unit, index) = (self.next / width, self.next % width);
            let dies = self.dies.len() as u64;
            let die = self.dies[(unit % dies) as usize];
            let page = unit / dies * width + index;
            let in_block = (page % u64::from(GEOMETRY.pages_per_block)) as u32;
            let block = (page / u64::from(GEOMETRY.pages_per_block) % blocks) as u32;
            let first = (die * GEOMETRY.blocks_per_plane + block) * GEOMETRY.pages_per_block;
            if in_block == 0 {
                scheduler.submit_as(
                    TimedOp::Erase { page: Ppn(first), pages: 0 },
                    Sender::Device,
                    at,
                    Token::NONE,
                );
            }
            let op = TimedOp::Program { page: Ppn(first + in_block), transfer: GEOMETRY.page_bytes, held: 0 };
            let token = scheduler.submit_as(op, Sender::Host, at, Token::NONE);
            done = scheduler.join(done, token);
            self.next += 1;
        }
        done
    }
}

struct Reader {
    dies: Vec<u32>,
    rng: Xoshiro256PlusPlus,
}

impl Reader {
    fn read(&mut self, scheduler: &mut ReadFirst, at: SimTime) -> Token {
        let pages = GEOMETRY.blocks_per_plane * GEOMETRY.pages_per_block;
        let die = self.dies[below(&mut self.rng, self.dies.len() as u64) as usize];
        let page = pages / 2 + below(&mut self.rng, u64::from(pages / 2)) as u32;
        let op = TimedOp::Read { page: Ppn(die * pages + page), transfer: 4096 };
        scheduler.submit_as(op, Sender::Host, at, Token::NONE)
    }
}

/// Runs both jobs until `reads` reads have been counted, or without reads for `reads` microseconds.
pub fn run(layout: Layout, depth: u64, reads: u64, timing: &Timing, options: &Options) -> Outcome {
    let mut scheduler = ReadFirst::with_options(&GEOMETRY, timing, options);
    let mut writer = Writer { dies: layout.dies(true), next: 0 };
    let mut reader = Reader { dies: layout.dies(false), rng: seeded(7) };
    let mut out: Vec<Completion> = Vec::new();
    let mut outcome = Outcome::default();
    // Free places of each job with the time since which they are free, in order.
    let mut places: [std::collections::VecDeque<u64>; 2] = Default::default();
    places[0].extend((0..depth).map(|_| 0));
    places[1].extend((0..WRITE_DEPTH).map(|_| 0));
    let mut cpu_free_ns = [0u64; 2];
    // By tag: which job, since when.
    let mut pending: Vec<(usize, u64)> = Vec::new();
    let mut free: Vec<u64> = Vec::new();
    let mut written = 0u64;
    let mut end_ns = 0;
    loop {
        let issue =
            |job: usize| places[job].front().map(|since| (cpu_free_ns[job].max(*since) + CPU_NS[job], job));
        let next = [issue(0), issue(1)].into_iter().flatten().min();
        let event = scheduler.next_event();
        if let Some((at_ns, job)) = next
            && event.is_none_or(|event| event.0 > at_ns)
        {
            let since = places[job].pop_front().unwrap();
            cpu_free_ns[job] = at_ns;
            let at = SimTime(at_ns);
            scheduler.advance(at, &mut out);
            let token =
                if job == 0 { reader.read(&mut scheduler, at) } else { writer.write(&mut scheduler, at) };
            let tag = free.pop().unwrap_or_else(|| {
                pending.push((0, 0));
                pending.len() as u64 - 1
            });
            pending[tag as usize] = (job, since);
            scheduler.watch(token, tag);
        } else {
            scheduler.advance(event.expect("somebody always waits"), &mut out);
        }
        for done in out.drain(..) {
            let (job, since) = pending[done.tag as usize];
            free.push(done.tag);
            places[job].push_back(done.at.0);
            if done.at.0 >= WARM_NS {
                end_ns = done.at.0;
                if job == 1 {
                    written += u64::from(PAGES_PER_WRITE * GEOMETRY.page_bytes);
                } else if since >= WARM_NS {
                    outcome.latencies_ns.push(done.at.0 - since);
                }
            }
        }
        let count = if depth == 0 { end_ns / 1000 } else { outcome.latencies_ns.len() as u64 };
        if count >= reads {
            break;
        }
    }
    let seconds = (end_ns - WARM_NS) as f64 / 1e9;
    outcome.read_iops = outcome.latencies_ns.len() as f64 / seconds;
    outcome.write_bytes_per_s = written as f64 / seconds;
    outcome.latencies_ns.sort_unstable();
    outcome
}
