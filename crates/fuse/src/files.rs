//! The directory of files, as the FUSE library asks for it.

use crate::answers::{Answers, REMEMBERED};
use crate::block_file::BlockFile;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenAccMode, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

pub struct Files {
    entries: Vec<Entry>,
    root: Mutex<FileAttr>,
    answers: Answers,
}

struct Entry {
    name: String,
    file: BlockFile,
    attr: Mutex<FileAttr>,
}

const ROOT: u64 = 1;
const FIRST: u64 = 2;

impl Files {
    /// Files with their names, owned by whoever runs the server.
    pub fn new(files: Vec<(String, u32, BlockFile)>, answers: Answers) -> Self {
        let root = attributes(ROOT, FileType::Directory, 0, 4096, 0o755);
        let entry = |(index, (name, page_bytes, file)): (usize, (String, u32, BlockFile))| {
            let mode = if file.is_read_only() { 0o400 } else { 0o600 };
            let attr = attributes(
                FIRST + index as u64,
                FileType::RegularFile,
                file.capacity_bytes(),
                page_bytes,
                mode,
            );
            Entry { name, file, attr: Mutex::new(attr) }
        };
        let entries = files.into_iter().enumerate().map(entry).collect();
        Self { entries, root: Mutex::new(root), answers }
    }

    fn entry(&self, ino: INodeNo) -> Result<&Entry, Errno> {
        let index = ino.0.checked_sub(FIRST).ok_or(Errno::EISDIR)?;
        self.entries.get(index as usize).ok_or(Errno::ENOENT)
    }

    fn attr(&self, ino: INodeNo) -> Result<&Mutex<FileAttr>, Errno> {
        if ino.0 == ROOT { Ok(&self.root) } else { self.entry(ino).map(|entry| &entry.attr) }
    }
}

fn attributes(ino: u64, kind: FileType, size: u64, blksize: u32, perm: u16) -> FileAttr {
    let now = SystemTime::now();
    FileAttr {
        ino: INodeNo(ino),
        size,
        blocks: size.div_ceil(512),
        atime: now,
        mtime: now,
        ctime: now,
        crtime: now,
        kind,
        perm,
        nlink: if kind == FileType::Directory { 2 } else { 1 },
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        rdev: 0,
        blksize,
        flags: 0,
    }
}

/// A thread that panicked with the attributes in hand has left them whole: they are replaced in one step.
fn read_attr(attr: &Mutex<FileAttr>) -> FileAttr {
    *attr.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        Answers::configure(config, InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.entries.iter().find(|entry| parent.0 == ROOT && entry.name.as_str() == name) {
            Some(entry) => reply.entry(&REMEMBERED, &read_attr(&entry.attr), Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attr(ino) {
            Ok(attr) => reply.attr(&REMEMBERED, &read_attr(attr)),
            Err(error) => reply.error(error),
        }
    }

    /// Owner, mode and times change, for as long as the mount lasts; the size does not.
    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let attr = match self.attr(ino) {
            Ok(attr) => attr,
            Err(error) => return reply.error(error),
        };
        let mut attr = attr.lock().unwrap_or_else(PoisonError::into_inner);
        if size.is_some_and(|size| size != attr.size) {
            return reply.error(Errno::EPERM);
        }
        let now = SystemTime::now();
        let time = |change: TimeOrNow| match change {
            TimeOrNow::SpecificTime(time) => time,
            TimeOrNow::Now => now,
        };
        *attr = FileAttr {
            perm: mode.map_or(attr.perm, |mode| (mode & 0o7777) as u16),
            uid: uid.unwrap_or(attr.uid),
            gid: gid.unwrap_or(attr.gid),
            atime: atime.map_or(attr.atime, time),
            mtime: mtime.map_or(attr.mtime, time),
            ctime: ctime.unwrap_or(now),
            ..*attr
        };
        reply.attr(&REMEMBERED, &attr);
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.entry(ino) {
            Ok(entry) if entry.file.is_read_only() && flags.acc_mode() != OpenAccMode::O_RDONLY => {
                reply.error(Errno::EROFS);
            }
            Ok(_) => {
                let flags = FopenFlags::FOPEN_DIRECT_IO
                    | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
                    | FopenFlags::FOPEN_NOFLUSH;
                reply.opened(FileHandle(0), flags);
            }
            Err(error) => reply.error(error),
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
        let entry = match self.entry(ino) {
            Ok(entry) => entry,
            Err(error) => return reply.error(error),
        };
        self.answers.with_bytes(&entry.name, size, reply, |buffer| entry.file.read(offset, buffer));
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let entry = match self.entry(ino) {
            Ok(entry) => entry,
            Err(error) => return reply.error(error),
        };
        // O_SYNC contains O_DSYNC, and the kernel sets it here for RWF_DSYNC too.
        match entry.file.write(offset, data, flags.0 & libc::O_DSYNC != 0) {
            Ok(done) => self.answers.at(done.due, move || reply.written(done.len as u32)),
            Err(failed) => reply.error(self.answers.failed("write", &entry.name, &failed)),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // A close promises nothing.
        reply.ok();
    }

    fn fsync(&self, _: &Request, ino: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        match self.entry(ino) {
            Ok(entry) => self.answers.done("flush", &entry.name, entry.file.sync(), reply),
            Err(error) => reply.error(error),
        }
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
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
        match self.entry(ino) {
            Ok(entry) => {
                self.answers.done("fallocate", &entry.name, entry.file.allocate(offset, length, mode), reply);
            }
            Err(error) => reply.error(error),
        }
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        if ino.0 != ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let dots = [".", ".."].map(|name| (ROOT, FileType::Directory, name));
        let files = self.entries.iter().zip(FIRST..).map(|(f, ino)| (ino, FileType::RegularFile, &*f.name));
        let entries = dots.into_iter().chain(files).zip(1..).skip(offset as usize);
        for ((ino, kind, name), next) in entries {
            if reply.add(INodeNo(ino), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    /// Every file has all of its space, so none is free. The block size is the page, and becomes the
    /// granularity of a loop device's discards.
    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let page_bytes = self.entries.iter().map(|f| read_attr(&f.attr).blksize).max().unwrap_or(4096);
        let bytes: u64 = self.entries.iter().map(|f| f.file.capacity_bytes()).sum();
        let blocks = bytes / u64::from(page_bytes);
        reply.statfs(blocks, 0, 0, self.entries.len() as u64, 0, page_bytes, 255, page_bytes);
    }

    /// Nothing is made, removed or renamed here.
    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EPERM);
    }

    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rmdir(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EPERM);
    }

    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: INodeNo,
        _: &OsStr,
        _: fuser::RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EPERM);
    }

    fn create(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: i32, reply: fuser::ReplyCreate) {
        reply.error(Errno::EPERM);
    }
}
