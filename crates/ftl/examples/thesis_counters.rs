//! Replays a native CSV through one layer on a serial device at depth 1 and prints the counters as JSON, in
//! the names of the result document. For the comparison with the oracle in `tests/oracle` where the whole
//! tool is not wanted.
//!
//! `thesis_counters TRACE.csv --ftl NAME [--set KEY=VALUE]...`, keys `device.channels` and so on,
//! `device.bad_blocks=3,7`, and `ftl.…`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

#[path = "../tests/suite/support/mod.rs"]
mod support;

use nandscape_core::{BlockId, Cause, Ftl};
use nandscape_media::BadBlocks;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use support::{Host, THESIS_GEOMETRY, build, device, replay};

struct Arguments {
    trace: String,
    ftl: String,
    geometry: nandscape_core::Geometry,
    bad: Vec<BlockId>,
    params: BTreeMap<String, String>,
}

fn arguments() -> Result<Arguments, String> {
    let mut parsed = Arguments {
        trace: String::new(),
        ftl: String::new(),
        geometry: THESIS_GEOMETRY,
        bad: Vec::new(),
        params: BTreeMap::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--ftl" => parsed.ftl = value()?,
            "--set" => set(&mut parsed, &value()?)?,
            _ => parsed.trace = word,
        }
    }
    Ok(parsed)
}

fn set(parsed: &mut Arguments, pair: &str) -> Result<(), String> {
    let (key, value) = pair.split_once('=').ok_or_else(|| format!("{pair}: expected KEY=VALUE"))?;
    if let Some(param) = key.strip_prefix("ftl.") {
        parsed.params.insert(param.to_owned(), value.to_owned());
        return Ok(());
    }
    let number = |text: &str| text.parse::<u32>().map_err(|_| format!("{pair}: expected a whole number"));
    let geometry = &mut parsed.geometry;
    match key {
        "device.channels" => geometry.channels = number(value)?,
        "device.dies_per_channel" => geometry.dies_per_channel = number(value)?,
        "device.planes_per_die" => geometry.planes_per_die = number(value)?,
        "device.blocks_per_plane" => geometry.blocks_per_plane = number(value)?,
        "device.pages_per_block" => geometry.pages_per_block = number(value)?,
        "device.page" => geometry.page_bytes = number(value)?,
        "device.sector" => geometry.sector_bytes = number(value)?,
        "device.bad_blocks" => {
            for block in value.split(',').filter(|text| !text.is_empty()) {
                parsed.bad.push(BlockId(number(block)?));
            }
        }
        _ => return Err(format!("{key}: no such key")),
    }
    Ok(())
}

fn document(ftl: &dyn Ftl, host: &Host) -> Value {
    let stats = ftl.stats();
    let device = ftl.device();
    let total = device.tally().totals;
    let causes: Map<String, Value> = Cause::ALL
        .iter()
        .map(|cause| (cause.name().to_owned(), json!(device.counters().get(*cause))))
        .collect();
    let blocks = device.geometry().blocks();
    let per_block: Vec<u32> = (0..blocks).map(|block| device.erase_count(BlockId(block))).collect();
    json!({
        "host": { "reads": host.reads, "writes": host.writes, "write_bytes": host.write_bytes, "write_pages": host.write_pages },
        "flash": { "programs": total.programs, "reads": total.reads, "erases": total.erases, "by_cause": causes },
        "map": {
            "table_bytes": ftl.cost().map_table_bytes,
            "updates": stats.map_updates,
            "update_bytes": stats.map_update_bytes,
            "log_table_updates": stats.log_table_updates,
        },
        "gc": { "runs": stats.gc_runs, "moved_pages": stats.gc_moved_pages },
        "merges": {
            "switch": stats.merges_switch,
            "full": stats.merges_full,
            "evicted": stats.merges_evicted,
            "in_place": stats.in_place_rewrites,
        },
        "wear": { "per_block": per_block },
        "time": { "simulated_ns": host.end.0 },
        "live_pages": stats.live_pages,
        "error": host.error.as_ref().map(|error| json!({ "request": host.requests, "message": error.to_string() })),
    })
}

fn run() -> Result<(), String> {
    let args = arguments()?;
    let csv = std::fs::read_to_string(&args.trace).map_err(|error| format!("{}: {error}", args.trace))?;
    let geometry = args.geometry.checked().map_err(|error| error.to_string())?;
    let mut ftl = build(&args.ftl, &args.params, device(geometry, BadBlocks::List(args.bad)))?;
    let host = replay(&mut *ftl, &csv);
    ftl.check_invariants();
    println!("{}", document(&*ftl, &host));
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("thesis_counters: {error}");
            ExitCode::FAILURE
        }
    }
}
