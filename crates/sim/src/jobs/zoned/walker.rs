//! A job with a `zonemode` as fio runs it: rounds through its region, a direction, a file, an offset and a
//! size for each request, then the zone that it may go to.

use super::draws::Seeds;
use super::offsets::{Draws, Rules, WalkFile};
use super::pending::{Adjusted, Pending};
use super::table::ZoneSet;
use crate::jobs::hints::Hints;
use crate::jobs::planned::{FilePlan, PlanError, WalkPlan, error};
use crate::jobs::request::{Request, ZoneUse};
use nandscape_core::Extent;
use nandscape_jobs::job::FileService;
use nandscape_jobs::{Direction, Distribution, Job};

/// What a job does next.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Request(Request),
    /// Reset the zone that begins at a byte of a namespace, and report it with [`Walker::was_reset`].
    Reset {
        namespace: u32,
        zone: u64,
    },
    /// Until one of its requests, or one of another job that uses the zone, is done.
    Wait,
    End,
}

#[derive(Clone, Debug, Default)]
struct Round {
    is_running: bool,
    loops_left: u64,
    /// Something was issued in it.
    has_requests: bool,
    /// Bytes issued in it that end it. As in fio, a synchronous engine goes on until its files have no more.
    bytes: u64,
    /// Whether there was a round before.
    is_later: bool,
}

/// Whose turn it is among the files.
#[derive(Clone, Debug, Default)]
struct Turn {
    next: usize,
    current: Option<usize>,
    left: u32,
}

/// How a mix goes on in one direction before it draws again.
#[derive(Clone, Copy, Debug)]
struct Mix {
    direction: Direction,
    until: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Walker {
    pub(super) job: Job,
    seed: u64,
    plan: WalkPlan,
    pub(super) files: Vec<WalkFile>,
    rules: Rules,
    draws: Draws,
    hints: Hints,
    round: Round,
    turn: Turn,
    mix: Mix,
    /// Requests and bytes issued, by direction.
    issued: [u64; 3],
    issued_bytes: [u64; 3],
    ios_limit: u64,
    /// Bytes asked for in the zone of a strided job.
    zone_bytes: u64,
    pub(super) pending: Option<Pending>,
    /// Open zones that are this job's.
    pub(super) held: u32,
}

impl Walker {
    /// An error says what fio refuses as well.
    pub fn new(job: &Job, plan: &WalkPlan, seed: u64) -> Result<Self, PlanError> {
        let seeds = Seeds::new(job, seed);
        let mut draws = Draws::new(job, &seeds);
        let rules = Rules::new(job, plan.zone_range);
        let mut file = |plan: &FilePlan| {
            let places = rules.places(plan, &seeds, &mut draws.other).ok_or_else(|| {
                let expected =
                    "expected another randseed, since this one is all ones in the bits of the register";
                error(job, format!("random_generator=lfsr: {expected}"))
            })?;
            Ok(WalkFile::new(*plan, places))
        };
        let files = plan.files.iter().map(&mut file).collect::<Result<_, PlanError>>()?;
        Ok(Self {
            seed,
            plan: plan.clone(),
            files,
            rules,
            draws,
            hints: Hints::new(job),
            round: Round { loops_left: job.loops, ..Round::default() },
            turn: Turn::default(),
            mix: Mix { direction: Direction::Read, until: 0 },
            issued: [0; 3],
            issued_bytes: [0; 3],
            ios_limit: job.number_ios.unwrap_or(0),
            zone_bytes: 0,
            pending: None,
            held: 0,
            job: job.clone(),
        })
    }

    /// Opens the zones that the device has open, as far as the limits allow; gives those to be reset instead,
    /// each as a namespace and a byte of it.
    pub fn adopt_open(&mut self, sets: &mut [ZoneSet]) -> Vec<(u32, u64)> {
        let mut resets = Vec::new();
        for file in &self.files {
            let Some(set) = file.plan.set.map(|set| &mut sets[set as usize]) else { continue };
            let last = set.index_of(file.plan.offset + file.plan.len);
            for zone in set.index_of(file.plan.offset)..last {
                let is_extra = set.reported_open.contains(&zone)
                    && !set.open(zone, &mut self.held, self.job.zoning.job_max_open);
                if is_extra && set.zone(zone).written() > 0 {
                    set.reset(zone);
                    resets.push((file.plan.namespace, file.plan.base + set.start_of(zone)));
                }
            }
        }
        resets
    }

