//! The runs: each layout on a site of its own, all of them at the same time as far as there are cores.

use super::{Context, Effort};
use crate::Result;
use crate::neighbours::{Site, SiteOptions, only};
use crate::reproduce::extremes;
use nandscape_core::words;
use nandscape_jobs::{Amount, Job, JobFile};
use nandscape_sim::jobs::JobSeries;
use nandscape_sim::result::{DirectionResult, JobResult};
use nandscape_stack::config::{ConfigError, StackConfig};
use rayon::prelude::*;
use std::fmt::Display;

const LOAD: &str = include_str!("../../../../../configs/nvm-sets.fio");
const ALONE_NS: u64 = 3_000_000_000;
pub(super) const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Depths at which contention is switched off.
pub(super) const FREE_DEPTHS: [u32; 4] = [8, 16, 32, 64];

/// Times of a processor for each operation of flash: chosen, since the article says nothing of processors.
pub(super) const PROCESSORS: [&str; 2] = ["2us", "4us"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Traditional,
    Vertical,
    Horizontal,
}

words!(pub Layout: Traditional = "traditional", Vertical = "vertical", Horizontal = "horizontal");

#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub depth: u32,
    pub read: DirectionResult,
    pub write: DirectionResult,
}

impl Pair {
    pub fn mean_us(&self) -> f64 {
        self.read.latency_ns.mean / 1e3
    }
}

#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub write_alone: DirectionResult,
    pub read_alone: DirectionResult,
    /// At every depth of [`DEPTHS`]; the one at 8 has all the reads.
    pub pairs: Vec<Pair>,
    /// Least and greatest mean over 100 ms of the run at depth 8, in microseconds; equal if it was shorter.
    pub means_us: (f64, f64),
    /// The reader beside a writer in its own namespace.
    pub mixed: Pair,
}

impl Outcome {
    pub fn at(&self, depth: u32) -> &Pair {
        self.pairs.iter().find(|pair| pair.depth == depth).expect("a depth of the sweep")
    }
}

#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub layouts: [Outcome; 3],
    /// Vertical and horizontal with contention off, at [`FREE_DEPTHS`].
    pub free: [Vec<Pair>; 2],
    /// Horizontal sets whose translation layers run on the host.
    pub open_channel: Pair,
    /// The same with the device's own, at the same number of reads.
    pub device_side: Pair,
    /// Both, the device's first, where the processor that runs a layer takes each time of [`PROCESSORS`].
    pub processors: Vec<[Pair; 2]>,
    pub reads: u64,
}

impl Measured {
    pub fn of(&self, layout: Layout) -> &Outcome {
        &self.layouts[layout as usize]
    }
}

pub(super) fn measure(context: &Context<'_>, effort: &Effort) -> Result<Measured> {
    let lab = Lab { context, effort, file: JobFile::parse("configs/nvm-sets.fio", LOAD)? };
    let layouts = || {
        if context.is_sabotaged {
            // All three are the same then.
            return Ok(vec![lab.layout(Layout::Traditional)?; Layout::ALL.len()]);
        }
        Layout::ALL.par_iter().map(|layout| lab.layout(*layout)).collect::<Result<Vec<_>, _>>()
    };
    let free = || rayon::join(|| lab.free(Layout::Vertical), || lab.free(Layout::Horizontal));
    // The longest first.
    let hosts = || rayon::join(|| lab.owned("host", None, effort.reads), || lab.processors());
    let (layouts, (free, (open_channel, processors))) = rayon::join(layouts, || rayon::join(free, hosts));
    let layouts: [Outcome; 3] = layouts?.try_into().expect("three layouts");
    Ok(Measured {
        device_side: layouts[Layout::Horizontal as usize].at(8).clone(),
        layouts,
        free: [free.0?, free.1?],
        open_channel: open_channel?,
        processors: processors?,
        reads: effort.reads,
    })
}

struct Lab<'a> {
    context: &'a Context<'a>,
    effort: &'a Effort,
    file: JobFile,
}

