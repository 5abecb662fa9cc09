//! A file as a store, or two joined: the metadata of a cache in one, its blocks in the other.

use super::mirror::Mirror;
use super::{CacheFileError, Result};
use nandscape_cache::metadata::Superblock;
use nandscape_core::command::{HostCounts, Payload};
use nandscape_core::{
    Allocation, Applied, BlockCommand, Clocked, Extent, Hint, Op, SimTime, Store, StoreError, StoreResult,
    StoreShape, Token,
};
use nandscape_files::{FileOptions, FileStore};
use std::path::Path;

/// Bytes of what says whose blocks a file holds.
const LABEL_BYTES: usize = 4096;
const LABEL: &[u8; 8] = b"nandsBLK";

/// Files as one range of bytes. With blocks in a file of their own, the first one has what lies before and
/// behind them, so that it alone says all that is known of the cache.
#[derive(Debug)]
pub(super) struct Joined {
    first: Mirror,
    data: Option<Data>,
    counts: HostCounts,
    latest: SimTime,
}

/// Blocks in a file of their own, behind its label.
#[derive(Debug)]
struct Data {
    file: FileStore,
    /// What of the cache's bytes it holds.
    extent: Extent,
    /// Where in the file they begin.
    at: u64,
}

impl Joined {
    pub(super) fn new(first: Mirror) -> Self {
        Self { first, data: None, counts: HostCounts::default(), latest: SimTime::ZERO }
    }

    /// From now on these bytes are in a file of their own.
    pub(super) fn put_apart(&mut self, extent: Extent, file: FileStore, block_bytes: u32) {
        self.data = Some(Data { file, extent, at: label_bytes(block_bytes) });
    }

    /// The files; the first one is what the cache is known by.
    pub(super) fn files(&mut self) -> impl Iterator<Item = &mut FileStore> {
        self.first.files().chain(self.data.as_mut().map(|data| &mut data.file))
    }

    pub(super) const fn first(&mut self) -> &mut Mirror {
        &mut self.first
    }

    /// Why commands fail, where that is known.
    pub(super) fn failed(&self) -> Option<StoreError> {
        let data = self.data.as_ref().and_then(|data| data.file.failed().cloned());
        self.first.failed().or(data)
    }

    /// The file with the blocks, where they have one.
    pub(super) fn apart(&mut self) -> Option<&mut FileStore> {
        self.data.as_mut().map(|data| &mut data.file)
    }

    /// Flushes both files, the second also if that fails on the first.
    fn flush(&mut self) -> StoreResult<()> {
        let done = self.first.apply(BlockCommand::FLUSH, Payload::None);
        let data = self.data.as_mut().map(|data| data.file.apply(BlockCommand::FLUSH, Payload::None));
        done.and(data.transpose().map(drop))
    }

    /// Applies to the file with a byte what it has of a command from there on, and says how much that was.
    fn apply_part(&mut self, command: BlockCommand, payload: &mut Payload<'_>) -> StoreResult<u64> {
        let Extent { offset, len } = command.extent;
        let (is_data, offset, room) = match &self.data {
            Some(Data { extent, at, .. }) if (extent.offset..extent.end()).contains(&offset) => {
                (true, *at + offset - extent.offset, extent.end() - offset)
            }
            Some(Data { extent, .. }) if offset >= extent.end() => (false, offset - extent.len, u64::MAX),
            Some(Data { extent, .. }) => (false, offset, extent.offset - offset),
            None => (false, offset, u64::MAX),
        };
        let len = len.min(room);
        let now = match payload {
            Payload::Read(bytes) => {
                let (now, later) = std::mem::take(bytes).split_at_mut(len as usize);
                *bytes = later;
                Payload::Read(now)
            }
            Payload::Write(bytes) => {
                let (now, later) = bytes.split_at(len as usize);
                *bytes = later;
                Payload::Write(now)
            }
            // Files have no bytes beside these.
            _ => Payload::None,
        };
        let part = BlockCommand { extent: Extent::new(offset, len), ..command };
        match &mut self.data {
            Some(data) if is_data => data.file.apply(part, now).map(drop)?,
            _ => self.first.apply(part, now)?,
        }
        Ok(len)
    }
}

impl Store for Joined {
    fn shape(&self) -> StoreShape {
        let shape = self.first.shape();
        let Some(Data { file, extent, .. }) = &self.data else { return shape };
        StoreShape {
            capacity_bytes: shape.capacity_bytes + extent.len,
            block_bytes: shape.block_bytes.max(file.block_bytes()),
            ..shape
        }
    }

