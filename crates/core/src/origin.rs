//! Who issued a request and what it holds, as far as the workload knows.

use crate::words;
use serde::Serialize;

/// What a written block holds, as the file system that writes it knows (the kinds of ext4,
/// [streams-article 2.1]). What nothing is known about counts as file data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
#[expect(missing_docs, reason = "the names say it")]
pub enum BlockKind {
    #[default]
    FileData,
    Superblock,
    GroupDescriptors,
    BlockBitmap,
    InodeBitmap,
    InodeTable,
    Directory,
    Journal,
}

/// The four classes of metadata that get hints or streams of their own [streams-article 2.1].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum MetadataClass {
    Journal,
    Inode,
    Directory,
    /// Superblock, group descriptors and both bitmaps.
    Misc,
}

words! { pub BlockKind:
    FileData = "file-data", Superblock = "superblock", GroupDescriptors = "group-descriptors",
    BlockBitmap = "block-bitmap", InodeBitmap = "inode-bitmap", InodeTable = "inode-table",
    Directory = "directory", Journal = "journal",
}

impl BlockKind {
    /// Class of metadata; `None` for file data.
    pub const fn metadata_class(self) -> Option<MetadataClass> {
        match self {
            Self::FileData => None,
            Self::Journal => Some(MetadataClass::Journal),
            Self::InodeTable => Some(MetadataClass::Inode),
            Self::Directory => Some(MetadataClass::Directory),
            Self::Superblock | Self::GroupDescriptors | Self::BlockBitmap | Self::InodeBitmap => {
                Some(MetadataClass::Misc)
            }
        }
    }

    /// Whether the kernel's file system wrote it for itself.
    pub const fn is_metadata(self) -> bool {
        self.metadata_class().is_some()
    }
}

impl MetadataClass {
    /// Every class, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Journal, Self::Inode, Self::Directory, Self::Misc];
}

/// Who issued a request. The default says nothing: block traces know neither files nor writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin<'a> {
    /// What the blocks hold.
    pub kind: BlockKind,
    /// Number of the file's life; 0 where there is no file. A deleted and newly made file has a new number.
    pub file: u32,
    /// Path of the file, if it is known.
    pub path: Option<&'a str>,
    /// Process that wrote the data; 0 where it is unknown or the kernel.
    pub writer: u32,
    /// Volume of the workload, where several were laid side by side in one address space.
    pub volume: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_eight_kinds_fall_into_file_data_and_four_classes() {
        let class_of = BlockKind::ALL.map(BlockKind::metadata_class);
        assert_eq!(class_of.iter().filter(|class| class.is_none()).count(), 1);
        for (class, kinds) in MetadataClass::ALL.iter().zip([1, 1, 1, 4]) {
            assert_eq!(class_of.iter().filter(|of| **of == Some(*class)).count(), kinds, "{class:?}");
        }
        for (number, kind) in BlockKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, number);
        }
    }
}
