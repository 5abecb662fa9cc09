//! Files by their paths, and the operations on them.

use super::processes::Sync;
use crate::formats::file_model::Step;
use nandscape_core::SimTime;
use nandscape_host::fs::{FileOp, FileOpKind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Directories that hold no files of a disk.
const PSEUDO: [&[u8]; 3] = [b"/dev", b"/proc", b"/sys"];
/// Directories of programs and their settings, which belong to a recording only if they are asked for.
const OF_SYSTEM: [&[u8]; 9] =
    [b"/run", b"/usr", b"/etc", b"/bin", b"/sbin", b"/lib", b"/lib32", b"/lib64", b"/libx32"];

/// What is known about the life of a file before its first operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// A call made it.
    New,
    /// It was there before.
    Old,
    /// It was opened with `O_CREAT`, and nothing tells yet whether it was there.
    Unsure,
}

#[derive(Clone, Debug)]
struct File {
    /// Number of its life; 0 before its first operation.
    number: u32,
    origin: Origin,
    size: u64,
    is_size_known: bool,
    links: u32,
    opens: u32,
    /// It is under the directories of the recording.
    is_recorded: bool,
    /// The path it had last.
    path: Vec<u8>,
}

/// Which paths belong to a recording.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// Without a `/` at the end; none are all but those of the system.
    folders: Vec<Vec<u8>>,
}

impl Scope {
    /// Directories apart by `:`.
    pub(super) fn new(folders: Option<&str>) -> Self {
        let folders = folders.unwrap_or_default().split(':').filter(|folder| !folder.is_empty());
        Self { folders: folders.map(|folder| normal(b"", folder.as_bytes())).collect() }
    }

    fn holds(&self, path: &[u8]) -> bool {
        let below = |folder: &[u8]| is_below(path, folder);
        if self.folders.is_empty() {
            return !PSEUDO.iter().chain(&OF_SYSTEM).any(|folder| below(folder));
        }
        let pseudo = PSEUDO.iter().find(|folder| below(folder));
        self.folders
            .iter()
            .any(|folder| below(folder) && pseudo.is_none_or(|pseudo| is_below(folder, pseudo)))
    }
}

fn is_below(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| folder == b"/" || folder.is_empty() || rest.is_empty() || rest[0] == b'/')
}

/// A path without `.`, `..` and doubled `/`. Relative ones are taken from `folder`.
pub(super) fn normal(folder: &[u8], path: &[u8]) -> Vec<u8> {
    let absolute = path.starts_with(b"/");
    let mut out = if absolute { Vec::new() } else { folder.strip_suffix(b"/").unwrap_or(folder).to_vec() };
    let from_root = absolute || folder.starts_with(b"/");
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => out.truncate(out.iter().rposition(|&byte| byte == b'/').unwrap_or(0)),
            part => {
                if !out.is_empty() || from_root {
                    out.push(b'/');
                }
                out.extend_from_slice(part);
            }
        }
    }
    if out.is_empty() && from_root {
        out.push(b'/');
    }
    out
}

/// The directory of a path, without its `/`.
fn folder_of(path: &[u8]) -> &[u8] {
    path.iter().rposition(|&byte| byte == b'/').map_or(b"", |at| &path[..at.max(1).min(path.len())])
}

/// What follows the directory in a path.
fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

#[derive(Debug, Default)]
pub(super) struct Files {
    known: Vec<File>,
    paths: BTreeMap<Vec<u8>, usize>,
    folders: BTreeSet<Vec<u8>>,
    /// Paths that were asked for in vain.
    absent: BTreeSet<Vec<u8>>,
    /// Symbolic links and special files that were made.
    others: BTreeSet<Vec<u8>>,
    /// Directories with links in their paths, and what these lead to.
    aliases: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Files written since they were synced.
    unsynced: BTreeSet<usize>,
    scope: Scope,
    with_reads: bool,
    numbers: u32,
    /// Time and process of the call.
    pub(super) at: SimTime,
    pub(super) writer: u32,
    pub(super) steps: VecDeque<Step>,
}

impl Files {
    pub(super) fn new(scope: Scope, with_reads: bool) -> Self {
        Self { scope, with_reads, ..Self::default() }
    }

