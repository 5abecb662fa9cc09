//! `nandscape fs`: look into file systems.

use crate::args::FsVerb;
use crate::console::{Console, Failure, Result};
use nandscape_core::units;
use nandscape_extfs::{FileSystemMap, KindTotal, classify};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

pub fn run(verb: &FsVerb, console: Console) -> Result<()> {
    match verb {
        FsVerb::Classify { image, offset, ranges, json } => {
            let map = map_of(image, units::parse_size(offset).map_err(Failure::usage)?)?;
            for note in &map.notes {
                console.note(&format!("{}: {note}", image.display()));
            }
            if *json { console.json(&document(&map)) } else { console.result(&table(&map, *ranges)) }
        }
    }
}

fn map_of(path: &Path, offset: u64) -> Result<FileSystemMap> {
    let failed = |error: &dyn std::fmt::Display| Failure::run(format!("{}: {error}", path.display()));
    let mut file = File::open(path).map_err(|e| failed(&e))?;
    // Also of a block device, whose metadata say nothing.
    let size = file.seek(SeekFrom::End(0)).map_err(|e| failed(&e))?;
    if offset >= size {
        let path = path.display();
        return Err(Failure::usage(format!(
            "--offset {offset}: expected less than the {size} bytes of {path}"
        )));
    }
    let mut read = |at: u64, out: &mut [u8]| {
        let place = offset.checked_add(at).ok_or_else(|| "beyond what can be addressed".to_owned())?;
        file.read_exact_at(out, place).map_err(|e| e.to_string())
    };
    classify(size - offset, &mut read).map_err(|e| failed(&e))
}

fn table(map: &FileSystemMap, with_ranges: bool) -> String {
    let shape = &map.superblock;
    let bytes = u64::from(shape.block_bytes);
    let mut text = format!(
        "{}\n{} inodes in use, {} of them directories; {} groups of {} blocks\n\n{:<20} {:>12} {:>12} {:>8} {:>8}\n",
        shape.summary(),
        map.inodes,
        map.directories,
        shape.groups(),
        shape.blocks_per_group,
        "kind",
        "blocks",
        "size",
        "share",
        "runs"
    );
    for KindTotal { kind, blocks, runs } in map.totals.iter().filter(|total| total.blocks > 0) {
        let share = 100.0 * *blocks as f64 / shape.blocks as f64;
        let size = units::format_bytes(blocks * bytes);
        let _ = writeln!(text, "{kind:<20} {blocks:>12} {size:>12} {share:>7.2}% {runs:>8}");
    }
    if with_ranges {
        let _ = writeln!(text, "\n{:>12} {:>12}  kind", "first", "last");
        for run in &map.runs {
            let _ = writeln!(text, "{:>12} {:>12}  {}", run.block, run.block + run.count - 1, run.kind);
        }
    }
    text
}

fn document(map: &FileSystemMap) -> Value {
    let shape = &map.superblock;
    let uuid = format!("{:032x}", u128::from_be_bytes(shape.uuid));
    json!({
        "schema": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "file_system": shape.family(),
        "uuid": uuid,
        "block_bytes": shape.block_bytes,
        "blocks": shape.blocks,
        "blocks_per_group": shape.blocks_per_group,
        "groups": shape.groups(),
        "inodes": map.inodes,
        "directories": map.directories,
        "needs_recovery": shape.needs_recovery,
        "notes": map.notes,
        "kinds": map.totals,
        "runs": map.runs,
    })
}
