//! Many cases: every configuration with every kind of buffer, seed after seed, until enough cuts were tried.

use super::device::Buffer;
use super::explore::{Case, Damage, Effort, Failure, Tally};
use super::host::Host;
use super::states::Open;
use super::subject::Subject;
use nandscape_core::{Capabilities, Geometry};
use nandscape_media::faults::FaultPlan;
use nandscape_media::{Nand, NandOptions};
use std::fmt::Write as _;
use std::io::Write as _;

/// A layer with its parameters, on a device.
pub struct Setup<'a, S: Subject = Host> {
    /// Name for messages and for `CRASH_CASE`.
    pub name: String,
    /// The wholly erased device.
    pub nand: Nand<S::Oob>,
    /// Builds the layer on a device that is new or was cut off.
    pub open: Box<Open<'a, S::Layer, S::Oob>>,
    /// What goes wrong besides the cuts: programs and erases that fail. With any of it a layer may end
    /// read-only.
    pub plan: FaultPlan,
    /// The layer keeps in memory what finds its data again: an answered write is durable with a flush alone,
    /// whatever stands between a program and the flash.
    pub needs_flush: bool,
    /// What happens to the flash while the power is off.
    pub damage: Option<Damage<S::Oob>>,
    /// How much is tried.
    pub effort: Effort,
}

impl<S: Subject> Setup<'_, S> {
    fn case<'a>(&'a self, buffer: Buffer, seed: u64, only: Option<&'a str>) -> Case<'a, S> {
        let Self { nand, plan, needs_flush, damage, effort, .. } = self;
        let (needs_flush, damage, effort) = (*needs_flush, *damage, *effort);
        Case { nand, buffer, plan, seed, open: &*self.open, needs_flush, damage, effort, only }
    }
}

/// A small wholly erased device with bytes: channels of one die each, blocks of each, pages of a block, and
/// bytes of a page in sectors of 512 bytes.
pub fn nand(shape: (u32, u32, u32, u32), out_of_order_program: bool) -> Nand {
    with_bytes(shape, Capabilities { out_of_order_program, ..Capabilities::default() })
}

/// As [`nand`], with pages of which several lie in one flash page.
pub fn nand_of_units(shape: (u32, u32, u32, u32), units_per_page: u32) -> Nand {
    let program_pages = units_per_page;
    with_bytes(shape, Capabilities { units_per_page, program_pages, ..Capabilities::default() })
}

fn with_bytes(
    (channels, blocks, pages, page_bytes): (u32, u32, u32, u32),
    capabilities: Capabilities,
) -> Nand {
    let geometry = Geometry {
        channels,
        dies_per_channel: 1,
        planes_per_die: 1,
        blocks_per_plane: blocks,
        pages_per_block: pages,
        page_bytes,
        sector_bytes: 512,
        oob_bytes: 16,
    };
    let capabilities = Capabilities { stores_data: true, ..capabilities };
    let options = NandOptions { capabilities, ..NandOptions::default() };
    Nand::new(geometry.checked().expect("a possible shape"), &options).expect("no bad blocks")
}

/// How many cuts the environment asks for (`CRASH_POINTS`, for all tests of the suite together), or
/// `default`; this test has a share of `share` percent.
pub fn points_from_environment(default: u64, share: u64) -> u64 {
    let points = std::env::var("CRASH_POINTS").ok().map_or(default, |text| {
        text.parse().unwrap_or_else(|_| panic!("CRASH_POINTS={text}: expected a number of cut points"))
    });
    points * share / 100
}

/// Runs seed after seed of every setup with every kind of buffer, each at least once, until `points` cuts
/// were tried. Panics at the first broken promise with the command that repeats it: `command` is put after
/// the variables `CRASH_CASE`, `CRASH_SEED` and `CRASH_CUT`, which limit this function to one cut.
/// `CRASH_SEED` alone is the first seed.
pub fn campaign<S: Subject>(label: &str, setups: &[Setup<'_, S>], points: u64, command: &str) -> Tally {
    let variable = |name: &str| std::env::var(name).ok();
    let only_case = variable("CRASH_CASE");
    let only_cut = variable("CRASH_CUT");
    let first_seed = variable("CRASH_SEED")
        .map_or(1, |text| text.parse().unwrap_or_else(|_| panic!("CRASH_SEED={text}: expected a number")));
    let mut total = Tally::default();
    for seed in first_seed.. {
        for setup in setups {
            for buffer in Buffer::ALL {
                let name = format!("{}/{buffer}", setup.name);
                if only_case.as_ref().is_some_and(|only| *only != name) {
                    continue;
                }
                match setup.case(buffer, seed, only_cut.as_deref()).explore() {
                    Ok(tally) => total.add(tally),
                    Err(failure) => panic!("{}", report(&name, seed, &failure, command)),
                }
                if seed > first_seed && total.points >= points {
                    break;
                }
            }
        }
        let is_one_case = only_case.is_some() && variable("CRASH_SEED").is_some();
        if total.points >= points || is_one_case || (only_case.is_some() && total.points == 0) {
            break;
        }
    }
    // Printing macros are captured in tests that pass.
    let _ = writeln!(std::io::stderr(), "{label}: {total}");
    total
}

fn report(name: &str, seed: u64, failure: &Failure, command: &str) -> String {
    let mut text = format!("{name}, seed {seed}, cut {}: {}\n", failure.cut, failure.message);
    let cut = if failure.cut == "-" { String::new() } else { format!(" CRASH_CUT={}", failure.cut) };
    let _ = writeln!(text, "  repeat with: CRASH_CASE='{name}' CRASH_SEED={seed}{cut} {command}");
    text
}

/// The first broken promise of the seeds 1 to `seeds` with any kind of buffer, and how many cuts it took. For
/// tests of deliberately broken layers.
pub fn finds<S: Subject>(setup: &Setup<'_, S>, seeds: u64) -> (Option<Failure>, Tally) {
    let mut total = Tally::default();
    for seed in 1..=seeds {
        for buffer in Buffer::ALL {
            match setup.case(buffer, seed, None).first_failure() {
                Ok(tally) => total.add(tally),
                Err(failure) => return (Some(failure), total),
            }
        }
    }
    (None, total)
}