    /// Notes a directory, and those above it.
    pub(super) fn add_folder(&mut self, path: &[u8]) {
        let mut path = path;
        while !path.is_empty() && self.folders.insert(path.to_vec()) && path != b"/" {
            path = folder_of(path);
        }
    }

    pub(super) fn remove_folder(&mut self, path: &[u8]) {
        self.folders.remove(path);
    }

    pub(super) fn is_folder(&self, path: &[u8]) -> bool {
        self.folders.contains(path)
    }

    /// Whether there cannot be files of a disk.
    pub(super) fn is_pseudo(path: &[u8]) -> bool {
        // Shared memory is made of files, which a recording can be asked for.
        !is_below(path, b"/dev/shm") && PSEUDO.iter().any(|folder| is_below(path, folder))
    }

    pub(super) fn is_absent(&mut self, path: Vec<u8>) {
        if !self.paths.contains_key(&path) {
            self.absent.insert(path);
        }
    }

    /// A symbolic link or special file was made.
    pub(super) fn add_other(&mut self, path: Vec<u8>) {
        self.absent.remove(&path);
        self.others.insert(path);
    }

    /// The same path where its directory is known to be a link.
    pub(super) fn without_links(&self, path: Vec<u8>) -> Vec<u8> {
        match self.aliases.get(folder_of(&path)) {
            Some(folder) => normal(folder, name_of(&path)),
            None => path,
        }
    }

    /// Learns from a path that was asked for and the one that was opened where links lead to.
    pub(super) fn learn_link(&mut self, asked: &[u8], opened: &[u8]) {
        let (from, to) = (folder_of(asked), folder_of(opened));
        if from != to && from.len() > 1 && name_of(asked) == name_of(opened) {
            self.aliases.insert(from.to_vec(), to.to_vec());
        }
    }

    pub(super) fn find(&self, path: &[u8]) -> Option<usize> {
        self.paths.get(path).copied()
    }

    /// The file of a path; one that was never seen is old.
    pub(super) fn at_path(&mut self, path: &[u8]) -> usize {
        match self.find(path) {
            Some(file) => file,
            None => self.add(path, Origin::Old, true),
        }
    }

    /// The file of a path that was opened.
    pub(super) fn at_open(&mut self, path: &[u8], creates: bool, is_exclusive: bool, empties: bool) -> usize {
        let known = self.find(path);
        let is_new = creates && (is_exclusive || known.is_none() && (self.absent.contains(path) || empties));
        match known {
            Some(file) if !is_new => {
                if empties {
                    self.empty(file);
                }
                return file;
            }
            // Something else removed the file that had the path.
            Some(file) => self.lose(path, file),
            None => {}
        }
        let origin = match creates {
            _ if is_new => Origin::New,
            true => Origin::Unsure,
            false => Origin::Old,
        };
        let file = self.add(path, origin, true);
        if empties && origin == Origin::Old {
            self.truncate(file, 0);
        }
        file
    }

    /// Makes a file known; without a link it goes with its last descriptor.
    pub(super) fn add(&mut self, path: &[u8], origin: Origin, is_linked: bool) -> usize {
        let file = self.known.len();
        self.known.push(File {
            number: 0,
            origin,
            size: 0,
            is_size_known: origin == Origin::New,
            links: u32::from(is_linked),
            opens: 0,
            is_recorded: self.scope.holds(path),
            path: path.to_vec(),
        });
        if is_linked {
            self.place(path, file);
        }
        if origin == Origin::New {
            self.appear(file);
        }
        file
    }

    fn place(&mut self, path: &[u8], file: usize) {
        self.absent.remove(path);
        self.others.remove(path);
        self.folders.remove(path);
        self.add_folder(folder_of(path));
        self.paths.insert(path.to_vec(), file);
    }

    /// Whether a path leads to the file of a descriptor.
    pub(super) fn leads_to(&self, path: &[u8], file: usize) -> bool {
        self.known[file].path == path || self.find(path) == Some(file)
    }

    pub(super) fn size(&self, file: usize) -> u64 {
        self.known[file].size
    }

    /// A size that the system reports.
    pub(super) fn learn_size(&mut self, file: usize, size: u64) {
        let file = &mut self.known[file];
        if file.number == 0 && file.origin == Origin::Unsure && size > 0 {
            file.origin = Origin::Old;
        }
        if !file.is_size_known {
            file.size = size;
            file.is_size_known = true;
        }
    }

