//! Where the next request of a job would go in a file, and its size: fio's rules, zones left out. Offsets
//! count from the first byte of the file or namespace.

use super::draws::{Lfsr, Seeds, Tausworthe, is_wide};
use crate::jobs::axmap::Axmap;
use crate::jobs::places::Law;
use crate::jobs::planned::FilePlan;
use nandscape_core::rng::{Xoshiro256PlusPlus, seeded};
use nandscape_jobs::job::{RandomGenerator, Sequencer, ZoneMode};
use nandscape_jobs::{Direction, Distribution, Job};

/// A file of a job, and where the job is in it.
#[derive(Clone, Debug)]
pub(super) struct WalkFile {
    pub plan: FilePlan,
    /// Beginning of the region, which `zoneskip` moves.
    pub offset: u64,
    /// End of the last request by direction.
    pub last_end: [u64; 3],
    /// Beginning of the last request by direction; `NOWHERE` if there was none.
    pub last_start: [u64; 3],
    pub places: Places,
    pub is_open: bool,
    pub is_done: bool,
}

pub(super) const NOWHERE: u64 = u64::MAX;

#[derive(Clone, Debug)]
pub(super) enum Places {
    /// A place may come again at any time.
    Any,
    /// Each block once.
    Map(Axmap),
    Lfsr(Lfsr),
    /// Not uniform, by direction.
    Laws(Box<[Law; 3]>),
}

/// The generators of a job.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    pub sizes: [Tausworthe; 3],
    pub mix: Tausworthe,
    pub files: Tausworthe,
    place: Tausworthe,
    sequential: [Tausworthe; 3],
    /// For laws that are not uniform, and placement ids.
    pub other: Xoshiro256PlusPlus,
}

impl Draws {
    pub fn new(job: &Job, seeds: &Seeds) -> Self {
        let wide = is_wide(job.random.generator);
        // What was discarded is written in the same sizes.
        let trims = if job.pattern.trim_then_write { Seeds::WRITE_SIZE } else { Seeds::TRIM_SIZE };
        let sizes = [Seeds::READ_SIZE, Seeds::WRITE_SIZE, trims];
        Self {
            sizes: sizes.map(|purpose| Tausworthe::new(seeds.of(purpose), wide)),
            mix: Tausworthe::new(seeds.of(Seeds::MIX), false),
            files: Tausworthe::new(seeds.of(Seeds::FILE), wide),
            place: Tausworthe::new(seeds.of(Seeds::PLACE), wide),
            sequential: std::array::from_fn(|_| Tausworthe::new(seeds.of(Seeds::SEQUENTIAL), false)),
            other: seeded(seeds.of(Seeds::PLACE)),
        }
    }
}

/// The options that offsets and sizes depend on.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    job: Job,
    /// `blockalign`, or the smallest block.
    align: [u64; 3],
    /// Bytes of a zone with `zonemode=strided`.
    range: u64,
    /// Shares of `bssplit`, smallest first.
    splits: [Vec<(u64, u64)>; 3],
    /// Random requests until one goes on behind the last.
    until_jump: u32,
}

/// An offset, and how it came about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub offset: u64,
    /// It is marked in the random map.
    pub is_marked: bool,
}

impl Rules {
    pub fn new(job: &Job, range: u64) -> Self {
        let align = std::array::from_fn(|d| {
            job.block_align[d].filter(|_| job.pattern.is_random).unwrap_or(job.block_size[d].min)
        });
        let splits = std::array::from_fn(|d| {
            let mut split: Vec<(u64, u64)> =
                job.block_size[d].split.iter().map(|(bytes, share)| (*bytes, *share as u64)).collect();
            split.sort_by_key(|(_, share)| *share);
            split
        });
        Self { align, range, splits, until_jump: 1, job: job.clone() }
    }

