//! What a block of ext2, ext3 or ext4 holds.

use nandscape_core::{BlockKind, words};
use serde::Serialize;

/// What a block holds. The first eight are the kinds that hints and streams know [streams-article 2.1], the
/// others what ext4 has beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    /// Data of files, symbolic links included; while writes are watched, also everything about which nothing
    /// is known.
    #[default]
    Data,
    /// Superblock or a copy of it.
    Superblock,
    /// Group descriptors or a copy of them.
    GroupDescriptors,
    BlockBitmap,
    InodeBitmap,
    InodeTable,
    /// Entries or index of a directory.
    Directory,
    Journal,
    /// Nodes of extent trees and indirect blocks.
    Mapping,
    /// Extended attributes outside the inode.
    Xattr,
    /// Room left for group descriptors when the file system grows.
    ReservedDescriptors,
    Quota,
    /// List of files deleted while open.
    OrphanFile,
    /// Protection against two mounts.
    Mmp,
    /// Before the file system: the boot block where blocks have 1 KiB.
    Boot,
    /// Nothing, as the block bitmap says.
    Free,
    /// In use, as the block bitmap says, but no inode has it.
    Unknown,
}

words! { pub Kind:
    Data = "data", Superblock = "superblock", GroupDescriptors = "group-descriptors",
    BlockBitmap = "block-bitmap", InodeBitmap = "inode-bitmap", InodeTable = "inode-table",
    Directory = "directory", Journal = "journal", Mapping = "mapping", Xattr = "xattr",
    ReservedDescriptors = "reserved-descriptors", Quota = "quota", OrphanFile = "orphan-file",
    Mmp = "mmp", Boot = "boot", Free = "free", Unknown = "unknown",
}

impl Kind {
    /// The kinds that a write can have, in the order of their numbers. With blocks of 1 KiB the boot block is
    /// one of its own.
    pub const WRITTEN: usize = 15;

    /// The kind as hints know it. Blocks to which the sources give no hint count as file data.
    pub const fn block_kind(self) -> BlockKind {
        match self {
            Self::Superblock => BlockKind::Superblock,
            Self::GroupDescriptors | Self::ReservedDescriptors => BlockKind::GroupDescriptors,
            Self::BlockBitmap => BlockKind::BlockBitmap,
            Self::InodeBitmap => BlockKind::InodeBitmap,
            Self::InodeTable => BlockKind::InodeTable,
            Self::Directory => BlockKind::Directory,
            Self::Journal => BlockKind::Journal,
            _ => BlockKind::FileData,
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
