//! The tree of names, from the attributes of the objects.

use super::attributes::{Attributes, Given, Kind, Name};
use super::tree::{Node, ROOT, Tree};
use super::{Calls, ObjectFs};
use crate::client::{Client, Failed};
use crate::errors::MountError;
use nandscape_core::{Hint, ObjectCommand, ObjectId, ObjectStatus, Reply};
use nandscape_engine::Data;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Mutex;
use std::time::SystemTime;

/// Where files go that no name leads to.
const LOST: &[u8] = b"lost+found";

/// What was found besides whole files.
#[derive(Debug, Default)]
struct Found {
    /// Unlinked while they were open, replaced, or never finished.
    superfluous: Vec<u64>,
    /// Attributes that the store does not have yet.
    changed: BTreeSet<u64>,
    /// Neither names nor anything else of them can be read.
    unreadable: Vec<u64>,
    /// What was put in the directory of lost files.
    lost: usize,
    /// That directory, if it has just been made.
    made: Option<u64>,
}

impl ObjectFs {
    /// Reads the tree, and puts in order what a loss of power left; an empty store becomes an empty
    /// directory. Gives notes on what was put in order. A file system that `is_read_only` changes nothing in
    /// the store.
    pub fn load(client: Client, is_read_only: bool) -> Result<(Self, Vec<String>), MountError> {
        let mut calls = Calls { client: &client, due: None };
        let (tree, found) = read(&mut calls).map_err(MountError::Refused)?;
        let notes = found.notes();
        if !is_read_only {
            let cannot = |failed: Failed| {
                MountError::Refused(format!("cannot put the files in order: {}", failed.why()))
            };
            store(&tree, &found, &mut calls).map_err(cannot)?;
        }
        Ok((Self { client, is_read_only, tree: Mutex::new(tree) }, notes))
    }
}

impl Found {
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.superfluous.is_empty() {
            notes.push(format!("unlinked, replaced or unfinished files removed: {}", self.superfluous.len()));
        }
        if !self.unreadable.is_empty() {
            let numbers: Vec<String> = self.unreadable.iter().take(10).map(u64::to_string).collect();
            let more = if self.unreadable.len() > 10 { " ..." } else { "" };
            notes.push(format!(
                "left out {} files of which nothing can be read, their names neither: objects {}{more}",
                self.unreadable.len(),
                numbers.join(", ")
            ));
        }
        if self.lost > 0 {
            notes.push(format!("put {} files that no name led to in {}", self.lost, LOST.escape_ascii()));
        }
        notes
    }
}

/// All objects as files.
fn read(calls: &mut Calls<'_>) -> Result<(Tree, Found), String> {
    let objects: Box<[ObjectStatus]> = match calls.plain(ObjectCommand::List).map_err(Failed::why)? {
        Reply::Objects(objects) => objects,
        other => panic!("a question for all objects is answered with {other:?}"),
    };
    let (mut tree, mut found) = (Tree::default(), Found::default());
    for status in &objects {
        let ino = status.object.0;
        tree.next = tree.next.max(ino.saturating_add(1));
        let bytes = match calls.status(ino) {
            Ok((_, bytes)) => bytes,
            // Some page of the flash; the other files are there.
            Err(error) if error.errno == libc::EIO && ino != ROOT => {
                found.unreadable.push(ino);
                continue;
            }
            Err(error) => return Err(error.why()),
        };
        if bytes.is_empty() && status.size == 0 {
            found.superfluous.push(ino);
            continue;
        }
        let attributes = Attributes::decode(&bytes).unwrap_or_else(|| unknown(Kind::File, 0o600));
        tree.stamp = tree.stamp.max(attributes.stamp);
        tree.nodes.insert(ino, Node::new(attributes));
    }
    tree.next = tree.next.max(ROOT + 1);
    if tree.nodes.is_empty() && found.unreadable.is_empty() {
        let root = Attributes { names: Vec::new(), ..unknown(Kind::Directory, 0o755) };
        tree.nodes.insert(ROOT, Node::new(root));
        found.made = Some(ROOT);
        return Ok((tree, found));
    }
    if !tree.nodes.get(&ROOT).is_some_and(Node::is_dir) {
        return Err(format!(
            "the store has {} objects, but object {ROOT} is no directory: expected an empty store, or one that \
             'serve fuse' has written",
            objects.len()
        ));
    }
    end_exchanges(&mut tree, &mut found);
    hang(&mut tree, &mut found);
    collect_lost(&mut tree, &mut found);
    tree.find_subdirs();
    Ok((tree, found))
}

/// The attributes of a file of which nothing is known.
fn unknown(kind: Kind, mode: u16) -> Attributes {
    let now = SystemTime::now();
    Attributes {
        kind,
        mode,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        rdev: 0,
        stamp: 0,
        atime: now,
        mtime: now,
        ctime: now,
        // Nowhere: it will be found lost.
        names: vec![Name { parent: 0, bytes: Box::default() }],
        target: Box::default(),
        extended: BTreeMap::new(),
        given: None,
    }
}

/// Ends exchanges of names of which the first half is there alone: the other file has the name that is
/// meant for it. What the first half says holds for no later change of its file.
fn end_exchanges(tree: &mut Tree, found: &mut Found) {
    let given = tree.nodes.iter_mut().filter_map(|(ino, node)| Some((*ino, node.attributes.given.take()?)));
    let halves: Vec<(u64, Given)> = given.collect();
    for (ino, given) in halves {
        let (stamp, names) = (tree.nodes[&ino].attributes.stamp, tree.nodes[&ino].attributes.names.clone());
        let Some(other) = tree.nodes.get_mut(&given.ino) else { continue };
        let is_older = other.attributes.stamp < stamp;
        if let Some(taken) = other.attributes.names.iter_mut().find(|name| is_older && names.contains(name)) {
            *taken = given.name;
            other.attributes.stamp = stamp;
            found.changed.insert(given.ino);
        }
    }
}

