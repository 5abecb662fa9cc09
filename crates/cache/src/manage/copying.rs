//! Dirty data from the slots to a disk or a file.

use super::{Disk, Held, ManageError, Progress, Result};
use crate::metadata::{Area, sub_bytes};

/// Bytes of one write at most.
const RUN_MAX: u64 = 1 << 20;

/// Bytes of a volume and where they lie on the fast store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    offset: u64,
    len: u64,
    at: u64,
}

/// Dirty pieces of a volume in the order of the disk.
fn pieces(held: &Held, volume: u16) -> Vec<Piece> {
    let shape = &held.superblock.shape;
    let mut pieces: Vec<Piece> = Vec::new();
    for (slot, entry) in held.entries.iter().filter(|(_, entry)| entry.key.volume() == volume) {
        let first = entry.key.block() * u64::from(shape.block_bytes);
        let at = shape.slot_offset(*slot);
        pieces.extend(held.ranges(entry).map(|range| Piece {
            offset: range.offset,
            len: range.len,
            at: at + range.offset - first,
        }));
    }
    pieces.sort_unstable();
    pieces
}

/// Copies the sub-block in which a volume ends, if it is dirty and ends only beyond.
pub(super) fn copy_tail(held: &Held, fast: &mut dyn Area, volume: u16, disk: &mut dyn Disk) -> Result<()> {
    let sub = u64::from(sub_bytes(held.superblock.shape.block_bytes));
    let slow = |source| ManageError::Disk { volume, source };
    for piece in pieces(held, volume).iter().filter(|piece| piece.len < sub) {
        let mut bytes = vec![0; piece.len as usize];
        fast.read(piece.at, &mut bytes).map_err(ManageError::Fast)?;
        disk.write(piece.offset, &bytes).map_err(slow)?;
        disk.flush().map_err(slow)?;
    }
    Ok(())
}

/// Copies all dirty data of a volume to the same offsets of `target`, neighbours together, and flushes it.
/// `is_session`: it is the volume's disk, and shows it.
pub(super) fn copy_out(
    held: &Held,
    fast: &mut dyn Area,
    volume: u16,
    target: &mut dyn Disk,
    is_session: bool,
    progress: Progress<'_>,
) -> Result<()> {
    let pieces = pieces(held, volume);
    let all = pieces.iter().map(|piece| piece.len).sum();
    let slow = |source| ManageError::Disk { volume, source };
    let mut done = 0;
    let mut bytes: Vec<u8> = Vec::new();
    let mut start = 0;
    progress(0, all);
    for (at, piece) in pieces.iter().enumerate() {
        if bytes.is_empty() {
            start = piece.offset;
        }
        let from = bytes.len();
        bytes.resize(from + piece.len as usize, 0);
        fast.read(piece.at, &mut bytes[from..]).map_err(ManageError::Fast)?;
        let goes_on = pieces.get(at + 1).is_some_and(|next| next.offset == piece.offset + piece.len);
        if !goes_on || bytes.len() as u64 >= RUN_MAX {
            target.write(start, &bytes).map_err(slow)?;
            done += bytes.len() as u64;
            bytes.clear();
            if is_session {
                target.sign_of_life().map_err(slow)?;
            }
            progress(done, all);
        }
    }
    target.flush().map_err(slow)
}
