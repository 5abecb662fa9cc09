//! Processes, and what they share: descriptors, working directories, memory.

use super::line::Path;
use std::collections::BTreeMap;

/// Descriptors of all tables, beyond which the text is not believed.
const DESCRIPTORS_MAX: usize = 1 << 22;

/// Things that several processes may have together, by number.
#[derive(Debug)]
pub(super) struct Shared<T> {
    things: BTreeMap<u32, (usize, T)>,
    next: u32,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self { things: BTreeMap::new(), next: 0 }
    }
}

impl<T: Clone> Shared<T> {
    /// A thing that one process has.
    pub(super) fn add(&mut self, thing: T) -> u32 {
        self.next += 1;
        self.things.insert(self.next, (1, thing));
        self.next
    }

    pub(super) fn get(&self, number: u32) -> &T {
        &self.things.get(&number).expect("a process has it").1
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        &mut self.things.get_mut(&number).expect("a process has it").1
    }

    /// For one more process: the same thing, or a copy of it.
    fn give(&mut self, number: u32, is_same: bool) -> u32 {
        if is_same {
            self.things.get_mut(&number).expect("a process has it").0 += 1;
            return number;
        }
        let copy = self.get(number).clone();
        self.add(copy)
    }

    /// One process less has it; returns it if that was the last.
    fn leave(&mut self, number: u32) -> Option<T> {
        let (users, _) = self.things.get_mut(&number).expect("a process has it");
        *users -= 1;
        if *users == 0 { self.things.remove(&number).map(|(_, thing)| thing) } else { None }
    }

    fn has_others(&self, number: u32) -> bool {
        self.things.get(&number).is_some_and(|(users, _)| *users > 1)
    }
}

/// What a descriptor leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Object {
    /// A file, by its place in the table of files.
    File(usize),
    Directory(Vec<u8>),
    /// A pipe, a socket, a device.
    Other,
}

/// What writes through a descriptor wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sync {
    #[default]
    Nothing,
    /// Their data has left the page cache (`O_DIRECT`).
    Written,
    /// Their data is durable (`O_DSYNC`).
    Data,
    /// The file is durable (`O_SYNC`).
    All,
}

/// An open file description: descriptors that were duplicated or inherited have it together.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) object: Object,
    pub(super) offset: u64,
    pub(super) appends: bool,
    pub(super) sync: Sync,
    users: usize,
}

impl Open {
    pub(super) fn new(object: Object) -> Self {
        Self { object, offset: 0, appends: false, sync: Sync::Nothing, users: 0 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    open: u64,
    closes_at_exec: bool,
}

type Table = BTreeMap<i32, Slot>;

/// A shared writable mapping.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    pub(super) len: u64,
    pub(super) file: usize,
}

/// A call whose end has not been seen.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) text: Vec<u8>,
    /// What its first argument led to when it began.
    pub(super) held: Option<u64>,
    /// It makes a process.
    makes_process: bool,
    /// The process that it made, if that was seen first.
    child: Option<u32>,
}

#[derive(Debug)]
struct Process {
    table: u32,
    folder: u32,
    memory: u32,
    /// First thread of the process.
    leader: u32,
    pending: Option<Pending>,
}

/// What a new process has together with the one that made it.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "flags of clone, which are independent of each other")]
pub(super) struct Together {
    pub(super) files: bool,
    pub(super) folder: bool,
    pub(super) memory: bool,
    pub(super) thread: bool,
}

#[derive(Debug, Default)]
pub(super) struct Processes {
    known: BTreeMap<u32, Process>,
    tables: Shared<Table>,
    folders: Shared<Vec<u8>>,
    memories: Shared<BTreeMap<u64, Mapping>>,
    opens: BTreeMap<u64, Open>,
    next_open: u64,
    descriptors: usize,
    /// Working directory of the first process, if it was given.
    start: Vec<u8>,
}

impl Processes {
    pub(super) fn new(start: Vec<u8>) -> Self {
        Self { start, ..Self::default() }
    }

    /// The process of a line without a number: the only one there is, else one that gets the number 0.
    pub(super) fn only(&self) -> u32 {
        match (self.known.first_key_value(), self.known.len()) {
            (Some((&pid, _)), 1) => pid,
            _ => 0,
        }
    }

