//! A file or a block device as a store.

use crate::aligned::{ALIGN, Aligned, is_aligned};
use crate::error::FileError;
use crate::os::{self, LockedFile, Punched};
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Allocation, Applied, BlockCommand, Clocked, Extent, Op, SimTime, Store, StoreError, StoreResult,
    StoreShape, Token,
};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of a sector: the least that a disk writes whole.
const SECTOR_BYTES: u32 = 512;

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// Past the page cache (`O_DIRECT`). The block is then that of the device, and 4096 bytes in a file.
    pub is_direct: bool,
    /// Writes are refused, and other readers admitted.
    pub is_read_only: bool,
    /// The size that it must have, in bytes.
    pub expected_bytes: Option<u64>,
    /// Space is reserved for all of a file that is created, and trims of a file that has all its space do
    /// not give it back: what they trim keeps its content.
    pub keeps_space: bool,
}

/// A file or block device with its bytes. It takes no virtual time: a command completes when it is started,
/// and how long it really takes is for whoever runs it to see. The bytes are read and written when a command
/// is applied.
///
/// A trimmed range reads as zeroes, except on a block device that can discard only, where what is read is
/// unknown, and in a file that keeps its space.
#[derive(Debug)]
pub struct FileStore {
    file: LockedFile,
    path: PathBuf,
    capacity_bytes: u64,
    block_bytes: u32,
    is_block_device: bool,
    options: FileOptions,
    bounce: Aligned,
    counts: HostCounts,
    /// What the system said when a flush failed.
    lost: Option<String>,
    /// Why it is used no more, or no longer written to.
    failed: Option<StoreError>,
    /// Links of a file when it was opened.
    links: u64,
    /// Something was written since its size was looked at: if the file had been cut short before, that would
    /// have left a hole.
    is_unchecked: bool,
    latest: SimTime,
}

/// What has become of a file that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It is as it was.
    Whole,
    /// It has only so many bytes.
    Shorter(u64),
    /// It has no name any more: what it holds is gone when it is closed.
    Deleted,
}

impl FileStore {
    /// Makes a file of so many bytes, sparse unless it is to keep its space, for its owner alone. A file that
    /// is there is refused.
    pub fn create(path: &Path, bytes: u64, options: FileOptions) -> Result<Self, FileError> {
        let options = FileOptions { is_read_only: false, ..options };
        let file = flags(options, false)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(FileError::io(path, "create"))?;
        let fill = || {
            file.set_len(bytes).map_err(FileError::io(path, "make the file as long as asked for"))?;
            if options.keeps_space {
                os::allocate(&file, 0, bytes).map_err(FileError::io(path, "reserve space for all of it"))?;
            }
            Self::new(file, path, options, false)
        };
        fill().inspect_err(|_| drop(std::fs::remove_file(path)))
    }

