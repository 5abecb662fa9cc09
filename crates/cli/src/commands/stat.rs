//! `nandscape stat`: what a running server counts and measures.

mod cached;
mod text;
mod watch;
mod zones;

use super::control::connect;
use crate::args::StatArgs;
use crate::console::{Console, Result};
use nandscape_core::command::HostCounts;
use nandscape_core::units::format_bytes;
use nandscape_report::grouped;
use std::fmt::Write as _;

/// Prints it once, or a line for each interval.
pub fn run(args: &StatArgs, console: Console) -> Result<()> {
    let mut client = connect(args.socket.as_deref(), console)?;
    if let Some(seconds) = args.watch {
        return watch::run(&mut client, seconds, args.json, console);
    }
    let (document, stat) = client.stat()?;
    console.result(&if args.json { format!("{document:#}") } else { text::table(&stat) })
}

/// Names stand in a column of this width.
fn row(out: &mut String, name: &str, value: &str) {
    writeln!(out, "{name:<22}{value}").expect("a string takes everything");
}

pub fn requests(host: &HostCounts) -> String {
    let HostCounts { reads, writes, trims, flushes, .. } = host;
    let [reads, writes, trims, flushes] = [reads, writes, trims, flushes].map(|count| grouped(*count));
    let [read, written] = [host.read_bytes, host.write_bytes].map(format_bytes);
    format!("{reads} reads ({read}), {writes} writes ({written}), {trims} trims, {flushes} flushes")
}

/// A share in percent, `-` of nothing.
pub fn share(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.1} %", ratio * 100.0))
}