    /// Makes a process known. One that was never seen is the child of a call that has not ended, or was
    /// there before.
    pub(super) fn meet(&mut self, pid: u32) -> Result<(), String> {
        if self.known.contains_key(&pid) {
            return Ok(());
        }
        let is_waiting = |process: &Process| {
            process.pending.as_ref().is_some_and(|pending| pending.makes_process && pending.child.is_none())
        };
        let parent = self.known.iter().find(|(_, process)| is_waiting(process)).map(|(&pid, _)| pid);
        if let Some(parent) = parent {
            let pending = self.known.get_mut(&parent).and_then(|process| process.pending.as_mut());
            let together = pending.map(|pending| {
                pending.child = Some(pid);
                Together::of(&pending.text)
            });
            return together.map_or(Ok(()), |together| self.make(parent, pid, together));
        }
        // Without numbers so far there was one process, which has one now.
        if self.known.len() == 1
            && let Some(mut process) = self.known.remove(&0)
        {
            process.leader = pid;
            self.known.insert(pid, process);
            return Ok(());
        }
        let process = Process {
            table: self.tables.add(Table::new()),
            folder: self.folders.add(self.start.clone()),
            memory: self.memories.add(BTreeMap::new()),
            leader: pid,
            pending: None,
        };
        self.known.insert(pid, process);
        Ok(())
    }

    /// A call of `parent` that makes the process `child` ended.
    pub(super) fn fork(&mut self, parent: u32, child: u32, together: Together) -> Result<(), String> {
        let seen = self.get(parent).pending.as_ref().and_then(|pending| pending.child);
        if seen == Some(child) { Ok(()) } else { self.make(parent, child, together) }
    }

    fn make(&mut self, parent: u32, child: u32, together: Together) -> Result<(), String> {
        if parent == child || self.known.contains_key(&child) {
            return Ok(());
        }
        let Process { table, folder, memory, leader, .. } = *self.get(parent);
        let process = Process {
            table: self.give_table(table, together.files)?,
            folder: self.folders.give(folder, together.folder),
            memory: self.memories.give(memory, together.memory),
            leader: if together.thread { leader } else { child },
            pending: None,
        };
        self.known.insert(child, process);
        Ok(())
    }

    fn give_table(&mut self, table: u32, is_same: bool) -> Result<u32, String> {
        if !is_same {
            for slot in self.tables.get(table).values() {
                self.opens.get_mut(&slot.open).expect("a slot leads to it").users += 1;
                self.descriptors += 1;
            }
            self.check_descriptors()?;
        }
        Ok(self.tables.give(table, is_same))
    }

    fn check_descriptors(&self) -> Result<(), String> {
        if self.descriptors > DESCRIPTORS_MAX {
            return Err(format!("more than {DESCRIPTORS_MAX} open descriptors: expected fewer"));
        }
        Ok(())
    }

    /// `unshare` of descriptors or of the working directory.
    pub(super) fn unshare(&mut self, pid: u32, files: bool, folder: bool) -> Result<(), String> {
        if files && self.tables.has_others(self.get(pid).table) {
            let old = self.get(pid).table;
            self.get_mut(pid).table = self.give_table(old, false)?;
            self.tables.leave(old);
        }
        if folder && self.folders.has_others(self.get(pid).folder) {
            let old = self.get(pid).folder;
            self.get_mut(pid).folder = self.folders.give(old, false);
            self.folders.leave(old);
        }
        Ok(())
    }

    /// A process runs another program: returns what was closed.
    pub(super) fn exec(&mut self, pid: u32) -> Result<Vec<Object>, String> {
        self.unshare(pid, true, false)?;
        let fresh = self.memories.add(BTreeMap::new());
        let old = std::mem::replace(&mut self.get_mut(pid).memory, fresh);
        self.memories.leave(old);
        let table = self.get(pid).table;
        let closing: Vec<i32> = self
            .tables
            .get(table)
            .iter()
            .filter(|(_, slot)| slot.closes_at_exec)
            .map(|(&fd, _)| fd)
            .collect();
        Ok(closing.into_iter().filter_map(|fd| self.close(pid, fd)).collect())
    }

    /// A process ended: returns what was closed.
    pub(super) fn exit(&mut self, pid: u32) -> Vec<Object> {
        let Some(process) = self.known.remove(&pid) else { return Vec::new() };
        self.folders.leave(process.folder);
        self.memories.leave(process.memory);
        let table = self.tables.leave(process.table).unwrap_or_default();
        self.descriptors -= table.len();
        let held = process.pending.and_then(|pending| pending.held);
        table.values().map(|slot| slot.open).chain(held).filter_map(|open| self.release(open)).collect()
    }

    /// A thread took the number of its process.
    pub(super) fn supersede(&mut self, thread: u32, pid: u32) -> Vec<Object> {
        let Some(mut process) = self.known.remove(&thread) else { return Vec::new() };
        let closed = self.exit(pid);
        process.leader = pid;
        self.known.insert(pid, process);
        closed
    }

    fn get(&self, pid: u32) -> &Process {
        self.known.get(&pid).expect("met before")
    }

    fn get_mut(&mut self, pid: u32) -> &mut Process {
        self.known.get_mut(&pid).expect("met before")
    }

    /// The number of the process that a thread belongs to.
    pub(super) fn leader(&self, pid: u32) -> u32 {
        self.get(pid).leader
    }

