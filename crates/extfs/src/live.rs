//! The map of a file system in use, kept up to date from the writes that pass.

mod file_system;

use crate::ReadAt;
use crate::kind::Kind;
use crate::superblock::{self, Superblock};
use file_system::FileSystem;

/// What the blocks of a device hold, as far as the writes tell. Where nothing is known, and before there is a
/// file system, everything is data.
#[derive(Clone, Debug)]
pub struct LiveMap {
    device_bytes: u64,
    file_system: Option<FileSystem>,
}

/// A write that is about to reach the device, laid over what the device has.
struct Overlay<'a, 'b> {
    offset: u64,
    data: &'a [u8],
    read: &'a mut ReadAt<'b>,
}

impl Overlay<'_, '_> {
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<(), String> {
        let end = offset + out.len() as u64;
        let (from, to) = (self.offset.max(offset), (self.offset + self.data.len() as u64).min(end));
        if from > offset || to < end {
            (self.read)(offset, out)?;
        }
        if from < to {
            let source = &self.data[(from - self.offset) as usize..(to - self.offset) as usize];
            out[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
        }
        Ok(())
    }
}

impl LiveMap {
    /// A device of so many bytes of which nothing is known.
    pub fn new(device_bytes: u64) -> Self {
        Self { device_bytes, file_system: None }
    }

    /// Looks for a file system that is already there. `read` fills the buffer from an offset, or says why
    /// not.
    pub fn attach(&mut self, read: &mut ReadAt<'_>) {
        self.look(&mut Overlay { offset: 0, data: &[], read });
    }

    /// The file system, once it is recognised.
    pub fn superblock(&self) -> Option<&Superblock> {
        self.file_system.as_ref().map(|found| &found.shape)
    }

    /// Learns from a write that is about to reach the device. What else must be known is read from there.
    pub fn wrote(&mut self, offset: u64, data: &[u8], read: &mut ReadAt<'_>) {
        let mut below = Overlay { offset, data, read };
        if offset < superblock::OFFSET + superblock::BYTES as u64
            && offset + data.len() as u64 > superblock::OFFSET
        {
            self.look(&mut below);
        }
        if let Some(found) = &mut self.file_system {
            found.learn(&mut below);
        }
    }

    /// A range was discarded or zeroed.
    pub fn discarded(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        let covers = offset <= superblock::OFFSET && end >= superblock::OFFSET + superblock::BYTES as u64;
        if covers {
            self.file_system = None;
        }
        if let Some(found) = &mut self.file_system {
            found.drop_blocks(offset, end);
        }
    }

    /// Calls back with the length in bytes and the kind of each part of a range, in order.
    pub fn segments(&self, offset: u64, len: u64, mut part: impl FnMut(u64, Kind)) {
        let Some(found) = &self.file_system else { return part(len, Kind::Data) };
        let block_bytes = u64::from(found.shape.block_bytes);
        let end = offset.saturating_add(len);
        let mut next = offset;
        let mut emit = |until: u64, kind: Kind| {
            let until = until.min(end);
            if until > next {
                part(until - next, kind);
                next = until;
            }
        };
        found.parts(offset / block_bytes, end.div_ceil(block_bytes), |_, stop, kind| {
            emit(stop.saturating_mul(block_bytes), kind);
        });
        emit(end, Kind::Data);
    }

    /// Reads the superblock anew, and everything else if it describes another file system than before.
    fn look(&mut self, below: &mut Overlay<'_, '_>) {
        let mut bytes = [0; superblock::BYTES];
        let found = (self.device_bytes >= superblock::OFFSET + superblock::BYTES as u64
            && below.read(superblock::OFFSET, &mut bytes).is_ok())
        .then(|| Superblock::parse(&bytes, self.device_bytes).ok())
        .flatten();
        let Some(mut shape) = found else {
            self.file_system = None;
            return;
        };
        shape.needs_recovery = false;
        if self.superblock() != Some(&shape) {
            self.file_system = Some(FileSystem::read(shape, below));
        }
    }
}
