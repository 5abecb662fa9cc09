//! Calls that leave names alone.

use super::attributes::Kind;
use super::{ObjectFs, Stat};
use crate::client::{Done, Failed};
use nandscape_core::{Extent, ObjectCommand, ObjectId, ObjectSpace, Reply};
use nandscape_engine::{Data, Due};
use std::time::SystemTime;

/// What `setattr` changes of a file.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Changes {
    /// Permission bits.
    pub mode: Option<u16>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub atime: Option<SystemTime>,
    pub mtime: Option<SystemTime>,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Entry {
    pub ino: u64,
    pub kind: Kind,
    pub name: Box<[u8]>,
}

impl ObjectFs {
    /// The file under a name.
    pub fn lookup(&self, parent: u64, name: &[u8]) -> Result<Stat, Failed> {
        let tree = self.lock();
        let ino = tree.lookup(parent, name)?;
        self.calls().stat(&tree, ino)
    }

    /// The file with a number.
    pub fn getattr(&self, ino: u64) -> Result<Stat, Failed> {
        let tree = self.lock();
        match tree.gone.get(&ino).cloned() {
            Some(attributes) => Ok(Stat { ino, attributes, size: 0, allocated: 0, links: 0 }),
            None => self.calls().stat(&tree, ino),
        }
    }

    /// The kernel knows a file no more.
    pub fn forgotten(&self, ino: u64) {
        self.lock().gone.remove(&ino);
    }

    /// Somebody opens a file.
    pub fn open(&self, ino: u64) -> Result<(), Failed> {
        self.lock().get_mut(ino)?.users += 1;
        Ok(())
    }

    /// Bytes of a file, as far as it has any.
    pub fn read(&self, ino: u64, offset: u64, data: &mut [u8]) -> Result<Done, Failed> {
        let mut calls = self.calls();
        let extent = Extent::new(offset, data.len() as u64);
        match calls.run(ObjectCommand::Read { object: ObjectId(ino), extent }, Data::Read(data))? {
            Reply::Bytes(len) => Ok(Done { len: len as usize, due: calls.due }),
            other => panic!("a read of object {ino} is answered with {other:?}"),
        }
    }

    /// Writes all of `data`, or nothing; with `is_durable`, so that it survives a loss of power. Unless it is
    /// the owner's own doing (`drops_ids`), the file does not run as its user or group any more.
    pub fn write(
        &self,
        ino: u64,
        offset: u64,
        data: &[u8],
        is_durable: bool,
        drops_ids: bool,
    ) -> Result<Done, Failed> {
        self.check_writable()?;
        let mut calls = self.calls();
        let extent = Extent::new(offset, data.len() as u64);
        let object = ObjectId(ino);
        let write = ObjectCommand::Write { object, extent, hint: None };
        let mut tree = self.lock();
        if Self::is_limited(&tree, ino) {
            calls.check_write(&tree, ino, extent)?;
            calls.run(write, Data::Write(data))?;
            calls.recharge(&mut tree, ino);
        } else {
            drop(tree);
            calls.run(write, Data::Write(data))?;
            tree = self.lock();
        }
        tree.changed(ino, SystemTime::now());
        // Saved with the times.
        if let Ok(node) = tree.get_mut(ino) {
            node.attributes.drop_privileges(drops_ids);
        }
        if is_durable {
            calls.flush(&mut tree, ino)?;
        }
        Ok(Done { len: data.len(), due: calls.due })
    }

    /// Changes owner, mode, times, size; `is_root`: whether that is done by the user who may do anything.
    pub fn setattr(&self, ino: u64, changes: Changes, is_root: bool) -> Result<(Stat, Option<Due>), Failed> {
        self.check_writable()?;
        let (mut tree, mut calls) = (self.lock(), self.calls());
        let mut attributes = tree.get(ino)?.attributes.clone();
        let now = SystemTime::now();
        if let Some(size) = changes.size {
            if attributes.kind != Kind::File {
                return Err(Failed::number(libc::EINVAL));
            }
            calls.plain(ObjectCommand::Truncate { object: ObjectId(ino), size })?;
            attributes.mtime = now;
            attributes.drop_privileges(!is_root);
        }
        if changes.uid.is_some() || changes.gid.is_some() {
            attributes.drop_privileges(true);
        }
        attributes.mode = changes.mode.unwrap_or(attributes.mode);
        attributes.uid = changes.uid.unwrap_or(attributes.uid);
        attributes.gid = changes.gid.unwrap_or(attributes.gid);
        attributes.atime = changes.atime.unwrap_or(attributes.atime);
        attributes.mtime = changes.mtime.unwrap_or(attributes.mtime);
        attributes.ctime = now;
        calls.check_owner(&tree, ino, &attributes)?;
        calls.set(&mut tree, (ino, attributes), None)?;
        let stat = calls.stat(&tree, ino)?;
        Ok((stat, calls.due))
    }