    /// Remembers the beginning of a call.
    pub(super) fn begin(&mut self, pid: u32, text: &[u8], held: Option<u64>) -> Option<Object> {
        let makes_process =
            text.starts_with(b"clone") || text.starts_with(b"fork") || text.starts_with(b"vfork");
        if let Some(open) = held {
            self.opens.get_mut(&open).expect("just found").users += 1;
        }
        let pending = Pending { text: text.to_vec(), held, makes_process, child: None };
        let lost = self.get_mut(pid).pending.replace(pending);
        lost.and_then(|pending| pending.held).and_then(|open| self.release(open))
    }

    /// The beginning of the call that ends now, with its first argument.
    pub(super) fn pending(&mut self, pid: u32) -> Option<&mut Pending> {
        self.get_mut(pid).pending.as_mut()
    }

    /// The call ended: returns what was closed.
    pub(super) fn end(&mut self, pid: u32) -> Option<Object> {
        // The process is gone if it gave its number to another one.
        let pending = self.known.get_mut(&pid)?.pending.take()?;
        pending.held.and_then(|open| self.release(open))
    }

    pub(super) fn folder(&self, pid: u32) -> &[u8] {
        self.folders.get(self.get(pid).folder)
    }

    pub(super) fn set_folder(&mut self, pid: u32, path: Vec<u8>) {
        let folder = self.get(pid).folder;
        *self.folders.get_mut(folder) = path;
    }

    pub(super) fn mappings(&mut self, pid: u32) -> &mut BTreeMap<u64, Mapping> {
        let memory = self.get(pid).memory;
        self.memories.get_mut(memory)
    }

    pub(super) fn open(&self, open: u64) -> &Open {
        self.opens.get(&open).expect("found before")
    }

    pub(super) fn open_mut(&mut self, open: u64) -> &mut Open {
        self.opens.get_mut(&open).expect("found before")
    }

    /// What a descriptor leads to.
    pub(super) fn find(&self, pid: u32, fd: i32) -> Option<u64> {
        self.tables.get(self.get(pid).table).get(&fd).map(|slot| slot.open)
    }

    /// Every descriptor in a range.
    pub(super) fn range(&self, pid: u32, from: i32, to: i32) -> Vec<i32> {
        if from > to {
            return Vec::new();
        }
        self.tables.get(self.get(pid).table).range(from..=to).map(|(&fd, _)| fd).collect()
    }

    /// A descriptor leads to something new: returns what was closed.
    pub(super) fn install(
        &mut self,
        pid: u32,
        fd: i32,
        open: Open,
        closes_at_exec: bool,
    ) -> Result<Option<Object>, String> {
        self.next_open += 1;
        self.opens.insert(self.next_open, open);
        self.set(pid, fd, self.next_open, closes_at_exec)
    }

    /// A descriptor leads to what another one leads to: returns what was closed.
    pub(super) fn set(
        &mut self,
        pid: u32,
        fd: i32,
        open: u64,
        closes_at_exec: bool,
    ) -> Result<Option<Object>, String> {
        self.open_mut(open).users += 1;
        let closed = self.close(pid, fd);
        let table = self.get(pid).table;
        self.tables.get_mut(table).insert(fd, Slot { open, closes_at_exec });
        self.descriptors += 1;
        self.check_descriptors()?;
        Ok(closed)
    }

    pub(super) fn close_at_exec(&mut self, pid: u32, fd: i32, does: bool) {
        let table = self.get(pid).table;
        if let Some(slot) = self.tables.get_mut(table).get_mut(&fd) {
            slot.closes_at_exec = does;
        }
    }

    /// Closes a descriptor: returns what it led to, if that was the last one to do so.
    pub(super) fn close(&mut self, pid: u32, fd: i32) -> Option<Object> {
        let table = self.get(pid).table;
        let slot = self.tables.get_mut(table).remove(&fd)?;
        self.descriptors -= 1;
        self.release(slot.open)
    }

    fn release(&mut self, open: u64) -> Option<Object> {
        let users = &mut self.opens.get_mut(&open).expect("it was in use").users;
        *users -= 1;
        if *users == 0 { self.opens.remove(&open).map(|open| open.object) } else { None }
    }
}

impl Together {
    /// By the flags in the text of the call. Without flags nothing is.
    pub(super) fn of(text: &[u8]) -> Self {
        let has = |flag| super::line::has(text, flag);
        Self {
            files: has("CLONE_FILES"),
            folder: has("CLONE_FS"),
            memory: has("CLONE_VM"),
            thread: has("CLONE_THREAD"),
        }
    }
}

/// Whether a path that strace shows beside a descriptor is one of the file system.
pub(super) fn is_of_files(path: &Path) -> bool {
    path.bytes.starts_with(b"/") && !path.bytes.starts_with(b"/memfd:")
}
