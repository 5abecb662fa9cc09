//! Calls that change names.

use super::attributes::{Attributes, Given, Kind, Name, TARGET_BYTES};
use super::lifetime::class_of;
use super::tree::{Node, Tree};
use super::{Calls, ObjectFs, Stat};
use crate::client::{Done, Failed};
use nandscape_core::{Hint, ObjectCommand, ObjectId};
use nandscape_engine::{Data, Due};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// What a new file is to be.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub struct New {
    pub kind: Kind,
    /// Permission bits.
    pub mode: u16,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u32,
    /// Of a symbolic link.
    pub target: Box<[u8]>,
}

impl ObjectFs {
    /// Makes a file and opens it `users` times.
    pub fn make(
        &self,
        parent: u64,
        name: &[u8],
        new: New,
        users: u32,
    ) -> Result<(Stat, Option<Due>), Failed> {
        self.check_writable()?;
        let (mut tree, mut calls) = (self.lock(), self.calls());
        if tree.child(parent, name)?.is_some() {
            return Err(Failed::number(libc::EEXIST));
        }
        if new.target.len() > TARGET_BYTES {
            return Err(Failed::number(libc::ENAMETOOLONG));
        }
        calls.free_name(&mut tree, parent, name)?;
        let dir = &tree.get(parent)?.attributes;
        let inherits = u32::from(dir.mode) & libc::S_ISGID != 0;
        let set_gid = if inherits && new.kind == Kind::Directory { libc::S_ISGID as u16 } else { 0 };
        let gid = if inherits { dir.gid } else { new.gid };
        let (now, ino, stamp) = (SystemTime::now(), tree.next, tree.next_stamp());
        let attributes = Attributes {
            kind: new.kind,
            mode: new.mode | set_gid,
            uid: new.uid,
            gid,
            rdev: new.rdev,
            stamp,
            atime: now,
            mtime: now,
            ctime: now,
            names: vec![Name { parent, bytes: name.into() }],
            target: new.target,
            extended: BTreeMap::new(),
            given: None,
        };
        let bytes = attributes.encode().ok_or(Failed::number(libc::ENAMETOOLONG))?;
        tree.quotas.check(attributes.uid, 1, 1)?;
        let object = ObjectId(ino);
        let hint = if new.kind == Kind::File { class_of(name) } else { Hint::NOT_SET };
        calls.plain(ObjectCommand::Create { object, hint })?;
        tree.next += 1;
        let named = calls.run(ObjectCommand::SetAttributes { object, replaces: None }, Data::Write(&bytes));
        if let Err(failed) = named {
            // Without attributes it is removed at the next start, at the latest.
            let _ = calls.plain(ObjectCommand::Delete { object });
            return Err(failed);
        }
        tree.nodes.insert(ino, Node { users, ..Node::new(attributes) });
        calls.recharge(&mut tree, ino);
        tree.fresh.insert(ino);
        tree.set_child(parent, name, Some(ino), now);
        let stat = calls.stat(&tree, ino)?;
        Ok((stat, calls.due))
    }

    /// Takes a name from a file, and removes the file with its last name.
    pub fn unlink(&self, parent: u64, name: &[u8]) -> Result<Done, Failed> {
        self.check_writable()?;
        let (mut tree, mut calls) = (self.lock(), self.calls());
        let ino = tree.lookup(parent, name)?;
        if tree.get(ino)?.is_dir() {
            return Err(Failed::number(libc::EISDIR));
        }
        calls.take_name(&mut tree, ino, parent, name)?;
        tree.set_child(parent, name, None, SystemTime::now());
        Ok(Done { len: 0, due: calls.due })
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, parent: u64, name: &[u8]) -> Result<Done, Failed> {
        self.check_writable()?;
        let (mut tree, mut calls) = (self.lock(), self.calls());
        let ino = tree.lookup(parent, name)?;
        calls.prepare_removal(&mut tree, ino)?;
        calls.plain(ObjectCommand::Delete { object: ObjectId(ino) })?;
        tree.remove(ino);
        tree.set_child(parent, name, None, SystemTime::now());
        Ok(Done { len: 0, due: calls.due })
    }

