//! What system calls do to descriptors and files.

use super::files::{Files, Origin, normal};
use super::line::{self, Call, Fd, has};
use super::processes::{Mapping, Object, Open, Processes, Sync, Together, is_of_files};
use nandscape_host::fs::FileOpKind;

/// Calls that are looked at; all others neither name files nor change descriptors.
const LOOKED_AT: &str = " read readv pread pread64 preadv preadv2 write writev pwrite pwrite64 pwritev pwritev2 \
    open openat openat2 creat close close_range dup dup2 dup3 fcntl fcntl64 lseek _llseek sendfile sendfile64 \
    copy_file_range splice truncate truncate64 ftruncate ftruncate64 fallocate fsync fdatasync sync_file_range \
    sync syncfs msync mmap mmap2 munmap unlink unlinkat rmdir mkdir mkdirat rename renameat renameat2 link linkat \
    symlink symlinkat mknod mknodat chdir fchdir getcwd fork vfork clone clone3 unshare execve execveat fstat \
    fstat64 newfstatat fstatat64 stat stat64 lstat lstat64 statx access faccessat faccessat2 io_uring_enter \
    io_submit ";

/// Ranges that are longer go to the end of their file, as programs ask where they do not know it.
const LEN_MAX: u64 = 1 << 47;

/// Processes and files while a recording is read.
#[derive(Debug)]
pub(super) struct System {
    pub(super) processes: Processes,
    pub(super) files: Files,
    /// Calls whose effect on files strace does not show.
    pub(super) unseen: u64,
    /// Requests among them that went through `io_uring` or `io_submit`.
    pub(super) queued: u64,
}

/// Where a write or read is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Where the descriptor stands, which moves on.
    Offset,
    At(u64),
}

impl System {
    /// Descriptors were closed; these are the objects that none leads to any more.
    fn closed(&mut self, objects: impl IntoIterator<Item = Object>) {
        for object in objects {
            if let Object::File(file) = object {
                self.files.closed(file);
            }
        }
    }

    /// Whether a call of this name is looked at.
    pub(super) fn is_looked_at(name: &[u8]) -> bool {
        let wanted = [b" ", name, b" "].concat();
        memchr::memmem::find(LOOKED_AT.as_bytes(), &wanted).is_some()
    }

    /// A call begins, and others will be seen before its end.
    pub(super) fn begin(&mut self, pid: u32, text: &[u8]) -> Result<(), String> {
        let (name, arguments) = line::name(text)?;
        if !Self::is_looked_at(name) {
            return Ok(());
        }
        let end = memchr::memchr2(b',', b')', arguments).unwrap_or(arguments.len());
        let first = line::descriptor(arguments[..end].trim_ascii());
        let mut held = None;
        if let Some(Fd { number: Some(number), .. }) = first {
            if name == b"close" {
                // The number is free from the beginning of the call on.
                let object = self.processes.close(pid, number);
                self.closed(object);
                return Ok(());
            }
            held = self.descriptor(pid, first.as_ref().expect("just seen"))?;
        }
        let lost = self.processes.begin(pid, text, held);
        self.closed(lost);
        Ok(())
    }

    /// The call that began before ends; `rest` is what strace prints then.
    pub(super) fn resume(&mut self, pid: u32, rest: &[u8]) -> Result<(), String> {
        // A call that began before the recording, or one that is not looked at.
        let Some(pending) = self.processes.pending(pid) else { return Ok(()) };
        let text = [&std::mem::take(&mut pending.text), rest].concat();
        let held = pending.held;
        let done = self.call(pid, &text, held);
        let lost = self.processes.end(pid);
        self.closed(lost);
        done
    }

    pub(super) fn exit(&mut self, pid: u32) {
        let objects = self.processes.exit(pid);
        self.closed(objects);
    }

    pub(super) fn supersede(&mut self, thread: u32, pid: u32) {
        let objects = self.processes.supersede(thread, pid);
        self.closed(objects);
    }

