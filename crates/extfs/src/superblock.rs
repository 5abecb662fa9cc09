//! The superblock: what shape the file system has.

use crate::ExtError;
use crate::bytes::{le16, le32, le64};

/// Where the primary superblock begins, in bytes, whatever the block size.
pub(crate) const OFFSET: u64 = 1024;
pub(crate) const BYTES: usize = 1024;
const MAGIC: u16 = 0xef53;
/// Fewest blocks of a group that mke2fs makes.
const LEAST_GROUP_BLOCKS: u32 = 256;

/// Feature words: compatible, incompatible, compatible for reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features([u32; 3]);

/// A feature: its word and its bit there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Feature(usize, u32);

impl Feature {
    pub const JOURNAL: Self = Self(0, 0x4);
    const SPARSE_SUPER2: Self = Self(0, 0x200);
    const ORPHAN_FILE: Self = Self(0, 0x1000);
    /// The whole device is the journal of another file system.
    pub const JOURNAL_DEVICE: Self = Self(1, 0x8);
    const META_BG: Self = Self(1, 0x10);
    const EXTENTS: Self = Self(1, 0x40);
    const IS_64BIT: Self = Self(1, 0x80);
    const MMP: Self = Self(1, 0x100);
    const SPARSE_SUPER: Self = Self(2, 0x1);
    const QUOTA: Self = Self(2, 0x100);
    const BIGALLOC: Self = Self(2, 0x200);
    const PROJECT: Self = Self(2, 0x2000);
    /// Group descriptors say which bitmaps and inodes were never written.
    pub const UNINIT_GROUPS: Self = Self(2, 0x10 | 0x400);
}

impl Features {
    pub(crate) const fn has(self, feature: Feature) -> bool {
        self.0[feature.0] & feature.1 != 0
    }
}

/// What of the superblock decides what blocks hold. Two that are equal describe the same layout.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Superblock {
    pub block_bytes: u32,
    pub blocks: u64,
    pub(crate) first_data_block: u32,
    pub blocks_per_group: u32,
    /// Blocks that one bit of a block bitmap stands for.
    pub(crate) cluster_blocks: u32,
    pub(crate) inodes_per_group: u32,
    pub(crate) inode_bytes: u32,
    /// Features. Whether the journal must be replayed is kept out of comparisons: see
    /// [`Superblock::needs_recovery`].
    pub features: Features,
    /// The journal was not replayed since the last mount.
    pub needs_recovery: bool,
    pub(crate) descriptor_bytes: u32,
    reserved_descriptor_blocks: u32,
    first_meta_bg: u32,
    backup_groups: [u32; 2],
    pub(crate) journal_inode: u32,
    pub(crate) quota_inodes: [u32; 3],
    pub(crate) orphan_inode: u32,
    pub(crate) mmp_block: u64,
    /// Identity of the file system.
    pub uuid: [u8; 16],
}