    fn push(&mut self, file: usize, kind: FileOpKind, offset: u64, len: u64, path: Option<&[u8]>) {
        let (at, writer, file) = (self.at, self.writer, self.known[file].number);
        let path = path.map(|path| String::from_utf8_lossy(path).into_owned());
        self.steps.push_back(Step { op: FileOp { at, kind, writer, file, offset, len }, path });
    }

    /// The first operation of a file.
    fn appear(&mut self, file: usize) -> bool {
        let known = &mut self.known[file];
        if known.number > 0 || !known.is_recorded {
            return known.is_recorded;
        }
        self.numbers += 1;
        known.number = self.numbers;
        let kind = if known.origin == Origin::Old { FileOpKind::Open } else { FileOpKind::Create };
        known.is_size_known |= kind == FileOpKind::Create;
        let path = known.path.clone();
        self.push(file, kind, 0, 0, Some(&path));
        true
    }

    /// An operation on a file, behind its first one.
    pub(super) fn ask(&mut self, file: usize, kind: FileOpKind, offset: u64, len: u64) {
        if self.appear(file) {
            self.push(file, kind, offset, len, None);
        }
    }

    pub(super) fn read(&mut self, file: usize, offset: u64, len: u64) {
        let known = &mut self.known[file];
        if len == 0 {
            return;
        }
        if known.number == 0 && known.origin == Origin::Unsure {
            known.origin = Origin::Old;
        }
        known.size = known.size.max(offset.saturating_add(len));
        if self.with_reads {
            self.ask(file, FileOpKind::Read, offset, len);
        }
    }

    pub(super) fn write(&mut self, file: usize, offset: u64, len: u64, sync: Sync) {
        if len == 0 {
            return;
        }
        self.ask(file, FileOpKind::Write, offset, len);
        let known = &mut self.known[file];
        known.size = known.size.max(offset.saturating_add(len));
        match sync {
            Sync::Nothing => drop(self.unsynced.insert(file)),
            Sync::Written => self.ask(file, FileOpKind::SyncRange, offset, len),
            Sync::Data => self.sync(file, FileOpKind::Fdatasync),
            Sync::All => self.sync(file, FileOpKind::Fsync),
        }
    }

    pub(super) fn sync(&mut self, file: usize, kind: FileOpKind) {
        self.unsynced.remove(&file);
        self.ask(file, kind, 0, 0);
    }

    /// Every file is synced: the data of all, and the last one with its metadata, which flushes.
    pub(super) fn sync_all(&mut self) {
        let mut files: Vec<usize> = std::mem::take(&mut self.unsynced).into_iter().collect();
        files.retain(|&file| self.known[file].is_recorded);
        let last = files.pop();
        for file in files {
            self.ask(file, FileOpKind::SyncRange, 0, 0);
        }
        if let Some(file) = last {
            self.ask(file, FileOpKind::Fsync, 0, 0);
        }
    }

    pub(super) fn truncate(&mut self, file: usize, size: u64) {
        self.ask(file, FileOpKind::Truncate, size, 0);
        let known = &mut self.known[file];
        (known.size, known.is_size_known) = (size, true);
    }

    /// `O_TRUNC`: of a file that is empty nothing is cut off.
    pub(super) fn empty(&mut self, file: usize) {
        let known = &mut self.known[file];
        if known.number == 0 && known.origin == Origin::Unsure {
            // Whatever it was, it is as good as new.
            known.origin = Origin::New;
            self.appear(file);
        } else if known.size > 0 || !known.is_size_known {
            self.truncate(file, 0);
        }
    }

    pub(super) fn grow(&mut self, file: usize, end: u64) {
        let known = &mut self.known[file];
        known.size = known.size.max(end);
    }

    pub(super) fn opened(&mut self, file: usize) {
        self.known[file].opens += 1;
    }

    pub(super) fn closed(&mut self, file: usize) {
        let known = &mut self.known[file];
        known.opens -= 1;
        if known.opens > 0 {
            return;
        }
        if known.origin == Origin::Unsure && known.number == 0 {
            self.appear(file);
        }
        self.delete_if_gone(file);
    }