    /// Opens a file or a block device, for this process alone. A block device that is mounted, or otherwise
    /// in use by the kernel, is refused.
    pub fn open(path: &Path, options: FileOptions) -> Result<Self, FileError> {
        let kind = std::fs::metadata(path).map_err(FileError::io(path, "open"))?.file_type();
        if let Some(found) = os::kind_of(kind).filter(|_| !kind.is_block_device()) {
            let detail = format!("{found}: expected a file or a block device");
            return Err(FileError::refused(path, detail));
        }
        let is_block_device = kind.is_block_device();
        let file = flags(options, is_block_device).open(path).map_err(|error| {
            if is_block_device && error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) {
                return FileError::InUse {
                    path: path.to_owned(),
                    by: "the kernel (mounted, or part of another device)",
                };
            }
            FileError::io(path, "open")(error)
        })?;
        Self::new(file, path, options, is_block_device)
    }

    fn new(file: File, path: &Path, options: FileOptions, is_block_device: bool) -> Result<Self, FileError> {
        let file = LockedFile::take(file, options.is_read_only)
            .map_err(FileError::io(path, "lock"))?
            .ok_or_else(|| FileError::InUse { path: path.to_owned(), by: "another process" })?;
        let block_bytes = if is_block_device {
            let logical = rustix::fs::ioctl_blksszget(&*file);
            logical
                .map_err(|error| FileError::io(path, "ask for the block size")(error.into()))?
                .max(SECTOR_BYTES)
        } else if options.is_direct {
            ALIGN as u32
        } else {
            SECTOR_BYTES
        };
        // The end of a block device is found as that of a file.
        let capacity_bytes = rustix::fs::seek(&*file, rustix::fs::SeekFrom::End(0))
            .map_err(|error| FileError::io(path, "ask for the size")(error.into()))?;
        let wrong = |expected: String| {
            FileError::refused(path, format!("{capacity_bytes} bytes: expected {expected}"))
        };
        if capacity_bytes == 0 || !capacity_bytes.is_multiple_of(u64::from(block_bytes)) {
            return Err(wrong(format!("one or more blocks of {block_bytes} bytes")));
        }
        if let Some(expected) = options.expected_bytes.filter(|expected| *expected != capacity_bytes) {
            return Err(wrong(format!("{expected} bytes")));
        }
        let found = file.metadata().map_err(FileError::io(path, "ask for its space"))?;
        let has_space = !is_block_device && found.blocks().saturating_mul(512) >= capacity_bytes;
        let options = FileOptions { keeps_space: options.keeps_space && has_space, ..options };
        let links = found.nlink();
        Ok(Self {
            file,
            path: path.to_owned(),
            capacity_bytes,
            block_bytes,
            is_block_device,
            options,
            bounce: Aligned::default(),
            counts: HostCounts::default(),
            lost: None,
            failed: None,
            links,
            is_unchecked: false,
            latest: SimTime::ZERO,
        })
    }

    /// What has become of the file; a block device is always whole.
    pub fn condition(&self) -> io::Result<Condition> {
        if self.is_block_device {
            return Ok(Condition::Whole);
        }
        let found = rustix::fs::fstat(&*self.file)?;
        Ok(match found.st_size.cast_unsigned() {
            bytes if bytes < self.capacity_bytes => Condition::Shorter(bytes),
            _ if found.st_nlink == 0 && self.links != 0 => Condition::Deleted,
            _ => Condition::Whole,
        })
    }

    /// From now on commands fail with this error; after [`StoreError::ReadOnly`] reads go on. What failed
    /// first stays.
    pub fn fail(&mut self, error: StoreError) {
        self.failed.get_or_insert(error);
    }

    /// Why commands fail, if it was said that they do, or the file was found to be shorter than it was.
    pub const fn failed(&self) -> Option<&StoreError> {
        self.failed.as_ref()
    }

    /// A file that has become shorter is gone: what was cut off would read as zeroes once something is
    /// written behind it.
    #[cold]
    fn cut_short(&mut self, bytes: u64) -> StoreError {
        let detail = format!(
            "{}: the file has {bytes} bytes, expected {} as when it was opened",
            self.path.display(),
            self.capacity_bytes
        );
        self.failed.get_or_insert(StoreError::Gone { detail }).clone()
    }

    /// Refuses what cannot be done any more.
    fn check_use(&self, op: Op) -> StoreResult<()> {
        match &self.failed {
            None => Ok(()),
            Some(StoreError::ReadOnly { .. }) if op == Op::Read => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Looks at the size. To look before each write would cost a system call for each, so a write is looked
    /// at with the next read or flush; but a write that reaches the end would make the file as long as it
    /// was.
    fn check_size(&mut self) -> StoreResult<()> {
        self.is_unchecked = false;
        match self.condition() {
            Ok(Condition::Shorter(bytes)) => Err(self.cut_short(bytes)),
            _ => Ok(()),
        }
    }

    fn check_before(&mut self, command: BlockCommand) -> StoreResult<()> {
        self.check_use(command.op)?;
        match command.op {
            Op::Read => Ok(()),
            Op::Write | Op::Trim | Op::WriteZeroes if command.extent.end() < self.capacity_bytes => {
                self.is_unchecked = !self.is_block_device;
                Ok(())
            }
            _ => self.check_size(),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a block device.
    pub const fn is_block_device(&self) -> bool {
        self.is_block_device
    }

    fn check(&self, command: BlockCommand) -> StoreResult<()> {
        if self.options.is_read_only && matches!(command.op, Op::Write | Op::Trim | Op::WriteZeroes) {
            return Err(StoreError::ReadOnly {
                detail: format!("{} was opened for reading", self.path.display()),
            });
        }
        let Extent { offset, len } = command.extent;
        let block = self.block_bytes;
        if command.extent.end() > self.capacity_bytes {
            return Err(StoreError::OutOfRange { offset, len, capacity: self.capacity_bytes });
        }
        if !offset.is_multiple_of(u64::from(block)) || !len.is_multiple_of(u64::from(block)) {
            return Err(StoreError::Unaligned { offset, len, block });
        }
        Ok(())
    }

    fn read(&mut self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        if !self.options.is_direct || is_aligned(data) {
            return self.file.read_exact_at(data, offset);
        }
        let bounce = self.bounce.get(data.len());
        self.file.read_exact_at(bounce, offset)?;
        data.copy_from_slice(bounce);
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        if !self.options.is_direct || is_aligned(data) {
            return self.file.write_all_at(data, offset);
        }
        let bounce = self.bounce.get(data.len());
        bounce.copy_from_slice(data);
        self.file.write_all_at(bounce, offset)
    }

    fn write_zeroes(&mut self, Extent { offset, len }: Extent) -> io::Result<()> {
        const CHUNK: u64 = 1 << 20;
        if !self.options.is_direct {
            return os::write_zeroes(&self.file, offset, len);
        }
        let zeroes = self.bounce.get(len.min(CHUNK) as usize);
        zeroes.fill(0);
        let mut done = 0;
        while done < len {
            let chunk = (len - done).min(CHUNK);
            self.file.write_all_at(&zeroes[..chunk as usize], offset + done)?;
            done += chunk;
        }
        Ok(())
    }

    fn trim(&mut self, op: Op, extent: Extent) -> io::Result<()> {
        if self.options.keeps_space {
            return if op == Op::Trim { Ok(()) } else { self.write_zeroes(extent) };
        }
        if extent.len == 0 || os::punch(&self.file, extent.offset, extent.len)? == Punched::Zeroed {
            return Ok(());
        }
        if op == Op::Trim && self.is_block_device {
            os::discard(&self.file, extent.offset, extent.len)?;
            return Ok(());
        }
        self.write_zeroes(extent)
    }

    fn sync(&mut self) -> io::Result<()> {
        if let Some(lost) = &self.lost {
            return Err(io::Error::other(format!("an earlier flush failed: {lost}")));
        }
        let outcome = self.file.sync_data();
        if let Err(error) = &outcome {
            self.lost = Some(error.to_string());
        }
        outcome
    }

    /// What an error of the system means.
    fn failure(&mut self, command: BlockCommand, error: &io::Error) -> StoreError {
        if command.op == Op::Read && error.kind() == io::ErrorKind::UnexpectedEof {
            let bytes = self.file.metadata().map_or(0, |found| found.len());
            return self.cut_short(bytes);
        }
        let what = match command.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Trim => "trim",
            Op::WriteZeroes => "write zeroes",
            Op::Flush => "flush",
        };
        let detail = format!("{}: {what}: {error}", self.path.display());
        match Errno::from_io_error(error) {
            Some(Errno::NXIO | Errno::NODEV | Errno::NOMEDIUM | Errno::STALE) => StoreError::Gone { detail },
            Some(Errno::ROFS) => StoreError::ReadOnly { detail },
            _ => StoreError::Io { offset: command.extent.offset, len: command.extent.len, detail },
        }
    }
}

fn flags(options: FileOptions, is_exclusive: bool) -> OpenOptions {
    let mut flags = OFlags::empty();
    if options.is_direct {
        flags |= OFlags::DIRECT;
    }
    // Without O_CREAT this means a block device that nothing else in the kernel has claimed.
    if is_exclusive && !options.is_read_only {
        flags |= OFlags::EXCL;
    }
    let mut open = OpenOptions::new();
    open.read(true).write(!options.is_read_only).custom_flags(flags.bits().cast_signed());
    open
}

impl Store for FileStore {
    fn shape(&self) -> StoreShape {
        StoreShape {
            capacity_bytes: self.capacity_bytes,
            block_bytes: self.block_bytes,
            stores_bytes: true,
            regions: None,
        }
    }

    /// A write without a payload writes zeroes.
    fn apply(&mut self, command: BlockCommand, payload: Payload<'_>) -> StoreResult<Applied> {
        self.counts.count(command, self.block_bytes);
        self.check_before(command)?;
        if command.op != Op::Flush {
            self.check(command)?;
        }
        let extent = command.extent;
        let outcome = match (command.op, payload) {
            (Op::Read, Payload::Read(data)) => {
                assert_eq!(data.len() as u64, extent.len, "the buffer of {extent} has another length");
                self.read(extent.offset, data)
            }
            (Op::Read, _) => Ok(()),
            (Op::Write, Payload::Write(data)) => {
                assert_eq!(data.len() as u64, extent.len, "the payload of {extent} has another length");
                self.write(extent.offset, data)
            }
            (Op::Write, _) => self.write_zeroes(extent),
            (op @ (Op::Trim | Op::WriteZeroes), _) => self.trim(op, extent),
            (Op::Flush, _) => self.sync(),
        };
        match outcome {
            Ok(()) => {
                if command.op == Op::Read && self.is_unchecked {
                    self.check_size()?;
                }
                Ok(Applied::default())
            }
            Err(error) => Err(self.failure(command, &error)),
        }
    }

    fn start(&mut self, _: BlockCommand, _: Applied, at: SimTime) -> StoreResult<Token> {
        self.latest = self.latest.max(at);
        Ok(Token(at.0))
    }

    /// Holes of a file are not mapped. Of a block device everything is.
    fn allocation(&self, extent: Extent) -> Allocation {
        let all = Allocation { is_mapped: true, bytes: extent.len };
        if self.is_block_device || extent.len == 0 {
            return all;
        }
        let next = |whence| match rustix::fs::seek(&*self.file, whence) {
            Ok(at) => Some(at.min(extent.end())),
            Err(Errno::NXIO) => Some(extent.end()),
            Err(_) => None,
        };
        match next(rustix::fs::SeekFrom::Data(extent.offset)) {
            None => all,
            Some(data) if data > extent.offset => {
                Allocation { is_mapped: false, bytes: data - extent.offset }
            }
            Some(_) => {
                let hole = next(rustix::fs::SeekFrom::Hole(extent.offset)).unwrap_or(extent.end());
                Allocation { is_mapped: true, bytes: hole.max(extent.offset + 1) - extent.offset }
            }
        }
    }

    /// Pages are blocks.
    fn counts(&self) -> HostCounts {
        self.counts
    }

    fn shutdown(&mut self, at: SimTime) -> StoreResult<Token> {
        let flush = BlockCommand::FLUSH;
        if !self.options.is_read_only {
            self.check_before(flush)?;
            self.sync().map_err(|error| self.failure(flush, &error))?;
        }
        self.latest = self.latest.max(at);
        Ok(Token(at.0))
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.counts = HostCounts::default();
        self.latest = at;
    }
}

impl Clocked for FileStore {
    nandscape_core::tokens_are_times!();

    fn idle_from(&self) -> SimTime {
        self.latest
    }
}
