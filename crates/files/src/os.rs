//! What the operating system does with files and block devices.

use rustix::fs::{AtFlags, FallocateFlags, OFlags, StatxFlags};
use rustix::io::Errno;
use std::fs::{File, FileType, TryLockError};
use std::io;
use std::ops::Deref;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

/// Bytes of zeroes that are written at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// What became of the wish to give up a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punched {
    /// It reads as zeroes.
    Zeroed,
    /// The file or device cannot do that; nothing has changed.
    Unsupported,
}

/// A file and its lock. The lock is given up with it, even while a process that is being started still has
/// the descriptor.
#[derive(Debug)]
pub struct LockedFile(File);

impl LockedFile {
    /// Takes a file for this process alone, or together with others that only read; `None` where another
    /// process has it.
    pub fn take(file: File, is_shared: bool) -> io::Result<Option<Self>> {
        match if is_shared { file.try_lock_shared() } else { file.try_lock() } {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Gives up the space of a range, which then reads as zeroes.
pub fn punch(file: &File, offset: u64, len: u64) -> io::Result<Punched> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(file, flags, offset, len) {
        Ok(()) => Ok(Punched::Zeroed),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Punched::Unsupported),
        Err(error) => Err(error.into()),
    }
}

/// Has space for a range reserved, by writing zeroes where the file system has no other way; so only for
/// ranges that hold nothing.
pub fn allocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), offset, len) {
        Err(Errno::OPNOTSUPP) => write_zeroes(file, offset, len),
        outcome => Ok(outcome?),
    }
}

/// Has space of its own reserved for a range, and keeps what it holds: holes are allocated, and blocks shared
/// with another file are copied where the file system can do that by itself (xfs). Does nothing where it
/// cannot reserve space at all.
pub fn reserve(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let flags = [FallocateFlags::UNSHARE_RANGE, FallocateFlags::empty()];
    for flags in flags {
        match rustix::fs::fallocate(file, flags | FallocateFlags::KEEP_SIZE, offset, len) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {}
            outcome => return Ok(outcome?),
        }
    }
    Ok(())
}

/// Has a file share the blocks of another from `offset` to the end. `false` where the file system cannot do
/// that; nothing has changed then.
#[expect(unsafe_code, reason = "rustix has no call for a part of a file")]
pub fn clone_from(source: &File, target: &File, offset: u64) -> io::Result<bool> {
    const FICLONERANGE: rustix::ioctl::Opcode = rustix::ioctl::opcode::write::<[u64; 4]>(0x94, 13);
    let descriptor = u64::try_from(source.as_raw_fd()).expect("an open file");
    // Descriptor, offset, length (0: to the end), offset in the target.
    let range = [descriptor, offset, 0, offset];
    // SAFETY: the kernel reads four 64-bit numbers through the pointer, and writes nothing.
    let outcome =
        unsafe { rustix::ioctl::ioctl(target, rustix::ioctl::Setter::<FICLONERANGE, [u64; 4]>::new(range)) };
    match outcome {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL | Errno::XDEV | Errno::NOSYS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The number of the mount through which a file was opened. From Linux 6.8 on no other mount gets it until
/// the machine starts again.
pub fn mount_id(file: &File) -> io::Result<u64> {
    // STATX_MNT_ID_UNIQUE; older kernels ignore it, and give the number that `mountinfo` has.
    let unique = StatxFlags::from_bits_retain(0x4000);
    let found = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID | unique)?;
    Ok(found.stx_mnt_id)
}

/// Makes the name of a file durable: syncs the directory that it is in.
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// The name of a kind of file; `None` for a regular one.
pub fn kind_of(kind: FileType) -> Option<&'static str> {
    let kinds = [
        (kind.is_dir(), "a directory"),
        (kind.is_fifo(), "a pipe"),
        (kind.is_socket(), "a socket"),
        (kind.is_char_device(), "a character device"),
        (kind.is_block_device(), "a block device"),
    ];
    kinds.into_iter().find_map(|(is_it, name)| is_it.then_some(name))
}

/// Flags for an open that does not wait for the other end of a pipe.
pub const NO_WAIT: i32 = OFlags::NONBLOCK.bits().cast_signed();

/// Writes zeroes.
pub fn write_zeroes(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let zeroes = vec![0; CHUNK_BYTES.min(usize::try_from(len).unwrap_or(CHUNK_BYTES))];
    let mut done = 0;
    while done < len {
        let chunk = (len - done).min(zeroes.len() as u64);
        file.write_all_at(&zeroes[..chunk as usize], offset + done)?;
        done += chunk;
    }
    Ok(())
}

/// Tells a block device that a range is not needed any more. What is read from it afterwards is unknown.
/// `false` where the device takes no such advice.
#[expect(unsafe_code, reason = "rustix has no call for this one")]
pub fn discard(device: &File, offset: u64, len: u64) -> io::Result<bool> {
    const BLKDISCARD: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 119);
    // SAFETY: the kernel reads two 64-bit numbers, offset and length, through the pointer, and writes
    // nothing.
    let outcome = unsafe {
        rustix::ioctl::ioctl(device, rustix::ioctl::Setter::<BLKDISCARD, [u64; 2]>::new([offset, len]))
    };
    match outcome {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::INVAL) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A new uuid, version 4.
pub fn draw_uuid() -> io::Result<[u8; 16]> {
    let mut uuid = [0; 16];
    rustix::rand::getrandom(&mut uuid, rustix::rand::GetRandomFlags::empty())?;
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Ok(uuid)
}