    /// The direction of the next request, before zones have a say.
    pub fn direction(&mut self) -> Direction {
        let pattern = self.job.pattern;
        match (pattern.reads, pattern.writes) {
            (true, true) => {}
            (true, false) => return Direction::Read,
            (false, true) => return Direction::Write,
            (false, false) => return Direction::Trim,
        }
        let last = self.mix.direction;
        if self.issued[last as usize] >= self.mix.until {
            let is_read = self.draws.mix.percent() <= self.job.read_percent;
            let drawn = if is_read { Direction::Read } else { Direction::Write };
            if drawn != last {
                let reads = u64::from(self.job.read_percent);
                let other = if last == Direction::Read { 100 - reads } else { reads };
                self.mix.until = self.issued[last as usize] * other / 100;
            }
            self.mix.direction = drawn;
        }
        self.mix.direction
    }

    /// Whether the direction of the next request was drawn already.
    pub const fn has_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Goes on, with `inflight` requests of this job under way. A rate has chosen the direction in `wanted`.
    pub fn step(&mut self, mut wanted: Option<Direction>, inflight: u32, sets: &mut [ZoneSet]) -> Step {
        loop {
            if self.pending.is_some() {
                match self.adjust(inflight, sets) {
                    Adjusted::Accepted => {
                        if let Some(request) = self.accept(sets) {
                            return Step::Request(request);
                        }
                        self.leave_file(sets);
                    }
                    Adjusted::Reset { namespace, zone } => return Step::Reset { namespace, zone },
                    Adjusted::Wait => return Step::Wait,
                    Adjusted::Nowhere => self.leave_file(sets),
                }
            }
            if !self.round.is_running {
                if inflight > 0 {
                    return Step::Wait;
                }
                if !self.begin_round() {
                    return Step::End;
                }
            }
            if self.is_round_over() {
                self.round.is_running = false;
                continue;
            }
            let Some(file) = self.pick_file(sets) else {
                self.round.is_running = false;
                continue;
            };
            let direction = match wanted.take() {
                Some(direction) => {
                    self.mix.direction = direction;
                    direction
                }
                None => self.direction(),
            };
            match self.fill(file, direction, sets) {
                Some(pending) => self.pending = Some(pending),
                None => self.finish_file(file),
            }
        }
    }

    /// The file has no place for the pending request.
    fn leave_file(&mut self, sets: &mut [ZoneSet]) {
        let file = self.pending.as_ref().map(|pending| pending.file);
        self.abandon(sets);
        if let Some(file) = file {
            self.finish_file(file);
        }
    }

    /// Gives up the pending request, and lets others into its zone.
    pub fn abandon(&mut self, sets: &mut [ZoneSet]) {
        let Some(pending) = self.pending.take() else { return };
        if let (Some(zone), Some(set)) = (pending.zone, self.files[pending.file].plan.set) {
            sets[set as usize].release(zone);
        }
    }

    fn finish_file(&mut self, file: usize) {
        let file = &mut self.files[file];
        (file.is_open, file.is_done) = (false, true);
    }

    /// Whether there is another round, which then begins.
    fn begin_round(&mut self) -> bool {
        let is_later = std::mem::replace(&mut self.round.is_later, true);
        if !is_later {
            self.round.loops_left -= 1;
        } else if !self.round.has_requests || !self.goes_on() {
            return false;
        }
        if is_later {
            (self.zone_bytes, self.mix.until) = (0, 0);
            for file in &mut self.files {
                (file.is_open, file.is_done) = (false, false);
                // fio 3.33 goes back to before the first whole zone here, and ends at an assertion.
                file.offset = file.plan.offset;
            }
            if Seeds::repeats(&self.job) {
                self.draws = Draws::new(&self.job, &Seeds::new(&self.job, self.seed));
            }
        }
        if self.job.pattern.trim_then_write {
            self.ios_limit = self.ios_limit.saturating_mul(2);
        }
        (self.round.is_running, self.round.has_requests, self.round.bytes) = (true, false, 0);
        true
    }