    /// The random places of a file; `None` where a shift register cannot begin with its seed.
    pub fn places(&self, plan: &FilePlan, seeds: &Seeds, rng: &mut Xoshiro256PlusPlus) -> Option<Places> {
        let job = &self.job;
        if !job.pattern.is_random {
            return Some(Places::Any);
        }
        let is_uniform = job.distribution.iter().all(|law| *law == Distribution::Uniform);
        if !is_uniform {
            let law = |d: usize| {
                let slots = self.last_block(plan, d).max(1);
                Law::new(&job.distribution[d], slots, self.align[d], rng)
            };
            return Some(Places::Laws(Box::new([0, 1, 2].map(law))));
        }
        let smallest = job.block_size.iter().map(|size| size.min).min().unwrap_or(1);
        let bytes = match job.zoning.mode {
            ZoneMode::Strided => self.range,
            _ => plan.len.min(plan.real_len),
        };
        let blocks = bytes / smallest;
        if job.random.generator == RandomGenerator::Lfsr {
            return Lfsr::new(blocks, seeds.of(Seeds::PLACE)).map(Places::Lfsr);
        }
        let is_aligned = (0..3).all(|d| self.align[d] == job.block_size[d].min);
        Some(if job.no_random_map || !is_aligned { Places::Any } else { Places::Map(Axmap::new(blocks)) })
    }

    fn last_block(&self, plan: &FilePlan, d: usize) -> u64 {
        let is_strided = self.job.zoning.mode == ZoneMode::Strided;
        let bytes = if is_strided { self.range } else { plan.len.min(plan.real_len) };
        let smallest = self.job.block_size[d].min;
        bytes.saturating_sub(smallest.saturating_sub(self.align[d])) / self.align[d]
    }

    /// The next offset of a direction; `None` at the end of the file.
    pub fn offset(&mut self, file: &mut WalkFile, direction: Direction, draws: &mut Draws) -> Option<Place> {
        let d = direction as usize;
        self.until_jump -= 1;
        let jumps = self.until_jump == 0;
        if jumps {
            self.until_jump = self.job.jump_every;
        }
        let (offset, is_marked) = self.block(file, direction, jumps, draws)?;
        if offset >= file.plan.len {
            return None;
        }
        let offset = offset.wrapping_add(file.offset);
        if offset >= file.plan.real_len {
            return None;
        }
        let is_random_pair = self.job.pattern.trim_then_write && self.job.pattern.is_random;
        if is_random_pair && direction == Direction::Trim && file.last_start[d] == offset {
            let write = &mut file.last_start[Direction::Write as usize];
            *write = write.wrapping_sub(1);
        }
        Some(Place { offset, is_marked })
    }

    /// Offset in the region, and whether the random map marks it.
    fn block(
        &self,
        file: &mut WalkFile,
        direction: Direction,
        jumps: bool,
        draws: &mut Draws,
    ) -> Option<(u64, bool)> {
        let job = &self.job;
        let d = direction as usize;
        if job.pattern.trim_then_write && job.pattern.is_random && direction == Direction::Write {
            return Some((file.last_start[Direction::Trim as usize], false));
        }
        if !jumps {
            return match job.sequencer {
                Sequencer::Sequential => self
                    .sequential(file, d)
                    .or_else(|| self.random(file, d, draws))
                    .map(|offset| (offset, false)),
                Sequencer::Identical => {
                    let last = file.last_start[d];
                    let offset = if last == NOWHERE { 0 } else { last.wrapping_sub(file.offset) };
                    Some((offset, false))
                }
            };
        }
        if !job.pattern.is_random {
            return self.sequential(file, d).map(|offset| (offset, true));
        }
        let percent = job.percent_random[d];
        if percent == 100 || draws.sequential[d].percent() <= percent {
            return self.random(file, d, draws).map(|offset| (offset, true));
        }
        let offset = self.sequential(file, d).or_else(|| self.random(file, d, draws))?;
        Some((offset, false))
    }

    fn random(&self, file: &mut WalkFile, d: usize, draws: &mut Draws) -> Option<u64> {
        if let Some(offset) = self.draw(file, d, draws) {
            return Some(offset);
        }
        if !self.job.is_time_based {
            return None;
        }
        file.restart();
        self.draw(file, d, draws)
    }

