//! Jobs side by side in virtual time.

use super::Workload;
use super::job::{Job, Page};
use super::log::{IoKind, Log, PageIo};
use crate::turns::Turns;
use crate::{Host, HostError, HostResult};
use nandscape_core::command::Payload;
use nandscape_core::vector::{ChunkState, SectorAddress, VectorCommand, VectorGeometry};
use nandscape_core::{NamespaceError, Reply, SimTime};

/// Runs a workload that was checked on a device from a time on. The chunks that are used must be free, and
/// are free afterwards.
///
/// A page that the device cannot read or write is marked in the log, and the run goes on; a command that is
/// refused ends it.
pub fn run(host: &mut Host<'_>, workload: &Workload, at: SimTime) -> HostResult<Log> {
    let geometry = *host.geometry();
    let mut jobs: Vec<Job> = (0..workload.jobs).map(|index| Job::new(workload, &geometry, index)).collect();
    let start = prepare(host, workload, &jobs, at)?;
    let mut runner = Runner {
        host,
        geometry,
        compares: workload.compares,
        log: Log::default(),
        turns: Turns::default(),
        last: vec![None; workload.jobs as usize],
        data: vec![0; geometry.write_min as usize * geometry.sector_bytes as usize],
    };
    (0..workload.jobs).for_each(|job| runner.turns.ready(start, job));
    runner.pages(&mut jobs)?;
    let end = runner.log.ios.iter().map(|io| io.end).max().unwrap_or(start);
    runner.erase(workload, &mut jobs, end)?;
    Ok(runner.log)
}

/// Checks that all chunks are free, and writes those that are only read.
fn prepare(host: &mut Host<'_>, workload: &Workload, jobs: &[Job], at: SimTime) -> HostResult<SimTime> {
    let unit = host.geometry().write_min;
    let mut done = at;
    for job in jobs {
        for chunk in job.chunks() {
            let state = host.chunk(chunk, at)?.state;
            if state != ChunkState::Free {
                return Err(HostError::Chunk { chunk, state, expected: "a free one" });
            }
        }
    }
    for job in jobs.iter().filter(|job| job.is_reader()) {
        for chunk in job.chunks() {
            // With the pages that cannot be read until they are further below the write pointer.
            let rows = host.geometry().sectors / unit;
            let cached = host.geometry().cached / unit;
            for page in 0..(workload.pages + cached).min(rows) {
                let bytes = (unit * host.geometry().sector_bytes) as usize;
                let data = workload.compares.then(|| vec![pattern(chunk, page); bytes]);
                let end = host.write(&sectors(chunk, page, unit), data.as_deref(), done)?;
                done = done.max(end);
            }
        }
    }
    Ok(done)
}

fn sectors(chunk: SectorAddress, page: u32, unit: u32) -> Box<[SectorAddress]> {
    (page * unit..(page + 1) * unit).map(|sector| chunk.at(sector)).collect()
}

/// The byte that a page is filled with.
const fn pattern(chunk: SectorAddress, page: u32) -> u8 {
    let number = chunk.group as u32 * 31 + chunk.unit as u32 * 17 + chunk.chunk * 7 + page;
    (number % 251) as u8 + 1
}

struct Runner<'a, 'h> {
    host: &'a mut Host<'h>,
    geometry: VectorGeometry,
    compares: bool,
    log: Log,
    turns: Turns,
    /// Place in the log of each job's operation.
    last: Vec<Option<usize>>,
    data: Vec<u8>,
}

impl Runner<'_, '_> {
    /// Every job does its pages.
    fn pages(&mut self, jobs: &mut [Job]) -> HostResult<()> {
        while let Some((now, index)) = self.next_ready() {
            let job = &mut jobs[index as usize];
            if let Some((kind, page)) = job.next() {
                let chunk = job.address(page);
                let number = job.number;
                job.number += 1;
                self.page(index, number, kind, chunk, page, now)?;
            }
        }
        Ok(())
    }

