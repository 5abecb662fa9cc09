//! Any translation layer against a plain array of bytes: random reads, writes, trims, write-zeroes and
//! flushes, aligned and not, on small devices that store data, under any scheduler.
//!
//! Checked all along: every byte read, the layer's own invariants, that the counts by cause sum to the
//! medium's own, that mapped pages are programmed and as many as the layer says, that every request
//! completes. A full device must be an error with its numbers, after which old data is readable and the layer
//! goes on.

use crate::commands::{byte, compare};
use crate::crash::load::{Act, Step, pick};
use crate::shrink::{Outcome, run_or_shrink};
use nandscape_core::rng::{below, seeded};
use nandscape_core::{
    BlockId, Capabilities, Cause, Completion, Extent, Ftl, FtlError, Geometry, Hint, Lpn, SimTime, Token,
};
use nandscape_media::{BadBlocks, Nand, NandOptions, Scheduler, Timed, Timing};

/// The device under the layers: state in memory with bytes, any scheduler.
pub type Device<S> = Timed<Nand, S>;

/// A layer, or why it cannot be built over this device.
pub type Built = Outcome<Box<dyn Ftl + Send>>;

/// A device shape with its bad blocks.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Name for messages.
    pub name: &'static str,
    /// Shape.
    pub geometry: Geometry,
    /// Factory bad blocks.
    pub bad: Vec<BlockId>,
    /// Pages that lie in one flash page.
    pub units: u32,
}

/// What a run saw, so that a test can tell that it tested something.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Requests done.
    pub requests: u64,
    /// Requests refused for a full device.
    pub full: u64,
    /// Erases of the medium.
    pub erases: u64,
    /// Pages moved for other causes than the host's.
    pub moved: u64,
}

impl Seen {
    /// Adds another run.
    pub fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.full += other.full;
        self.erases += other.erases;
        self.moved += other.moved;
    }
}

