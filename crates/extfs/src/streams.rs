//! Which stream each kind of block has.

use crate::kind::Kind;
use nandscape_core::Word as _;

/// Streams of the kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindStreams {
    /// `None` leaves the write the stream it came with.
    streams: [Option<u16>; Kind::WRITTEN],
}

impl KindStreams {
    /// Every write keeps the stream it came with.
    pub const NONE: Self = Self { streams: [None; Kind::WRITTEN] };

    /// The mapping of the prototype [streams-article 2.4]: journal 1, inode table 2, superblock, descriptors
    /// and bitmaps 3, directories 4; file data and what the prototype does not know keep theirs.
    pub const fn prototype() -> Self {
        let mut streams = [None; Kind::WRITTEN];
        streams[Kind::Journal as usize] = Some(1);
        streams[Kind::InodeTable as usize] = Some(2);
        streams[Kind::Superblock as usize] = Some(3);
        streams[Kind::GroupDescriptors as usize] = Some(3);
        streams[Kind::ReservedDescriptors as usize] = Some(3);
        streams[Kind::BlockBitmap as usize] = Some(3);
        streams[Kind::InodeBitmap as usize] = Some(3);
        streams[Kind::Directory as usize] = Some(4);
        Self { streams }
    }

    /// Reads `prototype`, `none`, or a list such as `journal=1,inode-table=2`. The error says what was
    /// expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "none" | "" => return Ok(Self::NONE),
            "prototype" => return Ok(Self::prototype()),
            _ => {}
        }
        let mut this = Self::NONE;
        for pair in text.split(',') {
            let names = Kind::ALL[..Kind::WRITTEN].iter().map(|kind| kind.name());
            let expected = || {
                let names: Vec<&str> = names.clone().collect();
                format!(
                    "prototype, none, or kind=stream separated by commas, kinds being {}; '{}' is none",
                    names.join(", "),
                    pair.trim()
                )
            };
            let (name, stream) = pair.split_once('=').ok_or_else(expected)?;
            let kind = Kind::of_word(name.trim()).filter(|kind| (*kind as usize) < Kind::WRITTEN);
            let stream = stream.trim().parse::<u16>().ok();
            let (Some(kind), Some(stream)) = (kind, stream) else { return Err(expected()) };
            this.streams[kind as usize] = Some(stream);
        }
        Ok(this)
    }

    /// The stream of a kind, where one was chosen.
    pub fn of(&self, kind: Kind) -> Option<u16> {
        self.streams.get(kind as usize).copied().flatten()
    }

    /// The highest stream.
    pub fn highest(&self) -> u16 {
        self.streams.iter().flatten().copied().max().unwrap_or(0)
    }
}
