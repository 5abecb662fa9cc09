//! The mapping is committed, dirty bits only at a clean removal.

use super::format;
use super::table::read_table;
use super::{Area, Found, Kind, MetadataError, Opened, Superblock, journal};
use nandscape_core::Info;

pub const KIND: Kind = Kind {
    info: Info {
        name: "periodic",
        summary: "the mapping is committed on a flush and each second, dirty bits at a clean removal only: after a loss of power all counts as dirty",
        source: "mainline Linux dm-cache",
        params: &[],
    },
    shape: |setup| journal::shape_with(setup, true),
    open,
};

fn open(superblock: &Superblock, area: &mut dyn Area) -> Result<Opened, MetadataError> {
    let mut opened = journal::open(superblock, area, false)?;
    let dirty =
        if opened.found.report.is_clean { closing(superblock, area, &mut opened.found) } else { None };
    opened.found.report.is_clean = dirty.is_some();
    for (slot, entry) in &mut opened.found.entries {
        entry.dirty = dirty.as_ref().map_or(entry.valid, |dirty| dirty[*slot as usize] & entry.valid);
    }
    for (_, entry) in &mut opened.found.uncertain {
        entry.dirty = entry.valid;
    }
    opened.found.finish(superblock.shape.block_bytes);
    Ok(opened)
}

// The dirty bits of the removal by slot, if every block of them is there.
fn closing(superblock: &Superblock, area: &mut dyn Area, found: &mut Found) -> Option<Vec<u16>> {
    let mut dirty = vec![0; superblock.shape.slots as usize];
    let mut is_current = true;
    let mut scratch = Found::default();
    let damaged = read_table(superblock, 2, area, &mut scratch, |_, sequence, slot, entry| {
        is_current &= sequence == superblock.removal;
        dirty[slot as usize] = entry.dirty;
    });
    found.report.read_bytes += scratch.report.read_bytes;
    found.report.damaged_table_blocks += scratch.report.damaged_table_blocks;
    debug_assert!(superblock.shape.per_block() == format::items(format::BLOCK));
    (damaged.is_empty() && is_current).then_some(dirty)
}
