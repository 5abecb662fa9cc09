//! `nandscape cache list`: the caches that are served.

use super::running;
use crate::args::CacheListArgs;
use crate::console::{Console, Result};
use nandscape_core::units::format_bytes;
use nandscape_volumes::CacheStat;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Those of which this holds, by what they are called.
pub fn run(args: &CacheListArgs, is_wanted: fn(&Path) -> bool, console: Console) -> Result<()> {
    let mut all = running::all()?;
    all.retain(|(_, stat)| is_wanted(&stat.fast));
    if args.json {
        let caches = all.iter().map(|(socket, stat)| json!({ "socket": socket, "cache": stat }));
        let document = json!({ "schema": 1, "caches": caches.collect::<Vec<Value>>() });
        return console.result(&format!("{document:#}"));
    }
    if all.is_empty() {
        console.note("no server has a cache: expected 'serve nbd --cache' or 'serve fuse --cache' to run");
        return Ok(());
    }
    console.result(&all.iter().map(|(socket, stat)| lines(socket, stat)).collect::<String>())
}

/// A line of the cache and one of each volume, as `rapiddisk --list` has devices and mappings.
fn lines(socket: &Path, stat: &CacheStat) -> String {
    let (slots, block) = (stat.gauges.slots, u64::from(stat.block_bytes));
    let mut text = format!(
        "{}: {} in {slots} blocks, {} used, {} dirty, preset {}, {}, control socket {}\n",
        stat.fast.display(),
        format_bytes(slots * block),
        stat.gauges.used,
        stat.gauges.dirty,
        stat.preset,
        stat.mode.name(),
        socket.display(),
    );
    for member in &stat.mirror {
        let _ = writeln!(text, "  mirror: {member}");
    }
    for volume in &stat.volumes {
        let (bytes, disk) = (format_bytes(volume.bytes), volume.disk.display());
        let _ = writeln!(text, "  {}: {bytes}, disk {disk}", volume.name);
    }
    text
}