    /// What a descriptor leads to. With `-y` the path beside it makes known what was opened before the
    /// recording, or by calls that it lacks.
    pub(super) fn descriptor(&mut self, pid: u32, fd: &Fd) -> Result<Option<u64>, String> {
        let Some(number) = fd.number else { return Ok(None) };
        let found = self.processes.find(pid, number);
        let Some(path) = &fd.path else { return Ok(found) };
        if let Some(open) = found {
            let agrees = match &self.processes.open(open).object {
                Object::File(file) => path.is_deleted || self.files.leads_to(&path.bytes, *file),
                Object::Directory(folder) => {
                    path.is_deleted || *folder == path.bytes || self.files.is_folder(&path.bytes)
                }
                Object::Other => !is_of_files(path) || Files::is_pseudo(&path.bytes),
            };
            if agrees {
                return Ok(found);
            }
        }
        let object = if !is_of_files(path) || Files::is_pseudo(&path.bytes) {
            Object::Other
        } else if self.files.is_folder(&path.bytes) {
            Object::Directory(path.bytes.clone())
        } else if path.is_deleted {
            Object::File(self.files.add(&path.bytes, Origin::Old, false))
        } else {
            Object::File(self.files.at_path(&path.bytes))
        };
        self.install(pid, number, Open::new(object), false)?;
        Ok(self.processes.find(pid, number))
    }

    fn install(&mut self, pid: u32, fd: i32, open: Open, closes_at_exec: bool) -> Result<(), String> {
        if let Object::File(file) = open.object {
            self.files.opened(file);
        }
        let closed = self.processes.install(pid, fd, open, closes_at_exec)?;
        self.closed(closed);
        Ok(())
    }

    /// The directory that a relative path is taken from.
    pub(super) fn folder(&mut self, pid: u32, fd: &Fd) -> Result<Option<Vec<u8>>, String> {
        if fd.number.is_none() {
            if let Some(path) = &fd.path
                && self.processes.folder(pid) != path.bytes
            {
                self.files.add_folder(&path.bytes);
                self.processes.set_folder(pid, path.bytes.clone());
            }
            return Ok(Some(self.processes.folder(pid).to_vec()));
        }
        if let Some(path) = fd.path.as_ref().filter(|path| is_of_files(path)) {
            self.files.add_folder(&path.bytes);
            return Ok(Some(path.bytes.clone()));
        }
        let open = self.descriptor(pid, fd)?;
        Ok(open.and_then(|open| match &self.processes.open(open).object {
            Object::Directory(path) => Some(path.clone()),
            _ => None,
        }))
    }

    /// The whole path of a path argument, relative to the directory in another argument or to the working
    /// directory. `None` if it is not known.
    pub(super) fn path(
        &mut self,
        pid: u32,
        call: &Call<'_>,
        folder: Option<usize>,
        at: usize,
    ) -> Result<Option<Vec<u8>>, String> {
        let path = call.string(at)?;
        let from = match folder {
            Some(at) => call.fd(at)?,
            None => Fd { number: None, path: None },
        };
        let from = self.folder(pid, &from)?;
        if path.starts_with(b"/") {
            return Ok(Some(self.files.without_links(normal(b"", &path))));
        }
        let known = from.map(|from| self.files.without_links(normal(&from, &path)));
        self.unseen += u64::from(known.is_none());
        Ok(known)
    }

