//! The file system, as the FUSE library asks for it.

use super::attributes::Kind;
use super::{Changes, Entry, New, ObjectFs, Stat};
use crate::answers::{Answers, REMEMBERED};
use crate::client::{Done, Failed};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
    TimeOrNow, WriteFlags,
};
use nandscape_engine::Due;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, io};

/// The file system behind a mount.
pub struct Served {
    files: ObjectFs,
    answers: Answers,
    page_bytes: u32,
    gathers_writes: bool,
    /// Directories that are open, as they were when somebody began to read them.
    open_dirs: Mutex<HashMap<u64, Vec<Entry>>>,
    next_dir: AtomicU64,
}

/// A file in messages: it may have several names, or none.
struct Number(INodeNo);

/// The time that the kernel sent. Of times before 1970 the library takes the nanoseconds, which count upwards
/// from the second, for a part of what is before that second.
fn as_sent(time: SystemTime) -> SystemTime {
    let before = UNIX_EPOCH.duration_since(time).unwrap_or_default();
    time + 2 * Duration::from_nanos(before.subsec_nanos().into())
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {}", self.0)
    }
}

/// What is open in the kernel stays in its cache: a file changes only through this mount.
const OPENED: FopenFlags = FopenFlags::FOPEN_KEEP_CACHE.union(FopenFlags::FOPEN_NOFLUSH);

impl Served {
    pub fn new(files: ObjectFs, answers: Answers, page_bytes: u32, gathers_writes: bool) -> Self {
        let (open_dirs, next_dir) = (Mutex::default(), AtomicU64::new(1));
        Self { files, answers, page_bytes, gathers_writes, open_dirs, next_dir }
    }

    fn attr(&self, stat: &Stat) -> FileAttr {
        let Stat { ino, attributes, size, allocated, links } = stat;
        FileAttr {
            ino: INodeNo(*ino),
            size: *size,
            blocks: allocated.div_ceil(512),
            atime: attributes.atime,
            mtime: attributes.mtime,
            ctime: attributes.ctime,
            crtime: attributes.ctime,
            kind: file_type(attributes.kind),
            perm: attributes.mode,
            nlink: *links,
            uid: attributes.uid,
            gid: attributes.gid,
            rdev: attributes.rdev,
            blksize: self.page_bytes,
            flags: 0,
        }
    }

    /// Makes a call that only succeeds or fails.
    fn done(
        &self,
        name: &str,
        ino: INodeNo,
        call: impl FnOnce(&ObjectFs) -> Result<Done, Failed>,
        reply: ReplyEmpty,
    ) {
        let outcome = call(&self.files);
        self.answers.done(name, Number(ino), outcome, reply);
    }

    /// Answers a call that made an entry of directory `parent`.
    fn made(
        &self,
        call: &str,
        parent: INodeNo,
        outcome: Result<(Stat, Option<Due>), Failed>,
        reply: ReplyEntry,
    ) {
        match outcome {
            Ok((stat, due)) => {
                let attr = self.attr(&stat);
                self.answers.at(due, move || reply.entry(&REMEMBERED, &attr, Generation(0)));
            }
            Err(failed) => reply.error(self.answers.failed(call, Number(parent), &failed)),
        }
    }

    fn open_dirs(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Vec<Entry>>> {
        self.open_dirs.lock().expect("no thread panicked while it held the open directories")
    }
}

const fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Link => FileType::Symlink,
        Kind::Pipe => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
        Kind::CharDevice => FileType::CharDevice,
        Kind::BlockDevice => FileType::BlockDevice,
    }
}

/// A file of whoever asks for it.
fn new(request: &Request, kind: Kind, mode: u32) -> New {
    let mode = (mode & 0o7777) as u16;
    New { kind, mode, uid: request.uid(), gid: request.gid(), rdev: 0, target: Box::default() }
}

