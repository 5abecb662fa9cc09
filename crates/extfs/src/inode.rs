//! Inodes: whose blocks are worth knowing, and where their maps begin.

use crate::bytes::{le16, le32};
use crate::kind::Kind;
use crate::superblock::Superblock;

/// Bytes of the root of an inode's block map.
pub(crate) const ROOT_BYTES: usize = 60;
/// Least bytes of an inode; what is further back says nothing about blocks.
const LEAST_BYTES: usize = 128;
const RESIZE_INODE: u32 = 7;
const JOURNAL_INODE: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inode {
    mode: u16,
    flags: u32,
    links: u16,
    size: u64,
    /// Block of extended attributes; 0 for none.
    pub(crate) xattr_block: u64,
    /// Root of the extent tree, or block pointers, or something else.
    pub(crate) root: [u8; ROOT_BYTES],
}

impl Inode {
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..LEAST_BYTES)?;
        Some(Self {
            mode: le16(bytes, 0),
            flags: le32(bytes, 0x20),
            links: le16(bytes, 0x1a),
            size: u64::from(le32(bytes, 0x6c)) << 32 | u64::from(le32(bytes, 0x4)),
            xattr_block: u64::from(le16(bytes, 0x76)) << 32 | u64::from(le32(bytes, 0x68)),
            root: bytes[0x28..0x28 + ROOT_BYTES].try_into().expect("60 bytes"),
        })
    }

    /// Whether anything refers to it.
    pub(crate) fn is_used(&self) -> bool {
        self.links > 0 && self.mode != 0
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.mode & 0xf000 == 0x4000
    }

    pub(crate) fn has_extents(&self) -> bool {
        self.flags & 0x8_0000 != 0
    }

    /// Whether the root is a map of blocks at all: not so for small files and directories inside the inode,
    /// short links, devices.
    pub(crate) fn has_map(&self) -> bool {
        if self.flags & 0x1000_0000 != 0 {
            return false;
        }
        match self.mode & 0xf000 {
            0x4000 | 0x8000 => true,
            0xa000 => self.has_extents() || self.size >= ROOT_BYTES as u64,
            _ => false,
        }
    }

    pub(crate) fn kind(&self, number: u32, shape: &Superblock) -> Kind {
        if number == shape.journal_inode || number == JOURNAL_INODE {
            Kind::Journal
        } else if number == RESIZE_INODE {
            Kind::ReservedDescriptors
        } else if shape.quota_inodes.contains(&number) {
            Kind::Quota
        } else if number == shape.orphan_inode {
            Kind::OrphanFile
        } else if self.flags & 0x20_0000 != 0 {
            Kind::Xattr
        } else if self.is_directory() {
            Kind::Directory
        } else {
            Kind::Data
        }
    }

    /// Differs whenever what is said here about blocks does (in one of 2^64 cases not).
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut mix = |word: u64| {
            hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
        };
        mix(u64::from(self.mode) << 32 | u64::from(self.flags));
        mix(u64::from(self.is_used()));
        mix(self.xattr_block);
        for word in self.root.chunks_exact(4) {
            mix(u64::from(le32(word, 0)));
        }
        hash
    }
}