impl Lab<'_> {
    fn config(
        &self,
        layout: Layout,
        own: &[(&'static str, &'static str)],
    ) -> Result<StackConfig, ConfigError> {
        let (scale, name) = (format!("1/{}", self.effort.scale), layout.name());
        let mut keys: Vec<(&str, &dyn Display)> =
            vec![("device.scale", &scale), ("sets.layout", &name), ("namespaces.count", &2)];
        if self.effort.is_roomy {
            let dies: &dyn Display = if layout == Layout::Traditional { &128 } else { &64 };
            keys.extend([("ftl.frontiers", dies), ("ftl.op", &1)]);
        }
        keys.extend(own.iter().map(|(key, value)| (*key, value as &dyn Display)));
        self.context.config(Some("pblaze5-916"), &keys)
    }

    fn options(&self) -> SiteOptions<'_> {
        SiteOptions { interval_ns: None, stop: self.context.stop }
    }

    fn job(&self, name: &str) -> Job {
        self.file.jobs.iter().find(|job| job.name == name).expect("a job of the shipped file").clone()
    }

    /// A device in steady state: every write of the writer's set needs an erase.
    fn site(&self, layout: Layout, own: &[(&'static str, &'static str)]) -> Result<Site> {
        self.context.check_stop()?;
        let mut site = Site::new(&self.config(layout, own)?, self.options())?;
        site.wear_in(&self.job("writer"), self.options())?;
        Ok(site)
    }

    fn reader(&self, depth: u32, reads: u64) -> Job {
        Job { depth, io_size: Amount::Bytes(reads * 4096), ..self.job("reader") }
    }

    fn pair(&self, site: &mut Site, depth: u32, reads: u64) -> Result<Pair> {
        let jobs = [self.job("writer"), self.reader(depth, reads)];
        Ok(pair(depth, site.run(&only(&jobs), self.options())?.result.jobs))
    }

    fn layout(&self, layout: Layout) -> Result<Outcome> {
        let mut site = self.site(layout, &[])?;
        let writer = self.job("writer");
        let alone = Job { runtime_ns: Some(ALONE_NS), ..writer.clone() };
        let write_alone = site.run(&only(&[alone]), self.options())?.result.jobs.remove(0).write;
        let reader = self.reader(8, self.effort.sweep_reads);
        let read_alone = site.run(&only(&[reader]), self.options())?.result.jobs.remove(0).read;
        let mut means_us = (0.0, 0.0);
        let mut pairs = Vec::new();
        for depth in DEPTHS {
            if depth != 8 {
                pairs.push(self.pair(&mut site, depth, self.effort.sweep_reads)?);
                continue;
            }
            let jobs = [writer.clone(), self.reader(8, self.effort.reads)];
            let options = SiteOptions { interval_ns: Some(100_000_000), ..self.options() };
            let outcome = site.run(&only(&jobs), options)?;
            means_us = outcome.series.as_ref().map_or((0.0, 0.0), means);
            pairs.push(pair(8, outcome.result.jobs));
        }
        let inside = Job { filenames: vec!["ns2".to_owned()], ..writer };
        let jobs = [inside, self.reader(8, self.effort.sweep_reads)];
        let mixed = pair(8, site.run(&only(&jobs), self.options())?.result.jobs);
        Ok(Outcome { write_alone, read_alone, pairs, means_us, mixed })
    }

    fn free(&self, layout: Layout) -> Result<Vec<Pair>> {
        let key = Some(("device.timing.contention", "off")).filter(|_| !self.context.is_sabotaged);
        let mut site = self.site(layout, key.as_slice())?;
        FREE_DEPTHS.iter().map(|depth| self.pair(&mut site, *depth, self.effort.sweep_reads)).collect()
    }

    /// Horizontal sets whose layers belong to the device or the host, and may need a processor.
    fn owned(&self, owner: &'static str, processor: Option<&'static str>, reads: u64) -> Result<Pair> {
        let processor = processor.map(|time| ("sets.processor", time));
        let own: Vec<_> = [("sets.owner", owner)].into_iter().chain(processor).collect();
        let mut site = self.site(Layout::Horizontal, &own)?;
        self.pair(&mut site, 8, reads)
    }

    fn processors(&self) -> Result<Vec<[Pair; 2]>> {
        let host = if self.context.is_sabotaged { "device" } else { "host" };
        let of = |time, owner| self.owned(owner, Some(time), self.effort.sweep_reads);
        let both = |time: &&'static str| Ok([of(*time, "device")?, of(*time, host)?]);
        PROCESSORS.par_iter().map(both).collect()
    }
}

fn pair(depth: u32, jobs: Vec<JobResult>) -> Pair {
    let [writer, reader]: [JobResult; 2] = jobs.try_into().expect("a writer and a reader");
    Pair { depth, read: reader.read, write: writer.write }
}

/// Least and greatest mean of the reader over whole intervals, in microseconds.
fn means(series: &JobSeries) -> (f64, f64) {
    let whole = series.windows.split_last().map_or(&[][..], |(_, whole)| whole);
    let cells = whole.iter().filter_map(|window| window.rows.last()).map(|row| &row[0]);
    let means: Vec<f64> = cells
        .filter(|cell| cell.requests > 0)
        .map(|cell| cell.latency_sum_ns as f64 / cell.requests as f64 / 1e3)
        .collect();
    if means.is_empty() { (0.0, 0.0) } else { extremes(means) }
}