/// Puts every file where its names say. Where two have the same name, one of them was unlinked or replaced,
/// and loses it: the one that was named earlier.
fn hang(tree: &mut Tree, found: &mut Found) {
    let mut files: Vec<(u64, u64)> =
        tree.nodes.iter().map(|(ino, node)| (node.attributes.stamp, *ino)).collect();
    files.sort_unstable_by(|a, b| b.cmp(a));
    for (_, ino) in files.into_iter().filter(|(_, ino)| *ino != ROOT) {
        let names = std::mem::take(&mut tree.nodes.get_mut(&ino).expect("as listed above").attributes.names);
        let all = names.len();
        let mut is_lost = false;
        let mut kept = Vec::new();
        for name in names {
            match tree.nodes.get_mut(&name.parent).filter(|dir| dir.is_dir()) {
                None => is_lost = true,
                Some(dir) if dir.children.contains_key(&name.bytes) => {}
                Some(dir) => {
                    dir.children.insert(name.bytes.clone(), ino);
                    kept.push(name);
                }
            }
        }
        if kept.is_empty() && !is_lost {
            tree.nodes.remove(&ino);
            found.superfluous.push(ino);
            continue;
        }
        if kept.len() < all {
            found.changed.insert(ino);
        }
        tree.nodes.get_mut(&ino).expect("as listed above").attributes.names = kept;
    }
}

/// Gives names to files that none leads to.
fn collect_lost(tree: &mut Tree, found: &mut Found) {
    let mut lost: BTreeSet<u64> = tree.nodes.keys().copied().collect();
    let mut below = vec![ROOT];
    loop {
        while let Some(ino) = below.pop() {
            if lost.remove(&ino) {
                below.extend(tree.nodes[&ino].children.values());
            }
        }
        // What lies in a lost directory comes back with that. In a circle any one is the first.
        let inside: HashSet<u64> =
            lost.iter().flat_map(|ino| tree.nodes[ino].children.values().copied()).collect();
        below = lost.iter().copied().filter(|ino| !inside.contains(ino)).collect();
        if below.is_empty() {
            below = lost.first().copied().into_iter().collect();
        }
        if below.is_empty() {
            return;
        }
        for ino in &below {
            name_lost(tree, found, *ino);
        }
    }
}

/// Puts a file in the directory of lost files.
fn name_lost(tree: &mut Tree, found: &mut Found, ino: u64) {
    let dir = lost_dir(tree, found);
    let bytes = free_name(tree, dir, format!("#{ino}").as_bytes());
    let stamp = tree.next_stamp();
    let attributes = &mut tree.nodes.get_mut(&ino).expect("as listed above").attributes;
    attributes.stamp = stamp;
    let old = std::mem::replace(&mut attributes.names, vec![Name { parent: dir, bytes: bytes.clone() }]);
    for name in old {
        if let Some(parent) = tree.nodes.get_mut(&name.parent) {
            parent.children.remove(&name.bytes);
        }
    }
    tree.nodes.get_mut(&dir).expect("it was made above").children.insert(bytes, ino);
    found.changed.insert(ino);
    found.lost += 1;
}

/// The directory of lost files.
fn lost_dir(tree: &mut Tree, found: &mut Found) -> u64 {
    let there = tree.nodes[&ROOT].children.get(LOST).copied();
    if let Some(dir) = found.made.or(there.filter(|ino| tree.nodes[ino].is_dir())) {
        return dir;
    }
    let bytes = free_name(tree, ROOT, LOST);
    let ino = tree.next;
    tree.next += 1;
    let stamp = tree.next_stamp();
    let names = vec![Name { parent: ROOT, bytes: bytes.clone() }];
    tree.nodes.insert(ino, Node::new(Attributes { stamp, names, ..unknown(Kind::Directory, 0o700) }));
    tree.nodes.get_mut(&ROOT).expect("it was seen before").children.insert(bytes, ino);
    found.made = Some(ino);
    ino
}

/// A name that a directory does not have.
fn free_name(tree: &Tree, dir: u64, wanted: &[u8]) -> Box<[u8]> {
    let is_free = |name: &[u8]| !tree.nodes[&dir].children.contains_key(name);
    let numbered = (1..).map(|n: u32| [wanted, format!(".{n}").as_bytes()].concat());
    std::iter::once(wanted.to_vec())
        .chain(numbered)
        .find(|name| is_free(name))
        .expect("names do not end")
        .into()
}

/// Brings the store up to what was found.
fn store(tree: &Tree, found: &Found, calls: &mut Calls<'_>) -> Result<(), Failed> {
    for ino in &found.superfluous {
        calls.plain(ObjectCommand::Delete { object: ObjectId(*ino) })?;
    }
    if let Some(ino) = found.made {
        calls.plain(ObjectCommand::Create { object: ObjectId(ino), hint: Hint::NOT_SET })?;
    }
    for ino in found.made.iter().chain(&found.changed) {
        let bytes = tree.nodes[ino].attributes.encode().ok_or(Failed::number(libc::EMLINK))?;
        let object = ObjectId(*ino);
        calls.run(ObjectCommand::SetAttributes { object, replaces: None }, Data::Write(&bytes))?;
    }
    if found.made.is_some() || !found.changed.is_empty() || !found.superfluous.is_empty() {
        calls.plain(ObjectCommand::Flush { object: None })?;
    }
    Ok(())
}