    /// Gives a file another name in place of one that it has; a file that has that name loses it. Without
    /// `replaces` there may be none.
    pub fn rename(
        &self,
        (parent, name): (u64, &[u8]),
        (to, new_name): (u64, &[u8]),
        replaces: bool,
    ) -> Result<Done, Failed> {
        self.check_writable()?;
        let (mut tree, mut calls) = (self.lock(), self.calls());
        let ino = tree.lookup(parent, name)?;
        let target = tree.child(to, new_name)?;
        let (node, is_dir) = (tree.get(ino)?, tree.get(ino)?.is_dir());
        if is_dir && tree.is_within(to, ino) {
            return Err(Failed::number(libc::EINVAL));
        }
        if target.is_some() && !replaces {
            return Err(Failed::number(libc::EEXIST));
        }
        if target == Some(ino) {
            return Ok(Done::default());
        }
        let mut attributes = node.attributes.clone();
        let own = attributes.names.iter_mut().find(|own| own.parent == parent && *own.bytes == *name);
        let own = own.ok_or(Failed::number(libc::ENOENT))?;
        *own = Name { parent: to, bytes: new_name.into() };
        let now = SystemTime::now();
        attributes.ctime = now;
        // A name in a directory that is not durable would be lost with that.
        if tree.fresh.contains(&to) {
            calls.flush(&mut tree, to)?;
        }
        calls.free_name(&mut tree, to, new_name)?;
        attributes.stamp = tree.next_stamp();
        match target {
            None => calls.set(&mut tree, (ino, attributes), None)?,
            Some(target) => {
                match (is_dir, tree.get(target)?.is_dir()) {
                    (true, false) => return Err(Failed::number(libc::ENOTDIR)),
                    (false, true) => return Err(Failed::number(libc::EISDIR)),
                    (true, true) => calls.prepare_removal(&mut tree, target)?,
                    (false, false) => {}
                }
                calls.replace(&mut tree, (ino, attributes), (target, to, new_name))?;
            }
        }
        tree.fresh.insert(ino);
        tree.vacated.insert((parent, name.into()), ino);
        tree.set_child(parent, name, None, now);
        tree.set_child(to, new_name, Some(ino), now);
        if !is_dir && class_of(name) != class_of(new_name) {
            // A matter of placement alone.
            let _ = calls.plain(ObjectCommand::Hint { object: ObjectId(ino), hint: class_of(new_name) });
        }
        Ok(Done { len: 0, due: calls.due })
    }

    /// Two files exchange a name of each, as one change: a loss of power leaves both names as they were or
    /// both exchanged. Afterwards that is durable.
    pub fn exchange(
        &self,
        (parent, name): (u64, &[u8]),
        (to, new_name): (u64, &[u8]),
    ) -> Result<Done, Failed> {
        self.check_writable()?;
        let (mut tree, mut calls) = (self.lock(), self.calls());
        let (one, other) = (tree.lookup(parent, name)?, tree.lookup(to, new_name)?);
        if one == other {
            return Ok(Done::default());
        }
        if tree.is_within(to, one) || tree.is_within(parent, other) {
            return Err(Failed::number(libc::EINVAL));
        }
        // What the names say of them is there before it changes.
        for ino in [parent, to, one, other] {
            if tree.fresh.contains(&ino) {
                calls.flush(&mut tree, ino)?;
            }
        }
        let now = SystemTime::now();
        let name_of = |parent, bytes: &[u8]| Name { parent, bytes: bytes.into() };
        let (first, second) = (name_of(parent, name), name_of(to, new_name));
        let given = Given { ino: other, name: first.clone() };
        let stamps = [tree.next_stamp(), tree.next_stamp()];
        let renamed = |ino, (old, new): (&Name, &Name), stamp, given| {
            let mut attributes = tree.get(ino)?.attributes.clone();
            let own =
                attributes.names.iter_mut().find(|own| *own == old).ok_or(Failed::number(libc::ENOENT))?;
            own.clone_from(new);
            (attributes.ctime, attributes.stamp, attributes.given) = (now, stamp, given);
            // Nothing is changed where there is no room for one of them.
            attributes.encode().ok_or(Failed::number(libc::ENOSPC))?;
            Ok::<_, Failed>(attributes)
        };
        let of_one = renamed(one, (&first, &second), stamps[0], Some(given))?;
        let of_other = renamed(other, (&second, &first), stamps[1], None)?;
        let before = tree.get(one)?.attributes.clone();
        calls.set(&mut tree, (one, of_one), None)?;
        if let Err(failed) = calls.flush(&mut tree, one) {
            let _ = calls.set(&mut tree, (one, before.clone()), None);
            tree.get_mut(one)?.attributes = before;
            return Err(failed);
        }
        // From here on the exchange is durable: the next start would end it.
        let set = calls.set(&mut tree, (other, of_other.clone()), None);
        if set.and_then(|()| calls.flush(&mut tree, other)).is_ok() {
            tree.get_mut(one)?.attributes.given = None;
        } else {
            tree.get_mut(other)?.attributes = of_other;
            tree.stale.insert(other);
        }
        for (dir, name, child) in [
            (parent, name, None),
            (to, new_name, None),
            (parent, name, Some(other)),
            (to, new_name, Some(one)),
        ] {
            tree.set_child(dir, name, child, now);
        }
        Ok(Done { len: 0, due: calls.due })
    }