impl Superblock {
    /// Reads the superblock of a file system on `device_bytes` bytes. `bytes` are the 1024 from byte 1024 on.
    pub(crate) fn parse(bytes: &[u8], device_bytes: u64) -> Result<Self, ExtError> {
        let wrong = |at: u64, field, value: &dyn std::fmt::Display, expected: &str| {
            ExtError::field(OFFSET + at, field, value, expected)
        };
        if le16(bytes, 0x38) != MAGIC {
            let magic = format!("{:#06x}", le16(bytes, 0x38));
            return Err(wrong(0x38, "magic number", &magic, "0xef53, that of ext2, ext3 and ext4"));
        }
        let is_dynamic = le32(bytes, 0x4c) > 0;
        let words = if is_dynamic { [0x5c, 0x60, 0x64].map(|at| le32(bytes, at)) } else { [0; 3] };
        let features = Features([words[0], words[1] & !0x4, words[2] & !0x1_0000]);
        let shift = le32(bytes, 0x18);
        if shift > 6 {
            return Err(wrong(0x18, "block size exponent", &shift, "0 to 6 (1 to 64 KiB)"));
        }
        let block_bytes = 1024_u32 << shift;
        let high = if features.has(Feature::IS_64BIT) { u64::from(le32(bytes, 0x150)) } else { 0 };
        let blocks = high << 32 | u64::from(le32(bytes, 0x4));
        let most = device_bytes / u64::from(block_bytes);
        if blocks == 0 || blocks > most {
            let expected = format!("1 to {most}, what there is room for in {device_bytes} bytes");
            return Err(wrong(0x4, "number of blocks", &blocks, &expected));
        }
        let this = Self {
            block_bytes,
            blocks,
            first_data_block: le32(bytes, 0x14),
            blocks_per_group: le32(bytes, 0x20),
            cluster_blocks: 1,
            inodes_per_group: le32(bytes, 0x28),
            inode_bytes: if is_dynamic { u32::from(le16(bytes, 0x58)) } else { 128 },
            features,
            needs_recovery: words[1] & 0x4 != 0,
            descriptor_bytes: if features.has(Feature::IS_64BIT) {
                u32::from(le16(bytes, 0xfe)).max(64)
            } else {
                32
            },
            reserved_descriptor_blocks: u32::from(le16(bytes, 0xce)),
            first_meta_bg: if features.has(Feature::META_BG) { le32(bytes, 0x104) } else { u32::MAX },
            backup_groups: [0x24c, 0x250].map(|at| le32(bytes, at)),
            journal_inode: if features.has(Feature::JOURNAL) { le32(bytes, 0xe0) } else { 0 },
            quota_inodes: quota_inodes(bytes, features),
            orphan_inode: if features.has(Feature::ORPHAN_FILE) { le32(bytes, 0x280) } else { 0 },
            mmp_block: if features.has(Feature::MMP) { le64(bytes, 0x168) } else { 0 },
            uuid: bytes[0x68..0x78].try_into().expect("16 bytes"),
        };
        if features.has(Feature::JOURNAL_DEVICE) { Ok(this) } else { this.checked(bytes) }
    }

    fn checked(mut self, bytes: &[u8]) -> Result<Self, ExtError> {
        let wrong = |at: u64, field, value: u64, expected: String| {
            Err(ExtError::field(OFFSET + at, field, value, expected))
        };
        let bits = self.block_bytes * 8;
        if self.features.has(Feature::BIGALLOC) {
            let (shift, blocks_shift) = (le32(bytes, 0x1c), le32(bytes, 0x18));
            if shift < blocks_shift || shift > 20 {
                let expected = format!("{blocks_shift} to 20");
                return wrong(0x1c, "cluster size exponent", shift.into(), expected);
            }
            self.cluster_blocks = 1 << (shift - blocks_shift);
        }
        let first_is = u32::from(self.block_bytes == 1024 && !self.features.has(Feature::BIGALLOC));
        if self.first_data_block != first_is {
            let expected = format!("{first_is} with blocks of {} bytes", self.block_bytes);
            return wrong(0x14, "first data block", self.first_data_block.into(), expected);
        }
        let per_group = self.blocks_per_group;
        let most = u64::from(bits) * u64::from(self.cluster_blocks);
        if per_group < LEAST_GROUP_BLOCKS || u64::from(per_group) > most || !per_group.is_multiple_of(8) {
            let expected = format!("a multiple of 8 from {LEAST_GROUP_BLOCKS} to {most}");
            return wrong(0x20, "blocks of a group", per_group.into(), expected);
        }
        if self.blocks <= u64::from(self.first_data_block) {
            return wrong(0x4, "number of blocks", self.blocks, "at least 2".to_owned());
        }
        if !self.inode_bytes.is_power_of_two() || !(128..=self.block_bytes).contains(&self.inode_bytes) {
            let expected = format!("a power of two from 128 to {}", self.block_bytes);
            return wrong(0x58, "bytes of an inode", self.inode_bytes.into(), expected);
        }
        let per_block = self.block_bytes / self.inode_bytes;
        let inodes = self.inodes_per_group;
        if inodes < per_block || inodes > bits || u64::from(self.inode_table_blocks()) >= u64::from(per_group)
        {
            let expected = format!("{per_block} to {bits}, in less than a group of blocks");
            return wrong(0x28, "inodes of a group", inodes.into(), expected);
        }
        let groups = (self.blocks - u64::from(self.first_data_block)).div_ceil(per_group.into());
        let total = u64::from(le32(bytes, 0));
        if groups.checked_mul(inodes.into()) != Some(total) {
            let expected = format!("{inodes} for each of {groups} groups");
            return wrong(0, "number of inodes", total, expected);
        }
        if !self.descriptor_bytes.is_power_of_two() || self.descriptor_bytes > self.block_bytes {
            let expected = format!("a power of two from 64 to {}", self.block_bytes);
            return wrong(0xfe, "bytes of a group descriptor", self.descriptor_bytes.into(), expected);
        }
        Ok(self)
    }

