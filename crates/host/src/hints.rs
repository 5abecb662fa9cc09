//! How a program says what it knows about the lifetime of its data, and which hint a write ends up with.
//!
//! Two call shapes [streams-article 1.3.2]: `fcntl` with the kernel's read-write hint commands, for a file or
//! for one open handle of it, and `fadvise` with a numeric stream id, the shape fio uses for
//! `fadvise_stream`. Different handles of a file may carry different hints. A write takes the hint of its
//! buffer (here: of its handle) if that is set, else that of the inode [streams-article 2.5].

use std::collections::BTreeMap;

/// Lifetime of written data as Linux has it [streams-article 2.2].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum WriteHint {
    /// Nothing was said.
    #[default]
    NotSet = 0,
    /// Said: nothing is known.
    None = 1,
    /// Short-lived.
    Short = 2,
    /// Between short and long.
    Medium = 3,
    /// Long-lived.
    Long = 4,
    /// As good as never rewritten.
    Extreme = 5,
}

impl WriteHint {
    /// Every hint, in the order of the numbers.
    pub const ALL: [Self; 6] =
        [Self::NotSet, Self::None, Self::Short, Self::Medium, Self::Long, Self::Extreme];

    /// The hint of a number.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// The stream that the Linux driver sends: the hint less one, none for `NotSet` and `None`
    /// [streams-article 2.7].
    pub const fn stream(self) -> Option<u16> {
        match self {
            Self::NotSet | Self::None => None,
            set => Some(set as u16 - 1),
        }
    }
}

/// `fcntl` command: hint of the inode.
pub const F_GET_RW_HINT: u32 = 1035;
/// `fcntl` command: hint of the inode.
pub const F_SET_RW_HINT: u32 = 1036;
/// `fcntl` command: hint of one open handle.
pub const F_GET_FILE_RW_HINT: u32 = 1037;
/// `fcntl` command: hint of one open handle.
pub const F_SET_FILE_RW_HINT: u32 = 1038;
/// `fadvise` advice: the length is a stream id.
pub const FADV_STREAMID: u32 = 8;
/// Highest of the ordinary `fadvise` advices, which have no effect here.
const FADV_ORDINARY_MAX: u32 = 5;

/// One open handle of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// The file (inode).
    pub file: u32,
    /// The handle; unique among all files.
    pub handle: u64,
}

/// What a write carries to the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// A lifetime; the device driver chooses a stream.
    Lifetime(WriteHint),
    /// A stream by number, as the program chose it.
    Stream(u16),
}

/// A hint call that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say it")]
pub enum HintError {
    #[error(
        "fcntl command {0}: expected 1035 to 1038 (get or set the read-write hint of an inode or a handle)"
    )]
    Command(u32),
    #[error("write hint {0}: expected 0 (not set), 1 (none), 2 (short), 3 (medium), 4 (long) or 5 (extreme)")]
    Hint(u64),
    #[error("fadvise advice {0}: expected 0 to 5, or 8 for a stream id")]
    Advice(u32),
    #[error("stream id {0}: expected 1 to 65535, or 0 to take it back")]
    Stream(u64),
}

/// Hints of files and handles.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    inodes: BTreeMap<u32, WriteHint>,
    handles: BTreeMap<u64, WriteHint>,
    streams: BTreeMap<u64, u16>,
}

impl Hints {
    /// No hint anywhere.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets or asks a hint. Gives the hint that is in force for what the command addresses. The kernel wants
    /// 64 bits, but programs pass 32-bit enums, so only the low 32 bits count.
    pub fn fcntl(&mut self, open: OpenFile, command: u32, argument: u64) -> Result<WriteHint, HintError> {
        let low = argument & u64::from(u32::MAX);
        let hint = || WriteHint::from_number(low).ok_or(HintError::Hint(low));
        match command {
            F_SET_RW_HINT => {
                self.inodes.insert(open.file, hint()?);
            }
            F_SET_FILE_RW_HINT => {
                self.handles.insert(open.handle, hint()?);
            }
            F_GET_RW_HINT | F_GET_FILE_RW_HINT => {}
            other => return Err(HintError::Command(other)),
        }
        Ok(match command {
            F_GET_RW_HINT | F_SET_RW_HINT => self.inode(open.file),
            _ => self.handles.get(&open.handle).copied().unwrap_or_default(),
        })
    }

