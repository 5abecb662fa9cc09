//! The files and their names, in memory.

use super::attributes::{Attributes, Kind, NAME_BYTES, Name};
use super::quotas::Quotas;
use crate::client::Failed;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::SystemTime;

/// Number of the root's object.
pub const ROOT: u64 = 1;

/// A file.
#[derive(Debug)]
pub struct Node {
    pub attributes: Attributes,
    /// What a directory has in it.
    pub children: BTreeMap<Box<[u8]>, u64>,
    /// Which of these are directories: each is a link to this one.
    pub subdirs: BTreeSet<u64>,
    /// How often it is open.
    pub users: u32,
}

impl Node {
    pub const fn new(attributes: Attributes) -> Self {
        Self { attributes, children: BTreeMap::new(), subdirs: BTreeSet::new(), users: 0 }
    }

    pub fn is_dir(&self) -> bool {
        self.attributes.kind == Kind::Directory
    }
}

/// All files.
#[derive(Debug, Default)]
pub struct Tree {
    pub nodes: HashMap<u64, Node>,
    /// A number that no object has.
    pub next: u64,
    /// The last one that was given to a file.
    pub stamp: u64,
    /// Files whose times are newer here than in the attributes of their objects.
    pub stale: BTreeSet<u64>,
    /// Files whose names a loss of power might take back.
    pub fresh: BTreeSet<u64>,
    /// Names that files with other names had before, where a loss of power might bring them back.
    pub vacated: HashMap<(u64, Box<[u8]>), u64>,
    /// Directories that were removed and that the kernel still knows: they may be open, or where somebody is.
    pub gone: HashMap<u64, Attributes>,
    pub quotas: Quotas,
}

impl Tree {
    pub fn get(&self, ino: u64) -> Result<&Node, Failed> {
        self.nodes.get(&ino).ok_or(Failed::number(libc::ENOENT))
    }

    pub fn get_mut(&mut self, ino: u64) -> Result<&mut Node, Failed> {
        self.nodes.get_mut(&ino).ok_or(Failed::number(libc::ENOENT))
    }

    /// A directory.
    pub fn dir(&self, ino: u64) -> Result<&Node, Failed> {
        self.get(ino)
            .and_then(|node| if node.is_dir() { Ok(node) } else { Err(Failed::number(libc::ENOTDIR)) })
    }

    /// What a directory has under a name.
    pub fn child(&self, parent: u64, name: &[u8]) -> Result<Option<u64>, Failed> {
        if name.len() > NAME_BYTES {
            return Err(Failed::number(libc::ENAMETOOLONG));
        }
        Ok(self.dir(parent)?.children.get(name).copied())
    }

    /// The same, where something has to be.
    pub fn lookup(&self, parent: u64, name: &[u8]) -> Result<u64, Failed> {
        self.child(parent, name)?.ok_or(Failed::number(libc::ENOENT))
    }

    pub const fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }

    /// A directory has a name in it from now on, or has it no more.
    pub fn set_child(&mut self, parent: u64, name: &[u8], child: Option<u64>, now: SystemTime) {
        let subdir = child.filter(|ino| self.nodes.get(ino).is_some_and(Node::is_dir));
        let Some(dir) = self.nodes.get_mut(&parent) else { return };
        let before = match child {
            Some(child) => dir.children.insert(name.into(), child),
            None => dir.children.remove(name),
        };
        if let Some(before) = before {
            dir.subdirs.remove(&before);
        }
        dir.subdirs.extend(subdir);
        (dir.attributes.mtime, dir.attributes.ctime) = (now, now);
        self.stale.insert(parent);
    }

    /// A file has other bytes: its times, that is.
    pub fn changed(&mut self, ino: u64, now: SystemTime) {
        if let Some(node) = self.nodes.get_mut(&ino) {
            (node.attributes.mtime, node.attributes.ctime) = (now, now);
            self.stale.insert(ino);
        }
    }

    /// A file is gone.
    pub fn remove(&mut self, ino: u64) {
        if let Some(node) = self.nodes.remove(&ino).filter(Node::is_dir) {
            self.gone.insert(ino, node.attributes);
        }
        self.quotas.forget(ino);
        self.stale.remove(&ino);
        self.fresh.remove(&ino);
        self.vacated.retain(|_, by| *by != ino);
    }

    /// A file and those of its directories whose names a loss of power might take back, outermost first.
    pub fn path(&self, ino: u64) -> Vec<u64> {
        let mut path = Vec::new();
        self.add_path(ino, &mut path);
        path
    }

    fn add_path(&self, ino: u64, path: &mut Vec<u64>) {
        let Some(node) = self.nodes.get(&ino).filter(|_| !path.contains(&ino)) else { return };
        for Name { parent, .. } in &node.attributes.names {
            if self.fresh.contains(parent) {
                self.add_path(*parent, path);
            }
        }
        path.push(ino);
    }

    /// A loss of power takes the file's names back no more.
    pub fn settled(&mut self, ino: u64) {
        self.fresh.remove(&ino);
        self.vacated.retain(|_, by| *by != ino);
    }

    /// Files that a loss of power might bring back into a directory.
    pub fn moved_out_of(&self, dir: u64) -> Vec<u64> {
        let back = self.vacated.iter().filter(|((parent, _), _)| *parent == dir);
        back.map(|(_, ino)| *ino).collect()
    }

    /// Links that lead to a file.
    pub fn links(node: &Node) -> u32 {
        if !node.is_dir() {
            return node.attributes.names.len() as u32;
        }
        2 + node.subdirs.len() as u32
    }

    /// Finds the directories in each directory, once all have their children.
    pub fn find_subdirs(&mut self) {
        let dirs = self.nodes.iter().filter(|(_, node)| node.is_dir()).map(|(ino, _)| *ino);
        let dirs: HashSet<u64> = dirs.collect();
        for node in self.nodes.values_mut().filter(|node| node.is_dir()) {
            node.subdirs = node.children.values().copied().filter(|ino| dirs.contains(ino)).collect();
        }
    }

    /// Whether a directory is another one or lies in it.
    pub fn is_within(&self, mut ino: u64, dir: u64) -> bool {
        while ino != dir {
            let parent = self.nodes.get(&ino).and_then(|node| node.attributes.names.first());
            let Some(name) = parent else { return false };
            ino = name.parent;
        }
        true
    }
}
