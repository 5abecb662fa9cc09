//! What simulations and advice have in common: the workload, the block, sizes.

use crate::args::UnitArgs;
use crate::commands::open_options;
use crate::console::{Failure, Result};
use nandscape_core::units;
use nandscape_experiments::miss_ratio::CacheSize;
use nandscape_trace::{BoxReader, Target};
use std::path::Path;

/// Block where neither the user nor a design says one.
pub(super) const BLOCK_BYTES: u64 = 4096;
/// Most blocks of a simulated cache.
const BLOCKS_MAX: u64 = 1 << 30;

pub(super) fn block(args: &UnitArgs) -> Result<Option<u64>> {
    let Some(text) = &args.block else { return Ok(None) };
    match units::parse_size(text).map_err(|error| Failure::usage(format!("--block {error}")))? {
        bytes if bytes.is_power_of_two() && (512..=1 << 30).contains(&bytes) => Ok(Some(bytes)),
        bytes => {
            Err(Failure::usage(format!("--block {bytes}: expected a power of two from 512 bytes to 1 GiB")))
        }
    }
}

pub(super) fn open(workload: &str, args: &UnitArgs) -> Result<BoxReader> {
    if Path::new(workload).extension().is_some_and(|e| e == "fio") {
        return Err(Failure::usage(format!(
            "workload '{workload}': which requests a job file makes depends on the device; expected a trace or a generator"
        )));
    }
    let capacity =
        units::parse_size(&args.capacity).map_err(|error| Failure::usage(format!("--capacity {error}")))?;
    let options = open_options(&args.reading, args.seed)?;
    let target = Target { capacity_bytes: capacity, page_bytes: BLOCK_BYTES, ..Target::NONE };
    Ok(nandscape_trace::open(workload, &options, target)?)
}

/// A size in bytes (`64MiB`), in blocks (`10000b`) or as a share of the workload's blocks (`10%`, `0.1`);
/// `block` is `None` where every request is one object.
pub(super) fn size(text: &str, block: Option<u64>) -> Result<CacheSize> {
    let wrong = |expected: &str| Failure::usage(format!("--size '{}': expected {expected}", text.trim()));
    if let Some(share) = units::share_for_size(text) {
        let share = share.ok().filter(|share| *share > 0.0);
        return Ok(CacheSize::Share(
            share.ok_or_else(|| wrong("a share above 0 and up to 100% such as 10%"))?,
        ));
    }
    let in_blocks = text.trim().strip_suffix('b').filter(|n| n.bytes().all(|c| c.is_ascii_digit()));
    let blocks = match (in_blocks, block) {
        (Some(count), _) => count.parse().unwrap_or(u64::MAX),
        (None, None) => {
            return Err(wrong(
                "a count of objects such as 10000b or a share such as 10%, since with --objects none has a size",
            ));
        }
        (None, Some(block)) => {
            let bytes = units::parse_size(text).map_err(|_| {
                wrong("bytes such as 64MiB, blocks such as 10000b, or a share of the workload such as 10%")
            })?;
            if !bytes.is_multiple_of(block) {
                return Err(wrong(&format!(
                    "a multiple of the block of {}, or a number of blocks such as {}b",
                    units::format_bytes(block),
                    bytes.div_ceil(block).max(1)
                )));
            }
            bytes / block
        }
    };
    match u32::try_from(blocks) {
        Ok(slots) if slots > 0 && blocks <= BLOCKS_MAX => Ok(CacheSize::Blocks(slots)),
        _ => Err(wrong(&format!("1 to {BLOCKS_MAX} blocks"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_blocks_or_shares() {
        assert_eq!(size("64MiB", Some(4096)).unwrap(), CacheSize::Blocks(16_384));
        assert_eq!(size(" 10000b", Some(4096)).unwrap(), CacheSize::Blocks(10_000));
        assert_eq!(size("7b", None).unwrap(), CacheSize::Blocks(7));
        for text in ["10%", "0.1", " 10 %"] {
            assert_eq!(size(text, Some(4096)).unwrap(), CacheSize::Share(0.1), "{text}");
        }
        assert_eq!(CacheSize::Share(0.1).blocks(1234), 123);
        assert_eq!(CacheSize::Share(0.001).blocks(1), 1);
        for (text, block, expected) in [
            ("10000", Some(4096), "a multiple of the block of 4 KiB, or a number of blocks such as 3b"),
            ("0", Some(4096), "1 to 1073741824 blocks"),
            ("0b", Some(4096), "1 to"),
            ("99999999999999999999999b", Some(4096), "1 to"),
            ("b", Some(4096), "1 to"),
            ("10TiB", Some(4096), "1 to"),
            ("1MiB", None, "a count of objects"),
            ("-4k", Some(4096), "bytes such as 64MiB"),
            ("", Some(4096), "bytes such as 64MiB"),
            ("101%", Some(4096), "a share above 0"),
            ("0%", Some(4096), "a share above 0"),
            ("1.5", Some(4096), "a share above 0"),
        ] {
            let Err(Failure::Usage(message)) = size(text, block) else { panic!("'{text}' is accepted") };
            assert!(message.contains(expected), "'{text}': {message}");
        }
    }
}
