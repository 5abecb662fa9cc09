//! The rules of `read-first` done naively: every decision looks at every operation, with no queues, counters
//! or events. Also gives when each operation held its die and its bus, so that the rules can be checked on
//! what happened.

use nandscape_core::Geometry;
use nandscape_media::{TimedOp, Timing};

/// What is submitted, and when.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The scheduler's clock at submission.
    pub submitted_ns: u64,
    /// The operation's own earliest time.
    pub at_ns: u64,
    /// Index of an earlier job to wait for.
    pub after: Option<usize>,
    pub op: TimedOp,
}

/// What happened to a job.
#[derive(Clone, Debug, Default)]
pub struct Course {
    pub ready_ns: Option<u64>,
    pub start_ns: Option<u64>,
    pub end_ns: Option<u64>,
    /// Stretches of bus use.
    pub bus: Vec<(u64, u64)>,
    /// When the array is done, once it has begun.
    array_end_ns: Option<u64>,
}

pub fn unit(geometry: &Geometry, op: TimedOp) -> u32 {
    geometry.unit_of(geometry.block_of(op.page())).0
}

pub const fn is_read(op: TimedOp) -> bool {
    matches!(op, TimedOp::Read { .. })
}

/// Whether the later of two operations must wait for the earlier to be done.
pub fn conflict(geometry: &Geometry, earlier: TimedOp, later: TimedOp) -> bool {
    geometry.block_of(earlier.page()) == geometry.block_of(later.page())
        && match (earlier, later) {
            (TimedOp::Read { .. }, TimedOp::Read { .. }) => false,
            (TimedOp::Read { page: a, .. }, TimedOp::Program { page: b, .. })
            | (TimedOp::Program { page: a, .. }, TimedOp::Read { page: b, .. }) => a == b,
            _ => true,
        }
}

pub struct Reference<'a> {
    geometry: &'a Geometry,
    timing: &'a Timing,
    jobs: &'a [Job],
    pub courses: Vec<Course>,
    now: u64,
}

impl<'a> Reference<'a> {
    /// Runs all jobs, given in submission order, to the end.
    pub fn run(geometry: &'a Geometry, timing: &'a Timing, jobs: &'a [Job]) -> Vec<Course> {
        let courses = vec![Course::default(); jobs.len()];
        let mut this = Self { geometry, timing, jobs, courses, now: 0 };
        loop {
            this.wave(false);
            this.wave(true);
            let Some(next) = this.next_instant() else { return this.courses };
            this.now = next;
        }
    }

    /// What starts at this instant: first without the jobs submitted at it, then with them.
    fn wave(&mut self, with_new: bool) {
        self.settle(with_new);
        for die in 0..self.geometry.units() {
            if let Some(job) = self.candidate(die)
                && self.timing.command_ns == 0
                && !matches!(self.jobs[job].op, TimedOp::Program { .. })
            {
                self.courses[job].start_ns = Some(self.now);
                self.begin_array(job, self.now);
            }
        }
        for channel in 0..self.geometry.channels {
            if !self.bus_busy(channel) {
                self.use_bus(channel);
            }
        }
    }

    /// Finds what became ready, in submission order so that chains inside a block settle in one pass.
    fn settle(&mut self, with_new: bool) {
        for index in 0..self.jobs.len() {
            let job = self.jobs[index];
            let visible = job.submitted_ns < self.now || with_new && job.submitted_ns == self.now;
            if !visible || self.courses[index].ready_ns.is_some() || job.at_ns > self.now {
                continue;
            }
            let done = |other: usize| self.courses[other].end_ns.is_some_and(|end| end <= self.now);
            let free = job.after.is_none_or(done)
                && (0..index).all(|other| {
                    let earlier = self.jobs[other].op;
                    if !conflict(self.geometry, earlier, job.op) {
                        true
                    } else if is_read(earlier) || is_read(job.op) {
                        done(other)
                    } else {
                        self.courses[other].ready_ns.is_some()
                    }
                });
            if free {
                self.courses[index].ready_ns = Some(self.now);
            }
        }
    }

    fn die_busy(&self, die: u32) -> bool {
        self.jobs.iter().zip(&self.courses).any(|(job, course)| {
            unit(self.geometry, job.op) == die
                && course.start_ns.is_some()
                && course.end_ns.is_none_or(|end| end > self.now)
        })
    }

    fn bus_busy(&self, channel: u32) -> bool {
        self.jobs.iter().zip(&self.courses).any(|(job, course)| {
            unit(self.geometry, job.op) % self.geometry.channels == channel
                && course.bus.iter().any(|&(start, end)| start <= self.now && self.now < end)
        })
    }

    fn candidate(&self, die: u32) -> Option<usize> {
        if self.die_busy(die) {
            return None;
        }
        (0..self.jobs.len())
            .filter(|&index| {
                let course = &self.courses[index];
                unit(self.geometry, self.jobs[index].op) == die
                    && course.ready_ns.is_some()
                    && course.start_ns.is_none()
            })
            .min_by_key(|&index| (!is_read(self.jobs[index].op), self.courses[index].ready_ns, index))
    }

    fn begin_array(&mut self, job: usize, at: u64) {
        let span = match self.jobs[job].op {
            TimedOp::Read { .. } => self.timing.read_ns,
            TimedOp::Program { .. } => self.timing.program_ns,
            TimedOp::Erase { .. } => self.timing.erase_ns,
        };
        self.courses[job].array_end_ns = Some(at + span);
        if !is_read(self.jobs[job].op) {
            self.courses[job].end_ns = Some(at + span);
        }
    }

    fn use_bus(&mut self, channel: u32) {
        let waiting = (0..self.jobs.len())
            .filter(|&index| {
                let course = &self.courses[index];
                unit(self.geometry, self.jobs[index].op) % self.geometry.channels == channel
                    && is_read(self.jobs[index].op)
                    && course.end_ns.is_none()
                    && course.array_end_ns.is_some_and(|end| end <= self.now)
            })
            .min_by_key(|&index| (self.courses[index].array_end_ns, index));
        if let Some(index) = waiting {
            let TimedOp::Read { transfer, .. } = self.jobs[index].op else { unreachable!() };
            let end = self.now + self.timing.transfer_ns(transfer);
            self.courses[index].bus.push((self.now, end));
            self.courses[index].end_ns = Some(end);
            return;
        }
        let next = (0..self.geometry.units())
            .filter(|die| die % self.geometry.channels == channel)
            .filter_map(|die| self.candidate(die))
            .min_by_key(|&index| (!is_read(self.jobs[index].op), index));
        if let Some(index) = next {
            let data_ns = match self.jobs[index].op {
                TimedOp::Program { transfer, .. } => self.timing.transfer_ns(transfer),
                _ => 0,
            };
            let end = self.now + self.timing.command_ns + data_ns;
            self.courses[index].start_ns = Some(self.now);
            self.courses[index].bus.push((self.now, end));
            self.begin_array(index, end);
        }
    }

    fn next_instant(&self) -> Option<u64> {
        let of_jobs = self.jobs.iter().flat_map(|job| [job.submitted_ns, job.at_ns]);
        let of_courses = self.courses.iter().flat_map(|course| {
            course
                .bus
                .iter()
                .map(|&(_, end)| end)
                .chain(course.array_end_ns)
                .chain(course.end_ns)
                .collect::<Vec<_>>()
        });
        of_jobs.chain(of_courses).filter(|&at| at > self.now).min()
    }
}
