//! A job: which page comes next, and whether it is read or written.

use super::log::IoKind;
use super::{Engine, Workload};
use nandscape_core::vector::{SectorAddress, VectorGeometry};

/// A page of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// The chunk's number among those of the job.
    pub chunk: usize,
    pub page: u32,
}

/// One job of a run.
#[derive(Clone, Debug)]
pub(super) struct Job {
    engine: Engine,
    /// Its parallel units, without chunk.
    units: Vec<SectorAddress>,
    blocks: u32,
    pages: u32,
    read_percent: u32,
    /// Pages of a chunk that cannot be read below its write pointer, and pages of a full chunk.
    cached: u32,
    full: u32,
    /// Pages done so far: `writes` from the first page on, `reads` over what can be read, again and again.
    reads: u64,
    writes: u64,
    /// Place in the order of the page that is read next.
    cursor: u64,
    /// Operations so far.
    pub number: u64,
}

impl Job {
    pub fn new(workload: &Workload, geometry: &VectorGeometry, index: u32) -> Self {
        let units = u32::from(workload.channels) * u32::from(workload.luns);
        let unit = |number: u32| SectorAddress {
            group: (number % u32::from(workload.channels)) as u16,
            unit: (number / u32::from(workload.channels)) as u16,
            chunk: 0,
            sector: 0,
        };
        let read_percent = match workload.engine {
            Engine::Isolated => 100 * u32::from(index < workload.readers()),
            Engine::Sequential | Engine::RoundRobin => workload.read_percent,
        };
        Self {
            engine: workload.engine,
            units: (index..units).step_by(workload.jobs as usize).map(unit).collect(),
            blocks: workload.blocks,
            pages: workload.pages,
            read_percent,
            cached: geometry.cached / geometry.write_min,
            full: geometry.sectors / geometry.write_min,
            reads: 0,
            writes: 0,
            cursor: 0,
            number: 0,
        }
    }

    /// Whether its chunks are written before the run.
    pub const fn is_reader(&self) -> bool {
        self.read_percent == 100
    }

    /// Its chunks, in the order of [`Page::chunk`].
    pub fn chunks(&self) -> impl Iterator<Item = SectorAddress> {
        let blocks = self.blocks;
        self.units.iter().flat_map(move |unit| (0..blocks).map(move |chunk| SectorAddress { chunk, ..*unit }))
    }

    /// The chunk of a page.
    pub fn address(&self, page: Page) -> SectorAddress {
        let unit = self.units[page.chunk / self.blocks as usize];
        SectorAddress { chunk: (page.chunk % self.blocks as usize) as u32, ..unit }
    }

    fn total(&self) -> u64 {
        self.units.len() as u64 * u64::from(self.blocks) * u64::from(self.pages)
    }

    /// The page at a place of the job's order.
    fn page(&self, at: u64) -> Page {
        let (units, blocks, pages) = (self.units.len() as u64, u64::from(self.blocks), u64::from(self.pages));
        let (unit, block, page) = match self.engine {
            Engine::Sequential => (at / (pages * blocks), at / pages % blocks, at % pages),
            Engine::RoundRobin | Engine::Isolated => (at % units, at / units % blocks, at / (units * blocks)),
        };
        Page { chunk: (unit * blocks + block) as usize, page: page as u32 }
    }

    /// Pages of a chunk that are written, when so many of the job are.
    fn written_of(&self, chunk: usize, writes: u64) -> u32 {
        let (units, blocks, pages) = (self.units.len() as u64, u64::from(self.blocks), u64::from(self.pages));
        let chunk = chunk as u64;
        let written = match self.engine {
            Engine::Sequential => writes.saturating_sub(chunk * pages).min(pages),
            Engine::RoundRobin | Engine::Isolated => {
                let column = chunk % blocks * units + chunk / blocks;
                (writes + units * blocks - 1 - column) / (units * blocks)
            }
        };
        written as u32
    }

    /// Whether a page can be read: it is far enough below the write pointer, or its chunk is full.
    fn is_readable(&self, page: Page) -> bool {
        let written = self.written_of(page.chunk, self.writes);
        written == self.full || page.page + self.cached < written
    }

