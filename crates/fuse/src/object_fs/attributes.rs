//! What the file system keeps of a file in the attributes of its object (docs/formats/file-attributes.md).

use nandscape_core::object::MOST_ATTRIBUTES;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest name in bytes.
pub const NAME_BYTES: usize = 255;
/// The longest target of a symbolic link in bytes: beside it, one name fits.
pub const TARGET_BYTES: usize = MOST_ATTRIBUTES - HEAD - NAME_HEAD - NAME_BYTES;

/// Without and with what was added later.
const PLAIN: u8 = 1;
const EXTENDED: u8 = 2;
/// Bytes before the names.
const HEAD: usize = 64;
/// Bytes of a name besides itself.
const NAME_HEAD: usize = 9;
/// Bytes of an extended attribute besides its name and its value.
const EXTENDED_HEAD: usize = 3;

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

/// The other half of an exchange of two names, for a start that finds this one alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The file that this one has its name from.
    pub ino: u64,
    /// The name that it has instead.
    pub name: Name,
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
    /// Extended attributes.
    pub extended: BTreeMap<Box<[u8]>, Box<[u8]>>,
    /// Holds as long as the other file's stamp is older than this one's.
    pub given: Option<Given>,
}

impl Attributes {
    /// Bytes of the encoding.
    fn len(&self) -> usize {
        let names: usize = self.names.iter().map(|name| NAME_HEAD + name.bytes.len()).sum();
        HEAD + names + self.target.len() + if self.is_plain() { 0 } else { self.extended_len() }
    }

    /// Whether nothing follows the target.
    fn is_plain(&self) -> bool {
        self.extended.is_empty() && self.given.is_none()
    }

    fn extended_len(&self) -> usize {
        let given = self.given.as_ref().map_or(0, |given| 8 + NAME_HEAD + given.name.bytes.len());
        let extended = self.extended.iter().map(|(name, value)| EXTENDED_HEAD + name.len() + value.len());
        1 + given + extended.sum::<usize>()
    }

    /// The attributes of the object; `None` if there are more names than fit.
    pub fn encode(&self) -> Option<Vec<u8>> {
        if self.len() > MOST_ATTRIBUTES {
            return None;
        }
        let mut out = Vec::with_capacity(self.len());
        out.extend([if self.is_plain() { PLAIN } else { EXTENDED }, self.kind as u8]);
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
        self.names.iter().for_each(|name| name.encode(&mut out));
        out.extend(&*self.target);
        if self.is_plain() {
            return Some(out);
        }
        out.push(self.given.is_some().into());
        if let Some(given) = &self.given {
            out.extend(given.ino.to_le_bytes());
            given.name.encode(&mut out);
        }
        for (name, value) in &self.extended {
            out.push(name.len() as u8);
            out.extend((value.len() as u16).to_le_bytes());
            out.extend(&**name);
            out.extend(&**value);
        }
        Some(out)
    }

    /// `None` for bytes that this file system did not write.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Reader(bytes);
        let [version, kind] = rest.take()?;
        let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind)?;
        if version != PLAIN && version != EXTENDED {
            return None;
        }
        let mode = u16::from_le_bytes(rest.take()?);
        let [uid, gid, rdev] = [rest.word()?, rest.word()?, rest.word()?];
        let stamp = u64::from_le_bytes(rest.take()?);
        let [atime, mtime, ctime] = [rest.time()?, rest.time()?, rest.time()?];
        let count = u16::from_le_bytes(rest.take()?);
        let target = usize::from(u16::from_le_bytes(rest.take()?));
        let names = (0..count).map(|_| rest.name()).collect::<Option<_>>()?;
        let target = rest.bytes(target)?.into();
        let (mut given, mut extended) = (None, BTreeMap::new());
        if version == EXTENDED {
            let [has_given] = rest.take()?;
            if has_given != 0 {
                given = Some(Given { ino: u64::from_le_bytes(rest.take()?), name: rest.name()? });
            }
            while !rest.0.is_empty() {
                let [len] = rest.take()?;
                let value_len = u16::from_le_bytes(rest.take()?);
                let name = rest.bytes(len.into())?.into();
                extended.insert(name, rest.bytes(value_len.into())?.into());
            }
        }
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
            extended,
            given,
        })
    }
}

impl Name {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.parent.to_le_bytes());
        out.push(self.bytes.len() as u8);
        out.extend(&*self.bytes);
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

    fn name(&mut self) -> Option<Name> {
        let parent = u64::from_le_bytes(self.take()?);
        let [len] = self.take()?;
        Some(Name { parent, bytes: self.bytes(len.into())?.into() })
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
            extended: BTreeMap::new(),
            given: None,
        }
    }

    #[test]
    fn extended_attributes_and_exchanges_come_back() {
        let pairs: [(&[u8], &[u8]); 3] =
            [(b"user.a", b""), (b"user.b", &[0; 300]), (b"security.capability", b"x")];
        let extended: BTreeMap<Box<[u8]>, Box<[u8]>> =
            pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let name = Name { parent: 12, bytes: b"other".as_slice().into() };
        let given = Some(Given { ino: 1 << 40, name });
        for (given, extended) in
            [(given.clone(), BTreeMap::new()), (None, extended.clone()), (given, extended)]
        {
            let attributes = Attributes { extended, given, ..example() };
            let bytes = attributes.encode().unwrap();
            assert_eq!(bytes.len(), attributes.len());
            assert_eq!(Attributes::decode(&bytes), Some(attributes.clone()));
            for len in 0..bytes.len() {
                let shorter = Attributes::decode(&bytes[..len]);
                // Whole extended attributes may be missing, nothing else.
                assert!(
                    shorter.is_none_or(|found| found.extended.len() < attributes.extended.len()),
                    "{len}"
                );
            }
        }
        let value = vec![0; MOST_ATTRIBUTES].into();
        let large =
            Attributes { extended: BTreeMap::from([(b"user.a".as_slice().into(), value)]), ..example() };
        assert_eq!(large.encode(), None);
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
        for (at, byte) in [(0, 3), (1, 0), (1, 8), (34, 0xff)] {
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
