//! What a job asks for, request by request: direction, size, place, hint. Knows nothing of time.

use super::axmap::Axmap;
use super::hints::Hints;
use super::permutation::Permutation;
use super::places::{Law, Places};
use super::planned::{JobPlan, Region};
use super::request::Request;
use nandscape_core::Extent;
use nandscape_core::rng::{Xoshiro256PlusPlus, below, seeded, unit};
use nandscape_jobs::job::{BlockSize, FileService, Sequencer};
use nandscape_jobs::{Direction, Distribution, Job};

/// One file or namespace of a job, and where the job is in it.
#[derive(Clone, Debug)]
struct File {
    region: Region,
    /// End of the last request by direction, from the region's first byte.
    last_end: [u64; 3],
    /// Nothing was asked of it yet, by direction.
    is_fresh: [bool; 3],
    /// Beginning of the last request by direction.
    last_start: [u64; 3],
    places: Option<Places>,
    /// A request that would not fit any more ended it.
    is_done: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Generator {
    job: Job,
    wraps: bool,
    files: Vec<File>,
    /// File of the present turn, and requests left in it.
    file: usize,
    turn: u32,
    /// Smallest block over the directions, the unit of the random map.
    unit: u64,
    /// Bytes between random places, by direction.
    align: [u64; 3],
    sizes: [Size; 3],
    /// Requests until a random job jumps again.
    until_jump: u32,
    /// The block that was discarded and is to be written next.
    to_write: Option<Request>,
    /// The request that [`Generator::next`] gives next.
    ahead: Option<Request>,
    hints: Hints,
    mix: Xoshiro256PlusPlus,
    size: Xoshiro256PlusPlus,
    place: Xoshiro256PlusPlus,
}

#[derive(Clone, Debug)]
enum Size {
    Fixed(u64),
    /// From the first, in steps, so many.
    Range {
        min: u64,
        step: u64,
        steps: u64,
        max: u64,
    },
    /// Up to this cumulated share, so many bytes.
    Split(Vec<(f64, u64)>),
}

impl Size {
    fn new(size: &BlockSize, is_unaligned: bool) -> Self {
        if size.is_fixed() {
            return Self::Fixed(size.min);
        }
        if size.split.is_empty() {
            let step = if is_unaligned { 1 } else { size.min };
            return Self::Range {
                min: size.min,
                step,
                steps: (size.max - size.min) / step + 1,
                max: size.max,
            };
        }
        let mut sum = 0.0;
        Self::Split(
            size.split
                .iter()
                .map(|(bytes, share)| {
                    sum += share;
                    (sum, *bytes)
                })
                .collect(),
        )
    }

    #[inline]
    fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { min, step, steps, max } => (min + below(rng, *steps) * step).min(*max),
            Self::Split(list) => {
                let share = unit(rng) * 100.0;
                list.iter().find(|(up_to, _)| share < *up_to).or(list.last()).map_or(0, |(_, bytes)| *bytes)
            }
        }
    }
}

