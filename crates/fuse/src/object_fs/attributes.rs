//! What the file system keeps of a file in the attributes of its object (docs/formats/file-attributes.md).

use nandscape_core::object::MOST_ATTRIBUTES;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest name in bytes.
pub const NAME_BYTES: usize = 255;
/// The longest target of a symbolic link in bytes: beside it, one name fits.
pub const TARGET_BYTES: usize = MOST_ATTRIBUTES - HEAD - NAME_HEAD - NAME_BYTES;

const VERSION: u8 = 1;
/// Bytes before the names.
const HEAD: usize = 64;
/// Bytes of a name besides itself.
const NAME_HEAD: usize = 9;

/// Kinds of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    File = 1,
    Directory,
    Link,
    Pipe,
    Socket,
    CharDevice,
    BlockDevice,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::File,
        Self::Directory,
        Self::Link,
        Self::Pipe,
        Self::Socket,
        Self::CharDevice,
        Self::BlockDevice,
    ];

    /// By the type bits of a mode.
    pub fn of_mode(mode: u32) -> Option<Self> {
        Some(match mode & libc::S_IFMT {
            0 | libc::S_IFREG => Self::File,
            libc::S_IFIFO => Self::Pipe,
            libc::S_IFSOCK => Self::Socket,
            libc::S_IFCHR => Self::CharDevice,
            libc::S_IFBLK => Self::BlockDevice,
            _ => return None,
        })
    }
}

/// A name: an entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// Number of the directory.
    pub parent: u64,
    pub bytes: Box<[u8]>,
}

/// Everything about a file but its bytes and its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    pub kind: Kind,
    /// Permission bits, with set-ID and sticky bits.
    pub mode: u16,
    pub uid: u32,
    pub gid: u32,
    /// Of a device.
    pub rdev: u32,
    /// Grows with every change of names in the file system: of two files with the same name, which a loss of
    /// power may leave, the name belongs to the one that was named later.
    pub stamp: u64,
    pub atime: SystemTime,
    pub mtime: SystemTime,
    pub ctime: SystemTime,
    /// None once the file is unlinked: it goes with its last user. The root has none either.
    pub names: Vec<Name>,
    /// What a symbolic link points at.
    pub target: Box<[u8]>,
}

impl Attributes {
    /// Bytes of the encoding.
    fn len(&self) -> usize {
        let names: usize = self.names.iter().map(|name| NAME_HEAD + name.bytes.len()).sum();
        HEAD + names + self.target.len()
    }

    /// The attributes of the object; `None` if there are more names than fit.
    pub fn encode(&self) -> Option<Vec<u8>> {
        if self.len() > MOST_ATTRIBUTES {
            return None;
        }
        let mut out = Vec::with_capacity(self.len());
        out.extend([VERSION, self.kind as u8]);
        out.extend(self.mode.to_le_bytes());
        for word in [self.uid, self.gid, self.rdev] {
            out.extend(word.to_le_bytes());
        }
        out.extend(self.stamp.to_le_bytes());
        for time in [self.atime, self.mtime, self.ctime] {
            let (seconds, nanos) = seconds_of(time);
            out.extend(seconds.to_le_bytes());
            out.extend(nanos.to_le_bytes());
        }
        out.extend((self.names.len() as u16).to_le_bytes());
        out.extend((self.target.len() as u16).to_le_bytes());
        for name in &self.names {
            out.extend(name.parent.to_le_bytes());
            out.push(name.bytes.len() as u8);
            out.extend(&*name.bytes);
        }
        out.extend(&*self.target);
        Some(out)
    }

    /// `None` for bytes that this file system did not write.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Reader(bytes);
        let [version, kind] = rest.take()?;
        let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind)?;
        if version != VERSION {
            return None;
        }
        let mode = u16::from_le_bytes(rest.take()?);
        let [uid, gid, rdev] = [rest.word()?, rest.word()?, rest.word()?];
        let stamp = u64::from_le_bytes(rest.take()?);
        let [atime, mtime, ctime] = [rest.time()?, rest.time()?, rest.time()?];
        let count = u16::from_le_bytes(rest.take()?);
        let target = usize::from(u16::from_le_bytes(rest.take()?));
        let mut names = Vec::new();
        for _ in 0..count {
            let parent = u64::from_le_bytes(rest.take()?);
            let [len] = rest.take()?;
            names.push(Name { parent, bytes: rest.bytes(len.into())?.into() });
        }
        let target = rest.bytes(target)?.into();
        rest.0.is_empty().then_some(Self {
            kind,
            mode,
            uid,
            gid,
            rdev,
            stamp,
            atime,
            mtime,
            ctime,
            names,
            target,
        })
    }
}

/// Seconds since 1970 and nanoseconds after them.
fn seconds_of(time: SystemTime) -> (i64, u32) {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (after.as_secs().cast_signed(), after.subsec_nanos()),
        Err(error) => {
            let before = error.duration();
            match before.subsec_nanos() {
                0 => (-before.as_secs().cast_signed(), 0),
                nanos => (-before.as_secs().cast_signed() - 1, 1_000_000_000 - nanos),
            }
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn time(&mut self) -> Option<SystemTime> {
        let seconds = i64::from_le_bytes(self.take()?);
        let nanos = self.word().filter(|nanos| *nanos < 1_000_000_000)?;
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let time = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
        time?.checked_add(Duration::from_nanos(nanos.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Attributes {
        let name = |parent, bytes: &[u8]| Name { parent, bytes: bytes.into() };
        Attributes {
            kind: Kind::Link,
            mode: 0o4755,
            uid: 1000,
            gid: u32::MAX,
            rdev: 7,
            stamp: 1 << 40,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH - Duration::from_millis(1_250),
            ctime: UNIX_EPOCH + Duration::new(1 << 33, 999_999_999),
            names: vec![name(1, b"a"), name(900, &[0xff; NAME_BYTES])],
            target: b"../somewhere".as_slice().into(),
        }
    }

    #[test]
    fn attributes_come_back_and_nothing_else_is_taken_for_them() {
        let attributes = example();
        let bytes = attributes.encode().unwrap();
        assert_eq!(bytes.len(), attributes.len());
        assert_eq!(Attributes::decode(&bytes), Some(attributes));
        for len in 0..bytes.len() {
            assert_eq!(Attributes::decode(&bytes[..len]), None, "the first {len} bytes");
        }
        let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
        assert_eq!(Attributes::decode(&longer), None);
        for (at, byte) in [(0, 2), (1, 0), (1, 8), (34, 0xff)] {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            assert_eq!(Attributes::decode(&bytes).is_some(), at == 34, "byte {at} is {byte}");
        }
    }

    #[test]
    fn there_is_room_for_a_long_target_and_for_many_names() {
        let name = Name { parent: 1, bytes: [b'n'; NAME_BYTES].into() };
        let mut link =
            Attributes { names: vec![name.clone()], target: vec![b't'; TARGET_BYTES].into(), ..example() };
        assert_eq!(link.encode().map(|bytes| bytes.len()), Some(MOST_ATTRIBUTES));
        link.names.push(name);
        assert_eq!(link.encode(), None);
    }
}