    /// Advice about a handle. `FADV_STREAMID` takes its stream id from `len`, as fio passes it; ordinary
    /// advices change nothing.
    pub fn fadvise(&mut self, open: OpenFile, len: u64, advice: u32) -> Result<(), HintError> {
        match advice {
            0..=FADV_ORDINARY_MAX => Ok(()),
            FADV_STREAMID => {
                let stream = u16::try_from(len).map_err(|_| HintError::Stream(len))?;
                if stream == 0 {
                    self.streams.remove(&open.handle);
                } else {
                    self.streams.insert(open.handle, stream);
                }
                Ok(())
            }
            other => Err(HintError::Advice(other)),
        }
    }

    /// The hint of an inode.
    pub fn inode(&self, file: u32) -> WriteHint {
        self.inodes.get(&file).copied().unwrap_or_default()
    }

    /// What a write through a handle carries: a stream id of its own, else the handle's hint if set, else the
    /// inode's.
    pub fn of_write(&self, open: OpenFile) -> Advice {
        if let Some(&stream) = self.streams.get(&open.handle) {
            return Advice::Stream(stream);
        }
        let buffer = self.handles.get(&open.handle).copied().unwrap_or_default();
        Advice::Lifetime(of_data(buffer, self.inode(open.file)))
    }

    /// The last link to a file is gone.
    pub fn forget_file(&mut self, file: u32) {
        self.inodes.remove(&file);
    }

    /// A handle is closed.
    pub fn forget_handle(&mut self, handle: u64) {
        self.handles.remove(&handle);
        self.streams.remove(&handle);
    }
}

/// The hint of a data write: the buffer's if it is set, else the inode's [streams-article 2.5].
pub fn of_data(buffer: WriteHint, inode: WriteHint) -> WriteHint {
    if buffer == WriteHint::NotSet { inode } else { buffer }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: OpenFile = OpenFile { file: 1, handle: 10 };
    const B: OpenFile = OpenFile { file: 1, handle: 11 };

    #[test]
    fn the_buffer_hint_wins_over_the_inode_hint_where_it_is_set() {
        for inode in WriteHint::ALL {
            assert_eq!(of_data(WriteHint::NotSet, inode), inode);
            for buffer in &WriteHint::ALL[1..] {
                assert_eq!(of_data(*buffer, inode), *buffer);
            }
        }
    }

    #[test]
    fn two_writers_of_one_file_may_carry_different_hints_and_stream_ids() {
        let mut hints = Hints::new();
        assert_eq!(hints.fcntl(A, F_SET_RW_HINT, 4), Ok(WriteHint::Long));
        assert_eq!(hints.fcntl(A, F_SET_FILE_RW_HINT, 2), Ok(WriteHint::Short));
        assert_eq!(hints.of_write(A), Advice::Lifetime(WriteHint::Short));
        assert_eq!(hints.of_write(B), Advice::Lifetime(WriteHint::Long));
        hints.fadvise(B, 7, FADV_STREAMID).unwrap();
        assert_eq!(
            (hints.of_write(A), hints.of_write(B)),
            (Advice::Lifetime(WriteHint::Short), Advice::Stream(7))
        );
        hints.forget_handle(11);
        hints.forget_file(1);
        assert_eq!(hints.of_write(B), Advice::Lifetime(WriteHint::NotSet));
    }

    #[test]
    fn asking_changes_nothing_and_wrong_calls_are_named() {
        let mut hints = Hints::new();
        assert_eq!(hints.fcntl(A, F_GET_RW_HINT, 5), Ok(WriteHint::NotSet));
        assert_eq!(hints.fcntl(A, F_SET_RW_HINT, 6), Err(HintError::Hint(6)));
        // A 32-bit enum passed where 64 bits are wanted leaves rubbish above.
        assert_eq!(hints.fcntl(A, F_SET_RW_HINT, 0xdead_beef_0000_0005), Ok(WriteHint::Extreme));
        assert_eq!(hints.fcntl(A, 1034, 1), Err(HintError::Command(1034)));
        assert_eq!(hints.fadvise(A, 65536, FADV_STREAMID), Err(HintError::Stream(65536)));
        assert_eq!(hints.fadvise(A, 1, 6), Err(HintError::Advice(6)));
        assert_eq!(hints.fadvise(A, 1, 4), Ok(()));
        assert_eq!(hints.of_write(A), Advice::Lifetime(WriteHint::Extreme));
    }

    #[test]
    fn the_driver_sends_the_hint_less_one() {
        assert_eq!(WriteHint::ALL.map(WriteHint::stream), [None, None, Some(1), Some(2), Some(3), Some(4)]);
        assert_eq!(WriteHint::from_number(6), None);
    }
}