/// Seed of one of a job's generators: jobs and purposes apart.
fn sub_seed(seed: u64, job: &Job, purpose: u64) -> u64 {
    let mut x = seed ^ job.seed.unwrap_or(0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= (u64::from(job.number) + 1) << 8 ^ purpose;
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^ x >> 27
}

impl Generator {
    pub fn new(job: &Job, plan: &JobPlan, seed: u64) -> Self {
        let mut place = seeded(sub_seed(seed, job, 3));
        let unit = job.smallest_block();
        let align = std::array::from_fn(|d| job.block_align[d].unwrap_or(unit));
        let files = plan.regions.iter().map(|region| File {
            region: *region,
            last_end: [0; 3],
            is_fresh: [true; 3],
            last_start: [0; 3],
            places: job.pattern.is_random.then(|| places(job, region, unit, align, &mut place)),
            is_done: false,
        });
        let files: Vec<File> = files.collect();
        Self {
            wraps: plan.wraps,
            files,
            file: 0,
            turn: job.file_service_turn,
            unit,
            align,
            sizes: std::array::from_fn(|d| Size::new(&job.block_size[d], job.is_unaligned)),
            until_jump: 0,
            to_write: None,
            ahead: None,
            hints: Hints::new(job),
            mix: seeded(sub_seed(seed, job, 1)),
            size: seeded(sub_seed(seed, job, 2)),
            place,
            job: job.clone(),
        }
    }

    /// The next request in a direction of the mix; `None` at the end. The one after it is drawn at once, so
    /// that it can be prepared.
    #[inline]
    pub fn next(&mut self) -> Option<Request> {
        let next = self.ahead.or_else(|| self.draw());
        self.ahead = self.draw();
        next
    }

    fn draw(&mut self) -> Option<Request> {
        let direction = self.direction();
        self.request(direction)
    }

    /// The request after the last one of [`Generator::next`].
    #[inline]
    pub const fn ahead(&self) -> Option<Request> {
        self.ahead
    }

    #[inline]
    pub fn direction(&mut self) -> Direction {
        let pattern = self.job.pattern;
        if pattern.trim_then_write {
            return if self.to_write.is_some() { Direction::Write } else { Direction::Trim };
        }
        match (pattern.reads, pattern.writes, pattern.trims) {
            (true, true, _) => {
                if below(&mut self.mix, 100) < u64::from(self.job.read_percent) {
                    Direction::Read
                } else {
                    Direction::Write
                }
            }
            (true, ..) => Direction::Read,
            (_, true, _) => Direction::Write,
            _ => Direction::Trim,
        }
    }

    /// The next request of this direction; `None` when the job has been through all of its regions.
    #[inline]
    pub fn request(&mut self, direction: Direction) -> Option<Request> {
        if self.job.pattern.trim_then_write
            && let Some(request) = self.to_write.take()
        {
            return Some(Request { direction, hint: self.write_hint(), ..request });
        }
        let bytes = self.sizes[direction as usize].draw(&mut self.size);
        loop {
            let file = self.pick_file()?;
            let Some((start, len)) = self.place_in(file, direction, bytes) else {
                self.files[file].is_done = true;
                self.turn = 0;
                continue;
            };
            let state = &mut self.files[file];
            state.is_fresh[direction as usize] = false;
            state.last_start[direction as usize] = start;
            state.last_end[direction as usize] = start + len;
            let hint = if direction == Direction::Write { self.write_hint() } else { 0 };
            let region = self.files[file].region;
            let extent = Extent::new(region.start + start, len);
            let request =
                Request { namespace: region.namespace, direction, extent, hint, zeroes: false, zone: None };
            if self.job.pattern.trim_then_write {
                self.to_write = Some(request);
            }
            return Some(request);
        }
    }

    fn write_hint(&mut self) -> u16 {
        self.hints.next(&mut self.mix)
    }

    #[inline]
    fn pick_file(&mut self) -> Option<usize> {
        if self.files.len() == 1 {
            return (!self.files[0].is_done).then_some(0);
        }
        if self.files.iter().all(|file| file.is_done) {
            return None;
        }
        if self.turn == 0 || self.files[self.file].is_done {
            self.turn = self.job.file_service_turn;
            let count = self.files.len();
            if self.job.file_service == FileService::Random {
                self.file = below(&mut self.mix, count as u64) as usize;
            } else if self.job.file_service == FileService::RoundRobin {
                self.file = (self.file + 1) % count;
            }
            while self.files[self.file].is_done {
                self.file = (self.file + 1) % count;
            }
        }
        if self.job.file_service != FileService::Sequential {
            self.turn -= 1;
        }
        Some(self.file)
    }

    /// Beginning and length in a file's region; `None` at its end.
    #[inline]
    fn place_in(&mut self, file: usize, direction: Direction, bytes: u64) -> Option<(u64, u64)> {
        if !self.job.pattern.is_random {
            return self.sequential(file, direction, bytes);
        }
        let d = direction as usize;
        if self.until_jump > 0 && !self.files[file].is_fresh[d] {
            self.until_jump -= 1;
            if self.job.sequencer == Sequencer::Identical {
                let start = self.files[file].last_start[d];
                return Some((start, bytes.min(self.files[file].region.len - start)));
            }
            if let Some(found) = self.continued(file, direction, bytes) {
                return Some(found);
            }
        }
        let percent = self.job.percent_random[d];
        if percent < 100
            && below(&mut self.mix, 100) >= u64::from(percent)
            && let Some(found) = self.continued(file, direction, bytes)
        {
            return Some(found);
        }
        self.until_jump = self.job.jump_every - 1;
        self.random(file, direction, bytes)
    }

    /// Behind the last request of the direction, without skipping.
    fn continued(&mut self, file: usize, direction: Direction, bytes: u64) -> Option<(u64, u64)> {
        let state = &mut self.files[file];
        let start = state.last_end[direction as usize];
        if start + bytes > state.region.len {
            return None;
        }
        if let Some(Places::Map(map)) = &mut state.places {
            let _ = map.take(start / self.unit, bytes.div_ceil(self.unit));
        }
        Some((start, bytes))
    }

    #[inline]
    fn sequential(&mut self, file: usize, direction: Direction, bytes: u64) -> Option<(u64, u64)> {
        let state = &self.files[file];
        let len = state.region.len;
        let d = direction as usize;
        let mut start = if state.is_fresh[d] {
            0
        } else if self.job.skip_bytes == 0 {
            state.last_end[d]
        } else {
            match state.last_end[d].checked_add_signed(self.job.skip_bytes) {
                Some(start) => start,
                // Backwards beyond the beginning: as far before the end as the step is long.
                None => len.checked_add_signed(self.job.skip_bytes).unwrap_or(0),
            }
        };
        let smallest = self.job.block_size[d].min;
        if start + smallest > len {
            if !self.wraps {
                return None;
            }
            start = 0;
        }
        // The last request may be shorter, in whole smallest blocks.
        let room = len - start;
        let bytes = if bytes <= room { bytes } else { room / smallest * smallest };
        Some((start, bytes))
    }

    #[inline]
    fn random(&mut self, file: usize, direction: Direction, bytes: u64) -> Option<(u64, u64)> {
        let state = &mut self.files[file];
        let len = state.region.len;
        let d = direction as usize;
        match state.places.as_mut()? {
            Places::Once(order) => {
                let block = match order.next() {
                    Some(block) => block,
                    None if !self.wraps => return None,
                    None => {
                        order.restart(&mut self.place);
                        order.next()?
                    }
                };
                Some((block * self.unit, bytes))
            }
            Places::Map(map) => {
                if map.is_full() {
                    if !self.wraps {
                        return None;
                    }
                    map.clear();
                }
                let blocks = len / self.unit;
                let block = map.next_free(below(&mut self.place, blocks))?;
                let taken = map.take(block, bytes.div_ceil(self.unit));
                let start = block * self.unit;
                Some((start, bytes.min(taken * self.unit)))
            }
            Places::Drawn(laws) => {
                let (law, slots) = &laws[d];
                Some((law.draw(*slots, &mut self.place) * self.align[d], bytes))
            }
        }
    }
}

/// Random places in a region, so that the largest request fits at each.
fn slots(len: u64, largest: u64, align: u64) -> u64 {
    len.saturating_sub(largest) / align + 1
}

fn places(job: &Job, region: &Region, unit: u64, align: [u64; 3], rng: &mut Xoshiro256PlusPlus) -> Places {
    let used: Vec<usize> = Direction::ALL.into_iter().filter(|d| job.does(*d)).map(|d| d as usize).collect();
    let is_uniform = used.iter().all(|d| job.distribution[*d] == Distribution::Uniform);
    if job.no_random_map || !is_uniform {
        return Places::Drawn(std::array::from_fn(|d| {
            let slots = slots(region.len, job.block_size[d].max, align[d]);
            (Law::new(&job.distribution[d], slots, align[d], rng), slots)
        }));
    }
    let has_one_size = used.iter().all(|d| job.block_size[*d].is_fixed() && job.block_size[*d].min == unit);
    // A map is needed as well where a job goes on behind a random place, so that what it went through does
    // not come again.
    let jumps_always = job.jump_every == 1 && used.iter().all(|d| job.percent_random[*d] == 100);
    if has_one_size && jumps_always {
        Places::Once(Permutation::new(region.len / unit, rng))
    } else {
        Places::Map(Axmap::new(region.len / unit))
    }
}