/// The shapes every layer is tried on.
pub fn shapes() -> Vec<Shape> {
    let shape =
        |name, (channels, dies, planes, blocks, pages), page_bytes, sector_bytes, bad: &[u32]| Shape {
            name,
            geometry: Geometry {
                channels,
                dies_per_channel: dies,
                planes_per_die: planes,
                blocks_per_plane: blocks,
                pages_per_block: pages,
                page_bytes,
                sector_bytes,
                oob_bytes: 16,
            }
            .checked()
            .expect("a possible shape"),
            bad: bad.iter().map(|block| BlockId(*block)).collect(),
            units: 1,
        };
    let units = |units, shape| Shape { units, ..shape };
    vec![
        shape("one unit", (1, 1, 1, 24, 4), 512, 512, &[]),
        shape("two channels, two LUNs", (2, 2, 1, 8, 8), 1024, 512, &[]),
        shape("two planes, three channels", (3, 1, 2, 8, 4), 2048, 512, &[]),
        shape("long blocks", (2, 1, 1, 16, 32), 512, 512, &[]),
        shape("one page a block", (4, 1, 1, 16, 1), 512, 512, &[]),
        shape("bad blocks", (2, 2, 1, 12, 4), 1024, 1024, &[0, 5, 12, 13, 40]),
        shape("a bad unit", (2, 1, 1, 10, 4), 512, 512, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        units(4, shape("four units a page", (2, 2, 1, 8, 8), 512, 512, &[3])),
        units(3, shape("three units of two sectors a page", (2, 1, 1, 12, 12), 1024, 512, &[])),
    ]
}

const TIMING: Timing = Timing {
    read_ns: 60_000,
    program_ns: 700_000,
    erase_ns: 3_000_000,
    channel_bytes_per_s: 800_000_000,
    command_ns: 0,
};

/// A wholly erased device that stores data.
pub fn device<S: Scheduler>(shape: &Shape, out_of_order_program: bool) -> Device<S> {
    let capabilities = Capabilities { out_of_order_program, stores_data: true, ..Capabilities::default() };
    let bad_blocks = BadBlocks::List(shape.bad.clone());
    let nand = Nand::new(shape.geometry, &NandOptions { bad_blocks, capabilities, ..NandOptions::default() });
    let nand = nand.expect("bad blocks inside the device");
    if shape.units == 1 || out_of_order_program {
        return Timed::new(nand, S::new(&shape.geometry, &TIMING));
    }
    let Geometry { pages_per_block, page_bytes, .. } = shape.geometry;
    let flash = Geometry {
        pages_per_block: pages_per_block / shape.units,
        page_bytes: page_bytes * shape.units,
        ..shape.geometry
    };
    Timed::new(nand, S::new(&flash, &TIMING)).with_units(shape.units)
}

/// Random steps. The habits (alignment, request size, share of overwrites) change from seed to seed.
pub fn steps(seed: u64, count: usize, page_bytes: u32) -> Vec<Step> {
    let mut rng = seeded(seed);
    let page = u64::from(page_bytes);
    let align = [1, 1, 512, page, page][below(&mut rng, 5) as usize];
    let biggest = page * [1, 3, 12, 40][below(&mut rng, 4) as usize];
    let is_hot = below(&mut rng, 2) == 0;
    let weights: [u64; 6] =
        [[4, 10, 0, 0, 1, 1], [4, 8, 2, 2, 1, 1], [2, 9, 5, 1, 1, 0]][below(&mut rng, 3) as usize];
    let mut cursor = 0u32;
    (0..count)
        .map(|number| {
            let write = Act::Write { is_fua: false };
            let acts = [Act::Read, write, Act::Trim, Act::WriteZeroes, Act::Flush, Act::Idle];
            let act = pick(&mut rng, acts.into_iter().zip(weights));
            cursor = cursor.wrapping_add(1 << 26);
            let anywhere = below(&mut rng, 1 << 32) as u32;
            let place = match below(&mut rng, 3) {
                0 => cursor,
                1 if is_hot => anywhere / 16,
                _ => anywhere,
            };
            let longest = below(&mut rng, biggest) + 1;
            let len = below(&mut rng, longest);
            let overlaps = below(&mut rng, 3) == 0;
            Step { act, place, len, align, salt: number as u32, hint: 0, overlaps, waits: false }
        })
        .collect()
}

/// Runs a layer through `steps`. The failure of a shortened list of steps is what comes back.
pub fn run<S: Scheduler>(shape: &Shape, steps: &[Step], build: &dyn Fn(Device<S>) -> Built) -> Outcome<Seen> {
    run_or_shrink(steps, 400, |steps| Run::new(shape, build)?.all(steps))
        .map_err(|error| format!("on {}: {error}", shape.name))
}

struct Run {
    ftl: Box<dyn Ftl + Send>,
    page_bytes: u32,
    /// What every logical byte must be.
    model: Vec<u8>,
    now: SimTime,
    tag: u64,
    seen: Seen,
}

impl Run {
    fn new<S: Scheduler>(shape: &Shape, build: &dyn Fn(Device<S>) -> Built) -> Outcome<Self> {
        // A layer that can keep to the page order of blocks is held to it.
        let ftl = build(device(shape, false)).or_else(|_| build(device(shape, true)))?;
        let page_bytes = shape.geometry.page_bytes;
        let model = vec![0; (ftl.logical_pages() * u64::from(page_bytes)) as usize];
        Ok(Self { ftl, page_bytes, model, now: SimTime::ZERO, tag: 0, seen: Seen::default() })
    }

    fn all(mut self, steps: &[Step]) -> Outcome<Seen> {
        for (number, step) in steps.iter().enumerate() {
            self.step(*step).map_err(|error| format!("step {number} ({step:?}): {error}"))?;
            if number % 64 == 63 {
                self.check()?;
            }
        }
        self.check()?;
        self.check_out_of_range()?;
        let causes = *self.ftl.device().counters();
        self.seen.erases = causes.total().erases;
        self.seen.moved = causes.total().programs - causes.get(Cause::Host).programs;
        Ok(self.seen)
    }

    fn step(&mut self, step: Step) -> Outcome {
        let extent = step.extent(self.model.len() as u64);
        let range = extent.offset as usize..extent.end() as usize;
        let at = self.now;
        self.seen.requests += 1;
        let result = match step.act {
            Act::Read => return self.read(extent, step.overlaps),
            Act::Write { .. } => {
                let data: Vec<u8> =
                    (extent.offset..extent.end()).map(|offset| byte(step.salt, offset)).collect();
                let result = self.ftl.write(extent, Some(&data), Hint::default(), at);
                if result.is_ok() {
                    self.model[range].copy_from_slice(&data);
                } else {
                    self.settle(extent, &data)?;
                }
                result
            }
            Act::Trim => {
                let result = self.ftl.trim(extent, at);
                if result.is_ok() {
                    let (first, count) = extent.whole_pages(self.page_bytes);
                    let page = u64::from(self.page_bytes);
                    self.model[(first * page) as usize..((first + count) * page) as usize].fill(0);
                }
                result
            }
            Act::WriteZeroes => {
                let result = self.ftl.write_zeroes(extent, at);
                if result.is_ok() {
                    self.model[range].fill(0);
                } else {
                    self.settle(extent, &vec![0; extent.len as usize])?;
                }
                result
            }
            Act::Flush => self.ftl.flush(at),
            Act::Idle => {
                let until = at + 5_000_000;
                self.ftl.idle(at, until).map_err(|error| format!("idle: {error}"))?;
                self.advance(until);
                Ok(Token::NONE)
            }
        };
        match result {
            Ok(token) => self.complete(token, step.overlaps),
            Err(error) => self.refused(&error),
        }
    }

    fn read(&mut self, extent: Extent, overlaps: bool) -> Outcome {
        let mut data = vec![0xA5; extent.len as usize];
        let token =
            self.ftl.read(extent, Some(&mut data), self.now).map_err(|error| format!("read: {error}"))?;
        compare(extent.offset, &data, &self.model)?;
        self.complete(token, overlaps)
    }

    /// After a refused write: each page of it holds either the old or the new bytes; the model takes over
    /// which.
    fn settle(&mut self, extent: Extent, new: &[u8]) -> Outcome {
        for span in extent.pages(self.page_bytes) {
            let part = Extent::new(extent.offset + span.at, u64::from(span.len));
            let mut data = vec![0; part.len as usize];
            self.ftl
                .read(part, Some(&mut data), self.now)
                .map_err(|error| format!("read after refusal: {error}"))?;
            let new = &new[span.at as usize..][..span.len as usize];
            let old = &mut self.model[part.offset as usize..part.end() as usize];
            if data == new {
                old.copy_from_slice(new);
            } else if data != old {
                return Err(format!(
                    "page {:?} holds neither old nor new bytes after a refused write",
                    span.lpn
                ));
            }
        }
        Ok(())
    }

    fn refused(&mut self, error: &FtlError) -> Outcome {
        let FtlError::DeviceFull { needed_pages, live_pages, total_pages, .. } = error else {
            return Err(format!("unexpected error: {error}"));
        };
        self.seen.full += 1;
        if *needed_pages == 0 || live_pages > total_pages {
            return Err(format!("the numbers make no sense: {error}"));
        }
        self.check()
    }

    /// Lets the request complete, or leaves it running into the next one.
    fn complete(&mut self, token: Token, overlaps: bool) -> Outcome {
        if token == Token::NONE {
            return Ok(());
        }
        if let Some(at) = self.ftl.device().completion(token) {
            if at < self.now {
                return Err(format!("completes at {at}, before its issue at {}", self.now));
            }
            if !overlaps {
                self.now = at;
            }
            return Ok(());
        }
        if overlaps {
            return Ok(());
        }
        self.tag += 1;
        let tag = self.tag;
        self.ftl.device_mut().watch(token, tag);
        let mut done: Vec<Completion> = Vec::new();
        while !done.iter().any(|completion| completion.tag == tag) {
            let next = self
                .ftl
                .device()
                .next_event()
                .ok_or("nothing is left to happen, and the request is not done")?;
            self.ftl.device_mut().advance(next, &mut done);
            self.now = self.now.max(next);
        }
        Ok(())
    }

    fn advance(&mut self, until: SimTime) {
        self.ftl.device_mut().advance(until, &mut Vec::new());
        self.now = self.now.max(until);
    }

    fn check(&mut self) -> Outcome {
        self.ftl.check_invariants();
        let device = self.ftl.device();
        let (sum, own) = (device.counters().total(), device.tally().totals);
        if sum != own {
            return Err(format!("the causes sum to {sum:?}, the medium counts {own:?}"));
        }
        let mut mapped = 0;
        for lpn in 0..self.ftl.logical_pages() as u32 {
            if let Some(page) = self.ftl.lookup(Lpn(lpn)) {
                mapped += 1;
                if !device.is_programmed(page) {
                    return Err(format!("logical page {lpn} is mapped to {page:?}, which is erased"));
                }
            }
        }
        let live = self.ftl.stats().live_pages;
        if mapped != live {
            return Err(format!("{mapped} pages are mapped, the layer counts {live}"));
        }
        for start in (0..self.model.len() as u64).step_by(64 * 1024) {
            let len = (self.model.len() as u64 - start).min(64 * 1024);
            self.read(Extent::new(start, len), false)?;
        }
        Ok(())
    }

    /// A request past the capacity is refused before anything changes.
    fn check_out_of_range(&mut self) -> Outcome {
        let capacity = self.model.len() as u64;
        let before = self.ftl.device().tally().totals;
        for extent in
            [Extent::new(capacity, 1), Extent::new(capacity.saturating_sub(1), 2), Extent::new(u64::MAX, 9)]
        {
            let data = vec![0; extent.len as usize];
            let results = [
                self.ftl.read(extent, None, self.now),
                self.ftl.write(extent, Some(&data), Hint::default(), self.now),
                self.ftl.trim(extent, self.now),
                self.ftl.write_zeroes(extent, self.now),
            ];
            for result in results {
                if !matches!(result, Err(FtlError::OutOfRange { .. })) {
                    return Err(format!("{extent} on {capacity} bytes gives {result:?}"));
                }
            }
        }
        let after = self.ftl.device().tally().totals;
        if before == after { Ok(()) } else { Err(format!("refused requests did {before:?} to {after:?}")) }
    }
}
