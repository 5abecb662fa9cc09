//! The runs behind the figures: what distinguishes them, and each of them once.

use super::super::Context;
use crate::Result;
use nandscape_core::{OpCounts, words};
use nandscape_report::Run;
use nandscape_sim::metrics::Series;
use nandscape_stack::RunOptions;
use nandscape_stack::config::{ConfigError, StackConfig, Typed};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Load {
    /// Molecular dynamics: large requests, half of them off the block borders.
    Lammps,
    /// Earthquake simulation: requests of half a block.
    Macdrp,
}

words!(pub Load: Lammps = "LAMMPS", Macdrp = "MACDRP");

impl Load {
    pub const fn spec(self) -> &'static str {
        match self {
            Self::Lammps => "lammps",
            Self::Macdrp => "macdrp",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strategy {
    /// Page map, greedy lazy collection.
    PmGcl,
    /// Page map, collection of the whole device in order.
    PmGcc,
    SbmGcl,
    /// Superblock map with log superblocks.
    HsbmGcl,
}

words!(pub Strategy: PmGcl = "PM_GCL", PmGcc = "PM_GCC", SbmGcl = "SBM_GCL", HsbmGcl = "HSBM_GCL");

impl Strategy {
    /// Those that collect a victim at a time.
    pub const GREEDY: [Self; 3] = [Self::PmGcl, Self::SbmGcl, Self::HsbmGcl];
    pub const SUPERBLOCK: [Self; 2] = [Self::SbmGcl, Self::HsbmGcl];

    pub const fn ftl(self) -> &'static str {
        match self {
            Self::PmGcl => "pm-gcl",
            Self::PmGcc => "pm-gcc",
            Self::SbmGcl => "sbm-gcl",
            Self::HsbmGcl => "hsbm-gcl",
        }
    }
}

/// How the device's parts work together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Device {
    /// One page operation at a time: preset `thesis`.
    Serial,
    /// The same with 32 units that work at the same time, without a bus to wait for, one request outstanding.
    Units,
    /// Preset `thesis-parallel`: buses too, 32 requests outstanding.
    Buses,
}

/// Blocks in a LUN of a device of 32 GiB.
const ENDLESS: u32 = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point {
    pub load: Load,
    pub strategy: Strategy,
    pub blocks_per_lun: u32,
    pub pages_per_block: u32,
    /// Blocks in a superblock: PN = size, BN = 1.
    pub superblock: u32,
    pub logs: u32,
    /// `SBM_GCL` rewrites in place when no superblock is erased, instead of collecting one.
    pub in_place: bool,
    pub device: Device,
    /// The load's bytes as requests of two pages at places drawn by chance, a tenth of them.
    pub is_scattered: bool,
}

/// How a point is run in a sabotaged experiment, instead of as its figure says. Rows keep its own name.
pub type Spoil = fn(Point) -> Point;

/// Spoiled: `PM_GCL` collects the whole device, and the three others are `PM_GCL`.
pub const fn mixed_up(point: Point) -> Point {
    point.as_if(if matches!(point.strategy, Strategy::PmGcl) { Strategy::PmGcc } else { Strategy::PmGcl })
}

/// Spoiled: `PM_GCC` collects one block at a time, and the three others the whole device.
pub const fn collecting_otherwise(point: Point) -> Point {
    point.as_if(if matches!(point.strategy, Strategy::PmGcc) { Strategy::PmGcl } else { Strategy::PmGcc })
}

impl Point {
    /// The device of Table 4.1 and the parameters of chapter 4.
    pub const fn new(load: Load, strategy: Strategy) -> Self {
        Self {
            load,
            strategy,
            blocks_per_lun: 16,
            pages_per_block: 32,
            superblock: 1,
            logs: 8,
            in_place: false,
            device: Device::Serial,
            is_scattered: false,
        }
    }

    /// The same with the layer of another strategy.
    pub const fn as_if(self, strategy: Strategy) -> Self {
        Self { strategy, ..self }
    }

    /// The same on a device that no load fills, so that nothing is ever collected.
    pub const fn without_collection(self) -> Self {
        Self { blocks_per_lun: ENDLESS, ..self }
    }

    /// What tells it from the others.
    fn label(&self) -> String {
        format!(
            "{} on {} ({} blocks per LUN, {} pages per block, superblocks of {}, {} logs)",
            self.strategy.name(),
            self.load.name(),
            self.blocks_per_lun,
            self.pages_per_block,
            self.superblock,
            self.logs,
        )
    }

    /// Whether any figure shows the course of this run: those of the unchanged device.
    fn has_series(&self) -> bool {
        let plain = Self { in_place: self.in_place, ..Self::new(self.load, self.strategy) };
        *self == plain || *self == plain.without_collection()
    }

    fn config(&self, seed: u64) -> Result<StackConfig, ConfigError> {
        let mut typed = Typed::new();
        typed.merge_preset(match self.device {
            Device::Serial | Device::Units => "thesis",
            Device::Buses => "thesis-parallel",
        })?;
        if self.device == Device::Units {
            typed.set("device.timing.mode", "parallel")?;
            // 32 KiB take less than the nanosecond in which time is counted.
            typed.set("device.timing.channel_bytes_per_s", "1000000GB")?;
        }
        typed.set("device.blocks_per_plane", &self.blocks_per_lun.to_string())?;
        typed.set("device.pages_per_block", &self.pages_per_block.to_string())?;
        typed.set("workload.seed", &seed.to_string())?;
        typed.set_ftl(self.strategy.ftl())?;
        if Strategy::SUPERBLOCK.contains(&self.strategy) {
            typed.set("ftl.pn", &self.superblock.to_string())?;
        }
        match self.strategy {
            Strategy::HsbmGcl => typed.set("ftl.logs", &self.logs.to_string())?,
            Strategy::SbmGcl => typed.set("ftl.full", if self.in_place { "in-place" } else { "gc-first" })?,
            Strategy::PmGcl | Strategy::PmGcc => {}
        }
        typed.check()
    }