    /// Gives a file one more name.
    pub fn link(&self, ino: u64, parent: u64, name: &[u8]) -> Result<(Stat, Option<Due>), Failed> {
        self.check_writable()?;
        let (mut tree, mut calls) = (self.lock(), self.calls());
        if tree.child(parent, name)?.is_some() {
            return Err(Failed::number(libc::EEXIST));
        }
        let node = tree.get(ino)?;
        if node.is_dir() {
            return Err(Failed::number(libc::EPERM));
        }
        if node.attributes.names.is_empty() {
            return Err(Failed::number(libc::ENOENT));
        }
        let mut attributes = node.attributes.clone();
        if tree.fresh.contains(&parent) {
            calls.flush(&mut tree, parent)?;
        }
        calls.free_name(&mut tree, parent, name)?;
        let now = SystemTime::now();
        attributes.names.push(Name { parent, bytes: name.into() });
        (attributes.ctime, attributes.stamp) = (now, tree.next_stamp());
        calls.set(&mut tree, (ino, attributes), None)?;
        tree.fresh.insert(ino);
        tree.set_child(parent, name, Some(ino), now);
        let stat = calls.stat(&tree, ino)?;
        Ok((stat, calls.due))
    }

    /// A file that was open is closed: without a name it goes, otherwise its times go to the store.
    pub fn release(&self, ino: u64) -> Result<Done, Failed> {
        let (mut tree, mut calls) = (self.lock(), self.calls());
        let node = tree.get_mut(ino)?;
        node.users -= 1;
        if node.users > 0 || self.is_read_only {
            return Ok(Done::default());
        }
        if node.attributes.names.is_empty() && node.attributes.kind != Kind::Directory {
            calls.plain(ObjectCommand::Delete { object: ObjectId(ino) })?;
            tree.remove(ino);
        } else {
            calls.save(&mut tree, ino)?;
        }
        Ok(Done { len: 0, due: calls.due })
    }
}

impl Calls<'_> {
    /// A file takes the name of another one. Where that goes with it, both are one change of the store. Where
    /// that stays, since it is open or has other names, it keeps its own until the new one is durable, and
    /// its other names are durable before.
    fn replace(
        &mut self,
        tree: &mut Tree,
        (ino, attributes): (u64, Attributes),
        (target, parent, name): (u64, u64, &[u8]),
    ) -> Result<(), Failed> {
        let node = tree.get(target)?;
        if node.is_dir() || (node.users == 0 && node.attributes.names.len() == 1) {
            self.set(tree, (ino, attributes), Some(target))?;
            tree.remove(target);
            return Ok(());
        }
        if node.attributes.names.len() > 1 && tree.fresh.contains(&target) {
            self.flush(tree, target)?;
        }
        self.set(tree, (ino, attributes), None)?;
        self.flush(tree, ino)?;
        self.take_name(tree, target, parent, name)
    }

    /// Takes a name from a file in the store; without one, and not in use, it is deleted.
    fn take_name(&mut self, tree: &mut Tree, ino: u64, parent: u64, name: &[u8]) -> Result<(), Failed> {
        let node = tree.get(ino)?;
        let mut attributes = node.attributes.clone();
        attributes.names.retain(|own| own.parent != parent || *own.bytes != *name);
        if attributes.names.is_empty() && node.users == 0 {
            self.plain(ObjectCommand::Delete { object: ObjectId(ino) })?;
            tree.remove(ino);
            return Ok(());
        }
        attributes.ctime = SystemTime::now();
        let is_named = !attributes.names.is_empty();
        self.set(tree, (ino, attributes), None)?;
        if is_named {
            tree.fresh.insert(ino);
            tree.vacated.insert((parent, name.into()), ino);
        }
        Ok(())
    }

    /// Before a file takes a name: the change that freed it is durable where its file has other names, or a
    /// loss of power would give the name to two files, of which none is superfluous.
    fn free_name(&mut self, tree: &mut Tree, parent: u64, name: &[u8]) -> Result<(), Failed> {
        match tree.vacated.get(&(parent, name.into())).copied() {
            Some(ino) => self.flush(tree, ino),
            None => Ok(()),
        }
    }

    /// Before a directory is removed: it is empty, and nothing that was in it can come back.
    fn prepare_removal(&mut self, tree: &mut Tree, ino: u64) -> Result<(), Failed> {
        if !tree.dir(ino)?.children.is_empty() {
            return Err(Failed::number(libc::ENOTEMPTY));
        }
        for moved in tree.moved_out_of(ino) {
            self.flush(tree, moved)?;
        }
        Ok(())
    }
}