    /// A file without a path and without a descriptor is gone.
    fn delete_if_gone(&mut self, file: usize) {
        let known = &self.known[file];
        if known.links == 0 && known.opens == 0 {
            self.delete(file);
        }
    }

    fn delete(&mut self, file: usize) {
        self.unsynced.remove(&file);
        let size = self.known[file].size;
        self.ask(file, FileOpKind::Delete, 0, size);
        self.known[file].is_recorded = false;
    }

    /// What was unlinked and never closed is gone at the end.
    pub(super) fn finish(&mut self) {
        for file in 0..self.known.len() {
            let known = &self.known[file];
            if known.is_recorded && known.links == 0 {
                self.delete(file);
            } else if known.origin == Origin::Unsure && known.number == 0 {
                self.appear(file);
            }
        }
    }

    pub(super) fn unlink(&mut self, path: Vec<u8>) {
        if !self.others.remove(&path) {
            let file = self.at_path(&path);
            self.lose(&path, file);
        }
        self.absent.insert(path);
    }

    fn lose(&mut self, path: &[u8], file: usize) {
        self.paths.remove(path);
        self.known[file].links -= 1;
        self.delete_if_gone(file);
    }

    /// One more path for a file.
    pub(super) fn link(&mut self, file: usize, path: &[u8]) {
        let known = &mut self.known[file];
        known.links += 1;
        if known.links == 1 {
            known.path = path.to_vec();
            known.is_recorded |= self.scope.holds(path);
        }
        self.place(path, file);
    }

    pub(super) fn rename(&mut self, from: Vec<u8>, to: &[u8]) {
        if self.is_folder(&from) {
            return self.move_folder(&from, to);
        }
        if self.others.remove(&from) {
            if let Some(replaced) = self.find(to) {
                self.lose(to, replaced);
            }
            self.others.insert(to.to_vec());
            self.absent.insert(from);
            return;
        }
        let file = self.at_path(&from);
        let replaced = self.find(to);
        if replaced == Some(file) {
            // Two links of one file: nothing happens.
            return;
        }
        if let Some(replaced) = replaced {
            self.lose(to, replaced);
        }
        self.moved(file, from, to);
    }

    fn moved(&mut self, file: usize, from: Vec<u8>, to: &[u8]) {
        self.paths.remove(&from);
        self.absent.insert(from);
        self.place(to, file);
        // Before its first operation it gets its first name.
        if self.appear(file) {
            self.push(file, FileOpKind::Rename, 0, 0, Some(to));
        }
        let known = &mut self.known[file];
        known.path = to.to_vec();
        known.is_recorded |= self.scope.holds(to);
    }

    pub(super) fn exchange(&mut self, one: &[u8], other: &[u8]) {
        if self.is_folder(one) || self.is_folder(other) || one == other {
            return;
        }
        let (first, second) = (self.at_path(one), self.at_path(other));
        if first != second {
            self.moved(first, one.to_vec(), other);
            // The place is taken by the first one now, which must stay there.
            self.moved(second, Vec::new(), one);
        }
    }

    /// A directory has another path, and all that is in it. That is no operation on a file.
    fn move_folder(&mut self, from: &[u8], to: &[u8]) {
        let moved = |path: &[u8]| [to, &path[from.len()..]].concat();
        let mut start = from.to_vec();
        start.push(b'/');
        let inside = |path: &Vec<u8>| path.starts_with(&start);
        let folders: Vec<_> =
            self.folders.range(start.clone()..).take_while(|path| inside(path)).cloned().collect();
        for folder in folders.into_iter().chain([from.to_vec()]) {
            self.folders.remove(&folder);
            self.add_folder(&moved(&folder));
        }
        let paths: Vec<_> = self
            .paths
            .range(start.clone()..)
            .take_while(|(path, _)| inside(path))
            .map(|(path, &file)| (path.clone(), file))
            .collect();
        for (path, file) in paths {
            self.paths.remove(&path);
            let new = moved(&path);
            if self.known[file].path == path {
                self.known[file].path.clone_from(&new);
                self.known[file].is_recorded |= self.scope.holds(&new);
            }
            self.place(&new, file);
        }
    }
}
