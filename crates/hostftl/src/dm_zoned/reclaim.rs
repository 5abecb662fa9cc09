//! Reclaim: chunks leave conventional zones, so that these are free for writes.
//!
//! It runs between the requests of the host, a copy at a time, and no faster than its throttle allows. A
//! write that finds no free conventional zone waits for it: for all of a chunk.

use super::config::Config;
use super::format::NONE;
use super::zones::Use;
use super::{Chunk, DmZoned};
use nandscape_core::{Cause, Extent, Issue, NamespaceError, NamespaceResult, SimTime, Subsystem, Token};

/// What becomes of the zones of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A conventional data zone is copied to a sequential one.
    ToSequential,
    /// A buffer whose blocks are all behind the write pointer of the data zone is copied there.
    Append,
    /// The data zone is copied to its buffer, which takes its place.
    Merge,
}

/// A chunk that is being reclaimed.
#[derive(Clone, Copy, Debug)]
struct Job {
    chunk: u32,
    way: Way,
    from: u32,
    to: u32,
    /// Blocks before this one are copied.
    next: u32,
    /// Completes with the last copy.
    done: Token,
}

/// What reclaim is doing.
#[derive(Debug)]
pub(super) struct Reclaim {
    job: Option<Job>,
    /// Few conventional zones were free, and not yet enough are.
    is_short: bool,
    /// The next copy does not begin before this.
    pub next_at: SimTime,
    pub last_request: SimTime,
    /// Whether ends of commands are known at submission, once there was a copy: else one copy begins with
    /// each request.
    knows_ends: Option<bool>,
    idle_ns: u64,
    low: u32,
    high: u32,
    /// Blocks of a copy.
    copy: u32,
    /// Their data; empty where the device stores none.
    buffer: Vec<u8>,
}

impl Reclaim {
    pub fn new(config: &Config, block_bytes: u32) -> Self {
        Self {
            job: None,
            is_short: false,
            next_at: SimTime::ZERO,
            last_request: SimTime::ZERO,
            knows_ends: None,
            idle_ns: config.idle_ns,
            low: config.low,
            high: config.high,
            copy: config.copy,
            buffer: vec![0; config.copy as usize * block_bytes as usize],
        }
    }

    /// The zone that is copied to, or [`NONE`].
    pub fn target(&self) -> u32 {
        self.job.map_or(NONE, |job| job.to)
    }

    pub const fn bytes(&self) -> u64 {
        self.buffer.len() as u64
    }

    /// Nothing is queued from `at` on.
    pub fn reset_time(&mut self, at: SimTime) {
        (self.next_at, self.last_request) = (at, at);
        if let Some(job) = &mut self.job {
            job.done = Token::NONE;
        }
    }

    /// Percentage of the time that copies may take.
    fn throttle(&self, percent: u32, is_idle: bool) -> u64 {
        if is_idle || percent < self.low / 2 { 100 } else { (100 - percent / 2).min(75).into() }
    }
}

impl<S: Subsystem> DmZoned<S> {
    /// Percentage of the conventional zones that are free.
    fn free_percent(&self) -> u32 {
        self.zones.free_random.len() as u32 * 100 / self.zones.random
    }

    /// Whether a copy is to begin at a time.
    fn is_reclaim_due(&mut self, percent: u32, is_idle: bool) -> bool {
        let Reclaim { low, high, .. } = self.reclaim;
        let is_short = percent <= low || (self.reclaim.is_short && percent < high);
        self.reclaim.is_short = is_short;
        self.zones.used.len() > 0 && (is_idle || is_short)
    }

    /// Does what reclaim does up to a time, each copy when its time comes.
    #[inline]
    pub(super) fn reclaim_until(&mut self, until: SimTime) -> NamespaceResult<()> {
        if self.stopped.is_some() || self.zones.used.len() == 0 && self.reclaim.job.is_none() {
            return Ok(());
        }
        self.run_until(until)
    }

    fn run_until(&mut self, until: SimTime) -> NamespaceResult<()> {
        let idle_at = self.reclaim.last_request + self.reclaim.idle_ns;
        let mut at = self.reclaim.next_at.max(self.reclaim.last_request);
        while at <= until {
            let percent = self.free_percent();
            let is_idle = at >= idle_at;
            if !self.is_reclaim_due(percent, is_idle) {
                if is_idle || idle_at > until {
                    break;
                }
                at = at.max(idle_at);
                continue;
            }
            if self.reclaim.job.is_none() && !self.choose_chunk(at)? {
                break;
            }
            if self.reclaim.knows_ends != Some(true) {
                at = until;
            }
            let done = self.copy(at)?;
            let end = self.below.device.completion(done);
            self.reclaim.knows_ends.get_or_insert(end.is_some());
            let Some(end) = end else { break };
            let end = end.max(at);
            // Copies take the share of the time that the throttle allows them.
            let throttle = self.reclaim.throttle(percent, is_idle);
            let pause = (end.0 - at.0) * (100 - throttle) / throttle;
            at = end + pause.max(1);
            self.reclaim.next_at = at;
        }
        Ok(())
    }

    /// Reclaims one chunk at once, for a write that waits for a free conventional zone.
    pub(super) fn reclaim_now(&mut self, at: SimTime) -> NamespaceResult<()> {
        if self.reclaim.job.is_none() && !self.choose_chunk(at)? {
            return Err(self.full("no conventional zone can be reclaimed"));
        }
        while self.reclaim.job.is_some() {
            self.copy(at)?;
        }
        Ok(())
    }