/// Answers with bytes of which the caller takes `size`, or with their number if that is 0.
fn extended(found: Result<impl AsRef<[u8]>, Failed>, size: u32, reply: ReplyXattr) {
    match found {
        Err(failed) => reply.error(Errno::from_i32(failed.errno)),
        Ok(bytes) => match bytes.as_ref() {
            bytes if size == 0 => reply.size(bytes.len() as u32),
            bytes if bytes.len() > size as usize => reply.error(Errno::ERANGE),
            bytes => reply.data(bytes),
        },
    }
}

impl Filesystem for Served {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let gathers = if self.gathers_writes { InitFlags::FUSE_WRITEBACK_CACHE } else { InitFlags::empty() };
        // Who writes, truncates or gives away a file takes its privileges; otherwise the kernel would ask
        // for its capabilities before each write.
        let drops = InitFlags::FUSE_HANDLE_KILLPRIV_V2;
        Answers::configure(config, InitFlags::FUSE_CACHE_SYMLINKS | drops | gathers);
        Ok(())
    }

    /// A mount that ends leaves everything durable, with its times.
    fn destroy(&mut self) {
        if let Err(failed) = self.files.sync_all() {
            self.answers.failed("sync", "all files", &failed);
        }
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.files.lookup(parent.0, name.as_bytes()) {
            Ok(stat) => reply.entry(&REMEMBERED, &self.attr(&stat), Generation(0)),
            Err(failed) => reply.error(self.answers.failed("lookup", Number(parent), &failed)),
        }
    }

    fn forget(&self, _: &Request, ino: INodeNo, _: u64) {
        self.files.forgotten(ino.0);
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.files.getattr(ino.0) {
            Ok(stat) => reply.attr(&REMEMBERED, &self.attr(&stat)),
            Err(failed) => reply.error(self.answers.failed("getattr", Number(ino), &failed)),
        }
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let now = SystemTime::now();
        let time = |change: TimeOrNow| match change {
            TimeOrNow::SpecificTime(time) => as_sent(time),
            TimeOrNow::Now => now,
        };
        let mode = mode.map(|mode| (mode & 0o7777) as u16);
        let changes = Changes { mode, uid, gid, size, atime: atime.map(time), mtime: mtime.map(time) };
        match self.files.setattr(ino.0, changes, request.uid() == 0) {
            Ok((stat, due)) => {
                let attr = self.attr(&stat);
                self.answers.at(due, move || reply.attr(&REMEMBERED, &attr));
            }
            Err(failed) => reply.error(self.answers.failed("setattr", Number(ino), &failed)),
        }
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.files.readlink(ino.0) {
            Ok(target) => reply.data(&target),
            Err(failed) => reply.error(self.answers.failed("readlink", Number(ino), &failed)),
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let Some(kind) = Kind::of_mode(mode) else { return reply.error(Errno::EINVAL) };
        let new = New { rdev, ..new(request, kind, mode) };
        self.made("mknod", parent, self.files.make(parent.0, name.as_bytes(), new, 0), reply);
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, _: u32, reply: ReplyEntry) {
        let new = new(request, Kind::Directory, mode);
        self.made("mkdir", parent, self.files.make(parent.0, name.as_bytes(), new, 0), reply);
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let target = target.as_os_str().as_bytes().into();
        let new = New { target, ..new(request, Kind::Link, 0o777) };
        self.made("symlink", parent, self.files.make(parent.0, name.as_bytes(), new, 0), reply);
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        match self.files.make(parent.0, name.as_bytes(), new(request, Kind::File, mode), 1) {
            Ok((stat, due)) => {
                let attr = self.attr(&stat);
                self.answers.at(due, move || {
                    reply.created(&REMEMBERED, &attr, Generation(0), FileHandle(0), OPENED);
                });
            }
            Err(failed) => reply.error(self.answers.failed("create", Number(parent), &failed)),
        }
    }

    fn link(&self, _: &Request, ino: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.made("link", parent, self.files.link(ino.0, parent.0, name.as_bytes()), reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.done("unlink", parent, |files| files.unlink(parent.0, name.as_bytes()), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.done("rmdir", parent, |files| files.rmdir(parent.0, name.as_bytes()), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = ((parent.0, name.as_bytes()), (to.0, new_name.as_bytes()));
        let rename = |files: &ObjectFs| match flags {
            RenameFlags::RENAME_EXCHANGE => files.exchange(from, to),
            RenameFlags::RENAME_NOREPLACE => files.rename(from, to, false),
            flags if flags.is_empty() => files.rename(from, to, true),
            _ => Err(Failed::number(libc::EINVAL)),
        };
        self.done("rename", parent, rename, reply);
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.files.open(ino.0) {
            Ok(()) => reply.opened(FileHandle(0), OPENED),
            Err(failed) => reply.error(self.answers.failed("open", Number(ino), &failed)),
        }
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.answers.with_bytes(Number(ino), size, reply, |data| self.files.read(ino.0, offset, data));
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        write: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // O_SYNC contains O_DSYNC, and the kernel sets it here for RWF_DSYNC too.
        let is_durable = flags.0 & libc::O_DSYNC != 0;
        let drops_ids = write.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        match self.files.write(ino.0, offset, data, is_durable, drops_ids) {
            Ok(done) => self.answers.at(done.due, move || reply.written(done.len as u32)),
            Err(failed) => reply.error(self.answers.failed("write", Number(ino), &failed)),
        }
        self.files.client.engine.do_chores();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // A close promises nothing.
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.done("close", ino, |files| files.release(ino.0), reply);
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.done("fsync", ino, |files| files.sync(ino.0), reply);
    }

    fn fsyncdir(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.done("fsync", ino, |files| files.sync(ino.0), reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        self.done("fallocate", ino, |files| files.allocate(ino.0, offset, length, mode), reply);
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let handle = self.next_dir.fetch_add(1, Ordering::Relaxed);
        reply.opened(FileHandle(handle), FopenFlags::empty());
    }

    fn readdir(&self, _: &Request, ino: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut dirs = self.open_dirs();
        if offset == 0 || !dirs.contains_key(&handle.0) {
            match self.files.list(ino.0) {
                Ok(entries) => drop(dirs.insert(handle.0, entries)),
                Err(failed) => return reply.error(self.answers.failed("readdir", Number(ino), &failed)),
            }
        }
        for (entry, next) in dirs[&handle.0].iter().zip(1..).skip(offset as usize) {
            let name = OsStr::from_bytes(&entry.name);
            if reply.add(INodeNo(entry.ino), next, file_type(entry.kind), name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(&self, _: &Request, _: INodeNo, handle: FileHandle, _: OpenFlags, reply: ReplyEmpty) {
        self.open_dirs().remove(&handle.0);
        reply.ok();
    }

    fn setxattr(
        &self,
        _: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let name = name.as_bytes();
        self.done("setxattr", ino, |files| files.set_extended(ino.0, name, value, flags), reply);
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        extended(self.files.extended(ino.0, name.as_bytes()), size, reply);
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        extended(self.files.extended_names(ino.0), size, reply);
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.done("removexattr", ino, |files| files.remove_extended(ino.0, name.as_bytes()), reply);
    }

    /// The number of files is limited by the room for their attributes alone, so none is given.
    fn statfs(&self, _: &Request, ino: INodeNo, reply: ReplyStatfs) {
        match self.files.space() {
            Ok(space) => {
                let blocks = |bytes: u64| bytes / u64::from(self.page_bytes);
                let free = blocks(space.free);
                reply.statfs(blocks(space.capacity), free, free, 0, 0, self.page_bytes, 255, self.page_bytes);
            }
            Err(failed) => reply.error(self.answers.failed("statfs", Number(ino), &failed)),
        }
    }
}