    /// Takes a whole call. `held` is what its first argument led to when it began, if others came between.
    pub(super) fn call(&mut self, pid: u32, text: &[u8], held: Option<u64>) -> Result<(), String> {
        if !Self::is_looked_at(line::name(text)?.0) {
            return Ok(());
        }
        let Some(call) = line::call(text)? else { return Ok(()) };
        let result = match call.outcome {
            Ok(result) => result,
            Err(error) => return self.failed(pid, &call, error),
        };
        match call.name {
            b"read" | b"readv" => self.read(pid, &call, held, Place::Offset, result),
            b"pread" | b"pread64" | b"preadv" | b"preadv2" => {
                let place = at(&call)?;
                self.read(pid, &call, held, place, result)
            }
            b"write" | b"writev" => self.write(pid, &call, held, Place::Offset, result),
            b"pwrite" | b"pwrite64" | b"pwritev" | b"pwritev2" => {
                let place = at(&call)?;
                self.write(pid, &call, held, place, result)
            }
            b"open" | b"creat" => self.open(pid, &call, None, 0, result),
            b"openat" | b"openat2" => self.open(pid, &call, Some(0), 1, result),
            b"close" | b"dup" | b"dup2" | b"dup3" | b"close_range" | b"fcntl" | b"fcntl64" | b"lseek"
            | b"_llseek" => self.of_descriptor(pid, &call, held, result),
            b"sendfile" | b"sendfile64" | b"copy_file_range" | b"splice" => self.copy(pid, &call, result),
            b"mmap" | b"mmap2" | b"munmap" | b"msync" => self.of_memory(pid, &call, result),
            b"fork" | b"vfork" | b"clone" | b"clone3" | b"unshare" | b"execve" | b"execveat" => {
                self.of_process(pid, text, &call, result)
            }
            b"io_uring_enter" => {
                self.queue(call.whole(1)?.min(result));
                Ok(())
            }
            b"io_submit" => {
                self.queue(result);
                Ok(())
            }
            b"fsync" | b"fdatasync" | b"sync_file_range" | b"ftruncate" | b"ftruncate64" | b"fallocate"
            | b"sync" | b"syncfs" => self.of_file(pid, &call, held),
            _ => self.of_path(pid, &call, held),
        }
    }

    fn queue(&mut self, requests: u64) {
        self.queued += requests;
        self.unseen += requests;
    }

    /// Of a call that failed, only that a path does not exist is of use.
    fn failed(&mut self, pid: u32, call: &Call<'_>, error: &[u8]) -> Result<(), String> {
        let at = match call.name {
            b"open" | b"creat" | b"stat" | b"stat64" | b"lstat" | b"lstat64" | b"access" | b"unlink" => 0,
            b"openat" | b"openat2" | b"newfstatat" | b"fstatat64" | b"statx" | b"faccessat"
            | b"faccessat2" | b"unlinkat" => 1,
            _ => return Ok(()),
        };
        if error == b"ENOENT"
            && call.get(at)?.starts_with(b"\"")
            && let Some(path) = self.path(pid, call, at.checked_sub(1), at)?
        {
            self.files.is_absent(path);
        }
        Ok(())
    }

    /// A file that a descriptor leads to, with the description.
    pub(super) fn file(
        &mut self,
        pid: u32,
        call: &Call<'_>,
        at: usize,
        held: Option<u64>,
    ) -> Result<Option<(u64, usize)>, String> {
        let fd = call.fd(at)?;
        let open = match held.filter(|_| at == 0) {
            Some(open) => Some(open),
            None => self.descriptor(pid, &fd)?,
        };
        let Some(open) = open else {
            // The standard streams are rarely files.
            self.unseen += u64::from(fd.number.is_some_and(|number| number > 2));
            return Ok(None);
        };
        Ok(match self.processes.open(open).object {
            Object::File(file) => Some((open, file)),
            _ => None,
        })
    }

    fn read(
        &mut self,
        pid: u32,
        call: &Call<'_>,
        held: Option<u64>,
        place: Place,
        len: u64,
    ) -> Result<(), String> {
        if let Some((open, file)) = self.file(pid, call, 0, held)? {
            let offset = self.advance(open, place, len)?;
            self.files.read(file, offset, len);
        }
        Ok(())
    }

    fn write(
        &mut self,
        pid: u32,
        call: &Call<'_>,
        held: Option<u64>,
        place: Place,
        len: u64,
    ) -> Result<(), String> {
        let Some((open, file)) = self.file(pid, call, 0, held)? else { return Ok(()) };
        let flags = if call.name == b"pwritev2" { 4 } else { usize::MAX };
        // Linux appends whatever offset pwrite names.
        let appends = self.processes.open(open).appends || call.has(flags, "RWF_APPEND");
        let place = match place {
            Place::At(_) if appends => Place::At(self.files.size(file)),
            place => place,
        };
        if appends && matches!(place, Place::Offset) {
            self.processes.open_mut(open).offset = self.files.size(file);
        }
        let offset = self.advance(open, place, len)?;
        let sync = self.processes.open(open).sync;
        let sync = match sync {
            _ if call.has(flags, "RWF_SYNC") => Sync::All,
            Sync::Nothing | Sync::Written if call.has(flags, "RWF_DSYNC") => Sync::Data,
            sync => sync,
        };
        self.files.write(file, offset, len, sync);
        Ok(())
    }