    fn goes_on(&mut self) -> bool {
        if self.job.is_time_based {
            return true;
        }
        if self.round.loops_left > 0 {
            self.round.loops_left -= 1;
            return true;
        }
        if self.has_all_ios() {
            return false;
        }
        let limit = if self.plan.io_size > 0 { self.plan.io_size } else { self.plan.size };
        let done: u64 = self.issued_bytes.iter().sum();
        let largest = self.job.block_size.iter().map(|size| size.max).max().unwrap_or(0);
        let is_through = self.files.iter().all(|file| file.is_done) && self.plan.io_size == 0;
        done < limit && limit - done >= largest && !is_through
    }

    fn has_all_ios(&self) -> bool {
        let issued: u64 = self.issued.iter().sum();
        self.ios_limit > 0 && issued >= self.ios_limit.saturating_mul(self.job.loops)
    }

    fn is_round_over(&self) -> bool {
        if self.job.is_time_based {
            return false;
        }
        let pattern = self.job.pattern;
        let [reads, writes, trims] = self.issued_bytes;
        let bytes = match (pattern.reads, pattern.writes) {
            (true, true) => reads + writes,
            (false, true) => writes,
            (true, false) => reads,
            (false, false) => trims,
        };
        let limit = if self.plan.io_size > 0 { self.plan.io_size } else { self.plan.size };
        let limit = limit.saturating_mul(self.job.loops);
        bytes >= limit || self.has_all_ios() || self.round.bytes >= self.round_bytes()
    }

    fn round_bytes(&self) -> u64 {
        let pattern = self.job.pattern;
        let is_uniform = self.job.distribution.iter().all(|law| *law == Distribution::Uniform);
        let mut bytes = self.plan.size;
        if pattern.writes && pattern.is_random && (self.job.no_random_map || !is_uniform) {
            bytes = bytes.max(self.plan.io_size);
        }
        if pattern.trim_then_write {
            let all = if self.plan.io_size > 0 { self.plan.io_size } else { self.plan.size };
            bytes = bytes.saturating_add(all.saturating_mul(self.job.loops));
        }
        bytes
    }

    fn pick_file(&mut self, sets: &mut [ZoneSet]) -> Option<usize> {
        if self.files.iter().all(|file| file.is_done) {
            return None;
        }
        if let Some(current) = self.turn.current.filter(|file| self.files[*file].is_open) {
            if self.job.file_service == FileService::Sequential {
                return Some(current);
            }
            if self.turn.left > 0 {
                self.turn.left -= 1;
                return Some(current);
            }
        }
        let count = self.files.len();
        let file = loop {
            let file = if self.job.file_service == FileService::Random {
                (count as f64 * self.draws.files.share()) as usize
            } else {
                let file = self.turn.next;
                self.turn.next = (file + 1) % count;
                file
            };
            if !self.files[file].is_done {
                break file;
            }
        };
        if !std::mem::replace(&mut self.files[file].is_open, true) {
            self.open_file(file, sets);
        }
        self.turn.current = Some(file);
        self.turn.left = self.job.file_service_turn - 1;
        Some(file)
    }

    fn open_file(&mut self, file: usize, sets: &mut [ZoneSet]) {
        let file = &mut self.files[file];
        file.restart();
        let Some(set) = file.plan.set.map(|set| &mut sets[set as usize]) else { return };
        if self.job.pattern.writes {
            let (first, last) = file.zones(set);
            set.count_data(first, last);
            set.writes_left = self.job.zoning.writes_until_reset();
        }
    }

    /// A request, if the file has room for one.
    fn fill(&mut self, index: usize, wanted: Direction, sets: &[ZoneSet]) -> Option<Pending> {
        let mut direction = wanted;
        let pattern = self.job.pattern;
        let file = &self.files[index];
        let set = file.plan.set.map(|set| &sets[set as usize]);
        let is_mix = pattern.reads && pattern.writes;
        if let Some(set) = set
            && direction == Direction::Read
            && is_mix
            && set.data == 0
            && !self.job.zoning.reads_beyond
        {
            // Nothing is there to be read yet.
            direction = Direction::Write;
        }
        if pattern.trim_then_write {
            let [_, write, trim] = file.last_start;
            direction = if write == trim { Direction::Trim } else { Direction::Write };
        }
        match set {
            Some(set) => self.skip_zones(index, direction, set),
            None => self.stride(index, direction),
        }
        let file = &mut self.files[index];
        let place = self.rules.offset(file, direction, &mut self.draws)?;
        let len = self.rules.size(file, direction, place.offset, &mut self.draws)?;
        Some(Pending::new(index, direction, place, len))
    }

