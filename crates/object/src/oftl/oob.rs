//! What stands beside the data of a page ([formats/object.md](../../../../docs/formats/object.md)).

use nandscape_core::{OutOfBand, no_state};

/// What a page holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// Nothing that could be read.
    #[default]
    Nothing = 0,
    /// Bytes of an object.
    Data = 1,
    /// A part of the metadata of an object: its attributes, layout and differences.
    Object = 2,
    /// Places of pages of an object, where the metadata has no room for them.
    Layout = 3,
    /// Numbers of objects that were deleted.
    Deletions = 4,
    /// Records of the object index.
    Index = 5,
    /// Entries of blocks.
    Blocks = 6,
    /// The root.
    Root = 7,
}

impl PageKind {
    const fn of(byte: u8) -> Self {
        match byte {
            1 => Self::Data,
            2 => Self::Object,
            3 => Self::Layout,
            4 => Self::Deletions,
            5 => Self::Index,
            6 => Self::Blocks,
            7 => Self::Root,
            _ => Self::Nothing,
        }
    }
}

/// The back pointer of a page, with what tells complete writes from others [thesis A.4.1].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectOob {
    /// What the page holds.
    pub kind: PageKind,
    /// The page was moved: it belongs to no write.
    pub is_copy: bool,
    /// Pages of the write, on the last page of it; else 0.
    pub tcnt: u32,
    /// The write that the data came with; a copy has that of its source.
    pub version: u64,
    /// Which object.
    pub object: u64,
    /// Which of its logical pages, or which part of its metadata.
    pub offset: u32,
    /// Bytes of the page that count.
    pub len: u32,
    /// The write that the page belongs to; of a copy, the last one before it.
    pub tid: u64,
}

/// What a medium without bytes keeps of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackPointer {
    object: u64,
    offset: u32,
    kind: PageKind,
    is_programmed: bool,
}

no_state!(impl [] BackPointer: "a store of objects (oftl)");

impl OutOfBand for ObjectOob {
    type Page = BackPointer;
    type Block = ();

    const BYTES: usize = 40;
    const ERASED: BackPointer =
        BackPointer { object: 0, offset: 0, kind: PageKind::Nothing, is_programmed: false };
    const TORN: Self = Self {
        kind: PageKind::Nothing,
        is_copy: false,
        tcnt: 0,
        version: 0,
        object: 0,
        offset: 0,
        len: 0,
        tid: 0,
    };

    #[inline]
    fn is_erased(page: &BackPointer) -> bool {
        !page.is_programmed
    }

    #[inline]
    fn split(&self) -> (BackPointer, ()) {
        let Self { object, offset, kind, .. } = *self;
        (BackPointer { object, offset, kind, is_programmed: true }, ())
    }

    #[inline]
    fn joined(page: BackPointer, (): ()) -> Self {
        Self { kind: page.kind, object: page.object, offset: page.offset, ..Self::TORN }
    }

    fn encode(&self, bytes: &mut [u8]) {
        bytes[0] = self.kind as u8;
        bytes[1] = u8::from(self.is_copy);
        bytes[2..4].fill(0);
        bytes[4..8].copy_from_slice(&self.tcnt.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.version.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.object.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.offset.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.len.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.tid.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Self {
        let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        Self {
            kind: PageKind::of(bytes[0]),
            is_copy: bytes[1] & 1 != 0,
            tcnt: half(4),
            version: word(8),
            object: word(16),
            offset: half(24),
            len: half(28),
            tid: word(32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_as_documented() {
        let oob = ObjectOob {
            kind: PageKind::Data,
            is_copy: true,
            tcnt: 0x0403_0201,
            version: 0x1122_3344_5566_7788,
            object: 7,
            offset: 9,
            len: 4096,
            tid: 0x0102_0304_0506_0708,
        };
        let mut bytes = [0xff; ObjectOob::BYTES];
        oob.encode(&mut bytes);
        let expected = [
            1, 1, 0, 0, 1, 2, 3, 4, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 7, 0, 0, 0, 0, 0, 0, 0,
            9, 0, 0, 0, 0, 16, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1,
        ];
        assert_eq!(bytes, expected);
        assert_eq!(ObjectOob::decode(&bytes), oob);
        for kind in 0..=8 {
            let kind = PageKind::of(kind);
            let oob = ObjectOob { kind, ..oob };
            oob.encode(&mut bytes);
            assert_eq!(ObjectOob::decode(&bytes), oob);
        }
        assert!(ObjectOob::is_erased(&ObjectOob::ERASED) && !ObjectOob::is_erased(&oob.split().0));
    }
}