    /// The next job whose turn it is, and when; its operation before ends then.
    fn next_ready(&mut self) -> Option<(SimTime, u32)> {
        let (now, job) = self.turns.next(self.host)?;
        if let Some(last) = self.last[job as usize].take() {
            self.log.ios[last].end = now;
        }
        Some((now, job))
    }

    fn page(
        &mut self,
        job: u32,
        number: u64,
        kind: IoKind,
        chunk: SectorAddress,
        page: Page,
        now: SimTime,
    ) -> HostResult<()> {
        let addresses = sectors(chunk, page.page, self.geometry.write_min);
        let byte = pattern(chunk, page.page);
        let bytes = self.data.len() as u32;
        let mut data = std::mem::take(&mut self.data);
        data.fill(if kind == IoKind::Write { byte } else { 0 });
        let (command, payload) = match kind {
            IoKind::Read if self.compares => (VectorCommand::Read(addresses), Payload::Read(&mut data)),
            IoKind::Read => (VectorCommand::Read(addresses), Payload::None),
            _ if self.compares => (VectorCommand::Write(addresses), Payload::Write(&data)),
            _ => (VectorCommand::Write(addresses), Payload::None),
        };
        let answer = self.host.submit(command, payload, now)?;
        let is_failed = matches!(answer.reply, Reply::Failed(_));
        let differs =
            kind == IoKind::Read && self.compares && !is_failed && data.iter().any(|found| *found != byte);
        self.data = data;
        let io = PageIo {
            job,
            number,
            kind,
            chunk,
            page: page.page,
            start: now,
            end: now,
            bytes,
            is_failed,
            differs,
        };
        self.issued(io, answer.done);
        Ok(())
    }

    /// Notes an operation; its job is ready again when its token completes.
    fn issued(&mut self, io: PageIo, token: nandscape_core::Token) {
        self.turns.after(self.host, token, io.job, io.start);
        self.last[io.job as usize] = Some(self.log.ios.len());
        self.log.ios.push(io);
    }

    /// Every job erases its chunks, one after the other. Those that are not full are filled before.
    fn erase(&mut self, workload: &Workload, jobs: &mut [Job], at: SimTime) -> HostResult<()> {
        let mut at = at;
        let mut chunks: Vec<_> =
            jobs.iter().map(|job| job.chunks().collect::<Vec<_>>().into_iter()).collect();
        for chunk in jobs.iter().flat_map(Job::chunks) {
            at = self.fill(chunk, at)?;
        }
        (0..workload.jobs).for_each(|job| self.turns.ready(at, job));
        while let Some((now, index)) = self.next_ready() {
            let Some(chunk) = chunks[index as usize].next() else { continue };
            let job = &mut jobs[index as usize];
            let answer = self.host.submit(VectorCommand::Reset([chunk].into()), Payload::None, now)?;
            let io = PageIo {
                job: index,
                number: job.number,
                kind: IoKind::Erase,
                chunk,
                page: 0,
                start: now,
                end: now,
                bytes: 0,
                is_failed: matches!(answer.reply, Reply::Failed(_)),
                differs: false,
            };
            job.number += 1;
            self.issued(io, answer.done);
        }
        Ok(())
    }

    /// Writes the rest of a chunk that is open, so that it can be reset; gives when that is over.
    fn fill(&mut self, chunk: SectorAddress, at: SimTime) -> HostResult<SimTime> {
        let found = self.host.chunk(chunk, at)?;
        if found.state != ChunkState::Open {
            return Ok(at);
        }
        let rest: Vec<_> = (found.write_pointer..found.sectors).map(|sector| chunk.at(sector)).collect();
        let zeroes = self.compares.then(|| vec![0; rest.len() * self.geometry.sector_bytes as usize]);
        match self.host.write(&rest, zeroes.as_deref(), at) {
            Ok(done) => Ok(done),
            // It is closed now, which is what matters.
            Err(HostError::Failed { .. }) => Ok(at),
            Err(HostError::Refused(NamespaceError::Vector(error))) if error.is_of_medium() => Ok(at),
            Err(error) => Err(error),
        }
    }
}