    /// Chooses the chunk whose conventional zone was used longest ago.
    fn choose_chunk(&mut self, at: SimTime) -> NamespaceResult<bool> {
        // Choosing may commit, which changes no list of used zones.
        let used: Vec<u32> = self.zones.used.iter().collect();
        for zone in used {
            let entry = *self.zones.of(zone);
            if entry.is_stuck {
                continue;
            }
            let Chunk { data, buffer } = self.chunks[entry.chunk as usize];
            let job = |way, from, to| Job { chunk: entry.chunk, way, from, to, next: 0, done: Token::NONE };
            let end = self.zones.valid_end(zone);
            let job = if entry.purpose == Use::Data {
                let Some(target) = self.take_sequential(end, at)? else { continue };
                job(Way::ToSequential, zone, target)
            } else {
                let first = self.zones.next_run(buffer, 0, 1).map_or(0, |(first, _)| first);
                let of_data = self.zones.of(data);
                if first >= of_data.next && end <= of_data.end {
                    job(Way::Append, buffer, data)
                } else if self.zones.of(data).is_stuck {
                    continue;
                } else {
                    job(Way::Merge, data, buffer)
                }
            };
            self.reclaim.job = Some(job);
            return Ok(true);
        }
        Ok(false)
    }

    /// The host changes a chunk: reclaim of it ends without a result.
    #[inline]
    pub(super) fn leave_chunk(&mut self, chunk: u32) {
        if self.reclaim.job.is_some_and(|job| job.chunk == chunk) {
            self.give_up();
        }
    }

    /// Ends reclaim of a chunk without a result. What was copied counts for nothing.
    #[cold]
    pub(super) fn give_up(&mut self) {
        if let Some(job) = self.reclaim.job.take()
            && job.way == Way::ToSequential
        {
            self.release(job.to);
        }
    }

    /// Copies the next blocks of the job, or ends it when there are none.
    fn copy(&mut self, at: SimTime) -> NamespaceResult<Token> {
        let job = self.reclaim.job.expect("a chunk was chosen");
        let Some((first, count)) = self.zones.next_run(job.from, job.next, self.reclaim.copy) else {
            return self.end(job, at);
        };
        let mut buffer = std::mem::take(&mut self.reclaim.buffer);
        let result = self.copy_run(job, (first, count), &mut buffer, at);
        self.reclaim.buffer = buffer;
        match result {
            Ok(Some(job)) => {
                self.reclaim.job = Some(job);
                Ok(job.done)
            }
            Ok(None) => {
                self.give_up();
                Ok(job.done)
            }
            Err(error) => {
                self.give_up();
                Err(error)
            }
        }
    }

    /// Copies a run of blocks, or writes zeroes up to it; the job as it goes on, or nothing where it does
    /// not.
    fn copy_run(
        &mut self,
        job: Job,
        (first, count): (u32, u32),
        buffer: &mut [u8],
        at: SimTime,
    ) -> NamespaceResult<Option<Job>> {
        let is_sequential = job.way != Way::Merge;
        let entry = *self.zones.of(job.to);
        let ready = self.below.device.join(entry.ready, job.done);
        let issue = Issue::new(at, Cause::Gc).after(ready);
        if is_sequential {
            self.activate(job.to, at)?;
        }
        let bytes = |count: u32| count as usize * (self.shape.block_bytes as usize);
        if is_sequential && entry.next < first {
            let gap = (first - entry.next).min(self.reclaim.copy);
            let zeroes = if buffer.is_empty() { None } else { Some(&mut buffer[..bytes(gap)]) };
            let zeroes = zeroes.map(|zeroes| {
                zeroes.fill(0);
                &*zeroes
            });
            return self.put_copy(job, (entry.next, gap), zeroes, issue, at);
        }
        let source = Extent::new(self.shape.offset(job.from, first), bytes(count) as u64);
        let data = if buffer.is_empty() { None } else { Some(&mut buffer[..bytes(count)]) };
        let Ok(read) = self.below.read(source, data, issue) else {
            // Its other blocks stay where they are, too.
            self.zones.all[job.from as usize].is_stuck = true;
            return Ok(None);
        };
        let data = if buffer.is_empty() { None } else { Some(&buffer[..bytes(count)]) };
        let after = self.below.device.join(ready, read);
        let job = Job { next: first + count, ..job };
        let put = self.put_copy(job, (first, count), data, issue.after(after), at)?;
        self.stats.gc_moved_pages += u64::from(count);
        Ok(put)
    }

    fn put_copy(
        &mut self,
        job: Job,
        blocks: (u32, u32),
        data: Option<&[u8]>,
        issue: Issue,
        at: SimTime,
    ) -> NamespaceResult<Option<Job>> {
        match self.write_zone(job.to, blocks, data, issue) {
            Ok(done) => {
                if job.way != Way::Merge {
                    self.advance(job.to, blocks.1);
                }
                Ok(Some(Job { done, ..job }))
            }
            Err(error @ NamespaceError::Zone(_)) => {
                self.zone_failed(job.to, error, at)?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// All blocks are copied: they count where they are now, and the zone that they left is released.
    fn end(&mut self, job: Job, at: SimTime) -> NamespaceResult<Token> {
        self.reclaim.job = None;
        self.stats.gc_runs += 1;
        self.stats.merges_full += u64::from(job.way == Way::Merge);
        let mut next = 0;
        while let Some((first, count)) = self.zones.next_run(job.from, next, u32::MAX) {
            self.mark(job.to, (first, count), true);
            next = first + count;
        }
        self.map(job.chunk, Chunk { data: job.to, buffer: NONE });
        self.release(job.from);
        self.tidy(job.chunk);
        self.commit(at)
    }
}