    /// The workload.
    fn spec(&self) -> &'static str {
        match (self.is_scattered, self.load) {
            (false, load) => load.spec(),
            (true, Load::Lammps) => "uniform:bs=64k,size=707m,span=272m",
            (true, Load::Macdrp) => "uniform:bs=64k,size=825m,span=87m",
        }
    }

    fn run(&self, context: &Context<'_>) -> Result<Run> {
        let options = RunOptions {
            with_series: self.has_series(),
            with_detail: true,
            count_programs: self.has_series(),
            ..RunOptions::default()
        };
        context.replay(&self.config(context.seed)?, self.spec(), self.label(), options)
    }
}

/// The runs of these points, in their order; those that are not done yet run in parallel.
pub fn runs(context: &Context<'_>, points: &[Point], spoil: Spoil) -> Result<Vec<Measured>> {
    let spoiled = points.iter().map(|point| if context.is_sabotaged { spoil(*point) } else { *point });
    let runs = context.thesis.all(&spoiled.collect::<Vec<_>>(), |point| point.run(context))?;
    Ok(points.iter().zip(runs).map(|(&point, run)| Measured { point, run }).collect())
}

/// The four strategies on one load, each changed by `change`.
pub fn strategies(
    context: &Context<'_>,
    load: Load,
    spoil: Spoil,
    change: impl Fn(Point) -> Point,
) -> Result<[Measured; 4]> {
    let points = Strategy::ALL.map(|strategy| change(Point::new(load, strategy)));
    let runs = runs(context, &points, spoil)?;
    Ok(runs.try_into().expect("as many runs as points"))
}

/// The four strategies on one load, on the device of Table 4.1.
pub fn thesis(context: &Context<'_>, load: Load, spoil: Spoil) -> Result<[Measured; 4]> {
    strategies(context, load, spoil, |point| point)
}

/// A run, in the units of the source.
#[derive(Clone, Debug)]
pub struct Measured {
    pub point: Point,
    run: Arc<Run>,
}

impl Measured {
    /// Host bytes written per simulated second, in units of 10^6.
    pub fn mb_s(&self) -> f64 {
        self.run.result.speed.throughput.write_bytes_per_s / 1e6
    }

    pub fn map_kib(&self) -> f64 {
        self.run.result.layer.map.update_bytes as f64 / 1024.0
    }

    pub fn waf(&self) -> f64 {
        self.run.result.waf.pages.unwrap_or(f64::NAN)
    }

    pub fn erases(&self) -> f64 {
        self.run.result.flash.erases as f64
    }

    pub fn result(&self) -> &nandscape_sim::RunResult {
        &self.run.result
    }

    pub fn name(&self) -> String {
        format!("{} on {}", self.point.strategy.name(), self.point.load.name())
    }

    fn series(&self) -> &Series {
        self.run.series.as_ref().expect("the figures that want a course ask for the unchanged device")
    }

    pub fn program_counts(&self) -> &[u32] {
        self.series().program_counts.as_deref().expect("counted on a device this small")
    }

    /// MB/s of every request, in order.
    pub fn request_mb_s(&self) -> Vec<f64> {
        let series = self.series();
        assert_eq!(series.request_stride, 1, "the loads are short enough to keep every request");
        series.requests.iter().map(|r| r.bytes as f64 * 1e3 / r.latency_ns.max(1) as f64).collect()
    }

    /// Running mean of the throughput after every request, in MB/s. One request is outstanding, so the
    /// latencies add up to the time that passed.
    pub fn running_mb_s(&self) -> Vec<f64> {
        let (mut bytes, mut ns) = (0u64, 0u64);
        let requests = self.series().requests.iter();
        requests
            .map(|request| {
                bytes += request.bytes;
                ns += request.latency_ns;
                bytes as f64 * 1e3 / ns.max(1) as f64
            })
            .collect()
    }

    pub fn curve(&self) -> Vec<Step> {
        let samples = &self.series().samples;
        samples
            .iter()
            .map(|s| Step {
                requests: s.requests as usize,
                written: s.host.write_bytes as f64,
                pages: s.host.write_pages as f64,
                flash: s.causes.total(),
                map_bytes: s.ftl.map_update_bytes as f64,
            })
            .collect()
    }
}

/// Where a run stands after some of its data.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    pub requests: usize,
    pub written: f64,
    pub pages: f64,
    pub flash: OpCounts,
    pub map_bytes: f64,
}

impl Step {
    pub fn waf(&self) -> f64 {
        self.flash.programs as f64 / self.pages
    }
}

/// The step nearest to a share of the data.
pub fn at_share(curve: &[Step], share: f64) -> &Step {
    let total = curve.last().expect("a run has at least its last step").written;
    curve.iter().find(|step| step.written >= total * share).unwrap_or(&curve[curve.len() - 1])
}
