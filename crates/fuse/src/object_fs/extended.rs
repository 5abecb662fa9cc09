//! Extended attributes, and the privileges that a change of a file takes from it.

use super::ObjectFs;
use super::attributes::{Attributes, Kind, NAME_BYTES};
use crate::client::{Done, Failed};
use std::time::SystemTime;

/// Capabilities of a program, which it loses when it is changed.
const CAPABILITY: &[u8] = b"security.capability";
/// Names that are kept; access control lists (`system.`) are not.
const KEPT: [&[u8]; 3] = [b"user.", b"trusted.", b"security."];

impl ObjectFs {
    /// The value of an extended attribute.
    pub fn extended(&self, ino: u64, name: &[u8]) -> Result<Box<[u8]>, Failed> {
        check_name(name)?;
        let tree = self.lock();
        let value = tree.get(ino)?.attributes.extended.get(name);
        value.cloned().ok_or(Failed::number(libc::ENODATA))
    }

    /// The names of extended attributes, each with a zero behind it.
    pub fn extended_names(&self, ino: u64) -> Result<Vec<u8>, Failed> {
        let tree = self.lock();
        let names = tree.get(ino)?.attributes.extended.keys();
        Ok(names.flat_map(|name| name.iter().copied().chain([0])).collect())
    }

    /// Sets an extended attribute, which by the flags of setxattr(2) has to exist or must not.
    pub fn set_extended(&self, ino: u64, name: &[u8], value: &[u8], flags: i32) -> Result<Done, Failed> {
        check_name(name)?;
        self.change_extended(ino, |attributes| {
            match (attributes.extended.contains_key(name), flags) {
                (true, libc::XATTR_CREATE) => return Err(Failed::number(libc::EEXIST)),
                (false, libc::XATTR_REPLACE) => return Err(Failed::number(libc::ENODATA)),
                _ => attributes.extended.insert(name.into(), value.into()),
            };
            Ok(())
        })
    }

    /// Removes an extended attribute.
    pub fn remove_extended(&self, ino: u64, name: &[u8]) -> Result<Done, Failed> {
        check_name(name)?;
        self.change_extended(ino, |attributes| {
            attributes.extended.remove(name).map(drop).ok_or(Failed::number(libc::ENODATA))
        })
    }

    fn change_extended(
        &self,
        ino: u64,
        change: impl FnOnce(&mut Attributes) -> Result<(), Failed>,
    ) -> Result<Done, Failed> {
        self.check_writable()?;
        let (mut tree, mut calls) = (self.lock(), self.calls());
        let mut attributes = tree.get(ino)?.attributes.clone();
        change(&mut attributes)?;
        attributes.ctime = SystemTime::now();
        // They share the room of names.
        attributes.encode().ok_or(Failed::number(libc::ENOSPC))?;
        calls.set(&mut tree, (ino, attributes), None)?;
        Ok(Done { len: 0, due: calls.due })
    }
}

fn check_name(name: &[u8]) -> Result<(), Failed> {
    if name.len() > NAME_BYTES {
        return Err(Failed::number(libc::ERANGE));
    }
    let is_kept = KEPT.iter().any(|prefix| name.starts_with(prefix) && name.len() > prefix.len());
    if is_kept { Ok(()) } else { Err(Failed::number(libc::EOPNOTSUPP)) }
}

impl Attributes {
    /// What somebody else changes does not act for its owner any more: capabilities go, and with `ids` the
    /// bits that let it run as its user and its group.
    pub fn drop_privileges(&mut self, ids: bool) {
        if self.kind == Kind::Directory {
            return;
        }
        if ids {
            self.mode &= !(libc::S_ISUID as u16);
            if u32::from(self.mode) & libc::S_IXGRP != 0 {
                self.mode &= !(libc::S_ISGID as u16);
            }
        }
        self.extended.remove(CAPABILITY);
    }
}
