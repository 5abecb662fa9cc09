//! Nothing is kept.

use super::{
    Area, Found, Kind, Metadata, MetadataError, Opened, Setup, Shape, Superblock, Survives, Table, Write,
};
use nandscape_core::Info;

pub const KIND: Kind = Kind {
    info: Info {
        name: "none",
        summary: "nothing is kept: the cache is empty after every start, and must not be dirty",
        source: "RapidCache; [cache-article rapiddisk]",
        params: &[],
    },
    shape,
    open,
};

#[derive(Debug)]
struct Nothing {
    shape: Shape,
}

fn shape(setup: &Setup) -> Result<Shape, MetadataError> {
    let block_bytes = setup.block_bytes;
    Shape::fit(setup, |slots| Shape {
        block_bytes,
        slots,
        unit: 4096,
        tables: 0,
        ring: 0,
        has_closing: false,
    })
}

fn open(superblock: &Superblock, _: &mut dyn Area) -> Result<Opened, MetadataError> {
    if superblock.shape.tables != 0 {
        return Err(MetadataError::Superblock("a table where none is kept".to_owned()));
    }
    let metadata = Box::new(Nothing { shape: superblock.shape });
    Ok(Opened { metadata, superblock: None, found: Found::default(), repairs: Vec::new() })
}

impl Metadata for Nothing {
    fn slots(&self) -> u32 {
        self.shape.slots
    }

    fn data_offset(&self, slot: u32) -> u64 {
        self.shape.slot_offset(slot)
    }

    fn is_in_place(&self) -> bool {
        true
    }

    fn survives(&self) -> Survives {
        Survives::Nothing
    }

    fn close(&mut self, _: &dyn Table, _: &mut Vec<Write>) {}
}