    /// Where a transfer begins; the offset of the description moves to its end.
    fn advance(&mut self, open: u64, place: Place, len: u64) -> Result<u64, String> {
        let start = match place {
            Place::At(offset) => offset,
            Place::Offset => self.processes.open(open).offset,
        };
        let end = start
            .checked_add(len)
            .ok_or_else(|| format!("offset {start} + length {len}: expected below 2^64"))?;
        if let Place::Offset = place {
            self.processes.open_mut(open).offset = end;
        }
        Ok(start)
    }

    fn open(
        &mut self,
        pid: u32,
        call: &Call<'_>,
        folder: Option<usize>,
        at: usize,
        fd: u64,
    ) -> Result<(), String> {
        let fd =
            i32::try_from(fd).map_err(|_| format!("a descriptor of {fd}: expected a number below 2^31"))?;
        let asked = self.path(pid, call, folder, at)?;
        let flags = if call.name == b"creat" { &b"O_CREAT|O_TRUNC"[..] } else { call.get(at + 1)? };
        let has = |flag| has(flags, flag);
        let shown = call.path.as_ref();
        let path = match (shown.filter(|path| is_of_files(path)), &asked) {
            (Some(shown), asked) => {
                if let Some(asked) = asked.as_ref().filter(|_| !shown.is_deleted) {
                    self.files.learn_link(asked, &shown.bytes);
                }
                shown.bytes.clone()
            }
            (None, Some(asked)) => asked.clone(),
            (None, None) => return Ok(()),
        };
        let is_temporary = has("O_TMPFILE");
        let is_other = shown.is_some_and(|path| !is_of_files(path)) || Files::is_pseudo(&path);
        let is_folder = has("O_DIRECTORY") && !is_temporary || has("O_PATH") || self.files.is_folder(&path);
        let object = if is_temporary {
            Object::File(self.files.add(&path, Origin::New, false))
        } else if is_folder {
            if has("O_DIRECTORY") {
                self.files.add_folder(&path);
            }
            Object::Directory(path)
        } else if is_other {
            Object::Other
        } else {
            Object::File(self.files.at_open(&path, has("O_CREAT"), has("O_EXCL"), has("O_TRUNC")))
        };
        let mut open = Open::new(object);
        open.appends = has("O_APPEND");
        open.sync = match () {
            () if has("O_SYNC") => Sync::All,
            () if has("O_DSYNC") => Sync::Data,
            () if has("O_DIRECT") => Sync::Written,
            () => Sync::Nothing,
        };
        self.install(pid, fd, open, has("O_CLOEXEC"))
    }