    /// The next zone of a strided job.
    fn stride(&mut self, index: usize, direction: Direction) {
        let d = direction as usize;
        let file = &mut self.files[index];
        if self.zone_bytes >= self.plan.zone_size {
            self.zone_bytes = 0;
            file.offset += self.plan.zone_range + self.plan.zone_skip;
            if file.offset >= file.plan.real_len {
                file.offset = file.plan.offset;
            }
            file.last_end[d] = file.offset;
        }
        if file.last_end[d] >= file.offset + self.plan.zone_range {
            file.last_end[d] = file.offset;
        }
        if self.zone_bytes.is_multiple_of(self.plan.zone_range) {
            file.restart();
        }
    }

    /// The next zone of a sequential job with `zoneskip`, and what lies between capacity and size of a zone.
    fn skip_zones(&mut self, index: usize, direction: Direction, set: &ZoneSet) {
        let d = direction as usize;
        let file = &mut self.files[index];
        let zone = set.index_of(file.last_end[d]);
        if self.job.pattern.is_random || zone == set.plan.count {
            return;
        }
        let (entry, end) = (set.zone(zone), set.start_of(zone + 1));
        let is_at_capacity = entry.capacity < set.plan.size && file.last_end[d] >= entry.end();
        if direction == Direction::Write && is_at_capacity {
            file.last_end[d] = end;
        }
        if self.plan.zone_skip == 0 {
            return;
        }
        let is_unwritten = direction == Direction::Read
            && !self.job.zoning.reads_beyond
            && file.last_end[d] >= entry.pointer;
        if self.zone_bytes >= self.plan.zone_size || file.last_end[d] >= end || is_unwritten {
            self.zone_bytes = 0;
            file.offset += self.plan.zone_size + self.plan.zone_skip;
            if file.offset >= file.plan.real_len {
                file.offset = file.plan.offset;
            }
            file.last_end[d] = file.offset;
        }
    }

    /// Takes the pending request, which is in place; `None` if it reaches beyond the file.
    fn accept(&mut self, sets: &mut [ZoneSet]) -> Option<Request> {
        let pending = *self.pending.as_ref()?;
        let Pending { file: index, direction, offset, mut len, .. } = pending;
        let d = direction as usize;
        let file = &mut self.files[index];
        if offset + len > file.plan.real_len {
            return None;
        }
        if pending.is_marked && self.job.pattern.is_random {
            len = file.mark(pending.first_offset, len, self.job.block_size[d].min);
        }
        assert!(len > 0, "a free block of the random map has room for a block");
        self.pending = None;
        file.last_start[d] = offset;
        file.last_end[d] = offset + len;
        self.zone_bytes += len;
        self.round.has_requests = true;
        if !self.job.is_synchronous && direction != Direction::Trim {
            self.round.bytes += len;
        }
        self.issued[d] += 1;
        self.issued_bytes[d] += len;
        let zone = file.plan.set.zip(pending.zone).map(|(number, zone)| {
            let set = &mut sets[number as usize];
            set.inflight += 1;
            let fills = direction == Direction::Write && offset + len >= set.zone(zone).end();
            match direction {
                Direction::Read => {}
                Direction::Write => set.wrote(zone, offset + len),
                Direction::Trim => set.reset(zone),
            }
            ZoneUse::new(number, zone, fills)
        });
        let hint = if direction == Direction::Write { self.hints.next(&mut self.draws.other) } else { 0 };
        let extent = Extent::new(file.plan.base + offset, len);
        Some(Request { namespace: file.plan.namespace, direction, extent, hint, zeroes: false, zone })
    }

    /// A request is done that kept others out of a zone.
    pub fn completed(&mut self, used: ZoneUse, sets: &mut [ZoneSet]) {
        let set = &mut sets[used.set()];
        if used.fills() {
            set.close(used.zone(), &mut self.held);
        }
        set.inflight -= 1;
        set.release(used.zone());
    }
}

impl WalkFile {
    /// The first zone of the region, and the one behind the last.
    pub(super) fn zones(&self, set: &ZoneSet) -> (u32, u32) {
        (set.index_of(self.plan.offset), set.index_of(self.plan.offset + self.plan.len))
    }
}
