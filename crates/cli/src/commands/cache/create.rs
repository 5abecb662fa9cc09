//! `nandscape cache create`: from flags, or from the table line of FIU's dm-cache.

use super::files::{name_of, pairs};
use crate::args::CacheCreateArgs;
use crate::console::{Console, Failure, Result};
use nandscape_cache::Mode;
use nandscape_cache::compose::Design;
use nandscape_cache::status::TableLine;
use nandscape_core::units::{format_bytes, parse_size};
use nandscape_volumes::{CacheFile, Making, Mapping};
use std::path::{Path, PathBuf};

pub fn run(args: &CacheCreateArgs, console: Console) -> Result<()> {
    if let Some(line) = &args.table {
        let line = TableLine::parse(line).map_err(|error| Failure::usage(format!("--table: {error}")))?;
        return if line.is_persistent {
            check(args, &line, console)
        } else {
            create_mapped(args, &line, console)
        };
    }
    let mut typed = pairs("--set ", &args.sets)?;
    for (key, value) in [("preset", &args.preset), ("block", &args.block), ("mode", &args.mode)] {
        if let Some(value) = value {
            typed.insert(key.to_owned(), value.clone());
        }
    }
    let design = Design::parse("cache.", &typed).map_err(Failure::usage)?;
    let fast = args.fast.as_deref().unwrap_or(Path::new(""));
    let first = args.data.as_deref().unwrap_or(fast);
    let size = size(args, std::iter::once(first).chain(args.mirror.iter().map(PathBuf::as_path)))?;
    let (_, superblock) = CacheFile::create(fast, size, &design, making(args))?;
    let slots = design.whole_slots(superblock.shape.slots);
    let preset = design.preset.info.name;
    console.note(&summary(fast, slots.into(), superblock.shape.block_bytes, preset, design.mode));
    Ok(())
}

fn making(args: &CacheCreateArgs) -> Making<'_> {
    Making { replace: args.force, is_sparse: args.sparse, data: args.data.as_deref(), mirror: &args.mirror }
}

/// The size that was typed, which a file that is to be made needs.
fn size<'a>(args: &CacheCreateArgs, mut files: impl Iterator<Item = &'a Path>) -> Result<Option<u64>> {
    let size = args.size.as_deref().map(|text| {
        let bytes = parse_size(text).ok().filter(|bytes| *bytes > 0 && bytes % 4096 == 0);
        bytes.ok_or_else(|| {
            Failure::usage(format!(
                "--size {text}: expected a multiple of 4KiB (4KiB or more), such as 1GiB or 2TiB"
            ))
        })
    });
    let size = size.transpose()?;
    let new = files.find(|file| size.is_none() && !file.try_exists().unwrap_or(true));
    if let Some(file) = new {
        let text = format!("{} is not there: expected --size SIZE to make it", file.display());
        return Err(Failure::usage(text));
    }
    Ok(size)
}

fn summary(fast: &Path, slots: u64, block_bytes: u32, preset: &str, mode: Mode) -> String {
    let block = u64::from(block_bytes);
    let (of, all) = (format_bytes(block), format_bytes(slots * block));
    format!("{}: {slots} blocks of {of} ({all}), preset {preset}, {}", fast.display(), mode.name())
}

/// A new cache, and its disk behind it.
fn create_mapped(args: &CacheCreateArgs, line: &TableLine, console: Console) -> Result<()> {
    let (keys, fast) = (pairs("--set ", &args.sets)?, Path::new(&line.cache));
    let name = name_of(args.name.as_ref(), Path::new(&line.origin))?;
    let with =
        Mapping { name: &name, bytes: size(args, std::iter::once(fast))?, keys: &keys, making: making(args) };
    let (_, superblock, design) = CacheFile::create_mapped(line, &with)?;
    let (slots, block) = (design.whole_slots(superblock.shape.slots), superblock.shape.block_bytes);
    console.note(&summary(fast, slots.into(), block, design.preset.info.name, design.mode));
    console.note(&format!("{name}: {} behind {}", format_bytes(line.sectors * 512), fast.display()));
    Ok(())
}

/// The cache is there already: the line must be its own.
fn check(args: &CacheCreateArgs, line: &TableLine, console: Console) -> Result<()> {
    let is_given = args.size.is_some() || args.name.is_some() || args.force || args.sparse;
    if is_given || !args.sets.is_empty() {
        return Err(Failure::usage(
            "--table with persist 1 takes the cache that is there: expected none of --size, --name, --set, --force and --sparse",
        ));
    }
    let (stat, volume) = CacheFile::open_mapped(line)?;
    let fast = Path::new(&line.cache);
    console.note(&summary(fast, stat.gauges.slots, stat.block_bytes, &stat.preset, stat.mode));
    let volume = &stat.volumes[volume];
    let (bytes, blocks, dirty) = (format_bytes(volume.bytes), volume.blocks, volume.dirty_blocks);
    console.note(&format!("{}: {bytes}, {blocks} blocks cached, {dirty} of them dirty", volume.name));
    if let Some(trouble) = &stat.trouble {
        console.note(trouble);
    }
    Ok(())
}