    /// Groups. Their number fits 32 bits since that of inodes does.
    pub fn groups(&self) -> u32 {
        (self.blocks - u64::from(self.first_data_block)).div_ceil(u64::from(self.blocks_per_group)) as u32
    }

    pub(crate) fn group_start(&self, group: u32) -> u64 {
        u64::from(self.first_data_block) + u64::from(group) * u64::from(self.blocks_per_group)
    }

    /// One past the last block of a group.
    pub(crate) fn group_end(&self, group: u32) -> u64 {
        (self.group_start(group) + u64::from(self.blocks_per_group)).min(self.blocks)
    }

    pub(crate) fn inode_table_blocks(&self) -> u32 {
        let bytes = u64::from(self.inodes_per_group) * u64::from(self.inode_bytes);
        bytes.div_ceil(u64::from(self.block_bytes)) as u32
    }

    pub(crate) fn descriptors_per_block(&self) -> u32 {
        self.block_bytes / self.descriptor_bytes
    }

    pub(crate) fn has_super(&self, group: u32) -> bool {
        if group == 0 {
            return true;
        }
        if self.features.has(Feature::SPARSE_SUPER2) {
            return self.backup_groups.contains(&group);
        }
        let is_power = |base: u32| {
            let mut power = base;
            while power < group {
                power = power.saturating_mul(base);
            }
            power == group
        };
        group == 1 || !self.features.has(Feature::SPARSE_SUPER) || [3, 5, 7].into_iter().any(is_power)
    }

    /// The block of a group where its superblock or the first thing after that would be.
    pub(crate) fn group_head(&self, group: u32) -> u64 {
        // With clusters, 1 KiB blocks are counted from 0 although the superblock is in block 1.
        let start = self.group_start(group);
        if start == 0 && self.block_bytes == 1024 { 1 } else { start }
    }

    /// Descriptors in a group: their first block, how many blocks of them there are, and how many are
    /// reserved behind these.
    pub(crate) fn descriptors_in(&self, group: u32) -> Option<(u64, u32, u32)> {
        let has_super = self.has_super(group);
        let head = self.group_head(group) + u64::from(has_super);
        let per_block = self.descriptors_per_block();
        if group / per_block < self.first_meta_bg {
            let all = self.groups().div_ceil(per_block);
            let (count, reserved) = if self.features.has(Feature::META_BG) {
                (self.first_meta_bg.min(all), 0)
            } else {
                (all, self.reserved_descriptor_blocks)
            };
            return has_super.then_some((head, count, reserved));
        }
        let place = group % per_block;
        (place == 0 || place == 1 || place == per_block - 1).then_some((head, 1, 0))
    }

    /// Block that holds the `index`th block of primary descriptors.
    pub(crate) fn descriptor_block(&self, index: u32) -> u64 {
        if index < self.first_meta_bg {
            return self.group_head(0) + 1 + u64::from(index);
        }
        let group = index * self.descriptors_per_block();
        self.group_head(group) + u64::from(self.has_super(group))
    }

    /// What it is called by its features.
    pub fn family(&self) -> &'static str {
        if self.features.has(Feature::JOURNAL_DEVICE) {
            "journal device"
        } else if self.features.has(Feature::EXTENTS)
            || self.features.has(Feature::IS_64BIT)
            || self.features.has(Feature::UNINIT_GROUPS)
        {
            "ext4"
        } else if self.features.has(Feature::JOURNAL) {
            "ext3"
        } else {
            "ext2"
        }
    }

    /// For people: family and block size.
    pub fn summary(&self) -> String {
        format!("{}, {} blocks of {} B", self.family(), self.blocks, self.block_bytes)
    }
}

fn quota_inodes(bytes: &[u8], features: Features) -> [u32; 3] {
    let mut inodes = [0; 3];
    if features.has(Feature::QUOTA) {
        inodes[..2].copy_from_slice(&[le32(bytes, 0x240), le32(bytes, 0x244)]);
        inodes[2] = if features.has(Feature::PROJECT) { le32(bytes, 0x26c) } else { 0 };
    }
    inodes
}
