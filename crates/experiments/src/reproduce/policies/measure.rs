//! Write amplification of a load under a policy, on a device that fits the load.
//!
//! The device has pages of 4 KiB and erase units of a power of two of pages such that its logical space has
//! 2048 to 4096 of them, as a drive of 480 GB has with superblocks of 128 to 256 MB. What the load writes is
//! the given share of the logical capacity; the rest of it stays empty. Over-provisioning is 7 %; [`Shape`]
//! has other devices. Greedy collection, survivors apart by stream. No time passes: only the state of the
//! device matters.

use super::load::Load;
use crate::Result;
use nandscape_core::command::Payload;
use nandscape_core::{Command, SimTime, TraceReader};
use nandscape_host::Assigned;
use nandscape_host::policy::{self, PolicySetup};
use nandscape_stack::RunError;
use nandscape_stack::build::{BuildOptions, build};
use nandscape_stack::config::{ConfigError, StackConfig, Typed};

/// Streams of the device, beside writes without one.
pub(super) const STREAMS: u16 = 8;

#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Erase units of the logical space, between this and its double.
    pub(super) units: u64,
    pub(super) op: f64,
    /// Streams beside writes without one.
    pub(super) streams: u16,
}

pub(super) const FINE: Shape = Shape { units: 2048, op: 0.07, streams: STREAMS };
/// Units as large as the largest files and more, and 28 %, since eight streams of such units do not fit 7 %.
pub(super) const COARSE: Shape = Shape { units: 128, op: 0.28, streams: STREAMS };

#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// Pages programmed over pages written, in the counted passes.
    pub(super) waf: f64,
    pub(super) used: usize,
}

/// Passes that fill the device and let it settle, and those that are counted behind them: whole ones, with at
/// least six and three times the capacity in writes.
fn passes(load: &Load, capacity_pages: u64) -> (u64, u64) {
    let times = |n: u64| (n * capacity_pages).div_ceil(load.written_pages.max(1));
    (times(6).max(2), times(3))
}

fn device(load: &Load, shape: Shape, occupancy: f64, streams: u16) -> Result<StackConfig, ConfigError> {
    let logical = (load.footprint_pages as f64 / occupancy).ceil() as u64;
    let pages_per_block = (logical / shape.units).max(8).next_power_of_two() / 2;
    let logical = logical.next_multiple_of(pages_per_block);
    let blocks = (logical as f64 * (1.0 + shape.op) / pages_per_block as f64).ceil() as u64;
    let mut typed = Typed::new();
    for (key, value) in [
        ("device.channels", 1),
        ("device.dies_per_channel", 1),
        ("device.planes_per_die", 1),
        ("device.blocks_per_plane", blocks),
        ("device.pages_per_block", pages_per_block),
        ("device.page", 4096),
        ("ftl.capacity", logical * 4096),
        ("ftl.streams", u64::from(streams)),
    ] {
        typed.set(key, &value.to_string())?;
    }
    typed.set("device.endurance", "endless")?;
    typed.check()
}

/// Runs a load under a policy, with keys of the policy. `none` runs on a device without streams.
pub(super) fn measure(
    load: &Load,
    shape: Shape,
    occupancy: f64,
    policy: &str,
    typed: &[(&str, &str)],
) -> Result<Cell> {
    let config = device(load, shape, occupancy, if policy == "none" { 0 } else { shape.streams })?;
    let mut subsystem = build(&config, BuildOptions::default())?;
    let capacity_bytes = subsystem.namespaces()[0].capacity_bytes;
    let (warm, counted) = passes(load, capacity_bytes / 4096);
    let entry = policy::find(policy).map_err(ConfigError::from)?;
    let typed = typed.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let params = nandscape_core::Params::check(&entry.info, "host.", &typed).map_err(ConfigError::from)?;
    let setup = PolicySetup { streams: shape.streams, id_offset: 0, capacity_bytes, page_bytes: 4096 };
    let mut chooser = (entry.build)(&params, &setup).map_err(ConfigError::from)?;
    if entry.needs_future {
        // One pass more, so that what is counted does not end with data that never dies.
        for record in load.passes(warm + counted + 1) {
            chooser.foresee(&record?);
        }
        chooser.foreseen();
    }
    let mut reader = Assigned::new(load.passes(warm + counted), chooser, &setup);
    run(&mut *subsystem, &mut reader, warm * load.requests())?;
    subsystem.reset_counters(SimTime::ZERO);
    run(&mut *subsystem, &mut reader, u64::MAX)?;
    let programs = subsystem.inspect().device(0).tally().totals.programs;
    let used = reader.counts()[1..].iter().filter(|counts| counts.writes > 0).count();
    Ok(Cell { waf: programs as f64 / subsystem.inspect().host_counts(0).write_pages as f64, used })
}

fn run(subsystem: &mut dyn nandscape_core::Subsystem, reader: &mut dyn TraceReader, most: u64) -> Result<()> {
    for _ in 0..most {
        let Some(record) = reader.next() else { break };
        let record = record?;
        subsystem.submit(0, Command::from(&record), Payload::None, SimTime::ZERO).map_err(|error| {
            RunError::Failed { label: "stream policies".to_owned(), message: error.to_string() }
        })?;
    }
    Ok(())
}
