//! A store of objects as a file system: one object for each file, directory and link. An object's number is
//! the inode number; names, owner, mode and times are its attributes, and the tree of names is rebuilt from
//! these at the start.
//!
//! What a loss of power leaves, and why:
//! * a file is as at its last sync, or as a later change left it; a name that was synced is there;
//! * a rename over a file is one change of the store, which writes the new data and deletes the old file: the
//!   name leads to all of the one or all of the other;
//! * a sync of a file makes its directories durable first, as far as they are not;
//! * before another file takes a name that a rename has left, that rename is made durable; so is a directory
//!   that a file is moved to, and what was moved out of one that is removed. Hence a name is never lost, and
//!   where two files have it, one was unlinked or replaced: the one with the older stamp.

pub mod attributes;
mod calls;
mod charges;
mod extended;
mod lifetime;
mod load;
mod names;
mod quotas;
mod serve;
mod tree;

use crate::client::{Client, Failed};
use attributes::{Attributes, Kind};
use nandscape_core::{ObjectCommand, ObjectId, ObjectStatus, Reply};
use nandscape_engine::{Data, Due, Request};
use std::sync::{Mutex, MutexGuard};
use tree::Tree;

pub use calls::{Changes, Entry};
pub use names::New;
pub use quotas::Quota;
pub use serve::Served;
pub use tree::ROOT;

/// A file system over namespace 0 of an engine, which stores objects.
pub struct ObjectFs {
    client: Client,
    is_read_only: bool,
    tree: Mutex<Tree>,
}

/// What `stat` says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Stat {
    pub ino: u64,
    pub attributes: Attributes,
    pub size: u64,
    /// Bytes of space.
    pub allocated: u64,
    pub links: u32,
}

/// The commands of a call, and when the last of them would have been answered.
struct Calls<'a> {
    client: &'a Client,
    due: Option<Due>,
}

impl Calls<'_> {
    fn run(&mut self, command: ObjectCommand, data: Data<'_>) -> Result<Reply, Failed> {
        let (reply, due) = self.client.run(Request::object(self.client.namespace, command, data))?;
        self.due = Due::last_of(self.due.take(), due);
        Ok(reply)
    }

    fn plain(&mut self, command: ObjectCommand) -> Result<Reply, Failed> {
        self.run(command, Data::None)
    }

    fn status(&mut self, ino: u64) -> Result<(ObjectStatus, Box<[u8]>), Failed> {
        match self.plain(ObjectCommand::GetAttributes { object: ObjectId(ino) })? {
            Reply::Attributes(attributes) => Ok((attributes.status, attributes.bytes)),
            other => panic!("attributes of object {ino} are answered with {other:?}"),
        }
    }

    /// Sets the attributes of a file in the store and in memory. The change may delete another file, which
    /// the caller removes from memory.
    fn set(
        &mut self,
        tree: &mut Tree,
        (ino, attributes): (u64, Attributes),
        replaces: Option<u64>,
    ) -> Result<(), Failed> {
        let bytes = attributes.encode().ok_or(Failed::number(libc::EMLINK))?;
        let command =
            ObjectCommand::SetAttributes { object: ObjectId(ino), replaces: replaces.map(ObjectId) };
        self.run(command, Data::Write(&bytes))?;
        tree.stale.remove(&ino);
        tree.get_mut(ino)?.attributes = attributes;
        self.recharge(tree, ino);
        Ok(())
    }

    /// Writes the times of a file to the store, where they are newer in memory.
    fn save(&mut self, tree: &mut Tree, ino: u64) -> Result<(), Failed> {
        if tree.stale.contains(&ino) {
            let attributes = tree.get(ino)?.attributes.clone();
            self.set(tree, (ino, attributes), None)?;
        }
        Ok(())
    }

    /// Makes a file durable, and whatever is needed to find it.
    fn flush(&mut self, tree: &mut Tree, ino: u64) -> Result<(), Failed> {
        for ino in tree.path(ino) {
            self.save(tree, ino)?;
            self.plain(ObjectCommand::Flush { object: Some(ObjectId(ino)) })?;
            tree.settled(ino);
        }
        Ok(())
    }

    /// Makes everything durable.
    fn flush_all(&mut self, tree: &mut Tree) -> Result<(), Failed> {
        for ino in tree.stale.clone() {
            self.save(tree, ino)?;
        }
        self.plain(ObjectCommand::Flush { object: None })?;
        tree.fresh.clear();
        tree.vacated.clear();
        Ok(())
    }

    fn stat(&mut self, tree: &Tree, ino: u64) -> Result<Stat, Failed> {
        let node = tree.get(ino)?;
        let (status, _) = self.status(ino)?;
        let size = match node.attributes.kind {
            Kind::Directory => 4096,
            Kind::Link => node.attributes.target.len() as u64,
            _ => status.size,
        };
        Ok(Stat {
            ino,
            attributes: node.attributes.clone(),
            size,
            allocated: status.allocated,
            links: Tree::links(node),
        })
    }
}

impl ObjectFs {
    fn calls(&self) -> Calls<'_> {
        Calls { client: &self.client, due: None }
    }

    fn lock(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().expect("no thread panicked while it held the tree")
    }

    fn check_writable(&self) -> Result<(), Failed> {
        if self.is_read_only { Err(Failed::number(libc::EROFS)) } else { Ok(()) }
    }
}
