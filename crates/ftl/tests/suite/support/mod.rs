//! A small replay loop for tests: the native CSV against a layer on a timed medium, one request at a time.

use nandscape_core::{
    AnyDevice, Capabilities, Extent, Ftl, FtlError, Geometry, Hint, Op, Params, SimTime, Token,
};
use nandscape_ftl::{FtlEntry, boxed_ftls};
use nandscape_media::{BadBlocks, Nand, NandOptions, Scheduler, Serial, Timed, Timing};
use std::collections::BTreeMap;

/// Device of the tests: state in memory under serial timing.
pub type Device = Timed<Nand, Serial>;

/// [thesis table 3.1]; the bus is part of the latencies.
pub const THESIS_TIMING: Timing = Timing {
    read_ns: 101_000,
    program_ns: 116_000,
    erase_ns: 434_000,
    channel_bytes_per_s: 1_000_000_000,
    command_ns: 0,
};

/// [thesis table 4.1].
pub const THESIS_GEOMETRY: Geometry = Geometry {
    channels: 8,
    dies_per_channel: 4,
    planes_per_die: 1,
    blocks_per_plane: 16,
    pages_per_block: 32,
    page_bytes: 32768,
    sector_bytes: 4096,
    oob_bytes: 128,
};

/// A device without payload that allows any program order.
pub fn device(geometry: Geometry, bad_blocks: BadBlocks) -> Device {
    let capabilities = Capabilities { out_of_order_program: true, ..Capabilities::default() };
    let options = NandOptions { bad_blocks, capabilities, ..NandOptions::default() };
    let geometry = geometry.checked().expect("a possible shape");
    let nand = Nand::new(geometry, &options).expect("bad blocks inside the device");
    Timed::new(nand, Serial::new(&geometry, &THESIS_TIMING))
}

/// Builds a registered layer.
pub fn build(
    name: &str,
    typed: &BTreeMap<String, String>,
    device: Device,
) -> Result<Box<dyn Ftl + Send>, String> {
    let entry: FtlEntry<AnyDevice> = boxed_ftls()
        .into_iter()
        .find(|entry| entry.info.name == name)
        .ok_or_else(|| format!("no layer is called {name}"))?;
    let params = Params::check(entry.info, "ftl.", typed).map_err(|error| error.to_string())?;
    (entry.build)(Box::new(device), &params).map_err(|error| error.to_string())
}

/// One line of the native CSV.
pub fn parse(line: &str) -> Option<(Op, Extent)> {
    let mut fields = line.trim().split(',').skip(1);
    let op = match fields.next()? {
        "R" => Op::Read,
        "W" => Op::Write,
        "D" => Op::Trim,
        "Z" => Op::WriteZeroes,
        "F" => Op::Flush,
        _ => return None,
    };
    let mut number = || fields.next()?.parse().ok();
    Some((op, Extent::new(number()?, number()?)))
}

/// Host counters, kept above the layer, so that a request that fails is counted.
#[derive(Default)]
pub struct Host {
    pub requests: u64,
    pub writes: u64,
    pub reads: u64,
    pub write_bytes: u64,
    pub write_pages: u64,
    pub end: SimTime,
    pub error: Option<FtlError>,
}

/// Replays a CSV with a header at depth 1, until its end or the first failure.
pub fn replay(ftl: &mut dyn Ftl, csv: &str) -> Host {
    let page_bytes = ftl.device().geometry().page_bytes;
    let mut host = Host::default();
    for line in csv.lines().skip(1) {
        let (op, extent) = parse(line).unwrap_or_else(|| panic!("not a record: {line}"));
        let at = host.end;
        host.requests += 1;
        let result = match op {
            Op::Read => {
                host.reads += 1;
                ftl.read(extent, None, at)
            }
            Op::Write => {
                host.writes += 1;
                host.write_bytes += extent.len;
                host.write_pages += extent.page_count(page_bytes);
                ftl.write(extent, None, Hint::default(), at)
            }
            Op::Trim => ftl.trim(extent, at),
            Op::WriteZeroes => ftl.write_zeroes(extent, at),
            Op::Flush => ftl.flush(at),
        };
        match result {
            Ok(Token::NONE) => {}
            Ok(token) => host.end = ftl.device().completion(token).expect("serial timing knows").max(at),
            Err(error) => {
                host.error = Some(error);
                break;
            }
        }
    }
    // A failed request may leave operations behind; their time counts.
    host.end = host.end.max(ftl.device().idle_from());
    host
}