    /// Calls that change a descriptor.
    fn of_descriptor(
        &mut self,
        pid: u32,
        call: &Call<'_>,
        held: Option<u64>,
        result: u64,
    ) -> Result<(), String> {
        if call.name == b"close_range" {
            let last = |at| Ok::<_, String>(call.whole(at)?.min(i32::MAX as u64) as i32);
            let closes_later = call.has(2, "CLOSE_RANGE_CLOEXEC");
            self.processes.unshare(pid, call.has(2, "CLOSE_RANGE_UNSHARE"), false)?;
            for fd in self.processes.range(pid, last(0)?, last(1)?) {
                if closes_later {
                    self.processes.close_at_exec(pid, fd, true);
                } else {
                    let object = self.processes.close(pid, fd);
                    self.closed(object);
                }
            }
            return Ok(());
        }
        let fd = call.fd(0)?;
        let number = fd.number.ok_or("AT_FDCWD: expected the number of a descriptor")?;
        if call.name == b"close" {
            let object = self.processes.close(pid, number);
            self.closed(object);
            return Ok(());
        }
        let open = match held {
            Some(open) => Some(open),
            None => self.descriptor(pid, &fd)?,
        };
        let command = call.optional(1);
        let is_fcntl = call.name.starts_with(b"fcntl");
        if call.name.starts_with(b"dup") || is_fcntl && command.starts_with(b"F_DUPFD") {
            let new = i32::try_from(result)
                .map_err(|_| format!("a descriptor of {result}: expected below 2^31"))?;
            let closes_at_exec = command == b"F_DUPFD_CLOEXEC" || call.has(2, "O_CLOEXEC");
            if new != number {
                let closed = match open {
                    Some(open) => self.processes.set(pid, new, open, closes_at_exec)?,
                    None => self.processes.close(pid, new),
                };
                self.closed(closed);
            }
            return Ok(());
        }
        if is_fcntl {
            return self.control(pid, number, call, open);
        }
        // A position of a seek; _llseek leaves it behind a pointer.
        let position = if call.name == b"_llseek" { call.behind(2)?.unwrap_or_default() } else { result };
        if let Some(open) = open {
            self.processes.open_mut(open).offset = position;
            let is_end = call.has(2, "SEEK_END") && call.get(1)? == b"0";
            if let (true, Object::File(file)) = (is_end, &self.processes.open(open).object) {
                self.files.learn_size(*file, position);
            }
        }
        Ok(())
    }

    fn control(&mut self, pid: u32, fd: i32, call: &Call<'_>, open: Option<u64>) -> Result<(), String> {
        let command = call.get(1)?;
        match (command, open) {
            (b"F_SETFD", _) => self.processes.close_at_exec(pid, fd, call.has(2, "FD_CLOEXEC")),
            (b"F_SETFL", Some(open)) => {
                let appends = call.has(2, "O_APPEND");
                self.processes.open_mut(open).appends = appends;
            }
            _ => {
                // Older programs of strace know the command only by its number, and print a pointer.
                let is_hint = has(command, "F_SET_RW_HINT") || has(command, "0x40c");
                let is_of_open = has(command, "F_SET_FILE_RW_HINT") || has(command, "0x40e");
                if !is_hint && !is_of_open {
                    return Ok(());
                }
                let Some((_, file)) = self.file(pid, call, 0, open)? else { return Ok(()) };
                match hint(call.optional(2)) {
                    Some(hint) => self.files.ask(file, FileOpKind::Hint, 0, hint),
                    None => self.unseen += 1,
                }
            }
        }
        Ok(())
    }

    /// Copies between two descriptors: a read of one and a write of the other.
    fn copy(&mut self, pid: u32, call: &Call<'_>, len: u64) -> Result<(), String> {
        let (source, source_at, target, target_at) =
            if call.name.starts_with(b"sendfile") { (1, 2, 0, None) } else { (0, 1, 2, Some(3)) };
        let place = |offset: Option<u64>| offset.map_or(Place::Offset, Place::At);
        if let Some((open, file)) = self.file(pid, call, source, None)? {
            let offset = self.advance(open, place(call.behind(source_at)?), len)?;
            self.files.read(file, offset, len);
        }
        if let Some((open, file)) = self.file(pid, call, target, None)? {
            let offset = match target_at {
                Some(at) => call.behind(at)?,
                None => None,
            };
            let offset = self.advance(open, place(offset), len)?;
            let sync = self.processes.open(open).sync;
            self.files.write(file, offset, len, sync);
        }
        Ok(())
    }