    fn draw(&self, file: &mut WalkFile, d: usize, draws: &mut Draws) -> Option<u64> {
        let last = self.last_block(&file.plan, d);
        if last == 0 {
            return None;
        }
        let block = match &mut file.places {
            Places::Laws(laws) => laws[d].draw(last, &mut draws.other),
            Places::Lfsr(lfsr) => lfsr.next()?,
            Places::Any => (last as f64 * draws.place.share()) as u64,
            Places::Map(map) => {
                let block = (last as f64 * draws.place.share()) as u64;
                if map.is_free(block) { block } else { map.next_free(block)? }
            }
        };
        Some(block * self.align[d])
    }

    fn sequential(&self, file: &mut WalkFile, d: usize) -> Option<u64> {
        let job = &self.job;
        let FilePlan { real_len, len, start, .. } = file.plan;
        if file.last_end[d] >= len + start && job.is_time_based && job.filenames.len() < 2 {
            file.last_end[d] = file.offset;
        }
        if file.last_end[d] >= real_len {
            return None;
        }
        let step = job.skip_bytes;
        if file.last_end[d] == file.offset && file.offset > 0 && step < 0 {
            file.last_end[d] = len.min(real_len);
        }
        let mut at = file.last_end[d].wrapping_sub(file.offset);
        if at > 0 && step != 0 {
            at = at.wrapping_add_signed(step);
            if at >= real_len {
                at = if step > 0 { file.offset } else { len.min(real_len).wrapping_add_signed(step) };
            }
        }
        Some(at)
    }

    /// The size of a request at an offset; `None` where not even the smallest fits.
    pub fn size(&self, file: &WalkFile, direction: Direction, offset: u64, draws: &mut Draws) -> Option<u64> {
        let d = direction as usize;
        if self.job.pattern.trim_then_write && self.job.pattern.is_random && direction == Direction::Write {
            let trim = Direction::Trim as usize;
            return Some(file.last_end[trim] - file.last_start[trim]);
        }
        let size = &self.job.block_size[d];
        if size.is_fixed() {
            return Some(size.min);
        }
        let fits = |bytes: u64| offset + bytes <= file.plan.len + file.plan.start;
        if !fits(size.min) {
            return None;
        }
        loop {
            let draws = &mut draws.sizes[d];
            let draw = draws.next();
            let mut bytes = if self.splits[d].is_empty() {
                size.min + (size.max as f64 * (draw as f64 / (draws.max() as f64 + 1.0))) as u64
            } else {
                let (mut share, mut bytes) = (0, 0);
                for (candidate, percent) in self.splits[d].iter().filter(|(_, percent)| *percent > 0) {
                    (share, bytes) = (share + percent, *candidate);
                    if draw / share <= draws.max() / 100 && fits(bytes) {
                        break;
                    }
                }
                bytes
            };
            if !self.job.is_unaligned {
                bytes -= bytes % size.min;
            }
            bytes = bytes.min(size.max);
            if fits(bytes) {
                return Some(bytes);
            }
        }
    }
}

impl WalkFile {
    pub fn new(plan: FilePlan, places: Places) -> Self {
        Self {
            plan,
            offset: plan.offset,
            last_end: [plan.offset; 3],
            last_start: [NOWHERE; 3],
            places,
            is_open: false,
            is_done: false,
        }
    }

    /// Begins anew at the beginning of the region.
    pub fn restart(&mut self) {
        self.last_end = [self.offset; 3];
        self.last_start = [NOWHERE; 3];
        match &mut self.places {
            Places::Map(map) => map.clear(),
            Places::Lfsr(lfsr) => lfsr.restart(),
            Places::Any | Places::Laws(_) => {}
        }
    }

    /// Whether an offset is in the region.
    pub const fn has(&self, offset: u64) -> bool {
        offset.wrapping_sub(self.offset) < self.plan.len
    }

    /// Marks a request in the random map, and gives how much of it was free.
    pub fn mark(&mut self, offset: u64, bytes: u64, smallest: u64) -> u64 {
        let Places::Map(map) = &mut self.places else { return bytes };
        let taken = map.take((offset - self.offset) / smallest, bytes.div_ceil(smallest));
        bytes.min(taken * smallest)
    }
}
