//! What the operating system does with files and block devices.

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;

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

/// Whether the lock of a file could be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// It is ours until the file is closed.
    Ours,
    /// Another process has it.
    Taken,
}

/// Takes a file for this process alone, or together with others that only read.
pub fn lock(file: &File, is_shared: bool) -> io::Result<Locked> {
    match if is_shared { file.try_lock_shared() } else { file.try_lock() } {
        Ok(()) => Ok(Locked::Ours),
        Err(TryLockError::WouldBlock) => Ok(Locked::Taken),
        Err(TryLockError::Error(error)) => Err(error),
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

/// Has space for a range reserved, by writing zeroes where the file system has no other way; so only for ranges that hold nothing.
pub fn allocate(file: &File, offset: u64, len: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), offset, len) {
        Err(Errno::OPNOTSUPP) => write_zeroes(file, offset, len),
        outcome => Ok(outcome?),
    }
}

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

/// Tells a block device that a range is not needed any more. What is read from it afterwards is unknown. `false` where the device takes no
/// such advice.
#[expect(unsafe_code, reason = "rustix has no call for this one")]
pub fn discard(device: &File, offset: u64, len: u64) -> io::Result<bool> {
    const BLKDISCARD: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 119);
    // SAFETY: the kernel reads two 64-bit numbers, offset and length, through the pointer, and writes nothing.
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
