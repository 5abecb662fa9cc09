//! Whether a device fits into memory, asked before anything is allocated: an allocation that fails ends the
//! process, and one that succeeds beyond what there is ends another.

use crate::StackConfig;
use crate::keys::{ConfigError, Result};
use crate::kinds::oftl;
use nandscape_core::{OutOfBand, units};
use nandscape_object::oftl::ObjectOob;

/// Least bytes for a page: its OOB in the medium and an entry of a map.
const PAGE_BYTES: u64 = 8;
/// Least bytes more for a page below a file system: its owner.
const OWNER_BYTES: u64 = 6;
/// Least bytes for a page of a store of objects: its OOB in the medium.
const OBJECT_BYTES: u64 = size_of::<<ObjectOob as OutOfBand>::Page>() as u64;
/// Least bytes for a block: state in the medium and in the translation layer.
const BLOCK_BYTES: u64 = 48;

pub(crate) fn check(config: &StackConfig) -> Result<()> {
    let geometry = config.seen_geometry();
    let (pages, blocks) = (u64::from(geometry.pages()), u64::from(geometry.blocks()));
    let page_bytes = match config.stack.info.name {
        name if name == oftl::KIND.info.name => OBJECT_BYTES,
        _ if config.has_file_system() => PAGE_BYTES + OWNER_BYTES,
        _ => PAGE_BYTES,
    };
    let needed = pages * page_bytes + blocks * BLOCK_BYTES;
    let available = available().filter(|available| needed > *available);
    let limited = || usize::try_from(needed).map_or(true, |n| Vec::<u8>::new().try_reserve_exact(n).is_err());
    let available = match available {
        Some(bytes) => units::format_bytes(bytes),
        // A limit on the process (ulimit -v) shows only when memory is asked for; it is given back untouched.
        None if limited() => "memory of this process".to_owned(),
        None => return Ok(()),
    };
    Err(ConfigError::Memory { pages, blocks, needed: units::format_bytes(needed), available })
}

/// Memory that can be had without pushing others out, where the system says so.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let field = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    Some((field("MemAvailable:")? + field("SwapFree:").unwrap_or(0)) * 1024)
}
