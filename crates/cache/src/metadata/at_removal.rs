//! Written only when the cache is removed.

use super::table::{read_table, whole_table};
use super::{
    Area, Found, Kind, Metadata, MetadataError, Opened, Setup, Shape, Superblock, Survives, Table, Write,
};
use super::{clean, running, written};
use nandscape_core::Info;

pub const KIND: Kind = Kind {
    info: Info {
        name: "at-removal",
        summary: "the table is written when the cache is removed and at no other time: a loss of power loses all, dirty blocks too",
        source: "FIU dm-cache; [cache-article dm-cache]",
        params: &[],
    },
    shape,
    open,
};

#[derive(Debug)]
struct AtRemoval {
    superblock: Superblock,
}

fn shape(setup: &Setup) -> Result<Shape, MetadataError> {
    let block_bytes = setup.block_bytes;
    Shape::fit(setup, |slots| Shape {
        block_bytes,
        slots,
        unit: 4096,
        tables: 1,
        ring: 0,
        has_closing: false,
    })
}

fn open(superblock: &Superblock, area: &mut dyn Area) -> Result<Opened, MetadataError> {
    superblock.shape.check_one_table()?;
    let mut found = Found::default();
    found.report.is_clean = superblock.is_clean;
    if superblock.is_clean {
        found.entries.reserve_exact(superblock.shape.slots as usize);
        read_table(superblock, 0, area, &mut found, |found, sequence, slot, entry| {
            // A block of an earlier removal says nothing of this one.
            if sequence == superblock.removal {
                found.entries.push((slot, entry));
            }
        });
    }
    found.finish(superblock.shape.block_bytes);
    let superblock = running(superblock, 0);
    let repairs = vec![written(&superblock)];
    Ok(Opened { metadata: Box::new(AtRemoval { superblock }), superblock: None, found, repairs })
}

impl Metadata for AtRemoval {
    fn slots(&self) -> u32 {
        self.superblock.shape.slots
    }

    fn data_offset(&self, slot: u32) -> u64 {
        self.superblock.shape.slot_offset(slot)
    }

    fn is_in_place(&self) -> bool {
        true
    }

    fn survives(&self) -> Survives {
        Survives::Nothing
    }

    fn superblock(&mut self) -> Option<&mut Superblock> {
        Some(&mut self.superblock)
    }

    fn close(&mut self, table: &dyn Table, out: &mut Vec<Write>) {
        let superblock = clean(&self.superblock, 0);
        whole_table(&superblock, 0, table, out);
        out.push(written(&superblock));
        self.superblock = superblock;
    }
}