    fn of_memory(&mut self, pid: u32, call: &Call<'_>, result: u64) -> Result<(), String> {
        if call.name.starts_with(b"mmap") {
            let is_written = call.has(2, "PROT_WRITE")
                && (call.has(3, "MAP_SHARED") || call.has(3, "MAP_SHARED_VALIDATE"))
                && !call.get(4)?.starts_with(b"-");
            if is_written && let Some((_, file)) = self.file(pid, call, 4, None)? {
                let (len, offset) = (call.whole(1)?, call.whole(5)?);
                self.processes.mappings(pid).insert(result, Mapping { len, file });
                self.files.ask(file, FileOpKind::MapWrite, offset, len);
            }
            return Ok(());
        }
        let (start, len) = (call.whole(0)?, call.whole(1)?);
        let end = start.saturating_add(len);
        let mappings = self.processes.mappings(pid);
        if call.name == b"munmap" {
            mappings.retain(|at, mapping| *at < start || at.saturating_add(mapping.len) > end);
            return Ok(());
        }
        if call.has(2, "MS_SYNC") {
            let inside = mappings.range(..end).filter(|(at, mapping)| at.saturating_add(mapping.len) > start);
            let mut files: Vec<usize> = inside.map(|(_, mapping)| mapping.file).collect();
            files.dedup();
            for file in files {
                self.files.sync(file, FileOpKind::Fsync);
            }
        }
        Ok(())
    }

    fn of_process(&mut self, pid: u32, text: &[u8], call: &Call<'_>, result: u64) -> Result<(), String> {
        let together = Together::of(text);
        match call.name {
            b"unshare" => self.processes.unshare(pid, together.files, together.folder)?,
            b"execve" | b"execveat" => {
                let objects = self.processes.exec(pid)?;
                self.closed(objects);
            }
            _ => {
                let child =
                    u32::try_from(result).map_err(|_| format!("a process {result}: expected below 2^32"))?;
                self.processes.fork(pid, child, together)?;
            }
        }
        Ok(())
    }

    /// Calls on the file of a descriptor.
    fn of_file(&mut self, pid: u32, call: &Call<'_>, held: Option<u64>) -> Result<(), String> {
        if call.name == b"sync" || call.name == b"syncfs" {
            self.files.sync_all();
            return Ok(());
        }
        let Some((_, file)) = self.file(pid, call, 0, held)? else { return Ok(()) };
        match call.name {
            b"fsync" => self.files.sync(file, FileOpKind::Fsync),
            b"fdatasync" => self.files.sync(file, FileOpKind::Fdatasync),
            b"sync_file_range" => {
                if call.has(3, "SYNC_FILE_RANGE_WRITE") {
                    let (offset, len) = (call.whole(1)?, call.whole(2)?);
                    // To the end of the file, which 0 means too.
                    let len = if len > LEN_MAX { 0 } else { len };
                    self.files.ask(file, FileOpKind::SyncRange, offset, len);
                }
            }
            b"fallocate" => {
                let (offset, len) = (call.whole(2)?, call.whole(3)?);
                if call.has(1, "FALLOC_FL_PUNCH_HOLE") {
                    self.files.ask(file, FileOpKind::Punch, offset, len.min(LEN_MAX));
                } else if call.has(1, "FALLOC_FL_COLLAPSE_RANGE") || call.has(1, "FALLOC_FL_INSERT_RANGE") {
                    self.unseen += 1;
                } else {
                    self.files.ask(file, FileOpKind::Allocate, offset, len);
                    if !call.has(1, "FALLOC_FL_KEEP_SIZE") {
                        self.files.grow(file, offset.saturating_add(len));
                    }
                }
            }
            _ => self.files.truncate(file, call.whole(1)?),
        }
        Ok(())
    }
}

/// The offset in the fourth argument; -1 is that of the descriptor.
fn at(call: &Call<'_>) -> Result<Place, String> {
    Ok(call.positive(3)?.map_or(Place::Offset, Place::At))
}

/// A write hint behind a pointer, by name or number.
fn hint(text: &[u8]) -> Option<u64> {
    const NAMES: [&str; 6] = ["NOT_SET", "NONE", "SHORT", "MEDIUM", "LONG", "EXTREME"];
    let text = text.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let by_name = NAMES.iter().position(|name| text.ends_with(["_LIFE_", name].concat().as_bytes()));
    by_name.map(|at| at as u64).or_else(|| str::from_utf8(text).ok()?.parse().ok().filter(|hint| *hint <= 5))
}