    /// Makes a file durable, or all that was done in a directory.
    pub fn sync(&self, ino: u64) -> Result<Done, Failed> {
        if self.is_read_only {
            return Ok(Done::default());
        }
        let (mut tree, mut calls) = (self.lock(), self.calls());
        if tree.gone.contains_key(&ino) || tree.get(ino)?.is_dir() {
            calls.flush_all(&mut tree)?;
        } else {
            calls.flush(&mut tree, ino)?;
        }
        Ok(Done { len: 0, due: calls.due })
    }

    /// Makes everything durable.
    pub fn sync_all(&self) -> Result<Done, Failed> {
        self.sync(super::tree::ROOT)
    }

    /// Reserves, punches or zeroes a range, by the mode bits of fallocate(2). Nothing can be reserved behind
    /// the end of a file that is to stay there, and nothing at all in stores that cannot.
    pub fn allocate(&self, ino: u64, offset: u64, len: u64, mode: i32) -> Result<Done, Failed> {
        const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        const ZERO_KEEP: i32 = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;
        self.check_writable()?;
        if mode == 0 || mode == libc::FALLOC_FL_KEEP_SIZE {
            return self.reserve(ino, Extent::new(offset, len), mode == 0);
        }
        let grows = match mode {
            PUNCH | ZERO_KEEP => false,
            libc::FALLOC_FL_ZERO_RANGE => true,
            _ => return Err(Failed::number(libc::EOPNOTSUPP)),
        };
        let end = offset.checked_add(len).ok_or(Failed::number(libc::EFBIG))?;
        let (mut tree, mut calls) = (self.lock(), self.calls());
        let object = ObjectId(ino);
        let (status, _) = calls.status(ino)?;
        if grows && end > status.size {
            // First, since it may be refused.
            calls.plain(ObjectCommand::Truncate { object, size: end })?;
        }
        let inside = if grows { end } else { end.min(status.size) };
        if offset < inside {
            calls.plain(ObjectCommand::Punch { object, extent: Extent::new(offset, inside - offset) })?;
        }
        calls.recharge(&mut tree, ino);
        tree.changed(ino, SystemTime::now());
        Ok(Done { len: 0, due: calls.due })
    }

    fn reserve(&self, ino: u64, extent: Extent, grows: bool) -> Result<Done, Failed> {
        let end = extent.offset.checked_add(extent.len).ok_or(Failed::number(libc::EFBIG))?;
        let (mut tree, mut calls) = (self.lock(), self.calls());
        let object = ObjectId(ino);
        let (status, _) = calls.status(ino)?;
        if !grows && end > status.size {
            return Err(Failed::number(libc::EOPNOTSUPP));
        }
        calls.check_write(&tree, ino, extent)?;
        // Programs try it without need, so that nobody has to be told.
        let plain = |failed: Failed| match failed.errno {
            libc::EOPNOTSUPP => Failed::number(libc::EOPNOTSUPP),
            _ => failed,
        };
        calls.plain(ObjectCommand::Reserve { object, extent }).map_err(plain)?;
        calls.recharge(&mut tree, ino);
        if end > status.size {
            tree.changed(ino, SystemTime::now());
        }
        Ok(Done { len: 0, due: calls.due })
    }

    /// What a symbolic link points at.
    pub fn readlink(&self, ino: u64) -> Result<Box<[u8]>, Failed> {
        let tree = self.lock();
        let attributes = &tree.get(ino)?.attributes;
        match attributes.kind {
            Kind::Link => Ok(attributes.target.clone()),
            _ => Err(Failed::number(libc::EINVAL)),
        }
    }

    /// What a directory has in it, itself and its parent first; nothing at all once it was removed.
    pub fn list(&self, dir: u64) -> Result<Vec<Entry>, Failed> {
        let tree = self.lock();
        if tree.gone.contains_key(&dir) {
            return Ok(Vec::new());
        }
        let node = tree.dir(dir)?;
        let parent = node.attributes.names.first().map_or(dir, |name| name.parent);
        let dots = [(dir, b".".as_slice()), (parent, b"..".as_slice())];
        let dots = dots.map(|(ino, name)| Entry { ino, kind: Kind::Directory, name: name.into() });
        let files = node.children.iter().map(|(name, ino)| {
            let kind = tree.nodes.get(ino).map_or(Kind::File, |node| node.attributes.kind);
            Entry { ino: *ino, kind, name: name.clone() }
        });
        Ok(dots.into_iter().chain(files).collect())
    }

    /// How the space is divided.
    pub fn space(&self) -> Result<ObjectSpace, Failed> {
        match self.calls().plain(ObjectCommand::Space)? {
            Reply::Space(space) => Ok(*space),
            other => panic!("a question for space is answered with {other:?}"),
        }
    }
}