    /// The next operation; `None` when the iteration is over. A read that is due while no page can be read
    /// lets a write go first; reads begin anew with the first page where the next one cannot be read.
    pub fn next(&mut self) -> Option<(IoKind, Page)> {
        let total = self.total();
        if self.is_reader() {
            if self.reads == total {
                return None;
            }
            self.reads += 1;
            return Some((IoKind::Read, self.page(self.reads - 1)));
        }
        if self.writes == total {
            return None;
        }
        let done = self.reads + self.writes;
        let is_read_due = (done + 1) * u64::from(self.read_percent) / 100 > self.reads;
        if is_read_due {
            if !self.is_readable(self.page(self.cursor)) {
                self.cursor = 0;
            }
            let page = self.page(self.cursor);
            if self.is_readable(page) {
                self.reads += 1;
                self.cursor = (self.cursor + 1) % total;
                return Some((IoKind::Read, page));
            }
        }
        self.writes += 1;
        Some((IoKind::Write, self.page(self.writes - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_core::vector::{MediaTimes, PageShape};

    const GEOMETRY: VectorGeometry = VectorGeometry {
        groups: 2,
        units: 2,
        chunks: 2,
        sectors: 12,
        sector_bytes: 4096,
        write_min: 4,
        write_best: 4,
        cached: 4,
        resets_free: false,
        resets_open: false,
        keeps_host_oob: false,
        times: MediaTimes { read_ns: 0, write_ns: 0, reset_ns: 0 },
        pages: PageShape { sectors: 4, planes: 1, blocks: 2, spans_planes: false },
    };

    fn workload(engine: Engine, jobs: u32, read_percent: u32) -> Workload {
        Workload { engine, jobs, channels: 2, luns: 2, blocks: 2, pages: 3, read_percent, compares: false }
    }

    /// Channel, LUN, block and page of each operation.
    fn order(workload: &Workload) -> Vec<(IoKind, (u16, u16, u32, u32))> {
        let mut job = Job::new(workload, &GEOMETRY, 0);
        std::iter::from_fn(move || {
            let (kind, page) = job.next()?;
            let address = job.address(page);
            Some((kind, (address.group, address.unit, address.chunk, page.page)))
        })
        .collect()
    }

    #[test]
    fn the_orders_are_those_that_fox_documents() {
        // From its README: 2 channels, 2 LUNs, 2 blocks, 3 pages.
        let sequential: Vec<_> =
            order(&workload(Engine::Sequential, 1, 0)).into_iter().map(|(_, place)| place).collect();
        assert_eq!(sequential[..4], [(0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 0, 2), (0, 0, 1, 0)]);
        assert_eq!(
            (sequential[6], sequential[12], sequential[18]),
            ((1, 0, 0, 0), (0, 1, 0, 0), (1, 1, 0, 0))
        );
        let robin: Vec<_> =
            order(&workload(Engine::RoundRobin, 1, 0)).into_iter().map(|(_, place)| place).collect();
        assert_eq!(robin[..5], [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0), (1, 1, 0, 0), (0, 0, 1, 0)]);
        assert_eq!((robin[8], robin[12], robin[16]), ((0, 0, 0, 1), (0, 0, 1, 1), (0, 0, 0, 2)));
        for mut places in [sequential, robin] {
            assert_eq!(places.len(), 24);
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), 24);
        }
    }

    #[test]
    fn a_mixed_job_reads_its_share_and_only_what_can_be_read() {
        for engine in [Engine::Sequential, Engine::RoundRobin] {
            for percent in [0, 30, 50, 75] {
                let ios = order(&workload(engine, 1, percent));
                let reads = ios.iter().filter(|(kind, _)| *kind == IoKind::Read).count();
                let writes = ios.len() - reads;
                assert_eq!(writes, 24);
                let share = reads * 100 / ios.len();
                assert!(share <= percent as usize && share + 30 >= percent as usize, "{share} of {percent}");
                let mut pages = [[[0; 2]; 2]; 2];
                for (kind, (channel, lun, block, page)) in ios {
                    let written = &mut pages[channel as usize][lun as usize][block as usize];
                    match kind {
                        IoKind::Write => {
                            assert_eq!(page, *written);
                            *written += 1;
                        }
                        _ => assert!(*written == 3 || page + 1 < *written, "page {page} of {written}"),
                    }
                }
            }
        }
    }

    #[test]
    fn isolated_jobs_do_one_thing_and_share_no_unit() {
        let workload = workload(Engine::Isolated, 4, 50);
        assert_eq!(workload.readers(), 2);
        let mut seen = Vec::new();
        for index in 0..4 {
            let mut job = Job::new(&workload, &GEOMETRY, index);
            assert_eq!(job.is_reader(), index < 2);
            seen.extend(job.chunks());
            let kind = if index < 2 { IoKind::Read } else { IoKind::Write };
            let ios: Vec<_> = std::iter::from_fn(|| job.next()).collect();
            assert_eq!(ios.len(), 6);
            assert!(ios.iter().all(|(done, _)| *done == kind));
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 8);
    }
}