    fn apply(&mut self, command: BlockCommand, mut payload: Payload<'_>) -> StoreResult<Applied> {
        self.counts.count(command, self.block_bytes());
        if command.op == Op::Flush {
            return self.flush().map(|()| Applied::default());
        }
        let mut rest = command.extent;
        while rest.len > 0 {
            let len = self.apply_part(BlockCommand { extent: rest, ..command }, &mut payload)?;
            rest = Extent::new(rest.offset + len, rest.len - len);
        }
        Ok(Applied::default())
    }

    fn start(&mut self, _: BlockCommand, _: Applied, at: SimTime) -> StoreResult<Token> {
        self.latest = self.latest.max(at);
        Ok(Token(at.0))
    }

    fn allocation(&self, extent: Extent) -> Allocation {
        match self.data {
            Some(_) => Allocation { is_mapped: true, bytes: extent.len },
            None => self.first.allocation(extent),
        }
    }

    fn counts(&self) -> HostCounts {
        self.counts
    }

    fn shutdown(&mut self, at: SimTime) -> StoreResult<Token> {
        self.latest = self.latest.max(at);
        self.flush()?;
        Ok(Token(at.0))
    }

    fn reset_counters(&mut self, at: SimTime) {
        self.counts = HostCounts::default();
        self.latest = at;
    }
}

impl Clocked for Joined {
    nandscape_core::tokens_are_times!();

    fn idle_from(&self) -> SimTime {
        self.latest
    }
}

/// Bytes before the blocks in a file of their own, which are aligned to what is cached at once.
pub(super) fn label_bytes(block_bytes: u32) -> u64 {
    u64::from(block_bytes).max(LABEL_BYTES as u64)
}

/// What a file with the blocks of this cache begins with.
fn label(superblock: &Superblock) -> [u8; LABEL_BYTES] {
    let mut label = [0; LABEL_BYTES];
    label[..8].copy_from_slice(LABEL);
    label[8..24].copy_from_slice(&superblock.uuid);
    let extent = data_of(superblock);
    label[24..32].copy_from_slice(&extent.offset.to_le_bytes());
    label[32..40].copy_from_slice(&extent.len.to_le_bytes());
    label
}

/// Where the blocks lie: between the metadata and what is kept of the disks.
pub(super) fn data_of(superblock: &Superblock) -> Extent {
    let first = superblock.shape.data_offset();
    Extent::new(first, superblock.watch.saturating_sub(first))
}

fn command(op: Op) -> BlockCommand {
    BlockCommand::new(op, Extent::new(0, LABEL_BYTES as u64), Hint::default())
}

/// What the file has where a label would be.
fn read_label(file: &mut FileStore) -> Result<[u8; LABEL_BYTES]> {
    let mut found = [0; LABEL_BYTES];
    file.apply(command(Op::Read), Payload::Read(&mut found))
        .map_err(|error| CacheFileError::refused(file.path(), error))?;
    Ok(found)
}

/// Refuses a file that has only the blocks of a cache.
pub(super) fn check_metadata(file: &mut FileStore) -> Result<()> {
    if file.capacity_bytes() >= LABEL_BYTES as u64 && read_label(file)?.starts_with(LABEL) {
        let detail = "has the blocks of a cache: expected the file with its metadata, which 'cache create --data' was given first";
        return Err(CacheFileError::refused(file.path(), detail));
    }
    Ok(())
}

/// Says in the file whose blocks it has.
pub(super) fn write_label(file: &mut FileStore, superblock: &Superblock) -> Result<()> {
    let done = file.apply(command(Op::Write), Payload::Write(&label(superblock)));
    let done = done.and_then(|_| file.apply(BlockCommand::FLUSH, Payload::None));
    done.map(drop).map_err(|error| CacheFileError::refused(file.path(), error))
}

/// The file with the blocks of this cache, which is known by `first`.
pub(super) fn open_data(
    path: &Path,
    superblock: &Superblock,
    options: FileOptions,
    first: &Path,
) -> Result<FileStore> {
    let mut file = FileStore::open(path, options)?;
    let needed = label_bytes(superblock.shape.block_bytes).saturating_add(data_of(superblock).len);
    let is_behind = superblock.watch >= superblock.shape.slot_offset(superblock.shape.slots);
    if is_behind && file.capacity_bytes() >= needed && read_label(&mut file)? == label(superblock) {
        return Ok(file);
    }
    let detail =
        format!("expected the blocks of the cache {}, {needed} bytes with its label", first.display());
    Err(CacheFileError::refused(path, detail))
}
