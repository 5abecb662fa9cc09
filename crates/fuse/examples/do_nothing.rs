//! The peer of `make bench-peers`: files that forget what is written and read as zeroes, on the same library
//! with the same settings as the product: `DIR/ns1` as a namespace, `DIR/cached` as a file of a store of
//! files. What they do is the price of FUSE alone.
//!
//! `do_nothing DIR MEBIBYTES [THREADS]`

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyStatfs, ReplyWrite, Request, Session, SessionACL, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::time::{Duration, SystemTime};

static ZEROES: [u8; 1 << 20] = [0; 1 << 20];
const REMEMBERED: Duration = Duration::from_secs(3600);

struct Nothing {
    root: FileAttr,
    file: FileAttr,
    cached: FileAttr,
}

fn attributes(ino: u64, kind: FileType, size: u64, perm: u16) -> FileAttr {
    let now = SystemTime::UNIX_EPOCH;
    let (atime, mtime, ctime, crtime, ino, blocks) = (now, now, now, now, INodeNo(ino), size / 512);
    let (nlink, uid, gid, rdev, blksize, flags) = (1, 0, 0, 0, 4096, 0);
    FileAttr {
        ino,
        size,
        blocks,
        atime,
        mtime,
        ctime,
        crtime,
        kind,
        perm,
        nlink,
        uid,
        gid,
        rdev,
        blksize,
        flags,
    }
}

impl Filesystem for Nothing {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let _ = (config.set_max_write(1 << 20), config.set_max_readahead(1 << 20));
        let _ = (config.set_max_background(256), config.set_congestion_threshold(256));
        let wanted = InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP;
        let _ = config.add_capabilities(wanted & config.capabilities());
        Ok(())
    }

    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name.to_str() {
            Some("ns1") => reply.entry(&REMEMBERED, &self.file, Generation(0)),
            Some("cached") => reply.entry(&REMEMBERED, &self.cached, Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&REMEMBERED, [&self.root, &self.file, &self.cached][ino.0 as usize - 1]);
    }

    fn open(&self, _: &Request, ino: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let direct = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        let flags = if ino == self.file.ino { direct } else { FopenFlags::FOPEN_KEEP_CACHE };
        reply.opened(FileHandle(0), flags | FopenFlags::FOPEN_NOFLUSH);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        reply.data(&ZEROES[..size as usize]);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        reply.written(data.len() as u32);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fallocate(&self, _: &Request, _: INodeNo, _: FileHandle, _: u64, _: u64, _: i32, reply: ReplyEmpty) {
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        reply.statfs(self.file.size / 4096, 0, 0, 1, 0, 4096, 255, 4096);
    }
}

fn main() -> io::Result<()> {
    let wrong = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "expected DIR, a size in MiB, and perhaps a number of threads",
        )
    };
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |text: &String| text.parse::<u32>().map_err(|_| wrong());
    let (Some(dir), Some(size)) = (words.first(), words.get(1)) else { return Err(wrong()) };
    let size = u64::from(number(size)?) << 20;
    let threads = words.get(2).map_or(Ok(2), number)?.max(1);
    let root = attributes(1, FileType::Directory, 0, 0o755);
    let file = attributes(2, FileType::RegularFile, size, 0o600);
    let cached = attributes(3, FileType::RegularFile, size, 0o600);
    let mut config = Config::default();
    config.mount_options =
        vec![MountOption::FSName("do-nothing".to_owned()), MountOption::DefaultPermissions];
    config.acl = SessionACL::All;
    config.n_threads = Some(threads as usize);
    config.clone_fd = threads > 1;
    Session::new(Nothing { root, file, cached }, dir, &config)?.run()
}
