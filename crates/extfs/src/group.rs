//! Group descriptors: where bitmaps and inode tables are, and from them the part of the layout that no inode
//! decides.

use crate::bytes::{le16, le32};
use crate::kind::Kind;
use crate::superblock::{Feature, Superblock};
use crate::{ExtError, ReadAt};
use nandscape_core::ranges::Ranges;

/// What a descriptor says. A block number of 0 is unknown: the descriptor was damaged or not yet written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) block_bitmap: u64,
    pub(crate) inode_bitmap: u64,
    pub(crate) inode_table: u64,
    /// Its inode bitmap and table were never written.
    pub(crate) has_no_inodes: bool,
    /// Its block bitmap was never written.
    pub(crate) has_no_bitmap: bool,
}

impl Group {
    /// Reads a descriptor. Places outside the file system become 0.
    pub(crate) fn parse(bytes: &[u8], shape: &Superblock) -> Self {
        let high = |at| if shape.descriptor_bytes >= 64 { u64::from(le32(bytes, at)) << 32 } else { 0 };
        let place = |low, at, blocks: u64| {
            let block = high(at) | u64::from(le32(bytes, low));
            let is_inside = block > 0 && block.checked_add(blocks).is_some_and(|end| end <= shape.blocks);
            if is_inside { block } else { 0 }
        };
        let flags = if shape.features.has(Feature::UNINIT_GROUPS) { le16(bytes, 0x12) } else { 0 };
        Self {
            block_bitmap: place(0x0, 0x20, 1),
            inode_bitmap: place(0x4, 0x24, 1),
            inode_table: place(0x8, 0x28, shape.inode_table_blocks().into()),
            has_no_inodes: flags & 1 != 0,
            has_no_bitmap: flags & 2 != 0,
        }
    }

    /// Whether bitmaps and table are where they are in another descriptor.
    pub(crate) fn is_placed_as(&self, other: &Self) -> bool {
        (self.block_bitmap, self.inode_bitmap, self.inode_table)
            == (other.block_bitmap, other.inode_bitmap, other.inode_table)
    }
}

/// Reads all descriptors. A block of them that cannot be read is an error for an image, and unknown groups
/// for a device in use (`is_strict`).
pub(crate) fn read_groups(
    shape: &Superblock,
    read: &mut ReadAt<'_>,
    is_strict: bool,
) -> Result<Vec<Group>, ExtError> {
    let mut groups = vec![Group::default(); shape.groups() as usize];
    let mut block = vec![0; shape.block_bytes as usize];
    for (index, chunk) in groups.chunks_mut(shape.descriptors_per_block() as usize).enumerate() {
        let at = shape.descriptor_block(index as u32);
        let offset = at * u64::from(shape.block_bytes);
        if at >= shape.blocks {
            if is_strict {
                let expected = format!("below {}, the blocks there are", shape.blocks);
                return Err(ExtError::field(offset, "block of group descriptors", at, expected));
            }
            continue;
        }
        match read(offset, &mut block) {
            Ok(()) => {}
            Err(message) if is_strict => return Err(ExtError::read(offset, &message)),
            Err(_) => continue,
        }
        for (group, bytes) in chunk.iter_mut().zip(block.chunks(shape.descriptor_bytes as usize)) {
            *group = Group::parse(bytes, shape);
        }
    }
    Ok(groups)
}

/// Kinds of the blocks whose place superblock and descriptors fix.
pub(crate) fn fixed_layout(shape: &Superblock, groups: &[Group]) -> Ranges<Kind> {
    let mut fixed = Ranges::default();
    let mut fill = |from: u64, count: u64, kind| {
        fixed.fill(from.min(shape.blocks), from.saturating_add(count).min(shape.blocks), kind);
    };
    fill(0, u64::from(shape.first_data_block), Kind::Boot);
    if shape.first_data_block == 0 && shape.block_bytes == 1024 {
        fill(0, 1, Kind::Boot);
    }
    for number in 0..groups.len() as u32 {
        if let Some(block) = shape.has_super(number).then(|| shape.group_head(number)) {
            fill(block, 1, Kind::Superblock);
        }
        if let Some((first, count, reserved)) = shape.descriptors_in(number) {
            fill(first, count.into(), Kind::GroupDescriptors);
            fill(first + u64::from(count), reserved.into(), Kind::ReservedDescriptors);
        }
    }
    for group in groups {
        for (block, count, kind) in [
            (group.block_bitmap, 1, Kind::BlockBitmap),
            (group.inode_bitmap, 1, Kind::InodeBitmap),
            (group.inode_table, shape.inode_table_blocks(), Kind::InodeTable),
        ] {
            if block > 0 {
                fill(block, count.into(), kind);
            }
        }
    }
    if shape.mmp_block > 0 {
        fill(shape.mmp_block, 1, Kind::Mmp);
    }
    fixed
}
